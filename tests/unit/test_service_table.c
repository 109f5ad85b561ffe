/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_service_table.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_limits.h"

#define N_MANY 10000u

struct row {
	const char *prefix;
	uint8_t proto;
	uint16_t port;
};

/* Heap memory of exactly the promised size, full of rubbish. */
static void *
new_memory(size_t n)
{
	const size_t bytes = lb_service_table_bytes(n);
	uint8_t *mem;

	assert_int_equal(bytes % LB_CACHE_LINE, 0);
	mem = aligned_alloc(LB_CACHE_LINE, bytes);
	assert_non_null(mem);
	for (size_t i = 0; i < bytes; i++)
		mem[i] = 0xa5;
	return mem;
}

/* Row i becomes service i. */
static void
to_matches(const struct row *rows, size_t n, struct lb_service_match *out)
{
	for (size_t i = 0; i < n; i++) {
		EXPECT(lb_prefix_parse(rows[i].prefix, &out[i].prefix) == 0, "%s",
			rows[i].prefix);
		out[i].proto = rows[i].proto;
		out[i].port = rows[i].port;
		out[i].service = (uint32_t)i;
	}
}

static const struct row services[] = {
	/* 0 */ {"198.51.100.10", IPPROTO_TCP, 443},
	/* 1 */ {"198.51.100.10", IPPROTO_TCP, 0},
	/* 2 */ {"198.51.100.10", 0, 443},
	/* 3 */ {"198.51.100.0/24", 0, 0},
	/* 4 */ {"198.51.100.0/24", IPPROTO_UDP, 53},
	/* 5 */ {"198.51.0.0/16", IPPROTO_TCP, 80},
	/* 6 */ {"2001:db8::10", IPPROTO_TCP, 443},
	/* 7 */ {"2001:db8::/64", 0, 53},
	/* 8 */ {"2001:db8::/64", IPPROTO_UDP, 0},
	/* 9 */ {"::/0", IPPROTO_TCP, 25},
	/* 10 */ {"2001:db8::20", 0, 7},
	/* 11 */ {"2001:db8::20", 0, 0},
	/* 12 */ {"2001:db8::20", IPPROTO_UDP, 0},
};

static void
test_most_exact_service_wins(void **state)
{
	static const struct {
		const char *sentence;
		const char *dst;
		uint8_t proto;
		uint16_t port;
		uint32_t service;
	} rows[] = {
		{"all exact", "198.51.100.10", IPPROTO_TCP, 443, 0},
		{"an exact protocol where no port is", "198.51.100.10", IPPROTO_TCP, 80, 1},
		{"an exact port where no protocol is", "198.51.100.10", IPPROTO_UDP, 443, 2},
		{"an exact port goes before an exact protocol", "2001:db8::1", IPPROTO_UDP, 53,
			7},
		{"the protocol decides alone at other ports", "2001:db8::1", IPPROTO_UDP, 54,
			8},
		{"a shorter prefix where the longer has no match", "198.51.100.10", IPPROTO_UDP,
			53, 4},
		{"a shorter prefix of any protocol and port", "198.51.100.10", IPPROTO_UDP, 54,
			3},
		{"a longer prefix of any goes before a shorter exact", "198.51.100.11",
			IPPROTO_TCP, 80, 3},
		{"the shortest prefix", "198.51.101.1", IPPROTO_TCP, 80, 5},
		{"no service at the port", "198.51.101.1", IPPROTO_TCP, 81, LB_SERVICE_NONE},
		{"no service of the protocol", "198.51.101.1", IPPROTO_UDP, 80,
			LB_SERVICE_NONE},
		{"no service at the address", "198.52.0.1", IPPROTO_TCP, 80, LB_SERVICE_NONE},
		{"::/0 has no IPv4 address", "198.52.0.1", IPPROTO_TCP, 25, LB_SERVICE_NONE},
		{"::/0 has every IPv6 address", "ff02::1", IPPROTO_TCP, 25, 9},
		{"a longer prefix without a match falls back to ::/0", "2001:db8::10",
			IPPROTO_TCP, 25, 9},
		{"an IPv6 host", "2001:db8::10", IPPROTO_TCP, 443, 6},
		{"another protocol matches any", "198.51.100.10", IPPROTO_ICMP, 0, 3},
		{"another protocol does not match a port", "2001:db8::1", IPPROTO_SCTP, 53,
			LB_SERVICE_NONE},
		{"another protocol does not match TCP or UDP", "2001:db8::20", IPPROTO_SCTP, 7,
			11},
		{"protocol 255 is a protocol", "2001:db8::20", 255, 0, 11},
		{"a packet's port 0 is not any port", "2001:db8::20", IPPROTO_UDP, 0, 12},
		{"a packet's port 0 with no service of its protocol", "2001:db8::20",
			IPPROTO_TCP, 0, 11},
	};
	struct lb_service_match matches[LB_N_ELEMENTS(services)];
	const struct lb_service_table *table = NULL;
	void *mem = new_memory(LB_N_ELEMENTS(services));

	(void)state;
	to_matches(services, LB_N_ELEMENTS(services), matches);
	assert_int_equal(lb_service_table_build(mem, matches, LB_N_ELEMENTS(services), &table),
		0);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_addr dst;
		uint32_t service;

		assert_int_equal(lb_addr_parse(rows[i].dst, &dst), 0);
		service = lb_service_find(table, &dst, rows[i].proto, rows[i].port);
		EXPECT(service == rows[i].service, "%s: %d, not %d", rows[i].sentence,
			(int)service, (int)rows[i].service);
	}
	free(mem);
}

