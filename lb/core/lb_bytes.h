/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_BYTES_H
#define LB_BYTES_H

/**
 * @file
 * Several bytes as one number, whatever the machine's byte order and their alignment: one load
 * or store each.
 */

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#	define LB_BYTES_IN_ORDER(value, n_bits) (value)
#else
#	define LB_BYTES_IN_ORDER(value, n_bits) __builtin_bswap##n_bits(value)
#endif

/** The first byte is the lowest. */
static inline uint16_t
lb_bytes_load16(const uint8_t *p)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return LB_BYTES_IN_ORDER(value, 16);
}

static inline uint32_t
lb_bytes_load32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return LB_BYTES_IN_ORDER(value, 32);
}

static inline uint64_t
lb_bytes_load64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return LB_BYTES_IN_ORDER(value, 64);
}

static inline void
lb_bytes_store16(uint8_t *p, uint16_t value)
{
	const uint16_t stored = LB_BYTES_IN_ORDER(value, 16);

	memcpy(p, &stored, sizeof(stored));
}

static inline void
lb_bytes_store32(uint8_t *p, uint32_t value)
{
	const uint32_t stored = LB_BYTES_IN_ORDER(value, 32);

	memcpy(p, &stored, sizeof(stored));
}

static inline void
lb_bytes_store64(uint8_t *p, uint64_t value)
{
	const uint64_t stored = LB_BYTES_IN_ORDER(value, 64);

	memcpy(p, &stored, sizeof(stored));
}

/** In network order: the first byte is the highest. */
static inline uint16_t
lb_bytes_load16_be(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t
lb_bytes_load32_be(const uint8_t *p)
{
	return (uint32_t)lb_bytes_load16_be(p) << 16 | lb_bytes_load16_be(p + 2);
}

/** The low 16 bits. */
static inline void
lb_bytes_store16_be(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/** The bytes the other way round. */
static inline uint16_t
lb_bytes_swap16(uint16_t value)
{
	return (uint16_t)(value << 8 | value >> 8);
}

static inline uint64_t
lb_bytes_swap64(uint64_t value)
{
	return __builtin_bswap64(value);
}

static inline uint32_t
lb_bytes_swap32(uint32_t value)
{
	return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}

#endif
