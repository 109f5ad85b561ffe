/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_packet.h"
#include "packet_builder.h"
#include "packet_flaw.h"
#include "xrand.h"

/* One byte written over the built frame. */
struct patch {
	size_t at; /* 0: none, since no row touches the destination MAC */
	uint8_t value;
};

struct row {
	const char *name;
	struct pb_layer layers[PB_LAYERS_MAX + 1];
	struct patch patch[3];
	bool fix_csum;   /* of the IPv4 header at ip_offset 14, after the patches */
	size_t n_bytes;  /* only that many are there; 0: all */
	size_t captured; /* the wire had all, the capture has that many; 0: all */
	enum lb_verdict want;
	/* Where it is LB_FORWARD: */
	enum lb_packet_kind kind;
	unsigned int flags;
	unsigned int n_tags;
	size_t l4_offset;
	unsigned int proto; /* of the key */
	bool has_ports;     /* the client's and the service's; otherwise both are 0 */
	unsigned int tos;
	unsigned int tcp_flags;
	unsigned int frag_id;
	unsigned int frag_offset;
	unsigned int frag_bytes; /* 0: no fragment */
	bool has_more;
};

#define QUOTED_V4 ICMP(.type = 3, .code = 4)
#define QUOTED_V6 ICMPV6(.type = 2)
#define DSTOPTS   EXTENSION(.type = 60)

#define IS_FLOW(offset, p)                                                                     \
	.kind = LB_PACKET_FLOW, .l4_offset = (offset), .proto = (p), .has_ports = true
#define IS_FLOW_V6(offset, p)  IS_FLOW(offset, p), .flags = LB_PACKET_DF
#define IS_PLAIN(k, offset, p) .kind = (k), .l4_offset = (offset), .proto = (p)
#define IS_ERROR(offset, p)                                                                    \
	.kind = LB_PACKET_ICMP_ERROR, .l4_offset = (offset), .proto = (p), .has_ports = true
#define IS_OTHER(offset, p) IS_PLAIN(LB_PACKET_ICMP_OTHER, offset, p)
#define IS_CUT_SHORT        .kind = LB_PACKET_CUT_SHORT
/* The builder's IPv4 identification; that of an IPv6 fragment header is 0 unless patched. */
#define PIECE_V4(offset, n) .frag_id = 0x1234, .frag_offset = (offset), .frag_bytes = (n)
#define PIECE_V6(offset, n) .frag_offset = (offset), .frag_bytes = (n)
#define FRAGMENT_V6(...)    EXTENSION(.type = 44, __VA_ARGS__)
#define IS_BAD              .want = LB_DROP_FRAGMENT_BAD

