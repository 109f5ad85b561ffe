/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_mss.h"
#include "packet_builder.h"
#include "xrand.h"

#define TCP_HEADER_MAX 60u
#define SEGMENT_MAX    256u

enum { SYN = 0x02, RST = 0x04, ACK = 0x10 };

/* Port 51515 to 443; words is the header's length, csum what stands there. */
#define SEGMENT(words, flags, csum)                                                            \
	0xc9, 0x3b, 0x01, 0xbb, 1, 2, 3, 4, 0, 0, 0, 0, (words) << 4, (flags), 0xfa, 0xf0,     \
		(csum) >> 8, (csum)&0xff, 0, 0

/*
 * Sums by another program. They are of the bytes alone, as if the pseudo-header were 0: so is
 * what a change makes of them.
 */
static const struct {
	const char *what;
	uint8_t segment[TCP_HEADER_MAX];
	size_t n;
	uint16_t mss;
	bool is_changed;
	uint8_t want[TCP_HEADER_MAX];
} rows[] = {
	{"a SYN", {SEGMENT(6, SYN, 0xce57), 2, 4, 0x05, 0xb4}, 24, 1440, true,
		{SEGMENT(6, SYN, 0xce6b), 2, 4, 0x05, 0xa0}},
	{"a SYN-ACK", {SEGMENT(6, SYN | ACK, 0xce47), 2, 4, 0x05, 0xb4}, 24, 1440, true,
		{SEGMENT(6, SYN | ACK, 0xce5b), 2, 4, 0x05, 0xa0}},
	{"an MSS of 65535, down to 1", {SEGMENT(6, SYN, 0xd40b), 2, 4, 0xff, 0xff}, 24, 1, true,
		{SEGMENT(6, SYN, 0xd40a), 2, 4, 0, 1}},
	{"a NOP before it: an odd offset",
		{SEGMENT(7, SYN, 0x0d08), 1, 2, 4, 0x05, 0xb4, 0, 0, 0}, 28, 1440, true,
		{SEGMENT(7, SYN, 0x2108), 1, 2, 4, 0x05, 0xa0, 0, 0, 0}},
	{"behind others: SACK permitted, timestamps, window scale",
		{SEGMENT(10, SYN, 0x4fd5), 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 3, 3, 7, 2, 4,
			0x23, 0x28, 0},
		40, 536, true,
		{SEGMENT(10, SYN, 0x5ff6), 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 3, 3, 7, 2, 4,
			0x02, 0x18, 0}},
	{"at the end of the longest header",
		{SEGMENT(15, SYN, 0x2033), 30, 36, [56] = 2, 4, 0x05, 0xb4}, 60, 1440, true,
		{SEGMENT(15, SYN, 0x2047), 30, 36, [56] = 2, 4, 0x05, 0xa0}},
	{"twice, of which one says more",
		{SEGMENT(7, SYN, 0xbb53), 2, 4, 0x01, 0x00, 2, 4, 0x05, 0xb4}, 28, 1440, true,
		{SEGMENT(7, SYN, 0xbb67), 2, 4, 0x01, 0x00, 2, 4, 0x05, 0xa0}},
	{"before one that is malformed",
		{SEGMENT(7, SYN, 0xb657), 2, 4, 0x05, 0xb4, 8, 0, 0, 0}, 28, 1440, true,
		{SEGMENT(7, SYN, 0xb66b), 2, 4, 0x05, 0xa0, 8, 0, 0, 0}},

	{"an MSS that is just as large", {SEGMENT(6, SYN, 0xce6b), 2, 4, 0x05, 0xa0}, 24, 1440,
		false, {0}},
	{"a smaller one", {SEGMENT(6, SYN, 0xd1f3), 2, 4, 0x02, 0x18}, 24, 1440, false, {0}},
	{"no option at all", {SEGMENT(5, SYN, 0xe60f)}, 20, 1440, false, {0}},
	{"other options alone", {SEGMENT(6, SYN, 0xd10c), 1, 1, 4, 2}, 24, 1440, false, {0}},
	{"no SYN", {SEGMENT(6, ACK, 0xce49), 2, 4, 0x05, 0xb4}, 24, 1440, false, {0}},
	{"a reset", {SEGMENT(6, RST, 0xce55), 2, 4, 0x05, 0xb4}, 24, 1440, false, {0}},
	{"nothing to lower it to", {SEGMENT(6, SYN, 0xce57), 2, 4, 0x05, 0xb4}, 24, 0, false,
		{0}},
	{"in the payload", {SEGMENT(5, SYN, 0xde57), 2, 4, 0x05, 0xb4}, 24, 1440, false, {0}},
	{"behind the end of options", {SEGMENT(7, SYN, 0xbe57), 0, 0, 0, 0, 2, 4, 0x05, 0xb4},
		28, 1440, false, {0}},
	{"behind an option without a length",
		{SEGMENT(7, SYN, 0xb657), 8, 0, 2, 4, 0x05, 0xb4, 0, 0}, 28, 1440, false, {0}},
	{"behind an option of one byte",
		{SEGMENT(7, SYN, 0xb656), 8, 1, 2, 4, 0x05, 0xb4, 0, 0}, 28, 1440, false, {0}},
	{"within another option", {SEGMENT(7, SYN, 0xa04f), 30, 8, 2, 4, 0x05, 0xb4, 0, 0}, 28,
		1440, false, {0}},
	{"of three bytes", {SEGMENT(6, SYN, 0xce58), 2, 3, 0x05, 0xb4}, 24, 1440, false, {0}},
	{"of five bytes", {SEGMENT(7, SYN, 0xbe56), 2, 5, 0x05, 0xb4, 0, 0, 0, 0}, 28, 1440,
		false, {0}},
	{"past the header", {SEGMENT(6, SYN, 0x1d08), 1, 2, 4, 0x05, 0xb4}, 25, 1440, false,
		{0}},
	{"its kind alone", {SEGMENT(6, SYN, 0xd00c), 1, 1, 1, 2, 4, 0xff, 0xff}, 27, 1440,
		false, {0}},
	{"a header length of 16", {SEGMENT(4, SYN, 0xee57), 2, 4, 0x05, 0xb4}, 24, 1440, false,
		{0}},
	{"no header length", {SEGMENT(0, SYN, 0x2e58), 2, 4, 0x05, 0xb4}, 24, 1440, false, {0}},
};

