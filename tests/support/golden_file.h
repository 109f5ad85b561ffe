/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GOLDEN_FILE_H
#define GOLDEN_FILE_H

/**
 * @file
 * Words of a golden file of tables, see tests/golden/tables.py.
 */

#include "expect.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The next word, which must be a number. */
static inline uint64_t
golden_read_number(FILE *file, int base)
{
	char word[32], *end = word;
	uint64_t value = 0;

	if (fscanf(file, "%31s", word) == 1)
		value = strtoull(word, &end, base);
	EXPECT(end != word && *end == '\0', "a number");
	return value;
}

/** 64-bit FNV-1a of the slots, each as two bytes, the low one first. */
static inline uint64_t
golden_checksum(const uint16_t *slots, uint32_t n_slots)
{
	uint64_t value = 0xcbf29ce484222325u;

	for (uint32_t s = 0; s < n_slots; s++) {
		value = (value ^ (slots[s] & 0xffu)) * 0x100000001b3u;
		value = (value ^ (uint32_t)slots[s] >> 8) * 0x100000001b3u;
	}
	return value;
}

/** The next line is what these slots are, all of them or their checksum. */
static inline void
golden_expect_slots(FILE *file, const char *what, const uint16_t *slots, uint32_t n_slots)
{
	char kind[8];

	EXPECT(fscanf(file, "%7s", kind) == 1, "slots or a checksum");
	if (strcmp(kind, "fnv1a") == 0) {
		EXPECT(golden_checksum(slots, n_slots) == golden_read_number(file, 16),
			"%s, %u slots: %016" PRIx64, what, n_slots,
			golden_checksum(slots, n_slots));
		return;
	}
	for (uint32_t s = 0; s < n_slots; s++) {
		const uint32_t want = (uint32_t)golden_read_number(file, 10);

		EXPECT(slots[s] == want, "%s, %u slots, slot %u: %u, not %u", what, n_slots, s,
			slots[s], want);
	}
}

#endif
