/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

/**
 * @file
 * One worker of a case: on an lcore of its own it makes packets, takes them through the
 * pipeline or one stage, and times that.
 */

#include <stdatomic.h>

#include "bench_plane.h"
#include "bench_stage.h"
#include "bench_traffic.h"

/** A time is taken of each, and the median of all. */
#define BENCH_ROUNDS 15u

/** Where the workers of a case meet, and the main thread sees how far they are. */
struct bench_gate {
	unsigned int n_workers;
	atomic_uint n_warm; /**< about to be timed */
	atomic_uint n_done;
};

struct bench_worker {
	const struct bench_plane *plane;
	struct bench_gate *gate;
	struct dp_worker *worker;
	unsigned int index;
	struct rte_mempool *pool;
	struct bench_traffic traffic;
	struct bench_traffic beginning; /**< packets of flows that begin, beside known ones */
	struct bench_order beginners;   /**< their numbers, after the known ones' */
	uint64_t n_known;
	uint32_t rest_pct;        /**< of a new flow, that is due */
	struct bench_order order; /**< of packets that go through the pipeline */
	struct bench_order alone; /**< of those that do not */
	uint32_t seq;             /**< of the next packet */
	double clock_ns;          /**< what taking the time costs, twice */

	struct rte_mbuf *pkts[BENCH_WINDOW_PACKETS]; /**< received */
	uint64_t flows[BENCH_WINDOW_PACKETS];        /**< which they are of */
	bool is_new[BENCH_WINDOW_PACKETS];           /**< whether that begins */
	struct dp_burst burst;
	struct bench_stages stages;

	/* The result, to be read when it is done. */
	double ns[BENCH_ROUNDS];
	double generator_ns[BENCH_ROUNDS];
	uint64_t n_packets;
	uint64_t n_forwarded;
	uint64_t n_new_flows;
	uint64_t n_checked;
	uint32_t n_live; /**< entries of the flow table in use */
	char wrong[160]; /**< empty: nothing */
};

/**
 * @param[out] out  To be given to bench_worker_destroy(); untouched on error.
 * @retval -errno   No memory.
 */
int bench_worker_create(const struct bench_plane *plane, struct bench_gate *gate,
	unsigned int index, struct bench_worker **out) lb_must_check;

/** NULL is allowed. */
void bench_worker_destroy(struct bench_worker *w);

/** All of the work, as an lcore's function. @param argument  struct bench_worker */
int bench_worker_run(void *argument);

#endif
