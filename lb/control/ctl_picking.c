/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_picking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_index.h"

static int
fill(const struct cfg_service *service, uint64_t hash_seed,
	const struct lb_picker_backend *backends, struct ctl_picking *out)
{
	const enum lb_algorithm algorithm = (enum lb_algorithm)service->algorithm;
	const size_t n_bytes = lb_picker_bytes(algorithm, service->n_slots);
	const size_t n_lines = (n_bytes + LB_CACHE_LINE - 1) / LB_CACHE_LINE;
	struct ctl_picking picking = {.picker = NULL};
	int ret;

	if (n_bytes == 0)
		return -EINVAL;
	picking.mem = aligned_alloc(LB_CACHE_LINE, n_lines * LB_CACHE_LINE);
	if (picking.mem == NULL)
		return -ENOMEM;
	ret = lb_picker_build(picking.mem, algorithm, service->n_slots, hash_seed, backends,
		service->n_backends, &picking.picker);
	if (ret != 0 && ret != -ENOENT) {
		free(picking.mem);
		return ret;
	}
	*out = picking;
	return 0;
}

int
ctl_picking_init(const struct cfg_service *service, uint64_t hash_seed, struct ctl_picking *out)
{
	struct lb_picker_backend *backends = calloc(service->n_backends + 1, sizeof(*backends));
	int ret;

	if (backends == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *from = &service->backends[i];

		backends[i].name = from->name;
		backends[i].name_bytes = (uint32_t)strlen(from->name);
		backends[i].weight = from->state == CFG_UP ? from->weight : 0;
	}
	ret = fill(service, hash_seed, backends, out);
	free(backends);
	return ret;
}

void
ctl_picking_fini(struct ctl_picking *picking)
{
	free(picking->mem);
	*picking = (struct ctl_picking){.picker = NULL};
}

/* For each backend of next its place in now, or CTL_INDEX_NONE. NULL: no memory. */
static size_t *
match_backends(const struct cfg_service *now, const struct cfg_service *next)
{
	size_t *places = calloc(next->n_backends + 1, sizeof(*places));
	struct ctl_index index;

	if (places == NULL)
		return NULL;
	if (ctl_index_backends(now, &index) != 0) {
		free(places);
		return NULL;
	}
	for (size_t i = 0; i < next->n_backends; i++)
		places[i] = ctl_index_find(&index, next->backends[i].name);
	ctl_index_fini(&index);
	return places;
}

static uint32_t
count_moved(const struct lb_picker *now, const struct lb_picker *next, const size_t *places)
{
	const uint32_t n_slots = lb_picker_slots(next);
	/* Rounded down: over all slots it loses less than half a step, so that the middle of
	 * a slot stays in it. */
	const uint64_t step = UINT64_MAX / n_slots;
	uint32_t n_moved = 0;

	for (uint32_t slot = 0; slot < n_slots; slot++) {
		const uint64_t pick = slot * step + step / 2;
		const uint32_t before = lb_picker_backend(now, lb_picker_slot(now, pick));

		n_moved += places[lb_picker_backend(next, slot)] != before;
	}
	return n_moved;
}

int
ctl_picking_count_moved(const struct cfg_service *now, uint64_t now_seed,
	const struct cfg_service *next, uint64_t next_seed, uint32_t *out)
{
	struct ctl_picking before;
	struct ctl_picking after;
	size_t *places;
	int ret = ctl_picking_init(now, now_seed, &before);

	if (ret != 0)
		return ret;
	ret = ctl_picking_init(next, next_seed, &after);
	if (ret != 0)
		goto fini_before;
	places = match_backends(now, next);
	if (places == NULL)
		ret = -ENOMEM;
	else if (before.picker == NULL || after.picker == NULL)
		*out = before.picker == after.picker ? 0 : next->n_slots;
	else
		*out = count_moved(before.picker, after.picker, places);
	free(places);
	ctl_picking_fini(&after);
fini_before:
	ctl_picking_fini(&before);
	return ret;
}
