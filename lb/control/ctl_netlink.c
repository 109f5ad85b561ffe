/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_netlink.h"

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/*
 * What the kernel tells unasked only says which answers may have changed; the answers are
 * asked for anew in a pass: first the routes of all destinations in doubt, a batch at a time,
 * then the neighbours behind them. Hops are compared and shown at the end of a pass, so that
 * ctl_netlink_find() never sees half of a change.
 *
 * Neighbours are the exception: their notifications hold all there is to know, and are taken
 * as they come. One that comes while its neighbour is asked for beats the answer, which was
 * perhaps made before it; were it the other way round, a further notification would follow.
 */

enum {
	/* Changes within this time of the first are one pass. */
	SETTLE_MS = 5,
	/* A pass leaves this many times its own length to others before the next. */
	REST_FACTOR = 4,
	REST_MAX_MS = 500,
	TICK_MS = 1000,
	/* Longest between two questions to a neighbour that does not answer. */
	ASK_WAIT_MAX_MS = 16 * TICK_MS,
	/* The kernel answers at once, or says that it could not. */
	ANSWER_MAX_MS = 5 * TICK_MS,
	/*
	 * Questions in one message. The kernel takes a page or two for an answer, and all that
	 * belong to a message must fit into the socket's buffer (212,992 bytes by default).
	 */
	BATCH = 16,
	REQUEST_BYTES_MAX = 128,
	/* Interfaces with many virtual functions and routes with many hops are long. */
	RECEIVE_BYTES = 32768,
	EVENTS_RECEIVE_BYTES = 1 << 20,
	/* Messages taken in one turn of the loop. */
	EVENTS_BURST = 256,
	/* IFF_LOWER_UP, of a header that does not go together with net/if.h. */
	LINK_HAS_CARRIER = 1 << 16,
};

static const enum rtnetlink_groups groups[] = {RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_ROUTE,
	RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP};

/* States in which the kernel would send packets to the address it has (its NUD_VALID). */
static const unsigned int usable_states =
	NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
/* States that the kernel leaves by itself, or never. */
static const unsigned int settled_states =
	NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_DELAY;

enum stage { STAGE_IDLE, STAGE_ROUTES, STAGE_NEIGHS };

/* Whom a packet is handed to: one neighbour of ours. */
struct place {
	struct lb_addr addr;
	int if_index;
};

struct neigh {
	struct place place;
	unsigned int state; /* NUD_*; 0: the kernel has none */
	bool has_mac;       /* of a kind that Ethernet understands */
	struct lb_mac mac;
	bool is_known; /* state is what the kernel said last */
	bool is_asked; /* a question is under way and no notification has overtaken it */
	uint32_t wait_ms;
	uint64_t ask_at_ms;
};

struct dst {
	struct lb_addr addr;
	bool is_dirty; /* its route is in doubt */
	bool has_route;
	struct place next;
	size_t neigh_index; /* of next, once gather_neighs() has run; where has_route */
	/* What ctl_netlink_find() shows. */
	bool has_hop;
	struct ctl_hop hop;
};

struct ctl_netlink {
	struct ctl_loop *loop;
	ctl_hops_changed_fn fn;
	void *context;
	ctl_link_changed_fn link_fn; /* NULL: nobody asks */
	void *link_context;
	struct mnl_socket *events;
	struct mnl_socket *requests;
	struct mnl_socket *commands; /* the only one that waits */
	struct ctl_timer *tick;
	struct ctl_timer *settle; /* NULL: none is running */

	struct dst *dsts; /* in order of their addresses, each once */
	size_t n_dsts;
	struct neigh *neighs; /* in order; room for n_dsts */
	size_t n_neighs;
	struct neigh *spare_neighs; /* as much room, for the next set */

	bool needs_pass;
	bool needs_recheck;
	bool has_lost_events; /* and what is still queued is older than what was lost */
	bool needs_reread;

	enum stage stage;
	size_t cursor;
	bool has_new_routes; /* neighs is not yet what is behind dsts */
	uint64_t pass_began_ms;
	uint64_t pass_ms;
	uint64_t asked_at_ms;

	/* The batch under way: question i has sequence number first_seq + i. */
	uint32_t first_seq;
	uint32_t next_seq;
	size_t asked[BATCH];
	bool is_answered[BATCH];
	size_t n_asked;
	size_t n_waiting;

	size_t n_out_bytes;
	_Alignas(struct nlmsghdr) uint8_t out[2 * BATCH * REQUEST_BYTES_MAX];
	_Alignas(struct nlmsghdr) uint8_t in[RECEIVE_BYTES];
	/* Of commands, which may be run while what is in `in` is being taken. */
	_Alignas(struct nlmsghdr) uint8_t result[RECEIVE_BYTES];
};

static_assert(sizeof(struct nlmsghdr) + sizeof(struct rtmsg) + 2 * sizeof(struct nlattr) +
			      LB_ADDR_BYTES <
		      REQUEST_BYTES_MAX,
	"a question fits into its share");

static int
compare_places(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;

	if (x->if_index != y->if_index)
		return x->if_index < y->if_index ? -1 : 1;
	return memcmp(&x->addr, &y->addr, sizeof(x->addr));
}

