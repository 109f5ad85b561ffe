/* SPDX-License-Identifier: BSD-3-Clause */
#include "burst_frames.h"

#include <string.h>

#include "lb_compiler.h"

/* What the builder has no layer for, written over a frame's last bytes. */
struct tail {
	uint8_t bytes[24];
	uint8_t n_bytes;
};

/* TCP's options: MSS 1460, no-operation, window scale, and the end. */
#define MSS                                                                                    \
	{                                                                                      \
		{2, 4, 5, 0xb4, 1, 3, 3, 7, 0, 0, 0, 0}, 12                                    \
	}
/* A short header, whose connection id names server 0a02 by config_id 1, in the clear. */
#define QUIC_SHORT                                                                             \
	{                                                                                      \
		{0x40, 0x20, 0x0a, 0x02, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0}, 17            \
	}
/* A long one, version 1, with as long an id by config_id 0, which is encrypted. */
#define QUIC_LONG                                                                              \
	{                                                                                      \
		{0xc0, 0, 0, 0, 1, 9, 0x00, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 16                     \
	}
#define TCP_SYN             0x02
#define TO(address)         .dst = (address)
#define DF                  0x4000
#define MORE                0x2000
#define DESTINATION_OPTIONS EXTENSION(.type = 60)

static const struct {
	const char *name;
	struct pb_layer layers[PB_LAYERS_MAX];
	struct tail tail;
} rows[] = {
	{"a segment", {ETHER(), IPV4(), TCP(), PAYLOAD(20), END}, {{0}, 0}},
	{"a padded one", {ETHER(), IPV4(), TCP(), PADDING(6), END}, {{0}, 0}},
	{"with IP options", {ETHER(), IPV4(.options = 40), TCP(), END}, {{0}, 0}},
	{"behind one tag", {ETHER(), VLAN(.vid = 7), IPV4(), TCP(), END}, {{0}, 0}},
	{"behind two", {ETHER(), VLAN(.tpid = 0x88a8), VLAN(), IPV4(), TCP(), END}, {{0}, 0}},
	{"behind three", {ETHER(), VLAN(), VLAN(), VLAN(), IPV4(), TCP(), END}, {{0}, 0}},
	{"a SYN with an MSS", {ETHER(), IPV4(), TCP(.tcp_flags = TCP_SYN), PAYLOAD(12), END},
		MSS},
	{"a SYN with an MSS, for a direct backend",
		{ETHER(), VLAN(), IPV4(TO("198.51.100.11")), TCP(.tcp_flags = TCP_SYN),
			PAYLOAD(12), END},
		MSS},
	{"from nobody", {ETHER(), IPV4(.src = "127.0.0.1"), TCP(), END}, {{0}, 0}},
	{"for a service without backends", {ETHER(), IPV4(TO("198.51.100.13")), TCP(), END},
		{{0}, 0}},
	{"for nobody", {ETHER(), IPV4(TO("192.0.2.99")), TCP(), END}, {{0}, 0}},
	{"for loopback", {ETHER(), IPV4(TO("127.0.0.1")), UDP(), END}, {{0}, 0}},
	{"with a source route",
		{ETHER(), IPV6(), EXTENSION(.type = 43, .segments_left = 1), TCP(), END},
		{{0}, 0}},
	{"ARP", {ETHER(), PAYLOAD(28), END}, {{0}, 0}},
	{"a datagram to a prefix",
		{ETHER(), VLAN(), VLAN(), IPV4(TO("198.51.100.21")), UDP(), PAYLOAD(9), END},
		{{0}, 0}},
	{"another protocol", {ETHER(), IPV4(TO("198.51.100.11")), PAYLOAD(20), END}, {{0}, 0}},
	{"a QUIC short header", {ETHER(), IPV4(), UDP(), PAYLOAD(17), END}, QUIC_SHORT},
	{"a QUIC long header", {ETHER(), IPV4(), UDP(), PAYLOAD(16), END}, QUIC_LONG},
	{"an echo request", {ETHER(), IPV4(.options = 8), ICMP(.type = 8), PAYLOAD(30), END},
		{{0}, 0}},
	{"an echo request for a backend",
		{ETHER(), IPV4(TO("198.51.100.11")), ICMP(.type = 8), PAYLOAD(30), END},
		{{0}, 0}},
	{"an echo request that is refused",
		{ETHER(), IPV4(TO("198.51.100.12")), ICMP(.type = 8), PAYLOAD(30), END},
		{{0}, 0}},
	{"an ICMP error",
		{ETHER(), IPV4(.src = "192.0.2.9"), ICMP(.type = 3, .code = 4),
			IPV4(FROM_SERVICE_V4), TCP(FROM_SERVICE_L4, .n_bytes = 8), END},
		{{0}, 0}},
	{"an ICMP error about a QUIC packet",
		{ETHER(), VLAN(), IPV4(.src = "192.0.2.9"), ICMP(.type = 11),
			IPV4(FROM_SERVICE_V4, .options = 4), UDP(FROM_SERVICE_L4), END},
		{{0}, 0}},
	{"an ICMP error about an echo reply",
		{ETHER(), IPV4(TO("198.51.100.11")), ICMP(.type = 11),
			IPV4(.src = "198.51.100.11", .dst = PB_CLIENT_V4), ICMP(.type = 0),
			END},
		{{0}, 0}},
	{"an ICMP error about a later fragment",
		{ETHER(), IPV4(TO("198.51.100.12")), ICMP(.type = 3, .code = 4),
			IPV4(.src = "198.51.100.12", .dst = PB_CLIENT_V4, .fragment = 185),
			UDP(FROM_SERVICE_L4), END},
		{{0}, 0}},
	{"an ICMPv6 error about a later fragment",
		{ETHER(), IPV6(), ICMPV6(.type = 2), IPV6(FROM_SERVICE_V6),
			EXTENSION(.type = 44, .fragment = 8, .proto = 132), PAYLOAD(8), END},
		{{0}, 0}},
	{"a first fragment",
		{ETHER(), IPV4(TO("198.51.100.21"), .fragment = MORE), UDP(), PAYLOAD(40), END},
		{{0}, 0}},
	{"its second",
		{ETHER(), IPV4(TO("198.51.100.21"), .fragment = MORE | 48 / 8, .proto = 17),
			PAYLOAD(48), END},
		{{0}, 0}},
	{"its last",
		{ETHER(), IPV4(TO("198.51.100.21"), .fragment = 96 / 8, .proto = 17),
			PAYLOAD(7), END},
		{{0}, 0}},
	{"a first fragment of TCP, and too long",
		{ETHER(), VLAN(), IPV4(TO("198.51.100.33"), .fragment = MORE),
			TCP(.tcp_flags = TCP_SYN), PAYLOAD(580), END},
		{{0}, 0}},
	{"a later one of it, and too long",
		{ETHER(), IPV4(TO("198.51.100.33"), .fragment = 600 / 8, .proto = 6),
			PAYLOAD(600), END},
		{{0}, 0}},
	{"a first fragment for a service without backends",
		{ETHER(), IPV4(TO("198.51.100.13"), .fragment = MORE), UDP(), PAYLOAD(8), END},
		{{0}, 0}},
	{"a later one of it",
		{ETHER(), IPV4(TO("198.51.100.13"), .fragment = 2, .proto = 17), PAYLOAD(8),
			END},
		{{0}, 0}},
	{"a first fragment for the kernel",
		{ETHER(), IPV4(.fragment = MORE), UDP(.dport = 9), PAYLOAD(8), END}, {{0}, 0}},
	{"a fragment of a ping", {ETHER(), IPV4(.fragment = MORE), ICMP(.type = 8), END},
		{{0}, 0}},
	{"its later one",
		{ETHER(), IPV4(.fragment = 1, .proto = 1, .options = 8), PAYLOAD(21), END},
		{{0}, 0}},
	{"a fragment of a ping over IPv6",
		{ETHER(), VLAN(), IPV6(), DESTINATION_OPTIONS,
			EXTENSION(.type = 44, .fragment = 1), ICMPV6(.type = 128), PAYLOAD(8),
			END},
		{{0}, 0}},
	{"and its later one",
		{ETHER(), IPV6(), EXTENSION(.type = 0), EXTENSION(.type = 44, .fragment = 16),
			ICMPV6(.type = 1), END},
		{{0}, 0}},
	{"a later fragment of a tunnel",
		{ETHER(), IPV4(TO("198.51.100.12"), .fragment = 3, .proto = 4), PAYLOAD(20),
			END},
		{{0}, 0}},
	{"too long, and may not be cut",
		{ETHER(), IPV4(.fragment = DF), TCP(), PAYLOAD(1441), END}, {{0}, 0}},
	{"too long, to be cut", {ETHER(), VLAN(), IPV4(), TCP(), PAYLOAD(1441), END}, {{0}, 0}},
	{"too long, to be cut outside",
		{ETHER(), IPV4(TO("198.51.100.22")), UDP(), PAYLOAD(600), END}, {{0}, 0}},
	{"too long, to be cut in three",
		{ETHER(), IPV4(TO("198.51.100.34"), .options = 12), UDP(), PAYLOAD(1300), END},
		{{0}, 0}},
	{"too long, to be dropped",
		{ETHER(), IPV4(TO("198.51.100.12")), UDP(), PAYLOAD(1470), END}, {{0}, 0}},
	{"too long for anybody", {ETHER(), IPV4(), TCP(), PAYLOAD(1900), END}, {{0}, 0}},
	{"a tunnel", {ETHER(), IPV4(TO("198.51.100.12"), .proto = 4), IPV4(), UDP(), END},
		{{0}, 0}},
	{"a tunnel that nobody carries", {ETHER(), IPV4(.proto = 47), PAYLOAD(24), END},
		{{0}, 0}},
	{"VXLAN that nobody carries",
		{ETHER(), IPV4(TO("198.51.100.12")), UDP(.dport = 4789), PAYLOAD(50), END},
		{{0}, 0}},
	{"Geneve that nobody carries",
		{ETHER(), IPV6(TO("2001:db8:6::3")), UDP(.dport = 6081), PAYLOAD(50), END},
		{{0}, 0}},
	{"GUE that nobody carries",
		{ETHER(), IPV4(TO("198.51.100.21")), UDP(.dport = 6080), PAYLOAD(50), END},
		{{0}, 0}},
	{"behind an old tag",
		{ETHER(), VLAN(.tpid = 0x9100), VLAN(), IPV4(), TCP(), PAYLOAD(9), END},
		{{0}, 0}},
	{"IPsec's AH", {ETHER(), IPV4(TO("198.51.100.11"), .proto = 51), PAYLOAD(32), END},
		{{0}, 0}},
	{"AH over IPv6", {ETHER(), IPV6(), EXTENSION(.type = 51, .n_bytes = 24), TCP(), END},
		{{0}, 0}},
	{"an ICMP error whose quote has all options",
		{ETHER(), IPV4(.src = "192.0.2.9"), ICMP(.type = 3, .code = 4),
			IPV4(FROM_SERVICE_V4, .options = 40), TCP(FROM_SERVICE_L4), END},
		{{0}, 0}},
	{"IPv6", {ETHER(), IPV6(.tos = 0xb9), TCP(), PAYLOAD(3), END}, {{0}, 0}},
	{"a SYN over IPv6 with an MSS",
		{ETHER(), IPV6(), TCP(.tcp_flags = TCP_SYN), PAYLOAD(12), END}, MSS},
	{"IPv6 with extensions",
		{ETHER(), VLAN(), IPV6(TO("2001:db8:6::3")), EXTENSION(.type = 0),
			EXTENSION(.type = 60, .n_bytes = 16), EXTENSION(.type = 43),
			EXTENSION(.type = 51, .n_bytes = 28), UDP(), END},
		{{0}, 0}},
	{"more extensions than are walked",
		{ETHER(), IPV6(), DESTINATION_OPTIONS, DESTINATION_OPTIONS, DESTINATION_OPTIONS,
			DESTINATION_OPTIONS, DESTINATION_OPTIONS, DESTINATION_OPTIONS,
			DESTINATION_OPTIONS, DESTINATION_OPTIONS, DESTINATION_OPTIONS,
			DESTINATION_OPTIONS, DESTINATION_OPTIONS, DESTINATION_OPTIONS,
			DESTINATION_OPTIONS, DESTINATION_OPTIONS, DESTINATION_OPTIONS,
			DESTINATION_OPTIONS, DESTINATION_OPTIONS, UDP(), END},
		{{0}, 0}},
	{"segments left",
		{ETHER(), IPV6(), EXTENSION(.type = 43, .segments_left = 1), UDP(), END},
		{{0}, 0}},
	{"an IPv6 first fragment",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 1), UDP(), PAYLOAD(8), END},
		{{0}, 0}},
	{"its later one",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 16, .proto = 17),
			PAYLOAD(8), END},
		{{0}, 0}},
	{"one that is whole", {ETHER(), IPV6(), EXTENSION(.type = 44), UDP(), PAYLOAD(5), END},
		{{0}, 0}},
	{"an ICMPv6 error",
		{ETHER(), IPV6(.src = "2001:db8:9::1"), ICMPV6(.type = 2),
			IPV6(FROM_SERVICE_V6), EXTENSION(.type = 60), UDP(FROM_SERVICE_L4),
			END},
		{{0}, 0}},
	{"ping over IPv6", {ETHER(), VLAN(), IPV6(), ICMPV6(.type = 128), PAYLOAD(11), END},
		{{0}, 0}},
	{"ping over IPv6 behind options",
		{ETHER(), VLAN(), IPV6(), EXTENSION(.type = 0, .n_bytes = 16),
			DESTINATION_OPTIONS, ICMPV6(.type = 128), PAYLOAD(11), END},
		{{0}, 0}},
	{"ping over IPv6 for a backend",
		{ETHER(), IPV6(TO("2001:db8:6::3")), ICMPV6(.type = 128), PAYLOAD(11), END},
		{{0}, 0}},
	{"a neighbour is asked for",
		{ETHER(), IPV6(.ttl = 255), ICMPV6(.type = 135), PAYLOAD(24), END}, {{0}, 0}},
	{"IPv6, too long", {ETHER(), IPV6(), TCP(), PAYLOAD(1441), END}, {{0}, 0}},
	{"IPv6, too long, and no sender may be told",
		{ETHER(), IPV6(TO("2001:db8:6::4")), UDP(), PAYLOAD(1230), END}, {{0}, 0}},
	{"a tunnel over IPv6", {ETHER(), IPV6(.proto = 41), IPV6(), UDP(), END}, {{0}, 0}},
};

size_t
burst_frames_count(void)
{
	return LB_N_ELEMENTS(rows);
}

const char *
burst_frames_name(size_t i)
{
	return rows[i].name;
}

size_t
burst_frames_build(size_t i, uint8_t *out)
{
	const struct tail *tail = &rows[i].tail;
	const size_t n = pb_build(rows[i].layers, out);

	if (tail->n_bytes == 0)
		return n;
	memcpy(out + n - tail->n_bytes, tail->bytes, tail->n_bytes);
	if (tail->bytes[0] == 2) /* TCP's, by which its header is as much longer */
		out[n - tail->n_bytes - 8] = (uint8_t)((20 + tail->n_bytes) / 4 << 4);
	return n;
}
