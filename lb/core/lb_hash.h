/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HASH_H
#define LB_HASH_H

/**
 * @file
 * All hashing of Shunt; the only module that calls xxhash.
 *
 * Results are the same on every machine: two balancers with one seed, or one secret, agree.
 * Pure functions, callable from any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_flow.h"

/**
 * What a flow is known by: a hash of its key that nobody can aim at, who does not know the
 * secret it is keyed with.
 *
 * It is drawn from a sum of products of the key's words and the secret's, NH of UMAC (Black et
 * al., CRYPTO 1999): 128 bits, which are the same for two keys with probability 2^-64 at most,
 * whoever chooses them. Of what a flow table keeps, place and half of print, that is no
 * theorem; but where words are so narrow, w bits, that all pairs of keys can be tried with all
 * secrets, it is the same with 2^-w, times 1.6 at most.
 *
 * Of place the top bits are to be taken first, of print the low ones; which tell nothing alone:
 * keys that differ little may have the same.
 */
struct lb_flow_hash {
	uint64_t place; /**< where the flow is in its table */
	uint64_t print; /**< tells it from others there */
};

/** A secret, drawn out to the words that keys of flows meet. */
struct lb_hash_keyed {
	uint64_t v4[2];
	uint64_t v6[5]; /**< the last one odd */
};

/** Draw it out. @param secret  Random in the daemon, fixed in a replay. */
void lb_hash_key(struct lb_hash_keyed *out, const uint64_t secret[static 2]);

/** Hash a flow's key: of IPv4 the 16 bytes of struct lb_flow_v4, of IPv6 all 40. */
struct lb_flow_hash lb_hash_flow(const struct lb_hash_keyed *keyed,
	const struct lb_flow_key *key);

/**
 * What tells a backend's flows apart in outer headers: the same on every balancer, of no
 * secret, as it is on the wire, and not of what picks the slot, whose bits flows of a backend
 * share.
 */
uint32_t lb_hash_entropy(const struct lb_flow_key *key);

/**
 * What XXH3 makes of a seed before it sees a key. Its constants lie beside that, since an
 * operand in memory takes no instruction of its own.
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
};

/** What lb_hash_pick_v4() and its like need of a seed. */
void lb_hash_seed(struct lb_hash_seeded *out, uint64_t seed);

/**
 * What chooses the slot of a table, the same on every balancer: the low half of XXH3's 128 bits
 * under the cluster's hash_seed, of the key's 16 bytes over IPv4, struct lb_flow_v4, and of all
 * its 40 over IPv6. Fields that the affinity leaves out are hashed as zero, in as many bytes as
 * the source's family has.
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
