/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ANNOUNCE_H
#define CTL_ANNOUNCE_H

/**
 * @file
 * What a routing daemon beside shuntd is told: while a service is ready (ctl_ready.h), there is
 * a route to its address on an interface of ours. BIRD, FRR and their like read the kernel's
 * routes; so they announce it, and withdraw it when the route goes.
 *
 * The interface is a TUN device that is this process' own: it goes with the process, however
 * that ends, and its routes with it. What the kernel sends there nobody reads.
 *
 * Services may share an address: it is announced while one of them is ready.
 *
 * Not thread-safe: the control thread's. Talking to the kernel waits for its answer.
 */

#include "ctl_loop.h"
#include "ctl_view.h"

struct ctl_announce; /* opaque */

/** The number by which the kernel's tools show whose the routes are ("proto 83"). */
#define CTL_ANNOUNCE_PROTOCOL 83u

/** The interface. */
enum ctl_announce_link {
	CTL_ANNOUNCE_UP,
	CTL_ANNOUNCE_DOWN, /**< by the administrator: nothing is announced until it is up */
	CTL_ANNOUNCE_GONE, /**< taken away; a new one is tried each second */
};

/** "up", "down", "gone". */
extern const char *const ctl_announce_link_words[];

/**
 * Make the interface, without a route.
 *
 * @param conf      Copied.
 * @param[out] out  NULL where nothing is to be announced, which the others take. Untouched on
 *                  error.
 * @retval -errno   The kernel's reason; the log was told, with the cure.
 */
int ctl_announce_open(struct ctl_loop *loop, const struct cfg_announce *conf,
	struct ctl_announce **out) lb_must_check;

/** The interface and its routes are gone. NULL is allowed. */
void ctl_announce_close(struct ctl_announce *announce);

/**
 * Announce the services of a view that are ready, and no others.
 *
 * @param view        In force, and the workers run. Read during the call alone.
 * @param ports_down  As ctl_ready_look() has it.
 */
void ctl_announce_follow(struct ctl_announce *announce, const struct ctl_view *view,
	uint32_t ports_down);

/**
 * Withdraw all, for good. Needs no memory.
 *
 * @return whether anything was announced until now.
 */
bool ctl_announce_withdraw(struct ctl_announce *announce);

/**
 * Why a service's address is not announced, in a few words.
 *
 * @param announce  Not NULL.
 * @param view      In force.
 * @param place     Of the service in its model.
 * @return NULL: it is. Otherwise good until the next call of anything.
 */
const char *ctl_announce_why_not(const struct ctl_announce *announce,
	const struct ctl_view *view, size_t place);

/** @param announce  Not NULL. */
enum ctl_announce_link ctl_announce_read_link(const struct ctl_announce *announce);

#endif
