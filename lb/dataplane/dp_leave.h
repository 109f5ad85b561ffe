/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_LEAVE_H
#define DP_LEAVE_H

/**
 * @file
 * How a packet leaves once it is decided whose it is: to its backend, in the frame that goes
 * there; back, as an answer; or to the kernel.
 */

#include "dp_mbuf.h"
#include "dp_stages.h"

/** What dp_leave_to_backend() does with one that does not fit: dp_fit(). */
enum lb_verdict dp_leave_unfit(const struct dp_stages *s, const struct lb_packet *packet,
	uint64_t now_ns, struct rte_mbuf **m, struct dp_decision *d) lb_must_check;

/**
 * To its backend, as it is or in pieces; or back, if it is too big.
 *
 * @param m         In and out, as dp_fit() makes it.
 * @param d         Its backend is in the snapshot. Out: the port it goes out by, and has_more.
 * @return LB_FORWARD, LB_REPLY, or why it does not leave.
 */
static inline enum lb_verdict
dp_leave_to_backend(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf **m, struct dp_decision *d)
{
	const struct dp_backend *backend = &s->snapshot->backends[d->backend];
	const enum lb_verdict verdict = dp_mbuf_encap(*m, packet, backend, d->entropy);

	d->port = backend->port;
	if (unlikely(verdict == LB_DROP_TOO_BIG))
		return dp_leave_unfit(s, packet, now_ns, m, d);
	return verdict;
}

/**
 * What is left of a packet's way, once it is LB_FORWARD or LB_TO_KERNEL.
 *
 * @param m  In and out, as dp_fit() makes it.
 * @return as dp_leave_to_backend(); or where it is the kernel's: LB_REPLY, it asked for a
 *         service's address and is the answer; DP_AWAY, it answered a probe, and is counted and
 *         freed; LB_DROP_MARTIAN_DESTINATION, it is for nobody; LB_TO_KERNEL; or
 *         LB_DROP_NO_SERVICE, there is no kernel.
 */
enum lb_verdict dp_leave(const struct dp_stages *s, const struct lb_packet *packet,
	uint64_t now_ns, struct rte_mbuf **m, struct dp_decision *d) lb_must_check;

#endif
