/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_loop.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_ring_peek.h>

#include "dp_handoff.h"
#include "dp_memory.h"

/* Two polls of nothing may be chance; a thousand are not. */
#define IDLE_POLLS 1000u

/* What of a frame's decision is counted once it has left. */
struct leaving {
	uint32_t backend;
	uint32_t ip_bytes;
	uint8_t verdict;
};

/* Frames on their way out by one device. */
struct outbox {
	struct rte_mbuf *pkts[DP_BURST_MAX];
	struct leaving leaving[DP_BURST_MAX];
	uint16_t n;
};

/* What a loop keeps between rounds; too large for a stack. */
struct dp_loop {
	struct dp *dp;
	struct dp_worker *worker;
	uint64_t now_ns;
	struct dp_burst burst;
	struct outbox out[LB_PORTS_MAX];
	struct leaving uncounted[DP_BURST_MAX]; /* of what the kernel sends */
	struct rte_mbuf *dropped[DP_BURST_MAX]; /* counted, and to be freed */
	uint16_t n_dropped;
};

int
dp_loop_create(struct dp *dp, struct dp_worker *worker, struct dp_loop **out)
{
	struct dp_loop *loop = dp_memory_zalloc(sizeof(*loop));

	if (loop == NULL)
		return -ENOMEM;
	loop->dp = dp;
	loop->worker = worker;
	loop->burst.is_brief = true;
	for (unsigned int i = 0; i < DP_BURST_MAX; i++)
		loop->uncounted[i].verdict = DP_PIECE;
	*out = loop;
	return 0;
}

void
dp_loop_destroy(struct dp_loop *loop)
{
	dp_memory_free(loop, sizeof(*loop));
}

/* A packet in pieces stands or falls with its first, and the kernel's are not counted. */
static bool
is_counted(const struct leaving *leaving)
{
	return likely(leaving->verdict != DP_PIECE);
}

static struct leaving
leaving_of(const struct dp_decision *d)
{
	return (struct leaving){d->backend, d->ip_bytes, d->verdict};
}

static void
count_sent(struct dp_loop *loop, const struct leaving leaving[], uint16_t n)
{
	struct dp_worker *worker = loop->worker;
	uint64_t n_forwarded = 0;

	for (uint16_t i = 0; i < n; i++) {
		const struct leaving *one = &leaving[i];

		if (likely(one->verdict == LB_FORWARD)) {
			dp_worker_forwarded(worker, one->backend, one->ip_bytes);
			n_forwarded++;
		} else if (is_counted(one)) {
			dp_count(&worker->verdict_pkts[one->verdict], 1);
		}
	}
	dp_count(&worker->verdict_pkts[LB_FORWARD], n_forwarded);
}

/* For the worker that sends it. */
static void
put_beside(struct rte_mbuf *m, const struct leaving *leaving)
{
	struct dp_decision *d = &dp_beside(m)->decision;

	d->backend = leaving->backend;
	d->ip_bytes = leaving->ip_bytes;
	d->verdict = leaving->verdict;
}

static bool
is_down(const struct dp_nic *nic)
{
	return atomic_load_explicit(&nic->is_down, memory_order_relaxed);
}

/*
 * Send by this worker's own queue; or by the ring to the one that has a queue, which counts
 * what it sends. The rest is the caller's.
 */
static uint16_t
send_frames(struct dp_loop *loop, const struct dp_nic *nic, struct rte_mbuf *pkts[],
	const struct leaving leaving[], uint16_t n)
{
	const unsigned int worker = loop->worker->index;
	uint16_t n_sent;

	if (unlikely(is_down(nic)))
		return 0;
	if (unlikely(worker >= nic->n_tx)) {
		for (uint16_t i = 0; i < n; i++)
			put_beside(pkts[i], &leaving[i]);
		return (uint16_t)rte_ring_enqueue_burst(nic->tx_ring, (void **)pkts, n, NULL);
	}
	n_sent = rte_eth_tx_burst(nic->id, (uint16_t)worker, pkts, n);
	count_sent(loop, leaving, n_sent);
	return n_sent;
}

/* What a device does not take: it is down, or full. */
static void
drop_frames(struct dp_loop *loop, const struct dp_nic *nic, struct rte_mbuf *pkts[],
	const struct leaving leaving[], uint16_t n)
{
	const enum lb_verdict why = is_down(nic) ? nic->down_verdict : LB_DROP_TX_FULL;

	for (uint16_t i = 0; i < n; i++)
		dp_count(&loop->worker->verdict_pkts[why], is_counted(&leaving[i]));
	rte_pktmbuf_free_bulk(pkts, n);
}

