/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What is traced against what is decided: each packet once, under its very verdict; and traces
 * that come and go under a worker that runs, in a thread of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "burst_frames.h"
#include "burst_plane.h"
#include "dp_plane.h"
#include "expect.h"

#define N_ROUNDS 3u
#define STEP_NS  700000u
/* What is known of datagrams is so no longer. */
#define FORGOTTEN_NS UINT64_C(3000000000)
/* A lane's records. */
#define ROOM     1024u
#define N_TRACES 100u

static const struct dp_trace_conf everything = {.sample = 1};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_trace", 8);
}

/* All there is, into counts by verdict. */
static size_t
read_all(struct dp *dp, uint64_t counts[static LB_N_VERDICTS])
{
	struct dp_trace_record records[100];
	size_t n_all = 0;
	size_t n;

	while ((n = dp_trace_read(dp, records, LB_N_ELEMENTS(records))) > 0) {
		for (size_t i = 0; i < n; i++) {
			assert_true(records[i].verdict < LB_N_VERDICTS);
			assert_true(records[i].n_bytes > 0);
			counts[records[i].verdict]++;
		}
		n_all += n;
	}
	return n_all;
}

static void
add_kind(struct burst_plane *plane, size_t kind, uint64_t step_ns)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = burst_frames_build(kind, frame);
	const char *flaw = burst_plane_add(plane, frame, n, step_ns);

	EXPECT(flaw == NULL, "%s: %s", burst_frames_name(kind), flaw);
}

static void
expect_each_once(unsigned int n_workers)
{
	struct burst_plane *plane = calloc(1, sizeof(*plane));
	const size_t n_kinds = burst_frames_count();
	uint64_t traced[LB_N_VERDICTS] = {0};
	uint64_t counted[LB_N_VERDICTS];

	assert_non_null(plane);
	burst_plane_open(plane, n_workers);
	assert_int_equal(dp_trace_begin(plane->dp, &everything), 0);
	for (unsigned int round = 0; round < N_ROUNDS; round++) {
		/* Backwards fragments come before their first, and wait for it. */
		for (size_t i = 0; i < n_kinds; i++) {
			add_kind(plane, round % 2 == 0 ? n_kinds - 1 - i : i, STEP_NS);
			(void)read_all(plane->dp, traced);
		}
		/* Nothing is known of their firsts any more, and these wait until the end. */
		for (size_t kind = 0; kind < n_kinds; kind++)
			if (strstr(burst_frames_name(kind), "later") != NULL)
				add_kind(plane, kind, FORGOTTEN_NS);
		assert_null(burst_plane_end(plane));
		(void)read_all(plane->dp, traced);
	}
	dp_read_verdicts(plane->dp, counted);
	for (size_t v = 0; v < LB_N_VERDICTS; v++) {
		const char *reason = lb_verdict_reason((enum lb_verdict)v);

		EXPECT(traced[v] == counted[v], "%u workers, %s %s: %llu traced of %llu",
			n_workers, lb_verdict_name((enum lb_verdict)v),
			reason != NULL ? reason : "", (unsigned long long)traced[v],
			(unsigned long long)counted[v]);
	}
	assert_true(counted[LB_DROP_FRAGMENT_UNMATCHED] > 0);
	assert_true(counted[LB_FORWARD] > 0);
	assert_int_equal(dp_trace_missed(plane->dp), 0);
	dp_trace_end(plane->dp);
	burst_plane_close(plane);
	free(plane);
}

static void
test_each_packet_is_traced_once(void **state)
{
	(void)state;
	expect_each_once(1);
	expect_each_once(3);
}

/* Whoever answers, its first fragment is shown as it came, and so long as it was. */
static void
test_a_request_in_fragments_is_shown_as_it_came(void **state)
{
	struct burst_plane *plane = calloc(1, sizeof(*plane));
	const uint64_t step_ns = 1000;
	struct dp_trace_record records[64];
	struct lb_addr client;
	size_t n;

	(void)state;
	assert_non_null(plane);
	assert_int_equal(lb_addr_parse(PB_CLIENT_V4, &client), 0);
	burst_plane_open(plane, 3);
	assert_int_equal(dp_trace_begin(plane->dp, &everything), 0);
	/* So many that some are at home with each worker, and some not. */
	for (int id = 1; id <= 20; id++) {
		const struct pb_layer request[] = {ETHER(), IPV4(.fragment = 0x2000, .id = id),
			ICMP(.type = 8), PADDING(18), END};
		const struct pb_layer rest[] = {ETHER(),
			IPV4(.fragment = 1, .id = id, .proto = 1), PAYLOAD(8), PADDING(18),
			END};
		uint8_t frame[PB_FRAME_MAX];

		assert_null(burst_plane_add(plane, frame, pb_build(rest, frame), step_ns));
		assert_null(burst_plane_add(plane, frame, pb_build(request, frame), step_ns));
	}
	assert_null(burst_plane_end(plane));
	n = dp_trace_read(plane->dp, records, LB_N_ELEMENTS(records));
	assert_int_equal(n, 40);
	for (size_t i = 0; i < n; i++) {
		EXPECT(records[i].verdict == LB_REPLY, "record %zu: verdict %d", i,
			records[i].verdict);
		EXPECT(lb_addr_equal(&records[i].key.src, &client), "record %zu: the reply", i);
		EXPECT(records[i].n_bytes == 60, "record %zu: %u bytes", i, records[i].n_bytes);
	}
	dp_trace_end(plane->dp);
	burst_plane_close(plane);
	free(plane);
}

