/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_bounded.h"

#include <errno.h>

#include "lb_limits.h"

/** All that a fill works on. */
struct fill {
	const struct lb_ring *ring;
	uint32_t *rooms; /* slots that a backend may still get */
	uint32_t *links; /* of a point of a full backend: a later one, all between being full */
};

static uint64_t
sum_weights(const struct lb_bounded *bounded)
{
	uint64_t sum = 0;

	for (size_t b = 0; b < bounded->n; b++)
		sum += bounded->backends[b].weight;
	return sum;
}

/** Slots times weight is below 2^40, times percent below 2^51. */
static uint32_t
room_of(uint32_t weight, uint64_t weight_sum, uint32_t excess_pct, uint32_t n_slots)
{
	const uint64_t share = (uint64_t)n_slots * weight * (100 + excess_pct);

	return (uint32_t)((share + 100 * weight_sum - 1) / (100 * weight_sum));
}

uint32_t
lb_bounded_room(const struct lb_bounded *bounded, size_t b, uint32_t n_slots)
{
	return room_of(bounded->backends[b].weight, sum_weights(bounded), bounded->excess_pct,
		n_slots);
}

static uint32_t
room_at(const struct fill *f, size_t point)
{
	return f->rooms[f->ring->points[point].backend];
}

/**
 * The first point from p on whose backend has room; there is one, as the rooms add up to
 * n_slots and more. All points passed are linked to it, so that none is passed often.
 */
static size_t
find_room(const struct fill *f, size_t p)
{
	size_t found = p;

	while (room_at(f, found) == 0)
		found = f->links[found];
	while (p != found) {
		const size_t next = f->links[p];

		f->links[p] = (uint32_t)found;
		p = next;
	}
	return found;
}

static uint32_t
common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		const uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static uint32_t
step_of(uint32_t n_slots)
{
	uint32_t step = (uint32_t)((uint64_t)n_slots * 618 / 1000);

	while (common_divisor(n_slots, step) != 1)
		step++;
	return step;
}

int
lb_bounded_fill(const struct lb_bounded *bounded, uint32_t n_slots, uint16_t *slots)
{
	const struct fill f = {bounded->ring, bounded->rooms, bounded->links};
	const uint64_t weight_sum = sum_weights(bounded);
	const size_t n_points = f.ring->n_points;
	uint64_t whole, rest;
	uint32_t slot = 0, step;

	if (bounded->excess_pct > LB_BOUNDED_EXCESS_PCT_MAX)
		return -EINVAL;
	if (n_slots < LB_SLOTS_MIN || n_slots > LB_SLOTS_MAX)
		return -EINVAL;

	for (size_t b = 0; b < bounded->n; b++)
		f.rooms[b] = room_of(bounded->backends[b].weight, weight_sum,
			bounded->excess_pct, n_slots);
	for (size_t p = 0; p < n_points; p++)
		f.links[p] = (uint32_t)(p + 1 < n_points ? p + 1 : 0);

	/* 2^64 = whole * n_slots + rest, for any n_slots. */
	rest = (UINT64_MAX % n_slots + 1) % n_slots;
	whole = UINT64_MAX / n_slots + (rest == 0);
	step = step_of(n_slots);
	for (uint32_t i = 0; i < n_slots; i++) {
		const uint64_t at = slot * whole + slot * rest / n_slots;
		const struct lb_ring_point *point =
			&f.ring->points[find_room(&f, lb_ring_find(f.ring, at))];

		f.rooms[point->backend]--;
		slots[slot] = (uint16_t)point->index;
		slot = (slot + step) % n_slots;
	}
	return 0;
}
