/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>

#include "failing_malloc.h"
#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_ring.h"
#include "xrand.h"

static void
test_points_follow_weight(void **state)
{
	static const struct {
		const char *what;
		uint32_t weight, n_points;
	} rows[] = {
		{"the least has 1.6, rounded", 1, 2},
		{"3.2 is rounded down", 2, 3},
		{"4.8 is rounded up", 3, 5},
		{"half", 50, 80},
		{"the usual weight", 100, 160},
		{"the largest weight", 65535, 104856},
		{"never none", 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_ring_points(rows[i].weight) == rows[i].n_points, "%s: %u",
			rows[i].what, lb_ring_points(rows[i].weight));
}

static void
test_a_hash_belongs_to_the_first_point_at_or_after_it(void **state)
{
	static const struct {
		const char *what;
		uint64_t hash;
		uint32_t owner;
	} rows[] = {
		{"before the first point", 0, 5},
		{"at the first point", 10, 5},
		{"just after a point", 11, 6},
		{"at the middle point", 20, 6},
		{"at the last point", UINT64_MAX - 1, 7},
		{"after the last point", UINT64_MAX, 5},
	};
	struct lb_ring *ring = malloc(sizeof(*ring) + 3 * sizeof(ring->points[0]));

	(void)state;
	ring->n_points = 3;
	ring->points[0] = (struct lb_ring_point){.at = 10, .index = 5};
	ring->points[1] = (struct lb_ring_point){.at = 20, .index = 6};
	ring->points[2] = (struct lb_ring_point){.at = UINT64_MAX - 1, .index = 7};
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_ring_owner(ring, rows[i].hash) == rows[i].owner, "%s: %u",
			rows[i].what, lb_ring_owner(ring, rows[i].hash));
	free(ring);
}

static struct lb_ring *
make_ring(size_t n, uint32_t weight_max, uint64_t *seed)
{
	struct lb_ring_backend *backends = malloc(n * sizeof(*backends));
	struct lb_ring *ring;

	for (size_t b = 0; b < n; b++) {
		backends[b] = (struct lb_ring_backend){
			.h_1 = xrand(seed),
			.weight = 1 + xrand_below(seed, weight_max),
			.index = (uint32_t)(n - b),
		};
	}
	EXPECT(lb_ring_create(backends, n, &ring) == 0, "create");
	free(backends);
	return ring;
}

static void
test_points_are_sorted_hashes_of_their_number(void **state)
{
	static const struct lb_ring_backend backends[] = {{111, 100, 4}, {222, 3000, 8}};
	size_t n_found = 0;
	struct lb_ring *ring;

	(void)state;
	EXPECT(lb_ring_create(backends, 2, &ring) == 0, "create");
	EXPECT(ring->n_points == 160 + 4800, "%zu points", ring->n_points);
	for (size_t i = 1; i < ring->n_points; i++)
		EXPECT(ring->points[i - 1].at < ring->points[i].at, "point %zu", i);
	for (uint32_t k = 0; k < 4800; k++) {
		const uint8_t bytes[4] = {(uint8_t)k, (uint8_t)(k >> 8), 0, 0};
		const uint64_t at = lb_hash_bytes(bytes, sizeof(bytes), 222);

		for (size_t i = 0; i < ring->n_points; i++)
			n_found += ring->points[i].at == at && ring->points[i].index == 8;
		EXPECT(lb_ring_owner(ring, at) == 8, "point %u is its own", k);
	}
	EXPECT(n_found == 4800, "%zu of the second's points", n_found);
	lb_ring_destroy(ring);
}

static void
test_of_equal_points_the_canonically_first_wins(void **state)
{
	static const struct lb_ring_backend backends[] = {{9, 100, 3}, {9, 100, 2},
		{9, 100, 1}};
	uint16_t slots[251];
	struct lb_ring *ring;

	(void)state;
	EXPECT(lb_ring_create(backends, 3, &ring) == 0, "create");
	for (size_t i = 0; i < ring->n_points; i++)
		EXPECT(ring->points[i].backend == i % 3, "point %zu", i);
	lb_ring_fill(ring, 251, slots);
	for (size_t i = 0; i < 251; i++)
		EXPECT(slots[i] == 3, "slot %zu", i);
	lb_ring_destroy(ring);
}

