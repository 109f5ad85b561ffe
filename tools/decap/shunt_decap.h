/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
#ifndef SHUNT_DECAP_H
#define SHUNT_DECAP_H

/**
 * @file
 * What the XDP program of shunt-decap and its loader share: maps and counters.
 *
 * Addresses are 16 bytes in network order, IPv4 as ::ffff:a.b.c.d, like struct lb_addr.
 */

#include <linux/types.h>
#include <stdbool.h>

/** The program's name; with it the loader knows its own from others'. */
#define DECAP_PROGRAM "shunt_decap"

#define DECAP_SERVICES_MAX 1024 /**< service prefixes */
#define DECAP_OUTERS_MAX   256  /**< addresses that tunnels may end at */

/** Key of the map `services`, a longest-prefix match; the layout is the kernel's. */
struct decap_prefix {
	__u32 n_bits;
	__u8 addr[16];
};

/** Key of the map `outers`. */
struct decap_addr {
	__u8 addr[16];
};

/** The one value of the map `settings`. */
struct decap_settings {
	__u16 gue_port; /**< host order */
};

enum decap_tunnel { DECAP_IPIP, DECAP_GRE, DECAP_GUE };

/**
 * Index into the map `counters`. Each received packet is counted once more, under what became
 * of it; DECAP_ECN_MARKED and DECAP_BYTES are besides that.
 */
enum decap_counter {
	DECAP_RECEIVED,
	/** Taken off; the families as INNERinOUTER, in the order of decap_taken_off(). */
	DECAP_IPIP_4IN4,
	DECAP_IPIP_6IN4,
	DECAP_IPIP_4IN6,
	DECAP_IPIP_6IN6,
	DECAP_GRE_4IN4,
	DECAP_GRE_6IN4,
	DECAP_GRE_4IN6,
	DECAP_GRE_6IN6,
	DECAP_GUE_4IN4,
	DECAP_GUE_6IN4,
	DECAP_GUE_4IN6,
	DECAP_GUE_6IN6,
	DECAP_DROPPED_ECN,     /**< outer CE over an inner packet that knows no ECN */
	DECAP_DROPPED_FAILED,  /**< the packet's start would not move: cannot happen */
	DECAP_PASSED_OTHER,    /**< no tunnel of these kinds */
	DECAP_PASSED_OUTER,    /**< a tunnel that ends elsewhere */
	DECAP_PASSED_SERVICE,  /**< the inner destination is no service */
	DECAP_PASSED_FRAGMENT, /**< the outer packet is a fragment */
	DECAP_PASSED_LENGTH,   /**< the lengths do not fit into each other or the frame */
	DECAP_PASSED_CHECKSUM, /**< of the outer IPv4 header */
	DECAP_PASSED_GRE,      /**< GRE with options, or not of IP */
	DECAP_PASSED_GUE,      /**< GUE of another variant */
	DECAP_PASSED_INNER,    /**< what is inside is no IP packet of the family announced */
	DECAP_ECN_MARKED,      /**< taken off, and the outer ECN carried over to the inner */
	DECAP_BYTES,           /**< inner IP bytes of what was taken off */
	DECAP_N_COUNTERS
};

static inline enum decap_counter
decap_taken_off(enum decap_tunnel tunnel, bool is_outer_v6, bool is_inner_v6)
{
	return (enum decap_counter)((unsigned int)DECAP_IPIP_4IN4 + 4u * (unsigned int)tunnel +
				    (is_outer_v6 ? 2u : 0u) + (is_inner_v6 ? 1u : 0u));
}

#endif