/* n packets of the first kind, which is forwarded. */
static size_t
trace_packets(struct burst_plane *plane, const struct dp_trace_conf *conf, unsigned int n,
	uint64_t counts[static LB_N_VERDICTS])
{
	memset(counts, 0, LB_N_VERDICTS * sizeof(counts[0]));
	assert_int_equal(dp_trace_begin(plane->dp, conf), 0);
	for (unsigned int i = 0; i < n; i++)
		add_kind(plane, 0, STEP_NS);
	assert_null(burst_plane_end(plane));
	return read_all(plane->dp, counts);
}

static void
test_what_finds_no_room_is_counted(void **state)
{
	struct burst_plane *plane = calloc(1, sizeof(*plane));
	uint64_t counts[LB_N_VERDICTS];

	(void)state;
	assert_non_null(plane);
	burst_plane_open(plane, 1);
	assert_int_equal(trace_packets(plane, &everything, ROOM + 100, counts), ROOM);
	assert_int_equal(dp_trace_missed(plane->dp), 100);
	/* There is room again. */
	add_kind(plane, 0, STEP_NS);
	assert_null(burst_plane_end(plane));
	assert_int_equal(read_all(plane->dp, counts), 1);
	assert_int_equal(dp_trace_missed(plane->dp), 100);
	dp_trace_end(plane->dp);
	burst_plane_close(plane);
	free(plane);
}

static void
test_one_in_so_many_is_looked_at(void **state)
{
	const struct dp_trace_conf sampled = {.sample = 8};
	const struct dp_trace_conf dropped = {.sample = 1, .dropped_only = true};
	struct burst_plane *plane = calloc(1, sizeof(*plane));
	uint64_t counts[LB_N_VERDICTS];
	size_t n;

	(void)state;
	assert_non_null(plane);
	burst_plane_open(plane, 1);
	n = trace_packets(plane, &sampled, 4000, counts);
	/* The sum of some 500 gaps of 0 to 14: four deviations are 4 * sqrt(500) * 4.3 packets.
	 */
	EXPECT(n > 450 && n < 555, "one in 8 of 4000 are %zu", n);
	dp_trace_end(plane->dp);
	assert_int_equal(trace_packets(plane, &dropped, 100, counts), 0);
	dp_trace_end(plane->dp);
	burst_plane_close(plane);
	free(plane);
}

static void
test_there_is_one_trace_at_a_time(void **state)
{
	struct burst_plane *plane = calloc(1, sizeof(*plane));
	struct dp_trace_record record;

	(void)state;
	assert_non_null(plane);
	burst_plane_open(plane, 1);
	assert_int_equal(dp_trace_read(plane->dp, &record, 1), 0);
	dp_trace_end(plane->dp);
	assert_int_equal(dp_trace_begin(plane->dp, &everything), 0);
	assert_int_equal(dp_trace_begin(plane->dp, &everything), -EBUSY);
	dp_trace_end(plane->dp);
	assert_int_equal(dp_trace_begin(plane->dp, &everything), 0);
	/* What runs at the end ends with the plane. */
	burst_plane_close(plane);
	free(plane);
}

/* A worker that looks at packets without end. */
struct runner {
	struct dp_worker *worker;
	_Atomic bool is_over;
};

static void *
run_worker(void *argument)
{
	struct runner *runner = argument;
	struct dp_worker *worker = runner->worker;
	uint32_t n_bytes = 0;

	dp_worker_online(worker);
	while (!atomic_load(&runner->is_over)) {
		/* Some of it is the same in all fields, so that half a record is seen. */
		const struct dp_decision decision = {.service = DP_NONE,
			.backend = n_bytes,
			.slot = DP_NONE,
			.verdict = LB_TO_KERNEL};
		const struct dp_traced traced = {NULL, &decision, n_bytes, n_bytes, 0};
		struct dp_trace *trace = dp_trace_of(worker->trace);

		if (trace != NULL)
			dp_trace_one(trace, worker->index, NULL, &traced);
		n_bytes++;
		rte_rcu_qsbr_quiescent(worker->qsbr, worker->index);
	}
	dp_worker_offline(worker);
	return NULL;
}

static void
test_traces_come_and_go_while_a_worker_runs(void **state)
{
	const struct dp_conf conf = {.n_workers = 1,
		.flows = {.n_entries = 1, .timeout_ns = {1000000, 1000000, 1000000, 1000000}}};
	struct runner runner = {.worker = NULL};
	pthread_t thread;
	struct dp *dp;

	(void)state;
	assert_int_equal(dp_create(&conf, 0, &dp), 0);
	runner.worker = dp->workers[0];
	assert_int_equal(pthread_create(&thread, NULL, run_worker, &runner), 0);
	for (unsigned int i = 0; i < N_TRACES; i++) {
		struct dp_trace_record records[50];
		size_t n;

		assert_int_equal(dp_trace_begin(dp, &everything), 0);
		while ((n = dp_trace_read(dp, records, LB_N_ELEMENTS(records))) == 0)
			(void)sched_yield();
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(records[k].backend, records[k].n_bytes);
			assert_true(k == 0 || records[k].n_bytes > records[k - 1].n_bytes);
		}
		dp_trace_end(dp);
	}
	atomic_store(&runner.is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	dp_destroy(dp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet_is_traced_once),
		cmocka_unit_test(test_a_request_in_fragments_is_shown_as_it_came),
		cmocka_unit_test(test_what_finds_no_room_is_counted),
		cmocka_unit_test(test_one_in_so_many_is_looked_at),
		cmocka_unit_test(test_there_is_one_trace_at_a_time),
		cmocka_unit_test(test_traces_come_and_go_while_a_worker_runs),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
