/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_forward.h"

#include <netinet/in.h>

#include "dp_mbuf.h"
#include "lb_packet.h"

/* One burst between the stages. */
struct stages {
	struct lb_flow_table *flows;
	uint64_t flow_seed;
	const struct dp_snapshot *snapshot;
	struct dp_burst *burst;
	struct lb_packet packets[DP_BURST_MAX];
	uint64_t picks[DP_BURST_MAX]; /* hash for the slot */
};

static void
parse_stage(struct stages *s)
{
	struct dp_burst *burst = s->burst;

	for (uint16_t i = 0; i < burst->n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		d->service = DP_NONE;
		d->backend = DP_NONE;
		d->slot = DP_NONE;
		d->flow = DP_FLOW_NONE;
		d->event = DP_NO_EVENT;
		d->is_new_flow = false;
		d->ip_bytes = 0;
		d->verdict = (uint8_t)dp_mbuf_parse(burst->pkts[i], burst->wire_bytes[i],
			&s->packets[i]);
	}
}

/* Whether a service takes the tunnels of this protocol. */
static bool
carries(const struct dp_service *service, uint8_t proto)
{
	switch (proto) {
	case IPPROTO_IPIP:
		return (service->carry & DP_CARRY_IPIP) != 0;
	case IPPROTO_IPV6:
		return (service->carry & DP_CARRY_IPV6) != 0;
	case IPPROTO_GRE:
		return (service->carry & DP_CARRY_GRE) != 0;
	default:
		return false;
	}
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

static enum lb_verdict
find_service(const struct dp_snapshot *snapshot, const struct lb_packet *packet,
	uint32_t *service)
{
	const struct lb_flow_key *key = &packet->key;
	uint32_t found;

	switch (packet->kind) {
	case LB_PACKET_ICMP_OTHER:
	case LB_PACKET_NOT_FINAL:
		return LB_TO_KERNEL;
	case LB_PACKET_LATER_FRAGMENT:
		return unless_served(snapshot, &packet->dst, LB_DROP_FRAGMENT_UNMATCHED);
	case LB_PACKET_CUT_SHORT:
		return unless_served(snapshot, &packet->dst, LB_DROP_SNAPLEN);
	default:
		break;
	}

	found = lb_service_find(snapshot->match, &key->dst, key->proto, ntohs(key->dport_be));
	if (packet->kind == LB_PACKET_TUNNEL &&
		(found == LB_SERVICE_NONE || !carries(&snapshot->services[found], key->proto)))
		return unless_served(snapshot, &packet->dst, LB_DROP_UNSUPPORTED_L4);
	if (found == LB_SERVICE_NONE)
		return LB_TO_KERNEL;

	*service = found;
	return (packet->flags & LB_PACKET_CUT) != 0 ? LB_DROP_SNAPLEN : LB_FORWARD;
}

static void
service_stage(struct stages *s)
{
	for (uint16_t i = 0; i < s->burst->n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		d->ip_bytes = s->packets[i].ip_bytes;
		d->verdict = (uint8_t)find_service(s->snapshot, &s->packets[i], &d->service);
	}
}

/* Hash all keys before any bucket is read, so that the loads of the buckets overlap. */
static void
hash_stage(struct stages *s)
{
	const struct dp_snapshot *snapshot = s->snapshot;

	for (uint16_t i = 0; i < s->burst->n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];
		const struct lb_flow_key *key = &s->packets[i].key;
		const struct dp_service *service;

		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		service = &snapshot->services[d->service];
		d->hash = lb_hash_flow(key, s->flow_seed);
		lb_flow_prefetch(s->flows, &d->hash);

		s->picks[i] = d->hash.pick;
		if (unlikely(service->affinity != LB_AFFINITY_5_TUPLE ||
			     snapshot->hash_seed != s->flow_seed))
			s->picks[i] = lb_hash_pick(key, (enum lb_affinity)service->affinity,
				snapshot->hash_seed);
		if (likely(service->picker != NULL))
			lb_picker_prefetch(service->picker,
				lb_picker_slot(service->picker, s->picks[i]));
	}
}

/* Ask the service's table. Returns whether there is anybody to pick. */
static bool
pick_backend(const struct dp_service *service, uint64_t pick, struct dp_decision *d)
{
	d->flow = DP_FLOW_MISS;
	if (service->picker == NULL)
		return false;

	d->slot = lb_picker_slot(service->picker, pick);
	d->backend = service->ids[lb_picker_backend(service->picker, d->slot)];
	return true;
}

/*
 * The entry's backend, while it is up or draining. Its service may be another than the table
 * of services now says, after a reload that added a more specific one: the flow stays where
 * it is, and counts where it goes.
 */
static bool
keep_backend(const struct stages *s, uint32_t ref, struct dp_decision *d)
{
	const uint32_t id = lb_flow_backend(s->flows, ref);
	const struct dp_backend *backend = dp_snapshot_live_backend(s->snapshot, id);

	if (unlikely(backend == NULL))
		return false;
	d->backend = id;
	d->service = backend->service;
	d->flow = DP_FLOW_HIT;
	return true;
}

