/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Questions to workers that run, each in a thread of its own, while flows come and go. Thread
 * sanitizer sees a race, address sanitizer an answer into memory that is gone.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "dp_plane.h"
#include "expect.h"
#include "lb_flow_lookup.h"
#include "xrand.h"

#define N_WORKERS   2u
#define N_IDS       16u
#define N_FLOWS     1000u /* each worker's, from before the first question */
#define N_QUESTIONS 200u
#define S           UINT64_C(1000000000)

/* Nothing times out but where a test says so. */
static const struct dp_conf usual = {
	.n_workers = N_WORKERS,
	.flows = {.n_entries = 1, .timeout_ns = {900 * S, 900 * S, 900 * S, 900 * S}},
};

/* What a worker's loop does, without packets. */
struct runner {
	struct dp_worker *worker;
	uint64_t seed;
	_Atomic bool is_deaf; /* looks at no question */
	_Atomic bool is_over;
	pthread_t thread;
};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_ask", 8);
}

static struct lb_flow_hash
flow_hash(unsigned int worker, unsigned int flow)
{
	uint64_t seed = (uint64_t)worker << 32 | flow;

	return (struct lb_flow_hash){.print = xrand(&seed), .place = xrand(&seed)};
}

static void
insert(struct dp_worker *worker, const struct lb_flow_hash *hash, uint32_t backend)
{
	const uint32_t ref =
		lb_flow_insert(worker->flows, hash, backend, LB_FLOW_DATAGRAM, 0, dp_now_ns());

	assert_int_not_equal(ref, LB_FLOW_NONE);
	lb_flow_touch(worker->flows, ref, LB_FLOW_DATAGRAM, dp_now_ns());
}

/* Backends 0..N_IDS-1 hold still; flows of the one after come all the time. */
static void *
run_worker(void *argument)
{
	struct runner *runner = argument;

	while (!atomic_load(&runner->is_over)) {
		const uint64_t now_ns = dp_now_ns();
		const struct lb_flow_hash hash = {.print = xrand(&runner->seed),
			.place = xrand(&runner->seed)};

		if (lb_flow_find(runner->worker->flows, &hash, now_ns) == LB_FLOW_NONE)
			(void)lb_flow_insert(runner->worker->flows, &hash, N_IDS,
				LB_FLOW_DATAGRAM, 0, now_ns);
		lb_flow_table_expire(runner->worker->flows, now_ns);
		if (atomic_load(&runner->is_deaf) || !dp_worker_answer(runner->worker, now_ns))
			(void)usleep(20);
	}
	return NULL;
}

static struct dp *
make_plane(const struct dp_conf *conf)
{
	struct dp *dp;

	assert_int_equal(dp_create(conf, dp_now_ns(), &dp), 0);
	for (unsigned int w = 0; w < N_WORKERS; w++)
		for (unsigned int i = 0; i < N_FLOWS; i++) {
			const struct lb_flow_hash hash = flow_hash(w, i);

			insert(dp->workers[w], &hash, i % N_IDS);
		}
	return dp;
}

static void
run_plane(struct dp *dp, struct runner runners[static N_WORKERS])
{
	for (unsigned int w = 0; w < N_WORKERS; w++) {
		runners[w] = (struct runner){.worker = dp->workers[w], .seed = 1000 + w};
		assert_int_equal(pthread_create(&runners[w].thread, NULL, run_worker,
					 &runners[w]),
			0);
	}
	dp->n_running = N_WORKERS;
}

static void
stop_plane(struct dp *dp, struct runner runners[static N_WORKERS])
{
	for (unsigned int w = 0; w < N_WORKERS; w++) {
		atomic_store(&runners[w].is_over, true);
		assert_int_equal(pthread_join(runners[w].thread, NULL), 0);
	}
	dp->n_running = 0;
	dp_destroy(dp);
}

/* Sanitizers and a busy machine slow the workers: late is no answer, and no fault. */
static int
ask_until_told(struct dp *dp, const struct lb_flow_hash *hash, struct dp_flow_answer *out)
{
	int ret = -ETIMEDOUT;

	for (unsigned int i = 0; i < 100 && ret == -ETIMEDOUT; i++)
		ret = dp_ask_flow(dp, hash, out);
	return ret;
}