/* Both have what they are ordered by as their first member. */
static_assert(offsetof(struct neigh, place) == 0, "a neighbour is ordered by its place");
static_assert(offsetof(struct dst, addr) == 0, "a destination is ordered by its address");

static int
compare_addrs(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct lb_addr));
}

static struct neigh *
find_neigh(struct neigh neighs[], size_t n, const struct place *place)
{
	return n == 0 ? NULL : bsearch(place, neighs, n, sizeof(*neighs), compare_places);
}

static struct dst *
find_dst(struct dst dsts[], size_t n, const struct lb_addr *addr)
{
	return n == 0 ? NULL : bsearch(addr, dsts, n, sizeof(*dsts), compare_addrs);
}

/* Sort and keep each once. @return how many are left. */
static size_t
sort_unique(void *base, size_t n, size_t item_bytes, int (*compare)(const void *, const void *))
{
	uint8_t *items = base;
	size_t n_kept = 0;

	if (n == 0)
		return 0;
	qsort(base, n, item_bytes, compare);
	for (size_t i = 1; i < n; i++) {
		if (compare(items + n_kept * item_bytes, items + i * item_bytes) == 0)
			continue;
		n_kept++;
		memmove(items + n_kept * item_bytes, items + i * item_bytes, item_bytes);
	}
	return n_kept + 1;
}

/*
 * Addresses in messages
 */

static unsigned char
family_of(const struct lb_addr *addr)
{
	return lb_addr_is_v4(addr) ? AF_INET : AF_INET6;
}

static void
put_addr(struct nlmsghdr *msg, uint16_t type, const struct lb_addr *addr)
{
	if (lb_addr_is_v4(addr))
		mnl_attr_put(msg, type, 4, addr->bytes + LB_ADDR_BYTES - 4);
	else
		mnl_attr_put(msg, type, LB_ADDR_BYTES, addr->bytes);
}

static bool
read_addr(int family, const uint8_t *bytes, size_t n_bytes, struct lb_addr *out)
{
	if (family == AF_INET && n_bytes == 4) {
		*out = lb_addr_from_v4(bytes);
		return true;
	}
	if (family == AF_INET6 && n_bytes == LB_ADDR_BYTES) {
		memcpy(out->bytes, bytes, LB_ADDR_BYTES);
		return true;
	}
	return false;
}

static bool
read_addr_attr(int family, const struct nlattr *attr, struct lb_addr *out)
{
	return read_addr(family, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr),
		out);
}

/* libmnl's own mnl_attr_for_each() drops const. */
static const struct nlattr *
attr_at(const struct nlmsghdr *msg, const void *at)
{
	const uint8_t *end = mnl_nlmsg_get_payload_tail(msg);

	return mnl_attr_ok(at, (int)(end - (const uint8_t *)at)) ? at : NULL;
}

/* NULL after the last. */
static const struct nlattr *
first_attr(const struct nlmsghdr *msg, size_t header_bytes)
{
	return attr_at(msg, mnl_nlmsg_get_payload_offset(msg, header_bytes));
}

static const struct nlattr *
next_attr(const struct nlmsghdr *msg, const struct nlattr *attr)
{
	return attr_at(msg, mnl_attr_next(attr));
}

/* A gateway of the other family (RFC 8950). */
static bool
read_via(const struct nlattr *attr, struct lb_addr *out)
{
	const uint8_t *bytes = mnl_attr_get_payload(attr);
	const size_t n_bytes = mnl_attr_get_payload_len(attr);
	struct rtvia via;

	if (n_bytes < sizeof(via))
		return false;
	memcpy(&via, bytes, sizeof(via));
	return read_addr(via.rtvia_family, bytes + sizeof(via), n_bytes - sizeof(via), out);
}

/*
 * A pass
 */

static void run_settle(void *context);

/* A pass is needed. Without memory for a timer the next tick begins it. */
static void
need_pass(struct ctl_netlink *netlink, uint64_t delay_ms)
{
	netlink->needs_pass = true;
	if (netlink->settle == NULL && netlink->stage == STAGE_IDLE)
		ctl_loop_add_timer(netlink->loop, delay_ms, 0, run_settle, netlink,
			&netlink->settle);
}

static void
end_settle(struct ctl_netlink *netlink)
{
	if (netlink->settle != NULL)
		ctl_loop_remove_timer(netlink->loop, netlink->settle);
	netlink->settle = NULL;
}

static void
need_pass_soon(struct ctl_netlink *netlink)
{
	const uint64_t rest_ms = REST_FACTOR * netlink->pass_ms;

	need_pass(netlink, SETTLE_MS + (rest_ms < REST_MAX_MS ? rest_ms : REST_MAX_MS));
}

/* Any route may have changed, and whoever did not answer may do so now. */
static void
doubt_all(struct ctl_netlink *netlink)
{
	for (size_t i = 0; i < netlink->n_dsts; i++)
		netlink->dsts[i].is_dirty = true;
	for (size_t i = 0; i < netlink->n_neighs; i++) {
		netlink->neighs[i].ask_at_ms = 0;
		netlink->neighs[i].wait_ms = TICK_MS;
	}
}

