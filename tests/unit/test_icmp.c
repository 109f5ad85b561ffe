/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_icmp.h"
#include "packet_builder.h"

#define FRAME(a) (a), sizeof(a)

/* Requests, replies and errors below are another program's, checksums and all. */
static const uint8_t echo_v4[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00,
	0x00, 0x02, 0x08, 0x00, 0x45, 0xbb, 0x00, 0x21, 0x12, 0x34, 0x40, 0x00, 0x39, 0x01,
	0xc8, 0xa7, 0xcb, 0x00, 0x71, 0x07, 0xc6, 0x33, 0x64, 0x0a, 0x08, 0x00, 0xdc, 0x31,
	0xbe, 0xef, 0x00, 0x07, 0x73, 0x68, 0x75, 0x6e, 0x74};
static const uint8_t echo_v4_reply[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x08, 0x00, 0x45, 0xb8, 0x00, 0x21, 0x12, 0x34, 0x40, 0x00, 0x40,
	0x01, 0xc1, 0xaa, 0xc6, 0x33, 0x64, 0x0a, 0xcb, 0x00, 0x71, 0x07, 0x00, 0x00, 0xe4,
	0x31, 0xbe, 0xef, 0x00, 0x07, 0x73, 0x68, 0x75, 0x6e, 0x74};
/* A recorded route with room for one, a time stamp, a router alert. */
static const uint8_t echo_v4_options[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x02, 0x08, 0x00, 0x4a, 0x00, 0x00, 0x35, 0x12, 0x34, 0x00, 0x00, 0x39,
	0x01, 0xea, 0xa4, 0xcb, 0x00, 0x71, 0x07, 0xc6, 0x33, 0x64, 0x0a, 0x07, 0x0b, 0x08,
	0xc0, 0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x44, 0x04, 0x05, 0x00, 0x94, 0x04,
	0x00, 0x00, 0x00, 0x08, 0x00, 0xdc, 0x31, 0xbe, 0xef, 0x00, 0x07, 0x73, 0x68, 0x75,
	0x6e, 0x74};
static const uint8_t echo_v4_options_reply[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00,
	0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x4a, 0x00, 0x00, 0x35, 0x12, 0x34, 0x00, 0x00,
	0x40, 0x01, 0xa4, 0x0c, 0xc6, 0x33, 0x64, 0x0a, 0xcb, 0x00, 0x71, 0x07, 0x07, 0x0b,
	0x0c, 0xc0, 0x00, 0x02, 0x01, 0xc6, 0x33, 0x64, 0x0a, 0x44, 0x04, 0x05, 0x00, 0x01,
	0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0xe4, 0x31, 0xbe, 0xef, 0x00, 0x07, 0x73, 0x68,
	0x75, 0x6e, 0x74};
static const uint8_t echo_v6[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00,
	0x00, 0x02, 0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x64, 0x86, 0xdd, 0x6b, 0xb5,
	0x43, 0x21, 0x00, 0x0d, 0x3a, 0x39, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x0c, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x05,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x80, 0x00, 0x08, 0x50,
	0xbe, 0xef, 0x00, 0x07, 0x73, 0x68, 0x75, 0x6e, 0x74};
static const uint8_t echo_v6_reply[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
	0x00, 0x00, 0x01, 0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x64, 0x86, 0xdd, 0x6b,
	0x80, 0x00, 0x00, 0x00, 0x0d, 0x3a, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x05, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x20, 0x01, 0x0d, 0xb8, 0x00,
	0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x81, 0x00, 0x07,
	0x50, 0xbe, 0xef, 0x00, 0x07, 0x73, 0x68, 0x75, 0x6e, 0x74};

static const struct {
	const char *what;
	const uint8_t *request;
	size_t n;
	const uint8_t *reply;
	size_t n_reply;
} replies[] = {
	{"IPv4: TTL, TOS and both checksums change", FRAME(echo_v4), FRAME(echo_v4_reply)},
	{"IPv4 options: a route grows, a time stamp stays, an alert goes",
		FRAME(echo_v4_options), FRAME(echo_v4_options_reply)},
	{"IPv6 under two tags: hop limit, class and label change", FRAME(echo_v6),
		FRAME(echo_v6_reply)},
};

/* A frame at exact length on the heap, and what the parser says of it. */
struct case_frame {
	uint8_t *bytes;
	size_t n;
	bool is_parsed; /* otherwise packet is not to be read */
	struct lb_packet packet;
};

static uint8_t *
copy_exact(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n == 0 ? 1 : n);

	assert_non_null(copy);
	if (n > 0)
		memcpy(copy, bytes, n);
	return copy;
}

/* The frame is the caller's to free, parsed or not. */
static void
take_frame(struct case_frame *f, const uint8_t *bytes, size_t n, size_t wire_bytes)
{
	uint8_t *copy = copy_exact(bytes, n);
	struct lb_packet packet;

	f->is_parsed = lb_packet_parse(copy, n, wire_bytes, &packet) == LB_FORWARD;
	f->packet = packet;
	f->bytes = copy;
	f->n = n;
}

static void
take_layers(struct case_frame *f, const struct pb_layer *layers)
{
	uint8_t bytes[PB_FRAME_MAX];
	const size_t n = pb_build(layers, bytes);

	take_frame(f, bytes, n, n);
	assert_true(f->is_parsed);
}

static unsigned int
get16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

/* Over the L4 of a whole IP packet without extension headers. */
static uint16_t
sum_l4(const uint8_t *ip, bool with_own)
{
	uint8_t summed[40 + PB_FRAME_MAX] = {0};
	const bool is_v6 = ip[0] >> 4 == 6;
	const size_t header_bytes = is_v6 ? 40 : (size_t)(ip[0] & 0x0f) * 4;
	const size_t n = is_v6 ? get16(ip + 4) : get16(ip + 2) - header_bytes;
	const uint8_t proto = is_v6 ? ip[6] : ip[9];

	assert_true(n >= 4 && n <= PB_FRAME_MAX);
	if (proto != 1) {
		memcpy(summed, is_v6 ? ip + 8 : ip + 12, is_v6 ? 32 : 8);
		summed[34] = (uint8_t)(n >> 8);
		summed[35] = (uint8_t)n;
		summed[39] = proto;
	}
	memcpy(summed + 40, ip + header_bytes, n);
	if (!with_own) /* ICMP's */
		memset(summed + 42, 0, 2);
	return pb_csum(summed, 40 + n);
}

static uint16_t
csum_of(const uint8_t *ip)
{
	return sum_l4(ip, false);
}

static bool
is_l4_right(const uint8_t *ip)
{
	return sum_l4(ip, true) == 0;
}

