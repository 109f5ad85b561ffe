/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_flow_table.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_limits.h"

#define WAYS        4u
#define ENTRIES_MIN (1u << 19)
#define TALLY_AHEAD 16u /* buckets, when all are read in turn */
#define NS_PER_MS   UINT64_C(1000000)
#define NS_PER_S    UINT64_C(1000000000)

/* The three bits of state. 0 is free, so that zeroed memory is an empty table. */
enum state { FREE, TCP_NEW, TCP, TCP_CLOSING, UDP_NEW, UDP, N_STATES };

/*
 * An entry is two words. The tag word is nothing but identity, so that one plain comparison
 * tells a flow from 2^64 others; the rest word holds the remaining 16 bits of identity at
 * its top and all that changes below:
 *
 *	tag   63..16  place, its low 48 bits      15..0  pick, bits 15..0
 *	rest  63..48  pick, bits 31..16           46..24 last seen, in ticks
 *	      23..4   backend id                  3      made by a SYN       2..0 state
 *
 * Bit 47 of the first rest word is the bucket's own: flows of it have gone to their second
 * buckets.
 *
 * The words are arrays inside the line, not pairs: the four tags lie side by side, and a
 * compiler may compare them with one vector instruction.
 */
#define PICK_SHIFT    48
#define SEEN_SHIFT    24
#define SEEN_MASK     UINT32_C(0x7fffff)
#define OVERFLOWED    (UINT64_C(1) << 47)
#define BACKEND_SHIFT 4
#define BACKEND_MASK  (LB_BACKEND_IDS_MAX - 1)
#define BY_SYN        UINT64_C(8)
#define STATE_MASK    UINT64_C(7)

static_assert(1u << LB_FLOW_BACKEND_BITS == LB_BACKEND_IDS_MAX, "a backend id fits its field");
static_assert(BACKEND_SHIFT + LB_FLOW_BACKEND_BITS == SEEN_SHIFT, "fields must not overlap");
static_assert((uint64_t)SEEN_MASK << SEEN_SHIFT < OVERFLOWED, "fields must not overlap");
static_assert(N_STATES <= STATE_MASK + 1, "a state fits its field");

struct bucket {
	alignas(LB_CACHE_LINE) uint64_t tag[WAYS];
	uint64_t rest[WAYS];
};

static_assert(sizeof(struct bucket) == LB_CACHE_LINE, "a lookup must touch one line");

/* The first line is constant after init; the second is written by inserts and sweeps. */
struct lb_flow_table {
	alignas(LB_CACHE_LINE) uint64_t secret[2];
	struct bucket *buckets;
	uint32_t *syn_seq; /* one an entry; meaningful where BY_SYN is set */
	uint32_t timeout_ticks[N_STATES];
	uint8_t tick_shift;     /* a tick is 2^tick_shift ns */
	uint8_t n_buckets_log2; /* 17..28 */
	uint8_t period_log2;    /* the whole table is swept in 2^period_log2 ticks */

	alignas(LB_CACHE_LINE) uint64_t last_tick; /* of the last expire; does not wrap */
	uint64_t sweep_rest;                       /* of a bucket, in 2^-period_log2 */
	uint32_t sweep_bucket;                     /* the next to sweep */
	uint32_t longest_ticks;
	struct lb_flow_table_stats stats;
};

static_assert(offsetof(struct lb_flow_table, last_tick) == LB_CACHE_LINE,
	"what lookups read must fit one line");

/* What a packet makes of its flow. A SYN only refreshes: it is a repetition. */
static const uint8_t next_state[N_STATES][4] = {
	/* columns: datagram, segment, SYN, close */
	[TCP_NEW] = {TCP, TCP, TCP_NEW, TCP_CLOSING},
	[TCP] = {TCP, TCP, TCP, TCP_CLOSING},
	[TCP_CLOSING] = {TCP_CLOSING, TCP_CLOSING, TCP_CLOSING, TCP_CLOSING},
	[UDP_NEW] = {UDP, UDP, UDP_NEW, UDP},
	[UDP] = {UDP, UDP, UDP, UDP},
};

