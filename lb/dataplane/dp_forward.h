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
 * Flows are known by a hash keyed with the plane's secret, whatever the snapshot's seed:
 * another seed gives other slots, and takes no flow from its backend.
 *
 * Every packet gets exactly one verdict, here or, where it is DP_AWAY, later or by another
 * worker; but an answer to a probe, which is the prober's, is counted and freed here. Those of
 * packets that waited are counted unless they leave. Never blocks, allocates
 * or logs.
 *
 * @return how many went the short way of usual packets, all forwarded.
 */
unsigned int dp_forward_burst(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_burst *burst);

/** The same without the short way: its plain twin. */
void dp_forward_burst_plainly(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_burst *burst);

#endif
