/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ROUTES_H
#define CTL_ROUTES_H

/**
 * @file
 * Which routes are to be there, and which are: a set of prefixes, each wanted, there, or both.
 * What is not as it is wanted is what whoever talks to the kernel has to do.
 *
 * Pure: no kernel, no clock, no log. Not thread-safe: one thread's own.
 */

#include "ctl_view.h"

struct ctl_route {
	struct lb_prefix prefix;
	bool is_wanted;
	bool is_there;
	bool is_unsure; /**< the kernel has not said whether it did what it was asked last */
	bool is_seen;   /**< since ctl_routes_begin_look() */
	int error; /**< why it is not as it is wanted, of the last attempt; negative errno, or 0
		    */
};

/** Zero: none. To be given to ctl_routes_fini(). */
struct ctl_routes {
	struct ctl_route *items; /**< ascending by address, then length; each prefix once */
	size_t n;
};

/**
 * The prefixes of the services that are ready, in the model's order; services may share one.
 *
 * @param ports_down  As ctl_ready_look() has it.
 * @param[out] out  Room for view->model.n_services. @return how many.
 */
size_t ctl_routes_gather(const struct ctl_view *view, uint32_t ports_down,
	struct lb_prefix out[]);

/**
 * Want these prefixes, and no others. Routes that are there stay in the set, wanted or not;
 * those that are wanted still keep their errors.
 *
 * @param prefixes  n of them, in any order, doubles allowed.
 * @retval -ENOMEM  No memory; the set is as it was.
 */
int ctl_routes_want(struct ctl_routes *routes, const struct lb_prefix prefixes[],
	size_t n) lb_must_check;

/** Want none, which takes no memory. */
void ctl_routes_want_none(struct ctl_routes *routes);

/**
 * The place of the first route from a place on that is there and not wanted, wanted and not
 * there, or unsure; routes->n where there is none.
 */
size_t ctl_routes_next(const struct ctl_routes *routes, size_t from);

/** The route of a prefix, or NULL. */
struct ctl_route *ctl_routes_find(const struct ctl_routes *routes,
	const struct lb_prefix *prefix);

/** None is there any more: the kernel has taken them all. */
void ctl_routes_lose(struct ctl_routes *routes);

/**
 * Look at which routes are there: from begin to end each that is met is seen. At the end those
 * and no others are there, and of one that is not any more the error is -ENOENT.
 */
void ctl_routes_begin_look(struct ctl_routes *routes);

void ctl_routes_see(struct ctl_routes *routes, const struct lb_prefix *prefix);

void ctl_routes_end_look(struct ctl_routes *routes);

/** Leave out what is neither wanted nor there, and surely so. */
void ctl_routes_tidy(struct ctl_routes *routes);

void ctl_routes_fini(struct ctl_routes *routes);

#endif
