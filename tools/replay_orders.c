/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_orders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfg_yaml.h"
#include "replay_schedule.h"
#include "replay_source.h"

const struct cfg_port *
replay_find_port(const struct cfg_model *model, const char *name)
{
	const struct cfg_dataplane *plane = &model->dataplane;

	if (name == NULL)
		return plane->n_ports > 0 ? &plane->ports[0] : NULL;
	for (size_t i = 0; i < plane->n_ports; i++)
		if (strcmp(plane->ports[i].name, name) == 0)
			return &plane->ports[i];
	return NULL;
}

/* Ends a message that says where a port is missing. */
static void
tell_ports(const struct cfg_model *model, const char *name)
{
	const struct cfg_dataplane *plane = &model->dataplane;

	(void)fprintf(stderr, " has no port '%s'; its ports are:", name);
	for (size_t i = 0; i < plane->n_ports; i++)
		(void)fprintf(stderr, " %s", plane->ports[i].name);
	(void)fprintf(stderr, "%s\n", plane->n_ports == 0 ? " none" : "");
}

/* --port has to be there now, and after each reload. */
static enum replay_status
check_port(const struct replay_options *options, const struct replay_orders *orders)
{
	const struct replay_events *events = &orders->events;
	enum replay_status status = REPLAY_DONE;

	if (options->port == NULL)
		return REPLAY_DONE;
	if (replay_find_port(&orders->model, options->port) == NULL) {
		(void)fprintf(stderr, "shunt-replay: %s", options->config);
		tell_ports(&orders->model, options->port);
		status = REPLAY_BAD_USAGE;
	}
	for (size_t i = 0; i < events->n_items; i++) {
		const struct replay_event *event = &events->items[i];

		if (event->kind != REPLAY_RELOAD ||
			replay_find_port(event->reload, options->port) != NULL)
			continue;
		(void)fprintf(stderr, "%s:%" PRIu32 ":%" PRIu32 ": reload: %s", events->file,
			event->pos.line, event->pos.column, event->reload_path);
		tell_ports(event->reload, options->port);
		status = REPLAY_BAD_USAGE;
	}
	return status;
}

/* What a path names; "-" is a standard stream. Returns whether there is anything. */
static bool
look_at(const char *path, int standard, struct stat *out)
{
	if (path == NULL)
		return false;
	return (strcmp(path, "-") == 0 ? fstat(standard, out) : stat(path, out)) == 0;
}

static bool
is_one_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool
replay_is_same_output(const char *a, const char *b)
{
	struct stat of_a;
	struct stat of_b;

	if (!look_at(a, STDOUT_FILENO, &of_a) || !look_at(b, STDOUT_FILENO, &of_b))
		return false;
	/* Nothing is lost in a device such as /dev/null. */
	return (S_ISREG(of_a.st_mode) || S_ISFIFO(of_a.st_mode)) && is_one_file(&of_a, &of_b);
}

/* Whether an output is an ordinary file that is read, by whatever names. */
static bool
is_read(const struct replay_options *options, const struct replay_events *events,
	const char *path)
{
	const char *const inputs[] = {options->config, options->events, options->expect,
		options->expect_output, options->input};
	struct stat output;
	struct stat input;

	if (!look_at(path, STDOUT_FILENO, &output) || !S_ISREG(output.st_mode))
		return false;
	for (size_t i = 0; i < LB_N_ELEMENTS(inputs); i++)
		if (look_at(inputs[i], STDIN_FILENO, &input) && is_one_file(&output, &input))
			return true;
	for (size_t i = 0; i < events->n_items; i++)
		if (look_at(events->items[i].reload_path, STDIN_FILENO, &input) &&
			is_one_file(&output, &input))
			return true;
	return false;
}

/* An output that is also read, or written twice, would destroy what the user has. */
static enum replay_status
check_outputs(const struct replay_options *options, const struct replay_events *events)
{
	const char *const outputs[] = {options->write, options->decisions};

	for (size_t i = 0; i < LB_N_ELEMENTS(outputs); i++) {
		if (!is_read(options, events, outputs[i]))
			continue;
		(void)fprintf(stderr,
			"shunt-replay: %s is read by this replay, and cannot be written by "
			"it\n",
			outputs[i]);
		return REPLAY_BAD_USAGE;
	}
	if (outputs[0] == NULL || outputs[1] == NULL ||
		(strcmp(outputs[0], outputs[1]) != 0 &&
			!replay_is_same_output(outputs[0], outputs[1])))
		return REPLAY_DONE;
	(void)fprintf(stderr,
		"shunt-replay: --write and --decisions cannot go to the same file\n");
	return REPLAY_BAD_USAGE;
}

