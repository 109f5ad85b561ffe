/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Publishing against a worker that never stops: no burst sees a snapshot that is freed, nor
 * a mixture of two. Address sanitizer sees a use after free, thread sanitizer a race.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "dp_plane.h"
#include "expect.h"
#include "packet_builder.h"

#define N_PUBLISHED 2000u
#define N_IDS       64u

struct reader {
	struct dp *dp;
	_Atomic bool is_ready;
	_Atomic bool is_over;
	uint64_t n_bursts;
	uint64_t n_wrong;
};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_publish", 8);
}

/* Snapshot number k has one backend, whose id says k, and its MTU too. */
static struct dp_snapshot *
make_snapshot(unsigned int k)
{
	const uint32_t id = k % N_IDS;
	const struct lb_picker_backend backend = {.name = "only",
		.name_bytes = 4,
		.weight = 100};
	const struct dp_table_conf table_conf = {.picker = {.algorithm = LB_MAGLEV,
							 .n_slots = 7},
		.backends = &backend,
		.ids = &id,
		.n_backends = 1};
	struct dp_service_conf service = {.match = {.port = 443, .proto = 6}};
	struct dp_backend_conf to = {.id = id, .is_live = true, .has_next_hop = true};
	const struct dp_snapshot_conf conf = {.services = &service,
		.n_services = 1,
		.backends = &to,
		.n_backends = 1};
	struct dp_snapshot *snapshot;

	assert_int_equal(lb_prefix_parse("198.51.100.10", &service.match.prefix), 0);
	assert_int_equal(dp_table_create(&table_conf, &service.table), 0);
	to.mtu = (uint16_t)(1000 + id);
	to.encap.mode = LB_FORWARD_IPIP;
	assert_int_equal(lb_addr_parse("192.0.2.1", &to.encap.src), 0);
	assert_int_equal(lb_addr_parse("10.0.0.1", &to.encap.dst), 0);
	assert_int_equal(dp_snapshot_create(&conf, &snapshot), 0);
	dp_table_release(service.table);
	return snapshot;
}

/* Another CPU than the main thread's, where there is one: two that spin need two. */
static void
move_away(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((unsigned int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpus);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static void *
read_snapshots(void *argument)
{
	struct reader *reader = argument;
	struct dp_worker *worker = reader->dp->workers[0];

	move_away();
	dp_worker_online(worker);
	atomic_store(&reader->is_ready, true);
	while (!atomic_load(&reader->is_over)) {
		const struct dp_snapshot *snapshot =
			atomic_load_explicit(&reader->dp->current, memory_order_acquire);
		const uint32_t id = snapshot->services[0].ids[0];

		/* One that is torn, or freed and used again, does not agree with itself. Held
		 * for as long as it takes to publish some more, if that did not wait for us. */
		if (snapshot->n_ids != id + 1 || snapshot->backends[id].mtu != 1000 + id)
			reader->n_wrong++;
		if (reader->n_bursts % 16 == 0)
			(void)usleep(50);
		if (snapshot->n_ids != id + 1 || snapshot->services[0].ids[0] != id)
			reader->n_wrong++;
		reader->n_bursts++;
		rte_rcu_qsbr_quiescent(worker->qsbr, worker->index);
	}
	dp_worker_offline(worker);
	return NULL;
}

static void
test_a_reader_never_sees_a_freed_snapshot(void **state)
{
	const struct dp_conf conf = {.n_workers = 1,
		.flows = {.n_entries = 1, .timeout_ns = {1000000, 1000000, 1000000, 1000000}}};
	struct reader reader = {0};
	pthread_t thread;

	(void)state;
	assert_int_equal(dp_create(&conf, 0, &reader.dp), 0);
	dp_publish(reader.dp, make_snapshot(0));
	assert_int_equal(pthread_create(&thread, NULL, read_snapshots, &reader), 0);
	while (!atomic_load(&reader.is_ready))
		(void)sched_yield();
	for (unsigned int k = 1; k <= N_PUBLISHED; k++)
		dp_publish(reader.dp, make_snapshot(k));
	atomic_store(&reader.is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);

	EXPECT(reader.n_wrong == 0, "%lu of %lu reads saw no whole snapshot",
		(unsigned long)reader.n_wrong, (unsigned long)reader.n_bursts);
	/* It waited for the reader each time, so the reader went round at least as often. */
	EXPECT(reader.n_bursts >= N_PUBLISHED, "only %lu reads for %u snapshots",
		(unsigned long)reader.n_bursts, N_PUBLISHED);
	dp_destroy(reader.dp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reader_never_sees_a_freed_snapshot),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
