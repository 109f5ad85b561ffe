/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_CSUM_SHORT_H
#define LB_CSUM_SHORT_H

/**
 * @file
 * Sums (lb_csum.h) of what most packets are, a header and little more: words in chains of
 * additions with carry, the last of them by one load that ends where the packet does.
 *
 * Pure and inline. Callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_csum.h"

#if defined(__x86_64__)
#	include <immintrin.h>
#endif

enum {
	LB_CSUM_WORD_BYTES = 8,
	/** Of more lb_csum_add() takes less time. */
	LB_CSUM_SHORT_BYTES_MAX = 192,
};

/* In the order of memory. */
static inline uint64_t
lb_csum_load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* One's complement sum of a sum, n words from p, which is a constant, and one word more. */
static inline uint64_t
lb_csum_chain(uint64_t sum, const uint8_t *p, unsigned int n, uint64_t more)
{
#if defined(__x86_64__)
	/* From one addition to the next the carry stays in its flag. */
	unsigned long long chained = sum;
	unsigned char carry = 0;

	for (unsigned int i = 0; i < n; i++)
		carry = _addcarry_u64(carry, chained,
			lb_csum_load(p + (size_t)i * LB_CSUM_WORD_BYTES), &chained);
	carry = _addcarry_u64(carry, chained, more, &chained);
	return chained + carry;
#else
	for (unsigned int i = 0; i < n; i++)
		sum = lb_csum_join(sum, lb_csum_load(p + (size_t)i * LB_CSUM_WORD_BYTES));
	return lb_csum_join(sum, more);
#endif
}

/**
 * lb_csum_add(), of few bytes.
 *
 * @param n        8 at least.
 * @param n_whole  A constant: so many words, of 8 bytes each, there are for sure, and another
 *                 byte.
 */
static inline uint64_t
lb_csum_add_short(uint64_t sum, const uint8_t *p, size_t n, unsigned int n_whole)
{
	enum { WORD = LB_CSUM_WORD_BYTES };
	/* The last word's 1 to 8 bytes are the last ones of what is loaded. */
	const uint64_t last = lb_bytes_load64(p + n - WORD) >> (0 - n * 8) % 64;
	/* How many whole words come before it is in what is left without one byte. */
	size_t left = n - 1 - (size_t)n_whole * WORD;

	sum = lb_csum_chain(sum, p, n_whole, LB_BYTES_IN_ORDER(last, 64));
	p += (size_t)n_whole * WORD;
	if ((left & WORD) != 0) {
		sum = lb_csum_chain(sum, p, 0, lb_csum_load(p));
		p += WORD;
	}
	if ((left & 2 * WORD) != 0) {
		sum = lb_csum_chain(sum, p, 1, lb_csum_load(p + WORD));
		p += 2 * WORD;
	}
	//@ loop variant left;
	for (; left >= 4 * WORD; left -= 4 * WORD) {
		sum = lb_csum_chain(sum, p, 3, lb_csum_load(p + 3 * WORD));
		p += 4 * WORD;
	}
	return sum;
}

#endif