static struct nlmsghdr *
begin_request(struct ctl_netlink *netlink, uint16_t type, uint16_t flags, uint32_t seq)
{
	struct nlmsghdr *msg = mnl_nlmsg_put_header(netlink->out + netlink->n_out_bytes);

	msg->nlmsg_type = type;
	msg->nlmsg_flags = NLM_F_REQUEST | flags;
	msg->nlmsg_seq = seq;
	return msg;
}

static void
end_request(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	netlink->n_out_bytes += MNL_ALIGN(msg->nlmsg_len);
}

static void
begin_batch(struct ctl_netlink *netlink)
{
	netlink->n_out_bytes = 0;
	netlink->first_seq = netlink->next_seq;
	netlink->n_asked = 0;
	netlink->n_waiting = 0;
}

/* @return the question's sequence number. */
static uint32_t
note_question(struct ctl_netlink *netlink, size_t index)
{
	netlink->asked[netlink->n_asked] = index;
	netlink->is_answered[netlink->n_asked] = false;
	netlink->n_asked++;
	netlink->n_waiting++;
	return netlink->next_seq++;
}

/* Give the pass up; what has no answer is asked again in the next. */
static void
abandon_pass(struct ctl_netlink *netlink)
{
	for (size_t i = 0; i < netlink->n_asked; i++) {
		if (netlink->is_answered[i])
			continue;
		if (netlink->stage == STAGE_ROUTES)
			netlink->dsts[netlink->asked[i]].is_dirty = true;
		else if (netlink->stage == STAGE_NEIGHS)
			netlink->neighs[netlink->asked[i]].is_known = false;
	}
	begin_batch(netlink);
	netlink->stage = STAGE_IDLE;
	netlink->needs_pass = true;
}

/* @return whether answers are under way. */
static bool
send_batch(struct ctl_netlink *netlink)
{
	if (netlink->n_asked == 0)
		return false;
	netlink->asked_at_ms = ctl_loop_now_ms();
	if (mnl_socket_sendto(netlink->requests, netlink->out, netlink->n_out_bytes) < 0)
		abandon_pass(netlink); /* no memory in the kernel: the next tick tries again */
	return true;
}

/*
 * Without a table or an output interface, so that the kernel answers as for a packet of ours:
 * rules count, and of several hops it picks one by a hash of the destination.
 */
static void
put_route_request(struct ctl_netlink *netlink, size_t index)
{
	const struct lb_addr *addr = &netlink->dsts[index].addr;
	struct nlmsghdr *msg =
		begin_request(netlink, RTM_GETROUTE, 0, note_question(netlink, index));
	struct rtmsg *route = mnl_nlmsg_put_extra_header(msg, sizeof(*route));

	route->rtm_family = family_of(addr);
	route->rtm_dst_len = lb_addr_is_v4(addr) ? 32 : 128;
	put_addr(msg, RTA_DST, addr);
	end_request(netlink, msg);
}

static bool
ask_routes(struct ctl_netlink *netlink)
{
	begin_batch(netlink);
	for (; netlink->cursor < netlink->n_dsts && netlink->n_asked < BATCH;
		netlink->cursor++) {
		struct dst *dst = &netlink->dsts[netlink->cursor];

		if (!dst->is_dirty)
			continue;
		dst->is_dirty = false;
		netlink->has_new_routes = true;
		put_route_request(netlink, netlink->cursor);
	}
	return send_batch(netlink);
}

/*
 * The neighbours behind dsts, with what was known of them.
 *
 * @param out  Room for n_dsts. @return how many they are.
 */
static size_t
gather_neighs(struct dst dsts[], size_t n_dsts, struct neigh old[], size_t n_old,
	struct neigh out[])
{
	size_t n = 0;

	for (size_t i = 0; i < n_dsts; i++)
		if (dsts[i].has_route)
			out[n++] = (struct neigh){
				.place = dsts[i].next,
				.wait_ms = TICK_MS,
			};
	n = sort_unique(out, n, sizeof(*out), compare_places);
	for (size_t i = 0; i < n; i++) {
		const struct neigh *before = find_neigh(old, n_old, &out[i].place);

		if (before != NULL)
			out[i] = *before;
	}
	for (size_t i = 0; i < n_dsts; i++)
		if (dsts[i].has_route)
			dsts[i].neigh_index = (size_t)(find_neigh(out, n, &dsts[i].next) - out);
	return n;
}

static void
regather_neighs(struct ctl_netlink *netlink)
{
	struct neigh *old = netlink->neighs;

	netlink->has_new_routes = false;
	netlink->n_neighs = gather_neighs(netlink->dsts, netlink->n_dsts, old,
		netlink->n_neighs, netlink->spare_neighs);
	netlink->neighs = netlink->spare_neighs;
	netlink->spare_neighs = old;
}

static bool
is_due(const struct neigh *neigh, uint64_t now_ms)
{
	if (!neigh->is_known)
		return true;
	return (neigh->state & settled_states) == 0 && neigh->ask_at_ms <= now_ms;
}

/*
 * Let the kernel find the neighbour out, as if a packet had to go there. This would make a
 * permanent entry an ordinary one, so an entry is only touched where it is known to be none;
 * of one that is not known, only its absence is mended.
 */
