/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_hash_flow.h"

struct lb_flow_hash
lb_hash_flow(const struct lb_flow_key *key, uint64_t seed)
{
	return lb_hash_flow_inline(key, seed);
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

size_t
lb_hash_entries_for(size_t n)
{
	size_t n_entries = 2;

	while (n_entries < 2 * n)
		n_entries *= 2;
	return n_entries;
}
