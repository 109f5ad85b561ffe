/* SPDX-License-Identifier: BSD-3-Clause */

/* Rates: every limit, time and source, and buckets with anything in them. */

#include "lb_rate.c"
#include "proof.h"

#define N_BUCKETS_MAX 8u

static union {
	struct lb_rate rate;
	uint8_t bytes[sizeof(struct lb_rate) + N_BUCKETS_MAX * sizeof(uint64_t)];
} memory;

static struct lb_rate_limit
any_limit(void)
{
	return (struct lb_rate_limit){
		.per_s = (uint32_t)any_u64(0, UINT32_MAX),
		.burst = (uint32_t)any_u64(0, UINT32_MAX),
	};
}

/* Limits are any; buckets are made for a number of them here. */
static void
ask(uint32_t n_buckets)
{
	struct lb_rate_conf conf = {
		.n_buckets = (uint32_t)any_u64(0, UINT32_MAX),
		.source = any_limit(),
		.total = any_limit(),
		.secret = any_u64(0, UINT64_MAX),
	};
	struct lb_addr source;
	struct lb_rate *rate;

	(void)lb_rate_bytes(&conf);
	conf.n_buckets = n_buckets;
	if (lb_rate_init(&memory, &conf, any_u64(0, UINT64_MAX), &rate) != 0)
		return;
	rate->total_full_ns = any_u64(0, UINT64_MAX);
	make_any(rate->full_ns, n_buckets * sizeof(rate->full_ns[0]));
	make_any(&source, sizeof(source));
	(void)lb_rate_allow(rate, &source, any_u64(0, UINT64_MAX));
}

int
main(void)
{
	for (uint32_t n = 0; n <= N_BUCKETS_MAX; n++)
		ask(n);
	return 0;
}
