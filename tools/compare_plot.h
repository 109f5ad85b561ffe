/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_PLOT_H
#define COMPARE_PLOT_H

/**
 * @file
 * Results as pictures in a folder: balance.svg and disruption.svg, by algorithm, of the first
 * number of backends and the first size; backends.svg and size.svg, how both go with either,
 * where there are several.
 */

#include "compare_run.h"
#include "lb_compiler.h"

/**
 * Make the folder, if it is not there, before anything is measured. What fails is told on
 * stderr.
 *
 * @retval 0       It is there.
 * @retval -errno  It is not, and stderr was told.
 */
int compare_plot_prepare(const char *folder) lb_must_check;

/**
 * Write all pictures. What fails is told on stderr, and so is what there is too little for.
 *
 * @retval 0       Success.
 * @retval -errno  A file could not be written; stderr was told.
 */
int compare_plot(const char *folder, const struct compare_results *results) lb_must_check;

#endif
