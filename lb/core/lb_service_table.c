/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_service_table.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_limits.h"

#define PREFIX_BITS_MAX 128u

/* What is exact in a match: the number of its bit is its turn in a lookup. */
enum combination {
	PROTO_AND_PORT,
	PORT_ONLY,
	PROTO_ONLY,
	NEITHER,
};

#define BIT(combination) (1u << (combination))

/* A key is compared whole; an address is two words of its bytes, as they lie in memory. */
struct key {
	uint64_t addr[2];
	uint32_t rest; /* 31..24 prefix length, 23..16 protocol, 15..0 port */
};

/* Two to a line, so that none straddles one. */
struct entry {
	alignas(32) struct key key; /* rest is FREE where there is none */
	uint32_t service;
};

static_assert(LB_CACHE_LINE % sizeof(struct entry) == 0, "a probe must touch one line");

#define FREE UINT32_MAX /* the rest of no key: its length would be 255 */

/*
 * Linear probing, half full at most, Robin Hood order: a key that is further from home takes
 * the place of one that is nearer. That keeps the furthest near, and n_probes, fixed when
 * the table is built, bounds every lookup: whoever chooses destination addresses chooses
 * where to begin, and no more. The keys are the operator's, so no secret is needed.
 */
struct key_set {
	struct entry *entries; /* mask + 1 of them, a power of two */
	uint64_t mask;
	uint32_t n_probes; /* slots from home to the furthest key, both included */
};

/* A prefix length that occurs. */
struct length {
	uint64_t mask[2];
	uint8_t n_bits;
	uint8_t combinations; /* bits that occur at this length */
};

/* The lengths of one family, longest first. */
struct family {
	uint32_t n_lengths;
	struct length lengths[PREFIX_BITS_MAX + 1];
};

/*
 * One list of lengths a family keeps the families apart: ::/0 is in the IPv6 list and no IPv4
 * address is looked up by that. The rest follows: a length in the IPv4 list is 96 or more,
 * so it keeps the ::ffff:0:0/96 by which the addresses differ.
 */
struct lb_service_table {
	alignas(LB_CACHE_LINE) struct key_set matches;
	struct key_set prefixes; /* each prefix once, protocol and port 0 */
	struct family v4;
	struct family v6;
};

