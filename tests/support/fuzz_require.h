/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

/**
 * @file
 * What fuzz targets ask of what they found, and what they ask it with.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** End the run where it does not hold; what says what is broken then. */
static inline void
require(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

static inline unsigned int
get16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

/**
 * Memory of n bytes, so that a sanitizer sees what goes over its end.
 *
 * @return  at least one byte; the caller frees it
 */
static inline uint8_t *
exact(size_t n)
{
	uint8_t *p = malloc(n == 0 ? 1 : n);

	require(p != NULL, "no memory");
	return p;
}

/** RFC 1071's sum, not complemented, word by word; parts before the last have even lengths. */
static inline uint32_t
plain_sum(uint32_t sum, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint32_t)bytes[i] << 8 : bytes[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

#endif
