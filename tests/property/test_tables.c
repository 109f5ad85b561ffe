/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tables promise of any set of backends, through the picker. */
#include "expect.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_picker.h"
#include "lb_stable.h"
#include "xrand.h"

#define IDS_MAX    1001
#define NAME_BYTES 16

static char names[IDS_MAX][NAME_BYTES];

/** Backends by id; an id is a name. */
struct set {
	uint32_t n;
	struct lb_picker_backend backends[IDS_MAX];
};

static int
name_all(void **state)
{
	(void)state;
	for (unsigned int id = 0; id < IDS_MAX; id++)
		(void)snprintf(names[id], NAME_BYTES, "backend-%u", id);
	return 0;
}

static void
add(struct set *set, uint32_t id, uint32_t weight)
{
	set->backends[set->n++] = (struct lb_picker_backend){
		.name = names[id],
		.name_bytes = (uint32_t)strlen(names[id]),
		.weight = weight,
	};
}

static struct set
make_set(uint32_t n, uint32_t weight)
{
	struct set set = {0};

	for (uint32_t id = 0; id < n; id++)
		add(&set, id, weight);
	return set;
}

static uint32_t
id_of(const struct lb_picker_backend *backend)
{
	return (uint32_t)((backend->name - names[0]) / NAME_BYTES);
}

static void
shuffle(struct set *set, uint64_t *seed)
{
	for (uint32_t i = set->n; i > 1; i--) {
		const uint32_t j = xrand_below(seed, i);
		const struct lb_picker_backend swap = set->backends[i - 1];

		set->backends[i - 1] = set->backends[j];
		set->backends[j] = swap;
	}
}

/** The id that owns each slot; free it. */
static uint32_t *
build(enum lb_algorithm algorithm, uint32_t n_slots, uint64_t hash_seed, const struct set *set)
{
	void *mem = aligned_alloc(LB_CACHE_LINE, lb_picker_bytes(algorithm, n_slots));
	uint32_t *owners = malloc(n_slots * sizeof(*owners));
	const struct lb_picker *picker;
	const struct lb_picker_conf conf = {
		.algorithm = algorithm,
		.n_slots = n_slots,
		.slack = LB_STABLE_SLACK_DEFAULT,
		.hash_seed = hash_seed,
	};
	const int ret = lb_picker_build(mem, &conf, set->backends, set->n, &picker);

	EXPECT(ret == 0, "build of %u: %d", set->n, ret);
	for (uint32_t s = 0; s < n_slots; s++)
		owners[s] = id_of(&set->backends[lb_picker_backend(picker, s)]);
	free(mem);
	return owners;
}

static uint32_t
count_of(const uint32_t *owners, uint32_t n_slots, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < n_slots; s++)
		n += owners[s] == id;
	return n;
}

/** Largest share / mean share. */
static double
peak_of(const uint32_t *owners, uint32_t n_slots, uint32_t n)
{
	uint32_t counts[IDS_MAX] = {0}, most = 0;

	for (uint32_t s = 0; s < n_slots; s++)
		counts[owners[s]]++;
	for (uint32_t id = 0; id < n; id++)
		most = counts[id] > most ? counts[id] : most;
	return (double)most * n / n_slots;
}

static void
test_order_has_no_part(void **state)
{
	uint64_t seed = 41;

	(void)state;
	for (int i = 0; i < 600; i++) {
		const enum lb_algorithm algorithm = (enum lb_algorithm)(i % LB_N_ALGORITHMS);
		const uint64_t hash_seed = xrand(&seed);
		struct set set = make_set(1 + xrand_below(&seed, 60), 1);
		uint32_t *one, *other;

		for (uint32_t b = 0; b < set.n; b++)
			set.backends[b].weight = 1 + xrand_below(&seed, 200);
		one = build(algorithm, 251, hash_seed, &set);
		shuffle(&set, &seed);
		other = build(algorithm, 251, hash_seed, &set);
		EXPECT(memcmp(one, other, 251 * sizeof(*one)) == 0, "%s of %u",
			lb_algorithm_name(algorithm), set.n);
		free(other);
		free(one);
	}
}

