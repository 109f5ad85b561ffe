/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_neighbor.h"
#include "packet_builder.h"
#include "xrand.h"

#define FRAME_MAX 128u

/* Offsets without tags. */
enum {
	ETHER = 14,
	ICMP = ETHER + 40,
	OPTIONS = ICMP + 24,
	ND_BYTES = OPTIONS + 8,
};

#define OWN   0x02, 0, 0, 0, 0, 0x01
#define ASKER 0x02, 0, 0, 0, 0, 0x07
#define OTHER 0x02, 0, 0, 0, 0, 0x09

static const struct lb_mac own = {{OWN}};

/* 192.0.2.7 asks for 192.0.2.50. */
static const uint8_t arp_request[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ASKER, 0x08, 0x06, 0,
	1, 0x08, 0x00, 6, 4, 0, 1, ASKER, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 192, 0, 2, 50};
static const uint8_t arp_reply[] = {ASKER, OWN, 0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 2, OWN,
	192, 0, 2, 50, ASKER, 192, 0, 2, 7};
static const uint8_t arp_probe[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ASKER, 0x08, 0x06, 0, 1,
	0x08, 0x00, 6, 4, 0, 1, ASKER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 50};
static const uint8_t arp_probe_reply[] = {ASKER, OWN, 0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 2,
	OWN, 192, 0, 2, 50, ASKER, 0, 0, 0, 0};

/* Checksums are another program's. */
#define TARGET_V6     0x20, 0x01, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50
#define ASKER_V6      0x20, 0x01, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7
#define SOLICITED_V6  0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0x50
#define ALL_NODES_V6  0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
#define NOBODY_V6     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define SOLICITED_MAC 0x33, 0x33, 0xff, 0, 0, 0x50
#define ALL_NODES_MAC 0x33, 0x33, 0, 0, 0, 1
#define IPV6_ND(n)    0x60, 0, 0, 0, 0, (n), 58, 255

static const uint8_t nd_request[] = {SOLICITED_MAC, ASKER, 0x86, 0xdd, IPV6_ND(32), ASKER_V6,
	SOLICITED_V6, 135, 0, 0x1b, 0x7b, 0, 0, 0, 0, TARGET_V6, 1, 1, ASKER};
static const uint8_t nd_reply[] = {ASKER, OWN, 0x86, 0xdd, IPV6_ND(32), TARGET_V6, ASKER_V6,
	136, 0, 0x89, 0xca, 0x60, 0, 0, 0, TARGET_V6, 2, 1, OWN};
/* Is it still there: no option, and the answer is longer than the question. */
static const uint8_t nd_unicast[] = {OWN, ASKER, 0x86, 0xdd, IPV6_ND(24), ASKER_V6, TARGET_V6,
	135, 0, 0xee, 0xd4, 0, 0, 0, 0, TARGET_V6};
static const uint8_t nd_probe[] = {SOLICITED_MAC, ASKER, 0x86, 0xdd, IPV6_ND(24), NOBODY_V6,
	SOLICITED_V6, 135, 0, 0x4c, 0x4d, 0, 0, 0, 0, TARGET_V6};
static const uint8_t nd_probe_reply[] = {ALL_NODES_MAC, OWN, 0x86, 0xdd, IPV6_ND(32), TARGET_V6,
	ALL_NODES_V6, 136, 0, 0xf8, 0x88, 0x20, 0, 0, 0, TARGET_V6, 2, 1, OWN};
/* Another source option than the frame's source: the option's is meant. */
static const uint8_t nd_option[] = {SOLICITED_MAC, OTHER, 0x86, 0xdd, IPV6_ND(32), ASKER_V6,
	SOLICITED_V6, 135, 0, 0x1b, 0x7b, 0, 0, 0, 0, TARGET_V6, 1, 1, ASKER};

#define FRAME(a) (a), sizeof(a)

