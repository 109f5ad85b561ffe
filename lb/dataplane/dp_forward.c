/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_forward.h"

#include <netinet/in.h>
#include <string.h>

#include "dp_choose.h"
#include "dp_datagram.h"
#include "dp_echo.h"
#include "dp_handoff.h"
#include "dp_leave.h"
#include "dp_mbuf.h"
#include "dp_usual.h"
#include "dp_usual_send.h"
#include "lb_packet.h"
#include "lb_service_lookup.h"
#include "lb_tunnel.h"

/** Beside verdicts, and only between stages: its datagram's first fragment decides. */
#define LATER (LB_N_VERDICTS + 2)

/* Whether it is told by its ports, or what stands for them, which service it is for. */
static inline bool
has_key(const struct lb_packet *packet)
{
	return likely(packet->kind == LB_PACKET_FLOW || packet->kind == LB_PACKET_ICMP_ERROR ||
		      packet->kind == LB_PACKET_TUNNEL);
}

static void
parse_stage(struct dp_stages *s)
{
	struct dp_burst *burst = s->burst;
	const uint16_t n = burst->n;

	for (uint16_t i = 0; i < n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		if (likely(s->is_usual[i]))
			continue;
		d->service = DP_NONE;
		d->backend = DP_NONE;
		d->slot = DP_NONE;
		d->ip_bytes = 0;
		d->flow = DP_FLOW_NONE;
		d->event = DP_NO_EVENT;
		d->is_new_flow = false;
		d->has_more = false;
		d->verdict = (uint8_t)dp_mbuf_parse(burst->pkts[i], burst->wire_bytes[i],
			&s->packets[i]);
	}
}

/*
 * A packet that its device may have put in another queue than its flow's goes to the worker
 * that has to do with it. Once: what comes by mail is placed. LB_FORWARD: that is this one.
 */
static enum lb_verdict
hand_on(const struct dp_stages *s, uint16_t i)
{
	const struct lb_packet *packet = &s->packets[i];
	const struct dp_rss *rss = s->burst->rss;
	const unsigned int n_workers = s->worker->n_workers;
	unsigned int owner;

	if (s->burst->is_placed || !lb_service_covers(s->snapshot->match, &packet->dst))
		return LB_FORWARD;
	if (dp_handoff_is_later(packet))
		owner = dp_handoff_home(packet, n_workers);
	else if (rss->n_queues != 0)
		owner = dp_handoff_rss(rss, packet);
	else /* nobody can tell */
		owner = s->worker->index;
	if (owner == s->worker->index)
		return LB_FORWARD;
	return rte_ring_enqueue(s->worker->mail[owner].packets, s->burst->pkts[i]) == 0
		       ? (enum lb_verdict)DP_AWAY
		       : LB_DROP_HANDOFF_FULL;
}

/* Whether a service takes the tunnels of this protocol. */
static bool
carries(const struct dp_service *service, uint8_t proto)
{
	switch (proto) {
	case IPPROTO_IPIP:
		return (service->carry & LB_TUNNEL_IPIP) != 0;
	case IPPROTO_IPV6:
		return (service->carry & LB_TUNNEL_IPV6) != 0;
	case IPPROTO_GRE:
		return (service->carry & LB_TUNNEL_GRE) != 0;
	default:
		return false;
	}
}

/* Whether it comes to a port of a tunnel that the service refuses. */
static bool
refuses(const struct dp_snapshot *snapshot, const struct dp_service *service,
	const struct lb_flow_key *key)
{
	return unlikely(service->refused != 0) && key->proto == IPPROTO_UDP &&
	       (snapshot->tunnels[ntohs(key->dport_be)] & service->refused) != 0;
}

/*
 * What a packet that is for nobody here becomes: reason where the address is a service's,
 * since then the kernel has no use for it either; the kernel's otherwise.
 */