/* As above, and the header's own of IPv4. */
static bool
is_right(const uint8_t *ip)
{
	return is_l4_right(ip) &&
	       (ip[0] >> 4 == 6 || pb_csum(ip, (size_t)(ip[0] & 0x0f) * 4) == 0);
}

static const struct {
	const char *what;
	struct pb_layer layers[8];
	size_t at;
	unsigned int want;
} built[] = {
	{"TCP", {ETHER(), IPV4(), TCP(), PAYLOAD(5), END}, 14 + 20 + 16, 0x7ae2},
	{"UDP", {ETHER(), IPV4(), UDP(), PAYLOAD(5), END}, 14 + 20 + 6, 0xceec},
	{"ICMP", {ETHER(), IPV4(), ICMP(.type = 8), PAYLOAD(5), END}, 14 + 20 + 2, 0xf854},
	{"TCP over IPv6", {ETHER(), IPV6(), TCP(), PAYLOAD(5), END}, 14 + 40 + 16, 0x858e},
	{"UDP over IPv6", {ETHER(), IPV6(), UDP(), PAYLOAD(5), END}, 14 + 40 + 6, 0xd998},
	{"ICMPv6", {ETHER(), IPV6(), ICMPV6(.type = 128), PAYLOAD(5), END}, 14 + 40 + 2,
		0x2473},
	{"UDP behind an extension header",
		{ETHER(), IPV6(), EXTENSION(.type = 60), UDP(), PAYLOAD(5), END},
		14 + 40 + 8 + 6, 0xd998},
	{"UDP that an ICMP error quotes",
		{ETHER(), IPV4(FROM_SERVICE_V4), ICMP(.type = 3), IPV4(), UDP(), PAYLOAD(5),
			END},
		14 + 20 + 8 + 20 + 6, 0xceec},
};

/* What all of these tests and others are built on. */
static void
test_the_builder_makes_right_checksums(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(built); i++) {
		uint8_t bytes[PB_FRAME_MAX];
		const size_t n = pb_build(built[i].layers, bytes);
		const unsigned int got = get16(bytes + built[i].at);

		assert_true(n >= built[i].at + 2);
		EXPECT(got == built[i].want, "%s: %04x, want %04x", built[i].what, got,
			built[i].want);
		if (built[i].layers[2].kind != PB_EXTENSION)
			EXPECT(is_right(bytes + 14), "%s", built[i].what);
	}
}

/* A sum of 0 is sent as 0xffff by UDP, where 0 means that there is none. */
static void
test_the_builder_never_makes_udp_without_a_checksum(void **state)
{
	(void)state;
	for (int port = 1; port <= 0xffff; port++) {
		const struct pb_layer layers[] = {IPV4(), UDP(.sport = port), END};
		uint8_t bytes[PB_FRAME_MAX];

		(void)pb_build(layers, bytes);
		EXPECT(get16(bytes + 26) != 0, "port %d", port);
		EXPECT(is_right(bytes), "port %d", port);
	}
}

static void
test_each_request_has_its_reply(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(replies); i++) {
		struct case_frame f;
		size_t begin = 1;

		take_frame(&f, replies[i].request, replies[i].n, replies[i].n);
		assert_true(f.is_parsed);
		EXPECT(lb_icmp_echo_reply(f.bytes, f.n, &f.packet, &begin) ==
					replies[i].n_reply &&
				begin == 0,
			"%s", replies[i].what);
		for (size_t k = 0; k < replies[i].n_reply; k++)
			EXPECT(f.bytes[k] == replies[i].reply[k],
				"%s: byte %zu is %02x, want %02x", replies[i].what, k,
				f.bytes[k], replies[i].reply[k]);
		free(f.bytes);
	}
}

#define ECHO_V4 ICMP(.type = 8), PAYLOAD(8)
#define ECHO_V6 ICMPV6(.type = 128), PAYLOAD(8)

static const struct {
	const char *what;
	struct pb_layer layers[8];
	size_t cut;  /* bytes that the capture lacks */
	uint8_t dst; /* first byte of the MAC addresses, 0 for the usual */
	uint8_t src;
} refused[] = {
	{"a reply", {ETHER(), IPV4(), ICMP(.type = 0), PAYLOAD(8), END}, 0, 0, 0},
	{"an ICMPv6 reply", {ETHER(), IPV6(), ICMPV6(.type = 129), PAYLOAD(8), END}, 0, 0, 0},
	{"a time stamp request", {ETHER(), IPV4(), ICMP(.type = 13), PAYLOAD(12), END}, 0, 0,
		0},
	{"TCP", {ETHER(), IPV4(), TCP(), END}, 0, 0, 0},
	{"a first fragment that asks for no echo",
		{ETHER(), IPV4(.fragment = 0x2000), ICMP(.type = 13), PAYLOAD(8), END}, 0, 0,
		0},
	{"a later fragment from a group",
		{ETHER(), IPV4(.fragment = 0x2001, .src = "224.0.0.1"), ECHO_V4, END}, 0, 0, 0},
	{"a later fragment that a capture cut", {ETHER(), IPV4(.fragment = 1), ECHO_V4, END}, 1,
		0, 0},
	{"a routing header in what is cut",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 1), EXTENSION(.type = 43),
			ECHO_V6, END},
		0, 0, 0},
	{"one behind destination options there",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 1), EXTENSION(.type = 60),
			EXTENSION(.type = 43), ECHO_V6, END},
		0, 0, 0},
	{"IPsec's AH", {ETHER(), IPV6(), EXTENSION(.type = 51), ECHO_V6, END}, 0, 0, 0},
	{"options of each hop after others",
		{ETHER(), IPV6(), EXTENSION(.type = 60), EXTENSION(.type = 0), ECHO_V6, END}, 0,
		0, 0},
	{"a header nobody may pass over, before a fragment's",
		{ETHER(), IPV6(), EXTENSION(.type = 135), EXTENSION(.type = 44, .fragment = 9),
			ECHO_V6, END},
		0, 0, 0},
	{"one that a capture cut", {ETHER(), IPV4(), ECHO_V4, END}, 1, 0, 0},
	{"to a group's MAC address", {ETHER(), IPV4(), ECHO_V4, END}, 0, 0x03, 0},
	{"to everybody's MAC address", {ETHER(), IPV6(), ECHO_V6, END}, 0, 0xff, 0},
	{"from a group's MAC address", {ETHER(), IPV4(), ECHO_V4, END}, 0, 0, 0x03},
	{"to a group", {ETHER(), IPV4(.dst = "224.0.0.1"), ECHO_V4, END}, 0, 0, 0},
	{"to everybody", {ETHER(), IPV4(.dst = "255.255.255.255"), ECHO_V4, END}, 0, 0, 0},
	{"to an IPv6 group", {ETHER(), IPV6(.dst = "ff02::1"), ECHO_V6, END}, 0, 0, 0},
	{"from a group", {ETHER(), IPV4(.src = "224.0.0.1"), ECHO_V4, END}, 0, 0, 0},
	{"from everybody", {ETHER(), IPV4(.src = "255.255.255.255"), ECHO_V4, END}, 0, 0, 0},
	{"from class E", {ETHER(), IPV4(.src = "240.0.0.1"), ECHO_V4, END}, 0, 0, 0},
	{"from this network", {ETHER(), IPV4(.src = "0.0.0.0"), ECHO_V4, END}, 0, 0, 0},
	{"from loopback", {ETHER(), IPV4(.src = "127.0.0.1"), ECHO_V4, END}, 0, 0, 0},
	{"from an IPv6 group", {ETHER(), IPV6(.src = "ff02::1"), ECHO_V6, END}, 0, 0, 0},
	{"from nobody", {ETHER(), IPV6(.src = "::"), ECHO_V6, END}, 0, 0, 0},
	{"from IPv6 loopback", {ETHER(), IPV6(.src = "::1"), ECHO_V6, END}, 0, 0, 0},
	{"from itself", {ETHER(), IPV4(.src = PB_SERVICE_V4), ECHO_V4, END}, 0, 0, 0},
	{"from its IPv6 self", {ETHER(), IPV6(.src = PB_SERVICE_V6), ECHO_V6, END}, 0, 0, 0},
};

