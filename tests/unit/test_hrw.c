/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>

#include "failing_malloc.h"
#include "lb_compiler.h"
#include "lb_hrw.h"
#include "xrand.h"

#define ONE (UINT64_C(1) << LB_HRW_SCORE_BITS)

/** A square of 1..2 with 62 bits after the point, rounded down or up, and one digit of it. */
static uint64_t
square_step(uint64_t x, int round_up, uint64_t *digit)
{
	__extension__ unsigned __int128 square = (__extension__(unsigned __int128) x) * x;
	const int shift = square >> 125 != 0 ? 63 : 62;

	*digit = shift == 63;
	if (round_up)
		square += ((__extension__(unsigned __int128) 1) << shift) - 1;
	return (uint64_t)(square >> shift);
}

static void
test_the_table_is_exact(void **state)
{
	/*
	 * Digits of a logarithm that are the same whether all rounding is down or up are
	 * those of the logarithm itself.
	 */
	struct lb_hrw_log2 log2;

	(void)state;
	lb_hrw_log2_init(&log2);
	EXPECT(log2.at[0] == 0 && log2.at[256] == ONE, "its ends");
	for (uint64_t i = 1; i < 256; i++) {
		uint64_t low = (256 + i) << 54, high = low, digits = 0;

		for (int d = 0; d < LB_HRW_SCORE_BITS; d++) {
			uint64_t low_digit, high_digit;

			low = square_step(low, 0, &low_digit);
			high = square_step(high, 1, &high_digit);
			EXPECT(low_digit == high_digit, "digit %d of %lu is in doubt", d,
				(unsigned long)i);
			digits = digits << 1 | low_digit;
		}
		EXPECT(log2.at[i] == digits, "entry %lu", (unsigned long)i);
	}
}

static void
test_scores_of_powers_of_two_are_whole(void **state)
{
	static const struct {
		const char *what;
		uint64_t u, score;
	} rows[] = {
		{"zero counts as 2^0", 0, 64 * ONE},
		{"2^0", 1, 64 * ONE},
		{"2^1", 2, 63 * ONE},
		{"half", UINT64_C(1) << 63, ONE},
		{"a quarter", UINT64_C(1) << 62, 2 * ONE},
		{"three quarters: 2 - log2(3)", UINT64_C(3) << 62, 456338556421},
		{"all ones is not yet 0", UINT64_MAX, 2},
	};
	struct lb_hrw_log2 log2;

	(void)state;
	lb_hrw_log2_init(&log2);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_hrw_score(&log2, rows[i].u) == rows[i].score, "%s: %lu", rows[i].what,
			(unsigned long)lb_hrw_score(&log2, rows[i].u));
}

/** log2(u / 2^64), to a few units of 2^-50, from the squares alone. */
static double
exact_log2(uint64_t u)
{
	const int e = 63 - __builtin_clzll(u);
	uint64_t x = u << (63 - e) >> 1, digit;
	double sum = e - 64, unit = 1;

	for (int d = 0; d < 48; d++) {
		unit /= 2;
		x = square_step(x, 0, &digit);
		sum += digit != 0 ? unit : 0;
	}
	return sum;
}

static void
test_scores_are_near_the_logarithm_and_never_rise(void **state)
{
	struct lb_hrw_log2 log2;
	uint64_t seed = 31;

	(void)state;
	lb_hrw_log2_init(&log2);
	for (int i = 0; i < 200000; i++) {
		const uint64_t u = xrand(&seed) >> xrand_below(&seed, 64);
		const uint64_t v = u - (u != 0);
		const uint64_t score = lb_hrw_score(&log2, u);

		EXPECT(score >= 1 && score <= lb_hrw_score(&log2, v), "u = %lu",
			(unsigned long)u);
		if (u != 0) {
			const double over = (double)score / (double)ONE + exact_log2(u);

			EXPECT(over > -1e-12 && over < 2.8e-6, "%g over", over);
		}
	}
	for (int bit = 8; bit < 64; bit++) { /* where entries of the table meet */
		for (uint64_t i = 0; i < 256; i++) {
			const uint64_t u = (256 + i) << (bit - 8);

			EXPECT(lb_hrw_score(&log2, u) <= lb_hrw_score(&log2, u - 1),
				"entry %lu of bit %d", (unsigned long)i, bit);
		}
	}
}

/** The definition, backend by backend. */
static uint32_t
plain_winner(const struct lb_hrw_log2 *log2, const struct lb_hrw_backend *backends, size_t n,
	uint32_t slot)
{
	size_t best = 0;

	for (size_t b = 1; b < n; b++) {
		const uint64_t u = lb_hrw_mix(backends[b].h_1, lb_hrw_key(slot));
		const uint64_t best_u = lb_hrw_mix(backends[best].h_1, lb_hrw_key(slot));
		const uint64_t scaled = lb_hrw_score(log2, u) * backends[best].weight;
		const uint64_t best_scaled = lb_hrw_score(log2, best_u) * backends[b].weight;

		if (scaled < best_scaled || (scaled == best_scaled && u > best_u))
			best = b;
	}
	return backends[best].index;
}

