/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_SERVICE_LOOKUP_H
#define LB_SERVICE_LOOKUP_H

/**
 * @file
 * The inside of a service table, for what each packet does: begin a lookup, which only asks for
 * memory, and end it, when that has come. lb_service_table.h has what it all means, and what
 * others may do.
 *
 * Between the two a burst's other packets begin theirs, so that with many services their loads
 * overlap.
 */

#include <assert.h>
#include <netinet/in.h>
#include <stdalign.h>

#include "lb_bytes.h"
#include "lb_compiler.h"
#include "lb_mul.h"
#include "lb_service_table.h"

#define LB_SERVICE_BITS_MAX 128u

/** What is exact in a match: the number of its bit is its turn in a lookup. */
enum lb_service_combination {
	LB_SERVICE_PROTO_AND_PORT,
	LB_SERVICE_PORT_ONLY,
	LB_SERVICE_PROTO_ONLY,
	LB_SERVICE_NEITHER,
};

#define LB_SERVICE_BIT(combination) (1u << (combination))

/** A key is compared whole; an address is two words, of whose bytes the first is the lowest. */
struct lb_service_key {
	uint64_t addr[2];
	uint32_t rest; /* 31..24 prefix length, 23..16 protocol, 15..0 port */
};

/* Two to a line, so that none straddles one. */
struct lb_service_entry {
	alignas(32) struct lb_service_key key; /* rest is LB_SERVICE_FREE where there is none */
	uint32_t service;
};

static_assert(LB_CACHE_LINE % sizeof(struct lb_service_entry) == 0,
	"a probe must touch one line");

/** The rests of no key, as their length would be 255: of a free place, and of no search. */
#define LB_SERVICE_FREE   UINT32_MAX
#define LB_SERVICE_NO_KEY (UINT32_MAX - 1)

/*
 * Linear probing, half full at most, Robin Hood order: a key that is further from home takes
 * the place of one that is nearer. That keeps the furthest near, and n_probes, fixed when
 * the table is built, bounds every lookup: whoever chooses destination addresses chooses
 * where to begin, and no more. The keys are the operator's, so no secret is needed.
 */
struct lb_service_set {
	struct lb_service_entry *entries; /* mask + 1 of them, a power of two */
	uint64_t mask;
	uint32_t n_probes; /* slots from home to the furthest key, both included */
};

/* A prefix length that occurs. */
struct lb_service_length {
	uint64_t mask[2];
	uint8_t n_bits;
	uint8_t combinations; /* bits that occur at this length */
};

/* The lengths of one family, longest first; after them one of no combinations. */
struct lb_service_family {
	uint32_t n_lengths;
	struct lb_service_length lengths[LB_SERVICE_BITS_MAX + 2];
};

/*
 * One list of lengths a family keeps the families apart: ::/0 is in the IPv6 list and no IPv4
 * address is looked up by that. The rest follows: a length in the IPv4 list is 96 or more,
 * so it keeps the ::ffff:0:0/96 by which the addresses differ.
 */
struct lb_service_table {
	alignas(LB_CACHE_LINE) struct lb_service_set matches;
	struct lb_service_set prefixes; /* each once, protocol and port 0; 0 or NONE */
	uint64_t *filter;               /* of the prefixes; filter_mask + 1 words */
	uint64_t filter_mask;
	struct lb_service_family v4;
	struct lb_service_family v6;
};

/*
 * Whether an address is a service's is asked of sources, which are none, over and over: a set
 * half full would be looked into, and guessed wrong, every other time. A Bloom filter (CACM 13,
 * 1970) of two bits in one word, 16 bits or more a prefix, says no to 98 of 100 of them by a
 * few kilobytes.
 */
static inline uint64_t
lb_service_filter_bits(uint64_t hash)
{
	return UINT64_C(1) << (hash >> 28 & 63) | UINT64_C(1) << (hash >> 34 & 63);
}

static inline uint64_t *
lb_service_filter_word(const struct lb_service_table *table, uint64_t hash)
{
	return &table->filter[hash >> 40 & table->filter_mask];
}

/** A lookup that has begun: its first search. */
struct lb_service_search {
	struct lb_service_key key;
	uint32_t home;
};

/** An address in two words, whatever the machine's byte order: as keys of flows have it. */
static inline void
lb_service_words(const struct lb_addr *addr, uint64_t words[2])
{
	words[0] = lb_bytes_load64(addr->bytes);
	words[1] = lb_bytes_load64(addr->bytes + 8);
}

/* Two multiplications, inline: XXH3 of 20 bytes costs a call and several times that. */
static inline uint64_t
lb_service_hash(const struct lb_service_key *key)
{
	const uint64_t addr = lb_mul_fold(key->addr[0] ^ UINT64_C(0x9e3779b97f4a7c15),
		key->addr[1] ^ UINT64_C(0xd1b54a32d192ed03));

	return lb_mul_fold(addr ^ key->rest, UINT64_C(0xaef17502108ef2d9));
}

static inline bool
lb_service_is_same_key(const struct lb_service_key *a, const struct lb_service_key *b)
{
	return ((a->addr[0] ^ b->addr[0]) | (a->addr[1] ^ b->addr[1]) | (a->rest ^ b->rest)) ==
	       0;
}

static inline uint32_t
lb_service_rest(uint8_t n_bits, uint8_t proto, uint16_t port)
{
	return (uint32_t)n_bits << 24 | (uint32_t)proto << 16 | port;
}