static_assert(LB_FLOW_DATAGRAM == 0 && LB_FLOW_SEGMENT == 1 && LB_FLOW_SYN == 2 &&
		      LB_FLOW_CLOSE == 3,
	"the columns of next_state");

/* Where a flow may be and how its entry looks. */
struct identity {
	uint32_t bucket; /* the first choice */
	uint32_t second; /* where it goes when that is full of confirmed flows */
	uint64_t tag;
	uint64_t rest; /* the top 16 bits alone */
};

/* From an entry's one bucket to its other, as its tag says; never 0. */
static inline uint32_t
distance_of(const struct lb_flow_table *table, uint64_t tag)
{
	return ((uint32_t)(tag >> 16) & ((1u << table->n_buckets_log2) - 1)) | 1;
}

/*
 * Both halves of the hash go through a multiplication with secret operands, and the halves of
 * the product are folded: the bucket then depends on all 128 bits and on the secret, and
 * neighbouring hashes do not land in neighbouring buckets. The bucket is the top bits of the
 * mixed place, 17 at least, and the tag its low 48: together, all 64 of them. The second
 * bucket is the first and a distance that the tag says, which is never 0: whichever of the two
 * an entry lies in, that bucket and the tag tell the first.
 */
static inline struct identity
identify(const struct lb_flow_table *table, const struct lb_flow_hash *hash)
{
	__extension__ typedef unsigned __int128 uint128;
	const uint128 product =
		(uint128)(hash->place ^ table->secret[0]) * (hash->pick ^ table->secret[1]);
	const uint64_t place = (uint64_t)(product >> 64) ^ (uint64_t)product;

	return (struct identity){
		.bucket = (uint32_t)(place >> (64 - table->n_buckets_log2)),
		.second = (uint32_t)(place >> (64 - table->n_buckets_log2)) ^
			  distance_of(table, place << 16),
		.tag = place << 16 | (hash->pick & 0xffff),
		.rest = (hash->pick >> 16 & 0xffff) << PICK_SHIFT,
	};
}

static inline enum state
state_of(uint64_t rest)
{
	return (enum state)(rest & STATE_MASK);
}

static inline uint32_t
tick_of(const struct lb_flow_table *table, uint64_t now_ns)
{
	return (uint32_t)(now_ns >> table->tick_shift) & SEEN_MASK;
}

static inline uint32_t
ticks_since_seen(uint64_t rest, uint32_t tick)
{
	return (tick - (uint32_t)(rest >> SEEN_SHIFT)) & SEEN_MASK;
}

static inline bool
is_timed_out(const struct lb_flow_table *table, uint64_t rest, uint32_t tick)
{
	return ticks_since_seen(rest, tick) > table->timeout_ticks[state_of(rest)];
}

static inline uint64_t *
rest_of(const struct lb_flow_table *table, uint32_t ref)
{
	return &table->buckets[ref / WAYS].rest[ref % WAYS];
}

static inline uint64_t
with_seen(uint64_t rest, uint32_t tick)
{
	return (rest & ~((uint64_t)SEEN_MASK << SEEN_SHIFT)) | (uint64_t)tick << SEEN_SHIFT;
}

static inline uint64_t
with_backend(uint64_t rest, uint32_t backend)
{
	assert(backend <= BACKEND_MASK);
	return (rest & ~((uint64_t)BACKEND_MASK << BACKEND_SHIFT)) |
	       (uint64_t)(backend & BACKEND_MASK) << BACKEND_SHIFT;
}

/*
 * Which ways hold the flow, as bits: one at most, see choose_way(). Without branches, for a
 * flow is in any way with the same probability and a jump would be mispredicted.
 */
static inline uint32_t
match_ways(const struct bucket *bucket, const struct identity *flow)
{
	uint32_t ways = 0;

	for (uint32_t way = 0; way < WAYS; way++) {
		const uint64_t rest = bucket->rest[way];
		const uint64_t differs =
			(bucket->tag[way] ^ flow->tag) | (rest ^ flow->rest) >> PICK_SHIFT;

		ways |= (uint32_t)((differs == 0) & ((rest & STATE_MASK) != FREE)) << way;
	}
	return ways;
}

