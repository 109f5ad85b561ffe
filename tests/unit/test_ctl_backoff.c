/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_backoff.h"

#include "expect.h"
#include "lb_compiler.h"

static void
test_each_failure_waits_twice_as_long_up_to_a_limit(void **state)
{
	static const uint32_t limits[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000,
		10000};
	struct ctl_backoff least = {0};
	struct ctl_backoff most = {0};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(limits); i++) {
		const uint32_t low = ctl_backoff_next(&least, 0);
		const uint32_t high = ctl_backoff_next(&most, UINT32_MAX);

		EXPECT(low == limits[i] / 2 && high == limits[i], "failure %zu: %u to %u",
			i + 1, low, high);
	}
}

static void
test_chance_spreads_the_tries_evenly(void **state)
{
	struct ctl_backoff backoff = {0};

	(void)state;
	assert_int_equal(ctl_backoff_next(&backoff, UINT32_C(1) << 31), 75);
	assert_int_equal(ctl_backoff_next(&backoff, UINT32_C(1) << 30), 125);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_failure_waits_twice_as_long_up_to_a_limit),
		cmocka_unit_test(test_chance_spreads_the_tries_evenly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