/** @param home  lb_service_hash() of the key, or that modulo the number of places. */
static inline struct lb_service_entry *
lb_service_find_key(const struct lb_service_set *set, const struct lb_service_key *key,
	uint64_t home)
{
	for (uint32_t i = 0; i < set->n_probes; i++) {
		struct lb_service_entry *entry = &set->entries[(home + i) & set->mask];

		if (likely(lb_service_is_same_key(&entry->key, key)))
			return entry;
		if (entry->key.rest == LB_SERVICE_FREE)
			return NULL;
	}
	return NULL;
}

static inline const struct lb_service_family *
lb_service_family_of(const struct lb_service_table *table, const struct lb_addr *addr)
{
	return lb_addr_is_v4(addr) ? &table->v4 : &table->v6;
}

/** Port 0 in a key means any port, so a packet's own port 0 must not be taken for exact. */
static inline unsigned int
lb_service_possible(uint8_t proto, uint16_t port)
{
	if (proto != IPPROTO_TCP && proto != IPPROTO_UDP)
		return LB_SERVICE_BIT(LB_SERVICE_NEITHER);
	if (port == 0)
		return LB_SERVICE_BIT(LB_SERVICE_PROTO_ONLY) |
		       LB_SERVICE_BIT(LB_SERVICE_NEITHER);
	return LB_SERVICE_BIT(LB_SERVICE_PROTO_AND_PORT) |
	       LB_SERVICE_BIT(LB_SERVICE_PORT_ONLY) | LB_SERVICE_BIT(LB_SERVICE_PROTO_ONLY) |
	       LB_SERVICE_BIT(LB_SERVICE_NEITHER);
}

/** The key by which one length and the first of some combinations is searched. */
static inline struct lb_service_key
lb_service_key_of(const struct lb_service_length *length, unsigned int combinations,
	const uint64_t addr[2], uint32_t proto_and_port)
{
	static const uint32_t exact[] = {
		[LB_SERVICE_PROTO_AND_PORT] = 0xffffff,
		[LB_SERVICE_PORT_ONLY] = 0xffff,
		[LB_SERVICE_PROTO_ONLY] = 0xff0000,
		[LB_SERVICE_NEITHER] = 0,
	};

	return (struct lb_service_key){
		{addr[0] & length->mask[0], addr[1] & length->mask[1]},
		(uint32_t)length->n_bits << 24 |
			(proto_and_port & exact[__builtin_ctz(combinations)]),
	};
}

/**
 * Begin lb_service_find(), and start loading what its first search reads: the longest prefix
 * there is and what is most exact, which finds most services.
 *
 * @param family  Of the table, the address'.
 * @param addr    As lb_service_words() has it.
 */
static inline void
lb_service_begin_words(const struct lb_service_table *table,
	const struct lb_service_family *family, const uint64_t addr[2], uint8_t proto,
	uint16_t port, struct lb_service_search *search)
{
	const struct lb_service_length *length = &family->lengths[0];
	const unsigned int combinations =
		length->combinations & lb_service_possible(proto, port);

	if (unlikely(combinations == 0))
		search->key = (struct lb_service_key){.rest = LB_SERVICE_NO_KEY};
	else
		search->key = lb_service_key_of(length, combinations, addr,
			lb_service_rest(0, proto, port));
	search->home = (uint32_t)(lb_service_hash(&search->key) & table->matches.mask);
	__builtin_prefetch(&table->matches.entries[search->home]);
}

/** The same of an address. */
static inline void
lb_service_begin(const struct lb_service_table *table, const struct lb_addr *dst, uint8_t proto,
	uint16_t port, struct lb_service_search *search)
{
	uint64_t addr[2];

	lb_service_words(dst, addr);
	lb_service_begin_words(table, lb_service_family_of(table, dst), addr, proto, port,
		search);
}

/** What the first search finds; NULL: others are to be made. */
static inline const struct lb_service_entry *
lb_service_end_first(const struct lb_service_table *table,
	const struct lb_service_search *search)
{
	return lb_service_find_key(&table->matches, &search->key, search->home);
}

/** End it, with what it was begun with. @return what lb_service_find() returns. */
static inline uint32_t
lb_service_end(const struct lb_service_table *table, const struct lb_service_search *search,
	const struct lb_addr *dst, uint8_t proto, uint16_t port)
{
	const struct lb_service_entry *entry = lb_service_end_first(table, search);

	if (likely(entry != NULL))
		return entry->service;
	return lb_service_find(table, dst, proto, port);
}

/** A prefix that a service or what is kept has; NULL: nobody has it. */
static inline const struct lb_service_entry *
lb_service_find_prefix(const struct lb_service_table *table, const struct lb_service_key *key)
{
	const uint64_t hash = lb_service_hash(key);
	const uint64_t bits = lb_service_filter_bits(hash);

	if (likely((*lb_service_filter_word(table, hash) & bits) != bits))
		return NULL;
	return lb_service_find_key(&table->prefixes, key, hash);
}

/** lb_service_has_host() of an address in two words. */
static inline bool
lb_service_has_host_words(const struct lb_service_table *table, const uint64_t addr[2])
{
	const struct lb_service_key key = {{addr[0], addr[1]},
		lb_service_rest(LB_SERVICE_BITS_MAX, 0, 0)};
	const struct lb_service_entry *found = lb_service_find_prefix(table, &key);

	return found != NULL && found->service != LB_SERVICE_NONE;
}

#endif