static bool
clamp(uint8_t *segment, size_t n, uint16_t mss)
{
	uint8_t *exact = malloc(n == 0 ? 1 : n);
	bool is_changed;

	assert_non_null(exact);
	memcpy(exact, segment, n);
	is_changed = lb_mss_clamp(exact, n, mss);
	memcpy(segment, exact, n);
	free(exact);
	return is_changed;
}

static void
test_each_segment_has_its_mss(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint8_t *want = rows[i].is_changed ? rows[i].want : rows[i].segment;
		uint8_t segment[TCP_HEADER_MAX];
		bool is_changed;

		memcpy(segment, rows[i].segment, sizeof(segment));
		is_changed = clamp(segment, rows[i].n, rows[i].mss);
		EXPECT(is_changed == rows[i].is_changed, "%s: %d", rows[i].what, is_changed);
		for (size_t k = 0; k < sizeof(segment); k++)
			EXPECT(segment[k] == want[k], "%s: byte %zu is %02x, want %02x",
				rows[i].what, k, segment[k], want[k]);
		EXPECT(!rows[i].is_changed || pb_csum(segment, rows[i].n) == 0,
			"%s: the row's own sum is wrong", rows[i].what);
	}
}

static void
test_a_header_cut_short_is_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const size_t n_header = (size_t)(rows[i].segment[12] >> 4) * 4;

		for (size_t n = 0; n < n_header; n++) {
			uint8_t segment[TCP_HEADER_MAX];

			memcpy(segment, rows[i].segment, sizeof(segment));
			EXPECT(!clamp(segment, n, 1), "%s, %zu bytes of it", rows[i].what, n);
			assert_memory_equal(segment, rows[i].segment, sizeof(segment));
		}
	}
}

static const struct {
	const char *what;
	unsigned int mtu;
	unsigned int overhead;
	bool is_v6;
	uint16_t want;
} fits[] = {
	{"IPv4 without a tunnel", 1500, 0, false, 1460},
	{"IPv6 without a tunnel", 1500, 0, true, 1440},
	{"IPv4 in IPv4", 1500, 20, false, 1440},
	{"IPv6 in VXLAN over IPv6", 1500, 70, true, 1370},
	{"one byte is left", 61, 20, false, 1},
	{"nothing is left", 60, 20, false, 0},
	{"the MTU is below the headers", 59, 20, false, 0},
	{"the MTU is below the overhead", 19, 20, true, 0},
	{"the largest", 65535 + 60, 0, true, 65535},
	{"beyond what the option can say", 65536 + 60, 0, true, 65535},
};

static void
test_each_mtu_has_its_mss(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(fits); i++) {
		const uint16_t mss = lb_mss_of(fits[i].mtu, fits[i].overhead, fits[i].is_v6);

		EXPECT(mss == fits[i].want, "%s: %u", fits[i].what, mss);
	}
}

/* A SYN with n bytes, the option behind n_nops others. Its checksum is 0. */
static void
random_syn(uint8_t *segment, size_t n, size_t n_nops, uint16_t mss, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++)
		segment[i] = (uint8_t)xrand(seed);
	segment[12] = 0xf0;
	segment[13] |= SYN;
	segment[16] = 0;
	segment[17] = 0;
	memset(segment + 20, 1, 40);
	segment[20 + n_nops] = 2;
	segment[20 + n_nops + 1] = 4;
	segment[20 + n_nops + 2] = (uint8_t)(mss >> 8);
	segment[20 + n_nops + 3] = (uint8_t)mss;
}

/* What a receiver reckons: 0 where the checksum is right. */
static uint16_t
verify(const uint8_t *pseudo, const uint8_t *segment, size_t n)
{
	uint8_t bytes[12 + SEGMENT_MAX];

	memcpy(bytes, pseudo, 12);
	memcpy(bytes + 12, segment, n);
	return pb_csum(bytes, 12 + n);
}

