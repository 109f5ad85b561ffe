/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mempool.h>

#include "dp_handoff.h"
#include "dp_mbuf.h"
#include "dp_plane.h"

/* A usual frame fits one small buffer; whatever is longer goes into large ones. */
#define SMALL_BYTES     2048u
#define LARGE_BYTES     65280u /* the room of a buffer is 16 bits wide */
#define LARGE_PER_FRAME ((DP_FRAME_BYTES_MAX + LARGE_BYTES - 1) / LARGE_BYTES)

struct dp_batch {
	struct dp *dp;
	struct rte_mempool *small;
	/* To touch all buffers takes as long as a short replay: NULL until a frame needs one.
	 */
	struct rte_mempool *waiting; /* where fragments wait in small */
	struct rte_mempool *large;
	uint64_t n_added; /* all frames there were: the next one's number */
	bool has_run;     /* what burst holds is results, not frames to run */
	struct dp_burst burst;
	uint64_t cookies[DP_BURST_MAX];
	struct dp_burst part; /* one worker's share */
	uint8_t owners[DP_BURST_MAX];
	bool is_alone[DP_BURST_MAX]; /* needs_order() */

	/* Results: those of the burst in its order, after each what has_more; then settled. */
	struct dp_chain settled;
	uint16_t n_run;                   /* of the burst: the rest as results are taken */
	uint16_t n_given;                 /* of the burst */
	struct dp_chain after;            /* of the one given last, and still to be given */
	struct rte_mbuf *held;            /* given last, and to be freed */
	uint8_t flat[DP_FRAME_BYTES_MAX]; /* a frame of several segments, in one piece */
};

static int
create_pool(const struct dp_batch *batch, const char *kind, unsigned int n,
	uint32_t frame_bytes, struct rte_mempool **out)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	/* Names are the whole process': a batch's address is nobody else's. */
	(void)snprintf(name, sizeof(name), "%s_%p", kind, (const void *)batch);
	/* By the cache those come again that were used last, however many there are to wait. */
	*out = rte_pktmbuf_pool_create(name, n, DP_BURST_MAX, DP_BESIDE_BYTES,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + frame_bytes), SOCKET_ID_ANY);
	return *out == NULL ? -rte_errno : 0;
}

int
dp_batch_create(struct dp *dp, struct dp_batch **out)
{
	struct dp_batch *batch = calloc(1, sizeof(*batch));
	int ret;

	if (batch == NULL)
		return -ENOMEM;
	batch->dp = dp;
	batch->burst.is_cut = true;
	batch->part.is_cut = true;

	/* A pool is larger than its cache by half of that. */
	ret = create_pool(batch, "small", 2 * DP_BURST_MAX, SMALL_BYTES, &batch->small);
	if (ret != 0) {
		free(batch);
		return ret;
	}
	*out = batch;
	return 0;
}

/* Free what nobody has asked for. */
static void
clear(struct dp_batch *batch)
{
	struct dp_result ignored;

	if (!batch->has_run)
		for (uint16_t i = 0; i < batch->burst.n; i++)
			rte_pktmbuf_free(batch->burst.pkts[i]);
	else
		while (dp_batch_next(batch, &ignored)) {
		}
	batch->burst.n = 0;
	batch->n_run = 0;
	batch->n_given = 0;
	batch->has_run = false;
}

/* Beside a batch, what waits in either kind: its bytes are bounded. */
static struct rte_mbuf *
alloc_large(struct dp_batch *batch)
{
	const uint64_t n_waiting = batch->dp->waiting_bytes / LARGE_BYTES;

	if (batch->large == NULL &&
		create_pool(batch, "large",
			DP_BURST_MAX * LARGE_PER_FRAME + (unsigned int)n_waiting, LARGE_BYTES,
			&batch->large) != 0)
		return NULL;
	return rte_pktmbuf_alloc(batch->large);
}

static struct rte_mbuf *
alloc_small(struct dp_batch *batch)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(batch->small);

	if (likely(m != NULL))
		return m;
	if (batch->waiting == NULL &&
		create_pool(batch, "waiting", RTE_MAX(batch->dp->n_waiting, 2 * DP_BURST_MAX),
			SMALL_BYTES, &batch->waiting) != 0)
		return NULL;
	return rte_pktmbuf_alloc(batch->waiting);
}

