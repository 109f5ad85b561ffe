/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_worker.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_errno.h>

#include "bench_check.h"
#include "dp_memory.h"
#include "dp_plane.h"

/* Buffers: those between generator and worker, and what a core keeps at hand. */
#define POOL_CACHE   256u
#define POOL_PACKETS (BENCH_WINDOW_PACKETS + 4 * POOL_CACHE - 1)
#define ROOM_BYTES   2048u

/* Windows of one kind in a row: a millisecond or less, so that both kinds see the same machine.
 */
#define SLICE_WINDOWS 16u

/* A flood goes on till so much of the table is in use, or for so many times its entries. */
#define FULL_SHARE  0.99
#define FLOOD_TURNS 8u
/* Turns through all flows till each is known; two do, of which the second finds nothing new. */
#define WARM_TURNS_MAX 8u

static_assert(BENCH_WINDOW_PACKETS % DP_BURST_MAX == 0, "a window is whole bursts");
static_assert(BENCH_FRAME_BYTES_MAX <= ROOM_BYTES, "a frame is one segment");

static uint64_t
thread_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The least of many: what every pair costs. */
static double
calibrate(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		const uint64_t begun = thread_ns();
		const uint64_t took = thread_ns() - begun;

		least = took < least ? took : least;
	}
	return (double)least;
}

int
bench_worker_create(const struct bench_plane *plane, struct bench_gate *gate,
	unsigned int index, struct bench_worker **out)
{
	const struct bench_case *c = plane->c;
	const uint64_t n_workers = c->options->n_workers;
	/* Numbers are dealt out among the workers; a flood has as many as there are. */
	const uint64_t n = c->options->is_syn
				   ? BENCH_FLOWS_MAX / n_workers
				   : (c->n_flows + n_workers - 1 - index) / n_workers;
	struct bench_worker *w = dp_memory_zalloc(sizeof(*w));
	char name[RTE_MEMPOOL_NAMESIZE];

	if (w == NULL)
		return -ENOMEM;
	w->plane = plane;
	w->burst.is_brief = true; /* as the loop of shuntd has it */
	w->gate = gate;
	w->index = index;
	w->worker = plane->dp->workers[index];
	bench_traffic_init(&w->traffic, c->family, c->options->n_services, c->packet_bytes,
		c->options->is_syn);
	bench_traffic_init(&w->beginning, c->family, c->options->n_services, c->packet_bytes,
		true);
	bench_order_init(&w->order, n);
	w->n_known = n;
	bench_order_init(&w->beginners,
		BENCH_FLOWS_MAX / n_workers - (c->options->is_syn ? 0 : n));
	w->alone = w->order;
	(void)snprintf(name, sizeof(name), "bench_%u", index);
	w->pool = rte_pktmbuf_pool_create(name, POOL_PACKETS, POOL_CACHE, DP_BESIDE_BYTES,
		RTE_PKTMBUF_HEADROOM + ROOM_BYTES, SOCKET_ID_ANY);
	if (w->pool == NULL) {
		dp_memory_free(w, sizeof(*w));
		return -rte_errno;
	}
	*out = w;
	return 0;
}

void
bench_worker_destroy(struct bench_worker *w)
{
	if (w == NULL)
		return;
	rte_mempool_free(w->pool);
	dp_memory_free(w, sizeof(*w));
}

/* What is out is a window, and the pool is larger: none is missing, unless one was lost. */
static void
take_buffers(struct bench_worker *w, struct rte_mbuf **pkts)
{
	if (likely(rte_pktmbuf_alloc_bulk(w->pool, pkts, DP_BURST_MAX) == 0))
		return;
	(void)fprintf(stderr, "shunt-bench: packet buffers did not come back\n");
	exit(BENCH_FAILED);
}

/* The flow of the next packet: evenly between known ones new ones, new_pct in a hundred. */
static uint64_t
next_flow(struct bench_worker *w, struct bench_order *order, uint32_t new_pct, bool *is_new)
{
	w->rest_pct += new_pct;
	*is_new = w->rest_pct >= 100;
	if (!*is_new)
		return bench_order_next(order);
	w->rest_pct -= 100;
	return w->n_known + bench_order_next(&w->beginners);
}

