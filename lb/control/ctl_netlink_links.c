/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "ctl_netlink_parts.h"

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
	(void)ctl_msg_read_link(msg, out);
	return MNL_CB_STOP;
}

/* What was asked for, and where it is found to go. */
struct way {
	const struct lb_addr *dst;
	struct ctl_place next;
	bool is_there;
};

static int
take_route_answer(const struct nlmsghdr *msg, void *out)
{
	struct way *way = out;

	way->is_there = ctl_msg_read_route(msg, way->dst, &way->next);
	return MNL_CB_STOP;
}

bool
ctl_netlink_find_way(struct ctl_netlink *netlink, const struct lb_addr *dst, int *if_index)
{
	struct way way = {.dst = dst};
	_Alignas(struct nlmsghdr) uint8_t bytes[CTL_MSG_BYTES_MAX];
	struct nlmsghdr *msg = ctl_msg_ask_route(bytes, dst, netlink->next_seq++);

	if (run_command(netlink, msg, take_route_answer, &way) != 0 || !way.is_there)
		return false;
	*if_index = way.next.if_index;
	return true;
}

int
ctl_netlink_read_link(struct ctl_netlink *netlink, int if_index, struct ctl_link *out)
{
	struct nlmsghdr *msg;
	struct ifinfomsg *header;
	struct ctl_link link = {0};
	int rc;
	_Alignas(struct nlmsghdr) uint8_t bytes[CTL_MSG_BYTES_MAX];

	msg = ctl_msg_begin(bytes, RTM_GETLINK, 0, netlink->next_seq++);
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
	_Alignas(struct nlmsghdr) uint8_t bytes[CTL_MSG_BYTES_MAX];

	msg = ctl_msg_begin(bytes, RTM_NEWLINK, NLM_F_ACK, netlink->next_seq++);
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
	_Alignas(struct nlmsghdr) uint8_t bytes[CTL_MSG_BYTES_MAX];

	msg = ctl_msg_begin(bytes, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
		netlink->next_seq++);
	header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));
	header->ifa_family = ctl_msg_family(&address->addr);
	header->ifa_prefixlen = (uint8_t)(is_v4 ? address->n_bits - 96 : address->n_bits);
	header->ifa_index = (unsigned int)if_index;
	ctl_msg_put_addr(msg, IFA_LOCAL, &address->addr);
	ctl_msg_put_addr(msg, IFA_ADDRESS, &address->addr);
	rc = run_command(netlink, msg, NULL, NULL);
	return rc == -EEXIST ? 0 : rc;
}

/* flags: of RTM_NEWROUTE; type: that, or RTM_DELROUTE of the very same. */
static int
change_route(struct ctl_netlink *netlink, uint16_t type, uint16_t flags, int if_index,
	const struct lb_prefix *to, const struct lb_addr *via)
{
	const bool is_v4 = lb_addr_is_v4(&to->addr);
	struct nlmsghdr *msg;
	struct rtmsg *header;
	_Alignas(struct nlmsghdr) uint8_t bytes[CTL_MSG_BYTES_MAX];

	msg = ctl_msg_begin(bytes, type, (uint16_t)(NLM_F_ACK | flags), netlink->next_seq++);
	header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));
	header->rtm_family = ctl_msg_family(&to->addr);
	header->rtm_dst_len = (uint8_t)(is_v4 ? to->n_bits - 96 : to->n_bits);
	header->rtm_table = RT_TABLE_MAIN;
	header->rtm_protocol = RTPROT_STATIC;
	header->rtm_scope = RT_SCOPE_UNIVERSE;
	header->rtm_type = RTN_UNICAST;
	ctl_msg_put_addr(msg, RTA_DST, &to->addr);
	ctl_msg_put_addr(msg, RTA_GATEWAY, via);
	mnl_attr_put_u32(msg, RTA_OIF, (uint32_t)if_index);
	return run_command(netlink, msg, NULL, NULL);
}

int
ctl_netlink_add_route(struct ctl_netlink *netlink, int if_index, const struct lb_prefix *to,
	const struct lb_addr *via)
{
	const uint16_t flags = NLM_F_CREATE | NLM_F_EXCL;
	int rc = change_route(netlink, RTM_NEWROUTE, flags, if_index, to, via);

	if (rc != -EEXIST)
		return rc;
	/* The kernel does not say which is there: if it is this one, it can be taken away. */
	if (change_route(netlink, RTM_DELROUTE, 0, if_index, to, via) != 0)
		return -EEXIST;
	return change_route(netlink, RTM_NEWROUTE, flags, if_index, to, via);
}
