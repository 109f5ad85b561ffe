/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_REPLICAS_H
#define COMPARE_REPLICAS_H

/**
 * @file
 * Where copies of a key go: the next k owners on a ring and by rendezvous, in zones of their
 * own as far as there are as many (lb_owners.h), for the backends of a service.
 */

#include "compare_options.h"
#include "lb_compiler.h"

/**
 * Place copies, judge them, and write that to standard output.
 *
 * @retval 0        Success.
 * @retval -EINVAL  The configuration is wrong, or an algorithm cannot take it; stderr was told.
 * @retval -ENOMEM  No memory; stderr was told.
 * @retval -EIO     It could not be written.
 */
int compare_replicas(const struct compare_options *options) lb_must_check;

#endif
