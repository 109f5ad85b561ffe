/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_rate.h"
#include "xrand.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* No clock begins at 0. */
#define NOW (UINT64_C(1234567) * S)

static const struct lb_rate_conf usual = {
	.n_buckets = 1024,
	.source = {.per_s = 10, .burst = 5},
	.total = {.per_s = 100, .burst = 50},
	.secret = 1,
};

static struct lb_rate *
make(const struct lb_rate_conf *conf, uint64_t now_ns)
{
	const size_t n = lb_rate_bytes(conf);
	void *mem = aligned_alloc(LB_CACHE_LINE,
		(n + LB_CACHE_LINE - 1) / LB_CACHE_LINE * LB_CACHE_LINE);
	struct lb_rate *rate = NULL;

	assert_true(n > 0);
	assert_non_null(mem);
	memset(mem, 0xee, n);
	assert_int_equal(lb_rate_init(mem, conf, now_ns, &rate), 0);
	assert_ptr_equal(rate, mem);
	return rate;
}

static struct lb_addr
v4(uint32_t host)
{
	const uint8_t bytes[4] = {(uint8_t)(host >> 24), (uint8_t)(host >> 16),
		(uint8_t)(host >> 8), (uint8_t)host};

	return lb_addr_from_v4(bytes);
}

/* How many of n questions at one time are answered. */
static unsigned int
ask(struct lb_rate *rate, const struct lb_addr *source, uint64_t now_ns, unsigned int n)
{
	unsigned int n_allowed = 0;

	for (unsigned int i = 0; i < n; i++)
		n_allowed += lb_rate_allow(rate, source, now_ns);
	return n_allowed;
}

static const struct {
	const char *what;
	uint32_t n_buckets;
	struct lb_rate_limit source;
	struct lb_rate_limit total;
	bool is_right;
} confs[] = {
	{"the least", 1, {1, 1}, {1, 1}, true},
	{"the most", LB_RATE_BUCKETS_MAX, {LB_RATE_PER_S_MAX, LB_RATE_BURST_MAX},
		{LB_RATE_PER_S_MAX, LB_RATE_BURST_MAX}, true},
	{"no bucket", 0, {1, 1}, {1, 1}, false},
	{"no power of two", 3, {1, 1}, {1, 1}, false},
	{"too many buckets", LB_RATE_BUCKETS_MAX * 2, {1, 1}, {1, 1}, false},
	{"no rate of a source", 1, {0, 1}, {1, 1}, false},
	{"no burst of a source", 1, {1, 0}, {1, 1}, false},
	{"no rate of all", 1, {1, 1}, {0, 1}, false},
	{"no burst of all", 1, {1, 1}, {1, 0}, false},
	{"too high a rate", 1, {LB_RATE_PER_S_MAX + 1, 1}, {1, 1}, false},
	{"too long a burst", 1, {1, 1}, {1, LB_RATE_BURST_MAX + 1}, false},
};

static void
test_conf_is_held_to_its_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(confs); i++) {
		const struct lb_rate_conf conf = {.n_buckets = confs[i].n_buckets,
			.source = confs[i].source,
			.total = confs[i].total};
		const size_t n = lb_rate_bytes(&conf);
		struct lb_rate *rate = NULL;
		void *mem;

		EXPECT(n > 0 || !confs[i].is_right, "%s", confs[i].what);
		mem = aligned_alloc(LB_CACHE_LINE, n / LB_CACHE_LINE * LB_CACHE_LINE + 128);
		assert_non_null(mem);
		EXPECT(lb_rate_init(mem, &conf, NOW, &rate) ==
				(confs[i].is_right ? 0 : -EINVAL),
			"%s", confs[i].what);
		EXPECT((rate != NULL) == confs[i].is_right, "%s: out", confs[i].what);
		free(mem);
	}
}

