/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_NEAREST_H
#define CFG_NEAREST_H

/**
 * @file
 * Of the names that are there, the one that is most like a name that is not.
 */

#include <stddef.h>

/** Names longer than this, in bytes, are not compared. */
#define CFG_NEAREST_BYTES_MAX 255u

struct cfg_nearest {
	const char *wanted; /**< n_wanted bytes; not owned */
	size_t n_wanted;
	const char *best; /**< the nearest offered so far, not owned; NULL: none */
	/** letters to add, drop, change or swap between the two, letter case aside */
	size_t distance;
};

void cfg_nearest_init(struct cfg_nearest *nearest, const char *wanted, size_t n_wanted);

/** Offer a name that is there (NULL: none); of two equally near the first stays. */
void cfg_nearest_offer(struct cfg_nearest *nearest, const char *name);

#endif
