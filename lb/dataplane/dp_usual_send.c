/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_usual_send.h"

#include <string.h>

#include <rte_ether.h>

#include "dp_usual.h"
#include "lb_encap_write.h"
#include "lb_usual.h"

#define TAG_BYTES         4u
#define TAG_PRIORITY_MASK 0xf0 /* and DEI, of a tag's third byte */

/* What of a usual packet goes into its outer headers. */
static inline struct lb_encap_packet
inner_of(const struct dp_stages *s, unsigned int i, const struct dp_decision *d,
	const uint8_t *ip)
{
	const bool is_v6 = s->is_v6[i];

	return (struct lb_encap_packet){
		.is_v6 = is_v6,
		.tos = lb_usual_read_tos(ip, is_v6),
		.entropy = lb_hash_entropy(&d->hash),
		.inner_bytes = (uint16_t)d->ip_bytes,
	};
}

static inline void
write_outer(const struct dp_stages *s, unsigned int i, const struct lb_encap *encap,
	const struct dp_decision *d, uint8_t *ip)
{
	const struct lb_encap_packet inner = inner_of(s, i, d, ip);

	lb_encap_write_usual(encap, &inner, ip - encap->n_bytes);
}

/* What sending needs of what lies behind pointers, at hand. */
struct sending {
	const struct dp_stages *stages;
	struct rte_mbuf **pkts;
	const struct dp_backend *backends;
};

/* A frame of ip_bytes after its Ethernet header, which begins n_bytes earlier than it did. */
static inline void
resize(struct rte_mbuf *m, uint32_t n_bytes, uint32_t ip_bytes)
{
	m->data_off = (uint16_t)(m->data_off - n_bytes);
	m->data_len = (uint16_t)(LB_USUAL_IP_OFFSET + ip_bytes);
	m->pkt_len = LB_USUAL_IP_OFFSET + ip_bytes;
}

/* By any mode. The packet takes it. */
static bool __attribute__((noinline))
encap_other(const struct sending *t, unsigned int i, const struct dp_decision *d)
{
	const struct dp_backend *backend = &t->backends[d->backend];
	struct rte_mbuf *m = t->pkts[i];
	const uint32_t n_bytes = backend->encap.n_bytes;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (n_bytes > 0) {
		write_outer(t->stages, i, &backend->encap, d, frame + LB_USUAL_IP_OFFSET);
		memcpy(frame - n_bytes, &backend->ether, sizeof(backend->ether));
	} else {
		memcpy(frame, &backend->ether, offsetof(struct dp_ether, type_be));
	}
	resize(m, n_bytes, d->ip_bytes + n_bytes);
	return true;
}

/*
 * Of a packet without a tag, that leaves without one, from where its backend says. What most
 * have, IPIP, is inline.
 */
static inline bool
encap(const struct sending *t, unsigned int i, struct dp_decision *d)
{
	const struct dp_backend *backend = &t->backends[d->backend];
	const uint32_t n_bytes = backend->encap.n_bytes;
	const uint32_t ip_bytes = d->ip_bytes;
	struct rte_mbuf *m = t->pkts[i];
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *) + LB_USUAL_IP_OFFSET;
	struct lb_encap_packet inner;

	if (unlikely(ip_bytes > backend->plain_bytes || n_bytes > m->data_off))
		return false;
	d->port = backend->port;
	if (unlikely(!backend->is_ipip))
		return encap_other(t, i, d);
	inner = inner_of(t->stages, i, d, ip);
	ip -= n_bytes;
	/* Whole words: what is beyond its 14 bytes is written over. */
	memcpy(ip - LB_USUAL_IP_OFFSET, backend, LB_USUAL_IP_OFFSET + 2);
	lb_encap_write_ipip(&backend->encap, &inner, ip);
	resize(m, n_bytes, ip_bytes + n_bytes);
	return true;
}

/* The tag that a frame leaves with, of the one that it came with, if any. @return its bytes. */
static inline uint32_t
tag_of(const struct dp_backend *backend, const uint8_t *tag, uint8_t out[static TAG_BYTES])
{
	static const uint8_t none[TAG_BYTES] = {RTE_ETHER_TYPE_VLAN >> 8};

	if (backend->vlan == DP_VLAN_NONE || (backend->vlan == DP_VLAN_KEEP && tag == NULL))
		return 0;
	memcpy(out, tag != NULL ? tag : none, TAG_BYTES);
	if (backend->vlan != DP_VLAN_KEEP) {
		out[2] = (uint8_t)((out[2] & TAG_PRIORITY_MASK) | backend->vlan >> 8);
		out[3] = (uint8_t)backend->vlan;
	}
	return TAG_BYTES;
}

