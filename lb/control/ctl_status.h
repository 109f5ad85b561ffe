/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_STATUS_H
#define CTL_STATUS_H

/**
 * @file
 * All that the status page shows, as one JSON object with CTL_KEY_SCHEMA in it: what is in
 * force, and the counters. config/README.md has its keys.
 *
 * Not thread-safe: the control thread's.
 */

#include "ctl_daemon.h"
#include "ctl_json.h"
#include "ctl_metrics_text.h"

/** Put it; as other answers it is not given if it is longer than CTL_RPC_ANSWER_BYTES_MAX. */
void ctl_status_put(const struct ctl_daemon *daemon, const struct ctl_metrics_busy *busy,
	struct ctl_json *json);

#endif