/* A frame as one mbuf, or a chain of large ones; NULL where the pool is short. */
static struct rte_mbuf *
copy_frame(struct dp_batch *batch, const uint8_t *bytes, uint32_t n_bytes)
{
	struct rte_mbuf *head =
		n_bytes <= SMALL_BYTES ? alloc_small(batch) : alloc_large(batch);
	struct rte_mbuf *last = head;
	uint32_t done = 0;

	while (last != NULL) {
		const uint32_t room = rte_pktmbuf_tailroom(last);
		const uint32_t n = n_bytes - done < room ? n_bytes - done : room;

		if (n > 0)
			memcpy(rte_pktmbuf_mtod(last, void *), bytes + done, n);
		last->data_len = (uint16_t)n;
		done += n;
		if (done == n_bytes)
			break;
		last->next = alloc_large(batch);
		last = last->next;
		head->nb_segs++;
	}
	if (last == NULL && head != NULL) {
		head->nb_segs--;
		rte_pktmbuf_free(head);
		return NULL;
	}
	if (head != NULL)
		head->pkt_len = n_bytes;
	return head;
}

int
dp_batch_add(struct dp_batch *batch, const uint8_t *bytes, uint32_t n_bytes,
	uint32_t wire_bytes, uint64_t now_ns, uint64_t cookie)
{
	struct dp_burst *burst = &batch->burst;
	struct rte_mbuf *m;

	if (batch->has_run)
		clear(batch);
	if (burst->n == DP_BURST_MAX)
		return -ENOBUFS;
	if (n_bytes > DP_FRAME_BYTES_MAX)
		return -EMSGSIZE;

	m = copy_frame(batch, bytes, n_bytes);
	if (m == NULL)
		return -ENOMEM;
	burst->pkts[burst->n] = m;
	burst->wire_bytes[burst->n] = wire_bytes;
	burst->now_ns[burst->n] = now_ns;
	batch->cookies[burst->n] = cookie;
	dp_beside(m)->now_ns = now_ns;
	dp_beside(m)->number = batch->n_added++;
	dp_beside(m)->cookie = cookie;
	burst->n++;
	return 0;
}

/* There is no queue to be full: what is to be sent, is. */
static void
count_sent(struct dp_worker *worker, const struct dp_decision *d)
{
	if (d->verdict <= LB_TO_KERNEL)
		dp_worker_sent(worker, d);
}

/* What has waited and is decided: after the packet that decided it, or for itself. */
static void
count_chain(struct dp_worker *worker, const struct dp_chain *chain)
{
	for (struct rte_mbuf *m = chain->first; m != NULL; m = dp_beside(m)->next)
		count_sent(worker, &dp_beside(m)->decision);
}

static void
take_settled(struct dp_batch *batch, struct dp_worker *worker, struct dp_burst *burst)
{
	struct rte_mbuf *m;

	count_chain(worker, &burst->settled);
	while ((m = dp_chain_take(&burst->settled)) != NULL)
		dp_chain_append(&batch->settled, m);
}

static void
run_worker(struct dp_batch *batch, struct dp_worker *worker, struct dp_burst *burst)
{
	dp_worker_online(worker);
	(void)dp_worker_burst(worker, burst);
	dp_worker_offline(worker);
	for (uint16_t i = 0; i < burst->n; i++) {
		const struct dp_decision *d = &burst->decisions[i];

		count_sent(worker, d);
		if (unlikely(d->has_more)) {
			const struct dp_chain more = {dp_beside(burst->pkts[i])->next, NULL};

			count_chain(worker, &more);
		}
	}
	take_settled(batch, worker, burst);
}

/* First fragments that a worker decided on get home; and time goes on. */
static void
take_in_firsts(struct dp_batch *batch, uint64_t now_ns)
{
	struct dp_burst *nothing = &batch->part;

	nothing->n = 0;
	for (unsigned int w = 0; w < batch->dp->n_workers; w++) {
		struct dp_worker *worker = batch->dp->workers[w];

		dp_worker_online(worker);
		(void)dp_worker_hear(worker, nothing, now_ns);
		dp_worker_offline(worker);
		take_settled(batch, worker, nothing);
	}
}