static enum lb_flow_event
flow_event(const struct lb_packet *packet)
{
	if (packet->key.proto != IPPROTO_TCP)
		return LB_FLOW_DATAGRAM;
	if ((packet->tcp_flags & (LB_TCP_FIN | LB_TCP_RST)) != 0)
		return LB_FLOW_CLOSE;
	if ((packet->tcp_flags & (LB_TCP_SYN | LB_TCP_ACK)) == LB_TCP_SYN)
		return LB_FLOW_SYN;
	return LB_FLOW_SEGMENT;
}

/*
 * The flow has a live entry. Its backend stays unless it is gone, or the packet is a SYN
 * that begins another connection on the same ports.
 */
static enum lb_verdict
follow_entry(struct stages *s, uint16_t i, uint32_t ref, enum lb_flow_event event)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];
	const struct dp_service *service = &s->snapshot->services[d->service];
	const uint64_t now_ns = s->burst->now_ns[i];
	const bool is_fresh = event == LB_FLOW_SYN &&
			      !lb_flow_is_repeated_syn(s->flows, ref, packet->tcp_seq);

	if (likely(!is_fresh && keep_backend(s, ref, d))) {
		lb_flow_touch(s->flows, ref, event, now_ns);
		return LB_FORWARD;
	}
	if (!pick_backend(service, s->picks[i], d))
		return LB_DROP_NO_BACKEND;

	if (is_fresh) {
		lb_flow_restart(s->flows, ref, d->backend, packet->tcp_seq, now_ns);
		d->is_new_flow = true;
	} else {
		lb_flow_set_backend(s->flows, ref, d->backend);
		lb_flow_touch(s->flows, ref, event, now_ns);
	}
	return LB_FORWARD;
}

/* An ICMP error follows its flow, and leaves the flow's entry as it was. */
static enum lb_verdict
follow_quoted_flow(const struct stages *s, uint16_t i, uint32_t ref)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct dp_service *service = &s->snapshot->services[d->service];

	if (ref != LB_FLOW_NONE && keep_backend(s, ref, d))
		return LB_FORWARD;
	return pick_backend(service, s->picks[i], d) ? LB_FORWARD : LB_DROP_NO_BACKEND;
}

static enum lb_verdict
choose_backend(struct stages *s, uint16_t i)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];
	const uint64_t now_ns = s->burst->now_ns[i];
	const uint32_t ref = lb_flow_find(s->flows, &d->hash, now_ns);
	enum lb_flow_event event;

	if (unlikely(packet->kind == LB_PACKET_ICMP_ERROR))
		return follow_quoted_flow(s, i, ref);

	event = flow_event(packet);
	d->event = (uint8_t)event;
	if (ref != LB_FLOW_NONE)
		return follow_entry(s, i, ref, event);

	if (!pick_backend(&s->snapshot->services[d->service], s->picks[i], d))
		return LB_DROP_NO_BACKEND;
	/* Without room the flow goes where the table says, packet by packet. */
	(void)lb_flow_insert(s->flows, &d->hash, d->backend, event, packet->tcp_seq, now_ns);
	d->is_new_flow = true;
	return LB_FORWARD;
}

static void
flow_stage(struct stages *s)
{
	for (uint16_t i = 0; i < s->burst->n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		/* Packets of a burst may lie far apart in time; mostly it is one comparison. */
		lb_flow_table_expire(s->flows, s->burst->now_ns[i]);
		d->verdict = (uint8_t)choose_backend(s, i);
		if (likely(d->verdict == LB_FORWARD))
			__builtin_prefetch(&s->snapshot->backends[d->backend]);
	}
}

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

/* The last look at what is for no service. */
static enum lb_verdict
leave_to_kernel(const struct dp_snapshot *snapshot, struct rte_mbuf *m)
{
	if (answer_neighbor(snapshot, m))
		return LB_REPLY;
	return snapshot->has_kernel ? LB_TO_KERNEL : LB_DROP_NO_SERVICE;
}

static void
encap_stage(struct stages *s)
{
	struct dp_burst *burst = s->burst;

	for (uint16_t i = 0; i < burst->n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		if (likely(d->verdict == LB_FORWARD)) {
			const struct dp_backend *backend = &s->snapshot->backends[d->backend];

			/* The half of the hash that picks no slot: all of a backend's flows
			 * share the slot's bits, and would share the ports made from them. */
			d->verdict = (uint8_t)dp_mbuf_encap(burst->pkts[i], &s->packets[i],
				backend, (uint32_t)(d->hash.place >> 32));
			d->port = backend->port;
		}
		if (unlikely(d->verdict == LB_TO_KERNEL))
			d->verdict = (uint8_t)leave_to_kernel(s->snapshot, burst->pkts[i]);
	}
}

void
dp_forward_burst(struct lb_flow_table *flows, uint64_t flow_seed,
	const struct dp_snapshot *snapshot, struct dp_burst *burst)
{
	struct stages s;

	if (burst->n == 0)
		return;
	s.flows = flows;
	s.flow_seed = flow_seed;
	s.snapshot = snapshot;
	s.burst = burst;

	parse_stage(&s);
	service_stage(&s);
	hash_stage(&s);
	flow_stage(&s);
	encap_stage(&s);
}
