/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_tun.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/ipv6_route.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "ctl_announce.h"
#include "ctl_netlink_msg.h"

enum {
	RECEIVE_BYTES = 32768,
	/* The kernel answers at once, or not at all. */
	ANSWER_MAX_S = 5,
};

static_assert(sizeof(struct nlmsghdr) + sizeof(struct rtmsg) + 4 * sizeof(struct nlattr) +
			      LB_ADDR_BYTES + 3 * sizeof(uint32_t) <=
		      CTL_MSG_BYTES_MAX,
	"a request fits into its share");

/* Answers of one batch, each for the request with first_seq and its place added. */
struct answers {
	uint32_t first_seq;
	size_t n;
	size_t n_waiting;
	int *errors;
};

/*
 * Of all that the kernel tells of routes and links, those that concern us. A router with a full
 * table has many thousand changes at times, and none of them wakes control: routing daemons
 * replace their routes, but with metrics of their own. Of what a route took the place the
 * kernel does not tell.
 */
static int
filter_events(const struct ctl_tun *tun)
{
	/* Loads take the bytes to be in network order. */
	const uint32_t metric = htonl(tun->metric);
	const uint32_t metric_v6 = tun->metric != 0 ? metric : htonl(IP6_RT_PRIO_USER);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWLINK), 15, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELLINK), 14, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELROUTE), 11, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWROUTE), 0, 13),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_flags)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, htons(NLM_F_REPLACE), 0, 11),
		BPF_STMT(BPF_LD | BPF_IMM, NLMSG_HDRLEN + sizeof(struct rtmsg)),
		BPF_STMT(BPF_LDX | BPF_IMM, RTA_PRIORITY),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_NLATTR)),
		/* Where there is none, 0 stands for its place, and is what it means. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, sizeof(struct nlattr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, metric, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, metric_v6, 2, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
			NLMSG_HDRLEN + offsetof(struct rtmsg, rtm_protocol)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CTL_ANNOUNCE_PROTOCOL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = LB_N_ELEMENTS(code), .filter = code};

	return setsockopt(mnl_socket_get_fd(tun->events), SOL_SOCKET, SO_ATTACH_FILTER,
		       &program, sizeof(program)) == 0
		       ? 0
		       : -errno;
}

static int
open_socket(int flags, struct mnl_socket **out)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | flags);

	if (socket == NULL)
		return -errno;
	*out = socket;
	return mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
}

/* The filter first: what is not for us is never there. */
int
ctl_tun_listen(struct ctl_tun *tun)
{
	static const enum rtnetlink_groups groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE,
		RTNLGRP_IPV6_ROUTE};
	int ret = open_socket(SOCK_NONBLOCK, &tun->events);

	if (ret == 0)
		ret = filter_events(tun);
	for (size_t i = 0; ret == 0 && i < LB_N_ELEMENTS(groups); i++) {
		int group = (int)groups[i];

		if (mnl_socket_setsockopt(tun->events, NETLINK_ADD_MEMBERSHIP, &group,
			    sizeof(group)) < 0)
			ret = -errno;
	}
	return ret;
}

int
ctl_tun_open(const struct cfg_announce *conf, struct ctl_tun *tun)
{
	const struct timeval answer_max = {.tv_sec = ANSWER_MAX_S};
	int is_strict = 1;
	int ret;

	*tun = (struct ctl_tun){.table = conf->table, .metric = conf->metric, .fd = -1};
	(void)snprintf(tun->name, sizeof(tun->name), "%.15s", conf->interface);
	ret = open_socket(0, &tun->requests);
	if (ret == 0 && setsockopt(mnl_socket_get_fd(tun->requests), SOL_SOCKET, SO_RCVTIMEO,
				&answer_max, sizeof(answer_max)) != 0)
		ret = -errno;
	/* A dump is of what is asked for then; Linux before 4.20 gives all routes there are. */
	if (ret == 0)
		(void)mnl_socket_setsockopt(tun->requests, NETLINK_GET_STRICT_CHK, &is_strict,
			sizeof(is_strict));
	return ret;
}

