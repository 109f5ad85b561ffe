/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_netlink_msg.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "expect.h"
#include "xrand.h"

#define BYTES 512u

static struct lb_addr
addr_of(const char *text)
{
	struct lb_addr addr;

	assert_int_equal(lb_addr_parse(text, &addr), 0);
	return addr;
}

/* Exactly as long as it says, on the heap, so that a read past its end is seen. */
static struct nlmsghdr *
cut_to_length(const struct nlmsghdr *msg)
{
	struct nlmsghdr *copy = malloc(msg->nlmsg_len);

	assert_non_null(copy);
	memcpy(copy, msg, msg->nlmsg_len);
	return copy;
}

/* A route to an IPv4 or IPv6 address, with attributes: OIF=N, GATEWAY=A, VIA=A, in this order.
 */
static const struct {
	const char *what;
	const char *dst;
	uint16_t type;
	uint8_t route_type;
	int oif; /* 0: none */
	const char *gateway;
	const char *via;
	const char *next; /* NULL: no route */
} routes[] = {
	{"a network of ours", "10.0.0.1", RTM_NEWROUTE, RTN_UNICAST, 3, NULL, NULL, "10.0.0.1"},
	{"a router", "10.0.0.1", RTM_NEWROUTE, RTN_UNICAST, 3, "192.0.2.1", NULL, "192.0.2.1"},
	{"IPv6", "2001:db8::1", RTM_NEWROUTE, RTN_UNICAST, 3, "fe80::1", NULL, "fe80::1"},
	{"IPv4 by a router of IPv6", "10.0.0.1", RTM_NEWROUTE, RTN_UNICAST, 3, NULL, "fe80::1",
		"fe80::1"},
	{"a gateway that is no address of the family", "10.0.0.1", RTM_NEWROUTE, RTN_UNICAST, 3,
		"fe80::1", NULL, NULL},
	{"an address of the balancer's own", "10.0.0.1", RTM_NEWROUTE, RTN_LOCAL, 1, NULL, NULL,
		NULL},
	{"a refusal", "10.0.0.1", RTM_NEWROUTE, RTN_UNREACHABLE, 3, NULL, NULL, NULL},
	{"no interface", "10.0.0.1", RTM_NEWROUTE, RTN_UNICAST, 0, "192.0.2.1", NULL, NULL},
	{"an error", "10.0.0.1", NLMSG_ERROR, RTN_UNICAST, 3, NULL, NULL, NULL},
};

static struct nlmsghdr *
make_route(uint8_t *bytes, size_t i)
{
	const struct lb_addr dst = addr_of(routes[i].dst);
	struct nlmsghdr *msg = ctl_msg_ask_route(bytes, &dst, 7);
	struct rtmsg *route = mnl_nlmsg_get_payload(msg);
	struct {
		uint16_t family;
		uint8_t bytes[LB_ADDR_BYTES];
	} via = {.family = AF_INET6};
	struct lb_addr addr;

	msg->nlmsg_type = routes[i].type;
	route->rtm_type = routes[i].route_type;
	if (routes[i].oif != 0)
		mnl_attr_put_u32(msg, RTA_OIF, (uint32_t)routes[i].oif);
	if (routes[i].gateway != NULL) {
		addr = addr_of(routes[i].gateway);
		ctl_msg_put_addr(msg, RTA_GATEWAY, &addr);
	}
	if (routes[i].via != NULL) {
		addr = addr_of(routes[i].via);
		memcpy(via.bytes, addr.bytes, LB_ADDR_BYTES);
		mnl_attr_put(msg, RTA_VIA, sizeof(via), &via);
	}
	return msg;
}

static void
test_routes(void **state)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[BYTES];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(routes); i++) {
		const struct lb_addr dst = addr_of(routes[i].dst);
		struct nlmsghdr *msg = cut_to_length(make_route(bytes, i));
		struct ctl_place next = {.if_index = -7};
		const bool has_route = ctl_msg_read_route(msg, &dst, &next);

		EXPECT(has_route == (routes[i].next != NULL), "%s", routes[i].what);
		if (routes[i].next != NULL) {
			const struct lb_addr want = addr_of(routes[i].next);

			EXPECT(lb_addr_equal(&next.addr, &want), "%s", routes[i].what);
			assert_int_equal(next.if_index, routes[i].oif);
		} else {
			assert_int_equal(next.if_index, -7);
		}
		free(msg);
	}
}

