/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_VIEW_H
#define CTL_VIEW_H

/**
 * @file
 * What is in force, as control tells it: the model, the data plane's numbers for its names,
 * and the slots. Made by the builder with each snapshot, and immutable from then on.
 * References to it the control thread alone counts, once the builder has handed it over.
 */

#include "ctl_apply.h"

struct ctl_view_service {
	uint32_t number;               /**< the data plane's for it, see ctl_apply_service() */
	uint32_t *ids;                 /**< of its backends, in the model's order */
	uint32_t *slots;               /**< of its table, the same */
	uint8_t *shares;               /**< of its slots that each keeps, the same */
	struct dp_backend_conf *confs; /**< how each is reached, the same */
	uint32_t n_unhealthy;   /**< of those that are up, with a weight; set by the builder */
	struct dp_table *table; /**< held */
};

struct ctl_view {
	unsigned int n_refs;
	uint64_t generation; /**< of the configuration: 1 at the start, one more each change */
	struct cfg_model model;
	struct ctl_view_service *services;    /**< in the model's order */
	const struct lb_service_table *match; /**< finds the place of a service in them */
	void *match_mem;
	struct lb_addr *own; /**< the ports' addresses */
	size_t n_own;
	uint64_t build_ns;  /**< what the build took */
	uint32_t n_ids;     /**< backends seen so far: all ids are below */
	size_t n_unreached; /**< backends that have no next hop */
};

/**
 * Make a view of apply's last snapshot, with one reference, the caller's.
 *
 * @param model     What it was built from; copied.
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 */
int ctl_view_create(const struct ctl_apply *apply, const struct cfg_model *model,
	uint64_t generation, struct ctl_view **out) lb_must_check;

/**
 * Find the backend of an id, in time linear in all backends there are.
 *
 * @param[out] service  Its service's place in the model; untouched where there is none.
 * @param[out] backend  Its place in that.
 * @return whether there is one.
 */
bool ctl_view_find_backend(const struct ctl_view *view, uint32_t id, size_t *service,
	size_t *backend);

/** Take another reference. */
void ctl_view_hold(struct ctl_view *view);

/** Give a reference back; the last one frees. NULL is allowed. */
void ctl_view_release(struct ctl_view *view);

#endif
