/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_netlink_parts.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
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
	/* The kernel answers at once, or says that it could not. */
	ANSWER_MAX_MS = 5 * TICK_MS,
	EVENTS_RECEIVE_BYTES = 1 << 20,
	/* Messages taken in one turn of the loop. */
	EVENTS_BURST = 256,
};

static const enum rtnetlink_groups groups[] = {RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_ROUTE,
	RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP};

/*
 * A pass
 */

static void run_settle(void *context);
static void run_events(void *context, uint32_t events);

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

/* The message lies behind those of the batch. */
static void
end_request(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	netlink->n_out_bytes += MNL_ALIGN(msg->nlmsg_len);
}

static uint8_t *
next_request(struct ctl_netlink *netlink)
{
	return netlink->out + netlink->n_out_bytes;
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
			netlink->hops.dsts[netlink->asked[i]].is_dirty = true;
		else if (netlink->stage == STAGE_NEIGHS)
			netlink->hops.neighs[netlink->asked[i]].is_known = false;
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

static bool
ask_routes(struct ctl_netlink *netlink)
{
	begin_batch(netlink);
	for (; netlink->cursor < netlink->hops.n_dsts && netlink->n_asked < CTL_NETLINK_BATCH;
		netlink->cursor++) {
		struct ctl_dst *dst = &netlink->hops.dsts[netlink->cursor];

		if (!dst->is_dirty)
			continue;
		dst->is_dirty = false;
		netlink->has_new_routes = true;
		end_request(netlink, ctl_msg_ask_route(next_request(netlink), &dst->addr,
					     note_question(netlink, netlink->cursor)));
	}
	return send_batch(netlink);
}

/* The answer comes after the use: interfaces without ARP need none, and send no notification.
 */
static void
ask_neigh(struct ctl_netlink *netlink, size_t index, uint64_t now_ms)
{
	struct ctl_neigh *neigh = &netlink->hops.neighs[index];
	const uint32_t seq = note_question(netlink, index);

	end_request(netlink, ctl_msg_use_neigh(next_request(netlink), neigh, seq));
	end_request(netlink, ctl_msg_ask_neigh(next_request(netlink), &neigh->place, seq));
	ctl_neigh_note_asked(neigh, now_ms);
}

static bool
ask_neighs(struct ctl_netlink *netlink)
{
	const uint64_t now_ms = ctl_loop_now_ms();

	begin_batch(netlink);
	for (; netlink->cursor < netlink->hops.n_neighs && netlink->n_asked < CTL_NETLINK_BATCH;
		netlink->cursor++)
		if (ctl_neigh_is_due(&netlink->hops.neighs[netlink->cursor], now_ms))
			ask_neigh(netlink, netlink->cursor, now_ms);
	return send_batch(netlink);
}

/* The callback may close us: nothing is touched after it, here and in all that lead here. */
static void
finish_pass(struct ctl_netlink *netlink)
{
	bool is_changed;

	netlink->stage = STAGE_IDLE;
	netlink->pass_ms = ctl_loop_now_ms() - netlink->pass_began_ms;
	/* A link that took the routes of this pass with it was told of before, and is kept. */
	run_events(netlink, 0);
	is_changed = ctl_hops_show(&netlink->hops, ctl_loop_now_ms());
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
			ctl_hops_gather(&netlink->hops);
		netlink->has_new_routes = false;
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
		ctl_hops_doubt_all(&netlink->hops);
		ctl_hops_doubt_neighs(&netlink->hops);
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
		ctl_hops_doubt_all(&netlink->hops);
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

static void
take_route(struct ctl_dst *dst, const struct nlmsghdr *msg)
{
	dst->has_route = ctl_msg_read_route(msg, &dst->addr, &dst->next);
}

static void
take_neigh(struct ctl_neigh *neigh, const struct nlmsghdr *msg)
{
	struct ctl_neigh_state state;
	struct ctl_place place;

	if (neigh->is_asked)
		ctl_neigh_take(neigh, ctl_msg_read_neigh(msg, &place, &state) ? &state : NULL);
}

static void
take_answer(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	const uint32_t i = msg->nlmsg_seq - netlink->first_seq;

	if (i >= netlink->n_asked || netlink->is_answered[i] || ctl_msg_is_use_error(msg))
		return;
	netlink->is_answered[i] = true;
	netlink->n_waiting--;
	if (netlink->stage == STAGE_ROUTES)
		take_route(&netlink->hops.dsts[netlink->asked[i]], msg);
	else
		take_neigh(&netlink->hops.neighs[netlink->asked[i]], msg);
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
take_route_event(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	struct lb_addr addr;
	unsigned int n_bits;

	if (ctl_msg_read_prefix(msg, &addr, &n_bits) &&
		ctl_hops_doubt_prefix(&netlink->hops, &addr, n_bits))
		need_pass_soon(netlink);
}

static void
take_neigh_event(struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	struct ctl_neigh_state state;
	struct ctl_place place;
	struct ctl_neigh *neigh = NULL;

	if (ctl_msg_read_neigh(msg, &place, &state))
		neigh = ctl_hops_neigh(&netlink->hops, &place);
	if (neigh == NULL)
		return;
	ctl_neigh_take(neigh, &state);
	need_pass_soon(netlink);
}

static void
take_link_event(const struct ctl_netlink *netlink, const struct nlmsghdr *msg)
{
	struct ctl_link link;

	if (netlink->link_fn != NULL && ctl_msg_read_link(msg, &link))
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
		ctl_hops_doubt_all(&netlink->hops);
		need_pass_soon(netlink);
		take_link_event(netlink, msg);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		ctl_hops_doubt_all(&netlink->hops);
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
	ctl_hops_fini(&netlink->hops);
	free(netlink);
}

/*
 * Destinations
 */

int
ctl_netlink_watch(struct ctl_netlink *netlink, const struct lb_addr dsts[], size_t n)
{
	int ret;

	/* What is under way counts places among those before. */
	abandon_pass(netlink);
	ret = ctl_hops_set(&netlink->hops, dsts, n);
	if (ret != 0)
		return ret;
	netlink->has_new_routes = false;
	end_settle(netlink);
	need_pass(netlink, 0);
	return 0;
}

bool
ctl_netlink_find(const struct ctl_netlink *netlink, const struct lb_addr *dst,
	struct ctl_hop *out)
{
	return ctl_hops_find(&netlink->hops, dst, out);
}

void
ctl_netlink_keep(struct ctl_netlink *netlink, int if_index)
{
	ctl_hops_keep(&netlink->hops, if_index);
}

void
ctl_netlink_settle(struct ctl_netlink *netlink, int if_index)
{
	ctl_hops_settle(&netlink->hops, if_index, ctl_loop_now_ms());
}

size_t
ctl_netlink_count_kept(const struct ctl_netlink *netlink, int if_index)
{
	return ctl_hops_count_kept(&netlink->hops, if_index);
}