static int
count_until_told(struct dp *dp, uint32_t *counts, uint32_t n)
{
	int ret = -ETIMEDOUT;

	for (unsigned int i = 0; i < 100 && ret == -ETIMEDOUT; i++)
		ret = dp_count_flows(dp, counts, n);
	return ret;
}

static void
test_flows_are_found_where_they_are(void **state)
{
	struct dp *dp = make_plane(&usual);
	struct runner runners[N_WORKERS];

	(void)state;
	run_plane(dp, runners);
	for (unsigned int i = 0; i < N_QUESTIONS; i++) {
		const unsigned int worker = i % N_WORKERS;
		const struct lb_flow_hash hash = flow_hash(worker, i);
		struct dp_flow_answer answer = {.worker = 99};

		EXPECT(ask_until_told(dp, &hash, &answer) == 0, "flow %u is not found", i);
		EXPECT(answer.worker == worker, "flow %u: worker %u", i, answer.worker);
		EXPECT(answer.info.backend == i % N_IDS, "flow %u: backend %u", i,
			answer.info.backend);
		EXPECT(answer.info.is_confirmed, "flow %u is unconfirmed", i);
	}
	for (unsigned int i = 0; i < N_QUESTIONS; i++) {
		const struct lb_flow_hash hash = flow_hash(N_WORKERS, i);
		struct dp_flow_answer answer;

		EXPECT(ask_until_told(dp, &hash, &answer) == -ENOENT, "flow %u is found", i);
	}
	stop_plane(dp, runners);
}

static void
test_whoever_saw_it_last_tells(void **state)
{
	const struct lb_flow_hash hash = flow_hash(0, N_FLOWS);
	struct dp *dp = make_plane(&usual);
	struct runner runners[N_WORKERS];
	struct dp_flow_answer answer;
	const uint64_t now_ns = dp_now_ns();

	(void)state;
	(void)lb_flow_insert(dp->workers[0]->flows, &hash, 1, LB_FLOW_DATAGRAM, 0, now_ns);
	/* The tables' tick is less than a second. */
	(void)lb_flow_insert(dp->workers[1]->flows, &hash, 2, LB_FLOW_DATAGRAM, 0,
		now_ns - 10 * S);
	run_plane(dp, runners);
	assert_int_equal(ask_until_told(dp, &hash, &answer), 0);
	assert_int_equal(answer.worker, 0);
	assert_int_equal(answer.info.backend, 1);
	assert_false(answer.info.is_confirmed);
	stop_plane(dp, runners);
}

static void
test_flows_are_counted_over_all_workers(void **state)
{
	struct dp *dp = make_plane(&usual);
	struct runner runners[N_WORKERS];
	uint32_t model[N_IDS] = {0};

	(void)state;
	for (unsigned int i = 0; i < N_FLOWS; i++)
		model[i % N_IDS] += N_WORKERS;
	run_plane(dp, runners);
	for (unsigned int i = 0; i < 10; i++) {
		uint32_t counts[N_IDS + 1];

		assert_int_equal(count_until_told(dp, counts, N_IDS), 0);
		assert_memory_equal(counts, model, sizeof(model));
		/* With those that come meanwhile. */
		assert_int_equal(count_until_told(dp, counts, N_IDS + 1), 0);
		assert_memory_equal(counts, model, sizeof(model));
		EXPECT(counts[N_IDS] > 0, "nobody came");
	}
	stop_plane(dp, runners);
}

/* List until the end; flows of N_IDS and above are counted under N_IDS. */
static void
list_all(struct dp *dp, const struct lb_flow_query *query, uint32_t counts[static N_IDS + 1])
{
	struct dp_flow_cursor at = {0, 0};

	memset(counts, 0, (N_IDS + 1) * sizeof(counts[0]));
	while (at.worker < dp_n_workers(dp)) {
		struct lb_flow_entry entries[300];
		size_t n = LB_N_ELEMENTS(entries);
		const int ret = dp_list_flows(dp, query, &at, entries, &n);

		assert_true(ret == 0 || ret == -ETIMEDOUT);
		for (size_t i = 0; ret == 0 && i < n; i++)
			counts[entries[i].info.backend < N_IDS ? entries[i].info.backend
							       : N_IDS]++;
	}
}

