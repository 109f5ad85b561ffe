/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NOTIFY_H
#define CTL_NOTIFY_H

/**
 * @file
 * What systemd is told of a service of Type=notify. Where no systemd started the process, all
 * of it does nothing. What cannot be told is left untold: systemd has its time limits for that.
 *
 * All functions are the control thread's.
 */

#include "ctl_loop.h"

/** Started: packets flow and commands are answered; also, a reload is over. */
void ctl_notify_ready(void);

/** A reload begins; ctl_notify_ready() ends it, whatever came of it. */
void ctl_notify_reloading(void);

/**
 * Why a reload was refused, for `systemctl status`; NULL: the last one was not.
 *
 * @param errors  A line each; the first is told.
 */
void ctl_notify_refused(const char *errors);

/**
 * Stopping has begun.
 *
 * @param delay_ms  The orderly stop itself begins that much later; systemd's time limit for it
 *                  (TimeoutStopSec=) is put off where that would end sooner.
 */
void ctl_notify_stopping(uint64_t delay_ms);

/**
 * Tell the watchdog, twice in its time, that the loop turns; where there is a watchdog.
 *
 * @retval -ENOMEM  No memory.
 */
int ctl_notify_watch(struct ctl_loop *loop) lb_must_check;

#endif
