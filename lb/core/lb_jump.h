/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_JUMP_H
#define LB_JUMP_H

/**
 * @file
 * Jump consistent hash (Lamping and Veach, arXiv 1406.2294).
 *
 * A key's bucket is the last of its jumps below the number of buckets; where a jump leads
 * depends on the key alone. So with one bucket more a key stays or goes to the new one, the
 * last: nothing moves needlessly, as long as buckets come and go at the end. Taking any other
 * away renumbers those after it, and moves keys between them all.
 *
 * The paper computes a jump as (bucket + 1) * (2^31 / x) in double precision. Here it is
 * floor((bucket + 1) * 2^31 / x) in integers: the value that the paper means, on every machine.
 * Up to 2^20 buckets the two differ at most where that quotient is a whole number and the
 * rounding of doubles falls below it.
 *
 * Balance is the hash's own: each bucket has a share of 1 / n. Memory: none, but lb_buckets.h's
 * for weights. Time: about ln(buckets) jumps, each a division. Pure; any thread.
 */

#include <stdint.h>

#include "lb_buckets.h"

/** Bucket of a key, 0..n_buckets-1; n_buckets is 1 or more. */
uint32_t lb_jump(uint64_t key, uint32_t n_buckets);

/**
 * Position of the backend that owns a key. A change is minimal where it is of the last
 * backend of the array: it leaves, joins, or changes its weight.
 */
uint32_t lb_jump_owner(const struct lb_buckets *buckets, uint64_t key);

#endif
