/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_hash_flow.h"
#include "xrand.h"

#define SEED 0x0123456789abcdefu

/* Bytes 1, 8, 15, ... of all fields; the three zero bytes zero. */
static struct lb_flow_key
counted_key(void)
{
	struct lb_flow_key key;
	uint8_t bytes[sizeof(key)] = {0};

	for (size_t i = 0; i < sizeof(bytes) - sizeof(key.zero); i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	memcpy(&key, bytes, sizeof(key));
	return key;
}

/* The same numbers in the 13 bytes that a key of IPv4 varies in. */
static struct lb_flow_key
counted_v4_key(void)
{
	uint8_t bytes[sizeof(struct lb_flow_v4)] = {0};
	struct lb_flow_key key = {.zero = {0}};

	for (size_t i = 0; i < 13; i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	key.src = lb_addr_from_v4(bytes);
	key.dst = lb_addr_from_v4(bytes + 4);
	memcpy(&key.sport_be, bytes + 8, 2);
	memcpy(&key.dport_be, bytes + 10, 2);
	key.proto = bytes[12];
	return key;
}

/*
 * Balancers of one cluster must agree whatever they run on and whichever xxhash they are
 * built with: these are the reference library's values, pinned.
 */
static void
test_hashes_are_pinned(void **state)
{
	const struct lb_flow_key key = counted_key();
	const struct lb_flow_key v4 = counted_v4_key();

	(void)state;
	assert_int_equal(lb_hash_pick(&key, LB_AFFINITY_5_TUPLE, 0), 0xc7baf97fa0cb6919u);
	assert_int_equal(lb_hash_pick(&key, LB_AFFINITY_5_TUPLE, SEED), 0x6626e256bb05aa01u);
	assert_int_equal(lb_hash_pick(&v4, LB_AFFINITY_5_TUPLE, 0), 0x60d5fa7bdc000bc1u);
	assert_int_equal(lb_hash_pick(&v4, LB_AFFINITY_5_TUPLE, SEED), 0xb7faaee57ab75cf1u);

	assert_int_equal(lb_hash_name("web-1", 5, 0, 0), 0xce3f0550dc4eb434u);
	assert_int_equal(lb_hash_name("web-1", 5, 0, 1), 0x95ef40923ee7274du);
	assert_int_equal(lb_hash_bytes("web-1", 5, 1), 0x95ef40923ee7274du);
	assert_int_equal(lb_hash_bytes("", 0, 0), 0x2d06800538d394c2u);
}

static void
test_a_name_is_its_bytes_and_its_seed(void **state)
{
	(void)state;
	assert_int_equal(lb_hash_name("web-10", 5, 0, 0), lb_hash_name("web-1", 5, 0, 0));
	assert_int_equal(lb_hash_name("web-1", 5, 3, 4), lb_hash_name("web-1", 5, 7, 0));
	/* The sum of seed and k may go round; it is modulo 2^64 on every machine. */
	assert_int_equal(lb_hash_name("web-1", 5, UINT64_MAX, 1),
		lb_hash_name("web-1", 5, 0, 0));
}

/* What a flow is known by depends on each byte of its key, and either word of the secret. */
static void
test_every_byte_of_a_key_counts(void **state)
{
	static const uint64_t secrets[][2] = {{1, 2}, {2, 2}, {1, 3}};
	const struct lb_flow_key keys[] = {counted_key(), counted_v4_key()};
	struct lb_hash_keyed keyed[LB_N_ELEMENTS(secrets)];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(secrets); i++)
		lb_hash_key(&keyed[i], secrets[i]);
	for (size_t k = 0; k < LB_N_ELEMENTS(keys); k++) {
		const struct lb_flow_hash whole = lb_hash_flow(&keyed[0], &keys[k]);
		/* Of an IPv4 address four bytes vary. */
		const bool is_v4 = lb_addr_is_v4(&keys[k].src);

		for (size_t i = 0; i < sizeof(keys[k]) - sizeof(keys[k].zero); i++) {
			struct lb_flow_key other = keys[k];
			struct lb_flow_hash hash;
			uint8_t bytes[sizeof(other)];

			if (is_v4 && i < 32 && i % 16 < 12)
				continue;
			memcpy(bytes, &other, sizeof(bytes));
			bytes[i] ^= 1;
			memcpy(&other, bytes, sizeof(bytes));
			hash = lb_hash_flow(&keyed[0], &other);
			EXPECT(hash.print != whole.print && hash.place != whole.place,
				"key %zu, byte %zu", k, i);
			EXPECT(lb_hash_entropy(&other) != lb_hash_entropy(&keys[k]),
				"key %zu, byte %zu: entropy", k, i);
		}
		for (size_t i = 1; i < LB_N_ELEMENTS(secrets); i++) {
			const struct lb_flow_hash hash = lb_hash_flow(&keyed[i], &keys[k]);

			EXPECT(hash.print != whole.print && hash.place != whole.place,
				"key %zu, secret %zu", k, i);
		}
	}
}

/* All zeros, as far as a key may be. */
static struct lb_flow_key
bare_key(bool is_v4)
{
	static const uint8_t zeros[4];
	struct lb_flow_key key = {.proto = IPPROTO_ESP};

	if (is_v4) {
		key.src = lb_addr_from_v4(zeros);
		key.dst = lb_addr_from_v4(zeros);
	}
	return key;
}

#define SPREAD_KEYS   (1u << 16)
#define SPREAD_PLACES (1u << 10)

/* Ten bits of what is made of a key. */
static uint32_t
ten_bits_of(const struct lb_hash_keyed *keyed, const struct lb_flow_key *key,
	unsigned int which)
{
	const struct lb_flow_hash hash = lb_hash_flow(keyed, key);

	switch (which) {
	case 0: /* a bucket's */
		return (uint32_t)(hash.place >> 54);
	case 1: /* the other bucket's */
		return (hash.place ^ hash.place >> 20) % SPREAD_PLACES;
	case 2: /* an outer source port's */
		return lb_hash_entropy(key) >> 22;
	default: /* a flow label's */
		return lb_hash_entropy(key) % SPREAD_PLACES;
	}
}

static void
expect_spread(const struct lb_flow_key keys[static SPREAD_KEYS], unsigned int which,
	const char *what)
{
	static const uint64_t secret[2] = {3, 4};
	uint32_t counts[SPREAD_PLACES] = {0};
	const double even = (double)SPREAD_KEYS / SPREAD_PLACES;
	struct lb_hash_keyed keyed;
	double chi = 0;

	lb_hash_key(&keyed, secret);
	for (size_t i = 0; i < SPREAD_KEYS; i++)
		counts[ten_bits_of(&keyed, &keys[i], which)]++;
	for (size_t i = 0; i < SPREAD_PLACES; i++)
		chi += (counts[i] - even) * (counts[i] - even) / even;
	/* 1023 degrees of freedom; ten deviations, as keys in a row are not random ones. */
	EXPECT(chi < 1023 + 10 * 45.2, "%s, %u: %f", what, which, chi);
}

/* Keys that differ little, as those of one client or one network do, are spread as random ones
 * would be. */
static void
test_neighbours_are_spread(void **state)
{
	static const struct {
		const char *name;
		bool is_v4;
		size_t at; /* the two bytes that count, the first the higher */
		bool is_bare;
	} rows[] = {
		{"ports of an IPv6 client", false, offsetof(struct lb_flow_key, sport_be),
			false},
		{"ports of an IPv4 client", true, offsetof(struct lb_flow_key, sport_be),
			false},
		{"hosts of an IPv6 network", false, 14, false},
		{"networks of an IPv6 site", false, 6, false},
		{"hosts of an IPv4 network", true, 14, false},
		{"services of an IPv6 network", false, 30, false},
		{"IPv6 hosts without ports", false, 14, true},
		{"IPv4 hosts without ports", true, 14, true},
		{"ports of an IPv6 client that is nearly its service", false,
			offsetof(struct lb_flow_key, sport_be), true},
	};
	static struct lb_flow_key keys[SPREAD_KEYS];

	(void)state;
	for (size_t k = 0; k < LB_N_ELEMENTS(rows); k++) {
		for (uint32_t i = 0; i < SPREAD_KEYS; i++) {
			uint8_t *bytes = (uint8_t *)&keys[i];

			keys[i] = rows[k].is_bare ? bare_key(rows[k].is_v4)
				  : rows[k].is_v4 ? counted_v4_key()
						  : counted_key();
			bytes[rows[k].at] = (uint8_t)(i >> 8);
			bytes[rows[k].at + 1] = (uint8_t)i;
		}
		for (unsigned int which = 0; which < 4; which++)
			expect_spread(keys, which, rows[k].name);
	}
}

static void
test_an_affinity_leaves_out_what_it_says(void **state)
{
	static const struct {
		const char *name;
		enum lb_affinity affinity;
		bool has_sport;
		bool has_rest; /* destination, its port, protocol */
	} rows[] = {
		{"5-tuple", LB_AFFINITY_5_TUPLE, true, true},
		{"source-ip", LB_AFFINITY_SOURCE_IP, false, false},
		{"source-ip-port", LB_AFFINITY_SOURCE_IP_PORT, true, false},
	};
	const struct lb_flow_key key = counted_key();

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const enum lb_affinity affinity = rows[i].affinity;
		const uint64_t pick = lb_hash_pick(&key, affinity, SEED);
		struct lb_flow_key other[5];

		for (size_t k = 0; k < LB_N_ELEMENTS(other); k++)
			other[k] = key;
		other[0].src.bytes[15] ^= 1;
		other[1].sport_be ^= 1;
		other[2].dst.bytes[15] ^= 1;
		other[3].dport_be ^= 1;
		other[4].proto ^= 1;
		for (size_t k = 0; k < LB_N_ELEMENTS(other); k++) {
			const bool counts =
				k == 0 || (k == 1 ? rows[i].has_sport : rows[i].has_rest);

			EXPECT((lb_hash_pick(&other[k], affinity, SEED) != pick) == counts,
				"%s: field %zu", rows[i].name, k);
		}
	}
}

