/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_icmp.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_csum.h"

enum {
	MAC_BYTES = 6,
	TTL = 64,
	DSCP_MASK = 0xfc,

	/* IPv4, by offset. */
	IPV4_TOS = 1,
	IPV4_TOTAL_BYTES = 2,
	IPV4_FRAGMENT = 6,
	IPV4_TTL = 8,
	IPV4_PROTO = 9,
	IPV4_CSUM = 10,
	IPV4_SRC = 12,
	IPV4_DST = 16,
	IPV4_BYTES = 20,
	IPV4_BYTES_MAX = 60,
	IPV4_ADDR_BYTES = 4,
	IPV4_DF = 0x4000,
	IPV4_RESERVED = 0x8000,
	IPV4_CS6 = 0xc0,

	/* IPv4 options. */
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_RECORD_ROUTE = 7,
	OPTION_TIME_STAMP = 68,
	OPTION_LOOSE_ROUTE = 131,
	OPTION_STRICT_ROUTE = 137,
	ROUTE_POINTER = 2,     /* by offset; it counts from 1 */
	ROUTE_POINTER_MIN = 4, /* the first address */

	/* IPv6, by offset. */
	IPV6_PAYLOAD_BYTES = 4,
	IPV6_NEXT_HEADER = 6,
	IPV6_HOP_LIMIT = 7,
	IPV6_SRC = 8,
	IPV6_DST = 24,
	IPV6_BYTES = 40,

	/* IPv6 extension headers. */
	EXTENSION_BYTES = 8, /* the shortest, and what the length of others counts in */
	OPTIONS_AT = 2,
	SEGMENTS_LEFT_AT = 3,
	OPTION_PAD1 = 0,
	OPTION_ACTION = 0xc0, /* of who does not know it; 0: to skip it */

	/* ICMP and ICMPv6, by offset. */
	ICMP_CODE = 1,
	ICMP_CSUM = 2,
	ICMP_MTU_V4 = 6,
	ICMP_MTU_V6 = 4, /* 32 bits */
	ICMP_BYTES = 8,

	ICMP_ECHO_REPLY = 0,
	ICMP_UNREACHABLE = 3,
	ICMP_FRAGMENTATION_NEEDED = 4, /* a code of that */
	ICMP_ECHO = 8,
	ICMP_TIME_EXCEEDED = 11,
	ICMP_PARAMETER_PROBLEM = 12,
	ICMP_ADDRESS_MASK_REPLY = 18,
	ICMPV6_TOO_BIG = 2,
	ICMPV6_INFORMATIONAL = 128, /* and above; below are errors */
	ICMPV6_ECHO_REPLY = 129,
	ICMPV6_REDIRECT = 137,

	ERROR_BYTES_MAX_V4 = 576,
	ERROR_BYTES_MAX_V6 = 1280,
};

static_assert(IPV6_BYTES + ICMP_BYTES == LB_ICMP_TOO_BIG_PREPEND_MAX, "the larger of the two");

static bool
is_group(const uint8_t *mac)
{
	return (mac[0] & 1) != 0;
}

static void
swap_macs(uint8_t *frame)
{
	uint8_t dst[MAC_BYTES];

	memcpy(dst, frame, MAC_BYTES);
	memcpy(frame, frame + MAC_BYTES, MAC_BYTES);
	memcpy(frame + MAC_BYTES, dst, MAC_BYTES);
}

/* Whether it came from one host to one host, so that an answer reaches who asked. */
static bool
is_between_hosts(const uint8_t *frame, const struct lb_packet *packet)
{
	return !is_group(frame) && !is_group(frame + MAC_BYTES) &&
	       lb_addr_is_unicast(&packet->dst) && lb_addr_is_unicast(&packet->key.src) &&
	       !lb_addr_equal(&packet->dst, &packet->key.src);
}

/*
 * An option lies from at to next, which is within the options. Add our address to a recorded
 * route; false where it is malformed (RFC 791).
 */
