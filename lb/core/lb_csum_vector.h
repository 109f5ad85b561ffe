/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_CSUM_VECTOR_H
#define LB_CSUM_VECTOR_H

/**
 * @file
 * Long sums (lb_csum.h) in the vectors that every processor of these kinds has. Elsewhere words
 * do all of it.
 *
 * Pure and inline. Callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lb_csum.h"
#include "lb_csum_short.h"

#if defined(__x86_64__) || defined(__aarch64__)

#	define LB_CSUM_HAS_VECTORS 1

typedef uint64_t lb_csum_vector __attribute__((vector_size(16)));

static inline lb_csum_vector
lb_csum_load_vector(const uint8_t *p)
{
	lb_csum_vector vector;

	memcpy(&vector, p, sizeof(vector));
	return vector;
}

/** lb_csum_range(), of 8 bytes at least, and 32 GiB at most. */
static inline uint64_t
lb_csum_add_vectors(uint64_t sum, const uint8_t *p, const uint8_t *end)
{
	enum { TURN_BYTES = 64 };
	lb_csum_vector words[2] = {{0}, {0}};
	lb_csum_vector upper[2] = {{0}, {0}};
	uint64_t low;
	uint64_t high;

	/* The rest has a byte at least. */
	for (; end - p > TURN_BYTES; p += TURN_BYTES) {
		const lb_csum_vector a = lb_csum_load_vector(p);
		const lb_csum_vector b = lb_csum_load_vector(p + 16);
		const lb_csum_vector c = lb_csum_load_vector(p + 32);
		const lb_csum_vector d = lb_csum_load_vector(p + 48);

		words[0] += a + c;
		words[1] += b + d;
		upper[0] += (a >> 32) + (c >> 32);
		upper[1] += (b >> 32) + (d >> 32);
	}
	words[0] += words[1];
	upper[0] += upper[1];
	high = upper[0][0] + upper[0][1];
	/* The words overflow, but what they are without their upper halves does not. */
	low = words[0][0] + words[0][1] - (high << 32);
	sum = lb_csum_join(lb_csum_join(sum, low), high);
	return lb_csum_add_short(sum, p, (size_t)(end - p));
}

#endif

#endif
