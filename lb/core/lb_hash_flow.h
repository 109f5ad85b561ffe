/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HASH_FLOW_H
#define LB_HASH_FLOW_H

/**
 * @file
 * lb_hash_flow() and lb_hash_pick() for the loops that hash packets: inline, so that the key's
 * words stay in registers, and hashes of neighbours overlap.
 */

#include <string.h>

#include "lb_bytes.h"
#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_mul.h"

/** A key's words. */
static inline struct lb_flow_words
lb_hash_words(const struct lb_flow_key *key)
{
	struct lb_flow_words words;

	for (unsigned int i = 0; i < LB_N_ELEMENTS(words.word); i++)
		words.word[i] = lb_bytes_load64((const uint8_t *)key + (size_t)8 * i);
	return words;
}

/** The words of an IPv4 key, from all of its. */
static inline struct lb_flow_v4
lb_hash_words_v4(const struct lb_flow_words *words)
{
	return (struct lb_flow_v4){
		.addresses = words->word[1] >> 32 | (words->word[3] & ~(uint64_t)UINT32_MAX),
		.rest = words->word[4],
	};
}

/* 2^64 over the golden ratio: multiples of it lie evenly (Knuth, TAOCP 3, section 6.4). */
#define LB_HASH_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/*
 * All bits of a sum of 128 in one word. Sums of keys that go up by one go up by a secret: added
 * together, the halves would lie in such a row still, which with some secrets fills few places.
 */
static inline uint64_t
lb_hash_of_both(struct lb_mul_sum sum)
{
	return (sum.high * LB_HASH_GOLDEN ^ sum.low) * LB_HASH_GOLDEN;
}

static inline struct lb_flow_hash
lb_hash_of_sum(struct lb_mul_sum sum)
{
	return (struct lb_flow_hash){
		.place = lb_hash_of_both(sum),
		.print = (sum.high << 32 | sum.high >> 32) ^ sum.low,
	};
}

static inline struct lb_flow_hash
lb_hash_flow_v4(const struct lb_hash_keyed *keyed, const struct lb_flow_v4 *key)
{
	const uint64_t *s = keyed->v4;

	return lb_hash_of_sum(lb_mul(key->addresses + s[0], key->rest + s[1]));
}

/*
 * NH of four words; and the fifth, which is of 40 bits, times an odd number: where that alone
 * differs, so does the sum. NH's bound holds for any difference of two sums.
 */
static inline struct lb_flow_hash
lb_hash_flow_v6(const struct lb_hash_keyed *keyed, const struct lb_flow_words *key)
{
	const uint64_t *s = keyed->v6;
	const uint64_t *w = key->word;
	struct lb_mul_sum sum = lb_mul(w[0] + s[0], w[1] + s[1]);

	sum = lb_mul_add(sum, w[2] + s[2], w[3] + s[3]);
	sum.high += w[4] * s[4];
	return lb_hash_of_sum(sum);
}

/** The same as lb_hash_flow(). */
static inline struct lb_flow_hash
lb_hash_flow_keyed(const struct lb_hash_keyed *keyed, const struct lb_flow_key *key)
{
	const struct lb_flow_words words = lb_hash_words(key);
	const struct lb_flow_v4 v4 = lb_hash_words_v4(&words);

	return lb_addr_is_v4(&key->src) ? lb_hash_flow_v4(keyed, &v4)
					: lb_hash_flow_v6(keyed, &words);
}

/* Of any numbers of many bits, since keys may have few; these are the first digits of pi. */
#define LB_HASH_ENTROPY_1 UINT64_C(0x243f6a8885a308d3)
#define LB_HASH_ENTROPY_2 UINT64_C(0x13198a2e03707344)

static inline uint32_t
lb_hash_entropy_of(uint64_t a, uint64_t b)
{
	const struct lb_mul_sum product = lb_mul(a ^ LB_HASH_ENTROPY_1, b ^ LB_HASH_ENTROPY_2);

	return (uint32_t)(lb_hash_of_both(product) >> 32);
}

/** lb_hash_entropy(). */
static inline uint32_t
lb_hash_entropy_v4(const struct lb_flow_v4 *key)
{
	return lb_hash_entropy_of(key->addresses, key->rest);
}

/* Hosts of a network differ in their last bytes mostly; ports lie far from those. */
static inline uint32_t
lb_hash_entropy_v6(const struct lb_flow_words *key)
{
	const uint64_t *w = key->word;

	return lb_hash_entropy_of(w[0] ^ w[2], w[1] ^ w[3] ^ w[4]);
}

/* XXH3's last step. */
static inline uint64_t
lb_hash_mix(uint64_t h)
{
	h = (h ^ h >> 37) * UINT64_C(0x165667919e3779f9);
	return h ^ h >> 32;
}

/*
 * lb_hash_pick() of the 5-tuple: XXH3 of 128 bits, of the lengths that keys have, written from
 * its specification, as far as its low half needs.
 */

/** Of 16 bytes. */
static inline uint64_t
lb_hash_pick_v4(const struct lb_hash_seeded *seeded, const struct lb_flow_v4 *key)
{
	const uint64_t both = key->addresses ^ key->rest ^ seeded->v4_low_flip;
	const uint64_t rest = key->rest ^ seeded->v4_high_flip;
	const struct lb_mul_sum product = lb_mul(both, seeded->low_prime);
	const uint64_t high =
		product.high + rest + (uint64_t)(uint32_t)rest * seeded->v4_half_prime;
	const uint64_t low = (product.low + seeded->v4_head) ^ lb_bytes_swap64(high);

	return lb_hash_mix(low * seeded->v4_prime);
}

/** Of 40 bytes. */
static inline uint64_t
lb_hash_pick_v6(const struct lb_hash_seeded *seeded, const struct lb_flow_words *key)
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
	return lb_hash_mix(low + high);
}

/** Of a key. */
static inline uint64_t
lb_hash_pick_seeded(const struct lb_hash_seeded *seeded, const struct lb_flow_key *key)
{
	const struct lb_flow_words words = lb_hash_words(key);
	const struct lb_flow_v4 v4 = lb_hash_words_v4(&words);

	return lb_addr_is_v4(&key->src) ? lb_hash_pick_v4(seeded, &v4)
					: lb_hash_pick_v6(seeded, &words);
}

#endif
