/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_LOOP_H
#define DP_LOOP_H

/**
 * @file
 * A worker's poll loop: receive, forward, send, round and round.
 */

#include "dp_plane.h"

/**
 * Poll until is_over.
 *
 * Runs on a worker lcore; its worker is online while it does.
 *
 * @retval -ENOMEM  No memory to begin with.
 */
int dp_loop_run(struct dp_lcore *lcore);

#endif
