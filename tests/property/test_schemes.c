/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the schemes beside the picker's promise of any set of backends: whom keys go to, how
 * evenly, and how many move when the set changes.
 */
#include "expect.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "lb_anchor.h"
#include "lb_bounded.h"
#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_hrw.h"
#include "lb_jump.h"
#include "lb_ketama.h"
#include "lb_modulo.h"
#include "lb_ring.h"
#include "lb_slots16k.h"
#include "xrand.h"

#define IDS_MAX    128u
#define NAME_BYTES 16u
#define N_KEYS     16384u /* as many as slots16k has slots: a key a slot */

enum scheme { MODULO, JUMP, ANCHOR, KETAMA, BOUNDED, SLOTS16K, RING, RENDEZVOUS, N_SCHEMES };

static const char *const scheme_names[] = {"modulo", "jump", "anchor", "ketama", "bounded",
	"slots16k", "ring", "rendezvous"};

static char names[IDS_MAX][NAME_BYTES];
static uint64_t keys[N_KEYS];

/** Backends by id, which is their name's; in any order. */
struct set {
	size_t n;
	uint32_t ids[IDS_MAX];
	uint32_t weights[IDS_MAX];
};

static uint64_t
hash_id(uint32_t id, unsigned int k)
{
	return lb_hash_name(names[id], strlen(names[id]), 4, k);
}

static int
prepare(void **state)
{
	uint64_t seed = 71;

	(void)state;
	for (unsigned int id = 0; id < IDS_MAX; id++)
		(void)snprintf(names[id], NAME_BYTES, "10.0.%u.%u:80", id / 256, id % 256);
	for (uint32_t i = 0; i < N_KEYS; i++)
		keys[i] = xrand(&seed);
	return 0;
}

static struct set
make_set(size_t n, uint32_t weight)
{
	struct set set = {.n = n};

	for (uint32_t b = 0; b < n; b++) {
		set.ids[b] = b;
		set.weights[b] = weight;
	}
	return set;
}

/** Canonical order. */
static struct set
sort_set(const struct set *set)
{
	struct set sorted = *set;

	for (size_t i = 1; i < sorted.n; i++) {
		const uint32_t id = sorted.ids[i], weight = sorted.weights[i];
		size_t j = i;

		for (; j > 0 && hash_id(sorted.ids[j - 1], 0) > hash_id(id, 0); j--) {
			sorted.ids[j] = sorted.ids[j - 1];
			sorted.weights[j] = sorted.weights[j - 1];
		}
		sorted.ids[j] = id;
		sorted.weights[j] = weight;
	}
	return sorted;
}

static void
shuffle(struct set *set, uint64_t *seed)
{
	for (size_t i = set->n; i > 1; i--) {
		const uint32_t j = xrand_below(seed, (uint32_t)i);
		const uint32_t id = set->ids[i - 1], weight = set->weights[i - 1];

		set->ids[i - 1] = set->ids[j];
		set->weights[i - 1] = set->weights[j];
		set->ids[j] = id;
		set->weights[j] = weight;
	}
}

static void
own_by_buckets(enum scheme scheme, const struct set *set, uint32_t *owners)
{
	uint32_t ends[IDS_MAX];
	struct lb_buckets buckets;

	EXPECT(lb_buckets_init(set->weights, set->n, ends, &buckets) == 0, "buckets");
	for (uint32_t i = 0; i < N_KEYS; i++)
		owners[i] = scheme == MODULO ? lb_modulo_owner(&buckets, keys[i])
					     : lb_jump_owner(&buckets, keys[i]);
}

/** Equal weights alone; nobody was ever removed but who is above n. */
static void
own_by_anchor(const struct set *set, uint32_t *owners)
{
	struct lb_anchor_bucket buckets[IDS_MAX];
	struct lb_anchor anchor;

	EXPECT(lb_anchor_init(&anchor, buckets, IDS_MAX, (uint32_t)set->n) == 0, "anchor");
	for (uint32_t i = 0; i < N_KEYS; i++)
		owners[i] = lb_anchor_owner(&anchor, keys[i]);
}

static void
md5(const void *bytes, size_t n_bytes, uint8_t digest[LB_KETAMA_DIGEST_BYTES])
{
	EXPECT(EVP_Digest(bytes, n_bytes, digest, NULL, EVP_md5(), NULL) == 1, "MD5");
}

