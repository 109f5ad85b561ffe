/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PACKET_FLAW_H
#define PACKET_FLAW_H

/**
 * @file
 * What must hold of every parsed packet, whatever its bytes: for unit tests and fuzzing.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_limits.h"
#include "lb_packet.h"

/** What frag_* and the fragments' flags break; NULL where nothing. */
static inline const char *
fragment_flaw(const struct lb_packet *p)
{
	const bool is_first = (p->flags & LB_PACKET_FIRST_FRAGMENT) != 0;
	const bool has_more = (p->flags & LB_PACKET_MORE) != 0;

	if ((p->flags & LB_PACKET_FRAGMENT) == 0) {
		if (is_first || has_more || p->kind == LB_PACKET_LATER_FRAGMENT)
			return "part of a datagram, and no fragment";
		if ((p->frag_id | p->frag_offset | p->frag_bytes) != 0)
			return "a fragment's fields where it is none";
		return NULL;
	}
	if (p->kind == LB_PACKET_ICMP_ERROR || p->kind == LB_PACKET_ICMP_ERROR_LATER)
		return "an ICMP error in a fragment";
	if (is_first != (p->frag_offset == 0) || (is_first && !has_more))
		return "a first fragment is one at 0 with more to come";
	if (is_first && p->kind == LB_PACKET_LATER_FRAGMENT)
		return "a fragment both first and later";
	if (!is_first && (p->key.sport_be | p->key.dport_be) != 0)
		return "a later fragment with ports";
	if (p->frag_bytes == 0 || p->frag_offset % 8 != 0 ||
		(has_more && p->frag_bytes % 8 != 0))
		return "a fragment that ends where none may";
	if (p->frag_offset + p->frag_bytes > UINT16_MAX || p->frag_bytes > p->ip_bytes)
		return "a fragment's end is over what a packet may have";
	return NULL;
}

/** The first promise of lb_packet.h that p breaks, in words; NULL where it keeps them. */
static inline const char *
packet_flaw(const struct lb_packet *p, size_t n_bytes, size_t wire_bytes)
{
	const size_t wire = wire_bytes > n_bytes ? wire_bytes : n_bytes;
	const size_t ip_header_bytes = p->is_v6 ? 40 : 20;

	if (p->kind > LB_PACKET_CUT_SHORT)
		return "kind is out of range";
	if (!lb_addr_equal(&p->key.dst, &p->dst))
		return "key.dst is not the packet's destination";
	if (p->kind == LB_PACKET_CUT_SHORT)
		return (p->flags & LB_PACKET_CUT) != 0 ? NULL : "cut short, and not cut";
	if (p->n_tags > LB_VLAN_TAGS_MAX || p->ip_offset != 14 + 4 * p->n_tags)
		return "ip_offset is not after the tags";
	if (p->l4_offset < p->ip_offset + ip_header_bytes || p->l4_offset > n_bytes)
		return "l4_offset is not between the IP header and the frame's end";
	if (p->ip_bytes > wire - p->ip_offset)
		return "ip_bytes is over the frame";
	if ((size_t)p->l4_offset - p->ip_offset > p->ip_bytes)
		return "l4_offset is over the IP packet";
	if (((p->flags & LB_PACKET_CUT) != 0) != (p->ip_offset + p->ip_bytes > n_bytes))
		return "CUT is not what the lengths say";
	if (p->key.zero[0] != 0 || p->key.zero[1] != 0 || p->key.zero[2] != 0)
		return "the key's zero bytes are not";
	if (p->is_v6 && (p->flags & LB_PACKET_DF) == 0)
		return "IPv6 without DF";
	if (!p->is_v6 && !(lb_addr_is_v4(&p->key.src) && lb_addr_is_v4(&p->key.dst)))
		return "an IPv4 packet's address is not one";
	if (((p->key.proto != 6 && p->key.proto != 17) ||
		    p->kind == LB_PACKET_ICMP_ERROR_LATER) &&
		(p->key.sport_be | p->key.dport_be) != 0)
		return "ports of a protocol that has none";
	if ((p->tcp_flags != 0 || p->tcp_seq != 0) &&
		(p->kind != LB_PACKET_FLOW || p->key.proto != 6))
		return "TCP fields where it is not TCP";
	if ((p->flags & LB_PACKET_ECHO_REQUEST) != 0 && p->kind != LB_PACKET_ICMP_OTHER)
		return "an echo request that is not ICMP_OTHER";
	return fragment_flaw(p);
}

#endif