static void
test_picks_are_pinned(void **state)
{
	const struct lb_flow_key key = counted_key();
	const struct lb_flow_key v4 = counted_v4_key();

	(void)state;
	assert_int_equal(lb_hash_pick(&key, LB_AFFINITY_SOURCE_IP, 0), 0x7b1253a89c8cffacu);
	assert_int_equal(lb_hash_pick(&key, LB_AFFINITY_SOURCE_IP_PORT, 0),
		0x6203ae04741f4c90u);
	assert_int_equal(lb_hash_pick(&v4, LB_AFFINITY_SOURCE_IP, 0), 0x4667cd1d2f2641c4u);
	assert_int_equal(lb_hash_pick(&v4, LB_AFFINITY_SOURCE_IP_PORT, 0), 0x36a748885d2b5a83u);
}

/* As the reference library does, which knows nothing of keys. */
static void
expect_pick(const struct lb_flow_key *key, const void *bytes, size_t n_bytes, uint64_t seed)
{
	const uint64_t want = XXH3_128bits_withSeed(bytes, n_bytes, seed).low64;
	struct lb_hash_seeded seeded;
	uint64_t got;

	lb_hash_seed(&seeded, seed);
	got = lb_hash_pick_seeded(&seeded, key);
	EXPECT(got == want, "%zu bytes, seed %016lx: hashed to %016lx, not %016lx", n_bytes,
		seed, got, want);
	got = lb_hash_pick(key, LB_AFFINITY_5_TUPLE, seed);
	EXPECT(got == want, "%zu bytes, seed %016lx: picked by %016lx, not %016lx", n_bytes,
		seed, got, want);
}