static void
own_by_ketama(const struct set *set, uint32_t *owners)
{
	struct lb_ketama_server servers[IDS_MAX];
	struct lb_ketama_point *points;
	size_t n_points;

	for (size_t b = 0; b < set->n; b++) {
		servers[b] = (struct lb_ketama_server){
			.name = names[set->ids[b]],
			.name_bytes = (uint32_t)strlen(names[set->ids[b]]),
			.weight = set->weights[b],
		};
	}
	n_points = lb_ketama_count(servers, set->n);
	points = malloc(n_points * sizeof(*points));
	EXPECT(lb_ketama_fill(servers, set->n, md5, points) == 0, "ketama");
	for (uint32_t i = 0; i < N_KEYS; i++)
		owners[i] = lb_ketama_owner(points, n_points, (uint32_t)(keys[i] >> 32));
	free(points);
}

/** Slots rather than keys. */
static void
own_by_ring(enum scheme scheme, const struct set *set, uint32_t excess_pct, uint32_t *owners)
{
	static uint16_t slots[N_KEYS];
	struct lb_ring_backend backends[IDS_MAX];
	struct lb_bounded bounded = {.backends = backends, .n = set->n};
	struct lb_ring *ring;

	for (size_t b = 0; b < set->n; b++) {
		backends[b] = (struct lb_ring_backend){
			.h_1 = hash_id(set->ids[b], 1),
			.weight = set->weights[b],
			.index = (uint32_t)b,
		};
	}
	EXPECT(lb_ring_create(backends, set->n, &ring) == 0, "ring");
	if (scheme == RING) {
		lb_ring_fill(ring, N_KEYS, slots);
	} else {
		bounded.ring = ring;
		bounded.excess_pct = excess_pct;
		bounded.rooms = malloc(set->n * sizeof(uint32_t));
		bounded.links = malloc(ring->n_points * sizeof(uint32_t));
		EXPECT(lb_bounded_fill(&bounded, N_KEYS, slots) == 0, "bounded");
		free(bounded.links);
		free(bounded.rooms);
	}
	lb_ring_destroy(ring);
	for (uint32_t i = 0; i < N_KEYS; i++)
		owners[i] = slots[i];
}

static void
own_by_rendezvous(const struct set *set, uint32_t *owners)
{
	static uint16_t slots[N_KEYS];
	struct lb_hrw_backend backends[IDS_MAX];

	for (size_t b = 0; b < set->n; b++) {
		backends[b] = (struct lb_hrw_backend){
			.h_1 = hash_id(set->ids[b], 1),
			.weight = set->weights[b],
			.index = (uint32_t)b,
		};
	}
	EXPECT(lb_hrw_fill(backends, set->n, N_KEYS, slots) == 0, "rendezvous");
	for (uint32_t i = 0; i < N_KEYS; i++)
		owners[i] = slots[i];
}

static void
own_by_slots16k(const struct set *set, uint32_t *owners)
{
	static uint16_t slots[LB_SLOTS16K];
	struct lb_slots16k_node nodes[IDS_MAX] = {{0}};

	for (size_t b = 0; b < set->n; b++)
		nodes[b].weight = set->weights[b];
	EXPECT(lb_slots16k_assign(nodes, set->n, slots) == 0, "slots");
	for (uint32_t i = 0; i < N_KEYS; i++)
		owners[i] = slots[i];
}

/** The position in the set, as it is ordered, that owns each key. */
static void
own_in_order(enum scheme scheme, const struct set *set, uint32_t *owners)
{
	switch (scheme) {
	case MODULO:
	case JUMP:
		own_by_buckets(scheme, set, owners);
		break;
	case ANCHOR:
		own_by_anchor(set, owners);
		break;
	case KETAMA:
		own_by_ketama(set, owners);
		break;
	case BOUNDED:
	case RING:
		own_by_ring(scheme, set, 25, owners);
		break;
	case RENDEZVOUS:
		own_by_rendezvous(set, owners);
		break;
	case SLOTS16K:
	case N_SCHEMES:
		own_by_slots16k(set, owners);
		break;
	}
}

/** The id that owns each key, of a set that the scheme is given in canonical order. */
static void
own(enum scheme scheme, const struct set *set, uint32_t *owners)
{
	const struct set sorted = sort_set(set);

	own_in_order(scheme, &sorted, owners);
	for (uint32_t i = 0; i < N_KEYS; i++) {
		EXPECT(owners[i] < sorted.n, "%s: key %u belongs to %u of %zu",
			scheme_names[scheme], i, owners[i], sorted.n);
		owners[i] = sorted.ids[owners[i]];
	}
}