static void
test_a_question_asks_for_one_destination(void **state)
{
	const struct lb_addr v4 = addr_of("10.0.0.1");
	const struct lb_addr v6 = addr_of("2001:db8::1");
	_Alignas(struct nlmsghdr) uint8_t bytes[BYTES];
	const struct rtmsg *route;
	struct lb_addr addr;
	unsigned int n_bits;
	struct nlmsghdr *msg = ctl_msg_ask_route(bytes, &v4, 77);

	(void)state;
	route = mnl_nlmsg_get_payload(msg);
	assert_int_equal(msg->nlmsg_type, RTM_GETROUTE);
	assert_int_equal(msg->nlmsg_flags, NLM_F_REQUEST);
	assert_int_equal(msg->nlmsg_seq, 77);
	assert_int_equal(route->rtm_table, RT_TABLE_UNSPEC);
	assert_true(msg->nlmsg_len <= CTL_MSG_BYTES_MAX);
	assert_true(ctl_msg_read_prefix(msg, &addr, &n_bits));
	assert_true(lb_addr_equal(&addr, &v4));
	assert_int_equal(n_bits, 128);
	msg = ctl_msg_ask_route(bytes, &v6, 78);
	assert_true(msg->nlmsg_len <= CTL_MSG_BYTES_MAX);
	assert_true(ctl_msg_read_prefix(msg, &addr, &n_bits));
	assert_true(lb_addr_equal(&addr, &v6));
	assert_int_equal(n_bits, 128);
}

static void
test_a_default_route_is_to_all_of_its_family(void **state)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[BYTES];
	struct nlmsghdr *msg = ctl_msg_begin(bytes, RTM_NEWROUTE, 0, 0);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(msg, sizeof(*route));
	const struct lb_addr any_v4 = addr_of("0.0.0.0");
	struct lb_addr addr;
	unsigned int n_bits;

	(void)state;
	route->rtm_family = AF_INET;
	assert_true(ctl_msg_read_prefix(msg, &addr, &n_bits));
	assert_true(lb_addr_equal(&addr, &any_v4));
	assert_int_equal(n_bits, 96);
	route->rtm_family = AF_INET6;
	assert_true(ctl_msg_read_prefix(msg, &addr, &n_bits));
	assert_int_equal(n_bits, 0);
	route->rtm_family = AF_INET;
	route->rtm_dst_len = 33;
	assert_false(ctl_msg_read_prefix(msg, &addr, &n_bits));
}

static struct ctl_neigh
neigh_of(const char *text)
{
	return (struct ctl_neigh){.place = {.addr = addr_of(text), .if_index = 3}};
}

static void
test_neighbours(void **state)
{
	static const uint8_t mac[8] = {2, 0, 0, 0, 0, 7};
	const struct ctl_neigh neigh = neigh_of("192.0.2.1");
	_Alignas(struct nlmsghdr) uint8_t bytes[BYTES];
	struct nlmsghdr *msg = ctl_msg_ask_neigh(bytes, &neigh.place, 7);
	struct ndmsg *header = mnl_nlmsg_get_payload(msg);
	struct ctl_neigh_state got;
	struct ctl_place place;

	(void)state;
	assert_int_equal(msg->nlmsg_type, RTM_GETNEIGH);
	assert_false(ctl_msg_read_neigh(msg, &place, &got));
	msg->nlmsg_type = RTM_NEWNEIGH;
	header->ndm_state = NUD_REACHABLE;
	assert_true(ctl_msg_read_neigh(msg, &place, &got));
	assert_memory_equal(&place.addr, &neigh.place.addr, sizeof(place.addr));
	assert_int_equal(place.if_index, 3);
	assert_int_equal(got.nud, NUD_REACHABLE);
	assert_false(got.has_mac);
	/* That of Infiniband, say, is none of Ethernet's. */
	mnl_attr_put(msg, NDA_LLADDR, 8, mac);
	assert_true(ctl_msg_read_neigh(msg, &place, &got));
	assert_false(got.has_mac);
	mnl_attr_put(msg, NDA_LLADDR, 6, mac);
	assert_true(ctl_msg_read_neigh(msg, &place, &got));
	assert_true(got.has_mac);
	assert_memory_equal(&got.mac, mac, 6);
	header->ndm_flags = NTF_PROXY;
	assert_false(ctl_msg_read_neigh(msg, &place, &got));
	header->ndm_flags = 0;
	header->ndm_family = AF_BRIDGE;
	assert_false(ctl_msg_read_neigh(msg, &place, &got));
	header->ndm_family = AF_INET;
	msg->nlmsg_type = RTM_DELNEIGH;
	assert_true(ctl_msg_read_neigh(msg, &place, &got));
	assert_int_equal(got.nud, NUD_NONE);
	assert_false(got.has_mac);
}

