/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_ring.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lb_hash.h"
#include "lb_mul.h"

uint32_t
lb_ring_points(uint32_t weight)
{
	const uint32_t n = (LB_RING_POINTS_PER_100 * weight + 50) / 100;

	return n > 1 ? n : 1;
}

static struct lb_ring_point
make_point(const struct lb_ring_backend *backends, size_t b, uint32_t k)
{
	const uint8_t bytes[4] = {
		(uint8_t)k,
		(uint8_t)(k >> 8),
		(uint8_t)(k >> 16),
		(uint8_t)(k >> 24),
	};

	return (struct lb_ring_point){
		.at = lb_hash_bytes(bytes, sizeof(bytes), backends[b].h_1),
		.backend = (uint32_t)b,
		.index = backends[b].index,
	};
}

static bool
is_before(const struct lb_ring_point *a, const struct lb_ring_point *b)
{
	return a->at != b->at ? a->at < b->at : a->backend < b->backend;
}

/**
 * Sort points that are already within a few places of where they belong. Points are hashes, so
 * an arc of the circle as long as the mean distance holds about one, and seldom ten.
 */
static void
insert_points(struct lb_ring_point *points, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const struct lb_ring_point point = points[i];
		size_t j = i;

		for (; j > 0 && is_before(&point, &points[j - 1]); j--)
			points[j] = points[j - 1];
		points[j] = point;
	}
}

/**
 * Make all points and sort them: counted by arc in one pass, put into their arc in the next.
 *
 * @param arcs  n_points zeros.
 */
static void
place_points(struct lb_ring *ring, const struct lb_ring_backend *backends, size_t n,
	uint32_t *arcs)
{
	uint32_t sum = 0;

	for (size_t b = 0; b < n; b++) {
		for (uint32_t k = 0; k < lb_ring_points(backends[b].weight); k++)
			arcs[lb_mul_high(make_point(backends, b, k).at, ring->n_points)]++;
	}
	for (size_t i = 0; i < ring->n_points; i++) {
		const uint32_t n_in_arc = arcs[i];

		arcs[i] = sum;
		sum += n_in_arc;
	}
	for (size_t b = 0; b < n; b++) {
		for (uint32_t k = 0; k < lb_ring_points(backends[b].weight); k++) {
			const struct lb_ring_point point = make_point(backends, b, k);

			ring->points[arcs[lb_mul_high(point.at, ring->n_points)]++] = point;
		}
	}
	insert_points(ring->points, ring->n_points);
}

int
lb_ring_create(const struct lb_ring_backend *backends, size_t n, struct lb_ring **out)
{
	struct lb_ring *ring;
	size_t n_points = 0;
	uint32_t *arcs;

	assert(n > 0);
	for (size_t b = 0; b < n; b++)
		n_points += lb_ring_points(backends[b].weight);
	if (n_points > LB_RING_POINTS_MAX)
		return -E2BIG;

	ring = calloc(1, sizeof(*ring) + n_points * sizeof(ring->points[0]));
	if (ring == NULL)
		return -ENOMEM;
	arcs = calloc(n_points, sizeof(*arcs));
	if (arcs == NULL) {
		free(ring);
		return -ENOMEM;
	}

	ring->n_points = n_points;
	place_points(ring, backends, n, arcs);
	free(arcs);
	*out = ring;
	return 0;
}

void
lb_ring_destroy(struct lb_ring *ring)
{
	free(ring);
}

size_t
lb_ring_find(const struct lb_ring *ring, uint64_t hash)
{
	size_t low = 0, high = ring->n_points;

	/* All points before low are below the hash, none from high on. */
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (ring->points[middle].at < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ring->n_points ? low : 0;
}

uint32_t
lb_ring_owner(const struct lb_ring *ring, uint64_t hash)
{
	return ring->points[lb_ring_find(ring, hash)].index;
}

void
lb_ring_fill(const struct lb_ring *ring, uint32_t n_slots, uint16_t *slots)
{
	/* 2^64 = whole * n_slots + rest, for any n_slots. */
	const uint64_t rest = (UINT64_MAX % n_slots + 1) % n_slots;
	const uint64_t whole = UINT64_MAX / n_slots + (rest == 0);
	uint64_t at = 0, carry = 0;
	size_t p = 0;

	for (uint32_t slot = 0; slot < n_slots; slot++) {
		while (p < ring->n_points && ring->points[p].at < at)
			p++;
		slots[slot] = (uint16_t)ring->points[p < ring->n_points ? p : 0].index;

		at += whole;
		carry += rest;
		if (carry >= n_slots) {
			carry -= n_slots;
			at++;
		}
	}
}