/* One worker's share of a range, in the order of the batch, and its results back in place. */
static void
run_share(struct dp_batch *batch, unsigned int worker, uint16_t from, uint16_t end)
{
	struct dp_burst *all = &batch->burst;
	struct dp_burst *part = &batch->part;
	uint16_t places[DP_BURST_MAX] = {0};

	part->n = 0;
	part->is_placed = true;
	for (uint16_t i = from; i < end; i++) {
		if (batch->owners[i] != worker)
			continue;
		part->pkts[part->n] = all->pkts[i];
		part->now_ns[part->n] = all->now_ns[i];
		part->wire_bytes[part->n] = all->wire_bytes[i];
		places[part->n++] = i;
	}
	if (part->n == 0)
		return;

	run_worker(batch, batch->dp->workers[worker], part);
	for (uint16_t i = 0; i < part->n; i++) {
		all->pkts[places[i]] = part->pkts[i];
		all->decisions[places[i]] = part->decisions[i];
	}
}

/* What another worker released leaves right after the packet that it waited for. */
static void
attach_settled(struct dp_batch *batch, uint16_t i)
{
	struct rte_mbuf *first = batch->burst.pkts[i];
	struct dp_decision *d = &batch->burst.decisions[i];
	struct dp_chain chain = {NULL, NULL};
	struct rte_mbuf *m;

	if (d->verdict > LB_TO_KERNEL || batch->settled.first == NULL)
		return;
	if (d->has_more)
		chain.first = dp_beside(first)->next;
	for (m = chain.first; m != NULL; m = dp_beside(m)->next)
		chain.last = m;
	while ((m = dp_chain_take(&batch->settled)) != NULL)
		dp_chain_append(&chain, m);
	dp_beside(first)->next = chain.first;
	d->has_more = true;
}

/* One that left by another worker than it was given to is in its place again. */
static void
take_back(struct dp_batch *batch, uint16_t i, uint64_t number)
{
	struct dp_burst *all = &batch->burst;
	struct dp_chain others = {NULL, NULL};
	struct rte_mbuf *m;

	while ((m = dp_chain_take(&batch->settled)) != NULL) {
		if (dp_beside(m)->number == number && all->decisions[i].verdict == DP_AWAY) {
			all->pkts[i] = m;
			all->decisions[i] = dp_beside(m)->decision;
		} else {
			dp_chain_append(&others, m);
		}
	}
	batch->settled = others;
}

/* The next packet by itself. */
static void
run_alone(struct dp_batch *batch)
{
	struct dp_burst *all = &batch->burst;
	struct dp_burst *part = &batch->part;
	const uint16_t i = batch->n_run++;
	const uint64_t number = dp_beside(all->pkts[i])->number;

	part->pkts[0] = all->pkts[i];
	part->now_ns[0] = all->now_ns[i];
	part->wire_bytes[0] = all->wire_bytes[i];
	part->n = 1;
	part->is_placed = true;
	run_worker(batch, batch->dp->workers[batch->owners[i]], part);
	all->pkts[i] = part->pkts[0];
	all->decisions[i] = part->decisions[0];
	take_in_firsts(batch, all->now_ns[i]);
	if (all->decisions[i].verdict == DP_AWAY)
		take_back(batch, i, number);
	attach_settled(batch, i);
}

/* The next packets before end at once, each worker its share. */
static void
run_shares(struct dp_batch *batch, uint16_t end)
{
	struct dp *dp = batch->dp;
	const uint16_t from = batch->n_run;

	batch->n_run = end;
	if (dp->n_workers == 1 && from == 0 && end == batch->burst.n) {
		batch->burst.is_placed = true;
		run_worker(batch, dp->workers[0], &batch->burst);
	} else {
		for (unsigned int w = 0; w < dp->n_workers; w++)
			run_share(batch, w, from, end);
	}
	take_in_firsts(batch, batch->burst.now_ns[end - 1]);
}

/*
 * Whatever the number of workers: a fragment that comes after its first finds it known;
 * replies, which all workers count together, are asked for in the order of time; and of those
 * that are cut no more are in pieces than one and what waited for it.
 */
static void
run_next(struct dp_batch *batch)
{
	uint16_t end = batch->n_run;

	while (end < batch->burst.n && !batch->is_alone[end])
		end++;
	if (end == batch->n_run)
		run_alone(batch);
	else
		run_shares(batch, end);
}

/* Whether what becomes of a packet may hang on others than its flow's. */
static bool
needs_order(const struct lb_packet *packet, uint32_t fits_bytes)
{
	return (packet->flags & (LB_PACKET_FRAGMENT | LB_PACKET_ECHO_REQUEST)) != 0 ||
	       packet->ip_bytes > fits_bytes;
}

