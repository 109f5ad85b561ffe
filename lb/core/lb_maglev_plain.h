/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_MAGLEV_PLAIN_H
#define LB_MAGLEV_PLAIN_H

/**
 * @file
 * Twin of lb_maglev_fill(): the definition in lb_maglev.h, walked step by step, as the paper
 * has it. Tests hold the fast build to it, and shunt-compare measures others against it.
 *
 * Its time is n_slots * ln(n_slots) divisions, and with unequal weights an addition for each
 * backend in n_slots * largest weight / sum of weights rounds.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_maglev.h"

#define LB_MAGLEV_PLAIN_FREE 0xffffu

/** Where a backend stands. */
struct lb_maglev_plain_walker {
	uint32_t next; /**< position in its permutation to try next */
	uint32_t accumulator;
};

/**
 * As lb_maglev_fill(), but in the caller's memory, and an index is below 65535.
 *
 * @param walkers  n of them, the caller's memory; whatever is in them.
 */
static inline void
lb_maglev_plain_fill(const struct lb_maglev_backend *backends, size_t n, uint32_t n_slots,
	struct lb_maglev_plain_walker *walkers, uint16_t *slots)
{
	uint32_t weight_max = 0, n_free = n_slots;

	for (uint32_t s = 0; s < n_slots; s++)
		slots[s] = LB_MAGLEV_PLAIN_FREE;
	for (size_t b = 0; b < n; b++)
		weight_max = backends[b].weight > weight_max ? backends[b].weight : weight_max;
	for (size_t b = 0; b < n; b++)
		walkers[b] = (struct lb_maglev_plain_walker){
			.accumulator = weight_max - backends[b].weight,
		};

	for (size_t b = 0; n_free > 0; b = b + 1 == n ? 0 : b + 1) {
		const uint64_t offset = backends[b].offset, skip = backends[b].skip;
		uint64_t slot;

		walkers[b].accumulator += backends[b].weight;
		if (walkers[b].accumulator < weight_max)
			continue;
		walkers[b].accumulator -= weight_max;
		do
			slot = (offset + walkers[b].next++ * skip) % n_slots;
		while (slots[slot] != LB_MAGLEV_PLAIN_FREE);
		slots[slot] = (uint16_t)backends[b].index;
		n_free--;
	}
}

#endif