uint32_t
lb_flow_table_entries(uint32_t n_entries)
{
	uint32_t n = ENTRIES_MIN;

	if (n_entries == 0 || n_entries > LB_FLOW_ENTRIES_MAX)
		return 0;
	while (n < n_entries)
		n *= 2;
	return n;
}

size_t
lb_flow_table_bytes(uint32_t n_entries)
{
	const size_t n = lb_flow_table_entries(n_entries);

	if (n == 0)
		return 0;
	return sizeof(struct lb_flow_table) + n / WAYS * sizeof(struct bucket) +
	       n * sizeof(uint32_t);
}

/* The number of the highest bit set; value is not 0. */
static uint8_t
log2_floor(uint64_t value)
{
	return (uint8_t)(63 - __builtin_clzll(value));
}

static void
set_timeouts(struct lb_flow_table *table, const struct lb_flow_table_conf *conf)
{
	static const enum lb_flow_timeout timeout_of[N_STATES] = {
		[TCP_NEW] = LB_FLOW_TIMEOUT_TCP_SYN,
		[TCP] = LB_FLOW_TIMEOUT_TCP,
		[TCP_CLOSING] = LB_FLOW_TIMEOUT_TCP_CLOSING,
		[UDP_NEW] = LB_FLOW_TIMEOUT_UDP,
		[UDP] = LB_FLOW_TIMEOUT_UDP,
	};
	uint64_t longest_ns = 0;
	uint64_t round_up;

	for (size_t i = 0; i < LB_FLOW_N_TIMEOUTS; i++)
		if (conf->timeout_ns[i] > longest_ns)
			longest_ns = conf->timeout_ns[i];

	/* 2^20 to 2^21 ticks, or fewer where a tick is as short as a nanosecond already. */
	table->tick_shift =
		log2_floor(longest_ns) > 20 ? (uint8_t)(log2_floor(longest_ns) - 20) : 0;
	round_up = (UINT64_C(1) << table->tick_shift) - 1;
	table->longest_ticks = (uint32_t)((longest_ns + round_up) >> table->tick_shift);
	table->period_log2 = log2_floor(table->longest_ticks);
	for (size_t i = FREE + 1; i < N_STATES; i++)
		table->timeout_ticks[i] =
			(uint32_t)((conf->timeout_ns[timeout_of[i]] + round_up) >>
				   table->tick_shift);
}

int
lb_flow_table_init(void *mem, const struct lb_flow_table_conf *conf, uint64_t now_ns,
	struct lb_flow_table **out)
{
	const uint32_t n = lb_flow_table_entries(conf->n_entries);
	struct lb_flow_table *table = mem;

	if (n == 0)
		return -EINVAL;
	for (size_t i = 0; i < LB_FLOW_N_TIMEOUTS; i++)
		if (conf->timeout_ns[i] < NS_PER_MS ||
			conf->timeout_ns[i] > LB_FLOW_TIMEOUT_S_MAX * NS_PER_S)
			return -EINVAL;

	*table = (struct lb_flow_table){
		.secret = {conf->secret[0], conf->secret[1]},
		.buckets = (struct bucket *)(table + 1),
		.n_buckets_log2 = log2_floor(n / WAYS),
	};
	table->syn_seq = (uint32_t *)(table->buckets + n / WAYS);
	set_timeouts(table, conf);
	table->last_tick = now_ns >> table->tick_shift;
	*out = table;
	return 0;
}

void
lb_flow_prefetch(const struct lb_flow_table *table, const struct lb_flow_hash *hash)
{
	/* The sequence numbers are left alone: only SYNs look at them. */
	__builtin_prefetch(&table->buckets[identify(table, hash).bucket]);
}