static void
test_slots_are_fixed_points_of_the_ring(void **state)
{
	static const uint32_t sizes[] = {7, 8, 251, 4096, 65537, 100000};
	uint64_t seed = 21;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(sizes); i++) {
		const uint32_t n_slots = sizes[i];
		struct lb_ring *ring = make_ring(1 + xrand_below(&seed, 60), 130, &seed);
		uint16_t *slots = malloc(n_slots * sizeof(*slots));

		lb_ring_fill(ring, n_slots, slots);
		for (uint32_t s = 0; s < n_slots; s++) {
			const uint64_t at =
				(uint64_t)((__extension__(unsigned __int128) s << 64) /
					   n_slots);

			EXPECT(slots[s] == lb_ring_owner(ring, at), "slot %u of %u", s,
				n_slots);
		}
		free(slots);
		lb_ring_destroy(ring);
	}
}

static void
test_a_point_between_two_slots_changes_the_second(void **state)
{
	/* Of 8 slots, slot 1 stands at 2^61 exactly. */
	static const struct {
		const char *what;
		uint64_t at;
		uint16_t slot_1;
	} rows[] = {
		{"just before slot 1", (UINT64_C(1) << 61) - 1, 2},
		{"at slot 1", UINT64_C(1) << 61, 1},
		{"just after slot 1", (UINT64_C(1) << 61) + 1, 1},
	};
	struct lb_ring *ring = malloc(sizeof(*ring) + 2 * sizeof(ring->points[0]));
	uint16_t slots[8];

	(void)state;
	ring->n_points = 2;
	ring->points[1] = (struct lb_ring_point){.at = UINT64_MAX, .index = 2};
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		ring->points[0] = (struct lb_ring_point){.at = rows[i].at, .index = 1};
		lb_ring_fill(ring, 8, slots);
		EXPECT(slots[0] == 1 && slots[1] == rows[i].slot_1 && slots[2] == 2, "%s",
			rows[i].what);
	}
	free(ring);
}

static void
test_too_many_points_are_refused(void **state)
{
	/* 160 * 104856 = 16776960 points are just under 2^24 = 16777216. */
	struct lb_ring_backend backends[161];
	struct lb_ring *ring = NULL;

	(void)state;
	for (size_t b = 0; b < 161; b++)
		backends[b] = (struct lb_ring_backend){.h_1 = b, .weight = 65535};
	backends[160].weight = 161; /* 258 points: two too many */
	EXPECT(lb_ring_create(backends, 161, &ring) == -E2BIG, "2^24 + 2 points");
	EXPECT(ring == NULL, "untouched");

	/* The first allocation is only reached when the number of points is accepted. */
	backends[160].weight = 160; /* 256 points */
	failing_malloc_at = 1;
	EXPECT(lb_ring_create(backends, 161, &ring) == -ENOMEM, "2^24 points");
	EXPECT(failing_malloc_at == 0, "an allocation was tried");
}

static void
test_each_allocation_may_fail(void **state)
{
	static const struct lb_ring_backend backend = {1, 100, 0};
	struct lb_ring *ring = NULL;

	(void)state;
	for (int i = 1; i <= 2; i++) {
		failing_malloc_at = i;
		EXPECT(lb_ring_create(&backend, 1, &ring) == -ENOMEM, "allocation %d", i);
		EXPECT(ring == NULL, "untouched");
	}
	failing_malloc_at = 3;
	EXPECT(lb_ring_create(&backend, 1, &ring) == 0, "there are two");
	failing_malloc_at = 0;
	lb_ring_destroy(ring);
	lb_ring_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_follow_weight),
		cmocka_unit_test(test_a_hash_belongs_to_the_first_point_at_or_after_it),
		cmocka_unit_test(test_points_are_sorted_hashes_of_their_number),
		cmocka_unit_test(test_of_equal_points_the_canonically_first_wins),
		cmocka_unit_test(test_slots_are_fixed_points_of_the_ring),
		cmocka_unit_test(test_a_point_between_two_slots_changes_the_second),
		cmocka_unit_test(test_too_many_points_are_refused),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
