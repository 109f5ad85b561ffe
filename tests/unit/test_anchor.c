/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_anchor.h"
#include "lb_compiler.h"
#include "lb_hrw.h"
#include "lb_mul.h"
#include "xrand.h"

#define CAPACITY_MAX 40u
#define N_KEYS       2000u

static void
remove_bucket(struct lb_anchor *anchor, uint32_t bucket)
{
	EXPECT(lb_anchor_remove(anchor, bucket) == 0, "remove %u", bucket);
}

static void
test_arrays_after_removals(void **state)
{
	/* Of 7 buckets 6, 5, 1 and 0 go, by hand: 4 takes the place of 1, then 3 that of 0. */
	static const uint32_t n_after[] = {3, 4, 0, 0, 0, 5, 6};
	static const uint32_t successor[] = {3, 4, 2, 3, 4, 5, 6};
	static const uint32_t working[] = {3, 4, 2};
	static const uint32_t removed[] = {6, 5, 1, 0};
	struct lb_anchor_bucket *buckets = malloc(7 * sizeof(*buckets));
	struct lb_anchor anchor;

	(void)state;
	EXPECT(lb_anchor_init(&anchor, buckets, 7, 7) == 0, "init");
	for (size_t i = 0; i < LB_N_ELEMENTS(removed); i++)
		remove_bucket(&anchor, removed[i]);
	EXPECT(anchor.n_working == 3, "%u work", anchor.n_working);
	for (uint32_t b = 0; b < 7; b++) {
		EXPECT(buckets[b].n_after == n_after[b], "A[%u] = %u", b, buckets[b].n_after);
		EXPECT(buckets[b].successor == successor[b], "K[%u] = %u", b,
			buckets[b].successor);
	}
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT(buckets[i].working == working[i], "W[%u] = %u", i, buckets[i].working);
		EXPECT(buckets[working[i]].place == i, "L[%u]", working[i]);
	}
	for (uint32_t i = 0; i < 4; i++)
		EXPECT(buckets[i].removed == removed[i], "R[%u]", i);
	free(buckets);
}

/** The definition: lists of those that work, a whole one for each removal. */
struct model {
	uint32_t capacity, n_working;
	uint32_t lists[CAPACITY_MAX + 1][CAPACITY_MAX]; /* by how many work */
	uint32_t n_after[CAPACITY_MAX];                 /* 0 = works */
	uint32_t removed[CAPACITY_MAX];                 /* which made that many work */
};

static void
init_model(struct model *m, uint32_t capacity)
{
	*m = (struct model){.capacity = capacity, .n_working = capacity};
	for (uint32_t b = 0; b < capacity; b++)
		m->lists[capacity][b] = b;
}

static void
remove_from_model(struct model *m, uint32_t bucket)
{
	const uint32_t n = m->n_working--;

	memcpy(m->lists[n - 1], m->lists[n], sizeof(m->lists[n]));
	for (uint32_t i = 0; i < n; i++) {
		if (m->lists[n][i] == bucket)
			m->lists[n - 1][i] = m->lists[n][n - 1];
	}
	m->n_after[bucket] = n - 1;
	m->removed[n - 1] = bucket;
}

static uint32_t
add_to_model(struct model *m)
{
	const uint32_t bucket = m->removed[m->n_working++];

	m->n_after[bucket] = 0;
	return bucket;
}

static uint32_t
owner_in_model(const struct model *m, uint64_t key)
{
	uint32_t owner = (uint32_t)lb_mul_high(key, m->capacity);

	while (m->n_after[owner] > 0) {
		const uint32_t n = m->n_after[owner];

		owner = m->lists[n][lb_mul_high(lb_hrw_mix(key, lb_hrw_key(owner)), n)];
	}
	return owner;
}

static void
expect_agreement(const struct lb_anchor *anchor, const struct model *m, uint64_t *seed)
{
	for (int i = 0; i < 100; i++) {
		const uint64_t key = xrand(seed);

		EXPECT(lb_anchor_owner(anchor, key) == owner_in_model(m, key),
			"%u of %u work: %u, not %u", m->n_working, m->capacity,
			lb_anchor_owner(anchor, key), owner_in_model(m, key));
	}
}

static void
test_random_changes_agree_with_the_definition(void **state)
{
	static struct model m;
	uint64_t seed = 54;

	(void)state;
	for (int round = 0; round < 60; round++) {
		const uint32_t capacity = 1 + xrand_below(&seed, CAPACITY_MAX);
		struct lb_anchor_bucket *buckets = malloc(capacity * sizeof(*buckets));
		struct lb_anchor anchor;

		init_model(&m, capacity);
		EXPECT(lb_anchor_init(&anchor, buckets, capacity, capacity) == 0, "init");
		for (int i = 0; i < 150; i++) {
			const uint32_t bucket = xrand_below(&seed, capacity);
			uint32_t added = 0;

			if (xrand_below(&seed, 2) == 0 && m.n_working < capacity) {
				EXPECT(lb_anchor_add(&anchor, &added) == 0, "add");
				EXPECT(added == add_to_model(&m), "added %u", added);
			} else if (m.n_working > 1 && m.n_after[bucket] == 0) {
				remove_from_model(&m, bucket);
				remove_bucket(&anchor, bucket);
			}
			expect_agreement(&anchor, &m, &seed);
		}
		free(buckets);
	}
}

