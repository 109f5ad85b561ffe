/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include "lb_compiler.h"
#include "lb_jump.h"
#include "xrand.h"

static void
test_published_values(void **state)
{
	/* As the tests of several libraries have them. */
	static const struct {
		uint64_t key;
		uint32_t n_buckets, bucket;
	} rows[] = {
		{1, 1, 0},
		{42, 57, 43},
		{0xDEAD10CC, 1, 0},
		{0xDEAD10CC, 666, 361},
		{256, 1024, 520},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_jump(rows[i].key, rows[i].n_buckets) == rows[i].bucket, "row %zu: %u",
			i, lb_jump(rows[i].key, rows[i].n_buckets));
}

/** The form that the paper prints. */
static uint32_t
printed_jump(uint64_t key, uint32_t n_buckets)
{
	int64_t bucket = -1, next = 0;

	while (next < n_buckets) {
		bucket = next;
		key = key * 2862933555777941757u + 1;
		next = (int64_t)((double)(bucket + 1) *
				 ((double)(INT64_C(1) << 31) / (double)((key >> 33) + 1)));
	}
	return (uint32_t)bucket;
}

static void
test_integers_agree_with_the_printed_form(void **state)
{
	uint64_t seed = 52;

	(void)state;
	for (int i = 0; i < 500000; i++) {
		const uint64_t key = xrand(&seed);
		const uint32_t n = 1 + (xrand_below(&seed, 1u << 20) >> i % 20);

		EXPECT(lb_jump(key, n) == printed_jump(key, n), "key %llu of %u: %u",
			(unsigned long long)key, n, lb_jump(key, n));
	}
}

static void
test_the_largest_numbers_do_not_overflow(void **state)
{
	uint64_t seed = 53;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const uint64_t key = xrand(&seed);
		const uint32_t most = lb_jump(key, UINT32_MAX);

		EXPECT(most < UINT32_MAX, "key %d", i);
		EXPECT(lb_jump(key, most + 1) == most, "key %d jumped to %u", i, most);
	}
}

static void
test_weights_are_buckets(void **state)
{
	static const uint32_t weights[] = {10, 0, 40, 7};
	uint32_t ends[4];
	struct lb_buckets buckets;

	(void)state;
	EXPECT(lb_buckets_init(weights, 4, ends, &buckets) == 0, "init");
	/* Of 57 buckets that of 42 is 43, the third's; and 57 is the sum of the weights. */
	EXPECT(lb_jump_owner(&buckets, 42) == 2, "%u", lb_jump_owner(&buckets, 42));
	for (uint64_t key = 0; key < 5000; key++)
		EXPECT(lb_jump_owner(&buckets, key) ==
				lb_buckets_owner(&buckets, lb_jump(key, 57)),
			"key %u", (unsigned int)key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_values),
		cmocka_unit_test(test_integers_agree_with_the_printed_form),
		cmocka_unit_test(test_the_largest_numbers_do_not_overflow),
		cmocka_unit_test(test_weights_are_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
