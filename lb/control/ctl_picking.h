/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PICKING_H
#define CTL_PICKING_H

/**
 * @file
 * What a change of a service moves: its table in force, against the one that it would get.
 */

#include "ctl_view.h"

/**
 * Slots of next whose flows would get a backend of another name than now, somebody rather than
 * nobody and the other way included. Where the sizes differ, each slot stands for the flow in
 * its middle. It builds next's table, which takes its time: milliseconds for a large one.
 *
 * @param now_view  Of now, in force.
 * @param[out] out  Untouched on error.
 * @return 0, or what dp_table_create() returns.
 */
int ctl_picking_count_moved(const struct cfg_service *now,
	const struct ctl_view_service *now_view, const struct cfg_service *next,
	uint64_t next_seed, uint32_t *out) lb_must_check;

#endif