static bool
record_route(uint8_t *options, size_t at, size_t next, const uint8_t *own)
{
	size_t pointer;
	size_t address;

	if (at + ROUTE_POINTER >= next)
		return false;
	pointer = options[at + ROUTE_POINTER];
	if (pointer < ROUTE_POINTER_MIN)
		return false;
	address = at + pointer - 1;
	if (address >= next)
		return true; /* full */
	if (address + IPV4_ADDR_BYTES > next)
		return false;
	memcpy(options + address, own, IPV4_ADDR_BYTES);
	options[at + ROUTE_POINTER] = (uint8_t)(pointer + IPV4_ADDR_BYTES);
	return true;
}

static bool
answer_option(uint8_t *options, size_t at, size_t next, const uint8_t *own)
{
	switch (options[at]) {
	case OPTION_LOOSE_ROUTE:
	case OPTION_STRICT_ROUTE:
		return false;
	case OPTION_RECORD_ROUTE:
		return record_route(options, at, next, own);
	case OPTION_TIME_STAMP:
		return true;
	default:
		for (size_t i = at; i < next; i++)
			options[i] = OPTION_NOP;
		return true;
	}
}

/* Make n bytes of a request's options into the reply's; false where there is to be none. */
static bool
answer_options(uint8_t *options, uint8_t n, const uint8_t *own)
{
	size_t next;

	//@ loop variant n - at;
	for (size_t at = 0; at < n && options[at] != OPTION_END; at = next) {
		next = at + 1;
		if (options[at] == OPTION_NOP)
			continue;
		if (next >= n || options[next] < 2)
			return false;
		next = at + options[next];
		if (next > n || !answer_option(options, at, next, own))
			return false;
	}
	return true;
}

/* ip: header_bytes, whose lengths the parser has checked. False leaves it untouched. */
static bool
answer_ipv4(uint8_t *ip, size_t header_bytes)
{
	uint8_t header[IPV4_BYTES_MAX];
	uint16_t csum;

	if (header_bytes < IPV4_BYTES || header_bytes > IPV4_BYTES_MAX)
		return false;

	memcpy(header, ip, header_bytes);
	if (!answer_options(header + IPV4_BYTES, (uint8_t)(header_bytes - IPV4_BYTES),
		    ip + IPV4_DST))
		return false;
	header[IPV4_TOS] &= DSCP_MASK;
	lb_bytes_store16_be(header + IPV4_FRAGMENT,
		lb_bytes_load16_be(ip + IPV4_FRAGMENT) & ~IPV4_RESERVED);
	header[IPV4_TTL] = TTL;
	memcpy(header + IPV4_SRC, ip + IPV4_DST, IPV4_ADDR_BYTES);
	memcpy(header + IPV4_DST, ip + IPV4_SRC, IPV4_ADDR_BYTES);
	lb_bytes_store16_be(header + IPV4_CSUM, 0);
	csum = lb_csum_finish(lb_csum_add(0, header, header_bytes));
	memcpy(header + IPV4_CSUM, &csum, sizeof(csum));
	memcpy(ip, header, header_bytes);
	return true;
}

/* Whether who knows none of the options from p on may pass over them (RFC 8200, 4.2). */
static bool
may_skip_options(const uint8_t *p, const uint8_t *end)
{
	//@ loop variant end - p;
	while (end - p > 0) {
		if ((p[0] & OPTION_ACTION) != 0)
			return false;
		if (p[0] == OPTION_PAD1) {
			p++;
			continue;
		}
		if (end - p < 2 || end - p - 2 < p[1])
			return false;
		p += 2 + p[1];
	}
	return true;
}

/* The same of the extension header from p to end. */
static bool
may_skip_header(uint8_t proto, const uint8_t *p, const uint8_t *end)
{
	switch (proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_DSTOPTS:
		return may_skip_options(p + OPTIONS_AT, end);
	case IPPROTO_ROUTING:
		return p[SEGMENTS_LEFT_AT] == 0;
	case IPPROTO_FRAGMENT: /* of a packet in one piece: another ends the walk */
		return true;
	default:
		return false;
	}
}

