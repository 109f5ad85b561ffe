/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_ENCAP_WRITE_H
#define LB_ENCAP_WRITE_H

/**
 * @file
 * lb_encap_write() for the loop that every packet goes through: inline, and each mode's headers
 * in words that are written once. lb_encap.h has what it all means.
 *
 * Words are as lb_bytes_load64() has them: the first byte is the lowest.
 */

#include <netinet/in.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_compiler.h"
#include "lb_csum.h"
#include "lb_csum_short.h"
#include "lb_encap.h"

enum {
	LB_ENCAP_V4_BYTES = 20,
	LB_ENCAP_V4_PROTO_AT = 9,
	LB_ENCAP_V4_CSUM_AT = 10,
	LB_ENCAP_V4_FIRST = 0x45, /* version 4, five words */
	LB_ENCAP_V6_BYTES = 40,
	LB_ENCAP_GRE_BYTES = 4,
	LB_ENCAP_UDP_BYTES = 8,
	LB_ENCAP_VXLAN_BYTES = 8,
	LB_ENCAP_ETHER_BYTES = 14,
	/** What VXLAN has more than GUE. */
	LB_ENCAP_INNER_BYTES = LB_ENCAP_VXLAN_BYTES + LB_ENCAP_ETHER_BYTES,

	/** The flow's 14 of 32 bits of entropy in a source port; the template has the rest. */
	LB_ENCAP_SPORT_SHIFT = 18,
	LB_ENCAP_FLOW_LABEL_MASK = 0xfffff,
	LB_ENCAP_ETHERTYPE_IPV4 = 0x0800,
	LB_ENCAP_ETHERTYPE_IPV6 = 0x86dd,
};

/** What is read of a template. */
struct lb_encap_part {
	const uint8_t *bytes; /**< of IPv4 without VXLAN the first LB_ENCAP_SHORT_BYTES */
	uint64_t sum;         /**< of 16 bits, where it is UDP over IPv6 */
};

/** Of IPv4 without VXLAN: what is behind these bytes is the packet's. */
#define LB_ENCAP_SHORT_BYTES 24u

/** lb_encap_overhead(), where mode and family are constants. */
static inline unsigned int
lb_encap_bytes(enum lb_forward_mode mode, bool is_outer_v6)
{
	const unsigned int ip_bytes = is_outer_v6 ? LB_ENCAP_V6_BYTES : LB_ENCAP_V4_BYTES;

	switch (mode) {
	case LB_FORWARD_IPIP:
		return ip_bytes;
	case LB_FORWARD_GRE:
		return ip_bytes + LB_ENCAP_GRE_BYTES;
	case LB_FORWARD_GUE:
		return ip_bytes + LB_ENCAP_UDP_BYTES;
	case LB_FORWARD_VXLAN:
		return ip_bytes + LB_ENCAP_UDP_BYTES + LB_ENCAP_INNER_BYTES;
	case LB_FORWARD_L2:
	case LB_N_FORWARD_MODES:
		break;
	}
	return 0;
}

/* A template's word with fields put into it that are 0 there. */
static inline void
lb_encap_write_word(const uint8_t *from, uint64_t fields, uint8_t *out)
{
	lb_bytes_store64(out, lb_bytes_load64(from) | fields);
}

/* The inner family, as the last two bytes of a word. */
static inline uint64_t
lb_encap_ethertype(const struct lb_encap_packet *packet)
{
	return (uint64_t)(packet->is_v6 ? lb_bytes_swap16(LB_ENCAP_ETHERTYPE_IPV6)
					: lb_bytes_swap16(LB_ENCAP_ETHERTYPE_IPV4))
	       << 48;
}

static inline uint64_t
lb_encap_sport(const struct lb_encap_packet *packet)
{
	return lb_bytes_swap16((uint16_t)(packet->entropy >> LB_ENCAP_SPORT_SHIFT));
}

/*
 * What is not the template's is written over it. The checksum takes one addition for each such
 * field (RFC 1624).
 *
 * @param more_proto  Added to the template's protocol.
 */
