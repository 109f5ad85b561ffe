/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay_event_decode.h"

/* When a draft is due, and its place in the file, which decides ties. */
struct due {
	uint64_t when;
	size_t index;
};

/* What is known of a name that was looked for in every model and every add. */
struct search {
	struct cfg_nearest nearest;
	bool is_found;
};

/* Errors are counted here: replay_event_apply() writes them to the same stream. */
static void
rehearse_event(const struct replay_event *event, struct cfg_model *model,
	struct cfg_errors *errors)
{
	const int ret = replay_event_apply(event, errors->file, model, errors->to);
	struct cfg_backend meant = event->backend;
	struct cfg_service *service;

	if (ret == 0)
		return;
	errors->n_errors++;
	errors->no_memory |= ret == -ENOMEM;
	if (event->kind != REPLAY_ADD)
		return;

	/*
	 * It goes on as was meant, so that later events about it are no errors as well; without
	 * weight, as a table that had no room for it has room for what follows.
	 */
	meant.weight = 0;
	service = cfg_find_service(model, event->service, strlen(event->service));
	if (service != NULL && cfg_add_backend(service, &meant) == -ENOMEM)
		cfg_error_memory(errors);
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

/* On the model; the drafts all have their times, of one kind. */
static int
rehearse_sorted(struct replay_event_reader *reader, struct cfg_model *model)
{
	struct due *order = calloc(reader->n_drafts + 1, sizeof(*order));

	if (order == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < reader->n_drafts; i++) {
		const struct replay_event *event = &reader->drafts[i].event;

		order[i].index = i;
		order[i].when = event->is_by_packets ? event->after_packets : event->at_ns;
	}
	qsort(order, reader->n_drafts, sizeof(*order), compare_due);
	for (size_t i = 0; i < reader->n_drafts; i++) {
		const struct replay_event_draft *draft = &reader->drafts[order[i].index];

		if (draft->is_blind)
			break;
		if (draft->is_whole)
			rehearse_event(&draft->event, model, &reader->errors);
	}
	free(order);
	return 0;
}

static void
offer_name(struct search *search, const char *name)
{
	if (strcmp(name, search->nearest.wanted) == 0)
		search->is_found = true;
	else if (!search->is_found)
		cfg_nearest_offer(&search->nearest, name);
}

/* The names of the services of a model, or those of the backends of one of them. */
static void
offer_model(struct search *search, const struct cfg_model *model, const char *service_name)
{
	const struct cfg_service *service;

	if (service_name == NULL) {
		for (size_t i = 0; i < model->n_services && !search->is_found; i++)
			offer_name(search, model->services[i].name);
		return;
	}
	service = cfg_find_service(model, service_name, strlen(service_name));
	for (size_t i = 0; service != NULL && i < service->n_backends && !search->is_found; i++)
		offer_name(search, service->backends[i].name);
}

/*
 * Look for a service, or for a backend of a service, in the model at the start, in those that
 * are reloaded, and among what is added, whatever the order.
 */
static struct search
search_name(const struct replay_event_reader *reader, const char *service_name,
	const char *wanted)
{
	struct search search = {.is_found = false};

	cfg_nearest_init(&search.nearest, wanted, strlen(wanted));
	offer_model(&search, reader->model, service_name);
	for (size_t i = 0; i < reader->n_drafts && !search.is_found; i++) {
		const struct replay_event *event = &reader->drafts[i].event;

		if (!reader->drafts[i].is_whole)
			continue;
		if (event->kind == REPLAY_RELOAD)
			offer_model(&search, event->reload, service_name);
		else if (event->kind == REPLAY_ADD && service_name != NULL &&
			 strcmp(event->service, service_name) == 0)
			offer_name(&search, event->backend.name);
	}
	return search;
}

/* Whether the names of an event are there at some time; errors is told otherwise. */
static void
check_names(struct replay_event_reader *reader, const struct replay_event *event)
{
	const bool has_backend = event->kind != REPLAY_ADD;
	struct search search = search_name(reader, NULL, event->service);
	const bool has_service = search.is_found;

	if (has_service && has_backend)
		search = search_name(reader, event->service, event->backend.name);
	if (!search.is_found)
		replay_event_tell_missing(event, has_service, "any", &search.nearest,
			&reader->errors);
}

static void
check_all_names(struct replay_event_reader *reader)
{
	/* A broken add or reload may be what brings a name. */
	for (size_t i = 0; i < reader->n_drafts; i++) {
		if (reader->drafts[i].is_blind)
			return;
	}
	for (size_t i = 0; i < reader->n_drafts; i++) {
		const struct replay_event_draft *draft = &reader->drafts[i];

		if (draft->is_whole && draft->event.kind != REPLAY_RELOAD)
			check_names(reader, &draft->event);
	}
}

void
replay_event_rehearse_drafts(struct replay_event_reader *reader)
{
	bool is_sortable = true;
	struct cfg_model model;

	for (size_t i = 0; i < reader->n_drafts; i++) {
		const struct replay_event_draft *draft = &reader->drafts[i];

		reader->is_mixed |=
			draft->event.is_by_packets != reader->drafts[0].event.is_by_packets;
		is_sortable &= draft->has_time;
	}
	if (reader->is_mixed || !is_sortable) {
		check_all_names(reader);
		return;
	}
	if (cfg_model_copy(reader->model, &model) != 0) {
		cfg_error_memory(&reader->errors);
		return;
	}
	if (rehearse_sorted(reader, &model) != 0)
		cfg_error_memory(&reader->errors);
	cfg_model_fini(&model);
}

int
replay_events_rehearse(const struct replay_events *events, const size_t order[], size_t n,
	const struct cfg_model *model, FILE *messages)
{
	struct cfg_errors errors = {.to = messages, .file = events->file};
	struct cfg_model copy;

	if (cfg_model_copy(model, &copy) != 0) {
		cfg_error_memory(&errors);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		rehearse_event(&events->items[order[i]], &copy, &errors);
	cfg_model_fini(&copy);
	if (errors.no_memory)
		return -ENOMEM;
	return errors.n_errors == 0 ? 0 : -EINVAL;
}
