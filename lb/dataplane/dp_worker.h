/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_WORKER_H
#define DP_WORKER_H

/**
 * @file
 * A worker: what one core owns, and its burst.
 */

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "dp.h"
#include "dp_ask.h"
#include "dp_fragment.h"
#include "dp_mbuf.h"
#include "dp_probe.h"
#include "dp_snapshot.h"
#include "dp_trace.h"
#include "lb_encap_write.h"
#include "lb_hash.h"
#include "lb_rate.h"

/** The snapshot in force: written by control alone, read by each worker once a burst. */
typedef _Atomic(struct dp_snapshot *) dp_snapshot_ref;

/** What workers hand to one another; each reads its own. NULL where there is but one. */
struct dp_mail {
	struct rte_ring *packets; /**< that are its to deal with */
	struct rte_ring *firsts;  /**< struct dp_first: of datagrams whose home it is */
};

/**
 * One burst. The mbufs are the caller's, before and after: the verdicts say what to do with
 * them. Those of LB_FORWARD and LB_REPLY are ready to be sent; those of DP_AWAY are not the
 * caller's any more.
 */
struct dp_burst {
	struct rte_mbuf *pkts[DP_BURST_MAX];
	uint64_t now_ns[DP_BURST_MAX]; /**< when each came; never going back */
	/** Of each on the wire, where is_cut; otherwise pkt_len, and the packet path's to
	 * write. */
	uint32_t wire_bytes[DP_BURST_MAX];
	struct dp_decision decisions[DP_BURST_MAX]; /**< the result */
	uint16_t n;                                 /**< 0..DP_BURST_MAX */
	bool is_cut; /**< of a capture, which may have less of a packet than was on the wire */
	/** Of a burst that is all forwarded, in a frame each, backend, ip_bytes and port are
	 * all that is wanted of the decisions. */
	bool is_brief;
	bool is_placed; /**< each packet is this worker's: none is handed on */
	/** How the device that they came by spreads packets; not looked at where is_placed. */
	const struct dp_rss *rss;
	/** Packets that waited and are decided, besides those that leave after one of pkts. */
	struct dp_chain settled;
};

/**
 * A worker's own of a backend: what it has sent there, and a copy of what packets need of the
 * snapshot's, made when the first of them comes after a snapshot was published. So all that
 * most packets need of their backend is one line. What is not on it is the template of those
 * outer headers that are long.
 */
struct dp_worker_backend {
	alignas(LB_CACHE_LINE) struct dp_ether ether;
	uint16_t plain_bytes;
	uint64_t packets; /**< as dp_backend_counts has them */
	uint64_t bytes;
	/** DP_STAMP() of the snapshot and the kind of outer headers that were copied, and the
	 *  port; 0: nothing has been. */
	uint64_t stamp;
	uint8_t encap[LB_ENCAP_SHORT_BYTES]; /**< a template's first bytes */
};

/**
 * One number for a snapshot, the first 2^48 of which have their own, and a kind; below the next
 * one by DP_STAMP_STEP.
 */
#define DP_STAMP_STEP              (UINT64_C(1) << 8)
#define DP_STAMP(generation, kind) (((generation) << 8 | (kind)) * DP_STAMP_STEP)

static_assert(sizeof(struct dp_worker_backend) == LB_CACHE_LINE, "it is one line");
static_assert(LB_PORTS_MAX <= DP_STAMP_STEP, "a port fits below a step");
static_assert(DP_KIND(LB_N_FORWARD_MODES, false) <= 1u << 8, "a kind fits below a snapshot");

/*
 * Grouped by who writes it: the first line is constant after start, so a reader of the
 * counters that follow never slows the loads the packet loop makes from it.
 */
