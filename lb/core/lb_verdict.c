/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_verdict.h"

#include <assert.h>
#include <stddef.h>

#include "lb_compiler.h"

static const char *const reasons[] = {
	[LB_FORWARD] = NULL,
	[LB_REPLY] = NULL,
	[LB_TO_KERNEL] = NULL,
	[LB_DROP_TRUNCATED] = "truncated",
	[LB_DROP_BAD_IP_VERSION] = "bad_ip_version",
	[LB_DROP_BAD_HEADER_LENGTH] = "bad_header_length",
	[LB_DROP_BAD_TOTAL_LENGTH] = "bad_total_length",
	[LB_DROP_BAD_CHECKSUM] = "bad_checksum",
	[LB_DROP_TTL_EXPIRED] = "ttl_expired",
	[LB_DROP_UNKNOWN_EXTENSION_HEADER] = "unknown_extension_header",
	[LB_DROP_FRAGMENT_UNMATCHED] = "fragment_unmatched",
	[LB_DROP_NO_BACKEND] = "no_backend",
	[LB_DROP_NO_NEXT_HOP] = "no_next_hop",
	[LB_DROP_TOO_BIG] = "too_big",
	[LB_DROP_UNSUPPORTED_L4] = "unsupported_l4",
	[LB_DROP_VLAN_DEPTH] = "vlan_depth",
	[LB_DROP_NO_SERVICE] = "no_service",
	[LB_DROP_TX_FULL] = "tx_full",
	[LB_DROP_NO_MEMORY] = "no_memory",
	[LB_DROP_SNAPLEN] = "snaplen",
	[LB_DROP_HANDOFF_FULL] = "handoff_full",
	[LB_DROP_PORT_DOWN] = "port_down",
	[LB_DROP_KERNEL_DOWN] = "kernel_down",
	[LB_DROP_FRAGMENT_BAD] = "fragment_bad",
	[LB_DROP_FRAGMENT_OVERLAP] = "fragment_overlap",
	[LB_DROP_FRAGMENT_EXCESS] = "fragment_excess",
	[LB_DROP_MARTIAN_SOURCE] = "martian_source",
	[LB_DROP_ECHO_REFUSED] = "echo_refused",
	[LB_DROP_RATE_LIMITED] = "rate_limited",
	[LB_DROP_LINK_MULTICAST] = "link_multicast",
	[LB_DROP_MARTIAN_DESTINATION] = "martian_destination",
	[LB_DROP_SOURCE_ROUTE] = "source_route",
};

static_assert(LB_N_ELEMENTS(reasons) == LB_N_VERDICTS, "every verdict has its row");

const char *
lb_verdict_name(enum lb_verdict verdict)
{
	switch (verdict) {
	case LB_FORWARD:
		return "forward";
	case LB_REPLY:
		return "reply";
	case LB_TO_KERNEL:
		return "kernel";
	default:
		return "drop";
	}
}

const char *
lb_verdict_reason(enum lb_verdict verdict)
{
	return reasons[verdict];
}
