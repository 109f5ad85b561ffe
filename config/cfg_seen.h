/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_SEEN_H
#define CFG_SEEN_H

/**
 * @file
 * Which items of a list have been seen, so that many are looked through for two alike in about
 * the time that one look at each takes.
 *
 * Not thread-safe: one thread's own.
 */

#include "cfg_node.h"

/** Whether items a and b of a list are the same to a check. */
typedef bool (*cfg_is_same_fn)(const void *items, size_t a, size_t b);

struct cfg_seen {
	const void *items; /**< not owned */
	cfg_is_same_fn is_same;
	uint32_t *places; /**< of items by hash, in twice the room */
	size_t mask;
};

/**
 * @param n  Items that will be looked at, at most.
 * @return whether there is memory; errors was told otherwise. To be given to cfg_seen_fini().
 */
bool cfg_seen_init(struct cfg_seen *seen, const void *items, size_t n, cfg_is_same_fn is_same,
	struct cfg_errors *errors) lb_must_check;

void cfg_seen_fini(struct cfg_seen *seen);

/** The first item that is the same as item i: i itself where there was none, which is then. */
size_t cfg_seen_find_or_add(struct cfg_seen *seen, size_t i, uint64_t hash);

#define CFG_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/** A hash of bytes, for the functions above alone; hash: CFG_HASH_BEGIN, or of what is before.
 */
uint64_t cfg_hash_bytes(const void *bytes, size_t n, uint64_t hash);

#endif
