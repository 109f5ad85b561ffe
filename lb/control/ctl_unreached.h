/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_UNREACHED_H
#define CTL_UNREACHED_H

/**
 * @file
 * Tells the log of backends that stay without a next hop, and why: after a start, after a
 * change, or when a neighbour is lost. Once, until there are more.
 *
 * Not thread-safe: the control thread's.
 */

#include "ctl_reach.h"
#include "ctl_view.h"

/** Between two looks. What was so at both is told: a next hop that is being asked for is not.
 */
#define CTL_UNREACHED_LOOK_MS 3000u

/** All zero before the first look. */
struct ctl_unreached {
	size_t n_last; /**< backends, as of the last look */
	size_t n_told;
};

/**
 * Look at what is in force.
 *
 * @param reach  As it was found for the view's model, or for one that is about to follow it.
 */
void ctl_unreached_look(struct ctl_unreached *unreached, const struct ctl_reach *reach,
	const struct ctl_view *view);

#endif
