/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stable table promises of any set of backends. */
#include "expect.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_stable.h"
#include "plain_stable.h"
#include "rounds.h"
#include "xrand.h"

static void
make_backends(struct lb_stable_backend *backends, uint32_t n, uint32_t n_slots,
	uint32_t weight_max, uint64_t *seed)
{
	for (uint32_t b = 0; b < n; b++) {
		const uint64_t h_1 = xrand(seed), h_2 = xrand(seed), h_3 = xrand(seed);

		backends[b] = lb_stable_backend(h_1, h_2, h_3, n_slots);
		backends[b].weight = 1 + xrand_below(seed, weight_max);
		backends[b].index = b;
	}
}

/** A table too large for the plain build, and what its definition is made of. */
struct subject {
	uint32_t n, n_slots, slack;
	struct lb_stable_backend *backends;
	uint16_t *slots;
	uint64_t *inverses;
	uint64_t *times;
	uint64_t *last;  /* the largest key by which each backend has a slot */
	uint64_t *spare; /* slots that each could have more */
};

static uint64_t
key_of(const struct subject *t, uint32_t b, uint32_t slot)
{
	const struct lb_stable_backend *backend = &t->backends[b];
	const uint64_t m = t->n_slots, rate = (UINT64_C(1) << 30) / backend->weight;
	const uint64_t distance = (slot + m - backend->offset) % m;
	const uint64_t place = t->inverses[distance * t->inverses[backend->scale] % m];
	const uint64_t phase = (uint64_t)((plain_stable_wide)backend->phase * 16 * rate >> 64);

	return t->times[(place + m - backend->start) % m] * rate + phase;
}

static void
init_subject(struct subject *t, uint32_t weight_max, uint64_t *seed)
{
	uint64_t time = 0;

	t->backends = malloc(t->n * sizeof(*t->backends));
	t->slots = malloc(t->n_slots * sizeof(*t->slots));
	t->inverses = malloc(t->n_slots * sizeof(*t->inverses));
	t->times = malloc(t->n_slots * sizeof(*t->times));
	t->last = calloc(t->n, sizeof(*t->last));
	t->spare = malloc(t->n * sizeof(*t->spare));
	for (uint32_t i = 0; i < t->n_slots; i++) {
		t->inverses[i] = plain_stable_inverse(i, t->n_slots);
		time += UINT64_C(16) * t->n_slots / (t->n_slots - i);
		t->times[i] = time;
	}

	make_backends(t->backends, t->n, t->n_slots, weight_max, seed);
	EXPECT(lb_stable_fill(t->backends, t->n, t->n_slots, t->slack, t->slots) == 0, "fill");
	plain_stable_capacities(t->backends, t->n, t->n_slots, t->slack, t->spare);
	for (uint32_t s = 0; s < t->n_slots; s++) {
		const uint32_t b = t->slots[s];
		const uint64_t key = key_of(t, b, s);

		EXPECT(t->spare[b] > 0, "%u has more than its capacity", b);
		t->spare[b]--;
		t->last[b] = key > t->last[b] ? key : t->last[b];
	}
}

static void
fini_subject(struct subject *t)
{
	free(t->spare);
	free(t->last);
	free(t->times);
	free(t->inverses);
	free(t->slots);
	free(t->backends);
}

static void
test_no_slot_and_backend_would_rather_have_each_other(void **state)
{
	/* There is one such table, so this is the one that is defined. */
	static const struct {
		uint32_t n, n_slots, slack, weight_max, step;
	} rows[] = {
		{1000, 65537, 20, 1, 5},
		{1000, 65537, 0, 1, 7},
		{1000, 65537, 20, 100, 7},
		{300, 65537, 20, 65535, 3},
		{20000, 65537, 20, 1, 211},
		{65535, 65537, 20, 2, 503},
		{1000, 655373, 20, 1, 97},
		{700, 655373, 0, 100, 97},
	};
	uint64_t seed = 61;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct subject t = {.n = rows[i].n,
			.n_slots = rows[i].n_slots,
			.slack = rows[i].slack};

		init_subject(&t, rows[i].weight_max, &seed);
		for (uint32_t s = 0; s < t.n_slots; s += rows[i].step * ROUNDS_THINNED) {
			const uint32_t owner = t.slots[s];
			const uint64_t least = key_of(&t, owner, s);

			for (uint32_t b = 0; b < t.n; b++) {
				const uint64_t key = key_of(&t, b, s);
				const bool is_first =
					key < least || (key == least && b < owner);

				EXPECT(!is_first || (t.spare[b] == 0 && key > t.last[b]),
					"row %zu: slot %u has %u, and should have %u", i, s,
					owner, b);
			}
		}
		fini_subject(&t);
	}
}

