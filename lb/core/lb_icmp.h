/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_ICMP_H
#define LB_ICMP_H

/**
 * @file
 * What the balancer itself answers by ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and packets
 * that are too big.
 *
 * Neither is much larger than what caused it: an echo reply is as long as its request, an
 * error is its cause, or the beginning of that, with headers of LB_ICMP_TOO_BIG_PREPEND_MAX
 * bytes. How often anything is answered is for the caller to limit (lb_rate.h).
 *
 * A frame here is in one piece, and packet is what lb_packet_parse() said of that very frame.
 * VLAN tags are kept. Pure; reads and writes nothing past the given length. Callable from any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_packet.h"

/** Smallest MTU that every link has: RFC 791, section 3.2, and RFC 8200, section 5. */
#define LB_ICMP_MTU_MIN_V4 68u
#define LB_ICMP_MTU_MIN_V6 1280u

/** IPv6 and ICMPv6 headers: most room that an error needs before a frame, bytes. */
#define LB_ICMP_TOO_BIG_PREPEND_MAX 48u

/**
 * Turn an echo request into its reply, in place; or a fragment of one into that of the reply.
 *
 * MAC and IP addresses change places, TTL or hop limit is 64, DSCP is the request's, ECN is
 * Not-ECT, and a flow label is 0. Identification and DF of IPv4 stay: what was unique from
 * there is so in return. The ICMP checksum is only adjusted (RFC 1624), so that a request
 * that was damaged on its way does not become a reply that looks sound.
 *
 * Nothing has to be put together for that: what differs from the request, type and checksum,
 * is in the first fragment, and the difference of one is that of the other, whatever follows.
 * Each fragment keeps its place and identification. Whether a later one is of a request that
 * was answered is for the caller to know.
 *
 * IPv4 options (RFC 1122, section 3.2.2.6): a route is recorded on, where there is room, and
 * a time stamp stays as it came; options that mean nothing here are made no-operations. Source
 * routes are refused, as hosts are told to (RFC 7126, sections 4.3 and 4.4).
 *
 * IPv6 extension headers are the request's alone: the reply has none, but for the header of a
 * fragment that is one of several (RFC 6946). They are passed over where any host would:
 * options that may be skipped by who does not know them (RFC 8200, section 4.2), and routing
 * headers without segments left. Such destination options behind the header of a fragment are
 * part of what was cut, so that the places of all that follows hang on them: they stay, and the
 * reply has them.
 *
 * @param frame       n_bytes bytes; untouched where the result is 0.
 * @param[out] begin  Where the reply's frame begins in the request's: what was left out is
 *                    closed up from the front. Untouched where the result is 0.
 * @return the reply's frame in bytes, without the request's padding: n_bytes less begin at
 *         most. 0 where there is none: neither an echo request nor a later fragment; a capture
 *         cut it; from or to a group, by MAC or IP address, or a source that is no single
 *         host's (RFC 1122, section 3.2.2); its own source; an option that is malformed or
 *         refused; another extension header, or behind that of a fragment any but destination
 *         options.
 */
size_t lb_icmp_echo_reply(uint8_t *frame, size_t n_bytes, const struct lb_packet *packet,
	size_t *begin) lb_must_check;

/**
 * Whether an ICMP error may be sent about a packet.
 *
 * Never about an ICMP error or redirect, ICMP of a type that is not known to be none, a
 * fragment after the first, what went to a group by MAC or IP address, or what came from no
 * single host: RFC 1122, section 3.2.2; RFC 1812, section 4.3.2.7; RFC 4443, section 2.4(e).
 * RFC 4443 would have too big sent for groups and later fragments: no service is a group, and a
 * later fragment's first is as big. Nor about a packet whose type or destination is not known
 * for certain: one that a capture cut before its L4 header, or that has a routing header's
 * segments left.
 *
 * @param frame  n_bytes bytes.
 */
bool lb_icmp_may_answer(const uint8_t *frame, size_t n_bytes,
	const struct lb_packet *packet) lb_must_check;

/** An error that says too big, before it is written. */
struct lb_icmp_too_big {
	uint16_t mtu;           /**< that it tells */
	uint16_t prepend_bytes; /**< room it needs before the frame: 28, or 48 for IPv6 */
	uint16_t frame_bytes;   /**< its own frame, that room included */
};

/**
 * How large the error is that tells a packet's source of the MTU; and whether it may be sent.
 *
 * It quotes the packet's beginning: what fits in 576 bytes in all (RFC 1812, section 4.3.2.3),
 * or in 1280 (RFC 4443, section 3.2).
 *
 * The MTU told is never below what every link has, LB_ICMP_MTU_MIN_V4 and _V6: a sender would
 * not go below (RFC 1191, section 3; RFC 8201, section 4). So nothing is told about a packet
 * that is no larger than that: the caller has to fragment its outer packet, or drop it.
 *
 * @param frame     n_bytes bytes.
 * @param mtu       Of what the source may send: the link's without outer headers. Above 65535
 *                  it is told as 65535.
 * @param[out] out  Written only where the result is true.
 * @return false where lb_icmp_may_answer() says so; the packet is IPv4 without DF, and is to be
 *         fragmented; it is no larger than the MTU told; or a capture cut what is to be quoted.
 */
bool lb_icmp_too_big_size(const uint8_t *frame, size_t n_bytes, const struct lb_packet *packet,
	uint32_t mtu, struct lb_icmp_too_big *out) lb_must_check;

/**
 * Write the error before what it quotes: IPv4 type 3 code 4 with the next hop's MTU (RFC 1191),
 * or ICMPv6 type 2.
 *
 * It goes from src to the packet's source, back to the MAC address that it came from. TTL or
 * hop limit 64, ECN Not-ECT; over IPv4 precedence 6, internetwork control (RFC 1812, section
 * 4.3.2.5), DF, and identification 0 (RFC 6864); traffic class and flow label 0 over IPv6.
 *
 * @param frame   out->frame_bytes bytes. The frame that was parsed lies prepend_bytes into it;
 *                of that, only MAC addresses and tags are written over.
 * @param packet  Of the frame as it was parsed.
 * @param error   What lb_icmp_too_big_size() said of it.
 * @param src     Of the packet's family: its own destination, or an address of the balancer.
 */
void lb_icmp_too_big_write(uint8_t *frame, const struct lb_packet *packet,
	const struct lb_icmp_too_big *error, const struct lb_addr *src);

#endif