static uint32_t
count_of(const uint32_t *owners, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_KEYS; i++)
		n += owners[i] == id;
	return n;
}

static void
test_every_key_has_a_backend_whatever_the_order(void **state)
{
	static uint32_t one[N_KEYS], other[N_KEYS];
	uint64_t seed = 72;

	(void)state;
	for (int i = 0; i < 15 * N_SCHEMES; i++) {
		const enum scheme scheme = (enum scheme)(i % N_SCHEMES);
		struct set set = make_set(1 + xrand_below(&seed, 60), 1);

		for (size_t b = 0; b < set.n; b++)
			set.weights[b] = scheme == ANCHOR ? 1 : 1 + xrand_below(&seed, 200);
		own(scheme, &set, one);
		shuffle(&set, &seed);
		own(scheme, &set, other);
		EXPECT(memcmp(one, other, sizeof(one)) == 0, "%s of %zu", scheme_names[scheme],
			set.n);
	}
}

/** Without order, by the scheme's own doing. */
static void
test_ketama_needs_no_order(void **state)
{
	static uint32_t one[N_KEYS], other[N_KEYS];
	uint64_t seed = 73;

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct set set = make_set(1 + xrand_below(&seed, 60), 1);
		const struct set ordered = set;

		own_in_order(KETAMA, &ordered, one);
		shuffle(&set, &seed);
		own_in_order(KETAMA, &set, other);
		for (uint32_t k = 0; k < N_KEYS; k++)
			EXPECT(set.ids[other[k]] == one[k], "key %u", k);
	}
}

static void
test_shares_are_as_even_as_stated(void **state)
{
	/*
	 * 16384 keys by 32: a mean of 512. A share that is a coin for each key is good to
	 * sqrt(512) = 22.6, of which five; points on a ring, 160 each, to 8 %, of which four;
	 * with an excess of 25 % nobody has more than 640.
	 */
	static const struct {
		enum scheme scheme;
		uint32_t least, most;
	} rows[] = {
		{MODULO, 399, 625},
		{JUMP, 399, 625},
		{ANCHOR, 399, 625},
		{RENDEZVOUS, 399, 625},
		{KETAMA, 348, 676},
		{RING, 348, 676},
		{BOUNDED, 348, 640},
		{SLOTS16K, 512, 512},
	};
	static uint32_t owners[N_KEYS];
	const struct set set = make_set(32, 100);

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		own(rows[i].scheme, &set, owners);
		for (uint32_t id = 0; id < 32; id++)
			EXPECT(count_of(owners, id) >= rows[i].least &&
					count_of(owners, id) <= rows[i].most,
				"%s: %u keys", scheme_names[rows[i].scheme],
				count_of(owners, id));
	}
}

static void
test_shares_follow_weights(void **state)
{
	/* 1 to 3: 4096 keys of 16384, to five times sqrt(16384 * 1/4 * 3/4) = 55. */
	static const enum scheme schemes[] = {MODULO, JUMP, RENDEZVOUS, SLOTS16K};
	static uint32_t owners[N_KEYS];
	struct set set = make_set(2, 100);

	(void)state;
	set.weights[1] = 300;
	for (size_t i = 0; i < LB_N_ELEMENTS(schemes); i++) {
		own(schemes[i], &set, owners);
		EXPECT(abs((int)count_of(owners, 0) - 4096) <= 277, "%s: %u",
			scheme_names[schemes[i]], count_of(owners, 0));
	}
}

static void
test_nobody_has_more_than_its_room(void **state)
{
	static const uint32_t excesses[] = {0, 5, 25, 100};
	static uint32_t owners[N_KEYS];
	uint64_t seed = 74;

	(void)state;
	for (int i = 0; i < 60; i++) {
		const uint32_t excess_pct = excesses[i % 4];
		struct set set = make_set(1 + xrand_below(&seed, 100), 1);
		uint64_t sum = 0;

		for (size_t b = 0; b < set.n; b++) {
			set.weights[b] = 1 + xrand_below(&seed, i % 2 == 0 ? 1 : 300);
			sum += set.weights[b];
		}
		own_by_ring(BOUNDED, &set, excess_pct, owners);
		for (uint32_t b = 0; b < set.n; b++) {
			const double room = ceil((double)N_KEYS * set.weights[b] *
						 (100 + excess_pct) / (100 * (double)sum));

			EXPECT(count_of(owners, b) <= room, "%u %%: %u of %.0f", excess_pct,
				count_of(owners, b), room);
		}
	}
}