static void
count_slots(const struct lb_stable_backend *backends, uint32_t n, uint32_t n_slots,
	uint32_t slack, uint32_t *counts)
{
	uint16_t *slots = malloc(n_slots * sizeof(*slots));

	EXPECT(lb_stable_fill(backends, n, n_slots, slack, slots) == 0, "fill");
	memset(counts, 0, n * sizeof(*counts));
	for (uint32_t s = 0; s < n_slots; s++) {
		EXPECT(slots[s] < n, "slot %u has %u of %u", s, slots[s], n);
		counts[slots[s]]++;
	}
	free(slots);
}

static void
test_shares_are_within_their_bounds(void **state)
{
	static const uint32_t weight_max[] = {1, 2, 100, 65535};
	static const uint32_t slacks[] = {0, 1, 20, 1000};
	struct lb_stable_backend backends[251];
	uint32_t counts[251];
	uint64_t seed = 62;

	(void)state;
	for (int i = 0; i < ROUNDS(3000); i++) {
		const uint32_t n = 1 + xrand_below(&seed, 251), slack = slacks[i % 4];
		const uint32_t n_slots = i % 30 == 0 ? 65537 : 251;
		double weight_sum = 0;

		make_backends(backends, n, n_slots, weight_max[xrand_below(&seed, 4)], &seed);
		count_slots(backends, n, n_slots, slack, counts);
		for (uint32_t b = 0; b < n; b++)
			weight_sum += backends[b].weight;
		for (uint32_t b = 0; b < n; b++) {
			const double share = n_slots * (double)backends[b].weight / weight_sum;

			EXPECT(counts[b] <= (1 + slack / 1000.0) * share + 2,
				"%u slots for a share of %.3f, slack %u", counts[b], share,
				slack);
			EXPECT(slack != 0 || fabs(counts[b] - share) < 1,
				"%u slots for a share of %.3f", counts[b], share);
		}
	}
}

static void
test_nobody_of_a_thousand_starves(void **state)
{
	enum { N_SETS = ROUNDS(300), N = 1000, N_SLOTS = 65537 };
	static struct lb_stable_backend backends[N];
	static uint32_t counts[N];
	uint32_t least = UINT32_MAX;
	uint64_t seed = 63;

	(void)state;
	for (int set = 0; set < N_SETS; set++) {
		make_backends(backends, N, N_SLOTS, 1, &seed);
		count_slots(backends, N, N_SLOTS, LB_STABLE_SLACK_DEFAULT, counts);
		for (uint32_t b = 0; b < N; b++)
			least = counts[b] < least ? counts[b] : least;
	}
	print_message("of %d times %d backends the least has %.3f of its share\n", N_SETS, N,
		(double)least * N / N_SLOTS);
	EXPECT((double)least * N / N_SLOTS >= 0.6, "%u slots", least);
}

static void
test_light_ones_get_their_share_of_the_rest(void **state)
{
	/* Weights 1..100 at random: a share of 13 or more slots is kept to a half of it. */
	enum { N = 100, N_SLOTS = 65537 };
	static struct lb_stable_backend backends[N];
	static uint32_t counts[N];
	uint64_t seed = 64;

	(void)state;
	for (int set = 0; set < 40; set++) {
		double weight_sum = 0;

		make_backends(backends, N, N_SLOTS, 100, &seed);
		count_slots(backends, N, N_SLOTS, LB_STABLE_SLACK_DEFAULT, counts);
		for (uint32_t b = 0; b < N; b++)
			weight_sum += backends[b].weight;
		for (uint32_t b = 0; b < N; b++) {
			const double share = N_SLOTS * (double)backends[b].weight / weight_sum;

			EXPECT(counts[b] >= share / 2, "%u slots for a share of %.1f",
				counts[b], share);
		}
	}
}

