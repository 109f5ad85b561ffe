/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_ENCAP_H
#define LB_ENCAP_H

/**
 * @file
 * Outer headers: a ready-made template for each backend, finished for each packet.
 *
 * IPIP in all four combinations (RFC 2003, 2473, 4213), GRE (RFC 2784: no checksum,
 * key or sequence), GUE variant 1 (IP directly in UDP, draft-ietf-intarea-gue), VXLAN
 * (RFC 7348). Outer TTL 64; DSCP and ECN copied from the inner packet (RFC 6040, normal
 * mode; RFC 2983, uniform model); over IPv4 DF is set and the identification is 0, as
 * RFC 6864 allows an atomic datagram; over IPv6 the flow label is the flow's (RFC 6438).
 * UDP source port 49152..65535 by flow; UDP checksum 0 over IPv4, computed over IPv6.
 * The inner packet is not touched.
 *
 * To the byte, so that another program can say what is right:
 * - UDP source port 49152 + the top 14 bits of the 32-bit entropy; flow label its low 20
 *   bits, and 1 where they are 0.
 * - IPIP: protocol 4 or 41. GRE: 4 bytes, protocol type 0x0800 or 0x86DD.
 * - GUE variant 1: the UDP payload starts with the inner IP header.
 * - VXLAN: flags 0x08 and the VNI; inner Ethernet with the configured MACs and the inner
 *   family's EtherType. The inner frame's VLAN tags are not carried.
 * - UDP checksum over IPv6: pseudo-header, UDP, VXLAN with inner Ethernet, and the inner
 *   packet; a computed 0 is sent as 0xffff.
 *
 * Pure; callable from any thread. Templates are immutable once made.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"

enum lb_forward_mode {
	LB_FORWARD_L2,
	LB_FORWARD_IPIP,
	LB_FORWARD_GRE,
	LB_FORWARD_GUE,
	LB_FORWARD_VXLAN,
	LB_N_FORWARD_MODES
};

#define LB_GUE_PORT   6080u
#define LB_VXLAN_PORT 4789u

/** IPv6 40, UDP 8, VXLAN 8, inner Ethernet 14. */
#define LB_ENCAP_BYTES_MAX 70u

/** What one backend's template is made from. */
struct lb_encap_conf {
	enum lb_forward_mode mode;
	struct lb_addr src;      /**< the balancer's; of dst's family. Unused by L2 */
	struct lb_addr dst;      /**< the backend's */
	uint16_t udp_port;       /**< of GUE or VXLAN; host order */
	uint32_t vni;            /**< VXLAN network identifier, 24 bits */
	struct lb_mac inner_dst; /**< VXLAN: the inner frame's MACs */
	struct lb_mac inner_src;
};

/** What is read for every packet comes first, for most kinds on one cache line. */
struct lb_encap {
	/** UDP over IPv6: sum of what is constant but for UDP's own header; of 16 bits. */
	uint64_t sum;
	/**
	 * The headers, per-packet fields 0; but for IPv4's checksum there is the sum of what is
	 * constant, carries added in, and not its complement; and for IPIP's protocol over IPv4
	 * that of IPv4.
	 */
	uint8_t bytes[LB_ENCAP_BYTES_MAX];
	uint8_t mode;        /**< enum lb_forward_mode */
	uint8_t n_bytes : 7; /**< of bytes[] in use; 0 for L2 */
	bool is_v6 : 1;      /**< the outer family */
};

static_assert(LB_ENCAP_BYTES_MAX < 1u << 7, "their number fits its field");

/** What of one packet goes into its outer headers. */
struct lb_encap_packet {
	bool is_v6;           /**< the inner family */
	uint8_t tos;          /**< inner TOS or traffic class */
	uint16_t inner_bytes; /**< inner IP packet, header included */
	uint32_t entropy;     /**< of the flow, constant in it: source port and flow label */
	uint64_t inner_sum;   /**< lb_csum_add() over the inner packet, where it is needed */
};

/**
 * Make a template.
 *
 * @param[out] out  Untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  src and dst differ in family, or mode, vni or udp_port is out of range.
 */
int lb_encap_init(struct lb_encap *out, const struct lb_encap_conf *conf) lb_must_check;

/**
 * Bytes that a mode puts before an inner IP packet, without the outer Ethernet header:
 * the MTU's overhead. 0 for L2.
 */
unsigned int lb_encap_overhead(enum lb_forward_mode mode, bool is_outer_v6);

/** Whether lb_encap_write() reads inner_sum: UDP over IPv6. */
static inline bool
lb_encap_needs_sum(const struct lb_encap *encap)
{
	return encap->is_v6 &&
	       (encap->mode == LB_FORWARD_GUE || encap->mode == LB_FORWARD_VXLAN);
}

/**
 * Write the outer headers of one packet, to stand right before its IP header.
 *
 * @param out  encap->n_bytes bytes of room. n_bytes + inner_bytes is at most 65535 over IPv4,
 *             n_bytes - 40 + inner_bytes over IPv6: the caller has checked the MTU.
 */
void lb_encap_write(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out);

#endif
