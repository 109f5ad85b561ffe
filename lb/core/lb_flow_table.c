/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_flow_lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define ENTRIES_MIN (1u << 19)
#define TALLY_AHEAD 16u /* buckets, when all are read in turn */
#define NS_PER_MS   UINT64_C(1000000)
#define NS_PER_S    UINT64_C(1000000000)

/* What a packet makes of its flow. A SYN only refreshes: it is a repetition. */
const uint8_t lb_flow_next_state[LB_FLOW_N_STATES][LB_FLOW_N_EVENTS] = {
	/* columns: datagram, segment, SYN, close */
	[LB_FLOW_TCP_NEW] = {LB_FLOW_TCP, LB_FLOW_TCP, LB_FLOW_TCP_NEW, LB_FLOW_TCP_CLOSING},
	[LB_FLOW_TCP] = {LB_FLOW_TCP, LB_FLOW_TCP, LB_FLOW_TCP, LB_FLOW_TCP_CLOSING},
	[LB_FLOW_TCP_CLOSING] = {LB_FLOW_TCP_CLOSING, LB_FLOW_TCP_CLOSING, LB_FLOW_TCP_CLOSING,
		LB_FLOW_TCP_CLOSING},
	[LB_FLOW_UDP_NEW] = {LB_FLOW_UDP, LB_FLOW_UDP, LB_FLOW_UDP_NEW, LB_FLOW_UDP},
	[LB_FLOW_UDP] = {LB_FLOW_UDP, LB_FLOW_UDP, LB_FLOW_UDP, LB_FLOW_UDP},
};

static_assert(LB_FLOW_DATAGRAM == 0 && LB_FLOW_SEGMENT == 1 && LB_FLOW_SYN == 2 &&
		      LB_FLOW_CLOSE == 3,
	"the columns of next_state");

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
	return sizeof(struct lb_flow_table) + n / LB_FLOW_WAYS * sizeof(struct lb_flow_bucket) +
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
	static const enum lb_flow_timeout timeout_of[LB_FLOW_N_STATES] = {
		[LB_FLOW_TCP_NEW] = LB_FLOW_TIMEOUT_TCP_SYN,
		[LB_FLOW_TCP] = LB_FLOW_TIMEOUT_TCP,
		[LB_FLOW_TCP_CLOSING] = LB_FLOW_TIMEOUT_TCP_CLOSING,
		[LB_FLOW_UDP_NEW] = LB_FLOW_TIMEOUT_UDP,
		[LB_FLOW_UDP] = LB_FLOW_TIMEOUT_UDP,
	};
	uint64_t longest_ns = 0;
	uint64_t round_up;

	for (size_t i = 0; i < LB_FLOW_N_TIMEOUTS; i++)
		if (conf->timeout_ns[i] > longest_ns)
			longest_ns = conf->timeout_ns[i];

	/* 2^20 to 2^21 ticks, or fewer where a tick is as short as a nanosecond already. */
	table->tick_shift = log2_floor(longest_ns) > LB_FLOW_TICKS_LOG2
				    ? (uint8_t)(log2_floor(longest_ns) - LB_FLOW_TICKS_LOG2)
				    : 0;
	round_up = (UINT64_C(1) << table->tick_shift) - 1;
	table->longest_ticks = (uint32_t)((longest_ns + round_up) >> table->tick_shift);
	table->period_log2 = log2_floor(table->longest_ticks);
	table->timeout_ticks[LB_FLOW_FREE] = table->longest_ticks;
	for (size_t i = LB_FLOW_FREE + 1; i < LB_FLOW_N_STATES; i++) {
		table->timeout_ticks[i] =
			(uint32_t)((conf->timeout_ns[timeout_of[i]] + round_up) >>
				   table->tick_shift);
		if (table->timeout_ticks[i] < table->timeout_ticks[LB_FLOW_FREE])
			table->timeout_ticks[LB_FLOW_FREE] = table->timeout_ticks[i];
	}
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
		.buckets = (struct lb_flow_bucket *)(table + 1),
		.n_buckets_log2 = log2_floor(n / LB_FLOW_WAYS),
		.bucket_shift = (uint8_t)(64 - log2_floor(n / LB_FLOW_WAYS)),
		.bucket_mask = n / LB_FLOW_WAYS - 1,
	};
	table->syn_seq = (uint32_t *)(table->buckets + n / LB_FLOW_WAYS);
	table->n_crowded = n - n / 8;
	set_timeouts(table, conf);
	table->last_tick = now_ns >> table->tick_shift;
	*out = table;
	return 0;
}