static const struct row rows[] = {
	/* Ethernet and VLAN tags */
	{"a frame of one byte", {ETHER(), IPV4(), TCP(), END}, .n_bytes = 1,
		.want = LB_DROP_TRUNCATED},
	{"a frame of 13 bytes", {ETHER(), IPV4(), TCP(), END}, .n_bytes = 13,
		.want = LB_DROP_TRUNCATED},
	{"a frame of 14 bytes, of which 13 were captured", {ETHER(), IPV4(), TCP(), END},
		.captured = 13, .want = LB_TO_KERNEL},
	{"ARP is the kernel's", {ETHER(.proto = 0x0806), PAYLOAD(28), END},
		.want = LB_TO_KERNEL},
	{"an LLC frame's length is no EtherType", {ETHER(.proto = 0x0026), PAYLOAD(38), END},
		.want = LB_TO_KERNEL},
	{"an EtherType nobody knows", {ETHER(.proto = 0x88b5), PAYLOAD(4), END},
		.want = LB_TO_KERNEL},
	{"an EtherType and nothing else", {ETHER(.proto = 0x88b5), END}, .want = LB_TO_KERNEL},
	{"one tag", {ETHER(), VLAN(.vid = 100), IPV4(), TCP(), END}, .n_tags = 1,
		IS_FLOW(38, 6), .tcp_flags = 0x10},
	{"a service tag and a customer tag",
		{ETHER(), VLAN(.tpid = 0x88a8, .vid = 7), VLAN(.vid = 100), IPV4(), UDP(), END},
		.n_tags = 2, IS_FLOW(42, 17)},
	{"the older stacked tag", {ETHER(), VLAN(.tpid = 0x9100), VLAN(), IPV6(), UDP(), END},
		.n_tags = 2, IS_FLOW_V6(62, 17)},
	{"a third tag", {ETHER(), VLAN(), VLAN(), VLAN(), IPV4(), TCP(), END},
		.want = LB_DROP_VLAN_DEPTH},
	{"a third tag of the service kind, and nothing after it",
		{ETHER(), VLAN(), VLAN(.proto = 0x88a8), END}, .want = LB_DROP_VLAN_DEPTH},
	{"a tag cut short", {ETHER(), VLAN(), IPV4(), TCP(), END}, .n_bytes = 17,
		.want = LB_DROP_TRUNCATED},
	{"a second tag that the capture cut", {ETHER(), VLAN(), VLAN(), IPV4(), TCP(), END},
		.captured = 21, .want = LB_TO_KERNEL},
	{"a tagged ARP", {ETHER(), VLAN(.proto = 0x0806), PAYLOAD(28), END},
		.want = LB_TO_KERNEL},

	/* IPv4: the fixed header's checks, in their order */
	{"TCP over IPv4", {ETHER(), IPV4(), TCP(.tcp_flags = 2), END}, IS_FLOW(34, 6),
		.tcp_flags = LB_TCP_SYN},
	{"UDP over IPv4 with a payload", {ETHER(), IPV4(), UDP(), PAYLOAD(99), END},
		IS_FLOW(34, 17)},
	{"DSCP 46 and CE", {ETHER(), IPV4(.tos = 0xbb), UDP(), END}, IS_FLOW(34, 17),
		.tos = 0xbb},
	{"padding after a short packet", {ETHER(), IPV4(), UDP(), PADDING(18), END},
		IS_FLOW(34, 17)},
	{"padding cut by the capture costs nothing", {ETHER(), IPV4(), UDP(), PADDING(18), END},
		.captured = 50, IS_FLOW(34, 17)},
	{"no IPv4 header at all", {ETHER(), IPV4(), END}, .n_bytes = 14,
		.want = LB_DROP_TRUNCATED},
	{"a fixed header one byte short", {ETHER(), IPV4(), TCP(), END}, .n_bytes = 33,
		.want = LB_DROP_TRUNCATED},
	{"a fixed header that the capture cut", {ETHER(), IPV4(), TCP(), END}, .captured = 33,
		.want = LB_TO_KERNEL},
	{"too short comes before a wrong version", {ETHER(), IPV4(), TCP(), END}, {{14, 0x65}},
		.n_bytes = 33, .want = LB_DROP_TRUNCATED},
	{"version 6 under the EtherType of IPv4", {ETHER(.proto = 0x0800), IPV6(), TCP(), END},
		.want = LB_DROP_BAD_IP_VERSION},
	{"version 5", {ETHER(), IPV4(), TCP(), END}, {{14, 0x55}},
		.want = LB_DROP_BAD_IP_VERSION},
	{"a wrong version comes before a bad header length", {ETHER(), IPV4(), TCP(), END},
		{{14, 0x00}}, .want = LB_DROP_BAD_IP_VERSION},
	{"a header length of 16", {ETHER(), IPV4(), TCP(), END}, {{14, 0x44}}, true,
		.want = LB_DROP_BAD_HEADER_LENGTH},
	{"a bad header length comes before a bad total length", {ETHER(), IPV4(), TCP(), END},
		{{14, 0x44}, {17, 10}}, true, .want = LB_DROP_BAD_HEADER_LENGTH},
	{"options that reach past the frame", {ETHER(), IPV4(), UDP(), END}, {{14, 0x48}},
		.want = LB_DROP_TRUNCATED},
	{"options that the capture cut", {ETHER(), IPV4(.options = 12), UDP(), END},
		.captured = 45, IS_CUT_SHORT},
	{"a total length within the header", {ETHER(), IPV4(), TCP(), END}, {{17, 19}}, true,
		.want = LB_DROP_BAD_TOTAL_LENGTH},
	{"a total length of 0", {ETHER(), IPV4(), TCP(), END}, {{17, 0}}, true,
		.want = LB_DROP_BAD_TOTAL_LENGTH},
	{"a total length within the options", {ETHER(), IPV4(.options = 8), TCP(), END},
		{{17, 27}}, true, .want = LB_DROP_BAD_TOTAL_LENGTH},
	{"a bad total length comes before a bad checksum", {ETHER(), IPV4(), TCP(), END},
		{{17, 19}}, .want = LB_DROP_BAD_TOTAL_LENGTH},
	{"a total length one over the frame", {ETHER(), IPV4(), TCP(), END}, {{17, 41}}, true,
		.want = LB_DROP_TRUNCATED},
	{"a total length over the wire's frame, of a cut frame",
		{ETHER(), IPV4(), TCP(), PAYLOAD(50), END}, {{17, 91}}, true, .captured = 60,
		.want = LB_DROP_TRUNCATED},
	{"a payload that the capture cut", {ETHER(), IPV4(), TCP(), PAYLOAD(50), END},
		.captured = 54, IS_FLOW(34, 6), .flags = LB_PACKET_CUT, .tcp_flags = 0x10},
	{"a wrong checksum", {ETHER(), IPV4(), TCP(), END}, {{24, 0x55}},
		.want = LB_DROP_BAD_CHECKSUM},
	{"a wrong checksum in the last option", {ETHER(), IPV4(.options = 40), TCP(), END},
		{{73, 0}}, .want = LB_DROP_BAD_CHECKSUM},
	{"a bad checksum comes before TTL 0", {ETHER(), IPV4(.ttl = PB_ZERO), TCP(), END},
		{{24, 0x55}}, .want = LB_DROP_BAD_CHECKSUM},
	{"TTL 0", {ETHER(), IPV4(.ttl = PB_ZERO), TCP(), END}, .want = LB_DROP_TTL_EXPIRED},
	{"TTL 1 goes on", {ETHER(), IPV4(.ttl = 1), UDP(), END}, IS_FLOW(34, 17)},
	{"TTL 0 comes before a short TCP header",
		{ETHER(), IPV4(.ttl = PB_ZERO), TCP(.n_bytes = 8), END},
		.want = LB_DROP_TTL_EXPIRED},
	{"4 bytes of options", {ETHER(), IPV4(.options = 4), TCP(), END}, IS_FLOW(38, 6),
		.tcp_flags = 0x10},
	{"a loose source route", {ETHER(), IPV4(.options = 8), TCP(), END},
		{{34, 131}, {35, 7}, {36, 4}}, .fix_csum = true, IS_FLOW(42, 6),
		.tcp_flags = 0x10, .flags = LB_PACKET_SOURCE_ROUTE},
	{"a strict one behind a no-operation, which its last byte has to go to",
		{ETHER(), IPV4(.options = 8), TCP(), END}, {{35, 137}, {36, 7}, {37, 7}},
		.fix_csum = true, IS_FLOW(42, 6), .tcp_flags = 0x10,
		.flags = LB_PACKET_SOURCE_ROUTE},
	{"a source route that is used up", {ETHER(), IPV4(.options = 8), TCP(), END},
		{{34, 131}, {35, 7}, {36, 8}}, .fix_csum = true, IS_FLOW(42, 6),
		.tcp_flags = 0x10},
	{"a recorded route is none", {ETHER(), IPV4(.options = 8), TCP(), END},
		{{34, 7}, {35, 7}, {36, 4}}, .fix_csum = true, IS_FLOW(42, 6),
		.tcp_flags = 0x10},
	{"a source route without a pointer", {ETHER(), IPV4(.options = 4), TCP(), END},
		{{36, 131}, {37, 2}}, .fix_csum = true, IS_FLOW(38, 6), .tcp_flags = 0x10,
		.flags = LB_PACKET_SOURCE_ROUTE},
	{"behind the end of options there is none", {ETHER(), IPV4(.options = 8), TCP(), END},
		{{34, 0}, {35, 131}, {36, 6}}, .fix_csum = true, IS_FLOW(42, 6),
		.tcp_flags = 0x10},
	{"nor past the end of the header", {ETHER(), IPV4(.options = 4), TCP(), END},
		{{34, 131}, {35, 7}, {36, 4}}, .fix_csum = true, IS_FLOW(38, 6),
		.tcp_flags = 0x10},
	{"40 bytes of options", {ETHER(), IPV4(.options = 40), UDP(), END}, IS_FLOW(74, 17)},

	/* IPv4 fragments */
	{"don't-fragment alone", {ETHER(), IPV4(.fragment = 0x4000), UDP(), END},
		IS_FLOW(34, 17), .flags = LB_PACKET_DF},
	{"a reserved bit alone makes no fragment",
		{ETHER(), IPV4(.fragment = 0x8000), UDP(), END}, IS_FLOW(34, 17)},
	{"a first fragment", {ETHER(), IPV4(.fragment = 0x2000), UDP(), PAYLOAD(8), END},
		IS_FLOW(34, 17), .flags = LB_PACKET_FIRST_FRAGMENT, PIECE_V4(0, 16),
		.has_more = true},
	{"a first fragment with options and don't-fragment",
		{ETHER(), VLAN(), IPV4(.fragment = 0x6000, .options = 8), TCP(), PAYLOAD(4),
			PADDING(9), END},
		.n_tags = 1, IS_FLOW(46, 6), .tcp_flags = 0x10,
		.flags = LB_PACKET_FIRST_FRAGMENT | LB_PACKET_DF, PIECE_V4(0, 24),
		.has_more = true},
	{"a first fragment that the capture cut",
		{ETHER(), IPV4(.fragment = 0x2000), UDP(), PAYLOAD(80), END}, .captured = 50,
		IS_FLOW(34, 17), .flags = LB_PACKET_FIRST_FRAGMENT | LB_PACKET_CUT,
		PIECE_V4(0, 88), .has_more = true},
	{"a first fragment without 4 bytes of TCP",
		{ETHER(), IPV4(.fragment = 0x2000, .proto = 6), PAYLOAD(16), END}, IS_BAD},
	{"a first fragment with TCP's ports alone",
		{ETHER(), IPV4(.fragment = 0x2000, .proto = 6), PAYLOAD(8), END}, IS_BAD},
	{"a first fragment without the last word of TCP's options",
		{ETHER(), IPV4(.fragment = 0x2000), TCP(.tcp_words = 7), PAYLOAD(4), END},
		IS_BAD},
	{"a first fragment with all of TCP's options",
		{ETHER(), IPV4(.fragment = 0x2000), TCP(.tcp_words = 6), PAYLOAD(4), END},
		.flags = LB_PACKET_FIRST_FRAGMENT, IS_FLOW(34, 6), .tcp_flags = 0x10,
		PIECE_V4(0, 24), .has_more = true},
	{"a first fragment of a data offset that is none",
		{ETHER(), IPV4(.fragment = 0x2000), TCP(.tcp_words = PB_ZERO), PAYLOAD(4), END},
		.flags = LB_PACKET_FIRST_FRAGMENT, IS_FLOW(34, 6), .tcp_flags = 0x10,
		PIECE_V4(0, 24), .has_more = true},
	{
		"options of TCP that are missing where nothing is cut",
		{ETHER(), IPV4(), TCP(.tcp_words = 15), END},
		IS_FLOW(34, 6),
		.tcp_flags = 0x10,
	},
	{"a first fragment over IPv6 without the last of TCP's options",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1), TCP(.tcp_words = 15), PAYLOAD(36),
			END},
		IS_BAD},
	{"a first fragment of a protocol without ports, of 8 bytes",
		{ETHER(), IPV4(.fragment = 0x2000, .proto = 132), PAYLOAD(8), END},
		IS_PLAIN(LB_PACKET_FLOW, 34, 132), .flags = LB_PACKET_FIRST_FRAGMENT,
		PIECE_V4(0, 8), .has_more = true},
	{"a later fragment", {ETHER(), IPV4(.fragment = 0x2001, .proto = 17), PAYLOAD(8), END},
		IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 34, 17), PIECE_V4(8, 8), .has_more = true},
	{"a last fragment of one byte, as far as a packet can reach",
		{ETHER(), IPV4(.fragment = 8189, .proto = 6), PAYLOAD(3), END},
		IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 34, 6), PIECE_V4(65512, 3)},
	{"a last fragment one byte further",
		{ETHER(), IPV4(.fragment = 8189, .proto = 6), PAYLOAD(4), END}, IS_BAD},
	{"options count in how far a packet can reach",
		{ETHER(), IPV4(.fragment = 8189, .options = 4, .proto = 6), PAYLOAD(3), END},
		IS_BAD},
	{"the largest offset",
		{ETHER(), IPV4(.fragment = 0x1fff, .proto = 17), PAYLOAD(1), END}, IS_BAD},
	{"an offset of its top bit alone",
		{ETHER(), IPV4(.fragment = 0x1000, .proto = 17), PAYLOAD(8), END},
		IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 34, 17), PIECE_V4(32768, 8)},
	{"a first fragment of 17 bytes",
		{ETHER(), IPV4(.fragment = 0x2000), UDP(), PAYLOAD(9), END}, IS_BAD},
	{"a later fragment of 15 bytes, with more to come",
		{ETHER(), IPV4(.fragment = 0x2001, .proto = 17), PAYLOAD(15), END}, IS_BAD},
	{"a later fragment of 15 bytes, the last",
		{ETHER(), IPV4(.fragment = 0x0001, .proto = 17), PAYLOAD(15), END},
		IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 34, 17), PIECE_V4(8, 15)},
	{"a first fragment without a payload",
		{ETHER(), IPV4(.fragment = 0x2000, .proto = 17), END}, IS_BAD},
	{"a later fragment without a payload, with more to come",
		{ETHER(), IPV4(.fragment = 0x2003, .proto = 17), END}, IS_BAD},
	{"a last fragment without a payload, before padding",
		{ETHER(), IPV4(.fragment = 0x0003, .proto = 17), PADDING(26), END}, IS_BAD},
	{"TTL 0 comes before a bad fragment",
		{ETHER(), IPV4(.ttl = PB_ZERO, .fragment = 0x2003, .proto = 17), END},
		.want = LB_DROP_TTL_EXPIRED},
	{"TCP that begins again at its 8th byte",
		{ETHER(), IPV4(.fragment = 0x0001, .proto = 6), PAYLOAD(32), END}, IS_BAD},
	{"TCP that begins again at its 16th byte",
		{ETHER(), IPV4(.fragment = 0x0002, .proto = 6), PAYLOAD(32), END}, IS_BAD},
	{"TCP that goes on after its header's 20 bytes",
		{ETHER(), IPV4(.fragment = 0x0003, .proto = 6), PAYLOAD(32), END},
		IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 34, 6), PIECE_V4(24, 32)},
	{"a later fragment of a tunnel is of the tunnel",
		{ETHER(), IPV4(.fragment = 0x0100, .proto = 47), PAYLOAD(8), END},
		IS_PLAIN(LB_PACKET_TUNNEL, 34, 47), PIECE_V4(2048, 8)},
	{"a later fragment of an ICMP error quotes nothing",
		{ETHER(), IPV4(.fragment = 0x0005), QUOTED_V4, PAYLOAD(8), END},
		IS_OTHER(34, 1), PIECE_V4(40, 16)},
	{"a later fragment of ICMP is no echo request",
		{ETHER(), IPV4(.fragment = 0x0005), ICMP(.type = 8), PAYLOAD(8), END},
		IS_OTHER(34, 1), PIECE_V4(40, 16)},
	{"a first fragment of an echo request",
		{ETHER(), IPV4(.fragment = 0x2000), ICMP(.type = 8), PAYLOAD(8), END},
		IS_OTHER(34, 1), .flags = LB_PACKET_FIRST_FRAGMENT | LB_PACKET_ECHO_REQUEST,
		PIECE_V4(0, 16), .has_more = true},
	{"a later fragment of a protocol without ports is of its flow",
		{ETHER(), IPV4(.fragment = 0x0005, .proto = 50), PAYLOAD(8), END},
		IS_PLAIN(LB_PACKET_FLOW, 34, 50), PIECE_V4(40, 8)},

	/* L4 over IPv4 */
	{"TCP of 19 bytes", {ETHER(), IPV4(), TCP(.n_bytes = 19), END},
		.want = LB_DROP_TRUNCATED},
	{"TCP of 19 bytes before padding is no longer for it",
		{ETHER(), IPV4(), TCP(.n_bytes = 19), PADDING(7), END},
		.want = LB_DROP_TRUNCATED},
	{"TCP that the capture cut after its ports", {ETHER(), IPV4(), TCP(), END},
		.captured = 38, IS_FLOW(34, 6), .flags = LB_PACKET_CUT},
	{"TCP that the capture cut in its ports", {ETHER(), IPV4(), TCP(), END}, .captured = 37,
		IS_CUT_SHORT},
	{"TCP of 19 bytes stays truncated in a cut capture",
		{ETHER(), IPV4(), TCP(.n_bytes = 19), PADDING(7), END}, .captured = 52,
		.want = LB_DROP_TRUNCATED},
	{"a data offset under 5 is the server's business",
		{ETHER(), IPV4(), TCP(.tcp_flags = 0x11), END}, {{46, 0x10}}, IS_FLOW(34, 6),
		.tcp_flags = 0x11},
	{"UDP of 7 bytes", {ETHER(), IPV4(.proto = 17), PAYLOAD(7), END},
		.want = LB_DROP_TRUNCATED},
	{"UDP that the capture cut after its ports", {ETHER(), IPV4(), UDP(), END},
		.captured = 41, IS_FLOW(34, 17), .flags = LB_PACKET_CUT},
	{"UDP that the capture cut in its ports", {ETHER(), IPV4(), UDP(), END}, .captured = 37,
		IS_CUT_SHORT},
	{"a protocol nobody knows, without a payload", {ETHER(), IPV4(.proto = 253), END},
		IS_PLAIN(LB_PACKET_FLOW, 34, 253)},
	{"SCTP has no ports here", {ETHER(), IPV4(.proto = 132), PAYLOAD(12), END},
		IS_PLAIN(LB_PACKET_FLOW, 34, 132)},
	{"IPv6's extension headers are unknown protocols over IPv4",
		{ETHER(), IPV4(.proto = 60), PAYLOAD(8), END},
		IS_PLAIN(LB_PACKET_FLOW, 34, 60)},
	{"ICMPv6 over IPv4 is an unknown protocol", {ETHER(), IPV4(), QUOTED_V6, END},
		IS_PLAIN(LB_PACKET_FLOW, 34, 58)},
	{"IPv4 in IPv4", {ETHER(), IPV4(), IPV4(), UDP(), END},
		IS_PLAIN(LB_PACKET_TUNNEL, 34, 4)},
	{"IPv6 in IPv4", {ETHER(), IPV4(), IPV6(), UDP(), END},
		IS_PLAIN(LB_PACKET_TUNNEL, 34, 41)},
	{"GRE", {ETHER(), IPV4(.proto = 47), PAYLOAD(4), END},
		IS_PLAIN(LB_PACKET_TUNNEL, 34, 47)},

	/* IPv6 */
	{"TCP over IPv6", {ETHER(), IPV6(), TCP(.tcp_flags = 0x14), END}, IS_FLOW_V6(54, 6),
		.tcp_flags = LB_TCP_RST | LB_TCP_ACK},
	{"UDP over IPv6", {ETHER(), IPV6(), UDP(), PAYLOAD(3), END}, IS_FLOW_V6(54, 17)},
	{"a traffic class across two bytes", {ETHER(), IPV6(.tos = 0xb9), UDP(), END},
		IS_FLOW_V6(54, 17), .tos = 0xb9},
	{"an IPv6 header one byte short", {ETHER(), IPV6(), TCP(), END}, .n_bytes = 53,
		.want = LB_DROP_TRUNCATED},
	{"an IPv6 header that the capture cut", {ETHER(), IPV6(), TCP(), END}, .captured = 53,
		.want = LB_TO_KERNEL},
	{"version 4 under the EtherType of IPv6", {ETHER(.proto = 0x86dd), IPV4(), TCP(), END},
		.want = LB_DROP_BAD_IP_VERSION},
	{"a payload length one over the frame", {ETHER(), IPV6(), TCP(), END}, {{19, 21}},
		.want = LB_DROP_TRUNCATED},
	{"a payload that the capture cut, over IPv6",
		{ETHER(), IPV6(), UDP(), PAYLOAD(50), END}, .captured = 62, IS_FLOW(54, 17),
		.flags = LB_PACKET_DF | LB_PACKET_CUT},
	{"a payload length over the frame comes before hop limit 0",
		{ETHER(), IPV6(.ttl = PB_ZERO), TCP(), END}, {{19, 21}},
		.want = LB_DROP_TRUNCATED},
	{"hop limit 0", {ETHER(), IPV6(.ttl = PB_ZERO), TCP(), END},
		.want = LB_DROP_TTL_EXPIRED},
	{"hop limit 1 goes on", {ETHER(), IPV6(.ttl = 1), UDP(), END}, IS_FLOW_V6(54, 17)},
	{"hop limit 0 comes before a cut extension header",
		{ETHER(), IPV6(.ttl = PB_ZERO, .proto = 60), PAYLOAD(7), END},
		.want = LB_DROP_TTL_EXPIRED},
	{"a payload length of 0 has no TCP", {ETHER(), IPV6(), TCP(), END}, {{19, 0}},
		.want = LB_DROP_TRUNCATED},
	{"TCP of 19 bytes over IPv6", {ETHER(), IPV6(), TCP(.n_bytes = 19), END},
		.want = LB_DROP_TRUNCATED},
	{"next header 59", {ETHER(), IPV6(), END}, .flags = LB_PACKET_DF,
		IS_PLAIN(LB_PACKET_FLOW, 54, 59)},
	{"an unknown next header is an unknown protocol", {ETHER(), IPV6(), PAYLOAD(1), END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_FLOW, 54, 253)},
	{"ESP is opaque", {ETHER(), IPV6(.proto = 50), PAYLOAD(16), END}, .flags = LB_PACKET_DF,
		IS_PLAIN(LB_PACKET_FLOW, 54, 50)},
	{"ICMP over IPv6 is an unknown protocol", {ETHER(), IPV6(.proto = 1), PAYLOAD(8), END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_FLOW, 54, 1)},
	{"IPv6 in IPv6", {ETHER(), IPV6(), IPV6(), UDP(), END}, .flags = LB_PACKET_DF,
		IS_PLAIN(LB_PACKET_TUNNEL, 54, 41)},
	{"IPv4 in IPv6, after options", {ETHER(), IPV6(), DSTOPTS, IPV4(), UDP(), END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_TUNNEL, 62, 4)},

	/* IPv6 extension headers */
	{"hop-by-hop options", {ETHER(), IPV6(), EXTENSION(.type = 0), TCP(), END},
		IS_FLOW_V6(62, 6), .tcp_flags = 0x10},
	{"a long destination option",
		{ETHER(), IPV6(), EXTENSION(.type = 60, .n_bytes = 1024), UDP(), END},
		IS_FLOW_V6(1078, 17)},
	{"an authentication header counts in fours",
		{ETHER(), IPV6(), EXTENSION(.type = 51, .n_bytes = 28), UDP(), END},
		IS_FLOW_V6(82, 17)},
	{"the shortest authentication header",
		{ETHER(), IPV6(), EXTENSION(.type = 51), UDP(), END}, IS_FLOW_V6(62, 17)},
	{"mobility, HIP and shim6 headers",
		{ETHER(), IPV6(), EXTENSION(.type = 135), EXTENSION(.type = 139),
			EXTENSION(.type = 140, .n_bytes = 16), UDP(), END},
		IS_FLOW_V6(86, 17)},
	{"a routing header at its end", {ETHER(), IPV6(), EXTENSION(.type = 43), UDP(), END},
		IS_FLOW_V6(62, 17)},
	{"a routing header with a segment left",
		{ETHER(), IPV6(), EXTENSION(.type = 43, .segments_left = 1), UDP(), END},
		.flags = LB_PACKET_DF | LB_PACKET_SOURCE_ROUTE,
		IS_PLAIN(LB_PACKET_NOT_FINAL, 54, 43)},
	{"of another type than 0",
		{ETHER(), IPV6(), EXTENSION(.type = 43, .segments_left = 1), UDP(), END},
		{{56, 4}}, .flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_NOT_FINAL, 54, 43)},
	{"a routing header with segments left after options",
		{ETHER(), IPV6(), DSTOPTS,
			EXTENSION(.type = 43, .n_bytes = 24, .segments_left = 255), UDP(), END},
		.flags = LB_PACKET_DF | LB_PACKET_SOURCE_ROUTE,
		IS_PLAIN(LB_PACKET_NOT_FINAL, 62, 43)},
	{"sixteen extension headers",
		{ETHER(), IPV6(), DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, UDP(), END},
		IS_FLOW_V6(182, 17)},
	{"seventeen extension headers",
		{ETHER(), IPV6(), DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, UDP(), END},
		.want = LB_DROP_UNKNOWN_EXTENSION_HEADER},
	{"an extension header of 7 bytes", {ETHER(), IPV6(.proto = 60), PAYLOAD(7), END},
		.want = LB_DROP_TRUNCATED},
	{"an extension header longer than the payload",
		{ETHER(), IPV6(), EXTENSION(.type = 60), UDP(), END}, {{55, 2}},
		.want = LB_DROP_TRUNCATED},
	{"an extension header that ends with the payload, before UDP",
		{ETHER(), IPV6(), EXTENSION(.type = 60, .proto = 17), END},
		.want = LB_DROP_TRUNCATED},
	{"an extension header that the capture cut",
		{ETHER(), IPV6(), EXTENSION(.type = 60, .n_bytes = 64), UDP(), END},
		.captured = 117, IS_CUT_SHORT},
	{"an extension header's first bytes that the capture cut",
		{ETHER(), IPV6(), DSTOPTS, UDP(), END}, .captured = 61, IS_CUT_SHORT},
	{"an atomic fragment is a whole packet",
		{ETHER(), IPV6(), EXTENSION(.type = 44), UDP(), END}, IS_FLOW_V6(62, 17)},
	{"a fragment header's reserved byte and bits say nothing",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 0x0006), UDP(), END},
		{{55, 0xff}}, IS_FLOW_V6(62, 17)},
	{"an atomic fragment of nothing, which is no fragment",
		{ETHER(), IPV6(), FRAGMENT_V6(), END}, .flags = LB_PACKET_DF,
		IS_PLAIN(LB_PACKET_FLOW, 62, 59)},
	{"a first fragment over IPv6, its identification in four bytes",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1), UDP(), PAYLOAD(8), END},
		{{58, 0xfe}, {59, 0xdc}, {61, 0x98}}, IS_FLOW(62, 17),
		.flags = LB_PACKET_DF | LB_PACKET_FIRST_FRAGMENT, PIECE_V6(0, 16),
		.frag_id = 0xfedc0098, .has_more = true},
	{"a first fragment whose options follow the fragment header",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1), DSTOPTS, UDP(), END},
		IS_FLOW(70, 17), .flags = LB_PACKET_DF | LB_PACKET_FIRST_FRAGMENT,
		PIECE_V6(0, 16), .has_more = true},
	{"options before the fragment header are not of what is cut",
		{ETHER(), IPV6(), DSTOPTS, FRAGMENT_V6(.fragment = 1), UDP(), END},
		IS_FLOW(70, 17), .flags = LB_PACKET_DF | LB_PACKET_FIRST_FRAGMENT,
		PIECE_V6(0, 8), .has_more = true},
	{"a first fragment over IPv6 without 4 bytes of TCP",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1, .proto = 6), PAYLOAD(16), END},
		IS_BAD},
	{"a first fragment whose options go on in the next",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1, .proto = 60),
			EXTENSION(.type = 60, .n_bytes = 8, .proto = 17), END},
		{{63, 1}}, IS_BAD},
	{"a first fragment whose UDP is in the next",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1),
			EXTENSION(.type = 60, .proto = 17), END},
		IS_BAD},
	{"a first fragment whose ICMPv6 is in the next",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1),
			EXTENSION(.type = 60, .proto = 58), END},
		IS_BAD},
	{"a first fragment whose chain is too long, too",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1), DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, UDP(), END},
		.want = LB_DROP_UNKNOWN_EXTENSION_HEADER},
	{"a first fragment with segments left",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1),
			EXTENSION(.type = 43, .segments_left = 1), UDP(), END},
		.flags = LB_PACKET_DF | LB_PACKET_FIRST_FRAGMENT | LB_PACKET_SOURCE_ROUTE,
		IS_PLAIN(LB_PACKET_NOT_FINAL, 62, 43), PIECE_V6(0, 16), .has_more = true},
	{"a fragment of a fragment",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1), FRAGMENT_V6(.fragment = 9), UDP(),
			END},
		IS_BAD},
	{"a first fragment of an atomic fragment",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 1), FRAGMENT_V6(), UDP(), END},
		IS_BAD},
	{"an atomic fragment of a fragment",
		{ETHER(), IPV6(), FRAGMENT_V6(), FRAGMENT_V6(.fragment = 8, .proto = 17),
			PAYLOAD(8), END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 70, 17),
		PIECE_V6(8, 8)},
	{"a later fragment over IPv6",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0x0009, .proto = 17), PAYLOAD(8),
			END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 17),
		PIECE_V6(8, 8), .has_more = true},
	{"a later fragment's bytes are not walked as headers",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0x0008, .proto = 60), PAYLOAD(3),
			END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 60),
		PIECE_V6(8, 3)},
	{"a later fragment of ICMPv6",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0x0008, .proto = 58), PAYLOAD(8),
			END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 58),
		PIECE_V6(8, 8)},
	{"a later fragment whose own header says that it is a tunnel",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0x0008, .proto = 41), PAYLOAD(8),
			END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 41),
		PIECE_V6(8, 8)},
	{"a later fragment whose own header says that nothing follows",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0x0008, .proto = 59), PAYLOAD(8),
			END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 59),
		PIECE_V6(8, 8)},
	{"a last fragment as far as an IPv6 payload can reach",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0xfff8, .proto = 17), PAYLOAD(7),
			END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 17),
		PIECE_V6(65528, 7)},
	{"a last fragment one byte further over IPv6",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 0xfff8, .proto = 17), PAYLOAD(8),
			END},
		IS_BAD},
	{"options before the fragment header count in how far a payload can reach",
		{ETHER(), IPV6(), DSTOPTS, FRAGMENT_V6(.fragment = 0xfff8, .proto = 17),
			PAYLOAD(1), END},
		IS_BAD},
	{"a later fragment over IPv6 of 9 bytes, with more to come",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 9, .proto = 17), PAYLOAD(9), END},
		IS_BAD},
	{"a last fragment over IPv6 without a payload",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 8, .proto = 17), END}, IS_BAD},
	{"what says that it is TCP over IPv6, from its 16th byte",
		{ETHER(), IPV6(), FRAGMENT_V6(.fragment = 16, .proto = 6), PAYLOAD(8), END},
		.flags = LB_PACKET_DF, IS_PLAIN(LB_PACKET_LATER_FRAGMENT, 62, 6),
		PIECE_V6(16, 8)},
	{"from an IPv4-mapped address over IPv6",
		{ETHER(), IPV6(.src = "::ffff:203.0.113.7"), TCP(), END}, .want = LB_TO_KERNEL},
	{"to an IPv4-mapped address over IPv6",
		{ETHER(), IPV6(.dst = "::ffff:198.51.100.10"), TCP(), END},
		.want = LB_TO_KERNEL},

	/* ICMP without a flow */
	{"an echo request", {ETHER(), IPV4(), ICMP(.type = 8), PAYLOAD(56), END},
		IS_OTHER(34, 1), .flags = LB_PACKET_ECHO_REQUEST},
	{"an echo reply", {ETHER(), IPV4(), ICMP(.type = 0), END}, IS_OTHER(34, 1)},
	{"an echo request over IPv6", {ETHER(), IPV6(), ICMPV6(.type = 128), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF | LB_PACKET_ECHO_REQUEST},
	{"IPv4's echo type over IPv6", {ETHER(), IPV6(), ICMPV6(.type = 8), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a neighbour solicitation", {ETHER(), IPV6(), ICMPV6(.type = 135), PAYLOAD(16), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"ICMP of 7 bytes", {ETHER(), IPV4(.proto = 1), PAYLOAD(7), END},
		.want = LB_DROP_TRUNCATED},
	{"ICMP that the capture cut in its header", {ETHER(), IPV4(), ICMP(.type = 8), END},
		.captured = 41, IS_CUT_SHORT},
	{"a source quench is no error of ours",
		{ETHER(), IPV4(), ICMP(.type = 4), IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4),
			END},
		IS_OTHER(34, 1)},
	{"a redirect is no error of ours",
		{ETHER(), IPV4(), ICMP(.type = 5), IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4),
			END},
		IS_OTHER(34, 1)},

	/* ICMP errors by the flow they quote */
	{"fragmentation needed, quoting TCP by 8 bytes, from a router",
		{ETHER(), IPV4(.src = "192.0.2.99"), QUOTED_V4, IPV4(FROM_SERVICE_V4),
			TCP(FROM_SERVICE_L4, .n_bytes = 8), END},
		IS_ERROR(34, 6)},
	{"time exceeded, quoting UDP",
		{ETHER(), IPV4(), ICMP(.type = 11), IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4),
			END},
		IS_ERROR(34, 17)},
	{"a parameter problem, quoting all of a TCP segment",
		{ETHER(), IPV4(), ICMP(.type = 12), IPV4(FROM_SERVICE_V4), TCP(FROM_SERVICE_L4),
			PAYLOAD(40), END},
		IS_ERROR(34, 6)},
	{"options outside and inside",
		{ETHER(), VLAN(), IPV4(.options = 8), QUOTED_V4,
			IPV4(FROM_SERVICE_V4, .options = 40), UDP(FROM_SERVICE_L4), END},
		.n_tags = 1, IS_ERROR(46, 17)},
	{"a first fragment quoted",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .fragment = 0x2000),
			UDP(FROM_SERVICE_L4), END},
		IS_ERROR(34, 17)},
	{"an error that is a first fragment itself is the kernel's, like its other fragments",
		{ETHER(), IPV4(.fragment = 0x2000), QUOTED_V4, IPV4(FROM_SERVICE_V4),
			UDP(FROM_SERVICE_L4), PAYLOAD(4), END},
		IS_OTHER(34, 1), .flags = LB_PACKET_FIRST_FRAGMENT, PIECE_V4(0, 40),
		.has_more = true},
	{"a quote whose lengths and checksum were rewritten",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4), END},
		{{44, 0xff}, {45, 0xff}, {52, 0x77}}, IS_ERROR(34, 17)},
	{"a quote with TTL 0, as a router that counted down sends it",
		{ETHER(), IPV4(), ICMP(.type = 11), IPV4(FROM_SERVICE_V4, .ttl = PB_ZERO),
			UDP(FROM_SERVICE_L4), END},
		IS_ERROR(34, 17)},
	{"a protocol without ports quoted",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .proto = 132), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 34, 132)},
	{"quoted L4 of 7 bytes",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4),
			TCP(FROM_SERVICE_L4, .n_bytes = 7), END},
		IS_OTHER(34, 1)},
	{"quoted L4 of 7 bytes before padding",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4),
			TCP(FROM_SERVICE_L4, .n_bytes = 7), PADDING(1), END},
		IS_OTHER(34, 1)},
	{"a quoted header of 19 bytes", {ETHER(), IPV4(), QUOTED_V4, PAYLOAD(19), END},
		IS_OTHER(34, 1)},
	{"nothing quoted", {ETHER(), IPV4(), QUOTED_V4, END}, IS_OTHER(34, 1)},
	{"a quoted header length under 5",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4), END},
		{{42, 0x44}}, IS_OTHER(34, 1)},
	{"quoted options that reach past the quote",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .proto = 132), END},
		{{42, 0x46}}, IS_OTHER(34, 1)},
	{"a quoted packet of the other version",
		{ETHER(), IPV4(), QUOTED_V4, IPV6(FROM_SERVICE_V6), UDP(FROM_SERVICE_L4), END},
		IS_OTHER(34, 1)},
	{"a quoted packet of no version",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4), END},
		{{42, 0x55}}, IS_OTHER(34, 1)},
	{"a quoted later fragment has no ports",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .fragment = 1),
			UDP(FROM_SERVICE_L4), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR_LATER, 34, 17)},
	{"a quoted later fragment of which nothing is quoted",
		{ETHER(), IPV4(), QUOTED_V4,
			IPV4(FROM_SERVICE_V4, .fragment = 0x2001, .proto = 6), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR_LATER, 34, 6)},
	{"a quoted later fragment of a protocol without ports",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .fragment = 1, .proto = 50),
			END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 34, 50)},
	{"a quoted later fragment of ICMP",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .fragment = 1),
			ICMP(.type = 3), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 34, 1)},
	{"a quote that is not from the address the error is for",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(.src = "198.51.100.11", .dst = PB_CLIENT_V4),
			UDP(FROM_SERVICE_L4), END},
		IS_OTHER(34, 1)},
	{"an error about an echo reply",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), ICMP(.type = 0), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 34, 1)},
	{"an error about an echo request",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), ICMP(.type = 8), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 34, 1)},
	{"an error about other ICMP",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), ICMP(.type = 14), END},
		IS_OTHER(34, 1)},
	{"an error about an error",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), ICMP(.type = 3), END},
		IS_OTHER(34, 1)},
	{"an error about seven bytes of an echo reply",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .proto = 1), PAYLOAD(7),
			END},
		IS_OTHER(34, 1)},
	{"an error about ICMPv6's echo over IPv4",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4, .proto = 58), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 34, 58)},
	{"an echo reply that the capture cut",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), ICMP(.type = 0), END},
		.captured = 69, IS_CUT_SHORT},
	{"a quote's L4 that the capture cut",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4), END},
		.captured = 69, IS_CUT_SHORT},
	{"a quote's IP header that the capture cut",
		{ETHER(), IPV4(), QUOTED_V4, IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4), END},
		.captured = 61, IS_CUT_SHORT},

	/* ICMPv6 errors */
	{"packet too big",
		{ETHER(), IPV6(.src = "2001:db8:9::1"), QUOTED_V6, IPV6(FROM_SERVICE_V6),
			TCP(FROM_SERVICE_L4), END},
		IS_ERROR(54, 6), .flags = LB_PACKET_DF},
	{"destination unreachable, quoting UDP",
		{ETHER(), IPV6(), ICMPV6(.type = 1), IPV6(FROM_SERVICE_V6),
			UDP(FROM_SERVICE_L4), END},
		IS_ERROR(54, 17), .flags = LB_PACKET_DF},
	{"a parameter problem over IPv6",
		{ETHER(), IPV6(), ICMPV6(.type = 4), IPV6(FROM_SERVICE_V6),
			UDP(FROM_SERVICE_L4), END},
		IS_ERROR(54, 17), .flags = LB_PACKET_DF},
	{"type 5 is not yet an error",
		{ETHER(), IPV6(), ICMPV6(.type = 5), IPV6(FROM_SERVICE_V6),
			UDP(FROM_SERVICE_L4), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"extension headers outside and inside",
		{ETHER(), IPV6(), DSTOPTS, ICMPV6(.type = 3), IPV6(FROM_SERVICE_V6), DSTOPTS,
			EXTENSION(.type = 44, .fragment = 1),
			TCP(FROM_SERVICE_L4, .n_bytes = 8), END},
		IS_ERROR(62, 6), .flags = LB_PACKET_DF},
	{"a quoted later fragment over IPv6",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 44, .fragment = 8), UDP(FROM_SERVICE_L4), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR_LATER, 54, 17), .flags = LB_PACKET_DF},
	{"a quoted later fragment of SCTP over IPv6",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), DSTOPTS,
			EXTENSION(.type = 44, .fragment = 8, .proto = 132), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 54, 132), .flags = LB_PACKET_DF},
	{"a quoted later fragment of an extension header",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 44, .fragment = 8, .proto = 60), PAYLOAD(8), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted packet with segments left",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 43, .segments_left = 1), UDP(FROM_SERVICE_L4), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted packet with segments left, of which a mobile node's address is the last",
		{ETHER(), IPV6(), QUOTED_V6,
			IPV6(.src = PB_SERVICE_V6, .dst = "2001:db8:77::1"),
			EXTENSION(.type = 43, .n_bytes = 24, .segments_left = 1, .routing = 2,
				.dst = PB_CLIENT_V6),
			UDP(FROM_SERVICE_L4), END},
		IS_ERROR(54, 17), .flags = LB_PACKET_DF},
	{"a quoted packet on its way through segments, two of them left",
		{ETHER(), IPV6(), QUOTED_V6,
			IPV6(.src = PB_SERVICE_V6, .dst = "2001:db8:77::1"), DSTOPTS,
			EXTENSION(.type = 43, .n_bytes = 56, .segments_left = 2, .routing = 4,
				.dst = PB_CLIENT_V6),
			TCP(FROM_SERVICE_L4, .n_bytes = 8), END},
		IS_ERROR(54, 6), .flags = LB_PACKET_DF},
	{"a quoted routing header that is too short for an address",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 43, .n_bytes = 16, .segments_left = 1, .routing = 2),
			UDP(FROM_SERVICE_L4), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted chain of seventeen",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS, DSTOPTS,
			UDP(FROM_SERVICE_L4), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted extension header that reaches past the quote",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), DSTOPTS, END}, {{103, 1}},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted extension header that the capture cut",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), DSTOPTS,
			UDP(FROM_SERVICE_L4), END},
		.captured = 109, IS_CUT_SHORT},
	{"a quoted IPv6 header of 39 bytes", {ETHER(), IPV6(), QUOTED_V6, PAYLOAD(39), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted IPv4 packet over IPv6",
		{ETHER(), IPV6(), QUOTED_V6, IPV4(FROM_SERVICE_V4), UDP(FROM_SERVICE_L4),
			PAYLOAD(40), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"a quoted packet of no version over IPv6",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), UDP(FROM_SERVICE_L4), END},
		{{62, 0x50}}, IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"an error about an ICMPv6 echo reply",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), ICMPV6(.type = 129), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 54, 58), .flags = LB_PACKET_DF},
	{"an error about an ICMPv6 echo request",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), DSTOPTS,
			ICMPV6(.type = 128), END},
		IS_PLAIN(LB_PACKET_ICMP_ERROR, 54, 58), .flags = LB_PACKET_DF},
	{"an error about other ICMPv6",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(FROM_SERVICE_V6), ICMPV6(.type = 136), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
	{"an IPv6 quote that is not from the address the error is for",
		{ETHER(), IPV6(), QUOTED_V6, IPV6(), UDP(FROM_SERVICE_L4), END},
		IS_OTHER(54, 58), .flags = LB_PACKET_DF},
};

