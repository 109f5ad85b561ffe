/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_LIMITS_H
#define CTL_LIMITS_H

/**
 * @file
 * How many files a process may have open, and how many shuntd needs.
 */

#include "cfg_model.h"
#include "lb_compiler.h"

/**
 * Raise the limit, as far as this process may, to what the daemon needs with all its clients.
 *
 * What is needed is estimated: a little more for each port and each of its queues than any
 * driver has been seen to open. The log is told where the limit stays below it: then something
 * may fail that does not tell why.
 *
 * @param n_workers  Of the model, or as many as 'auto' is.
 * @retval -EMFILE   The daemon cannot even start.
 */
int ctl_limits_raise(const struct cfg_model *model, unsigned int n_workers) lb_must_check;

/**
 * Raise it, as far as this process may, for n files beside those: health checks under way.
 *
 * @return how many of the n may be open at a time, so that the others find theirs.
 */
size_t ctl_limits_make_room(size_t n);

#endif
