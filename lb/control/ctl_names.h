/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NAMES_H
#define CTL_NAMES_H

/**
 * @file
 * Names to numbers, once and for all: a name keeps its number for the life of the process,
 * also while nobody has the name. So a flow entry never speaks of another backend than it
 * was made for, and a backend that comes back finds its flows.
 *
 * Not thread-safe: the control thread's.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

struct ctl_names; /* opaque */

/** A name under nobody. */
#define CTL_NAMES_NO_PARENT UINT32_MAX

/**
 * @param n_max     Numbers there are: 0..n_max-1.
 * @retval -ENOMEM  No memory.
 */
int ctl_names_create(uint32_t n_max, struct ctl_names **out) lb_must_check;

void ctl_names_destroy(struct ctl_names *names);

/**
 * The number of a name under a parent: the next free one if it has none.
 *
 * @retval 0        Success.
 * @retval -ENOSPC  All n_max numbers are given out.
 * @retval -ENOMEM  No memory.
 */
int ctl_names_intern(struct ctl_names *names, uint32_t parent, const char *name,
	uint32_t *out) lb_must_check;

/**
 * Take back the numbers from n on, as if they had never been given out: of an attempt that
 * failed, and that nobody has heard of.
 */
void ctl_names_take_back(struct ctl_names *names, uint32_t n);

/** Numbers given out. */
uint32_t ctl_names_count(const struct ctl_names *names);

/** Name of a number that is given out; good until destroy(). */
const char *ctl_names_text(const struct ctl_names *names, uint32_t number);

/** Parent of a number that is given out. */
uint32_t ctl_names_parent(const struct ctl_names *names, uint32_t number);

#endif
