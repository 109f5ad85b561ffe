/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NAMES_H
#define CTL_NAMES_H

/**
 * @file
 * Names to numbers. A name keeps its number also while nobody has the name: so a flow entry
 * never speaks of another backend than it was made for, and a backend that comes back finds
 * its flows. Only when all numbers are given out does the number of a name go to another one,
 * of a name that nobody has held for so long that no flow entry can be left.
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
 * The number of a name under a parent: the next free one if it has none, or else one that has
 * rested. The number is then in use now, though it is not held.
 *
 * @retval 0        Success.
 * @retval -ENOSPC  All n_max numbers are given out, and none has rested.
 * @retval -ENOMEM  No memory.
 */
int ctl_names_intern(struct ctl_names *names, uint32_t parent, const char *name,
	uint32_t *out) lb_must_check;

/**
 * What time it is, until the next call; and how long a number has to rest before it may go to
 * another name. Without a call the time is 0, and no number ever has rested.
 *
 * @param now_ns   Of a clock that never goes back.
 * @param rest_ns  Not 0.
 */
void ctl_names_set_time(struct ctl_names *names, uint64_t now_ns, uint64_t rest_ns);

/** The number is in use from now on, until ctl_names_release_all(). */
void ctl_names_hold(struct ctl_names *names, uint32_t number);

/** No number is in use any more: those that were begin their rest. */
void ctl_names_release_all(struct ctl_names *names);

/**
 * Take back the numbers from n on, as if they had never been given out: of an attempt that
 * failed, and that nobody has heard of.
 */
void ctl_names_take_back(struct ctl_names *names, uint32_t n);

/** Numbers given out. */
uint32_t ctl_names_count(const struct ctl_names *names);

/** Name of a number that is given out; good until the number goes to another name. */
const char *ctl_names_text(const struct ctl_names *names, uint32_t number);

/** Parent of a number that is given out. */
uint32_t ctl_names_parent(const struct ctl_names *names, uint32_t number);

#endif
