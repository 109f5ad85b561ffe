/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_flow_lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_limits.h"
#include "rounds.h"
#include "xrand.h"

#define N_ENTRIES (1u << 19) /* the smallest table */
#define N_WAYS    4u
#define MS        UINT64_C(1000000)
#define S         UINT64_C(1000000000)

static const struct lb_flow_table_conf usual = {
	.n_entries = N_ENTRIES,
	.timeout_ns = {10 * S, 900 * S, 30 * S, 60 * S},
};

/* Memory of exactly the promised size, so that ASan sees the byte after. */
static struct lb_flow_table *
new_table(const struct lb_flow_table_conf *conf, uint64_t now_ns)
{
	const size_t bytes = lb_flow_table_bytes(conf->n_entries);
	struct lb_flow_table *table = NULL;
	uint8_t *mem;

	assert_int_equal(bytes % LB_CACHE_LINE, 0);
	mem = aligned_alloc(LB_CACHE_LINE, bytes);
	assert_non_null(mem);
	for (size_t i = 0; i < bytes; i++)
		mem[i] = 0;
	assert_int_equal(lb_flow_table_init(mem, conf, now_ns, &table), 0);
	assert_ptr_equal(table, mem);
	return table;
}

static struct lb_flow_hash
random_hash(uint64_t *seed)
{
	struct lb_flow_hash hash;

	hash.print = xrand(seed);
	hash.place = xrand(seed);
	return hash;
}

/* Hashes of one first bucket. */
static void
fill_same_bucket(struct lb_flow_hash *out, size_t n)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	uint64_t seed = 99;
	size_t n_found = 0;
	uint32_t bucket = 0;

	while (n_found < n) {
		const struct lb_flow_hash hash = random_hash(&seed);
		const struct lb_flow_place place = lb_flow_locate(table, &hash);

		if (n_found == 0)
			bucket = place.bucket;
		if (place.bucket == bucket)
			out[n_found++] = hash;
	}
	free(table);
}

static struct lb_flow_table_stats
stats_of(const struct lb_flow_table *table)
{
	struct lb_flow_table_stats stats;

	lb_flow_table_stats(table, &stats);
	return stats;
}

/* Length of a tick, in the words of the header. */
static uint64_t
tick_ns(uint64_t longest_ns)
{
	uint64_t tick = 1;

	while (longest_ns / (tick * 2) >= 1u << 20)
		tick *= 2;
	return tick;
}

static void
test_sizes_are_what_the_header_says(void **state)
{
	static const struct {
		const char *sentence;
		uint32_t wanted;
		uint32_t entries;
	} rows[] = {
		{"one is rounded up to 2^19", 1, 1u << 19},
		{"2^19 is kept", 1u << 19, 1u << 19},
		{"one more is the next power of two", (1u << 19) + 1, 1u << 20},
		{"a million", 1000000, 1u << 20},
		{"the largest", LB_FLOW_ENTRIES_MAX, LB_FLOW_ENTRIES_MAX},
		{"none", 0, 0},
		{"more than the largest", LB_FLOW_ENTRIES_MAX + 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const size_t bytes = lb_flow_table_bytes(rows[i].wanted);
		const size_t least = (size_t)rows[i].entries * 20;

		EXPECT(lb_flow_table_entries(rows[i].wanted) == rows[i].entries, "%s",
			rows[i].sentence);
		EXPECT((bytes == 0) == (rows[i].entries == 0), "%s: bytes", rows[i].sentence);
		EXPECT(bytes == 0 || (bytes >= least && bytes <= least + 256),
			"%s: 20 bytes a flow", rows[i].sentence);
	}
}

static void
test_bad_configurations_are_refused(void **state)
{
	static const struct {
		const char *sentence;
		uint64_t timeout_ns;
		uint32_t n_entries;
		int error;
	} rows[] = {
		{"the shortest timeout", MS, 1, 0},
		{"the longest timeout", LB_FLOW_TIMEOUT_S_MAX * S, 1, 0},
		{"a timeout too short", MS - 1, 1, -EINVAL},
		{"a timeout too long", LB_FLOW_TIMEOUT_S_MAX * S + 1, 1, -EINVAL},
		{"no timeout", 0, 1, -EINVAL},
		{"no entries", S, 0, -EINVAL},
		{"too many entries", S, LB_FLOW_ENTRIES_MAX + 1, -EINVAL},
	};
	struct lb_flow_table *mem = new_table(&usual, 0);

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		for (size_t k = 0; k < LB_FLOW_N_TIMEOUTS; k++) {
			struct lb_flow_table_conf conf = usual;
			struct lb_flow_table *out = NULL;

			conf.n_entries = rows[i].n_entries;
			conf.timeout_ns[k] = rows[i].timeout_ns;
			EXPECT(lb_flow_table_init(mem, &conf, 0, &out) == rows[i].error, "%s",
				rows[i].sentence);
			EXPECT((out != NULL) == (rows[i].error == 0), "%s: out",
				rows[i].sentence);
		}
	free(mem);
}

static void
test_a_flow_is_found_with_its_backend(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	uint64_t seed = 1;
	const struct lb_flow_hash hash = random_hash(&seed);
	uint32_t ref;

	(void)state;
	assert_int_equal(lb_flow_find(table, &hash, 0), LB_FLOW_NONE);
	ref = lb_flow_insert(table, &hash, LB_BACKEND_IDS_MAX - 1, LB_FLOW_SYN, 7, 0);
	assert_int_equal(lb_flow_find(table, &hash, 0), ref);
	assert_int_equal(lb_flow_backend(table, ref), LB_BACKEND_IDS_MAX - 1);
	lb_flow_set_backend(table, ref, 5);
	assert_int_equal(lb_flow_backend(table, ref), 5);
	lb_flow_set_backend(table, ref, 0);
	assert_int_equal(lb_flow_backend(table, ref), 0);
	assert_int_equal(lb_flow_find(table, &hash, 0), ref);
	assert_true(lb_flow_is_repeated_syn(table, ref, 7));
	free(table);
}

/* Of a hash's 128 bits 96 are stored: all of the place, and 32 others. */
static void
test_every_stored_bit_tells_flows_apart(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	const struct lb_flow_hash zero = {.print = 0, .place = 0};

	(void)state;
	(void)lb_flow_insert(table, &zero, 0, LB_FLOW_SYN, 0, 0);
	for (unsigned int bit = 0; bit < 64; bit++) {
		struct lb_flow_hash other = zero;

		other.print ^= UINT64_C(1) << bit;
		EXPECT((lb_flow_find(table, &other, 0) == LB_FLOW_NONE) == (bit < 32),
			"bit %u of print", bit);
		other = zero;
		other.place ^= UINT64_C(1) << bit;
		EXPECT(lb_flow_find(table, &other, 0) == LB_FLOW_NONE, "bit %u of place", bit);
	}
	free(table);
}

enum {
	DEAD_AFTER_SYN = LB_FLOW_TIMEOUT_TCP_SYN,
	DEAD_AFTER_TCP,
	DEAD_AFTER_CLOSE,
	DEAD_AFTER_UDP
};

/* What events make of an entry shows in its timeout. */
static void
test_events_choose_the_timeout(void **state)
{
	static const struct {
		const char *sentence;
		enum lb_flow_event events[4];
		size_t n_events;
		size_t timeout;
	} rows[] = {
		{"a SYN", {LB_FLOW_SYN}, 1, DEAD_AFTER_SYN},
		{"a segment", {LB_FLOW_SEGMENT}, 1, DEAD_AFTER_SYN},
		{"a first FIN", {LB_FLOW_CLOSE}, 1, DEAD_AFTER_SYN},
		{"a repeated SYN does not confirm", {LB_FLOW_SYN, LB_FLOW_SYN}, 2,
			DEAD_AFTER_SYN},
		{"a segment confirms", {LB_FLOW_SYN, LB_FLOW_SEGMENT}, 2, DEAD_AFTER_TCP},
		{"two segments confirm", {LB_FLOW_SEGMENT, LB_FLOW_SEGMENT}, 2, DEAD_AFTER_TCP},
		{"a repeated SYN does not take it back",
			{LB_FLOW_SYN, LB_FLOW_SEGMENT, LB_FLOW_SYN}, 3, DEAD_AFTER_TCP},
		{"FIN after SYN closes", {LB_FLOW_SYN, LB_FLOW_CLOSE}, 2, DEAD_AFTER_CLOSE},
		{"FIN after FIN closes", {LB_FLOW_CLOSE, LB_FLOW_CLOSE}, 2, DEAD_AFTER_CLOSE},
		{"FIN closes for good",
			{LB_FLOW_SYN, LB_FLOW_SEGMENT, LB_FLOW_CLOSE, LB_FLOW_SEGMENT}, 4,
			DEAD_AFTER_CLOSE},
		{"a SYN repeated does not open it",
			{LB_FLOW_SYN, LB_FLOW_SEGMENT, LB_FLOW_CLOSE, LB_FLOW_SYN}, 4,
			DEAD_AFTER_CLOSE},
		{"a datagram", {LB_FLOW_DATAGRAM}, 1, DEAD_AFTER_UDP},
		{"two datagrams", {LB_FLOW_DATAGRAM, LB_FLOW_DATAGRAM}, 2, DEAD_AFTER_UDP},
	};
	const uint64_t tick = tick_ns(900 * S);
	uint64_t seed = 2;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_flow_table *table = new_table(&usual, 0);
		const struct lb_flow_hash hash = random_hash(&seed);
		const uint64_t timeout = usual.timeout_ns[rows[i].timeout];
		uint64_t now = 0;
		uint32_t ref = lb_flow_insert(table, &hash, 9, rows[i].events[0], 0, now);

		for (size_t k = 1; k < rows[i].n_events; k++) {
			now += 5 * S;
			EXPECT(lb_flow_find(table, &hash, now) == ref, "%s", rows[i].sentence);
			lb_flow_touch(table, ref, rows[i].events[k], now);
		}
		EXPECT(lb_flow_find(table, &hash, now + timeout) == ref, "%s: dead too early",
			rows[i].sentence);
		EXPECT(lb_flow_backend(table, ref) == 9, "%s: backend", rows[i].sentence);
		EXPECT(lb_flow_find(table, &hash, now + timeout + 2 * tick) == LB_FLOW_NONE,
			"%s: dead too late", rows[i].sentence);
		free(table);
	}
}

