/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HASH_H
#define LB_HASH_H

/**
 * @file
 * All hashing of Shunt; the only module that calls xxhash.
 *
 * Results are the same on every machine: two balancers with one seed agree.
 * Pure functions, callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_flow.h"

/**
 * XXH3 128-bit of a flow key under the cluster's seed, but for the mixing that is its last step
 * and does to each half, by itself, what can be undone: so two keys have the same halves where
 * XXH3 has them.
 */
struct lb_flow_hash {
	uint64_t pick;  /**< low half: lb_hash_slot() of it chooses the table slot */
	uint64_t place; /**< high half: places the flow in the flow table, after mixing */
};

/** XXH3's last step. */
static inline uint64_t
lb_hash_mix(uint64_t h)
{
	h = (h ^ h >> 37) * UINT64_C(0x165667919e3779f9);
	return h ^ h >> 32;
}

/** XXH3's low half: chooses the slot of a table, the same on every balancer. */
static inline uint64_t
lb_hash_slot(const struct lb_flow_hash *hash)
{
	return lb_hash_mix(hash->pick);
}

/**
 * What tells a backend's flows apart in outer headers: of the half that picks no slot, as they
 * all share the slot's bits.
 */
static inline uint32_t
lb_hash_entropy(const struct lb_flow_hash *hash)
{
	return (uint32_t)(hash->place >> 32);
}

/**
 * Hash a flow key under the configuration's hash_seed: of IPv4 the 16 bytes of struct
 * lb_flow_v4, of IPv6 all 40.
 *
 * XXH3 maps 16 bytes to 128 bits one to one: no two flows of IPv4 have the same hash, whoever
 * chooses them.
 */
struct lb_flow_hash lb_hash_flow(const struct lb_flow_key *key, uint64_t seed);

/**
 * What XXH3 makes of a seed before it sees a key, for all hashes under it. Its constants lie
 * beside that, since an operand in memory takes no instruction of its own.
 */
struct lb_hash_seeded {
	uint64_t v4_low_flip; /**< of XXH3's secret, with the seed in it: for keys of IPv4 */
	uint64_t v4_high_flip;
	uint64_t v4_head; /**< of the length */
	uint64_t v4_half_prime;
	uint64_t v4_prime;
	uint64_t low_prime;

	uint64_t secret[8]; /**< its first words, with the seed in them: for keys of IPv6 */
	uint64_t head;      /**< of the length */
	uint64_t tail;      /**< of length and seed */
	uint64_t high_prime;
};

/** What lb_hash_flow_seeded() needs of a seed. */
void lb_hash_seed(struct lb_hash_seeded *out, uint64_t seed);

/**
 * The slot-choosing hash under an affinity other than the 5-tuple: fields that
 * the affinity leaves out are hashed as zero, in as many bytes as the source's family has.
 * LB_AFFINITY_5_TUPLE gives lb_hash_slot() of lb_hash_flow().
 */
uint64_t lb_hash_pick(const struct lb_flow_key *key, enum lb_affinity affinity, uint64_t seed);

/**
 * h_k of a backend's name: XXH3 64-bit with seed hash_seed + k.
 *
 * @param name    n_bytes bytes, not NUL-terminated.
 * @param k       0 for the canonical order, 1.. as each table defines.
 */
uint64_t lb_hash_name(const char *name, size_t n_bytes, uint64_t hash_seed, unsigned int k);

/** XXH3 64-bit of n_bytes bytes; for tables that are nobody else's business. */
uint64_t lb_hash_bytes(const void *bytes, size_t n_bytes, uint64_t seed);

/** Entries of an open-addressed table for n: a power of two, at most half of them in use. */
size_t lb_hash_entries_for(size_t n);

#endif
