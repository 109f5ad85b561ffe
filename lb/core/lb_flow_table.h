/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_FLOW_TABLE_H
#define LB_FLOW_TABLE_H

/**
 * @file
 * Flow table: flow -> backend id. Bounded, for one core, time passed in.
 *
 * Set-associative: a bucket of four entries is one cache line, and a lookup touches that
 * line only, for IPv4 and IPv6 alike; unless the bucket was once full, and the flow is not in
 * it: then a second bucket may have it, and is looked at too. Without second buckets one flow
 * in 27 would find no room in a half-full table; with them it is none, and of confirmed flows,
 * as many as there are entries, about one in 23. Beside the lines lies one 32-bit word an
 * entry, the sequence number of the SYN that made it, read and written by SYNs alone: 20 bytes
 * a flow.
 *
 * Identity is 96 bits of the flow's 128-bit hash, which is keyed with a secret (lb_hash.h): 80
 * are stored, and the bucket, one of 2^17 at least, stands for 17, of which one goes since it
 * may be either of two. With 2^20 flows in the table, a new flow is taken for one of them with
 * probability 2^20 / 2^96 = 2^-76: at ten million new flows a second, once in 2^76 / 10^7 s,
 * which is 239 million years. Nobody outside can aim many flows at one bucket, either.
 *
 * An entry is unconfirmed until a second packet of its flow arrives; the repetition of its
 * SYN does not count. A new flow takes, in this order: an entry that is free or timed out, in
 * its bucket, then in its second one; while an eighth of the table is free, a place in either
 * whose entry can move to such a one in its own other bucket; the oldest unconfirmed entry of
 * both; at last the place of a confirmed one, which moves to where an unconfirmed one is. Where
 * none of this finds room the flow is not remembered, and goes where the table says: a flood
 * evicts itself, and no confirmed flow; and as long as the table is not nearly full, nobody
 * has to give way.
 *
 * Times are nanoseconds of any clock that never goes back. They are held as 23-bit ticks,
 * the tick being the largest power of two nanoseconds of which the longest timeout has at
 * least 2^20 (0.52 ms for 15 minutes), or one nanosecond where none is: a flow is never
 * forgotten before its time, and always when two ticks have passed beyond it. There is one tick
 * for all: beside a timeout of a week, of 0.54 s, one of a second is 1 s to 2.07 s. What makes
 * ticks wrap safely is lb_flow_table_expire(), called as it says there.
 *
 * Who a flow is of, its entry does not say: only a hash of it. Where the caller gives memory
 * for them, the keys of flows lie beside the entries, another 40 bytes a flow, written as flows
 * begin and read by nobody but who asks what there is.
 *
 * Not thread-safe: one worker's own.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_filter.h"
#include "lb_hash.h"

/** No entry: not found, or no room. */
#define LB_FLOW_NONE UINT32_MAX

/** Bits of a backend's id in an entry: LB_BACKEND_IDS_MAX of them. */
#define LB_FLOW_BACKEND_BITS 20

enum lb_flow_timeout {
	LB_FLOW_TIMEOUT_TCP_SYN, /**< unconfirmed TCP */
	LB_FLOW_TIMEOUT_TCP,
	LB_FLOW_TIMEOUT_TCP_CLOSING, /**< after FIN or RST */
	LB_FLOW_TIMEOUT_UDP,         /**< UDP and whatever else has no states */
	LB_FLOW_N_TIMEOUTS
};

/** What a packet does to its flow. */
enum lb_flow_event {
	LB_FLOW_DATAGRAM, /**< UDP, or a protocol without states */
	LB_FLOW_SEGMENT,  /**< TCP, nothing special */
	LB_FLOW_SYN,      /**< TCP with SYN and no ACK */
	LB_FLOW_CLOSE,    /**< TCP with FIN or RST */
	LB_FLOW_N_EVENTS
};

struct lb_flow_table_conf {
	uint32_t n_entries; /**< wanted; rounded up to what lb_flow_table_entries() says */
	uint64_t timeout_ns[LB_FLOW_N_TIMEOUTS]; /**< each 1 ms .. LB_FLOW_TIMEOUT_S_MAX */
};

struct lb_flow_table_stats {
	uint64_t inserted; /**< entries made */
	uint64_t expired;  /**< entries freed since their time was over */
	uint64_t evicted;  /**< unconfirmed entries that gave way */
	uint64_t refused;  /**< flows that found no room */
	uint64_t cleared;  /**< entries freed by lb_flow_clear() */
	uint32_t live;     /**< entries in use, those included that timed out unnoticed */
};

struct lb_flow_table; /* opaque */

/**
 * Entries a table has that was asked for n_entries: a power of two, 2^19 at least; 0 where
 * n_entries is 0 or over LB_FLOW_ENTRIES_MAX.
 */
uint32_t lb_flow_table_entries(uint32_t n_entries);

/** Bytes for lb_flow_table_init(); 0 where n_entries is 0 or over LB_FLOW_ENTRIES_MAX. */
size_t lb_flow_table_bytes(uint32_t n_entries);

/**
 * Make an empty table in the caller's memory.
 *
 * @param mem       lb_flow_table_bytes(conf->n_entries) bytes, all zero, LB_CACHE_LINE aligned.
 * @param now_ns    Now.
 * @param[out] out  The table, inside mem; untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  n_entries or a timeout out of range.
 */
int lb_flow_table_init(void *mem, const struct lb_flow_table_conf *conf, uint64_t now_ns,
	struct lb_flow_table **out) lb_must_check;

/**
 * Find a live entry.
 *
 * @return its reference, good until the next insert or expire; LB_FLOW_NONE if there is none.
 */
