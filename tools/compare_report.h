/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_REPORT_H
#define COMPARE_REPORT_H

/**
 * @file
 * Results on standard output: JSON, or tables that say what they mean.
 */

#include "compare_run.h"
#include "lb_compiler.h"

/**
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 * @retval -EIO     It could not be written.
 */
int compare_report_json(const struct compare_results *results) lb_must_check;

/** As compare_report_json(). */
int compare_report_text(const struct compare_results *results) lb_must_check;

/** Which algorithm suits what, by the results for so many backends and slots. */
void compare_report_advice(const struct compare_results *results, size_t n_backends,
	uint32_t n_slots);

/** What no figure shows of the algorithms that there are results of. */
void compare_report_caveats(const struct compare_results *results);

#endif
