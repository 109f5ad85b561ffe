/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "failing_malloc.h"
#include "lb_compiler.h"
#include "lb_limits.h"
#include "lb_stable.h"
#include "plain_stable.h"
#include "rounds.h"
#include "xrand.h"

#define HALF (UINT64_C(1) << 63)

static void
test_tables_worked_out_by_hand(void **state)
{
	/*
	 * M = 7: inv is 0 1 4 5 2 3 6, E is 16 34 56 84 121 177 289. Backend 0 has A = 3,
	 * B = 1, C = 0, and so 3 4 0 1 5 6 2; backend 1 has A = 0, B = 2, C = 1, and so
	 * 2 1 3 4 6 5 0, half a step, 8, later. Indices are 5 and 9.
	 */
	static const struct {
		const char *what;
		uint32_t slack, weight;
		uint64_t dither;
		uint16_t want[7];
	} rows[] = {
		/* 3 2 4 1 0 (3 1 4) 5 6: the half that is over goes to the first */
		{"turns, 4 slots and 3", 0, 1, 0, {5, 9, 9, 5, 5, 5, 9}},
		/* at 8 17 [24] 28 42 [42], a tie for slot 1, 60.5, and 88.5 takes slot 6 */
		{"twice the weight, room for all", 1000, 2, 0, {5, 5, 9, 5, 5, 5, 5}},
		/* 4.67 slots become 5, so 6 is left for backend 1, at 129 */
		{"twice the weight, no slack", 0, 2, 0, {5, 5, 9, 5, 5, 5, 9}},
		/* 4.67 * 1.001 is 4 slots, and 2.33 is 2: the larger remainder has one more */
		{"too little slack without dither", 1, 2, 0, {5, 5, 9, 5, 5, 5, 9}},
		/* with a half added 4.67 is 5 in any case, and the other has 2 */
		{"dither that makes it 5", 1, 2, HALF, {5, 5, 9, 5, 5, 5, 9}},
		/* 0.995 added, both have one more: 5 and 3, as at 1000 until 0 is full */
		{"dither for both", 1, 1, UINT64_MAX, {5, 9, 9, 5, 5, 5, 9}},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_stable_backend backends[] = {
			{0, rows[i].dither, 3, 1, 0, rows[i].weight, 5},
			{HALF, rows[i].dither, 0, 2, 1, 1, 9},
		};
		uint16_t slots[7];

		EXPECT(lb_stable_fill(backends, 2, 7, rows[i].slack, slots) == 0, "fill");
		EXPECT(memcmp(slots, rows[i].want, sizeof(slots)) == 0,
			"%s: %u %u %u %u %u %u %u", rows[i].what, slots[0], slots[1], slots[2],
			slots[3], slots[4], slots[5], slots[6]);
	}
}

static void
test_hashes_become_a_permutation(void **state)
{
	static const struct {
		const char *what;
		uint64_t h_1, h_2, h_3;
		uint32_t n_slots, offset, scale, start;
	} rows[] = {
		{"zeros", 0, 0, 0, 7, 0, 1, 0},
		{"the last of all", 6, 5, 6, 7, 6, 6, 6},
		{"all wrap", 7, 6, 8, 7, 0, 1, 1},
		{"all ones", UINT64_MAX, UINT64_MAX, UINT64_MAX, 65537, 0, 65536, 0},
		{"the largest table", 16777212, 16777211, 16777212, 16777213, 16777212,
			16777212, 16777212},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_stable_backend b = lb_stable_backend(rows[i].h_1, rows[i].h_2,
			rows[i].h_3, rows[i].n_slots);

		EXPECT(b.offset == rows[i].offset && b.scale == rows[i].scale &&
				b.start == rows[i].start,
			"%s: %u, %u, %u", rows[i].what, b.offset, b.scale, b.start);
		EXPECT(b.dither == rows[i].h_2 && b.phase == rows[i].h_3, "%s: hashes",
			rows[i].what);
	}
}

/** Random backends; the kind says how unequal their weights are. */
static void
make_backends(struct lb_stable_backend *backends, size_t n, uint32_t n_slots, uint32_t kind,
	uint64_t *seed)
{
	static const uint32_t weight_max[] = {1, 2, 100, 65535, 1, 3};

	for (size_t b = 0; b < n; b++) {
		const uint64_t h_1 = xrand(seed), h_2 = xrand(seed), h_3 = xrand(seed);

		backends[b] = lb_stable_backend(h_1, h_2, h_3, n_slots);
		backends[b].weight = 1 + xrand_below(seed, weight_max[kind]);
		backends[b].index = (uint32_t)b;
		/* Equal phases make ties. */
		if (h_1 % 4 == 0)
			backends[b].phase = HALF;
	}
	if (kind >= 4)
		backends[xrand_below(seed, (uint32_t)n)].weight = 1 + xrand_below(seed, 65535);
}

