/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_model.h"

struct counts {
	uint64_t packets;
	uint64_t bytes;
	uint64_t flows;
	/* Of a service: its table, as it last was. */
	const char *algorithm;
	uint32_t n_slots;
};

/* What each backend got in one phase, and how many slots it had. */
struct phase {
	char *title;
	uint64_t first_packet;
	uint64_t *packets; /* by backend id; n_ids of them */
	uint32_t *slots;
	size_t n_ids;
	bool has_packets;
};

struct replay_tally {
	const struct ctl_apply *apply;
	struct counts *services; /* by service number */
	size_t n_services;
	struct counts *backends; /* by id */
	size_t n_backends;
	struct phase *phases;
	size_t n_phases;

	/* Of the report. */
	struct replay_report_service *rows;
	struct replay_report_backend *backend_rows;
	uint64_t *phase_cells;
	struct replay_report_phase *heads;
};

int
replay_tally_create(const struct ctl_apply *apply, struct replay_tally **out)
{
	struct replay_tally *tally = calloc(1, sizeof(*tally));

	if (tally == NULL)
		return -ENOMEM;
	tally->apply = apply;
	*out = tally;
	return 0;
}

static void
free_phase(struct phase *phase)
{
	free(phase->title);
	free(phase->packets);
	free(phase->slots);
}

static void
free_report(struct replay_tally *tally)
{
	free(tally->rows);
	free(tally->backend_rows);
	free(tally->phase_cells);
	free(tally->heads);
}

void
replay_tally_destroy(struct replay_tally *tally)
{
	if (tally == NULL)
		return;
	for (size_t i = 0; i < tally->n_phases; i++)
		free_phase(&tally->phases[i]);
	free(tally->phases);
	free(tally->services);
	free(tally->backends);
	free_report(tally);
	free(tally);
}

