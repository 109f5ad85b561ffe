/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_PACKET_H
#define LB_PACKET_H

/**
 * @file
 * Parsing: a frame's bytes to what the packet path needs to know of it.
 *
 * Ethernet, up to two VLAN tags (802.1Q 0x8100, 802.1ad 0x88a8, and the older
 * 0x9100), IPv4 with options (RFC 791), IPv6 with extension headers (RFC 8200),
 * TCP, UDP, ICMP and ICMPv6 errors by the packet they quote (RFC 792, RFC 4443),
 * fragments (RFC 791, RFC 8200; what RFC 1858, 3128 and 7112 warn of is refused).
 *
 * Pure; reads nothing past the given length, whatever the bytes are. Callable
 * from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_flow.h"
#include "lb_verdict.h"

/** What the packet is to the service table. Says how key is to be read. */
enum lb_packet_kind {
	/** key is complete: TCP and UDP with ports, any other protocol with ports 0. */
	LB_PACKET_FLOW,
	/**
	 * An ICMP error about a flow; key is the flow's, seen from the client. About an echo,
	 * or its reply, it is as that of the protocols without ports.
	 */
	LB_PACKET_ICMP_ERROR,
	/** An ICMP error about a later fragment of TCP or UDP: the same, but ports are 0. */
	LB_PACKET_ICMP_ERROR_LATER,
	/**
	 * A fragment with offset above 0 whose ports came with its first: TCP or UDP over
	 * IPv4, and all of IPv6, as only the first says what its datagram is (RFC 8200,
	 * section 4.5). key has addresses and, over IPv4 to be believed, protocol; ports are
	 * 0. A later fragment of another protocol over IPv4 is what its first is:
	 * LB_PACKET_FLOW, _TUNNEL or _ICMP_OTHER.
	 */
	LB_PACKET_LATER_FRAGMENT,
	/**
	 * ICMP that is no error about a flow: queries, echo, errors that quote too little, or
	 * ICMP that is no echo, and every fragment of ICMP: errors are too short to be cut (RFC
	 * 1812, RFC 4443).
	 */
	LB_PACKET_ICMP_OTHER,
	/** Protocol 4, 41 or 47: somebody's tunnel; key as for LB_PACKET_FLOW. */
	LB_PACKET_TUNNEL,
	/**
	 * Not judged by its L4: an IPv6 routing header has segments left. key.proto and
	 * l4_offset are that header's.
	 */
	LB_PACKET_NOT_FINAL,
	/** The capture cut it before its ports, or its quote's: of key, only dst may be read.
	 */
	LB_PACKET_CUT_SHORT,
};

enum {
	LB_PACKET_DF = 1 << 0,             /**< IPv4 don't-fragment; always set for IPv6 */
	LB_PACKET_FIRST_FRAGMENT = 1 << 1, /**< offset 0 and more to come */
	LB_PACKET_ECHO_REQUEST = 1 << 2,   /**< ICMP or ICMPv6 echo request */
	LB_PACKET_CUT = 1 << 3,        /**< IP bytes are missing since the capture cut them */
	LB_PACKET_FRAGMENT = 1 << 4,   /**< first or later, of whatever kind; frag_* are set */
	LB_PACKET_MORE = 1 << 5,       /**< a fragment, and not the last of its datagram */
	LB_PACKET_LINK_GROUP = 1 << 6, /**< its frame is to a group of its link, or to all */
	/** To go on from its destination: an IPv4 source route that is not used up (RFC 791),
	 * or an IPv6 routing header of type 0 with segments left (RFC 5095). */
	LB_PACKET_SOURCE_ROUTE = 1 << 7,
};

enum { LB_TCP_FIN = 0x01, LB_TCP_SYN = 0x02, LB_TCP_RST = 0x04, LB_TCP_ACK = 0x10 };