static void
flush(struct dp_loop *loop, const struct dp_port *port, struct outbox *out)
{
	uint16_t n_sent;

	if (out->n == 0)
		return;
	n_sent = send_frames(loop, &port->nic, out->pkts, out->leaving, out->n);
	if (unlikely(n_sent < out->n))
		drop_frames(loop, &port->nic, &out->pkts[n_sent], &out->leaving[n_sent],
			out->n - n_sent);
	out->n = 0;
}

static void
put_out(struct dp_loop *loop, struct rte_mbuf *m, const struct dp_decision *d, uint16_t place)
{
	const struct dp_port *port = &loop->dp->ports[place];
	struct outbox *out = &loop->out[place];

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, sizeof(port->mac.bytes)), port->mac.bytes,
		sizeof(port->mac.bytes));
	out->pkts[out->n] = m;
	out->leaving[out->n++] = leaving_of(d);
	if (unlikely(out->n == DP_BURST_MAX))
		flush(loop, port, out);
}

/* To the twin of the port it came by; where the kernel saw it itself, it is done with. */
static void
give_to_kernel(struct dp_loop *loop, struct rte_mbuf *m, const struct dp_decision *d)
{
	const struct dp_port *port = &loop->dp->ports[loop->dp->port_of[m->port]];
	const struct dp_nic *twin = &port->twin;
	const struct leaving leaving = leaving_of(d);

	if (!port->has_twin) {
		dp_worker_sent(loop->worker, d);
		rte_pktmbuf_free(m);
	} else if (unlikely(m->pkt_len > twin->mtu + (uint32_t)RTE_ETHER_HDR_LEN + 2 * 4)) {
		/* It would refuse this one, and so hold up those behind it in its ring. */
		dp_count(&loop->worker->verdict_pkts[LB_DROP_TOO_BIG], 1);
		rte_pktmbuf_free(m);
	} else if (unlikely(send_frames(loop, twin, &m, &leaving, 1) == 0)) {
		drop_frames(loop, twin, &m, &leaving, 1);
	}
}

static void
free_dropped(struct dp_loop *loop)
{
	rte_pktmbuf_free_bulk(loop->dropped, loop->n_dropped);
	loop->n_dropped = 0;
}

/* Buffers go back to their pool many at once. */
static void
drop(struct dp_loop *loop, struct rte_mbuf *m)
{
	loop->dropped[loop->n_dropped++] = m;
	if (unlikely(loop->n_dropped == DP_BURST_MAX))
		free_dropped(loop);
}

/* Where its decision says. */
static void
dispose(struct dp_loop *loop, struct rte_mbuf *m, const struct dp_decision *d)
{
	if (likely(d->verdict == LB_FORWARD || d->verdict == DP_PIECE))
		put_out(loop, m, d, d->port);
	else if (d->verdict == LB_REPLY) /* back by the port it came by */
		put_out(loop, m, d, loop->dp->port_of[m->port]);
	else if (d->verdict == LB_TO_KERNEL)
		give_to_kernel(loop, m, d);
	else if (d->verdict != DP_AWAY)
		drop(loop, m);
}

static void
dispose_chain(struct dp_loop *loop, struct dp_chain *chain)
{
	struct rte_mbuf *m;

	while ((m = dp_chain_take(chain)) != NULL) {
		/* Once it is sent, what lies beside it is another's. */
		const struct dp_decision d = dp_beside(m)->decision;

		dispose(loop, m, &d);
	}
}

static bool
leaves_by(const struct dp_burst *burst, uint16_t place)
{
	unsigned int others = 0;

	for (uint16_t i = 0; i < burst->n; i++)
		others |= burst->decisions[i].port ^ place;
	return others == 0;
}

/*
 * What run_burst() does to a burst of which all is forwarded, by one port: without a copy, and
 * frames are from that port already, as their backends say. @return false: nothing is done.
 */
static bool
send_burst(struct dp_loop *loop)
{
	struct dp_burst *burst = &loop->burst;
	struct dp_worker *worker = loop->worker;
	const uint16_t n = burst->n;
	const uint16_t place = burst->decisions[0].port;
	const struct dp_port *port = &loop->dp->ports[place];
	uint16_t n_sent;

	if (worker->index >= port->nic.n_tx || is_down(&port->nic) ||
		(loop->dp->n_ports > 1 && !leaves_by(burst, place)))
		return false;
	flush(loop, port, &loop->out[place]); /* what came before leaves before */
	n_sent = rte_eth_tx_burst(port->nic.id, (uint16_t)worker->index, burst->pkts, n);
	dp_worker_forwarded_burst(worker, burst, n_sent);
	if (unlikely(n_sent < n)) {
		dp_count(&worker->verdict_pkts[LB_DROP_TX_FULL], n - n_sent);
		rte_pktmbuf_free_bulk(&burst->pkts[n_sent], n - n_sent);
	}
	return true;
}

