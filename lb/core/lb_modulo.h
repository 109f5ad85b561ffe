/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_MODULO_H
#define LB_MODULO_H

/**
 * @file
 * Hash modulo the number of buckets: what consistent hashing is there to improve on.
 *
 * Balance is the hash's own. But where n backends of equal weights become n + 1, or n + 1
 * become n, n / (n + 1) of all keys move on average, while 1 / (n + 1) must: a key stays only
 * where both remainders mean the same backend.
 *
 * Memory: lb_buckets.h's. Time: log2(n), for the weights. Pure; any thread.
 */

#include <stdint.h>

#include "lb_buckets.h"

/** Position of the backend that owns a hash: of bucket hash mod lb_buckets_count(). */
uint32_t lb_modulo_owner(const struct lb_buckets *buckets, uint64_t hash);

#endif