static enum lb_verdict
unless_served(const struct dp_snapshot *snapshot, const struct lb_addr *dst,
	enum lb_verdict reason)
{
	return lb_service_covers(snapshot->match, dst) ? reason : LB_TO_KERNEL;
}

/* What is neither a flow's packet nor an error about one. */
static enum lb_verdict
take_other(const struct dp_stages *s, uint16_t i, uint32_t *service)
{
	const struct lb_packet *packet = &s->packets[i];
	const enum lb_verdict later =
		(packet->flags & LB_PACKET_CUT) != 0 ? LB_DROP_SNAPLEN : (enum lb_verdict)LATER;

	switch (packet->kind) {
	case LB_PACKET_ICMP_OTHER:
		if ((packet->flags & LB_PACKET_ECHO_REQUEST) != 0)
			return dp_echo_take(s, i, service);
		if (!lb_packet_is_later_fragment(packet))
			return LB_TO_KERNEL;
		return unless_served(s->snapshot, &packet->dst, later);
	case LB_PACKET_LATER_FRAGMENT:
		return unless_served(s->snapshot, &packet->dst, later);
	case LB_PACKET_CUT_SHORT:
		return unless_served(s->snapshot, &packet->dst, LB_DROP_SNAPLEN);
	default:
		return LB_TO_KERNEL;
	}
}

static enum lb_verdict
find_service(struct dp_stages *s, uint16_t i, uint32_t *service)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	const struct lb_packet *packet = &s->packets[i];
	const struct lb_flow_key *key = &packet->key;
	const uint32_t found = lb_service_end(snapshot->match, &s->searches[i], &key->dst,
		key->proto, ntohs(key->dport_be));
	const uint32_t place = found & DP_MATCH_PLACE;

	if (packet->kind == LB_PACKET_TUNNEL &&
		(found == LB_SERVICE_NONE || !carries(&snapshot->services[place], key->proto)))
		return unless_served(snapshot, &packet->dst, LB_DROP_UNSUPPORTED_L4);
	if (found == LB_SERVICE_NONE)
		return LB_TO_KERNEL;
	s->has_more[i] = (found & DP_MATCH_MORE) != 0;
	if (unlikely(s->has_more[i]) && refuses(snapshot, &snapshot->services[place], key))
		return LB_DROP_UNSUPPORTED_L4;

	*service = place;
	return (packet->flags & LB_PACKET_CUT) != 0 ? LB_DROP_SNAPLEN : LB_FORWARD;
}

/*
 * An error about a flow. One about an echo is for who answers those of the address; where that
 * is the balancer, nobody here has to know.
 */
