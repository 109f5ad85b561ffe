/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_RUN_H
#define COMPARE_RUN_H

/**
 * @file
 * Every combination that was asked for, measured.
 */

#include <stddef.h>
#include <stdint.h>

#include "compare_options.h"
#include "lb_compiler.h"

/** One figure over the seeds; n is 0 where it has no value. */
struct compare_figure {
	double sum;
	double min;
	double max;
	uint32_t n;
};

struct compare_change_result {
	const char *change;
	struct compare_figure moved;
	struct compare_figure needless;
	struct compare_figure moved_over_minimal;
	struct compare_figure minimal;
};

struct compare_result {
	enum compare_algorithm algorithm;
	size_t n_backends;
	uint32_t n_slots; /**< 0: it has none */
	struct compare_figure max_over_mean;
	struct compare_figure min_over_mean;
	struct compare_figure stddev_over_mean;
	struct compare_figure without; /**< backends with a weight that get nothing */
	struct compare_figure build_ms;
	struct compare_figure build_over_plain; /**< Maglev's plain build of as many slots */
	struct compare_figure build_bytes;
	struct compare_figure lookup_ns;
	struct compare_figure bytes;
	struct compare_change_result changes[COMPARE_N_CHANGES];
	size_t n_changes;
};

struct compare_results {
	struct compare_result *items; /**< by backends, then algorithm, then size */
	size_t n;
	struct options_list backends;
	struct options_list sizes;
	const char *weights; /**< as they were asked for; of two files, the first */
	uint32_t n_seeds;
	uint32_t n_keys;
	const char *against;               /**< of two files, the second; NULL otherwise */
	size_t n_backends_against;         /**< backends of the second file's service */
	enum compare_algorithm configured; /**< of two files: what the first says */
};

/** The mean; 0 where there is no value. */
double compare_mean(const struct compare_figure *figure);

/** Add a value. */
void compare_add_value(struct compare_figure *figure, double value);

/** The result of an algorithm with so many backends, and slots if it takes a size; or NULL. */
const struct compare_result *compare_find(const struct compare_results *results,
	enum compare_algorithm algorithm, size_t n_backends, uint32_t n_slots);

/**
 * Measure. What is wrong, and what is likely no intention, is told on stderr.
 *
 * @param[out] out  To be given to compare_results_fini(); untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  Backends, sizes or files are not what an algorithm takes; stderr was told.
 * @retval -ENOMEM  No memory; stderr was told.
 */
int compare_run(const struct compare_options *options,
	struct compare_results *out) lb_must_check;

/** As compare_run(), of two configurations. */
int compare_run_config(const struct compare_options *options,
	struct compare_results *out) lb_must_check;

void compare_results_fini(struct compare_results *results);

#endif