/* What is_brief left out of a burst of which all is forwarded. */
static void
say_forwarded(struct dp_burst *burst)
{
	for (uint16_t i = 0; i < burst->n; i++) {
		burst->decisions[i].verdict = LB_FORWARD;
		burst->decisions[i].has_more = false;
	}
}

static void
run_burst(struct dp_loop *loop)
{
	struct dp_burst *burst = &loop->burst;

	if (burst->n == 0)
		return;
	if (likely(dp_worker_burst(loop->worker, burst))) {
		if (likely(send_burst(loop))) {
			burst->n = 0;
			return;
		}
		say_forwarded(burst);
	}
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
take(struct dp_loop *loop, struct rte_mbuf *m)
{
	struct dp_burst *burst = &loop->burst;

	burst->pkts[burst->n] = m;
	burst->now_ns[burst->n++] = loop->now_ns;
	if (unlikely(burst->n == DP_BURST_MAX))
		run_burst(loop);
}

/* A device that does not spread its packets by flow: they are spread here. */
static void
spread(struct dp_loop *loop, struct rte_mbuf *m)
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

/* A burst of what is there, in pkts. */
static void
take_all(struct dp_loop *loop, uint16_t n)
{
	struct dp_burst *burst = &loop->burst;

	for (uint16_t i = 0; i < n; i++)
		burst->now_ns[i] = loop->now_ns;
	burst->n = n;
	run_burst(loop);
}

static void
spread_all(struct dp_loop *loop, uint16_t n)
{
	struct rte_mbuf *pkts[DP_BURST_MAX];

	for (uint16_t i = 0; i < n; i++)
		pkts[i] = loop->burst.pkts[i];
	for (uint16_t i = 0; i < n; i++)
		spread(loop, pkts[i]);
	run_burst(loop);
}

static unsigned int
poll_port(struct dp_loop *loop, const struct dp_port *port)
{
	const unsigned int worker = loop->worker->index;
	struct dp_burst *burst = &loop->burst;
	uint16_t n;

	if (worker >= port->nic.n_rx)
		return 0;
	n = rte_eth_rx_burst(port->nic.id, (uint16_t)worker, burst->pkts, DP_BURST_MAX);
	if (port->hears_others)
		n = filter(port, burst->pkts, n);
	burst->is_placed = !port->nic.spreads;
	burst->rss = &port->nic.rss;
	if (port->nic.spreads)
		take_all(loop, n);
	else
		spread_all(loop, n);
	return n;
}

static unsigned int
poll_inbox(struct dp_loop *loop)
{
	unsigned int n;

	if (loop->worker->mail == NULL)
		return 0;
	n = rte_ring_dequeue_burst(loop->worker->mail[loop->worker->index].packets,
		(void **)loop->burst.pkts, DP_BURST_MAX, NULL);
	loop->burst.is_placed = true;
	take_all(loop, (uint16_t)n);
	return n;
}

/* What the kernel sends through the twin leaves by the port. */
static unsigned int
poll_twin(struct dp_loop *loop, const struct dp_port *port)
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
	n_sent = send_frames(loop, &port->nic, pkts, loop->uncounted, n);
	if (n_sent < n)
		rte_pktmbuf_free_bulk(&pkts[n_sent], n - n_sent);
	return n;
}

/*
 * Frames of workers without a queue of their own, on behalf of whom worker 0 sends and counts.
 * What finds no room stays in the ring.
 */
static unsigned int
drain_ring(struct dp_loop *loop, const struct dp_nic *nic)
{
	struct rte_mbuf *pkts[DP_BURST_MAX];
	struct leaving leaving[DP_BURST_MAX];
	unsigned int n;
	uint16_t n_sent;

	if (nic->tx_ring == NULL)
		return 0;
	n = rte_ring_dequeue_burst_start(nic->tx_ring, (void **)pkts, DP_BURST_MAX, NULL);
	if (n == 0)
		return 0;
	/* Once it is sent, what lies beside it is another's. */
	for (unsigned int i = 0; i < n; i++)
		leaving[i] = leaving_of(&dp_beside(pkts[i])->decision);
	if (unlikely(is_down(nic))) {
		rte_ring_dequeue_finish(nic->tx_ring, n);
		drop_frames(loop, nic, pkts, leaving, (uint16_t)n);
		return n;
	}
	n_sent = rte_eth_tx_burst(nic->id, 0, pkts, (uint16_t)n);
	rte_ring_dequeue_finish(nic->tx_ring, n_sent);
	count_sent(loop, leaving, n_sent);
	return n_sent;
}