static const struct {
	const char *what;
	const uint8_t *frame;
	size_t n;
	const uint8_t *answer;
	size_t n_answer;
} answers[] = {
	{"an ARP request", FRAME(arp_request), FRAME(arp_reply)},
	{"an ARP probe, before its sender has an address", FRAME(arp_probe),
		FRAME(arp_probe_reply)},
	{"a solicitation", FRAME(nd_request), FRAME(nd_reply)},
	{"a solicitation of us alone, without an option", FRAME(nd_unicast), FRAME(nd_reply)},
	{"a solicitation with another MAC address in its option", FRAME(nd_option),
		FRAME(nd_reply)},
	{"a probe for a duplicate", FRAME(nd_probe), FRAME(nd_probe_reply)},
};

/* What one changed run of bytes makes of a frame that asks. */
static const struct {
	const char *what;
	const uint8_t *frame;
	size_t n;
	size_t at;
	uint8_t bytes[16];
	size_t n_bytes;
	bool is_sum_kept; /* as it was: of a solicitation it is put right otherwise */
} refused[] = {
	{"another hardware", FRAME(arp_request), 15, {6}, 1, false},
	{"another protocol", FRAME(arp_request), 16, {0x86, 0xdd}, 2, false},
	{"longer MAC addresses", FRAME(arp_request), 18, {8}, 1, false},
	{"longer addresses", FRAME(arp_request), 19, {16}, 1, false},
	{"an ARP reply", FRAME(arp_request), 21, {2}, 1, false},
	{"an operation above 255", FRAME(arp_request), 20, {1}, 1, false},
	{"an announcement", FRAME(arp_request), 28, {192, 0, 2, 50}, 4, false},
	{"a group's MAC address as ARP's sender", FRAME(arp_request), 22, {3}, 1, false},
	{"our own MAC address as ARP's sender", FRAME(arp_request), 22, {OWN}, 6, false},
	{"a group's MAC address as the frame's source", FRAME(arp_request), 6, {3}, 1, false},
	{"our own question", FRAME(arp_request), 6, {OWN}, 6, false},
	{"what another host is asked", FRAME(arp_request), 0, {OTHER}, 6, false},
	{"another EtherType", FRAME(arp_request), 13, {0x35}, 1, false},
	{"IPv4 in the EtherType", FRAME(nd_request), 12, {0x08, 0x00}, 2, false},
	{"ARP in the EtherType", FRAME(nd_request), 12, {0x08, 0x06}, 2, false},
	{"IP version 4", FRAME(nd_request), 14, {0x40}, 1, false},
	{"another next header", FRAME(nd_request), 20, {17}, 1, true},
	{"a hop limit of 254", FRAME(nd_request), 21, {254}, 1, false},
	{"a payload longer than the frame", FRAME(nd_request), 19, {40}, 1, true},
	{"a payload of 16 bytes", FRAME(nd_request), 19, {16}, 1, false},
	{"a payload that ends within an option", FRAME(nd_request), 19, {28}, 1, false},
	{"an advertisement", FRAME(nd_request), ICMP, {136}, 1, false},
	{"another code", FRAME(nd_request), ICMP + 1, {1}, 1, false},
	{"a wrong checksum", FRAME(nd_request), ICMP + 2, {0x1b, 0x7c}, 2, true},
	{"no checksum", FRAME(nd_request), ICMP + 2, {0, 0}, 2, true},
	{"a multicast target", FRAME(nd_request), ICMP + 8, {0xff}, 1, false},
	{"an IPv4-mapped target", FRAME(nd_request), ICMP + 8,
		{[10] = 0xff, 0xff, 192, 0, 2, 50}, 16, false},
	{"an IPv4-mapped source", FRAME(nd_request), ETHER + 8,
		{[10] = 0xff, 0xff, 192, 0, 2, 7}, 16, false},
	{"a multicast source", FRAME(nd_request), ETHER + 8, {0xff}, 1, false},
	{"an option of no length", FRAME(nd_request), OPTIONS + 1, {0}, 1, false},
	{"an option longer than the rest", FRAME(nd_request), OPTIONS + 1, {2}, 1, false},
	{"a group's MAC address in the option", FRAME(nd_request), OPTIONS + 2, {3}, 1, false},
	{"a probe with a source option", FRAME(nd_request), ETHER + 8, {0}, 16, false},
	{"a probe to one host", FRAME(nd_probe), ETHER + 24, {TARGET_V6}, 16, false},
	{"a probe to all nodes", FRAME(nd_probe), ETHER + 24, {ALL_NODES_V6}, 16, false},
	{"our own solicitation", FRAME(nd_request), 6, {OWN}, 6, false},
	{"a solicitation of another host", FRAME(nd_unicast), 0, {OTHER}, 6, false},
};

