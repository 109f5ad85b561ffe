/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_ORDERS_H
#define REPLAY_ORDERS_H

/**
 * @file
 * The files that say what a replay is to do, read and checked before it does anything.
 */

#include "replay_events.h"
#include "replay_expect.h"
#include "replay_options.h"

struct replay_orders {
	struct cfg_model model;
	struct replay_events events;
	struct replay_expect *expect; /**< NULL: nothing is expected */
};

/**
 * Read the configuration, the events and the expectations; rehearse the events, in the order
 * that the capture's own time gives them where their own does not say; and see that nothing
 * that is read would be overwritten.
 *
 * @param[out] out  To be given to replay_orders_fini(), whatever is returned.
 * @return what to exit with; everything wrong has been said on stderr.
 */
enum replay_status replay_orders_read(const struct replay_options *options,
	struct replay_orders *out) lb_must_check;

void replay_orders_fini(struct replay_orders *orders);

/** Whether two outputs are one file or pipe, by whatever names; "-" is standard output. */
bool replay_is_same_output(const char *a, const char *b);

/** The port of a model that --port names, or its first where it is NULL; NULL: none. */
const struct cfg_port *replay_find_port(const struct cfg_model *model, const char *name);

#endif
