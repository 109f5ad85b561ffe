/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_limits.h"
#include "lb_slots16k.h"
#include "xrand.h"

#define NODES_MAX 8u

static void
test_crc16_of_known_texts(void **state)
{
	static const struct {
		const char *what, *text;
		uint16_t crc;
	} rows[] = {
		{"the check value of XMODEM", "123456789", 0x31c3},
		{"nothing", "", 0},
		{"a byte of 1: the polynomial itself", "\x01", 0x1021},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_slots16k_crc16(rows[i].text, strlen(rows[i].text)) == rows[i].crc,
			"%s: 0x%04x", rows[i].what,
			lb_slots16k_crc16(rows[i].text, strlen(rows[i].text)));
}

/** The slot of a text that lies on the heap at exact length. */
static uint32_t
slot_of(const char *text)
{
	const size_t n_bytes = strlen(text);
	char *exact = malloc(n_bytes + (n_bytes == 0));
	uint32_t slot;

	memcpy(exact, text, n_bytes);
	slot = lb_slots16k_slot(exact, n_bytes);
	free(exact);
	return slot;
}

static void
test_slots_that_redis_and_its_clients_state(void **state)
{
	static const struct {
		const char *key;
		uint32_t slot;
	} rows[] = {
		{"foo", 12182},
		{"{foo}bar", 12182},
		{"foo{}{bar}", 8363},
		{"somekey", 11058},
		{"foo{hash_tag}", 2515},
		{"bar{hash_tag}", 2515},
		{"123456789", 0x31c3},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(slot_of(rows[i].key) == rows[i].slot, "%s: %u", rows[i].key,
			slot_of(rows[i].key));
}

static void
test_what_is_hashed_of_a_key(void **state)
{
	static const struct {
		const char *what, *key, *hashed;
	} rows[] = {
		{"the tag", "{user1000}.following", "user1000"},
		{"from the first brace", "foo{{bar}}zap", "{bar"},
		{"to the first brace after it", "foo{bar}{zap}", "bar"},
		{"all where the first tag is empty", "foo{}{bar}", "foo{}{bar}"},
		{"all where it is not closed", "foo{bar", "foo{bar"},
		{"all where it ends with the brace", "foo{", "foo{"},
		{"all where it is closed before", "foo}bar{", "foo}bar{"},
		{"a brace that closes before does not count", "a}b{c}", "c"},
		{"one byte", "{a}", "a"},
		{"nothing", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint32_t want =
			lb_slots16k_crc16(rows[i].hashed, strlen(rows[i].hashed)) % 16384;

		EXPECT(slot_of(rows[i].key) == want, "%s: %u", rows[i].what,
			slot_of(rows[i].key));
	}
}

static void
test_ranges_are_those_of_redis_cli(void **state)
{
	static const struct {
		const char *what;
		size_t n;
		uint32_t weights[4], firsts[5];
	} rows[] = {
		{"one has all", 1, {9}, {0, 16384}},
		{"three, as redis-cli prints them", 3, {1, 1, 1}, {0, 5461, 10923, 16384}},
		{"weights", 3, {1, 2, 1}, {0, 4096, 12288, 16384}},
		{"weight 0 has none", 4, {0, 5, 0, 5}, {0, 0, 8192, 8192, 16384}},
	};
	static uint16_t owners[LB_SLOTS16K];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_slots16k_node nodes[4] = {{0}};

		for (size_t b = 0; b < rows[i].n; b++)
			nodes[b].weight = rows[i].weights[b];
		EXPECT(lb_slots16k_assign(nodes, rows[i].n, owners) == 0, "%s", rows[i].what);
		for (size_t b = 0; b < rows[i].n; b++) {
			const uint32_t first = rows[i].firsts[b], end = rows[i].firsts[b + 1];

			EXPECT(nodes[b].n_slots == end - first, "%s: node %zu has %u",
				rows[i].what, b, nodes[b].n_slots);
			for (uint32_t slot = first; slot < end; slot++)
				EXPECT(owners[slot] == b, "%s: slot %u", rows[i].what, slot);
		}
	}
}

static uint32_t
count_moved(const uint16_t *before, const uint16_t *after)
{
	uint32_t n = 0;

	for (uint32_t slot = 0; slot < LB_SLOTS16K; slot++)
		n += before[slot] != after[slot];
	return n;
}

static void
test_nodes_that_join_and_leave(void **state)
{
	static const struct {
		const char *what;
		uint32_t weights[4], n_moved, n_slots[4];
	} rows[] = {
		{"nothing to do", {1, 1, 1, 0}, 0, {5461, 5462, 5461, 0}},
		{"a fourth takes a quarter", {1, 1, 1, 1}, 4096, {4096, 4096, 4096, 4096}},
		{"the second gives all it has", {1, 0, 1, 0}, 5462, {8192, 0, 8192, 0}},
		{"the fourth for the first", {0, 1, 1, 1}, 5461, {0, 5462, 5461, 5461}},
		{"twice the weight", {2, 1, 1, 0}, 2731, {8192, 4096, 4096, 0}},
	};
	struct lb_slots16k_claim claims[4];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		static uint16_t before[LB_SLOTS16K], after[LB_SLOTS16K];
		struct lb_slots16k_node nodes[4] = {{1, 0}, {1, 0}, {1, 0}, {0, 0}};

		EXPECT(lb_slots16k_assign(nodes, 4, before) == 0, "assign");
		memcpy(after, before, sizeof(after));
		for (size_t b = 0; b < 4; b++)
			nodes[b].weight = rows[i].weights[b];
		EXPECT(lb_slots16k_rebalance(nodes, 4, claims, after) == 0, "rebalance");
		EXPECT(count_moved(before, after) == rows[i].n_moved, "%s: %u moved",
			rows[i].what, count_moved(before, after));
		for (size_t b = 0; b < 4; b++)
			EXPECT(nodes[b].n_slots == rows[i].n_slots[b], "%s: node %zu has %u",
				rows[i].what, b, nodes[b].n_slots);
	}
}

