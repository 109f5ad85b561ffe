/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_loop.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_ring_peek.h>

#include "dp_handoff.h"
#include "dp_memory.h"

/* Two polls of nothing may be chance; a thousand are not. */
#define IDLE_POLLS    1000u
#define IDLE_SLEEP_NS 50000

/* Frames on their way out by one device. */
struct outbox {
	struct rte_mbuf *pkts[DP_BURST_MAX];
	struct dp_decision decisions[DP_BURST_MAX];
	uint16_t n;
};

/* What the loop keeps between rounds; too large for a stack. */
struct loop {
	struct dp *dp;
	struct dp_worker *worker;
	uint64_t now_ns;
	struct dp_burst burst;
	struct outbox out[DP_PORTS_MAX];
};

/* Send by this worker's own queue, or by the ring to the one that has a queue. */
static uint16_t
send_frames(const struct dp_nic *nic, unsigned int worker, struct rte_mbuf *pkts[], uint16_t n)
{
	if (unlikely(atomic_load_explicit(&nic->is_down, memory_order_relaxed)))
		return 0;
	if (likely(worker < nic->n_tx))
		return rte_eth_tx_burst(nic->id, (uint16_t)worker, pkts, n);
	return (uint16_t)rte_ring_enqueue_burst(nic->tx_ring, (void **)pkts, n, NULL);
}

/* Why a device takes no more; is_down is what it is down by. */
static enum lb_verdict
why_not_sent(const struct dp_nic *nic, enum lb_verdict is_down)
{
	return atomic_load_explicit(&nic->is_down, memory_order_relaxed) ? is_down
									 : LB_DROP_TX_FULL;
}

static void
flush(struct loop *loop, const struct dp_port *port, struct outbox *out)
{
	uint16_t n_sent;

	if (out->n == 0)
		return;
	n_sent = send_frames(&port->nic, loop->worker->index, out->pkts, out->n);
	for (uint16_t i = 0; i < n_sent; i++)
		if (likely(out->decisions[i].verdict != DP_PIECE))
			dp_worker_sent(loop->worker, &out->decisions[i]);
	if (unlikely(n_sent < out->n)) {
		const enum lb_verdict why = why_not_sent(&port->nic, LB_DROP_PORT_DOWN);

		/* A packet in pieces stands or falls with its first. */
		for (uint16_t i = n_sent; i < out->n; i++)
			dp_count(&loop->worker->verdict_pkts[why],
				out->decisions[i].verdict != DP_PIECE);
		rte_pktmbuf_free_bulk(&out->pkts[n_sent], out->n - n_sent);
	}
	out->n = 0;
}

static void
put_out(struct loop *loop, struct rte_mbuf *m, const struct dp_decision *d, uint16_t place)
{
	const struct dp_port *port = &loop->dp->ports[place];
	struct outbox *out = &loop->out[place];

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, sizeof(port->mac.bytes)), port->mac.bytes,
		sizeof(port->mac.bytes));
	out->pkts[out->n] = m;
	out->decisions[out->n++] = *d;
	if (unlikely(out->n == DP_BURST_MAX))
		flush(loop, port, out);
}

/* To the twin of the port it came by; where the kernel saw it itself, it is done with. */
static void
give_to_kernel(struct loop *loop, struct rte_mbuf *m, const struct dp_decision *d)
{
	const struct dp_port *port = &loop->dp->ports[loop->dp->port_of[m->port]];
	const struct dp_nic *twin = &port->twin;
	uint64_t *lost = loop->worker->verdict_pkts;

	if (!port->has_twin) {
		dp_worker_sent(loop->worker, d);
		rte_pktmbuf_free(m);
	} else if (unlikely(m->pkt_len > twin->mtu + (uint32_t)RTE_ETHER_HDR_LEN + 2 * 4)) {
		/* It would refuse this one, and so hold up those behind it in its ring. */
		dp_count(&lost[LB_DROP_TOO_BIG], 1);
		rte_pktmbuf_free(m);
	} else if (likely(send_frames(twin, loop->worker->index, &m, 1) == 1)) {
		dp_worker_sent(loop->worker, d);
	} else {
		dp_count(&lost[why_not_sent(twin, LB_DROP_KERNEL_DOWN)], 1);
		rte_pktmbuf_free(m);
	}
}

