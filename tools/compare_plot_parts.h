/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_PLOT_PARTS_H
#define COMPARE_PLOT_PARTS_H

/**
 * @file
 * What draws one picture each, and a scale that they share.
 */

#include <stdio.h>

#include "compare_run.h"
#include "svg.h"

/** Percent on a logarithmic scale, and 0 in a place of its own beyond its end. */
struct compare_log_scale {
	int least;      /**< power of ten */
	int most;       /**< likewise, above least */
	double zero_at; /**< pixel of 0 */
	double from;    /**< pixel of 10^least */
	double to;      /**< pixel of 10^most */
};

/** Widen a scale by whole powers, so that a percentage is on it; 0, or NAN, is none. */
void compare_scale_widen(struct compare_log_scale *scale, double percent);

/** The pixel of a percentage; what is beyond an end stands there. */
double compare_scale_percent(const struct compare_log_scale *scale, double percent);

/** "0.01 %" of a power of ten. */
const char *compare_format_power(int power, char out[static 16]);

void compare_plot_balance(FILE *out, const struct compare_results *results);
void compare_plot_disruption(FILE *out, const struct compare_results *results);

/** Over the number of backends. */
void compare_plot_backends(FILE *out, const struct compare_results *results);

/** Over the size of the table. */
void compare_plot_size(FILE *out, const struct compare_results *results);

#endif
