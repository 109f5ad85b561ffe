/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_mul.h"
#include "xrand.h"

static const struct {
	const char *name;
	uint64_t a;
	uint64_t b;
	struct lb_mul_sum want;
} rows[] = {
	{"nothing", 0, UINT64_MAX, {0, 0}},
	{"one is the other itself", 1, UINT64_MAX, {UINT64_MAX, 0}},
	{"halves whose product has one bit", UINT64_C(1) << 32, UINT64_C(1) << 32, {0, 1}},
	{"the largest of one half", UINT32_MAX, UINT32_MAX, {UINT64_C(0xfffffffe00000001), 0}},
	{"the upper bits", UINT64_C(1) << 63, UINT64_C(1) << 63, {0, UINT64_C(1) << 62}},
	{"the largest", UINT64_MAX, UINT64_MAX, {1, UINT64_MAX - 1}},
};

static void
test_each_row_has_its_product(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_mul_sum got = lb_mul_plainly(rows[i].a, rows[i].b);

		EXPECT(got.low == rows[i].want.low && got.high == rows[i].want.high,
			"%s: %016" PRIx64 "%016" PRIx64, rows[i].name, got.high, got.low);
		assert_int_equal(lb_mul_high(rows[i].a, rows[i].b), rows[i].want.high);
		assert_int_equal(lb_mul_fold(rows[i].a, rows[i].b),
			rows[i].want.high ^ rows[i].want.low);
	}
}

/* Modulo 2^128: a carry goes from one half into the other, and out of that to nowhere. */
static void
test_a_sum_carries(void **state)
{
	struct lb_mul_sum sum = {UINT64_MAX, 5};

	(void)state;
	sum = lb_mul_add_plainly(sum, 1, 1);
	assert_int_equal(sum.low, 0);
	assert_int_equal(sum.high, 6);
	sum = lb_mul_add_plainly((struct lb_mul_sum){UINT64_MAX, UINT64_MAX}, 1, 2);
	assert_int_equal(sum.low, 1);
	assert_int_equal(sum.high, 0);
}

static void
expect_plain(const uint64_t with[static 4])
{
	const struct lb_mul_sum product = lb_mul(with[0], with[1]);
	const struct lb_mul_sum plain_product = lb_mul_plainly(with[0], with[1]);
	const struct lb_mul_sum before = {with[2], with[3]};
	const struct lb_mul_sum sum = lb_mul_add(before, with[0], with[1]);
	const struct lb_mul_sum plain_sum = lb_mul_add_plainly(before, with[0], with[1]);

	EXPECT(product.low == plain_product.low && product.high == plain_product.high,
		"%" PRIx64 " by %" PRIx64, with[0], with[1]);
	EXPECT(sum.low == plain_sum.low && sum.high == plain_sum.high,
		"%" PRIx64 " by %" PRIx64 ", to %016" PRIx64 "%016" PRIx64, with[0], with[1],
		with[3], with[2]);
}

static void
test_edges_are_multiplied_as_plainly(void **state)
{
	static const uint64_t edges[] = {0, 1, 2, UINT32_MAX, UINT64_C(1) << 32,
		UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
	const size_t n = LB_N_ELEMENTS(edges);

	(void)state;
	for (size_t i = 0; i < n * n * n * n; i++) {
		const uint64_t with[] = {edges[i % n], edges[i / n % n], edges[i / n / n % n],
			edges[i / n / n / n]};

		expect_plain(with);
	}
}

static void
test_words_are_multiplied_as_plainly(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < 100000; i++) {
		const uint64_t with[] = {xrand(&seed), xrand(&seed), xrand(&seed),
			xrand(&seed)};

		expect_plain(with);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_has_its_product),
		cmocka_unit_test(test_a_sum_carries),
		cmocka_unit_test(test_edges_are_multiplied_as_plainly),
		cmocka_unit_test(test_words_are_multiplied_as_plainly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