/* A copy at exact length. */
static uint8_t *
copy_exact(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n == 0 ? 1 : n);

	assert_non_null(copy);
	if (n > 0)
		memcpy(copy, bytes, n);
	return copy;
}

static bool
asks(const uint8_t *bytes, size_t n, struct lb_neighbor_ask *ask)
{
	uint8_t *frame = copy_exact(bytes, n);
	const bool does = lb_neighbor_asks(frame, n, &own, ask);

	free(frame);
	return does;
}

/* Put the ICMPv6 checksum of a solicitation without tags right. */
static void
fix_sum(uint8_t *frame)
{
	uint8_t summed[40 + 64] = {0};
	const size_t n = frame[ETHER + 5];
	uint16_t sum;

	assert_in_range(n, 4, 64);
	memcpy(summed, frame + ETHER + 8, 32);
	summed[35] = (uint8_t)n;
	summed[39] = 58;
	frame[ICMP + 2] = 0;
	frame[ICMP + 3] = 0;
	memcpy(summed + 40, frame + ICMP, n);
	sum = pb_csum(summed, 40 + n);
	frame[ICMP + 2] = (uint8_t)(sum >> 8);
	frame[ICMP + 3] = (uint8_t)sum;
}

/* The answer, at exact length. */
static uint8_t *
answer_of(const uint8_t *bytes, size_t n, const struct lb_neighbor_ask *ask)
{
	uint8_t *frame = malloc(ask->answer_bytes);

	assert_non_null(frame);
	assert_true(ask->answer_bytes <= n + LB_NEIGHBOR_GROWTH_MAX);
	memset(frame, 0xee, ask->answer_bytes);
	memcpy(frame, bytes, n < ask->answer_bytes ? n : ask->answer_bytes);
	lb_neighbor_answer(ask, &own, frame);
	return frame;
}

static void
test_each_question_has_its_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(answers); i++) {
		struct lb_neighbor_ask ask;
		uint8_t *frame;

		EXPECT(asks(answers[i].frame, answers[i].n, &ask), "%s", answers[i].what);
		EXPECT(ask.answer_bytes == answers[i].n_answer, "%s: %u bytes, want %zu",
			answers[i].what, ask.answer_bytes, answers[i].n_answer);
		frame = answer_of(answers[i].frame, answers[i].n, &ask);
		for (size_t k = 0; k < ask.answer_bytes; k++)
			EXPECT(frame[k] == answers[i].answer[k],
				"%s: byte %zu is %02x, want %02x", answers[i].what, k, frame[k],
				answers[i].answer[k]);
		free(frame);
	}
}

static void
test_the_target_is_told(void **state)
{
	static const struct lb_addr v6 = {{TARGET_V6}};
	const struct lb_addr v4 = lb_addr_from_v4((const uint8_t[4]){192, 0, 2, 50});
	struct lb_neighbor_ask ask;

	(void)state;
	assert_true(asks(FRAME(arp_request), &ask));
	assert_true(lb_addr_equal(&ask.target, &v4));
	assert_true(asks(FRAME(nd_probe), &ask));
	assert_true(lb_addr_equal(&ask.target, &v6));
}

