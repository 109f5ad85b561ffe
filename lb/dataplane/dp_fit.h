/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_FIT_H
#define DP_FIT_H

/**
 * @file
 * What does not fit its backend's MTU with its outer headers: cut into pieces, or answered by
 * an ICMP error, or dropped.
 */

#include "dp_mbuf.h"
#include "dp_worker.h"

/** A packet on its way to its backend. */
struct dp_passage {
	struct dp_worker *worker;
	const struct dp_service *service;
	const struct dp_backend *backend;
	const struct lb_packet *packet;
	uint32_t entropy; /**< for the outer headers */
	uint64_t now_ns;
};

/**
 * Deal with a packet that dp_mbuf_encap() says is LB_DROP_TOO_BIG.
 *
 * @param m  In: the packet. Out, where the result is LB_FORWARD: the first piece, and the
 * others one after the other beside it, if there are any. LB_REPLY: the answer. Otherwise it is
 * to be dropped.
 * @param[out] d  Its has_more.
 * @retval LB_FORWARD          Cut; the packet itself is freed.
 * @retval LB_REPLY            Answered, in place.
 * @retval LB_DROP_TOO_BIG     It may not be cut, nor answered.
 * @retval LB_DROP_RATE_LIMITED  It would have been answered, but for too many others that were.
 * @retval LB_DROP_NO_MEMORY   There are no buffers for its pieces.
 */
enum lb_verdict dp_fit(const struct dp_passage *passage, struct rte_mbuf **m,
	struct dp_decision *d) lb_must_check;

#endif