static bool
is_same_packet(const struct lb_packet *a, const struct lb_packet *b)
{
	return memcmp(&a->key, &b->key, sizeof(a->key)) == 0 &&
	       lb_addr_equal(&a->dst, &b->dst) && a->ip_bytes == b->ip_bytes &&
	       a->tcp_seq == b->tcp_seq && a->ip_offset == b->ip_offset &&
	       a->l4_offset == b->l4_offset && a->kind == b->kind && a->flags == b->flags &&
	       a->tcp_flags == b->tcp_flags && a->tos == b->tos && a->is_v6 == b->is_v6 &&
	       a->n_tags == b->n_tags && a->frag_id == b->frag_id &&
	       a->frag_offset == b->frag_offset && a->frag_bytes == b->frag_bytes;
}

/* Exactly n bytes on the heap, so that ASan sees the load of one too many. */
static uint8_t *
copy_exact(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n == 0 ? 1 : n);

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	return copy;
}

/* Whatever is parsed here, the short way and its plain twin agree on it. */
static enum lb_verdict
parse_exact(const uint8_t *bytes, size_t n, size_t wire_bytes, struct lb_packet *out)
{
	uint8_t *frame = copy_exact(bytes, n);
	struct lb_packet plain;
	enum lb_verdict verdict;
	enum lb_verdict plain_verdict;

	memset(out, 0xa5, sizeof(*out));
	verdict = lb_packet_parse(frame, n, wire_bytes, out);
	plain_verdict = lb_packet_parse_plainly(frame, n, wire_bytes, &plain);
	free(frame);
	EXPECT(verdict == plain_verdict, "%zu of %zu bytes: verdict %d, and plainly %d", n,
		wire_bytes, verdict, plain_verdict);
	EXPECT(verdict != LB_FORWARD || is_same_packet(out, &plain),
		"%zu of %zu bytes: not what they plainly are", n, wire_bytes);
	return verdict;
}