/* A live entry of the flow in one bucket. */
static inline uint32_t
find_in(const struct lb_flow_table *table, const struct identity *flow, uint32_t bucket_index,
	uint32_t tick)
{
	const struct bucket *bucket = &table->buckets[bucket_index];
	const uint32_t ways = match_ways(bucket, flow);
	uint32_t way;

	if (ways == 0)
		return LB_FLOW_NONE;
	way = (uint32_t)__builtin_ctz(ways);
	if (is_timed_out(table, bucket->rest[way], tick))
		return LB_FLOW_NONE;
	return bucket_index * WAYS + way;
}

static inline bool
has_overflowed(const struct lb_flow_table *table, uint32_t bucket_index)
{
	return (table->buckets[bucket_index].rest[0] & OVERFLOWED) != 0;
}

uint32_t
lb_flow_find(const struct lb_flow_table *table, const struct lb_flow_hash *hash,
	uint64_t now_ns)
{
	const struct identity flow = identify(table, hash);
	const uint32_t tick = tick_of(table, now_ns);
	const uint32_t ref = find_in(table, &flow, flow.bucket, tick);

	if (likely(ref != LB_FLOW_NONE || !has_overflowed(table, flow.bucket)))
		return ref;
	return find_in(table, &flow, flow.second, tick);
}

uint32_t
lb_flow_backend(const struct lb_flow_table *table, uint32_t ref)
{
	return (uint32_t)(*rest_of(table, ref) >> BACKEND_SHIFT) & BACKEND_MASK;
}

void
lb_flow_read(const struct lb_flow_table *table, uint32_t ref, uint64_t now_ns,
	struct lb_flow_info *out)
{
	const uint64_t rest = *rest_of(table, ref);
	const enum state state = state_of(rest);
	const uint64_t n_ticks = ticks_since_seen(rest, tick_of(table, now_ns));

	*out = (struct lb_flow_info){
		.backend = lb_flow_backend(table, ref),
		.is_confirmed = state != TCP_NEW && state != UDP_NEW,
		.idle_ns = n_ticks << table->tick_shift,
	};
}

bool
lb_flow_is_repeated_syn(const struct lb_flow_table *table, uint32_t ref, uint32_t tcp_seq)
{
	return (*rest_of(table, ref) & BY_SYN) != 0 && table->syn_seq[ref] == tcp_seq;
}

void
lb_flow_touch(struct lb_flow_table *table, uint32_t ref, enum lb_flow_event event,
	uint64_t now_ns)
{
	uint64_t *rest = rest_of(table, ref);
	const uint64_t state = next_state[state_of(*rest)][event];

	*rest = (with_seen(*rest, tick_of(table, now_ns)) & ~STATE_MASK) | state;
}

void
lb_flow_set_backend(struct lb_flow_table *table, uint32_t ref, uint32_t backend)
{
	uint64_t *rest = rest_of(table, ref);

	*rest = with_backend(*rest, backend);
}

void
lb_flow_restart(struct lb_flow_table *table, uint32_t ref, uint32_t backend, uint32_t tcp_seq,
	uint64_t now_ns)
{
	uint64_t *rest = rest_of(table, ref);
	const uint64_t kept = *rest & (UINT64_MAX << PICK_SHIFT | OVERFLOWED);
	const uint64_t fresh = with_backend(kept | BY_SYN | TCP_NEW, backend);

	*rest = with_seen(fresh, tick_of(table, now_ns));
	table->syn_seq[ref] = tcp_seq;
}

/* How readily an entry gives way to a new flow; 0 for one that does not. */
static uint32_t
readiness(const struct lb_flow_table *table, uint64_t rest, uint32_t tick)
{
	const enum state state = state_of(rest);

	if (state == FREE)
		return UINT32_MAX;
	if (is_timed_out(table, rest, tick))
		return UINT32_MAX - 1;
	if (state == TCP_NEW || state == UDP_NEW)
		return ticks_since_seen(rest, tick) + 1;
	return 0;
}

/* The place in a bucket that gives way most readily, or LB_FLOW_NONE. */
static uint32_t
find_room(const struct lb_flow_table *table, uint32_t bucket_index, uint32_t tick)
{
	const struct bucket *bucket = &table->buckets[bucket_index];
	uint32_t best = WAYS;
	uint32_t most = 0;

	for (uint32_t way = 0; way < WAYS; way++) {
		const uint32_t ready = readiness(table, bucket->rest[way], tick);

		if (ready > most) {
			best = way;
			most = ready;
		}
	}
	return best == WAYS ? LB_FLOW_NONE : bucket_index * WAYS + best;
}

