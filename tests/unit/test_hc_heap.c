/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>

#include "expect.h"
#include "hc_heap.h"
#include "lb_compiler.h"
#include "xrand.h"

#define N       200
#define N_STEPS 30000

static struct hc_timer timers[N];
static struct hc_timer *room[N];

/* The one that is due first, found by looking at all; UINT64_MAX: none. */
static uint64_t
find_first(size_t n_timers)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < n_timers; i++) {
		if (timers[i].place != HC_HEAP_NONE && timers[i].due_ns < first)
			first = timers[i].due_ns;
	}
	return first;
}

static void
run(size_t n_timers)
{
	struct hc_heap heap = {.timers = room};
	uint64_t random = 4711;
	size_t n = 0;

	for (size_t i = 0; i < n_timers; i++)
		timers[i].place = HC_HEAP_NONE;
	for (size_t step = 0; step < N_STEPS; step++) {
		struct hc_timer *timer = &timers[xrand_below(&random, (uint32_t)n_timers)];
		const bool is_in = timer->place != HC_HEAP_NONE;
		const struct hc_timer *first;

		if (is_in && xrand_below(&random, 2) == 0) {
			hc_heap_remove(&heap, timer);
			EXPECT(timer->place == HC_HEAP_NONE, "it is out");
			n--;
		} else {
			hc_heap_put(&heap, timer, xrand_below(&random, 1000));
			n += !is_in;
		}
		first = hc_heap_first(&heap);
		EXPECT(heap.n == n, "step %zu: %zu are in, not %zu", step, heap.n, n);
		EXPECT((first == NULL ? UINT64_MAX : first->due_ns) == find_first(n_timers),
			"step %zu: the first", step);
		EXPECT(first == NULL || room[first->place] == first, "it knows its place");
	}
	while (heap.n > 0) {
		const uint64_t due_ns = hc_heap_first(&heap)->due_ns;

		EXPECT(due_ns == find_first(n_timers), "in order");
		hc_heap_remove(&heap, hc_heap_first(&heap));
	}
	EXPECT(hc_heap_first(&heap) == NULL, "none is left");
}

static void
test_the_first_is_the_first_whatever_happens(void **state)
{
	(void)state;
	run(3);
	run(10);
	run(N);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_is_the_first_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
