/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_leave.h"

#include "dp_fit.h"
#include "lb_martian.h"
#include "lb_mss.h"

/* Whether a packet for nobody asked for a service address, and is now the answer. */
static bool
answer_neighbor(const struct dp_snapshot *snapshot, struct rte_mbuf *m)
{
	const struct dp_answering_port *port = dp_snapshot_find_answering(snapshot, m->port);
	struct lb_neighbor_ask ask;

	return port != NULL && m->nb_segs == 1 &&
	       lb_neighbor_asks(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &port->mac,
		       &ask) &&
	       dp_snapshot_answers_for(snapshot, port, &ask.target) &&
	       dp_mbuf_answer(m, &ask, &port->mac);
}

/* What is a prober's is in no burst's trace: there it is gone. Captures have none. */
static void
trace_answer(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	const struct rte_mbuf *m, const struct dp_decision *d)
{
	struct dp_trace *trace = dp_trace_of(s->worker->trace);
	const struct dp_traced traced = {packet, d, now_ns, m->pkt_len, m->port};

	if (unlikely(trace != NULL))
		dp_trace_one(trace, s->worker->index, s->snapshot, &traced);
}

/* The last look at what is for no service. */
static enum lb_verdict
leave_to_kernel(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf *m, const struct dp_decision *d)
{
	const struct dp_snapshot *snapshot = s->snapshot;

	if (answer_neighbor(snapshot, m))
		return LB_REPLY;
	/* Of what was not parsed there is no length. */
	if (d->ip_bytes != 0 && lb_martian_destination(&packet->dst))
		return LB_DROP_MARTIAN_DESTINATION;
	if (d->ip_bytes != 0 && dp_probes_take(s->worker, snapshot, packet, m)) {
		dp_count(&s->worker->verdict_pkts[LB_TO_KERNEL], 1);
		trace_answer(s, packet, now_ns, m, d);
		rte_pktmbuf_free(m);
		return (enum lb_verdict)DP_AWAY;
	}
	return snapshot->has_kernel ? LB_TO_KERNEL : LB_DROP_NO_SERVICE;
}

/* Lower what a SYN says that its sender takes, so that segments fit the tunnel. */
static void
clamp_mss(const struct dp_snapshot *snapshot, struct rte_mbuf *m,
	const struct lb_packet *packet, const struct dp_decision *d)
{
	const struct dp_backend *backend = &snapshot->backends[d->backend];
	const uint16_t clamp = snapshot->services[d->service].mss_clamp;
	const uint16_t mss =
		clamp == DP_MSS_AUTO
			? lb_mss_of(backend->mtu, backend->encap.n_bytes, packet->is_v6)
			: clamp;

	if (clamp != 0)
		(void)lb_mss_clamp(rte_pktmbuf_mtod_offset(m, uint8_t *, packet->l4_offset),
			dp_mbuf_l4_bytes(m, packet), mss);
}

enum lb_verdict __attribute__((cold))
dp_leave_unfit(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf **m, struct dp_decision *d)
{
	const struct dp_passage passage = {
		.worker = s->worker,
		.service = &s->snapshot->services[d->service],
		.backend = &s->snapshot->backends[d->backend],
		.packet = packet,
		.entropy = d->entropy,
		.now_ns = now_ns,
	};

	return dp_fit(&passage, m, d);
}

enum lb_verdict
dp_leave(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf **m, struct dp_decision *d)
{
	if (d->verdict == LB_TO_KERNEL)
		return leave_to_kernel(s, packet, now_ns, *m, d);
	if (d->event == LB_FLOW_SYN)
		clamp_mss(s->snapshot, *m, packet, d);
	return dp_leave_to_backend(s, packet, now_ns, m, d);
}