lb_always_inline void
lb_encap_write_ipv4(const uint8_t *bytes, const struct lb_encap_packet *packet,
	unsigned int n_bytes, uint8_t more_proto, uint8_t *out)
{
	const uint32_t tos = (uint32_t)packet->tos << 8;
	const uint32_t total = lb_bytes_swap16((uint16_t)(n_bytes + packet->inner_bytes));
	const uint32_t sum = lb_bytes_load16(bytes + LB_ENCAP_V4_CSUM_AT) + tos + total +
			     ((uint32_t)more_proto << 8);

	memcpy(out + 4, bytes + 4, LB_ENCAP_V4_BYTES - 4);
	lb_bytes_store32(out, LB_ENCAP_V4_FIRST | tos | total << 16);
	if (more_proto != 0)
		out[LB_ENCAP_V4_PROTO_AT] = (uint8_t)(bytes[LB_ENCAP_V4_PROTO_AT] + more_proto);
	/* Both halves added, and their carry, come to lie in the upper one. */
	lb_bytes_store16(out + LB_ENCAP_V4_CSUM_AT,
		(uint16_t)(~(sum + (sum << 16 | sum >> 16)) >> 16));
}

/* @return the payload's length, as it lies in the first word; UDP's lies there in its own. */
lb_always_inline uint64_t
lb_encap_write_ipv6(const uint8_t *bytes, const struct lb_encap_packet *packet,
	unsigned int n_behind, uint8_t proto, uint8_t *out)
{
	const uint32_t low = packet->entropy & LB_ENCAP_FLOW_LABEL_MASK;
	const uint32_t label = low + (low == 0); /* 0 means that there is none */
	const uint64_t length =
		(uint64_t)lb_bytes_swap16((uint16_t)(n_behind + packet->inner_bytes)) << 32;

	lb_encap_write_word(bytes,
		lb_bytes_swap32((uint32_t)packet->tos << 20 | label) | length |
			(uint64_t)proto << 48,
		out);
	memcpy(out + 8, bytes + 8, LB_ENCAP_V6_BYTES - 8);
	return length;
}

lb_always_inline void
lb_encap_write_ipip(const uint8_t *bytes, bool is_v6, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	/* The template's is that of IPv4. */
	const uint8_t more_proto = packet->is_v6 ? IPPROTO_IPV6 - IPPROTO_IPIP : 0;

	if (is_v6)
		(void)lb_encap_write_ipv6(bytes, packet, 0, IPPROTO_IPIP + more_proto, out);
	else
		lb_encap_write_ipv4(bytes, packet, LB_ENCAP_V4_BYTES, more_proto, out);
}

/* No checksum, key or sequence; version 0. */
lb_always_inline void
lb_encap_write_gre(const uint8_t *bytes, bool is_v6, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	const uint32_t n_bytes = is_v6 ? LB_ENCAP_V6_BYTES : LB_ENCAP_V4_BYTES;

	if (is_v6)
		(void)lb_encap_write_ipv6(bytes, packet, LB_ENCAP_GRE_BYTES, 0, out);
	else
		lb_encap_write_ipv4(bytes, packet, n_bytes + LB_ENCAP_GRE_BYTES, 0, out);
	lb_bytes_store32(out + n_bytes, (uint32_t)(lb_encap_ethertype(packet) >> 32));
}

/* The sum of what is usual. The header of an IPv4 packet has the sum 0, by its checksum. */
lb_always_inline uint64_t
lb_encap_sum_usual(uint64_t sum, const struct lb_encap_packet *packet, const uint8_t *ip)
{
	const size_t n = packet->inner_bytes;

	if (unlikely(n > LB_CSUM_SHORT_BYTES_MAX))
		return lb_csum_add(sum, ip, n);
	if (!packet->is_v6)
		return lb_csum_add_short(sum, ip + LB_ENCAP_V4_BYTES, n - LB_ENCAP_V4_BYTES);
	sum = lb_csum_add_two(sum, ip);
	sum = lb_csum_add_two(sum, ip + 16);
	return lb_csum_add_short(sum, ip + 32, n - 32);
}

/* n_behind bytes, a constant, are between UDP and the inner packet; type ends them, if any. */
lb_always_inline void
lb_encap_write_udp_v6(struct lb_encap_part from, const struct lb_encap_packet *packet,
	unsigned int n_behind, uint64_t type, bool is_usual, uint8_t *out)
{
	uint8_t *udp = out + LB_ENCAP_V6_BYTES;
	const uint64_t length =
		lb_encap_write_ipv6(from.bytes, packet, LB_ENCAP_UDP_BYTES + n_behind, 0, out);
	const uint64_t word = lb_bytes_load64(from.bytes + LB_ENCAP_V6_BYTES) |
			      lb_encap_sport(packet) | length;
	/*
	 * The length counts twice: in the pseudo-header and in UDP's own (RFC 8200, section
	 * 8.1). The fields that are added first do not meet.
	 */
	uint64_t sum;
	uint16_t csum;

	sum = lb_csum_join(from.sum + LB_BYTES_IN_ORDER(length | type, 64),
		LB_BYTES_IN_ORDER(word, 64));
	sum = is_usual ? lb_encap_sum_usual(sum, packet, udp + LB_ENCAP_UDP_BYTES + n_behind)
		       : lb_csum_join(sum, packet->inner_sum);
	csum = lb_csum_finish(sum);
	csum = (uint16_t)(csum - (csum == 0)); /* 0 on the wire means that there is none */
	lb_bytes_store64(udp, word | (uint64_t)LB_BYTES_IN_ORDER(csum, 16) << 48);
}

