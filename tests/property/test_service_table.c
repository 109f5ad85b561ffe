/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random service sets against a linear search written from the words of the header: of all
 * matches that hold for a packet, the one with the longest prefix, then with a port, then
 * with a protocol.
 */

#include "lb_service_lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "expect.h"
#include "lb_compiler.h"
#include "xrand.h"

#define N_SETS    400u
#define N_LOOKUPS 500u
#define N_MATCHES 64u

static bool
is_over(const struct lb_prefix *prefix, const struct lb_addr *addr)
{
	if (lb_addr_is_v4(&prefix->addr) != lb_addr_is_v4(addr))
		return false;
	for (unsigned int bit = 0; bit < prefix->n_bits; bit++) {
		const unsigned int differs =
			prefix->addr.bytes[bit / 8] ^ (unsigned int)addr->bytes[bit / 8];

		if ((differs >> (7 - bit % 8) & 1) != 0)
			return false;
	}
	return true;
}

static bool
holds(const struct lb_service_match *m, const struct lb_addr *dst, uint8_t proto, uint16_t port)
{
	const bool has_ports = proto == IPPROTO_TCP || proto == IPPROTO_UDP;

	return is_over(&m->prefix, dst) && (m->proto == 0 || m->proto == proto) &&
	       (m->port == 0 || (has_ports && m->port == port));
}

static uint32_t
find_plainly(const struct lb_service_match *matches, size_t n, const struct lb_addr *dst,
	uint8_t proto, uint16_t port)
{
	uint32_t service = LB_SERVICE_NONE;
	unsigned int best = 0;

	for (size_t i = 0; i < n; i++) {
		const struct lb_service_match *m = &matches[i];
		const unsigned int rank = 1 + m->prefix.n_bits * 4u + (m->port != 0 ? 2u : 0u) +
					  (m->proto != 0 ? 1u : 0u);

		if (holds(m, dst, proto, port) && rank > best) {
			best = rank;
			service = m->service;
		}
	}
	return service;
}

/* Few bits vary, so that prefixes nest and addresses meet them. */
static struct lb_addr
random_addr(uint64_t *seed, bool is_v4)
{
	struct lb_addr addr = {{0x20, 0x01}};
	static const uint8_t bits[4] = {0x80, 0x41, 0x00, 0x03};

	if (is_v4)
		addr = lb_addr_from_v4((const uint8_t[4]){10, 0, 0, 0});
	for (unsigned int i = is_v4 ? 12 : 0; i < LB_ADDR_BYTES; i++)
		addr.bytes[i] ^= (uint8_t)(xrand(seed) & bits[i % 4] & xrand(seed));
	return addr;
}

static uint8_t
random_length(uint64_t *seed, bool is_v4)
{
	static const uint8_t usual[] = {0, 1, 16, 63, 64, 65, 96, 127, 128};

	if (is_v4)
		return (uint8_t)(96 + xrand_below(seed, 33));
	if (xrand_below(seed, 2) == 0)
		return usual[xrand_below(seed, LB_N_ELEMENTS(usual))];
	return (uint8_t)xrand_below(seed, 129);
}

static bool
is_twin(const struct lb_service_match *a, const struct lb_service_match *b)
{
	return lb_addr_equal(&a->prefix.addr, &b->prefix.addr) &&
	       a->prefix.n_bits == b->prefix.n_bits && a->proto == b->proto &&
	       a->port == b->port;
}

static size_t
random_matches(uint64_t *seed, struct lb_service_match *matches)
{
	static const uint8_t protos[] = {0, IPPROTO_TCP, IPPROTO_UDP};
	const size_t wanted = xrand_below(seed, N_MATCHES + 1);
	/* Some sets lack a combination altogether. */
	const uint32_t n_protos = 1 + xrand_below(seed, 3);
	const uint32_t n_ports = 1 + xrand_below(seed, 3);
	size_t n = 0;

	for (size_t i = 0; i < wanted; i++) {
		struct lb_service_match *m = &matches[n];
		const bool is_v4 = xrand_below(seed, 2) == 0;
		const struct lb_addr addr = random_addr(seed, is_v4);
		bool is_new = true;

		m->prefix.n_bits = random_length(seed, is_v4);
		m->prefix.addr = lb_addr_mask(&addr, m->prefix.n_bits);
		m->proto = protos[xrand_below(seed, n_protos)];
		m->port = (uint16_t)xrand_below(seed, n_ports);
		m->service = xrand_below(seed, 8) == 0 ? LB_SERVICE_NONE
						       : (uint32_t)xrand_below(seed, 1000000);
		for (size_t k = 0; k < n; k++)
			is_new = is_new && !is_twin(&matches[k], m);
		if (is_new)
			n++;
	}
	return n;
}