static size_t
build_row(const struct row *row, uint8_t *frame)
{
	const size_t n = pb_build(row->layers, frame);

	for (size_t i = 0; i < LB_N_ELEMENTS(row->patch); i++) {
		if (row->patch[i].at != 0)
			frame[row->patch[i].at] = row->patch[i].value;
	}
	if (row->fix_csum)
		pb_fix_ipv4_csum(frame + 14);
	return n;
}

static struct lb_addr
addr_of(const char *text, bool is_v6, const char *if_v4, const char *if_v6)
{
	struct lb_addr addr;

	if (text == NULL)
		text = is_v6 ? if_v6 : if_v4;
	assert_int_equal(lb_addr_parse(text, &addr), 0);
	return addr;
}

static void
expect_key(const struct row *row, const struct lb_packet *p, const char *src)
{
	const struct lb_addr want_src = addr_of(src, p->is_v6, PB_CLIENT_V4, PB_CLIENT_V6);
	const struct lb_addr want_dst = addr_of(NULL, p->is_v6, PB_SERVICE_V4, PB_SERVICE_V6);
	const unsigned int sport = row->has_ports ? PB_SPORT : 0;
	const unsigned int dport = row->has_ports ? PB_DPORT : 0;

	EXPECT(lb_addr_equal(&p->key.src, &want_src), "%s: key.src", row->name);
	EXPECT(lb_addr_equal(&p->key.dst, &want_dst), "%s: key.dst", row->name);
	EXPECT(lb_addr_equal(&p->dst, &want_dst), "%s: dst", row->name);
	EXPECT(p->key.proto == row->proto, "%s: proto %u, want %u", row->name, p->key.proto,
		row->proto);
	EXPECT(ntohs(p->key.sport_be) == sport, "%s: sport %u, want %u", row->name,
		ntohs(p->key.sport_be), sport);
	EXPECT(ntohs(p->key.dport_be) == dport, "%s: dport %u, want %u", row->name,
		ntohs(p->key.dport_be), dport);
}

