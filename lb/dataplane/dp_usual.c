/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_usual.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "dp_mbuf.h"
#include "lb_csum.h"
#include "lb_encap_write.h"
#include "lb_hash_flow.h"
#include "lb_usual.h"

#define TCP_UNUSUAL 0x07 /* FIN, SYN, RST */

/* What a packet asks of the table of services. */
struct question {
	uint64_t dst[2];
	uint64_t rest; /* protocol and port, as in a key; 0 is none */
	uint64_t v4;   /* of an IPv4 address all that in one word; 0 is none */
};

/* The second word of an IPv4 address has it in its upper half. */
static inline uint64_t
v4_word(const struct lb_flow_words *words)
{
	return (words->word[3] & ~(uint64_t)UINT32_MAX) | words->word[4] >> 16;
}

static inline bool
is_same(const struct question *question, const struct lb_flow_words *words, bool is_v6)
{
	if (!is_v6)
		return question->v4 == v4_word(words);
	return ((question->dst[0] ^ words->word[2]) | (question->dst[1] ^ words->word[3]) |
		       (question->rest ^ words->word[4] >> 16)) == 0;
}

/* What taking needs of what lies behind pointers, at hand. */
struct taking {
	struct dp_stages *stages;
	struct rte_mbuf **pkts;
	struct dp_decision *decisions;
	/* The last answers: neighbours in a burst often ask the same. */
	struct question found;
	struct question left; /* of no service, or of one that does not go by flow */
	uint32_t service;
};

/* Whether nothing but its flow's key and entry says where a packet of what was found goes. */
static bool
goes_by_flow(const struct dp_snapshot *snapshot, uint32_t found, uint8_t proto)
{
	const struct dp_service *service;

	if (found == LB_SERVICE_NONE)
		return false;
	if ((found & DP_MATCH_MORE) == 0 || proto == IPPROTO_TCP)
		return true;
	service = &snapshot->services[found & DP_MATCH_PLACE];
	return service->quic == NULL && service->refused == 0;
}

/* Whether a packet's service goes by flow; it is found from then on. */
static bool __attribute__((noinline))
find_service(struct taking *t, const struct lb_flow_words *words, bool is_v6)
{
	const struct dp_snapshot *snapshot = t->stages->snapshot;
	struct question question = {{words->word[2], words->word[3]}, 0, 0};
	struct lb_flow_key key;
	uint32_t found;

	if (is_same(&t->left, words, is_v6))
		return false;
	if (is_v6)
		question.rest = words->word[4] >> 16;
	else
		question.v4 = v4_word(words);
	lb_usual_store_key(words, &key);
	found = lb_service_find(snapshot->match, &key.dst, key.proto, ntohs(key.dport_be));
	if (goes_by_flow(snapshot, found, key.proto)) {
		t->service = found & DP_MATCH_PLACE;
		t->found = question;
		return true;
	}
	t->left = question;
	t->found = (struct question){{0}, 0, 0};
	return false;
}

static inline bool
take(struct taking *t, unsigned int i, const struct lb_usual *usual, bool is_v6)
{
	struct dp_decision *d = &t->decisions[i];
	enum lb_flow_event event = usual->is_tcp ? LB_FLOW_SEGMENT : LB_FLOW_DATAGRAM;

	if (unlikely((usual->tcp_flags & TCP_UNUSUAL) != 0)) {
		if ((usual->tcp_flags & (LB_TCP_FIN | LB_TCP_RST)) != 0)
			event = LB_FLOW_CLOSE;
		else if ((usual->tcp_flags & LB_TCP_ACK) == 0)
			return false;
	}
	d->event = (uint8_t)event;
	/* In memory before it is asked about, so that it need not be twice. */
	t->stages->keys[i] = usual->key;
	if (unlikely(!is_same(&t->found, &usual->key, is_v6)) &&
		!find_service(t, &t->stages->keys[i], is_v6))
		return false;
	t->stages->is_v6[i] = is_v6;
	t->stages->tos[i] = usual->tos;
	d->service = t->service;
	d->ip_bytes = usual->ip_bytes;
	/* Of a known flow, if it stays usual. */
	d->verdict = LB_FORWARD;
	d->flow = DP_FLOW_HIT;
	d->is_new_flow = false;
	d->has_more = false;
	return true;
}

