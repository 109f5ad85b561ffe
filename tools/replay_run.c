/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "replay_capture.h"
#include "replay_events.h"
#include "replay_expect.h"
#include "replay_flows.h"
#include "replay_progress.h"
#include "replay_report.h"
#include "replay_tally.h"

#define DECISIONS_BUFFER_BYTES (1u << 20)

/* All of one replay. What is NULL was not asked for, or is not there yet. */
struct run {
	const struct replay_options *options;
	struct cfg_model model;
	const struct cfg_port *port;
	struct replay_events events;
	bool *is_applied; /* by event */
	size_t n_pending;
	struct replay_expect *expect;
	struct replay_capture *capture;

	struct ctl_apply *apply;
	struct dp *dp;
	struct dp_batch *batch;
	struct replay_flows *flows;
	struct replay_tally *tally;

	struct replay_output *output;
	struct replay_compare *compare;
	FILE *decisions;
	struct replay_progress progress;

	bool has_begun;               /* a packet has come */
	uint64_t first_ns;            /* of the first packet, since 1970 */
	uint64_t now_ns;              /* of the last packet, since the first */
	uint64_t n_received;          /* packets added to a batch */
	uint64_t n_processed;         /* packets through it */
	uint64_t times[DP_BURST_MAX]; /* since the first, of the batch */
	bool is_different;            /* the output differs from the expected one */
};

/* Say what went wrong, and which kind of wrong it is. */
static enum replay_status
fail(enum replay_status status, const char *text)
{
	(void)fprintf(stderr, "shunt-replay: %s\n", text);
	return status;
}

static enum replay_status
choose_port(struct run *run)
{
	const struct cfg_dataplane *plane = &run->model.dataplane;
	const char *name = run->options->port;

	run->port = plane->n_ports > 0 ? &plane->ports[0] : NULL;
	if (name == NULL)
		return REPLAY_DONE;
	for (size_t i = 0; i < plane->n_ports; i++) {
		run->port = &plane->ports[i];
		if (strcmp(run->port->name, name) == 0)
			return REPLAY_DONE;
	}

	(void)fprintf(stderr,
		"shunt-replay: %s has no port '%s'; its ports are:", run->options->config,
		name);
	for (size_t i = 0; i < plane->n_ports; i++)
		(void)fprintf(stderr, " %s", plane->ports[i].name);
	(void)fprintf(stderr, "%s\n", plane->n_ports == 0 ? " none" : "");
	return REPLAY_BAD_USAGE;
}

/* The files that say what to do. Each has told stderr what is wrong with it. */
static enum replay_status
read_orders(struct run *run)
{
	const struct replay_options *options = run->options;

	if (cfg_read_file(options->config, stderr, &run->model) != 0 ||
		choose_port(run) != REPLAY_DONE)
		return REPLAY_BAD_USAGE;
	if (options->events != NULL &&
		replay_events_read(options->events, &run->model, stderr, &run->events) != 0)
		return REPLAY_BAD_USAGE;
	if (options->expect != NULL &&
		replay_expect_read(options->expect, stderr, &run->expect) != 0)
		return REPLAY_BAD_USAGE;

	run->n_pending = run->events.n_items;
	run->is_applied = calloc(run->n_pending + 1, sizeof(*run->is_applied));
	if (run->is_applied == NULL)
		return fail(REPLAY_FAILED, "there is not enough memory for the events");
	return REPLAY_DONE;
}