/** Fewest slots to move, trying all ways in which each node is within one slot of its share. */
static uint32_t
least_moved(const struct lb_slots16k_node *nodes, size_t n, const uint32_t *counts)
{
	uint32_t sum = 0, least = UINT32_MAX;

	for (size_t b = 0; b < n; b++)
		sum += nodes[b].weight;
	for (uint32_t ways = 0; ways < 1u << n; ways++) {
		uint32_t n_slots = 0, n_taken = 0, is_within = 1;

		for (size_t b = 0; b < n; b++) {
			const uint32_t more = ways >> b & 1;
			const uint32_t quota = 16384 * nodes[b].weight / sum + more;

			is_within &= more == 0 || 16384 * nodes[b].weight % sum != 0;
			n_slots += quota;
			n_taken += quota > counts[b] ? quota - counts[b] : 0;
		}
		if (is_within && n_slots == 16384 && n_taken < least)
			least = n_taken;
	}
	return least;
}

static void
test_no_way_moves_fewer_slots(void **state)
{
	static uint16_t before[LB_SLOTS16K], after[LB_SLOTS16K];
	uint64_t seed = 58;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		const size_t n = 1 + xrand_below(&seed, NODES_MAX);
		const uint32_t weight_max = i % 3 == 0 ? 1 : 1 + xrand_below(&seed, 1000);
		struct lb_slots16k_node nodes[NODES_MAX] = {{0}};
		uint32_t counts[NODES_MAX] = {0}, after_counts[NODES_MAX] = {0};
		struct lb_slots16k_claim *claims = malloc(n * sizeof(*claims));

		/* From a random cut among nodes, and some that nobody has. */
		for (size_t b = 0; b < n; b++)
			nodes[b].weight = xrand_below(&seed, weight_max + 1);
		nodes[0].weight = nodes[0].weight == 0 ? 1 : nodes[0].weight;
		for (uint32_t slot = 0, owner = 0; slot < LB_SLOTS16K; slot++) {
			if (slot % 1024 == 0 || xrand_below(&seed, 50) == 0)
				owner = xrand_below(&seed, (uint32_t)n + 1);
			before[slot] = (uint16_t)(owner < n ? owner : LB_SLOTS16K_NONE);
			if (owner < n)
				counts[owner]++;
		}

		memcpy(after, before, sizeof(after));
		EXPECT(lb_slots16k_rebalance(nodes, n, claims, after) == 0, "rebalance");
		EXPECT(count_moved(before, after) == least_moved(nodes, n, counts),
			"%zu nodes: %u moved, not %u", n, count_moved(before, after),
			least_moved(nodes, n, counts));
		for (uint32_t slot = 0; slot < LB_SLOTS16K; slot++) {
			EXPECT(after[slot] < n, "slot %u is nobody's", slot);
			after_counts[after[slot]]++;
		}
		for (size_t b = 0; b < n; b++)
			EXPECT(after_counts[b] == nodes[b].n_slots, "node %zu has %u", b,
				after_counts[b]);
		free(claims);
	}
}

