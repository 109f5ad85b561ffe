/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_HEAP_H
#define HC_HEAP_H

/**
 * @file
 * Timers: which of many is due next. A binary heap, so that each step takes time in proportion
 * to the logarithm of how many there are.
 *
 * The caller owns timers and heap. Not thread-safe.
 */

#include <stddef.h>
#include <stdint.h>

/** One in a heap. */
struct hc_timer {
	uint64_t due_ns; /**< changed by hc_heap_put() alone while it is in */
	size_t place;    /**< the heap's; HC_HEAP_NONE: it is in none */
};

#define HC_HEAP_NONE SIZE_MAX

struct hc_heap {
	struct hc_timer **timers; /**< room for all that are ever in */
	size_t n;
};

/** Put a timer in, or change when it is due. */
void hc_heap_put(struct hc_heap *heap, struct hc_timer *timer, uint64_t due_ns);

/** Take one out that is in. */
void hc_heap_remove(struct hc_heap *heap, struct hc_timer *timer);

/** The one that is due first; NULL: there is none. */
struct hc_timer *hc_heap_first(const struct hc_heap *heap);

#endif
