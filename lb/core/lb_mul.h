/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_MUL_H
#define LB_MUL_H

/**
 * @file
 * The products of 128 bits that core needs.
 */

#include <stdint.h>

/** floor(a * b / 2^64): with a as a fraction of 2^64, that fraction of b. */
static inline uint64_t
lb_mul_high(uint64_t a, uint64_t b)
{
	return (uint64_t)((__extension__(unsigned __int128) a * b) >> 64);
}

/** Both halves of a product in one: all bits of both go into all of it. */
static inline uint64_t
lb_mul_fold(uint64_t a, uint64_t b)
{
	/* Apart: both halves of one product at once make compilers keep them in memory. */
	return lb_mul_high(a, b) ^ a * b;
}

#endif