static inline uint64_t
fold(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 uint128;
	const uint128 product = (uint128)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Two multiplications, inline: XXH3 of 20 bytes costs a call and several times that. */
static inline uint64_t
hash_key(const struct key *key)
{
	const uint64_t addr = fold(key->addr[0] ^ UINT64_C(0x9e3779b97f4a7c15),
		key->addr[1] ^ UINT64_C(0xd1b54a32d192ed03));

	return fold(addr ^ key->rest, UINT64_C(0xaef17502108ef2d9));
}

static inline bool
is_same_key(const struct key *a, const struct key *b)
{
	return ((a->addr[0] ^ b->addr[0]) | (a->addr[1] ^ b->addr[1]) | (a->rest ^ b->rest)) ==
	       0;
}

static inline uint32_t
pack_rest(uint8_t n_bits, uint8_t proto, uint16_t port)
{
	return (uint32_t)n_bits << 24 | (uint32_t)proto << 16 | port;
}

static inline struct entry *
find_key(const struct key_set *set, const struct key *key)
{
	const uint64_t home = hash_key(key);

	for (uint32_t i = 0; i < set->n_probes; i++) {
		struct entry *entry = &set->entries[(home + i) & set->mask];

		if (is_same_key(&entry->key, key))
			return entry;
		if (entry->key.rest == FREE)
			return NULL;
	}
	return NULL;
}

/* The caller has seen that the key is not there. */
static void
add_key(struct key_set *set, const struct key *key, uint32_t service)
{
	struct entry carried = {.key = *key, .service = service};
	uint64_t slot = hash_key(key);
	uint32_t distance = 0;

	for (;; slot++, distance++) {
		struct entry *entry = &set->entries[slot & set->mask];
		const struct entry found = *entry;
		uint32_t its_distance;

		if (found.key.rest == FREE) {
			*entry = carried;
			break;
		}
		its_distance = (uint32_t)((slot - hash_key(&found.key)) & set->mask);
		if (its_distance >= distance)
			continue;
		*entry = carried;
		if (distance + 1 > set->n_probes)
			set->n_probes = distance + 1;
		carried = found;
		distance = its_distance;
	}
	if (distance + 1 > set->n_probes)
		set->n_probes = distance + 1;
}

size_t
lb_service_table_bytes(size_t n)
{
	if (n > LB_SERVICES_MAX)
		return 0;
	return sizeof(struct lb_service_table) +
	       2 * lb_hash_entries_for(n) * sizeof(struct entry);
}

static void
init_set(struct key_set *set, struct entry *entries, size_t n_entries)
{
	*set = (struct key_set){.entries = entries, .mask = n_entries - 1};
	for (size_t i = 0; i < n_entries; i++)
		entries[i] = (struct entry){.key.rest = FREE};
}

static bool
is_valid(const struct lb_service_match *match)
{
	if (match->prefix.n_bits > PREFIX_BITS_MAX || lb_prefix_has_host_bits(&match->prefix))
		return false;
	if (match->proto != 0 && match->proto != IPPROTO_TCP && match->proto != IPPROTO_UDP)
		return false;
	return match->service != LB_SERVICE_NONE;
}

static enum combination
combination_of(const struct lb_service_match *match)
{
	if (match->port != 0)
		return match->proto != 0 ? PROTO_AND_PORT : PORT_ONLY;
	return match->proto != 0 ? PROTO_ONLY : NEITHER;
}

/* The combinations that occur at each length of a family, as a list. */
static void
list_lengths(struct family *family, const uint8_t combinations[PREFIX_BITS_MAX + 1])
{
	struct lb_addr ones;

	memset(ones.bytes, 0xff, sizeof(ones.bytes));
	family->n_lengths = 0;
	for (unsigned int n_bits = PREFIX_BITS_MAX + 1; n_bits-- > 0;) {
		struct length *length = &family->lengths[family->n_lengths];
		struct lb_addr mask;

		if (combinations[n_bits] == 0)
			continue;
		mask = lb_addr_mask(&ones, n_bits);
		memcpy(length->mask, mask.bytes, sizeof(length->mask));
		length->n_bits = (uint8_t)n_bits;
		length->combinations = combinations[n_bits];
		family->n_lengths++;
	}
}

static int
add_match(struct lb_service_table *table, const struct lb_service_match *match)
{
	struct key key;

	memcpy(key.addr, match->prefix.addr.bytes, sizeof(key.addr));
	key.rest = pack_rest(match->prefix.n_bits, match->proto, match->port);
	if (find_key(&table->matches, &key) != NULL)
		return -EEXIST;
	add_key(&table->matches, &key, match->service);

	key.rest = pack_rest(match->prefix.n_bits, 0, 0);
	if (find_key(&table->prefixes, &key) == NULL)
		add_key(&table->prefixes, &key, 0);
	return 0;
}

int
lb_service_table_build(void *mem, const struct lb_service_match *matches, size_t n,
	const struct lb_service_table **out)
{
	uint8_t v4[PREFIX_BITS_MAX + 1] = {0};
	uint8_t v6[PREFIX_BITS_MAX + 1] = {0};
	struct lb_service_table *table = mem;
	struct entry *entries;

	if (n > LB_SERVICES_MAX)
		return -E2BIG;

	entries = (struct entry *)(table + 1);
	init_set(&table->matches, entries, lb_hash_entries_for(n));
	init_set(&table->prefixes, entries + lb_hash_entries_for(n), lb_hash_entries_for(n));
	for (size_t i = 0; i < n; i++) {
		uint8_t *combinations = lb_addr_is_v4(&matches[i].prefix.addr) ? v4 : v6;
		int ret;

		if (!is_valid(&matches[i]))
			return -EINVAL;
		ret = add_match(table, &matches[i]);
		if (ret != 0)
			return ret;
		combinations[matches[i].prefix.n_bits] |=
			(uint8_t)BIT(combination_of(&matches[i]));
	}
	list_lengths(&table->v4, v4);
	list_lengths(&table->v6, v6);
	*out = table;
	return 0;
}

static inline const struct family *
family_of(const struct lb_service_table *table, const struct lb_addr *addr)
{
	return lb_addr_is_v4(addr) ? &table->v4 : &table->v6;
}

/* Port 0 in a key means any port, so a packet's own port 0 must not be taken for exact. */
static inline unsigned int
possible_combinations(uint8_t proto, uint16_t port)
{
	if (proto != IPPROTO_TCP && proto != IPPROTO_UDP)
		return BIT(NEITHER);
	if (port == 0)
		return BIT(PROTO_ONLY) | BIT(NEITHER);
	return BIT(PROTO_AND_PORT) | BIT(PORT_ONLY) | BIT(PROTO_ONLY) | BIT(NEITHER);
}

uint32_t
lb_service_find(const struct lb_service_table *table, const struct lb_addr *dst, uint8_t proto,
	uint16_t port)
{
	const struct family *family = family_of(table, dst);
	const unsigned int possible = possible_combinations(proto, port);
	uint64_t addr[2];

	memcpy(addr, dst->bytes, sizeof(addr));
	for (uint32_t i = 0; i < family->n_lengths; i++) {
		const struct length *length = &family->lengths[i];
		unsigned int left = length->combinations & possible;
		struct key key = {{addr[0] & length->mask[0], addr[1] & length->mask[1]}, 0};

		for (; left != 0; left &= left - 1) {
			const unsigned int bit = left & -left;
			const bool by_proto =
				(bit & (BIT(PROTO_AND_PORT) | BIT(PROTO_ONLY))) != 0;
			const bool by_port =
				(bit & (BIT(PROTO_AND_PORT) | BIT(PORT_ONLY))) != 0;
			const struct entry *entry;

			key.rest = pack_rest(length->n_bits, by_proto ? proto : 0,
				by_port ? port : 0);
			entry = find_key(&table->matches, &key);
			if (entry != NULL)
				return entry->service;
		}
	}
	return LB_SERVICE_NONE;
}

bool
lb_service_covers(const struct lb_service_table *table, const struct lb_addr *dst)
{
	const struct family *family = family_of(table, dst);
	uint64_t addr[2];

	memcpy(addr, dst->bytes, sizeof(addr));
	for (uint32_t i = 0; i < family->n_lengths; i++) {
		const struct length *length = &family->lengths[i];
		const struct key key = {
			{addr[0] & length->mask[0], addr[1] & length->mask[1]},
			pack_rest(length->n_bits, 0, 0),
		};

		if (find_key(&table->prefixes, &key) != NULL)
			return true;
	}
	return false;
}

bool
lb_service_has_host(const struct lb_service_table *table, const struct lb_addr *addr)
{
	struct key key = {.rest = pack_rest(PREFIX_BITS_MAX, 0, 0)};

	memcpy(key.addr, addr->bytes, sizeof(key.addr));
	return find_key(&table->prefixes, &key) != NULL;
}
