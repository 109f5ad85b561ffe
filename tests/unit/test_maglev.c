/* SPDX-License-Identifier: BSD-3-Clause */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_malloc.h"
#include "lb_compiler.h"
#include "lb_maglev.h"
#include "lb_maglev_plain.h"
#include "xrand.h"

static void
test_the_papers_example(void **state)
{
	/* NSDI'16, Table 1: three backends, then without the second. */
	static const struct lb_maglev_backend before[] = {
		{3, 4, 1, 0},
		{0, 2, 1, 1},
		{3, 1, 1, 2},
	};
	static const struct lb_maglev_backend after[] = {
		{3, 4, 1, 0},
		{3, 1, 1, 2},
	};
	static const uint16_t want_before[] = {1, 0, 1, 0, 2, 2, 0};
	static const uint16_t want_after[] = {0, 0, 0, 0, 2, 2, 2};
	uint16_t slots[7];

	(void)state;
	EXPECT(lb_maglev_fill(before, 3, 7, slots) == 0, "three backends");
	assert_memory_equal(slots, want_before, sizeof(slots));
	EXPECT(lb_maglev_fill(after, 2, 7, slots) == 0, "two backends");
	assert_memory_equal(slots, want_after, sizeof(slots));
}

static void
test_weights_take_turns_by_accumulator(void **state)
{
	/*
	 * Weights 1 and 3: the second claims in every round, the first in the first and in
	 * each third after it. Both want 0, 1, 2, ...: (0 1) 1 1 (0 1) 1 ...
	 */
	static const struct lb_maglev_backend backends[] = {{0, 1, 1, 7}, {0, 1, 3, 9}};
	static const uint16_t want[] = {7, 9, 9, 9, 7, 9, 9};
	uint16_t slots[7];

	(void)state;
	EXPECT(lb_maglev_fill(backends, 2, 7, slots) == 0, "two backends");
	assert_memory_equal(slots, want, sizeof(slots));
}

static void
test_hashes_become_offset_and_skip(void **state)
{
	static const struct {
		const char *what;
		uint64_t h_1, h_2;
		uint32_t n_slots, offset, skip;
	} rows[] = {
		{"zeros", 0, 0, 7, 0, 1},
		{"the last of both", 6, 5, 7, 6, 6},
		{"both wrap", 7, 6, 7, 0, 1},
		{"all ones", UINT64_MAX, UINT64_MAX, 65537, 0, 65536},
		{"the largest table", 16777212, 16777211, 16777213, 16777212, 16777212},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_maglev_backend b =
			lb_maglev_backend(rows[i].h_1, rows[i].h_2, rows[i].n_slots);

		EXPECT(b.offset == rows[i].offset && b.skip == rows[i].skip, "%s: %u, %u",
			rows[i].what, b.offset, b.skip);
	}
}

/**
 * n backends of the addresses 127.0.0.1:90 and on: offset from XXH64 with seed 0, skip with
 * seed 1.
 */
static void
make_addresses(struct lb_maglev_backend *backends, size_t n, uint32_t n_slots)
{
	for (size_t b = 0; b < n; b++) {
		char text[32];
		const int n_bytes = snprintf(text, sizeof(text), "127.0.0.1:%d", (int)b + 90);

		backends[b] = lb_maglev_backend(XXH64(text, (size_t)n_bytes, 0),
			XXH64(text, (size_t)n_bytes, 1), n_slots);
		backends[b].weight = 1;
		backends[b].index = (uint32_t)b;
	}
}

static void
test_a_table_that_another_balancer_has_too(void **state)
{
	static const uint16_t want[] = {2, 4, 0, 1, 5, 0, 3};
	struct lb_maglev_backend backends[6];
	uint16_t slots[7];

	(void)state;
	make_addresses(backends, 6, 7);
	EXPECT(lb_maglev_fill(backends, 6, 7, slots) == 0, "six backends");
	assert_memory_equal(slots, want, sizeof(slots));
}

static void
test_weights_that_another_balancer_has_too(void **state)
{
	static const uint16_t want[] = {1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1};
	struct lb_maglev_backend backends[2];
	uint16_t slots[17];

	(void)state;
	make_addresses(backends, 2, 17);
	backends[1].weight = 2;
	EXPECT(lb_maglev_fill(backends, 2, 17, slots) == 0, "two backends");
	assert_memory_equal(slots, want, sizeof(slots));
}

static void
test_the_lightest_of_many_has_a_slot(void **state)
{
	struct lb_maglev_backend backends[1000];
	uint32_t counts[1000] = {0};
	uint16_t slots[1009];
	uint64_t seed = 5;

	(void)state;
	for (uint32_t b = 0; b < 1000; b++)
		backends[b] = (struct lb_maglev_backend){xrand_below(&seed, 1009),
			1 + xrand_below(&seed, 1008), b == 0 ? 1 : 65535, b};
	EXPECT(lb_maglev_fill(backends, 1000, 1009, slots) == 0, "a thousand backends");
	for (size_t s = 0; s < LB_N_ELEMENTS(slots); s++)
		counts[slots[s]]++;
	for (size_t b = 0; b < 1000; b++)
		EXPECT(counts[b] == 1 || (counts[b] == 2 && b != 0), "%zu: %u slots", b,
			counts[b]);
}

