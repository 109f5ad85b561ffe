/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mempool.h>

#include "dp_handoff.h"
#include "dp_plane.h"

/* A usual frame fits one small buffer; whatever is longer goes into large ones. */
#define SMALL_BYTES     2048u
#define LARGE_BYTES     65280u /* the room of a buffer is 16 bits wide */
#define LARGE_PER_FRAME ((DP_FRAME_BYTES_MAX + LARGE_BYTES - 1) / LARGE_BYTES)

struct dp_batch {
	struct dp *dp;
	struct rte_mempool *small;
	struct rte_mempool *large;
	bool has_run; /* what burst holds is results, not frames to run */
	struct dp_burst burst;
	struct dp_burst part; /* one worker's share */
};

static int
create_pool(const struct dp_batch *batch, const char *kind, unsigned int n,
	uint32_t frame_bytes, struct rte_mempool **out)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	/* Names are the whole process': a batch's address is nobody else's. */
	(void)snprintf(name, sizeof(name), "%s_%p", kind, (const void *)batch);
	/* No per-core cache: one thread takes and gives back a batch at a time. */
	*out = rte_pktmbuf_pool_create(name, n, 0, 0,
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

	ret = create_pool(batch, "small", DP_BURST_MAX, SMALL_BYTES, &batch->small);
	if (ret != 0)
		goto free_batch;
	ret = create_pool(batch, "large", DP_BURST_MAX * LARGE_PER_FRAME, LARGE_BYTES,
		&batch->large);
	if (ret != 0)
		goto free_small;

	*out = batch;
	return 0;

free_small:
	rte_mempool_free(batch->small);
free_batch:
	free(batch);
	return ret;
}

static void
clear(struct dp_batch *batch)
{
	for (uint16_t i = 0; i < batch->burst.n; i++)
		rte_pktmbuf_free(batch->burst.pkts[i]);
	batch->burst.n = 0;
	batch->has_run = false;
}

void
dp_batch_destroy(struct dp_batch *batch)
{
	if (batch == NULL)
		return;
	clear(batch);
	rte_mempool_free(batch->large);
	rte_mempool_free(batch->small);
	free(batch);
}

/* A frame as one mbuf, or a chain of large ones; NULL where the pool is short. */
static struct rte_mbuf *
copy_frame(struct dp_batch *batch, const uint8_t *bytes, uint32_t n_bytes)
{
	struct rte_mempool *pool = n_bytes <= SMALL_BYTES ? batch->small : batch->large;
	struct rte_mbuf *head = rte_pktmbuf_alloc(pool);
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
		last->next = rte_pktmbuf_alloc(pool);
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
	uint32_t wire_bytes, uint64_t now_ns)
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
	burst->n++;
	return 0;
}

static void
run_worker(struct dp_worker *worker, struct dp_burst *burst)
{
	dp_worker_online(worker);
	dp_worker_burst(worker, burst);
	dp_worker_offline(worker);
	/* There is no queue to be full: what is to be sent, is. */
	for (uint16_t i = 0; i < burst->n; i++)
		if (burst->decisions[i].verdict <= LB_TO_KERNEL)
			dp_worker_sent(worker, &burst->decisions[i]);
}

/* One worker's share, in the order of the batch, and its results back in place. */
static void
run_share(struct dp_batch *batch, const uint8_t owners[], unsigned int worker)
{
	struct dp_burst *all = &batch->burst;
	struct dp_burst *part = &batch->part;
	uint16_t places[DP_BURST_MAX] = {0};

	part->n = 0;
	for (uint16_t i = 0; i < all->n; i++) {
		if (owners[i] != worker)
			continue;
		part->pkts[part->n] = all->pkts[i];
		part->now_ns[part->n] = all->now_ns[i];
		part->wire_bytes[part->n] = all->wire_bytes[i];
		places[part->n++] = i;
	}
	if (part->n == 0)
		return;

	run_worker(batch->dp->workers[worker], part);
	for (uint16_t i = 0; i < part->n; i++)
		all->decisions[places[i]] = part->decisions[i];
}

void
dp_batch_run(struct dp_batch *batch)
{
	struct dp *dp = batch->dp;
	uint8_t owners[DP_BURST_MAX] = {0};

	if (batch->has_run)
		clear(batch);
	batch->has_run = true;

	if (dp->n_workers == 1) {
		run_worker(dp->workers[0], &batch->burst);
		return;
	}
	for (uint16_t i = 0; i < batch->burst.n; i++)
		owners[i] = (uint8_t)dp_handoff_owner(batch->burst.pkts[i],
			batch->burst.wire_bytes[i], dp->n_workers);
	for (unsigned int w = 0; w < dp->n_workers; w++)
		run_share(batch, owners, w);
}

unsigned int
dp_batch_count(const struct dp_batch *batch)
{
	return batch->burst.n;
}

const struct dp_decision *
dp_batch_decision(const struct dp_batch *batch, unsigned int i)
{
	return &batch->burst.decisions[i];
}

const uint8_t *
dp_batch_output(const struct dp_batch *batch, unsigned int i, uint32_t *n_bytes)
{
	const struct rte_mbuf *m = batch->burst.pkts[i];

	if (batch->burst.decisions[i].verdict > LB_REPLY)
		return NULL;
	/* A frame within an MTU is one segment of either pool. */
	*n_bytes = m->data_len;
	return rte_pktmbuf_mtod(m, const uint8_t *);
}
