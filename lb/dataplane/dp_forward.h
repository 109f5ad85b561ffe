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
 * Every packet gets exactly one verdict. Never blocks, allocates or logs.
 */
void dp_forward_burst(struct lb_flow_table *flows, const struct dp_snapshot *snapshot,
	struct dp_burst *burst);

#endif
