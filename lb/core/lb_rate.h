/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_RATE_H
#define LB_RATE_H

/**
 * @file
 * How often something may be answered: to one source, and to all together.
 *
 * Token buckets, kept as the time at which a bucket is full again: eight bytes each, and
 * neither a refill nor a division. An answer needs a token of its source's bucket and one of
 * the bucket of all; where either has none, neither loses any. So a source over its rate takes
 * nothing from others.
 *
 * A source is an IPv4 address, or 64 bits of an IPv6 address, which one host may well have to
 * itself. Which bucket is a source's follows from a hash with a secret, so that nobody outside
 * can aim at another's. Sources are not told apart within a bucket: there is nothing to evict,
 * and a flood of made-up sources cannot buy a full bucket by pushing out an empty one. It may
 * use up what all together have while it lasts, and no longer than that; more than the rate of
 * all is never answered.
 *
 * Times are nanoseconds of any clock, and may wrap. Where it goes back by more than a bucket's
 * burst, or 292 years pass between two questions, that bucket is taken for empty at once: its
 * tokens come anew from then on, and never more of them than the rate.
 *
 * One allow touches one cache line of buckets, beside the one that all share. Not thread-safe:
 * one worker's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"

/** Largest rate and burst; the smallest of either is 1. */
#define LB_RATE_PER_S_MAX 1000000u
#define LB_RATE_BURST_MAX 65536u

/** Most buckets of sources. */
#define LB_RATE_BUCKETS_MAX (1u << 24)

/** per_s answers a second in the long run, and burst of them at once after a rest. */
struct lb_rate_limit {
	uint32_t per_s; /**< 1..LB_RATE_PER_S_MAX */
	uint32_t burst; /**< 1..LB_RATE_BURST_MAX */
};

struct lb_rate_conf {
	uint32_t n_buckets; /**< of sources; a power of two, 1..LB_RATE_BUCKETS_MAX */
	struct lb_rate_limit source;
	struct lb_rate_limit total;
	uint64_t secret; /**< random in the daemon, fixed in a replay */
};

struct lb_rate; /* opaque */

/** Bytes for lb_rate_init(); 0 where n_buckets is not acceptable. */
size_t lb_rate_bytes(const struct lb_rate_conf *conf);

/**
 * Make all buckets, full, in the caller's memory.
 *
 * @param mem       lb_rate_bytes(conf) bytes, LB_CACHE_LINE aligned.
 * @param now_ns    Now.
 * @param[out] out  The buckets, inside mem; untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  Something of conf is out of range.
 */
int lb_rate_init(void *mem, const struct lb_rate_conf *conf, uint64_t now_ns,
	struct lb_rate **out) lb_must_check;

/** Whether source may be answered now; if so, a token of each of its two buckets is gone. */
bool lb_rate_allow(struct lb_rate *rate, const struct lb_addr *source,
	uint64_t now_ns) lb_must_check;

#endif