uint32_t
lb_flow_find(const struct lb_flow_table *table, const struct lb_flow_hash *hash,
	uint64_t now_ns)
{
	const struct lb_flow_place place = lb_flow_locate(table, hash);

	return lb_flow_find_at(table, &place, now_ns);
}

void
lb_flow_read(const struct lb_flow_table *table, uint32_t ref, uint64_t now_ns,
	struct lb_flow_info *out)
{
	const uint64_t rest = *lb_flow_rest(table, ref);
	const enum lb_flow_state state = lb_flow_state_of(rest);
	const uint64_t n_ticks = lb_flow_ticks_since_seen(rest, lb_flow_tick(table, now_ns));

	*out = (struct lb_flow_info){
		.backend = lb_flow_backend(table, ref),
		.is_confirmed = state != LB_FLOW_TCP_NEW && state != LB_FLOW_UDP_NEW,
		.is_tcp = state != LB_FLOW_UDP_NEW && state != LB_FLOW_UDP,
		.is_closing = state == LB_FLOW_TCP_CLOSING,
		.idle_ns = n_ticks << table->tick_shift,
	};
}

bool
lb_flow_is_repeated_syn(const struct lb_flow_table *table, uint32_t ref, uint32_t tcp_seq)
{
	return (*lb_flow_rest(table, ref) & LB_FLOW_BY_SYN) != 0 &&
	       table->syn_seq[ref] == tcp_seq;
}

void
lb_flow_set_backend(struct lb_flow_table *table, uint32_t ref, uint32_t backend)
{
	uint64_t *rest = lb_flow_rest(table, ref);

	*rest = lb_flow_with_backend(*rest, backend);
}

void
lb_flow_restart(struct lb_flow_table *table, uint32_t ref, uint32_t backend, uint32_t tcp_seq,
	uint64_t now_ns)
{
	uint64_t *rest = lb_flow_rest(table, ref);
	const uint64_t kept = *rest & (UINT64_MAX << LB_FLOW_PRINT_SHIFT | LB_FLOW_OVERFLOWED);
	const uint64_t fresh =
		lb_flow_with_backend(kept | LB_FLOW_BY_SYN | LB_FLOW_TCP_NEW, backend);

	*rest = lb_flow_with_seen(fresh, lb_flow_tick(table, now_ns));
	table->syn_seq[ref] = tcp_seq;
}

/* A place, and how readily it is given; at NOT_AT_ALL it is any. */
struct room {
	uint32_t ref;
	uint32_t readiness;
};

/* The place in a bucket that gives way most readily, the first of equal ones. */
static inline struct room
find_room(const struct lb_flow_table *table, uint32_t bucket, uint32_t tick)
{
	const uint32_t rank = lb_flow_rank(table, table->buckets[bucket].rest, tick);

	return (struct room){
		.ref = bucket * LB_FLOW_WAYS + ~rank % LB_FLOW_WAYS,
		.readiness = rank / LB_FLOW_WAYS,
	};
}

/* Move an entry to the other of its two buckets, if that has room so ready at least. */
static bool
move_away(struct lb_flow_table *table, uint32_t from, uint32_t least, uint32_t tick)
{
	struct lb_flow_bucket *bucket = &table->buckets[from / LB_FLOW_WAYS];
	const uint64_t tag = bucket->tag[from % LB_FLOW_WAYS];
	uint64_t *rest = lb_flow_rest(table, from);
	const struct room to =
		find_room(table, from / LB_FLOW_WAYS ^ lb_flow_distance(table, tag), tick);

	if (to.readiness < least)
		return false;
	lb_flow_vacate(table, to.ref, tick);
	table->buckets[to.ref / LB_FLOW_WAYS].tag[to.ref % LB_FLOW_WAYS] = tag;
	*lb_flow_rest(table, to.ref) |= *rest & ~LB_FLOW_OVERFLOWED;
	table->syn_seq[to.ref] = table->syn_seq[from];
	if (table->keys != NULL)
		table->keys[to.ref] = table->keys[from];
	*rest &= LB_FLOW_OVERFLOWED;
	/* It was its first bucket, or else the mark costs a look in vain now and then. */
	bucket->rest[0] |= LB_FLOW_OVERFLOWED;
	return true;
}

