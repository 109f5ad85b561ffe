/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_FLOW_H
#define LB_FLOW_H

/**
 * @file
 * What identifies a flow, byte for byte.
 */

#include <assert.h>
#include <stdint.h>

#include "lb_addr.h"

/**
 * The 5-tuple, seen from the client: src is the client, dst the service.
 * Hashed and compared as bytes, so it has no implicit padding and zero[] is zero.
 * Protocols without ports have both ports 0: they are kept by address pair.
 */
struct lb_flow_key {
	struct lb_addr src;
	struct lb_addr dst;
	uint16_t sport_be;
	uint16_t dport_be;
	uint8_t proto; /**< IPPROTO_* */
	uint8_t zero[3];
};

static_assert(sizeof(struct lb_flow_key) == 40, "no implicit padding in a hashed key");

/** A key as the words that a hash reads: its bytes, eight at a time, the first the lowest. */
struct lb_flow_words {
	uint64_t word[5];
};

static_assert(sizeof(struct lb_flow_words) == sizeof(struct lb_flow_key),
	"words are all of a key");

/** A key of IPv4, and nothing but what varies in it: its bytes, the first the lowest. */
struct lb_flow_v4 {
	uint64_t addresses; /**< source, destination */
	uint64_t rest; /**< source port, destination port, protocol, three bytes of zeros */
};

/** What of the 5-tuple is hashed into the table. */
enum lb_affinity {
	LB_AFFINITY_5_TUPLE,
	LB_AFFINITY_SOURCE_IP,
	LB_AFFINITY_SOURCE_IP_PORT,
	LB_N_AFFINITIES
};

#endif
