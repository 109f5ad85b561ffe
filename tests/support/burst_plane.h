/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BURST_PLANE_H
#define BURST_PLANE_H

/**
 * @file
 * A plane under a configuration that uses everything, and what must hold of all that goes
 * through it, whatever its bytes: for tests of all kinds of frames and for fuzzing.
 *
 * Of each packet there is one result; the verdicts' counters add up to the packets; each buffer
 * comes back; and what leaves is a frame that can be parsed, no longer than its port's MTU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfg_model.h"
#include "ctl_apply.h"
#include "dp.h"

/** Packets between two ends, at most. */
#define BURST_PLANE_PACKETS_MAX 8192u

/** Configurations that may be in force, by turns. */
#define BURST_PLANE_MODELS 4u

struct burst_plane {
	/** As it is; changed: backends gone, a service too; and changed in the same way, but
	 * that other backends are gone: services are matched as in that; and so, but that some
	 * services' backends are gone one and all. */
	struct cfg_model models[BURST_PLANE_MODELS];
	struct ctl_apply *apply;
	struct dp *dp;
	struct dp_batch *batch;

	uint64_t now_ns;                          /**< of the last packet */
	uint64_t n_added;                         /**< since the beginning */
	uint64_t n_ended;                         /**< of them, before the last end */
	uint64_t sent;                            /**< frames that left */
	bool is_decided[BURST_PLANE_PACKETS_MAX]; /**< of those since the last end */
	uint64_t added_ns[BURST_PLANE_PACKETS_MAX];
};

/** dp_start_unprivileged() was called. Aborts where it cannot be made. */
void burst_plane_open(struct burst_plane *plane, unsigned int n_workers);

void burst_plane_close(struct burst_plane *plane);

/** Put a configuration in force. @param which  Below BURST_PLANE_MODELS; 0 is as it is. */
void burst_plane_publish(struct burst_plane *plane, unsigned int which);

/**
 * Add a frame that comes step_ns after the one before; a full batch is run before.
 *
 * @return NULL, or what does not hold, in words. So with those below.
 */
const char *burst_plane_add(struct burst_plane *plane, const uint8_t *frame, size_t n,
	uint64_t step_ns) lb_must_check;

const char *burst_plane_run(struct burst_plane *plane) lb_must_check;

/** Run, end, and look whether all has come back. */
const char *burst_plane_end(struct burst_plane *plane) lb_must_check;

#endif
