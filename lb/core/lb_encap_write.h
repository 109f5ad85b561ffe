/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_ENCAP_WRITE_H
#define LB_ENCAP_WRITE_H

/**
 * @file
 * lb_encap_write() for the loop that every packet goes through: the outer IP header inline, in
 * words that are written once. lb_encap.h has what it all means.
 */

#include <string.h>

#include "lb_bytes.h"
#include "lb_encap.h"

#define LB_ENCAP_V4_BYTES        20u
#define LB_ENCAP_V6_BYTES        40u
#define LB_ENCAP_FLOW_LABEL_MASK 0xfffffu

/** What follows the outer IP header, of modes other than L2 and IPIP; out is where it goes. */
void lb_encap_write_payload(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out);

/* A template's word with fields put into it that are 0 there; the first byte is the lowest. */
static inline void
lb_encap_write_word(const uint8_t *from, uint64_t fields, uint8_t *out)
{
	lb_bytes_store64(out, lb_bytes_load64(from) | fields);
}

/* The checksum takes one addition for each field that is not the template's (RFC 1624). */
static inline void
lb_encap_write_ipv4(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	const uint32_t tos = (uint32_t)packet->tos << 8;
	const uint32_t total =
		lb_bytes_swap16((uint16_t)(encap->n_bytes + packet->inner_bytes));
	const uint32_t proto = (uint32_t)encap->inner_proto[packet->is_v6] << 8;
	const uint32_t sum = encap->ipv4_sum + tos + total + proto;
	/* Both halves added, and their carry, come to lie in the upper one. */
	const uint32_t csum = ~(sum + (sum << 16 | sum >> 16)) & UINT32_C(0xffff0000);

	lb_encap_write_word(encap->bytes, tos | total << 16, out);
	lb_encap_write_word(encap->bytes + 8, proto | csum, out + 8);
	memcpy(out + 16, encap->bytes + 16, LB_ENCAP_V4_BYTES - 16);
}

static inline void
lb_encap_write_ipv6(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	const uint32_t low = packet->entropy & LB_ENCAP_FLOW_LABEL_MASK;
	const uint32_t label = low == 0 ? 1 : low; /* 0 means that there is none */
	const uint64_t payload = lb_bytes_swap16(
		(uint16_t)(encap->n_bytes - LB_ENCAP_V6_BYTES + packet->inner_bytes));
	const uint64_t proto = encap->inner_proto[packet->is_v6];

	lb_encap_write_word(encap->bytes,
		lb_bytes_swap32((uint32_t)packet->tos << 20 | label) | payload << 32 |
			proto << 48,
		out);
	memcpy(out + 8, encap->bytes + 8, LB_ENCAP_V6_BYTES - 8);
}

/** The same as lb_encap_write(), of a template that is not L2's. */
static inline void
lb_encap_write_outer(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	if (encap->is_v6)
		lb_encap_write_ipv6(encap, packet, out);
	else
		lb_encap_write_ipv4(encap, packet, out);
	if (encap->mode != LB_FORWARD_IPIP) { /* there the inner header is next */
		const struct lb_encap_packet copy = *packet; /* it need not be in memory */

		lb_encap_write_payload(encap, &copy,
			out + (encap->is_v6 ? LB_ENCAP_V6_BYTES : LB_ENCAP_V4_BYTES));
	}
}

#endif
