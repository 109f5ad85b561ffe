/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay_event_decode.h"

/* When a draft is due, and its place in the file, which decides ties. */
struct due {
	uint64_t when;
	size_t index;
};

static void
free_event(struct replay_event *event)
{
	free(event->title);
	free(event->service);
	free(event->backend.name);
	if (event->reload != NULL)
		cfg_model_fini(event->reload);
	free(event->reload);
}

void
replay_events_free(struct replay_events *events)
{
	for (size_t i = 0; i < events->n_items; i++)
		free_event(&events->items[i]);
	free(events->items);
	free(events->file);
	*events = (struct replay_events){0};
}

static void
free_drafts(struct replay_event_reader *reader)
{
	for (size_t i = 0; i < reader->n_drafts; i++)
		free_event(&reader->drafts[i].event);
	free(reader->drafts);
}

static int
compare_due(const void *a, const void *b)
{
	const struct due *x = a;
	const struct due *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* The order they are due in, where all of them are of one kind; otherwise the file's. */
static void
sort_drafts(const struct replay_event_reader *reader, struct due *order)
{
	bool is_sortable = true;

	for (size_t i = 0; i < reader->n_drafts; i++) {
		const struct replay_event *event = &reader->drafts[i].event;

		if (!reader->drafts[i].has_time ||
			event->is_by_packets != reader->drafts[0].event.is_by_packets)
			is_sortable = false;
		order[i].index = i;
		order[i].when = event->is_by_packets ? event->after_packets : event->at_ns;
	}
	if (is_sortable)
		qsort(order, reader->n_drafts, sizeof(*order), compare_due);
}

/* Errors are counted here: replay_event_apply() writes them to the same stream. */
static void
rehearse_event(struct replay_event_reader *reader, const struct replay_event *event,
	struct cfg_model *model)
{
	struct cfg_errors *errors = &reader->errors;
	const int ret = replay_event_apply(event, errors->file, model, errors->to);
	struct cfg_service *service;

	if (ret == 0)
		return;
	errors->n_errors++;
	errors->no_memory |= ret == -ENOMEM;
	if (event->kind != REPLAY_ADD)
		return;

	/* It goes on as was meant, so that later events about it are no errors as well. */
	service = cfg_find_service(model, event->service, strlen(event->service));
	if (service != NULL && cfg_add_backend(service, &event->backend) == -ENOMEM)
		cfg_error_memory(errors);
}

static int
rehearse(struct replay_event_reader *reader)
{
	struct due *order = calloc(reader->n_drafts + 1, sizeof(*order));
	struct cfg_model model;
	int ret = -ENOMEM;

	if (order == NULL)
		goto tell_memory;
	ret = cfg_model_copy(reader->model, &model);
	if (ret != 0)
		goto tell_memory;

	sort_drafts(reader, order);
	for (size_t i = 0; i < reader->n_drafts; i++) {
		const struct replay_event_draft *draft = &reader->drafts[order[i].index];

		if (draft->is_blind)
			break;
		if (draft->is_whole)
			rehearse_event(reader, &draft->event, &model);
	}
	cfg_model_fini(&model);
	free(order);
	return 0;

tell_memory:
	cfg_error_memory(&reader->errors);
	free(order);
	return ret;
}

/* Moves the events out of the drafts. */
static int
take_events(struct replay_event_reader *reader, struct replay_events *out)
{
	struct replay_events events = {
		.items = calloc(reader->n_drafts + 1, sizeof(*events.items)),
		.file = strdup(reader->path),
	};

	if (events.items == NULL || events.file == NULL) {
		cfg_error_memory(&reader->errors);
		replay_events_free(&events);
		return -ENOMEM;
	}
	for (size_t i = 0; i < reader->n_drafts; i++)
		events.items[i] = reader->drafts[i].event;
	events.n_items = reader->n_drafts;
	reader->n_drafts = 0;
	*out = events;
	return 0;
}

static int
read_events(struct replay_event_reader *reader, const struct cfg_node *root,
	struct replay_events *out)
{
	int ret = replay_event_decode(reader, root);

	if (ret == 0)
		ret = rehearse(reader);
	if (ret == 0 && reader->errors.n_errors != 0)
		ret = reader->errors.no_memory ? -ENOMEM : -EINVAL;
	if (ret == 0)
		ret = take_events(reader, out);
	free_drafts(reader);
	return ret;
}

int
replay_events_read(const char *path, const struct cfg_model *model, FILE *messages,
	struct replay_events *out)
{
	struct replay_event_reader reader = {
		.model = model,
		.path = path,
		.is_reload_on = true,
		.errors = {.to = messages, .file = path},
	};
	FILE *stream = fopen(path, "re");
	struct cfg_node *root;
	int ret;

	if (stream == NULL) {
		ret = -errno;
		cfg_error(&reader.errors, (struct cfg_pos){0}, "it cannot be opened: %s",
			strerror(-ret));
		return ret;
	}
	ret = cfg_node_read(stream, &reader.errors, &root);
	(void)fclose(stream); /* only read from: nothing is lost */
	if (ret != 0)
		return ret;

	ret = read_events(&reader, root, out);
	cfg_node_free(root);
	return ret;
}

int
replay_events_parse(const char *text, size_t n_bytes, const char *name,
	const struct cfg_model *model, FILE *messages, struct replay_events *out)
{
	struct replay_event_reader reader = {
		.model = model,
		.path = name,
		.errors = {.to = messages, .file = name},
	};
	struct cfg_node *root;
	int ret;

	ret = cfg_node_parse(text, n_bytes, &reader.errors, &root);
	if (ret != 0)
		return ret;

	ret = read_events(&reader, root, out);
	cfg_node_free(root);
	return ret;
}
