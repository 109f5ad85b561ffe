/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PROBE_H
#define DP_PROBE_H

/**
 * @file
 * What asks a backend through its tunnel, and what comes back: between control's prober, which
 * has IP packets, and the workers. Worker 0 sends what is asked; whichever worker receives an
 * answer puts it on the way back. dp.h has the prober's side.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <rte_ring.h>

#include "dp.h"
#include "dp_mbuf.h"
#include "lb_limits.h"

struct dp_worker; /* dp_worker.h */

/** An IP packet on its way, by value: so no buffer is ever taken or freed by the prober. */
struct dp_probe {
	uint32_t backend; /**< its id; of an answer DP_NONE */
	uint32_t n_bytes;
	uint8_t bytes[DP_PROBE_BYTES_MAX];
};

static_assert(sizeof(struct dp_probe) % 4 == 0, "rings take whole words");

struct dp_probes {
	struct rte_ring *asked;   /**< of struct dp_probe: from the prober to worker 0 */
	struct rte_ring *answers; /**< of the same: from the workers to the prober */
	size_t ring_bytes;
	/** Written by control; relaxed, as it carries nothing but itself. */
	_Atomic bool is_open;
	/** By port, of the prober's; relaxed likewise: an answer is far behind its question. */
	_Atomic bool is_lent[LB_PROBE_PORT_LAST - LB_PROBE_PORT_FIRST + 1];
};

/** @retval -ENOMEM  No memory. */
int dp_probes_init(struct dp_probes *probes) lb_must_check;

/** No worker runs any more. What was never made is allowed. */
void dp_probes_fini(struct dp_probes *probes);

/**
 * Send what is asked on its way: to each packet's backend, up or not, as its flows' packets go.
 * What cannot leave is dropped, and no packet is counted: none was received.
 *
 * @param[out] chain  Frames to be sent, each by its decision's port.
 * @return how many were asked; there may be more than that.
 */
unsigned int dp_probes_send(const struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_chain *chain);

/** Whether any are asked: a look at a line that changes with them alone. */
static inline bool
dp_probes_are_asked(const struct dp_probes *probes)
{
	return probes != NULL && rte_ring_empty(probes->asked) == 0;
}

/**
 * Whether a packet for nobody is the answer to a probe: from a service's address to one of the
 * balancer's own, at a port that probes have. Then it is copied on its way back, or lost where
 * there is no room or nobody has that port now; the packet stays the caller's.
 *
 * @param packet  Parsed.
 */
bool dp_probes_take(const struct dp_worker *worker, const struct dp_snapshot *snapshot,
	const struct lb_packet *packet, const struct rte_mbuf *m);

#endif
