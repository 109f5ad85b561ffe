/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_plane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dp_memory.h"

/* Between two looks at whether all workers have let go of a snapshot. */
#define GRACE_NAP_NS 10000

static int
create_workers(struct dp *dp, const struct dp_conf *conf, uint64_t now_ns)
{
	for (unsigned int i = 0; i < conf->n_workers; i++) {
		const int ret = dp_worker_create(conf, now_ns, i, dp->qsbr, &dp->current,
			&dp->workers[i]);

		if (ret != 0)
			return ret;
		dp->n_workers++;
	}
	return 0;
}

static size_t
qsbr_bytes(unsigned int n_workers)
{
	return rte_rcu_qsbr_get_memsize(n_workers);
}

int
dp_create(const struct dp_conf *conf, uint64_t now_ns, struct dp **out)
{
	const struct dp_snapshot_conf nothing = {.has_kernel = true};
	struct dp_snapshot *empty;
	struct dp *dp;
	int ret = -ENOMEM;

	if (conf->n_workers == 0 || conf->n_workers > DP_WORKERS_MAX)
		return -EINVAL;

	dp = calloc(1, sizeof(*dp));
	if (dp == NULL)
		return -ENOMEM;

	dp->qsbr = dp_memory_zalloc(qsbr_bytes(conf->n_workers));
	if (dp->qsbr == NULL)
		goto free_dp;
	/* Fails only for no memory or no threads, both looked at above. */
	(void)rte_rcu_qsbr_init(dp->qsbr, conf->n_workers);

	ret = dp_snapshot_create(&nothing, &empty);
	if (ret != 0)
		goto free_qsbr;
	atomic_store_explicit(&dp->current, empty, memory_order_release);

	ret = create_workers(dp, conf, now_ns);
	if (ret != 0)
		goto free_workers;

	*out = dp;
	return 0;

free_workers:
	for (unsigned int i = 0; i < dp->n_workers; i++)
		dp_worker_destroy(dp->workers[i]);
	dp_snapshot_destroy(empty);
free_qsbr:
	dp_memory_free(dp->qsbr, qsbr_bytes(conf->n_workers));
free_dp:
	free(dp);
	return ret;
}

void
dp_destroy(struct dp *dp)
{
	if (dp == NULL)
		return;
	for (unsigned int i = 0; i < dp->n_workers; i++)
		dp_worker_destroy(dp->workers[i]);
	dp_snapshot_destroy(atomic_load_explicit(&dp->current, memory_order_relaxed));
	dp_memory_free(dp->qsbr, qsbr_bytes(dp->n_workers));
	free(dp);
}

void
dp_publish(struct dp *dp, struct dp_snapshot *next)
{
	static const struct timespec nap = {.tv_nsec = GRACE_NAP_NS};
	/* Release: pairs with the acquire in dp_worker_burst(); all of next is seen there. */
	struct dp_snapshot *old =
		atomic_exchange_explicit(&dp->current, next, memory_order_acq_rel);
	const uint64_t token = rte_rcu_qsbr_start(dp->qsbr);

	/* Not spinning: a worker may be waiting for this very CPU. */
	/* The check's acquire pairs with the release of each worker's quiescent report. */
	while (rte_rcu_qsbr_check(dp->qsbr, token, false) == 0)
		(void)nanosleep(&nap, NULL);
	dp_snapshot_destroy(old);
}

void
dp_read_verdicts(const struct dp *dp, uint64_t counts[static LB_N_VERDICTS])
{
	memset(counts, 0, LB_N_VERDICTS * sizeof(counts[0]));
	for (unsigned int w = 0; w < dp->n_workers; w++)
		for (unsigned int v = 0; v < LB_N_VERDICTS; v++)
			counts[v] += __atomic_load_n(&dp->workers[w]->verdict_pkts[v],
				__ATOMIC_RELAXED);
}
