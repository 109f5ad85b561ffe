/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_packet.h"

#include <netinet/in.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_compiler.h"
#include "lb_csum.h"
#include "lb_limits.h"
#include "lb_usual.h"

enum {
	ETHER_BYTES = 14,
	ETHER_GROUP = 0x01, /* of a destination's first byte */
	VLAN_TAG_BYTES = 4,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	TCP_BYTES = 20,
	UDP_BYTES = 8,
	PORTS_BYTES = 4, /* of either, at its beginning */
	TCP_DATA_OFFSET_AT = 12,
	ICMP_BYTES = 8,
	QUOTED_L4_BYTES = 8, /* all that RFC 792 promises */
	LAST_SEGMENT = 8,    /* where a routing header has it, of those that say */
	IPV6_ADDR_BYTES = 16,
	EXTENSION_BYTES = 8,  /* the shortest, whichever it is */
	IP_BYTES_MAX = 65535, /* IPv4: with its header; IPv6: without the fixed one */
	FRAGMENT_UNIT = 8,

	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_QINQ = 0x88a8,
	ETHERTYPE_QINQ_OLD = 0x9100,

	IPV4_FRAGMENT_DF = 0x4000,
	IPV4_FRAGMENT_MF = 0x2000,
	IPV4_FRAGMENT_OFFSET = 0x1fff,
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_LOOSE_ROUTE = 131,
	OPTION_STRICT_ROUTE = 137,
	ROUTE_BYTES_MIN = 3, /* type, length and pointer */

	IPV6_FRAGMENT_MORE = 0x0001,
	IPV6_FRAGMENT_OFFSET = 0xfff8,

	PROTO_MOBILITY = 135,
	PROTO_HIP = 139,
	PROTO_SHIM6 = 140,

	ICMP_UNREACHABLE = 3,
	ICMP_TIME_EXCEEDED = 11,
	ICMP_PARAMETER_PROBLEM = 12,
	ICMP_ECHO_REPLY = 0,
	ICMP_ECHO = 8,
	ICMPV6_UNREACHABLE = 1,
	ICMPV6_PARAMETER_PROBLEM = 4, /* 2 and 3 between are errors too */
	ICMPV6_ECHO = 128,
	ICMPV6_ECHO_REPLY = 129,
};

/*
 * Bytes under the parser, and how far they may be believed: to the end of the frame, and once
 * it is known, of its IP packet. A place is a pointer, which one comparison with limit then
 * says all of.
 */
struct view {
	const uint8_t *bytes;
	const uint8_t *limit; /* what lies before it may be loaded */
	size_t n_cut;         /* bytes that the capture cut off behind it */
};

/* Where a walk over IPv6 extension headers came to rest. */
struct chain {
	const uint8_t *p; /* the first header that was not walked */
	uint8_t proto;    /* what it is */
	bool is_first_fragment;
	bool is_later_fragment;
	bool is_quote;            /* past segments left, if the last of them is shown */
	bool is_final;            /* no routing header has segments left */
	bool is_source_route;     /* one of type 0 has */
	const uint8_t *last;      /* segment, the destination; NULL: it is in the IP header */
	uint32_t fragment_id;     /* of a fragment: its identification, */
	uint16_t fragment;        /* its header's offset and flags, */
	uint16_t fragment_offset; /* and where its payload begins; otherwise 0 */
};

/* LB_FORWARD where the n bytes from p on may be loaded, otherwise why not. */
static inline enum lb_verdict
need(const struct view *view, const uint8_t *p, size_t n)
{
	const ptrdiff_t missing = (ptrdiff_t)n - (view->limit - p);

	if (likely(missing <= 0))
		return LB_FORWARD;
	return (size_t)missing <= view->n_cut ? LB_DROP_SNAPLEN : LB_DROP_TRUNCATED;
}

static struct lb_addr
load_v6(const uint8_t *p)
{
	struct lb_addr addr;

	memcpy(addr.bytes, p, LB_ADDR_BYTES);
	return addr;
}

static bool
is_extension(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_FRAGMENT:
	case IPPROTO_AH:
	case IPPROTO_DSTOPTS:
	case PROTO_MOBILITY:
	case PROTO_HIP:
	case PROTO_SHIM6:
		return true;
	default:
		return false;
	}
}

