/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_MBUF_H
#define DP_MBUF_H

/**
 * @file
 * Between mbufs and bytes: core knows bytes, the ports know mbufs.
 */

#include <rte_mbuf.h>

#include "dp_snapshot.h"
#include "lb_neighbor.h"
#include "lb_packet.h"

/** Headers that are read lie in a packet's first segment; so lb_packet_parse() on that. */
enum lb_verdict dp_mbuf_parse(const struct rte_mbuf *m, uint32_t wire_bytes,
	struct lb_packet *out);

/**
 * Make a packet into the frame that goes to a backend: outer headers, MAC addresses, and the
 * padding cut off.
 *
 * The source MAC is the old destination: the port that received it. VLAN tags are kept.
 *
 * @retval LB_FORWARD           Ready to be sent.
 * @retval LB_DROP_NO_NEXT_HOP  Nobody to send it to; untouched.
 * @retval LB_DROP_TOO_BIG      Over the MTU with its outer header; untouched.
 * @retval LB_DROP_NO_MEMORY    No headroom; untouched.
 */
enum lb_verdict dp_mbuf_encap(struct rte_mbuf *m, const struct lb_packet *packet,
	const struct dp_backend *backend, uint32_t entropy);

/**
 * Make a packet that asks for an address into the answer.
 *
 * @param ask    What lb_neighbor_asks() said of its first segment.
 * @param own    The answer, and the frame's source.
 * @return whether there was room; if not it is untouched.
 */
bool dp_mbuf_answer(struct rte_mbuf *m, const struct lb_neighbor_ask *ask,
	const struct lb_mac *own) lb_must_check;

#endif