static void
put_use_request(struct ctl_netlink *netlink, const struct neigh *neigh, uint32_t seq)
{
	const uint16_t flags = neigh->is_known && neigh->state != NUD_NONE ? 0 : NLM_F_EXCL;
	struct nlmsghdr *msg =
		begin_request(netlink, RTM_NEWNEIGH, (uint16_t)(NLM_F_CREATE | flags), seq);
	struct ndmsg *header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));

	header->ndm_family = family_of(&neigh->place.addr);
	header->ndm_ifindex = neigh->place.if_index;
	header->ndm_state = NUD_NONE;
	header->ndm_flags = NTF_USE;
	put_addr(msg, NDA_DST, &neigh->place.addr);
	end_request(netlink, msg);
}

static void
put_neigh_request(struct ctl_netlink *netlink, const struct neigh *neigh, uint32_t seq)
{
	struct nlmsghdr *msg = begin_request(netlink, RTM_GETNEIGH, 0, seq);
	struct ndmsg *header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));

	header->ndm_family = family_of(&neigh->place.addr);
	header->ndm_ifindex = neigh->place.if_index;
	put_addr(msg, NDA_DST, &neigh->place.addr);
	end_request(netlink, msg);
}

/* The answer comes after the use: interfaces without ARP need none, and send no notification.
 */
static void
ask_neigh(struct ctl_netlink *netlink, size_t index, uint64_t now_ms)
{
	struct neigh *neigh = &netlink->neighs[index];
	const uint32_t seq = note_question(netlink, index);

	put_use_request(netlink, neigh, seq);
	put_neigh_request(netlink, neigh, seq);
	neigh->is_asked = true;
	neigh->ask_at_ms = now_ms + neigh->wait_ms;
	neigh->wait_ms =
		neigh->wait_ms * 2 < ASK_WAIT_MAX_MS ? neigh->wait_ms * 2 : ASK_WAIT_MAX_MS;
}

static bool
ask_neighs(struct ctl_netlink *netlink)
{
	const uint64_t now_ms = ctl_loop_now_ms();

	begin_batch(netlink);
	for (; netlink->cursor < netlink->n_neighs && netlink->n_asked < BATCH;
		netlink->cursor++)
		if (is_due(&netlink->neighs[netlink->cursor], now_ms))
			ask_neigh(netlink, netlink->cursor, now_ms);
	return send_batch(netlink);
}

static bool
is_same_hop(const struct ctl_hop *a, const struct ctl_hop *b)
{
	return a->if_index == b->if_index && a->is_resolved == b->is_resolved &&
	       a->is_gateway == b->is_gateway && memcmp(&a->mac, &b->mac, sizeof(a->mac)) == 0;
}

/* @return whether anything is other than it was shown. */
static bool
show_hop(const struct ctl_netlink *netlink, struct dst *dst)
{
	const bool had_hop = dst->has_hop;
	const struct ctl_hop before = dst->hop;

	dst->has_hop = dst->has_route;
	dst->hop = (struct ctl_hop){0};
	if (dst->has_route) {
		const struct neigh *neigh = &netlink->neighs[dst->neigh_index];

		dst->hop.if_index = dst->next.if_index;
		dst->hop.is_gateway = !lb_addr_equal(&dst->next.addr, &dst->addr);
		dst->hop.is_resolved = neigh->has_mac && (neigh->state & usable_states) != 0;
		if (dst->hop.is_resolved)
			dst->hop.mac = neigh->mac;
	}
	return had_hop != dst->has_hop || !is_same_hop(&before, &dst->hop);
}

/* The callback may close us: nothing is touched after it, here and in all that lead here. */
static void
finish_pass(struct ctl_netlink *netlink)
{
	bool is_changed = false;

	netlink->stage = STAGE_IDLE;
	netlink->pass_ms = ctl_loop_now_ms() - netlink->pass_began_ms;
	for (size_t i = 0; i < netlink->n_dsts; i++)
		if (show_hop(netlink, &netlink->dsts[i]))
			is_changed = true;
	if (netlink->needs_pass)
		need_pass_soon(netlink);
	if (is_changed)
		netlink->fn(netlink->context);
}

/* To the next batch of questions, or the end of the pass. */
static void
go_on(struct ctl_netlink *netlink)
{
	if (netlink->stage == STAGE_ROUTES) {
		if (ask_routes(netlink))
			return;
		if (netlink->has_new_routes)
			regather_neighs(netlink);
		netlink->stage = STAGE_NEIGHS;
		netlink->cursor = 0;
	}
	if (netlink->stage == STAGE_NEIGHS && !ask_neighs(netlink))
		finish_pass(netlink);
}

static void
begin_pass(struct ctl_netlink *netlink)
{
	netlink->needs_pass = false;
	if (netlink->needs_reread) {
		netlink->needs_reread = false;
		doubt_all(netlink);
		for (size_t i = 0; i < netlink->n_neighs; i++)
			netlink->neighs[i].is_known = false;
	}
	netlink->stage = STAGE_ROUTES;
	netlink->cursor = 0;
	netlink->pass_began_ms = ctl_loop_now_ms();
	go_on(netlink);
}

static void
run_settle(void *context)
{
	struct ctl_netlink *netlink = context;

	netlink->settle = NULL;
	if (netlink->stage == STAGE_IDLE)
		begin_pass(netlink);
}

