/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_FLOWS_H
#define REPLAY_FLOWS_H

/**
 * @file
 * An auditor of flows: did all packets of a flow go to one backend?
 *
 * It watches what the packet path decided, and does not ask it: it follows each flow by the
 * rules of the flow table (a SYN or a time-out begins a new one), but forgets none for want
 * of room. So a flow that the flow table had to give up, and that then went elsewhere, is
 * seen as what it is to its user: broken.
 *
 * Bounded: 80 MiB, for REPLAY_FLOWS_MAX flows. None is forgotten while half as many are
 * alive; beyond that a new one may push out, of its neighbours, the one silent for longest.
 */

#include <stdbool.h>

#include "dp.h"

#define REPLAY_FLOWS_MAX (1u << 21)

struct replay_flows; /* opaque */

/** Whether a backend is up or draining now; called when a flow changes its backend. */
typedef bool (*replay_is_live_fn)(const void *context, uint32_t backend);

/**
 * @param timeout_ns  The flow table's, by enum lb_flow_timeout.
 * @retval -ENOMEM    No memory.
 */
int replay_flows_create(const uint64_t timeout_ns[static LB_FLOW_N_TIMEOUTS],
	replay_is_live_fn is_live, const void *context,
	struct replay_flows **out) lb_must_check;

void replay_flows_destroy(struct replay_flows *flows);

/**
 * Look at one packet for which a backend was chosen, in the order of the capture. One that was
 * dropped after that touches its flow, and moves it nowhere.
 */
void replay_flows_see(struct replay_flows *flows, const struct dp_decision *decision,
	uint64_t now_ns);

/** Flows whose packets went to more than one backend. */
uint64_t replay_flows_moved(const struct replay_flows *flows);

/** Of them, those whose first backend was still up or draining when they moved. */
uint64_t replay_flows_broken(const struct replay_flows *flows);

/** Flows given up while they lived: there were more at a time than are held. */
uint64_t replay_flows_forgotten(const struct replay_flows *flows);

#endif