/** Random backends; the kind says how unequal their weights are. */
static void
make_backends(struct lb_maglev_backend *backends, size_t n, uint32_t n_slots, uint32_t kind,
	uint64_t *seed)
{
	static const uint32_t weight_max[] = {1, 2, 100, 65535, 1, 3};

	for (size_t b = 0; b < n; b++) {
		backends[b].offset = xrand_below(seed, n_slots);
		backends[b].skip = 1 + xrand_below(seed, n_slots - 1);
		backends[b].weight = 1 + xrand_below(seed, weight_max[kind]);
		backends[b].index = (uint32_t)b;
	}
	if (kind >= 4)
		backends[xrand_below(seed, (uint32_t)n)].weight = 1 + xrand_below(seed, 65535);
}

static void
expect_twins_agree(size_t n, uint32_t n_slots, uint32_t kind, uint64_t *seed)
{
	/* Exact sizes, so that a write past either end is seen. */
	struct lb_maglev_backend *backends = malloc(n * sizeof(*backends));
	uint16_t *slots = malloc(n_slots * sizeof(*slots));
	uint16_t *plain = malloc(n_slots * sizeof(*plain));
	struct lb_maglev_plain_walker *walkers = malloc(n * sizeof(*walkers));

	make_backends(backends, n, n_slots, kind, seed);
	EXPECT(lb_maglev_fill(backends, n, n_slots, slots) == 0, "fill");
	lb_maglev_plain_fill(backends, n, n_slots, walkers, plain);
	EXPECT(memcmp(slots, plain, n_slots * sizeof(*slots)) == 0,
		"%zu backends, %u slots, weights of kind %u", n, n_slots, kind);
	free(walkers);
	free(plain);
	free(slots);
	free(backends);
}

static void
test_small_tables_equal_the_plain_build(void **state)
{
	static const uint32_t sizes[] = {7, 11, 13, 251};
	uint64_t seed = 11;

	(void)state;
	for (int i = 0; i < 8000; i++) {
		const uint32_t n_slots = sizes[i % 4];

		expect_twins_agree(1 + xrand_below(&seed, n_slots), n_slots,
			xrand_below(&seed, 6), &seed);
	}
}

static void
test_large_tables_equal_the_plain_build(void **state)
{
	static const struct {
		size_t n;
		uint32_t n_slots, kind;
	} rows[] = {
		{1, 65537, 0},
		{2, 65537, 3},
		{100, 65537, 0},
		{1000, 65537, 2},
		{300, 65537, 4},
		{1000, 65537, 3},
		{30000, 65537, 0},
		{9000, 65537, 1},
		{65535, 65537, 1},
		{1000, 655373, 0},
		{77, 1000003, 5},
	};
	uint64_t seed = 12;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		expect_twins_agree(rows[i].n, rows[i].n_slots, rows[i].kind, &seed);
}

static void
test_one_heavy_among_very_many_is_no_trap(void **state)
{
	/* Round by round this would be 65535 additions for each of 65537 slots. */
	const size_t n = 65535;
	struct lb_maglev_backend *backends = malloc(n * sizeof(*backends));
	uint16_t *slots = malloc(65537 * sizeof(*slots));
	uint32_t n_heavy = 0;
	uint64_t seed = 13;

	(void)state;
	make_backends(backends, n, 65537, 0, &seed);
	backends[7].weight = 65535;
	EXPECT(lb_maglev_fill(backends, n, 65537, slots) == 0, "fill");
	for (uint32_t i = 0; i < 65537; i++)
		n_heavy += slots[i] == 7;
	/* Everybody has a turn, and two slots are left, in whose rounds it is alone. */
	EXPECT(n_heavy == 3, "%u", n_heavy);
	free(slots);
	free(backends);
}

static void
test_each_allocation_may_fail(void **state)
{
	static const struct lb_maglev_backend backends[] = {{3, 4, 1, 0}, {0, 2, 2, 1}};
	uint16_t slots[7];
	int n_failed = 0, ret;

	(void)state;
	do {
		failing_malloc_at = n_failed + 1;
		ret = lb_maglev_fill(backends, 2, 7, slots);
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
		cmocka_unit_test(test_the_papers_example),
		cmocka_unit_test(test_weights_take_turns_by_accumulator),
		cmocka_unit_test(test_hashes_become_offset_and_skip),
		cmocka_unit_test(test_a_table_that_another_balancer_has_too),
		cmocka_unit_test(test_weights_that_another_balancer_has_too),
		cmocka_unit_test(test_the_lightest_of_many_has_a_slot),
		cmocka_unit_test(test_small_tables_equal_the_plain_build),
		cmocka_unit_test(test_large_tables_equal_the_plain_build),
		cmocka_unit_test(test_one_heavy_among_very_many_is_no_trap),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
