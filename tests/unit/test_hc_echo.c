/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "hc_echo.h"
#include "lb_compiler.h"
#include "lb_csum.h"

static const struct hc_echo asked = {.secret = UINT64_C(0x1122334455667788),
	.id = 4711,
	.begun_ns = UINT64_C(1234567890123)};

#define IPV4_BYTES 20u

/* The reply to a request, as a host makes it, with an IPv4 header of n_words before it. */
static size_t
make_reply(bool is_v4, unsigned int n_words, uint8_t out[static 60 + HC_ECHO_BYTES])
{
	const size_t at = (size_t)n_words * 4;

	memset(out, 0, at);
	if (n_words > 0)
		out[0] = (uint8_t)(0x40 | n_words);
	hc_echo_write(&asked, is_v4, out + at);
	out[at] = is_v4 ? 0 : 129;
	return at + HC_ECHO_BYTES;
}

static void
test_a_request_has_a_right_checksum(void **state)
{
	uint8_t bytes[HC_ECHO_BYTES];

	(void)state;
	hc_echo_write(&asked, true, bytes);
	EXPECT(bytes[0] == 8 && bytes[1] == 0, "an echo request");
	EXPECT(lb_csum_finish(lb_csum_add(0, bytes, sizeof(bytes))) == 0, "its checksum");
	hc_echo_write(&asked, false, bytes);
	EXPECT(bytes[0] == 128 && bytes[1] == 0, "one of ICMPv6");
	EXPECT(bytes[2] == 0 && bytes[3] == 0, "whose checksum is the kernel's");
}

static const struct {
	const char *what;
	bool is_v4;
	bool has_header;
	unsigned int n_words; /* of the header */
	size_t at;            /* byte to change, from the message's begin */
	uint8_t by;           /* to be XORed */
	uint64_t secret_by;
	size_t n_less; /* bytes that are missing at the end */
	bool want;
} rows[] = {
	{"ICMP by a raw socket", true, true, 5, 0, 0, 0, 0, true},
	{"with all options", true, true, 15, 0, 0, 0, 0, true},
	{"by one for echo", true, false, 0, 0, 0, 0, 0, true},
	{"ICMPv6", false, false, 0, 0, 0, 0, 0, true},
	{"one of ICMPv6 is none of ICMP", true, false, 0, 0, 129, 0, 0, false},
	{"a request, our own perhaps", true, false, 0, 0, 8, 0, 0, false},
	{"another code", true, false, 0, 1, 1, 0, 0, false},
	{"another secret", true, false, 0, 8, 1, 0, 0, false},
	{"we have another secret", true, false, 0, 0, 0, 1, 0, false},
	{"a byte is missing", true, true, 5, 0, 0, 0, 1, false},
	{"a byte is missing of ICMPv6", false, false, 0, 0, 0, 0, 1, false},
	{"the header alone", true, true, 5, 0, 0, 0, HC_ECHO_BYTES, false},
	{"not even that", true, true, 5, 0, 0, 0, HC_ECHO_BYTES + 1, false},
	{"a header too short", true, true, 4, 0, 0, 0, 0, false},
	{"nothing", true, false, 0, 0, 0, 0, HC_ECHO_BYTES, false},
};

static void
test_a_reply_is_ours_by_its_secret(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		uint8_t reply[60 + HC_ECHO_BYTES];
		const size_t n =
			make_reply(rows[i].is_v4, rows[i].n_words, reply) - rows[i].n_less;
		struct hc_echo found = {0};
		uint8_t *bytes = malloc(n + (n == 0));
		bool is_ours;

		assert_non_null(bytes);
		reply[(size_t)rows[i].n_words * 4 + rows[i].at] ^= rows[i].by;
		memcpy(bytes, reply, n);
		is_ours = hc_echo_read(bytes, n, rows[i].is_v4, rows[i].has_header,
			asked.secret ^ rows[i].secret_by, &found);
		EXPECT(is_ours == rows[i].want, "%s", rows[i].what);
		EXPECT(!is_ours || (found.id == asked.id && found.begun_ns == asked.begun_ns),
			"%s: what it brings", rows[i].what);
		EXPECT(is_ours || found.id == 0, "%s: out", rows[i].what);
		free(bytes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request_has_a_right_checksum),
		cmocka_unit_test(test_a_reply_is_ours_by_its_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