static void
test_a_second_time_nothing_moves(void **state)
{
	static uint16_t once[LB_SLOTS16K], twice[LB_SLOTS16K];
	struct lb_slots16k_node nodes[] = {{3, 0}, {7, 0}, {7, 0}, {1, 0}, {90, 0}};
	struct lb_slots16k_claim claims[5];

	(void)state;
	memset(once, 0xff, sizeof(once));
	EXPECT(lb_slots16k_rebalance(nodes, 5, claims, once) == 0, "once");
	memcpy(twice, once, sizeof(twice));
	EXPECT(lb_slots16k_rebalance(nodes, 5, claims, twice) == 0, "twice");
	EXPECT(count_moved(once, twice) == 0, "%u moved", count_moved(once, twice));
}

static void
test_limits(void **state)
{
	static struct lb_slots16k_node nodes[LB_SLOTS16K_NODES_MAX + 1];
	static struct lb_slots16k_claim claims[LB_SLOTS16K_NODES_MAX];
	static uint16_t owners[LB_SLOTS16K];
	static const struct {
		const char *what;
		size_t n;
		uint32_t weight;
		int want;
	} rows[] = {
		{"nobody", 0, 1, -ENOENT},
		{"weights of 0", 3, 0, -ENOENT},
		{"too heavy", 3, LB_WEIGHT_MAX + 1, -EINVAL},
		{"too many", LB_SLOTS16K_NODES_MAX + 1, 1, -E2BIG},
		{"the most", LB_SLOTS16K_NODES_MAX, LB_WEIGHT_MAX, 0},
	};

	(void)state;
	memset(owners, 0xee, sizeof(owners));
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint16_t before = owners[5];

		for (size_t b = 0; b < rows[i].n; b++)
			nodes[b].weight = rows[i].weight;
		EXPECT(lb_slots16k_rebalance(nodes, rows[i].n, claims, owners) == rows[i].want,
			"rebalance: %s", rows[i].what);
		EXPECT(rows[i].want == 0 || owners[5] == before, "untouched: %s", rows[i].what);
		EXPECT(lb_slots16k_assign(nodes, rows[i].n, owners) == rows[i].want,
			"assign: %s", rows[i].what);
		EXPECT(rows[i].want == 0 || owners[5] == before, "untouched: %s", rows[i].what);
	}
	for (uint32_t slot = 0; slot < LB_SLOTS16K; slot++)
		EXPECT(owners[slot] == slot, "each has one: %u", slot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc16_of_known_texts),
		cmocka_unit_test(test_slots_that_redis_and_its_clients_state),
		cmocka_unit_test(test_what_is_hashed_of_a_key),
		cmocka_unit_test(test_ranges_are_those_of_redis_cli),
		cmocka_unit_test(test_nodes_that_join_and_leave),
		cmocka_unit_test(test_no_way_moves_fewer_slots),
		cmocka_unit_test(test_a_second_time_nothing_moves),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