/** Keys that move though their backend stays. */
static uint32_t
count_needless(const uint32_t *before, const uint32_t *after, uint32_t gone)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_KEYS; i++)
		n += before[i] != after[i] && before[i] != gone;
	return n;
}

/**
 * Remove one of n backends of equal weights, read backwards: add it. Anywhere where the scheme
 * allows, else the last in the order that it knows.
 */
static uint32_t
needless_of_removal(enum scheme scheme, size_t n, uint64_t *seed)
{
	static uint32_t before[N_KEYS], after[N_KEYS];
	struct set set = make_set(n, 100);
	const size_t at = scheme == JUMP ? n - 1 : xrand_below(seed, (uint32_t)n);
	const uint32_t gone = set.ids[at];

	own_in_order(scheme, &set, before);
	set.n--;
	memmove(set.ids + at, set.ids + at + 1, (set.n - at) * sizeof(set.ids[0]));
	own_in_order(scheme, &set, after);
	for (uint32_t i = 0; i < N_KEYS; i++)
		after[i] = set.ids[after[i]];
	return count_needless(before, after, gone);
}

static void
test_nothing_moves_needlessly(void **state)
{
	static const enum scheme schemes[] = {JUMP, KETAMA, RING, RENDEZVOUS};
	uint64_t seed = 75;

	(void)state;
	for (int i = 0; i < 80; i++) {
		const enum scheme scheme = schemes[i % 4];
		const size_t n = 2 + xrand_below(&seed, 60);
		const uint32_t n_needless = needless_of_removal(scheme, n, &seed);

		EXPECT(n_needless == 0, "%s: %u of %zu", scheme_names[scheme], n_needless, n);
	}
}

static void
test_a_weight_at_jumps_end_moves_nothing_else(void **state)
{
	static uint32_t before[N_KEYS], after[N_KEYS];
	uint64_t seed = 76;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct set set = make_set(2 + xrand_below(&seed, 30), 1);
		const uint32_t last = (uint32_t)set.n - 1;

		for (size_t b = 0; b < set.n; b++)
			set.weights[b] = 1 + xrand_below(&seed, 300);
		own_in_order(JUMP, &set, before);
		set.weights[last] = xrand_below(&seed, set.weights[last]);
		own_in_order(JUMP, &set, after);
		EXPECT(count_needless(before, after, last) == 0, "%zu backends", set.n);
	}
}

static void
test_anchor_moves_only_whose_bucket_goes(void **state)
{
	static uint32_t before[N_KEYS], after[N_KEYS];
	struct lb_anchor_bucket buckets[IDS_MAX];
	struct lb_anchor anchor;
	uint64_t seed = 77;

	(void)state;
	EXPECT(lb_anchor_init(&anchor, buckets, IDS_MAX, IDS_MAX) == 0, "anchor");
	for (uint32_t i = 0; i < N_KEYS; i++)
		before[i] = lb_anchor_owner(&anchor, keys[i]);
	for (int change = 0; change < 300; change++) {
		uint32_t bucket = xrand_below(&seed, IDS_MAX);

		if (xrand_below(&seed, 2) == 0 || lb_anchor_remove(&anchor, bucket) != 0) {
			if (lb_anchor_add(&anchor, &bucket) != 0)
				continue;
		}
		for (uint32_t i = 0; i < N_KEYS; i++) {
			after[i] = lb_anchor_owner(&anchor, keys[i]);
			EXPECT(buckets[after[i]].n_after == 0, "key %u: %u does not work", i,
				after[i]);
			EXPECT(before[i] == after[i] || before[i] == bucket ||
					after[i] == bucket,
				"key %u: %u to %u", i, before[i], after[i]);
		}
		memcpy(before, after, sizeof(before));
	}
}