static void
run_tick(void *context)
{
	struct ctl_netlink *netlink = context;

	if (netlink->needs_recheck) {
		netlink->needs_recheck = false;
		doubt_all(netlink);
	}
	if (netlink->stage != STAGE_IDLE &&
		ctl_loop_now_ms() - netlink->asked_at_ms > ANSWER_MAX_MS)
		abandon_pass(netlink);
	if (netlink->stage == STAGE_IDLE && netlink->settle == NULL)
		begin_pass(netlink);
}

/*
 * Answers
 */

/*
 * A destination that is local, broadcast, multicast or refused counts as without a route: it
 * has no neighbour whose MAC address a frame could bear.
 */
static void
take_route(struct dst *dst, const struct nlmsghdr *msg)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;
	bool is_readable = true;

	dst->has_route = false;
	if (msg->nlmsg_type != RTM_NEWROUTE ||
		mnl_nlmsg_get_payload_len(msg) < sizeof(*route) ||
		route->rtm_type != RTN_UNICAST)
		return;
	dst->next = (struct place){.addr = dst->addr};
	for (attr = first_attr(msg, sizeof(*route)); attr != NULL;
		attr = next_attr(msg, attr)) {
		const uint16_t type = mnl_attr_get_type(attr);

		if (type == RTA_OIF && mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
			dst->next.if_index = (int)mnl_attr_get_u32(attr);
		else if (type == RTA_GATEWAY)
			is_readable &= read_addr_attr(route->rtm_family, attr, &dst->next.addr);
		else if (type == RTA_VIA)
			is_readable &= read_via(attr, &dst->next.addr);
	}
	dst->has_route = is_readable && dst->next.if_index > 0;
}

/* @param msg  An RTM_NEWNEIGH or RTM_DELNEIGH that is long enough for its header. */
static void
take_neigh(struct neigh *neigh, const struct nlmsghdr *msg)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;

	neigh->is_known = true;
	neigh->is_asked = false;
	neigh->has_mac = false;
	neigh->state = msg->nlmsg_type == RTM_NEWNEIGH ? header->ndm_state : NUD_NONE;
	if (msg->nlmsg_type != RTM_NEWNEIGH)
		return;
	for (attr = first_attr(msg, sizeof(*header)); attr != NULL;
		attr = next_attr(msg, attr)) {
		if (mnl_attr_get_type(attr) != NDA_LLADDR ||
			mnl_attr_get_payload_len(attr) != sizeof(neigh->mac))
			continue;
		memcpy(&neigh->mac, mnl_attr_get_payload(attr), sizeof(neigh->mac));
		neigh->has_mac = true;
	}
	if ((neigh->state & usable_states) != 0)
		neigh->wait_ms = TICK_MS;
}

static void
take_neigh_answer(struct neigh *neigh, const struct nlmsghdr *msg)
{
	if (!neigh->is_asked)
		return;
	if (msg->nlmsg_type == RTM_NEWNEIGH &&
		mnl_nlmsg_get_payload_len(msg) >= sizeof(struct ndmsg)) {
		take_neigh(neigh, msg);
		return;
	}
	neigh->is_known = true;
	neigh->is_asked = false;
	neigh->state = NUD_NONE;
	neigh->has_mac = false;
}

/* The answer to a use of a neighbour: only ever an error, and the answer after it tells all. */
static bool
is_use_error(const struct nlmsghdr *msg)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(msg);

	return msg->nlmsg_type == NLMSG_ERROR &&
	       mnl_nlmsg_get_payload_len(msg) >= sizeof(*error) &&
	       error->msg.nlmsg_type == RTM_NEWNEIGH;
}

static void
take_answer(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	const uint32_t i = msg->nlmsg_seq - netlink->first_seq;

	if (i >= netlink->n_asked || netlink->is_answered[i] || is_use_error(msg))
		return;
	netlink->is_answered[i] = true;
	netlink->n_waiting--;
	if (netlink->stage == STAGE_ROUTES)
		take_route(&netlink->dsts[netlink->asked[i]], msg);
	else
		take_neigh_answer(&netlink->neighs[netlink->asked[i]], msg);
}

/* @return 0, or the -errno for which nothing could be read. */
static int
receive(struct ctl_netlink *netlink, struct mnl_socket *socket,
	void (*take)(struct ctl_netlink *netlink, const struct nlmsghdr *msg))
{
	const ssize_t n = mnl_socket_recvfrom(socket, netlink->in, sizeof(netlink->in));
	const struct nlmsghdr *msg = (const struct nlmsghdr *)netlink->in;
	int n_left = (int)n;

	if (n < 0)
		return -errno;
	for (; mnl_nlmsg_ok(msg, n_left); msg = mnl_nlmsg_next(msg, &n_left))
		take(netlink, msg);
	return 0;
}

static void
run_requests(void *context, uint32_t events)
{
	struct ctl_netlink *netlink = context;
	int rc = 0;

	(void)events;
	/* At least once: late answers to a pass that was given up have to be read as well. */
	do
		rc = receive(netlink, netlink->requests, take_answer);
	while (rc == 0 && netlink->n_waiting > 0);
	if (rc == -EAGAIN || rc == -EINTR)
		return;
	/* Answers were lost. */
	if (rc != 0 && netlink->stage != STAGE_IDLE)
		abandon_pass(netlink);
	else if (rc == 0 && netlink->stage != STAGE_IDLE)
		go_on(netlink);
}

