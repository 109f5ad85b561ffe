/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_fragment.h"

#include <errno.h>

#include "dp_memory.h"
#include "dp_worker.h"

/* Of frames that come by no port: headroom, an Ethernet header and tags; and of the smallest.
 */
#define BUFFER_OVER_MTU  512u
#define BUFFER_BYTES_MIN 2560u

uint64_t
dp_fragments_waiting_bytes(const struct dp_conf *conf)
{
	const uint32_t usual = RTE_MAX(conf->mtu_max + BUFFER_OVER_MTU, BUFFER_BYTES_MIN);

	return (uint64_t)conf->n_waiting * RTE_MAX(usual, conf->buffer_bytes);
}

int
dp_fragments_init(struct dp_fragments *fragments, const struct dp_conf *conf)
{
	const struct lb_fragment_conf table = {
		.n_datagrams = conf->n_datagrams,
		.n_waiting = conf->n_waiting,
		.waiting_bytes = dp_fragments_waiting_bytes(conf),
		.timeout_ns = LB_FRAGMENT_TIMEOUT_NS,
		.secret = conf->secret[1],
	};

	fragments->n_bytes = lb_fragment_table_bytes(&table);
	if (fragments->n_bytes == 0)
		return -EINVAL;
	fragments->mem = dp_memory_zalloc(fragments->n_bytes);
	if (fragments->mem == NULL)
		return -ENOMEM;
	return lb_fragment_table_init(fragments->mem, &table, &fragments->table);
}

void
dp_fragments_fini(struct dp_fragments *fragments)
{
	dp_memory_free(fragments->mem, fragments->n_bytes);
}

uint32_t
dp_fragment_occupied(const struct rte_mbuf *m)
{
	uint32_t n_bytes = 0;

	for (; m != NULL; m = m->next)
		n_bytes += m->buf_len;
	return n_bytes;
}

/* Its frame is as it came. */
static void
trace_given_up(const struct dp_worker *worker, struct rte_mbuf *m)
{
	struct dp_trace *trace = dp_trace_of(worker->trace);
	struct lb_packet packet;
	const struct dp_traced traced = {&packet, &dp_beside(m)->decision, dp_beside(m)->now_ns,
		dp_beside(m)->wire_bytes, m->port};

	if (unlikely(trace != NULL) && dp_mbuf_parse(m, traced.n_bytes, &packet) == LB_FORWARD)
		dp_trace_one(trace, worker->index, NULL, &traced);
}

static void
give_up(struct dp_worker *worker, struct rte_mbuf *m, enum lb_verdict why,
	struct dp_chain *settled)
{
	dp_beside(m)->decision.verdict = (uint8_t)why;
	dp_count(&worker->verdict_pkts[why], 1);
	trace_given_up(worker, m);
	dp_chain_append(settled, m);
}

void
dp_fragments_expire(struct dp_worker *worker, uint64_t now_ns, struct dp_chain *settled)
{
	enum lb_verdict why;
	void *m;

	while (lb_fragment_expire(worker->fragments.table, now_ns, &m, &why))
		give_up(worker, m, why, settled);
}

void
dp_fragments_shed(struct dp_worker *worker, uint32_t n_bytes, struct dp_chain *settled)
{
	enum lb_verdict why;
	void *m;

	while (lb_fragment_shed(worker->fragments.table, n_bytes, &m, &why))
		give_up(worker, m, why, settled);
}

void
dp_fragments_abandon(struct dp_worker *worker, struct dp_chain *settled)
{
	enum lb_verdict why;
	void *m;

	while (lb_fragment_abandon(worker->fragments.table, &m, &why))
		give_up(worker, m, why, settled);
}

bool
dp_fragment_send_home(struct dp_worker *worker, unsigned int home, const struct dp_first *first)
{
	struct dp_first sent = *first; /* the ring's function reads it, and is not const */

	return rte_ring_enqueue_elem(worker->mail[home].firsts, &sent, sizeof(sent)) == 0;
}