static void
test_what_is_refused_is_untouched(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(refused); i++) {
		uint8_t bytes[PB_FRAME_MAX];
		const size_t n = pb_build(refused[i].layers, bytes);
		struct case_frame f;
		size_t begin = 1;

		if (refused[i].dst != 0)
			bytes[0] = refused[i].dst;
		if (refused[i].src != 0)
			bytes[6] = refused[i].src;
		take_frame(&f, bytes, n - refused[i].cut, n);
		EXPECT(f.is_parsed, "%s", refused[i].what);
		EXPECT(lb_icmp_echo_reply(f.bytes, f.n, &f.packet, &begin) == 0, "%s",
			refused[i].what);
		EXPECT(begin == 1 && memcmp(f.bytes, bytes, f.n) == 0, "%s: touched",
			refused[i].what);
		free(f.bytes);
	}
}

#define SERVICE 198, 51, 100, 10

static const struct {
	const char *what;
	uint8_t request[12]; /* the options */
	uint8_t reply[12];   /* all zero where refused */
} options[] = {
	{"no-operations", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	{"what follows the end is left alone", {1, 0, 131, 200}, {1, 0, 131, 200}},
	{"a route of one place that is free", {7, 7, 4, 0, 0, 0, 0, 1}, {7, 7, 8, SERVICE, 1}},
	{"a route that is full", {7, 7, 8, 192, 0, 2, 1, 1}, {7, 7, 8, 192, 0, 2, 1, 1}},
	{"a route with the second place free", {7, 11, 8, 192, 0, 2, 1, 0, 0, 0, 0, 1},
		{7, 11, 12, 192, 0, 2, 1, SERVICE, 1}},
	{"a route with room for three bytes of an address", {7, 7, 5, 0, 0, 0, 0, 1, 4}, {0}},
	{"a route that points before its first place", {7, 7, 3, 0, 0, 0, 0, 1}, {0}},
	{"a route with room for one byte of an address", {7, 7, 7, 0, 0, 0, 0, 1}, {0}},
	{"a route without a pointer", {7, 2, 68, 4, 5, 0, 1, 1, 1, 1, 1, 1}, {0}},
	{"a route with nothing but its pointer", {7, 3, 4, 1}, {7, 3, 4, 1}},
	{"a time stamp", {68, 8, 5, 0, 0, 0, 0, 0, 1}, {68, 8, 5, 0, 0, 0, 0, 0, 1}},
	{"a router alert", {148, 4, 0, 0, 1}, {1, 1, 1, 1, 1}},
	{"an option that nobody knows, up to the end", {1, 94, 11, 3, 3, 3, 3, 3, 3, 3, 3, 3},
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	{"a loose source route", {131, 7, 8, 192, 0, 2, 1, 1}, {0}},
	{"a strict source route after another option", {1, 137, 7, 8, 192, 0, 2, 1, 1}, {0}},
	{"an option of no length", {94, 0, 1}, {0}},
	{"an option that is all length byte", {94, 1, 1}, {0}},
	{"an option past the header's end", {1, 94, 12, 1}, {0}},
	{"an option's kind as the last byte", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 94}, {0}},
};

static void
test_each_option_is_answered(void **state)
{
	static const uint8_t none[12];
	const struct pb_layer layers[] = {ETHER(), IPV4(.options = 12), ECHO_V4, END};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(options); i++) {
		const bool is_refused = memcmp(options[i].reply, none, sizeof(none)) == 0;
		uint8_t bytes[PB_FRAME_MAX];
		const size_t n = pb_build(layers, bytes);
		struct case_frame f;
		size_t begin;

		memcpy(bytes + 34, options[i].request, 12);
		pb_fix_ipv4_csum(bytes + 14);
		take_frame(&f, bytes, n, n);
		assert_true(f.is_parsed);
		EXPECT(lb_icmp_echo_reply(f.bytes, n, &f.packet, &begin) ==
				(is_refused ? 0 : n),
			"%s", options[i].what);
		if (is_refused) {
			EXPECT(memcmp(f.bytes, bytes, n) == 0, "%s: touched", options[i].what);
		} else {
			EXPECT(memcmp(f.bytes + 34, options[i].reply, 12) == 0, "%s",
				options[i].what);
			EXPECT(is_right(f.bytes + 14), "%s: checksum", options[i].what);
		}
		free(f.bytes);
	}
}

/* An option without its length at the end of the longest header there is. */
static void
test_the_longest_options_are_not_read_past(void **state)
{
	const struct pb_layer layers[] = {ETHER(), IPV4(.options = 40), ECHO_V4, END};
	uint8_t bytes[PB_FRAME_MAX];
	const size_t n = pb_build(layers, bytes);
	struct lb_packet packet;
	size_t begin;

	(void)state;
	bytes[14 + 59] = 94;
	pb_fix_ipv4_csum(bytes + 14);
	assert_int_equal(lb_packet_parse(bytes, n, n, &packet), LB_FORWARD);
	assert_int_equal(lb_icmp_echo_reply(bytes, n, &packet, &begin), 0);
}

#define PAYLOAD_V4(frame) ((frame) + 14 + 20)
#define PAYLOAD_V6(frame) ((frame) + 14 + 40 + 8)

