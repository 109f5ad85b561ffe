/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "expect.h"
#include "hc_damp.h"
#include "lb_compiler.h"

#define S         UINT64_C(1000000000)
#define HALF_LIFE (60 * S)
/* No clock begins at 0. */
#define NOW (UINT64_C(1234567) * S)

static const struct {
	const char *what;
	uint32_t penalty;
	uint64_t elapsed_ns;
	uint64_t half_life_ns;
	uint32_t want;
} decays[] = {
	{"no time, no decay", 12000, 0, HALF_LIFE, 12000},
	{"half after a half-life", 12000, HALF_LIFE, HALF_LIFE, 6000},
	{"a quarter after two", 12000, 2 * HALF_LIFE, HALF_LIFE, 3000},
	{"1/sqrt(2) after half of one: 707.1", 1000, HALF_LIFE / 2, HALF_LIFE, 707},
	{"2^(-1/4): 840.9", 1000, HALF_LIFE / 4, HALF_LIFE, 840},
	{"2^(-5/4): 420.4", 1000, HALF_LIFE + HALF_LIFE / 4, HALF_LIFE, 420},
	{"nothing is left of 1", 1, HALF_LIFE, HALF_LIFE, 0},
	{"after a long time nothing", 12000, 40 * HALF_LIFE, HALF_LIFE, 0},
	{"after all time nothing", 12000, UINT64_MAX, HALF_LIFE, 0},
	{"the shortest half-life", 12000, 1, 1, 6000},
	{"the longest half-life", 12000, HC_DAMP_HALF_LIFE_NS_MAX, HC_DAMP_HALF_LIFE_NS_MAX,
		6000},
	{"the longest, just before", 12000, HC_DAMP_HALF_LIFE_NS_MAX - 1,
		HC_DAMP_HALF_LIFE_NS_MAX, 6000},
};

static void
test_a_penalty_decays_by_halves(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(decays); i++) {
		const uint32_t got = hc_damp_decay(decays[i].penalty, decays[i].elapsed_ns,
			decays[i].half_life_ns);

		EXPECT(got == decays[i].want, "%s: %u", decays[i].what, got);
	}
}

static void
test_decay_is_the_exponential_and_never_rises(void **state)
{
	uint32_t last = HC_DAMP_CEILING;

	(void)state;
	for (uint64_t t = 0; t <= 8 * HALF_LIFE; t += HALF_LIFE / 997) {
		const double want = HC_DAMP_CEILING * exp2(-(double)t / (double)HALF_LIFE);
		const uint32_t got = hc_damp_decay(HC_DAMP_CEILING, t, HALF_LIFE);

		EXPECT(got <= last, "it rises at %g s", (double)t / 1e9);
		EXPECT(fabs(got - want) <= 1.2, "%u is not %g", got, want);
		last = got;
	}
}

static const struct {
	const char *what;
	unsigned int n; /* failures */
	uint64_t apart_ns;
	bool is_out;
} flaps[] = {
	{"one failure", 1, 0, false},
	{"two at once make the limit, and not more", 2, 0, false},
	{"three at once", 3, 0, true},
	{"three, 0.69 of a half-life apart", 3, HALF_LIFE * 69 / 100, true},
	{"three, 0.70 of a half-life apart", 3, HALF_LIFE * 70 / 100, false},
	{"twenty, a half-life apart, are 2000 at most", 20, HALF_LIFE, false},
	{"twenty, 0.9 of a half-life apart", 20, HALF_LIFE * 9 / 10, true},
};

static void
test_who_fails_often_is_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(flaps); i++) {
		struct hc_damp damp = {0};
		uint64_t now_ns = NOW;

		for (unsigned int k = 0; k < flaps[i].n; k++) {
			now_ns += k > 0 ? flaps[i].apart_ns : 0;
			hc_damp_fail(&damp, HALF_LIFE, now_ns);
		}
		EXPECT(hc_damp_is_out(&damp, HALF_LIFE, now_ns) == flaps[i].is_out, "%s",
			flaps[i].what);
	}
}

static void
test_one_is_back_when_the_penalty_has_decayed(void **state)
{
	struct hc_damp damp = {0};
	uint64_t back_ns;

	(void)state;
	EXPECT(hc_damp_back_ns(&damp, HALF_LIFE) == 0, "nobody is out");
	for (unsigned int k = 0; k < 3; k++)
		hc_damp_fail(&damp, HALF_LIFE, NOW);
	back_ns = hc_damp_back_ns(&damp, HALF_LIFE);
	/* 3000 to 750 are two half-lives. */
	EXPECT(back_ns == NOW + 2 * HALF_LIFE + 1 ||
			fabs((double)(back_ns - NOW) / (double)HALF_LIFE - 2) < 0.001,
		"%g half-lives", (double)(back_ns - NOW) / (double)HALF_LIFE);
	EXPECT(hc_damp_is_out(&damp, HALF_LIFE, back_ns - 1), "still out");
	EXPECT(!hc_damp_is_out(&damp, HALF_LIFE, back_ns), "back");

	/* Between the two limits it stays as it is: out if it was. */
	hc_damp_fail(&damp, HALF_LIFE, back_ns - 1);
	EXPECT(damp.penalty < HC_DAMP_SUPPRESS, "%u", damp.penalty);
	EXPECT(hc_damp_is_out(&damp, HALF_LIFE, back_ns - 1), "out, by one more failure");
	damp = (struct hc_damp){.penalty = 749, .at_ns = NOW};
	hc_damp_fail(&damp, HALF_LIFE, NOW);
	EXPECT(!hc_damp_is_out(&damp, HALF_LIFE, NOW), "in, as it was");
}

static void
test_nobody_is_out_for_more_than_four_half_lives(void **state)
{
	struct hc_damp damp = {0};

	(void)state;
	for (unsigned int k = 0; k < 1000; k++)
		hc_damp_fail(&damp, HALF_LIFE, NOW);
	EXPECT(damp.penalty == HC_DAMP_CEILING, "%u", damp.penalty);
	EXPECT(hc_damp_is_out(&damp, HALF_LIFE, NOW + 4 * HALF_LIFE), "out");
	EXPECT(!hc_damp_is_out(&damp, HALF_LIFE, NOW + 4 * HALF_LIFE + HALF_LIFE / 100),
		"back");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_penalty_decays_by_halves),
		cmocka_unit_test(test_decay_is_the_exponential_and_never_rises),
		cmocka_unit_test(test_who_fails_often_is_out),
		cmocka_unit_test(test_one_is_back_when_the_penalty_has_decayed),
		cmocka_unit_test(test_nobody_is_out_for_more_than_four_half_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
