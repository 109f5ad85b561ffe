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

/** A sum of products, modulo 2^128. */
struct lb_mul_sum {
	uint64_t low;
	uint64_t high;
};

/** Both halves of a product: the plain twin of lb_mul(). */
static inline struct lb_mul_sum
lb_mul_plainly(uint64_t a, uint64_t b)
{
	return (struct lb_mul_sum){a * b, lb_mul_high(a, b)};
}

/** A product added to a sum: the plain twin of lb_mul_add(). */
static inline struct lb_mul_sum
lb_mul_add_plainly(struct lb_mul_sum sum, uint64_t a, uint64_t b)
{
	const struct lb_mul_sum product = lb_mul_plainly(a, b);

	sum.low += product.low;
	sum.high += product.high + (sum.low < product.low);
	return sum;
}

/**
 * Both halves of a product. By the processor's instruction, for compilers keep what has 128
 * bits in memory, in the middle of the chain that a packet waits for.
 */
static inline struct lb_mul_sum
lb_mul(uint64_t a, uint64_t b)
{
#if defined(__x86_64__)
	struct lb_mul_sum out;

	__asm__("mulq %3" : "=a"(out.low), "=d"(out.high) : "%0"(a), "r"(b) : "cc");
	return out;
#else
	return lb_mul_plainly(a, b);
#endif
}

/** A product added to a sum, likewise. */
static inline struct lb_mul_sum
lb_mul_add(struct lb_mul_sum sum, uint64_t a, uint64_t b)
{
#if defined(__x86_64__)
	__asm__("mulq %3\n\taddq %%rax, %0\n\tadcq %%rdx, %1"
		: "+&r"(sum.low), "+&r"(sum.high), "+&a"(a)
		: "r"(b)
		: "rdx", "cc");
	return sum;
#else
	return lb_mul_add_plainly(sum, a, b);
#endif
}

/** Both halves of a product in one: all bits of both go into all of it. */
static inline uint64_t
lb_mul_fold(uint64_t a, uint64_t b)
{
	const struct lb_mul_sum product = lb_mul(a, b);

	return product.high ^ product.low;
}

#endif
