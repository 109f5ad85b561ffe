/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_picking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_index.h"
#include "lb_picker.h"

/* A service's table as the data plane would build it; backends are places in the service. */
struct picking {
	const struct lb_picker *picker; /* NULL: there is nobody to pick */
	void *mem;
};

static int
fill(const struct cfg_service *service, uint64_t hash_seed,
	const struct lb_picker_backend *backends, struct picking *out)
{
	const enum lb_algorithm algorithm = (enum lb_algorithm)service->algorithm;
	const size_t n_bytes = lb_picker_bytes(algorithm, service->n_slots);
	const size_t n_lines = (n_bytes + LB_CACHE_LINE - 1) / LB_CACHE_LINE;
	struct picking picking = {.picker = NULL};
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

static int
init_picking(const struct cfg_service *service, uint64_t hash_seed, struct picking *out)
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

static void
fini_picking(struct picking *picking)
{
	free(picking->mem);
	*picking = (struct picking){.picker = NULL};
}

/* For each backend of next its id now, or DP_NONE. NULL: no memory. */
static uint32_t *
match_backends(const struct cfg_service *now, const struct ctl_view_service *now_view,
	const struct cfg_service *next)
{
	uint32_t *ids = calloc(next->n_backends + 1, sizeof(*ids));
	struct ctl_index index;

	if (ids == NULL)
		return NULL;
	if (ctl_index_backends(now, &index) != 0) {
		free(ids);
		return NULL;
	}
	for (size_t i = 0; i < next->n_backends; i++) {
		const size_t place = ctl_index_find(&index, next->backends[i].name);

		ids[i] = place == CTL_INDEX_NONE ? DP_NONE : now_view->ids[place];
	}
	ctl_index_fini(&index);
	return ids;
}

/* ids: of next's backends as they are now. */
static uint32_t
count_moved(const struct dp_table *now, const struct lb_picker *next, const uint32_t *ids)
{
	const uint32_t n_slots = lb_picker_slots(next);
	/* Rounded down: over all slots it loses less than half a step, so that the middle of
	 * a slot stays in it. */
	const uint64_t step = UINT64_MAX / n_slots;
	uint32_t n_moved = 0;

	for (uint32_t slot = 0; slot < n_slots; slot++) {
		uint32_t before;
		uint32_t slot_before;

		n_moved += !dp_table_pick(now, slot * step + step / 2, &slot_before, &before) ||
			   ids[lb_picker_backend(next, slot)] != before;
	}
	return n_moved;
}

int
ctl_picking_count_moved(const struct cfg_service *now, const struct ctl_view_service *now_view,
	const struct cfg_service *next, uint64_t next_seed, uint32_t *out)
{
	struct picking after;
	uint32_t slot;
	uint32_t id;
	uint32_t *ids;
	int ret = init_picking(next, next_seed, &after);

	if (ret != 0)
		return ret;
	ids = match_backends(now, now_view, next);
	if (ids == NULL)
		ret = -ENOMEM;
	else if (after.picker != NULL)
		*out = count_moved(now_view->table, after.picker, ids);
	else /* to nobody, from somebody or nobody */
		*out = dp_table_pick(now_view->table, 0, &slot, &id) ? next->n_slots : 0;
	free(ids);
	fini_picking(&after);
	return ret;
}
