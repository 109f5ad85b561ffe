/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_picking.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl_index.h"
#include "lb_overlay.h"

/* The backends of next as they are now. */
struct match {
	uint32_t *ids;   /* DP_NONE: it is new */
	uint8_t *shares; /* by health, where that is known */
};

static void
free_match(struct match *match)
{
	free(match->ids);
	free(match->shares);
}

static int
match_backends(const struct cfg_service *now, const struct ctl_view_service *now_view,
	const struct cfg_service *next, struct match *out)
{
	struct ctl_index index;
	int ret;

	out->ids = calloc(next->n_backends + 1, sizeof(*out->ids));
	out->shares = calloc(next->n_backends + 1, sizeof(*out->shares));
	if (out->ids == NULL || out->shares == NULL)
		return -ENOMEM;
	ret = ctl_index_backends(now, &index);
	if (ret != 0)
		return ret;
	for (size_t i = 0; i < next->n_backends; i++) {
		const size_t place = ctl_index_find(&index, next->backends[i].name);
		const bool is_known =
			place != CTL_INDEX_NONE && now->backends[place].state == CFG_UP;

		out->ids[i] = place == CTL_INDEX_NONE ? DP_NONE : now_view->ids[place];
		out->shares[i] = is_known ? now_view->shares[place] : LB_OVERLAY_WHOLE;
	}
	ctl_index_fini(&index);
	return 0;
}

/* Who its new flows would go to. */
static int
make_table(const struct cfg_service *service, uint64_t hash_seed, const struct match *match,
	struct dp_table **out)
{
	struct dp_table *configured;
	int ret = ctl_apply_configure(service, hash_seed, match->ids, &configured);

	if (ret != 0)
		return ret;
	ret = ctl_apply_overlay(service, match->shares, configured, out);
	dp_table_release(configured);
	return ret;
}

/* Whose a flow is; DP_NONE also where there is somebody new. */
static bool
pick(const struct dp_table *table, uint64_t flow, uint32_t *id)
{
	uint32_t slot;

	*id = DP_NONE;
	return dp_table_pick(table, flow, &slot, id);
}

static uint32_t
count_moved(const struct dp_table *now, const struct dp_table *next, uint32_t n_slots)
{
	/* Rounded down: over all slots it loses less than half a step, so that the middle of
	 * a slot stays in it. */
	const uint64_t step = UINT64_MAX / n_slots;
	uint32_t n_moved = 0;

	for (uint32_t slot = 0; slot < n_slots; slot++) {
		const uint64_t flow = slot * step + step / 2;
		uint32_t before;
		uint32_t after;
		const bool had = pick(now, flow, &before);
		const bool has = pick(next, flow, &after);

		n_moved += had != has || before != after;
	}
	return n_moved;
}

int
ctl_picking_count_moved(const struct cfg_service *now, const struct ctl_view_service *now_view,
	const struct cfg_service *next, uint64_t next_seed, uint32_t *out)
{
	struct match match = {.ids = NULL};
	struct dp_table *table;
	int ret = match_backends(now, now_view, next, &match);

	if (ret == 0)
		ret = make_table(next, next_seed, &match, &table);
	if (ret == 0) {
		*out = count_moved(now_view->table, table, next->n_slots);
		dp_table_release(table);
	}
	free_match(&match);
	return ret;
}