/* A message cut in two at each place there is: together the answers are the whole one's. */
static void
test_fragments_are_answered_each_in_its_place(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * 64 * 8; i++) {
		const bool is_v6 = i % 2 != 0;
		const int first = 8 + i / 2 % 8 * 8;
		const int later = 1 + i / 16;
		const struct pb_layer whole[] = {ETHER(), IPV4(), ICMP(.type = 8),
			PAYLOAD(first - 8 + later), END};
		const struct pb_layer whole_v6[] = {ETHER(), IPV6(), ICMPV6(.type = 128),
			PAYLOAD(first - 8 + later), END};
		const struct pb_layer parts[][5] = {
			{ETHER(), IPV4(.fragment = 0x2000, .proto = 1), PAYLOAD(first), END},
			{ETHER(), IPV4(.fragment = first / 8, .proto = 1), PAYLOAD(later), END},
			{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 1, .proto = 58),
				PAYLOAD(first), END},
			{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = first, .proto = 58),
				PAYLOAD(later), END},
		};
		uint8_t answers[2][PB_FRAME_MAX];
		struct case_frame asked;
		size_t begin;

		take_layers(&asked, is_v6 ? whole_v6 : whole);
		for (size_t k = 0; k < 2; k++) {
			const struct pb_layer *layers = parts[is_v6 ? k + 2 : k];
			const size_t n = pb_build(layers, answers[k]);
			const size_t at = k == 0 ? 0 : (size_t)first;
			const size_t n_payload = (size_t)(k == 0 ? first : later);
			uint8_t *payload =
				is_v6 ? PAYLOAD_V6(answers[k]) : PAYLOAD_V4(answers[k]);
			struct lb_packet packet;

			memcpy(payload, asked.bytes + asked.packet.l4_offset + at, n_payload);
			assert_int_equal(lb_packet_parse(answers[k], n, n, &packet),
				LB_FORWARD);
			assert_int_equal(lb_icmp_echo_reply(answers[k], n, &packet, &begin), n);
			assert_int_equal(begin, 0);
			if (!is_v6)
				assert_int_equal(pb_csum(answers[k] + 14, 20), 0);
		}
		assert_int_equal(lb_icmp_echo_reply(asked.bytes, asked.n, &asked.packet,
					 &begin),
			asked.n);
		assert_memory_equal(is_v6 ? PAYLOAD_V6(answers[0]) : PAYLOAD_V4(answers[0]),
			asked.bytes + asked.packet.l4_offset, first);
		assert_memory_equal(is_v6 ? PAYLOAD_V6(answers[1]) : PAYLOAD_V4(answers[1]),
			asked.bytes + asked.packet.l4_offset + first, later);
		free(asked.bytes);
	}
}

/* All that a fragment is known by: DF, which routers set on some, among it. */
static void
test_a_fragment_keeps_what_it_is_known_by(void **state)
{
	static const int fields[] = {0x2000, 0x2005, 0x0005, 0x6000, 0x4005, 0xa000, 0x8005};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(fields); i++) {
		const struct pb_layer layers[] = {ETHER(), IPV4(.fragment = fields[i]), ECHO_V4,
			END};
		struct case_frame f;
		unsigned int id;
		size_t begin;

		take_layers(&f, layers);
		id = get16(f.bytes + 18);
		assert_int_equal(lb_icmp_echo_reply(f.bytes, f.n, &f.packet, &begin), f.n);
		EXPECT(get16(f.bytes + 20) == (fields[i] & 0x7fffu), "%04x: %04x", fields[i],
			get16(f.bytes + 20));
		EXPECT(get16(f.bytes + 18) == id, "%04x: another id", fields[i]);
		free(f.bytes);
	}
}

#define HEADER(t, n) EXTENSION(.type = (t), .n_bytes = (n))

/* Of each, the headers that are left out, in bytes. */
static const struct {
	const char *what;
	struct pb_layer layers[12];
	size_t n_left_out;
	uint8_t next; /* what follows the reply's IPv6 header */
} extended[] = {
	{"destination options", {ETHER(), IPV6(), HEADER(60, 8), ECHO_V6, END}, 8, 58},
	{"options of each hop, under a tag",
		{ETHER(), VLAN(), IPV6(), HEADER(0, 24), ECHO_V6, END}, 24, 58},
	{"a route that is over", {ETHER(), IPV6(), HEADER(43, 24), ECHO_V6, END}, 24, 58},
	{"a fragment that is all", {ETHER(), IPV6(), HEADER(44, 8), ECHO_V6, END}, 8, 58},
	{"all of them",
		{ETHER(), VLAN(), VLAN(), IPV6(), HEADER(0, 8), HEADER(60, 512), HEADER(43, 8),
			HEADER(44, 8), ECHO_V6, END},
		536, 58},
	{"before a first fragment's",
		{ETHER(), IPV6(), HEADER(0, 8), HEADER(60, 16),
			EXTENSION(.type = 44, .fragment = 1), ECHO_V6, END},
		24, 44},
	{"before a later one's",
		{ETHER(), VLAN(), IPV6(), HEADER(0, 16), EXTENSION(.type = 44, .fragment = 80),
			ECHO_V6, END},
		16, 44},
};

static void
test_ipv6_extension_headers_are_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(extended); i++) {
		const size_t left_out = extended[i].n_left_out;
		struct case_frame f;
		size_t begin = 0;
		uint8_t *reply;
		size_t n;
		size_t head;

		take_layers(&f, extended[i].layers);
		head = (size_t)f.packet.ip_offset + 40;
		reply = copy_exact(f.bytes, f.n);
		n = lb_icmp_echo_reply(reply, f.n, &f.packet, &begin);
		EXPECT(begin == left_out && n == f.n - left_out, "%s: %zu bytes from %zu on",
			extended[i].what, n, begin);
		EXPECT(memcmp(reply + begin, f.bytes + 6, 6) == 0 &&
				memcmp(reply + begin + 12, f.bytes + 12,
					f.packet.ip_offset - 12u) == 0,
			"%s: another Ethernet header", extended[i].what);
		EXPECT(reply[begin + f.packet.ip_offset + 6] == extended[i].next,
			"%s: what follows is %u", extended[i].what,
			reply[begin + f.packet.ip_offset + 6]);
		EXPECT(get16(reply + begin + f.packet.ip_offset + 4) == n - head,
			"%s: another length", extended[i].what);
		if (extended[i].next == 58)
			EXPECT(is_right(reply + begin + f.packet.ip_offset), "%s: checksum",
				extended[i].what);
		free(reply);
		free(f.bytes);
	}
}