static unsigned int
drain_rings(struct dp_loop *loop)
{
	struct dp *dp = loop->dp;
	unsigned int n = 0;

	for (size_t i = 0; i < dp->n_ports; i++) {
		n += drain_ring(loop, &dp->ports[i].nic);
		if (dp->ports[i].has_twin)
			n += drain_ring(loop, &dp->ports[i].twin);
	}
	return n;
}

/* What lies with the loop: frames to be sent, and to be freed. */
static void
flush_all(struct dp_loop *loop)
{
	for (size_t i = 0; i < loop->dp->n_ports; i++)
		flush(loop, &loop->dp->ports[i], &loop->out[i]);
	free_dropped(loop);
}

static unsigned int
turn(struct dp_loop *loop)
{
	struct dp *dp = loop->dp;
	unsigned int n = poll_inbox(loop);

	n += dp_worker_hear(loop->worker, &loop->burst, loop->now_ns);
	dispose_chain(loop, &loop->burst.settled);
	if (loop->worker->index == 0) {
		n += dp_worker_probe(loop->worker, &loop->burst);
		dispose_chain(loop, &loop->burst.settled);
	}
	for (size_t i = 0; i < dp->n_ports; i++) {
		n += poll_port(loop, &dp->ports[i]);
		n += poll_twin(loop, &dp->ports[i]);
	}
	flush_all(loop);
	if (loop->worker->index == 0)
		n += drain_rings(loop);
	return n;
}

void
dp_loop_run(struct dp_lcore *lcore)
{
	const struct timespec nap = {.tv_nsec = (long)lcore->nap_ns};
	struct dp_loop *loop = lcore->loop;
	unsigned int n_idle = 1;
	uint64_t begun_ns = 0;

	dp_worker_online(loop->worker);
	/* Relaxed: it carries nothing but itself. */
	while (!atomic_load_explicit(&lcore->is_over, memory_order_relaxed)) {
		unsigned int n_found;
		bool is_asked;

		loop->now_ns = dp_now_ns();
		if (n_idle == 0) /* what came in the turn before waited no longer than this */
			dp_worker_timed(loop->worker, loop->now_ns - begun_ns);
		begun_ns = loop->now_ns;
		n_found = turn(loop);
		n_idle = n_found > 0 ? 0 : n_idle + 1;
		dp_worker_polled(loop->worker, n_found);
		dp_worker_quiescent(loop->worker, loop->now_ns);
		is_asked = dp_worker_answer(loop->worker, loop->now_ns);
		if (n_idle > IDLE_POLLS && lcore->nap_ns != 0 && !is_asked)
			(void)nanosleep(&nap, NULL);
	}
	dp_worker_offline(loop->worker);
}

void
dp_loop_empty_inbox(struct dp_loop *loop)
{
	loop->now_ns = dp_now_ns();
	dp_worker_online(loop->worker);
	while (poll_inbox(loop) > 0) {
	}
	dp_worker_offline(loop->worker);
}

void
dp_loop_give_up(struct dp_loop *loop)
{
	unsigned int n;

	dp_worker_online(loop->worker);
	do {
		n = dp_worker_hear(loop->worker, &loop->burst, loop->now_ns);
		dispose_chain(loop, &loop->burst.settled);
	} while (n > 0);
	dp_worker_offline(loop->worker);
	dp_worker_abandon(loop->worker, &loop->burst);
	dispose_chain(loop, &loop->burst.settled);
	flush_all(loop);
}

/* What a device does not take now it never will. */
static void
drop_ring(struct dp_loop *loop, const struct dp_nic *nic)
{
	struct rte_mbuf *m;

	while (nic->tx_ring != NULL && rte_ring_dequeue(nic->tx_ring, (void **)&m) == 0) {
		const struct leaving leaving = leaving_of(&dp_beside(m)->decision);

		drop_frames(loop, nic, &m, &leaving, 1);
	}
}

void
dp_loop_empty_rings(struct dp_loop *loop)
{
	struct dp *dp = loop->dp;

	while (drain_rings(loop) > 0) {
	}
	for (size_t i = 0; i < dp->n_ports; i++) {
		drop_ring(loop, &dp->ports[i].nic);
		if (dp->ports[i].has_twin)
			drop_ring(loop, &dp->ports[i].twin);
	}
}