/*
 * Notifications
 */

/* A route to a prefix changes nothing for destinations outside of it. */
static void
doubt_prefix(struct ctl_netlink *netlink, const struct lb_addr *addr, unsigned int n_bits)
{
	const struct lb_addr first = lb_addr_mask(addr, n_bits);
	size_t low = 0;
	size_t high = netlink->n_dsts;
	bool has_any = false;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_addrs(&netlink->dsts[middle].addr, &first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < netlink->n_dsts; low++) {
		const struct lb_addr masked = lb_addr_mask(&netlink->dsts[low].addr, n_bits);

		if (!lb_addr_equal(&masked, &first))
			break;
		netlink->dsts[low].is_dirty = true;
		has_any = true;
	}
	if (has_any)
		need_pass_soon(netlink);
}

static void
take_route_event(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	static const uint8_t any_v4[4];
	const struct rtmsg *route = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;
	struct lb_addr addr = {0};
	unsigned int n_bits;

	if (mnl_nlmsg_get_payload_len(msg) < sizeof(*route))
		return;
	n_bits = route->rtm_dst_len;
	if (route->rtm_family == AF_INET) {
		addr = lb_addr_from_v4(any_v4);
		n_bits += 96;
	}
	for (attr = first_attr(msg, sizeof(*route)); attr != NULL; attr = next_attr(msg, attr))
		if (mnl_attr_get_type(attr) == RTA_DST &&
			!read_addr_attr(route->rtm_family, attr, &addr))
			return;
	if (n_bits <= 8 * LB_ADDR_BYTES)
		doubt_prefix(netlink, &addr, n_bits);
}

static void
take_neigh_event(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;
	struct place place = {0};
	struct neigh *neigh;
	bool has_addr = false;

	/* Bridges tell of theirs in the same group, with addresses of another family. */
	if (mnl_nlmsg_get_payload_len(msg) < sizeof(*header) ||
		(header->ndm_flags & NTF_PROXY) != 0)
		return;
	for (attr = first_attr(msg, sizeof(*header)); attr != NULL; attr = next_attr(msg, attr))
		if (mnl_attr_get_type(attr) == NDA_DST)
			has_addr = read_addr_attr(header->ndm_family, attr, &place.addr);
	place.if_index = header->ndm_ifindex;
	neigh = has_addr ? find_neigh(netlink->neighs, netlink->n_neighs, &place) : NULL;
	if (neigh == NULL)
		return;
	take_neigh(neigh, msg);
	need_pass_soon(netlink);
}

/* @return whether the message tells of a link. */
static bool
read_link(const struct nlmsghdr *msg, struct ctl_link *out)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;

	/* A bridge tells in its own family that it has lost a link, which is still there. */
	if (mnl_nlmsg_get_payload_len(msg) < sizeof(*header) || header->ifi_family != AF_UNSPEC)
		return false;
	*out = (struct ctl_link){.if_index = header->ifi_index,
		.is_there = msg->nlmsg_type == RTM_NEWLINK};
	out->is_up = out->is_there && (header->ifi_flags & IFF_UP) != 0 &&
		     (header->ifi_flags & LINK_HAS_CARRIER) != 0;
	for (attr = first_attr(msg, sizeof(*header)); attr != NULL; attr = next_attr(msg, attr))
		if (mnl_attr_get_type(attr) == IFLA_IFNAME)
			(void)snprintf(out->name, sizeof(out->name), "%.*s",
				(int)mnl_attr_get_payload_len(attr),
				(const char *)mnl_attr_get_payload(attr));
	return true;
}

static void
take_link_event(const struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	struct ctl_link link;

	if (netlink->link_fn != NULL && read_link(msg, &link))
		netlink->link_fn(netlink->link_context, &link);
}

static void
take_event(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	switch (msg->nlmsg_type) {
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		take_route_event(netlink, msg);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		take_neigh_event(netlink, msg);
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK:
		/*
		 * The kernel tells of a link before it takes the routes over it away, and of
		 * those IPv4 routes not at all: look once more when it is surely done.
		 */
		netlink->needs_recheck = true;
		doubt_all(netlink);
		need_pass_soon(netlink);
		take_link_event(netlink, msg);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		doubt_all(netlink);
		need_pass_soon(netlink);
		break;
	default:
		break;
	}
}

static void
run_events(void *context, uint32_t events)
{
	struct ctl_netlink *netlink = context;

	(void)events;
	for (unsigned int i = 0; i < EVENTS_BURST; i++) {
		const int rc = receive(netlink, netlink->events, take_event);

		if (rc == -EAGAIN)
			break;
		/* ENOBUFS: the queue ran over; ENOSPC: one was longer than our buffer. */
		if (rc != 0 && rc != -EINTR)
			netlink->has_lost_events = true;
		if (i + 1 == EVENTS_BURST)
			return;
	}
	/*
	 * Only now that the queue is empty: what was in it is older than what was lost, and
	 * must not overtake the answers.
	 */
	if (netlink->has_lost_events) {
		netlink->has_lost_events = false;
		netlink->needs_reread = true;
		need_pass_soon(netlink);
		if (netlink->link_fn != NULL)
			netlink->link_fn(netlink->link_context, NULL);
	}
}