/* The other writer: a window of packets, each in a buffer of its own; n in a row of a flow. */
static void
generate_runs(struct bench_worker *w, struct bench_order *order, unsigned int n,
	uint32_t new_pct)
{
	const unsigned int n_workers = w->gate->n_workers;
	const uint16_t n_bytes = w->traffic.frame_bytes;
	bool is_new = false;
	uint64_t flow = 0;

	for (unsigned int i = 0; i < BENCH_WINDOW_PACKETS; i++) {
		struct rte_mbuf *m;

		if (i % n == 0)
			flow = next_flow(w, order, new_pct, &is_new) * n_workers + w->index;

		if (i % DP_BURST_MAX == 0)
			take_buffers(w, &w->pkts[i]);
		m = w->pkts[i];
		m->port = 0;
		m->data_len = n_bytes;
		m->pkt_len = n_bytes;
		w->flows[i] = flow;
		w->is_new[i] = is_new;
		bench_traffic_write(is_new ? &w->beginning : &w->traffic, flow, w->seq++,
			rte_pktmbuf_mtod(m, uint8_t *));
	}
}

static void
generate(struct bench_worker *w, struct bench_order *order)
{
	generate_runs(w, order, 1, w->plane->c->options->new_pct);
}

/* @return whether all of it is forwarded. */
static bool
run_burst(struct bench_worker *w, unsigned int from)
{
	struct dp_burst *burst = &w->burst;
	const uint64_t now_ns = dp_now_ns();

	for (unsigned int i = 0; i < DP_BURST_MAX; i++) {
		burst->pkts[i] = w->pkts[from + i];
		burst->now_ns[i] = now_ns;
	}
	burst->n = DP_BURST_MAX;
	return dp_worker_burst(w->worker, burst);
}

/* As the loop of shuntd sends a burst by one port, which takes all of it. */
static void
send_burst(struct bench_worker *w, bool is_forwarded)
{
	struct dp_burst *burst = &w->burst;

	if (likely(is_forwarded)) {
		dp_worker_forwarded_burst(w->worker, burst, DP_BURST_MAX);
		return;
	}
	for (unsigned int i = 0; i < DP_BURST_MAX; i++)
		if (burst->decisions[i].verdict == LB_FORWARD)
			dp_worker_sent(w->worker, &burst->decisions[i]);
}

/* Buffers go back as vector drivers of NICs give them back once a burst has been sent. */
static void
free_burst(struct bench_worker *w)
{
	struct rte_mbuf *unused[DP_BURST_MAX];
	unsigned int n = 0;

	for (unsigned int i = 0; i < DP_BURST_MAX; i++) {
		struct rte_mbuf *m = rte_pktmbuf_prefree_seg(w->burst.pkts[i]);

		if (likely(m != NULL && m->pool == w->pool))
			unused[n++] = m;
		else if (m != NULL)
			rte_mempool_put(m->pool, m);
	}
	rte_mempool_put_bulk(w->pool, (void **)unused, n);
}

static void
end_burst(struct bench_worker *w)
{
	free_burst(w);
	dp_worker_polled(w->worker, DP_BURST_MAX);
	dp_worker_quiescent(w->worker, w->burst.now_ns[0]);
}

static void
run_pipeline(struct bench_worker *w)
{
	for (unsigned int from = 0; from < BENCH_WINDOW_PACKETS; from += DP_BURST_MAX) {
		send_burst(w, run_burst(w, from));
		end_burst(w);
	}
}

static void
release(struct bench_worker *w)
{
	rte_pktmbuf_free_bulk(w->pkts, BENCH_WINDOW_PACKETS);
	dp_worker_quiescent(w->worker, dp_now_ns());
}

static uint64_t
count_new_flows(const struct bench_worker *w)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->plane->n_ids; i++)
		n += w->worker->backend_flows[i];
	return n;
}