struct address_row {
	const char *sentence;
	const char *addr;
	bool holds;
};

/* A question about an address alone, over a table of some. */
static void
expect_of_addresses(const struct row *some, size_t n_some,
	bool (*asks)(const struct lb_service_table *, const struct lb_addr *),
	const struct address_row *rows, size_t n_rows)
{
	struct lb_service_match matches[LB_N_ELEMENTS(services)];
	const struct lb_service_table *table = NULL;
	void *mem = new_memory(n_some);

	to_matches(some, n_some, matches);
	assert_int_equal(lb_service_table_build(mem, matches, n_some, &table), 0);
	for (size_t i = 0; i < n_rows; i++) {
		struct lb_addr addr;

		assert_int_equal(lb_addr_parse(rows[i].addr, &addr), 0);
		EXPECT(asks(table, &addr) == rows[i].holds, "%s", rows[i].sentence);
	}
	free(mem);
}

static void
test_covers_looks_at_the_address_alone(void **state)
{
	static const struct row some[] = {
		{"198.51.100.10", IPPROTO_TCP, 443},
		{"203.0.113.0/24", IPPROTO_UDP, 53},
		{"203.0.113.0/24", IPPROTO_UDP, 54},
		{"2001:db8::/32", IPPROTO_TCP, 80},
	};
	static const struct address_row rows[] = {
		{"the host", "198.51.100.10", true},
		{"its neighbour", "198.51.100.11", false},
		{"the first of a prefix", "203.0.113.0", true},
		{"the last of a prefix", "203.0.113.255", true},
		{"one beyond", "203.0.114.0", false},
		{"the last of an IPv6 prefix", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true},
		{"one beyond an IPv6 prefix", "2001:db9::", false},
	};

	(void)state;
	expect_of_addresses(some, LB_N_ELEMENTS(some), lb_service_covers, rows,
		LB_N_ELEMENTS(rows));
}

static void
test_hosts_are_no_prefixes(void **state)
{
	static const struct row some[] = {
		{"198.51.100.10", IPPROTO_TCP, 443},
		{"203.0.113.0/24", IPPROTO_UDP, 53},
		{"203.0.113.9", IPPROTO_UDP, 0},
		{"2001:db8::", 0, 0},
		{"2001:db8:1::/127", 0, 0},
	};
	static const struct address_row rows[] = {
		{"a host, whatever its port", "198.51.100.10", true},
		{"its neighbour", "198.51.100.11", false},
		{"the first of a prefix", "203.0.113.0", false},
		{"one in the middle of a prefix", "203.0.113.8", false},
		{"a host within a prefix", "203.0.113.9", true},
		{"an IPv6 host", "2001:db8::", true},
		{"one of two", "2001:db8:1::", false},
	};

	(void)state;
	expect_of_addresses(some, LB_N_ELEMENTS(some), lb_service_has_host, rows,
		LB_N_ELEMENTS(rows));
}

/* In either order, as a match that keeps gives way to a service's, and never takes its place.
 */
