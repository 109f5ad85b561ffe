/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_hash_flow.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lb_compiler.h"

struct lb_flow_hash
lb_hash_flow(const struct lb_hash_keyed *keyed, const struct lb_flow_key *key)
{
	return lb_hash_flow_keyed(keyed, key);
}

uint32_t
lb_hash_entropy(const struct lb_flow_key *key)
{
	const struct lb_flow_words words = lb_hash_words(key);
	const struct lb_flow_v4 v4 = lb_hash_words_v4(&words);

	return lb_addr_is_v4(&key->src) ? lb_hash_entropy_v4(&v4) : lb_hash_entropy_v6(&words);
}

void
lb_hash_key(struct lb_hash_keyed *out, const uint64_t secret[static 2])
{
	uint64_t n = 0;

	for (size_t i = 0; i < LB_N_ELEMENTS(out->v4); i++)
		out->v4[i] = XXH3_64bits_withSeed(secret, 2 * sizeof(secret[0]), n++);
	for (size_t i = 0; i < LB_N_ELEMENTS(out->v6); i++)
		out->v6[i] = XXH3_64bits_withSeed(secret, 2 * sizeof(secret[0]), n++);
	out->v6[LB_N_ELEMENTS(out->v6) - 1] |= 1;
}

void
lb_hash_seed(struct lb_hash_seeded *out, uint64_t seed)
{
	/* The first 64 bytes of XXH3's default secret, which its specification lists. */
	static const uint64_t secret[LB_N_ELEMENTS(out->secret)] = {
		UINT64_C(0xbe4ba423396cfeb8),
		UINT64_C(0x1cad21f72c81017c),
		UINT64_C(0xdb979083e96dd4de),
		UINT64_C(0x1f67b3b7a4a44072),
		UINT64_C(0x78e5c0cc4ee679cb),
		UINT64_C(0x2172ffcc7dd05a82),
		UINT64_C(0x8e2443f7744608b8),
		UINT64_C(0x4c263a81e69035e0),
	};

	for (size_t i = 0; i < LB_N_ELEMENTS(secret); i += 2) {
		out->secret[i] = secret[i] + seed;
		out->secret[i + 1] = secret[i + 1] - seed;
	}
	out->low_prime = UINT64_C(0x9e3779b185ebca87);
	out->head = sizeof(struct lb_flow_key) * out->low_prime;
	out->v4_low_flip = (secret[4] ^ secret[5]) - seed;
	out->v4_high_flip = (secret[6] ^ secret[7]) + seed;
	/* The length of 16 bytes, less one, stands at the top. */
	out->v4_head = UINT64_C(15) << 54;
	out->v4_half_prime = UINT64_C(0x85ebca77) - 1;
	out->v4_prime = UINT64_C(0xc2b2ae3d27d4eb4f);
}

/* Of the 16 bytes in which keys of IPv4 differ. */
static uint64_t
pick_v4(const struct lb_flow_key *key, uint64_t seed)
{
	const size_t v4_at = LB_ADDR_BYTES - 4;
	uint8_t bytes[sizeof(struct lb_flow_v4)] = {0};

	memcpy(bytes, key->src.bytes + v4_at, 4);
	memcpy(bytes + 4, key->dst.bytes + v4_at, 4);
	memcpy(bytes + 8, &key->sport_be, 2);
	memcpy(bytes + 10, &key->dport_be, 2);
	bytes[12] = key->proto;
	return XXH3_128bits_withSeed(bytes, sizeof(bytes), seed).low64;
}

uint64_t
lb_hash_pick(const struct lb_flow_key *key, enum lb_affinity affinity, uint64_t seed)
{
	struct lb_flow_key part = {.src = key->src};

	if (affinity == LB_AFFINITY_5_TUPLE)
		part = *key;
	else if (affinity == LB_AFFINITY_SOURCE_IP_PORT)
		part.sport_be = key->sport_be;

	if (lb_addr_is_v4(&key->src))
		return pick_v4(&part, seed);
	return XXH3_128bits_withSeed(&part, sizeof(part), seed).low64;
}

uint64_t
lb_hash_name(const char *name, size_t n_bytes, uint64_t hash_seed, unsigned int k)
{
	return XXH3_64bits_withSeed(name, n_bytes, hash_seed + k);
}

uint64_t
lb_hash_bytes(const void *bytes, size_t n_bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, n_bytes, seed);
}

size_t
lb_hash_entries_for(size_t n)
{
	size_t n_entries = 2;

	while (n_entries < 2 * n)
		n_entries *= 2;
	return n_entries;
}