/* And of all of them, from the IPv6 header to end, where proto is to follow. */
static bool
may_skip_headers(const uint8_t *ip, const uint8_t *end, uint8_t proto)
{
	const uint8_t *p = ip + IPV6_BYTES;
	uint8_t next = ip[IPV6_NEXT_HEADER];

	//@ loop variant end - p;
	while (end - p >= EXTENSION_BYTES) {
		const size_t n = next == IPPROTO_FRAGMENT
					 ? EXTENSION_BYTES
					 : ((size_t)p[1] + 1) * EXTENSION_BYTES;

		if ((size_t)(end - p) < n)
			return false;
		//@ split n;
		if (!may_skip_header(next, p, p + n))
			return false;
		/* Those of each hop follow the IPv6 header, or are not for a host to have. */
		if (p[0] == IPPROTO_HOPOPTS)
			return false;
		next = p[0];
		p += n;
	}
	return end - p == 0 && next == proto;
}

/* And of those from p to end that are part of what was cut, and stay where they are. */
static bool
may_keep_headers(uint8_t next, const uint8_t *p, const uint8_t *end)
{
	//@ loop variant end - p;
	while (end - p >= EXTENSION_BYTES) {
		const size_t n = ((size_t)p[1] + 1) * EXTENSION_BYTES;

		if (next != IPPROTO_DSTOPTS || (size_t)(end - p) < n)
			return false;
		//@ split n;
		if (!may_skip_options(p + OPTIONS_AT, p + n))
			return false;
		next = p[0];
		p += n;
	}
	return end - p == 0 && next == IPPROTO_ICMPV6;
}

/* The fixed header alone: bytes after it are left out, up to where proto begins. */
static void
answer_ipv6(uint8_t *ip, uint16_t left_out, uint8_t proto)
{
	struct lb_addr src;

	ip[1] &= 0xc0; /* the end of DSCP; ECN and the flow label follow */
	lb_bytes_store16_be(ip + 2, 0);
	lb_bytes_store16_be(ip + IPV6_PAYLOAD_BYTES,
		(uint16_t)(lb_bytes_load16_be(ip + IPV6_PAYLOAD_BYTES) - left_out));
	ip[IPV6_NEXT_HEADER] = proto;
	ip[IPV6_HOP_LIMIT] = TTL;
	memcpy(src.bytes, ip + IPV6_SRC, LB_ADDR_BYTES);
	memcpy(ip + IPV6_SRC, ip + IPV6_DST, LB_ADDR_BYTES);
	memcpy(ip + IPV6_DST, src.bytes, LB_ADDR_BYTES);
}

/* Of a whole request or a fragment of one. False leaves it untouched; out, what is left out. */
static bool
answer_ipv6_headers(uint8_t *frame, const struct lb_packet *packet, size_t *left_out)
{
	const bool is_fragment = (packet->flags & LB_PACKET_FRAGMENT) != 0;
	const uint8_t proto = is_fragment ? IPPROTO_FRAGMENT : IPPROTO_ICMPV6;
	const size_t head = (size_t)packet->ip_offset + IPV6_BYTES;
	uint8_t *ip = frame + packet->ip_offset;
	size_t kept = packet->l4_offset;

	if (is_fragment) {
		const size_t cut = packet->ip_offset + packet->ip_bytes - packet->frag_bytes;

		if (cut < head + EXTENSION_BYTES || cut > packet->l4_offset)
			return false;
		kept = cut - EXTENSION_BYTES;
		if (!lb_packet_is_later_fragment(packet) &&
			!may_keep_headers(frame[kept], frame + cut, frame + packet->l4_offset))
			return false;
	}
	if (kept < head || !may_skip_headers(ip, frame + kept, proto))
		return false;
	answer_ipv6(ip, (uint16_t)(kept - head), proto);
	*left_out = kept - head;
	return true;
}

static bool
is_zero(const uint8_t *p, const uint8_t *end)
{
	//@ loop variant end - p;
	for (; end - p > 0; p++) {
		if (*p != 0)
			return false;
	}
	return true;
}

/*
 * Change the type in a message that goes on to end, and its checksum by that alone (RFC 1624,
 * equation 3). The sum that comes out is never 0, and so the checksum never 0xffff; which is
 * right but for an IPv4 message of nothing but zeros, since it has no pseudo-header. In others
 * 0xffff is as right as 0, so for a first fragment its own bytes are enough to look at.
 */
