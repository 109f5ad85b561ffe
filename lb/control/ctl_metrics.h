/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_METRICS_H
#define CTL_METRICS_H

/**
 * @file
 * The daemon's figures by HTTP, in the control thread's loop: at http://ADDRESS:PORT/ a page
 * for people, what that shows at /status.json, and at /metrics the text that Prometheus reads.
 * Who reads changes nothing.
 *
 * One request a connection, and CTL_METRICS_CLIENT_MS for all of it. With
 * CTL_METRICS_CLIENTS_MAX connections open the oldest is cut off, so that whoever comes is
 * heard, however many hang on. Those who ask for one in one turn of the loop share its text;
 * one that took CTL_METRICS_DEAR_MS or more to write is also for those who ask in the nine
 * times as long after that, so that who asks without pause takes a tenth of the thread. When
 * CTL_METRICS_HELD_BYTES_MAX wait to be read, those who were answered and have not read yet
 * are cut off.
 *
 * Not thread-safe: the control thread's.
 */

#include "ctl_daemon.h"
#include "ctl_loop.h"

#define CTL_METRICS_CLIENTS_MAX    32u
#define CTL_METRICS_CLIENT_MS      10000u
#define CTL_METRICS_DEAR_MS        10u
#define CTL_METRICS_HELD_BYTES_MAX ((size_t)256 << 20)

struct ctl_metrics; /* opaque */

/**
 * Listen.
 *
 * @param address   ADDRESS:PORT, an IPv6 address in brackets.
 * @param daemon    Whose figures; its view is there once the loop runs.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  No such address.
 * @retval -errno   The kernel's reason: -EADDRINUSE, -EADDRNOTAVAIL, …
 */
int ctl_metrics_open(struct ctl_loop *loop, const char *address,
	const struct ctl_daemon *daemon, struct ctl_metrics **out) lb_must_check;

/** Cut all clients off. NULL is allowed. */
void ctl_metrics_close(struct ctl_metrics *metrics);

#endif
