/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_forward.h"

#include <netinet/in.h>
#include <string.h>

#include "dp_fit.h"
#include "dp_handoff.h"
#include "dp_mbuf.h"
#include "dp_usual.h"
#include "lb_flow_lookup.h"
#include "lb_hash_flow.h"
#include "lb_icmp.h"
#include "lb_mss.h"
#include "lb_packet.h"
#include "lb_service_lookup.h"
#include "lb_tunnel.h"

/** Beside verdicts, and only between stages: its datagram's first fragment decides. */
#define LATER (LB_N_VERDICTS + 2)

/*
 * How near a prefetch brings a line. The first-level cache has few places for lines on their
 * way, so where many backends are asked for in a row, the second level is sooner.
 */
#define TO_L2 2

#define UDP_BYTES     8u
#define UDP_LENGTH_AT 4u

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

/* Of ICMP over IPv4 too, of which LB_PACKET_LATER_FRAGMENT is none. */
static bool
is_later_fragment(const struct lb_packet *packet)
{
	return (packet->flags & (LB_PACKET_FRAGMENT | LB_PACKET_FIRST_FRAGMENT)) ==
	       LB_PACKET_FRAGMENT;
}

/* Make an echo request, or a fragment of one, into the reply's; the kernel's if it has none. */
static enum lb_verdict
send_back(struct rte_mbuf *m, const struct lb_packet *packet)
{
	size_t begin = 0;
	size_t n_bytes;

	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0)
		return LB_DROP_NO_MEMORY;
	n_bytes =
		lb_icmp_echo_reply(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, packet, &begin);
	if (n_bytes == 0)
		return LB_TO_KERNEL;
	(void)rte_pktmbuf_adj(m, (uint16_t)begin); /* less than there is */
	dp_mbuf_cut(m, (uint32_t)n_bytes);
	return LB_REPLY;
}

/*
 * An echo request, or the first fragment of one, whose others follow it; where it is for a
 * service's address that service says what becomes of it.
 */