/*
 * Opening and closing
 */

static int
open_socket(int flags, struct mnl_socket **out)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, flags | SOCK_CLOEXEC);

	if (socket == NULL)
		return -errno;
	*out = socket;
	return mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
}

static int
join_groups(struct mnl_socket *socket)
{
	for (size_t i = 0; i < LB_N_ELEMENTS(groups); i++) {
		int group = (int)groups[i];

		if (mnl_socket_setsockopt(socket, NETLINK_ADD_MEMBERSHIP, &group,
			    sizeof(group)) < 0)
			return -errno;
	}
	return 0;
}

/* More room than the system's limit takes a privilege; with less, the queue runs over sooner.
 */
static void
widen_queue(const struct mnl_socket *socket)
{
	const int n_bytes = EVENTS_RECEIVE_BYTES;
	const int fd = mnl_socket_get_fd(socket);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &n_bytes, sizeof(n_bytes)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n_bytes, sizeof(n_bytes));
}

static int
open_sockets(struct ctl_netlink *netlink)
{
	int rc = open_socket(SOCK_NONBLOCK, &netlink->events);

	if (rc == 0)
		rc = open_socket(SOCK_NONBLOCK, &netlink->requests);
	if (rc == 0)
		rc = open_socket(0, &netlink->commands);
	if (rc != 0)
		return rc;
	widen_queue(netlink->events);
	return join_groups(netlink->events);
}

static void
close_sockets(struct ctl_netlink *netlink)
{
	struct mnl_socket *const sockets[] = {netlink->events, netlink->requests,
		netlink->commands};

	for (size_t i = 0; i < LB_N_ELEMENTS(sockets); i++)
		if (sockets[i] != NULL)
			mnl_socket_close(sockets[i]);
}

static int
join_loop(struct ctl_netlink *netlink)
{
	struct ctl_loop *loop = netlink->loop;
	int rc = ctl_loop_add_fd(loop, mnl_socket_get_fd(netlink->events), EPOLLIN, run_events,
		netlink);

	if (rc != 0)
		return rc;
	rc = ctl_loop_add_fd(loop, mnl_socket_get_fd(netlink->requests), EPOLLIN, run_requests,
		netlink);
	if (rc != 0)
		goto events;
	rc = ctl_loop_add_timer(loop, TICK_MS, TICK_MS, run_tick, netlink, &netlink->tick);
	if (rc != 0)
		goto requests;
	return 0;

requests:
	ctl_loop_remove_fd(loop, mnl_socket_get_fd(netlink->requests));
events:
	ctl_loop_remove_fd(loop, mnl_socket_get_fd(netlink->events));
	return rc;
}

int
ctl_netlink_open(struct ctl_loop *loop, ctl_hops_changed_fn fn, void *context,
	struct ctl_netlink **out)
{
	struct ctl_netlink *netlink = calloc(1, sizeof(*netlink));
	int rc;

	if (netlink == NULL)
		return -ENOMEM;
	netlink->loop = loop;
	netlink->fn = fn;
	netlink->context = context;
	rc = open_sockets(netlink);
	if (rc == 0)
		rc = join_loop(netlink);
	if (rc != 0) {
		close_sockets(netlink);
		free(netlink);
		return rc;
	}
	*out = netlink;
	return 0;
}

static void
free_sets(struct ctl_netlink *netlink)
{
	free(netlink->dsts);
	free(netlink->neighs);
	free(netlink->spare_neighs);
}

void
ctl_netlink_close(struct ctl_netlink *netlink)
{
	if (netlink == NULL)
		return;
	end_settle(netlink);
	ctl_loop_remove_timer(netlink->loop, netlink->tick);
	ctl_loop_remove_fd(netlink->loop, mnl_socket_get_fd(netlink->requests));
	ctl_loop_remove_fd(netlink->loop, mnl_socket_get_fd(netlink->events));
	close_sockets(netlink);
	free_sets(netlink);
	free(netlink);
}

/*
 * Destinations
 */

int
ctl_netlink_watch(struct ctl_netlink *netlink, const struct lb_addr dsts[], size_t n)
{
	const size_t n_room = n != 0 ? n : 1;
	struct dst *new_dsts = calloc(n_room, sizeof(*new_dsts));
	struct neigh *neighs = calloc(n_room, sizeof(*neighs));
	struct neigh *spare_neighs = calloc(n_room, sizeof(*spare_neighs));

	if (new_dsts == NULL || neighs == NULL || spare_neighs == NULL) {
		free(new_dsts);
		free(neighs);
		free(spare_neighs);
		return -ENOMEM;
	}
	/* From here on nothing fails. */
	abandon_pass(netlink);
	for (size_t i = 0; i < n; i++) {
		new_dsts[i].addr = dsts[i];
		new_dsts[i].is_dirty = true;
	}
	n = sort_unique(new_dsts, n, sizeof(*new_dsts), compare_addrs);
	for (size_t i = 0; i < n; i++) {
		const struct dst *before =
			find_dst(netlink->dsts, netlink->n_dsts, &new_dsts[i].addr);

		if (before != NULL)
			new_dsts[i] = *before;
	}
	netlink->n_neighs =
		gather_neighs(new_dsts, n, netlink->neighs, netlink->n_neighs, neighs);
	free_sets(netlink);
	netlink->dsts = new_dsts;
	netlink->n_dsts = n;
	netlink->neighs = neighs;
	netlink->spare_neighs = spare_neighs;
	netlink->has_new_routes = false;
	end_settle(netlink);
	need_pass(netlink, 0);
	return 0;
}