/* By long multiplication. */
static void
multiply(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low)
{
	const uint64_t lowest = (a & UINT32_MAX) * (b & UINT32_MAX);
	const uint64_t one = (a >> 32) * (b & UINT32_MAX) + (lowest >> 32);
	const uint64_t two = (a & UINT32_MAX) * (b >> 32) + (one & UINT32_MAX);

	*high = (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32);
	*low = two << 32 | (lowest & UINT32_MAX);
}

/* A way to hash, and the sum of 128 bits that its hash is to be drawn from. */
typedef struct lb_flow_hash (
	*hash_fn)(const struct lb_hash_keyed *keyed, const struct lb_flow_words *words);
typedef struct lb_mul_sum (*sum_fn)(const struct lb_hash_keyed *keyed, const uint64_t *w);

static struct lb_flow_hash
hash_v4(const struct lb_hash_keyed *keyed, const struct lb_flow_words *words)
{
	const struct lb_flow_v4 v4 = {words->word[0], words->word[1]};

	return lb_hash_flow_v4(keyed, &v4);
}

static struct lb_mul_sum
sum_v4(const struct lb_hash_keyed *keyed, const uint64_t *w)
{
	const uint64_t *s = keyed->v4;
	struct lb_mul_sum sum;

	multiply(w[0] + s[0], w[1] + s[1], &sum.high, &sum.low);
	return sum;
}