/* At every offset, of right checksums, of 0 in both its forms, and of wrong ones. */
static void
test_the_checksum_is_as_right_as_before(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		const size_t n = TCP_HEADER_MAX + xrand_below(&seed, SEGMENT_MAX - 59);
		const size_t n_nops = xrand_below(&seed, 37);
		const uint16_t mss = (uint16_t)(2 + xrand_below(&seed, 0xfffe));
		const uint16_t clamped = (uint16_t)(1 + xrand_below(&seed, mss - 1u));
		const uint16_t error = i % 2 == 0 ? 0 : (uint16_t)xrand(&seed);
		uint8_t pseudo[12];
		uint8_t segment[SEGMENT_MAX];
		uint16_t before;
		uint16_t sum;

		for (size_t k = 0; k < sizeof(pseudo); k++)
			pseudo[k] = (uint8_t)xrand(&seed);
		random_syn(segment, n, n_nops, mss, &seed);
		sum = (uint16_t)(verify(pseudo, segment, n) + error);
		segment[16] = (uint8_t)(sum >> 8);
		segment[17] = (uint8_t)sum;
		before = verify(pseudo, segment, n);
		assert_true(error != 0 || before == 0);

		assert_true(clamp(segment, n, clamped));
		EXPECT(verify(pseudo, segment, n) == before, "%04x to %04x at %zu", mss,
			clamped, n_nops);
		assert_int_equal(segment[20 + n_nops + 2] << 8 | segment[20 + n_nops + 3],
			clamped);
	}
}

/* Every checksum there is, with differences at the edges of a carry. */
static void
test_every_checksum_stays_what_it_was(void **state)
{
	static const uint16_t values[] = {1, 2, 0xff, 0x100, 0x7fff, 0x8000, 0xfffe, 0xffff};
	static const uint8_t pseudo[12] = {203, 0, 113, 7, 198, 51, 100, 10, 0, 6, 0, 60};

	(void)state;
	for (uint32_t sum = 0; sum <= UINT16_MAX; sum++) {
		const size_t high = 1 + sum % (LB_N_ELEMENTS(values) - 1);
		const size_t low = sum / 7 % high;
		uint64_t seed = sum;
		uint8_t segment[TCP_HEADER_MAX];
		uint16_t before;

		random_syn(segment, sizeof(segment), sum / 64 % 37, values[high], &seed);
		segment[16] = (uint8_t)(sum >> 8);
		segment[17] = (uint8_t)sum;
		before = verify(pseudo, segment, sizeof(segment));
		assert_true(clamp(segment, sizeof(segment), values[low]));
		EXPECT(verify(pseudo, segment, sizeof(segment)) == before, "%04x: %04x to %04x",
			sum, values[high], values[low]);
	}
}

static bool
is_checksum_or_option(size_t at, size_t n_header)
{
	return at == 16 || at == 17 || (at >= 20 && at < n_header);
}

static void
test_any_bytes_are_read_within_bounds(void **state)
{
	/* Kinds and lengths that come to more than one option. */
	static const uint8_t often[] = {1, 1, 1, 2, 2, 2, 4, 4, 4, 4, 3, 5, 8, 0, 30, 255};
	unsigned int n_changed = 0;
	uint64_t seed = 2;

	(void)state;
	for (unsigned int i = 0; i < 300000; i++) {
		const size_t n = xrand_below(&seed, 80);
		uint8_t before[80];
		uint8_t segment[80];

		for (size_t k = 0; k < n; k++)
			before[k] = (uint8_t)xrand(&seed);
		for (size_t k = 20; k < n; k++)
			before[k] = often[before[k] % sizeof(often)];
		/* A SYN in most cases, of a length that can be. */
		if (n > 20 && i % 4 != 0) {
			before[12] |= 0x50;
			before[13] |= SYN;
		}
		memcpy(segment, before, n);
		if (!clamp(segment, n, 1)) {
			assert_memory_equal(segment, before, n);
			continue;
		}
		n_changed++;
		for (size_t k = 0; k < n; k++)
			EXPECT(segment[k] == before[k] ||
					is_checksum_or_option(k, (size_t)(before[12] >> 4) * 4),
				"byte %zu", k);
		EXPECT(pb_csum(segment, n) == pb_csum(before, n), "another sum");
		EXPECT(!clamp(segment, n, 1), "once was not enough");
	}
	EXPECT(n_changed > 5000, "only %u changed", n_changed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_segment_has_its_mss),
		cmocka_unit_test(test_a_header_cut_short_is_left_alone),
		cmocka_unit_test(test_each_mtu_has_its_mss),
		cmocka_unit_test(test_the_checksum_is_as_right_as_before),
		cmocka_unit_test(test_every_checksum_stays_what_it_was),
		cmocka_unit_test(test_any_bytes_are_read_within_bounds),
	};

	return cmocka_run_group_tests_name("mss", tests, NULL, NULL);
}