/* An options header's bytes after the first two; of one that is not answered, why. */
static const struct {
	const char *what;
	uint8_t options[14];
	bool may;
} skipped[] = {
	{"padding of one byte each", {0}, true},
	{"padding of many", {1, 12}, true},
	{"one that nobody knows, and may be skipped", {0x3e, 12}, true},
	{"two", {0x1e, 4, 1, 2, 3, 4, 0x05, 6}, true},
	{"one of no bytes, and padding", {0x1e, 0, 1, 10}, true},
	{"one that must be known or the packet dropped", {0x40, 12}, false},
	{"or its sender be told", {0x80, 12}, false},
	{"or be told unless it went to a group", {0xc2, 12}, false},
	{"such a one behind others", {0x1e, 4, 1, 2, 3, 4, 0, 0, 0xc2, 4}, false},
	{"as the last byte", {1, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc2}, false},
	{"the last byte is a type", {1, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1e}, false},
	{"one byte past the header's end", {0x1e, 13}, false},
	{"one far past it", {0, 0, 0, 0x1e, 255}, false},
};

static void
test_ipv6_options_are_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * LB_N_ELEMENTS(skipped); i++) {
		const struct pb_layer layers[] = {ETHER(), IPV6(),
			HEADER(i % 2 == 0 ? 0 : 60, 16), ECHO_V6, END};
		struct case_frame f;
		size_t begin;

		take_layers(&f, layers);
		memcpy(f.bytes + 14 + 40 + 2, skipped[i / 2].options, 14);
		EXPECT((lb_icmp_echo_reply(f.bytes, f.n, &f.packet, &begin) != 0) ==
				skipped[i / 2].may,
			"%s", skipped[i / 2].what);
		free(f.bytes);
	}
}

/* The packet's layers behind the given number of tags. */
static void
put_tags(struct pb_layer *out, const struct pb_layer *layers, size_t n_tags)
{
	size_t n = 0;

	out[n++] = (struct pb_layer)ETHER();
	if (n_tags == 2)
		out[n++] = (struct pb_layer)VLAN(.tpid = 0x88a8, .vid = 7);
	if (n_tags > 0)
		out[n++] = (struct pb_layer)VLAN(.vid = 100);
	while (layers->kind != PB_END)
		out[n++] = *layers++;
	out[n] = (struct pb_layer)END;
}

/* What must hold of a reply to f, which n_reply bytes of reply are. */
static void
check_reply(const struct case_frame *f, const uint8_t *reply, size_t n_reply)
{
	const size_t ip = f->packet.ip_offset;
	const bool is_v6 = f->packet.is_v6;
	const size_t l4 = f->packet.l4_offset;
	const size_t n_addr = is_v6 ? 16 : 4;
	const size_t src = ip + (is_v6 ? 8 : 12);

	assert_int_equal(n_reply, ip + f->packet.ip_bytes);
	assert_memory_equal(reply, f->bytes + 6, 6);
	assert_memory_equal(reply + 6, f->bytes, 6);
	assert_memory_equal(reply + 12, f->bytes + 12, ip - 12);
	assert_memory_equal(reply + src, f->bytes + src + n_addr, n_addr);
	assert_memory_equal(reply + src + n_addr, f->bytes + src, n_addr);
	assert_int_equal(reply[ip + (is_v6 ? 7 : 8)], 64);
	assert_int_equal(reply[l4], is_v6 ? 129 : 0);
	assert_memory_equal(reply + l4 + 4, f->bytes + l4 + 4, n_reply - l4 - 4);
	assert_true(is_right(reply + ip));
	/* Of the two zeros the one that a sum from the beginning gives. */
	assert_int_equal(get16(reply + l4 + 2), csum_of(reply + ip));
}

static void
test_echo_of_every_length_is_answered(void **state)
{
	(void)state;
	for (int i = 0; i < 6 * 1501; i++) {
		const bool is_v6 = i % 2 != 0;
		const struct pb_layer v4[] = {IPV4(.ttl = 1), ICMP(.type = 8), PAYLOAD(i / 6),
			PADDING(i % 7), END};
		const struct pb_layer v6[] = {IPV6(.ttl = 255), ICMPV6(.type = 128),
			PAYLOAD(i / 6), PADDING(i % 7), END};
		struct pb_layer layers[PB_LAYERS_MAX + 1];
		struct case_frame f;
		uint8_t *reply;
		size_t begin;
		size_t n;

		put_tags(layers, is_v6 ? v6 : v4, (size_t)(i / 2 % 3));
		take_layers(&f, layers);
		reply = copy_exact(f.bytes, f.n);
		n = lb_icmp_echo_reply(reply, f.n, &f.packet, &begin);
		check_reply(&f, reply, n);
		free(reply);
		free(f.bytes);
	}
}

/* Each checksum there is, under messages at the edges of a carry. */
static void
test_a_wrong_checksum_stays_wrong(void **state)
{
	static const uint8_t messages[][8] = {
		{0}, /* code and all: a reply of nothing but zeros */
		{0, 0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		{0, 0, 0, 0, 0xf8, 0x00, 0, 0},
		{0, 0, 0, 0, 0xf7, 0xff, 0, 0},
		{0, 0, 0, 0, 0xf7, 0xfe, 0, 1},
		{0, 0xff, 0, 0, 0xf7, 0x00, 0, 0},
		{0, 1, 0, 0, 0x12, 0x34, 0x56, 0x78},
	};

	(void)state;
	for (size_t i = 0; i < 2 * LB_N_ELEMENTS(messages); i++) {
		const bool is_v6 = i % 2 != 0;
		const struct pb_layer v4[] = {ETHER(), IPV4(), ICMP(.type = 8), END};
		const struct pb_layer v6[] = {ETHER(), IPV6(), ICMPV6(.type = 128), END};
		struct case_frame f;
		unsigned int n_right = 0;

		take_layers(&f, is_v6 ? v6 : v4);
		memcpy(f.bytes + f.packet.l4_offset, messages[i / 2], 8);
		f.bytes[f.packet.l4_offset] = is_v6 ? 128 : 8;
		for (unsigned int csum = 0; csum <= 0xffff; csum++) {
			uint8_t *reply;
			size_t begin;
			bool was_right;

			f.bytes[f.packet.l4_offset + 2] = (uint8_t)(csum >> 8);
			f.bytes[f.packet.l4_offset + 3] = (uint8_t)csum;
			was_right = is_l4_right(f.bytes + 14);
			reply = copy_exact(f.bytes, f.n);
			assert_int_equal(lb_icmp_echo_reply(reply, f.n, &f.packet, &begin),
				f.n);
			EXPECT(is_l4_right(reply + 14) == was_right,
				"message %zu, checksum %04x", i, csum);
			n_right += was_right;
			free(reply);
		}
		assert_in_range(n_right, 1, 2); /* 0 and 0xffff are one number */
		free(f.bytes);
	}
}

/* Each identifier, so that each checksum there is comes by, and all carries with it. */
static void
test_a_right_checksum_stays_right(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2 * 0x10000; i++) {
		const bool is_v6 = i % 2 != 0;
		const struct pb_layer v4[] = {ETHER(), IPV4(), ICMP(.type = 8), END};
		const struct pb_layer v6[] = {ETHER(), IPV6(), ICMPV6(.type = 128), END};
		struct case_frame f;
		uint8_t *icmp;
		uint8_t *reply;
		size_t begin;
		uint16_t csum;

		take_layers(&f, is_v6 ? v6 : v4);
		icmp = f.bytes + f.packet.l4_offset;
		icmp[4] = (uint8_t)(i >> 9);
		icmp[5] = (uint8_t)(i >> 1);
		csum = csum_of(f.bytes + 14);
		icmp[2] = (uint8_t)(csum >> 8);
		icmp[3] = (uint8_t)csum;
		reply = copy_exact(f.bytes, f.n);
		check_reply(&f, reply, lb_icmp_echo_reply(reply, f.n, &f.packet, &begin));
		free(reply);
		free(f.bytes);
	}
}

