/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets of weights, and the hash modulo their number. */
#include "expect.h"

#include <errno.h>
#include <stdlib.h>

#include "lb_buckets.h"
#include "lb_compiler.h"
#include "lb_limits.h"
#include "lb_modulo.h"
#include "xrand.h"

static void
test_a_backend_has_a_bucket_for_each_unit_of_its_weight(void **state)
{
	static const uint32_t weights[] = {0, 2, 0, 0, 1, 3, 0};
	static const uint32_t owners[] = {1, 1, 4, 5, 5, 5};
	uint32_t ends[LB_N_ELEMENTS(weights)];
	struct lb_buckets buckets;

	(void)state;
	EXPECT(lb_buckets_init(weights, LB_N_ELEMENTS(weights), ends, &buckets) == 0, "init");
	EXPECT(lb_buckets_count(&buckets) == 6, "%u", lb_buckets_count(&buckets));
	for (uint32_t i = 0; i < LB_N_ELEMENTS(owners); i++)
		EXPECT(lb_buckets_owner(&buckets, i) == owners[i], "bucket %u: %u", i,
			lb_buckets_owner(&buckets, i));
}

static void
test_buckets_equal_a_list_that_repeats_backends(void **state)
{
	uint64_t seed = 51;

	(void)state;
	for (int i = 0; i < 300; i++) {
		const size_t n = 1 + xrand_below(&seed, 30);
		uint32_t *weights = malloc(n * sizeof(*weights));
		uint32_t *ends = malloc(n * sizeof(*ends));
		uint32_t bucket = 0;
		struct lb_buckets buckets;

		for (size_t b = 0; b < n; b++)
			weights[b] = xrand_below(&seed, 9);
		weights[xrand_below(&seed, (uint32_t)n)] = 1;
		EXPECT(lb_buckets_init(weights, n, ends, &buckets) == 0, "init");
		for (uint32_t b = 0; b < n; b++) {
			for (uint32_t k = 0; k < weights[b]; k++, bucket++)
				EXPECT(lb_buckets_owner(&buckets, bucket) == b,
					"bucket %u of %u", bucket, b);
		}
		EXPECT(lb_buckets_count(&buckets) == bucket, "%u buckets", bucket);
		free(ends);
		free(weights);
	}
}

static void
test_limits_of_buckets(void **state)
{
	static uint32_t weights[LB_SERVICE_BACKENDS_MAX + 1], ends[LB_SERVICE_BACKENDS_MAX];
	static const uint32_t none[] = {0, 0, 0}, heavy[] = {1, LB_WEIGHT_MAX + 1};
	struct lb_buckets buckets = {.n = 7};

	(void)state;
	EXPECT(lb_buckets_init(none, 0, ends, &buckets) == -ENOENT, "nobody");
	EXPECT(lb_buckets_init(none, 3, ends, &buckets) == -ENOENT, "weights of 0");
	EXPECT(lb_buckets_init(heavy, 2, ends, &buckets) == -EINVAL, "too heavy");
	EXPECT(lb_buckets_init(weights, LB_N_ELEMENTS(weights), ends, &buckets) == -E2BIG,
		"too many");
	EXPECT(buckets.n == 7, "untouched");

	for (size_t b = 0; b < LB_N_ELEMENTS(weights); b++)
		weights[b] = LB_WEIGHT_MAX;
	EXPECT(lb_buckets_init(weights, LB_SERVICE_BACKENDS_MAX, ends, &buckets) == 0, "most");
	EXPECT(lb_buckets_count(&buckets) == 4294836225u, "%u", lb_buckets_count(&buckets));
	EXPECT(lb_buckets_owner(&buckets, 4294836224u) == LB_SERVICE_BACKENDS_MAX - 1, "last");
	EXPECT(lb_buckets_owner(&buckets, 65534) == 0 && lb_buckets_owner(&buckets, 65535) == 1,
		"the first border");
}

static void
test_the_owner_is_of_the_remainder(void **state)
{
	static const uint32_t weights[] = {1, 2, 4};
	static const struct {
		const char *what;
		uint64_t hash;
		uint32_t owner;
	} rows[] = {
		{"0", 0, 0},
		{"1 and 2 are the second's", 2, 1},
		{"3", 3, 2},
		{"6 is the last bucket", 6, 2},
		{"7 begins again", 7, 0},
		{"2^64 - 1 is 1 modulo 7", UINT64_MAX, 1},
	};
	uint32_t ends[3];
	struct lb_buckets buckets;

	(void)state;
	EXPECT(lb_buckets_init(weights, 3, ends, &buckets) == 0, "init");
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_modulo_owner(&buckets, rows[i].hash) == rows[i].owner, "%s: %u",
			rows[i].what, lb_modulo_owner(&buckets, rows[i].hash));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_backend_has_a_bucket_for_each_unit_of_its_weight),
		cmocka_unit_test(test_buckets_equal_a_list_that_repeats_backends),
		cmocka_unit_test(test_limits_of_buckets),
		cmocka_unit_test(test_the_owner_is_of_the_remainder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
