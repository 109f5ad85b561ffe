/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_CSUM_H
#define LB_CSUM_H

/**
 * @file
 * The Internet checksum (RFC 1071).
 *
 * Sums are held unfolded in 64 bits, in the byte order of memory: adding native
 * 16-, 32- or 64-bit words gives the right bytes on either kind of machine
 * (RFC 1071, section 2(B)). Pure functions, callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Add bytes to a running sum.
 *
 * @param sum      0, or what an earlier call returned; that call's n was even,
 *                 unless this is the last.
 * @param bytes    n bytes, any alignment. An odd last byte is padded with zero.
 * @return the new sum, with carries added back in: it cannot overflow.
 */
uint64_t lb_csum_add(uint64_t sum, const void *bytes, size_t n);

/** lb_csum_add() over the bytes from p to before end, which is not before p. */
uint64_t lb_csum_range(uint64_t sum, const uint8_t *p, const uint8_t *end);

/** A sum of an odd offset's bytes, turned to count from an even one (RFC 1071, 2(B)). */
uint64_t lb_csum_swap(uint64_t sum);

/** One's complement sum of two running sums. */
static inline uint64_t
lb_csum_join(uint64_t a, uint64_t b)
{
	const uint64_t sum = a + b;

	return sum + (sum < b);
}

/** A running sum's 64 bits in 16, with end-around carries; 0 only where every byte was 0. */
static inline uint16_t
lb_csum_fold(uint64_t sum)
{
	/* Both halves added, and their carry, come to lie in the upper one. */
	const uint32_t half = (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);

	return (uint16_t)((half + (half << 16 | half >> 16)) >> 16);
}

/** The checksum field for a sum, ready to be stored with memcpy (network order). */
static inline uint16_t
lb_csum_finish(uint64_t sum)
{
	return (uint16_t)~lb_csum_fold(sum);
}

#endif
