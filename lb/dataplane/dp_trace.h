/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_TRACE_H
#define DP_TRACE_H

/**
 * @file
 * The workers' part of a trace, see dp.h: each looks at what it has decided, and puts what is
 * wanted into a lane of its own, which control empties.
 *
 * A trace in force is published as a snapshot is: a worker reads the pointer once a burst, and
 * lets go of what it points to at its next quiescent state. Of a lane the head and what is
 * missed are the worker's, the tail is control's.
 */

#include <stdatomic.h>
#include <stddef.h>

#include "dp.h"
#include "dp_snapshot.h"
#include "lb_packet.h"

struct dp_trace; /* opaque */

/** The trace in force, NULL without: written by control alone. */
typedef _Atomic(struct dp_trace *) dp_trace_ref;

/** A packet whose verdict is known. */
struct dp_traced {
	const struct lb_packet *packet; /**< NULL: it was not parsed */
	const struct dp_decision *decision;
	uint64_t now_ns;  /**< when it came */
	uint32_t n_bytes; /**< its frame's, as received */
	uint16_t port;    /**< the device's id by which it came */
};

/** Acquire: pairs with the exchange in dp_trace.c, so that all of the trace is seen. */
static inline struct dp_trace *
dp_trace_of(const dp_trace_ref *ref)
{
	return atomic_load_explicit(ref, memory_order_acquire);
}

struct dp_burst; /* dp_worker.h */

/**
 * Which of the next n packets, 64 at most, are to be looked at.
 *
 * @return a bit of each, the first the lowest.
 */
uint64_t dp_trace_draw(struct dp_trace *trace, unsigned int worker, unsigned int n);

/**
 * Look at packets of a burst that was decided. Those that are DP_AWAY are passed over: who
 * decides on them looks at them, and so has who took them for answers to probes.
 *
 * @param worker   The caller's index.
 * @param packets  What was parsed of each; not read where the decision has no ip_bytes.
 * @param traced   Which, from dp_trace_draw().
 */
void dp_trace_burst(struct dp_trace *trace, unsigned int worker,
	const struct dp_snapshot *snapshot, const struct dp_burst *burst,
	const struct lb_packet packets[], uint64_t traced);

/** Look at one packet. @param snapshot  NULL where the decision has no service. */
void dp_trace_one(struct dp_trace *trace, unsigned int worker,
	const struct dp_snapshot *snapshot, const struct dp_traced *traced);

#endif