static void
answer_icmp(uint8_t *icmp, const uint8_t *end, uint8_t type)
{
	uint32_t sum = (uint16_t)~lb_bytes_load16_be(icmp + ICMP_CSUM);

	sum += (uint16_t)~lb_bytes_load16_be(icmp);
	icmp[0] = type;
	sum += lb_bytes_load16_be(icmp);
	sum = (sum >> 16) + (sum & UINT16_MAX);
	sum = (sum >> 16) + (sum & UINT16_MAX);
	lb_bytes_store16_be(icmp + ICMP_CSUM, (uint16_t)~sum);
	if (type == ICMP_ECHO_REPLY && is_zero(icmp, end))
		lb_bytes_store16_be(icmp + ICMP_CSUM, UINT16_MAX);
}

size_t
lb_icmp_echo_reply(uint8_t *frame, size_t n_bytes, const struct lb_packet *packet,
	size_t *begin)
{
	const size_t ip_offset = packet->ip_offset;
	const size_t l4_offset = packet->l4_offset;
	const size_t end = ip_offset + packet->ip_bytes;
	const bool has_type = !lb_packet_is_later_fragment(packet);
	size_t start = 0;

	if (has_type && (packet->flags & LB_PACKET_ECHO_REQUEST) == 0)
		return 0;
	if (end > n_bytes || end < l4_offset + (has_type ? (size_t)ICMP_BYTES : 1) ||
		!is_between_hosts(frame, packet))
		return 0;

	if (packet->is_v6) {
		if (!answer_ipv6_headers(frame, packet, &start))
			return 0;
	} else if (!answer_ipv4(frame + ip_offset, l4_offset - ip_offset)) {
		return 0;
	}
	if (has_type)
		answer_icmp(frame + l4_offset, frame + end,
			packet->is_v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY);
	swap_macs(frame);
	if (start > 0)
		memmove(frame + start, frame, ip_offset + IPV6_BYTES);
	*begin = start;
	return end - start;
}

/* What is not known to be no error may be one. */
static bool
is_icmp_query(uint8_t type, bool is_v6)
{
	if (is_v6)
		return type >= ICMPV6_INFORMATIONAL && type != ICMPV6_REDIRECT;
	switch (type) {
	case ICMP_ECHO_REPLY:
		return true;
	case ICMP_TIME_EXCEEDED:
	case ICMP_PARAMETER_PROBLEM:
		return false;
	default: /* between are unreachable, source quench, redirect */
		return type >= ICMP_ECHO && type <= ICMP_ADDRESS_MASK_REPLY;
	}
}

bool
lb_icmp_may_answer(const uint8_t *frame, size_t n_bytes, const struct lb_packet *packet)
{
	switch (packet->kind) {
	case LB_PACKET_ICMP_ERROR:
	case LB_PACKET_ICMP_ERROR_LATER:
	case LB_PACKET_NOT_FINAL:
	case LB_PACKET_CUT_SHORT:
		return false;
	case LB_PACKET_ICMP_OTHER:
		if (packet->l4_offset >= n_bytes ||
			!is_icmp_query(frame[packet->l4_offset], packet->is_v6))
			return false;
		break;
	default:
		break;
	}
	return !lb_packet_is_later_fragment(packet) && is_between_hosts(frame, packet);
}

bool
lb_icmp_too_big_size(const uint8_t *frame, size_t n_bytes, const struct lb_packet *packet,
	uint32_t mtu, struct lb_icmp_too_big *out)
{
	const uint32_t mtu_min = packet->is_v6 ? LB_ICMP_MTU_MIN_V6 : LB_ICMP_MTU_MIN_V4;
	const size_t error_max = packet->is_v6 ? ERROR_BYTES_MAX_V6 : ERROR_BYTES_MAX_V4;
	const size_t prepend = (packet->is_v6 ? IPV6_BYTES : IPV4_BYTES) + ICMP_BYTES;
	size_t quote_bytes = packet->ip_bytes;

	if (!lb_icmp_may_answer(frame, n_bytes, packet) || (packet->flags & LB_PACKET_DF) == 0)
		return false;
	if (mtu < mtu_min)
		mtu = mtu_min;
	if (mtu > UINT16_MAX)
		mtu = UINT16_MAX;
	if (packet->ip_bytes <= mtu)
		return false;
	if (quote_bytes > error_max - prepend)
		quote_bytes = error_max - prepend;
	if (packet->ip_offset + quote_bytes > n_bytes)
		return false;

	out->mtu = (uint16_t)mtu;
	out->prepend_bytes = (uint16_t)prepend;
	out->frame_bytes = (uint16_t)(packet->ip_offset + prepend + quote_bytes);
	return true;
}