static void
test_a_share_of_few_slots_has_none_as_often_as_is_said(void **state)
{
	/* 500 of weight 1 beside some of weight 100; see lb_stable.h for the probability. */
	enum { N_LIGHT = 500, N_MAX = 1000, N_SLOTS = 65537, N_SETS = 20 };
	static const uint32_t n_heavy[] = {500, 200, 120, 60};
	static struct lb_stable_backend backends[N_MAX];
	static uint32_t counts[N_MAX];
	uint64_t seed = 65;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const uint32_t n = N_LIGHT + n_heavy[i];
		const double share = (double)N_SLOTS / (N_LIGHT + 100 * n_heavy[i]);
		const double least = sqrt(2 * 3.14159 * share) * exp(-1.64493 * share);
		uint32_t n_none = 0;

		for (int set = 0; set < N_SETS; set++) {
			make_backends(backends, n, N_SLOTS, 1, &seed);
			for (uint32_t b = N_LIGHT; b < n; b++)
				backends[b].weight = 100;
			count_slots(backends, n, N_SLOTS, LB_STABLE_SLACK_DEFAULT, counts);
			for (uint32_t b = 0; b < n; b++) {
				n_none += counts[b] == 0;
				EXPECT(b < N_LIGHT || counts[b] > 0, "a heavy one has none");
			}
		}
		print_message("a share of %.1f slots: %u of %d have none\n", share, n_none,
			N_LIGHT * N_SETS);
		EXPECT(n_none >= floor(0.8 * least * N_LIGHT * N_SETS),
			"a share of %.1f: %u have none, fewer than said", share, n_none);
		EXPECT(n_none <= 1.2 * share * least * N_LIGHT * N_SETS,
			"a share of %.1f: %u have none, more than said", share, n_none);
	}
}

/** Mean share, in percent, of slots that move between two others when one of n leaves. */
static double
needless_pct(uint32_t n, uint32_t n_slots, int n_sets, uint64_t *seed)
{
	struct lb_stable_backend *backends = malloc(n * sizeof(*backends));
	uint16_t *before = malloc(n_slots * sizeof(*before));
	uint16_t *after = malloc(n_slots * sizeof(*after));
	uint32_t n_moved = 0;

	for (int set = 0; set < n_sets; set++) {
		const uint32_t gone = xrand_below(seed, n);

		make_backends(backends, n, n_slots, 1, seed);
		EXPECT(lb_stable_fill(backends, n, n_slots, LB_STABLE_SLACK_DEFAULT, before) ==
				0,
			"all");
		memmove(&backends[gone], &backends[gone + 1],
			(n - 1 - gone) * sizeof(*backends));
		EXPECT(lb_stable_fill(backends, n - 1, n_slots, LB_STABLE_SLACK_DEFAULT,
			       after) == 0,
			"one less");
		for (uint32_t s = 0; s < n_slots; s++) {
			EXPECT(after[s] != gone, "slot %u has who is gone", s);
			n_moved += before[s] != after[s] && before[s] != gone;
		}
	}
	free(after);
	free(before);
	free(backends);
	return 100.0 * n_moved / n_slots / n_sets;
}

static void
test_few_other_slots_move(void **state)
{
	/* Maglev moves 0.57 %, 0.58 %, 0.14 % and 0.32 %. */
	static const struct {
		uint32_t n, n_slots;
		int n_sets;
		double most_pct;
	} rows[] = {
		{100, 65537, 12, 0.10},
		{1000, 65537, 12, 0.18},
		{100, 655373, 3, 0.003},
		{1000, 655373, 3, 0.04},
	};
	uint64_t seed = 65;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const double pct =
			needless_pct(rows[i].n, rows[i].n_slots, rows[i].n_sets, &seed);

		print_message("1 of %u leaves %u slots: %.4f %% of all moved needlessly\n",
			rows[i].n, rows[i].n_slots, pct);
		EXPECT(pct <= rows[i].most_pct, "%.4f %%", pct);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_slot_and_backend_would_rather_have_each_other),
		cmocka_unit_test(test_shares_are_within_their_bounds),
		cmocka_unit_test(test_nobody_of_a_thousand_starves),
		cmocka_unit_test(test_light_ones_get_their_share_of_the_rest),
		cmocka_unit_test(test_a_share_of_few_slots_has_none_as_often_as_is_said),
		cmocka_unit_test(test_few_other_slots_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
