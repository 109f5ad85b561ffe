/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_hops.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

#define ROUTER "192.0.2.254"

static struct lb_addr
addr_of(const char *text)
{
	struct lb_addr addr;

	assert_int_equal(lb_addr_parse(text, &addr), 0);
	return addr;
}

static void
set(struct ctl_hops *hops, const char *const texts[])
{
	struct lb_addr addrs[8];
	size_t n = 0;

	for (; texts[n] != NULL; n++)
		addrs[n] = addr_of(texts[n]);
	assert_int_equal(ctl_hops_set(hops, addrs, n), 0);
}

static struct ctl_dst *
dst_of(const struct ctl_hops *hops, const char *text)
{
	const struct lb_addr addr = addr_of(text);

	for (size_t i = 0; i < hops->n_dsts; i++)
		if (lb_addr_equal(&hops->dsts[i].addr, &addr))
			return &hops->dsts[i];
	fail_msg("%s is no destination", text);
	return NULL;
}

/* The kernel says of a destination that it lies behind a neighbour. */
static void
route(struct ctl_hops *hops, const char *dst, const char *next, int if_index)
{
	struct ctl_dst *found = dst_of(hops, dst);

	found->is_dirty = false;
	found->has_route = true;
	found->next = (struct ctl_place){.addr = addr_of(next), .if_index = if_index};
	ctl_hops_gather(hops);
}

static struct ctl_neigh *
neigh_of(const struct ctl_hops *hops, const char *text, int if_index)
{
	const struct ctl_place place = {.addr = addr_of(text), .if_index = if_index};

	return ctl_hops_neigh(hops, &place);
}

static void
answer(struct ctl_hops *hops, const char *text, int if_index, unsigned int nud, uint8_t mac)
{
	const struct ctl_neigh_state state = {.nud = nud,
		.has_mac = mac != 0,
		.mac = {{2, 0, 0, 0, 0, mac}}};
	struct ctl_neigh *neigh = neigh_of(hops, text, if_index);

	assert_non_null(neigh);
	ctl_neigh_take(neigh, &state);
}

/* As text: the interface, "router" or "direct", and the last byte of the MAC address. */
static void
expect_hop(const struct ctl_hops *hops, const char *dst, const char *want)
{
	const struct lb_addr addr = addr_of(dst);
	struct ctl_hop hop;
	char got[64] = "none";

	if (ctl_hops_find(hops, &addr, &hop))
		(void)snprintf(got, sizeof(got), "%d %s %d", hop.if_index,
			hop.is_gateway ? "router" : "direct",
			hop.is_resolved ? hop.mac.bytes[5] : -1);
	EXPECT(strcmp(got, want) == 0, "%s: %s, not %s", dst, got, want);
}

static void
test_each_destination_is_there_once_and_in_doubt(void **state)
{
	struct ctl_hops hops = {.dsts = NULL};

	(void)state;
	set(&hops,
		(const char *const[]){"10.0.0.2", "2001:db8::1", "10.0.0.1", "10.0.0.2", NULL});
	assert_int_equal(hops.n_dsts, 3);
	for (size_t i = 0; i < hops.n_dsts; i++)
		assert_true(hops.dsts[i].is_dirty);
	expect_hop(&hops, "10.0.0.1", "none");
	expect_hop(&hops, "10.0.0.9", "none");
	set(&hops, (const char *const[]){NULL});
	assert_int_equal(hops.n_dsts, 0);
	assert_false(ctl_hops_show(&hops, 0));
	ctl_hops_fini(&hops);
}

