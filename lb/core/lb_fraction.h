/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_FRACTION_H
#define LB_FRACTION_H

/**
 * @file
 * Positions in a table as fractions of 2^64 of it, so that "mod n_slots" is the overflow of
 * 64-bit addition, and no loop divides.
 *
 * A fraction is rounded up by at most 2^-64, where positions lie 2^-24 or more apart: 2^39 of
 * them may be added before lb_mul_high() of the sum and n_slots is another slot.
 *
 * Pure functions; any thread.
 */

#include <stdint.h>

#include "lb_mul.h"

/** Of a number of slots; lb_fraction_init() it. */
struct lb_fraction {
	uint32_t n_slots;
	uint32_t unit_rest; /**< 2^64 - n_slots * unit */
	uint64_t unit;      /**< 2^64 / n_slots, rounded down */
};

/** @param n_slots  An odd number, 3..2^24. */
static inline struct lb_fraction
lb_fraction_init(uint32_t n_slots)
{
	/* It does not divide 2^64, so that of 2^64 - 1 is the same quotient. */
	return (struct lb_fraction){
		.n_slots = n_slots,
		.unit_rest = (uint32_t)(UINT64_MAX % n_slots) + 1,
		.unit = UINT64_MAX / n_slots,
	};
}

/** x / n_slots as a fraction of 2^64, rounded up; x < n_slots. */
static inline uint64_t
lb_fraction_of(const struct lb_fraction *f, uint32_t x)
{
	return x * f->unit + (uint64_t)x * f->unit_rest / f->n_slots + 1;
}

/** x mod n_slots; x < 2^63. */
static inline uint32_t
lb_fraction_reduce(const struct lb_fraction *f, uint64_t x)
{
	/* The quotient is at most one too small. */
	const uint64_t rest = x - lb_mul_high(x, f->unit) * f->n_slots;

	return (uint32_t)(rest >= f->n_slots ? rest - f->n_slots : rest);
}

#endif
