/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_bounded.h"
#include "lb_compiler.h"
#include "lb_limits.h"
#include "xrand.h"

#define N_MAX 60u

/** A ring with its scratch space; close_bounded() it. */
struct subject {
	struct lb_ring_backend backends[N_MAX];
	struct lb_ring *ring;
	struct lb_bounded bounded;
};

static void
open_bounded(struct subject *s, size_t n, uint32_t weight_max, uint32_t excess_pct,
	uint64_t *seed)
{
	for (size_t b = 0; b < n; b++) {
		s->backends[b] = (struct lb_ring_backend){
			.h_1 = xrand(seed),
			.weight = 1 + xrand_below(seed, weight_max),
			.index = (uint32_t)(1000 - b),
		};
	}
	EXPECT(lb_ring_create(s->backends, n, &s->ring) == 0, "create");
	s->bounded = (struct lb_bounded){
		.ring = s->ring,
		.backends = s->backends,
		.n = n,
		.excess_pct = excess_pct,
		.rooms = malloc(n * sizeof(uint32_t)),
		.links = malloc(s->ring->n_points * sizeof(uint32_t)),
	};
}

static void
close_bounded(struct subject *s)
{
	free(s->bounded.links);
	free(s->bounded.rooms);
	lb_ring_destroy(s->ring);
}

static void
test_rooms(void **state)
{
	static const struct {
		const char *what;
		uint32_t n_slots, excess_pct, weights[3], room;
	} rows[] = {
		{"a third, rounded up", 100, 0, {1, 1, 1}, 34},
		{"a third and a quarter of it", 100, 25, {1, 1, 1}, 42},
		{"a share that is whole stays so", 99, 0, {1, 1, 1}, 33},
		{"in proportion to the weight", 100, 10, {3, 1, 1}, 66},
		{"light", 100, 0, {1, 65535, 65535}, 1},
		{"the largest of all", 16777213, 1000, {65535, 1, 1}, 184543712},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_ring_backend backends[] = {{0, rows[i].weights[0], 0},
			{0, rows[i].weights[1], 0}, {0, rows[i].weights[2], 0}};
		const struct lb_bounded bounded = {.backends = backends,
			.n = 3,
			.excess_pct = rows[i].excess_pct};

		EXPECT(lb_bounded_room(&bounded, 0, rows[i].n_slots) == rows[i].room, "%s: %u",
			rows[i].what, lb_bounded_room(&bounded, 0, rows[i].n_slots));
	}
}

static void
test_who_is_full_sends_on(void **state)
{
	/*
	 * Slot 0 alone is B's. Slots come as 0 5 2 7 4 1 6 3: after 5, 2, 7 and 4 A has its
	 * four, so that 1, 6 and 3 go on to B.
	 */
	static const uint16_t want[8] = {66, 66, 65, 66, 65, 65, 66, 65};
	static const struct lb_ring_backend backends[] = {{0, 1, 65}, {0, 1, 66}};
	struct lb_ring *ring = malloc(sizeof(*ring) + 2 * sizeof(ring->points[0]));
	uint32_t rooms[2], links[2];
	uint16_t slots[8];
	const struct lb_bounded bounded = {ring, backends, 2, 0, rooms, links};

	(void)state;
	ring->n_points = 2;
	ring->points[0] = (struct lb_ring_point){.at = 0, .backend = 1, .index = 66};
	ring->points[1] = (struct lb_ring_point){.at = UINT64_MAX, .backend = 0, .index = 65};
	EXPECT(lb_bounded_fill(&bounded, 8, slots) == 0, "fill");
	assert_memory_equal(slots, want, sizeof(slots));
	free(ring);
}

static void
test_a_slot_stands_at_its_rounded_place(void **state)
{
	/* 6 * 2^64 / 7, rounded down. */
	const uint64_t at = 15811494920322472813u;
	static const struct lb_ring_backend backends[] = {{0, 1, 65}, {0, 1, 66}};
	struct lb_ring *ring = malloc(sizeof(*ring) + 2 * sizeof(ring->points[0]));
	uint32_t rooms[2], links[2];
	uint16_t slots[7];
	const struct lb_bounded bounded = {ring, backends, 2, 1000, rooms, links};

	(void)state;
	ring->n_points = 2;
	ring->points[0] = (struct lb_ring_point){.at = at, .backend = 0, .index = 65};
	ring->points[1] = (struct lb_ring_point){.at = UINT64_MAX, .backend = 1, .index = 66};
	EXPECT(lb_bounded_fill(&bounded, 7, slots) == 0, "fill");
	EXPECT(slots[6] == 65, "a point at the slot: %u", slots[6]);
	ring->points[0].at--;
	EXPECT(lb_bounded_fill(&bounded, 7, slots) == 0, "fill");
	EXPECT(slots[6] == 66, "a point just before it: %u", slots[6]);
	free(ring);
}