static void
test_hops_are_shown_when_they_are_told_to_be(void **state)
{
	struct ctl_hops hops = {.dsts = NULL};

	(void)state;
	set(&hops, (const char *const[]){"10.0.0.1", "10.0.0.2", "192.0.2.9", NULL});
	route(&hops, "10.0.0.1", ROUTER, 3);
	route(&hops, "10.0.0.2", ROUTER, 3);
	route(&hops, "192.0.2.9", "192.0.2.9", 3);
	/* One neighbour for two destinations. */
	assert_int_equal(hops.n_neighs, 2);
	expect_hop(&hops, "10.0.0.1", "none");
	assert_true(ctl_hops_show(&hops, 0));
	assert_false(ctl_hops_show(&hops, 0));
	expect_hop(&hops, "10.0.0.1", "3 router -1");
	answer(&hops, ROUTER, 3, NUD_REACHABLE, 7);
	expect_hop(&hops, "10.0.0.1", "3 router -1");
	assert_true(ctl_hops_show(&hops, 0));
	expect_hop(&hops, "10.0.0.1", "3 router 7");
	expect_hop(&hops, "10.0.0.2", "3 router 7");
	expect_hop(&hops, "192.0.2.9", "3 direct -1");
	answer(&hops, "192.0.2.9", 3, NUD_STALE, 9);
	answer(&hops, ROUTER, 3, NUD_FAILED, 7);
	assert_true(ctl_hops_show(&hops, 0));
	expect_hop(&hops, "10.0.0.2", "3 router -1");
	expect_hop(&hops, "192.0.2.9", "3 direct 9");
	/* The same address behind another interface is another neighbour. */
	route(&hops, "192.0.2.9", "192.0.2.9", 4);
	assert_null(neigh_of(&hops, "192.0.2.9", 3));
	assert_true(ctl_hops_show(&hops, 0));
	expect_hop(&hops, "192.0.2.9", "4 direct -1");
	dst_of(&hops, "10.0.0.1")->has_route = false;
	assert_true(ctl_hops_show(&hops, 0));
	expect_hop(&hops, "10.0.0.1", "none");
	ctl_hops_fini(&hops);
}

static void
test_what_stays_is_known_still(void **state)
{
	struct ctl_hops hops = {.dsts = NULL};

	(void)state;
	set(&hops, (const char *const[]){"10.0.0.1", "10.0.0.2", NULL});
	route(&hops, "10.0.0.1", ROUTER, 3);
	answer(&hops, ROUTER, 3, NUD_PERMANENT, 7);
	assert_true(ctl_hops_show(&hops, 0));
	set(&hops, (const char *const[]){"10.0.0.3", "10.0.0.1", NULL});
	expect_hop(&hops, "10.0.0.1", "3 router 7");
	assert_false(dst_of(&hops, "10.0.0.1")->is_dirty);
	assert_true(dst_of(&hops, "10.0.0.3")->is_dirty);
	assert_false(ctl_neigh_is_due(neigh_of(&hops, ROUTER, 3), UINT64_MAX));
	assert_false(ctl_hops_show(&hops, 0));
	/* With the last destination behind it the neighbour is forgotten. */
	set(&hops, (const char *const[]){"10.0.0.3", NULL});
	assert_null(neigh_of(&hops, ROUTER, 3));
	ctl_hops_fini(&hops);
}

static const struct {
	const char *what;
	const char *prefix;
	unsigned int n_bits;
	const char *dirty; /* of the four destinations, in their order */
} doubts[] = {
	{"a host", "10.0.0.2", 128, "0100"},
	{"a host that is no destination", "10.0.0.3", 128, "0000"},
	{"a network", "10.0.0.0", 96 + 24, "1100"},
	{"the default route of IPv4, and not of IPv6", "0.0.0.0", 96, "1110"},
	{"with host bits", "10.0.0.77", 96 + 24, "1100"},
	{"a network of IPv6", "2001:db8::", 32, "0001"},
	{"the default route of IPv6 has IPv4 in it as that is held", "::", 0, "1111"},
};

static void
test_a_prefix_puts_its_destinations_in_doubt(void **state)
{
	const char *const dsts[] = {"10.0.0.1", "10.0.0.2", "10.9.0.1", "2001:db8::1", NULL};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(doubts); i++) {
		const struct lb_addr addr = addr_of(doubts[i].prefix);
		struct ctl_hops hops = {.dsts = NULL};
		char got[8] = "";
		bool has_any;

		set(&hops, dsts);
		for (size_t k = 0; k < hops.n_dsts; k++)
			hops.dsts[k].is_dirty = false;
		has_any = ctl_hops_doubt_prefix(&hops, &addr, doubts[i].n_bits);
		for (size_t k = 0; dsts[k] != NULL; k++)
			got[k] = dst_of(&hops, dsts[k])->is_dirty ? '1' : '0';
		EXPECT(strcmp(got, doubts[i].dirty) == 0, "%s: %s", doubts[i].what, got);
		assert_int_equal(has_any, strchr(doubts[i].dirty, '1') != NULL);
		ctl_hops_fini(&hops);
	}
}