static void
test_only_the_syn_that_made_it_is_repeated(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	uint64_t seed = 3;
	const struct lb_flow_hash a = random_hash(&seed);
	const struct lb_flow_hash b = random_hash(&seed);
	uint32_t ref = lb_flow_insert(table, &a, 1, LB_FLOW_SYN, 0xfffffffe, 0);

	(void)state;
	assert_true(lb_flow_is_repeated_syn(table, ref, 0xfffffffe));
	assert_false(lb_flow_is_repeated_syn(table, ref, 0xffffffff));
	lb_flow_touch(table, ref, LB_FLOW_SEGMENT, 0);
	lb_flow_touch(table, ref, LB_FLOW_CLOSE, 0);
	lb_flow_set_backend(table, ref, 2);
	assert_true(lb_flow_is_repeated_syn(table, ref, 0xfffffffe));

	/* Made by a segment: no sequence number is its SYN's, 0 neither. */
	ref = lb_flow_insert(table, &b, 1, LB_FLOW_SEGMENT, 77, 0);
	assert_false(lb_flow_is_repeated_syn(table, ref, 77));
	assert_false(lb_flow_is_repeated_syn(table, ref, 0));
	lb_flow_restart(table, ref, 3, 78, 0);
	assert_true(lb_flow_is_repeated_syn(table, ref, 78));
	assert_int_equal(lb_flow_backend(table, ref), 3);
	free(table);
}

static void
test_a_place_taken_over_forgets_the_syn(void **state)
{
	struct lb_flow_hash hashes[5];
	struct lb_flow_table *table = new_table(&usual, 0);
	uint32_t ref;

	(void)state;
	fill_same_bucket(hashes, 5);
	for (size_t i = 0; i < 4; i++)
		(void)lb_flow_insert(table, &hashes[i], 0, LB_FLOW_SYN, 55, 0);
	ref = lb_flow_insert(table, &hashes[4], 0, LB_FLOW_SEGMENT, 55, 0);
	assert_int_not_equal(ref, LB_FLOW_NONE);
	assert_false(lb_flow_is_repeated_syn(table, ref, 55));
	free(table);
}

