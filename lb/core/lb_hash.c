/* SPDX-License-Identifier: BSD-3-Clause */
#define XXH_INLINE_ALL /* a call per 40-byte key would cost as much as the hash */
#include <xxhash.h>

#include "lb_hash.h"

void
lb_hash_flows(const struct lb_flow_key *keys, size_t n, uint64_t seed, struct lb_flow_hash *out)
{
	for (size_t i = 0; i < n; i++) {
		const XXH128_hash_t h = XXH3_128bits_withSeed(&keys[i], sizeof(keys[i]), seed);

		out[i].pick = h.low64;
		out[i].place = h.high64;
	}
}

uint64_t
lb_hash_pick(const struct lb_flow_key *key, enum lb_affinity affinity, uint64_t seed)
{
	struct lb_flow_key part = {.src = key->src};

	if (affinity == LB_AFFINITY_5_TUPLE)
		part = *key;
	else if (affinity == LB_AFFINITY_SOURCE_IP_PORT)
		part.sport_be = key->sport_be;

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
