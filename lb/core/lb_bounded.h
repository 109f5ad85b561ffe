/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_BOUNDED_H
#define LB_BOUNDED_H

/**
 * @file
 * Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, SODA 2018, arXiv
 * 1608.01350) on the ring of lb_ring.h: a slot goes to the first point at or after it whose
 * backend is not yet full.
 *
 * Of n_slots slots a backend of weight w has room for
 *
 *     ceil((1 + excess / 100) * n_slots * w / sum of weights)
 *
 * and never more: that is the balance, and the rest is the ring's. The paper knows equal
 * weights alone. With an excess of e, 0 < e <= 1, a backend more or less moves O(1 / e^2) times
 * as many slots as it must, on average, as what is full sends others on.
 *
 * Who is full when a slot asks depends on the order of slots, so that is fixed: 0, step, 2 *
 * step, ... modulo n_slots, where step is the least number from floor(n_slots * 0.618) on that
 * has no divisor in common with n_slots. So all parts of the ring fill alike, where in
 * ascending order its end would get what its beginning left. The table is a function of its
 * arguments alone.
 *
 * Memory: the ring, 4 bytes a point and 4 a backend. Time: n_slots * log2(points), as points of
 * full backends are passed over together. Pure; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_ring.h"

/** Largest excess, in percent. */
#define LB_BOUNDED_EXCESS_PCT_MAX 1000u

struct lb_bounded {
	const struct lb_ring *ring;
	const struct lb_ring_backend *backends; /**< those that the ring was created of */
	size_t n;
	uint32_t excess_pct; /**< 0..LB_BOUNDED_EXCESS_PCT_MAX; 25 is usual */
	uint32_t *rooms;     /**< scratch space, n elements */
	uint32_t *links;     /**< scratch space, as many elements as the ring has points */
};

/** Most slots that backend b, a position, gets of n_slots. */
uint32_t lb_bounded_room(const struct lb_bounded *bounded, size_t b, uint32_t n_slots);

/**
 * Fill slots[n_slots] with indices: slot s stands at floor(s * 2^64 / n_slots).
 *
 * @param n_slots    LB_SLOTS_MIN..LB_SLOTS_MAX.
 * @retval 0         Success.
 * @retval -EINVAL   The excess or n_slots is out of range; nothing is written.
 */
int lb_bounded_fill(const struct lb_bounded *bounded, uint32_t n_slots,
	uint16_t *slots) lb_must_check;

#endif