static void
close_device(struct ctl_tun *tun)
{
	if (tun->fd >= 0)
		(void)close(tun->fd);
	tun->fd = -1;
	tun->if_index = 0;
}

void
ctl_tun_close(struct ctl_tun *tun)
{
	close_device(tun);
	if (tun->requests != NULL)
		mnl_socket_close(tun->requests);
	if (tun->events != NULL)
		mnl_socket_close(tun->events);
	tun->requests = NULL;
	tun->events = NULL;
}

/* Requests. */

static int
take_answer(const struct nlmsghdr *msg, void *data)
{
	struct answers *answers = data;
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(msg);
	const uint32_t place = msg->nlmsg_seq - answers->first_seq;

	/* Others are of a batch that was given up. */
	if (msg->nlmsg_type != NLMSG_ERROR || place >= answers->n ||
		mnl_nlmsg_get_payload_len(msg) < sizeof(*error))
		return MNL_CB_OK;
	answers->errors[place] = error->error;
	answers->n_waiting--;
	return MNL_CB_OK;
}

/* Send requests, each of which asks for an answer, and wait for those. */
static void
ask(struct ctl_tun *tun, const void *requests, size_t n_bytes, struct answers *answers)
{
	_Alignas(struct nlmsghdr) uint8_t in[RECEIVE_BYTES];

	for (size_t i = 0; i < answers->n; i++)
		answers->errors[i] = -ETIMEDOUT;
	answers->n_waiting = answers->n;
	if (mnl_socket_sendto(tun->requests, requests, n_bytes) < 0) {
		for (size_t i = 0; i < answers->n; i++)
			answers->errors[i] = -errno;
		return;
	}
	while (answers->n_waiting > 0) {
		const ssize_t n = mnl_socket_recvfrom(tun->requests, in, sizeof(in));
		int left = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		for (const struct nlmsghdr *msg = (const void *)in; mnl_nlmsg_ok(msg, left);
			msg = mnl_nlmsg_next(msg, &left))
			(void)take_answer(msg, answers);
	}
}

/* Of the device's link; with its flags, or with how it gets IPv6 addresses. */
static int
set_link(struct ctl_tun *tun, unsigned int flags)
{
	_Alignas(struct nlmsghdr) uint8_t out[CTL_MSG_BYTES_MAX];
	int error;
	struct answers answers = {.first_seq = tun->next_seq, .n = 1, .errors = &error};
	struct nlmsghdr *msg = ctl_msg_begin(out, RTM_NEWLINK, NLM_F_ACK, tun->next_seq++);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(msg, sizeof(*link));

	link->ifi_family = AF_UNSPEC;
	link->ifi_index = tun->if_index;
	link->ifi_flags = flags;
	link->ifi_change = flags;
	if (flags == 0) {
		struct nlattr *families = mnl_attr_nest_start(msg, IFLA_AF_SPEC);
		struct nlattr *inet6 = mnl_attr_nest_start(msg, AF_INET6);

		mnl_attr_put_u8(msg, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
		mnl_attr_nest_end(msg, inet6);
		mnl_attr_nest_end(msg, families);
	}
	ask(tun, out, msg->nlmsg_len, &answers);
	return error;
}

/* That it is no other's: without IFF_TUN_EXCL the device of another might be joined. */
static int
make_device(struct ctl_tun *tun)
{
	struct ifreq request = {.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | IFF_TUN_EXCL)};
	int ret;

	tun->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun->fd < 0)
		return -errno;
	memcpy(request.ifr_name, tun->name, sizeof(request.ifr_name));
	ret = ioctl(tun->fd, TUNSETIFF, &request) != 0 ? -errno : 0;
	if (ret == 0)
		tun->if_index = (int)if_nametoindex(tun->name);
	return ret == 0 && tun->if_index == 0 ? -ENODEV : ret;
}

/* That it is down, as each is at first, is nothing to tell. */
static void
forget_events(struct ctl_tun *tun)
{
	char byte;

	if (tun->events == NULL)
		return;
	while (recv(mnl_socket_get_fd(tun->events), &byte, sizeof(byte), MSG_TRUNC) >= 0 ||
		errno == EINTR || errno == ENOBUFS)
		;
}