/** One random change; weight_of is the model, in which -1 is absent. */
static void
edit(struct set *set, int32_t *weight_of, uint32_t n_ids, uint64_t *seed)
{
	const uint32_t id = xrand_below(seed, n_ids);
	const uint32_t weight = xrand_below(seed, 4) == 0 ? 0 : xrand_below(seed, 300);
	uint32_t i = 0;

	while (i < set->n && id_of(&set->backends[i]) != id)
		i++;
	if (i == set->n) {
		add(set, id, weight);
		weight_of[id] = (int32_t)weight;
	} else if (xrand_below(seed, 2) == 0) {
		set->backends[i].weight = weight;
		weight_of[id] = (int32_t)weight;
	} else {
		set->backends[i] = set->backends[--set->n];
		weight_of[id] = -1;
	}
}

static void
test_edits_equal_a_build_from_scratch(void **state)
{
	const uint32_t constant = 39; /* so that there is always somebody */
	uint64_t seed = 42;

	(void)state;
	for (int i = 0; i < LB_N_ALGORITHMS * 1000; i++) {
		static struct set set;
		static int32_t weight_of[40];
		const enum lb_algorithm algorithm = (enum lb_algorithm)(i / 1000);
		struct set scratch = {0};
		uint32_t *edited, *fresh;

		if (i % 1000 == 0) {
			set.n = 0;
			memset(weight_of, -1, sizeof(weight_of));
			add(&set, constant, 100);
			weight_of[constant] = 100;
		}
		edit(&set, weight_of, constant, &seed);
		for (uint32_t id = 0; id <= constant; id++) {
			if (weight_of[id] >= 0)
				add(&scratch, id, (uint32_t)weight_of[id]);
		}
		edited = build(algorithm, 251, 7, &set);
		fresh = build(algorithm, 251, 7, &scratch);
		EXPECT(memcmp(edited, fresh, 251 * sizeof(*fresh)) == 0, "%s, edit %d",
			lb_algorithm_name(algorithm), i % 1000);
		free(fresh);
		free(edited);
	}
}

/** The bounds that lb_maglev.h states. */
static void
expect_maglev_shares(const struct set *set, uint32_t n_slots, uint64_t hash_seed)
{
	uint32_t *owners = build(LB_MAGLEV, n_slots, hash_seed, set);
	int64_t weight_sum = 0, n = 0;

	for (uint32_t b = 0; b < set->n; b++) {
		weight_sum += set->backends[b].weight;
		n += set->backends[b].weight > 0;
	}
	for (uint32_t b = 0; b < set->n; b++) {
		const int64_t weight = set->backends[b].weight;
		const int64_t count = count_of(owners, n_slots, id_of(&set->backends[b]));

		EXPECT(weight > 0 || count == 0, "weight 0 has %d slots", (int)count);
		EXPECT(weight == 0 || (count > 0 && (count + 1) * weight_sum >
							    (n_slots - n) * weight),
			"weight %d has %d slots, too few", (int)weight, (int)count);
		EXPECT(weight == 0 || (count - 2) * weight_sum < n_slots * weight,
			"weight %d has %d slots, too many", (int)weight, (int)count);
	}
	free(owners);
}

static void
test_maglev_shares_are_in_proportion(void **state)
{
	static const uint32_t weight_max[] = {2, 100, 65535};
	uint64_t seed = 43;

	(void)state;
	for (int i = 0; i < 900; i++) {
		const uint32_t n_slots = i % 30 == 0 ? 65537 : 251;
		struct set set = make_set(1 + xrand_below(&seed, 40), 1);

		for (uint32_t b = 1; b < set.n; b++)
			set.backends[b].weight = xrand_below(&seed, weight_max[i % 3] + 1);
		expect_maglev_shares(&set, n_slots, xrand(&seed));
	}
}