static void
test_what_is_kept_from_a_prefix_is_nobody_s(void **state)
{
	static const struct row some[] = {
		{"192.0.2.0/24", 0, 0}, {"192.0.2.1", 0, 0},          /* kept */
		{"192.0.2.1", IPPROTO_TCP, 443}, {"192.0.2.2", 0, 0}, /* kept */
		{"192.0.2.3", 0, 0}, {"192.0.2.3", 0, 0},             /* kept */
	};
	static const struct {
		const char *sentence;
		const char *addr;
		uint16_t port;
		uint32_t service;
		bool is_covered;
		bool is_host;
	} rows[] = {
		{"within the prefix", "192.0.2.9", 443, 0, true, false},
		{"a service of just this address", "192.0.2.1", 443, 2, true, true},
		{"another port there", "192.0.2.1", 80, LB_SERVICE_NONE, true, true},
		{"kept", "192.0.2.2", 443, LB_SERVICE_NONE, false, false},
		{"kept, and a service that matches alike", "192.0.2.3", 443, 4, true, true},
	};
	struct lb_service_match matches[LB_N_ELEMENTS(some)];
	void *mem = new_memory(LB_N_ELEMENTS(some));

	(void)state;
	to_matches(some, LB_N_ELEMENTS(some), matches);
	matches[1].service = matches[3].service = matches[5].service = LB_SERVICE_NONE;
	for (size_t i = 0; i < 2 * LB_N_ELEMENTS(rows); i++) {
		const struct lb_service_table *table = NULL;
		const size_t row = i / 2;
		struct lb_addr addr;
		uint32_t found;

		for (size_t k = 0; k < LB_N_ELEMENTS(some) / 2; k++) {
			const struct lb_service_match first = matches[k];

			matches[k] = matches[LB_N_ELEMENTS(some) - 1 - k];
			matches[LB_N_ELEMENTS(some) - 1 - k] = first;
		}
		assert_int_equal(lb_service_table_build(mem, matches, LB_N_ELEMENTS(some),
					 &table),
			0);
		assert_int_equal(lb_addr_parse(rows[row].addr, &addr), 0);
		found = lb_service_find(table, &addr, IPPROTO_TCP, rows[row].port);
		EXPECT(found == rows[row].service, "%s: %d", rows[row].sentence, (int)found);
		EXPECT(lb_service_covers(table, &addr) == rows[row].is_covered, "%s: cover",
			rows[row].sentence);
		EXPECT(lb_service_has_host(table, &addr) == rows[row].is_host, "%s: host",
			rows[row].sentence);
	}
	free(mem);
}

static void
test_default_routes_keep_the_families_apart(void **state)
{
	static const struct row all_v6[] = {{"::/0", 0, 0}};
	static const struct row all_v4[] = {{"0.0.0.0/0", 0, 0}};
	const struct lb_service_table *table = NULL;
	struct lb_service_match match;
	struct lb_addr v4, v6;
	void *mem = new_memory(1);

	(void)state;
	assert_int_equal(lb_addr_parse("192.0.2.1", &v4), 0);
	assert_int_equal(lb_addr_parse("2001:db8::1", &v6), 0);

	to_matches(all_v6, 1, &match);
	assert_int_equal(lb_service_table_build(mem, &match, 1, &table), 0);
	assert_int_equal(lb_service_find(table, &v6, IPPROTO_TCP, 1), 0);
	assert_int_equal(lb_service_find(table, &v4, IPPROTO_TCP, 1), LB_SERVICE_NONE);
	assert_true(lb_service_covers(table, &v6));
	assert_false(lb_service_covers(table, &v4));

	to_matches(all_v4, 1, &match);
	assert_int_equal(lb_service_table_build(mem, &match, 1, &table), 0);
	assert_int_equal(lb_service_find(table, &v4, IPPROTO_TCP, 1), 0);
	assert_int_equal(lb_service_find(table, &v6, IPPROTO_TCP, 1), LB_SERVICE_NONE);
	assert_true(lb_service_covers(table, &v4));
	assert_false(lb_service_covers(table, &v6));

	/* The /95 around the mapped addresses: an IPv6 prefix, by its bytes over IPv4 too. */
	match = (struct lb_service_match){.prefix.n_bits = 95};
	match.prefix.addr.bytes[10] = 0xff;
	match.prefix.addr.bytes[11] = 0xfe;
	assert_int_equal(lb_service_table_build(mem, &match, 1, &table), 0);
	assert_int_equal(lb_service_find(table, &v4, IPPROTO_TCP, 1), LB_SERVICE_NONE);
	free(mem);
}

