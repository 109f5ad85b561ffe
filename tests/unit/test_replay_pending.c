/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "expect.h"
#include "lb_compiler.h"
#include "replay_pending.h"
#include "xrand.h"

static struct replay_outcome
make(uint64_t number)
{
	return (struct replay_outcome){.service = 1,
		.backend = (uint32_t)number,
		.slot = UINT32_MAX,
		.verdict = (uint8_t)(number % 3),
		.flow = (uint8_t)(number % 2)};
}

static void
settle(struct replay_pending *pending, uint64_t number)
{
	const struct replay_outcome outcome = make(number);

	assert_int_equal(replay_pending_settle(pending, number, &outcome), 0);
}

static void
expect_next(struct replay_pending *pending, uint64_t want)
{
	const struct replay_outcome outcome = make(want);
	struct replay_outcome found;
	uint64_t number = UINT64_MAX;

	assert_true(replay_pending_next(pending, &number, &found));
	assert_int_equal(number, want);
	assert_int_equal(found.backend, outcome.backend);
	assert_int_equal(found.verdict, outcome.verdict);
	assert_int_equal(found.flow, outcome.flow);
	assert_int_equal(found.slot, UINT32_MAX);
}

static void
expect_none(struct replay_pending *pending)
{
	struct replay_outcome found;
	uint64_t number;

	assert_false(replay_pending_next(pending, &number, &found));
}

static void
test_a_late_one_holds_up_those_after_it(void **state)
{
	struct replay_pending *pending;

	(void)state;
	assert_int_equal(replay_pending_create(&pending), 0);
	expect_none(pending);
	settle(pending, 0);
	settle(pending, 2);
	settle(pending, 3);
	expect_next(pending, 0);
	expect_none(pending);
	settle(pending, 1);
	expect_next(pending, 1);
	expect_next(pending, 2);
	expect_next(pending, 3);
	expect_none(pending);
	replay_pending_destroy(pending);
}

/* Many more pending than there is room for at first, again and again, each once and in order.
 */
static void
test_any_order_comes_out_in_order(void **state)
{
	enum { N = 20000, WINDOW = 5000 };
	struct replay_pending *pending;
	uint64_t *order = calloc(N, sizeof(*order));
	uint64_t seed = 42;
	uint64_t want = 0;

	(void)state;
	assert_non_null(order);
	assert_int_equal(replay_pending_create(&pending), 0);
	for (uint64_t i = 0; i < N; i++)
		order[i] = i;
	for (uint64_t i = 0; i + 1 < N; i++) { /* none moves further than the window */
		const uint64_t end = i + WINDOW < N ? i + WINDOW : N;
		const uint64_t j = i + xrand(&seed) % (end - i);
		const uint64_t kept = order[i];

		if (j / WINDOW != i / WINDOW)
			continue;
		order[i] = order[j];
		order[j] = kept;
	}
	for (uint64_t i = 0; i < N; i++) {
		struct replay_outcome found;
		uint64_t number;

		settle(pending, order[i]);
		while (replay_pending_next(pending, &number, &found)) {
			assert_int_equal(number, want);
			assert_int_equal(found.backend, want);
			want++;
		}
	}
	assert_int_equal(want, N);
	replay_pending_destroy(pending);
	free(order);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_one_holds_up_those_after_it),
		cmocka_unit_test(test_any_order_comes_out_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