/* What is read several times, or beforehand, has to be a file. */
static bool
is_file(const char *path)
{
	struct stat about;

	return strcmp(path, "-") != 0 && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static enum replay_status
check_loop(const struct replay_options *options)
{
	struct stat about;

	/* One that is not there is told of when it is opened. */
	if (options->n_loops == 1 || stat(options->input, &about) != 0 ||
		S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))
		return REPLAY_DONE;
	(void)fprintf(stderr, "shunt-replay: %s can be read once: --loop needs a file\n",
		options->input);
	return REPLAY_BAD_USAGE;
}

/* The order in which events fall due in this capture; those never due are left out. */
static size_t
find_order(const struct replay_options *options, struct replay_schedule *schedule,
	size_t order[])
{
	struct replay_message ignored; /* the replay itself will tell it */
	struct replay_source *source;
	struct replay_packet packet;
	uint64_t n_packets = 0;
	uint64_t last_ns = 0;
	size_t n = 0;

	if (replay_source_open(options->input, options->n_loops, &source, &ignored) != 0)
		return 0;
	while (replay_schedule_pending(schedule) > 0 &&
		replay_source_next(source, &packet, &ignored) == 1) {
		size_t event;

		while ((event = replay_schedule_next(schedule, n_packets, last_ns,
				packet.since_ns)) != REPLAY_NO_EVENT)
			order[n++] = event;
		n_packets++;
		last_ns = packet.since_ns;
	}
	replay_source_close(source);
	return n;
}

/*
 * Events of both kinds follow each other as the capture has it. A file is read for that
 * beforehand; standard input cannot be, and tells a mistake when it comes to it.
 */
static enum replay_status
rehearse(const struct replay_options *options, const struct replay_orders *orders)
{
	const struct replay_events *events = &orders->events;
	struct replay_schedule schedule = {0};
	size_t *order;
	int ret = -ENOMEM;

	if (!events->is_mixed || !is_file(options->input))
		return REPLAY_DONE;

	order = calloc(events->n_items + 1, sizeof(*order));
	if (order != NULL && replay_schedule_init(events, &schedule) == 0) {
		const size_t n = find_order(options, &schedule, order);

		ret = replay_events_rehearse(events, order, n, &orders->model, stderr);
	}
	replay_schedule_fini(&schedule);
	free(order);
	if (ret == -EINVAL)
		return REPLAY_BAD_USAGE;
	if (ret != 0)
		(void)fprintf(stderr,
			"shunt-replay: there is not enough memory for the events\n");
	return ret != 0 ? REPLAY_FAILED : REPLAY_DONE;
}

enum replay_status
replay_orders_read(const struct replay_options *options, struct replay_orders *out)
{
	enum replay_status status;

	*out = (struct replay_orders){0};
	cfg_model_init(&out->model);

	/* Each tells stderr what is wrong with it. */
	if (cfg_read_file(options->config, stderr, &out->model) != 0)
		return REPLAY_BAD_USAGE;
	if (options->events != NULL &&
		replay_events_read(options->events, &out->model, stderr, &out->events) != 0)
		return REPLAY_BAD_USAGE;
	if (options->expect != NULL &&
		replay_expect_read(options->expect, stderr, &out->expect) != 0)
		return REPLAY_BAD_USAGE;

	status = check_port(options, out);
	if (status == REPLAY_DONE)
		status = check_outputs(options, &out->events);
	if (status == REPLAY_DONE)
		status = check_loop(options);
	if (status == REPLAY_DONE)
		status = rehearse(options, out);
	return status;
}

void
replay_orders_fini(struct replay_orders *orders)
{
	replay_expect_free(orders->expect);
	replay_events_free(&orders->events);
	cfg_model_fini(&orders->model);
}
