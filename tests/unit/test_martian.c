/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_martian.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_service_lookup.h"
#include "xrand.h"

static const struct row {
	const char *sentence;
	const char *source;
	const char *dst;
	bool is_martian;
} rows[] = {
	{"a client", "203.0.113.7", "198.51.100.10", false},
	{"this network, RFC 791", "0.0.0.1", "198.51.100.10", true},
	{"the first beyond it", "1.0.0.0", "198.51.100.10", false},
	{"loopback", "127.255.255.255", "198.51.100.10", true},
	{"the last before it", "126.255.255.255", "198.51.100.10", false},
	{"the last before groups", "223.255.255.255", "198.51.100.10", false},
	{"a group", "224.0.0.1", "198.51.100.10", true},
	{"class E", "240.0.0.1", "198.51.100.10", true},
	{"everybody", "255.255.255.255", "198.51.100.10", true},
	{"unspecified over IPv6", "::", "2001:db8::10", true},
	{"loopback over IPv6", "::1", "2001:db8::10", true},
	{"the next of it", "::2", "2001:db8::10", false},
	{"a group over IPv6", "ff02::1", "2001:db8::10", true},
	{"a link's address", "fe80::1", "2001:db8::10", false},
	{"the destination itself, within a prefix", "192.88.99.7", "192.88.99.7", true},
	{"its neighbour in the prefix", "192.88.99.8", "192.88.99.7", false},
	{"another service", "198.51.100.20", "198.51.100.10", true},
	{"a port's address", "192.0.2.1", "198.51.100.10", true},
	{"a port's over IPv6", "2001:db8:2::1", "2001:db8::10", true},
	{"a port's neighbour", "192.0.2.2", "198.51.100.10", false},
};

static const struct {
	const char *sentence;
	const char *dst;
	bool is_martian;
} destinations[] = {
	{"a host", "198.51.100.10", false},
	{"this network", "0.0.0.0", true},
	{"the last of it", "0.255.255.255", true},
	{"the first beyond it", "1.0.0.0", false},
	{"the last before loopback", "126.255.255.255", false},
	{"the first of loopback", "127.0.0.0", true},
	{"the first beyond loopback", "128.0.0.0", false},
	{"a group", "224.0.0.1", false},
	{"everybody", "255.255.255.255", false},
	{"unspecified over IPv6", "::", true},
	{"loopback over IPv6", "::1", true},
	{"the next of it", "::2", false},
	{"one that differs early", "100::1", false},
	{"a group over IPv6", "ff02::1", false},
};

static struct lb_addr
to_addr(const char *text)
{
	struct lb_addr addr;

	assert_int_equal(lb_addr_parse(text, &addr), 0);
	return addr;
}

static void
test_sources(void **state)
{
	static const char *const services[] = {"198.51.100.10", "198.51.100.20",
		"192.88.99.0/24", "2001:db8::10"};
	const struct lb_addr own[] = {to_addr("192.0.2.1"), to_addr("2001:db8:2::1")};
	struct lb_service_match matches[LB_N_ELEMENTS(services)];
	const size_t n_bytes = lb_service_table_bytes(LB_N_ELEMENTS(services));
	const struct lb_service_table *table = NULL;
	void *mem = aligned_alloc(LB_CACHE_LINE, n_bytes);
	const struct lb_addr hosts[] = {to_addr("198.51.100.10"), to_addr("198.51.100.20"),
		to_addr("2001:db8::10"), own[0], own[1]};
	struct lb_martian_filter filter;
	uint64_t words[8] = {0};

	(void)state;
	assert_int_equal(lb_martian_filter_words(LB_N_ELEMENTS(hosts)), LB_N_ELEMENTS(words));
	lb_martian_filter_init(&filter, words, hosts, LB_N_ELEMENTS(hosts));
	for (uint32_t i = 0; i < LB_N_ELEMENTS(services); i++) {
		matches[i] = (struct lb_service_match){.proto = IPPROTO_TCP, .service = i};
		assert_int_equal(lb_prefix_parse(services[i], &matches[i].prefix), 0);
	}
	assert_int_equal(lb_service_table_build(mem, matches, LB_N_ELEMENTS(services), &table),
		0);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_addr source = to_addr(rows[i].source);
		const struct lb_addr dst = to_addr(rows[i].dst);

		uint64_t from[2];
		uint64_t to[2];

		lb_service_words(&source, from);
		lb_service_words(&dst, to);
		EXPECT(lb_martian_source(table, own, LB_N_ELEMENTS(own), &source, &dst) ==
				rows[i].is_martian,
			"%s", rows[i].sentence);
		EXPECT(lb_martian_may_be(&filter, from, to) || !rows[i].is_martian,
			"%s: let pass", rows[i].sentence);
	}
	free(mem);
}

/* So many hosts, a client each of other addresses: what is let pass is none of them. */
static void
expect_of_filter(size_t n_hosts, bool is_v6)
{
	const size_t n_words = lb_martian_filter_words(n_hosts);
	struct lb_addr *hosts = calloc(n_hosts + 1, sizeof(*hosts));
	uint64_t *words = calloc(n_words, sizeof(*words));
	struct lb_martian_filter filter;
	const uint64_t dst[2] = {0, 0};
	uint64_t seed = n_hosts + 1;
	size_t n_doubted = 0;

	assert_true(n_words >= 8 && (n_words & (n_words - 1)) == 0);
	for (size_t i = 0; i < n_hosts; i++) {
		hosts[i] = to_addr(is_v6 ? "2001:db8::" : "192.0.0.0");
		hosts[i].bytes[13] = (uint8_t)(i >> 16);
		hosts[i].bytes[14] = (uint8_t)(i >> 8);
		hosts[i].bytes[15] = (uint8_t)i;
	}
	lb_martian_filter_init(&filter, words, hosts, n_hosts);
	for (size_t i = 0; i < n_hosts; i++) {
		uint64_t addr[2];

		lb_service_words(&hosts[i], addr);
		EXPECT(lb_martian_may_be(&filter, addr, dst), "host %zu of %zu", i, n_hosts);
	}
	for (size_t i = 0; i < 100000; i++) {
		struct lb_addr client = to_addr(is_v6 ? "2001:db8:1::" : "10.0.0.0");
		const uint64_t random = xrand(&seed);
		uint64_t addr[2];

		for (size_t k = 0; k < (is_v6 ? 8 : 3); k++)
			client.bytes[15 - k] = (uint8_t)(random >> 8 * k);
		lb_service_words(&client, addr);
		n_doubted += lb_martian_may_be(&filter, addr, dst);
	}
	EXPECT(n_doubted <= 100000 / 20, "%zu of %d are doubted, of %zu hosts", n_doubted,
		100000, n_hosts);
	free(words);
	free(hosts);
}

static void
test_the_filter_lets_no_host_pass_and_most_others(void **state)
{
	static const size_t n_hosts[] = {0, 1, 2, 16, 17, 100, 4000, 20000};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(n_hosts); i++) {
		expect_of_filter(n_hosts[i], false);
		expect_of_filter(n_hosts[i], true);
	}
}

static void
test_destinations(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(destinations); i++) {
		const struct lb_addr dst = to_addr(destinations[i].dst);

		EXPECT(lb_martian_destination(&dst) == destinations[i].is_martian, "%s",
			destinations[i].sentence);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_the_filter_lets_no_host_pass_and_most_others),
		cmocka_unit_test(test_destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