static void
test_what_asks_nothing_is_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(refused); i++) {
		uint8_t frame[FRAME_MAX];
		struct lb_neighbor_ask ask;

		memcpy(frame, refused[i].frame, refused[i].n);
		memcpy(frame + refused[i].at, refused[i].bytes, refused[i].n_bytes);
		if (refused[i].frame[12] == 0x86 && !refused[i].is_sum_kept)
			fix_sum(frame);
		EXPECT(!asks(frame, refused[i].n, &ask), "%s", refused[i].what);
	}
}

static void
test_a_frame_cut_short_asks_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(answers); i++) {
		for (size_t n = 0; n < answers[i].n; n++) {
			struct lb_neighbor_ask ask;

			EXPECT(!asks(answers[i].frame, n, &ask), "%s, %zu bytes of it",
				answers[i].what, n);
		}
	}
}

static void
test_options_cut_short_ask_nothing(void **state)
{
	(void)state;
	for (size_t n = OPTIONS + 1; n < sizeof(nd_request); n++) {
		uint8_t frame[FRAME_MAX];
		struct lb_neighbor_ask ask;

		memcpy(frame, nd_request, n);
		frame[ETHER + 5] = (uint8_t)(n - ICMP);
		fix_sum(frame);
		EXPECT(!asks(frame, n, &ask), "%zu bytes of options", n - OPTIONS);
	}
}

/* Put n tags of an EtherType behind the MAC addresses. Returns the length. */
static size_t
tag(const uint8_t *bytes, size_t n, uint16_t ethertype, unsigned int n_tags, uint8_t *out)
{
	size_t at = 12;

	memcpy(out, bytes, at);
	for (unsigned int i = 0; i < n_tags; i++) {
		const uint8_t one[4] = {(uint8_t)(ethertype >> 8), (uint8_t)ethertype,
			0xa0, /* a priority is the asker's affair, and kept */
			(uint8_t)(i + 1)};

		memcpy(out + at, one, sizeof(one));
		at += sizeof(one);
	}
	memcpy(out + at, bytes + 12, n - 12);
	return at + n - 12;
}

static void
test_tags_are_kept(void **state)
{
	static const uint16_t ethertypes[] = {0x8100, 0x88a8, 0x9100};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(answers) * LB_N_ELEMENTS(ethertypes); i++) {
		const size_t k = i / LB_N_ELEMENTS(ethertypes);
		const uint16_t ethertype = ethertypes[i % LB_N_ELEMENTS(ethertypes)];

		for (unsigned int n_tags = 1; n_tags <= 3; n_tags++) {
			uint8_t bytes[FRAME_MAX];
			uint8_t want[FRAME_MAX];
			const size_t n =
				tag(answers[k].frame, answers[k].n, ethertype, n_tags, bytes);
			const size_t n_want = tag(answers[k].answer, answers[k].n_answer,
				ethertype, n_tags, want);
			struct lb_neighbor_ask ask;
			uint8_t *frame;

			for (size_t cut = 0; cut < n; cut++)
				EXPECT(!asks(bytes, cut, &ask), "%zu bytes", cut);
			EXPECT(asks(bytes, n, &ask) == (n_tags <= 2), "%s, %u tags %04x",
				answers[k].what, n_tags, ethertype);
			if (n_tags > 2)
				continue;
			EXPECT(ask.answer_bytes == n_want, "%s, %u tags", answers[k].what,
				n_tags);
			frame = answer_of(bytes, n, &ask);
			EXPECT(memcmp(frame, want, n_want) == 0, "%s, %u tags %04x",
				answers[k].what, n_tags, ethertype);
			free(frame);
		}
	}
}