static enum lb_verdict
take_error(struct dp_stages *s, uint16_t i, uint32_t *service)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	const struct lb_packet *packet = &s->packets[i];
	uint32_t found;

	if (packet->key.proto != (packet->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return find_service(s, i, service);
	s->has_more[i] = true;
	found = lb_service_find(snapshot->echo, &packet->dst, IPPROTO_ICMP, 0);
	if (found == LB_SERVICE_NONE || snapshot->services[found].echo != DP_ECHO_FORWARD)
		return LB_TO_KERNEL;
	*service = found;
	return (packet->flags & LB_PACKET_CUT) != 0 ? LB_DROP_SNAPLEN : LB_FORWARD;
}

/*
 * An error about a later fragment, which shows no ports: nobody here has seen its first, which
 * went from a server to its client. So it has a service only where addresses decide.
 */
static enum lb_verdict
take_portless(const struct dp_snapshot *snapshot, const struct lb_packet *packet,
	uint32_t *service)
{
	const struct lb_flow_key *key = &packet->key;
	const uint32_t found = lb_service_find(snapshot->portless[key->proto == IPPROTO_UDP],
		&key->dst, key->proto, 0);

	if (found >= snapshot->n_services)
		return LB_TO_KERNEL;
	*service = found;
	return (packet->flags & LB_PACKET_CUT) != 0 ? LB_DROP_SNAPLEN : LB_FORWARD;
}

static enum lb_verdict
route(struct dp_stages *s, uint16_t i, uint32_t *service)
{
	const struct lb_packet *packet = &s->packets[i];

	if (unlikely((packet->flags & LB_PACKET_SOURCE_ROUTE) != 0))
		return unless_served(s->snapshot, &packet->dst, LB_DROP_SOURCE_ROUTE);
	if (unlikely(dp_handoff_is_astray(packet))) {
		const enum lb_verdict verdict = hand_on(s, i);

		if (verdict != LB_FORWARD)
			return verdict;
	}
	if (likely(packet->kind == LB_PACKET_FLOW || packet->kind == LB_PACKET_TUNNEL))
		return find_service(s, i, service);
	if (packet->kind == LB_PACKET_ICMP_ERROR)
		return take_error(s, i, service);
	s->has_more[i] = true;
	if (packet->kind == LB_PACKET_ICMP_ERROR_LATER)
		return take_portless(s->snapshot, packet, service);
	return take_other(s, i, service);
}

/*
 * What came to a group of the link, or to all on it, is forwarded to nobody (RFC 1812, section
 * 5.3.4): another balancer has it, too.
 */
static void
refuse_group(struct dp_decision *d)
{
	if (d->verdict == LB_FORWARD || d->verdict == LATER)
		d->verdict = LB_DROP_LINK_MULTICAST;
}

/*
 * Ask for what finds the services. Not right after each packet's parsing, where the key's words
 * would wait for its bytes to be written.
 */
static void
begin_searches(struct dp_stages *s)
{
	for (uint16_t i = 0; i < s->burst->n; i++) {
		const struct lb_flow_key *key = &s->packets[i].key;

		if (likely(!s->is_usual[i] && s->burst->decisions[i].verdict == LB_FORWARD &&
			    has_key(&s->packets[i])))
			lb_service_begin(s->snapshot->match, &key->dst, key->proto,
				ntohs(key->dport_be), &s->searches[i]);
	}
}

static void
service_stage(struct dp_stages *s)
{
	begin_searches(s);
	for (uint16_t i = 0; i < s->burst->n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		if (s->is_usual[i] || unlikely(d->verdict != LB_FORWARD))
			continue;
		d->ip_bytes = s->packets[i].ip_bytes;
		d->verdict = (uint8_t)route(s, i, &d->service);
		if (unlikely((s->packets[i].flags & LB_PACKET_LINK_GROUP) != 0))
			refuse_group(d);
	}
}

static void
encap_stage(struct dp_stages *s)
{
	struct dp_burst *burst = s->burst;

	for (uint16_t i = 0; i < burst->n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		if (s->is_usual[i])
			continue;
		if (unlikely(dp_datagram_has_followers(s, i))) {
			dp_datagram_first(s, i);
			continue;
		}
		if (unlikely(d->verdict == LB_REPLY))
			d->verdict = (uint8_t)dp_echo_answer(burst->pkts[i], &s->packets[i]);
		if (likely(d->verdict == LB_FORWARD && d->event != LB_FLOW_SYN))
			d->verdict = (uint8_t)dp_leave_to_backend(s, &s->packets[i],
				burst->now_ns[i], &burst->pkts[i], d);
		else if (d->verdict == LATER)
			d->verdict = (uint8_t)dp_datagram_later(s, i);
		else if (d->verdict == LB_FORWARD || d->verdict == LB_TO_KERNEL)
			d->verdict = (uint8_t)dp_leave(s, &s->packets[i], burst->now_ns[i],
				&burst->pkts[i], d);
	}
}

/*
 * All but the outer headers, for what is not usual, and what is but of no known flow, from one
 * on: all before it are usual, and have left.
 */
static void
run_stages(struct dp_stages *s, size_t from, size_t n_usual)
{
	const size_t n = s->burst->n;
	bool has_flows = n_usual > 0;
	size_t n_known;

	if (unlikely(n_usual < n)) {
		parse_stage(s);
		service_stage(s);
		has_flows |= dp_choose_hash(s);
	}
	if (!has_flows)
		return;
	lb_flow_table_expire(s->worker->flows, s->burst->now_ns[0]);
	n_known = dp_usual_follow(s, from);
	if (unlikely(n_known < n))
		dp_choose(s, (uint16_t)n_known);
}

/* Of a burst that is not cut, for those that want to know, from one packet on. */
static void
note_wire_bytes(struct dp_burst *burst, size_t from)
{
	for (size_t i = from; i < burst->n && !burst->is_cut; i++)
		burst->wire_bytes[i] = burst->pkts[i]->pkt_len;
}

/* Which packets a trace looks at, parsed while they are as they came. @return a bit of each. */
static uint64_t
begin_trace(struct dp_trace *trace, struct dp_stages *s)
{
	struct dp_burst *burst = s->burst;
	const uint64_t traced = dp_trace_draw(trace, s->worker->index, burst->n);

	note_wire_bytes(burst, 0);
	for (uint64_t left = traced; left != 0; left &= left - 1) {
		const unsigned int i = (unsigned int)__builtin_ctzll(left);

		/* One that is not to be read has no ip_bytes, and is not looked at. */
		(void)dp_mbuf_parse(burst->pkts[i], burst->wire_bytes[i], &s->packets[i]);
	}
	return traced;
}

/* Since when services are matched as they are. */
static inline void
note_match(struct dp_worker *worker, const struct dp_snapshot *snapshot, uint64_t now_ns)
{
	if (likely(worker->match_print == snapshot->match_print &&
		    worker->n_losses == snapshot->n_losses))
		return;
	worker->match_print = snapshot->match_print;
	worker->n_losses = snapshot->n_losses;
	worker->match_since_ns = now_ns;
}

/*
 * What is left of a burst, from one on; n_usual of all are usual. @return how many of all went
 * the short way.
 */
static size_t __attribute__((noinline))
send_others(struct dp_stages *s, size_t from, size_t n_usual)
{
	size_t n_sent = from;

	note_wire_bytes(s->burst, from);
	if (n_usual > from)
		n_usual = dp_usual_find(s, from);
	run_stages(s, from, n_usual);
	if (n_usual > from)
		n_sent = dp_usual_send(s, from);
	if (unlikely(n_sent < s->burst->n))
		encap_stage(s);
	return n_sent;
}

unsigned int
dp_forward_burst(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_burst *burst)
{
	struct dp_trace *trace = dp_trace_of(worker->trace);
	uint64_t traced = 0;
	struct dp_stages s;
	size_t n_sent = 0;
	size_t n;

	if (burst->n == 0)
		return 0;
	s.worker = worker;
	s.snapshot = snapshot;
	s.burst = burst;

	if (unlikely(trace != NULL))
		traced = begin_trace(trace, &s);
	note_match(worker, snapshot, burst->now_ns[0]);
	n = dp_usual_take(&s);
	if (likely(n > 0)) {
		lb_flow_table_expire(worker->flows, burst->now_ns[0]);
		n_sent = dp_usual_send_known(&s, dp_usual_follow_known(&s),
			burst->is_brief && trace == NULL);
	}
	if (unlikely(n_sent < burst->n))
		n_sent = send_others(&s, n_sent, n);
	if (unlikely(traced != 0))
		dp_trace_burst(trace, worker->index, snapshot, burst, s.packets, traced);
	return (unsigned int)n_sent;
}

void
dp_forward_burst_plainly(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_burst *burst)
{
	struct dp_stages s;

	if (burst->n == 0)
		return;
	s.worker = worker;
	s.snapshot = snapshot;
	s.burst = burst;

	note_match(worker, snapshot, burst->now_ns[0]);
	note_wire_bytes(burst, 0);
	memset(s.is_usual, 0, sizeof(s.is_usual));
	run_stages(&s, 0, 0);
	encap_stage(&s);
}
