/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_LOOP_H
#define DP_LOOP_H

/**
 * @file
 * A worker's poll loop: receive, forward, send, round and round.
 */

#include "dp_plane.h"

struct dp_loop; /* opaque */

/**
 * Make the loop of a worker of a plane with ports.
 *
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 */
int dp_loop_create(struct dp *dp, struct dp_worker *worker, struct dp_loop **out) lb_must_check;

/** NULL is allowed. */
void dp_loop_destroy(struct dp_loop *loop);

/** Poll until is_over, on a worker lcore; its worker is online meanwhile. */
void dp_loop_run(struct dp_lcore *lcore);

/*
 * The end, once no loop runs any more and before the ports are closed, so that whatever is
 * still under way has a verdict: on one thread, each for all loops before the next.
 */

/** Deal with what other workers have handed over; that may be on its way to yet another. */
void dp_loop_empty_inbox(struct dp_loop *loop);

/** Take in the last first fragments, give up what waits even so, send what is to be sent. */
void dp_loop_give_up(struct dp_loop *loop);

/** Of worker 0: send what the others left to it; what a device does not take is dropped. */
void dp_loop_empty_rings(struct dp_loop *loop);

#endif