static void
test_who_does_not_answer_is_asked_less_and_less(void **state)
{
	static const uint64_t waits_ms[] = {1000, 2000, 4000, 8000, 16000, 16000, 16000};
	struct ctl_hops hops = {.dsts = NULL};
	struct ctl_neigh *neigh;
	uint64_t now_ms = 5;

	(void)state;
	set(&hops, (const char *const[]){"10.0.0.1", NULL});
	route(&hops, "10.0.0.1", ROUTER, 3);
	neigh = neigh_of(&hops, ROUTER, 3);
	assert_true(ctl_neigh_is_due(neigh, 0));
	for (size_t i = 0; i < LB_N_ELEMENTS(waits_ms); i++) {
		ctl_neigh_note_asked(neigh, now_ms);
		answer(&hops, ROUTER, 3, NUD_INCOMPLETE, 0);
		assert_false(ctl_neigh_is_due(neigh, now_ms + waits_ms[i] - 1));
		now_ms += waits_ms[i];
		assert_true(ctl_neigh_is_due(neigh, now_ms));
	}
	/* A link has come up, say: it may answer now. */
	ctl_neigh_note_asked(neigh, now_ms);
	ctl_hops_doubt_all(&hops);
	assert_true(ctl_neigh_is_due(neigh, now_ms));
	assert_int_equal(neigh->wait_ms, 1000);
	/* One that is stale has an address and is asked for still, at first soon. */
	ctl_neigh_note_asked(neigh, now_ms);
	answer(&hops, ROUTER, 3, NUD_STALE, 7);
	assert_true(ctl_neigh_is_due(neigh, now_ms + 1000));
	assert_int_equal(neigh->wait_ms, 1000);
	answer(&hops, ROUTER, 3, NUD_REACHABLE, 7);
	assert_false(ctl_neigh_is_due(neigh, UINT64_MAX));
	ctl_hops_doubt_neighs(&hops);
	assert_true(ctl_neigh_is_due(neigh, now_ms));
	/* The kernel knows nothing of it. */
	ctl_neigh_take(neigh, NULL);
	assert_true(ctl_hops_show(&hops, 0));
	expect_hop(&hops, "10.0.0.1", "3 router -1");
	ctl_hops_fini(&hops);
}

/* The kernel knows no route to it any more. */
static void
unroute(struct ctl_hops *hops, const char *dst)
{
	dst_of(hops, dst)->has_route = false;
	ctl_hops_gather(hops);
}

/* Four: two by a router and one direct of interface 3, and one of 4; the last of 3 is unknown.
 */
static void
begin_kept(struct ctl_hops *hops)
{
	set(hops, (const char *const[]){"10.0.0.1", "10.0.0.2", "192.0.2.8", "192.0.2.9",
			  "203.0.113.1", NULL});
	route(hops, "10.0.0.1", ROUTER, 3);
	route(hops, "10.0.0.2", ROUTER, 3);
	route(hops, "192.0.2.8", "192.0.2.8", 3);
	route(hops, "192.0.2.9", "192.0.2.9", 3);
	route(hops, "203.0.113.1", "198.51.100.1", 4);
	answer(hops, ROUTER, 3, NUD_REACHABLE, 7);
	answer(hops, "192.0.2.8", 3, NUD_STALE, 8);
	answer(hops, "192.0.2.9", 3, NUD_FAILED, 0);
	answer(hops, "198.51.100.1", 4, NUD_REACHABLE, 5);
	assert_true(ctl_hops_show(hops, 0));
	ctl_hops_keep(hops, 3);
	unroute(hops, "10.0.0.1");
	/* By another interface: the way out of a table that has lost the better route. */
	route(hops, "10.0.0.2", "198.51.100.1", 4);
	unroute(hops, "192.0.2.8");
	unroute(hops, "192.0.2.9");
	assert_true(ctl_hops_show(hops, 1));
}

