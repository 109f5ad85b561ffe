/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PLANE_H
#define DP_PLANE_H

/**
 * @file
 * The inside of struct dp, for the data plane's own files.
 */

#include "dp_worker.h"

struct dp {
	dp_snapshot_ref current;
	struct rte_rcu_qsbr *qsbr;
	struct dp_worker *workers[DP_WORKERS_MAX];
	unsigned int n_workers;
};

#endif
