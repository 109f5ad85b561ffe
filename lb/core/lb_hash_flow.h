/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HASH_FLOW_H
#define LB_HASH_FLOW_H

/**
 * @file
 * lb_hash_flow() for the loop that hashes every packet: inline, so that the key's words stay in
 * registers and hashes of neighbours overlap. Apart from lb_hash.h, for it draws in all of
 * xxhash's text.
 */

#define XXH_INLINE_ALL /* for a fixed length the compiler keeps one branch of many */
#include <xxhash.h>

#include "lb_hash.h"

/** The same as lb_hash_flow(). */
static inline struct lb_flow_hash
lb_hash_flow_inline(const struct lb_flow_key *key, uint64_t seed)
{
	const XXH128_hash_t h = XXH3_128bits_withSeed(key, sizeof(*key), seed);

	return (struct lb_flow_hash){.pick = h.low64, .place = h.high64};
}

#endif
