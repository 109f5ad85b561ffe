/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_worker.h"

#include <errno.h>

#include "dp_forward.h"
#include "dp_memory.h"
#include "lb_limits.h"

#define BACKENDS_BYTES (LB_BACKEND_IDS_MAX * sizeof(struct dp_backend_counts))

int
dp_worker_create(const struct dp_conf *conf, uint64_t now_ns, unsigned int index,
	struct rte_rcu_qsbr *qsbr, const dp_snapshot_ref *current, struct dp_worker **out)
{
	const size_t flows_bytes = lb_flow_table_bytes(conf->flows.n_entries);
	struct dp_worker *worker;
	int ret;

	if (flows_bytes == 0)
		return -EINVAL;

	worker = dp_memory_zalloc(sizeof(*worker));
	if (worker == NULL)
		return -ENOMEM;

	worker->flows_bytes = flows_bytes;
	worker->flows_mem = dp_memory_zalloc(flows_bytes);
	if (worker->flows_mem == NULL) {
		ret = -ENOMEM;
		goto free_worker;
	}
	ret = lb_flow_table_init(worker->flows_mem, &conf->flows, now_ns, &worker->flows);
	if (ret != 0)
		goto free_flows;

	/* For all ids there can be: what no backend has is never touched, and takes no page. */
	worker->backends = dp_memory_zalloc(BACKENDS_BYTES);
	if (worker->backends == NULL) {
		ret = -ENOMEM;
		goto free_flows;
	}
	if (rte_rcu_qsbr_thread_register(qsbr, index) != 0) {
		ret = -ENOSPC;
		goto free_backends;
	}
	worker->qsbr = qsbr;
	worker->index = index;
	worker->flow_seed = conf->flow_seed;
	worker->current = current;

	*out = worker;
	return 0;

free_backends:
	dp_memory_free(worker->backends, BACKENDS_BYTES);
free_flows:
	dp_memory_free(worker->flows_mem, flows_bytes);
free_worker:
	dp_memory_free(worker, sizeof(*worker));
	return ret;
}

void
dp_worker_destroy(struct dp_worker *worker)
{
	if (worker == NULL)
		return;
	/* Fails only for an index out of range, which create() has refused. */
	(void)rte_rcu_qsbr_thread_unregister(worker->qsbr, worker->index);
	dp_ask_fini(&worker->ask);
	dp_memory_free(worker->backends, BACKENDS_BYTES);
	dp_memory_free(worker->flows_mem, worker->flows_bytes);
	dp_memory_free(worker, sizeof(*worker));
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

void
dp_worker_burst(struct dp_worker *worker, struct dp_burst *burst)
{
	/* Acquire: pairs with the exchange in dp_publish(), so that all of it is seen. */
	const struct dp_snapshot *snapshot =
		atomic_load_explicit(worker->current, memory_order_acquire);

	dp_forward_burst(worker->flows, worker->flow_seed, snapshot, burst);

	for (uint16_t i = 0; i < burst->n; i++) {
		const struct dp_decision *d = &burst->decisions[i];

		if (unlikely(d->verdict > LB_TO_KERNEL))
			dp_count(&worker->verdict_pkts[d->verdict], 1);
		if (unlikely(d->is_new_flow))
			dp_count(&worker->backends[d->backend].flows, 1);
	}
}

void
dp_worker_quiescent(struct dp_worker *worker, uint64_t now_ns)
{
	lb_flow_table_expire(worker->flows, now_ns);
	rte_rcu_qsbr_quiescent(worker->qsbr, worker->index);
}