/* What one source, with a burst of 5 and 10 a second, is answered of what it asks. */
static const struct {
	const char *what;
	struct {
		uint64_t at_ns; /* after the first; may be before it */
		unsigned int n;
		unsigned int want;
	} asks[6];
} rows[] = {
	{"a burst, and no more", {{0, 100, 5}, {0, 1, 0}}},
	{"a token comes after a tenth of a second, not before",
		{{0, 9, 5}, {100 * MS - 1, 9, 0}, {100 * MS, 9, 1}, {199 * MS, 9, 0},
			{200 * MS, 9, 1}}},
	{"what is refused costs nothing", {{0, 5, 5}, {99 * MS, 1000, 0}, {100 * MS, 1, 1}}},
	{"a rest of half a second is a burst", {{0, 5, 5}, {500 * MS, 9, 5}}},
	{"no rest is worth more than a burst", {{0, 5, 5}, {3600 * S, 9, 5}, {3600 * S, 9, 0}}},
	{"nor one of a century", {{0, 5, 5}, {UINT64_C(3155692600) * S, 9, 5}}},
	{"half a burst is not whole",
		{{0, 3, 3}, {100 * MS, 9, 3}, {100 * MS, 9, 0}, {200 * MS, 9, 1}}},
	{"time goes back a little within a burst: tokens are counted on",
		{{0, 3, 3}, {-100 * MS, 9, 1}, {0, 9, 1}}},
	{"time goes back with no token left: one comes after a tenth of a second",
		{{0, 5, 5}, {-50 * MS, 9, 0}, {50 * MS - 1, 9, 0}, {50 * MS, 9, 1}}},
	{"time goes back a year: as from an empty bucket, not in a year",
		{{0, 5, 5}, {-31536000 * S, 9, 0}, {-31536000 * S + 100 * MS, 9, 1},
			{-31536000 * S + 3 * S, 9, 5}}},
	{"time goes back a second and on again: it is that second's tokens",
		{{0, 5, 5}, {-S, 9, 0}, {0, 9, 5}}},
	{"more than half of all time passes: as from an empty bucket",
		{{0, 5, 5}, {(UINT64_C(1) << 63) + S, 9, 0},
			{(UINT64_C(1) << 63) + 2 * S, 9, 5}}},
};

static void
check_rows(uint64_t begin_ns)
{
	const struct lb_addr source = v4(0xcb007107);

	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_rate *rate = make(&usual, begin_ns);

		for (size_t k = 0; k < LB_N_ELEMENTS(rows[i].asks); k++) {
			const uint64_t now_ns = begin_ns + rows[i].asks[k].at_ns;
			const unsigned int got = ask(rate, &source, now_ns, rows[i].asks[k].n);

			EXPECT(got == rows[i].asks[k].want, "%s: ask %zu: %u, want %u",
				rows[i].what, k, got, rows[i].asks[k].want);
		}
		free(rate);
	}
}

static void
test_each_row_of_one_source(void **state)
{
	(void)state;
	check_rows(NOW);
}

static void
test_time_may_begin_and_wrap_anywhere(void **state)
{
	static const uint64_t begins[] = {0, 1, 50 * MS, UINT64_MAX, UINT64_MAX - 50 * MS,
		UINT64_MAX - 150 * MS, UINT64_MAX - 499 * MS, INT64_MAX,
		(uint64_t)INT64_MAX - 150 * MS, (uint64_t)INT64_MAX + 1};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(begins); i++)
		check_rows(begins[i]);
}

static void
test_all_together_have_one_bucket(void **state)
{
	struct lb_rate *rate = make(&usual, NOW);
	unsigned int n = 0;

	(void)state;
	for (uint32_t host = 0; host < 1000; host++) {
		const struct lb_addr source = v4(host);

		n += ask(rate, &source, NOW, 1);
	}
	assert_int_equal(n, usual.total.burst);
	for (uint32_t host = 1000; host < 2000; host++) {
		const struct lb_addr source = v4(host);

		n += ask(rate, &source, NOW + S, 1);
	}
	assert_int_equal(n, 2 * usual.total.burst); /* full after half a second */
	free(rate);
}

static void
test_one_source_over_its_rate_takes_nothing_from_others(void **state)
{
	struct lb_rate *rate = make(&usual, NOW);
	const struct lb_addr loud = v4(1);
	unsigned int n = 0;

	(void)state;
	assert_int_equal(ask(rate, &loud, NOW, 100000), 5);
	for (uint32_t host = 2; host < 1000; host++) {
		const struct lb_addr source = v4(host);

		n += ask(rate, &source, NOW, 1);
	}
	assert_int_equal(n, usual.total.burst - 5);
	free(rate);
}

static void
test_a_source_pays_nothing_while_all_have_no_token(void **state)
{
	const struct lb_rate_conf conf = {.n_buckets = 1024,
		.source = {.per_s = 1, .burst = 2},
		.total = {.per_s = 1000, .burst = 1}};
	struct lb_rate *rate = make(&conf, NOW);
	const struct lb_addr a = v4(1);
	const struct lb_addr b = v4(2);

	(void)state;
	assert_int_equal(ask(rate, &a, NOW, 1), 1);
	assert_int_equal(ask(rate, &b, NOW, 100), 0);
	/* A token of all each time, and both of b's are there still. */
	assert_int_equal(ask(rate, &b, NOW + MS, 9), 1);
	assert_int_equal(ask(rate, &b, NOW + 2 * MS, 9), 1);
	assert_int_equal(ask(rate, &b, NOW + 3 * MS, 9), 0);
	free(rate);
}