static void
test_maglev_shares_of_equal_weights_differ_by_one(void **state)
{
	static const uint32_t sizes[] = {7, 251, 1021, 65537};
	uint64_t seed = 44;

	(void)state;
	for (int i = 0; i < 200; i++) {
		const uint32_t n_slots = sizes[i % 4];
		const uint32_t n = 1 + xrand_below(&seed, n_slots < IDS_MAX ? n_slots : 1000);
		const struct set set = make_set(n, 1 + xrand_below(&seed, 65535));
		uint32_t *owners = build(LB_MAGLEV, n_slots, xrand(&seed), &set);
		uint32_t counts[IDS_MAX] = {0};

		for (uint32_t s = 0; s < n_slots; s++)
			counts[owners[s]]++;
		for (uint32_t id = 0; id < n; id++)
			EXPECT(counts[id] == n_slots / n || counts[id] == n_slots / n + 1,
				"%u of %u slots for one of %u", counts[id], n_slots, n);
		free(owners);
	}
}

/** Mean share of the first of two backends beside a third of weight 0. */
static double
mean_share(enum lb_algorithm algorithm, uint32_t first, uint32_t second)
{
	const uint32_t n_slots = 65537;
	const int n_seeds = 20;
	uint32_t n_first = 0;

	for (int i = 0; i < n_seeds; i++) {
		struct set set = make_set(1, first);
		uint32_t *owners;

		add(&set, 1, second);
		add(&set, 2, 0);
		owners = build(algorithm, n_slots, (uint64_t)i, &set);
		n_first += count_of(owners, n_slots, 0);
		EXPECT(count_of(owners, n_slots, 2) == 0, "weight 0 gets no slot");
		free(owners);
	}
	return (double)n_first / n_slots / n_seeds;
}

static void
test_shares_of_two_are_in_proportion(void **state)
{
	/*
	 * Maglev is exact to two slots. A slot of rendezvous is a coin: 1.3 million of them,
	 * so a share p is good to 4 * sqrt(p / 1.3e6). A ring of two with k points for
	 * the lighter misses by 1 / sqrt(20 k) on the mean of 20 seeds, here times 3.
	 */
	static const struct {
		const char *what;
		enum lb_algorithm algorithm;
		uint32_t first, second;
		double slack; /* relative to the lighter's share */
	} rows[] = {
		{"maglev 1:10", LB_MAGLEV, 1, 10, 0.0004},
		{"maglev 3:7", LB_MAGLEV, 3, 7, 0.0002},
		{"maglev 1:65535: one slot or two", LB_MAGLEV, 1, 65535, 1},
		{"ring 100:1000", LB_RING, 100, 1000, 0.053},
		{"ring 300:700", LB_RING, 300, 700, 0.031},
		{"ring 1:10 has 2 points and 16", LB_RING, 1, 10, 0.5},
		{"rendezvous 1:10", LB_RENDEZVOUS, 1, 10, 0.012},
		{"rendezvous 3:7", LB_RENDEZVOUS, 3, 7, 0.007},
		{"rendezvous 1:65535", LB_RENDEZVOUS, 1, 65535, 0.9},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const double want = (double)rows[i].first / (rows[i].first + rows[i].second);
		const double share =
			mean_share(rows[i].algorithm, rows[i].first, rows[i].second);

		EXPECT(fabs(share / want - 1) <= rows[i].slack, "%s: %.6f, not %.6f",
			rows[i].what, share, want);
	}
}

/** Mean share of slots that move between two others when one of n backends leaves. */
static double
needless_moves(uint32_t n, uint32_t n_slots, int n_seeds)
{
	uint32_t n_moved = 0;

	for (int i = 0; i < n_seeds; i++) {
		struct set set = make_set(n, 100);
		const uint32_t gone = (uint32_t)i * 37 % n;
		uint32_t *before = build(LB_MAGLEV, n_slots, (uint64_t)i, &set), *after;

		set.backends[gone] = set.backends[--set.n];
		after = build(LB_MAGLEV, n_slots, (uint64_t)i, &set);
		for (uint32_t s = 0; s < n_slots; s++)
			n_moved += before[s] != after[s] && before[s] != gone;
		free(after);
		free(before);
	}
	return (double)n_moved / n_slots / n_seeds;
}

