/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_FORWARD_H
#define DP_FORWARD_H

/**
 * @file
 * The packet path: a burst of packets through parse, service, hash, flow table, table and
 * outer header, stage by stage.
 */

#include "dp_worker.h"

/**
 * Decide on each packet of a burst, and give the forwarded ones their outer headers.
 *
 * Flows are known by their hash under flow_seed, whatever the snapshot's seed: another seed
 * gives other slots, and takes no flow from its backend.
 *
 * Every packet gets exactly one verdict. Never blocks, allocates or logs.
 */
void dp_forward_burst(struct lb_flow_table *flows, uint64_t flow_seed,
	const struct dp_snapshot *snapshot, struct dp_burst *burst);

#endif
