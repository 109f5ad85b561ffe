/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

/**
 * @file
 * Results, as a table for people, row by row as they come, or one JSON object at the end.
 * On standard output.
 */

#include "bench_case.h"
#include "bench_memory.h"

struct bench_report; /* opaque */

/** @retval -ENOMEM  No memory. */
int bench_report_create(bool is_json, struct bench_report **out) lb_must_check;

/** NULL is allowed. */
void bench_report_destroy(struct bench_report *report);

/** @retval -errno  It cannot be written, or there is no memory. */
int bench_report_add(struct bench_report *report, const struct bench_case *c,
	const struct bench_result *result) lb_must_check;

int bench_report_add_memory(struct bench_report *report, const struct bench_options *options,
	const struct bench_memory *memory) lb_must_check;

/** Write what is left to be written. @retval -errno  It cannot be. */
int bench_report_end(struct bench_report *report) lb_must_check;

#endif
