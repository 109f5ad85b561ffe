/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_BYTES_H
#define LB_BYTES_H

/**
 * @file
 * Several bytes as one number, whatever the machine's byte order: of any alignment, and each a
 * single load or store where the orders agree, as compilers know these forms.
 */

#include <stdint.h>

/** The first byte is the lowest. */
static inline uint32_t
lb_bytes_load32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static inline uint64_t
lb_bytes_load64(const uint8_t *p)
{
	return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
	       (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
	       (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static inline void
lb_bytes_store64(uint8_t *p, uint64_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
	p[2] = (uint8_t)(value >> 16);
	p[3] = (uint8_t)(value >> 24);
	p[4] = (uint8_t)(value >> 32);
	p[5] = (uint8_t)(value >> 40);
	p[6] = (uint8_t)(value >> 48);
	p[7] = (uint8_t)(value >> 56);
}

/** In network order: the first byte is the highest. */
static inline uint16_t
lb_bytes_load16_be(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/** The bytes the other way round. */
static inline uint16_t
lb_bytes_swap16(uint16_t value)
{
	return (uint16_t)(value << 8 | value >> 8);
}

static inline uint32_t
lb_bytes_swap32(uint32_t value)
{
	return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}

#endif