static void
expect_fields(const struct row *row, const struct lb_packet *p, size_t ip_bytes)
{
	/* A header that the capture cut after its ports shows nothing more. */
	const bool is_tcp = row->kind == LB_PACKET_FLOW && row->proto == 6 &&
			    (row->captured == 0 || row->captured >= row->l4_offset + 20);
	const bool is_v6 = row->layers[1 + row->n_tags].kind == PB_IPV6;
	const unsigned int flags =
		row->flags | (row->frag_bytes != 0 ? (unsigned int)LB_PACKET_FRAGMENT : 0) |
		(row->has_more ? (unsigned int)LB_PACKET_MORE : 0);

	EXPECT(p->kind == row->kind, "%s: kind %u, want %d", row->name, p->kind, row->kind);
	EXPECT(p->flags == flags, "%s: flags %u, want %u", row->name, p->flags, flags);
	EXPECT(p->n_tags == row->n_tags, "%s: %u tags", row->name, p->n_tags);
	EXPECT(p->ip_offset == 14u + 4u * row->n_tags, "%s: ip_offset %u", row->name,
		p->ip_offset);
	EXPECT(p->l4_offset == row->l4_offset, "%s: l4_offset %u, want %zu", row->name,
		p->l4_offset, row->l4_offset);
	EXPECT(p->ip_bytes == ip_bytes, "%s: ip_bytes %u, want %zu", row->name, p->ip_bytes,
		ip_bytes);
	EXPECT(p->is_v6 == is_v6, "%s: is_v6", row->name);
	EXPECT(p->tos == row->tos, "%s: tos %#x, want %#x", row->name, p->tos, row->tos);
	EXPECT(p->tcp_flags == row->tcp_flags, "%s: tcp_flags %#x", row->name, p->tcp_flags);
	EXPECT(p->frag_id == row->frag_id, "%s: frag_id %#x", row->name, p->frag_id);
	EXPECT(p->frag_offset == row->frag_offset, "%s: frag_offset %u, want %u", row->name,
		p->frag_offset, row->frag_offset);
	EXPECT(p->frag_bytes == row->frag_bytes, "%s: frag_bytes %u, want %u", row->name,
		p->frag_bytes, row->frag_bytes);
	EXPECT(p->tcp_seq == (is_tcp ? PB_SEQ : 0), "%s: tcp_seq %#x", row->name, p->tcp_seq);
}

