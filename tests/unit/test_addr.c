/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "expect.h"
#include "lb_addr.h"
#include "lb_compiler.h"

static const struct {
	const char *text;
	int want;
	const char *printed; /* where it differs */
} addrs[] = {
	{"0.0.0.0", 0, NULL},
	{"203.0.113.7", 0, NULL},
	{"255.255.255.255", 0, NULL},
	{"::", 0, NULL},
	{"::1", 0, NULL},
	{"2001:db8::10", 0, NULL},
	{"2001:0DB8:0:0:0:0:0:10", 0, "2001:db8::10"},
	{"2001:db8:0:0:1:0:0:1", 0, "2001:db8::1:0:0:1"},
	{"64:ff9b::192.0.2.1", 0, "64:ff9b::c000:201"},
	{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0, NULL},
	{"", -EINVAL, NULL},
	{"10.0.0", -EINVAL, NULL},
	{"10.0.0.256", -EINVAL, NULL},
	{"10.0.0.010", -EINVAL, NULL},
	{"10.0.0.1 ", -EINVAL, NULL},
	{" 10.0.0.1", -EINVAL, NULL},
	{"10.0.0.1.1", -EINVAL, NULL},
	{"167772161", -EINVAL, NULL},
	{"0x0a000001", -EINVAL, NULL},
	{"::ffff:10.0.0.1", -EINVAL, NULL}, /* a second name for an IPv4 address */
	{"::ffff:a00:1", -EINVAL, NULL},
	{"2001:db8::10::1", -EINVAL, NULL},
	{"2001:db8:::1", -EINVAL, NULL},
	{"2001:db8", -EINVAL, NULL},
	{"12345::", -EINVAL, NULL},
	{"fe80::1%eth0", -EINVAL, NULL},
	{"web.example", -EINVAL, NULL},
};

static void
test_each_address_text_is_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(addrs); i++) {
		const char *want = addrs[i].printed != NULL ? addrs[i].printed : addrs[i].text;
		struct lb_addr addr = {.bytes = {0xaa}};
		const struct lb_addr before = addr;
		char text[LB_ADDR_TEXT_BYTES];
		const int got = lb_addr_parse(addrs[i].text, &addr);

		EXPECT(got == addrs[i].want, "\"%s\": %d", addrs[i].text, got);
		if (got == 0)
			assert_string_equal(lb_addr_format(&addr, text), want);
		else
			EXPECT(lb_addr_equal(&addr, &before), "\"%s\": touched", addrs[i].text);
	}
}

static void
test_an_ipv4_address_is_held_as_mapped(void **state)
{
	static const uint8_t want[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2,
		33};
	static const uint8_t v4[4] = {192, 0, 2, 33};
	const struct lb_addr built = lb_addr_from_v4(v4);
	struct lb_addr parsed;

	(void)state;
	assert_int_equal(lb_addr_parse("192.0.2.33", &parsed), 0);
	assert_memory_equal(parsed.bytes, want, sizeof(want));
	assert_memory_equal(built.bytes, want, sizeof(want));
	assert_true(lb_addr_is_v4(&built));
	assert_int_equal(lb_addr_parse("2001:db8::", &parsed), 0);
	assert_false(lb_addr_is_v4(&parsed));
	assert_false(lb_addr_equal(&parsed, &built));
}

static const struct {
	const char *text;
	bool want;
} unicasts[] = {
	{"10.0.0.1", true},
	{"223.255.255.255", true},
	{"1.0.0.0", true},
	{"169.254.1.1", true},
	{"0.0.0.0", false},
	{"0.255.255.255", false},
	{"127.0.0.1", false},
	{"127.255.255.255", false},
	{"128.0.0.1", true},
	{"224.0.0.1", false},
	{"239.1.2.3", false},
	{"240.0.0.1", false},
	{"255.255.255.255", false},
	{"2001:db8::1", true},
	{"fe80::1", true},
	{"fd00::1", true},
	{"::2", true},
	{"::", false},
	{"::1", false},
	{"ff02::1", false},
	{"feff::1", true},
};

static void
test_a_backend_address_is_unicast(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(unicasts); i++) {
		struct lb_addr addr;

		assert_int_equal(lb_addr_parse(unicasts[i].text, &addr), 0);
		EXPECT(lb_addr_is_unicast(&addr) == unicasts[i].want, "%s", unicasts[i].text);
	}
}

