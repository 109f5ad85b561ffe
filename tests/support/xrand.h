/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XRAND_H
#define XRAND_H

/**
 * @file
 * Repeatable random numbers for tests: splitmix64.
 */

#include <stdint.h>

static inline uint64_t
xrand(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/** 0..n-1. */
static inline uint32_t
xrand_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((xrand(state) >> 32) * n) >> 32);
}

#endif
