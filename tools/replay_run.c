/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl_apply.h"
#include "replay_flows.h"
#include "replay_orders.h"
#include "replay_pending.h"
#include "replay_plot.h"
#include "replay_progress.h"
#include "replay_report.h"
#include "replay_schedule.h"
#include "replay_source.h"
#include "replay_tally.h"
#include "replay_timeline.h"

#define DECISIONS_BUFFER_BYTES (1u << 20)
/** The largest that a port may have. */
#define MTU_MAX 9216u

/* All of one replay. What is NULL was not asked for, or is not there yet. */
struct run {
	const struct replay_options *options;
	struct replay_orders orders; /* its model is the one in force */
	struct replay_schedule schedule;
	struct replay_source *source;

	struct ctl_apply *apply;
	struct dp *dp;
	struct dp_batch *batch;
	struct replay_flows *flows;
	struct replay_tally *tally;
	struct replay_timeline timeline; /* of a plot alone */

	struct replay_output *output;
	struct replay_compare *compare;
	FILE *decisions;
	struct replay_progress progress;

	struct replay_pending *pending; /* NULL: nobody asks for decisions one by one */

	uint64_t n_received;  /* packets added to a batch */
	unsigned int n_added; /* ... and not yet run */
	uint64_t last_ns;     /* when the last one came, since the first */
	bool is_different;    /* the output differs from the expected one */
};

/* Say what went wrong, and which kind of wrong it is. */
static enum replay_status
fail(enum replay_status status, const char *text)
{
	(void)fprintf(stderr, "shunt-replay: %s\n", text);
	return status;
}

/* Put a model in force, and begin a phase of the report. */
static enum replay_status
put_in_force(struct run *run, const struct cfg_model *model, const char *title)
{
	const struct ctl_paths paths = {.port = replay_find_port(model, run->options->port)};
	struct dp_snapshot *snapshot;

	if (ctl_apply_build(run->apply, model, &paths, stderr, &snapshot) != 0)
		return fail(REPLAY_FAILED, "the configuration cannot be put in force");
	dp_publish(run->dp, snapshot);
	if (replay_tally_phase(run->tally, model, title, run->n_received + 1) != 0)
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
	static const uint64_t secret[2] = {0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u};
	struct dp_conf conf =
		ctl_apply_dp_conf(&run->orders.model, run->options->n_workers, secret);

	conf.is_one_thread = true;
	conf.mtu_max = MTU_MAX; /* whatever a reload brings */
	if (dp_start_unprivileged(program, run->options->n_workers) != 0)
		return fail(REPLAY_FAILED, "the packet library did not start; see above");
	if (ctl_apply_create(&run->apply) != 0 || dp_create(&conf, 0, &run->dp) != 0 ||
		dp_batch_create(run->dp, &run->batch) != 0 ||
		replay_flows_create(conf.flows.timeout_ns, is_live, run->apply, &run->flows) !=
			0 ||
		replay_tally_create(run->apply, &run->tally) != 0)
		return fail(REPLAY_FAILED,
			"there is not enough memory for the data plane; fewer workers or "
			"dataplane.flow_entries need less");
	return put_in_force(run, &run->orders.model, "start");
}

static enum replay_status
fail_decisions(const struct run *run)
{
	const char *path = run->options->decisions;

	(void)fprintf(stderr, "shunt-replay: cannot write %s: %s\n",
		strcmp(path, "-") == 0 ? "the decisions to standard output" : path,
		strerror(errno));
	return REPLAY_FAILED;
}

static enum replay_status
open_decisions(struct run *run)
{
	const char *path = run->options->decisions;

	if (path == NULL)
		return REPLAY_DONE;
	run->decisions = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	if (run->decisions == NULL)
		return fail_decisions(run);
	/* Only speed depends on it. */
	(void)setvbuf(run->decisions, NULL, _IOFBF, DECISIONS_BUFFER_BYTES);
	return REPLAY_DONE;
}