/* What of a row's frame is no padding. */
static size_t
unpadded(const struct row *row, size_t n)
{
	size_t i = 0;

	while (row->layers[i].kind != PB_END && row->layers[i].kind != PB_PADDING)
		i++;
	return n - (size_t)row->layers[i].n_bytes;
}

static const char *
key_source(const struct row *row)
{
	/* An error's key is the flow's; other packets are from whom they are from. */
	return row->kind == LB_PACKET_ICMP_ERROR ? NULL : row->layers[1 + row->n_tags].src;
}

static void
test_each_row_has_its_verdict_and_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct row *row = &rows[i];
		uint8_t frame[PB_FRAME_MAX];
		struct lb_packet p;
		size_t n = build_row(row, frame);
		const size_t ip_bytes = unpadded(row, n) - 14 - 4 * (size_t)row->n_tags;
		size_t wire = n;
		enum lb_verdict got;

		if (row->n_bytes != 0)
			n = wire = row->n_bytes;
		if (row->captured != 0)
			n = row->captured;
		memset(&p, 0xaa, sizeof(p));
		got = parse_exact(frame, n, wire, &p);
		EXPECT(got == row->want, "%s: verdict %d, want %d", row->name, got, row->want);
		if (got != LB_FORWARD)
			continue;
		EXPECT(packet_flaw(&p, n, wire) == NULL, "%s: %s", row->name,
			packet_flaw(&p, n, wire));
		if (row->kind == LB_PACKET_CUT_SHORT) {
			EXPECT(p.kind == LB_PACKET_CUT_SHORT, "%s: kind %u", row->name, p.kind);
			continue;
		}
		expect_fields(row, &p, ip_bytes);
		expect_key(row, &p, key_source(row));
	}
}

