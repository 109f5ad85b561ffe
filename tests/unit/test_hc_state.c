/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "hc_state.h"
#include "lb_compiler.h"

#define S UINT64_C(1000000000)
/* No clock begins at 0. */
#define NOW (UINT64_C(1234567) * S)

static const struct hc_rules usual = {.rise = 2, .fall = 3, .half_life_ns = 60 * S};
static const struct hc_rules quick = {.rise = 1, .fall = 1, .half_life_ns = 60 * S};
static const struct hc_rules undamped = {.rise = 1, .fall = 1};

/* Results: + passes, - fails. The level after each of them: ?, U or D. */
static const struct {
	const char *what;
	const struct hc_rules *rules;
	const char *results;
	const char *levels;
	bool is_trusted;
} rows[] = {
	{"of one nothing is known of the first result decides: it passes", &usual, "+", "U",
		false},
	{"it fails", &usual, "-", "D", false},
	{"three failures in a row bring it down", &usual, "+---", "UUUD", false},
	{"two do not", &usual, "+--+--+", "UUUUUUU", false},
	{"one that passes begins the count anew", &usual, "+--+---", "UUUUUUD", false},
	{"two that pass bring it up", &usual, "-++", "DDU", false},
	{"one failure begins that count anew", &usual, "-+-++", "DDDDU", false},
	{"it stays down", &usual, "-----", "DDDDD", false},
	{"failures that were before it came up do not count", &usual, "---++--", "DDDDUUU",
		false},
	{"1 and 1 follow each result", &quick, "+-+-+", "UDUDU", false},
	{"one that is used has to fail three times", &usual, "---", "??D", true},
	{"and to pass once", &usual, "--+--+", "??UUUU", true},
};

static void
test_results_count_in_a_row(void **state)
{
	static const char letters[] = {[HC_UNKNOWN] = '?', [HC_UP] = 'U', [HC_DOWN] = 'D'};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct hc_state health;

		hc_state_init(&health, rows[i].is_trusted, NOW);
		for (size_t k = 0; rows[i].results[k] != '\0'; k++) {
			const enum hc_level before = health.level;
			const bool has_changed = hc_state_take(&health, rows[i].rules,
				rows[i].results[k] == '+', NOW + (k + 1) * S);

			EXPECT(letters[health.level] == rows[i].levels[k], "%s: result %zu: %c",
				rows[i].what, k + 1, letters[health.level]);
			EXPECT(has_changed == (health.level != before), "%s: told",
				rows[i].what);
			EXPECT(!has_changed || health.since_ns == NOW + (k + 1) * S,
				"%s: since", rows[i].what);
		}
	}
}

static void
test_the_unknown_are_used_where_they_are_trusted(void **state)
{
	struct hc_state health;

	(void)state;
	hc_state_init(&health, true, NOW);
	EXPECT(hc_state_use(&health, &usual, NOW) == HC_USE_YES, "at a start");
	EXPECT(hc_state_share(&health, &usual, NOW) == HC_SHARE_WHOLE, "whole");
	hc_state_init(&health, false, NOW);
	EXPECT(hc_state_use(&health, &usual, NOW) == HC_USE_NO, "new");
	(void)hc_state_take(&health, &usual, true, NOW);
	EXPECT(hc_state_use(&health, &usual, NOW) == HC_USE_YES, "it has passed");
	(void)hc_state_take(&health, &quick, false, NOW);
	EXPECT(hc_state_use(&health, &usual, NOW) == HC_USE_NO, "it has failed");
}

/* Down and up again n times, at once. */
static void
flap(struct hc_state *health, const struct hc_rules *rules, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		(void)hc_state_take(health, rules, false, NOW);
		(void)hc_state_take(health, rules, true, NOW);
	}
}

