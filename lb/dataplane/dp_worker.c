/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_worker.h"

#include <errno.h>

#include "dp_datagram.h"
#include "dp_forward.h"
#include "dp_memory.h"
#include "lb_hash.h"
#include "lb_limits.h"

#define BACKENDS_BYTES      (LB_BACKEND_IDS_MAX * sizeof(struct dp_worker_backend))
#define BACKEND_FLOWS_BYTES (LB_BACKEND_IDS_MAX * sizeof(uint64_t))

/* Sources are told apart by as many buckets; more of them share. */
#define REPLY_BUCKETS 4096u

static int
create_flows(struct dp_worker *worker, const struct dp_conf *conf, uint64_t now_ns)
{
	int ret;

	worker->flows_bytes = lb_flow_table_bytes(conf->flows.n_entries);
	if (worker->flows_bytes == 0)
		return -EINVAL;
	worker->flows_mem = dp_memory_zalloc(worker->flows_bytes);
	if (worker->flows_mem == NULL)
		return -ENOMEM;
	ret = lb_flow_table_init(worker->flows_mem, &conf->flows, now_ns, &worker->flows);
	if (ret != 0 || !conf->keeps_flow_keys)
		return ret;
	worker->keys_bytes =
		lb_flow_table_entries(conf->flows.n_entries) * sizeof(struct lb_flow_key);
	worker->keys_mem = dp_memory_zalloc(worker->keys_bytes);
	if (worker->keys_mem == NULL)
		return -ENOMEM;
	lb_flow_keep_keys(worker->flows, worker->keys_mem);
	return 0;
}

/* A second's worth at once. */
static struct lb_rate_limit
limit(uint32_t per_s)
{
	return (struct lb_rate_limit){
		.per_s = per_s,
		.burst = per_s < LB_RATE_BURST_MAX ? per_s : LB_RATE_BURST_MAX,
	};
}

static int
create_replies(struct dp_worker *worker, const struct dp_conf *conf, uint64_t now_ns)
{
	const struct lb_rate_conf rate = {
		.n_buckets = REPLY_BUCKETS,
		.source = limit(conf->replies_per_s_source),
		.total = limit(conf->replies_per_s),
		.secret = conf->secret[0],
	};

	worker->replies_bytes = lb_rate_bytes(&rate);
	worker->replies_mem = dp_memory_zalloc(worker->replies_bytes);
	if (worker->replies_mem == NULL)
		return -ENOMEM;
	return lb_rate_init(worker->replies_mem, &rate, now_ns, &worker->replies);
}

/* What is made is the worker's, also on error. */
static int
fill_worker(struct dp_worker *worker, const struct dp_conf *conf, struct lb_rate *replies,
	uint64_t now_ns)
{
	int ret = create_flows(worker, conf, now_ns);

	worker->replies = replies;
	if (ret == 0 && replies == NULL)
		ret = create_replies(worker, conf, now_ns);
	if (ret == 0)
		ret = dp_fragments_init(&worker->fragments, conf);
	if (ret != 0)
		return ret;
	/* For all ids there can be: what no backend has is never touched, and takes no page. */
	worker->backends = dp_memory_zalloc(BACKENDS_BYTES);
	worker->backend_flows = dp_memory_zalloc(BACKEND_FLOWS_BYTES);
	return worker->backends == NULL || worker->backend_flows == NULL ? -ENOMEM : 0;
}

static void
free_worker(struct dp_worker *worker)
{
	dp_memory_free(worker->backend_flows, BACKEND_FLOWS_BYTES);
	dp_memory_free(worker->backends, BACKENDS_BYTES);
	dp_fragments_fini(&worker->fragments);
	dp_memory_free(worker->replies_mem, worker->replies_bytes);
	dp_memory_free(worker->keys_mem, worker->keys_bytes);
	dp_memory_free(worker->flows_mem, worker->flows_bytes);
	dp_memory_free(worker, sizeof(*worker));
}

/*
 * Nobody is to know where a worker's ids begin (RFC 7739), nor do they begin after a restart
 * where they did before. The index is in their low bits, so that no two workers share one.
 */
