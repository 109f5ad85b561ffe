/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_plane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_errno.h>

#include "dp_memory.h"

/* Between two looks at whether all workers have let go of a snapshot. */
#define GRACE_NAP_NS 10000

/* Pieces of packets on their way, all workers'. */
#define PIECES 2048u
/* Room for Ethernet and two tags before an IP packet of the MTU, and to spare. */
#define FRAME_OVER_MTU 32u
/* Buffers that a core keeps at hand. */
#define SPARE_CACHE 64u

static uint32_t
or_default(uint32_t wanted, uint32_t otherwise)
{
	return wanted != 0 ? wanted : otherwise;
}

/*
 * Each worker's, for none can see what the others have answered. That is so of all answers
 * together; what asks for those to one source comes to one worker, or to few: a share would be
 * all that a source has.
 */
static uint32_t
share(uint32_t total, const struct dp_conf *conf)
{
	return conf->is_one_thread ? total : RTE_MAX(total / conf->n_workers, 1u);
}

/* As a worker takes it. */
static struct dp_conf
fill_in(const struct dp_conf *conf)
{
	struct dp_conf full = *conf;

	full.mtu_max = (uint16_t)or_default(conf->mtu_max, DP_MTU_DEFAULT);
	full.n_datagrams = or_default(conf->n_datagrams, DP_DATAGRAMS_DEFAULT);
	full.n_waiting = or_default(conf->n_waiting, DP_WAITING_DEFAULT);
	full.n_handoff = or_default(conf->n_handoff, DP_HANDOFF_DEFAULT);
	full.replies_per_s = share(or_default(conf->replies_per_s, DP_REPLIES_DEFAULT), conf);
	full.replies_per_s_source =
		or_default(conf->replies_per_s_source, DP_REPLIES_SOURCE_DEFAULT);
	return full;
}

/* Names are the whole process': a plane's address is nobody else's. */
static int
create_spare(struct dp *dp, const struct dp_conf *conf)
{
	const uint32_t n_threads = conf->is_one_thread ? 1 : conf->n_workers;
	const uint32_t n = PIECES + n_threads * 2 * SPARE_CACHE;
	const uint32_t room = RTE_MAX(conf->mtu_max + FRAME_OVER_MTU, 2048u);
	char name[RTE_MEMPOOL_NAMESIZE];

	(void)snprintf(name, sizeof(name), "spare_%p", (const void *)dp);
	dp->spare = rte_pktmbuf_pool_create(name, n, SPARE_CACHE, DP_BESIDE_BYTES,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + room), SOCKET_ID_ANY);
	return dp->spare == NULL ? -rte_errno : 0;
}

static void
destroy_mail(struct dp *dp)
{
	for (unsigned int i = 0; i < LB_WORKERS_MAX; i++) {
		rte_ring_free(dp->mail[i].packets);
		rte_ring_free(dp->mail[i].firsts);
	}
}

/* All of it before any worker: each may write to every other. */
static int
create_mail(struct dp *dp, const struct dp_conf *conf)
{
	char name[RTE_RING_NAMESIZE];

	for (unsigned int i = 0; conf->n_workers > 1 && i < conf->n_workers; i++) {
		struct dp_mail *mail = &dp->mail[i];

		(void)snprintf(name, sizeof(name), "p%u_%p", i, (const void *)dp);
		mail->packets = rte_ring_create(name, conf->n_handoff, SOCKET_ID_ANY,
			RING_F_SC_DEQ | RING_F_EXACT_SZ);
		(void)snprintf(name, sizeof(name), "f%u_%p", i, (const void *)dp);
		mail->firsts = rte_ring_create_elem(name, sizeof(struct dp_first),
			conf->n_handoff, SOCKET_ID_ANY, RING_F_SC_DEQ | RING_F_EXACT_SZ);
		if (mail->packets == NULL || mail->firsts == NULL)
			return -rte_errno;
	}
	return 0;
}