static void
test_groups_equal_the_plain_definition(void **state)
{
	static const uint32_t weight_max[] = {1, 2, 10, 65535};
	struct lb_hrw_log2 log2;
	uint64_t seed = 32;

	(void)state;
	lb_hrw_log2_init(&log2);
	for (int i = 0; i < 2000; i++) {
		const size_t n = 1 + xrand_below(&seed, 40);
		struct lb_hrw_backend *backends = malloc(n * sizeof(*backends));
		uint16_t slots[97];

		for (size_t b = 0; b < n; b++) {
			backends[b] = (struct lb_hrw_backend){
				.h_1 = xrand(&seed),
				.weight = 1 + xrand_below(&seed, weight_max[i % 4]),
				.index = (uint32_t)(1000 + b),
			};
		}
		EXPECT(lb_hrw_fill(backends, n, 97, slots) == 0, "fill");
		for (uint32_t s = 0; s < 97; s++)
			EXPECT(slots[s] == plain_winner(&log2, backends, n, s),
				"slot %u, set %d of %zu", s, i, n);
		free(backends);
	}
}

static void
test_ties_go_to_the_canonically_first(void **state)
{
	/* One hash for all. Under one weight all tie; else the heaviest has the least score. */
	static const struct lb_hrw_backend equal[] = {{5, 2, 3}, {5, 2, 2}, {5, 2, 1}};
	static const struct lb_hrw_backend mixed[] = {{5, 1, 3}, {5, 2, 2}, {5, 2, 1}};
	uint16_t slots[11];

	(void)state;
	EXPECT(lb_hrw_fill(equal, 3, 11, slots) == 0, "equal weights");
	for (size_t s = 0; s < 11; s++)
		EXPECT(slots[s] == 3, "equal weights, slot %zu", s);
	EXPECT(lb_hrw_fill(mixed, 3, 11, slots) == 0, "mixed weights");
	for (size_t s = 0; s < 11; s++)
		EXPECT(slots[s] == 2, "mixed weights, slot %zu", s);
}

/** The h_1 that gives a u for a slot: lb_hrw_mix() backwards. */
static uint64_t
unmix(uint64_t u, uint32_t slot)
{
	const uint64_t factor = 0xd6e8feb86659fd93u;
	uint64_t inverse = factor; /* right in 3 bits; each step doubles them */

	for (int i = 0; i < 5; i++)
		inverse *= 2 - factor * inverse;
	u = (u ^ u >> 32) * inverse;
	u = (u ^ u >> 32) * inverse;
	return u ^ lb_hrw_key(slot);
}

static void
test_equal_ratios_go_to_the_larger_u(void **state)
{
	/* Scores of 2 at weight 2 and of 1 at weight 1 are equal for slot 4. */
	const struct lb_hrw_backend backends[] = {
		{unmix(UINT64_C(1) << 62, 4), 2, 10},
		{unmix(UINT64_C(1) << 63, 4), 1, 11},
	};
	const struct lb_hrw_backend swapped[] = {backends[1], backends[0]};
	uint16_t slots[7];

	(void)state;
	assert_true(lb_hrw_mix(backends[0].h_1, lb_hrw_key(4)) == UINT64_C(1) << 62);
	EXPECT(lb_hrw_fill(backends, 2, 7, slots) == 0 && slots[4] == 11, "%u", slots[4]);
	EXPECT(lb_hrw_fill(swapped, 2, 7, slots) == 0 && slots[4] == 11, "%u", slots[4]);
}

static void
test_each_allocation_may_fail(void **state)
{
	static const struct lb_hrw_backend backend = {5, 2, 3};
	uint16_t slots[7];

	(void)state;
	for (int i = 1; i <= 2; i++) {
		failing_malloc_at = i;
		EXPECT(lb_hrw_fill(&backend, 1, 7, slots) == -ENOMEM, "allocation %d", i);
	}
	failing_malloc_at = 3;
	EXPECT(lb_hrw_fill(&backend, 1, 7, slots) == 0, "there are two");
	failing_malloc_at = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_is_exact),
		cmocka_unit_test(test_scores_of_powers_of_two_are_whole),
		cmocka_unit_test(test_scores_are_near_the_logarithm_and_never_rise),
		cmocka_unit_test(test_groups_equal_the_plain_definition),
		cmocka_unit_test(test_ties_go_to_the_canonically_first),
		cmocka_unit_test(test_equal_ratios_go_to_the_larger_u),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