static void
test_an_ipv6_source_is_its_first_64_bits(void **state)
{
	struct lb_rate *rate = make(&usual, NOW);
	struct lb_addr source = {.bytes = {0x20, 0x01, 0x0d, 0xb8}};
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 0; i < 256; i++) {
		source.bytes[8] = (uint8_t)(255 - i);
		source.bytes[15] = (uint8_t)i;
		n += ask(rate, &source, NOW, 1);
	}
	assert_int_equal(n, usual.source.burst);
	source.bytes[7] = 1;
	assert_int_equal(ask(rate, &source, NOW, 9), usual.source.burst);
	free(rate);
}

/* Of 64 neighbours, those that share a bucket with the first under a secret. */
static uint64_t
sharing(uint64_t secret)
{
	struct lb_rate_conf conf = usual;
	uint64_t set = 0;

	conf.n_buckets = 8;
	conf.secret = secret;
	for (unsigned int i = 1; i < 64; i++) {
		struct lb_rate *rate = make(&conf, NOW);
		const struct lb_addr first = v4(0);
		const struct lb_addr other = v4(i);

		assert_int_equal(ask(rate, &first, NOW, 9), 5);
		if (ask(rate, &other, NOW, 1) == 0)
			set |= UINT64_C(1) << i;
		free(rate);
	}
	return set;
}

static void
test_who_shares_a_bucket_follows_from_the_secret(void **state)
{
	(void)state;
	assert_true(sharing(1) != 0);
	assert_true(sharing(1) == sharing(1));
	assert_true(sharing(1) != sharing(2));
}

/* Ten seconds of 100000 made-up sources a second. */
static void
test_a_flood_of_made_up_sources_gets_the_rate_of_all_and_ends(void **state)
{
	struct lb_rate *rate = make(&usual, NOW);
	const struct lb_addr honest = v4(0xcb007107);
	const uint64_t end_ns = NOW + 10 * S;
	uint64_t seed = 7;
	unsigned int n = 0;

	(void)state;
	for (uint64_t now_ns = NOW; now_ns < end_ns; now_ns += S / 100000) {
		const struct lb_addr source = v4((uint32_t)xrand(&seed));

		n += ask(rate, &source, now_ns, 1);
	}
	assert_in_range(n, 10 * usual.total.per_s, 10 * usual.total.per_s + usual.total.burst);
	assert_int_equal(ask(rate, &honest, end_ns + 500 * MS, 9), usual.source.burst);
	free(rate);
}

/* At any times that go forward: never above the rate, and no token is kept back. */
static void
test_random_questions_agree_with_a_plain_bucket(void **state)
{
	const struct lb_addr source = v4(1);
	struct lb_rate_conf conf = usual;
	uint64_t seed = 3;

	(void)state;
	for (unsigned int round = 0; round < 200; round++) {
		uint64_t now_ns = xrand(&seed);
		uint64_t step_ns;
		uint64_t held_ns; /* tokens, in the time that they take to come */
		struct lb_rate *rate;

		conf.source.per_s = 1 + xrand_below(&seed, 2000);
		conf.source.burst = 1 + xrand_below(&seed, 20);
		conf.total = (struct lb_rate_limit){LB_RATE_PER_S_MAX, LB_RATE_BURST_MAX};
		step_ns = (S + conf.source.per_s - 1) / conf.source.per_s;
		held_ns = step_ns * conf.source.burst;
		rate = make(&conf, now_ns);
		for (unsigned int i = 0; i < 1000; i++) {
			const uint64_t pause_ns = xrand_below(&seed, (uint32_t)step_ns);
			const bool has_token = held_ns + pause_ns >= step_ns;

			now_ns += pause_ns;
			held_ns += pause_ns;
			if (held_ns > step_ns * conf.source.burst)
				held_ns = step_ns * conf.source.burst;
			assert_int_equal(lb_rate_allow(rate, &source, now_ns), has_token);
			if (has_token)
				held_ns -= step_ns;
		}
		free(rate);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conf_is_held_to_its_ranges),
		cmocka_unit_test(test_each_row_of_one_source),
		cmocka_unit_test(test_time_may_begin_and_wrap_anywhere),
		cmocka_unit_test(test_all_together_have_one_bucket),
		cmocka_unit_test(test_one_source_over_its_rate_takes_nothing_from_others),
		cmocka_unit_test(test_a_source_pays_nothing_while_all_have_no_token),
		cmocka_unit_test(test_an_ipv6_source_is_its_first_64_bits),
		cmocka_unit_test(test_who_shares_a_bucket_follows_from_the_secret),
		cmocka_unit_test(test_a_flood_of_made_up_sources_gets_the_rate_of_all_and_ends),
		cmocka_unit_test(test_random_questions_agree_with_a_plain_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
