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

enum {
	LB_CSUM_WORD_BYTES = 8,
	/** Of more lb_csum_add() takes less time. */
	LB_CSUM_SHORT_BYTES_MAX = 192,
};

/* A word in the order of memory. */
static inline uint64_t
lb_csum_load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* One's complement sum of a sum and the 16 bytes from p, wherever they lie: the plain twin of
 * the one below. */
static inline uint64_t
lb_csum_add_two_plainly(uint64_t sum, const uint8_t *p)
{
	sum = lb_csum_join(sum, lb_csum_load(p));
	return lb_csum_join(sum, lb_csum_load(p + LB_CSUM_WORD_BYTES));
}

/* The same sum: C has no word for the flag that has the carry from one addition to the next. */
static inline uint64_t
lb_csum_add_two(uint64_t sum, const uint8_t *p)
{
#if defined(__x86_64__)
	/* What lies in memory as it likes. */
	typedef uint64_t any_word __attribute__((aligned(1), may_alias));
	const any_word *words = (const any_word *)p;

	__asm__("addq %1, %0\n\tadcq %2, %0\n\tadcq $0, %0"
		: "+&r"(sum)
		: "m"(words[0]), "m"(words[1])
		: "cc");
	return sum;
#else
	return lb_csum_add_two_plainly(sum, p);
#endif
}

/**
 * lb_csum_add(), of few bytes.
 *
 * @param n  1 at least; and the 8 bytes before the end may be read.
 */
static inline uint64_t
lb_csum_add_short(uint64_t sum, const uint8_t *p, size_t n)
{
	enum { WORD = LB_CSUM_WORD_BYTES, TWO_WORDS = 2 * WORD };
	/* The last word's 1 to 8 bytes are the last ones of what is loaded. */
	const uint64_t last = lb_bytes_load64(p + n - WORD) >> (0 - n * 8) % 64;
	size_t left = n - 1; /* has the words before it in its upper bits */

	sum = lb_csum_join(sum, LB_BYTES_IN_ORDER(last, 64));
	if ((left & WORD) != 0) {
		sum = lb_csum_join(sum, lb_csum_load(p));
		p += WORD;
	}
	//@ loop variant left;
	for (; left >= TWO_WORDS; left -= TWO_WORDS) {
		sum = lb_csum_add_two(sum, p);
		p += TWO_WORDS;
	}
	return sum;
}

#endif