/* Where its decision says. */
static void
dispose(struct loop *loop, struct rte_mbuf *m, const struct dp_decision *d)
{
	if (likely(d->verdict == LB_FORWARD || d->verdict == DP_PIECE))
		put_out(loop, m, d, d->port);
	else if (d->verdict == LB_REPLY) /* back by the port it came by */
		put_out(loop, m, d, loop->dp->port_of[m->port]);
	else if (d->verdict == LB_TO_KERNEL)
		give_to_kernel(loop, m, d);
	else if (d->verdict != DP_AWAY)
		rte_pktmbuf_free(m);
}

static void
dispose_chain(struct loop *loop, struct dp_chain *chain)
{
	struct rte_mbuf *m;

	while ((m = dp_chain_take(chain)) != NULL) {
		/* Once it is sent, what lies beside it is another's. */
		const struct dp_decision d = dp_beside(m)->decision;

		dispose(loop, m, &d);
	}
}

static void
run_burst(struct loop *loop)
{
	struct dp_burst *burst = &loop->burst;

	if (burst->n == 0)
		return;
	dp_worker_burst(loop->worker, burst);
	for (uint16_t i = 0; i < burst->n; i++) {
		const struct dp_decision *d = &burst->decisions[i];
		struct dp_chain more = {NULL, NULL};

		if (unlikely(d->has_more))
			more.first = dp_beside(burst->pkts[i])->next;
		dispose(loop, burst->pkts[i], d);
		dispose_chain(loop, &more);
	}
	dispose_chain(loop, &burst->settled);
	burst->n = 0;
}

static void
take(struct loop *loop, struct rte_mbuf *m)
{
	struct dp_burst *burst = &loop->burst;

	burst->pkts[burst->n] = m;
	burst->wire_bytes[burst->n] = m->pkt_len;
	burst->now_ns[burst->n++] = loop->now_ns;
	if (unlikely(burst->n == DP_BURST_MAX))
		run_burst(loop);
}

/* A device that does not spread its packets by flow: they are spread here. */
static void
spread(struct loop *loop, struct rte_mbuf *m)
{
	struct lb_packet packet;
	unsigned int owner = 0;

	if (dp_mbuf_parse(m, m->pkt_len, &packet) == LB_FORWARD)
		owner = dp_handoff_owner(&packet, loop->dp->n_workers);
	if (owner == loop->worker->index) {
		take(loop, m);
	} else if (unlikely(rte_ring_enqueue(loop->worker->mail[owner].packets, m) != 0)) {
		dp_count(&loop->worker->verdict_pkts[LB_DROP_HANDOFF_FULL], 1);
		rte_pktmbuf_free(m);
	}
}

/* Whether a frame is neither for this port nor for a group it may belong to. */
static bool
is_for_another(const struct dp_port *port, const uint8_t *frame)
{
	return (frame[0] & 1) == 0 &&
	       memcmp(frame, port->mac.bytes, sizeof(port->mac.bytes)) != 0;
}

/*
 * What a NIC would have kept back: frames for another, which a switch floods that does not know
 * where that is; and what the kernel itself has sent by the interface. @return how many are
 * left.
 */
static uint16_t
filter(const struct dp_port *port, struct rte_mbuf *pkts[], uint16_t n)
{
	uint16_t n_kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		const uint8_t *source = frame + sizeof(port->mac.bytes);

		if (unlikely(pkts[i]->data_len >= RTE_ETHER_HDR_LEN &&
			     (is_for_another(port, frame) ||
				     memcmp(source, port->mac.bytes, sizeof(port->mac.bytes)) ==
					     0)))
			rte_pktmbuf_free(pkts[i]);
		else
			pkts[n_kept++] = pkts[i];
	}
	return n_kept;
}

static unsigned int
poll_port(struct loop *loop, const struct dp_port *port)
{
	const unsigned int worker = loop->worker->index;
	struct rte_mbuf *pkts[DP_BURST_MAX];
	uint16_t n;

	if (worker >= port->nic.n_rx)
		return 0;
	n = rte_eth_rx_burst(port->nic.id, (uint16_t)worker, pkts, DP_BURST_MAX);
	if (port->hears_others)
		n = filter(port, pkts, n);
	loop->burst.is_placed = !port->nic.spreads;
	loop->burst.rss = &port->nic.rss;
	if (port->nic.spreads)
		for (uint16_t i = 0; i < n; i++)
			take(loop, pkts[i]);
	else
		for (uint16_t i = 0; i < n; i++)
			spread(loop, pkts[i]);
	run_burst(loop);
	return n;
}

