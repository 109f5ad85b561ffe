/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_choose.h"

#include <netinet/in.h>
#include <string.h>

#include "dp_mbuf.h"
#include "dp_usual.h"
#include "lb_flow_lookup.h"
#include "lb_hash_flow.h"

#define UDP_BYTES     8u
#define UDP_LENGTH_AT 4u

bool
dp_choose_hash(struct dp_stages *s)
{
	/* Read once: a verdict is a byte, and what is behind a pointer might be one for all the
	 * compiler knows. */
	struct dp_decision *decisions = s->burst->decisions;
	const struct lb_flow_table *flows = s->worker->flows;
	const struct lb_hash_keyed *keyed = &s->worker->keyed;
	const uint16_t n = s->burst->n;
	bool has_flows = false;

	for (uint16_t i = 0; i < n; i++) {
		struct dp_decision *d = &decisions[i];
		const struct lb_flow_key *key = &s->packets[i].key;
		struct lb_flow_hash hash;

		if (s->is_usual[i] || unlikely(d->verdict != LB_FORWARD))
			continue;
		hash = lb_hash_flow_keyed(keyed, key);
		s->places[i] = lb_flow_locate(flows, &hash);
		lb_flow_prefetch(flows, &s->places[i]);
		d->hash = hash;
		d->entropy = lb_hash_entropy(key);
		has_flows = true;
	}
	return has_flows;
}

/* What chooses a packet's slot in its service's table. */
static uint64_t
pick_of(const struct dp_stages *s, uint16_t i)
{
	const struct lb_flow_key *key = &s->packets[i].key;
	const struct dp_service *service =
		&s->snapshot->services[s->burst->decisions[i].service];

	if (likely(service->affinity == LB_AFFINITY_5_TUPLE))
		return lb_hash_pick_seeded(&s->snapshot->seeded, key);
	return lb_hash_pick(key, (enum lb_affinity)service->affinity, s->snapshot->hash_seed);
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

		if (s->is_usual[i] || unlikely(d->verdict != LB_FORWARD))
			continue;
		s->refs[i] = lb_flow_find_first(flows, &s->places[i], burst->now_ns[i]);
		if (likely(s->refs[i] != LB_FLOW_NONE)) {
			const uint32_t id = lb_flow_backend(flows, s->refs[i]);

			__builtin_prefetch(&backends[id], 0, DP_TO_L2);
			__builtin_prefetch((const uint8_t *)&backends[id] + LB_CACHE_LINE, 0,
				DP_TO_L2);
			continue;
		}
		lb_flow_prefetch_second(flows, &s->places[i]);
		picker = s->snapshot->services[d->service].picker;
		if (likely(picker != NULL))
			lb_picker_prefetch(picker, lb_picker_slot(picker, pick_of(s, i)));
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

/* A flow begins with this packet. */
static void
count_new(const struct dp_stages *s, struct dp_decision *d)
{
	d->is_new_flow = true;
	dp_count(&s->worker->backend_flows[d->backend], 1);
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
	if (!pick_backend(service, pick_of(s, i), d))
		return LB_DROP_NO_BACKEND;

	if (is_fresh) {
		lb_flow_restart(s->worker->flows, ref, d->backend, packet->tcp_seq, now_ns);
		count_new(s, d);
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
	return pick_backend(service, pick_of(s, i), d) ? LB_FORWARD : LB_DROP_NO_BACKEND;
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
	size_t n_bytes = dp_mbuf_l4_bytes(m, &s->packets[i]);
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
		count_new(s, d);
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
	if (!pick_backend(&s->snapshot->services[d->service], pick_of(s, i), d))
		return LB_DROP_NO_BACKEND;
	/* Without room the flow goes where the table says, packet by packet. */
	lb_flow_keep(s->worker->flows,
		lb_flow_insert(s->worker->flows, &d->hash, d->backend, event, packet->tcp_seq,
			s->burst->now_ns[i]),
		&packet->key);
	count_new(s, d);
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
	const struct dp_decision *d = &s->burst->decisions[i];

	dp_usual_leave(s, i);
	if (unlikely(d->verdict != LB_FORWARD))
		return;
	s->places[i] = lb_flow_locate(s->worker->flows, &d->hash);
	s->refs[i] = LB_FLOW_NONE;
	s->has_more[i] = true;
}

void
dp_choose(struct dp_stages *s, uint16_t from)
{
	struct lb_flow_table *flows = s->worker->flows;
	uint64_t now_ns = s->burst->now_ns[0];
	bool is_stale = false;

	find_stage(s, from);
	for (uint16_t i = from; i < s->burst->n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];
		uint16_t next = i;

		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		/* Packets of a replayed burst may lie far apart in time. */
		if (unlikely(s->burst->now_ns[i] != now_ns)) {
			now_ns = s->burst->now_ns[i];
			lb_flow_table_expire(flows, now_ns);
			is_stale = true;
		}
		if (s->is_usual[i])
			next = (uint16_t)dp_usual_decide(s, i, &is_stale);
		if (likely(next > i)) {
			i = next - 1;
			continue;
		}
		if (s->is_usual[i])
			unmake_usual(s, i);
		if (unlikely(d->verdict != LB_FORWARD))
			continue;
		if (unlikely(is_stale || s->refs[i] == LB_FLOW_NONE))
			s->refs[i] = lb_flow_find_at(flows, &s->places[i], now_ns);
		d->verdict = (uint8_t)choose_backend(s, i, s->refs[i]);
		/* It is counted when it has left. */
		if (likely(d->verdict == LB_FORWARD))
			__builtin_prefetch(&s->worker->backends[d->backend], 1, DP_TO_L2);
		if (unlikely(d->is_new_flow)) {
			is_stale = true;
			__builtin_prefetch(&s->snapshot->backends[d->backend]);
		}
	}
}