static uint64_t
clear_all(struct dp *dp, const struct lb_flow_query *query)
{
	struct dp_flow_cursor at = {0, 0};
	uint64_t n_all = 0;

	while (at.worker < dp_n_workers(dp)) {
		uint64_t n = 0;
		const int ret = dp_clear_flows(dp, query, &at, &n);

		assert_true(ret == 0 || ret == -ETIMEDOUT);
		n_all += n;
	}
	return n_all;
}

static void
test_flows_are_listed_and_cleared_while_others_come(void **state)
{
	static const uint64_t first_two = 3;
	static const struct lb_flow_query everything = {.backends = NULL};
	static const struct lb_flow_query some = {.backends = &first_two, .n_backends = 2};
	struct dp *dp = make_plane(&usual);
	struct runner runners[N_WORKERS];
	uint32_t model[N_IDS] = {0};
	uint32_t counts[N_IDS + 1];

	(void)state;
	for (unsigned int i = 0; i < N_FLOWS; i++)
		model[i % N_IDS] += N_WORKERS;
	run_plane(dp, runners);
	list_all(dp, &everything, counts);
	assert_memory_equal(counts, model, sizeof(model));
	assert_true(counts[N_IDS] > 0);
	list_all(dp, &some, counts);
	assert_int_equal(counts[0], model[0]);
	assert_int_equal(counts[1], model[1]);
	assert_int_equal(counts[2] + counts[N_IDS], 0);
	/* A late answer has cleared some that it is not told of. */
	assert_true(clear_all(dp, &some) <= model[0] + model[1]);
	model[0] = 0;
	model[1] = 0;
	list_all(dp, &everything, counts);
	assert_memory_equal(counts, model, sizeof(model));
	stop_plane(dp, runners);
}

static void
test_workers_that_do_not_run_are_not_asked(void **state)
{
	const struct lb_flow_hash hash = flow_hash(0, 0);
	struct dp *dp = make_plane(&usual);
	struct dp_flow_answer answer;
	uint32_t counts[N_IDS] = {99};

	(void)state;
	assert_int_equal(dp_ask_flow(dp, &hash, &answer), -ENODEV);
	assert_int_equal(dp_count_flows(dp, counts, N_IDS), -ENODEV);
	assert_int_equal(counts[0], 99);
	dp_destroy(dp);
}

/* Who does not listen holds the question; the answer comes when it is no longer waited for. */
static void
test_a_late_answer_is_no_harm(void **state)
{
	const struct lb_flow_hash mine = flow_hash(0, 1);
	const struct lb_flow_hash other = flow_hash(1, 1);
	struct dp *dp = make_plane(&usual);
	struct runner runners[N_WORKERS];
	struct dp_flow_answer answer;
	uint32_t counts[N_IDS] = {99};

	(void)state;
	run_plane(dp, runners);
	atomic_store(&runners[1].is_deaf, true);
	assert_int_equal(dp_count_flows(dp, counts, N_IDS), -ETIMEDOUT);
	assert_int_equal(counts[0], 99);
	/* The next waits for the one before, and is not asked at all. */
	assert_int_equal(dp_ask_flow(dp, &mine, &answer), -ETIMEDOUT);
	atomic_store(&runners[1].is_deaf, false);
	assert_int_equal(ask_until_told(dp, &other, &answer), 0);
	assert_int_equal(answer.worker, 1);

	atomic_store(&runners[1].is_deaf, true);
	/* What the one says is enough; what it does not, the other may. */
	assert_int_equal(dp_ask_flow(dp, &mine, &answer), 0);
	assert_int_equal(answer.worker, 0);
	assert_int_equal(dp_count_flows(dp, counts, N_IDS), -ETIMEDOUT);
	stop_plane(dp, runners); /* with a question that nobody answered */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flows_are_found_where_they_are),
		cmocka_unit_test(test_whoever_saw_it_last_tells),
		cmocka_unit_test(test_flows_are_counted_over_all_workers),
		cmocka_unit_test(test_flows_are_listed_and_cleared_while_others_come),
		cmocka_unit_test(test_workers_that_do_not_run_are_not_asked),
		cmocka_unit_test(test_a_late_answer_is_no_harm),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