static void
test_maglev_moves_few_other_slots(void **state)
{
	static const struct {
		uint32_t n, n_slots;
		int n_seeds;
		double least_pct, most_pct;
	} rows[] = {
		{100, 65537, 12, 0.45, 0.72},
		{1000, 65537, 12, 0.45, 0.72},
		{100, 655373, 3, 0.10, 0.18},
		{1000, 655373, 3, 0.27, 0.39},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const double pct =
			100 * needless_moves(rows[i].n, rows[i].n_slots, rows[i].n_seeds);

		print_message("1 of %u leaves %u slots: %.3f %% of all moved needlessly\n",
			rows[i].n, rows[i].n_slots, pct);
		EXPECT(pct >= rows[i].least_pct && pct <= rows[i].most_pct, "%.3f %%", pct);
	}
}

/**
 * One backend's weight goes from low to high, where 0 is absence: slots move to it alone. Read
 * backwards, the same says that nothing else moves when it leaves or is made lighter.
 */
static void
expect_moves_to_one_alone(enum lb_algorithm algorithm, uint32_t n_slots, struct set *set,
	uint32_t low, uint32_t high)
{
	struct lb_picker_backend *changed = &set->backends[set->n / 2];
	const uint32_t id = id_of(changed);
	uint32_t *before, *after, n_moved = 0;

	changed->weight = low;
	before = build(algorithm, n_slots, 5, set);
	changed->weight = high;
	after = build(algorithm, n_slots, 5, set);
	for (uint32_t s = 0; s < n_slots; s++) {
		EXPECT(before[s] == after[s] || after[s] == id,
			"%s: slot %u moved from %u to %u", lb_algorithm_name(algorithm), s,
			before[s], after[s]);
		n_moved += before[s] != after[s];
	}
	EXPECT(n_moved > 0 || n_slots < 1000, "%s: none moved", lb_algorithm_name(algorithm));
	free(after);
	free(before);
}

static void
test_ring_and_rendezvous_move_nothing_needlessly(void **state)
{
	static const enum lb_algorithm algorithms[] = {LB_RING, LB_RENDEZVOUS};
	uint64_t seed = 45;

	(void)state;
	for (int i = 0; i < 400; i++) {
		const enum lb_algorithm algorithm = algorithms[i % 2];
		const uint32_t n_slots = i < 8 ? 65537 : 256;
		const bool is_equal = i % 4 < 2;
		struct set set = make_set(2 + xrand_below(&seed, 49), 100);
		const uint32_t low = is_equal || i % 3 == 0 ? 0 : 1 + xrand_below(&seed, 99);

		for (uint32_t b = 0; b < set.n && !is_equal; b++)
			set.backends[b].weight = 1 + xrand_below(&seed, 300);
		expect_moves_to_one_alone(algorithm, n_slots, &set, low, 100);
	}
}

static void
test_the_most_loaded_of_100(void **state)
{
	static const struct {
		enum lb_algorithm algorithm;
		double least, most;
	} rows[] = {
		{LB_RING, 1.12, 1.30},
		{LB_RENDEZVOUS, 1.06, 1.14},
	};
	const int n_seeds = 8;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		double sum = 0;

		for (int k = 0; k < n_seeds; k++) {
			const struct set set = make_set(100, 100);
			uint32_t *owners =
				build(rows[i].algorithm, 65537, 1000 + (uint64_t)k, &set);

			sum += peak_of(owners, 65537, 100);
			free(owners);
		}
		print_message("%s: the most loaded of 100 has %.3f of the mean\n",
			lb_algorithm_name(rows[i].algorithm), sum / n_seeds);
		EXPECT(sum / n_seeds >= rows[i].least && sum / n_seeds <= rows[i].most, "%.3f",
			sum / n_seeds);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_has_no_part),
		cmocka_unit_test(test_edits_equal_a_build_from_scratch),
		cmocka_unit_test(test_maglev_shares_are_in_proportion),
		cmocka_unit_test(test_maglev_shares_of_equal_weights_differ_by_one),
		cmocka_unit_test(test_shares_of_two_are_in_proportion),
		cmocka_unit_test(test_maglev_moves_few_other_slots),
		cmocka_unit_test(test_ring_and_rendezvous_move_nothing_needlessly),
		cmocka_unit_test(test_the_most_loaded_of_100),
	};

	return cmocka_run_group_tests(tests, name_all, NULL);
}
