/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PLANE_H
#define BENCH_PLANE_H

/**
 * @file
 * The data plane of a case: made from a configuration as shuntd makes its own.
 *
 * All of it is for the main thread, but for bench_plane_place().
 */

#include "bench_case.h"
#include "cfg_model.h"
#include "dp.h"

struct ctl_apply;

struct bench_plane {
	const struct bench_case *c;
	struct cfg_model model;
	struct ctl_apply *apply;
	struct dp *dp;
	/** Of each backend id: bench_backend_addr()'s number. Ids stay what they are. */
	uint32_t *places;
	uint32_t n_ids;
	uint64_t n_swaps;
};

/**
 * Start the EAL with an lcore for each worker, and huge pages where some are free.
 *
 * @retval -errno  It does not start; stderr was told.
 */
int bench_start(const char *program, uint32_t n_workers) lb_must_check;

/** @retval -errno  stderr was told; to be given to bench_plane_close() all the same. */
int bench_plane_open(const struct bench_case *c, struct bench_plane *out) lb_must_check;

void bench_plane_close(struct bench_plane *plane);

/**
 * Put another snapshot in force: one backend's weight is halved, or whole again, so that a
 * table is built anew.
 */
int bench_plane_swap(struct bench_plane *plane) lb_must_check;

/** Number of a backend; UINT32_MAX for an id that nobody has. Any thread, between opens. */
uint32_t bench_plane_place(const struct bench_plane *plane, uint32_t id);

#endif
