/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_RING_H
#define LB_RING_H

/**
 * @file
 * Consistent hashing on a ring: each backend has points on a circle of 2^64, and a hash
 * belongs to the first point at or after it, past 2^64 - 1 from 0 again.
 *
 * Point k of a backend, k = 0, 1, ..., is lb_hash_bytes(k as 4 bytes, least significant first)
 * with the backend's h_1 as seed. Points are sorted by value; of two equal ones, that of the
 * backend earlier in canonical order comes first.
 *
 * A ring is immutable once created; owner() and fill() may run on any number of threads.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_limits.h"

/** One backend as a ring sees it. */
struct lb_ring_backend {
	uint64_t h_1;    /**< hash of its name */
	uint32_t weight; /**< 1..LB_WEIGHT_MAX */
	uint32_t index;  /**< what owner() and fill() give, 0..65535 */
};

struct lb_ring_point {
	uint64_t at;
	uint32_t backend; /**< position in create()'s array */
	uint32_t index;   /**< its index */
};

struct lb_ring {
	size_t n_points;
	struct lb_ring_point points[]; /**< ascending */
};

/** Points of a weight: max(1, (LB_RING_POINTS_PER_100 * weight + 50) / 100). */
uint32_t lb_ring_points(uint32_t weight);

/**
 * Create a ring.
 *
 * @param backends  n of them in canonical order, at least one; not kept.
 * @param[out] out  The ring; lb_ring_destroy() it. Untouched on error.
 * @retval 0        Success.
 * @retval -E2BIG   More than LB_RING_POINTS_MAX points.
 * @retval -ENOMEM  No memory.
 */
int lb_ring_create(const struct lb_ring_backend *backends, size_t n,
	struct lb_ring **out) lb_must_check;

/** Free a ring; NULL is allowed. */
void lb_ring_destroy(struct lb_ring *ring);

/** The first point at or after a hash, past the last one the first of all. */
size_t lb_ring_find(const struct lb_ring *ring, uint64_t hash);

/** Index of the backend that owns a hash. */
uint32_t lb_ring_owner(const struct lb_ring *ring, uint64_t hash);

/**
 * Fill slots[n_slots] with indices: slot s stands at floor(s * 2^64 / n_slots), and belongs to
 * the owner of that position.
 */
void lb_ring_fill(const struct lb_ring *ring, uint32_t n_slots, uint16_t *slots);

#endif