static void
test_restart_begins_again_in_place(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	uint64_t seed = 4;
	const struct lb_flow_hash hash = random_hash(&seed);
	const uint64_t dead = 10 * S + 2 * tick_ns(900 * S);
	const uint32_t ref = lb_flow_insert(table, &hash, 1, LB_FLOW_SYN, 1, 0);

	(void)state;
	lb_flow_touch(table, ref, LB_FLOW_SEGMENT, 0);
	lb_flow_touch(table, ref, LB_FLOW_CLOSE, 0);
	lb_flow_restart(table, ref, 2, 2, 20 * S);
	assert_int_equal(lb_flow_find(table, &hash, 20 * S), ref);
	assert_int_equal(lb_flow_backend(table, ref), 2);
	assert_false(lb_flow_is_repeated_syn(table, ref, 1));
	assert_true(lb_flow_is_repeated_syn(table, ref, 2));
	assert_int_equal(lb_flow_find(table, &hash, 30 * S), ref);
	assert_int_equal(lb_flow_find(table, &hash, 20 * S + dead), LB_FLOW_NONE);
	assert_int_equal(stats_of(table).live, 1);
	assert_int_equal(stats_of(table).inserted, 1);
	free(table);
}

/* In a table with much room none gives way; who does in a full one, a property test says. */
static void
test_room_is_made_in_the_promised_order(void **state)
{
	struct lb_flow_hash h[9];
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_table_stats stats;
	uint32_t refs[4];
	uint32_t second;

	(void)state;
	fill_same_bucket(h, 9);

	/* Free places of the first bucket, then one of the second: none gives way. */
	for (uint32_t i = 0; i < 4; i++) {
		refs[i] = lb_flow_insert(table, &h[i], i, LB_FLOW_SYN, 0, i * S);
		assert_int_equal(refs[i] / 4, lb_flow_locate(table, &h[i]).bucket);
	}
	second = lb_flow_insert(table, &h[4], 4, LB_FLOW_DATAGRAM, 0, 4 * S);
	assert_int_equal(second / 4, lb_flow_locate(table, &h[4]).second);
	assert_int_equal(lb_flow_find(table, &h[4], 4 * S), second);
	assert_int_equal(lb_flow_backend(table, second), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(lb_flow_find(table, &h[i], 4 * S), refs[i]);
	stats = stats_of(table);
	assert_int_equal(stats.live, 5);
	assert_int_equal(stats.inserted, 5);
	assert_int_equal(stats.evicted, 0);

	/* Closing times out in 30 s, and gives way unswept, before the second is looked at. */
	for (uint32_t i = 0; i < 4; i++)
		lb_flow_touch(table, refs[i], i == 3 ? LB_FLOW_CLOSE : LB_FLOW_SEGMENT, 7 * S);
	assert_int_equal(lb_flow_insert(table, &h[8], 8, LB_FLOW_SYN, 0, 38 * S), refs[3]);
	assert_int_equal(lb_flow_find(table, &h[8], 38 * S), refs[3]);
	stats = stats_of(table);
	assert_int_equal(stats.expired, 1);
	assert_int_equal(stats.evicted, 0);
	assert_int_equal(stats.live, 5);
	free(table);
}

/* A flow that timed out, and is there anew behind its old entry. */
static void
test_a_dead_entry_hides_no_live_one(void **state)
{
	struct lb_flow_hash h[2];
	struct lb_flow_table *table = new_table(&usual, 0);
	uint32_t ref;

	(void)state;
	fill_same_bucket(h, 2);
	(void)lb_flow_insert(table, &h[0], 0, LB_FLOW_SYN, 0, 0);
	(void)lb_flow_insert(table, &h[1], 1, LB_FLOW_SYN, 0, 0);
	ref = lb_flow_insert(table, &h[0], 7, LB_FLOW_SYN, 1, 13 * S);
	assert_int_equal(ref % N_WAYS, 2); /* a free place comes first */
	assert_int_equal(lb_flow_find(table, &h[0], 13 * S), ref);
	assert_int_equal(lb_flow_backend(table, ref), 7);
	free(table);
}

/* Tags that differ in one half alone, and several that are wanted. */
static void
test_tags_are_compared_as_plainly(void **state)
{
	struct lb_flow_bucket bucket;
	uint64_t seed = 31;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		const uint64_t half[2] = {xrand(&seed) >> 32, xrand(&seed) >> 32};
		uint64_t wanted = half[0] << 32 | half[1];

		for (uint32_t way = 0; way < N_WAYS; way++)
			bucket.tag[way] =
				half[xrand_below(&seed, 2)] << 32 | half[xrand_below(&seed, 2)];
		EXPECT(lb_flow_match(bucket.tag, wanted) ==
				lb_flow_match_plainly(bucket.tag, wanted),
			"case %u", i);
	}
}

/* Entries of every state and age, also those beside which a timeout lies, alike and free ones.
 */
static void
fill_at_random(const struct lb_flow_table *table, struct lb_flow_bucket *bucket, uint32_t tick,
	uint64_t *seed)
{
	for (uint32_t way = 0; way < N_WAYS; way++) {
		const uint32_t entry_state = xrand_below(seed, LB_FLOW_N_STATES);
		const uint32_t near =
			table->timeout_ticks[entry_state] + xrand_below(seed, 3) - 1;
		const uint32_t age = xrand_below(seed, 2) == 0 ? near : (uint32_t)xrand(seed);
		const uint64_t other = xrand(seed) & ~LB_FLOW_STATE_MASK;

		bucket->rest[way] = lb_flow_with_seen(other, (tick - age) & LB_FLOW_SEEN_MASK) |
				    entry_state;
		if (way > 0 && xrand_below(seed, 4) == 0)
			bucket->rest[way] = bucket->rest[way - 1];
	}
}

/* Most buckets of a flood have neither dead nor unused entries. */
static void
revive(const struct lb_flow_table *table, struct lb_flow_bucket *bucket, uint32_t tick,
	uint64_t *seed)
{
	const uint32_t shortest = table->timeout_ticks[LB_FLOW_FREE];

	for (uint32_t way = 0; way < N_WAYS; way++) {
		const uint32_t age = xrand_below(seed, 16) == 0
					     ? shortest + xrand_below(seed, 2)
					     : xrand_below(seed, shortest);

		bucket->rest[way] =
			lb_flow_with_seen(bucket->rest[way], (tick - age) & LB_FLOW_SEEN_MASK) &
			~LB_FLOW_STATE_MASK;
		bucket->rest[way] |= LB_FLOW_FREE + 1 + xrand_below(seed, LB_FLOW_N_STATES - 1);
	}
}

