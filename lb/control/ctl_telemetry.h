/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_TELEMETRY_H
#define CTL_TELEMETRY_H

/**
 * @file
 * The daemon's figures as commands of DPDK's telemetry, /shunt/…: those that Prometheus and
 * `shuntctl stats` have. They are answered while the loop runs, between its callbacks, and with
 * null before and after.
 */

#include "ctl_daemon.h"
#include "ctl_loop.h"

struct ctl_telemetry; /* opaque */

/**
 * Answer from here on.
 *
 * @param daemon    Whose figures; its view is there once the loop runs.
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 * @retval -errno   What dp_telemetry_open() returns.
 */
int ctl_telemetry_open(struct ctl_loop *loop, const struct ctl_daemon *daemon,
	struct ctl_telemetry **out) lb_must_check;

/** Waits for the one that is being answered: not from a callback. NULL is allowed. */
void ctl_telemetry_close(struct ctl_telemetry *telemetry);

#endif