/* So many flows, of each n packets in a row. */
static void
run_untimed(struct bench_worker *w, uint64_t n_flows, unsigned int n, uint32_t new_pct)
{
	for (uint64_t done = 0; done < n_flows; done += BENCH_WINDOW_PACKETS / n) {
		generate_runs(w, &w->order, n, new_pct);
		run_pipeline(w);
	}
}

/* Until the table is full, but for what chance leaves empty. */
static void
flood(struct bench_worker *w, uint32_t new_pct)
{
	const uint32_t n_entries = w->plane->c->flow_entries;
	struct lb_flow_table_stats stats = {.live = 0};

	for (unsigned int i = 0; i < FLOOD_TURNS && stats.live < FULL_SHARE * n_entries; i++) {
		run_untimed(w, n_entries, 1, new_pct);
		lb_flow_table_stats(w->worker->flows, &stats);
	}
}

/*
 * Until all flows are known. A flow's second packet confirms it, and comes right after the
 * first: apart, flows that are all unconfirmed would have each other's place again and again.
 */
static void
warm_up(struct bench_worker *w)
{
	uint64_t n_before;
	unsigned int n_turns = 0;

	do {
		n_before = count_new_flows(w);
		run_untimed(w, w->order.n, 2, 0);
		n_turns++;
	} while (count_new_flows(w) != n_before && n_turns < WARM_TURNS_MAX);
}

/* What one slice took, of a kind. */
static uint64_t
time_generator(struct bench_worker *w)
{
	uint64_t took = 0;

	for (unsigned int i = 0; i < SLICE_WINDOWS; i++) {
		const uint64_t begun = thread_ns();

		generate(w, &w->alone);
		took += thread_ns() - begun;
		release(w);
	}
	return took;
}

static uint64_t
time_pipeline(struct bench_worker *w)
{
	uint64_t took = 0;

	for (unsigned int i = 0; i < SLICE_WINDOWS; i++) {
		const uint64_t begun = thread_ns();

		generate(w, &w->order);
		run_pipeline(w);
		took += thread_ns() - begun;
	}
	return took;
}

static uint64_t
time_stage(struct bench_worker *w, struct bench_order *order, enum bench_stage stage)
{
	const enum bench_stage wanted = w->plane->c->stage;
	struct bench_stages *s = &w->stages;
	uint64_t took = 0;

	for (unsigned int i = 0; i < SLICE_WINDOWS; i++) {
		uint64_t begun;

		generate(w, order);
		s->now_ns = dp_now_ns();
		bench_stage_prepare(s, wanted);
		begun = thread_ns();
		bench_stage_run(s, stage);
		took += thread_ns() - begun;
		if (!bench_stage_is_right(s, stage))
			(void)snprintf(w->wrong, sizeof(w->wrong),
				"stage %s did not do its work on each packet",
				bench_stage_words[stage]);
		release(w);
	}
	return took;
}

static void
time_round(struct bench_worker *w, unsigned int round)
{
	const struct bench_case *c = w->plane->c;
	const uint64_t until_ns =
		dp_now_ns() + (uint64_t)(c->options->seconds * 1e9 / BENCH_ROUNDS);
	uint64_t alone_ns = 0;
	int64_t ns = 0;
	uint64_t n_slices = 0;
	double n_packets;

	/* At least one slice each, however short the time. */
	do {
		const uint64_t generator_ns = time_generator(w);

		alone_ns += generator_ns;
		/* Differences of both have the same cost of taking the time in them. */
		if (c->stage == BENCH_NO_STAGE)
			ns += (int64_t)(time_pipeline(w) - generator_ns);
		else
			ns += (int64_t)(time_stage(w, &w->order, c->stage) -
					time_stage(w, &w->alone, BENCH_NO_STAGE));
		n_slices++;
	} while (dp_now_ns() < until_ns);
	n_packets = (double)n_slices * SLICE_WINDOWS * BENCH_WINDOW_PACKETS;
	w->n_packets += (uint64_t)n_packets;
	w->ns[round] = (double)ns / n_packets;
	w->generator_ns[round] =
		(double)alone_ns / n_packets - w->clock_ns / BENCH_WINDOW_PACKETS;
}