int
ctl_tun_make(struct ctl_tun *tun)
{
	int ret;

	if (tun->fd >= 0)
		return 0;
	ret = make_device(tun);
	if (ret == 0) {
		/* Of use to nobody; and where there is no IPv6 there are none anyway. */
		(void)set_link(tun, 0);
		forget_events(tun);
		ret = set_link(tun, IFF_UP);
	}
	if (ret != 0)
		close_device(tun);
	return ret;
}

int
ctl_tun_mend(struct ctl_tun *tun)
{
	struct ctl_tun other = *tun;
	int ret;

	if ((int)if_nametoindex(tun->name) == tun->if_index)
		return 0;
	other.fd = -1;
	ret = ctl_tun_make(&other);
	tun->next_seq = other.next_seq;
	if (ret != 0)
		return ret;
	ret = dup3(other.fd, tun->fd, O_CLOEXEC) < 0 ? -errno : 1;
	(void)close(other.fd);
	tun->if_index = ret == 1 ? other.if_index : tun->if_index;
	return ret;
}

static size_t
put_route(struct ctl_tun *tun, const struct ctl_route *route, void *at)
{
	const struct lb_prefix *prefix = &route->prefix;
	const bool is_v4 = lb_addr_is_v4(&prefix->addr);
	const uint16_t type = route->is_wanted ? RTM_NEWROUTE : RTM_DELROUTE;
	const uint16_t flags = route->is_wanted ? NLM_F_CREATE | NLM_F_EXCL : 0;
	struct nlmsghdr *msg =
		ctl_msg_begin(at, type, (uint16_t)(NLM_F_ACK | flags), tun->next_seq++);
	struct rtmsg *header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));

	header->rtm_family = ctl_msg_family(&prefix->addr);
	header->rtm_dst_len = (uint8_t)(is_v4 ? prefix->n_bits - 96 : prefix->n_bits);
	header->rtm_protocol = CTL_ANNOUNCE_PROTOCOL;
	header->rtm_scope = is_v4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
	header->rtm_type = RTN_UNICAST;
	ctl_msg_put_addr(msg, RTA_DST, &prefix->addr);
	mnl_attr_put_u32(msg, RTA_OIF, (uint32_t)tun->if_index);
	mnl_attr_put_u32(msg, RTA_TABLE, tun->table);
	if (tun->metric != 0)
		mnl_attr_put_u32(msg, RTA_PRIORITY, tun->metric);
	return MNL_ALIGN(msg->nlmsg_len);
}

static void
take_error(struct ctl_route *route, int error)
{
	/* What is to go and is not there has gone. */
	if (!route->is_wanted && error == -ESRCH)
		error = 0;
	/* Where one is in the way it may be this one. */
	route->is_unsure = error == -ETIMEDOUT || (error == -EEXIST && route->is_unsure);
	route->error = error;
	if (error == 0)
		route->is_there = route->is_wanted;
}

void
ctl_tun_put(struct ctl_tun *tun, struct ctl_route *const routes[], size_t n)
{
	_Alignas(struct nlmsghdr) uint8_t out[CTL_TUN_BATCH * CTL_MSG_BYTES_MAX] = {0};
	int errors[CTL_TUN_BATCH];
	struct answers answers = {.first_seq = tun->next_seq, .n = n, .errors = errors};
	size_t n_bytes = 0;

	for (size_t i = 0; i < n; i++)
		n_bytes += put_route(tun, routes[i], out + n_bytes);
	ask(tun, out, n_bytes, &answers);
	for (size_t i = 0; i < n; i++)
		take_error(routes[i], errors[i]);
}

/* Events. */

int
ctl_tun_events_fd(const struct ctl_tun *tun)
{
	return mnl_socket_get_fd(tun->events);
}

