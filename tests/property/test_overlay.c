/* SPDX-License-Identifier: BSD-3-Clause */
/* What the health overlay promises of any table and any set of dead backends. */
#include "expect.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_maglev.h"
#include "lb_overlay.h"
#include "xrand.h"

#define N_MAX     1000
#define SLOTS_MAX 65537

/** A configured table and what the overlay makes of it. */
struct subject {
	uint32_t n, n_slots, n_dead;
	bool is_dead[N_MAX];
	uint32_t weights[N_MAX];
	uint16_t configured[SLOTS_MAX];
	uint16_t slots[SLOTS_MAX];
};

/** A Maglev table of backends of weights 1..weight_max, nobody dead. */
static void
configure(struct subject *t, uint32_t n, uint32_t n_slots, uint32_t weight_max, uint64_t *seed)
{
	static struct lb_maglev_backend backends[N_MAX];

	*t = (struct subject){.n = n, .n_slots = n_slots};
	for (uint32_t b = 0; b < n; b++) {
		const uint64_t h_1 = xrand(seed), h_2 = xrand(seed);

		backends[b] = lb_maglev_backend(h_1, h_2, n_slots);
		backends[b].weight = 1 + xrand_below(seed, weight_max);
		backends[b].index = b;
		t->weights[b] = backends[b].weight;
	}
	EXPECT(lb_maglev_fill(backends, n, n_slots, t->configured) == 0, "fill");
	memcpy(t->slots, t->configured, sizeof(t->slots));
}

static void
set_dead(struct subject *t, uint32_t b, bool is_dead)
{
	t->n_dead += is_dead - t->is_dead[b];
	t->is_dead[b] = is_dead;
}

static void
overlay(struct subject *t)
{
	EXPECT(lb_overlay_fill(t->configured, t->n_slots, t->is_dead, t->slots) == 0,
		"%u of %u dead", t->n_dead, t->n);
}

static void
test_a_change_moves_the_slots_of_one_alone(void **state)
{
	/* Up and down at random, down to one that is left. */
	static struct subject t, before;
	uint64_t seed = 71;

	(void)state;
	for (int i = 0; i < 6000; i++) {
		uint32_t b;

		if (i % 300 == 0)
			configure(&t, 2 + xrand_below(&seed, 60), 251, 100, &seed);
		b = xrand_below(&seed, t.n);
		if (!t.is_dead[b] && t.n_dead == t.n - 1)
			continue;
		before = t;
		set_dead(&t, b, !t.is_dead[b]);
		overlay(&t);
		for (uint32_t s = 0; s < t.n_slots; s++) {
			const uint32_t old = before.slots[s], new = t.slots[s];

			EXPECT(!t.is_dead[new], "slot %u has %u, which is dead", s, new);
			EXPECT(old == new || (t.is_dead[b] ? old : new) == b,
				"%u %s, and slot %u went from %u to %u", b,
				t.is_dead[b] ? "died" : "returned", s, old, new);
			EXPECT(t.is_dead[t.configured[s]] || new == t.configured[s],
				"slot %u was taken from %u, which is alive", s,
				t.configured[s]);
		}
	}
}

static void
test_history_leaves_no_trace(void **state)
{
	/* The same dead by two ways; then all return, in another order. */
	static struct subject t, other;
	uint64_t seed = 72;

	(void)state;
	for (int i = 0; i < 300; i++) {
		configure(&t, 2 + xrand_below(&seed, 60), 251, 100, &seed);
		other = t;
		for (uint32_t k = 0; k < t.n; k++) {
			const uint32_t b = xrand_below(&seed, t.n);

			set_dead(&t, b, t.n_dead < t.n - 1 && xrand_below(&seed, 2) == 0);
			overlay(&t);
		}
		for (uint32_t b = t.n; b-- > 0;) {
			set_dead(&other, b, t.is_dead[b]);
			overlay(&other);
		}
		EXPECT(memcmp(t.slots, other.slots, sizeof(t.slots)) == 0, "set %d", i);
		for (uint32_t b = 0; b < t.n; b++) {
			set_dead(&t, b, false);
			overlay(&t);
		}
		EXPECT(memcmp(t.slots, t.configured, 251 * sizeof(*t.slots)) == 0,
			"set %d: all are back, and the table is another", i);
	}
}

/** Slots given to each in the place of the dead. */
static uint32_t
count_given(const struct subject *t, uint32_t *given)
{
	uint32_t n_given = 0;

	memset(given, 0, N_MAX * sizeof(*given));
	for (uint32_t s = 0; s < t->n_slots; s++) {
		given[t->slots[s]] += t->slots[s] != t->configured[s];
		n_given += t->slots[s] != t->configured[s];
	}
	return n_given;
}

static void
test_slots_are_given_in_proportion_to_weights(void **state)
{
	/*
	 * Independent draws give a backend that is to have x of them x, give or take 5.5 *
	 * sqrt(x) and 4 for small x. Where hardly anybody is left, neighbours decide where
	 * draws do not, and they come in runs, so the last row is good to a third.
	 */
	static const struct {
		const char *what;
		uint32_t n, weight_max, n_dead;
		double sigmas;
	} rows[] = {
		{"one of 100", 100, 1, 1, 5.5},
		{"half of 100", 100, 1, 50, 5.5},
		{"90 of 100, unequal", 100, 100, 90, 5.5},
		{"a tenth of 1000", 1000, 1, 100, 5.5},
		{"half of 1000, unequal", 1000, 100, 500, 5.5},
		{"900 of 1000", 1000, 1, 900, 5.5},
		{"998 of 1000", 1000, 1, 998, 60},
	};
	static struct subject t;
	static uint32_t given[N_MAX];
	uint64_t seed = 73;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		double weight_sum = 0, n_given;

		configure(&t, rows[i].n, SLOTS_MAX, rows[i].weight_max, &seed);
		while (t.n_dead < rows[i].n_dead)
			set_dead(&t, xrand_below(&seed, t.n), true);
		overlay(&t);
		n_given = count_given(&t, given);
		for (uint32_t b = 0; b < t.n; b++)
			weight_sum += t.is_dead[b] ? 0 : t.weights[b];
		for (uint32_t b = 0; b < t.n; b++) {
			const double want =
				t.is_dead[b] ? 0 : n_given * t.weights[b] / weight_sum;

			const double excess = fabs(given[b] - want) - 4;
			const double variance = rows[i].sigmas * rows[i].sigmas * want;

			EXPECT(excess <= 0 || excess * excess <= variance,
				"%s: %u is given %u slots, not %.1f", rows[i].what, b, given[b],
				want);
			EXPECT(!t.is_dead[b] || given[b] == 0, "%s: %u is dead", rows[i].what,
				b);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_change_moves_the_slots_of_one_alone),
		cmocka_unit_test(test_history_leaves_no_trace),
		cmocka_unit_test(test_slots_are_given_in_proportion_to_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