static void
test_who_gives_way_is_ranked_as_plainly(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_bucket first;
	struct lb_flow_bucket second;
	uint64_t seed = 37;

	(void)state;
	for (uint32_t i = 0; i < 300000; i++) {
		const uint32_t tick = (uint32_t)xrand(&seed) & LB_FLOW_SEEN_MASK;

		fill_at_random(table, &first, tick, &seed);
		fill_at_random(table, &second, tick, &seed);
		if (xrand_below(&seed, 2) == 0)
			revive(table, &first, tick, &seed);
		if (xrand_below(&seed, 2) == 0)
			revive(table, &second, tick, &seed);
		if (xrand_below(&seed, 8) == 0)
			second.rest[xrand_below(&seed, N_WAYS)] =
				first.rest[xrand_below(&seed, N_WAYS)];
		EXPECT(lb_flow_rank(table, first.rest, tick) ==
				lb_flow_rank_plainly(table, first.rest, tick),
			"case %u", i);
		EXPECT(lb_flow_choose(table, first.rest, second.rest, tick) ==
				lb_flow_choose_plainly(table, first.rest, second.rest, tick),
			"case %u, of two buckets", i);
	}
	free(table);
}

static void
test_timeouts_are_exact_at_every_phase(void **state)
{
	static const uint64_t timeouts_s[] = {1, 600, 86400};
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(timeouts_s); i++) {
		const uint64_t timeout = timeouts_s[i] * S;
		const uint64_t tick = tick_ns(timeout);
		struct lb_flow_table_conf conf = usual;
		struct lb_flow_table *table;
		uint64_t now = 12345;

		for (size_t k = 0; k < LB_FLOW_N_TIMEOUTS; k++)
			conf.timeout_ns[k] = timeout;
		conf.timeout_ns[LB_FLOW_TIMEOUT_TCP_SYN] = 7 * MS;
		table = new_table(&conf, now);
		for (uint32_t phase = 0; phase < 2000; phase += ROUNDS_THINNED) {
			const struct lb_flow_hash hash = random_hash(&seed);
			uint32_t ref;

			/* Anywhere in the 23 bits of ticks, anywhere within a tick. */
			now += xrand(&seed) % (timeout * 9) + xrand(&seed) % tick;
			lb_flow_table_expire(table, now);
			ref = lb_flow_insert(table, &hash, 3, LB_FLOW_SYN, 0, now);
			EXPECT(lb_flow_find(table, &hash, now + 7 * MS) == ref, "SYN alive");
			EXPECT(lb_flow_find(table, &hash, now + 7 * MS + 2 * tick) ==
					LB_FLOW_NONE,
				"SYN dead");

			lb_flow_touch(table, ref, LB_FLOW_SEGMENT, now);
			EXPECT(lb_flow_find(table, &hash, now + timeout - tick) == ref,
				"alive a tick before, %u s", (unsigned int)timeouts_s[i]);
			EXPECT(lb_flow_find(table, &hash, now + timeout) == ref, "alive at T");
			EXPECT(lb_flow_find(table, &hash, now + timeout + 2 * tick) ==
					LB_FLOW_NONE,
				"dead two ticks after, %u s", (unsigned int)timeouts_s[i]);
		}
		free(table);
	}
}

/* One tick for all: how late a short one is depends on the longest. */
static void
test_a_short_timeout_beside_a_long_one(void **state)
{
	static const uint64_t longest_s[] = {1, 60, 900, 86400, LB_FLOW_TIMEOUT_S_MAX};
	uint64_t seed = 6;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(longest_s); i++) {
		const uint64_t tick = tick_ns(longest_s[i] * S);
		struct lb_flow_table_conf conf = usual;
		struct lb_flow_table *table;
		uint64_t latest = 0;
		uint64_t now = 12345;

		for (size_t k = 0; k < LB_FLOW_N_TIMEOUTS; k++)
			conf.timeout_ns[k] = S;
		conf.timeout_ns[LB_FLOW_TIMEOUT_TCP] = longest_s[i] * S;
		table = new_table(&conf, now);
		for (uint32_t phase = 0; phase < 500; phase++) {
			const struct lb_flow_hash hash = random_hash(&seed);
			uint64_t late = 0;

			now += 3 * S + xrand(&seed) % (3 * tick);
			lb_flow_table_expire(table, now);
			(void)lb_flow_insert(table, &hash, 3, LB_FLOW_DATAGRAM, 0, now);
			while (lb_flow_find(table, &hash, now + S + late) != LB_FLOW_NONE)
				late += tick / 16 + 1;
			latest = late > latest ? late : latest;
			EXPECT(late > 0, "alive at T, beside %u s", (unsigned int)longest_s[i]);
		}
		EXPECT(latest <= 2 * tick + tick / 16 + 1, "late beside %u s",
			(unsigned int)longest_s[i]);
		free(table);
	}
}

/* The sweep frees by the same rule, and frees everything within one longest timeout. */
static void
test_sweep_frees_what_timed_out(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_hash hashes[1000];
	uint64_t seed = 6;
	uint64_t now = 0;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(hashes); i++) {
		hashes[i] = random_hash(&seed);
		(void)lb_flow_insert(table, &hashes[i], 0, LB_FLOW_SYN, 0, 0);
	}
	for (; now <= 10 * S; now += 100 * MS)
		lb_flow_table_expire(table, now);
	assert_int_equal(stats_of(table).live, LB_N_ELEMENTS(hashes));
	assert_int_equal(stats_of(table).expired, 0);

	/* A part of the time sweeps a part of the table. */
	for (; now < 110 * S; now += 100 * MS)
		lb_flow_table_expire(table, now);
	EXPECT(stats_of(table).live > 700 && stats_of(table).live < 950,
		"100 s of 900: %u live", stats_of(table).live);
	for (; now < 912 * S; now += 100 * MS)
		lb_flow_table_expire(table, now);
	assert_int_equal(stats_of(table).live, 0);
	assert_int_equal(stats_of(table).expired, LB_N_ELEMENTS(hashes));
	free(table);
}

static void
test_sweep_spares_the_living(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_hash hashes[1000];
	uint32_t refs[LB_N_ELEMENTS(hashes)];
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(hashes); i++) {
		hashes[i] = random_hash(&seed);
		refs[i] = lb_flow_insert(table, &hashes[i], (uint32_t)i, LB_FLOW_SEGMENT, 0, 0);
		lb_flow_touch(table, refs[i], LB_FLOW_SEGMENT, 0);
	}
	/* Several wraps of 2^23 ticks, every flow seen at the last moment of its life. */
	for (uint64_t now = 0; now < 36000 * S; now += 900 * S) {
		lb_flow_table_expire(table, now);
		for (size_t i = 0; i < LB_N_ELEMENTS(hashes); i++) {
			EXPECT(lb_flow_find(table, &hashes[i], now) == refs[i], "flow %zu", i);
			lb_flow_touch(table, refs[i], LB_FLOW_SEGMENT, now);
		}
	}
	assert_int_equal(stats_of(table).expired, 0);
	free(table);
}

