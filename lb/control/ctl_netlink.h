/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NETLINK_H
#define CTL_NETLINK_H

/**
 * @file
 * Next hops from the kernel: its routes and neighbours over rtnetlink, followed as they
 * change (libmnl; RFC 3549).
 *
 * Control says which destinations it needs; for each the route is looked up, then the
 * neighbour behind it, and one that is not known is asked for, so that it is known before a
 * packet needs it.
 *
 * Not thread-safe: the control thread's. Nothing here blocks but ctl_netlink_open() and the
 * calls that change addresses and links, which wait for the kernel's acknowledgement.
 */

#include <stdbool.h>

#include "ctl_loop.h"
#include "lb_addr.h"

struct ctl_netlink; /* opaque */

struct ctl_hop {
	int if_index;     /**< of the kernel's interface that leads there */
	bool is_resolved; /**< mac is known */
	bool is_gateway;  /**< it is a router, not the destination itself */
	struct lb_mac
		mac; /**< of the gateway, or of the destination itself on its own network */
};

/**
 * Some hop has changed: read those that matter anew. Changes close together are one call.
 * It comes from the loop alone, and may call anything here, ctl_netlink_close() included.
 */
typedef void (*ctl_hops_changed_fn)(void *context);

/** An interface of the kernel's. */
struct ctl_link {
	int if_index;
	bool is_there; /**< otherwise it has been removed, or moved to another namespace */
	bool is_up;    /**< by its administrator, and it has a carrier */
	char name[16]; /**< where it is known */
};

/**
 * Some link may have changed, or NULL: any may have. It comes from the loop alone, and calls
 * nothing here but what reads, changes or keeps one link and its addresses.
 */
typedef void (*ctl_link_changed_fn)(void *context, const struct ctl_link *link);

/** @retval -errno  The kernel's reason. */
int ctl_netlink_open(struct ctl_loop *loop, ctl_hops_changed_fn fn, void *context,
	struct ctl_netlink **out) lb_must_check;

/** NULL is allowed. */
void ctl_netlink_close(struct ctl_netlink *netlink);

/**
 * Say which destinations matter, in place of those before. Those that stay keep their hops;
 * the others have none until the kernel has been asked, which fn tells, milliseconds later.
 *
 * @param dsts      n addresses; copied. Doubles are allowed.
 * @retval -ENOMEM  No memory; those before stay.
 */
int ctl_netlink_watch(struct ctl_netlink *netlink, const struct lb_addr dsts[],
	size_t n) lb_must_check;

/**
 * The hop of a watched destination, as it was at the last callback.
 *
 * @return whether there is a route to it that leads to a neighbour: not where the destination
 *         is local, broadcast or multicast, or refused by the kernel's routes.
 */
bool ctl_netlink_find(const struct ctl_netlink *netlink, const struct lb_addr *dst,
	struct ctl_hop *out);

/**
 * A link is down or gone that frames leave by all the same, so the hops through it that are
 * resolved stay in force as they were at the last callback. Told from a link's callback, it is
 * in time: before what the kernel took with the link has been seen. Of LB_PORTS_MAX links.
 */
void ctl_netlink_keep(struct ctl_netlink *netlink, int if_index);

/**
 * It is up again: what was kept makes way for the kernel's hops, each when it is resolved
 * there, and after CTL_HOPS_SETTLE_MS in any case.
 */
void ctl_netlink_settle(struct ctl_netlink *netlink, int if_index);

/** How many destinations have a hop that was kept, and that the kernel has not, or not yet. */
size_t ctl_netlink_count_kept(const struct ctl_netlink *netlink, int if_index);

/** Have each link's changes told from here on. */
void ctl_netlink_watch_links(struct ctl_netlink *netlink, ctl_link_changed_fn fn,
	void *context);

/**
 * Ask for a link as it is now.
 *
 * @param[out] out   Untouched on error.
 * @retval -ENODEV   There is none of that index.
 * @retval -errno    The kernel's reason.
 */
int ctl_netlink_read_link(struct ctl_netlink *netlink, int if_index,
	struct ctl_link *out) lb_must_check;

/**
 * Which way the kernel would send a packet of its own to an address now.
 *
 * @param[out] if_index  Of the link; untouched where the result is false.
 * @return whether there is one by a link to a neighbour: not where the address is local,
 *         broadcast or multicast, or refused by the kernel's routes; nor where it cannot say.
 */
bool ctl_netlink_find_way(struct ctl_netlink *netlink, const struct lb_addr *dst,
	int *if_index) lb_must_check;

/** Set a link's MTU and bring it up. @retval -errno  The kernel's reason. */
int ctl_netlink_set_up(struct ctl_netlink *netlink, int if_index,
	unsigned int mtu) lb_must_check;

/** Set a link's MTU, and leave it up or down. @retval -errno  The kernel's reason. */
int ctl_netlink_set_mtu(struct ctl_netlink *netlink, int if_index,
	unsigned int mtu) lb_must_check;

/** Put an address with its prefix length on a link; one that is there is no error. */
int ctl_netlink_add_address(struct ctl_netlink *netlink, int if_index,
	const struct lb_prefix *address) lb_must_check;

/**
 * Put a route by a neighbour of a link into the main table, as one that is static and has the
 * usual metric. One that is there already is no error; one to the same by another way is.
 *
 * @param to        Without host bits.
 * @param via       Of the same family.
 * @retval -EEXIST  There is another of that metric.
 * @retval -errno   The kernel's other reasons.
 */
int ctl_netlink_add_route(struct ctl_netlink *netlink, int if_index, const struct lb_prefix *to,
	const struct lb_addr *via) lb_must_check;

#endif