static int
create_workers(struct dp *dp, const struct dp_conf *conf, uint64_t now_ns)
{
	struct dp_shared shared = {
		.qsbr = dp->qsbr,
		.current = &dp->current,
		.trace = &dp->trace,
		.spare = dp->spare,
		.mail = conf->n_workers > 1 ? dp->mail : NULL,
		.probes = &dp->probes,
	};

	for (unsigned int i = 0; i < conf->n_workers; i++) {
		const int ret = dp_worker_create(conf, &shared, now_ns, i, &dp->workers[i]);

		if (ret != 0)
			return ret;
		dp->n_workers++;
		if (conf->is_one_thread)
			shared.replies = dp->workers[0]->replies;
	}
	return 0;
}

/* What is made is dp's, also on error. */
static int
fill_plane(struct dp *dp, const struct dp_conf *conf, uint64_t now_ns)
{
	const struct dp_snapshot_conf nothing = {.has_kernel = true};
	struct dp_snapshot *empty;
	int ret = dp_snapshot_create(&nothing, &empty);

	if (ret != 0)
		return ret;
	atomic_store_explicit(&dp->current, empty, memory_order_release);
	ret = create_spare(dp, conf);
	if (ret == 0)
		ret = create_mail(dp, conf);
	if (ret == 0)
		ret = dp_probes_init(&dp->probes);
	if (ret == 0)
		ret = create_workers(dp, conf, now_ns);
	return ret;
}

int
dp_create(const struct dp_conf *conf, uint64_t now_ns, struct dp **out)
{
	struct dp_conf full;
	struct dp *dp;
	int ret;

	if (conf->n_workers == 0 || conf->n_workers > LB_WORKERS_MAX)
		return -EINVAL;
	full = fill_in(conf);
	dp = calloc(1, sizeof(*dp));
	if (dp == NULL)
		return -ENOMEM;
	dp->n_waiting = full.n_workers * full.n_waiting;
	dp->waiting_bytes = full.n_workers * dp_fragments_waiting_bytes(&full);
	dp->qsbr_bytes = rte_rcu_qsbr_get_memsize(full.n_workers);
	dp->qsbr = dp_memory_zalloc(dp->qsbr_bytes);
	if (dp->qsbr == NULL) {
		free(dp);
		return -ENOMEM;
	}
	/* Fails only for no memory or no threads, both looked at above. */
	(void)rte_rcu_qsbr_init(dp->qsbr, full.n_workers);
	ret = fill_plane(dp, &full, now_ns);
	if (ret != 0) {
		dp_destroy(dp);
		return ret;
	}
	*out = dp;
	return 0;
}

void
dp_destroy(struct dp *dp)
{
	if (dp == NULL)
		return;
	dp_trace_end(dp);
	for (unsigned int i = 0; i < dp->n_workers; i++)
		dp_worker_destroy(dp->workers[i]);
	destroy_mail(dp);
	dp_probes_fini(&dp->probes);
	rte_mempool_free(dp->spare);
	dp_snapshot_destroy(atomic_load_explicit(&dp->current, memory_order_relaxed));
	dp_memory_free(dp->qsbr, dp->qsbr_bytes);
	free(dp);
}

void
dp_wait_for_workers(const struct dp *dp)
{
	static const struct timespec nap = {.tv_nsec = GRACE_NAP_NS};
	const uint64_t token = rte_rcu_qsbr_start(dp->qsbr);

	/* Not spinning: a worker may be waiting for this very CPU. */
	/* The check's acquire pairs with the release of each worker's quiescent report. */
	while (rte_rcu_qsbr_check(dp->qsbr, token, false) == 0)
		(void)nanosleep(&nap, NULL);
}

void
dp_publish(struct dp *dp, struct dp_snapshot *next)
{
	const struct dp_snapshot *current = atomic_load_explicit(&dp->current,
		memory_order_relaxed); /* nobody else stores */
	struct dp_snapshot *old;

	next->generation = current->generation + 1;
	next->n_losses = current->n_losses + dp_snapshot_has_lost(current, next);
	/* Release: pairs with the acquire in load_snapshot(); all of next is seen there. */
	old = atomic_exchange_explicit(&dp->current, next, memory_order_acq_rel);
	dp_wait_for_workers(dp);
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