static enum lb_verdict
take_echo(const struct dp_stages *s, uint16_t i, uint32_t *service)
{
	const struct lb_packet *packet = &s->packets[i];
	const uint32_t found =
		lb_service_find(s->snapshot->echo, &packet->dst, IPPROTO_ICMP, 0);

	if (found == LB_SERVICE_NONE)
		return LB_TO_KERNEL;
	*service = found;
	if (s->snapshot->services[found].echo == DP_ECHO_DROP)
		return LB_DROP_ECHO_REFUSED;
	if ((packet->flags & LB_PACKET_CUT) != 0)
		return LB_DROP_SNAPLEN;
	if (s->snapshot->services[found].echo == DP_ECHO_FORWARD)
		return LB_FORWARD;
	if (dp_snapshot_is_martian(s->snapshot, &packet->key.src, &packet->dst))
		return LB_DROP_MARTIAN_SOURCE;
	if (!dp_worker_may_reply(s->worker, &packet->key.src, s->burst->now_ns[i]))
		return LB_DROP_RATE_LIMITED;
	return send_back(s->burst->pkts[i], packet);
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
			return take_echo(s, i, service);
		if (!is_later_fragment(packet))
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

/*
 * The place of each packet's flow, and the hash that picks its slot should it be new. No bucket
 * is read before all are asked for, so that their loads overlap.
 *
 * Returns whether any packet has a flow.
 */
static bool
hash_stage(struct dp_stages *s)
{
	/* Read once: a verdict is a byte, and what is behind a pointer might be one for all the
	 * compiler knows. */
	struct dp_decision *decisions = s->burst->decisions;
	const struct lb_flow_table *flows = s->worker->flows;
	const struct dp_service *services = s->snapshot->services;
	const uint64_t hash_seed = s->snapshot->hash_seed;
	const uint64_t flow_seed = s->worker->flow_seed;
	const uint16_t n = s->burst->n;
	bool has_flows = false;

	for (uint16_t i = 0; i < n; i++) {
		struct dp_decision *d = &decisions[i];
		const struct lb_flow_key *key = &s->packets[i].key;
		struct lb_flow_hash hash;

		if (s->is_usual[i] || unlikely(d->verdict != LB_FORWARD))
			continue;
		hash = lb_hash_flow_inline(key, flow_seed);
		s->places[i] = lb_flow_locate(flows, &hash);
		lb_flow_prefetch(flows, &s->places[i]);
		d->hash = hash;
		s->picks[i] = hash.pick;
		if (unlikely(s->has_more[i] || hash_seed != flow_seed))
			s->picks[i] = lb_hash_pick(key,
				(enum lb_affinity)services[d->service].affinity, hash_seed);
		has_flows = true;
	}
	return has_flows;
}

/*
 * Look into all first buckets before any flow is followed, and ask for what each will need: the
 * backend of one that is there, a slot and another place for one that is not.
 */
static void
find_stage(struct dp_stages *s, uint16_t from)
{
	const struct lb_flow_table *flows = s->worker->flows;
	const struct dp_backend *backends = s->snapshot->backends;
	const struct dp_burst *burst = s->burst;

	for (uint16_t i = from; i < burst->n; i++) {
		const struct dp_decision *d = &burst->decisions[i];
		const struct lb_picker *picker;

		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		if (s->is_usual[i])
			s->places[i] = lb_flow_locate(flows, &d->hash);
		s->refs[i] = lb_flow_find_first(flows, &s->places[i], burst->now_ns[i]);
		if (likely(s->refs[i] != LB_FLOW_NONE)) {
			const uint32_t id = lb_flow_backend(flows, s->refs[i]);

			__builtin_prefetch(&backends[id], 0, TO_L2);
			/* An outer IPv6 header, of most that carry IPv6, reaches into the next
			 * line. */
			if (s->is_usual[i] ? s->is_v6[i] : s->packets[i].is_v6)
				__builtin_prefetch((const uint8_t *)&backends[id] +
							   LB_CACHE_LINE,
					0, TO_L2);
			continue;
		}
		lb_flow_prefetch_second(flows, &s->places[i]);
		picker = s->snapshot->services[d->service].picker;
		if (likely(picker != NULL))
			lb_picker_prefetch(picker,
				lb_picker_slot(picker,
					s->is_usual[i] ? d->hash.pick : s->picks[i]));
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
keep_backend(const struct dp_stages *s, uint32_t ref, struct dp_decision *d)
{
	const uint32_t id = lb_flow_backend(s->worker->flows, ref);
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
follow_entry(struct dp_stages *s, uint16_t i, uint32_t ref, enum lb_flow_event event)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];
	const struct dp_service *service = &s->snapshot->services[d->service];
	const uint64_t now_ns = s->burst->now_ns[i];
	const bool is_fresh = event == LB_FLOW_SYN &&
			      !lb_flow_is_repeated_syn(s->worker->flows, ref, packet->tcp_seq);

	if (likely(!is_fresh && keep_backend(s, ref, d))) {
		lb_flow_touch(s->worker->flows, ref, event, now_ns);
		return LB_FORWARD;
	}
	if (!pick_backend(service, s->picks[i], d))
		return LB_DROP_NO_BACKEND;

	if (is_fresh) {
		lb_flow_restart(s->worker->flows, ref, d->backend, packet->tcp_seq, now_ns);
		d->is_new_flow = true;
	} else {
		lb_flow_set_backend(s->worker->flows, ref, d->backend);
		lb_flow_touch(s->worker->flows, ref, event, now_ns);
	}
	return LB_FORWARD;
}

/*
 * Whether an error comes from where nothing comes from, or is about a packet to there. Any
 * router may send one, so its source, which no key has, is in the frame alone.
 */
static bool
is_martian_error(const struct dp_stages *s, uint16_t i)
{
	const struct lb_packet *packet = &s->packets[i];
	const uint8_t *ip =
		rte_pktmbuf_mtod_offset(s->burst->pkts[i], const uint8_t *, packet->ip_offset);
	struct lb_addr source;

	if (packet->is_v6)
		memcpy(source.bytes, ip + 8, LB_ADDR_BYTES);
	else
		source = lb_addr_from_v4(ip + 12);
	return dp_snapshot_is_martian(s->snapshot, &source, &packet->dst) ||
	       dp_snapshot_is_martian(s->snapshot, &packet->key.src, &packet->dst);
}

/* An ICMP error follows its flow, and leaves the flow's entry as it was. */
static enum lb_verdict
follow_quoted_flow(const struct dp_stages *s, uint16_t i, uint32_t ref)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct dp_service *service = &s->snapshot->services[d->service];

	if (is_martian_error(s, i))
		return LB_DROP_MARTIAN_SOURCE;
	if (ref != LB_FLOW_NONE && keep_backend(s, ref, d))
		return LB_FORWARD;
	return pick_backend(service, s->picks[i], d) ? LB_FORWARD : LB_DROP_NO_BACKEND;
}

/*
 * The bytes from the L4 header on that are the packet's and in its first segment: what pads a
 * short frame is its sender's to choose, and nobody behind sees it.
 */
static size_t
l4_bytes(const struct rte_mbuf *m, const struct lb_packet *packet)
{
	const uint32_t end =
		RTE_MIN((uint32_t)m->data_len, packet->ip_offset + packet->ip_bytes);

	return end > packet->l4_offset ? end - packet->l4_offset : 0;
}

/* The server that a QUIC connection id names, if it is one of the service's and takes packets.
 */
static bool
find_server(const struct dp_stages *s, uint16_t i, struct dp_decision *d)
{
	const struct rte_mbuf *m = s->burst->pkts[i];
	const uint8_t *udp =
		rte_pktmbuf_mtod_offset(m, const uint8_t *, s->packets[i].l4_offset);
	const struct dp_backend *backend;
	size_t n_bytes = l4_bytes(m, &s->packets[i]);
	uint32_t id;

	if (n_bytes < UDP_BYTES)
		return false;
	n_bytes = RTE_MIN(n_bytes, (size_t)udp[UDP_LENGTH_AT] << 8 | udp[UDP_LENGTH_AT + 1]);
	if (n_bytes < UDP_BYTES)
		return false;
	id = lb_quic_find(s->snapshot->services[d->service].quic, udp + UDP_BYTES,
		n_bytes - UDP_BYTES);
	if (id == LB_QUIC_NONE)
		return false;
	backend = dp_snapshot_live_backend(s->snapshot, id);
	if (backend == NULL || backend->service != d->service)
		return false;
	d->backend = id;
	return true;
}

/* A connection stays with its server when its client moves; the flow's entry follows it. */
static enum lb_verdict
follow_connection(struct dp_stages *s, uint16_t i, uint32_t ref)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const uint64_t now_ns = s->burst->now_ns[i];

	d->flow = DP_FLOW_MISS;
	if (ref == LB_FLOW_NONE) {
		if (dp_snapshot_is_martian(s->snapshot, &s->packets[i].key.src,
			    &s->packets[i].dst))
			return LB_DROP_MARTIAN_SOURCE;
		lb_flow_keep(s->worker->flows,
			lb_flow_insert(s->worker->flows, &d->hash, d->backend, LB_FLOW_DATAGRAM,
				0, now_ns),
			&s->packets[i].key);
		d->is_new_flow = true;
		return LB_FORWARD;
	}
	if (lb_flow_backend(s->worker->flows, ref) == d->backend)
		d->flow = DP_FLOW_HIT;
	else
		lb_flow_set_backend(s->worker->flows, ref, d->backend);
	lb_flow_touch(s->worker->flows, ref, LB_FLOW_DATAGRAM, now_ns);
	return LB_FORWARD;
}

