/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_HOPS_H
#define CTL_HOPS_H

/**
 * @file
 * Destinations, the neighbours behind them, and the hops that come of both: what is known, what
 * is in doubt, and what is to be asked. Whoever asks the kernel, and takes its answers, is
 * elsewhere (ctl_netlink.c). Pure: time is passed in. Not thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl_netlink.h"
#include "lb_limits.h"

/** First and longest wait between two questions to a neighbour that does not answer. */
#define CTL_HOPS_WAIT_MS     1000u
#define CTL_HOPS_WAIT_MAX_MS 16000u

/** So long after an interface has come up again, hops that were kept wait for the kernel's. */
#define CTL_HOPS_SETTLE_MS 10000u

/** Whom a packet is handed to: one neighbour of ours. */
struct ctl_place {
	struct lb_addr addr;
	int if_index;
};

/** What the kernel says of a neighbour. */
struct ctl_neigh_state {
	unsigned int nud; /**< NUD_*; 0: the kernel has none */
	bool has_mac;     /**< of a kind that Ethernet understands */
	struct lb_mac mac;
};

struct ctl_neigh {
	struct ctl_place place;
	struct ctl_neigh_state state;
	bool is_known; /**< state is what the kernel said last */
	bool is_asked; /**< a question is under way and no notification has overtaken it */
	uint32_t wait_ms;
	uint64_t ask_at_ms;
};

struct ctl_dst {
	struct lb_addr addr;
	bool is_dirty; /**< its route is in doubt */
	bool has_route;
	struct ctl_place next; /**< where has_route */
	size_t neigh_index;    /**< of next, since ctl_hops_gather(); where has_route */
	/* What ctl_hops_find() shows. */
	bool has_hop;
	struct ctl_hop hop;
	bool is_kept; /**< and not what is known */
};

/** An interface that leads there still, whatever the kernel says of it. */
struct ctl_kept {
	int if_index;
	bool is_up;        /**< again: the kernel has its hops anew, soon */
	uint64_t until_ms; /**< where is_up */
};

/** All zero is an empty one. Members are read by others, and written through pointers to items.
 */
struct ctl_hops {
	struct ctl_dst *dsts; /**< in order of their addresses, each once */
	size_t n_dsts;
	struct ctl_neigh *neighs; /**< in order; room for n_dsts */
	size_t n_neighs;
	struct ctl_neigh *spare_neighs; /**< as much room, for the next set */
	struct ctl_kept kept[LB_PORTS_MAX];
	size_t n_kept;
};

/**
 * Replace the destinations. Those that stay keep what is known of them; the others are in
 * doubt.
 *
 * @param addrs     n of them; copied. Doubles are allowed.
 * @retval -ENOMEM  No memory; those before stay.
 */
int ctl_hops_set(struct ctl_hops *hops, const struct lb_addr addrs[], size_t n) lb_must_check;

void ctl_hops_fini(struct ctl_hops *hops);

/** Routes have changed: gather the neighbours behind them, with what was known of them. */
void ctl_hops_gather(struct ctl_hops *hops);

/** Any route may have changed, and whoever did not answer may do so now. */
void ctl_hops_doubt_all(struct ctl_hops *hops);

/** Nothing that was said of neighbours can be relied on. */
void ctl_hops_doubt_neighs(struct ctl_hops *hops);

/**
 * The route to a prefix may have changed: to destinations in it, that is.
 *
 * @param n_bits  0..128, as addr is held: IPv4 has 96 more.
 * @return whether there are any.
 */
bool ctl_hops_doubt_prefix(struct ctl_hops *hops, const struct lb_addr *addr,
	unsigned int n_bits);

/** A neighbour that matters; NULL: it is none. */
struct ctl_neigh *ctl_hops_neigh(const struct ctl_hops *hops, const struct ctl_place *place);

/** Whether a neighbour is to be asked for now. */
bool ctl_neigh_is_due(const struct ctl_neigh *neigh, uint64_t now_ms);

/** It has been asked for; the next time is later, and later yet. */
void ctl_neigh_note_asked(struct ctl_neigh *neigh, uint64_t now_ms);

/** The kernel has said what it is; NULL: that it knows nothing of it. */
void ctl_neigh_take(struct ctl_neigh *neigh, const struct ctl_neigh_state *state);

/**
 * An interface is down, or gone for good, and the kernel has taken its routes and neighbours
 * with it; packets still leave where it led. From the next ctl_hops_show() on the hops through
 * it that are resolved stay as they are shown, whatever is known, until it is up again.
 *
 * @param if_index  Of LB_PORTS_MAX different ones at most.
 */
void ctl_hops_keep(struct ctl_hops *hops, int if_index);

/**
 * It is up again. Each hop that was kept makes way for what is known as soon as that is
 * resolved through the same interface, and after CTL_HOPS_SETTLE_MS in any case. Without effect
 * on one that was not kept.
 */
void ctl_hops_settle(struct ctl_hops *hops, int if_index, uint64_t now_ms);

/** Show what is known now. @return whether any hop is other than it was shown. */
bool ctl_hops_show(struct ctl_hops *hops, uint64_t now_ms);

/** How many destinations are shown with a hop that is kept, and is not what is known. */
size_t ctl_hops_count_kept(const struct ctl_hops *hops, int if_index);

/** The hop of a destination as it is shown, as ctl_netlink_find() has it. */
bool ctl_hops_find(const struct ctl_hops *hops, const struct lb_addr *dst, struct ctl_hop *out);

#endif