static void
expect_twins_agree(size_t n, uint32_t n_slots, uint32_t slack, uint32_t kind, uint64_t *seed)
{
	/* Exact sizes, so that a write past either end is seen. */
	struct lb_stable_backend *backends = malloc(n * sizeof(*backends));
	uint16_t *slots = malloc(n_slots * sizeof(*slots));
	uint16_t *plain = malloc(n_slots * sizeof(*plain));

	make_backends(backends, n, n_slots, kind, seed);
	EXPECT(lb_stable_fill(backends, n, n_slots, slack, slots) == 0, "fill");
	plain_stable_fill(backends, n, n_slots, slack, plain);
	EXPECT(memcmp(slots, plain, n_slots * sizeof(*slots)) == 0,
		"%zu backends, %u slots, slack %u, weights of kind %u", n, n_slots, slack,
		kind);
	free(plain);
	free(slots);
	free(backends);
}

static void
test_small_tables_equal_the_plain_build(void **state)
{
	static const uint32_t sizes[] = {7, 11, 13, 101};
	static const uint32_t slacks[] = {0, 1, 20, 20, 100, 1000};
	uint64_t seed = 21;

	(void)state;
	for (int i = 0; i < ROUNDS(6000); i++) {
		const uint32_t n_slots = sizes[i % 4];
		const uint32_t n = 1 + xrand_below(&seed, n_slots);
		const uint32_t slack = slacks[xrand_below(&seed, 6)];

		expect_twins_agree(n, n_slots, slack, xrand_below(&seed, 6), &seed);
	}
}

static void
test_larger_tables_equal_the_plain_build(void **state)
{
	static const struct {
		size_t n;
		uint32_t n_slots, slack, kind;
	} rows[] = {
		{1, 65537, 20, 0},
		{2, 65537, 20, 3},
		{3, 65537, 0, 0},
		{9, 65537, 20, 5},
		{100, 1021, 20, 0},
		{100, 1021, 20, 4},
		{900, 1021, 0, 2},
		{1021, 1021, 20, 0},
		{1021, 1021, 0, 3},
		{60, 4099, 20, 2},
		{60, 4099, 0, 3},
		{60, 4099, 1000, 5},
	};
	uint64_t seed = 22;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		expect_twins_agree(rows[i].n, rows[i].n_slots, rows[i].slack, rows[i].kind,
			&seed);
}

static void
test_the_largest_table_and_weights_fit_their_integers(void **state)
{
	/*
	 * Of 16777213 slots 65535 parts in 65536, and the remainder of 0.996 more. The last
	 * slot of the heavy one's permutation, so in the tail, is where (M - 1) * (M - 1) mod M
	 * is 1, whose quotient is as close to the next as any.
	 */
	const uint32_t n_slots = LB_SLOTS_MAX;
	struct lb_stable_backend backends[2];
	uint16_t *slots = malloc(n_slots * sizeof(*slots));
	uint32_t n_light = 0;
	uint64_t seed = 23;

	(void)state;
	make_backends(backends, 2, n_slots, 0, &seed);
	backends[0].weight = LB_WEIGHT_MAX;
	backends[0].offset = 0;
	backends[0].scale = n_slots - 1;
	backends[0].start = 2;
	EXPECT(lb_stable_fill(backends, 2, n_slots, 0, slots) == 0, "fill");
	for (uint32_t s = 0; s < n_slots; s++)
		n_light += slots[s] == 1;
	EXPECT(n_light == 256, "%u slots", n_light);
	free(slots);
}

static void
test_one_heavy_among_very_many_is_no_trap(void **state)
{
	const size_t n = 65535;
	struct lb_stable_backend *backends = malloc(n * sizeof(*backends));
	uint16_t *slots = malloc(65537 * sizeof(*slots));
	uint32_t n_heavy = 0;
	uint64_t seed = 24;

	(void)state;
	make_backends(backends, n, 65537, 0, &seed);
	backends[7].weight = 65535;
	EXPECT(lb_stable_fill(backends, n, 65537, 0, slots) == 0, "fill");
	for (uint32_t i = 0; i < 65537; i++)
		n_heavy += slots[i] == 7;
	/* 65537 * 65535 / 131069 = 32768.98, the others' share is 0.50002. */
	EXPECT(n_heavy == 32769, "%u", n_heavy);
	free(slots);
	free(backends);
}

static void
test_each_allocation_may_fail(void **state)
{
	static const struct lb_stable_backend backends[] = {
		{0, 0, 3, 4, 1, 1, 0},
		{0, 0, 0, 2, 5, 2, 1},
	};
	uint16_t slots[7];
	int n_failed = 0, ret;

	(void)state;
	do {
		failing_malloc_at = n_failed + 1;
		ret = lb_stable_fill(backends, 2, 7, 20, slots);
		EXPECT(ret == 0 || ret == -ENOMEM, "allocation %d: %d", n_failed + 1, ret);
		n_failed += ret != 0;
	} while (ret != 0);
	failing_malloc_at = 0;
	EXPECT(n_failed == 7, "%d allocations could fail", n_failed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_worked_out_by_hand),
		cmocka_unit_test(test_hashes_become_a_permutation),
		cmocka_unit_test(test_small_tables_equal_the_plain_build),
		cmocka_unit_test(test_larger_tables_equal_the_plain_build),
		cmocka_unit_test(test_the_largest_table_and_weights_fit_their_integers),
		cmocka_unit_test(test_one_heavy_among_very_many_is_no_trap),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
