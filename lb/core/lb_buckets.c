/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_buckets.h"

#include <assert.h>
#include <errno.h>

#include "lb_limits.h"

static_assert((uint64_t)LB_SERVICE_BACKENDS_MAX * LB_WEIGHT_MAX <= UINT32_MAX,
	"an end takes 32 bits");

int
lb_buckets_init(const uint32_t *weights, size_t n, uint32_t *ends, struct lb_buckets *out)
{
	uint32_t end = 0;

	if (n > LB_SERVICE_BACKENDS_MAX)
		return -E2BIG;
	for (size_t b = 0; b < n; b++) {
		if (weights[b] > LB_WEIGHT_MAX)
			return -EINVAL;
		end += weights[b];
		ends[b] = end;
	}
	if (end == 0)
		return -ENOENT;

	*out = (struct lb_buckets){.n = n, .ends = ends};
	return 0;
}

uint32_t
lb_buckets_count(const struct lb_buckets *buckets)
{
	return buckets->ends[buckets->n - 1];
}

uint32_t
lb_buckets_owner(const struct lb_buckets *buckets, uint32_t bucket)
{
	size_t low = 0, high = buckets->n - 1;

	/* Rows before low end at or below the bucket, that of high above it. */
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (buckets->ends[middle] <= bucket)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}
