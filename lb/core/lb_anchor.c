/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_anchor.h"

#include <errno.h>

#include "lb_hrw.h"
#include "lb_mul.h"

int
lb_anchor_init(struct lb_anchor *anchor, struct lb_anchor_bucket *buckets, uint32_t capacity,
	uint32_t n_working)
{
	if (capacity < 1 || capacity > LB_ANCHOR_BUCKETS_MAX)
		return -EINVAL;
	if (n_working < 1 || n_working > capacity)
		return -EINVAL;

	for (uint32_t b = 0; b < capacity; b++) {
		buckets[b] = (struct lb_anchor_bucket){
			.n_after = b < n_working ? 0 : b,
			.successor = b,
			.working = b,
			.place = b,
			.removed = capacity - 1 - b,
		};
	}
	*anchor = (struct lb_anchor){
		.capacity = capacity,
		.n_working = n_working,
		.buckets = buckets,
	};
	return 0;
}

int
lb_anchor_remove(struct lb_anchor *anchor, uint32_t bucket)
{
	struct lb_anchor_bucket *buckets = anchor->buckets;
	uint32_t last;

	if (bucket >= anchor->capacity || buckets[bucket].n_after != 0)
		return -ENOENT;
	if (anchor->n_working == 1)
		return -EBUSY;

	buckets[anchor->capacity - anchor->n_working].removed = bucket;
	anchor->n_working--;
	buckets[bucket].n_after = anchor->n_working;

	/* The last of those that work takes its place; it may be the bucket itself. */
	last = buckets[anchor->n_working].working;
	buckets[buckets[bucket].place].working = last;
	buckets[last].place = buckets[bucket].place;
	buckets[bucket].successor = last;
	return 0;
}

int
lb_anchor_add(struct lb_anchor *anchor, uint32_t *bucket)
{
	struct lb_anchor_bucket *buckets = anchor->buckets;
	uint32_t added;

	if (anchor->n_working == anchor->capacity)
		return -ENOSPC;

	added = buckets[anchor->capacity - anchor->n_working - 1].removed;
	buckets[added].n_after = 0;
	buckets[buckets[anchor->n_working].working].place = anchor->n_working;
	buckets[buckets[added].place].working = added;
	anchor->n_working++;
	*bucket = added;
	return 0;
}

uint32_t
lb_anchor_owner(const struct lb_anchor *anchor, uint64_t key)
{
	const struct lb_anchor_bucket *buckets = anchor->buckets;
	uint32_t owner = (uint32_t)lb_mul_high(key, anchor->capacity);

	/* Each turn leads to a bucket that was removed later, or that works. */
	while (buckets[owner].n_after != 0) {
		const uint32_t n_after = buckets[owner].n_after;
		uint32_t next =
			(uint32_t)lb_mul_high(lb_hrw_mix(key, lb_hrw_key(owner)), n_after);

		/* From a place among those that worked then to who had it. */
		while (buckets[next].n_after >= n_after)
			next = buckets[next].successor;
		owner = next;
	}
	return owner;
}
