/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "bench_worker.h"

#define MS_NS 1000000

/* In a table not half full one flow in a million may still find no room. */
#define UNKNOWN_SHARE_MAX 0.0001

struct run {
	const struct bench_case *c;
	struct bench_plane plane;
	struct bench_gate gate;
	struct bench_worker *workers[BENCH_WORKERS_MAX];
};

static int
launch(struct run *run)
{
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);

	for (unsigned int i = 0; i < run->gate.n_workers; i++) {
		/* There is an lcore for each, and none is at work. */
		const int ret = rte_eal_remote_launch(bench_worker_run, run->workers[i], lcore);

		if (ret != 0)
			return ret;
		lcore = rte_get_next_lcore(lcore, 1, 0);
	}
	return 0;
}

/* Control's part: snapshots, while the workers are timed. */
static int
swap_meanwhile(struct run *run)
{
	const uint32_t swap_ms = run->c->options->swap_ms;
	const struct timespec pause = {
		.tv_sec = swap_ms / 1000,
		.tv_nsec = (long)(swap_ms % 1000) * MS_NS,
	};
	int ret = 0;

	if (swap_ms == 0)
		return 0;
	while (atomic_load(&run->gate.n_done) < run->gate.n_workers && ret == 0) {
		(void)nanosleep(&pause, NULL);
		if (atomic_load(&run->gate.n_warm) == run->gate.n_workers &&
			atomic_load(&run->gate.n_done) == 0)
			ret = bench_plane_swap(&run->plane);
	}
	return ret;
}

/* The EAL waits by turning round and round, which is a processor's work. */
static void
wait_asleep(const struct run *run)
{
	const struct timespec pause = {.tv_nsec = MS_NS};

	while (atomic_load(&run->gate.n_done) < run->gate.n_workers)
		(void)nanosleep(&pause, NULL);
}

static int
compare_numbers(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
sum_up(const struct run *run, struct bench_result *out)
{
	const unsigned int n = run->gate.n_workers;

	*out = (struct bench_result){
		.n_rounds = BENCH_ROUNDS,
		.n_swaps = run->plane.n_swaps,
		.has_huge_pages = rte_eal_has_hugepages() != 0,
	};
	for (unsigned int i = 0; i < n; i++) {
		struct bench_worker *w = run->workers[i];

		qsort(w->ns, BENCH_ROUNDS, sizeof(w->ns[0]), compare_numbers);
		qsort(w->generator_ns, BENCH_ROUNDS, sizeof(w->generator_ns[0]),
			compare_numbers);
		out->ns += w->ns[BENCH_ROUNDS / 2] / n;
		out->generator_ns += w->generator_ns[BENCH_ROUNDS / 2] / n;
		if (i == 0 || w->ns[0] < out->ns_min)
			out->ns_min = w->ns[0];
		if (i == 0 || w->ns[BENCH_ROUNDS - 1] > out->ns_max)
			out->ns_max = w->ns[BENCH_ROUNDS - 1];
		out->n_packets += w->n_packets;
		out->n_forwarded += w->n_forwarded;
		out->n_checked += w->n_checked;
		out->hit_share += (double)w->n_new_flows;
		out->fill += (double)w->n_live / run->c->flow_entries / n;
	}
	out->hit_share = 1 - out->hit_share / (double)out->n_packets;
}

/* A time is of the work that the case names, or it is none. */
static int
judge(const struct run *run, const struct bench_result *result)
{
	const bool is_syn = run->c->options->is_syn;
	const double known = is_syn ? 0 : 1 - run->c->options->new_pct / 100.0;

	for (unsigned int i = 0; i < run->gate.n_workers; i++) {
		if (run->workers[i]->wrong[0] == '\0')
			continue;
		(void)fprintf(stderr, "shunt-bench: %s\n", run->workers[i]->wrong);
		return -EIO;
	}
	if (run->c->stage != BENCH_NO_STAGE)
		return 0;
	if (result->n_forwarded != result->n_packets) {
		(void)fprintf(stderr,
			"shunt-bench: %" PRIu64 " of %" PRIu64 " packets were forwarded\n",
			result->n_forwarded, result->n_packets);
		return -EIO;
	}
	if (fabs(result->hit_share - known) > (is_syn ? 0 : UNKNOWN_SHARE_MAX)) {
		(void)fprintf(stderr,
			"shunt-bench: the flow table knew %.6f of the packets' flows, not "
			"%.2f\n",
			result->hit_share, known);
		return -EIO;
	}
	return 0;
}

static int
run_workers(struct run *run)
{
	int ret;

	for (unsigned int i = 0; i < run->gate.n_workers; i++) {
		ret = bench_worker_create(&run->plane, &run->gate, i, &run->workers[i]);
		if (ret != 0) {
			(void)fprintf(stderr,
				"shunt-bench: no room for the packets: %s; fewer --workers "
				"need less\n",
				strerror(-ret));
			return ret;
		}
	}
	ret = launch(run);
	if (ret == 0) {
		ret = swap_meanwhile(run);
		wait_asleep(run);
	}
	rte_eal_mp_wait_lcore();
	return ret;
}

int
bench_run(const struct bench_case *c, struct bench_result *out)
{
	struct run run = {.c = c, .gate = {.n_workers = c->options->n_workers}};
	struct bench_result result;
	int ret = bench_plane_open(c, &run.plane);

	if (ret == 0)
		ret = run_workers(&run);
	if (ret == 0) {
		sum_up(&run, &result);
		ret = judge(&run, &result);
	}
	for (unsigned int i = 0; i < run.gate.n_workers; i++)
		bench_worker_destroy(run.workers[i]);
	bench_plane_close(&run.plane);
	if (ret == 0)
		*out = result;
	return ret;
}
