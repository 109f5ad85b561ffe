/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_jump.h"

uint32_t
lb_jump(uint64_t key, uint32_t n_buckets)
{
	uint64_t bucket = 0, next = 0;

	/* The divisor is at most 2^31, so next grows by one or more. */
	while (next < n_buckets) {
		bucket = next;
		key = key * 2862933555777941757u + 1;
		next = ((bucket + 1) << 31) / ((key >> 33) + 1);
	}
	return (uint32_t)bucket;
}

uint32_t
lb_jump_owner(const struct lb_buckets *buckets, uint64_t key)
{
	return lb_buckets_owner(buckets, lb_jump(key, lb_buckets_count(buckets)));
}
