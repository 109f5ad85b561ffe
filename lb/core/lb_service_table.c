/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_service_lookup.h"

#include <errno.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_limits.h"

#define FILTER_WORDS_MIN (LB_CACHE_LINE / sizeof(uint64_t))

static struct lb_service_entry *
find_key(const struct lb_service_set *set, const struct lb_service_key *key)
{
	return lb_service_find_key(set, key, lb_service_hash(key));
}

/* The caller has seen that the key is not there. */
static void
add_key(struct lb_service_set *set, const struct lb_service_key *key, uint32_t service)
{
	struct lb_service_entry carried = {.key = *key, .service = service};
	uint64_t slot = lb_service_hash(key);
	uint32_t distance = 0;

	for (;; slot++, distance++) {
		struct lb_service_entry *entry = &set->entries[slot & set->mask];
		const struct lb_service_entry found = *entry;
		uint32_t its_distance;

		if (found.key.rest == LB_SERVICE_FREE) {
			*entry = carried;
			break;
		}
		its_distance = (uint32_t)((slot - lb_service_hash(&found.key)) & set->mask);
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

/* A power of two, a line at least; four prefixes a word. */
static size_t
filter_words(size_t n)
{
	const size_t n_words = lb_hash_entries_for(n) / 4;

	return n_words < FILTER_WORDS_MIN ? FILTER_WORDS_MIN : n_words;
}

size_t
lb_service_table_bytes(size_t n)
{
	if (n > LB_MATCHES_MAX)
		return 0;
	return sizeof(struct lb_service_table) +
	       2 * lb_hash_entries_for(n) * sizeof(struct lb_service_entry) +
	       filter_words(n) * sizeof(uint64_t);
}

static void
init_set(struct lb_service_set *set, struct lb_service_entry *entries, size_t n_entries)
{
	*set = (struct lb_service_set){.entries = entries, .mask = n_entries - 1};
	for (size_t i = 0; i < n_entries; i++)
		entries[i] = (struct lb_service_entry){.key.rest = LB_SERVICE_FREE};
}

static bool
is_valid(const struct lb_service_match *match)
{
	if (match->prefix.n_bits > LB_SERVICE_BITS_MAX ||
		lb_prefix_has_host_bits(&match->prefix))
		return false;
	return match->proto == 0 || match->proto == IPPROTO_TCP || match->proto == IPPROTO_UDP;
}

static enum lb_service_combination
combination_of(const struct lb_service_match *match)
{
	if (match->port != 0)
		return match->proto != 0 ? LB_SERVICE_PROTO_AND_PORT : LB_SERVICE_PORT_ONLY;
	return match->proto != 0 ? LB_SERVICE_PROTO_ONLY : LB_SERVICE_NEITHER;
}

/* The combinations that occur at each length of a family, as a list. */
static void
list_lengths(struct lb_service_family *family,
	const uint8_t combinations[LB_SERVICE_BITS_MAX + 1])
{
	struct lb_addr ones;

	memset(ones.bytes, 0xff, sizeof(ones.bytes));
	family->n_lengths = 0;
	for (unsigned int n_bits = LB_SERVICE_BITS_MAX + 1; n_bits-- > 0;) {
		struct lb_service_length *length = &family->lengths[family->n_lengths];
		struct lb_addr mask;

		if (combinations[n_bits] == 0)
			continue;
		mask = lb_addr_mask(&ones, n_bits);
		lb_service_words(&mask, length->mask);
		length->n_bits = (uint8_t)n_bits;
		length->combinations = combinations[n_bits];
		family->n_lengths++;
	}
	family->lengths[family->n_lengths] = (struct lb_service_length){.combinations = 0};
}

static int
add_match(struct lb_service_table *table, const struct lb_service_match *match)
{
	const bool is_kept = match->service == LB_SERVICE_NONE;
	struct lb_service_entry *found;
	struct lb_service_key key;

	lb_service_words(&match->prefix.addr, key.addr);
	key.rest = lb_service_rest(match->prefix.n_bits, match->proto, match->port);
	found = find_key(&table->matches, &key);
	if (found != NULL && found->service != LB_SERVICE_NONE && !is_kept)
		return -EEXIST;
	if (found == NULL)
		add_key(&table->matches, &key, match->service);
	else if (!is_kept)
		found->service = match->service;

	key.rest = lb_service_rest(match->prefix.n_bits, 0, 0);
	found = find_key(&table->prefixes, &key);
	if (found == NULL)
		add_key(&table->prefixes, &key, is_kept ? LB_SERVICE_NONE : 0);
	else if (!is_kept)
		found->service = 0;
	*lb_service_filter_word(table, lb_service_hash(&key)) |=
		lb_service_filter_bits(lb_service_hash(&key));
	return 0;
}

int
lb_service_table_build(void *mem, const struct lb_service_match *matches, size_t n,
	const struct lb_service_table **out)
{
	uint8_t v4[LB_SERVICE_BITS_MAX + 1] = {0};
	uint8_t v6[LB_SERVICE_BITS_MAX + 1] = {0};
	struct lb_service_table *table = mem;
	struct lb_service_entry *entries;

	if (n > LB_MATCHES_MAX)
		return -E2BIG;

	entries = (struct lb_service_entry *)(table + 1);
	init_set(&table->matches, entries, lb_hash_entries_for(n));
	init_set(&table->prefixes, entries + lb_hash_entries_for(n), lb_hash_entries_for(n));
	table->filter = (uint64_t *)(entries + 2 * lb_hash_entries_for(n));
	table->filter_mask = filter_words(n) - 1;
	memset(table->filter, 0, filter_words(n) * sizeof(*table->filter));
	for (size_t i = 0; i < n; i++) {
		uint8_t *combinations = lb_addr_is_v4(&matches[i].prefix.addr) ? v4 : v6;
		int ret;

		if (!is_valid(&matches[i]))
			return -EINVAL;
		ret = add_match(table, &matches[i]);
		if (ret != 0)
			return ret;
		combinations[matches[i].prefix.n_bits] |=
			(uint8_t)LB_SERVICE_BIT(combination_of(&matches[i]));
	}
	list_lengths(&table->v4, v4);
	list_lengths(&table->v6, v6);
	*out = table;
	return 0;
}

uint32_t
lb_service_find(const struct lb_service_table *table, const struct lb_addr *dst, uint8_t proto,
	uint16_t port)
{
	const struct lb_service_family *family = lb_service_family_of(table, dst);
	const unsigned int possible = lb_service_possible(proto, port);
	const uint32_t proto_and_port = lb_service_rest(0, proto, port);
	uint64_t addr[2];

	lb_service_words(dst, addr);
	for (uint32_t i = 0; i < family->n_lengths; i++) {
		const struct lb_service_length *length = &family->lengths[i];
		unsigned int left = length->combinations & possible;

		for (; left != 0; left &= left - 1) {
			const struct lb_service_key key =
				lb_service_key_of(length, left, addr, proto_and_port);
			const struct lb_service_entry *entry =
				lb_service_find_key(&table->matches, &key,
					lb_service_hash(&key));

			if (entry != NULL)
				return entry->service;
		}
	}
	return LB_SERVICE_NONE;
}

bool
lb_service_covers(const struct lb_service_table *table, const struct lb_addr *dst)
{
	const struct lb_service_family *family = lb_service_family_of(table, dst);
	uint64_t addr[2];

	lb_service_words(dst, addr);
	for (uint32_t i = 0; i < family->n_lengths; i++) {
		const struct lb_service_key key = lb_service_key_of(&family->lengths[i],
			LB_SERVICE_BIT(LB_SERVICE_NEITHER), addr, 0);
		const struct lb_service_entry *found = lb_service_find_prefix(table, &key);

		if (found != NULL)
			return found->service != LB_SERVICE_NONE;
	}
	return false;
}

bool
lb_service_has_host(const struct lb_service_table *table, const struct lb_addr *addr)
{
	uint64_t words[2];

	lb_service_words(addr, words);
	return lb_service_has_host_words(table, words);
}