static size_t
extension_bytes(uint8_t proto, const uint8_t *p)
{
	if (proto == IPPROTO_FRAGMENT)
		return EXTENSION_BYTES; /* its second byte is reserved */
	if (proto == IPPROTO_AH)
		return ((size_t)p[1] + 2) * 4; /* RFC 4302, section 2.2 */
	return ((size_t)p[1] + 1) * 8;
}

/* An IPv6 fragment header at p, its payload to begin at payload_offset. */
static enum lb_verdict
note_fragment(struct chain *chain, const uint8_t *p, size_t payload_offset)
{
	const uint16_t field = lb_bytes_load16_be(p + 2);
	const bool is_later = (field & IPV6_FRAGMENT_OFFSET) != 0;

	if (chain->is_first_fragment)
		return LB_DROP_FRAGMENT_BAD; /* a fragment of a fragment */
	if (!is_later && (field & IPV6_FRAGMENT_MORE) == 0)
		return LB_FORWARD;
	chain->is_first_fragment = !is_later;
	chain->is_later_fragment = is_later;
	chain->fragment = field;
	chain->fragment_id = lb_bytes_load32_be(p + 4);
	chain->fragment_offset = (uint16_t)payload_offset;
	return LB_FORWARD;
}

/*
 * Types 2 (RFC 6275) and 4 (RFC 8754) have the last of their segments first. It is looked for
 * within the frame, too, though the header is: so much is said of pointers, not of lengths.
 */
static bool
has_last_segment(const struct view *view, const uint8_t *routing, size_t n)
{
	return (routing[2] == 2 || routing[2] == 4) && n >= LAST_SEGMENT + IPV6_ADDR_BYTES &&
	       need(view, routing, LAST_SEGMENT + IPV6_ADDR_BYTES) == LB_FORWARD;
}

/*
 * Pass one extension header. What it says may end the walk: then chain stays at it, or
 * for a later fragment, after it.
 */
static enum lb_verdict
walk_extension(const struct view *view, struct chain *chain)
{
	const uint8_t *p = chain->p;
	enum lb_verdict verdict;
	size_t n;

	verdict = need(view, p, EXTENSION_BYTES);
	if (verdict != LB_FORWARD)
		return verdict;
	n = extension_bytes(chain->proto, p);
	verdict = need(view, p, n);
	if (verdict != LB_FORWARD)
		return verdict;

	if (chain->proto == IPPROTO_ROUTING && p[3] != 0) {
		if (!chain->is_quote || !has_last_segment(view, p, n)) {
			chain->is_final = false;
			chain->is_source_route = p[2] == 0;
			return LB_FORWARD;
		}
		chain->last = p + LAST_SEGMENT;
	}
	if (chain->proto == IPPROTO_FRAGMENT) {
		verdict = note_fragment(chain, p, (size_t)(p - view->bytes) + n);
		if (verdict != LB_FORWARD)
			return verdict;
	}
	chain->proto = p[0];
	chain->p = p + n;
	return LB_FORWARD;
}

static enum lb_verdict
walk_extensions(const struct view *view, struct chain *chain)
{
	chain->is_first_fragment = false;
	chain->is_later_fragment = false;
	chain->is_final = true;
	chain->is_source_route = false;
	for (unsigned int i = 0; i < LB_IPV6_EXTENSIONS_MAX; i++) {
		enum lb_verdict verdict;

		if (likely(!is_extension(chain->proto)))
			return LB_FORWARD;
		verdict = walk_extension(view, chain);
		if (verdict != LB_FORWARD)
			return verdict;
		if (!chain->is_final || chain->is_later_fragment)
			return LB_FORWARD;
	}
	return is_extension(chain->proto) ? LB_DROP_UNKNOWN_EXTENSION_HEADER : LB_FORWARD;
}

/* A quoted packet as it was sent: from the service to the client. */
struct quote {
	struct lb_addr src;
	struct lb_addr dst;
	const uint8_t *l4;
	uint8_t proto;
	bool is_later; /* a later fragment: l4 is none */
};