static void
test_a_jump_in_time_revives_nothing(void **state)
{
	/* 8 longest timeouts are just short of 2^23 ticks or beyond, as the tick falls. */
	static const uint64_t longest_s[] = {1, 2, 500, 900, 86400};
	static const uint64_t jumps[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 100, 1000};
	const size_t n_jumps = 2 * LB_N_ELEMENTS(jumps);
	uint64_t seed = 8;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(longest_s); i++) {
		struct lb_flow_table_conf conf = usual;
		const uint64_t longest = longest_s[i] * S;
		const uint64_t wrap = tick_ns(longest) << 23;
		struct lb_flow_table *table;
		uint64_t now = 0;

		for (size_t k = 0; k < LB_FLOW_N_TIMEOUTS; k++)
			conf.timeout_ns[k] = longest;
		table = new_table(&conf, now);
		for (size_t k = 0; k < n_jumps; k++) {
			const struct lb_flow_hash hash = random_hash(&seed);
			const uint64_t n = jumps[k / 2];

			(void)lb_flow_insert(table, &hash, 0, LB_FLOW_SEGMENT, 0, now);
			now += k % 2 == 0 ? n * longest + 2 * tick_ns(longest) : n * wrap;
			lb_flow_table_expire(table, now);
			EXPECT(lb_flow_find(table, &hash, now) == LB_FLOW_NONE, "jump %u, %u s",
				(unsigned int)k, (unsigned int)longest_s[i]);
		}
		/* A jump of just one timeout may leave what has not been swept. */
		now += longest + 2 * tick_ns(longest);
		lb_flow_table_expire(table, now);
		assert_int_equal(stats_of(table).live, 0);
		assert_int_equal(stats_of(table).expired, n_jumps);
		free(table);
	}
}

/* Untouched entries over several wraps, at steps from tiny to the largest that is no jump. */
static void
test_slow_time_revives_nothing(void **state)
{
	static const uint64_t steps_us[] = {100, 3000, 333333, 999999, 1000000};
	const uint64_t longest = S;
	const uint64_t wrap = tick_ns(longest) << 23;
	struct lb_flow_table_conf conf = usual;
	uint64_t seed = 9;

	(void)state;
	for (size_t k = 0; k < LB_FLOW_N_TIMEOUTS; k++)
		conf.timeout_ns[k] = longest;
	for (size_t i = 0; i < LB_N_ELEMENTS(steps_us); i++) {
		const uint64_t step = steps_us[i] * 1000;
		struct lb_flow_table *table = new_table(&conf, 0);
		struct lb_flow_hash hashes[64];
		uint64_t now = 0;
		uint64_t all_dead;

		for (size_t k = 0; k < LB_N_ELEMENTS(hashes); k++) {
			/* Born at different times of the sweep's round. */
			now += 20 * MS;
			lb_flow_table_expire(table, now);
			hashes[k] = random_hash(&seed);
			(void)lb_flow_insert(table, &hashes[k], 0, LB_FLOW_DATAGRAM, 0, now);
		}
		all_dead = now + longest + 2 * tick_ns(longest);
		for (uint64_t n = 0; now < all_dead + 5 * wrap; now += step, n++) {
			lb_flow_table_expire(table, now);
			if (now < all_dead || (step < MS && n % 64 != 0))
				continue;
			for (size_t k = 0; k < LB_N_ELEMENTS(hashes); k++)
				EXPECT(lb_flow_find(table, &hashes[k], now) == LB_FLOW_NONE,
					"flow %zu lives at step %zu", k, i);
		}
		assert_int_equal(stats_of(table).live, 0);
		assert_int_equal(stats_of(table).expired, LB_N_ELEMENTS(hashes));
		free(table);
	}
}

/* Steps in which less than a bucket is due: what is left over adds up. */
static void
test_smallest_steps_sweep_too(void **state)
{
	struct lb_flow_table_conf conf = usual;
	struct lb_flow_table *table;
	uint64_t seed = 13;

	(void)state;
	for (size_t k = 0; k < LB_FLOW_N_TIMEOUTS; k++)
		conf.timeout_ns[k] = S;
	conf.timeout_ns[LB_FLOW_TIMEOUT_TCP_SYN] = MS;
	table = new_table(&conf, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);

		(void)lb_flow_insert(table, &hash, 0, LB_FLOW_SYN, 0, 0);
	}
	for (uint64_t now = 0; now < S + 2 * MS; now += 3000)
		lb_flow_table_expire(table, now);
	assert_int_equal(stats_of(table).live, 0);
	free(table);
}

static void
test_time_does_not_go_back(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 2000 * S);
	uint64_t seed = 10;
	const struct lb_flow_hash hash = random_hash(&seed);
	const uint32_t ref = lb_flow_insert(table, &hash, 0, LB_FLOW_SYN, 0, 2000 * S);

	(void)state;
	lb_flow_table_expire(table, 0);
	lb_flow_table_expire(table, 1999 * S);
	assert_int_equal(lb_flow_find(table, &hash, 2000 * S), ref);
	assert_int_equal(stats_of(table).live, 1);
	free(table);
}

/* Half the table is confirmed; ten tables of SYNs push none of it out. */
static void
test_a_flood_evicts_itself_alone(void **state)
{
	const size_t n_confirmed = N_ENTRIES / 2;
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_hash *kept = calloc(n_confirmed, sizeof(*kept));
	uint64_t seed = 11;
	uint32_t n_kept = 0;
	uint64_t now = 0;

	(void)state;
	assert_non_null(kept);
	while (n_kept < n_confirmed) {
		const uint32_t backend = n_kept;
		uint32_t ref;

		kept[n_kept] = random_hash(&seed);
		ref = lb_flow_insert(table, &kept[n_kept], backend, LB_FLOW_SYN, 0, 0);
		if (ref == LB_FLOW_NONE)
			continue;
		lb_flow_touch(table, ref, LB_FLOW_SEGMENT, 0);
		n_kept++;
	}
	for (uint32_t i = 0; i < 10 * N_ENTRIES; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);
		uint32_t ref;

		now += 10000; /* 26 s in all */
		lb_flow_table_expire(table, now);
		ref = lb_flow_insert(table, &hash, 0, LB_FLOW_SYN, i, now);
		/* One that is answered, in a thousand, stays too. */
		if (i % 1000 == 0 && ref != LB_FLOW_NONE) {
			lb_flow_touch(table, ref, LB_FLOW_SEGMENT, now);
			kept[i / 1000] = hash;
			lb_flow_set_backend(table, ref, i / 1000);
		}
	}
	for (uint32_t i = 0; i < n_confirmed; i++) {
		const uint32_t ref = lb_flow_find(table, &kept[i], now);

		EXPECT(ref != LB_FLOW_NONE, "flow %u is gone", i);
		EXPECT(lb_flow_backend(table, ref) == i, "backend of flow %u", i);
	}
	EXPECT(stats_of(table).evicted > N_ENTRIES, "the flood was too small to evict");
	EXPECT(stats_of(table).live <= N_ENTRIES, "more live than entries");
	free(kept);
	free(table);
}

