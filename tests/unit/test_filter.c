/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_filter.h"

static const struct {
	const char *what;
	/* Of the filter; NULL, 0: none. */
	const char *net;
	const char *other_net;
	const char *client;
	uint16_t port;
	int protocol; /* 0: any */
	bool passes;
} rows[] = {
	{"nothing is asked for", NULL, NULL, NULL, 0, 0, true},
	{"the client", "203.0.113.7", NULL, NULL, 0, 0, true},
	{"the service", "198.51.100.10", NULL, NULL, 0, 0, true},
	{"another address", "203.0.113.8", NULL, NULL, 0, 0, false},
	{"the client's network", "203.0.113.0/24", NULL, NULL, 0, 0, true},
	{"host bits count for nothing", "203.0.113.99/24", NULL, NULL, 0, 0, true},
	{"the network beside it", "203.0.112.0/24", NULL, NULL, 0, 0, false},
	{"all of IPv4", "0.0.0.0/0", NULL, NULL, 0, 0, true},
	{"all of IPv6, IPv4's form in it apart", "2000::/3", NULL, NULL, 0, 0, false},
	{"both ends", "203.0.113.7", "198.51.100.0/24", NULL, 0, 0, true},
	{"one end and another's", "203.0.113.7", "198.51.101.0/24", NULL, 0, 0, false},
	{"the client as such", NULL, NULL, "203.0.113.0/24", 0, 0, true},
	{"the service is no client", NULL, NULL, "198.51.100.0/24", 0, 0, false},
	{"the client's port", NULL, NULL, NULL, 51515, 0, true},
	{"the service's port", NULL, NULL, NULL, 443, 0, true},
	{"another port", NULL, NULL, NULL, 444, 0, false},
	{"its protocol", NULL, NULL, NULL, 0, IPPROTO_TCP, true},
	{"another protocol", NULL, NULL, NULL, 0, IPPROTO_UDP, false},
	{"all of it", "203.0.113.7", "198.51.100.10", "203.0.113.7", 443, IPPROTO_TCP, true},
	{"all but the protocol", "203.0.113.7", "198.51.100.10", "203.0.113.7", 443,
		IPPROTO_UDP, false},
};

static struct lb_addr
addr_of(const char *text)
{
	struct lb_addr addr;

	assert_int_equal(lb_addr_parse(text, &addr), 0);
	return addr;
}

static const struct lb_prefix *
prefix_of(const char *text, struct lb_prefix *room)
{
	if (text == NULL)
		return NULL;
	assert_int_equal(lb_prefix_parse(text, room), 0);
	return room;
}

static void
test_what_is_asked_for_passes(void **state)
{
	const struct lb_flow_key key = {
		.src = addr_of("203.0.113.7"),
		.dst = addr_of("198.51.100.10"),
		.sport_be = htons(51515),
		.dport_be = htons(443),
		.proto = IPPROTO_TCP,
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_prefix prefixes[3];
		const struct lb_filter_conf conf = {
			.nets = {prefix_of(rows[i].net, &prefixes[0]),
				prefix_of(rows[i].other_net, &prefixes[1])},
			.client = prefix_of(rows[i].client, &prefixes[2]),
			.port = rows[i].port,
			.has_protocol = rows[i].protocol != 0,
			.protocols = {(uint8_t)rows[i].protocol, (uint8_t)rows[i].protocol},
		};
		struct lb_filter filter;

		lb_filter_init(&filter, &conf);
		EXPECT(lb_filter_passes(&filter, &key, key.proto) == rows[i].passes, "%s",
			rows[i].what);
		EXPECT(lb_filter_is_open(&filter) == (i == 0), "%s: is it open?", rows[i].what);
	}
}

static void
test_either_of_two_protocols_passes(void **state)
{
	const struct lb_filter_conf conf = {.has_protocol = true,
		.protocols = {IPPROTO_ICMP, IPPROTO_ICMPV6}};
	const struct lb_flow_key key = {.proto = IPPROTO_TCP};
	struct lb_filter filter;

	(void)state;
	lb_filter_init(&filter, &conf);
	assert_true(lb_filter_passes(&filter, &key, IPPROTO_ICMP));
	assert_true(lb_filter_passes(&filter, &key, IPPROTO_ICMPV6));
	assert_false(lb_filter_passes(&filter, &key, key.proto));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_asked_for_passes),
		cmocka_unit_test(test_either_of_two_protocols_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
