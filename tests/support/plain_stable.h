/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLAIN_STABLE_H
#define PLAIN_STABLE_H

/**
 * @file
 * Twin of lb_stable_fill(): the definition in lb_stable.h, word for word. All n * n_slots pairs
 * are sorted, so it is for small tables.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lb_stable.h"

#define PLAIN_STABLE_FREE 0xffffu

struct plain_stable_pair {
	uint64_t key;
	uint32_t backend;
	uint32_t slot;
};

struct plain_stable_capacity {
	uint64_t n_slots;
	uint64_t remainder;
	uint32_t backend;
};

__extension__ typedef unsigned __int128 plain_stable_wide;

/** x^(m - 2) mod m, which is 1 / x for a prime m, and 0 for 0. */
static inline uint32_t
plain_stable_inverse(uint32_t x, uint32_t m)
{
	uint64_t power = 1, square = x;

	for (uint32_t e = m - 2; e > 0; e /= 2) {
		if (e % 2 != 0)
			power = power * square % m;
		square = square * square % m;
	}
	return (uint32_t)power;
}

static inline int
plain_stable_compare_pairs(const void *a, const void *b)
{
	const struct plain_stable_pair *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->backend < y->backend ? -1 : x->backend > y->backend;
}

static inline int
plain_stable_compare_remainders(const void *a, const void *b)
{
	const struct plain_stable_capacity *x = a, *y = b;

	if (x->remainder != y->remainder)
		return x->remainder > y->remainder ? -1 : 1;
	return x->backend < y->backend ? -1 : x->backend > y->backend;
}

/** What each backend may take, into left[n]. */
static inline void
plain_stable_capacities(const struct lb_stable_backend *backends, size_t n, uint32_t n_slots,
	uint32_t slack, uint64_t *left)
{
	struct plain_stable_capacity *capacities = calloc(n, sizeof(*capacities));
	uint64_t weight_sum = 0, sum = 0;

	if (capacities == NULL)
		abort();
	for (size_t b = 0; b < n; b++)
		weight_sum += backends[b].weight;
	for (size_t b = 0; b < n; b++) {
		const plain_stable_wide d = (plain_stable_wide)1000 * weight_sum;
		const plain_stable_wide u = slack == 0 ? 0 : backends[b].dither;
		const plain_stable_wide x =
			(plain_stable_wide)(1000 + slack) * n_slots * backends[b].weight +
			(u * d >> 64);

		capacities[b] = (struct plain_stable_capacity){(uint64_t)(x / d),
			(uint64_t)(x % d), (uint32_t)b};
		sum += capacities[b].n_slots;
	}
	qsort(capacities, n, sizeof(*capacities), plain_stable_compare_remainders);
	for (size_t i = 0; i < n; i++)
		left[capacities[i].backend] = capacities[i].n_slots + (sum + i < n_slots);
	free(capacities);
}

/** All pairs of one backend. */
static inline void
plain_stable_pairs(const struct lb_stable_backend *b, uint32_t backend, uint32_t n_slots,
	struct plain_stable_pair *pairs)
{
	const uint64_t rate = (UINT64_C(1) << 30) / b->weight;
	const uint64_t phase = (uint64_t)((plain_stable_wide)b->phase * (16 * rate) >> 64);
	uint64_t time = 0;

	for (uint32_t r = 0; r < n_slots; r++) {
		const uint32_t place = (uint32_t)(((uint64_t)r + b->start) % n_slots);
		const uint64_t inverse = plain_stable_inverse(place, n_slots);

		time += UINT64_C(16) * n_slots / (n_slots - r);
		pairs[r].key = time * rate + phase;
		pairs[r].backend = backend;
		pairs[r].slot = (uint32_t)((b->offset + b->scale * inverse) % n_slots);
	}
}

/** As lb_stable_fill(), but an index is below 65535, and memory running out is fatal. */
static inline void
plain_stable_fill(const struct lb_stable_backend *backends, size_t n, uint32_t n_slots,
	uint32_t slack, uint16_t *slots)
{
	const size_t n_pairs = n * n_slots;
	struct plain_stable_pair *pairs = malloc(n_pairs * sizeof(*pairs));
	uint64_t *left = malloc(n * sizeof(*left));

	if (pairs == NULL || left == NULL)
		abort();
	for (uint32_t s = 0; s < n_slots; s++)
		slots[s] = PLAIN_STABLE_FREE;
	for (uint32_t b = 0; b < n; b++)
		plain_stable_pairs(&backends[b], b, n_slots, pairs + (size_t)b * n_slots);
	plain_stable_capacities(backends, n, n_slots, slack, left);
	qsort(pairs, n_pairs, sizeof(*pairs), plain_stable_compare_pairs);
	for (size_t i = 0; i < n_pairs; i++) {
		const struct plain_stable_pair *p = &pairs[i];

		if (slots[p->slot] == PLAIN_STABLE_FREE && left[p->backend] > 0) {
			slots[p->slot] = (uint16_t)backends[p->backend].index;
			left[p->backend]--;
		}
	}
	free(left);
	free(pairs);
}

#endif
