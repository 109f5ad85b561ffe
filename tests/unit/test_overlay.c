/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_hrw.h"
#include "lb_mul.h"
#include "lb_overlay.h"
#include "xrand.h"

static void
test_small_tables(void **state)
{
	/*
	 * By the definition, as another program works it out, the rankings of slots 0, 1, 3
	 * and 4 begin with 1 2, 5, 6 and 0 5.
	 */
	static const struct {
		const char *what;
		uint16_t configured[7];
		bool is_dead[4];
		int want;
		uint16_t slots[7];
	} rows[] = {
		{"nobody is dead", {0, 1, 2, 0, 1, 2, 3}, {false}, 0, {0, 1, 2, 0, 1, 2, 3}},
		{"a dead one without slots", {0, 1, 2, 0, 1, 2, 1}, {false, false, false, true},
			0, {0, 1, 2, 0, 1, 2, 1}},
		{"one is dead", {0, 1, 2, 0, 1, 2, 3}, {true}, 0, {1, 1, 2, 3, 1, 2, 3}},
		{"two are dead", {0, 1, 2, 0, 1, 2, 3}, {true, true}, 0, {2, 2, 2, 3, 2, 2, 3}},
		{"one is alive", {0, 1, 2, 0, 1, 2, 3}, {true, true, true, false}, 0,
			{3, 3, 3, 3, 3, 3, 3}},
		{"one slot is alive, the first", {3, 1, 2, 0, 1, 2, 0},
			{true, true, true, false}, 0, {3, 3, 3, 3, 3, 3, 3}},
		{"all are dead", {0, 1, 2, 0, 1, 2, 0}, {true, true, true, false}, -ENOENT,
			{77, 77, 77, 77, 77, 77, 77}},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint16_t slots[7] = {77, 77, 77, 77, 77, 77, 77};
		const int ret = lb_overlay_fill(rows[i].configured, 7, rows[i].is_dead, slots);

		EXPECT(ret == rows[i].want, "%s: %d", rows[i].what, ret);
		EXPECT(memcmp(slots, rows[i].slots, sizeof(slots)) == 0,
			"%s: %u %u %u %u %u %u %u", rows[i].what, slots[0], slots[1], slots[2],
			slots[3], slots[4], slots[5], slots[6]);
	}
}

/** The definition, slot by slot. */
static uint16_t
plain_backend(const uint16_t *configured, uint32_t n_slots, const bool *is_dead, uint32_t slot)
{
	uint32_t at = slot;

	if (!is_dead[configured[slot]])
		return configured[slot];
	for (uint32_t k = 0; k < LB_OVERLAY_DRAWS; k++) {
		at = (uint32_t)lb_mul_high(lb_hrw_mix(k, lb_hrw_key(slot)), n_slots);
		if (!is_dead[configured[at]])
			return configured[at];
	}
	for (at = (slot + 1) % n_slots; is_dead[configured[at]];)
		at = (at + 1) % n_slots;
	return configured[at];
}

static void
test_tables_equal_the_definition(void **state)
{
	static const struct {
		const char *what;
		uint32_t n_slots, n, n_live;
	} rows[] = {
		{"one is dead", 1021, 10, 9},
		{"half are", 1021, 10, 5},
		{"so few are alive that most draws fail", 4099, 2000, 3},
		{"the same, where nobody has many slots", 4099, 4099, 5},
		{"a table of one slot", 1, 1, 1},
		{"a size that is no prime", 16384, 300, 100},
	};
	uint64_t seed = 31;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint32_t n_slots = rows[i].n_slots;
		uint16_t *configured = malloc(n_slots * sizeof(*configured));
		uint16_t *slots = malloc(n_slots * sizeof(*slots));
		bool *is_dead = malloc(rows[i].n * sizeof(*is_dead));

		for (uint32_t b = 0; b < rows[i].n; b++)
			is_dead[b] = b >= rows[i].n_live;
		for (uint32_t s = 0; s < n_slots; s++)
			configured[s] = (uint16_t)xrand_below(&seed, rows[i].n);
		configured[n_slots / 2] = 0;
		EXPECT(lb_overlay_fill(configured, n_slots, is_dead, slots) == 0, "%s",
			rows[i].what);
		for (uint32_t s = 0; s < n_slots; s++) {
			const uint16_t want = plain_backend(configured, n_slots, is_dead, s);

			EXPECT(slots[s] == want, "%s: slot %u has %u, not %u", rows[i].what, s,
				slots[s], want);
		}
		free(is_dead);
		free(slots);
		free(configured);
	}
}

/* As the overlay's header has it: the slots that a share has are those below it in this. */
static uint32_t
rank(uint32_t slot)
{
	return (uint32_t)(lb_hrw_mix(UINT64_MAX, lb_hrw_key(slot)) >> 60);
}

static void
test_shares_are_of_ones_own_slots(void **state)
{
	enum { N_SLOTS = 4099, N = 5 };
	uint16_t configured[N_SLOTS];
	uint16_t slots[N_SLOTS];
	uint16_t last[N_SLOTS];
	uint8_t shares[N] = {16, 16, 0, 16, 16};
	uint64_t seed = 47;

	(void)state;
	for (uint32_t s = 0; s < N_SLOTS; s++)
		configured[s] = (uint16_t)xrand_below(&seed, N);
	for (uint8_t share = 0; share <= LB_OVERLAY_WHOLE; share++) {
		uint32_t n_has = 0;

		shares[2] = share;
		EXPECT(lb_overlay_fill_shares(configured, N_SLOTS, shares, slots) == 0, "fill");
		for (uint32_t s = 0; s < N_SLOTS; s++) {
			const bool is_own = configured[s] == 2;

			n_has += slots[s] == 2;
			EXPECT(is_own || slots[s] == configured[s], "another's slot moved");
			EXPECT(!is_own || rank(s) >= share || slots[s] == 2,
				"share %u: slot %u is its own", share, s);
			/* From the others it takes what is its own, and gives nothing back. */
			EXPECT(share == 0 || slots[s] == last[s] || slots[s] == 2,
				"share %u: slot %u goes to %u", share, s, slots[s]);
		}
		EXPECT(share > 0 || n_has == 0, "without a share it has slots");
		memcpy(last, slots, sizeof(last));
	}
	EXPECT(memcmp(slots, configured, sizeof(slots)) == 0, "whole, it is the table");
}

static void
test_shares_without_a_slot_are_whole(void **state)
{
	/* Two slots, neither of which a sixteenth has. */
	const uint16_t configured[2] = {0, 1};
	uint8_t shares[2] = {1, 0};
	uint16_t slots[2];

	(void)state;
	EXPECT(rank(0) >= 1 && rank(1) >= 1, "%u %u", rank(0), rank(1));
	EXPECT(lb_overlay_fill_shares(configured, 2, shares, slots) == 0, "one is left");
	EXPECT(slots[0] == 0 && slots[1] == 0, "it has all");
	shares[0] = 0;
	EXPECT(lb_overlay_fill_shares(configured, 2, shares, slots) == -ENOENT, "nobody");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_tables),
		cmocka_unit_test(test_tables_equal_the_definition),
		cmocka_unit_test(test_shares_are_of_ones_own_slots),
		cmocka_unit_test(test_shares_without_a_slot_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