/* The same with a tag, before or after, or from the address that it came to. */
static bool
encap_tagged(const struct dp_stages *s, unsigned int i, struct dp_decision *d)
{
	const struct dp_backend *backend = &s->snapshot->backends[d->backend];
	struct rte_mbuf *m = s->burst->pkts[i];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *type = frame + offsetof(struct dp_ether, type_be);
	struct dp_ether ether = backend->ether;
	const uint32_t n_bytes = backend->encap.n_bytes;
	uint8_t tag[TAG_BYTES];
	const uint32_t tag_bytes = tag_of(backend, s->is_tagged[i] ? type : NULL, tag);

	if (s->is_tagged[i])
		type += TAG_BYTES;
	if (d->ip_bytes > backend->plain_bytes || n_bytes + tag_bytes > m->data_off)
		return false;
	/* Before it is written over. */
	if (!backend->has_source)
		memcpy(ether.src.bytes, frame, sizeof(ether.src.bytes));
	if (n_bytes > 0)
		write_outer(s, i, &backend->encap, d, type + sizeof(ether.type_be));
	else
		memcpy(&ether.type_be, type, sizeof(ether.type_be));
	type -= n_bytes;
	memcpy(type, &ether.type_be, sizeof(ether.type_be));
	type -= tag_bytes;
	memcpy(type, tag, tag_bytes);
	type -= offsetof(struct dp_ether, type_be);
	memcpy(type, &ether, offsetof(struct dp_ether, type_be));
	m->data_off = (uint16_t)(m->data_off + (type - frame));
	m->pkt_len = (uint32_t)sizeof(ether) + tag_bytes + n_bytes + d->ip_bytes;
	m->data_len = (uint16_t)m->pkt_len;
	d->port = backend->port;
	return true;
}

/*
 * Give packets their outer headers, in order. @return the first whose backend is gone, or does
 * not take it as it is; of that nothing is done.
 */
static inline unsigned int
send_known(struct dp_stages *s, unsigned int n, bool is_plain)
{
	const struct sending t = {s, s->burst->pkts, s->snapshot->backends};
	const uint32_t n_ids = s->snapshot->n_ids;
	struct dp_decision *decisions = s->burst->decisions;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct dp_decision *d = &decisions[i];

		d->backend = s->ids[i];
		if (unlikely(d->backend >= n_ids ||
			     !(is_plain ? encap(&t, i, d) : encap_tagged(s, i, d))))
			break;
	}
	return i;
}

/* What of their decisions nobody has needed yet. */
static void
say_known(struct dp_stages *s, unsigned int n)
{
	const struct dp_backend *backends = s->snapshot->backends;

	for (unsigned int i = 0; i < n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		d->service = backends[d->backend].service;
		d->slot = DP_NONE;
		d->verdict = LB_FORWARD;
		d->flow = DP_FLOW_HIT;
		d->is_new_flow = false;
		d->has_more = false;
	}
}

/* Whether all leave from where their backends say, without a tag. */
static bool
is_plain(const struct dp_stages *s)
{
	return s->snapshot->is_plain && !s->has_tags;
}

unsigned int
dp_usual_send_known(struct dp_stages *s, unsigned int n, bool is_brief)
{
	const unsigned int n_sent =
		is_plain(s) ? send_known(s, n, true) : send_known(s, n, false);

	if (unlikely(n_sent < s->burst->n || !is_brief))
		say_known(s, n_sent);
	return n_sent;
}

/* Decided, but not for this way of leaving. */
static void __attribute__((noinline, cold)) leave_decided(struct dp_stages *s, unsigned int i)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct dp_decision decided = *d;

	dp_usual_leave(s, i);
	d->backend = decided.backend;
	d->slot = decided.slot;
	d->flow = decided.flow;
	d->is_new_flow = decided.is_new_flow;
}

static inline unsigned int
send_all(struct dp_stages *s, unsigned int from, bool is_plain)
{
	const struct sending t = {s, s->burst->pkts, s->snapshot->backends};
	struct dp_burst *burst = s->burst;
	const unsigned int n = burst->n;
	unsigned int n_left = 0;

	for (unsigned int i = from; i < n; i++) {
		struct dp_decision *d = &burst->decisions[i];

		if (unlikely(!s->is_usual[i])) {
			n_left++;
			continue;
		}
		d->service = s->snapshot->backends[d->backend].service;
		if (likely(is_plain ? encap(&t, i, d) : encap_tagged(s, i, d)))
			continue;
		n_left++;
		leave_decided(s, i);
	}
	return n - n_left;
}

unsigned int
dp_usual_send(struct dp_stages *s, unsigned int from)
{
	return is_plain(s) ? send_all(s, from, true) : send_all(s, from, false);
}