static void
test_random_keys_are_not_taken_for_others(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_table_stats stats;
	uint64_t seed = 12;
	uint64_t again = 12;
	uint32_t n_found = 0;

	(void)state;
	for (uint32_t i = 0; i < N_ENTRIES; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);
		uint32_t ref;

		EXPECT(lb_flow_find(table, &hash, 0) == LB_FLOW_NONE, "a false hit");
		ref = lb_flow_insert(table, &hash, i, LB_FLOW_SEGMENT, 0, 0);
		if (ref != LB_FLOW_NONE)
			lb_flow_touch(table, ref, LB_FLOW_SEGMENT, 0);
	}
	for (uint32_t i = 0; i < N_ENTRIES; i++) {
		const struct lb_flow_hash hash = random_hash(&again);
		const uint32_t ref = lb_flow_find(table, &hash, 0);

		if (ref == LB_FLOW_NONE)
			continue;
		EXPECT(lb_flow_backend(table, ref) == i, "flow %u has another's entry", i);
		n_found++;
	}
	for (uint32_t i = 0; i < 4 * N_ENTRIES; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);

		EXPECT(lb_flow_find(table, &hash, 0) == LB_FLOW_NONE, "a false hit");
	}

	stats = stats_of(table);
	assert_int_equal(n_found, stats.live);
	assert_int_equal(stats.live, stats.inserted);
	assert_int_equal(stats.refused, N_ENTRIES - stats.inserted);
	/* With one bucket each it would be 80.5 %: of four on average, 3.22 find a place. */
	assert_in_range(stats.live, N_ENTRIES / 100 * 90, N_ENTRIES);
	free(table);
}

/* How many confirmed flows find room, the fuller the table is. */
static void
test_nearly_all_flows_find_room(void **state)
{
	static const struct {
		unsigned int tenths; /* of the entries, as many flows */
		double refused_max;  /* share of them */
	} rows[] = {{1, 0}, {3, 0}, {5, 0}, {7, 0.0001}, {10, 0.05}};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint32_t n = N_ENTRIES / 10 * rows[i].tenths;
		struct lb_flow_table *table = new_table(&usual, 0);
		uint64_t seed = 21;
		double refused;

		for (uint32_t k = 0; k < n; k++) {
			const struct lb_flow_hash hash = random_hash(&seed);
			const uint32_t ref =
				lb_flow_insert(table, &hash, 0, LB_FLOW_SEGMENT, 0, 0);

			if (ref != LB_FLOW_NONE)
				lb_flow_touch(table, ref, LB_FLOW_SEGMENT, 0);
		}
		refused = (double)stats_of(table).refused / n;
		print_message("%u tenths of the entries in use: %.4f %% of the flows found no "
			      "room\n",
			rows[i].tenths, 100 * refused);
		EXPECT(refused <= rows[i].refused_max, "%.5f of %u tenths found no room",
			refused, rows[i].tenths);
		free(table);
	}
}

/* As many flows as there may be before their second packets come, at 48 % of the entries. */
static void
test_flows_whose_second_packet_is_late_find_room(void **state)
{
	const uint32_t n = N_ENTRIES / 100 * 48;
	struct lb_flow_table *table = new_table(&usual, 0);
	uint64_t seed = 41;
	uint64_t again = 41;
	uint32_t n_gone = 0;

	(void)state;
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);

		(void)lb_flow_insert(table, &hash, 0, LB_FLOW_SYN, i, (uint64_t)i * 1000);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_flow_hash hash = random_hash(&again);

		n_gone += lb_flow_find(table, &hash, (uint64_t)n * 1000) == LB_FLOW_NONE;
	}
	EXPECT(n_gone == 0, "%u of %u are gone", n_gone, n);
	assert_int_equal(stats_of(table).evicted, 0);
	free(table);
}

static void
test_a_found_entry_says_what_it_knows(void **state)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	const uint64_t tick = tick_ns(900 * S);
	uint64_t seed = 4;
	const struct lb_flow_hash hash = random_hash(&seed);
	const uint32_t ref = lb_flow_insert(table, &hash, 77, LB_FLOW_SYN, 5, 100 * tick);
	static const struct {
		const char *sentence;
		enum lb_flow_event event;
		bool is_confirmed;
	} rows[] = {
		{"a SYN again", LB_FLOW_SYN, false},
		{"a segment", LB_FLOW_SEGMENT, true},
		{"the end", LB_FLOW_CLOSE, true},
	};
	struct lb_flow_info info;

	(void)state;
	lb_flow_read(table, ref, 100 * tick, &info);
	assert_int_equal(info.backend, 77);
	assert_false(info.is_confirmed);
	assert_int_equal(info.idle_ns, 0);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint64_t now_ns = (200 + i) * tick;

		lb_flow_touch(table, ref, rows[i].event, now_ns);
		lb_flow_read(table, ref, now_ns + 3 * tick, &info);
		EXPECT(info.is_confirmed == rows[i].is_confirmed, "%s", rows[i].sentence);
		EXPECT(info.idle_ns == 3 * tick, "%s: idle", rows[i].sentence);
		EXPECT(info.backend == 77, "%s: backend %u", rows[i].sentence, info.backend);
	}
	free(table);
}

#define N_TALLIED 50u

/* All of them, by so many buckets a call; one backend more than is asked for is there. */
static void
tally(const struct lb_flow_table *table, uint32_t n_buckets, uint64_t now_ns, uint32_t *counts)
{
	uint32_t n_calls = 1;
	uint32_t bucket = 0;

	memset(counts, 0, N_TALLIED * sizeof(*counts));
	while (lb_flow_tally(table, &bucket, n_buckets, now_ns, counts, N_TALLIED))
		n_calls++;
	assert_int_equal(bucket, N_ENTRIES / N_WAYS);
	assert_int_equal(n_calls, (N_ENTRIES / N_WAYS + n_buckets - 1) / n_buckets);
}