/* Anything but LB_FORWARD and LB_DROP_SNAPLEN says only that the quote is of no use. */
static enum lb_verdict
parse_quote_v4(const struct view *view, const uint8_t *p, struct quote *out)
{
	enum lb_verdict verdict;
	size_t header_bytes;

	verdict = need(view, p, IPV4_BYTES);
	if (verdict != LB_FORWARD)
		return verdict;
	header_bytes = (size_t)(p[0] & 0x0f) * 4;
	if (p[0] >> 4 != 4)
		return LB_DROP_BAD_IP_VERSION;
	if (header_bytes < IPV4_BYTES)
		return LB_DROP_BAD_HEADER_LENGTH;

	out->is_later = (lb_bytes_load16_be(p + 6) & IPV4_FRAGMENT_OFFSET) != 0;
	out->src = lb_addr_from_v4(p + 12);
	out->dst = lb_addr_from_v4(p + 16);
	out->proto = p[9];
	verdict = need(view, p, header_bytes);
	if (verdict != LB_FORWARD)
		return verdict;
	out->l4 = p + header_bytes;
	return LB_FORWARD;
}

static enum lb_verdict
parse_quote_v6(const struct view *view, const uint8_t *p, struct quote *out)
{
	struct chain chain = {.is_quote = true};
	enum lb_verdict verdict;

	verdict = need(view, p, IPV6_BYTES);
	if (verdict != LB_FORWARD)
		return verdict;
	if (p[0] >> 4 != 6)
		return LB_DROP_BAD_IP_VERSION;

	chain.p = p + IPV6_BYTES;
	chain.proto = p[6];
	verdict = walk_extensions(view, &chain);
	if (verdict != LB_FORWARD)
		return verdict;
	/* Before its last hop a packet's destination is not yet the client, and not every
	 * routing header says who that is; what a later fragment is of, its first alone may
	 * say. */
	if (!chain.is_final || (chain.is_later_fragment && is_extension(chain.proto)))
		return LB_DROP_UNSUPPORTED_L4;

	out->is_later = chain.is_later_fragment;
	out->src = load_v6(p + 8);
	out->dst = load_v6(chain.last != NULL ? chain.last : p + 24);
	out->proto = chain.proto;
	out->l4 = chain.p;
	if (lb_addr_is_v4(&out->src) || lb_addr_is_v4(&out->dst))
		return LB_DROP_BAD_IP_VERSION;
	return LB_FORWARD;
}

static bool
has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP;
}