static void
test_bad_matches_are_refused(void **state)
{
	static const struct {
		const char *sentence;
		struct row rows[2];
		int error;
	} rows[] = {
		{"the same twice", {{"192.0.2.1", 6, 80}, {"192.0.2.1", 6, 80}}, -EEXIST},
		{"any twice", {{"2001:db8::/64", 0, 0}, {"2001:db8::/64", 0, 0}}, -EEXIST},
		{"another port", {{"192.0.2.1", 6, 80}, {"192.0.2.1", 6, 81}}, 0},
		{"another protocol", {{"192.0.2.1", 6, 80}, {"192.0.2.1", 17, 80}}, 0},
		{"another length", {{"192.0.2.0/25", 6, 80}, {"192.0.2.0/24", 6, 80}}, 0},
		{"host bits", {{"192.0.2.1", 6, 80}, {"192.0.2.1/31", 6, 80}}, -EINVAL},
		{"IPv6 host bits", {{"2001:db8::1/127", 6, 80}, {"192.0.2.1", 6, 80}}, -EINVAL},
		{"a protocol without ports", {{"192.0.2.1", 1, 0}, {"192.0.2.2", 6, 80}},
			-EINVAL},
	};
	const struct lb_service_table *const untouched = (const void *)rows;
	struct lb_service_match matches[2];
	void *mem = new_memory(2);

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_service_table *table = untouched;
		int error;

		to_matches(rows[i].rows, 2, matches);
		error = lb_service_table_build(mem, matches, 2, &table);
		EXPECT(error == rows[i].error, "%s: %d", rows[i].sentence, error);
		EXPECT((table == untouched) == (error != 0), "%s: out", rows[i].sentence);
	}

	to_matches(rows[2].rows, 2, matches);
	matches[1].prefix.n_bits = 129;
	const struct lb_service_table *table = untouched;
	assert_int_equal(lb_service_table_build(mem, matches, 2, &table), -EINVAL);
	assert_ptr_equal(table, untouched);
	free(mem);
}

static void
test_sizes_have_bounds(void **state)
{
	const struct lb_service_table *table = NULL;
	struct lb_service_match match = {.prefix.n_bits = 0};
	struct lb_addr addr = {{0}};
	void *mem = new_memory(0);

	(void)state;
	assert_int_not_equal(lb_service_table_bytes(LB_MATCHES_MAX), 0);
	assert_int_equal(lb_service_table_bytes(LB_MATCHES_MAX + 1), 0);
	assert_int_equal(lb_service_table_build(mem, &match, LB_MATCHES_MAX + 1, &table),
		-E2BIG);
	assert_null(table);

	assert_int_equal(lb_service_table_build(mem, NULL, 0, &table), 0);
	assert_int_equal(lb_service_find(table, &addr, IPPROTO_TCP, 80), LB_SERVICE_NONE);
	assert_false(lb_service_covers(table, &addr));
	free(mem);
}

/* Ten services an address, and no two alike. */
static void
test_ten_thousand_services_are_told_apart(void **state)
{
	struct lb_service_match *matches = calloc(N_MANY, sizeof(*matches));
	const struct lb_service_table *table = NULL;
	void *mem = new_memory(N_MANY);

	(void)state;
	assert_non_null(matches);
	for (uint32_t i = 0; i < N_MANY; i++) {
		const uint8_t v4[4] = {10, 0, (uint8_t)(i / 10 / 256), (uint8_t)(i / 10)};

		matches[i].prefix.addr = lb_addr_from_v4(v4);
		matches[i].prefix.n_bits = 128;
		matches[i].proto = i % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;
		matches[i].port = (uint16_t)(8000 + i % 10);
		matches[i].service = N_MANY - i;
	}
	assert_int_equal(lb_service_table_build(mem, matches, N_MANY, &table), 0);
	for (uint32_t i = 0; i < N_MANY; i++) {
		const struct lb_service_match *m = &matches[i];
		const uint8_t other = m->proto == IPPROTO_TCP ? IPPROTO_UDP : IPPROTO_TCP;
		struct lb_addr beyond = m->prefix.addr;

		beyond.bytes[13] = 1;
		EXPECT(lb_service_find(table, &m->prefix.addr, m->proto, m->port) == m->service,
			"service %u", i);
		EXPECT(lb_service_find(table, &m->prefix.addr, other, m->port) ==
				LB_SERVICE_NONE,
			"the other protocol of service %u", i);
		EXPECT(lb_service_find(table, &beyond, m->proto, m->port) == LB_SERVICE_NONE,
			"an address beyond, of service %u", i);
	}
	free(mem);
	free(matches);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_most_exact_service_wins),
		cmocka_unit_test(test_covers_looks_at_the_address_alone),
		cmocka_unit_test(test_hosts_are_no_prefixes),
		cmocka_unit_test(test_what_is_kept_from_a_prefix_is_nobody_s),
		cmocka_unit_test(test_default_routes_keep_the_families_apart),
		cmocka_unit_test(test_bad_matches_are_refused),
		cmocka_unit_test(test_sizes_have_bounds),
		cmocka_unit_test(test_ten_thousand_services_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
