/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys that differ little fill a flow table as random ones do, whatever the secret: so few of
 * their flows find no place in either of their buckets.
 */

#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_flow_lookup.h"
#include "lb_flow_table.h"
#include "lb_hash_flow.h"
#include "xrand.h"

#define ENTRIES  (1u << 19)
#define FLOWS    UINT64_C(445000) /* 85 of 100 */
#define SECRETS  6u
#define NOW_NS   UINT64_C(1000000000)
#define LONG_NS  (1000 * NOW_NS)
#define TCP_WORD (UINT64_C(6) << 32)

typedef struct lb_flow_words (*key_fn)(uint64_t i);

/* As memory has them: an address' last byte, and a port's, is the highest. */
static uint64_t
in_order(uint64_t value, unsigned int n_bits)
{
	return __builtin_bswap64(value) >> (64 - n_bits);
}

static struct lb_flow_words
v4_key(uint32_t src, uint16_t sport, uint16_t dport)
{
	return (struct lb_flow_words){{0, UINT64_C(0xffff0000) | in_order(src, 32) << 32, 0,
		UINT64_C(0xffff0000) | in_order(0xc6336401, 32) << 32,
		in_order(sport, 16) | in_order(dport, 16) << 16 | TCP_WORD}};
}

static struct lb_flow_words
v6_key(uint64_t host, uint16_t sport, uint16_t dport)
{
	return (struct lb_flow_words){{UINT64_C(0xb80d0120), in_order(host, 64),
		UINT64_C(0xb80d0120), in_order(7, 64),
		in_order(sport, 16) | in_order(dport, 16) << 16 | TCP_WORD}};
}

static struct lb_flow_words
hosts_v4(uint64_t i)
{
	return v4_key(0x0a000000 + (uint32_t)i, 1024, 443);
}

static struct lb_flow_words
ports_v4(uint64_t i)
{
	return v4_key(0x0a000000 + (uint32_t)(i >> 16), (uint16_t)i, 443);
}

static struct lb_flow_words
both_v4(uint64_t i)
{
	return v4_key(0x0a000000 + (uint32_t)i, (uint16_t)i, 443);
}

static struct lb_flow_words
scan_v4(uint64_t i)
{
	return v4_key(0x0a000000, (uint16_t)(1024 + (i >> 16)), (uint16_t)i);
}

static struct lb_flow_words
hosts_v6(uint64_t i)
{
	return v6_key(i, 1024, 443);
}

static struct lb_flow_words
ports_v6(uint64_t i)
{
	return v6_key(i >> 16, (uint16_t)i, 443);
}

static struct lb_flow_words
scan_v6(uint64_t i)
{
	return v6_key(1, (uint16_t)(1024 + (i >> 16)), (uint16_t)i);
}

static bool
is_v4(const struct lb_flow_words *words)
{
	return words->word[0] == 0;
}

static struct lb_flow_hash
hash_of(const struct lb_hash_keyed *keyed, key_fn key, uint64_t i)
{
	const struct lb_flow_words words = key(i);
	const struct lb_flow_v4 v4 = lb_hash_words_v4(&words);

	return is_v4(&words) ? lb_hash_flow_v4(keyed, &v4) : lb_hash_flow_v6(keyed, &words);
}

/* Of confirmed flows, which give way to none. @return how many found no place. */
static uint64_t
fill(void *mem, size_t n_bytes, const struct lb_hash_keyed *keyed, key_fn key)
{
	const struct lb_flow_table_conf conf = {.n_entries = ENTRIES,
		.timeout_ns = {LONG_NS, LONG_NS, LONG_NS, LONG_NS}};
	struct lb_flow_table_stats stats;
	struct lb_flow_table *flows;

	memset(mem, 0, n_bytes);
	assert_int_equal(lb_flow_table_init(mem, &conf, NOW_NS, &flows), 0);
	for (uint64_t i = 0; i < FLOWS; i++) {
		const struct lb_flow_hash hash = hash_of(keyed, key, i);
		const uint32_t ref =
			lb_flow_insert(flows, &hash, 1, LB_FLOW_SEGMENT, 0, NOW_NS);

		if (ref != LB_FLOW_NONE)
			lb_flow_touch(flows, ref, LB_FLOW_SEGMENT, NOW_NS);
	}
	lb_flow_table_stats(flows, &stats);
	return stats.refused;
}

static void
test_keys_that_differ_little_fill_a_table(void **state)
{
	static const struct {
		const char *name;
		key_fn key;
	} rows[] = {
		{"IPv4 hosts", hosts_v4},
		{"IPv4 ports", ports_v4},
		{"IPv4 hosts and ports", both_v4},
		{"a scan of IPv4 ports", scan_v4},
		{"IPv6 hosts", hosts_v6},
		{"IPv6 ports", ports_v6},
		{"a scan of IPv6 ports", scan_v6},
	};
	const size_t n_bytes = lb_flow_table_bytes(ENTRIES);
	void *mem = aligned_alloc(LB_CACHE_LINE, n_bytes);
	uint64_t random = 1;

	(void)state;
	assert_non_null(mem);
	for (unsigned int k = 0; k < SECRETS; k++) {
		const uint64_t secret[2] = {xrand(&random), xrand(&random)};
		struct lb_hash_keyed keyed;

		lb_hash_key(&keyed, secret);
		for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
			const uint64_t n_refused = fill(mem, n_bytes, &keyed, rows[i].key);

			/* Of random ones 0.26 of 100 are. */
			EXPECT(n_refused * 1000 < FLOWS * 4,
				"%s, secret %u: %lu of %lu flows have no place", rows[i].name,
				k, n_refused, FLOWS);
		}
	}
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_that_differ_little_fill_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