static unsigned int
poll_inbox(struct loop *loop)
{
	struct rte_mbuf *pkts[DP_BURST_MAX];
	unsigned int n;

	if (loop->worker->mail == NULL)
		return 0;
	n = rte_ring_dequeue_burst(loop->worker->mail[loop->worker->index].packets,
		(void **)pkts, DP_BURST_MAX, NULL);
	loop->burst.is_placed = true;
	for (unsigned int i = 0; i < n; i++)
		take(loop, pkts[i]);
	run_burst(loop);
	return n;
}

/* What the kernel sends through the twin leaves by the port. */
static unsigned int
poll_twin(const struct loop *loop, const struct dp_port *port)
{
	const unsigned int worker = loop->worker->index;
	struct rte_mbuf *pkts[DP_BURST_MAX];
	uint16_t n;
	uint16_t n_sent;

	if (!port->has_twin || worker >= port->twin.n_rx)
		return 0;
	n = rte_eth_rx_burst(port->twin.id, (uint16_t)worker, pkts, DP_BURST_MAX);
	if (n == 0)
		return 0;
	n_sent = send_frames(&port->nic, worker, pkts, n);
	if (n_sent < n)
		rte_pktmbuf_free_bulk(&pkts[n_sent], n - n_sent);
	return n;
}

/*
 * Frames of workers without a queue of their own, on behalf of whom worker 0 sends. They are
 * counted as sent, so what finds no room stays in the ring.
 */
static unsigned int
drain_ring(const struct dp_nic *nic)
{
	struct rte_mbuf *pkts[DP_BURST_MAX];
	unsigned int n;
	uint16_t n_sent;

	if (nic->tx_ring == NULL)
		return 0;
	n = rte_ring_dequeue_burst_start(nic->tx_ring, (void **)pkts, DP_BURST_MAX, NULL);
	if (n == 0)
		return 0;
	if (unlikely(atomic_load_explicit(&nic->is_down, memory_order_relaxed))) {
		rte_ring_dequeue_finish(nic->tx_ring, n);
		rte_pktmbuf_free_bulk(pkts, n);
		return n;
	}
	n_sent = rte_eth_tx_burst(nic->id, 0, pkts, (uint16_t)n);
	rte_ring_dequeue_finish(nic->tx_ring, n_sent);
	return n_sent;
}

static unsigned int
turn(struct loop *loop)
{
	struct dp *dp = loop->dp;
	unsigned int n = poll_inbox(loop);

	dp_worker_hear(loop->worker, &loop->burst, loop->now_ns);
	dispose_chain(loop, &loop->burst.settled);
	for (size_t i = 0; i < dp->n_ports; i++) {
		n += poll_port(loop, &dp->ports[i]);
		n += poll_twin(loop, &dp->ports[i]);
	}
	for (size_t i = 0; i < dp->n_ports; i++)
		flush(loop, &dp->ports[i], &loop->out[i]);
	if (loop->worker->index == 0) {
		for (size_t i = 0; i < dp->n_ports; i++) {
			n += drain_ring(&dp->ports[i].nic);
			if (dp->ports[i].has_twin)
				n += drain_ring(&dp->ports[i].twin);
		}
	}
	return n;
}

int
dp_loop_run(struct dp_lcore *lcore)
{
	static const struct timespec nap = {.tv_nsec = IDLE_SLEEP_NS};
	struct loop *loop = dp_memory_zalloc(sizeof(*loop));
	unsigned int n_idle = 1;
	uint64_t begun_ns = 0;

	if (loop == NULL)
		return -ENOMEM;
	loop->dp = lcore->dp;
	loop->worker = lcore->worker;
	dp_worker_online(lcore->worker);
	/* Relaxed: it carries nothing but itself. */
	while (!atomic_load_explicit(&lcore->is_over, memory_order_relaxed)) {
		unsigned int n_found;
		bool is_asked;

		loop->now_ns = dp_now_ns();
		if (n_idle == 0) /* what came in the turn before waited no longer than this */
			dp_worker_timed(lcore->worker, loop->now_ns - begun_ns);
		begun_ns = loop->now_ns;
		n_found = turn(loop);
		n_idle = n_found > 0 ? 0 : n_idle + 1;
		dp_worker_polled(lcore->worker, n_found);
		dp_worker_quiescent(lcore->worker, loop->now_ns);
		is_asked = dp_worker_answer(lcore->worker, loop->now_ns);
		if (n_idle > IDLE_POLLS && lcore->is_adaptive && !is_asked)
			(void)nanosleep(&nap, NULL);
	}
	dp_worker_offline(lcore->worker);
	dp_memory_free(loop, sizeof(*loop));
	return 0;
}
