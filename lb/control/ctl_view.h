/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_VIEW_H
#define CTL_VIEW_H

/**
 * @file
 * What is in force, as control tells it: the model, the data plane's numbers for its names,
 * and the slots. Made by the builder with each snapshot, and immutable from then on.
 */

#include "ctl_apply.h"

struct ctl_view_service {
	uint32_t *ids;   /**< of its backends, in the model's order */
	uint32_t *slots; /**< of its table, the same */
};

struct ctl_view {
	uint64_t generation; /**< of the configuration: 1 at the start, one more each change */
	struct cfg_model model;
	struct ctl_view_service *services; /**< in the model's order */
	uint64_t build_ns;                 /**< what the build took */
	size_t n_unreached;                /**< backends that have no next hop */
};

/**
 * Make a view of apply's last snapshot.
 *
 * @param model     What it was built from; copied.
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 */
int ctl_view_create(const struct ctl_apply *apply, const struct cfg_model *model,
	uint64_t generation, struct ctl_view **out) lb_must_check;

/** NULL is allowed. */
void ctl_view_destroy(struct ctl_view *view);

#endif