static bool
is_icmp(uint8_t proto, bool is_v6)
{
	return proto == (is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

/* Of ICMP no more than that belongs to anybody's flow: addresses are all that it has. */
static bool
is_echo(uint8_t type, bool is_v6)
{
	if (is_v6)
		return type == ICMPV6_ECHO || type == ICMPV6_ECHO_REPLY;
	return type == ICMP_ECHO || type == ICMP_ECHO_REPLY;
}

/* An ICMP error's quote, turned round, is the flow that it is about. */
static enum lb_verdict
parse_quote(const struct view *view, const uint8_t *p, struct lb_packet *out)
{
	struct lb_flow_key key = {0};
	struct quote quote;
	enum lb_verdict verdict;

	if (out->is_v6)
		verdict = parse_quote_v6(view, p, &quote);
	else
		verdict = parse_quote_v4(view, p, &quote);
	if (verdict == LB_DROP_SNAPLEN)
		return verdict;
	/* An error for one address that quotes another's packet is nobody's. */
	if (verdict != LB_FORWARD || !lb_addr_equal(&quote.src, &out->dst))
		return LB_FORWARD;
	if (!quote.is_later && (has_ports(quote.proto) || is_icmp(quote.proto, out->is_v6))) {
		const uint8_t *l4 = quote.l4;

		verdict = need(view, l4, QUOTED_L4_BYTES);
		if (verdict != LB_FORWARD)
			return verdict == LB_DROP_SNAPLEN ? verdict : LB_FORWARD;
		if (has_ports(quote.proto)) {
			memcpy(&key.dport_be, l4, sizeof(key.dport_be));
			memcpy(&key.sport_be, l4 + 2, sizeof(key.sport_be));
		} else if (!is_echo(l4[0], out->is_v6)) {
			return LB_FORWARD;
		}
	}
	key.src = quote.dst;
	key.dst = quote.src;
	key.proto = quote.proto;
	out->key = key;
	out->kind = quote.is_later && has_ports(quote.proto) ? LB_PACKET_ICMP_ERROR_LATER
							     : LB_PACKET_ICMP_ERROR;
	return LB_FORWARD;
}

static bool
is_icmp_error(uint8_t type, bool is_v6)
{
	if (is_v6)
		return type >= ICMPV6_UNREACHABLE && type <= ICMPV6_PARAMETER_PROBLEM;
	return type == ICMP_UNREACHABLE || type == ICMP_TIME_EXCEEDED ||
	       type == ICMP_PARAMETER_PROBLEM;
}

static enum lb_verdict
parse_icmp(const struct view *view, const uint8_t *l4, struct lb_packet *out)
{
	const enum lb_verdict verdict = need(view, l4, ICMP_BYTES);
	uint8_t type;

	if (verdict != LB_FORWARD)
		return verdict;

	out->kind = LB_PACKET_ICMP_OTHER;
	type = l4[0];
	if (is_icmp_error(type, out->is_v6) && (out->flags & LB_PACKET_FRAGMENT) == 0)
		return parse_quote(view, l4 + ICMP_BYTES, out);
	if (type == (out->is_v6 ? ICMPV6_ECHO : ICMP_ECHO))
		out->flags |= LB_PACKET_ECHO_REQUEST;
	return LB_FORWARD;
}

static void
load_ports(const uint8_t *l4, struct lb_flow_key *key)
{
	memcpy(&key->sport_be, l4, sizeof(key->sport_be));
	memcpy(&key->dport_be, l4 + 2, sizeof(key->dport_be));
}

/* The ports of a header that the capture cut may be there still. */
static enum lb_verdict
parse_cut_ports(const struct view *view, const uint8_t *l4, struct lb_packet *out)
{
	const enum lb_verdict verdict = need(view, l4, PORTS_BYTES);

	if (verdict == LB_FORWARD)
		load_ports(l4, &out->key);
	return verdict;
}

static enum lb_verdict
parse_tcp(const struct view *view, const uint8_t *l4, struct lb_packet *out)
{
	const enum lb_verdict verdict = need(view, l4, TCP_BYTES);

	if (unlikely(verdict == LB_DROP_SNAPLEN))
		return parse_cut_ports(view, l4, out);
	if (unlikely(verdict != LB_FORWARD))
		return verdict;
	load_ports(l4, &out->key);
	out->tcp_seq = lb_bytes_load32_be(l4 + 4);
	out->tcp_flags = l4[13];
	return LB_FORWARD;
}

static enum lb_verdict
parse_udp(const struct view *view, const uint8_t *l4, struct lb_packet *out)
{
	const enum lb_verdict verdict = need(view, l4, UDP_BYTES);

	if (unlikely(verdict == LB_DROP_SNAPLEN))
		return parse_cut_ports(view, l4, out);
	if (unlikely(verdict != LB_FORWARD))
		return verdict;
	load_ports(l4, &out->key);
	return LB_FORWARD;
}

/* What a packet is by its protocol alone. */
static enum lb_packet_kind
kind_of(uint8_t proto, bool is_v6)
{
	switch (proto) {
	case IPPROTO_ICMP:
		return is_v6 ? LB_PACKET_FLOW : LB_PACKET_ICMP_OTHER;
	case IPPROTO_ICMPV6:
		return is_v6 ? LB_PACKET_ICMP_OTHER : LB_PACKET_FLOW;
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
	case IPPROTO_GRE:
		return LB_PACKET_TUNNEL;
	default:
		return LB_PACKET_FLOW;
	}
}

static enum lb_verdict
parse_l4(const struct view *view, const uint8_t *l4, struct lb_packet *out)
{
	out->kind = (uint8_t)kind_of(out->key.proto, out->is_v6);
	if (out->key.proto == IPPROTO_TCP)
		return parse_tcp(view, l4, out);
	if (out->key.proto == IPPROTO_UDP)
		return parse_udp(view, l4, out);
	return out->kind == LB_PACKET_ICMP_OTHER ? parse_icmp(view, l4, out) : LB_FORWARD;
}

/*
 * Whether a datagram can be put together of such fragments. Whatever ip_bytes has before the
 * payload, the datagram has too, but for the fixed header and the fragment header in IPv6.
 */
static bool
is_fragment_sound(const struct lb_packet *p, size_t payload_bytes)
{
	const uint32_t uncounted = p->is_v6 ? IPV6_BYTES + EXTENSION_BYTES : 0;

	if (payload_bytes == 0 || p->frag_offset + p->ip_bytes - uncounted > IP_BYTES_MAX)
		return false;
	if ((p->flags & LB_PACKET_MORE) != 0 && payload_bytes % FRAGMENT_UNIT != 0)
		return false;
	/* Over IPv6 a later one does not say what it is of. */
	return p->is_v6 || p->key.proto != IPPROTO_TCP || p->frag_offset == 0 ||
	       p->frag_offset >= TCP_BYTES;
}

/* What is cut begins at payload_offset, and this piece of it at offset there, in bytes. */
static enum lb_verdict
take_fragment(struct lb_packet *out, size_t payload_offset, uint16_t offset, bool has_more)
{
	const size_t payload_bytes = (size_t)out->ip_offset + out->ip_bytes - payload_offset;

	out->flags |= LB_PACKET_FRAGMENT;
	if (has_more)
		out->flags |= LB_PACKET_MORE;
	if (offset == 0)
		out->flags |= LB_PACKET_FIRST_FRAGMENT;
	out->frag_offset = offset;
	out->frag_bytes = (uint16_t)payload_bytes;
	return is_fragment_sound(out, payload_bytes) ? LB_FORWARD : LB_DROP_FRAGMENT_BAD;
}

/* Whether a TCP header goes on, by its data offset, where the packet ended on the wire. */
static bool
lacks_options(const struct view *view, const uint8_t *l4)
{
	return need(view, l4, TCP_BYTES) == LB_FORWARD &&
	       need(view, l4, (size_t)(l4[TCP_DATA_OFFSET_AT] >> 4) * 4) == LB_DROP_TRUNCATED;
}

/* A first fragment without all of its L4 header hides what the datagram is. */
static enum lb_verdict
parse_first_l4(const struct view *view, const uint8_t *l4, struct lb_packet *out)
{
	const enum lb_verdict verdict = parse_l4(view, l4, out);

	if (verdict == LB_FORWARD && out->key.proto == IPPROTO_TCP && lacks_options(view, l4))
		return LB_DROP_FRAGMENT_BAD;
	return verdict == LB_DROP_TRUNCATED ? LB_DROP_FRAGMENT_BAD : verdict;
}

/*
 * A fragment after the first: its L4 header, if its protocol has one, was in the first. Over
 * IPv6 so was its protocol: its own next header may be anything (RFC 8200, section 4.5).
 */
static void
take_later_fragment(struct lb_packet *out)
{
	const uint8_t proto = out->key.proto;

	out->kind = (uint8_t)kind_of(proto, out->is_v6);
	if (out->is_v6 || proto == IPPROTO_TCP || proto == IPPROTO_UDP)
		out->kind = LB_PACKET_LATER_FRAGMENT;
}

/*
 * The IP packet at ip must have been on the wire in full; the capture may have cut it. What
 * follows it is padding, and out of view.
 */
static enum lb_verdict
take_length(struct view *view, const uint8_t *ip, struct lb_packet *out)
{
	const size_t readable = (size_t)(view->limit - ip);
	const size_t n = out->ip_bytes;

	if (n > readable + view->n_cut)
		return LB_DROP_TRUNCATED;
	if (n > readable) {
		out->flags |= LB_PACKET_CUT;
		view->n_cut = n - readable;
		return LB_FORWARD;
	}
	view->limit -= readable - n;
	view->n_cut = 0;
	return LB_FORWARD;
}

/*
 * Over header_bytes, options included. The fixed header's 20 bytes, all that nearly every
 * packet has, are summed in place: lb_csum_add() is made for longer runs.
 */
static bool
is_ipv4_csum_right(const uint8_t *p, size_t header_bytes)
{
	uint64_t a;
	uint64_t b;
	uint32_t c;
	uint64_t sum;

	memcpy(&a, p, sizeof(a));
	memcpy(&b, p + 8, sizeof(b));
	memcpy(&c, p + 16, sizeof(c));
	sum = (a & UINT32_MAX) + (a >> 32) + (b & UINT32_MAX) + (b >> 32) + c;
	if (unlikely(header_bytes > IPV4_BYTES))
		sum = lb_csum_add(sum, p + IPV4_BYTES, header_bytes - IPV4_BYTES);
	/* 0xffff in one's complement: what it is a multiple of. It is not 0: the version is
	 * not. */
	return sum % UINT16_MAX == 0;
}

/* Checks in the order that lb_packet.h promises; header_bytes is out. */
static enum lb_verdict
check_ipv4(struct view *view, const uint8_t *p, struct lb_packet *out, size_t *header_bytes)
{
	enum lb_verdict verdict;
	size_t n;

	verdict = need(view, p, IPV4_BYTES);
	if (verdict != LB_FORWARD)
		return verdict;
	out->dst = lb_addr_from_v4(p + 16);
	if (p[0] >> 4 != 4)
		return LB_DROP_BAD_IP_VERSION;
	n = (size_t)(p[0] & 0x0f) * 4;
	if (n < IPV4_BYTES)
		return LB_DROP_BAD_HEADER_LENGTH;
	//@ split n;
	verdict = need(view, p, n);
	if (verdict != LB_FORWARD)
		return verdict;

	out->ip_bytes = lb_bytes_load16_be(p + 2);
	if (out->ip_bytes < n)
		return LB_DROP_BAD_TOTAL_LENGTH;
	verdict = take_length(view, p, out);
	if (verdict != LB_FORWARD)
		return verdict;
	if (!is_ipv4_csum_right(p, n))
		return LB_DROP_BAD_CHECKSUM;
	*header_bytes = n;
	return p[8] == 0 ? LB_DROP_TTL_EXPIRED : LB_FORWARD;
}

/*
 * The flag of a source route among the options from p to end whose pointer, which counts from
 * 1, is not past its end (RFC 791). One without a pointer says nowhere that it is used up.
 */
static uint8_t
source_route(const uint8_t *p, const uint8_t *end)
{
	/*@ loop unroll 0;
	    loop variant end - p; */
	while (end - p > 0 && p[0] != OPTION_END) {
		if (p[0] == OPTION_NOP) {
			p++;
			continue;
		}
		if (end - p < 2 || p[1] < 2 || end - p < p[1])
			return 0;
		if (p[0] == OPTION_LOOSE_ROUTE || p[0] == OPTION_STRICT_ROUTE) {
			const bool is_over = p[1] >= ROUTE_BYTES_MIN &&
					     end - p >= ROUTE_BYTES_MIN && p[2] > p[1];

			return is_over ? 0 : LB_PACKET_SOURCE_ROUTE;
		}
		p += p[1];
	}
	return 0;
}

/* field is the IPv4 header's flags and offset. */
static enum lb_verdict
parse_ipv4_fragment(const struct view *view, const uint8_t *l4, struct lb_packet *out,
	uint16_t field)
{
	const uint16_t offset = (uint16_t)((field & IPV4_FRAGMENT_OFFSET) * FRAGMENT_UNIT);
	const bool has_more = (field & IPV4_FRAGMENT_MF) != 0;
	const enum lb_verdict verdict = take_fragment(out, out->l4_offset, offset, has_more);

	if (verdict != LB_FORWARD)
		return verdict;
	if (offset == 0)
		return parse_first_l4(view, l4, out);
	take_later_fragment(out);
	return LB_FORWARD;
}

static enum lb_verdict
parse_ipv4(struct view *view, const uint8_t *p, struct lb_packet *out)
{
	enum lb_verdict verdict;
	size_t header_bytes = 0;
	uint16_t fragment;

	verdict = check_ipv4(view, p, out, &header_bytes);
	if (verdict != LB_FORWARD)
		return verdict;

	out->tos = p[1];
	out->l4_offset = (uint16_t)(out->ip_offset + header_bytes);
	out->key.src = lb_addr_from_v4(p + 12);
	out->key.dst = out->dst;
	out->key.proto = p[9];

	if (unlikely(header_bytes > IPV4_BYTES))
		out->flags |= source_route(p + IPV4_BYTES, p + header_bytes);
	fragment = lb_bytes_load16_be(p + 6);
	if ((fragment & IPV4_FRAGMENT_DF) != 0)
		out->flags |= LB_PACKET_DF;
	if (likely((fragment & (IPV4_FRAGMENT_OFFSET | IPV4_FRAGMENT_MF)) == 0))
		return parse_l4(view, p + header_bytes, out);
	out->frag_id = lb_bytes_load16_be(p + 4);
	return parse_ipv4_fragment(view, p + header_bytes, out, fragment);
}

static enum lb_verdict
check_ipv6(struct view *view, const uint8_t *p, struct lb_packet *out)
{
	enum lb_verdict verdict;

	verdict = need(view, p, IPV6_BYTES);
	if (verdict != LB_FORWARD)
		return verdict;
	out->dst = load_v6(p + 24);
	if (p[0] >> 4 != 6)
		return LB_DROP_BAD_IP_VERSION;
	out->ip_bytes = (uint32_t)IPV6_BYTES + lb_bytes_load16_be(p + 4);
	verdict = take_length(view, p, out);
	if (verdict != LB_FORWARD)
		return verdict;
	return p[7] == 0 ? LB_DROP_TTL_EXPIRED : LB_FORWARD;
}

static enum lb_verdict
parse_ipv6_fragment(const struct view *view, struct lb_packet *out, const struct chain *chain)
{
	const uint16_t offset = chain->fragment & IPV6_FRAGMENT_OFFSET;
	const bool has_more = (chain->fragment & IPV6_FRAGMENT_MORE) != 0;
	enum lb_verdict verdict;

	out->frag_id = chain->fragment_id;
	verdict = take_fragment(out, chain->fragment_offset, offset, has_more);
	if (verdict != LB_FORWARD)
		return verdict;
	if (chain->is_later_fragment) {
		take_later_fragment(out);
		return LB_FORWARD;
	}
	if (!chain->is_final) {
		out->kind = LB_PACKET_NOT_FINAL;
		return LB_FORWARD;
	}
	return parse_first_l4(view, chain->p, out);
}

static enum lb_verdict
parse_ipv6(struct view *view, const uint8_t *p, struct lb_packet *out)
{
	struct chain chain = {0};
	enum lb_verdict verdict;

	out->is_v6 = true;
	verdict = check_ipv6(view, p, out);
	if (verdict != LB_FORWARD)
		return verdict;
	chain.p = p + IPV6_BYTES;
	chain.proto = p[6];
	verdict = walk_extensions(view, &chain);
	if (unlikely(verdict == LB_DROP_TRUNCATED && chain.is_first_fragment))
		return LB_DROP_FRAGMENT_BAD; /* the chain goes on in another fragment */
	if (verdict != LB_FORWARD)
		return verdict;

	out->flags |= LB_PACKET_DF;
	if (unlikely(chain.is_source_route))
		out->flags |= LB_PACKET_SOURCE_ROUTE;
	out->tos = (uint8_t)(lb_bytes_load16_be(p) >> 4);
	out->l4_offset = (uint16_t)(chain.p - view->bytes);
	out->key.src = load_v6(p + 8);
	out->key.dst = out->dst;
	out->key.proto = chain.proto;
	if (lb_addr_is_v4(&out->key.src) || lb_addr_is_v4(&out->key.dst))
		return LB_TO_KERNEL;
	/* One load: two flags, just written, would be read as one word, which has to wait. */
	if (unlikely(chain.fragment_offset != 0))
		return parse_ipv6_fragment(view, out, &chain);
	if (!chain.is_final) {
		out->kind = LB_PACKET_NOT_FINAL;
		return LB_FORWARD;
	}
	return parse_l4(view, chain.p, out);
}

static bool
is_vlan_tag(uint16_t ethertype)
{
	return ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ ||
	       ethertype == ETHERTYPE_QINQ_OLD;
}

/* Ethernet and its tags: sets ip_offset and n_tags; out is what is inside, and its EtherType.
 */
static enum lb_verdict
parse_ether(const struct view *view, struct lb_packet *out, const uint8_t **inside,
	uint16_t *ethertype)
{
	const uint8_t *p = view->bytes;
	enum lb_verdict verdict;

	verdict = need(view, p, ETHER_BYTES);
	if (verdict != LB_FORWARD)
		return verdict;
	p += ETHER_BYTES;
	*ethertype = lb_bytes_load16_be(p - 2);
	for (unsigned int i = 0; i < LB_VLAN_TAGS_MAX && is_vlan_tag(*ethertype); i++) {
		verdict = need(view, p, VLAN_TAG_BYTES);
		if (verdict != LB_FORWARD)
			return verdict;
		p += VLAN_TAG_BYTES;
		*ethertype = lb_bytes_load16_be(p - 2);
		out->n_tags++;
	}
	out->ip_offset = (uint16_t)(p - view->bytes);
	*inside = p;
	return is_vlan_tag(*ethertype) ? LB_DROP_VLAN_DEPTH : LB_FORWARD;
}

/* All of lb_packet_parse(), of a view of the whole frame. */
static enum lb_verdict
parse_frame(struct view *view, struct lb_packet *out)
{
	const size_t n_bytes = (size_t)(view->limit - view->bytes);
	const uint8_t *inside = NULL;
	enum lb_verdict verdict;
	uint16_t ethertype = 0;

	/* In two steps: to clear over 80 bytes at once, gcc takes a slow string instruction. */
	memset(out, 0, offsetof(struct lb_packet, frag_id));
	out->frag_id = 0;
	out->frag_offset = 0;
	out->frag_bytes = 0;
	if (n_bytes > 0 && (view->bytes[0] & ETHER_GROUP) != 0)
		out->flags = LB_PACKET_LINK_GROUP;
	verdict = parse_ether(view, out, &inside, &ethertype);
	/* Nothing shows that what was cut so early was meant for a service. */
	if (unlikely(verdict == LB_DROP_SNAPLEN))
		return LB_TO_KERNEL;
	if (unlikely(verdict != LB_FORWARD))
		return verdict;

	if (ethertype == ETHERTYPE_IPV4)
		verdict = parse_ipv4(view, inside, out);
	else if (ethertype == ETHERTYPE_IPV6)
		verdict = parse_ipv6(view, inside, out);
	else
		return LB_TO_KERNEL;

	if (likely(verdict != LB_DROP_SNAPLEN))
		return verdict;

	/* Whom it was for is known from the fixed header: only a service's is missed. */
	if (n_bytes < (size_t)out->ip_offset + (out->is_v6 ? IPV6_BYTES : IPV4_BYTES))
		return LB_TO_KERNEL;
	out->key.dst = out->dst;
	out->kind = LB_PACKET_CUT_SHORT;
	out->flags |= LB_PACKET_CUT;
	return LB_FORWARD;
}

enum lb_verdict
lb_packet_parse_plainly(const uint8_t *frame, size_t n_bytes, size_t wire_bytes,
	struct lb_packet *out)
{
	struct view view = {
		.bytes = frame,
		.limit = frame + n_bytes,
		.n_cut = wire_bytes > n_bytes ? wire_bytes - n_bytes : 0,
	};

	return parse_frame(&view, out);
}

/* All of a usual packet, whose frame is to one host of the link. */
static inline void
fill_usual(const struct lb_usual *usual, const uint8_t *ip, bool is_v6, struct lb_packet *out)
{
	const uint16_t header_bytes = is_v6 ? IPV6_BYTES : IPV4_BYTES;

	lb_usual_store_key(&usual->key, &out->key);
	out->dst = out->key.dst;
	out->ip_bytes = usual->ip_bytes;
	out->tcp_seq = usual->is_tcp ? lb_bytes_load32_be(ip + header_bytes + 4) : 0;
	out->ip_offset = ETHER_BYTES;
	out->l4_offset = ETHER_BYTES + header_bytes;
	out->kind = LB_PACKET_FLOW;
	out->flags = is_v6 || (ip[6] & IPV4_FRAGMENT_DF >> 8) != 0 ? LB_PACKET_DF : 0;
	out->tcp_flags = usual->tcp_flags;
	out->tos = lb_usual_read_tos(ip, is_v6);
	out->is_v6 = is_v6;
	out->n_tags = 0;
	out->frag_id = 0;
	out->frag_offset = 0;
	out->frag_bytes = 0;
}

/* One comparison for all that either family's way reads, a TCP header included. */
static inline bool
parse_usual(const struct view *view, struct lb_packet *out)
{
	const uint8_t *ip = view->bytes;
	struct lb_usual usual;

	if (need(view, ip, LB_USUAL_V4_READ_BYTES) != LB_FORWARD || (ip[0] & ETHER_GROUP) != 0)
		return false;
	ip += ETHER_BYTES;
	if (lb_bytes_load16_be(ip - 2) == ETHERTYPE_IPV4) {
		if (!lb_usual_parse_v4(ip, (uint32_t)(view->limit - ip), &usual))
			return false;
		fill_usual(&usual, ip, false, out);
		return true;
	}
	if (lb_bytes_load16_be(ip - 2) != ETHERTYPE_IPV6 ||
		need(view, ip, IPV6_BYTES + TCP_BYTES) != LB_FORWARD ||
		!lb_usual_parse_v6(ip, (uint32_t)(view->limit - ip), &usual))
		return false;
	fill_usual(&usual, ip, true, out);
	return true;
}

enum lb_verdict
lb_packet_parse(const uint8_t *frame, size_t n_bytes, size_t wire_bytes, struct lb_packet *out)
{
	const struct view view = {.bytes = frame, .limit = frame + n_bytes};

	if (likely(parse_usual(&view, out)))
		return LB_FORWARD;
	return lb_packet_parse_plainly(frame, n_bytes, wire_bytes, out);
}