#define LARGE PAYLOAD(1460)

/* Each is sent to a service, of more than the MTU, with DF. */
static const struct {
	const char *what;
	struct pb_layer layers[10];
	bool may;
	uint8_t dst; /* first byte of the MAC addresses, 0 for the usual */
	uint8_t src;
} errors[] = {
	{"TCP", {ETHER(), IPV4(.fragment = 0x4000), TCP(), LARGE, END}, true, 0, 0},
	{"UDP over IPv6", {ETHER(), IPV6(), UDP(), LARGE, END}, true, 0, 0},
	{"SCTP", {ETHER(), IPV4(.fragment = 0x4000, .proto = 132), LARGE, END}, true, 0, 0},
	{"a tunnel", {ETHER(), IPV4(.fragment = 0x4000, .proto = 47), LARGE, END}, true, 0, 0},
	{"a first fragment", {ETHER(), IPV4(.fragment = 0x6000), TCP(), LARGE, END}, true, 0,
		0},
	{"a later fragment", {ETHER(), IPV4(.fragment = 0x4001, .proto = 17), LARGE, END},
		false, 0, 0},
	{"a later fragment of SCTP",
		{ETHER(), IPV4(.fragment = 0x4001, .proto = 132), LARGE, END}, false, 0, 0},
	{"a later fragment of an echo that looks like one",
		{ETHER(), IPV4(.fragment = 0x4001), ICMP(.type = 8), LARGE, END}, false, 0, 0},
	{"an IPv6 first fragment",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 1), UDP(), PAYLOAD(1456),
			END},
		true, 0, 0},
	{"an IPv6 later fragment",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 8), UDP(), LARGE, END},
		false, 0, 0},
	{"an IPv6 later fragment of SCTP",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 8, .proto = 132), LARGE,
			END},
		false, 0, 0},
	{"an IPv6 later fragment of an echo that looks like one",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 8), ICMPV6(.type = 128),
			LARGE, END},
		false, 0, 0},
	{"segments left",
		{ETHER(), IPV6(), EXTENSION(.type = 43, .segments_left = 1), UDP(), LARGE, END},
		false, 0, 0},
	{"an echo request", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 8), LARGE, END},
		true, 0, 0},
	{"an echo reply", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 0), LARGE, END},
		true, 0, 0},
	{"an address mask reply",
		{ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 18), LARGE, END}, true, 0, 0},
	{"ICMP 19, reserved", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 19), LARGE, END},
		false, 0, 0},
	{"ICMP 1, reserved", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 1), LARGE, END},
		false, 0, 0},
	{"unreachable that quotes nothing of ours",
		{ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 3), LARGE, END}, false, 0, 0},
	{"unreachable about a flow",
		{ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 3), IPV4(FROM_SERVICE_V4),
			UDP(FROM_SERVICE_L4), LARGE, END},
		false, 0, 0},
	{"source quench", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 4), LARGE, END},
		false, 0, 0},
	{"redirect", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 5), LARGE, END}, false, 0,
		0},
	{"time exceeded", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 11), LARGE, END},
		false, 0, 0},
	{"parameter problem", {ETHER(), IPV4(.fragment = 0x4000), ICMP(.type = 12), LARGE, END},
		false, 0, 0},
	{"ICMPv6 echo", {ETHER(), IPV6(), ICMPV6(.type = 128), LARGE, END}, true, 0, 0},
	{"ICMPv6 127, an error that nobody knows",
		{ETHER(), IPV6(), ICMPV6(.type = 127), LARGE, END}, false, 0, 0},
	{"ICMPv6 too big", {ETHER(), IPV6(), ICMPV6(.type = 2), LARGE, END}, false, 0, 0},
	{"ICMPv6 redirect", {ETHER(), IPV6(), ICMPV6(.type = 137), LARGE, END}, false, 0, 0},
	{"to a group's MAC address", {ETHER(), IPV6(), UDP(), LARGE, END}, false, 0x33, 0},
	{"from a group's MAC address", {ETHER(), IPV6(), UDP(), LARGE, END}, false, 0, 0x33},
	{"to a group", {ETHER(), IPV6(.dst = "ff0e::1"), UDP(), LARGE, END}, false, 0, 0},
	{"to everybody",
		{ETHER(), IPV4(.fragment = 0x4000, .dst = "255.255.255.255"), UDP(), LARGE,
			END},
		false, 0, 0},
	{"from nobody", {ETHER(), IPV6(.src = "::"), UDP(), LARGE, END}, false, 0, 0},
	{"from everybody",
		{ETHER(), IPV4(.fragment = 0x4000, .src = "255.255.255.255"), UDP(), LARGE,
			END},
		false, 0, 0},
	{"from itself", {ETHER(), IPV6(.src = PB_SERVICE_V6), UDP(), LARGE, END}, false, 0, 0},
};

static void
test_errors_are_sent_about_what_may_have_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(errors); i++) {
		uint8_t bytes[PB_FRAME_MAX];
		const size_t n = pb_build(errors[i].layers, bytes);
		struct lb_icmp_too_big error;
		struct case_frame f;

		if (errors[i].dst != 0)
			bytes[0] = errors[i].dst;
		if (errors[i].src != 0)
			bytes[6] = errors[i].src;
		take_frame(&f, bytes, n, n);
		EXPECT(f.is_parsed, "%s", errors[i].what);
		EXPECT(lb_icmp_may_answer(f.bytes, n, &f.packet) == errors[i].may, "%s",
			errors[i].what);
		EXPECT(lb_icmp_too_big_size(f.bytes, n, &f.packet, 1400, &error) ==
				errors[i].may,
			"%s: too big", errors[i].what);
		free(f.bytes);
	}
}

