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
#include "lb_mul.h"

/** The same as lb_hash_flow(). */
static inline struct lb_flow_hash
lb_hash_flow_inline(const struct lb_flow_key *key, uint64_t seed)
{
	const XXH128_hash_t h = XXH3_128bits_withSeed(key, sizeof(*key), seed);

	return (struct lb_flow_hash){.pick = h.low64, .place = h.high64};
}

static inline uint64_t
lb_hash_avalanche(uint64_t h, uint64_t prime)
{
	h = (h ^ h >> 37) * prime;
	return h ^ h >> 32;
}

/**
 * The same as lb_hash_flow() of the key and the seed, from words that need not lie in memory:
 * those that are constant, as an IPv4 address' first, cost nothing.
 */
static inline struct lb_flow_hash
lb_hash_flow_words(const struct lb_hash_seeded *seeded, const struct lb_flow_words *key)
{
	const uint64_t *s = seeded->secret;
	const uint64_t *w = key->word;
	uint64_t low = seeded->head;
	uint64_t high;

	/* Two rounds: of the words 2, 3 with 1, 2, and of 0, 1 with 3, 4. */
	low = (low + lb_mul_fold(w[2] ^ s[4], w[3] ^ s[5])) ^ (w[1] + w[2]);
	low = (low + lb_mul_fold(w[0] ^ s[0], w[1] ^ s[1])) ^ (w[3] + w[4]);
	high = lb_mul_fold(w[1] ^ s[6], w[2] ^ s[7]) ^ (w[2] + w[3]);
	high = (high + lb_mul_fold(w[3] ^ s[2], w[4] ^ s[3])) ^ (w[0] + w[1]);
	return (struct lb_flow_hash){
		.pick = lb_hash_avalanche(low + high, seeded->last_prime),
		.place = 0 - lb_hash_avalanche(low * seeded->low_prime +
						       high * seeded->high_prime + seeded->tail,
				     seeded->last_prime),
	};
}

#endif
