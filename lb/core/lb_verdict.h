/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_VERDICT_H
#define LB_VERDICT_H

/**
 * @file
 * What becomes of a packet. Each packet ends in exactly one verdict, and the
 * verdict's value is also its counter's index.
 */

enum lb_verdict {
	LB_FORWARD,   /**< to a backend; from the parser: go on to the service table */
	LB_REPLY,     /**< answered by the balancer itself */
	LB_TO_KERNEL, /**< not for a service; from here on nothing is sent by a port */
	/* Dropped, by reason. A name once given is never reused. */
	LB_DROP_TRUNCATED,
	LB_DROP_BAD_IP_VERSION,
	LB_DROP_BAD_HEADER_LENGTH,
	LB_DROP_BAD_TOTAL_LENGTH,
	LB_DROP_BAD_CHECKSUM,
	LB_DROP_TTL_EXPIRED,
	LB_DROP_UNKNOWN_EXTENSION_HEADER,
	LB_DROP_FRAGMENT_UNMATCHED,
	LB_DROP_NO_BACKEND,
	LB_DROP_NO_NEXT_HOP,
	LB_DROP_TOO_BIG,
	LB_DROP_UNSUPPORTED_L4,
	LB_DROP_VLAN_DEPTH,
	LB_DROP_NO_SERVICE,
	LB_DROP_TX_FULL,
	LB_DROP_NO_MEMORY,
	LB_DROP_SNAPLEN,
	LB_DROP_HANDOFF_FULL,
	LB_DROP_PORT_DOWN,
	LB_DROP_KERNEL_DOWN,
	LB_DROP_FRAGMENT_BAD,
	LB_DROP_FRAGMENT_OVERLAP,
	LB_DROP_FRAGMENT_EXCESS,
	LB_DROP_MARTIAN_SOURCE,
	LB_DROP_ECHO_REFUSED,
	LB_DROP_RATE_LIMITED,
	LB_DROP_LINK_MULTICAST,
	LB_DROP_MARTIAN_DESTINATION,
	LB_DROP_SOURCE_ROUTE,
	LB_N_VERDICTS
};

#define LB_FIRST_DROP LB_DROP_TRUNCATED

/** "forward", "reply", "kernel" or "drop". */
const char *lb_verdict_name(enum lb_verdict verdict);

/** The drop reason's stable name, as in JSON, metrics and logs; NULL where it is no drop. */
const char *lb_verdict_reason(enum lb_verdict verdict);

#endif