static enum replay_status
open_outputs(struct run *run)
{
	const struct replay_options *options = run->options;
	struct replay_message message;

	if (options->plot != NULL && replay_plot_prepare(options->plot) != 0)
		return REPLAY_FAILED;
	if (options->expect_output != NULL &&
		replay_compare_open(options->expect_output, &run->compare, &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	if (options->write != NULL &&
		replay_output_open(options->write, replay_source_is_nano(run->source),
			&run->output, &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	/* Whether they are one could not be seen before one of them was there. */
	if (replay_is_same_output(options->write, options->decisions))
		return fail(REPLAY_BAD_USAGE,
			"--write and --decisions cannot go to the same file");
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
name_outcome(const struct run *run, const struct replay_outcome *outcome, uint64_t packet)
{
	static const char *const flows[] = {
		[DP_FLOW_NONE] = "none",
		[DP_FLOW_HIT] = "hit",
		[DP_FLOW_MISS] = "miss",
	};
	struct replay_decision named = {
		.packet = packet,
		.verdict = (enum lb_verdict)outcome->verdict,
		.flow = flows[outcome->flow],
		.slot = outcome->slot != DP_NONE ? (int64_t)outcome->slot : -1,
	};

	if (outcome->service != DP_NONE)
		named.service = ctl_apply_service_name(run->apply, outcome->service);
	if (outcome->backend != DP_NONE)
		named.backend = ctl_apply_backend(run->apply, outcome->backend).name;
	return named;
}

/* Those whose turn it is, as Wireshark numbers them. */
static enum replay_status
tell_decisions(struct run *run)
{
	struct replay_outcome outcome;
	uint64_t number;

	while (replay_pending_next(run->pending, &number, &outcome)) {
		const struct replay_decision named = name_outcome(run, &outcome, number + 1);

		if (run->orders.expect != NULL)
			replay_expect_packet(run->orders.expect, &named);
		if (run->decisions != NULL &&
			replay_decision_write(&named, run->decisions) != 0)
			return fail_decisions(run);
	}
	return REPLAY_DONE;
}

static enum replay_status
account(struct run *run, const struct dp_result *result)
{
	const struct dp_decision *d = result->decision;
	struct replay_outcome outcome = {
		.service = DP_NONE,
		.backend = d->backend,
		.slot = d->slot,
		.verdict = d->verdict,
		.flow = d->flow,
	};

	replay_tally_add(run->tally, d);
	if (d->backend != DP_NONE)
		replay_flows_see(run->flows, d, result->now_ns);
	if (run->options->plot != NULL && d->verdict == LB_FORWARD &&
		replay_timeline_add(&run->timeline, d->backend, result->now_ns) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the plot");
	if (run->pending == NULL)
		return REPLAY_DONE;
	if (d->service != DP_NONE)
		outcome.service = ctl_apply_service(run->apply, d->service);
	if (replay_pending_settle(run->pending, result->number, &outcome) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the decisions");
	return tell_decisions(run);
}

/* Give each result of a run where it belongs. */
static enum replay_status
take_results(struct run *run)
{
	enum replay_status status = REPLAY_DONE;
	struct dp_result result;

	while (status == REPLAY_DONE && dp_batch_next(run->batch, &result)) {
		if (result.decision != NULL)
			status = account(run, &result);
		if (status == REPLAY_DONE && result.bytes != NULL)
			status = emit_frame(run, result.bytes, result.n_bytes, result.cookie);
	}
	return status;
}

static enum replay_status
flush(struct run *run)
{
	if (run->n_added == 0)
		return REPLAY_DONE;
	run->n_added = 0;
	dp_batch_run(run->batch);
	return take_results(run);
}

/* The model as it is after an event; the one in force stays, unless all of it succeeds. */
static enum replay_status
apply_event(struct run *run, const struct replay_event *event)
{
	struct cfg_model next;
	enum replay_status status;

	if (cfg_model_copy(&run->orders.model, &next) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for an event");
	if (replay_event_apply(event, run->orders.events.file, &next, stderr) != 0) {
		cfg_model_fini(&next);
		return REPLAY_BAD_USAGE;
	}
	status = put_in_force(run, &next, event->title);
	if (status != REPLAY_DONE) {
		cfg_model_fini(&next);
		return status;
	}
	cfg_model_fini(&run->orders.model);
	run->orders.model = next;
	return REPLAY_DONE;
}

/* Where in time it is: one that counts packets comes with the last of them. */
static enum replay_status
mark_event(struct run *run, const struct replay_event *event)
{
	const uint64_t at_ns = event->is_by_packets ? run->last_ns : event->at_ns;

	if (replay_timeline_mark(&run->timeline, event->title, at_ns) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the plot");
	return REPLAY_DONE;
}

/* Everything that is due before the packet that comes at now_ns. */
static enum replay_status
apply_events(struct run *run, uint64_t now_ns)
{
	enum replay_status status = REPLAY_DONE;
	size_t event;

	while (status == REPLAY_DONE &&
		(event = replay_schedule_next(&run->schedule, run->n_received, run->last_ns,
			 now_ns)) != REPLAY_NO_EVENT) {
		status = flush(run);
		if (status == REPLAY_DONE)
			status = apply_event(run, &run->orders.events.items[event]);
		if (status == REPLAY_DONE && run->options->plot != NULL)
			status = mark_event(run, &run->orders.events.items[event]);
	}
	return status;
}

static enum replay_status
take_packet(struct run *run, const struct replay_packet *packet)
{
	const struct replay_frame *frame = &packet->frame;
	enum replay_status status = apply_events(run, packet->since_ns);

	if (status == REPLAY_DONE && run->n_added == DP_BURST_MAX)
		status = flush(run);
	if (status != REPLAY_DONE)
		return status;

	if (dp_batch_add(run->batch, frame->bytes, frame->n_bytes, frame->wire_bytes,
		    packet->since_ns, packet->time_ns) != 0)
		return fail(REPLAY_FAILED, "a packet finds no buffer");
	run->n_added++;
	run->last_ns = packet->since_ns;
	run->n_received++;
	return REPLAY_DONE;
}

static void
tell_progress(struct run *run)
{
	uint64_t done;
	uint64_t total;

	if (run->n_received % DP_BURST_MAX != 0)
		return;
	replay_source_progress(run->source, &done, &total);
	replay_progress_tell(&run->progress, run->n_received, done, total);
}

static enum replay_status
replay_packets(struct run *run)
{
	enum replay_status status = REPLAY_DONE;
	struct replay_message message;
	struct replay_packet packet;
	int got = 0;

	while (status == REPLAY_DONE &&
		(got = replay_source_next(run->source, &packet, &message)) == 1) {
		status = take_packet(run, &packet);
		tell_progress(run);
	}
	/* What came before an end of any kind is replayed and reported. */
	if (status == REPLAY_DONE)
		status = flush(run);
	if (status == REPLAY_DONE) {
		dp_batch_end(run->batch);
		status = take_results(run);
	}
	replay_progress_end(&run->progress);
	return got < 0 ? fail(REPLAY_FAILED, message.text) : status;
}

static void
warn_of_pending(struct run *run)
{
	const struct replay_events *events = &run->orders.events;
	size_t i;

	while ((i = replay_schedule_next(&run->schedule, UINT64_MAX, 0, UINT64_MAX)) !=
		REPLAY_NO_EVENT)
		(void)fprintf(stderr,
			"%s:%" PRIu32 ":%" PRIu32 ": warning: '%s' was not applied: no packet "
			"came after it was due; the replay ended with packet %" PRIu64
			" at %.6f s\n",
			events->file, events->items[i].pos.line, events->items[i].pos.column,
			events->items[i].title, run->n_received, (double)run->last_ns / 1e9);
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

		if (failed != 0)
			status = fail_decisions(run);
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
	const bool is_taken = replay_is_same_output(options->write, "-") ||
			      replay_is_same_output(options->decisions, "-");

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
	if (replay_tally_report(run->tally, &run->orders.model, &report) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the report");
	report.moved = replay_flows_moved(run->flows);
	report.broken = replay_flows_broken(run->flows);
	report.unwatched = replay_flows_forgotten(run->flows);

	ret = run->options->is_json ? replay_report_write_json(&report, to)
				    : replay_report_write_text(&report, to);
	if (ret != 0 || fflush(to) != 0)
		return fail(REPLAY_FAILED, "the report cannot be written");
	if (run->orders.expect != NULL)
		n_failed = replay_expect_finish(run->orders.expect, &report, stderr);
	return n_failed > 0 ? REPLAY_NOT_AS_EXPECTED : REPLAY_DONE;
}

static enum replay_status
plot(struct run *run)
{
	const uint32_t n = ctl_apply_n_backends(run->apply);
	struct replay_plot_backend *backends;
	int ret;

	if (run->options->plot == NULL)
		return REPLAY_DONE;
	backends = calloc((size_t)n + 1, sizeof(*backends));
	if (backends == NULL)
		return fail(REPLAY_FAILED, "there is not enough memory for the plot");
	for (uint32_t id = 0; id < n; id++) {
		const struct ctl_backend_name name = ctl_apply_backend(run->apply, id);

		backends[id] = (struct replay_plot_backend){.service = name.service,
			.name = name.name,
			.of_name = ctl_apply_service_name(run->apply, name.service)};
	}
	replay_timeline_reach(&run->timeline, run->last_ns);
	ret = replay_plot_write(run->options->plot, &run->timeline, backends,
		ctl_apply_n_services(run->apply));
	free(backends);
	return ret == 0 ? REPLAY_DONE : REPLAY_FAILED;
}

static enum replay_status
worse(enum replay_status a, enum replay_status b)
{
	/* A replay that failed says nothing about expectations. */
	return a != REPLAY_DONE ? a : b;
}

static enum replay_status
prepare(struct run *run, const char *program)
{
	struct replay_message message;
	enum replay_status status = replay_orders_read(run->options, &run->orders);

	if (status != REPLAY_DONE)
		return status;
	if (replay_schedule_init(&run->orders.events, &run->schedule) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the events");
	if (replay_source_open(run->options->input, run->options->n_loops, &run->source,
		    &message) != 0)
		return fail(REPLAY_FAILED, message.text);
	if ((run->options->decisions != NULL || run->orders.expect != NULL) &&
		replay_pending_create(&run->pending) != 0)
		return fail(REPLAY_FAILED, "there is not enough memory for the decisions");
	status = start_plane(run, program);
	return status == REPLAY_DONE ? open_outputs(run) : status;
}

static enum replay_status
replay(struct run *run)
{
	uint64_t begun_ns;
	enum replay_status status;
	double seconds;

	replay_progress_begin(&run->progress);
	begun_ns = replay_clock_ns();
	status = replay_packets(run);
	seconds = (double)(replay_clock_ns() - begun_ns) / 1e9;
	if (status == REPLAY_DONE)
		warn_of_pending(run);
	status = worse(status, close_outputs(run));
	if (status == REPLAY_DONE)
		status = compare_end(run);
	status = worse(status, plot(run));
	return worse(status, report(run, seconds));
}

enum replay_status
replay_run(const char *program, const struct replay_options *options)
{
	static struct run run; /* what is left to the process's end is found by it */
	struct replay_message ignored;
	enum replay_status status;

	run.options = options;
	status = prepare(&run, program);
	if (status == REPLAY_DONE)
		status = replay(&run);

	/* Only open where the replay never began, and then that is what was told. */
	if (run.output != NULL && replay_output_close(run.output, &ignored) != 0)
		status = REPLAY_FAILED;
	if (run.decisions != NULL && run.decisions != stdout)
		(void)fclose(run.decisions);
	replay_compare_close(run.compare);
	replay_pending_destroy(run.pending);
	replay_timeline_fini(&run.timeline);
	replay_tally_destroy(run.tally);
	replay_flows_destroy(run.flows);
	/* The plane and its batch are left: EAL would write to each page of their buffers. */
	ctl_apply_destroy(run.apply);
	replay_source_close(run.source);
	replay_schedule_fini(&run.schedule);
	replay_orders_fini(&run.orders);
	return status;
}