static void
test_only_what_is_known_to_be_ordinary_is_touched(void **state)
{
	struct ctl_neigh neigh = neigh_of("192.0.2.1");
	_Alignas(struct nlmsghdr) uint8_t bytes[BYTES];
	const struct nlmsghdr *msg = ctl_msg_use_neigh(bytes, &neigh, 7);
	const struct ndmsg *header = mnl_nlmsg_get_payload(msg);

	(void)state;
	assert_true(msg->nlmsg_len <= CTL_MSG_BYTES_MAX);
	assert_int_equal(header->ndm_flags, NTF_USE);
	assert_int_equal(msg->nlmsg_flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
	neigh.is_known = true;
	msg = ctl_msg_use_neigh(bytes, &neigh, 7);
	assert_int_equal(msg->nlmsg_flags, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
	neigh.state.nud = NUD_STALE;
	msg = ctl_msg_use_neigh(bytes, &neigh, 7);
	assert_int_equal(msg->nlmsg_flags, NLM_F_REQUEST | NLM_F_CREATE);
}

static void
test_links(void **state)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[BYTES];
	struct nlmsghdr *msg = ctl_msg_begin(bytes, RTM_NEWLINK, 0, 0);
	struct ifinfomsg *header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));
	struct ctl_link link;

	(void)state;
	mnl_attr_put_strz(msg, IFLA_IFNAME, "wan");
	header->ifi_index = 3;
	header->ifi_flags = IFF_UP;
	assert_true(ctl_msg_read_link(msg, &link));
	assert_string_equal(link.name, "wan");
	assert_int_equal(link.if_index, 3);
	assert_true(link.is_there && !link.is_up);
	header->ifi_flags = IFF_UP | 1u << 16;
	assert_true(ctl_msg_read_link(msg, &link));
	assert_true(link.is_up);
	header->ifi_flags = 1u << 16;
	assert_true(ctl_msg_read_link(msg, &link));
	assert_false(link.is_up);
	msg->nlmsg_type = RTM_DELLINK;
	header->ifi_flags = IFF_UP | 1u << 16;
	assert_true(ctl_msg_read_link(msg, &link));
	assert_false(link.is_there || link.is_up);
	header->ifi_family = AF_BRIDGE;
	assert_false(ctl_msg_read_link(msg, &link));
}

static void
read_all(const struct nlmsghdr *msg)
{
	const struct lb_addr dst = addr_of("10.0.0.1");
	struct ctl_neigh_state neigh;
	struct ctl_place place;
	struct ctl_link link;
	struct lb_addr addr;
	unsigned int n_bits = 0;

	(void)ctl_msg_read_route(msg, &dst, &place);
	if (ctl_msg_read_prefix(msg, &addr, &n_bits))
		assert_true(n_bits <= 128);
	(void)ctl_msg_read_neigh(msg, &place, &neigh);
	(void)ctl_msg_is_use_error(msg);
	(void)ctl_msg_read_link(msg, &link);
}

/* Whatever the kernel of the day sends: nothing is read beyond its end. */
static void
test_any_bytes(void **state)
{
	static const uint16_t types[] = {NLMSG_ERROR, RTM_NEWROUTE, RTM_NEWNEIGH, RTM_DELNEIGH,
		RTM_NEWLINK, RTM_DELLINK};
	uint64_t rand = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const uint32_t n = (uint32_t)sizeof(struct nlmsghdr) + xrand_below(&rand, 64);
		uint8_t *bytes = malloc(n);
		struct nlmsghdr *msg = (struct nlmsghdr *)bytes;

		assert_non_null(bytes);
		for (uint32_t k = 0; k < n; k++)
			bytes[k] =
				(uint8_t)(xrand_below(&rand, 2) != 0 ? xrand_below(&rand, 12)
								     : xrand_below(&rand, 256));
		msg->nlmsg_len = n;
		msg->nlmsg_type = types[xrand_below(&rand, LB_N_ELEMENTS(types))];
		read_all(msg);
		free(bytes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_a_question_asks_for_one_destination),
		cmocka_unit_test(test_a_default_route_is_to_all_of_its_family),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_only_what_is_known_to_be_ordinary_is_touched),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests_name("ctl_netlink_msg", tests, NULL, NULL);
}