/*
 * The place in a bucket for a new flow. An entry of its own, timed out, comes before all
 * others: else the flow would be in the bucket twice, and a lookup could meet the dead one.
 */
static uint32_t
choose_place(const struct lb_flow_table *table, const struct identity *flow,
	uint32_t bucket_index, uint32_t tick)
{
	const uint32_t ways = match_ways(&table->buckets[bucket_index], flow);

	if (ways != 0)
		return bucket_index * WAYS + (uint32_t)__builtin_ctz(ways);
	return find_room(table, bucket_index, tick);
}

/* Make a place free, and account for who was there. */
static void
vacate(struct lb_flow_table *table, uint32_t ref, uint32_t tick)
{
	uint64_t *rest = rest_of(table, ref);

	if (state_of(*rest) == FREE)
		return;
	if (is_timed_out(table, *rest, tick))
		table->stats.expired++;
	else
		table->stats.evicted++;
	table->stats.live--;
	*rest &= OVERFLOWED;
}

/* Move an entry to the other of its two buckets, if that has room. */
static bool
move_away(struct lb_flow_table *table, uint32_t from, uint32_t tick)
{
	struct bucket *bucket = &table->buckets[from / WAYS];
	const uint64_t tag = bucket->tag[from % WAYS];
	uint64_t *rest = rest_of(table, from);
	const uint32_t to = find_room(table, from / WAYS ^ distance_of(table, tag), tick);

	if (to == LB_FLOW_NONE)
		return false;
	vacate(table, to, tick);
	table->buckets[to / WAYS].tag[to % WAYS] = tag;
	*rest_of(table, to) |= *rest & ~OVERFLOWED;
	table->syn_seq[to] = table->syn_seq[from];
	*rest &= OVERFLOWED;
	/* It was its first bucket, or else the mark costs a look in vain now and then. */
	bucket->rest[0] |= OVERFLOWED;
	return true;
}

/*
 * The place for a new flow: in its first bucket; where that is full of confirmed flows, in its
 * second; where both are, in the first after one of its flows has moved to its own other one.
 */
static uint32_t
choose_bucket(struct lb_flow_table *table, const struct identity *flow, uint32_t tick)
{
	uint32_t ref = choose_place(table, flow, flow->bucket, tick);

	if (likely(ref != LB_FLOW_NONE))
		return ref;
	ref = choose_place(table, flow, flow->second, tick);
	if (ref != LB_FLOW_NONE) {
		table->buckets[flow->bucket].rest[0] |= OVERFLOWED;
		return ref;
	}
	for (uint32_t way = 0; way < WAYS; way++)
		if (move_away(table, flow->bucket * WAYS + way, tick))
			return flow->bucket * WAYS + way;
	return LB_FLOW_NONE;
}

uint32_t
lb_flow_insert(struct lb_flow_table *table, const struct lb_flow_hash *hash, uint32_t backend,
	enum lb_flow_event event, uint32_t tcp_seq, uint64_t now_ns)
{
	const struct identity flow = identify(table, hash);
	const uint32_t tick = tick_of(table, now_ns);
	const uint32_t ref = choose_bucket(table, &flow, tick);
	uint64_t rest = with_seen(with_backend(flow.rest, backend), tick);

	if (ref == LB_FLOW_NONE) {
		table->stats.refused++;
		return LB_FLOW_NONE;
	}
	vacate(table, ref, tick);
	rest |= event == LB_FLOW_DATAGRAM ? UDP_NEW : TCP_NEW;
	if (event == LB_FLOW_SYN) {
		rest |= BY_SYN;
		table->syn_seq[ref] = tcp_seq;
	}
	table->buckets[ref / WAYS].tag[ref % WAYS] = flow.tag;
	*rest_of(table, ref) |= rest; /* it is free: nothing but the bucket's mark is there */
	table->stats.live++;
	table->stats.inserted++;
	return ref;
}

