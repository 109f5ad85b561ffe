/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_owners.h"
#include "xrand.h"

#define N_MAX 20u

static void
test_owners_on_a_ring_drawn_by_hand(void **state)
{
	/* Around: 0 1 0 2 1 3; backends 0 and 1 are of zone 5, 2 and 3 of zone 6. */
	static const uint32_t around[] = {0, 1, 0, 2, 1, 3};
	static const uint32_t zones[] = {5, 5, 6, 6};
	static const struct {
		const char *what;
		uint64_t hash;
		bool has_zones;
		size_t k, n;
		uint32_t owners[4];
	} rows[] = {
		{"none is asked for", 0, false, 0, 0, {0}},
		{"the owner", 0, false, 1, 1, {0}},
		{"two", 0, false, 2, 2, {0, 1}},
		{"the second point of 0 is passed over", 0, false, 3, 3, {0, 1, 2}},
		{"all", 0, false, 4, 4, {0, 1, 2, 3}},
		{"there are no more than all", 0, false, 9, 4, {0, 1, 2, 3}},
		{"from the middle, past the end", 35, false, 4, 4, {1, 3, 0, 2}},
		{"after the last point", 70, false, 2, 2, {0, 1}},
		{"of two zones", 0, true, 2, 2, {0, 2}},
		{"of two zones, past the end", 45, true, 2, 2, {3, 0}},
		{"then who was passed over", 0, true, 3, 3, {0, 2, 1}},
		{"then all", 0, true, 9, 4, {0, 2, 1, 3}},
	};
	struct lb_ring *ring = malloc(sizeof(*ring) + 6 * sizeof(ring->points[0]));

	(void)state;
	ring->n_points = 6;
	for (size_t p = 0; p < 6; p++)
		ring->points[p] = (struct lb_ring_point){10 * p, around[p], 70 + around[p]};
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint32_t owners[9];
		const size_t n = lb_owners_on_ring(ring, rows[i].hash,
			rows[i].has_zones ? zones : NULL, rows[i].k, owners);

		EXPECT(n == rows[i].n, "%s: %zu", rows[i].what, n);
		for (size_t o = 0; o < n; o++)
			EXPECT(owners[o] == rows[i].owners[o], "%s: number %zu is %u",
				rows[i].what, o, owners[o]);
	}
	free(ring);
}

/** Backends under both schemes. */
struct subject {
	size_t n;
	struct lb_ring_backend on_ring[N_MAX];
	struct lb_hrw_backend by_hrw[N_MAX];
	uint32_t zones[N_MAX];
	struct lb_hrw_log2 log2;
};

static void
make_subject(struct subject *s, size_t n, uint32_t weight_max, uint64_t *seed)
{
	s->n = n;
	lb_hrw_log2_init(&s->log2);
	for (size_t b = 0; b < n; b++) {
		const uint64_t h_1 = xrand(seed);
		const uint32_t weight = 1 + xrand_below(seed, weight_max);

		s->on_ring[b] = (struct lb_ring_backend){h_1, weight, (uint32_t)b};
		s->by_hrw[b] = (struct lb_hrw_backend){h_1, weight, (uint32_t)b};
		s->zones[b] = xrand_below(seed, 6);
	}
}

/** Find k owners, of zones or not. */
static size_t
find_owners(const struct subject *s, bool is_ring, bool has_zones, uint64_t key, size_t k,
	uint32_t *owners)
{
	const uint32_t *zones = has_zones ? s->zones : NULL;
	const struct lb_owners_hrw hrw = {s->by_hrw, s->n, &s->log2, zones};
	struct lb_ring *ring;
	size_t n;

	if (!is_ring)
		return lb_owners_by_hrw(&hrw, key, k, owners);
	EXPECT(lb_ring_create(s->on_ring, s->n, &ring) == 0, "create");
	n = lb_owners_on_ring(ring, key, zones, k, owners);
	lb_ring_destroy(ring);
	return n;
}

static void
test_the_first_owner_is_the_schemes_own(void **state)
{
	uint16_t slots[251];
	uint64_t seed = 64;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct subject s;
		struct lb_ring *ring;
		uint32_t owner;

		make_subject(&s, 1 + xrand_below(&seed, N_MAX), i % 2 == 0 ? 1 : 300, &seed);
		EXPECT(lb_hrw_fill(s.by_hrw, s.n, 251, slots) == 0, "fill");
		for (uint32_t slot = 0; slot < 251; slot++) {
			find_owners(&s, false, i % 4 < 2, lb_hrw_key(slot), 1, &owner);
			EXPECT(owner == slots[slot], "slot %u", slot);
		}
		EXPECT(lb_ring_create(s.on_ring, s.n, &ring) == 0, "create");
		for (int k = 0; k < 200; k++) {
			const uint64_t hash = xrand(&seed);

			EXPECT(lb_owners_on_ring(ring, hash, NULL, 1, &owner) == 1, "one");
			EXPECT(owner == lb_ring_owner(ring, hash), "hash %d", k);
		}
		lb_ring_destroy(ring);
	}
}