static void
test_who_flaps_is_the_last_to_be_used(void **state)
{
	struct hc_state health;

	(void)state;
	hc_state_init(&health, true, NOW);
	flap(&health, &quick, 2);
	EXPECT(hc_state_use(&health, &quick, NOW) == HC_USE_YES, "twice is allowed");
	flap(&health, &quick, 1);
	EXPECT(health.level == HC_UP, "it passes");
	EXPECT(hc_state_use(&health, &quick, NOW) == HC_USE_LAST, "and is out");
	EXPECT(hc_state_is_moving(&health, &quick, NOW), "for a time");
	EXPECT(hc_state_use(&health, &quick, NOW + 121 * S) == HC_USE_YES, "two half-lives");
	EXPECT(!hc_state_is_moving(&health, &quick, NOW + 121 * S), "nothing more will be");
	(void)hc_state_take(&health, &quick, false, NOW + S);
	EXPECT(hc_state_use(&health, &quick, NOW + S) == HC_USE_NO, "who is down is down");

	hc_state_init(&health, true, NOW);
	flap(&health, &undamped, 100);
	EXPECT(hc_state_use(&health, &undamped, NOW) == HC_USE_YES, "undamped");

	/* One that was never up has not flapped. */
	hc_state_init(&health, false, NOW);
	(void)hc_state_take(&health, &quick, false, NOW);
	EXPECT(health.damp.penalty == 0, "new, and down");
	hc_state_init(&health, true, NOW);
	(void)hc_state_take(&health, &quick, false, NOW);
	EXPECT(health.damp.penalty == HC_DAMP_PENALTY, "trusted, and down");
}

static void
test_a_share_grows_slowly(void **state)
{
	const struct hc_rules slow = {.rise = 1, .fall = 1, .slow_start_ns = 30 * S};
	struct hc_state health;
	uint32_t last = 1;

	(void)state;
	hc_state_init(&health, true, NOW);
	(void)hc_state_take(&health, &slow, true, NOW);
	EXPECT(hc_state_share(&health, &slow, NOW) == HC_SHARE_WHOLE, "it was there before");
	(void)hc_state_take(&health, &slow, false, NOW);
	(void)hc_state_take(&health, &slow, true, NOW);
	for (uint64_t t = 0; t <= 30 * S; t += S / 10) {
		const uint32_t share = hc_state_share(&health, &slow, NOW + t);

		EXPECT(share == 1 + t * 15 / (30 * S), "%u after %g s", share, (double)t / 1e9);
		EXPECT(share == last || share == last + 1, "one at a time");
		EXPECT(hc_state_is_moving(&health, &slow, NOW + t) == (share < HC_SHARE_WHOLE),
			"it moves");
		last = share;
	}
	EXPECT(last == HC_SHARE_WHOLE, "it is whole in the end");
	const struct hc_rules slower = {.rise = 1, .fall = 1, .slow_start_ns = 300 * S};

	hc_state_settle(&health, &slow, NOW + 29 * S);
	EXPECT(hc_state_share(&health, &slower, NOW + 30 * S) == 2, "by other rules");
	hc_state_settle(&health, &slow, NOW + 30 * S);
	EXPECT(hc_state_share(&health, &slower, NOW + 30 * S) == HC_SHARE_WHOLE, "it stays so");
	EXPECT(hc_state_share(&health, &usual, NOW) == HC_SHARE_WHOLE, "no slow start now");

	/* New, and not checked. */
	hc_state_init(&health, true, NOW);
	hc_state_begin(&health, &slow, NOW);
	EXPECT(hc_state_share(&health, &slow, NOW) == 1, "it begins");
	EXPECT(hc_state_share(&health, &slow, NOW + 15 * S) == 8, "half-way: 1 + 7.5");
}

static void
test_a_share_begins_once_damping_is_over(void **state)
{
	struct hc_rules slow = quick;
	struct hc_state health;
	uint64_t back_ns;

	(void)state;
	slow.slow_start_ns = 30 * S;
	hc_state_init(&health, true, NOW);
	flap(&health, &slow, 3);
	back_ns = hc_damp_back_ns(&health.damp, slow.half_life_ns);
	EXPECT(hc_state_share(&health, &slow, back_ns) == 1, "it begins");
	EXPECT(hc_state_share(&health, &slow, back_ns + 28 * S) == 15, "1 + 14");
	EXPECT(hc_state_share(&health, &slow, back_ns + 30 * S) == HC_SHARE_WHOLE, "whole");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_count_in_a_row),
		cmocka_unit_test(test_the_unknown_are_used_where_they_are_trusted),
		cmocka_unit_test(test_who_flaps_is_the_last_to_be_used),
		cmocka_unit_test(test_a_share_grows_slowly),
		cmocka_unit_test(test_a_share_begins_once_damping_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
