/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_BUCKETS_H
#define LB_BUCKETS_H

/**
 * @file
 * Weights for schemes that know nothing but numbered buckets: a backend has as many buckets in
 * a row as its weight, in the order of the array, and those of weight 0 have none.
 *
 * That is what repeating a backend in the list does, in the memory of one number a backend:
 * the end of its row. So a change of weight renumbers the buckets of all backends after it.
 *
 * Time: n to set up, log2(n) to look up. Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

struct lb_buckets {
	size_t n;
	const uint32_t *ends; /**< ends[b]: buckets of backends 0..b; not descending */
};

/**
 * Number the buckets.
 *
 * @param weights   n of them, 0..LB_WEIGHT_MAX; not kept.
 * @param n         0..LB_SERVICE_BACKENDS_MAX.
 * @param ends      Room for n; the caller's, and used as long as the result.
 * @param[out] out  The buckets; untouched on error.
 * @retval 0        Success.
 * @retval -E2BIG   Too many backends.
 * @retval -EINVAL  A weight out of range.
 * @retval -ENOENT  No weight above 0.
 */
int lb_buckets_init(const uint32_t *weights, size_t n, uint32_t *ends,
	struct lb_buckets *out) lb_must_check;

/** How many there are, 1 or more: the sum of the weights. */
uint32_t lb_buckets_count(const struct lb_buckets *buckets);

/** Position of the backend that has a bucket, 0..lb_buckets_count() - 1. */
uint32_t lb_buckets_owner(const struct lb_buckets *buckets, uint32_t bucket);

#endif
