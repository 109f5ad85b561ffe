/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HASH_FLOW_H
#define LB_HASH_FLOW_H

/**
 * @file
 * lb_hash_flow() for the loop that hashes every packet: inline, so that the key's words stay in
 * registers, and hashes of neighbours overlap.
 *
 * XXH3 of 128 bits, of the lengths that keys have, written from its specification; what a last
 * mixing makes of both halves is left out, as lb_hash.h says.
 */

#include <string.h>

#include "lb_bytes.h"
#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_mul.h"

/** Of 16 bytes. */
static inline struct lb_flow_hash
lb_hash_flow_v4(const struct lb_hash_seeded *seeded, const struct lb_flow_v4 *key)
{
	const uint64_t both = key->addresses ^ key->rest ^ seeded->v4_low_flip;
	const uint64_t rest = key->rest ^ seeded->v4_high_flip;
	const uint64_t high = lb_mul_high(both, seeded->low_prime) + rest +
			      (uint64_t)(uint32_t)rest * seeded->v4_half_prime;
	const uint64_t low =
		(both * seeded->low_prime + seeded->v4_head) ^ lb_bytes_swap64(high);

	return (struct lb_flow_hash){
		.pick = low * seeded->v4_prime,
		.place = lb_mul_high(low, seeded->v4_prime) + high * seeded->v4_prime,
	};
}

/** Of 40 bytes. */
static inline struct lb_flow_hash
lb_hash_flow_v6(const struct lb_hash_seeded *seeded, const struct lb_flow_words *key)
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
		.pick = low + high,
		.place = low * seeded->low_prime + high * seeded->high_prime + seeded->tail,
	};
}

/** The same as lb_hash_flow() of the key and the seed. */
static inline struct lb_flow_hash
lb_hash_flow_seeded(const struct lb_hash_seeded *seeded, const struct lb_flow_key *key)
{
	struct lb_flow_words words;
	struct lb_flow_v4 v4;

	for (unsigned int i = 0; i < LB_N_ELEMENTS(words.word); i++)
		words.word[i] = lb_bytes_load64((const uint8_t *)key + (size_t)8 * i);
	if (!lb_addr_is_v4(&key->src))
		return lb_hash_flow_v6(seeded, &words);
	v4.addresses = words.word[1] >> 32 | (words.word[3] & ~(uint64_t)UINT32_MAX);
	v4.rest = words.word[4];
	return lb_hash_flow_v4(seeded, &v4);
}

#endif
