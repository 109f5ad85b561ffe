/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_datagram.h"

#include <netinet/in.h>

#include "dp_echo.h"
#include "dp_handoff.h"
#include "dp_leave.h"
#include "dp_mbuf.h"
#include "lb_service_lookup.h"

/* A later fragment follows its first: to the same backend, while that is there; or back. */
static enum lb_verdict
follow_first(const struct dp_stages *s, const struct lb_packet *packet,
	const struct lb_fragment_decision *first, uint64_t now_ns, struct rte_mbuf **m,
	struct dp_decision *d)
{
	const struct dp_backend *backend;

	if (first->verdict == LB_TO_KERNEL)
		return s->snapshot->has_kernel ? LB_TO_KERNEL : LB_DROP_NO_SERVICE;
	if (first->verdict == LB_REPLY)
		return dp_echo_later(s, packet, *m, d);
	if (first->verdict != LB_FORWARD)
		return first->verdict;
	backend = dp_snapshot_live_backend(s->snapshot, first->owner.backend);
	if (backend == NULL)
		return LB_DROP_FRAGMENT_UNMATCHED;
	d->backend = first->owner.backend;
	d->service = backend->service;
	/* Of the first's hash this is all that is known here. */
	d->hash = (struct lb_flow_hash){.place = (uint64_t)first->owner.entropy << 32};
	d->entropy = first->owner.entropy;
	d->flow = DP_FLOW_HIT;
	return dp_leave_to_backend(s, packet, now_ns, m, d);
}

/* What leaves after a packet, put at the end of a chain. */
static void
append_more(struct dp_chain *chain, struct rte_mbuf *more)
{
	while (more != NULL) {
		struct rte_mbuf *m = more;

		more = dp_beside(m)->next;
		dp_chain_append(chain, m);
	}
}

/* One that leaves or is dropped by itself, put at the end of a chain with all its pieces. */
static void
append_settled(const struct dp_stages *s, struct rte_mbuf *m, struct dp_decision *d,
	struct dp_chain *chain)
{
	struct rte_mbuf *more = d->has_more ? dp_beside(m)->next : NULL;

	if (d->verdict > LB_TO_KERNEL)
		dp_count(&s->worker->verdict_pkts[d->verdict], 1);
	d->has_more = false;
	dp_beside(m)->decision = *d;
	dp_chain_append(chain, m);
	append_more(chain, more);
}

/* One that waited goes where its first went, right after whatever is last in the chain. */
static void
release(const struct dp_stages *s, const struct lb_fragment_waited *waited,
	const struct lb_fragment_decision *first, struct dp_chain *chain)
{
	struct rte_mbuf *m = waited->packet;
	const uint64_t now_ns = dp_beside(m)->now_ns;
	struct dp_decision d = dp_beside(m)->decision;
	struct lb_packet packet;
	struct dp_trace *trace = dp_trace_of(s->worker->trace);
	struct dp_traced traced = {&packet, &d, now_ns, dp_beside(m)->wire_bytes, m->port};

	/* It has been parsed before, with this result. */
	if (dp_mbuf_parse(m, dp_beside(m)->wire_bytes, &packet) != LB_FORWARD) {
		d.verdict = LB_DROP_TRUNCATED;
		traced.packet = NULL;
	} else if (first->verdict == LB_REPLY && waited->is_repeated) {
		d.verdict = LB_DROP_RATE_LIMITED; /* what it repeats is answered */
	} else {
		d.verdict = (uint8_t)follow_first(s, &packet, first, now_ns, &m, &d);
	}
	if (unlikely(trace != NULL))
		dp_trace_one(trace, s->worker->index, s->snapshot, &traced);
	append_settled(s, m, &d, chain);
}

enum lb_verdict
dp_datagram_later(const struct dp_stages *s, uint16_t i)
{
	struct dp_burst *burst = s->burst;
	struct rte_mbuf *m = burst->pkts[i];
	struct dp_decision *d = &burst->decisions[i];
	const struct lb_fragment_packet held = {m, dp_fragment_occupied(m)};
	struct lb_fragment_decision first;
	struct lb_fragment_range range;
	struct lb_fragment_key key;

	dp_fragments_expire(s->worker, burst->now_ns[i], &burst->settled);
	dp_fragments_shed(s->worker, held.bytes, &burst->settled);
	lb_fragment_describe(&s->packets[i], &key, &range);
	if (lb_fragment_later(s->worker->fragments.table, &key, &range, &held, burst->now_ns[i],
		    &first)) {
		dp_beside(m)->decision = *d;
		dp_beside(m)->now_ns = burst->now_ns[i];
		dp_beside(m)->wire_bytes = burst->wire_bytes[i];
		return (enum lb_verdict)DP_AWAY;
	}
	return follow_first(s, &s->packets[i], &first, burst->now_ns[i], &burst->pkts[i], d);
}

/* Where the others of a datagram go, by what became of its first. */
static struct lb_fragment_decision
describe(const struct dp_decision *d)
{
	struct lb_fragment_decision decision = {.verdict = (enum lb_verdict)d->verdict};

	if (d->verdict == LB_FORWARD)
		decision.owner = (struct lb_fragment_owner){
			.backend = d->backend,
			.entropy = d->entropy,
		};
	else if (d->verdict == LB_REPLY && d->backend != DP_NONE)
		decision.verdict = LB_DROP_TOO_BIG; /* as its sender has been told */
	return decision;
}

/* All that waited for a first fragment. */
static void
release_all(const struct dp_stages *s, const struct lb_fragment_key *key,
	const struct dp_decision *d, struct dp_chain *chain)
{
	const struct lb_fragment_decision first = describe(d);
	struct lb_fragment_waited waited;

	while (lb_fragment_take(s->worker->fragments.table, key, &waited))
		release(s, &waited, &first, chain);
}

