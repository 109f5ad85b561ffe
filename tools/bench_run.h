/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

/**
 * @file
 * One case from beginning to end. The main thread's, once bench_start() is done.
 */

#include "bench_case.h"

/**
 * @param[out] out  Untouched on error.
 * @retval -EIO     The packets did not come out as the case has them; stderr was told.
 * @retval -errno   It could not be run; stderr was told.
 */
int bench_run(const struct bench_case *c, struct bench_result *out) lb_must_check;

#endif