static inline bool
take_packet(struct taking *t, unsigned int i)
{
	const struct rte_mbuf *m = t->pkts[i];
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint32_t n_bytes = m->data_len;
	struct lb_usual usual;
	uint16_t ethertype;

	/* Frames to a group of the link are no host's. */
	if (unlikely(
		    n_bytes < LB_USUAL_V4_READ_BYTES || m->nb_segs != 1 || (frame[0] & 1) != 0))
		return false;
	memcpy(&ethertype, frame + LB_USUAL_IP_OFFSET - 2, 2);
	frame += LB_USUAL_IP_OFFSET;
	if (likely(ethertype == htons(RTE_ETHER_TYPE_IPV4)))
		return lb_usual_parse_v4(frame, n_bytes - LB_USUAL_IP_OFFSET, &usual) &&
		       take(t, i, &usual, false);
	return ethertype == htons(RTE_ETHER_TYPE_IPV6) && n_bytes >= LB_USUAL_V6_READ_BYTES &&
	       lb_usual_parse_v6(frame, n_bytes - LB_USUAL_IP_OFFSET, &usual) &&
	       take(t, i, &usual, true);
}

/*
 * A hash is a long chain of multiplications. Alone in a loop, those of several packets overlap
 * as far as the processor looks ahead.
 */
static void
locate(struct dp_stages *s)
{
	const struct lb_flow_table flows = *s->worker->flows;
	const struct lb_hash_seeded seeded = s->worker->seeded;
	struct dp_decision *decisions = s->burst->decisions;
	const unsigned int n = s->burst->n;

	for (unsigned int i = 0; i < n; i++) {
		struct lb_flow_place place;
		struct lb_flow_hash hash;

		if (unlikely(!s->is_usual[i]))
			continue;
		hash = lb_hash_flow_words(&seeded, &s->keys[i]);
		place = lb_flow_locate(&flows, &hash);
		lb_flow_prefetch(&flows, &place);
		s->buckets[i] = place.bucket;
		s->tags[i] = place.tag;
		decisions[i].hash = hash;
	}
}

unsigned int
dp_usual_take(struct dp_stages *s)
{
	const unsigned int n = s->burst->n;
	struct taking t = {
		.stages = s,
		.pkts = s->burst->pkts,
		.decisions = s->burst->decisions,
	};
	unsigned int n_left = 0;

	for (unsigned int i = 0; i < n; i++) {
		s->is_usual[i] = true;
		if (unlikely(!take_packet(&t, i))) {
			s->is_usual[i] = false;
			n_left++;
		}
	}
	locate(s);
	return n - n_left;
}

bool
dp_usual_follow_entry(struct dp_stages *s, unsigned int i, uint32_t ref)
{
	struct lb_flow_table *flows = s->worker->flows;
	struct dp_decision *d = &s->burst->decisions[i];
	const uint32_t id = lb_flow_backend(flows, ref);

	if (unlikely(dp_snapshot_live_backend(s->snapshot, id) == NULL))
		return false;
	d->backend = id;
	lb_flow_touch(flows, ref, (enum lb_flow_event)d->event, s->burst->now_ns[i]);
	return true;
}

unsigned int
dp_usual_follow(struct dp_stages *s)
{
	const struct lb_flow_table *flows = s->worker->flows;
	const struct dp_backend *backends = s->snapshot->backends;
	const struct dp_backend_counts *counts = s->worker->backends;
	struct dp_decision *decisions = s->burst->decisions;
	const uint64_t *now_ns = s->burst->now_ns;
	const uint32_t n_ids = s->snapshot->n_ids;
	const uint32_t tick = lb_flow_tick(flows, now_ns[0]);
	const uint64_t first_ns = now_ns[0];
	const unsigned int n = s->burst->n;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct dp_decision *d = &decisions[i];
		uint64_t *rest;
		uint32_t id;

		if (unlikely(!s->is_usual[i] || now_ns[i] != first_ns))
			break;
		rest = lb_flow_find_rest(flows, s->buckets[i], s->tags[i], d->hash.pick, tick);
		if (unlikely(rest == NULL))
			break;
		id = lb_flow_backend_of(*rest);
		if (unlikely(id >= n_ids || !backends[id].is_live))
			break;
		__builtin_prefetch(&backends[id]);
		/* It is counted when it has left. */
		__builtin_prefetch(&counts[id], 1, DP_TO_L2);
		d->backend = id;
		*rest = lb_flow_touched(*rest, (enum lb_flow_event)d->event, tick);
	}
	return i;
}