static void
write_too_big_v4(uint8_t *ip, const uint8_t *end, const struct lb_packet *packet, uint16_t mtu,
	const struct lb_addr *src)
{
	static const uint8_t header[IPV4_BYTES] = {0x45, IPV4_CS6,
		[IPV4_FRAGMENT] = IPV4_DF >> 8, [IPV4_TTL] = TTL, [IPV4_PROTO] = IPPROTO_ICMP};
	uint8_t *icmp = ip + IPV4_BYTES;
	uint16_t csum;

	memcpy(ip, header, IPV4_BYTES);
	lb_bytes_store16_be(ip + IPV4_TOTAL_BYTES, (uint16_t)(end - ip));
	memcpy(ip + IPV4_SRC, src->bytes + LB_ADDR_BYTES - IPV4_ADDR_BYTES, IPV4_ADDR_BYTES);
	memcpy(ip + IPV4_DST, packet->key.src.bytes + LB_ADDR_BYTES - IPV4_ADDR_BYTES,
		IPV4_ADDR_BYTES);
	csum = lb_csum_finish(lb_csum_add(0, ip, IPV4_BYTES));
	memcpy(ip + IPV4_CSUM, &csum, sizeof(csum));

	memset(icmp, 0, ICMP_BYTES);
	icmp[0] = ICMP_UNREACHABLE;
	icmp[ICMP_CODE] = ICMP_FRAGMENTATION_NEEDED;
	lb_bytes_store16_be(icmp + ICMP_MTU_V4, mtu);
	csum = lb_csum_finish(lb_csum_range(0, icmp, end));
	memcpy(icmp + ICMP_CSUM, &csum, sizeof(csum));
}

static void
write_too_big_v6(uint8_t *ip, const uint8_t *end, const struct lb_packet *packet, uint16_t mtu,
	const struct lb_addr *src)
{
	uint8_t *icmp = ip + IPV6_BYTES;
	const uint16_t icmp_bytes = (uint16_t)(end - icmp);
	uint8_t tail[8] = {[7] = IPPROTO_ICMPV6}; /* of the pseudo-header */
	uint64_t sum;
	uint16_t csum;

	memset(ip, 0, IPV6_SRC);
	ip[0] = 0x60;
	lb_bytes_store16_be(ip + IPV6_PAYLOAD_BYTES, icmp_bytes);
	ip[IPV6_NEXT_HEADER] = IPPROTO_ICMPV6;
	ip[IPV6_HOP_LIMIT] = TTL;
	memcpy(ip + IPV6_SRC, src->bytes, LB_ADDR_BYTES);
	memcpy(ip + IPV6_DST, packet->key.src.bytes, LB_ADDR_BYTES);

	memset(icmp, 0, ICMP_BYTES);
	icmp[0] = ICMPV6_TOO_BIG;
	lb_bytes_store16_be(icmp + ICMP_MTU_V6 + 2, mtu);
	lb_bytes_store16_be(tail + 2, icmp_bytes);
	sum = lb_csum_add(0, tail, sizeof(tail));
	sum = lb_csum_range(sum, ip + IPV6_SRC, end);
	csum = lb_csum_finish(sum);
	memcpy(icmp + ICMP_CSUM, &csum, sizeof(csum));
}

void
lb_icmp_too_big_write(uint8_t *frame, const struct lb_packet *packet,
	const struct lb_icmp_too_big *error, const struct lb_addr *src)
{
	const size_t ip_offset = packet->ip_offset;
	const uint8_t *end = frame + error->frame_bytes;

	memmove(frame, frame + error->prepend_bytes, ip_offset);
	swap_macs(frame);
	if (packet->is_v6)
		write_too_big_v6(frame + ip_offset, end, packet, error->mtu, src);
	else
		write_too_big_v4(frame + ip_offset, end, packet, error->mtu, src);
}