static void
test_nothing_is_answered_that_a_capture_cut_before_its_type(void **state)
{
	const struct pb_layer layers[] = {ETHER(), IPV6(), ICMPV6(.type = 128), LARGE, END};
	uint8_t bytes[PB_FRAME_MAX];
	const size_t wire_bytes = pb_build(layers, bytes);

	(void)state;
	for (size_t n = 54; n <= wire_bytes; n++) {
		struct lb_icmp_too_big error;
		struct case_frame f;

		take_frame(&f, bytes, n, wire_bytes);
		assert_true(f.is_parsed);
		EXPECT(lb_icmp_may_answer(f.bytes, n, &f.packet) == (n >= 62), "%zu bytes", n);
		/* Whose quote is there can be answered, although not all of it is. */
		EXPECT(lb_icmp_too_big_size(f.bytes, n, &f.packet, 1400, &error) ==
				(n >= 14 + 1232),
			"%zu bytes", n);
		free(f.bytes);
	}
}

static const struct {
	const char *what;
	struct pb_layer layers[5];
	uint32_t mtu;
	uint32_t want; /* MTU told; 0 where there is to be no error */
} mtus[] = {
	{"one byte too many", {ETHER(), IPV4(.fragment = 0x4000), PAYLOAD(1481), END}, 1500,
		1500},
	{"just fits", {ETHER(), IPV4(.fragment = 0x4000), PAYLOAD(1480), END}, 1500, 0},
	{"without DF it is fragmented", {ETHER(), IPV4(), PAYLOAD(1481), END}, 1500, 0},
	{"IPv6, one byte too many", {ETHER(), IPV6(), PAYLOAD(1391), END}, 1430, 1430},
	{"IPv6, just fits", {ETHER(), IPV6(), PAYLOAD(1390), END}, 1430, 0},
	{"IPv4 hears no less than 68", {ETHER(), IPV4(.fragment = 0x4000), PAYLOAD(49), END}, 0,
		68},
	{"IPv4 of 68 has to pass", {ETHER(), IPV4(.fragment = 0x4000), PAYLOAD(48), END}, 60,
		0},
	{"IPv6 hears no less than 1280", {ETHER(), IPV6(), PAYLOAD(1241), END}, 1279, 1280},
	{"IPv6 of 1280 has to pass", {ETHER(), IPV6(), PAYLOAD(1240), END}, 1200, 0},
};

static void
test_each_mtu_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(mtus); i++) {
		struct lb_icmp_too_big error = {0};
		struct case_frame f;

		take_layers(&f, mtus[i].layers);
		EXPECT(lb_icmp_too_big_size(f.bytes, f.n, &f.packet, mtus[i].mtu, &error) ==
				(mtus[i].want != 0),
			"%s", mtus[i].what);
		EXPECT(error.mtu == mtus[i].want, "%s: %u, want %u", mtus[i].what, error.mtu,
			mtus[i].want);
		free(f.bytes);
	}
}

static void
test_an_mtu_above_16_bits_is_told_as_65535(void **state)
{
	const size_t n = 14 + 40 + 65535;
	const struct pb_layer layers[] = {ETHER(), IPV6(), UDP(), END};
	uint8_t *bytes = calloc(1, n);
	struct lb_icmp_too_big error;
	struct lb_packet packet;

	(void)state;
	assert_non_null(bytes);
	(void)pb_build(layers, bytes);
	bytes[18] = 0xff;
	bytes[19] = 0xff;
	assert_int_equal(lb_packet_parse(bytes, n, n, &packet), LB_FORWARD);
	assert_true(lb_icmp_too_big_size(bytes, n, &packet, 65570, &error));
	assert_int_equal(error.mtu, 65535);
	free(bytes);
}

/* The frame of the error about f, at exact length; NULL where there is none. */
static uint8_t *
too_big_of(const struct case_frame *f, uint32_t mtu, struct lb_icmp_too_big *error)
{
	uint8_t *frame;
	size_t n;

	if (!lb_icmp_too_big_size(f->bytes, f->n, &f->packet, mtu, error))
		return NULL;
	n = error->frame_bytes - (size_t)error->prepend_bytes;
	assert_true(n <= f->n);
	frame = malloc(error->frame_bytes);
	assert_non_null(frame);
	memset(frame, 0xee, error->prepend_bytes);
	memcpy(frame + error->prepend_bytes, f->bytes, n);
	lb_icmp_too_big_write(frame, &f->packet, error, &f->packet.dst);
	return frame;
}

#define V4_ADDRS   198, 51, 100, 10, 203, 0, 113, 7
#define SERVICE_V6 0x20, 0x01, 0x0d, 0xb8, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10
#define CLIENT_V6  0x20, 0x01, 0x0d, 0xb8, 0, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7

static const struct {
	const char *what;
	struct pb_layer layers[5];
	uint32_t mtu;
	uint8_t headers[48];
	size_t header_bytes;
	size_t n; /* IP bytes of the error */
} too_big[] = {
	{"IPv4: 548 bytes are quoted",
		{ETHER(), IPV4(.fragment = 0x4000), UDP(), PAYLOAD(1472), END}, 1480,
		{0x45, 0xc0, 0x02, 0x40, 0, 0, 0x40, 0, 64, 1, 0xd1, 0xb7, V4_ADDRS, 3, 4, 0xa8,
			0x65, 0, 0, 0x05, 0xc8},
		28, 576},
	{"IPv4: all 101 bytes are quoted",
		{ETHER(), IPV4(.fragment = 0x4000), UDP(), PAYLOAD(73), END}, 100,
		{0x45, 0xc0, 0x00, 0x81, 0, 0, 0x40, 0, 64, 1, 0xd3, 0x76, V4_ADDRS, 3, 4, 0x63,
			0x40, 0, 0, 0, 0x64},
		28, 129},
	{"IPv6: 1232 bytes are quoted", {ETHER(), IPV6(), TCP(), PAYLOAD(1430), END}, 1430,
		{0x60, 0, 0, 0, 0x04, 0xd8, 58, 64, SERVICE_V6, CLIENT_V6, 2, 0, 0xe0, 0xd7, 0,
			0, 0x05, 0x96},
		48, 1280},
};

static void
test_each_error_is_as_another_program_writes_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(too_big); i++) {
		struct lb_icmp_too_big error;
		struct case_frame f;
		uint8_t *frame;

		take_layers(&f, too_big[i].layers);
		frame = too_big_of(&f, too_big[i].mtu, &error);
		EXPECT(frame != NULL, "%s", too_big[i].what);
		EXPECT(error.frame_bytes == 14 + too_big[i].n, "%s: %u bytes", too_big[i].what,
			error.frame_bytes);
		for (size_t k = 0; k < too_big[i].header_bytes; k++)
			EXPECT(frame[14 + k] == too_big[i].headers[k],
				"%s: byte %zu is %02x, want %02x", too_big[i].what, k,
				frame[14 + k], too_big[i].headers[k]);
		free(frame);
		free(f.bytes);
	}
}