static enum replay_status
open_capture(struct run *run)
{
	struct replay_message message;

	if (replay_capture_open(run->options->input, &run->capture, &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	return REPLAY_DONE;
}

/* Put the model in force, and begin a phase of the report. */
static enum replay_status
put_in_force(struct run *run, const char *title)
{
	struct dp_snapshot *snapshot;

	if (ctl_apply_build(run->apply, &run->model, run->port, stderr, &snapshot) != 0)
		return fail(REPLAY_FAILED, "the configuration cannot be put in force");
	dp_publish(run->dp, snapshot);
	if (replay_tally_phase(run->tally, &run->model, title, run->n_received + 1) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the report");
	return REPLAY_DONE;
}

static bool
is_live(const void *context, uint32_t backend)
{
	return ctl_apply_is_live(context, backend);
}

static enum replay_status
start_plane(struct run *run, const char *program)
{
	/* Any secret does here, if it is the same in every run: nobody is aiming at us. */
	const struct dp_conf conf = {
		.n_workers = run->options->n_workers,
		.flows = ctl_apply_flow_conf(&run->model, 0x9e3779b97f4a7c15u,
			0xd1b54a32d192ed03u),
	};

	if (dp_start_unprivileged(program) != 0)
		return fail(REPLAY_FAILED, "the packet library did not start; see above");
	if (ctl_apply_create(&run->apply) != 0 || dp_create(&conf, 0, &run->dp) != 0 ||
		dp_batch_create(run->dp, &run->batch) != 0 ||
		replay_flows_create(conf.flows.timeout_ns, is_live, run->apply, &run->flows) !=
			0 ||
		replay_tally_create(run->apply, &run->tally) != 0)
		return fail(REPLAY_FAILED,
			"there is not enough memory for the data plane; fewer workers or "
			"dataplane.flow_entries need less");
	return put_in_force(run, "start");
}

/* Whether two paths name one ordinary file, by whatever names; "-" and NULL name none. */
static bool
is_same_file(const char *a, const char *b)
{
	struct stat stat_a;
	struct stat stat_b;

	return a != NULL && b != NULL && stat(a, &stat_a) == 0 && stat(b, &stat_b) == 0 &&
	       S_ISREG(stat_a.st_mode) && stat_a.st_dev == stat_b.st_dev &&
	       stat_a.st_ino == stat_b.st_ino;
}

/* An output that is also read, or written twice, would destroy what the user has. */
static enum replay_status
check_outputs(const struct replay_options *options)
{
	const char *const outputs[] = {options->write, options->decisions};
	const char *const inputs[] = {options->config, options->events, options->expect,
		options->expect_output, options->input};

	for (size_t i = 0; i < LB_N_ELEMENTS(outputs); i++) {
		bool is_taken = false;

		for (size_t k = 0; k < LB_N_ELEMENTS(inputs); k++)
			is_taken |= is_same_file(outputs[i], inputs[k]);
		if (!is_taken)
			continue;
		(void)fprintf(stderr,
			"shunt-replay: %s is read by this replay, and cannot be written by "
			"it\n",
			outputs[i]);
		return REPLAY_BAD_USAGE;
	}
	if (outputs[0] != NULL && outputs[1] != NULL &&
		(strcmp(outputs[0], outputs[1]) == 0 || is_same_file(outputs[0], outputs[1])))
		return fail(REPLAY_BAD_USAGE,
			"--write and --decisions cannot go to the same file");
	return REPLAY_DONE;
}

static enum replay_status
open_decisions(struct run *run)
{
	const char *path = run->options->decisions;

	if (path == NULL)
		return REPLAY_DONE;
	run->decisions = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	if (run->decisions == NULL) {
		(void)fprintf(stderr, "shunt-replay: cannot write %s: %s\n", path,
			strerror(errno));
		return REPLAY_FAILED;
	}
	/* Only speed depends on it. */
	(void)setvbuf(run->decisions, NULL, _IOFBF, DECISIONS_BUFFER_BYTES);
	return REPLAY_DONE;
}

static enum replay_status
open_outputs(struct run *run)
{
	const struct replay_options *options = run->options;
	struct replay_message message;

	if (options->expect_output != NULL &&
		replay_compare_open(options->expect_output, &run->compare, &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	if (options->write != NULL &&
		replay_output_open(options->write, replay_capture_is_nano(run->capture),
			&run->output, &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	return open_decisions(run);
}

static enum replay_status
emit_frame(struct run *run, const uint8_t *bytes, uint32_t n_bytes, uint64_t time_ns)
{
	struct replay_message message;
	int ret;

	if (run->output != NULL &&
		replay_output_write(run->output, bytes, n_bytes, time_ns, &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	if (run->compare == NULL)
		return REPLAY_DONE;

	ret = replay_compare_next(run->compare, bytes, n_bytes, &message);
	if (ret < 0)
		return fail(REPLAY_FAILED, message.text);
	if (ret == 1) {
		(void)fprintf(stderr, "%s\n", message.text);
		run->is_different = true;
	}
	return REPLAY_DONE;
}

static struct replay_decision
name_decision(const struct run *run, const struct dp_decision *d, uint64_t packet)
{
	static const char *const flows[] = {
		[DP_FLOW_NONE] = "none",
		[DP_FLOW_HIT] = "hit",
		[DP_FLOW_MISS] = "miss",
	};
	struct replay_decision named = {
		.packet = packet,
		.verdict = (enum lb_verdict)d->verdict,
		.flow = flows[d->flow],
		.slot = d->slot != DP_NONE ? (int64_t)d->slot : -1,
	};

	if (d->service != DP_NONE)
		named.service = ctl_apply_service_name(run->apply,
			ctl_apply_service(run->apply, d->service));
	if (d->backend != DP_NONE)
		named.backend = ctl_apply_backend(run->apply, d->backend).name;
	return named;
}

static enum replay_status
account(struct run *run, const struct dp_decision *d, uint64_t now_ns)
{
	run->n_processed++;
	replay_tally_add(run->tally, d);
	if (d->verdict == LB_FORWARD)
		replay_flows_see(run->flows, d, now_ns);

	if (run->decisions != NULL || run->expect != NULL) {
		const struct replay_decision named = name_decision(run, d, run->n_processed);

		if (run->expect != NULL)
			replay_expect_packet(run->expect, &named);
		if (run->decisions != NULL &&
			replay_decision_write(&named, run->decisions) != 0)
			return fail(REPLAY_FAILED, "the decisions cannot be written");
	}
	return REPLAY_DONE;
}

/* Run the batch, and give each of its packets where it belongs, in order. */
static enum replay_status
flush(struct run *run)
{
	enum replay_status status = REPLAY_DONE;
	unsigned int n;

	if (run->n_received == run->n_processed)
		return REPLAY_DONE;
	dp_batch_run(run->batch);
	n = dp_batch_count(run->batch);
	for (unsigned int i = 0; i < n && status == REPLAY_DONE; i++) {
		uint32_t n_bytes;
		const uint8_t *bytes = dp_batch_output(run->batch, i, &n_bytes);

		status = account(run, dp_batch_decision(run->batch, i), run->times[i]);
		if (status == REPLAY_DONE && bytes != NULL)
			status = emit_frame(run, bytes, n_bytes, run->first_ns + run->times[i]);
	}
	return status;
}

static bool
is_due(const struct run *run, const struct replay_event *event, uint64_t next_ns)
{
	if (event->is_by_packets)
		return event->after_packets <= run->n_received;
	return event->at_ns <= next_ns;
}

/*
 * The event to apply before the packet that comes at next_ns: of those due, the one due
 * first, ties in file order. One that counts packets was due when the last packet had come.
 */
static const struct replay_event *
next_event(const struct run *run, uint64_t next_ns)
{
	const struct replay_event *first = NULL;
	uint64_t first_ns = 0;

	for (size_t i = 0; i < run->events.n_items; i++) {
		const struct replay_event *event = &run->events.items[i];
		const uint64_t due_ns = event->is_by_packets ? run->now_ns : event->at_ns;

		if (run->is_applied[i] || !is_due(run, event, next_ns))
			continue;
		if (first == NULL || due_ns < first_ns) {
			first = event;
			first_ns = due_ns;
		}
	}
	return first;
}

static enum replay_status
apply_events(struct run *run, uint64_t next_ns)
{
	const struct replay_event *event;
	enum replay_status status;

	while (run->n_pending > 0 && (event = next_event(run, next_ns)) != NULL) {
		status = flush(run);
		if (status != REPLAY_DONE)
			return status;
		run->is_applied[event - run->events.items] = true;
		run->n_pending--;
		if (replay_event_apply(event, run->events.file, &run->model, stderr) != 0)
			return REPLAY_BAD_USAGE;
		if (event->kind == REPLAY_RELOAD && choose_port(run) != REPLAY_DONE)
			return REPLAY_BAD_USAGE;
		status = put_in_force(run, event->title);
		if (status != REPLAY_DONE)
			return status;
	}
	return REPLAY_DONE;
}

/* One packet, which came next_ns after the first. */
static enum replay_status
take_frame(struct run *run, const struct replay_frame *frame, uint64_t next_ns)
{
	enum replay_status status = apply_events(run, next_ns);
	unsigned int place;

	if (status == REPLAY_DONE && run->n_received - run->n_processed == DP_BURST_MAX)
		status = flush(run);
	if (status != REPLAY_DONE)
		return status;

	place = (unsigned int)(run->n_received - run->n_processed);
	if (dp_batch_add(run->batch, frame->bytes, frame->n_bytes, frame->wire_bytes,
		    next_ns) != 0)
		return fail(REPLAY_FAILED, "a packet finds no buffer");
	run->times[place] = next_ns;
	run->now_ns = next_ns;
	run->n_received++;
	return REPLAY_DONE;
}

/* The whole capture once. */
static enum replay_status
replay_once(struct run *run)
{
	const uint64_t resume_ns = run->now_ns; /* where the pass before this one ended */
	enum replay_status status = REPLAY_DONE;
	enum replay_status flushed;
	struct replay_message message;
	struct replay_frame frame;
	uint64_t pass_ns = 0; /* of this pass' first packet, since 1970 */
	bool is_first = true;
	int got = 0;

	while (status == REPLAY_DONE &&
		(got = replay_capture_next(run->capture, &frame, &message)) == 1) {
		if (!run->has_begun)
			run->first_ns = frame.time_ns;
		if (is_first)
			pass_ns = frame.time_ns;
		is_first = false;
		run->has_begun = true;
		status = take_frame(run, &frame, resume_ns + (frame.time_ns - pass_ns));

		if (run->n_received % DP_BURST_MAX == 0) {
			uint64_t done;
			uint64_t total;

			replay_capture_progress(run->capture, &done, &total);
			replay_progress_tell(&run->progress, run->n_received, done, total);
		}
	}
	/* What came before an end of any kind is replayed and reported. */
	flushed = status == REPLAY_DONE ? flush(run) : REPLAY_DONE;
	replay_progress_end(&run->progress);
	if (got < 0)
		return fail(REPLAY_FAILED, message.text);
	return status != REPLAY_DONE ? status : flushed;
}

static enum replay_status
replay_all(struct run *run)
{
	enum replay_status status = replay_once(run);

	for (uint64_t i = 1; i < run->options->n_loops && status == REPLAY_DONE; i++) {
		replay_capture_close(run->capture);
		run->capture = NULL;
		status = open_capture(run);
		if (status == REPLAY_DONE)
			status = replay_once(run);
	}
	return status;
}

static void
warn_of_pending(const struct run *run)
{
	for (size_t i = 0; i < run->events.n_items; i++) {
		const struct replay_event *event = &run->events.items[i];

		if (!run->is_applied[i])
			(void)fprintf(stderr,
				"%s:%" PRIu32 ": warning: '%s' was never due: the replay ended "
				"after %" PRIu64 " packets and %.6f s\n",
				run->events.file, event->pos.line, event->title,
				run->n_received, (double)run->now_ns / 1e9);
	}
}

/* Everything to its file. The first failure is told; the rest is closed all the same. */
static enum replay_status
close_outputs(struct run *run)
{
	enum replay_status status = REPLAY_DONE;
	struct replay_message message;

	if (run->output != NULL && replay_output_close(run->output, &message) != 0)
		status = fail(REPLAY_FAILED, message.text);
	run->output = NULL;
	if (run->decisions != NULL) {
		const int failed =
			run->decisions == stdout ? fflush(stdout) : fclose(run->decisions);

		if (failed != 0) {
			(void)fprintf(stderr, "shunt-replay: cannot write %s: %s\n",
				run->options->decisions, strerror(errno));
			status = REPLAY_FAILED;
		}
	}
	run->decisions = NULL;
	return status;
}

static enum replay_status
compare_end(struct run *run)
{
	struct replay_message message;
	int ret;

	if (run->compare == NULL)
		return REPLAY_DONE;
	ret = replay_compare_end(run->compare, &message);
	if (ret < 0)
		return fail(REPLAY_FAILED, message.text);
	if (ret == 1) {
		(void)fprintf(stderr, "%s\n", message.text);
		run->is_different = true;
	}
	return run->is_different ? REPLAY_NOT_AS_EXPECTED : REPLAY_DONE;
}

/* The result goes to stdout, unless packets or decisions are there already. */
static FILE *
report_stream(const struct replay_options *options)
{
	const bool is_taken =
		(options->write != NULL && strcmp(options->write, "-") == 0) ||
		(options->decisions != NULL && strcmp(options->decisions, "-") == 0);

	return is_taken ? stderr : stdout;
}

static enum replay_status
report(struct run *run, double seconds)
{
	struct replay_report report = {.seconds = seconds};
	FILE *to = report_stream(run->options);
	size_t n_failed = 0;
	int ret;

	dp_read_verdicts(run->dp, report.verdicts);
	if (replay_tally_report(run->tally, &run->model, &report) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the report");
	report.moved = replay_flows_moved(run->flows);
	report.broken = replay_flows_broken(run->flows);

	ret = run->options->is_json ? replay_report_write_json(&report, to)
				    : replay_report_write_text(&report, to);
	if (ret != 0 || fflush(to) != 0)
		return fail(REPLAY_FAILED, "the report cannot be written");
	if (run->expect != NULL)
		n_failed = replay_expect_finish(run->expect, &report, stderr);
	return n_failed > 0 ? REPLAY_NOT_AS_EXPECTED : REPLAY_DONE;
}

static enum replay_status
worse(enum replay_status a, enum replay_status b)
{
	/* A replay that failed says nothing about expectations. */
	return a != REPLAY_DONE ? a : b;
}

static enum replay_status
replay(struct run *run, const char *program)
{
	enum replay_status status = read_orders(run);
	uint64_t begun_ns;
	double seconds;

	if (status == REPLAY_DONE)
		status = open_capture(run);
	if (status == REPLAY_DONE)
		status = check_outputs(run->options);
	if (status == REPLAY_DONE)
		status = start_plane(run, program);
	if (status == REPLAY_DONE)
		status = open_outputs(run);
	if (status != REPLAY_DONE)
		return status;

	replay_progress_begin(&run->progress);
	begun_ns = replay_clock_ns();
	status = replay_all(run);
	seconds = (double)(replay_clock_ns() - begun_ns) / 1e9;
	warn_of_pending(run);
	status = worse(status, close_outputs(run));
	if (status == REPLAY_DONE)
		status = compare_end(run);
	return worse(status, report(run, seconds));
}

enum replay_status
replay_run(const char *program, const struct replay_options *options)
{
	struct run run = {.options = options};
	struct replay_message ignored;
	enum replay_status status;

	cfg_model_init(&run.model);
	status = replay(&run, program);

	/* Only open where the replay ended early, and then that is what was told. */
	if (run.output != NULL && replay_output_close(run.output, &ignored) != 0)
		status = REPLAY_FAILED;
	if (run.decisions != NULL && run.decisions != stdout)
		(void)fclose(run.decisions);
	replay_compare_close(run.compare);
	replay_tally_destroy(run.tally);
	replay_flows_destroy(run.flows);
	dp_batch_destroy(run.batch);
	dp_destroy(run.dp);
	ctl_apply_destroy(run.apply);
	replay_capture_close(run.capture);
	replay_expect_free(run.expect);
	replay_events_free(&run.events);
	free(run.is_applied);
	cfg_model_fini(&run.model);
	return status;
}
