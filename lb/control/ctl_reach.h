/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_REACH_H
#define CTL_REACH_H

/**
 * @file
 * How the backends of a model are reached, from the kernel's next hops. Most changes leave the
 * addresses as they are: then what was found for the model before is the answer.
 *
 * Not thread-safe: the control thread's.
 */

#include "ctl_apply.h"
#include "ctl_netlink.h"

struct ctl_reach {
	struct ctl_netlink *netlink;
	int if_index[LB_PORTS_MAX]; /**< of each port's kernel interface; 0: none */

	/* Of the model before. */
	struct lb_addr *addrs; /**< its backends', in its order */
	size_t n_addrs;
	struct lb_addr *sorted; /**< the same, ascending, each once: those that are watched */
	size_t n_sorted;
	struct ctl_path *paths;
	size_t n_paths;
	bool has_paths; /**< they are as the kernel's hops are now */
	bool has_fixed; /**< there is a port with a fixed next hop: the first is fixed */
	uint16_t fixed;
	size_t n_behind; /**< backends of l2 behind a router, as the log was told */
};

enum ctl_reach_state {
	CTL_REACH_NO_ROUTE, /**< none by a port, and no port has a fixed next hop */
	CTL_REACH_SILENT,   /**< there is one, by a neighbour that is not resolved */
	CTL_REACH_FOUND,
};

/** Without ports. netlink: open, and not owned. */
void ctl_reach_init(struct ctl_reach *reach, struct ctl_netlink *netlink);

void ctl_reach_fini(struct ctl_reach *reach);

/** The hops have changed. */
void ctl_reach_forget(struct ctl_reach *reach);

/**
 * Find the paths to all backends, and have their hops watched. The log is told of backends
 * that are behind a router and of forward: l2, which does not reach them.
 *
 * @param[out] paths  Ascending by dst; malloc'd, the caller's. Untouched on error.
 * @param[out] n      How many: those that lead anywhere.
 * @retval -ENOMEM    No memory.
 */
int ctl_reach_find(struct ctl_reach *reach, const struct cfg_model *model,
	struct ctl_path **paths, size_t *n) lb_must_check;

/** How a backend's address was reached by the last ctl_reach_find(). */
enum ctl_reach_state ctl_reach_look(const struct ctl_reach *reach,
	const struct cfg_dataplane *plane, const struct lb_addr *dst);

#endif