static void
test_a_start_with_some_equals_removals_from_the_end(void **state)
{
	struct lb_anchor_bucket some_buckets[20], all_buckets[20];
	struct lb_anchor some, all;
	uint32_t added;
	uint64_t seed = 55;

	(void)state;
	EXPECT(lb_anchor_init(&some, some_buckets, 20, 6) == 0, "some");
	EXPECT(lb_anchor_init(&all, all_buckets, 20, 20) == 0, "all");
	for (uint32_t b = 19; b >= 6; b--)
		remove_bucket(&all, b);
	for (uint32_t i = 0; i < N_KEYS; i++) {
		const uint64_t key = xrand(&seed);

		EXPECT(lb_anchor_owner(&some, key) == lb_anchor_owner(&all, key), "key %u", i);
	}
	for (uint32_t b = 6; b < 20; b++)
		EXPECT(lb_anchor_add(&some, &added) == 0 && added == b, "%u comes next", b);
}

static void
test_what_comes_back_finds_its_keys(void **state)
{
	static uint64_t keys[N_KEYS];
	static uint32_t before[N_KEYS];
	struct lb_anchor_bucket buckets[30];
	struct lb_anchor anchor;
	uint64_t seed = 56;
	uint32_t added;

	(void)state;
	EXPECT(lb_anchor_init(&anchor, buckets, 30, 30) == 0, "init");
	remove_bucket(&anchor, 3);
	for (uint32_t i = 0; i < N_KEYS; i++) {
		keys[i] = xrand(&seed);
		before[i] = lb_anchor_owner(&anchor, keys[i]);
	}
	remove_bucket(&anchor, 29);
	remove_bucket(&anchor, 0);
	remove_bucket(&anchor, 17);
	for (uint32_t i = 0; i < 3; i++)
		EXPECT(lb_anchor_add(&anchor, &added) == 0, "add");
	for (uint32_t i = 0; i < N_KEYS; i++)
		EXPECT(lb_anchor_owner(&anchor, keys[i]) == before[i], "key %u", i);
}

static void
test_who_owns_depends_on_the_history(void **state)
{
	struct lb_anchor_bucket one_buckets[10], other_buckets[10];
	struct lb_anchor one, other;
	uint32_t n_different = 0;
	uint64_t seed = 57;

	(void)state;
	EXPECT(lb_anchor_init(&one, one_buckets, 10, 10) == 0, "one");
	EXPECT(lb_anchor_init(&other, other_buckets, 10, 10) == 0, "other");
	remove_bucket(&one, 2);
	remove_bucket(&one, 5);
	remove_bucket(&other, 5);
	remove_bucket(&other, 2);
	for (uint32_t i = 0; i < N_KEYS; i++) {
		const uint64_t key = xrand(&seed);

		n_different += lb_anchor_owner(&one, key) != lb_anchor_owner(&other, key);
	}
	/* What the header says of it; were it none, it could say more. */
	EXPECT(n_different > 0, "the same set, the same owners");
}

static void
test_limits(void **state)
{
	static const struct {
		const char *what;
		uint32_t capacity, n_working;
	} rows[] = {
		{"no bucket", 0, 0},
		{"none works", 4, 0},
		{"more work than there are", 4, 5},
		{"too many", LB_ANCHOR_BUCKETS_MAX + 1, 1},
	};
	struct lb_anchor_bucket buckets[4];
	struct lb_anchor anchor = {.capacity = 77};
	uint32_t added = 99;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_anchor_init(&anchor, buckets, rows[i].capacity, rows[i].n_working) ==
				-EINVAL,
			"%s", rows[i].what);
	EXPECT(anchor.capacity == 77, "untouched");

	EXPECT(lb_anchor_init(&anchor, buckets, 4, 4) == 0, "init");
	EXPECT(lb_anchor_add(&anchor, &added) == -ENOSPC && added == 99, "all work");
	EXPECT(lb_anchor_remove(&anchor, 4) == -ENOENT, "no such bucket");
	remove_bucket(&anchor, 3);
	EXPECT(lb_anchor_remove(&anchor, 3) == -ENOENT, "removed already");
	remove_bucket(&anchor, 0);
	remove_bucket(&anchor, 1);
	EXPECT(lb_anchor_remove(&anchor, 2) == -EBUSY, "the last");
	EXPECT(lb_anchor_owner(&anchor, 0) == 2 && lb_anchor_owner(&anchor, UINT64_MAX) == 2,
		"the last has all");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrays_after_removals),
		cmocka_unit_test(test_random_changes_agree_with_the_definition),
		cmocka_unit_test(test_a_start_with_some_equals_removals_from_the_end),
		cmocka_unit_test(test_what_comes_back_finds_its_keys),
		cmocka_unit_test(test_who_owns_depends_on_the_history),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
