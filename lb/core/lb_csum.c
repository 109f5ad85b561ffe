/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_csum.h"

#include <string.h>

#include "lb_csum_short.h"
#include "lb_csum_vector.h"

uint64_t
lb_csum_range(uint64_t sum, const uint8_t *p, const uint8_t *end)
{
	uint64_t low = 0;
	uint64_t high = 0;

#ifdef LB_CSUM_HAS_VECTORS
	if (end - p > LB_CSUM_SHORT_BYTES_MAX)
		return lb_csum_add_vectors(sum, p, end);
	if (end - p >= LB_CSUM_WORD_BYTES)
		return lb_csum_add_short(sum, p, (size_t)(end - p));
#endif
	/* Halves apart in 64 bits: no carry to catch before 32 GiB of input. */
	//@ loop variant end - p;
	for (; end - p >= (ptrdiff_t)sizeof(uint64_t); p += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		low += word & UINT32_MAX;
		high += word >> 32;
	}
	if (end - p >= (ptrdiff_t)sizeof(uint32_t)) {
		uint32_t word;

		memcpy(&word, p, sizeof(word));
		low += word;
		p += sizeof(word);
	}
	if (end - p >= (ptrdiff_t)sizeof(uint16_t)) {
		uint16_t word;

		memcpy(&word, p, sizeof(word));
		high += word;
		p += sizeof(word);
	}
	if (end - p >= 1) {
		uint16_t word = 0;

		memcpy(&word, p, 1); /* the word's first byte, whatever the machine's order */
		low += word;
	}
	return lb_csum_join(lb_csum_join(sum, low), high);
}

uint64_t
lb_csum_add(uint64_t sum, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	return lb_csum_range(sum, p, p + n);
}

uint64_t
lb_csum_swap(uint64_t sum)
{
	const uint16_t folded = lb_csum_fold(sum);

	return (uint16_t)(folded << 8 | folded >> 8);
}
