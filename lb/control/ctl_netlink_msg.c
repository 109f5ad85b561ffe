/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_netlink_msg.h"

#include <assert.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* IFF_LOWER_UP, of a header that does not go together with net/if.h. */
#define LINK_HAS_CARRIER (1u << 16)

static_assert(sizeof(struct nlmsghdr) + sizeof(struct rtmsg) + 2 * sizeof(struct nlattr) +
			      LB_ADDR_BYTES <
		      CTL_MSG_BYTES_MAX,
	"a question fits into its share");

struct nlmsghdr *
ctl_msg_begin(void *to, uint16_t type, uint16_t flags, uint32_t seq)
{
	struct nlmsghdr *msg = mnl_nlmsg_put_header(to);

	msg->nlmsg_type = type;
	msg->nlmsg_flags = NLM_F_REQUEST | flags;
	msg->nlmsg_seq = seq;
	return msg;
}

unsigned char
ctl_msg_family(const struct lb_addr *addr)
{
	return lb_addr_is_v4(addr) ? AF_INET : AF_INET6;
}

void
ctl_msg_put_addr(struct nlmsghdr *msg, uint16_t type, const struct lb_addr *addr)
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

struct nlmsghdr *
ctl_msg_ask_route(void *to, const struct lb_addr *addr, uint32_t seq)
{
	struct nlmsghdr *msg = ctl_msg_begin(to, RTM_GETROUTE, 0, seq);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(msg, sizeof(*route));

	route->rtm_family = ctl_msg_family(addr);
	route->rtm_dst_len = lb_addr_is_v4(addr) ? 32 : 128;
	ctl_msg_put_addr(msg, RTA_DST, addr);
	return msg;
}

static struct ndmsg *
put_neigh(struct nlmsghdr *msg, const struct ctl_place *place)
{
	struct ndmsg *header = mnl_nlmsg_put_extra_header(msg, sizeof(*header));

	header->ndm_family = ctl_msg_family(&place->addr);
	header->ndm_ifindex = place->if_index;
	ctl_msg_put_addr(msg, NDA_DST, &place->addr);
	return header;
}

struct nlmsghdr *
ctl_msg_ask_neigh(void *to, const struct ctl_place *place, uint32_t seq)
{
	struct nlmsghdr *msg = ctl_msg_begin(to, RTM_GETNEIGH, 0, seq);

	(void)put_neigh(msg, place);
	return msg;
}

struct nlmsghdr *
ctl_msg_use_neigh(void *to, const struct ctl_neigh *neigh, uint32_t seq)
{
	const bool is_there = neigh->is_known && neigh->state.nud != NUD_NONE;
	const uint16_t flags = NLM_F_CREATE | (is_there ? 0 : NLM_F_EXCL);
	struct nlmsghdr *msg = ctl_msg_begin(to, RTM_NEWNEIGH, flags, seq);
	struct ndmsg *header = put_neigh(msg, &neigh->place);

	header->ndm_state = NUD_NONE;
	header->ndm_flags = NTF_USE;
	return msg;
}

bool
ctl_msg_read_route(const struct nlmsghdr *msg, const struct lb_addr *dst,
	struct ctl_place *next)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;
	struct ctl_place found = {.addr = *dst};
	bool is_readable = true;

	if (msg->nlmsg_type != RTM_NEWROUTE ||
		mnl_nlmsg_get_payload_len(msg) < sizeof(*route) ||
		route->rtm_type != RTN_UNICAST)
		return false;
	for (attr = first_attr(msg, sizeof(*route)); attr != NULL;
		attr = next_attr(msg, attr)) {
		const uint16_t type = mnl_attr_get_type(attr);

		if (type == RTA_OIF && mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
			found.if_index = (int)mnl_attr_get_u32(attr);
		else if (type == RTA_GATEWAY)
			is_readable &= read_addr_attr(route->rtm_family, attr, &found.addr);
		else if (type == RTA_VIA)
			is_readable &= read_via(attr, &found.addr);
	}
	if (!is_readable || found.if_index <= 0)
		return false;
	*next = found;
	return true;
}

bool
ctl_msg_read_prefix(const struct nlmsghdr *msg, struct lb_addr *addr, unsigned int *n_bits)
{
	static const uint8_t any_v4[4];
	const struct rtmsg *route = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(msg) < sizeof(*route))
		return false;
	*addr = (struct lb_addr){0};
	*n_bits = route->rtm_dst_len;
	if (route->rtm_family == AF_INET) {
		*addr = lb_addr_from_v4(any_v4);
		*n_bits += 96;
	}
	for (attr = first_attr(msg, sizeof(*route)); attr != NULL; attr = next_attr(msg, attr))
		if (mnl_attr_get_type(attr) == RTA_DST &&
			!read_addr_attr(route->rtm_family, attr, addr))
			return false;
	return *n_bits <= 8 * LB_ADDR_BYTES;
}

static void
read_mac(const struct nlattr *attr, struct ctl_neigh_state *state)
{
	if (mnl_attr_get_payload_len(attr) != sizeof(state->mac))
		return;
	memcpy(&state->mac, mnl_attr_get_payload(attr), sizeof(state->mac));
	state->has_mac = true;
}

bool
ctl_msg_read_neigh(const struct nlmsghdr *msg, struct ctl_place *place,
	struct ctl_neigh_state *state)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(msg);
	const bool is_new = msg->nlmsg_type == RTM_NEWNEIGH;
	const struct nlattr *attr;
	bool has_addr = false;

	/* Bridges tell of theirs in the same group, with addresses of another family. */
	if ((!is_new && msg->nlmsg_type != RTM_DELNEIGH) ||
		mnl_nlmsg_get_payload_len(msg) < sizeof(*header) ||
		(header->ndm_flags & NTF_PROXY) != 0)
		return false;
	*place = (struct ctl_place){.if_index = header->ndm_ifindex};
	*state = (struct ctl_neigh_state){.nud = is_new ? header->ndm_state : NUD_NONE};
	for (attr = first_attr(msg, sizeof(*header)); attr != NULL;
		attr = next_attr(msg, attr)) {
		if (mnl_attr_get_type(attr) == NDA_DST)
			has_addr = read_addr_attr(header->ndm_family, attr, &place->addr);
		else if (mnl_attr_get_type(attr) == NDA_LLADDR && is_new)
			read_mac(attr, state);
	}
	return has_addr;
}

bool
ctl_msg_is_use_error(const struct nlmsghdr *msg)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(msg);

	return msg->nlmsg_type == NLMSG_ERROR &&
	       mnl_nlmsg_get_payload_len(msg) >= sizeof(*error) &&
	       error->msg.nlmsg_type == RTM_NEWNEIGH;
}

bool
ctl_msg_read_link(const struct nlmsghdr *msg, struct ctl_link *out)
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