static void
test_rendezvous_ranks_by_score_over_weight(void **state)
{
	uint64_t seed = 65;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		const uint64_t key = xrand(&seed);
		uint32_t owners[N_MAX];
		struct subject s;

		make_subject(&s, N_MAX, i % 2 == 0 ? 1 : 5, &seed);
		EXPECT(find_owners(&s, false, false, key, N_MAX, owners) == N_MAX, "all");
		for (size_t o = 1; o < N_MAX; o++) {
			const struct lb_hrw_backend *a = &s.by_hrw[owners[o - 1]];
			const struct lb_hrw_backend *b = &s.by_hrw[owners[o]];
			const uint64_t a_u = lb_hrw_mix(a->h_1, key);
			const uint64_t b_u = lb_hrw_mix(b->h_1, key);
			const uint64_t a_scaled = lb_hrw_score(&s.log2, a_u) * b->weight;
			const uint64_t b_scaled = lb_hrw_score(&s.log2, b_u) * a->weight;

			EXPECT(a_scaled < b_scaled || (a_scaled == b_scaled && a_u > b_u),
				"number %zu of round %d", o, i);
		}
	}
}

static void
test_of_equals_the_canonically_first_leads(void **state)
{
	static const struct lb_hrw_backend backends[] = {{9, 4, 0}, {9, 4, 0}, {9, 4, 0}};
	struct lb_hrw_log2 log2;
	const struct lb_owners_hrw hrw = {backends, 3, &log2, NULL};
	uint32_t owners[3];

	(void)state;
	lb_hrw_log2_init(&log2);
	EXPECT(lb_owners_by_hrw(&hrw, 1, 3, owners) == 3, "all");
	EXPECT(owners[0] == 0 && owners[1] == 1 && owners[2] == 2, "%u %u %u", owners[0],
		owners[1], owners[2]);
}

/** Without backend gone, the others stay in order, and one is added. */
static void
expect_order_kept(const struct subject *s, bool is_ring, uint64_t key, size_t gone)
{
	const size_t k = 5;
	uint32_t before[5], after[5];
	struct subject fewer = *s;
	size_t kept = 0;

	fewer.n--;
	memmove(fewer.on_ring + gone, fewer.on_ring + gone + 1,
		(fewer.n - gone) * sizeof(fewer.on_ring[0]));
	memmove(fewer.by_hrw + gone, fewer.by_hrw + gone + 1,
		(fewer.n - gone) * sizeof(fewer.by_hrw[0]));
	EXPECT(find_owners(s, is_ring, false, key, k, before) == k, "before");
	EXPECT(find_owners(&fewer, is_ring, false, key, k, after) == k, "after");
	for (size_t o = 0; o < k; o++) {
		if (before[o] == gone)
			continue;
		/* The index is still that of the whole set. */
		EXPECT(fewer.by_hrw[after[kept]].index == before[o], "number %zu", o);
		kept++;
	}
	EXPECT(kept >= k - 1, "%zu stay", kept);
}

static void
test_who_leaves_moves_nobody_else(void **state)
{
	uint64_t seed = 66;

	(void)state;
	for (int i = 0; i < 600; i++) {
		struct subject s;

		make_subject(&s, 6 + xrand_below(&seed, N_MAX - 5), i % 3 == 0 ? 300 : 1,
			&seed);
		expect_order_kept(&s, i % 2 == 0, xrand(&seed),
			xrand_below(&seed, (uint32_t)s.n));
	}
}

/** By the definition: of the whole ranking the first of each zone, then the rest. */
static size_t
choose_of_zones(const struct subject *s, const uint32_t *ranking, uint32_t *owners)
{
	bool has_zone[6] = {false}, is_taken[N_MAX] = {false};
	size_t n = 0;

	for (size_t o = 0; o < s->n; o++) {
		const uint32_t zone = s->zones[ranking[o]];

		if (has_zone[zone])
			continue;
		has_zone[zone] = true;
		is_taken[ranking[o]] = true;
		owners[n++] = ranking[o];
	}
	for (size_t o = 0; o < s->n; o++) {
		if (!is_taken[ranking[o]])
			owners[n++] = ranking[o];
	}
	return n;
}

static void
test_zones_first_then_the_ranking(void **state)
{
	uint64_t seed = 67;

	(void)state;
	for (int i = 0; i < 600; i++) {
		const bool is_ring = i % 2 == 0;
		const uint64_t key = xrand(&seed);
		uint32_t ranking[N_MAX], want[N_MAX];
		struct subject s;

		make_subject(&s, 1 + xrand_below(&seed, N_MAX), 100, &seed);
		EXPECT(find_owners(&s, is_ring, false, key, N_MAX, ranking) == s.n, "ranking");
		EXPECT(choose_of_zones(&s, ranking, want) == s.n, "all");
		for (size_t k = 1; k <= s.n; k++) {
			uint32_t *owners = malloc(k * sizeof(*owners));

			EXPECT(find_owners(&s, is_ring, true, key, k, owners) == k, "%zu", k);
			EXPECT(memcmp(owners, want, k * sizeof(*owners)) == 0, "%zu of %zu", k,
				s.n);
			free(owners);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners_on_a_ring_drawn_by_hand),
		cmocka_unit_test(test_the_first_owner_is_the_schemes_own),
		cmocka_unit_test(test_rendezvous_ranks_by_score_over_weight),
		cmocka_unit_test(test_of_equals_the_canonically_first_leads),
		cmocka_unit_test(test_who_leaves_moves_nobody_else),
		cmocka_unit_test(test_zones_first_then_the_ranking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
