/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SENT_BACK_H
#define CTL_SENT_BACK_H

/**
 * @file
 * Tells the log, once, of services' addresses that the kernel has a way to by a port, and would
 * use it: it routes (RFC 1812), and what it is left for such an address, another port's segment
 * say, goes back to the router, which sends it here again, until its TTL ends.
 *
 * Not thread-safe: the control thread's. Asking the kernel waits for its answer.
 */

#include "ctl_reach.h"
#include "ctl_view.h"

/** Most services that are asked about: each takes the kernel some microseconds. */
#define CTL_SENT_BACK_SERVICES_MAX 1000u

/** All zero before the first look. */
struct ctl_sent_back {
	bool has_looked;
};

/**
 * Look at what is in force, the first time. Of a prefix its first address is asked about, and
 * nothing of one that is all of a family: that is no route to the service, but the default.
 *
 * @param reach  Of its ports.
 */
void ctl_sent_back_look(struct ctl_sent_back *sent_back, const struct ctl_reach *reach,
	const struct ctl_view *view);

#endif