/*
 * At home, a first fragment goes as was decided, if it fits the others; then they go the same
 * way, and if it cannot leave after all, none does.
 *
 * @param first  Its packet, in and out: as dp_leave_to_backend() makes it.
 * @return whether those that wait for it do so no more.
 */
static bool
settle_first(const struct dp_stages *s, const struct lb_packet *packet, struct dp_first *first,
	uint64_t now_ns, struct dp_decision *d)
{
	struct lb_fragment_table *table = s->worker->fragments.table;
	enum lb_verdict fits = lb_fragment_first(table, &first->key, &first->range, now_ns);
	struct lb_fragment_decision decision;

	if (d->verdict == LB_REPLY)
		d->verdict = (uint8_t)dp_echo_answer(first->packet, packet);
	decision = describe(d);
	if (fits == LB_FORWARD && lb_fragment_contradicts(table, &first->key, &decision))
		fits = LB_DROP_FRAGMENT_OVERLAP;
	if (fits != LB_FORWARD && d->verdict <= LB_TO_KERNEL)
		d->verdict = (uint8_t)fits;
	if (fits != LB_FORWARD)
		return false;
	if (d->verdict == LB_FORWARD || d->verdict == LB_TO_KERNEL)
		d->verdict = (uint8_t)dp_leave(s, packet, now_ns, &first->packet, d);
	decision = describe(d);
	lb_fragment_decide(table, &first->key, &decision);
	return true;
}

/* Those that waited for a packet leave after it, if it leaves. */
static void
release_after(const struct dp_stages *s, uint16_t i, const struct lb_fragment_key *key)
{
	struct dp_burst *burst = s->burst;
	struct dp_decision *d = &burst->decisions[i];
	struct dp_chain chain = {NULL, NULL};

	if (d->verdict > LB_TO_KERNEL) {
		release_all(s, key, d, &burst->settled);
		return;
	}
	if (d->has_more)
		append_more(&chain, dp_beside(burst->pkts[i])->next);
	release_all(s, key, d, &chain);
	d->has_more = chain.first != NULL;
	if (d->has_more)
		dp_beside(burst->pkts[i])->next = chain.first;
}

void
dp_datagram_first(struct dp_stages *s, uint16_t i)
{
	struct dp_worker *worker = s->worker;
	struct dp_burst *burst = s->burst;
	struct dp_decision *d = &burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];
	const unsigned int home = dp_handoff_home(packet, worker->n_workers);
	struct dp_first first = {.packet = burst->pkts[i]};

	lb_fragment_describe(packet, &first.key, &first.range);
	if (home != worker->index) {
		dp_beside(first.packet)->decision = *d;
		dp_beside(first.packet)->wire_bytes = burst->wire_bytes[i];
		d->verdict = dp_fragment_send_home(worker, home, &first) ? DP_AWAY
									 : LB_DROP_HANDOFF_FULL;
		return;
	}
	dp_fragments_expire(worker, burst->now_ns[i], &burst->settled);
	if (!settle_first(s, packet, &first, burst->now_ns[i], d))
		return;
	burst->pkts[i] = first.packet;
	release_after(s, i, &first.key);
}

/* Whether later fragments ask for it: those of IPv4 without ports go by their flow instead. */
static bool
is_asked_for(const struct lb_packet *packet)
{
	return packet->is_v6 || packet->key.proto == IPPROTO_TCP ||
	       packet->key.proto == IPPROTO_UDP || packet->kind == LB_PACKET_ICMP_OTHER;
}

bool
dp_datagram_has_followers(const struct dp_stages *s, uint16_t i)
{
	const struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];

	return (packet->flags & LB_PACKET_FIRST_FRAGMENT) != 0 && d->ip_bytes != 0 &&
	       d->verdict != DP_AWAY && lb_service_covers(s->snapshot->match, &packet->dst) &&
	       is_asked_for(packet);
}

/* What was decided under another snapshot, if it can be done under this one. */
static enum lb_verdict
check_again(const struct dp_snapshot *snapshot, struct dp_decision *d)
{
	const struct dp_backend *backend;

	if (d->verdict != LB_FORWARD)
		return (enum lb_verdict)d->verdict;
	backend = dp_snapshot_live_backend(snapshot, d->backend);
	if (backend == NULL)
		return LB_DROP_NO_BACKEND;
	d->service = backend->service;
	return LB_FORWARD;
}

void
dp_datagram_come_home(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	const struct dp_first *first, uint64_t now_ns, struct dp_chain *settled)
{
	struct dp_first own = *first;
	struct dp_decision d = dp_beside(first->packet)->decision;
	struct dp_stages s; /* of a burst that is none: the rest is not looked at */
	struct dp_trace *trace = dp_trace_of(worker->trace);
	struct dp_traced traced = {NULL, &d, now_ns, dp_beside(own.packet)->wire_bytes,
		own.packet->port};
	struct lb_packet packet;
	bool is_settled;

	s.worker = worker;
	s.snapshot = snapshot;
	d.verdict = (uint8_t)check_again(snapshot, &d);
	/* It has been parsed before, with this result. */
	if (dp_mbuf_parse(own.packet, dp_beside(own.packet)->wire_bytes, &packet) == LB_FORWARD)
		traced.packet = &packet;
	else if (d.verdict <= LB_TO_KERNEL)
		d.verdict = LB_DROP_TRUNCATED;
	is_settled = settle_first(&s, &packet, &own, now_ns, &d);
	if (unlikely(trace != NULL))
		dp_trace_one(trace, worker->index, snapshot, &traced);
	append_settled(&s, own.packet, &d, settled);
	if (is_settled)
		release_all(&s, &own.key, &d, settled);
}