void
dp_batch_run(struct dp_batch *batch)
{
	const struct dp *dp = batch->dp;
	/* Relaxed: who runs batches is also who publishes. */
	const struct dp_snapshot *snapshot =
		atomic_load_explicit(&dp->current, memory_order_relaxed);
	bool is_in_order = false;

	if (batch->has_run)
		clear(batch);
	batch->has_run = true;
	if (batch->burst.n == 0)
		return;

	for (uint16_t i = 0; i < batch->burst.n; i++) {
		struct lb_packet packet;

		batch->owners[i] = 0;
		batch->is_alone[i] = false;
		if (dp_mbuf_parse(batch->burst.pkts[i], batch->burst.wire_bytes[i], &packet) !=
			LB_FORWARD)
			continue;
		batch->owners[i] = (uint8_t)dp_handoff_owner(&packet, dp->n_workers);
		batch->is_alone[i] = needs_order(&packet, snapshot->fits_bytes);
		is_in_order |= batch->is_alone[i];
	}
	if (!is_in_order)
		run_shares(batch, batch->burst.n);
}

void
dp_batch_end(struct dp_batch *batch)
{
	clear(batch);
	batch->has_run = true;
	for (unsigned int w = 0; w < batch->dp->n_workers; w++) {
		dp_worker_abandon(batch->dp->workers[w], &batch->part);
		take_settled(batch, batch->dp->workers[w], &batch->part);
	}
}

void
dp_batch_destroy(struct dp_batch *batch)
{
	if (batch == NULL)
		return;
	dp_batch_end(batch); /* what waits is of its pools */
	clear(batch);
	rte_mempool_free(batch->large);
	rte_mempool_free(batch->waiting);
	rte_mempool_free(batch->small);
	free(batch);
}

unsigned int
dp_batch_count(const struct dp_batch *batch)
{
	return batch->burst.n;
}

static void
read_frame(struct dp_batch *batch, const struct rte_mbuf *m, struct dp_result *out)
{
	out->n_bytes = m->pkt_len;
	/* A frame in one segment is where it is; no read is longer than what flat has. */
	out->bytes = rte_pktmbuf_read(m, 0, m->pkt_len, batch->flat);
}

/* One of a chain: a packet that waited, or one more frame of the packet before it. */
static void
read_chained(struct dp_batch *batch, struct rte_mbuf *m, struct dp_result *out)
{
	const struct dp_beside *beside = dp_beside(m);
	const struct dp_decision *d = &beside->decision;

	*out = (struct dp_result){.number = beside->number,
		.now_ns = beside->now_ns,
		.cookie = beside->cookie,
		.decision = d->verdict == DP_PIECE ? NULL : d};
	if (d->verdict <= LB_REPLY || d->verdict == DP_PIECE)
		read_frame(batch, m, out);
	batch->held = m;
}

/* The next of the burst that is still here. */
static bool
read_burst(struct dp_batch *batch, struct dp_result *out)
{
	struct dp_burst *burst = &batch->burst;

	while (batch->n_given < burst->n) {
		const uint16_t i = batch->n_given++;
		const struct dp_decision *d = &burst->decisions[i];

		if (i == batch->n_run)
			run_next(batch);
		if (d->verdict == DP_AWAY)
			continue;
		*out = (struct dp_result){.number = dp_beside(burst->pkts[i])->number,
			.now_ns = burst->now_ns[i],
			.cookie = batch->cookies[i],
			.decision = d};
		if (d->verdict <= LB_REPLY)
			read_frame(batch, burst->pkts[i], out);
		if (d->has_more)
			batch->after.first = dp_beside(burst->pkts[i])->next;
		batch->held = burst->pkts[i];
		return true;
	}
	return false;
}

bool
dp_batch_next(struct dp_batch *batch, struct dp_result *out)
{
	struct rte_mbuf *m;

	rte_pktmbuf_free(batch->held);
	batch->held = NULL;
	if (!batch->has_run)
		return false;
	m = dp_chain_take(&batch->after);
	if (m != NULL) {
		read_chained(batch, m, out);
		return true;
	}
	if (read_burst(batch, out))
		return true;
	m = dp_chain_take(&batch->settled);
	if (m == NULL)
		return false;
	read_chained(batch, m, out);
	return true;
}
