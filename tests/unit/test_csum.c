/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_csum.h"
#include "lb_csum_short.h"
#include "packet_builder.h"
#include "xrand.h"

static const struct {
	const char *name;
	uint8_t bytes[20];
	size_t n;
	uint16_t want; /* host order */
} rows[] = {
	{"nothing", {0}, 0, 0xffff},
	{"one byte is the high half of a word", {0x12}, 1, 0xedff},
	{"two bytes", {0x12, 0x34}, 2, 0xedcb},
	{"an odd third byte is padded", {0x12, 0x34, 0x56}, 3, 0x97cb},
	{"RFC 1071's example", {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, 8, 0x220d},
	{"a carry comes round", {0xff, 0xff, 0x00, 0x01}, 4, 0xfffe},
	{"all ones", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8, 0x0000},
	{"an IPv4 header with its checksum is 0",
		{0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0,
			0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7},
		20, 0x0000},
	{"the same header without is its checksum",
		{0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0,
			0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7},
		20, 0xb861},
};

static void
test_each_row_has_its_checksum(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint16_t got =
			ntohs(lb_csum_finish(lb_csum_add(0, rows[i].bytes, rows[i].n)));

		EXPECT(got == rows[i].want, "%s: %04x, want %04x", rows[i].name, got,
			rows[i].want);
	}
}

/* At the end of its memory, so that ASan sees the byte after. */
static void
expect_plain_sum(size_t n, size_t offset, uint64_t *seed)
{
	uint8_t *mem = malloc(offset + n + 1);
	uint8_t *exact = malloc(n == 0 ? 1 : n);
	uint16_t want;

	for (size_t i = 0; i < n; i++)
		exact[i] = mem[offset + i] = (uint8_t)xrand(seed);
	want = htons(pb_csum(exact, n));
	assert_int_equal(lb_csum_finish(lb_csum_add(0, exact, n)), want);
	assert_int_equal(lb_csum_finish(lb_csum_add(0, mem + offset, n)), want);
	free(exact);
	free(mem);
}

static void
test_every_length_and_alignment_agrees_with_the_plain_sum(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t n = 0; n < 200; n++)
		for (size_t offset = 0; offset < 8; offset++)
			expect_plain_sum(n, offset, &seed);
	for (size_t n = 200; n < 2000; n++)
		expect_plain_sum(n, n % 16, &seed);
}

/* Two bytes at a time. */
static uint64_t
add_by_pairs(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		const uint8_t pair[2] = {p[i], i + 1 < n ? p[i + 1] : 0};
		uint16_t word;

		memcpy(&word, pair, sizeof(word));
		sum = lb_csum_join(sum, word);
	}
	return sum;
}

/* Exactly what may be read is allocated, and stands at any alignment. */
static void
expect_short_sum(size_t n, size_t offset, uint64_t *seed)
{
	uint8_t *mem = malloc(offset + n);
	const uint64_t before = xrand(seed);
	uint64_t want;

	for (size_t i = 0; i < offset + n; i++)
		mem[i] = (uint8_t)xrand(seed) | (uint8_t) - (xrand_below(seed, 4) == 0);
	want = lb_csum_fold(add_by_pairs(before, mem + offset, n));
	assert_int_equal(lb_csum_fold(lb_csum_add_short(before, mem + offset, n)), want);
	free(mem);
}

static void
test_every_short_sum_is_the_sum(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (size_t n = 1; n <= 2 * LB_CSUM_SHORT_BYTES_MAX; n++) {
		const size_t before = n < LB_CSUM_WORD_BYTES ? LB_CSUM_WORD_BYTES - n : 0;

		for (size_t offset = 0; offset < 16; offset++)
			for (unsigned int round = 0; round < 8; round++)
				expect_short_sum(n, before + offset, &seed);
	}
}

/* With a carry out of every word, of the last too, and out of their sum. */
static void
test_a_short_sum_keeps_its_carries(void **state)
{
	uint8_t ones[LB_CSUM_SHORT_BYTES_MAX];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (size_t n = LB_CSUM_WORD_BYTES; n <= sizeof(ones); n++) {
		const uint16_t want = htons(n % 2 == 0 ? 0xffff : 0xff00);

		assert_int_equal(lb_csum_fold(lb_csum_add_short(0, ones, n)), want);
		assert_int_equal(lb_csum_fold(lb_csum_add_short(UINT64_MAX, ones, n)), want);
	}
}