static void
test_hops_through_an_interface_that_is_down_are_kept(void **state)
{
	struct ctl_hops hops = {.dsts = NULL};

	(void)state;
	begin_kept(&hops);
	expect_hop(&hops, "10.0.0.1", "3 router 7");
	expect_hop(&hops, "10.0.0.2", "3 router 7");
	expect_hop(&hops, "192.0.2.8", "3 direct 8");
	/* It was not resolved. */
	expect_hop(&hops, "192.0.2.9", "none");
	assert_int_equal(ctl_hops_count_kept(&hops, 3), 3);
	assert_int_equal(ctl_hops_count_kept(&hops, 4), 0);
	/* Other interfaces' are the kernel's. */
	unroute(&hops, "203.0.113.1");
	assert_true(ctl_hops_show(&hops, 2));
	expect_hop(&hops, "203.0.113.1", "none");
	/* A day later, with other destinations: those that stay are kept, one that is new is
	 * not.
	 */
	set(&hops, (const char *const[]){"10.0.0.1", "10.0.0.9", NULL});
	assert_false(ctl_hops_show(&hops, 86400000));
	expect_hop(&hops, "10.0.0.1", "3 router 7");
	expect_hop(&hops, "10.0.0.9", "none");
	assert_int_equal(ctl_hops_count_kept(&hops, 3), 1);
	ctl_hops_fini(&hops);
}

static void
test_kept_hops_make_way_when_the_interface_is_up_again(void **state)
{
	struct ctl_hops hops = {.dsts = NULL};

	(void)state;
	begin_kept(&hops);
	ctl_hops_settle(&hops, 3, 1000);
	ctl_hops_settle(&hops, 3, 9000); /* it is up already */
	ctl_hops_settle(&hops, 4, 1000); /* nothing was kept there */
	assert_false(ctl_hops_show(&hops, 1000));
	/* There again, but not resolved yet; by another router; and by another interface. */
	route(&hops, "192.0.2.8", "192.0.2.8", 3);
	route(&hops, "10.0.0.1", "192.0.2.253", 3);
	answer(&hops, "192.0.2.253", 3, NUD_REACHABLE, 9);
	assert_true(ctl_hops_show(&hops, 2000));
	expect_hop(&hops, "192.0.2.8", "3 direct 8");
	expect_hop(&hops, "10.0.0.1", "3 router 9");
	expect_hop(&hops, "10.0.0.2", "3 router 7");
	assert_int_equal(ctl_hops_count_kept(&hops, 3), 2);
	assert_false(ctl_hops_show(&hops, 1000 + CTL_HOPS_SETTLE_MS - 1));
	assert_true(ctl_hops_show(&hops, 1000 + CTL_HOPS_SETTLE_MS));
	expect_hop(&hops, "192.0.2.8", "3 direct -1");
	expect_hop(&hops, "10.0.0.2", "4 router 5");
	assert_int_equal(ctl_hops_count_kept(&hops, 3), 0);
	/* From now on a route that goes is gone. */
	unroute(&hops, "10.0.0.1");
	assert_true(ctl_hops_show(&hops, 1000 + CTL_HOPS_SETTLE_MS));
	expect_hop(&hops, "10.0.0.1", "none");
	ctl_hops_fini(&hops);
}

static void
test_an_interface_that_goes_down_once_more_keeps_its_hops(void **state)
{
	struct ctl_hops hops = {.dsts = NULL};

	(void)state;
	begin_kept(&hops);
	for (unsigned int i = 0; i < 2 * LB_PORTS_MAX; i++) {
		ctl_hops_settle(&hops, 3, 1000);
		ctl_hops_keep(&hops, 3);
	}
	assert_int_equal(hops.n_kept, 1);
	assert_false(ctl_hops_show(&hops, 86400000));
	expect_hop(&hops, "10.0.0.1", "3 router 7");
	ctl_hops_settle(&hops, 3, 86400000);
	assert_true(ctl_hops_show(&hops, 86400000 + CTL_HOPS_SETTLE_MS));
	expect_hop(&hops, "10.0.0.1", "none");
	ctl_hops_fini(&hops);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_destination_is_there_once_and_in_doubt),
		cmocka_unit_test(test_hops_are_shown_when_they_are_told_to_be),
		cmocka_unit_test(test_what_stays_is_known_still),
		cmocka_unit_test(test_a_prefix_puts_its_destinations_in_doubt),
		cmocka_unit_test(test_who_does_not_answer_is_asked_less_and_less),
		cmocka_unit_test(test_hops_through_an_interface_that_is_down_are_kept),
		cmocka_unit_test(test_kept_hops_make_way_when_the_interface_is_up_again),
		cmocka_unit_test(test_an_interface_that_goes_down_once_more_keeps_its_hops),
	};

	return cmocka_run_group_tests_name("ctl_hops", tests, NULL, NULL);
}
