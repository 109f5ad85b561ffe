/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked with -Wl,--wrap for malloc, calloc, realloc and strdup. */
#include "ctl_since.h"

#include "expect.h"
#include "failing_malloc.h"

#define N 3u

/* A service with some of three backends, whose ids are their places. */
static struct cfg_backend backends[N];
static struct cfg_service service = {.backends = backends};
static uint32_t ids[N];
static struct ctl_view_service view_service = {.ids = ids};
static struct ctl_view view = {.services = &view_service};

/* For each its state, or -1 where it is not there. */
static void
follow(struct ctl_since *since, const int states[N], uint64_t now_ms)
{
	service.n_backends = 0;
	for (uint32_t id = 0; id < N; id++) {
		if (states[id] < 0)
			continue;
		backends[service.n_backends].state = (enum cfg_state)states[id];
		ids[service.n_backends++] = id;
	}
	view.model.services = &service;
	view.model.n_services = 1;
	view.n_ids = N;
	ctl_since_follow(since, &view, now_ms);
}

static void
test_a_state_is_since_it_began(void **state)
{
	static const struct {
		const char *what;
		int states[N];
		int64_t since_ms[N]; /* -1: nobody is there */
	} rows[] = {
		{"the start", {CFG_UP, CFG_DRAIN, -1}, {1000, 1000, -1}},
		{"nothing changes", {CFG_UP, CFG_DRAIN, -1}, {1000, 1000, -1}},
		{"one drains, one is new", {CFG_DRAIN, CFG_DRAIN, CFG_UP}, {1002, 1000, 1002}},
		{"one is up again, one is gone", {CFG_UP, -1, CFG_UP}, {1003, -1, 1002}},
		{"it is back as it was", {CFG_UP, CFG_DRAIN, CFG_UP}, {1003, 1004, 1002}},
		{"all are gone", {-1, -1, -1}, {-1, -1, -1}},
		{"and back", {CFG_UP, CFG_DRAIN, CFG_UP}, {1006, 1006, 1006}},
	};
	struct ctl_since since = {.entries = NULL};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		follow(&since, rows[i].states, 1000 + i);
		for (uint32_t id = 0; id < N; id++) {
			uint64_t since_ms = 0;
			const bool is_known = ctl_since_read(&since, id, &since_ms);
			const int64_t found = is_known ? (int64_t)since_ms : -1;

			EXPECT(found == rows[i].since_ms[id], "%s: backend %u: %lld",
				rows[i].what, id, (long long)found);
		}
	}
	ctl_since_fini(&since);
}

static void
test_without_memory_it_is_not_known_and_later_it_is(void **state)
{
	static const int states[N] = {CFG_UP, CFG_UP, CFG_UP};
	struct ctl_since since = {.entries = NULL};
	uint64_t since_ms;

	(void)state;
	failing_malloc_at = 1;
	follow(&since, states, 5);
	assert_false(ctl_since_read(&since, 0, &since_ms));
	follow(&since, states, 6);
	assert_true(ctl_since_read(&since, 0, &since_ms));
	assert_int_equal(since_ms, 6);
	assert_false(ctl_since_read(&since, N, &since_ms));
	ctl_since_fini(&since);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_state_is_since_it_began),
		cmocka_unit_test(test_without_memory_it_is_not_known_and_later_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
