/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_CSUM_VECTOR_H
#define LB_CSUM_VECTOR_H

/**
 * @file
 * The long part of a sum (lb_csum.h) in the vectors that every processor of these kinds has.
 * Elsewhere words do all of it.
 *
 * Pure and inline. Callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)

#	define LB_CSUM_HAS_VECTORS 1

/* For fewer, words take less time. */
enum { LB_CSUM_VECTORS_FROM_BYTES = 64 };

typedef uint64_t lb_csum_vector __attribute__((vector_size(16)));

/**
 * Sum the 32-bit halves of 64-bit words from p, as many as make pairs of vectors.
 *
 * @param end             At most 32 GiB from p.
 * @param[out] low, high  The halves' sums.
 * @return where the rest begins: less than 32 bytes.
 */
static inline const uint8_t *
lb_csum_sum_vectors(const uint8_t *p, const uint8_t *end, uint64_t *low, uint64_t *high)
{
	lb_csum_vector words[2] = {{0}, {0}};
	lb_csum_vector upper[2] = {{0}, {0}};

	for (; end - p >= (ptrdiff_t)sizeof(words); p += sizeof(words)) {
		lb_csum_vector pair[2];

		memcpy(pair, p, sizeof(pair));
		words[0] += pair[0];
		words[1] += pair[1];
		upper[0] += pair[0] >> 32;
		upper[1] += pair[1] >> 32;
	}
	words[0] += words[1];
	upper[0] += upper[1];
	*high = upper[0][0] + upper[0][1];
	/* The words overflow, but what they are without their upper halves does not. */
	*low = words[0][0] + words[0][1] - (*high << 32);
	return p;
}

#endif

#endif