static void
sweep_bucket(struct lb_flow_table *table, struct bucket *bucket, uint32_t tick)
{
	for (uint32_t way = 0; way < WAYS; way++) {
		if (state_of(bucket->rest[way]) == FREE ||
			!is_timed_out(table, bucket->rest[way], tick))
			continue;
		bucket->rest[way] &= OVERFLOWED;
		table->stats.expired++;
		table->stats.live--;
	}
}

/* All at once, after a jump in time that nothing outlived. */
static void
free_all(struct lb_flow_table *table)
{
	/* Nobody may come here often with an empty table, but a replay does. */
	if (table->stats.live == 0)
		return;
	memset(table->buckets, 0, sizeof(struct bucket) << table->n_buckets_log2);
	table->stats.expired += table->stats.live;
	table->stats.live = 0;
}

/*
 * Why no entry comes back to life when 23 bits of ticks wrap. Let L be the longest timeout,
 * 2^21 ticks at most. Between two calls pass L ticks at most, or free_all() ends it. Each
 * bucket comes up once in 2^period_log2 <= L ticks, late by the time to the next call: two
 * visits are 2 L ticks apart at most. An entry that a visit found alive was then at most L
 * old, so it is at most 3 L <= 3 * 2^21 when the next one frees it: short of 2^23, the first
 * age that would look young again.
 */
void
lb_flow_table_expire(struct lb_flow_table *table, uint64_t now_ns)
{
	const uint64_t tick = now_ns >> table->tick_shift;
	const uint32_t n_buckets = 1u << table->n_buckets_log2;
	uint64_t elapsed;
	uint64_t due;

	if (tick <= table->last_tick)
		return;

	elapsed = tick - table->last_tick;
	table->last_tick = tick;
	if (elapsed > table->longest_ticks) {
		free_all(table);
		return;
	}

	/* At most 2^21 ticks of 2^28 buckets: far from 64 bits. */
	due = (elapsed << table->n_buckets_log2) + table->sweep_rest;
	table->sweep_rest = due & ((UINT64_C(1) << table->period_log2) - 1);
	due >>= table->period_log2;
	if (due > n_buckets)
		due = n_buckets;
	for (; due > 0; due--) {
		sweep_bucket(table, &table->buckets[table->sweep_bucket],
			(uint32_t)tick & SEEN_MASK);
		table->sweep_bucket = (table->sweep_bucket + 1) & (n_buckets - 1);
	}
}

void
lb_flow_table_stats(const struct lb_flow_table *table, struct lb_flow_table_stats *out)
{
	*out = table->stats;
}

static void
tally_bucket(const struct lb_flow_table *table, const struct bucket *bucket, uint32_t tick,
	uint32_t *counts, uint32_t n_counts)
{
	for (uint32_t way = 0; way < WAYS; way++) {
		const uint64_t rest = bucket->rest[way];
		const uint32_t backend = (uint32_t)(rest >> BACKEND_SHIFT) & BACKEND_MASK;

		if (state_of(rest) != FREE && backend < n_counts &&
			!is_timed_out(table, rest, tick))
			counts[backend]++;
	}
}

bool
lb_flow_tally(const struct lb_flow_table *table, uint32_t *bucket, uint32_t n_buckets,
	uint64_t now_ns, uint32_t *counts, uint32_t n_counts)
{
	const uint32_t n_all = 1u << table->n_buckets_log2;
	const uint32_t n_left = n_all - *bucket;
	const uint32_t end = *bucket + (n_buckets < n_left ? n_buckets : n_left);
	const uint32_t tick = tick_of(table, now_ns);

	for (; *bucket < end; (*bucket)++) {
		/* Far enough ahead for the load to be over in time; past the end it
		 * begins again, where there is something to load. */
		__builtin_prefetch(&table->buckets[(*bucket + TALLY_AHEAD) & (n_all - 1)]);
		tally_bucket(table, &table->buckets[*bucket], tick, counts, n_counts);
	}
	return *bucket < n_all;
}