static bool
has_connection_id(const struct dp_stages *s, uint16_t i)
{
	const struct dp_decision *d = &s->burst->decisions[i];

	return s->has_more[i] && s->packets[i].key.proto == IPPROTO_UDP &&
	       s->snapshot->services[d->service].quic != NULL;
}

static enum lb_verdict
begin_flow(struct dp_stages *s, uint16_t i, enum lb_flow_event event)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];

	if (dp_snapshot_is_martian(s->snapshot, &packet->key.src, &packet->dst))
		return LB_DROP_MARTIAN_SOURCE;
	if (!pick_backend(&s->snapshot->services[d->service], s->picks[i], d))
		return LB_DROP_NO_BACKEND;
	/* Without room the flow goes where the table says, packet by packet. */
	lb_flow_keep(s->worker->flows,
		lb_flow_insert(s->worker->flows, &d->hash, d->backend, event, packet->tcp_seq,
			s->burst->now_ns[i]),
		&packet->key);
	d->is_new_flow = true;
	return LB_FORWARD;
}

static enum lb_verdict
choose_backend(struct dp_stages *s, uint16_t i, uint32_t ref)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];
	enum lb_flow_event event;

	if (unlikely(packet->kind == LB_PACKET_ICMP_ERROR))
		return follow_quoted_flow(s, i, ref);
	if (unlikely(packet->kind == LB_PACKET_ICMP_ERROR_LATER))
		return follow_quoted_flow(s, i, LB_FLOW_NONE);

	event = flow_event(packet);
	d->event = (uint8_t)event;
	if (unlikely(has_connection_id(s, i)) && find_server(s, i, d))
		return follow_connection(s, i, ref);
	if (likely(ref != LB_FLOW_NONE))
		return follow_entry(s, i, ref, event);
	return begin_flow(s, i, event);
}