static uint32_t
first_id(const struct dp_conf *conf, unsigned int index)
{
	/* Ids are on the wire: none is of a seed that words of flows' hashes are drawn with. */
	const uint64_t hash =
		lb_hash_bytes(conf->secret, sizeof(conf->secret), ~(uint64_t)index);

	return ((uint32_t)hash & ~(rte_align32pow2(conf->n_workers) - 1)) | index;
}

int
dp_worker_create(const struct dp_conf *conf, const struct dp_shared *shared, uint64_t now_ns,
	unsigned int index, struct dp_worker **out)
{
	struct dp_worker *worker = dp_memory_zalloc(sizeof(*worker));
	int ret;

	if (worker == NULL)
		return -ENOMEM;
	ret = fill_worker(worker, conf, shared->replies, now_ns);
	if (ret == 0 && rte_rcu_qsbr_thread_register(shared->qsbr, index) != 0)
		ret = -ENOSPC;
	if (ret != 0) {
		free_worker(worker);
		return ret;
	}
	worker->qsbr = shared->qsbr;
	worker->current = shared->current;
	worker->trace = shared->trace;
	worker->spare = shared->spare;
	worker->mail = shared->mail;
	worker->probes = shared->probes;
	worker->n_workers = conf->n_workers;
	worker->index = index;
	worker->next_id = first_id(conf, index);
	lb_hash_key(&worker->keyed, conf->secret);

	*out = worker;
	return 0;
}

void
dp_worker_destroy(struct dp_worker *worker)
{
	if (worker == NULL)
		return;
	/* Fails only for an index out of range, which create() has refused. */
	(void)rte_rcu_qsbr_thread_unregister(worker->qsbr, worker->index);
	dp_ask_fini(&worker->ask);
	free_worker(worker);
}

void
dp_worker_online(struct dp_worker *worker)
{
	rte_rcu_qsbr_thread_online(worker->qsbr, worker->index);
}

void
dp_worker_offline(struct dp_worker *worker)
{
	rte_rcu_qsbr_thread_offline(worker->qsbr, worker->index);
}

/* Acquire: pairs with the exchange in dp_publish(), so that all of it is seen. */
static const struct dp_snapshot *
load_snapshot(const struct dp_worker *worker)
{
	return atomic_load_explicit(worker->current, memory_order_acquire);
}

bool
dp_worker_burst(struct dp_worker *worker, struct dp_burst *burst)
{
	burst->settled.first = NULL;
	if (likely(dp_forward_burst(worker, load_snapshot(worker), burst) == burst->n))
		return true;
	for (uint16_t i = 0; i < burst->n; i++) {
		const struct dp_decision *d = &burst->decisions[i];

		if (unlikely(d->verdict > LB_TO_KERNEL && d->verdict < LB_N_VERDICTS))
			dp_count(&worker->verdict_pkts[d->verdict], 1);
	}
	return false;
}

unsigned int
dp_worker_hear(struct dp_worker *worker, struct dp_burst *burst, uint64_t now_ns)
{
	struct dp_first firsts[DP_BURST_MAX];
	unsigned int n;

	burst->settled.first = NULL;
	dp_fragments_expire(worker, now_ns, &burst->settled);
	if (worker->mail == NULL)
		return 0;
	n = rte_ring_dequeue_burst_elem(worker->mail[worker->index].firsts, firsts,
		sizeof(firsts[0]), DP_BURST_MAX, NULL);
	for (unsigned int i = 0; i < n; i++)
		dp_datagram_come_home(worker, load_snapshot(worker), &firsts[i], now_ns,
			&burst->settled);
	return n;
}

unsigned int
dp_worker_probe(const struct dp_worker *worker, struct dp_burst *burst)
{
	burst->settled.first = NULL;
	if (likely(!dp_probes_are_asked(worker->probes)))
		return 0;
	return dp_probes_send(worker, load_snapshot(worker), &burst->settled);
}

void
dp_worker_abandon(struct dp_worker *worker, struct dp_burst *burst)
{
	burst->settled.first = NULL;
	dp_fragments_abandon(worker, &burst->settled);
}

void
dp_worker_quiescent(struct dp_worker *worker, uint64_t now_ns)
{
	lb_flow_table_expire(worker->flows, now_ns);
	rte_rcu_qsbr_quiescent(worker->qsbr, worker->index);
}
