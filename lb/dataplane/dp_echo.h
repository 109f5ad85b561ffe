/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_ECHO_H
#define DP_ECHO_H

/**
 * @file
 * Echo requests for a service's address: answered here, forwarded or dropped, as that service
 * says. Fragments are answered one by one, and nothing is put together (lb_icmp.h).
 */

#include "dp_stages.h"

/**
 * Decide on an echo request, or the first fragment of one, whose others follow it.
 *
 * @param[out] service  Whose address it is for; untouched where it is no service's.
 * @retval LB_REPLY      It is to be answered: dp_echo_answer().
 * @retval LB_FORWARD    The service has its backends answer.
 * @retval LB_TO_KERNEL  For no service.
 */
enum lb_verdict dp_echo_take(const struct dp_stages *s, uint16_t i,
	uint32_t *service) lb_must_check;

/**
 * Make an echo request, or a fragment of one, into the reply's, in place.
 *
 * @retval LB_REPLY           It is.
 * @retval LB_TO_KERNEL       It has none (lb_icmp.h); untouched.
 * @retval LB_DROP_NO_MEMORY  It is in several segments, which do not fit one.
 */
enum lb_verdict dp_echo_answer(struct rte_mbuf *m,
	const struct lb_packet *packet) lb_must_check;

/**
 * A later fragment of an echo request whose first was answered. One that may not be, for its
 * options or MAC addresses, is nobody's: the kernel has not seen its first.
 *
 * @param[out] d    Its service, where it has one that answers.
 * @retval LB_REPLY  Made into the answer's, in place.
 */
enum lb_verdict dp_echo_later(const struct dp_stages *s, const struct lb_packet *packet,
	struct rte_mbuf *m, struct dp_decision *d) lb_must_check;

#endif
