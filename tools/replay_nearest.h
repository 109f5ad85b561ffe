/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_NEAREST_H
#define REPLAY_NEAREST_H

/**
 * @file
 * Of the names that are there, the one that is most like a name that is not.
 */

#include <stddef.h>

/** Names longer than this, in bytes, are not compared. */
#define REPLAY_NEAREST_BYTES_MAX 255u

struct replay_nearest {
	const char *wanted; /**< n_wanted bytes; not owned */
	size_t n_wanted;
	const char
		*best;   /**< the nearest offered so far, not owned; NULL where there is none */
	size_t distance; /**< letters to add, drop or change between the two */
};

void replay_nearest_init(struct replay_nearest *nearest, const char *wanted, size_t n_wanted);

/** Offer a name that is there; of two equally near the first stays. */
void replay_nearest_offer(struct replay_nearest *nearest, const char *name);

#endif