static void
test_modulo_moves_nearly_all(void **state)
{
	uint64_t seed = 78;

	(void)state;
	for (int i = 0; i < 40; i++) {
		const size_t n = 2 + xrand_below(&seed, 60);
		const double n_needless = needless_of_removal(MODULO, n, &seed);
		/* Of n keys one stays and one has to go. A coin a key, to five deviations. */
		const double want = N_KEYS * (double)(n - 2) / (double)n;

		EXPECT(fabs(n_needless - want) <= 5 * sqrt(N_KEYS * 0.25),
			"%zu: %.0f, not %.0f", n, n_needless, want);
	}
}

static void
test_bounded_moves_little_more_than_it_must(void **state)
{
	static const struct {
		uint32_t excess_pct;
		double least, most; /* moved / slots that the one who leaves had */
	} rows[] = {
		{1000, 1, 1},
		{100, 1, 1},
		{25, 1, 1.05},
		{5, 1.05, 1.35},
		{1, 1.2, 1.7},
	};
	uint64_t seed = 79;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		static uint32_t before[N_KEYS], after[N_KEYS];
		uint32_t n_needless = 0, n_needed = 0;

		for (int k = 0; k < 30; k++) {
			const uint32_t gone = xrand_below(&seed, 40);
			struct set set = make_set(40, 100);

			own_by_ring(BOUNDED, &set, rows[i].excess_pct, before);
			set.ids[gone] = set.ids[--set.n];
			own_by_ring(BOUNDED, &set, rows[i].excess_pct, after);
			for (uint32_t s = 0; s < N_KEYS; s++)
				after[s] = set.ids[after[s]];
			n_needless += count_needless(before, after, gone);
			n_needed += count_of(before, gone);
		}
		print_message("excess %u %%: %.2f of the least moved\n", rows[i].excess_pct,
			1 + (double)n_needless / n_needed);
		EXPECT(1 + (double)n_needless / n_needed >= rows[i].least &&
				1 + (double)n_needless / n_needed <= rows[i].most,
			"excess %u %%", rows[i].excess_pct);
	}
}

static void
test_slots16k_stay_even_through_changes(void **state)
{
	static uint16_t before[LB_SLOTS16K], after[LB_SLOTS16K];
	struct lb_slots16k_node nodes[IDS_MAX] = {{0}};
	struct lb_slots16k_claim claims[IDS_MAX];
	uint64_t seed = 80;

	(void)state;
	nodes[0].weight = 1;
	EXPECT(lb_slots16k_assign(nodes, IDS_MAX, before) == 0, "assign");
	for (int i = 0; i < 500; i++) {
		const uint32_t changed = 1 + xrand_below(&seed, IDS_MAX - 1);
		const bool has_left = nodes[changed].weight > 0;
		uint32_t n = 0;

		nodes[changed].weight = has_left ? 0 : 1;
		memcpy(after, before, sizeof(after));
		EXPECT(lb_slots16k_rebalance(nodes, IDS_MAX, claims, after) == 0, "rebalance");
		for (uint32_t b = 0; b < IDS_MAX; b++)
			n += nodes[b].weight;
		for (uint32_t b = 0; b < IDS_MAX; b++)
			EXPECT(nodes[b].weight == 0 ? nodes[b].n_slots == 0
						    : nodes[b].n_slots - LB_SLOTS16K / n <= 1,
				"%u of %u has %u", b, n, nodes[b].n_slots);
		/* Equal weights: all that moves comes from or goes to the one that changed. */
		for (uint32_t s = 0; s < LB_SLOTS16K; s++)
			EXPECT(before[s] == after[s] ||
					(has_left ? before[s] : after[s]) == changed,
				"change %d: slot %u from %u to %u", i, s, before[s], after[s]);
		memcpy(before, after, sizeof(before));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_has_a_backend_whatever_the_order),
		cmocka_unit_test(test_ketama_needs_no_order),
		cmocka_unit_test(test_shares_are_as_even_as_stated),
		cmocka_unit_test(test_shares_follow_weights),
		cmocka_unit_test(test_nobody_has_more_than_its_room),
		cmocka_unit_test(test_nothing_moves_needlessly),
		cmocka_unit_test(test_a_weight_at_jumps_end_moves_nothing_else),
		cmocka_unit_test(test_anchor_moves_only_whose_bucket_goes),
		cmocka_unit_test(test_modulo_moves_nearly_all),
		cmocka_unit_test(test_bounded_moves_little_more_than_it_must),
		cmocka_unit_test(test_slots16k_stay_even_through_changes),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