bool
ctl_netlink_find(const struct ctl_netlink *netlink, const struct lb_addr *dst,
	struct ctl_hop *out)
{
	const struct dst *found = find_dst(netlink->dsts, netlink->n_dsts, dst);

	if (found == NULL || !found->has_hop)
		return false;
	*out = found->hop;
	return true;
}

/*
 * Links and addresses
 */

/* @return what the kernel says to the one request; take, if there is one, sees its answer. */
static int
run_command(struct ctl_netlink *netlink, struct nlmsghdr *msg, mnl_cb_t take, void *out)
{
	struct mnl_socket *socket = netlink->commands;
	int rc = MNL_CB_OK;

	if (mnl_socket_sendto(socket, msg, msg->nlmsg_len) < 0)
		return -errno;
	while (rc > MNL_CB_STOP) {
		const ssize_t n =
			mnl_socket_recvfrom(socket, netlink->result, sizeof(netlink->result));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		rc = mnl_cb_run(netlink->result, (size_t)n, msg->nlmsg_seq,
			mnl_socket_get_portid(socket), take, out);
	}
	return rc == MNL_CB_ERROR ? -errno : 0;
}

void
ctl_netlink_watch_links(struct ctl_netlink *netlink, ctl_link_changed_fn fn, void *context)
{
	netlink->link_fn = fn;
	netlink->link_context = context;
}

static int
take_link_answer(const struct nlmsghdr *msg, void *out)
{
	(void)read_link(msg, out);
	return MNL_CB_STOP;
}

int
ctl_netlink_read_link(struct ctl_netlink *netlink, int if_index, struct ctl_link *out)
{
	struct nlmsghdr *msg;
	struct ifinfomsg *header;
	struct ctl_link link = {0};
	int rc;
	_Alignas(struct nlmsghdr) uint8_t bytes[REQUEST_BYTES_MAX];

	msg = mnl_nlmsg_put_header(bytes);
	msg->nlmsg_type = RTM_GETLINK;
	msg->nlmsg_flags = NLM_F_REQUEST;
	msg->nlmsg_seq = netlink->next_seq++;
	header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));
	header->ifi_family = AF_UNSPEC;
	header->ifi_index = if_index;
	rc = run_command(netlink, msg, take_link_answer, &link);
	if (rc == 0)
		*out = link;
	return rc;
}

/* flags: of those that say what the link is to be, IFF_UP or none. */
static int
set_link(struct ctl_netlink *netlink, int if_index, unsigned int mtu, unsigned int flags)
{
	struct nlmsghdr *msg;
	struct ifinfomsg *link;
	_Alignas(struct nlmsghdr) uint8_t bytes[REQUEST_BYTES_MAX];

	msg = mnl_nlmsg_put_header(bytes);
	msg->nlmsg_type = RTM_NEWLINK;
	msg->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	msg->nlmsg_seq = netlink->next_seq++;
	link = mnl_nlmsg_put_extra_header(msg, sizeof(*link));
	link->ifi_family = AF_UNSPEC;
	link->ifi_index = if_index;
	link->ifi_flags = flags;
	link->ifi_change = flags;
	mnl_attr_put_u32(msg, IFLA_MTU, mtu);
	return run_command(netlink, msg, NULL, NULL);
}

int
ctl_netlink_set_up(struct ctl_netlink *netlink, int if_index, unsigned int mtu)
{
	return set_link(netlink, if_index, mtu, IFF_UP);
}

int
ctl_netlink_set_mtu(struct ctl_netlink *netlink, int if_index, unsigned int mtu)
{
	return set_link(netlink, if_index, mtu, 0);
}

int
ctl_netlink_add_address(struct ctl_netlink *netlink, int if_index,
	const struct lb_prefix *address)
{
	const bool is_v4 = lb_addr_is_v4(&address->addr);
	struct nlmsghdr *msg;
	struct ifaddrmsg *header;
	int rc;
	_Alignas(struct nlmsghdr) uint8_t bytes[REQUEST_BYTES_MAX];

	msg = mnl_nlmsg_put_header(bytes);
	msg->nlmsg_type = RTM_NEWADDR;
	msg->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
	msg->nlmsg_seq = netlink->next_seq++;
	header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));
	header->ifa_family = family_of(&address->addr);
	header->ifa_prefixlen = (uint8_t)(is_v4 ? address->n_bits - 96 : address->n_bits);
	header->ifa_index = (unsigned int)if_index;
	put_addr(msg, IFA_LOCAL, &address->addr);
	put_addr(msg, IFA_ADDRESS, &address->addr);
	rc = run_command(netlink, msg, NULL, NULL);
	return rc == -EEXIST ? 0 : rc;
}
