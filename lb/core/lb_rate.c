/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_rate.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>

#include "lb_hash.h"

#define NS_PER_S         UINT64_C(1000000000)
#define IPV6_PREFIX_BITS 64u

/*
 * A bucket is the time at which it has all its tokens again. A token costs a step of that time,
 * and may be had while the bucket lacks no more than slack, all its tokens but one.
 */
struct limit {
	uint64_t step_ns;
	uint64_t slack_ns;
};

struct lb_rate {
	alignas(LB_CACHE_LINE) uint64_t secret;
	struct limit source;
	struct limit total;
	uint64_t total_full_ns;
	uint32_t mask; /* of a bucket's index */

	alignas(LB_CACHE_LINE) uint64_t full_ns[]; /* mask + 1 of them */
};

static_assert(sizeof(struct lb_rate) == LB_CACHE_LINE, "what all share is one line");
static_assert(LB_RATE_BURST_MAX * NS_PER_S < INT64_MAX,
	"a bucket fills in half a wrap of time");

size_t
lb_rate_bytes(const struct lb_rate_conf *conf)
{
	const size_t n = conf->n_buckets;

	if (n == 0 || n > LB_RATE_BUCKETS_MAX || (n & (n - 1)) != 0)
		return 0;
	return sizeof(struct lb_rate) + n * sizeof(uint64_t);
}

static bool
is_in_range(const struct lb_rate_limit *limit)
{
	return limit->per_s >= 1 && limit->per_s <= LB_RATE_PER_S_MAX && limit->burst >= 1 &&
	       limit->burst <= LB_RATE_BURST_MAX;
}

/* The step is rounded up: rather too few than more than the rate. */
static struct limit
limit_of(const struct lb_rate_limit *conf)
{
	const uint64_t step_ns = (NS_PER_S + conf->per_s - 1) / conf->per_s;

	return (struct limit){
		.step_ns = step_ns,
		.slack_ns = step_ns * (conf->burst - 1),
	};
}

int
lb_rate_init(void *mem, const struct lb_rate_conf *conf, uint64_t now_ns, struct lb_rate **out)
{
	struct lb_rate *rate = mem;

	if (lb_rate_bytes(conf) == 0 || !is_in_range(&conf->source) ||
		!is_in_range(&conf->total))
		return -EINVAL;

	*rate = (struct lb_rate){
		.secret = conf->secret,
		.source = limit_of(&conf->source),
		.total = limit_of(&conf->total),
		.total_full_ns = now_ns,
		.mask = conf->n_buckets - 1,
	};
	for (size_t i = 0; i < conf->n_buckets; i++)
		rate->full_ns[i] = now_ns;
	*out = rate;
	return 0;
}

/* Whether the bucket has a token; if so, next is what it is without. */
static bool
has_token(const struct limit *limit, uint64_t *full_ns, uint64_t now_ns, uint64_t *next)
{
	const uint64_t lacks_ns = *full_ns - now_ns;

	if (lacks_ns > INT64_MAX) { /* it is full since then */
		*next = now_ns + limit->step_ns;
		return true;
	}
	if (lacks_ns <= limit->slack_ns) {
		*next = *full_ns + limit->step_ns;
		return true;
	}
	/* More than all its tokens it can only lack where time went back. */
	if (lacks_ns > limit->slack_ns + limit->step_ns)
		*full_ns = now_ns + limit->slack_ns + limit->step_ns;
	return false;
}

bool
lb_rate_allow(struct lb_rate *rate, const struct lb_addr *source, uint64_t now_ns)
{
	const struct lb_addr host =
		lb_addr_is_v4(source) ? *source : lb_addr_mask(source, IPV6_PREFIX_BITS);
	const uint64_t hash = lb_hash_bytes(host.bytes, LB_ADDR_BYTES, rate->secret);
	uint64_t *full_ns = &rate->full_ns[hash & rate->mask];
	uint64_t source_next = 0;
	uint64_t total_next = 0;
	/* Both are looked at, so that both notice where time went back. */
	const bool has_source = has_token(&rate->source, full_ns, now_ns, &source_next);
	const bool has_total =
		has_token(&rate->total, &rate->total_full_ns, now_ns, &total_next);

	if (!has_source || !has_total)
		return false;
	*full_ns = source_next;
	rate->total_full_ns = total_next;
	return true;
}