/* A place in either bucket of a flow, after an entry has moved to its own other one. */
static uint32_t
make_room(struct lb_flow_table *table, const struct lb_flow_place *place, uint32_t least,
	uint32_t tick)
{
	const uint32_t buckets[] = {place->bucket, place->second};

	for (uint32_t i = 0; i < LB_N_ELEMENTS(buckets) * LB_FLOW_WAYS; i++) {
		const uint32_t ref =
			buckets[i / LB_FLOW_WAYS] * LB_FLOW_WAYS + i % LB_FLOW_WAYS;

		if (move_away(table, ref, least, tick))
			return ref;
	}
	return LB_FLOW_NONE;
}

uint32_t
lb_flow_make_place(struct lb_flow_table *table, const struct lb_flow_place *place,
	uint32_t tick)
{
	const struct room first = find_room(table, place->bucket, tick);
	const struct room second = find_room(table, place->second, tick);
	struct room best;

	if (first.readiness >= LB_FLOW_DEAD)
		return first.ref;
	if (second.readiness >= LB_FLOW_DEAD)
		return second.ref;
	if (lb_flow_is_roomy(table)) {
		const uint32_t ref = make_room(table, place, LB_FLOW_DEAD, tick);

		if (ref != LB_FLOW_NONE)
			return ref;
	}
	best = first.readiness >= second.readiness ? first : second;
	if (best.readiness > LB_FLOW_NOT_AT_ALL)
		return best.ref;
	return make_room(table, place, LB_FLOW_NOT_AT_ALL + 1, tick);
}

uint32_t
lb_flow_insert(struct lb_flow_table *table, const struct lb_flow_hash *hash, uint32_t backend,
	enum lb_flow_event event, uint32_t tcp_seq, uint64_t now_ns)
{
	const struct lb_flow_place place = lb_flow_locate(table, hash);

	return lb_flow_insert_at(table, &place, backend, event, tcp_seq,
		lb_flow_tick(table, now_ns));
}

static void
sweep_bucket(struct lb_flow_table *table, struct lb_flow_bucket *bucket, uint32_t tick)
{
	for (uint32_t way = 0; way < LB_FLOW_WAYS; way++) {
		if (lb_flow_state_of(bucket->rest[way]) == LB_FLOW_FREE ||
			!lb_flow_is_timed_out(table, bucket->rest[way], tick))
			continue;
		bucket->rest[way] &= LB_FLOW_OVERFLOWED;
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
	memset(table->buckets, 0, sizeof(struct lb_flow_bucket) << table->n_buckets_log2);
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
			(uint32_t)tick & LB_FLOW_SEEN_MASK);
		table->sweep_bucket = (table->sweep_bucket + 1) & (n_buckets - 1);
	}
}

void
lb_flow_table_stats(const struct lb_flow_table *table, struct lb_flow_table_stats *out)
{
	*out = table->stats;
	out->inserted = out->live + out->expired + out->evicted + out->cleared;
}