/* A usual packet whose flow is not: what the stages before would have made of it. */
static void
unmake_usual(struct dp_stages *s, uint16_t i)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	const uint32_t service = s->burst->decisions[i].service;

	dp_usual_leave(s, i);
	s->has_more[i] = true;
	s->picks[i] = lb_hash_pick(&s->packets[i].key,
		(enum lb_affinity)snapshot->services[service].affinity, snapshot->hash_seed);
}

/* All before from are decided; the table has been told the time. */
static void
flow_stage(struct dp_stages *s, uint16_t from)
{
	struct lb_flow_table *flows = s->worker->flows;
	uint64_t now_ns = s->burst->now_ns[0];
	bool is_stale = false;

	find_stage(s, from);
	for (uint16_t i = from; i < s->burst->n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		/* Packets of a replayed burst may lie far apart in time. */
		if (unlikely(s->burst->now_ns[i] != now_ns)) {
			now_ns = s->burst->now_ns[i];
			lb_flow_table_expire(flows, now_ns);
			is_stale = true;
		}
		if (unlikely(is_stale || s->refs[i] == LB_FLOW_NONE))
			s->refs[i] = lb_flow_find_at(flows, &s->places[i], now_ns);
		if (s->is_usual[i]) {
			if (likely(s->refs[i] != LB_FLOW_NONE &&
				    dp_usual_follow_entry(s, i, s->refs[i])))
				continue;
			unmake_usual(s, i);
			if (unlikely(d->verdict != LB_FORWARD))
				continue;
		}
		d->verdict = (uint8_t)choose_backend(s, i, s->refs[i]);
		/* It is counted when it has left. */
		if (likely(d->verdict == LB_FORWARD))
			__builtin_prefetch(&s->worker->backends[d->backend], 1, TO_L2);
		if (unlikely(d->is_new_flow)) {
			is_stale = true;
			__builtin_prefetch(&s->snapshot->backends[d->backend]);
		}
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
leave_to_kernel(const struct dp_stages *s, const struct lb_packet *packet, struct rte_mbuf *m,
	const struct dp_decision *d)
{
	const struct dp_snapshot *snapshot = s->snapshot;

	if (answer_neighbor(snapshot, m))
		return LB_REPLY;
	/* Of what was not parsed there is no length. */
	if (d->ip_bytes != 0 && dp_probes_take(s->worker, snapshot, packet, m)) {
		dp_count(&s->worker->verdict_pkts[LB_TO_KERNEL], 1);
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
			l4_bytes(m, packet), mss);
}

/*
 * What tells a backend's flows apart in outer headers: of the half of the hash that picks no
 * slot, as they all share the slot's bits.
 */
static inline uint32_t
entropy_of(const struct dp_decision *d)
{
	return (uint32_t)(d->hash.place >> 32);
}

static enum lb_verdict __attribute__((noinline, cold))
fit_in(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf **m, struct dp_decision *d)
{
	const struct dp_passage passage = {
		.worker = s->worker,
		.service = &s->snapshot->services[d->service],
		.backend = &s->snapshot->backends[d->backend],
		.packet = packet,
		.entropy = entropy_of(d),
		.now_ns = now_ns,
	};

	return dp_fit(&passage, m, d);
}

/* To its backend, as it is or in pieces; or back, if it is too big. */
static inline enum lb_verdict
send_on(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf **m, struct dp_decision *d)
{
	const struct dp_backend *backend = &s->snapshot->backends[d->backend];
	const enum lb_verdict verdict = dp_mbuf_encap(*m, packet, backend, entropy_of(d));

	d->port = backend->port;
	if (unlikely(verdict == LB_DROP_TOO_BIG))
		return fit_in(s, packet, now_ns, m, d);
	return verdict;
}

/*
 * A later fragment of an echo request whose first was answered. One that may not be, for its
 * options or MAC addresses, is nobody's: the kernel has not seen its first.
 */
static enum lb_verdict
answer_later(const struct dp_stages *s, const struct lb_packet *packet, struct rte_mbuf *m,
	struct dp_decision *d)
{
	const uint32_t found =
		lb_service_find(s->snapshot->echo, &packet->dst, IPPROTO_ICMP, 0);
	enum lb_verdict verdict;

	if (found == LB_SERVICE_NONE || s->snapshot->services[found].echo != DP_ECHO_REPLY)
		return LB_DROP_FRAGMENT_UNMATCHED;
	d->service = found;
	verdict = send_back(m, packet);
	return verdict == LB_TO_KERNEL ? LB_DROP_FRAGMENT_BAD : verdict;
}

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
		return answer_later(s, packet, *m, d);
	if (first->verdict != LB_FORWARD)
		return first->verdict;
	backend = dp_snapshot_live_backend(s->snapshot, first->owner.backend);
	if (backend == NULL)
		return LB_DROP_FRAGMENT_UNMATCHED;
	d->backend = first->owner.backend;
	d->service = backend->service;
	d->hash.place = (uint64_t)first->owner.entropy << 32;
	d->flow = DP_FLOW_HIT;
	return send_on(s, packet, now_ns, m, d);
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
release(const struct dp_stages *s, struct rte_mbuf *m, const struct lb_fragment_decision *first,
	struct dp_chain *chain)
{
	const uint64_t now_ns = dp_beside(m)->now_ns;
	struct dp_decision d = dp_beside(m)->decision;
	struct lb_packet packet;
	struct dp_trace *trace = dp_trace_of(s->worker->trace);
	struct dp_traced traced = {&packet, &d, now_ns, m->pkt_len, m->port};

	/* It has been parsed before, with this result. */
	if (dp_mbuf_parse(m, dp_beside(m)->wire_bytes, &packet) == LB_FORWARD) {
		d.verdict = (uint8_t)follow_first(s, &packet, first, now_ns, &m, &d);
	} else {
		d.verdict = LB_DROP_TRUNCATED;
		traced.packet = NULL;
	}
	if (unlikely(trace != NULL))
		dp_trace_one(trace, s->worker->index, s->snapshot, &traced);
	append_settled(s, m, &d, chain);
}

/* Where its first went; or it waits. */
static enum lb_verdict
take_later(const struct dp_stages *s, uint16_t i)
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

/* What is left of a packet's way once its backend, or the lack of one, is known. */
static enum lb_verdict
finish(const struct dp_stages *s, const struct lb_packet *packet, uint64_t now_ns,
	struct rte_mbuf **m, struct dp_decision *d)
{
	if (d->verdict == LB_TO_KERNEL)
		return leave_to_kernel(s, packet, *m, d);
	if (d->event == LB_FLOW_SYN)
		clamp_mss(s->snapshot, *m, packet, d);
	return send_on(s, packet, now_ns, m, d);
}

/* Where the others of a datagram go, by what became of its first. */
static struct lb_fragment_decision
describe(const struct dp_decision *d)
{
	struct lb_fragment_decision decision = {.verdict = (enum lb_verdict)d->verdict};

	if (d->verdict == LB_FORWARD)
		decision.owner = (struct lb_fragment_owner){
			.backend = d->backend,
			.entropy = entropy_of(d),
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
	void *m;

	while (lb_fragment_take(s->worker->fragments.table, key, &m))
		release(s, m, &first, chain);
}

/*
 * At home, a first fragment goes as was decided, if it fits the others; then they go the same
 * way, and if it cannot leave after all, none does.
 *
 * @param first  Its packet, in and out: as send_on() makes it.
 * @return whether those that wait for it do so no more.
 */
static bool
settle_first(const struct dp_stages *s, const struct lb_packet *packet, struct dp_first *first,
	uint64_t now_ns, struct dp_decision *d)
{
	struct lb_fragment_table *table = s->worker->fragments.table;
	enum lb_verdict fits = lb_fragment_first(table, &first->key, &first->range, now_ns);
	struct lb_fragment_decision decision = describe(d);

	if (fits == LB_FORWARD && lb_fragment_contradicts(table, &first->key, &decision))
		fits = LB_DROP_FRAGMENT_OVERLAP;
	if (fits != LB_FORWARD && d->verdict <= LB_TO_KERNEL)
		d->verdict = (uint8_t)fits;
	if (fits != LB_FORWARD)
		return false;
	if (d->verdict == LB_FORWARD || d->verdict == LB_TO_KERNEL)
		d->verdict = (uint8_t)finish(s, packet, now_ns, &first->packet, d);
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

/* A datagram's first fragment, decided but not yet on its way: that begins at home. */
static void
finish_first(struct dp_stages *s, uint16_t i)
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

/* Those whose first says where the others of its datagram go: a service's, parsed to the end.
 */
static bool
has_followers(const struct dp_stages *s, uint16_t i)
{
	const struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_packet *packet = &s->packets[i];

	return (packet->flags & LB_PACKET_FIRST_FRAGMENT) != 0 && d->ip_bytes != 0 &&
	       d->verdict != DP_AWAY && lb_service_covers(s->snapshot->match, &packet->dst) &&
	       is_asked_for(packet);
}

static void
encap_stage(struct dp_stages *s)
{
	struct dp_burst *burst = s->burst;

	for (uint16_t i = 0; i < burst->n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		if (s->is_usual[i])
			continue;
		if (unlikely(has_followers(s, i)))
			finish_first(s, i);
		else if (likely(d->verdict == LB_FORWARD && d->event != LB_FLOW_SYN))
			d->verdict = (uint8_t)send_on(s, &s->packets[i], burst->now_ns[i],
				&burst->pkts[i], d);
		else if (d->verdict == LATER)
			d->verdict = (uint8_t)take_later(s, i);
		else if (d->verdict == LB_FORWARD || d->verdict == LB_TO_KERNEL)
			d->verdict = (uint8_t)finish(s, &s->packets[i], burst->now_ns[i],
				&burst->pkts[i], d);
	}
}

/* All but the outer headers, for what is not usual, and what is but of no known flow. */
static void
run_stages(struct dp_stages *s, unsigned int n_usual)
{
	const unsigned int n = s->burst->n;
	bool has_flows = n_usual > 0;
	unsigned int n_known;

	if (unlikely(n_usual < n)) {
		parse_stage(s);
		service_stage(s);
		has_flows |= hash_stage(s);
	}
	if (!has_flows)
		return;
	lb_flow_table_expire(s->worker->flows, s->burst->now_ns[0]);
	n_known = dp_usual_follow(s);
	if (unlikely(n_known < n))
		flow_stage(s, (uint16_t)n_known);
}

unsigned int
dp_forward_burst(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_burst *burst)
{
	struct dp_stages s;
	unsigned int n;

	if (burst->n == 0)
		return 0;
	/* A trace tells of packets what the short way does not look at. */
	if (unlikely(dp_trace_of(worker->trace) != NULL)) {
		dp_forward_burst_plainly(worker, snapshot, burst);
		return 0;
	}
	s.worker = worker;
	s.snapshot = snapshot;
	s.burst = burst;

	n = dp_usual_take(&s);
	run_stages(&s, n);
	n = dp_usual_send(&s);
	if (unlikely(n < burst->n))
		encap_stage(&s);
	return n;
}

void
dp_forward_burst_plainly(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_burst *burst)
{
	struct dp_trace *trace = dp_trace_of(worker->trace);
	struct dp_stages s;

	if (burst->n == 0)
		return;
	s.worker = worker;
	s.snapshot = snapshot;
	s.burst = burst;

	memset(s.is_usual, 0, sizeof(s.is_usual));
	run_stages(&s, 0);
	encap_stage(&s);
	if (unlikely(trace != NULL))
		dp_trace_burst(trace, worker->index, snapshot, burst, s.packets);
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
dp_forward_first(struct dp_worker *worker, const struct dp_snapshot *snapshot,
	const struct dp_first *first, uint64_t now_ns, struct dp_chain *settled)
{
	struct dp_first own = *first;
	struct dp_decision d = dp_beside(first->packet)->decision;
	struct dp_stages s; /* of a burst that is none: the rest is not looked at */
	struct dp_trace *trace = dp_trace_of(worker->trace);
	struct dp_traced traced = {NULL, &d, now_ns, own.packet->pkt_len, own.packet->port};
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