static void
test_an_empty_frame_is_not_read(void **state)
{
	const uint8_t byte = 0;
	struct lb_packet p;

	(void)state;
	assert_int_equal(parse_exact(&byte, 0, 0, &p), LB_DROP_TRUNCATED);
	assert_int_equal(parse_exact(&byte, 0, 60, &p), LB_TO_KERNEL);
	assert_int_equal(parse_exact(&byte, 0, 13, &p), LB_DROP_TRUNCATED);
}

static bool
is_parsers(enum lb_verdict v)
{
	return v == LB_FORWARD || v == LB_TO_KERNEL || v == LB_DROP_VLAN_DEPTH ||
	       v == LB_DROP_FRAGMENT_BAD ||
	       (v >= LB_DROP_TRUNCATED && v <= LB_DROP_UNKNOWN_EXTENSION_HEADER);
}

/* Whatever the bytes: a verdict that is the parser's, and promises kept. */
static enum lb_verdict
expect_sound(const struct row *row, const uint8_t *frame, size_t n, size_t wire,
	struct lb_packet *p)
{
	const enum lb_verdict got = parse_exact(frame, n, wire, p);
	const char *flaw = got == LB_FORWARD ? packet_flaw(p, n, wire) : NULL;

	EXPECT(is_parsers(got), "%s, %zu of %zu bytes: verdict %d", row->name, n, wire, got);
	EXPECT(flaw == NULL, "%s, %zu of %zu bytes: %s", row->name, n, wire, flaw);
	return got;
}