static void
tally_bucket(const struct lb_flow_table *table, const struct lb_flow_bucket *bucket,
	uint32_t tick, uint32_t *counts, uint32_t n_counts)
{
	for (uint32_t way = 0; way < LB_FLOW_WAYS; way++) {
		const uint64_t rest = bucket->rest[way];
		const uint32_t backend =
			(uint32_t)(rest >> LB_FLOW_BACKEND_SHIFT) & LB_FLOW_BACKEND_MASK;

		if (lb_flow_state_of(rest) != LB_FLOW_FREE && backend < n_counts &&
			!lb_flow_is_timed_out(table, rest, tick))
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
	const uint32_t tick = lb_flow_tick(table, now_ns);

	for (; *bucket < end; (*bucket)++) {
		/* Far enough ahead for the load to be over in time; past the end it
		 * begins again, where there is something to load. */
		__builtin_prefetch(&table->buckets[(*bucket + TALLY_AHEAD) & (n_all - 1)]);
		tally_bucket(table, &table->buckets[*bucket], tick, counts, n_counts);
	}
	return *bucket < n_all;
}

void
lb_flow_keep_keys(struct lb_flow_table *table, struct lb_flow_key *keys)
{
	table->keys = keys;
}

bool
lb_flow_keeps_keys(const struct lb_flow_table *table)
{
	return table->keys != NULL;
}

uint32_t
lb_flow_n_buckets(const struct lb_flow_table *table)
{
	return 1u << table->n_buckets_log2;
}

/* Whether flows of a backend are meant. */
static bool
means_backend(const struct lb_flow_query *query, uint32_t backend)
{
	return query->backends == NULL ||
	       (backend < query->n_backends &&
		       (query->backends[backend / 64] >> backend % 64 & 1) != 0);
}

static bool
means_info(const struct lb_flow_query *query, const struct lb_flow_info *info)
{
	return means_backend(query, info->backend) && info->idle_ns >= query->idle_ns &&
	       (query->confirmed == LB_FLOW_ANY ||
		       info->is_confirmed == (query->confirmed == LB_FLOW_CONFIRMED));
}

/* Whether an entry is a live flow that is asked for; out is written in any case. */
static bool
read_wanted(const struct lb_flow_table *table, const struct lb_flow_query *query, uint32_t ref,
	uint64_t now_ns, struct lb_flow_entry *out)
{
	const uint64_t rest = *lb_flow_rest(table, ref);

	if (lb_flow_state_of(rest) == LB_FLOW_FREE ||
		lb_flow_is_timed_out(table, rest, lb_flow_tick(table, now_ns)))
		return false;
	lb_flow_read(table, ref, now_ns, &out->info);
	if (!means_info(query, &out->info))
		return false;
	if (table->keys != NULL)
		out->key = table->keys[ref];
	else
		out->key = (struct lb_flow_key){
			.proto = out->info.is_tcp ? IPPROTO_TCP : IPPROTO_UDP};
	return lb_filter_passes(&query->filter, &out->key, out->key.proto);
}

/* Where a walk ends: there are no buckets beyond the last. */
static uint32_t
end_of(const struct lb_flow_table *table, const struct lb_flow_walk *walk)
{
	const uint32_t n_all = lb_flow_n_buckets(table);

	return walk->end < n_all ? walk->end : n_all;
}

/* @return how many of a bucket's flows are asked for; at most LB_FLOW_WAYS, into out. */
static size_t
list_bucket(const struct lb_flow_table *table, const struct lb_flow_query *query,
	uint64_t now_ns, uint32_t bucket, struct lb_flow_entry *out)
{
	struct lb_flow_entry entry;
	size_t n = 0;

	for (uint32_t way = 0; way < LB_FLOW_WAYS; way++)
		if (read_wanted(table, query, bucket * LB_FLOW_WAYS + way, now_ns, &entry))
			out[n++] = entry;
	return n;
}

size_t
lb_flow_list(const struct lb_flow_table *table, const struct lb_flow_query *query,
	uint64_t now_ns, struct lb_flow_walk *walk, struct lb_flow_entry *out, size_t n_max)
{
	const uint32_t end = end_of(table, walk);
	size_t n = 0;

	for (; walk->bucket < end && n + LB_FLOW_WAYS <= n_max; walk->bucket++)
		n += list_bucket(table, query, now_ns, walk->bucket, out + n);
	return n;
}

void
lb_flow_tally_some(const struct lb_flow_table *table, const struct lb_flow_query *query,
	uint64_t now_ns, struct lb_flow_walk *walk, uint32_t *counts, uint32_t n_counts)
{
	const uint32_t end = end_of(table, walk);
	struct lb_flow_entry entry;

	for (uint32_t ref = walk->bucket * LB_FLOW_WAYS; ref < end * LB_FLOW_WAYS; ref++)
		if (read_wanted(table, query, ref, now_ns, &entry) &&
			entry.info.backend < n_counts)
			counts[entry.info.backend]++;
	walk->bucket = end;
}

uint32_t
lb_flow_clear(struct lb_flow_table *table, const struct lb_flow_query *query, uint64_t now_ns,
	struct lb_flow_walk *walk)
{
	const uint32_t end = end_of(table, walk);
	struct lb_flow_entry entry;
	uint32_t n = 0;

	for (uint32_t ref = walk->bucket * LB_FLOW_WAYS; ref < end * LB_FLOW_WAYS; ref++) {
		if (!read_wanted(table, query, ref, now_ns, &entry))
			continue;
		*lb_flow_rest(table, ref) &= LB_FLOW_OVERFLOWED;
		n++;
	}
	walk->bucket = end;
	table->stats.live -= n;
	table->stats.cleared += n;
	return n;
}