/* Without a checksum. */
lb_always_inline void
lb_encap_write_udp_v4(const uint8_t *bytes, const struct lb_encap_packet *packet,
	unsigned int n_behind, uint8_t *out)
{
	const unsigned int n_udp = LB_ENCAP_UDP_BYTES + n_behind;
	const uint64_t length = lb_bytes_swap16((uint16_t)(n_udp + packet->inner_bytes));

	lb_encap_write_ipv4(bytes, packet, LB_ENCAP_V4_BYTES + n_udp, 0, out);
	lb_bytes_store64(out + LB_ENCAP_V4_BYTES, lb_bytes_load32(bytes + LB_ENCAP_V4_BYTES) |
							  lb_encap_sport(packet) |
							  length << 32);
}

lb_always_inline void
lb_encap_write_gue(struct lb_encap_part from, bool is_v6, const struct lb_encap_packet *packet,
	bool is_usual, uint8_t *out)
{
	if (is_v6)
		lb_encap_write_udp_v6(from, packet, 0, 0, is_usual, out);
	else
		lb_encap_write_udp_v4(from.bytes, packet, 0, out);
}

lb_always_inline void
lb_encap_write_vxlan(struct lb_encap_part from, bool is_v6,
	const struct lb_encap_packet *packet, bool is_usual, uint8_t *out)
{
	const uint64_t type = lb_encap_ethertype(packet);
	const uint8_t *bytes = from.bytes;

	if (is_v6) {
		lb_encap_write_udp_v6(from, packet, LB_ENCAP_INNER_BYTES, type, is_usual, out);
		bytes += LB_ENCAP_V6_BYTES + LB_ENCAP_UDP_BYTES;
		out += LB_ENCAP_V6_BYTES + LB_ENCAP_UDP_BYTES;
	} else {
		lb_encap_write_udp_v4(from.bytes, packet, LB_ENCAP_INNER_BYTES, out);
		bytes += LB_ENCAP_V4_BYTES + LB_ENCAP_UDP_BYTES;
		out += LB_ENCAP_V4_BYTES + LB_ENCAP_UDP_BYTES;
	}
	memcpy(out, bytes, 16);
	lb_encap_write_word(bytes + LB_ENCAP_INNER_BYTES - 8, type,
		out + LB_ENCAP_INNER_BYTES - 8);
}

/*
 * mode and is_v6 are the template's. Where they are constants the compiler leaves one branch of
 * many.
 */
lb_always_inline void
lb_encap_write_as(struct lb_encap_part from, enum lb_forward_mode mode, bool is_v6,
	const struct lb_encap_packet *packet, bool is_usual, uint8_t *out)
{
	switch (mode) {
	case LB_FORWARD_GRE:
		lb_encap_write_gre(from.bytes, is_v6, packet, out);
		break;
	case LB_FORWARD_GUE:
		lb_encap_write_gue(from, is_v6, packet, is_usual, out);
		break;
	case LB_FORWARD_VXLAN:
		lb_encap_write_vxlan(from, is_v6, packet, is_usual, out);
		break;
	default:
		lb_encap_write_ipip(from.bytes, is_v6, packet, out);
		break;
	}
}

/** The same as lb_encap_write(), of a template that is not L2's. */
static inline void
lb_encap_write_outer(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	lb_encap_write_as((struct lb_encap_part){encap->bytes, encap->sum},
		(enum lb_forward_mode)encap->mode, encap->is_v6, packet, false, out);
}

/**
 * The same, right before a usual packet (lb_usual.h) that lies there in one piece and as it
 * was found to be usual: what is needed of it is summed here. inner_sum is not read.
 *
 * @param from   Of a template
 * @param mode   of this mode, and
 * @param is_v6  of this family: constants in a loop for one kind of templates.
 */
static inline void
lb_encap_write_usual(struct lb_encap_part from, enum lb_forward_mode mode, bool is_v6,
	const struct lb_encap_packet *packet, uint8_t *out)
{
	lb_encap_write_as(from, mode, is_v6, packet, true, out);
}

#endif