static void
test_tallies_are_those_of_a_model(void **state)
{
	static const uint32_t steps[] = {1, 512, 1000, N_ENTRIES};
	struct lb_flow_table *table = new_table(&usual, 0);
	uint32_t of_udp[N_TALLIED] = {0};
	uint32_t of_all[N_TALLIED] = {0};
	uint32_t *counts = calloc(N_TALLIED, sizeof(*counts));
	uint64_t seed = 5;

	(void)state;
	assert_non_null(counts);
	for (uint32_t i = 0; i < 10000; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);
		const uint32_t backend = (uint32_t)xrand(&seed) % (N_TALLIED + 1);
		const bool is_udp = xrand(&seed) % 3 == 0;

		assert_int_not_equal(lb_flow_insert(table, &hash, backend,
					     is_udp ? LB_FLOW_DATAGRAM : LB_FLOW_SYN, 0, 0),
			LB_FLOW_NONE);
		if (backend == N_TALLIED)
			continue;
		of_all[backend]++;
		of_udp[backend] += is_udp;
	}
	for (size_t i = 0; i < LB_N_ELEMENTS(steps); i++) {
		tally(table, steps[i], 10 * S, counts);
		assert_memory_equal(counts, of_all, sizeof(of_all));
		/* SYNs are over, though nobody has swept them yet. */
		tally(table, steps[i], 20 * S, counts);
		assert_memory_equal(counts, of_udp, sizeof(of_udp));
	}
	lb_flow_table_expire(table, 20 * S);
	tally(table, 512, 20 * S, counts);
	assert_memory_equal(counts, of_udp, sizeof(of_udp));
	memset(of_udp, 0, sizeof(of_udp));
	tally(table, 512, 61 * S, counts);
	assert_memory_equal(counts, of_udp, sizeof(of_udp));
	free(counts);
	free(table);
}

static void
test_flows_in_their_second_bucket_are_tallied_once(void **state)
{
	struct lb_flow_hash hashes[3 * N_WAYS];
	struct lb_flow_table *table = new_table(&usual, 0);
	uint32_t *counts = calloc(N_TALLIED, sizeof(*counts));
	uint32_t n_second = 0;
	uint32_t first = 0;

	(void)state;
	assert_non_null(counts);
	fill_same_bucket(hashes, LB_N_ELEMENTS(hashes));
	for (size_t i = 0; i < LB_N_ELEMENTS(hashes); i++) {
		const uint32_t ref =
			lb_flow_insert(table, &hashes[i], (uint32_t)i, LB_FLOW_DATAGRAM, 0, 0);

		assert_int_not_equal(ref, LB_FLOW_NONE);
		lb_flow_touch(table, ref, LB_FLOW_DATAGRAM, 0);
		first = i == 0 ? ref / N_WAYS : first;
		n_second += ref / N_WAYS != first;
	}
	EXPECT(n_second == 2 * N_WAYS, "%u in a second bucket", n_second);
	tally(table, 512, 0, counts);
	for (uint32_t i = 0; i < N_TALLIED; i++)
		EXPECT(counts[i] == (i < LB_N_ELEMENTS(hashes)), "flow %u: %u times", i,
			counts[i]);
	free(counts);
	free(table);
}

static struct lb_flow_key *
keep_keys(struct lb_flow_table *table)
{
	struct lb_flow_key *keys = calloc(N_ENTRIES, sizeof(*keys));

	assert_non_null(keys);
	assert_false(lb_flow_keeps_keys(table));
	lb_flow_keep_keys(table, keys);
	assert_true(lb_flow_keeps_keys(table));
	return keys;
}

/* Client 10.0.0.0 and i; UDP in one of three. */
static struct lb_flow_key
numbered_key(uint32_t i)
{
	const uint8_t client[] = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};

	return (struct lb_flow_key){
		.src = lb_addr_from_v4(client),
		.proto = i % 3 == 0 ? IPPROTO_UDP : IPPROTO_TCP,
	};
}

static uint32_t
number_of(const struct lb_flow_key *key)
{
	return (uint32_t)key->src.bytes[13] << 16 | (uint32_t)key->src.bytes[14] << 8 |
	       key->src.bytes[15];
}

static void
insert_numbered(struct lb_flow_table *table, uint32_t i, uint64_t *seed, uint64_t now_ns)
{
	const struct lb_flow_hash hash = random_hash(seed);
	const struct lb_flow_key key = numbered_key(i);
	const bool is_udp = key.proto == IPPROTO_UDP;
	const uint32_t ref = lb_flow_insert(table, &hash, i,
		is_udp ? LB_FLOW_DATAGRAM : LB_FLOW_SEGMENT, 0, now_ns);

	lb_flow_keep(table, ref, &key);
	if (ref != LB_FLOW_NONE && i % 5 == 0)
		lb_flow_touch(table, ref, is_udp ? LB_FLOW_DATAGRAM : LB_FLOW_SEGMENT, now_ns);
}

/* So full that entries move: what is beside them moves, too. */
static void
test_keys_stay_with_their_flows(void **state)
{
	static const struct lb_flow_query everything = {.backends = NULL};
	const uint32_t n_flows = N_ENTRIES / 5 * 4;
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_key *keys = keep_keys(table);
	struct lb_flow_entry entries[100];
	uint64_t seed = 8;
	struct lb_flow_walk walk = {0, 0};
	uint32_t n_listed = 0;

	(void)state;
	for (uint32_t i = 0; i < n_flows; i++)
		insert_numbered(table, i, &seed, 0);
	while (walk.bucket < lb_flow_n_buckets(table)) {
		size_t n;

		walk.end = walk.bucket + 512;
		n = lb_flow_list(table, &everything, 0, &walk, entries, LB_N_ELEMENTS(entries));

		for (size_t k = 0; k < n; k++)
			EXPECT(number_of(&entries[k].key) == entries[k].info.backend,
				"flow %u has the key of %u", entries[k].info.backend,
				number_of(&entries[k].key));
		n_listed += (uint32_t)n;
	}
	EXPECT(n_listed == stats_of(table).live, "%u listed", n_listed);
	free(keys);
	free(table);
}