/** The definition, point by point. */
static void
plain_fill(const struct subject *s, uint32_t n_slots, uint16_t *slots)
{
	const struct lb_ring *ring = s->ring;
	uint32_t used[N_MAX] = {0};
	uint32_t step = (uint32_t)((uint64_t)n_slots * 618 / 1000);
	bool is_coprime = false;

	while (!is_coprime) {
		is_coprime = true;
		for (uint32_t d = 2; d <= step; d++)
			is_coprime = is_coprime && (n_slots % d != 0 || step % d != 0);
		step += !is_coprime;
	}
	for (uint32_t i = 0; i < n_slots; i++) {
		const uint32_t slot = (uint32_t)((uint64_t)i * step % n_slots);
		const uint64_t at =
			(uint64_t)((__extension__(unsigned __int128) slot << 64) / n_slots);
		size_t p = 0;

		while (p < ring->n_points && ring->points[p].at < at)
			p++;
		p = p < ring->n_points ? p : 0;
		while (used[ring->points[p].backend] ==
			lb_bounded_room(&s->bounded, ring->points[p].backend, n_slots))
			p = p + 1 < ring->n_points ? p + 1 : 0;
		used[ring->points[p].backend]++;
		slots[slot] = (uint16_t)ring->points[p].index;
	}
}

static void
test_random_rings_agree_with_the_definition(void **state)
{
	static const uint32_t sizes[] = {7, 8, 12, 251, 256, 999};
	static const uint32_t excesses[] = {0, 1, 25, 100, 1000};
	uint64_t seed = 61;

	(void)state;
	for (uint32_t i = 0; i < 240; i++) {
		const uint32_t n_slots = sizes[i % LB_N_ELEMENTS(sizes)];
		uint16_t *slots = malloc(n_slots * sizeof(*slots));
		uint16_t *plain = malloc(n_slots * sizeof(*plain));
		struct subject s;

		open_bounded(&s, 1 + xrand_below(&seed, 20), i % 2 == 0 ? 1 : 200,
			excesses[i % LB_N_ELEMENTS(excesses)], &seed);
		EXPECT(lb_bounded_fill(&s.bounded, n_slots, slots) == 0, "fill");
		plain_fill(&s, n_slots, plain);
		EXPECT(memcmp(slots, plain, n_slots * sizeof(*slots)) == 0,
			"%zu backends, %u slots, %u %%", s.bounded.n, n_slots,
			s.bounded.excess_pct);
		close_bounded(&s);
		free(plain);
		free(slots);
	}
}

static void
test_with_room_for_all_it_is_the_ring(void **state)
{
	static uint16_t slots[65537], ring_slots[65537];
	uint64_t seed = 62;
	struct subject s;

	(void)state;
	open_bounded(&s, N_MAX, 1, 1000, &seed);
	EXPECT(lb_bounded_fill(&s.bounded, 65537, slots) == 0, "fill");
	lb_ring_fill(s.ring, 65537, ring_slots);
	assert_memory_equal(slots, ring_slots, sizeof(slots));
	close_bounded(&s);
}

static void
test_limits(void **state)
{
	static const struct {
		const char *what;
		uint32_t excess_pct, n_slots;
	} rows[] = {
		{"too large an excess", LB_BOUNDED_EXCESS_PCT_MAX + 1, 7},
		{"too few slots", 25, LB_SLOTS_MIN - 1},
		{"too many slots", 25, LB_SLOTS_MAX + 1},
	};
	uint64_t seed = 63;
	uint16_t slot = 0xeeee;
	struct subject s;

	(void)state;
	open_bounded(&s, 3, 1, 0, &seed);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		s.bounded.excess_pct = rows[i].excess_pct;
		EXPECT(lb_bounded_fill(&s.bounded, rows[i].n_slots, &slot) == -EINVAL, "%s",
			rows[i].what);
		EXPECT(slot == 0xeeee, "untouched: %s", rows[i].what);
	}
	close_bounded(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rooms),
		cmocka_unit_test(test_who_is_full_sends_on),
		cmocka_unit_test(test_a_slot_stands_at_its_rounded_place),
		cmocka_unit_test(test_random_rings_agree_with_the_definition),
		cmocka_unit_test(test_with_room_for_all_it_is_the_ring),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
