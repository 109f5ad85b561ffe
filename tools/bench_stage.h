/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

/**
 * @file
 * The stages of the pipeline one by one: the functions that each calls, over the same packets,
 * without what the pipeline has between them. One worker's own thread.
 */

#include <stdbool.h>

#include <rte_mbuf.h>

#include "bench_case.h"
#include "dp_worker.h"
#include "lb_flow_lookup.h"

/** Packets between the generator and the worker, as in a device's receive queue. */
#define BENCH_WINDOW_PACKETS 512u

/** What stages leave for those that come after them. */
struct bench_stages {
	struct dp_worker *worker;
	const struct dp_snapshot *snapshot;
	struct rte_mbuf **pkts; /**< BENCH_WINDOW_PACKETS of them */
	uint64_t now_ns;
	struct lb_packet packets[BENCH_WINDOW_PACKETS];
	struct lb_flow_hash hashes[BENCH_WINDOW_PACKETS];
	struct lb_flow_place places[BENCH_WINDOW_PACKETS];
	uint32_t services[BENCH_WINDOW_PACKETS];
	uint32_t refs[BENCH_WINDOW_PACKETS];     /**< entries of the flow table */
	uint32_t backends[BENCH_WINDOW_PACKETS]; /**< ids */
	uint8_t verdicts[BENCH_WINDOW_PACKETS];
};

/** Run one stage over the window; BENCH_NO_STAGE is the loop alone. */
void bench_stage_run(struct bench_stages *s, enum bench_stage stage);

/** What of the stages before it a stage needs: run it over the window. */
void bench_stage_prepare(struct bench_stages *s, enum bench_stage stage);

/** Whether what a stage found of each packet is what it should be. */
bool bench_stage_is_right(const struct bench_stages *s, enum bench_stage stage);

#endif