struct dp_worker { /* NOLINT(clang-analyzer-optin.performance.Padding): see above */
	alignas(LB_CACHE_LINE) struct lb_flow_table *flows;
	const dp_snapshot_ref *current; /**< the plane's */
	const dp_trace_ref *trace;      /**< the plane's */
	struct rte_rcu_qsbr *qsbr;
	struct lb_hash_keyed keyed; /**< that flows are known by */
	unsigned int index;         /**< its thread id in qsbr */
	void *flows_mem;
	size_t flows_bytes;
	void *keys_mem; /**< NULL where the keys of flows are not kept */
	size_t keys_bytes;

	struct dp_fragments fragments; /**< of datagrams whose home it is */
	struct lb_rate *replies;
	void *replies_mem; /**< NULL where they are another's */
	size_t replies_bytes;
	struct rte_mempool *spare;  /**< the plane's: for pieces of what is cut */
	const struct dp_mail *mail; /**< the plane's: of all workers */
	struct dp_probes *probes;   /**< the plane's; NULL: none */
	unsigned int n_workers;
	uint32_t next_id; /**< of outer packets that are cut */
	/** Of the snapshot in force, and since when, by packets' times, those had the same. A
	 *  flow's packets after that were asked about as they would be now, and went to a
	 * backend that is live now. */
	uint64_t match_print;
	uint64_t n_losses;
	uint64_t match_since_ns;

	/** By backend id: written by this worker alone, and their counters read by anyone. */
	struct dp_worker_backend *backends;
	uint64_t *backend_flows; /**< begun on it */
	bool has_refreshed;      /**< some of them, since known flows were last sent on */

	/** Packets by verdict: written by this worker alone, read by anyone. */
	alignas(LB_CACHE_LINE) uint64_t verdict_pkts[LB_N_VERDICTS];

	/** Of its loop: written by this worker alone, read by anyone. */
	alignas(LB_CACHE_LINE) struct dp_worker_figures figures;

	/** Control's questions; lines of their own, which change when there is one. */
	struct dp_ask ask;
};

static_assert(offsetof(struct dp_worker, verdict_pkts) % LB_CACHE_LINE == 0,
	"read-only fields are apart from the counters");
static_assert(sizeof(struct dp_worker) % LB_CACHE_LINE == 0, "no sharing with a neighbour");

/** The worker's own counter: an ordinary add, yet no data race with the reader. */
static inline void
dp_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/** What a worker shares with the others of its plane. */
struct dp_shared {
	struct rte_rcu_qsbr *qsbr;
	const dp_snapshot_ref *current;
	const dp_trace_ref *trace;
	struct rte_mempool *spare;
	const struct dp_mail *mail; /**< by worker; NULL where there is but one */
	struct dp_probes *probes;
	struct lb_rate *replies; /**< of workers on one thread; NULL: each has its own */
};

/**
 * Make a worker and register it with qsbr, offline.
 *
 * @param conf      Its numbers filled in.
 * @param index     Of the worker in the plane.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  conf is out of range.
 * @retval -ENOMEM  No memory.
 * @retval -ENOSPC  qsbr has no thread of that index.
 */
int dp_worker_create(const struct dp_conf *conf, const struct dp_shared *shared,
	uint64_t now_ns, unsigned int index, struct dp_worker **out) lb_must_check;

/** The worker is offline. NULL is allowed. */
void dp_worker_destroy(struct dp_worker *worker);

/** Begin to be waited for by dp_publish(); before the first burst of a run of bursts. */
void dp_worker_online(struct dp_worker *worker);

/** Stop being waited for: no burst runs until it is online again. */
void dp_worker_offline(struct dp_worker *worker);

/**
 * Take one burst through all stages under the snapshot in force, and count all verdicts but
 * LB_FORWARD, LB_REPLY and LB_TO_KERNEL, which are the caller's to count when the packet has
 * left: dp_worker_sent(). The worker is online.
 *
 * @return true only where all of pkts are LB_FORWARD, of a frame each, and nothing else is to
 * be sent: then of a brief burst's decisions no more holds than is_brief says.
 */