static void
test_a_prefix_of_a_packet_is_truncated(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct row *row = &rows[i];
		uint8_t frame[PB_FRAME_MAX];
		struct lb_packet p;
		const size_t whole = build_row(row, frame);
		const enum lb_verdict of_whole = expect_sound(row, frame, whole, whole, &p);

		for (size_t n = 0; n < whole; n++) {
			const enum lb_verdict got = expect_sound(row, frame, n, n, &p);

			if (of_whole == LB_FORWARD && n < unpadded(row, whole))
				EXPECT(got == LB_DROP_TRUNCATED, "%s, %zu bytes: verdict %d",
					row->name, n, got);
		}
	}
}

static void
test_a_cut_capture_is_snaplen_or_the_same_packet(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct row *row = &rows[i];
		uint8_t frame[PB_FRAME_MAX];
		struct lb_packet full;
		struct lb_packet cut;
		const size_t whole = build_row(row, frame);
		const enum lb_verdict of_whole = expect_sound(row, frame, whole, whole, &full);

		for (size_t n = 0; n < whole; n++) {
			const enum lb_verdict got = expect_sound(row, frame, n, whole, &cut);

			if (got == LB_FORWARD && cut.kind == LB_PACKET_CUT_SHORT)
				continue;
			/* Cut so early that nothing shows whom it is for. */
			if (got == LB_TO_KERNEL && n < (full.is_v6 ? 40u : 20u) + 14 + 8)
				continue;
			/* A cut data offset does not show that options are missing. */
			if (got == LB_FORWARD && of_whole == LB_DROP_FRAGMENT_BAD &&
				cut.key.proto == 6 && n < cut.l4_offset + 20u)
				continue;
			/* Ports may be all that is left of the L4 header. */
			if (got == LB_FORWARD && of_whole == LB_FORWARD)
				cut.tcp_flags = full.tcp_flags;
			EXPECT(got == of_whole,
				"%s, %zu of %zu bytes: verdict %d, the whole's is %d",
				row->name, n, whole, got, of_whole);
			if (got != LB_FORWARD)
				continue;
			cut.flags &= (uint8_t)~LB_PACKET_CUT;
			EXPECT(memcmp(&cut.key, &full.key, sizeof(cut.key)) == 0 &&
					cut.kind == full.kind && cut.flags == full.flags,
				"%s, %zu of %zu bytes: another packet", row->name, n, whole);
		}
	}
}

static void
test_a_flipped_bit_breaks_no_promise(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint8_t frame[PB_FRAME_MAX];
		struct lb_packet p;
		const size_t whole = build_row(&rows[i], frame);

		for (size_t bit = 0; bit < (size_t)80 * 8 && bit < whole * 8; bit++) {
			frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
			(void)expect_sound(&rows[i], frame, whole, whole, &p);
			(void)expect_sound(&rows[i], frame, whole * 3 / 4, whole, &p);
			frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* Bytes 14 to 53: the checksum covers every bit of the header, those of the options too. */
static void
test_a_flipped_bit_of_an_ipv4_header_is_dropped(void **state)
{
	static const struct pb_layer layers[] = {ETHER(), IPV4(.options = 20), TCP(),
		PAYLOAD(9), END};
	uint8_t frame[PB_FRAME_MAX];
	struct lb_packet p;
	const size_t n = pb_build(layers, frame);

	(void)state;
	for (size_t bit = 112; bit < 432; bit++) {
		enum lb_verdict got;

		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		got = parse_exact(frame, n, n, &p);
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		EXPECT(got >= LB_FIRST_DROP, "bit %zu: verdict %d", bit, got);
	}
}

/* Bytes changed at random, the checksum put right again: beyond what rows think of. */
static void
test_the_short_way_agrees_with_the_plain_one(void **state)
{
	static const struct pb_layer usual[][PB_LAYERS_MAX + 1] = {
		{ETHER(), IPV4(), TCP(), PAYLOAD(9), END},
		{ETHER(), IPV4(), UDP(), PAYLOAD(30), END},
		{ETHER(), IPV6(), TCP(), PAYLOAD(9), END},
		{ETHER(), IPV6(), UDP(), PAYLOAD(30), END},
	};
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < 400000; i++) {
		uint8_t frame[PB_FRAME_MAX];
		struct lb_packet p;
		const size_t whole = pb_build(usual[i % LB_N_ELEMENTS(usual)], frame);
		const size_t n = whole - xrand_below(&seed, 4);

		for (uint32_t k = xrand_below(&seed, 4); k > 0; k--)
			frame[xrand_below(&seed, 60)] = (uint8_t)xrand(&seed);
		if (xrand_below(&seed, 4) > 0)
			pb_fix_ipv4_csum(frame + 14);
		(void)parse_exact(frame, n, n + xrand_below(&seed, 2) * 3, &p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_short_way_agrees_with_the_plain_one),
		cmocka_unit_test(test_each_row_has_its_verdict_and_fields),
		cmocka_unit_test(test_an_empty_frame_is_not_read),
		cmocka_unit_test(test_a_prefix_of_a_packet_is_truncated),
		cmocka_unit_test(test_a_cut_capture_is_snaplen_or_the_same_packet),
		cmocka_unit_test(test_a_flipped_bit_breaks_no_promise),
		cmocka_unit_test(test_a_flipped_bit_of_an_ipv4_header_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