/* A wire's shortest frame has 60 bytes; what comes after them asks for no answer as long. */
static void
test_padding_is_kept_as_zeros_and_no_longer_than_a_wire_asks(void **state)
{
	static const uint8_t zeros[60 - sizeof(arp_reply)];

	(void)state;
	for (size_t n = sizeof(arp_request); n < FRAME_MAX; n++) {
		const size_t n_want = n < 60 ? n : 60;
		uint8_t bytes[FRAME_MAX];
		struct lb_neighbor_ask ask;
		uint8_t *frame;

		memset(bytes, 0x55, sizeof(bytes));
		memcpy(bytes, arp_request, sizeof(arp_request));
		assert_true(asks(bytes, n, &ask));
		assert_int_equal(ask.answer_bytes, n_want);
		frame = answer_of(bytes, n, &ask);
		assert_memory_equal(frame, arp_reply, sizeof(arp_reply));
		assert_memory_equal(frame + sizeof(arp_reply), zeros,
			n_want - sizeof(arp_reply));
		free(frame);
	}
}

/* A nonce (RFC 7527), say: other options are passed over, before the source's and after. */
static void
test_other_options_are_passed_over(void **state)
{
	static const uint8_t nonce[] = {14, 1, 1, 2, 3, 4, 5, 6};

	(void)state;
	for (unsigned int is_first = 0; is_first < 2; is_first++) {
		uint8_t bytes[FRAME_MAX];
		struct lb_neighbor_ask ask;
		uint8_t *frame;
		const size_t n = sizeof(nd_option) + sizeof(nonce);

		memcpy(bytes, nd_option, sizeof(nd_option));
		bytes[ETHER + 5] = 40;
		memcpy(bytes + OPTIONS + (is_first != 0 ? 8 : 0), nd_option + OPTIONS, 8);
		memcpy(bytes + OPTIONS + (is_first != 0 ? 0 : 8), nonce, sizeof(nonce));
		fix_sum(bytes);
		assert_true(asks(bytes, n, &ask));
		assert_int_equal(ask.answer_bytes, sizeof(nd_reply));
		frame = answer_of(bytes, n, &ask);
		assert_memory_equal(frame, nd_reply, sizeof(nd_reply));
		free(frame);
	}
}

/* Bytes after a solicitation are no part of it. */
static void
test_what_follows_a_solicitation_is_cut(void **state)
{
	uint8_t bytes[FRAME_MAX] = {0};
	struct lb_neighbor_ask ask;

	(void)state;
	memcpy(bytes, nd_request, sizeof(nd_request));
	assert_true(asks(bytes, sizeof(bytes), &ask));
	assert_int_equal(ask.answer_bytes, ND_BYTES);
}

static void
test_any_bytes_are_read_within_bounds(void **state)
{
	uint64_t seed = 1;
	unsigned int n_asking = 0;

	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		const size_t row = xrand_below(&seed, LB_N_ELEMENTS(answers));
		const size_t n = xrand_below(&seed, FRAME_MAX + 1);
		uint8_t bytes[FRAME_MAX];
		struct lb_neighbor_ask ask;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)xrand(&seed);
		memcpy(bytes, answers[row].frame, answers[row].n);
		for (uint32_t k = xrand_below(&seed, 4); k > 0; k--)
			bytes[xrand_below(&seed, (uint32_t)answers[row].n)] =
				(uint8_t)xrand(&seed);
		if (bytes[12] == 0x86 && bytes[ETHER + 5] >= 4 && bytes[ETHER + 5] <= 64)
			fix_sum(bytes);
		if (!asks(bytes, n, &ask))
			continue;
		n_asking++;
		free(answer_of(bytes, n, &ask));
	}
	EXPECT(n_asking > 10000, "only %u asked", n_asking);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_question_has_its_answer),
		cmocka_unit_test(test_the_target_is_told),
		cmocka_unit_test(test_what_asks_nothing_is_left_alone),
		cmocka_unit_test(test_a_frame_cut_short_asks_nothing),
		cmocka_unit_test(test_options_cut_short_ask_nothing),
		cmocka_unit_test(test_tags_are_kept),
		cmocka_unit_test(test_padding_is_kept_as_zeros_and_no_longer_than_a_wire_asks),
		cmocka_unit_test(test_other_options_are_passed_over),
		cmocka_unit_test(test_what_follows_a_solicitation_is_cut),
		cmocka_unit_test(test_any_bytes_are_read_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