static const struct {
	const char *text;
	int want;
	unsigned int n_bits; /* as held: of 128 */
	bool has_host_bits;
	const char *printed; /* where it differs */
} prefixes[] = {
	{"198.51.100.0/28", 0, 124, false, NULL},
	{"198.51.100.16/28", 0, 124, false, NULL},
	{"198.51.100.8/28", 0, 124, true, NULL},
	{"198.51.100.1/32", 0, 128, false, "198.51.100.1"},
	{"198.51.100.1", 0, 128, false, NULL},
	{"0.0.0.0/0", 0, 96, false, NULL},
	{"0.0.0.1/0", 0, 96, true, NULL},
	{"128.0.0.0/1", 0, 97, false, NULL},
	{"192.0.0.0/1", 0, 97, true, NULL},
	{"2001:db8::/32", 0, 32, false, NULL},
	{"2001:db8::/33", 0, 33, false, NULL},
	{"2001:db8:8000::/32", 0, 32, true, NULL},
	{"2001:db8::1/128", 0, 128, false, "2001:db8::1"},
	{"2001:db8::1/127", 0, 127, true, NULL},
	{"::/0", 0, 0, false, NULL},
	{"198.51.100.0/33", -EINVAL, 0, false, NULL},
	{"2001:db8::/129", -EINVAL, 0, false, NULL},
	{"198.51.100.0/", -EINVAL, 0, false, NULL},
	{"198.51.100.0/08", -EINVAL, 0, false, NULL},
	{"198.51.100.0/-1", -EINVAL, 0, false, NULL},
	{"198.51.100.0/+8", -EINVAL, 0, false, NULL},
	{"198.51.100.0/ 8", -EINVAL, 0, false, NULL},
	{"198.51.100.0/8x", -EINVAL, 0, false, NULL},
	{"198.51.100.0/8/8", -EINVAL, 0, false, NULL},
	{"198.51.100.0/4294967304", -EINVAL, 0, false, NULL},
	{"/8", -EINVAL, 0, false, NULL},
	{"", -EINVAL, 0, false, NULL},
	{"2001:db8:1111:2222:3333:4444:5555:6666:7777:8888:9999/8", -EINVAL, 0, false, NULL},
};

static void
test_each_prefix_text_is_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(prefixes); i++) {
		const char *name = prefixes[i].text;
		const char *want = prefixes[i].printed != NULL ? prefixes[i].printed : name;
		char text[LB_PREFIX_TEXT_BYTES];
		struct lb_prefix prefix = {.n_bits = 77};
		const int got = lb_prefix_parse(name, &prefix);

		EXPECT(got == prefixes[i].want, "\"%s\": %d", name, got);
		if (got != 0) {
			EXPECT(prefix.n_bits == 77, "\"%s\": touched", name);
			continue;
		}
		EXPECT(prefix.n_bits == prefixes[i].n_bits, "%s: %u bits", name, prefix.n_bits);
		EXPECT(lb_prefix_has_host_bits(&prefix) == prefixes[i].has_host_bits,
			"%s: host bits", name);
		assert_string_equal(lb_prefix_format(&prefix, text), want);
	}
}

static void
test_a_mask_keeps_just_the_first_bits(void **state)
{
	struct lb_addr ones;

	(void)state;
	memset(ones.bytes, 0xff, sizeof(ones.bytes));
	for (unsigned int n_bits = 0; n_bits <= 128; n_bits++) {
		const struct lb_addr masked = lb_addr_mask(&ones, n_bits);

		for (unsigned int bit = 0; bit < 128; bit++) {
			const bool is_set = (masked.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;

			EXPECT(is_set == (bit < n_bits), "bit %u of /%u", bit, n_bits);
		}
	}
}

static const struct {
	const char *text;
	int want;
	const char *printed; /* where it differs */
} macs[] = {
	{"02:00:00:00:00:fe", 0, NULL},
	{"FF:Ff:fF:09:aB:C0", 0, "ff:ff:ff:09:ab:c0"},
	{"02:00:00:00:00", -EINVAL, NULL},
	{"02:00:00:00:00:fe:01", -EINVAL, NULL},
	{"02-00-00-00-00-fe", -EINVAL, NULL},
	{"02:00:00:00:00:f", -EINVAL, NULL},
	{"02:00:00:00:00:fg", -EINVAL, NULL},
	{"2:000:00:00:00:fe", -EINVAL, NULL},
	{"020000000000000fe", -EINVAL, NULL},
	{"", -EINVAL, NULL},
};

static void
test_each_mac_text_is_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(macs); i++) {
		const char *want = macs[i].printed != NULL ? macs[i].printed : macs[i].text;
		char text[LB_MAC_TEXT_BYTES];
		struct lb_mac mac = {.bytes = {0xaa}};
		const int got = lb_mac_parse(macs[i].text, &mac);

		EXPECT(got == macs[i].want, "\"%s\": %d", macs[i].text, got);
		if (got == 0)
			assert_string_equal(lb_mac_format(&mac, text), want);
		else
			EXPECT(mac.bytes[0] == 0xaa, "\"%s\": touched", macs[i].text);
	}
}

/* RFC 5952 on the longest of each form: the constants in lb_addr.h have room for it. */
static void
test_the_longest_texts_fit(void **state)
{
	static const char longest[] = "1111:2222:3333:4444:5555:6666:7777:8888/127";
	char text[LB_PREFIX_TEXT_BYTES];
	struct lb_prefix prefix;

	(void)state;
	assert_int_equal(lb_prefix_parse(longest, &prefix), 0);
	assert_string_equal(lb_prefix_format(&prefix, text), longest);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_address_text_is_taken_or_refused),
		cmocka_unit_test(test_an_ipv4_address_is_held_as_mapped),
		cmocka_unit_test(test_a_backend_address_is_unicast),
		cmocka_unit_test(test_each_prefix_text_is_taken_or_refused),
		cmocka_unit_test(test_a_mask_keeps_just_the_first_bits),
		cmocka_unit_test(test_each_mac_text_is_taken_or_refused),
		cmocka_unit_test(test_the_longest_texts_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