static struct lb_flow_hash
hash_v6(const struct lb_hash_keyed *keyed, const struct lb_flow_words *words)
{
	return lb_hash_flow_v6(keyed, words);
}

static struct lb_mul_sum
sum_v6(const struct lb_hash_keyed *keyed, const uint64_t *w)
{
	const uint64_t *s = keyed->v6;
	struct lb_mul_sum sum;
	uint64_t high;
	uint64_t low;

	multiply(w[0] + s[0], w[1] + s[1], &sum.high, &sum.low);
	multiply(w[2] + s[2], w[3] + s[3], &high, &low);
	sum.low += low;
	sum.high += high + (sum.low < low) + w[4] * s[4];
	return sum;
}

static void
expect_known_by(hash_fn hash, sum_fn sum_of)
{
	static const uint64_t secret[2] = {5, 6};
	uint64_t random = 1;
	struct lb_hash_keyed keyed;

	lb_hash_key(&keyed, secret);
	for (unsigned int i = 0; i < 10000; i++) {
		const struct lb_flow_words words = {{xrand(&random), xrand(&random),
			xrand(&random), xrand(&random), xrand(&random) >> 24}};
		const struct lb_mul_sum sum = sum_of(&keyed, words.word);
		const struct lb_flow_hash got = hash(&keyed, &words);

		assert_int_equal(got.place,
			(sum.high * UINT64_C(0x9e3779b97f4a7c15) ^ sum.low) *
				UINT64_C(0x9e3779b97f4a7c15));
		assert_int_equal(got.print >> 32, (uint32_t)sum.high ^ sum.low >> 32);
		assert_int_equal((uint32_t)got.print, sum.high >> 32 ^ (uint32_t)sum.low);
	}
}

static void
test_an_ipv4_flow_is_known_by_a_product(void **state)
{
	(void)state;
	expect_known_by(hash_v4, sum_v4);
}

static void
test_an_ipv6_flow_is_known_by_a_sum_of_products(void **state)
{
	(void)state;
	expect_known_by(hash_v6, sum_v6);
}

/* The same on every balancer, and as long as there are flows: pinned. */
static void
test_entropy_is_pinned(void **state)
{
	const struct lb_flow_key key = counted_key();
	const struct lb_flow_key v4 = counted_v4_key();

	(void)state;
	assert_int_equal(lb_hash_entropy(&key), 0x59490ebdu);
	assert_int_equal(lb_hash_entropy(&v4), 0xd55b6382u);
}

/*
 * The same of words of 6 bits in the place of 64: of the product of two, all of its place and
 * half of its print, as a flow table keeps them.
 */
