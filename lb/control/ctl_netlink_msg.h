/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NETLINK_MSG_H
#define CTL_NETLINK_MSG_H

/**
 * @file
 * Messages of rtnetlink (RFC 3549) as bytes: those that are sent, and those that the kernel
 * sends. Pure; on any thread.
 *
 * What is written begins at memory that is aligned and has room for CTL_MSG_BYTES_MAX bytes.
 * What is read is a message that mnl_nlmsg_ok() has passed, of any type and content.
 */

#include <libmnl/libmnl.h>

#include "ctl_hops.h"

/** Of a message to be sent. */
#define CTL_MSG_BYTES_MAX 128u

/** Begin a request. */
struct nlmsghdr *ctl_msg_begin(void *to, uint16_t type, uint16_t flags, uint32_t seq);

/** AF_INET or AF_INET6. */
unsigned char ctl_msg_family(const struct lb_addr *addr);

/** Append an address as an attribute. */
void ctl_msg_put_addr(struct nlmsghdr *msg, uint16_t type, const struct lb_addr *addr);

/**
 * Ask for the route to an address. Without a table or an output interface, so that the kernel
 * answers as for a packet of ours: rules count, and of several hops it picks one by a hash of
 * the destination.
 */
struct nlmsghdr *ctl_msg_ask_route(void *to, const struct lb_addr *addr, uint32_t seq);

/** Ask for a neighbour. */
struct nlmsghdr *ctl_msg_ask_neigh(void *to, const struct ctl_place *place, uint32_t seq);

/**
 * Let the kernel find a neighbour out, as if a packet had to go there. This would make a
 * permanent entry an ordinary one, so an entry is only touched where it is known to be none; of
 * one that is not known, only its absence is mended.
 */
struct nlmsghdr *ctl_msg_use_neigh(void *to, const struct ctl_neigh *neigh, uint32_t seq);

/**
 * Read the answer to ctl_msg_ask_route().
 *
 * @param dst        The address that was asked for.
 * @param[out] next  Whom packets to it are handed to; untouched where there is no route.
 * @return whether there is a route. A destination that is local, broadcast, multicast or
 * refused counts as without: it has no neighbour whose MAC address a frame could bear.
 */
bool ctl_msg_read_route(const struct nlmsghdr *msg, const struct lb_addr *dst,
	struct ctl_place *next);

/**
 * Read which prefix a route is to, of a notification.
 *
 * @param[out] n_bits  0..128, as addr is held.
 * @return whether it could be read.
 */
bool ctl_msg_read_prefix(const struct nlmsghdr *msg, struct lb_addr *addr,
	unsigned int *n_bits);

/**
 * Read an RTM_NEWNEIGH or RTM_DELNEIGH.
 *
 * @param[out] place  Whose it is.
 * @param[out] state  NUD_NONE where it is deleted.
 * @return whether it could be read, and is about a neighbour of ours (not of a bridge's, and
 *         not one that we answer for); both may be written otherwise, too.
 */
bool ctl_msg_read_neigh(const struct nlmsghdr *msg, struct ctl_place *place,
	struct ctl_neigh_state *state);

/** Whether it is the answer to ctl_msg_use_neigh(), which is only ever an error. */
bool ctl_msg_is_use_error(const struct nlmsghdr *msg);

/** Read an RTM_NEWLINK or RTM_DELLINK. @return whether it tells of a link. */
bool ctl_msg_read_link(const struct nlmsghdr *msg, struct ctl_link *out);

#endif