struct lb_packet {
	struct lb_flow_key key;
	/** The packet's own destination. key.dst is the same: other quotes are not believed. */
	struct lb_addr dst;
	uint32_t ip_bytes;  /**< IPv4 total length, or 40 + IPv6 payload length */
	uint32_t tcp_seq;   /**< host order; 0 where it is not TCP */
	uint16_t ip_offset; /**< from the frame's start: 14, 18 or 22 */
	uint16_t l4_offset; /**< from the frame's start, after options and extension headers */
	uint8_t kind;       /**< enum lb_packet_kind */
	uint8_t flags;      /**< LB_PACKET_* */
	uint8_t tcp_flags;  /**< the TCP header's flag byte; 0 where it is not TCP */
	uint8_t tos;        /**< IPv4 TOS or IPv6 traffic class: DSCP and ECN */
	bool is_v6;
	uint8_t n_tags; /**< VLAN tags, 0..LB_VLAN_TAGS_MAX */
	/*
	 * Of fragments alone, otherwise 0. What is cut is the bytes after the IPv4 header, or
	 * after the IPv6 fragment header. An IPv6 fragment with nothing before it and nothing
	 * to come is a whole packet (RFC 6946).
	 */
	uint32_t frag_id;     /**< IPv4's 16 bits or IPv6's 32, host order */
	uint16_t frag_offset; /**< in bytes, a multiple of 8 */
	uint16_t frag_bytes;  /**< 1 at least; frag_offset + frag_bytes is 65535 at most */
};

/** Whether it is a fragment after the first, of whatever kind. */
static inline bool
lb_packet_is_later_fragment(const struct lb_packet *packet)
{
	return (packet->flags & (LB_PACKET_FRAGMENT | LB_PACKET_FIRST_FRAGMENT)) ==
	       LB_PACKET_FRAGMENT;
}

/**
 * Parse one Ethernet frame.
 *
 * @param frame       n_bytes bytes.
 * @param n_bytes     Bytes there are.
 * @param wire_bytes  Bytes the frame had on the wire; more than n_bytes only where a
 *                    capture cut it.
 * @param[out] out    Written in full where the result is LB_FORWARD; otherwise its
 *                    content is unspecified.
 * @retval LB_FORWARD     Parsed; kind says what it is. Where the capture cut it after
 *                        what had to be read, flags has LB_PACKET_CUT.
 * @retval LB_TO_KERNEL   Not IPv4 or IPv6 (ARP, LLC, an unknown EtherType); or an IPv6 packet
 *                        from or to an IPv4-mapped address, which has no place on a wire and
 *                        would be taken for IPv4 here.
 * @retval LB_DROP_*      The first check that failed, in this order: length for the fixed
 *                        header, version, header length, total length, header checksum,
 *                        TTL, extension headers, fragment, L4 header. A byte that was never
 *                        there is LB_DROP_TRUNCATED; one that was cut by the capture makes
 *                        LB_PACKET_CUT_SHORT, or where that hides whom the packet is for,
 *                        LB_TO_KERNEL. TCP and UDP cut after their ports are
 *                        LB_PACKET_FLOW, with LB_PACKET_CUT.
 *
 * A total length beyond the frame is LB_DROP_TRUNCATED unless the capture cut it.
 * An IP payload shorter than the fixed TCP, UDP or ICMP header is LB_DROP_TRUNCATED. A
 * fragment is LB_DROP_FRAGMENT_BAD if its datagram could not be put together, or would hide
 * what it is: it has no payload; it would end past the largest IP packet; more is to come and
 * its payload is no multiple of 8; it is the first and lacks part of the header chain, of that
 * fixed header or of TCP's options (RFC 1858, RFC 7112); it is TCP over IPv4 and begins within
 * that header (RFC 3128); or it is cut once more by a second IPv6 fragment header.
 *
 * A quoted packet is believed only as far as its addresses, protocol and ports: its lengths and
 * checksum may have been rewritten on the way; if its source is not the error's destination, it
 * is LB_PACKET_ICMP_OTHER, as where it is a later fragment of an IPv6 extension header.
 */
enum lb_verdict lb_packet_parse(const uint8_t *frame, size_t n_bytes, size_t wire_bytes,
	struct lb_packet *out) lb_must_check;

/**
 * The same, without the short way that lb_packet_parse() has for the usual packet: its plain
 * twin, which gives the same result for every frame.
 */
enum lb_verdict lb_packet_parse_plainly(const uint8_t *frame, size_t n_bytes, size_t wire_bytes,
	struct lb_packet *out) lb_must_check;

#endif
