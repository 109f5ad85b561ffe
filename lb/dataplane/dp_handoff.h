/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_HANDOFF_H
#define DP_HANDOFF_H

/**
 * @file
 * Which worker owns a packet's flow, where no device has spread the packets.
 */

#include <rte_mbuf.h>

/**
 * The worker of a packet's flow: of the flow that an ICMP error quotes; of its addresses where
 * the packet shows no more.
 *
 * @param n_workers  1 or more.
 * @return 0..n_workers-1, the same for all packets of a flow.
 */
unsigned int dp_handoff_owner(const struct rte_mbuf *m, uint32_t wire_bytes,
	unsigned int n_workers);

#endif
