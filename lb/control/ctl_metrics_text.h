/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_METRICS_TEXT_H
#define CTL_METRICS_TEXT_H

/**
 * @file
 * The daemon's figures as Prometheus' text format, version 0.0.4.
 */

#include <stdio.h>

#include "ctl_daemon.h"
#include "dp.h"

/** How busy each worker was between the last two samples. */
struct ctl_metrics_busy {
	uint64_t last_ns;
	uint64_t last_turns_ns[LB_WORKERS_MAX];
	double ratio[LB_WORKERS_MAX]; /**< of its time in turns that found packets, 0 to 1 */
};

/** Take a sample; all zero is none yet. */
void ctl_metrics_sample(struct ctl_metrics_busy *busy, const struct dp *dp);

/** Write all there is. The caller looks for the stream's errors. */
void ctl_metrics_write(const struct ctl_daemon *daemon, const struct ctl_metrics_busy *busy,
	FILE *to);

#endif