/* Workers wait for one another, so that all are timed while all are at work. */
static void
meet(struct bench_worker *w)
{
	dp_worker_offline(w->worker);
	atomic_fetch_add(&w->gate->n_warm, 1);
	while (atomic_load(&w->gate->n_warm) < w->gate->n_workers)
		(void)sched_yield();
	dp_worker_online(w->worker);
}

static const char *
check_packet(const struct bench_worker *w, unsigned int from, unsigned int i, bool is_forwarded)
{
	const struct bench_case *c = w->plane->c;
	const struct dp_decision *d = &w->burst.decisions[i];
	const struct rte_mbuf *m = w->burst.pkts[i];
	const uint64_t flow = w->flows[from + i];
	const uint32_t place = bench_plane_place(w->plane, d->backend);
	uint8_t received[BENCH_FRAME_BYTES_MAX];
	const struct bench_sample sample = {
		.family = c->family,
		.forward = c->forward,
		.own = bench_own_addr(c->family),
		.backend = bench_backend_addr(c->family, place),
		.next_hop = bench_next_hop,
		.port = bench_port_mac,
		.received = received,
		.received_bytes = w->traffic.frame_bytes,
		.sent = rte_pktmbuf_mtod(m, const uint8_t *),
		.sent_bytes = m->data_len,
	};

	if (!is_forwarded && d->verdict != LB_FORWARD)
		return "it was not forwarded";
	if (place / c->options->n_backends != bench_traffic_service(&w->traffic, flow))
		return "its backend is not of its service";
	if (m->nb_segs != 1 || m->pkt_len != m->data_len)
		return "it is not in one piece";
	bench_traffic_write(w->is_new[from + i] ? &w->beginning : &w->traffic, flow,
		w->seq - BENCH_WINDOW_PACKETS + from + i, received);
	return bench_check(&sample);
}

/* One window more, each packet looked at. */
static void
check(struct bench_worker *w)
{
	generate(w, &w->order);
	for (unsigned int from = 0; from < BENCH_WINDOW_PACKETS; from += DP_BURST_MAX) {
		const bool is_forwarded = run_burst(w, from);

		send_burst(w, is_forwarded);
		for (unsigned int i = 0; i < DP_BURST_MAX; i++) {
			const char *wrong = check_packet(w, from, i, is_forwarded);

			if (wrong != NULL)
				(void)snprintf(w->wrong, sizeof(w->wrong),
					"a packet did not come out right: %s", wrong);
			w->n_checked++;
		}
		end_burst(w);
	}
}

int
bench_worker_run(void *argument)
{
	struct bench_worker *w = argument;
	struct lb_flow_table_stats stats;
	uint64_t n_forwarded;
	uint64_t n_new_flows;

	dp_worker_online(w->worker);
	w->clock_ns = calibrate();
	if (w->plane->c->options->is_syn)
		flood(w, 0);
	else
		warm_up(w);
	if (w->plane->c->options->new_pct > 0)
		flood(w, 100);
	w->stages.worker = w->worker;
	/* Where there are stages nothing else is put in force. */
	w->stages.snapshot = atomic_load_explicit(w->worker->current, memory_order_acquire);
	w->stages.pkts = w->pkts;
	n_forwarded = w->worker->verdict_pkts[LB_FORWARD];
	n_new_flows = count_new_flows(w);
	meet(w);
	for (unsigned int i = 0; i < BENCH_ROUNDS; i++)
		time_round(w, i);
	w->n_forwarded = w->worker->verdict_pkts[LB_FORWARD] - n_forwarded;
	w->n_new_flows = count_new_flows(w) - n_new_flows;
	lb_flow_table_stats(w->worker->flows, &stats);
	w->n_live = stats.live;
	check(w);
	dp_worker_offline(w->worker);
	atomic_fetch_add(&w->gate->n_done, 1);
	return 0;
}
