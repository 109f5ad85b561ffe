/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_events.h"

#include <errno.h>
#include <stdlib.h>

#include "replay_event_decode.h"

static void
free_event(struct replay_event *event)
{
	free(event->title);
	free(event->service);
	cfg_backend_fini(&event->backend);
	free(event->reload_path);
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

/* Moves the events out of the drafts. */
static int
take_events(struct replay_event_reader *reader, struct replay_events *out)
{
	struct replay_events events = {
		.items = calloc(reader->n_drafts + 1, sizeof(*events.items)),
		.file = cfg_keep_text(reader->path, &reader->errors),
		.is_mixed = reader->is_mixed,
	};

	if (events.items == NULL || events.file == NULL) {
		if (events.items == NULL)
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
		replay_event_rehearse_drafts(reader);
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
	struct cfg_node *root;
	int ret;

	ret = cfg_node_read_file(&reader.errors, &root);
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