static void
compare_lookups(uint64_t *seed, const struct lb_service_table *table,
	const struct lb_service_match *matches, size_t n)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, 255};

	for (uint32_t i = 0; i < N_LOOKUPS; i++) {
		const struct lb_addr dst = random_addr(seed, xrand_below(seed, 2) == 0);
		const uint8_t proto = protos[xrand_below(seed, 4)];
		const uint16_t port = (uint16_t)xrand_below(seed, 4);
		const uint32_t expected = find_plainly(matches, n, &dst, proto, port);
		const uint32_t found = lb_service_find(table, &dst, proto, port);
		struct lb_service_search search;
		char text[LB_ADDR_TEXT_BYTES];
		unsigned int longest = 0;
		bool is_covered = false;

		EXPECT(found == expected, "%s, protocol %u, port %u: %d, not %d",
			lb_addr_format(&dst, text), proto, port, (int)found, (int)expected);
		lb_service_begin(table, &dst, proto, port, &search);
		EXPECT(lb_service_end(table, &search, &dst, proto, port) == expected,
			"%s, protocol %u, port %u, in two steps", lb_addr_format(&dst, text),
			proto, port);
		for (size_t k = 0; k < n; k++) {
			const unsigned int n_bits = matches[k].prefix.n_bits;

			if (!is_over(&matches[k].prefix, &dst) || n_bits < longest)
				continue;
			is_covered = (n_bits == longest && is_covered) ||
				     matches[k].service != LB_SERVICE_NONE;
			longest = n_bits;
		}
		EXPECT(lb_service_covers(table, &dst) == is_covered, "cover of %s",
			lb_addr_format(&dst, text));
	}
}

static void
test_lookups_agree_with_a_linear_search(void **state)
{
	struct lb_service_match *matches = calloc(N_MATCHES, sizeof(*matches));
	uint64_t seed = 1;

	(void)state;
	assert_non_null(matches);
	for (uint32_t set = 0; set < N_SETS; set++) {
		const size_t n = random_matches(&seed, matches);
		const struct lb_service_table *table = NULL;
		void *mem = aligned_alloc(LB_CACHE_LINE, lb_service_table_bytes(n));

		assert_non_null(mem);
		assert_int_equal(lb_service_table_build(mem, matches, n, &table), 0);
		compare_lookups(&seed, table, matches, n);
		free(mem);
	}
	free(matches);
}

static void
test_a_twin_anywhere_is_refused(void **state)
{
	struct lb_service_match *matches = calloc(N_MATCHES + 1, sizeof(*matches));
	void *mem = aligned_alloc(LB_CACHE_LINE, lb_service_table_bytes(N_MATCHES + 1));
	uint64_t seed = 2;

	(void)state;
	assert_non_null(matches);
	assert_non_null(mem);
	for (uint32_t set = 0; set < N_SETS; set++) {
		const size_t n = random_matches(&seed, matches);
		const struct lb_service_table *table = NULL;

		if (n == 0)
			continue;
		matches[n] = matches[xrand_below(&seed, (uint32_t)n)];
		if (matches[n].service == LB_SERVICE_NONE)
			continue;
		matches[n].service++;
		assert_int_equal(lb_service_table_build(mem, matches, n + 1, &table), -EEXIST);
		assert_null(table);
	}
	free(mem);
	free(matches);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookups_agree_with_a_linear_search),
		cmocka_unit_test(test_a_twin_anywhere_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