uint32_t lb_flow_find(const struct lb_flow_table *table, const struct lb_flow_hash *hash,
	uint64_t now_ns);

/**
 * Whether the entry was made, or restarted, by a SYN with this sequence number: then another
 * such SYN is its repetition.
 */
bool lb_flow_is_repeated_syn(const struct lb_flow_table *table, uint32_t ref, uint32_t tcp_seq);

/** What a found entry says of its flow. */
struct lb_flow_info {
	uint32_t backend;
	bool is_confirmed;
	bool is_tcp;
	bool is_closing;  /**< TCP, after FIN or RST */
	uint64_t idle_ns; /**< since its last packet, to the tick: a millionth of the longest
			       timeout */
};

void lb_flow_read(const struct lb_flow_table *table, uint32_t ref, uint64_t now_ns,
	struct lb_flow_info *out);

/** Re-pick: the flow goes on, to another backend. */
void lb_flow_set_backend(struct lb_flow_table *table, uint32_t ref, uint32_t backend);

/** A SYN picks afresh: the entry begins again, unconfirmed, in its place. */
void lb_flow_restart(struct lb_flow_table *table, uint32_t ref, uint32_t backend,
	uint32_t tcp_seq, uint64_t now_ns);

/**
 * Remember a new flow, which lb_flow_find() just did not find.
 *
 * @param backend  Below LB_BACKEND_IDS_MAX.
 * @param event    Makes it a TCP or a UDP entry; unconfirmed in every case.
 * @param tcp_seq  Sequence number where event is LB_FLOW_SYN; otherwise not looked at.
 * @return its reference, or LB_FLOW_NONE where there was no room.
 */
uint32_t lb_flow_insert(struct lb_flow_table *table, const struct lb_flow_hash *hash,
	uint32_t backend, enum lb_flow_event event, uint32_t tcp_seq, uint64_t now_ns);

/**
 * Free entries that timed out, a share of the table in proportion to the time since the
 * last call: the whole table in one longest timeout. Call it with every burst, before any
 * other function sees the same now_ns. After a jump in time, one call sweeps as much as
 * the jump asks, the whole table at most. A now_ns before the last one does nothing.
 */
void lb_flow_table_expire(struct lb_flow_table *table, uint64_t now_ns);

void lb_flow_table_stats(const struct lb_flow_table *table, struct lb_flow_table_stats *out);

/**
 * Count live entries by backend, some buckets a call, so that no call takes long. Inserts may
 * come between calls: one that moves an entry to its second bucket may have it counted twice,
 * or not at all; nothing else miscounts what is there from the first call to the last.
 *
 * @param[in,out] bucket  Where to go on: 0 at first.
 * @param n_buckets       To look at in this call, at most.
 * @param[in,out] counts  n_counts of them, added to: by backend id. Of ids from n_counts on
 *                        nothing is counted.
 * @return whether buckets are left.
 */
bool lb_flow_tally(const struct lb_flow_table *table, uint32_t *bucket, uint32_t n_buckets,
	uint64_t now_ns, uint32_t *counts, uint32_t n_counts);

/**
 * Keep the keys of flows that begin from now on.
 *
 * @param keys  lb_flow_table_entries() of them, all zero, for as long as the table is used.
 */
void lb_flow_keep_keys(struct lb_flow_table *table, struct lb_flow_key *keys);

/** Whether it keeps them. */
bool lb_flow_keeps_keys(const struct lb_flow_table *table);

enum lb_flow_confirmed { LB_FLOW_ANY, LB_FLOW_CONFIRMED, LB_FLOW_UNCONFIRMED };

/**
 * Which flows are asked for. Without their keys a flow has no ends, and protocol TCP or, for
 * all else, UDP.
 */
struct lb_flow_query {
	const uint64_t *backends; /**< bits by id, of those whose flows are meant; NULL: all */
	uint32_t n_backends;      /**< bits there are; ids from there on are not meant */
	struct lb_filter filter;
	enum lb_flow_confirmed confirmed;
	uint64_t idle_ns; /**< so long at least */
};

/** A flow, as a table has it. */
struct lb_flow_entry {
	struct lb_flow_key key; /**< all zero where keys are not kept */
	struct lb_flow_info info;
};

/** Buckets of a table, for those that follow. */
uint32_t lb_flow_n_buckets(const struct lb_flow_table *table);

/** Which buckets are gone through. */
struct lb_flow_walk {
	uint32_t bucket; /**< the next; goes on as they are gone through */
	uint32_t end;    /**< the first that is not, or beyond the last */
};

/*
 * Go through some buckets, as lb_flow_tally() does, and with the same precision. A query costs
 * more than a tally: with keys, a line of memory for each live entry besides.
 */

#define LB_FLOW_LIST_MIN 4u

/**
 * List live flows. Ends early where out may have no room for another bucket's.
 *
 * @param out    n_max of them; n_max is LB_FLOW_LIST_MIN at least.
 * @return how many were written.
 */
size_t lb_flow_list(const struct lb_flow_table *table, const struct lb_flow_query *query,
	uint64_t now_ns, struct lb_flow_walk *walk, struct lb_flow_entry *out, size_t n_max);

/** Count live flows by backend: counts are added to as by lb_flow_tally(). */
void lb_flow_tally_some(const struct lb_flow_table *table, const struct lb_flow_query *query,
	uint64_t now_ns, struct lb_flow_walk *walk, uint32_t *counts, uint32_t n_counts);

/** Forget live flows. @return how many. */
uint32_t lb_flow_clear(struct lb_flow_table *table, const struct lb_flow_query *query,
	uint64_t now_ns, struct lb_flow_walk *walk);

#endif