#define NARROW_BITS 6u
#define NARROW_ALL  (1u << NARROW_BITS)
#define NARROW_MASK (NARROW_ALL - 1)

static uint32_t
narrow_hash(uint32_t product)
{
	const uint32_t golden = 0x9e3779b9u >> (32 - NARROW_BITS) | 1;
	const uint32_t high = product / NARROW_ALL;
	const uint32_t low = product % NARROW_ALL;
	const uint32_t place = (high * golden ^ low) * golden & NARROW_MASK;
	const uint32_t half_print = (high >> NARROW_BITS / 2) ^ low % (1u << NARROW_BITS / 2);

	return place | half_print % (1u << NARROW_BITS / 2) << NARROW_BITS;
}

/* Of all secrets, which stand for all first keys: how many do not tell a second from it. */
static uint32_t
count_same(const uint16_t hashes[static NARROW_ALL * NARROW_ALL], uint32_t off_a,
	uint32_t off_b)
{
	uint32_t n = 0;

	for (size_t a = 0; a < NARROW_ALL; a++)
		for (size_t b = 0; b < NARROW_ALL; b++)
			n += hashes[a * b] ==
			     hashes[((a + off_a) & NARROW_MASK) * ((b + off_b) & NARROW_MASK)];
	return n;
}

static void
test_no_two_narrow_keys_are_the_same_for_many_secrets(void **state)
{
	static uint16_t hashes[NARROW_ALL * NARROW_ALL];
	uint32_t worst = 0;

	(void)state;
	for (uint32_t i = 0; i < NARROW_ALL * NARROW_ALL; i++)
		hashes[i] = (uint16_t)narrow_hash(i);
	for (uint32_t off = 1; off < NARROW_ALL * NARROW_ALL; off++) {
		const uint32_t n = count_same(hashes, off / NARROW_ALL, off % NARROW_ALL);

		worst = n > worst ? n : worst;
	}
	/* Of 4096 secrets 64 would be one in 2^6. */
	EXPECT(worst <= 76, "%u of %u", worst, NARROW_ALL * NARROW_ALL);
}

static void
test_keys_pick_as_their_bytes(void **state)
{
	static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	uint64_t random = 1;

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		const uint64_t seed = i == 0 ? 0 : xrand(&random);
		uint64_t words[5] = {xrand(&random), xrand(&random), xrand(&random),
			xrand(&random), xrand(&random) & UINT64_C(0xffffffffff)};
		uint8_t v4[sizeof(struct lb_flow_v4)] = {0};
		struct lb_flow_key key;

		memcpy(&key, words, sizeof(key));
		memset(key.zero, 0, sizeof(key.zero));
		expect_pick(&key, &key, sizeof(key), seed);
		memcpy(key.src.bytes, mapped, sizeof(mapped));
		memcpy(key.dst.bytes, mapped, sizeof(mapped));
		memcpy(v4, key.src.bytes + sizeof(mapped), 4);
		memcpy(v4 + 4, key.dst.bytes + sizeof(mapped), 4);
		memcpy(v4 + 8, &key.sport_be, sizeof(v4) - 8);
		expect_pick(&key, v4, sizeof(v4), seed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hashes_are_pinned),
		cmocka_unit_test(test_a_name_is_its_bytes_and_its_seed),
		cmocka_unit_test(test_every_byte_of_a_key_counts),
		cmocka_unit_test(test_an_affinity_leaves_out_what_it_says),
		cmocka_unit_test(test_picks_are_pinned),
		cmocka_unit_test(test_keys_pick_as_their_bytes),
		cmocka_unit_test(test_an_ipv4_flow_is_known_by_a_product),
		cmocka_unit_test(test_an_ipv6_flow_is_known_by_a_sum_of_products),
		cmocka_unit_test(test_no_two_narrow_keys_are_the_same_for_many_secrets),
		cmocka_unit_test(test_entropy_is_pinned),
		cmocka_unit_test(test_neighbours_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
