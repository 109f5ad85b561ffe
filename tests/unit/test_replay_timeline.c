/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked with -Wl,--wrap for malloc, calloc, realloc and strdup. */
#include "replay_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "failing_malloc.h"
#include "xrand.h"

#define N_PACKETS 2000u
#define N_IDS     5u

static void
add(struct replay_timeline *timeline, uint32_t backend, uint64_t now_ns)
{
	assert_int_equal(replay_timeline_add(timeline, backend, now_ns), 0);
}

/* The least width that has room for a time. */
static uint64_t
find_width(uint64_t last_ns)
{
	uint64_t width = REPLAY_TIMELINE_LEAST_NS;

	while (last_ns / width >= REPLAY_TIMELINE_BINS)
		width *= 2;
	return width;
}

static void
test_nothing_is_one_bin(void **state)
{
	struct replay_timeline timeline = {.width_ns = 0};

	(void)state;
	assert_int_equal(replay_timeline_n_bins(&timeline), 1);
	assert_int_equal(replay_timeline_sum(&timeline, 7), 0);
	replay_timeline_fini(&timeline);
}

static void
test_bins_double_when_time_leaves_them(void **state)
{
	static const struct {
		const char *what;
		uint64_t last_ns;
		uint64_t width_ns;
		size_t n_bins;
	} rows[] = {
		{"the first packet", 0, 1000, 1},
		{"the end of the last bin", 255999, 1000, 256},
		{"one nanosecond more", 256000, 2000, 129},
		{"a second", 1000000000, 4096000, 245},
		{"ten days", UINT64_C(864000000000000), UINT64_C(4294967296000), 202},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct replay_timeline timeline = {.width_ns = 0};

		add(&timeline, 0, 0);
		add(&timeline, 0, rows[i].last_ns);
		EXPECT(timeline.width_ns == rows[i].width_ns, "%s: width", rows[i].what);
		EXPECT(replay_timeline_n_bins(&timeline) == rows[i].n_bins, "%s: bins",
			rows[i].what);
		EXPECT(replay_timeline_sum(&timeline, 0) == 2, "%s: sum", rows[i].what);
		replay_timeline_fini(&timeline);
	}
}

static void
test_any_order_of_any_times_is_what_counting_at_the_end_would_be(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned int round = 0; round < 40; round++) {
		struct replay_timeline timeline = {.width_ns = 0};
		static uint64_t times[N_PACKETS];
		static uint32_t ids[N_PACKETS];
		static uint64_t wanted[N_IDS][REPLAY_TIMELINE_BINS];
		uint64_t last_ns = 0;

		memset(wanted, 0, sizeof(wanted));
		for (size_t i = 0; i < N_PACKETS; i++) {
			times[i] = xrand(&seed) >> (20 + round);
			ids[i] = xrand_below(&seed, N_IDS);
			last_ns = times[i] > last_ns ? times[i] : last_ns;
			add(&timeline, ids[i], times[i]);
		}
		assert_int_equal(timeline.width_ns, find_width(last_ns));
		assert_int_equal(timeline.last_ns, last_ns);
		for (size_t i = 0; i < N_PACKETS; i++)
			wanted[ids[i]][times[i] / timeline.width_ns]++;
		for (uint32_t id = 0; id < N_IDS; id++)
			assert_memory_equal(timeline.rows[id], wanted[id], sizeof(wanted[id]));
		replay_timeline_fini(&timeline);
	}
}

static void
test_a_mark_and_a_packet_of_nobody_are_in_the_time_that_is_shown(void **state)
{
	struct replay_timeline timeline = {.width_ns = 0};
	char title[] = "remove web/web-2";

	(void)state;
	add(&timeline, 3, 10);
	assert_int_equal(replay_timeline_mark(&timeline, title, 5000), 0);
	title[0] = 'x'; /* it has a copy */
	assert_int_equal(timeline.last_ns, 5000);
	replay_timeline_reach(&timeline, 9000);
	replay_timeline_reach(&timeline, 100);
	assert_int_equal(timeline.last_ns, 9000);
	assert_int_equal(timeline.n_marks, 1);
	assert_string_equal(timeline.marks[0].title, "remove web/web-2");
	assert_int_equal(timeline.marks[0].at_ns, 5000);
	assert_null(timeline.rows[0]);
	assert_int_equal(replay_timeline_sum(&timeline, 3), 1);
	replay_timeline_fini(&timeline);
}

static void
test_without_memory_nothing_is_lost(void **state)
{
	int n = 0;
	int ret;

	(void)state;
	do {
		struct replay_timeline timeline = {.width_ns = 0};

		add(&timeline, 0, 0);
		failing_malloc_at = ++n;
		ret = replay_timeline_add(&timeline, 9, 1);
		if (ret == 0)
			ret = replay_timeline_mark(&timeline, "up web/web-1", 2);
		failing_malloc_at = 0;
		assert_true(ret == 0 || ret == -ENOMEM);
		assert_int_equal(replay_timeline_sum(&timeline, 0), 1);
		replay_timeline_fini(&timeline);
	} while (ret != 0);
	assert_int_equal(n, 5); /* four allocations, each of which has failed */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_one_bin),
		cmocka_unit_test(test_bins_double_when_time_leaves_them),
		cmocka_unit_test(
			test_any_order_of_any_times_is_what_counting_at_the_end_would_be),
		cmocka_unit_test(
			test_a_mark_and_a_packet_of_nobody_are_in_the_time_that_is_shown),
		cmocka_unit_test(test_without_memory_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