/* By the processor's flag and without: every carry that there is, and none. */
static void
test_two_words_are_added_as_plainly(void **state)
{
	static const uint64_t edges[] = {0, 1, 2, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX - 1,
		UINT64_MAX};
	const size_t n = LB_N_ELEMENTS(edges);
	uint64_t seed = 4;

	(void)state;
	for (size_t i = 0; i < 100000; i++) {
		const bool is_edge = i < n * n * n;
		const uint64_t sum = is_edge ? edges[i % n] : xrand(&seed);
		const uint64_t words[] = {is_edge ? edges[i / n % n] : xrand(&seed),
			is_edge ? edges[i / n / n] : xrand(&seed)};
		uint8_t bytes[1 + sizeof(words)];
		uint64_t got;
		uint64_t want;

		memcpy(bytes + i % 2, words, sizeof(words));
		got = lb_csum_add_two(sum, bytes + i % 2);
		want = lb_csum_add_two_plainly(sum, bytes + i % 2);
		EXPECT(got == want,
			"%" PRIx64 " + %" PRIx64 " + %" PRIx64 ": %" PRIx64 ", want %" PRIx64,
			sum, words[0], words[1], got, want);
	}
}

static void
test_a_sum_in_two_parts_is_the_sum(void **state)
{
	uint8_t bytes[97];
	uint64_t seed = 2;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)xrand(&seed);
	for (size_t at = 0; at <= sizeof(bytes); at++) {
		const uint64_t head = lb_csum_add(0, bytes, at);
		const uint64_t tail = lb_csum_add(0, bytes + at, sizeof(bytes) - at);
		const uint64_t joined =
			lb_csum_join(head, at % 2 == 0 ? tail : lb_csum_swap(tail));

		assert_int_equal(ntohs(lb_csum_finish(joined)), pb_csum(bytes, sizeof(bytes)));
		if (at % 2 == 0)
			assert_int_equal(lb_csum_finish(lb_csum_add(head, bytes + at,
						 sizeof(bytes) - at)),
				lb_csum_finish(joined));
	}
}

static void
test_a_full_sum_keeps_its_carry(void **state)
{
	static const uint8_t ones[8] = {0, 1, 0, 1, 0, 1, 0, 1};

	(void)state;
	/* 2^64 - 1 is 0 in one's complement: only what is added is left. */
	for (size_t n = 2; n <= sizeof(ones); n += 2)
		assert_int_equal(lb_csum_finish(lb_csum_add(UINT64_MAX, ones, n)),
			htons((uint16_t) ~(n / 2)));
}

/* Words at the edges of a carry, in each place of a 64-bit sum. */
static void
test_every_sum_folds_to_its_checksum(void **state)
{
	static const uint16_t words[] = {0, 1, 2, 0x8000, 0xfffe, 0xffff};
	const size_t n = LB_N_ELEMENTS(words);

	(void)state;
	for (size_t i = 1; i < n * n * n * n; i++) {
		uint64_t sum = 0;
		uint32_t want = 0;

		for (size_t k = 0, rest = i; k < 4; k++, rest /= n) {
			sum = sum << 16 | words[rest % n];
			want += words[rest % n];
		}
		while (want > 0xffff)
			want = (want & 0xffff) + (want >> 16);
		EXPECT(lb_csum_finish(sum) == (uint16_t)~want, "%" PRIx64, sum);
	}
}

static void
test_the_largest_packet_of_ones_does_not_overflow(void **state)
{
	uint8_t *bytes = malloc(65535);

	(void)state;
	memset(bytes, 0xff, 65535);
	assert_int_equal(ntohs(lb_csum_finish(lb_csum_add(0, bytes, 65535))), 0x00ff);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_has_its_checksum),
		cmocka_unit_test(test_every_length_and_alignment_agrees_with_the_plain_sum),
		cmocka_unit_test(test_every_short_sum_is_the_sum),
		cmocka_unit_test(test_a_short_sum_keeps_its_carries),
		cmocka_unit_test(test_two_words_are_added_as_plainly),
		cmocka_unit_test(test_a_sum_in_two_parts_is_the_sum),
		cmocka_unit_test(test_a_full_sum_keeps_its_carry),
		cmocka_unit_test(test_every_sum_folds_to_its_checksum),
		cmocka_unit_test(test_the_largest_packet_of_ones_does_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