/* At least n zeroed counts; what was counted stays. */
static int
grow_counts(struct counts **counts, size_t *n_counts, size_t n)
{
	struct counts *grown;

	if (n <= *n_counts)
		return 0;
	grown = realloc(*counts, n * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	memset(grown + *n_counts, 0, (n - *n_counts) * sizeof(*grown));
	*counts = grown;
	*n_counts = n;
	return 0;
}

static char *
join_titles(const char *first, const char *second)
{
	char *title;

	if (first == NULL)
		return strdup(second);
	if (asprintf(&title, "%s, %s", first, second) < 0)
		return NULL;
	return title;
}

static int
fill_phase(const struct replay_tally *tally, struct phase *phase, const char *before,
	const char *title, uint64_t first_packet)
{
	*phase = (struct phase){.n_ids = ctl_apply_n_backends(tally->apply)};
	phase->first_packet = first_packet;
	phase->title = join_titles(before, title);
	phase->packets = calloc(phase->n_ids + 1, sizeof(*phase->packets));
	phase->slots = calloc(phase->n_ids + 1, sizeof(*phase->slots));
	if (phase->title == NULL || phase->packets == NULL || phase->slots == NULL ||
		ctl_apply_count_slots(tally->apply, phase->slots, phase->n_ids) != 0) {
		free_phase(phase);
		return -ENOMEM;
	}
	return 0;
}

static void
note_tables(struct replay_tally *tally, const struct cfg_model *model)
{
	for (size_t i = 0; i < model->n_services; i++) {
		struct counts *service =
			&tally->services[ctl_apply_service(tally->apply, (uint32_t)i)];

		service->algorithm = cfg_algorithm_words[model->services[i].algorithm];
		service->n_slots = model->services[i].n_slots;
	}
}

int
replay_tally_phase(struct replay_tally *tally, const struct cfg_model *model, const char *title,
	uint64_t first_packet)
{
	struct phase *last = tally->n_phases > 0 ? &tally->phases[tally->n_phases - 1] : NULL;
	/* "start" alone stays: what was configured is worth a column even without packets. */
	const bool is_continued = last != NULL && tally->n_phases > 1 && !last->has_packets;
	struct phase *phases;
	struct phase phase;

	if (grow_counts(&tally->services, &tally->n_services,
		    ctl_apply_n_services(tally->apply)) != 0 ||
		grow_counts(&tally->backends, &tally->n_backends,
			ctl_apply_n_backends(tally->apply)) != 0)
		return -ENOMEM;
	phases = realloc(tally->phases, (tally->n_phases + 1) * sizeof(*phases));
	if (phases == NULL)
		return -ENOMEM;
	tally->phases = phases;
	if (fill_phase(tally, &phase, is_continued ? phases[tally->n_phases - 1].title : NULL,
		    title, first_packet) != 0)
		return -ENOMEM;

	note_tables(tally, model);
	if (is_continued)
		free_phase(&phases[--tally->n_phases]);
	phases[tally->n_phases++] = phase;
	return 0;
}

void
replay_tally_add(struct replay_tally *tally, const struct dp_decision *d)
{
	struct phase *phase = &tally->phases[tally->n_phases - 1];
	struct counts *service;
	struct counts *backend;

	phase->has_packets = true;
	if (d->backend == DP_NONE)
		return;
	service = &tally->services[ctl_apply_service(tally->apply, d->service)];
	backend = &tally->backends[d->backend];
	service->flows += d->is_new_flow;
	backend->flows += d->is_new_flow;
	if (d->verdict != LB_FORWARD)
		return;

	service->packets++;
	service->bytes += d->ip_bytes;
	backend->packets++;
	backend->bytes += d->ip_bytes;
	phase->packets[d->backend]++;
}

/* Rows for all names seen, in the order they were first seen; all as if removed. */
static int
make_rows(struct replay_tally *tally, struct replay_report *out)
{
	const size_t n_services = tally->n_services;
	const size_t n_backends = tally->n_backends;
	const size_t n_cells = n_backends * tally->n_phases;

	free_report(tally);
	tally->rows = calloc(n_services + 1, sizeof(*tally->rows));
	tally->backend_rows = calloc(n_backends + 1, sizeof(*tally->backend_rows));
	tally->phase_cells = calloc(2 * n_cells + 1, sizeof(*tally->phase_cells));
	tally->heads = calloc(tally->n_phases + 1, sizeof(*tally->heads));
	if (tally->rows == NULL || tally->backend_rows == NULL || tally->phase_cells == NULL ||
		tally->heads == NULL)
		return -ENOMEM;

	for (size_t i = 0; i < tally->n_phases; i++)
		tally->heads[i] = (struct replay_report_phase){
			.title = tally->phases[i].title,
			.first_packet = tally->phases[i].first_packet,
		};
	for (size_t i = 0; i < n_services; i++) {
		struct replay_report_service *row = &tally->rows[i];

		row->name = ctl_apply_service_name(tally->apply, (uint32_t)i);
		row->packets = tally->services[i].packets;
		row->bytes = tally->services[i].bytes;
		row->flows = tally->services[i].flows;
		row->algorithm = tally->services[i].algorithm;
		row->n_slots = tally->services[i].n_slots;
		row->is_removed = true;
	}
	out->services = tally->rows;
	out->n_services = n_services;
	out->phases = tally->heads;
	out->n_phases = tally->n_phases;
	return 0;
}

/* Ids are given out service by service only at first, so rows are gathered by service. */
static void
place_backend_rows(struct replay_tally *tally, size_t *row_of)
{
	size_t next = 0;

	for (size_t id = 0; id < tally->n_backends; id++)
		tally->rows[ctl_apply_backend(tally->apply, (uint32_t)id).service].n_backends++;
	for (size_t i = 0; i < tally->n_services; i++) {
		tally->rows[i].backends = &tally->backend_rows[next];
		next += tally->rows[i].n_backends;
		tally->rows[i].n_backends = 0;
	}
	for (size_t id = 0; id < tally->n_backends; id++) {
		const struct ctl_backend_name name =
			ctl_apply_backend(tally->apply, (uint32_t)id);
		struct replay_report_service *service = &tally->rows[name.service];

		struct replay_report_backend *row = &service->backends[service->n_backends++];

		row->name = name.name;
		row->state = "removed";
		row_of[id] = (size_t)(row - tally->backend_rows);
	}
}

static void
fill_backend_rows(struct replay_tally *tally, const size_t *row_of)
{
	const size_t n_phases = tally->n_phases;

	for (size_t id = 0; id < tally->n_backends; id++) {
		struct replay_report_backend *row = &tally->backend_rows[row_of[id]];

		row->packets = tally->backends[id].packets;
		row->bytes = tally->backends[id].bytes;
		row->flows = tally->backends[id].flows;
		row->phase_packets = &tally->phase_cells[2 * id * n_phases];
		row->phase_slots = row->phase_packets + n_phases;
		for (size_t p = 0; p < n_phases; p++) {
			if (id >= tally->phases[p].n_ids)
				continue; /* not known yet */
			row->phase_packets[p] = tally->phases[p].packets[id];
			row->phase_slots[p] = tally->phases[p].slots[id];
		}
		row->slots = n_phases > 0 ? row->phase_slots[n_phases - 1] : 0;
	}
}

static void
note_model(struct replay_tally *tally, const struct cfg_model *model, const size_t *row_of)
{
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];
		struct replay_report_service *row =
			&tally->rows[ctl_apply_service(tally->apply, (uint32_t)i)];

		row->is_removed = false;
		for (size_t k = 0; k < service->n_backends; k++)
			tally->backend_rows[row_of[ctl_apply_backend_id(tally->apply, i, k)]]
				.state = cfg_state_words[service->backends[k].state];
	}
}

int
replay_tally_report(struct replay_tally *tally, const struct cfg_model *model,
	struct replay_report *out)
{
	size_t *row_of = calloc(tally->n_backends + 1, sizeof(*row_of));
	int ret = -ENOMEM;

	if (row_of == NULL)
		return -ENOMEM;
	if (make_rows(tally, out) == 0) {
		place_backend_rows(tally, row_of);
		fill_backend_rows(tally, row_of);
		note_model(tally, model, row_of);
		for (size_t i = 0; i < tally->n_services; i++)
			out->flows += tally->services[i].flows;
		ret = 0;
	}
	free(row_of);
	return ret;
}