struct query_row {
	const char *sentence;
	struct lb_flow_query query;
	const char *client; /* a prefix; NULL: any */
	uint8_t protocol;   /* 0: any */
	bool (*means)(uint32_t i);
};

static bool
means_all(uint32_t i)
{
	(void)i;
	return true;
}

static bool
means_none(uint32_t i)
{
	(void)i;
	return false;
}

static bool
is_fifth(uint32_t i)
{
	return i % 5 == 0;
}

static bool
is_not_fifth(uint32_t i)
{
	return !is_fifth(i);
}

static bool
is_third(uint32_t i)
{
	return i % 3 == 0;
}

static bool
is_low(uint32_t i)
{
	return i < 256;
}

static bool
is_even_of_100(uint32_t i)
{
	return i % 2 == 0 && i < 100;
}

/* What is meant is listed, and counted, each once; and once it is cleared it alone is gone. */
static void
expect_meant(const struct query_row *row, const struct lb_flow_query *query, uint32_t n_flows)
{
	struct lb_flow_table *table = new_table(&usual, 0);
	struct lb_flow_key *keys = keep_keys(table);
	uint32_t *counts = calloc(n_flows, sizeof(*counts));
	struct lb_flow_entry entries[LB_FLOW_LIST_MIN];
	uint64_t seed = 8;
	uint32_t n_meant = 0;
	struct lb_flow_walk walk = {0, UINT32_MAX};

	assert_non_null(counts);
	for (uint32_t i = 0; i < n_flows; i++)
		insert_numbered(table, i, &seed, 0);
	while (walk.bucket < lb_flow_n_buckets(table)) {
		const size_t n = lb_flow_list(table, query, 2 * S, &walk, entries,
			LB_N_ELEMENTS(entries));

		for (size_t k = 0; k < n; k++)
			counts[entries[k].info.backend]++;
	}
	walk.bucket = 0;
	lb_flow_tally_some(table, query, 2 * S, &walk, counts, n_flows);
	assert_int_equal(walk.bucket, lb_flow_n_buckets(table));
	for (uint32_t i = 0; i < n_flows; i++) {
		EXPECT(counts[i] == (row->means(i) ? 2 : 0), "%s: flow %u: %u", row->sentence,
			i, counts[i]);
		n_meant += row->means(i);
	}
	walk.bucket = 0;
	assert_int_equal(lb_flow_clear(table, query, 2 * S, &walk), n_meant);
	assert_int_equal(stats_of(table).live, n_flows - n_meant);
	assert_int_equal(stats_of(table).cleared, n_meant);
	seed = 8;
	for (uint32_t i = 0; i < n_flows; i++) {
		const struct lb_flow_hash hash = random_hash(&seed);

		EXPECT((lb_flow_find(table, &hash, 2 * S) == LB_FLOW_NONE) == row->means(i),
			"%s: flow %u after clearing", row->sentence, i);
	}
	free(counts);
	free(keys);
	free(table);
}

static void
test_a_query_is_for_what_it_says(void **state)
{
	/* Bits 0, 2, … 98. */
	static const uint64_t even[] = {UINT64_C(0x5555555555555555),
		UINT64_C(0x0000000555555555)};
	static const struct query_row rows[] = {
		{"everything", {.backends = NULL}, NULL, 0, means_all},
		{"confirmed", {.confirmed = LB_FLOW_CONFIRMED}, NULL, 0, is_fifth},
		{"unconfirmed", {.confirmed = LB_FLOW_UNCONFIRMED}, NULL, 0, is_not_fifth},
		{"idle for a second", {.idle_ns = S}, NULL, 0, means_all},
		{"idle for three", {.idle_ns = 3 * S}, NULL, 0, means_none},
		{"UDP", {.backends = NULL}, NULL, IPPROTO_UDP, is_third},
		{"a client's network", {.backends = NULL}, "10.0.0.0/24", 0, is_low},
		{"some backends", {.backends = even, .n_backends = 100}, NULL, 0,
			is_even_of_100},
		{"no backends", {.backends = even, .n_backends = 0}, NULL, 0, means_none},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_flow_query query = rows[i].query;
		struct lb_prefix client;
		struct lb_filter_conf conf = {
			.has_protocol = rows[i].protocol != 0,
			.protocols = {rows[i].protocol, rows[i].protocol},
		};

		if (rows[i].client != NULL) {
			assert_int_equal(lb_prefix_parse(rows[i].client, &client), 0);
			conf.client = &client;
		}
		lb_filter_init(&query.filter, &conf);
		expect_meant(&rows[i], &query, 2000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_are_what_the_header_says),
		cmocka_unit_test(test_bad_configurations_are_refused),
		cmocka_unit_test(test_a_flow_is_found_with_its_backend),
		cmocka_unit_test(test_every_stored_bit_tells_flows_apart),
		cmocka_unit_test(test_events_choose_the_timeout),
		cmocka_unit_test(test_only_the_syn_that_made_it_is_repeated),
		cmocka_unit_test(test_a_place_taken_over_forgets_the_syn),
		cmocka_unit_test(test_restart_begins_again_in_place),
		cmocka_unit_test(test_room_is_made_in_the_promised_order),
		cmocka_unit_test(test_a_dead_entry_hides_no_live_one),
		cmocka_unit_test(test_tags_are_compared_as_plainly),
		cmocka_unit_test(test_who_gives_way_is_ranked_as_plainly),
		cmocka_unit_test(test_timeouts_are_exact_at_every_phase),
		cmocka_unit_test(test_a_short_timeout_beside_a_long_one),
		cmocka_unit_test(test_sweep_frees_what_timed_out),
		cmocka_unit_test(test_sweep_spares_the_living),
		cmocka_unit_test(test_a_jump_in_time_revives_nothing),
		cmocka_unit_test(test_slow_time_revives_nothing),
		cmocka_unit_test(test_smallest_steps_sweep_too),
		cmocka_unit_test(test_time_does_not_go_back),
		cmocka_unit_test(test_a_flood_evicts_itself_alone),
		cmocka_unit_test(test_random_keys_are_not_taken_for_others),
		cmocka_unit_test(test_nearly_all_flows_find_room),
		cmocka_unit_test(test_flows_whose_second_packet_is_late_find_room),
		cmocka_unit_test(test_a_found_entry_says_what_it_knows),
		cmocka_unit_test(test_tallies_are_those_of_a_model),
		cmocka_unit_test(test_flows_in_their_second_bucket_are_tallied_once),
		cmocka_unit_test(test_keys_stay_with_their_flows),
		cmocka_unit_test(test_a_query_is_for_what_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