void
dp_usual_leave(struct dp_stages *s, unsigned int i)
{
	struct dp_burst *burst = s->burst;
	struct dp_decision *d = &burst->decisions[i];

	d->backend = DP_NONE;
	d->slot = DP_NONE;
	d->flow = DP_FLOW_NONE;
	d->is_new_flow = false;
	d->has_more = false;
	s->is_usual[i] = false;
	if (dp_mbuf_parse(burst->pkts[i], burst->wire_bytes[i], &s->packets[i]) != LB_FORWARD)
		d->verdict = LB_DROP_TRUNCATED; /* it is not: it has been parsed */
}

static inline bool
encap(const struct dp_stages *s, unsigned int i, struct dp_decision *d,
	const struct dp_backend *backend)
{
	struct rte_mbuf *m = s->burst->pkts[i];
	const uint32_t n_bytes = backend->encap.n_bytes;
	const uint32_t ip_bytes = d->ip_bytes;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t own_first;
	uint16_t own_last;

	d->service = backend->service;
	if (unlikely(ip_bytes > backend->plain_bytes || n_bytes > m->data_off))
		return false;
	/* Before it is written over. */
	memcpy(&own_first, frame, sizeof(own_first));
	memcpy(&own_last, frame + sizeof(own_first), sizeof(own_last));
	if (likely(n_bytes > 0)) {
		struct lb_encap_packet inner = {
			.is_v6 = s->is_v6[i],
			.tos = s->tos[i],
			.entropy = lb_hash_entropy(&d->hash),
			.inner_bytes = (uint16_t)ip_bytes,
		};

		if (lb_encap_needs_sum(&backend->encap))
			inner.inner_sum = lb_csum_add(0, frame + LB_USUAL_IP_OFFSET, ip_bytes);
		frame -= n_bytes;
		lb_encap_write_outer(&backend->encap, &inner, frame + LB_USUAL_IP_OFFSET);
		memcpy(frame + LB_USUAL_IP_OFFSET - 2, &backend->ethertype_be, 2);
		m->data_off = (uint16_t)(m->data_off - n_bytes);
	}
	m->data_len = (uint16_t)(LB_USUAL_IP_OFFSET + ip_bytes + n_bytes);
	m->pkt_len = LB_USUAL_IP_OFFSET + ip_bytes + n_bytes;
	memcpy(frame, backend->next_hop.bytes, sizeof(backend->next_hop.bytes));
	frame += sizeof(backend->next_hop.bytes);
	memcpy(frame, &own_first, sizeof(own_first));
	memcpy(frame + sizeof(own_first), &own_last, sizeof(own_last));
	d->slot = DP_NONE;
	d->port = backend->port;
	return true;
}

/* Decided, but not for this way of leaving. */
static void __attribute__((noinline, cold)) leave_known(struct dp_stages *s, unsigned int i)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const uint32_t backend = d->backend;

	dp_usual_leave(s, i);
	d->backend = backend;
	d->flow = DP_FLOW_HIT;
}

unsigned int
dp_usual_send(struct dp_stages *s)
{
	const struct dp_backend *backends = s->snapshot->backends;
	struct dp_burst *burst = s->burst;
	const unsigned int n = burst->n;
	unsigned int n_left = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		if (likely(s->is_usual[i] && encap(s, i, d, &backends[d->backend])))
			continue;
		n_left++;
		if (s->is_usual[i])
			leave_known(s, i);
	}
	return n - n_left;
}
