/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PICKING_H
#define CTL_PICKING_H

/**
 * @file
 * A service's table as the data plane builds it, for control's own questions: which backend a
 * flow would get, and what a change would move.
 */

#include "cfg_model.h"
#include "lb_picker.h"

struct ctl_picking {
	const struct lb_picker *picker; /**< NULL: there is nobody to pick */
	void *mem;
};

/**
 * Build the table of a service; backends that drain or are down get no slot. Backends are
 * their places in the service.
 *
 * @param[out] out  Untouched on error; to be given to ctl_picking_fini().
 * @return 0, or what lb_picker_build() returns; nobody to pick is no error.
 */
int ctl_picking_init(const struct cfg_service *service, uint64_t hash_seed,
	struct ctl_picking *out) lb_must_check;

void ctl_picking_fini(struct ctl_picking *picking);

/**
 * Slots of next whose flows would get a backend of another name than now, somebody rather than
 * nobody and the other way included. Where the sizes differ, each slot stands for the flow in
 * its middle.
 *
 * @param[out] out  Untouched on error.
 * @return 0, or as ctl_picking_init().
 */
int ctl_picking_count_moved(const struct cfg_service *now, uint64_t now_seed,
	const struct cfg_service *next, uint64_t next_seed, uint32_t *out) lb_must_check;

#endif