static int
take_name(const struct nlattr *attr, void *data)
{
	const char **name = data;

	if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
		mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
		*name = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

/* Routing daemons know the device by its name. */
static bool
is_named(const struct ctl_tun *tun, const struct nlmsghdr *msg)
{
	const char *name = tun->name;

	(void)mnl_attr_parse(msg, sizeof(struct ifinfomsg), take_name, &name);
	return strcmp(name, tun->name) == 0;
}

static bool
read_link(struct ctl_tun *tun, const struct nlmsghdr *msg, struct ctl_tun_event *out)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(msg);

	if (mnl_nlmsg_get_payload_len(msg) < sizeof(*link) || tun->fd < 0 ||
		link->ifi_index != tun->if_index)
		return false;
	if (msg->nlmsg_type == RTM_DELLINK || !is_named(tun, msg)) {
		close_device(tun);
		out->what = CTL_TUN_GONE;
	} else {
		out->what = (link->ifi_flags & IFF_UP) != 0 ? CTL_TUN_UP : CTL_TUN_DOWN;
	}
	return true;
}

/* What of a route's message is looked at. */
struct route_attrs {
	uint32_t table;
	int if_index;
};

static int
take_attr(const struct nlattr *attr, void *data)
{
	struct route_attrs *attrs = data;
	const uint16_t type = mnl_attr_get_type(attr);

	if (type == RTA_TABLE && mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
		attrs->table = mnl_attr_get_u32(attr);
	else if (type == RTA_OIF && mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
		attrs->if_index = (int)mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

/* Whether a message is of a route that only we make. */
static bool
is_ours(const struct ctl_tun *tun, const struct nlmsghdr *msg, struct lb_prefix *out)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(msg);
	struct route_attrs attrs = {.if_index = 0};
	unsigned int n_bits;

	if (tun->fd < 0 || mnl_nlmsg_get_payload_len(msg) < sizeof(*route) ||
		route->rtm_protocol != CTL_ANNOUNCE_PROTOCOL)
		return false;
	attrs.table = route->rtm_table;
	(void)mnl_attr_parse(msg, sizeof(*route), take_attr, &attrs);
	if (attrs.if_index != tun->if_index || attrs.table != tun->table ||
		!ctl_msg_read_prefix(msg, &out->addr, &n_bits))
		return false;
	out->n_bits = (uint8_t)n_bits;
	return true;
}

/* What was taken at our own request is known. */
static bool
read_route(const struct ctl_tun *tun, const struct nlmsghdr *msg, struct ctl_tun_event *out)
{
	out->what = CTL_TUN_ROUTE;
	return msg->nlmsg_pid != mnl_socket_get_portid(tun->requests) &&
	       is_ours(tun, msg, &out->prefix);
}

/* Its state now, as an event. The kernel lets go of the file where the device was removed. */
static bool
look_at_link(struct ctl_tun *tun, struct ctl_tun_event *out)
{
	struct ifreq request = {.ifr_flags = 0};

	if (tun->fd < 0)
		return false;
	if (ioctl(tun->fd, TUNGETIFF, &request) != 0 ||
		strcmp(request.ifr_name, tun->name) != 0) {
		close_device(tun);
		out->what = CTL_TUN_GONE;
		return true;
	}
	if (ioctl(mnl_socket_get_fd(tun->requests), SIOCGIFFLAGS, &request) != 0)
		return false;
	out->what = (request.ifr_flags & IFF_UP) != 0 ? CTL_TUN_UP : CTL_TUN_DOWN;
	return true;
}

/* Not before all that was heard is told: it is older than what was lost, and no news. */
static void
tell_lost(struct ctl_tun *tun, ctl_tun_fn fn, void *context)
{
	struct ctl_tun_event event;

	if (look_at_link(tun, &event))
		fn(context, &event);
	event.what = CTL_TUN_LOST;
	fn(context, &event);
}

/* By whom, and in which table, is not looked at: whether it is ours the kernel is asked. */
static bool
read_replaced(const struct nlmsghdr *msg, struct ctl_tun_event *out)
{
	unsigned int n_bits;

	if (!ctl_msg_read_prefix(msg, &out->prefix.addr, &n_bits))
		return false;
	out->what = CTL_TUN_REPLACED;
	out->prefix.n_bits = (uint8_t)n_bits;
	return true;
}

static bool
read_event(struct ctl_tun *tun, const struct nlmsghdr *msg, struct ctl_tun_event *out)
{
	switch (msg->nlmsg_type) {
	case RTM_DELROUTE:
		return read_route(tun, msg, out);
	case RTM_NEWROUTE:
		return read_replaced(msg, out);
	default:
		return read_link(tun, msg, out);
	}
}

void
ctl_tun_take(struct ctl_tun *tun, ctl_tun_fn fn, void *context)
{
	_Alignas(struct nlmsghdr) uint8_t in[RECEIVE_BYTES];
	struct ctl_tun_event event;
	bool has_lost = false;

	while (true) {
		const ssize_t n = mnl_socket_recvfrom(tun->events, in, sizeof(in));
		int left = (int)n;

		if (n < 0 && errno != EINTR && errno != ENOBUFS)
			break;
		has_lost |= n < 0 && errno == ENOBUFS;
		for (const struct nlmsghdr *msg = (const void *)in; mnl_nlmsg_ok(msg, left);
			msg = mnl_nlmsg_next(msg, &left)) {
			if (read_event(tun, msg, &event))
				fn(context, &event);
		}
	}
	if (has_lost)
		tell_lost(tun, fn, context);
}

/* Routes. */

/* A dump that is under way. */
struct dump {
	uint32_t seq;
	bool is_over;
	int error; /* why it is not whole; 0: it is */
};

static void
take_dumped(const struct ctl_tun *tun, const struct nlmsghdr *msg, struct dump *dump,
	struct ctl_routes *routes)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(msg);
	struct lb_prefix prefix;

	/* Others are of one that was given up. */
	if (msg->nlmsg_seq != dump->seq)
		return;
	if ((msg->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
		dump->error = -EINTR;
	dump->is_over |= msg->nlmsg_type == NLMSG_DONE || msg->nlmsg_type == NLMSG_ERROR;
	if (msg->nlmsg_type == NLMSG_ERROR && mnl_nlmsg_get_payload_len(msg) >= sizeof(*error))
		dump->error = error->error;
	else if (msg->nlmsg_type == RTM_NEWROUTE && is_ours(tun, msg, &prefix))
		ctl_routes_see(routes, &prefix);
}

static int
take_dump(const struct ctl_tun *tun, struct dump *dump, struct ctl_routes *routes)
{
	_Alignas(struct nlmsghdr) uint8_t in[RECEIVE_BYTES];

	while (!dump->is_over) {
		const ssize_t n = mnl_socket_recvfrom(tun->requests, in, sizeof(in));
		int left = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (const struct nlmsghdr *msg = (const void *)in; mnl_nlmsg_ok(msg, left);
			msg = mnl_nlmsg_next(msg, &left))
			take_dumped(tun, msg, dump, routes);
	}
	/* A table without a route may not be there at all. */
	return dump->error == -ENOENT ? 0 : dump->error;
}

/* Of one family, AF_INET or AF_INET6. */
static int
see_routes(struct ctl_tun *tun, unsigned char family, struct ctl_routes *routes)
{
	_Alignas(struct nlmsghdr) uint8_t out[CTL_MSG_BYTES_MAX];
	struct dump dump = {.seq = tun->next_seq++};
	struct nlmsghdr *msg = ctl_msg_begin(out, RTM_GETROUTE, NLM_F_DUMP, dump.seq);
	struct rtmsg *header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));

	header->rtm_family = family;
	header->rtm_protocol = CTL_ANNOUNCE_PROTOCOL;
	mnl_attr_put_u32(msg, RTA_TABLE, tun->table);
	if (mnl_socket_sendto(tun->requests, msg, msg->nlmsg_len) < 0)
		return -errno;
	return take_dump(tun, &dump, routes);
}

int
ctl_tun_look(struct ctl_tun *tun, struct ctl_routes *routes)
{
	int ret;

	ctl_routes_begin_look(routes);
	ret = see_routes(tun, AF_INET, routes);
	if (ret == 0)
		ret = see_routes(tun, AF_INET6, routes);
	if (ret == 0)
		ctl_routes_end_look(routes);
	return ret;
}