bool dp_worker_burst(struct dp_worker *worker, struct dp_burst *burst);

/**
 * Take in the first fragments, decided by others, of datagrams whose home this worker is, and
 * give up what has waited too long: burst->settled. The worker is online.
 *
 * @return how many came; there may be more than that.
 */
unsigned int dp_worker_hear(struct dp_worker *worker, struct dp_burst *burst, uint64_t now_ns);

/**
 * Send on the probes that are asked, by worker 0 alone: burst->settled. The worker is online.
 *
 * @return how many were asked; there may be more than that.
 */
unsigned int dp_worker_probe(const struct dp_worker *worker, struct dp_burst *burst);

/** What still waits is given up: burst->settled. */
void dp_worker_abandon(struct dp_worker *worker, struct dp_burst *burst);

/** Whether this worker may send one more reply of its own to a source. */
static inline bool
dp_worker_may_reply(struct dp_worker *worker, const struct lb_addr *source, uint64_t now_ns)
{
	return lb_rate_allow(worker->replies, source, now_ns);
}

/** The worker holds nothing of a snapshot, and time goes on: after each burst, or without one.
 */
void dp_worker_quiescent(struct dp_worker *worker, uint64_t now_ns);

/** Go on with control's question, if there is one. @return whether it is not answered yet. */
static inline bool
dp_worker_answer(struct dp_worker *worker, uint64_t now_ns)
{
	return unlikely(dp_ask_is_posted(&worker->ask)) &&
	       dp_ask_answer(&worker->ask, worker->flows, now_ns);
}

/** A turn of the worker's loop has found n packets, all ports together. */
static inline void
dp_worker_polled(struct dp_worker *worker, unsigned int n)
{
	struct lb_flow_table_stats stats;

	lb_flow_table_stats(worker->flows, &stats);
	dp_count(&worker->figures.polls, 1);
	dp_count(&worker->figures.busy_polls, n > 0);
	__atomic_store_n(&worker->figures.flow_entries, stats.live, __ATOMIC_RELAXED);
}

/** A turn that found packets took so long, all its work included. */
static inline void
dp_worker_timed(struct dp_worker *worker, uint64_t turn_ns)
{
	const unsigned int bits =
		turn_ns == 0 ? 0 : 64u - (unsigned int)__builtin_clzll(turn_ns);

	dp_count(&worker->figures.turns[bits < DP_TURN_BUCKETS ? bits : DP_TURN_BUCKETS - 1],
		1);
	dp_count(&worker->figures.turns_ns, turn_ns);
}

/** A packet has left to a backend; the verdict is the caller's to count, for many at once. */
static inline void
dp_worker_forwarded(struct dp_worker *worker, uint32_t backend, uint32_t ip_bytes)
{
	struct dp_worker_backend *to = &worker->backends[backend];

	dp_count(&to->packets, 1);
	dp_count(&to->bytes, ip_bytes);
}

/** The first n of a burst have left to their backends, and so are counted. */
static inline void
dp_worker_forwarded_burst(struct dp_worker *worker, const struct dp_burst *burst, uint16_t n)
{
	/* Of a counter the compiler thinks that it might be what leads to the next. */
	struct dp_worker_backend *backends = worker->backends;

	for (uint16_t i = 0; i < n; i++) {
		const struct dp_decision *d = &burst->decisions[i];

		dp_count(&backends[d->backend].packets, 1);
		dp_count(&backends[d->backend].bytes, d->ip_bytes);
	}
	dp_count(&worker->verdict_pkts[LB_FORWARD], n);
}

/** A packet of a burst has left as its verdict says: to a backend, back, or to the kernel. */
static inline void
dp_worker_sent(struct dp_worker *worker, const struct dp_decision *d)
{
	dp_count(&worker->verdict_pkts[d->verdict], 1);
	if (likely(d->verdict == LB_FORWARD))
		dp_worker_forwarded(worker, d->backend, d->ip_bytes);
}

#endif
