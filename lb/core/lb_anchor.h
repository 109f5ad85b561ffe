/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_ANCHOR_H
#define LB_ANCHOR_H

/**
 * @file
 * AnchorHash (Mendelson, Vargaftik, Barabash, Lorenz, Keslassy and Orda, arXiv 1812.09674): the
 * in-place variant, algorithm 3.
 *
 * There are as many buckets as the capacity says, of which some work. A key is hashed over all
 * buckets; where that one does not work, over those that worked just after it was removed,
 * and so on. So any bucket may be removed, and its keys alone move, to the others evenly; add
 * gives back what was removed last, and moves to it the keys that it had. Nothing moves
 * needlessly, and each working bucket has a share of 1 / n_working.
 *
 * Who owns a key depends on the order in which buckets were removed, not on the set alone: two
 * balancers agree only where they saw the same history.
 *
 * All buckets are equal. Of a weight the paper says nothing: a backend may have several, and
 * which bucket is whose is the caller's business.
 *
 * Memory: 20 bytes a bucket. Time: remove and add O(1); a lookup about 1 + ln(capacity /
 * n_working) hashes. Lookups on any number of threads while none changes it.
 */

#include <stdint.h>

#include "lb_compiler.h"

/** Most buckets. */
#define LB_ANCHOR_BUCKETS_MAX (1u << 24)

/** Element i of the paper's arrays. */
struct lb_anchor_bucket {
	uint32_t n_after;   /**< A: working buckets just after i's removal; 0 = i works */
	uint32_t successor; /**< K: who took i's place when it was removed */
	uint32_t working;   /**< W: the bucket in place i of those that work */
	uint32_t place;     /**< L: where in W bucket i is, or was last */
	uint32_t removed;   /**< R: the i-th of those that were removed, as a stack */
};

struct lb_anchor {
	uint32_t capacity;
	uint32_t n_working;
	struct lb_anchor_bucket *buckets; /**< the caller's, capacity of them */
};

/**
 * Begin with the buckets 0..n_working-1 at work, and those above removed from the last down.
 *
 * @param buckets   Room for capacity; the caller's, and used as long as the anchor.
 * @param capacity  1..LB_ANCHOR_BUCKETS_MAX.
 * @param n_working 1..capacity.
 * @retval 0        Success.
 * @retval -EINVAL  A number out of range; the anchor is untouched.
 */
int lb_anchor_init(struct lb_anchor *anchor, struct lb_anchor_bucket *buckets,
	uint32_t capacity, uint32_t n_working) lb_must_check;

/**
 * Remove a bucket.
 *
 * @retval 0        Success.
 * @retval -ENOENT  It does not work, or there is none of that number.
 * @retval -EBUSY   It is the last.
 */
int lb_anchor_remove(struct lb_anchor *anchor, uint32_t bucket) lb_must_check;

/**
 * Put the bucket that was removed last to work again.
 *
 * @param[out] bucket Which that was; untouched on error.
 * @retval 0          Success.
 * @retval -ENOSPC    All work.
 */
int lb_anchor_add(struct lb_anchor *anchor, uint32_t *bucket) lb_must_check;

/** The working bucket that owns a key, a hash of 64 even bits. */
uint32_t lb_anchor_owner(const struct lb_anchor *anchor, uint64_t key);

#endif
