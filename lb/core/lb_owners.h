/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_OWNERS_H
#define LB_OWNERS_H

/**
 * @file
 * Not one owner of a key but the next k, as who keeps copies needs them: distinct, and where
 * backends have zones (what fails together: a rack, a power supply), of different zones.
 *
 * Both schemes rank all backends for a key: the ring by its first point at or after the hash,
 * rendezvous by its score. Without zones the result is the first k of that ranking, so the
 * first is the key's owner, k owners begin k + 1, and when a backend leaves, it is gone from
 * the result, one is added at the end, and the others stay in order.
 *
 * With zones it is the best of each zone, in the order of the ranking. Only where there are
 * fewer zones than k, the best of those that were passed over follow, in the same order.
 *
 * No memory but the result. Pure functions; any thread; not for the packet path.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_hrw.h"
#include "lb_ring.h"

/**
 * The next owners on a ring. Time: at most twice the points of the ring, a k for each.
 *
 * @param zones       Of each backend, by its position; NULL: no zones.
 * @param k           How many are wanted.
 * @param[out] owners Room for k: positions in the array that the ring was created of.
 * @return            How many there are: k, or all backends where they are fewer.
 */
size_t lb_owners_on_ring(const struct lb_ring *ring, uint64_t hash, const uint32_t *zones,
	size_t k, uint32_t *owners);

/** What rendezvous ranks. */
struct lb_owners_hrw {
	const struct lb_hrw_backend *backends; /**< n of them in canonical order */
	size_t n;
	const struct lb_hrw_log2 *log2;
	const uint32_t *zones; /**< of each backend, by its position; NULL: no zones */
};

/**
 * The next owners by rendezvous. Time: n * k scores, a k for each.
 *
 * @param key         lb_hrw_key() of a slot, or any other hash.
 * @param k           How many are wanted.
 * @param[out] owners Room for k: positions in backends[].
 * @return            How many there are: k, or n where that is less.
 */
size_t lb_owners_by_hrw(const struct lb_owners_hrw *hrw, uint64_t key, size_t k,
	uint32_t *owners);

#endif