static void
check_too_big(const struct case_frame *f, const struct lb_icmp_too_big *error,
	const uint8_t *frame)
{
	const size_t ip = f->packet.ip_offset;
	const size_t limit = f->packet.is_v6 ? 1280 : 576;
	const size_t n = error->frame_bytes - ip;
	const size_t whole = error->prepend_bytes + (size_t)f->packet.ip_bytes;

	assert_int_equal(error->prepend_bytes, f->packet.is_v6 ? 48 : 28);
	assert_int_equal(n, whole < limit ? whole : limit);
	assert_memory_equal(frame, f->bytes + 6, 6);
	assert_memory_equal(frame + 6, f->bytes, 6);
	assert_memory_equal(frame + 12, f->bytes + 12, ip - 12);
	assert_int_equal(f->packet.is_v6 ? get16(frame + ip + 4) + 40u : get16(frame + ip + 2),
		n);
	assert_true(is_right(frame + ip));
	assert_memory_equal(frame + ip + error->prepend_bytes, f->bytes + ip,
		n - error->prepend_bytes);
}

/* IPv4 from 69 bytes, odd and even, tags and padding; IPv6 from 1281. */
static void
test_errors_about_every_length_are_right(void **state)
{
	unsigned int n_errors = 0;

	(void)state;
	for (int i = 0; i < 6 * 1501; i++) {
		const bool is_v6 = i % 2 != 0;
		const struct pb_layer v4[] = {IPV4(.fragment = 0x4000), PAYLOAD(i / 6),
			PADDING(i % 7), END};
		const struct pb_layer v6[] = {IPV6(), UDP(), PAYLOAD(i / 6), PADDING(i % 7),
			END};
		struct pb_layer layers[PB_LAYERS_MAX + 1];
		struct lb_icmp_too_big error;
		struct case_frame f;
		uint8_t *frame;

		put_tags(layers, is_v6 ? v6 : v4, (size_t)(i / 2 % 3));
		take_layers(&f, layers);
		frame = too_big_of(&f, 0, &error);
		assert_int_equal(frame != NULL, f.packet.ip_bytes > (is_v6 ? 1280 : 68));
		if (frame != NULL) {
			check_too_big(&f, &error, frame);
			n_errors++;
		}
		free(frame);
		free(f.bytes);
	}
	/* Payloads from 49 and from 1233 to 1500, each with 0 to 2 tags. */
	assert_int_equal(n_errors, 3 * (1452 + 268));
}

static void
test_an_error_may_come_from_an_address_of_the_balancer(void **state)
{
	static const uint8_t own[4] = {192, 0, 2, 1};
	const struct lb_addr src = lb_addr_from_v4(own);
	const struct pb_layer layers[] = {ETHER(), IPV4(.fragment = 0x4000), PAYLOAD(100), END};
	uint8_t frame[28 + PB_FRAME_MAX];
	const size_t n = pb_build(layers, frame + 28);
	struct lb_icmp_too_big error;
	struct lb_packet packet;

	(void)state;
	assert_int_equal(lb_packet_parse(frame + 28, n, n, &packet), LB_FORWARD);
	assert_true(lb_icmp_too_big_size(frame + 28, n, &packet, 100, &error));
	lb_icmp_too_big_write(frame, &packet, &error, &src);
	assert_memory_equal(frame + 26, own, 4);
	assert_true(is_right(frame + 14));
}

/* Whatever a frame is cut to: nothing past it is read or written, as ASan would see. */
static void
test_every_prefix_is_answered_or_refused(void **state)
{
	const struct pb_layer packets[][8] = {
		{IPV4(.options = 12, .fragment = 0x4000), ICMP(.type = 8), PAYLOAD(90), END},
		{IPV4(.fragment = 0x4000), TCP(), PAYLOAD(90), END},
		{IPV6(), ICMPV6(.type = 128), PAYLOAD(1300), END},
		{IPV6(), EXTENSION(.type = 60), UDP(), PAYLOAD(1300), END},
	};

	(void)state;
	for (size_t i = 0; i < 3 * LB_N_ELEMENTS(packets); i++) {
		struct pb_layer layers[PB_LAYERS_MAX + 1];
		uint8_t bytes[PB_FRAME_MAX];
		size_t wire_bytes;

		put_tags(layers, packets[i / 3], i % 3);
		wire_bytes = pb_build(layers, bytes);
		for (size_t n = 0; n <= wire_bytes; n++) {
			struct lb_icmp_too_big error;
			struct case_frame f;
			uint8_t *frame;
			size_t begin;
			bool is_whole;

			take_frame(&f, bytes, n, wire_bytes);
			if (!f.is_parsed) {
				free(f.bytes);
				continue;
			}
			is_whole = n == wire_bytes;
			frame = too_big_of(&f, 0, &error);
			assert_true(frame != NULL || !is_whole);
			free(frame);
			if ((f.packet.flags & LB_PACKET_ECHO_REQUEST) != 0)
				assert_int_equal(lb_icmp_echo_reply(f.bytes, n, &f.packet,
							 &begin),
					is_whole ? n : 0);
			free(f.bytes);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_builder_makes_right_checksums),
		cmocka_unit_test(test_the_builder_never_makes_udp_without_a_checksum),
		cmocka_unit_test(test_each_request_has_its_reply),
		cmocka_unit_test(test_what_is_refused_is_untouched),
		cmocka_unit_test(test_each_option_is_answered),
		cmocka_unit_test(test_the_longest_options_are_not_read_past),
		cmocka_unit_test(test_fragments_are_answered_each_in_its_place),
		cmocka_unit_test(test_a_fragment_keeps_what_it_is_known_by),
		cmocka_unit_test(test_ipv6_extension_headers_are_left_out),
		cmocka_unit_test(test_ipv6_options_are_judged),
		cmocka_unit_test(test_echo_of_every_length_is_answered),
		cmocka_unit_test(test_a_wrong_checksum_stays_wrong),
		cmocka_unit_test(test_a_right_checksum_stays_right),
		cmocka_unit_test(test_errors_are_sent_about_what_may_have_one),
		cmocka_unit_test(test_nothing_is_answered_that_a_capture_cut_before_its_type),
		cmocka_unit_test(test_each_mtu_is_told),
		cmocka_unit_test(test_an_mtu_above_16_bits_is_told_as_65535),
		cmocka_unit_test(test_each_error_is_as_another_program_writes_it),
		cmocka_unit_test(test_errors_about_every_length_are_right),
		cmocka_unit_test(test_an_error_may_come_from_an_address_of_the_balancer),
		cmocka_unit_test(test_every_prefix_is_answered_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
