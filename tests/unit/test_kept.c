/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_kept.h"

#include <netinet/in.h>

#include "expect.h"
#include "lb_compiler.h"

#define SERVICES_MAX 2u

struct row {
	const char *sentence;
	const char *services[SERVICES_MAX];
	const char *network; /* with the balancer's address; NULL: none */
	const char *kept[LB_KEPT_GROUPS_MAX + LB_KEPT_NETWORK_MAX];
};

static const struct row rows[] = {
	{"nothing from hosts", {"198.51.100.10", "2001:db8::10"}, "198.51.100.1/24", {NULL}},
	{"nothing from prefixes elsewhere", {"198.51.100.0/24", "2001:db8::/32"},
		"192.0.2.1/24", {NULL}},
	{"an address and its broadcast from a prefix as long as the network",
		{"192.0.2.0/24", "2001:db8::/32"}, "192.0.2.1/24",
		{"192.0.2.1", "192.0.2.255"}},
	{"an address alone from half of its network", {"192.0.2.0/25", "2001:db8::/32"},
		"192.0.2.1/24", {"192.0.2.1"}},
	{"a broadcast alone from the other half", {"192.0.2.128/25", "2001:db8::/32"},
		"192.0.2.1/24", {"192.0.2.255"}},
	{"the broadcast of a network of four", {"192.0.2.0/24", "2001:db8::/32"},
		"192.0.2.5/30", {"192.0.2.5", "192.0.2.7"}},
	{"no broadcast where there are two", {"192.0.2.0/24", "2001:db8::/32"}, "192.0.2.4/31",
		{"192.0.2.4"}},
	{"nor where there is one", {"192.0.2.0/24", "2001:db8::/32"}, "192.0.2.4",
		{"192.0.2.4"}},
	{"not from a service of just this address", {"192.0.2.1", "2001:db8::/32"},
		"192.0.2.1/24", {NULL}},
	{"from the prefix around that service too", {"192.0.2.1", "192.0.2.0/24"},
		"192.0.2.1/24", {"192.0.2.1", "192.0.2.255"}},
	{"no broadcast over IPv6", {"198.51.100.10", "2001:db8::/32"}, "2001:db8::1/64",
		{"2001:db8::1"}},
	{"all of IPv4", {"0.0.0.0/0", "2001:db8::/32"}, "2001:db8:1::1/64",
		{"224.0.0.0/4", "255.255.255.255", "0.0.0.0/8", "127.0.0.0/8",
			"2001:db8:1::1"}},
	{"half of IPv4", {"128.0.0.0/1", "2001:db8::/32"}, NULL,
		{"224.0.0.0/4", "255.255.255.255"}},
	{"the last sixteenth of IPv4", {"240.0.0.0/4", "2001:db8::/32"}, NULL,
		{"255.255.255.255"}},
	{"the other half", {"0.0.0.0/1", "2001:db8::/32"}, NULL, {"0.0.0.0/8", "127.0.0.0/8"}},
	{"not from a prefix within what is nobody's", {"127.0.0.0/8", "0.0.0.0/9"}, NULL,
		{NULL}},
	{"all of IPv6 has no IPv4", {"::/0", "198.51.100.10"}, "192.0.2.1/24",
		{"ff00::/8", "fe80::/10", "::", "::1"}},
	{"the first addresses of IPv6", {"::/64", "198.51.100.10"}, NULL, {"::", "::1"}},
	{"half of IPv6", {"8000::/1", "198.51.100.10"}, NULL, {"ff00::/8", "fe80::/10"}},
	{"not from beside link-local addresses", {"fe00::/9", "198.51.100.10"}, NULL, {NULL}},
	{"link-local addresses alone", {"fe80::/9", "198.51.100.10"}, NULL, {"fe80::/10"}},
};

static size_t
build_row(const struct row *row, struct lb_service_match *matches)
{
	size_t n;

	for (size_t i = 0; i < SERVICES_MAX; i++) {
		matches[i] = (struct lb_service_match){.proto = IPPROTO_TCP, .service = 7};
		assert_int_equal(lb_prefix_parse(row->services[i], &matches[i].prefix), 0);
	}
	n = lb_kept_groups(matches, SERVICES_MAX, SERVICES_MAX);
	if (row->network != NULL) {
		struct lb_prefix network;

		assert_int_equal(lb_prefix_parse(row->network, &network), 0);
		n = lb_kept_network(matches, SERVICES_MAX, n, &network);
	}
	return n;
}

static void
test_what_is_kept_from_prefixes(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_service_match matches[SERVICES_MAX + LB_N_ELEMENTS(rows[0].kept)];
		const size_t n = build_row(&rows[i], matches);
		size_t n_kept = 0;

		while (n_kept < LB_N_ELEMENTS(rows[i].kept) && rows[i].kept[n_kept] != NULL)
			n_kept++;
		EXPECT(n == SERVICES_MAX + n_kept, "%s: %zu", rows[i].sentence, n);
		for (size_t k = 0; k < n_kept; k++) {
			const struct lb_service_match *kept = &matches[SERVICES_MAX + k];
			char text[LB_PREFIX_TEXT_BYTES];

			EXPECT(strcmp(lb_prefix_format(&kept->prefix, text), rows[i].kept[k]) ==
					0,
				"%s: %s, not %s", rows[i].sentence, text, rows[i].kept[k]);
			assert_int_equal(kept->service, LB_SERVICE_NONE);
			assert_int_equal(kept->proto, 0);
			assert_int_equal(kept->port, 0);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_kept_from_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
