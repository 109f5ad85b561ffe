/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PLANE_H
#define DP_PLANE_H

/**
 * @file
 * The inside of struct dp, for the data plane's own files.
 */

#include "dp_port.h"
#include "dp_probe.h"
#include "dp_worker.h"

struct dp_loop; /* dp_loop.h */

/** What one worker lcore runs with. */
struct dp_lcore {
	struct dp_loop *loop; /**< NULL without ports */
	unsigned int lcore_id;
	uint64_t nap_ns;      /**< to sleep where there is nothing to do; 0: never */
	_Atomic bool is_over; /**< written by control, read by the lcore */
};

struct dp {
	dp_snapshot_ref current;
	dp_trace_ref trace;
	struct rte_rcu_qsbr *qsbr;
	size_t qsbr_bytes;
	struct dp_worker *workers[LB_WORKERS_MAX];
	unsigned int n_workers;
	struct rte_mempool *spare; /**< for pieces of what is cut */
	uint32_t n_waiting; /**< fragments that may wait, with all workers; their buffers' bytes
			     */
	uint64_t waiting_bytes;
	struct dp_mail mail[LB_WORKERS_MAX]; /**< by worker; without rings where it is alone */
	struct dp_probes probes;

	/* Of a plane with ports; constant while it runs. */
	struct dp_port ports[LB_PORTS_MAX];
	size_t n_ports;
	uint16_t port_of[RTE_MAX_ETHPORTS]; /**< place among ports of an ethdev's id */
	struct dp_lcore lcores[LB_WORKERS_MAX];
	unsigned int n_running;
};

/**
 * Wait until each worker has been quiescent, so that none holds what was taken from them
 * before. No worker's burst may be running on the calling thread.
 */
void dp_wait_for_workers(const struct dp *dp);

#endif
