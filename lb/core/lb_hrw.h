/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HRW_H
#define LB_HRW_H

/**
 * @file
 * Rendezvous hashing (highest random weight) over slots: each slot goes to the backend whose
 * score for it, divided by its weight, is least.
 *
 * For slot s and a backend, all modulo 2^64, ">>" shifting zeros in:
 *
 *     k = (s + 1) * 0x9e3779b97f4a7c15
 *     k = (k ^ k >> 32) * 0xd6e8feb86659fd93
 *     k = (k ^ k >> 32) * 0xd6e8feb86659fd93          lb_hrw_key(s)
 *     u = (h_1 ^ k) * 0xd6e8feb86659fd93
 *     u = (u ^ u >> 32) * 0xd6e8feb86659fd93
 *     u = u ^ u >> 32                                 lb_hrw_mix(h_1, k)
 *
 * The score is -log2(u / 2^64) with 40 bits after the point, from a table of
 * t[i] = floor(2^40 * log2(1 + i / 256)), i = 0..256: with 2^e <= u < 2^(e+1) and m the 39
 * bits of u below its highest, shifted left where u has fewer,
 *
 *     i = m >> 31,  x = m mod 2^31
 *     score = (64 - e) * 2^40 - t[i] - ((t[i+1] - t[i]) * x >> 31)
 *
 * and 64 * 2^40 for u = 0. This is at most 2.8e-6 above the logarithm and never 0, and a
 * larger u never has a larger score. Scores are compared as score_a * weight_b <
 * score_b * weight_a; equal ones by the larger u, then by canonical order. With equal weights
 * the winner is therefore the largest u.
 *
 * Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/** Bits of a score after the point. Times a weight it is below 2^62. */
#define LB_HRW_SCORE_BITS 40

/** One backend as the fill sees it. */
struct lb_hrw_backend {
	uint64_t h_1;    /**< hash of its name */
	uint32_t weight; /**< 1..LB_WEIGHT_MAX */
	uint32_t index;  /**< what its slots hold, 0..65535 */
};

/** t[] above. */
struct lb_hrw_log2 {
	uint64_t at[257];
};

static inline uint64_t
lb_hrw_key(uint32_t slot)
{
	uint64_t k = ((uint64_t)slot + 1) * 0x9e3779b97f4a7c15u;

	k = (k ^ k >> 32) * 0xd6e8feb86659fd93u;
	return (k ^ k >> 32) * 0xd6e8feb86659fd93u;
}

static inline uint64_t
lb_hrw_mix(uint64_t h_1, uint64_t key)
{
	uint64_t u = (h_1 ^ key) * 0xd6e8feb86659fd93u;

	u = (u ^ u >> 32) * 0xd6e8feb86659fd93u;
	return u ^ u >> 32;
}

/** Compute the table, digit by digit, by squaring. */
void lb_hrw_log2_init(struct lb_hrw_log2 *log2);

/** The score of u, 1..64 * 2^40. */
uint64_t lb_hrw_score(const struct lb_hrw_log2 *log2, uint64_t u);

/**
 * Fill slots[n_slots]. Time is in proportion to n * n_slots.
 *
 * @param backends   n of them in canonical order, at least one.
 * @param[out] slots The index of each slot's backend; unspecified on error.
 * @retval 0         Success.
 * @retval -ENOMEM   No memory for scratch space.
 */
int lb_hrw_fill(const struct lb_hrw_backend *backends, size_t n, uint32_t n_slots,
	uint16_t *slots) lb_must_check;

#endif
