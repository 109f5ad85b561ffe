/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_usual_send.h"

#include <string.h>

#include <rte_ether.h>

#include "dp_usual.h"
#include "dp_usual_parts.h"
#include "lb_encap_write.h"
#include "lb_hash_flow.h"
#include "lb_usual.h"

#define TAG_PRIORITY_MASK 0xf0 /* and DEI, of a tag's third byte */

/* What of a usual packet goes into its outer headers. */
static inline struct lb_encap_packet
inner_of(const struct dp_stages *s, size_t i, bool is_v6, uint32_t ip_bytes, const uint8_t *ip)
{
	return (struct lb_encap_packet){
		.is_v6 = is_v6,
		.tos = lb_usual_read_tos(ip, is_v6),
		.entropy = is_v6 ? s->entropies[i] : lb_hash_entropy_v4(&s->v4[i]),
		.inner_bytes = (uint16_t)ip_bytes,
	};
}

/* What sending needs of what lies behind pointers, at hand. */
struct sending {
	const struct dp_stages *stages;
	struct rte_mbuf **pkts;
	struct dp_decision *decisions;
	const struct dp_worker_backend *backends;
	const struct dp_backend *shared; /* the snapshot's */
	uint64_t generation;
};

/* Of outer headers. */
static inline unsigned int
kind_of(const struct dp_worker_backend *backend)
{
	return (uint8_t)(backend->stamp / DP_STAMP_STEP);
}

/* Whether what is copied of it is of this snapshot. */
static inline bool
is_current(const struct dp_worker_backend *backend, uint64_t generation)
{
	return backend->stamp - DP_STAMP(generation, 0) < DP_STAMP(UINT64_C(1), 0);
}

/* Of an id that no backend has there is nothing that any packet fits. */
static void __attribute__((noinline, cold)) refresh(struct dp_stages *s, uint32_t id)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	struct dp_worker_backend *to = &s->worker->backends[id];

	s->worker->has_refreshed = true;
	to->plain_bytes = 0;
	to->stamp = DP_STAMP(snapshot->generation, DP_KIND(LB_FORWARD_L2, false));
	if (id < snapshot->n_ids) {
		const struct dp_backend *from = &snapshot->backends[id];

		to->ether = from->ether;
		to->plain_bytes = from->plain_bytes;
		to->stamp = DP_STAMP(snapshot->generation, from->kind) + from->port;
		memcpy(to->encap, from->encap.bytes, sizeof(to->encap));
	}
}

/* The template of a backend, which is of a kind: its copy, or the snapshot's where it is long.
 */
static inline struct lb_encap_part
part_of(const struct sending *t, const struct dp_worker_backend *backend, uint32_t id,
	unsigned int kind)
{
	const struct lb_encap *shared;

	if (!dp_kind_is_long(kind))
		return (struct lb_encap_part){backend->encap, 0};
	shared = &t->shared[id].encap;
	return (struct lb_encap_part){shared->bytes, shared->sum};
}

/*
 * A packet without a tag, that leaves without one, from where its backend says; in the mode
 * and the family of its backend's template, which the caller has looked at.
 */
lb_always_inline bool
encap(const struct sending *t, size_t i, const struct dp_worker_backend *backend,
	enum lb_forward_mode mode, bool is_v6, bool is_all_v4)
{
	struct dp_decision *d = &t->decisions[i];
	const uint32_t n_bytes = lb_encap_bytes(mode, is_v6);
	const uint32_t ip_bytes = d->ip_bytes;
	struct rte_mbuf *m = t->pkts[i];
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *) + LB_USUAL_IP_OFFSET;
	uint8_t *frame = ip - LB_USUAL_IP_OFFSET - n_bytes;

	if (unlikely(ip_bytes > backend->plain_bytes || n_bytes > m->data_off))
		return false;
	d->port = (uint8_t)backend->stamp;
	if (mode == LB_FORWARD_L2) {
		memcpy(frame, &backend->ether, offsetof(struct dp_ether, type_be));
	} else {
		const struct lb_encap_packet inner =
			inner_of(t->stages, i, !is_all_v4 && t->stages->is_v6[i], ip_bytes, ip);

		/* Whole words: what is beyond its 14 bytes is written over. */
		memcpy(frame, backend, LB_USUAL_IP_OFFSET + 2);
		lb_encap_write_usual(part_of(t, backend, d->backend, DP_KIND(mode, is_v6)),
			mode, is_v6, &inner, frame + LB_USUAL_IP_OFFSET);
	}
	m->data_off = (uint16_t)(m->data_off - n_bytes);
	m->data_len = (uint16_t)(LB_USUAL_IP_OFFSET + ip_bytes + n_bytes);
	m->pkt_len = LB_USUAL_IP_OFFSET + ip_bytes + n_bytes;
	return true;
}

/*
 * Packets one after the other whose backends are of one kind. @return the first that is
 * another's, or whose backend has to be copied or does not take it as it is; of that nothing is
 * done.
 */
static inline size_t
encap_kind(const struct sending *t, size_t from, size_t n, enum lb_forward_mode mode,
	bool is_v6, bool is_all_v4)
{
	const struct sending at = *t;
	const uint64_t stamp = DP_STAMP(at.generation, DP_KIND(mode, is_v6));
	size_t i;

	for (i = from; i < n; i++) {
		const struct dp_worker_backend *backend = &at.backends[at.decisions[i].backend];

		if (unlikely(backend->stamp - stamp >= DP_STAMP_STEP ||
			     !encap(&at, i, backend, mode, is_v6, is_all_v4)))
			break;
	}
	return i;
}

/*
 * A loop for each kind, and what of it is the same for all its packets in registers. Where all
 * of the burst is IPv4 it is known of each.
 */
#define KIND(name, mode, is_v6)                                                                \
	static size_t __attribute__((noinline))                                                \
	encap_##name(const struct sending *t, size_t from, size_t n)                           \
	{                                                                                      \
		if (t->stages->n_v6 == 0)                                                      \
			return encap_kind(t, from, n, mode, is_v6, true);                      \
		return encap_kind(t, from, n, mode, is_v6, false);                             \
	}

KIND(l2, LB_FORWARD_L2, false)
KIND(l2_v6, LB_FORWARD_L2, true)
KIND(ipip, LB_FORWARD_IPIP, false)
KIND(ipip_v6, LB_FORWARD_IPIP, true)
KIND(gre, LB_FORWARD_GRE, false)
KIND(gre_v6, LB_FORWARD_GRE, true)
KIND(gue, LB_FORWARD_GUE, false)
KIND(gue_v6, LB_FORWARD_GUE, true)
KIND(vxlan, LB_FORWARD_VXLAN, false)
KIND(vxlan_v6, LB_FORWARD_VXLAN, true)

typedef size_t (*encap_fn)(const struct sending *t, size_t from, size_t n);

static const encap_fn encap_of_kind[] = {
	[DP_KIND(LB_FORWARD_L2, false)] = encap_l2,
	[DP_KIND(LB_FORWARD_L2, true)] = encap_l2_v6,
	[DP_KIND(LB_FORWARD_IPIP, false)] = encap_ipip,
	[DP_KIND(LB_FORWARD_IPIP, true)] = encap_ipip_v6,
	[DP_KIND(LB_FORWARD_GRE, false)] = encap_gre,
	[DP_KIND(LB_FORWARD_GRE, true)] = encap_gre_v6,
	[DP_KIND(LB_FORWARD_GUE, false)] = encap_gue,
	[DP_KIND(LB_FORWARD_GUE, true)] = encap_gue_v6,
	[DP_KIND(LB_FORWARD_VXLAN, false)] = encap_vxlan,
	[DP_KIND(LB_FORWARD_VXLAN, true)] = encap_vxlan_v6,
};

static_assert(LB_N_ELEMENTS(encap_of_kind) == DP_KIND(LB_N_FORWARD_MODES, false),
	"each kind has its loop");
static_assert(offsetof(struct dp_worker_backend, ether) == 0,
	"encap() takes it by its first word");

/* The tag that a frame leaves with, of the one that it came with, if any. @return its bytes. */
static inline uint32_t
tag_of(const struct dp_backend *backend, const uint8_t *tag, uint8_t out[static DP_TAG_BYTES])
{
	static const uint8_t none[DP_TAG_BYTES] = {RTE_ETHER_TYPE_VLAN >> 8};

	if (backend->vlan == DP_VLAN_NONE || (backend->vlan == DP_VLAN_KEEP && tag == NULL))
		return 0;
	memcpy(out, tag != NULL ? tag : none, DP_TAG_BYTES);
	if (backend->vlan != DP_VLAN_KEEP) {
		out[2] = (uint8_t)((out[2] & TAG_PRIORITY_MASK) | backend->vlan >> 8);
		out[3] = (uint8_t)backend->vlan;
	}
	return DP_TAG_BYTES;
}

/* The same with a tag, before or after, or from the address that it came to. */
static bool
encap_tagged(const struct dp_stages *s, size_t i)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct dp_backend *backend = &s->snapshot->backends[d->backend];
	struct rte_mbuf *m = s->burst->pkts[i];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *type = frame + offsetof(struct dp_ether, type_be);
	struct dp_ether ether = backend->ether;
	const uint32_t n_bytes = backend->encap.n_bytes;
	uint8_t tag[DP_TAG_BYTES];
	const uint32_t tag_bytes = tag_of(backend, s->is_tagged[i] ? type : NULL, tag);

	if (s->is_tagged[i])
		type += DP_TAG_BYTES;
	if (d->ip_bytes > backend->plain_bytes || n_bytes + tag_bytes > m->data_off)
		return false;
	/* Before it is written over. */
	if (!backend->has_source)
		memcpy(ether.src.bytes, frame, sizeof(ether.src.bytes));
	if (n_bytes > 0) {
		uint8_t *ip = type + sizeof(ether.type_be);
		const struct lb_encap_packet inner =
			inner_of(s, i, s->is_v6[i], d->ip_bytes, ip);

		lb_encap_write_usual((struct lb_encap_part){backend->encap.bytes,
					     backend->encap.sum},
			(enum lb_forward_mode)backend->encap.mode, backend->encap.is_v6, &inner,
			ip - n_bytes);
	} else {
		memcpy(&ether.type_be, type, sizeof(ether.type_be));
	}
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

/* Whether all leave from where their backends say, without a tag. */
static bool
is_plain(const struct dp_stages *s)
{
	return s->snapshot->is_plain && !s->has_tags;
}

static size_t
send_plain(struct dp_stages *s, size_t from, size_t end)
{
	const struct sending t = {s, s->burst->pkts, s->burst->decisions, s->worker->backends,
		s->snapshot->backends, s->snapshot->generation};
	size_t begun;
	size_t i = from;

	do {
		const uint32_t id = t.decisions[i].backend;
		const struct dp_worker_backend *backend = &t.backends[id];

		if (unlikely(!is_current(backend, t.generation)))
			refresh(s, id);
		begun = i;
		i = encap_of_kind[kind_of(backend)](&t, i, end);
	} while (i != begun && i < end);
	return i;
}

/*
 * Give usual packets whose backends' ids are found their outer headers, in order. @return the
 * first whose backend does not take it as it is; of that nothing is done.
 */
static size_t
send_run(struct dp_stages *s, size_t from, size_t end)
{
	size_t i = from;

	if (likely(is_plain(s)))
		return from < end ? send_plain(s, from, end) : from;
	while (i < end && s->burst->decisions[i].backend < s->snapshot->n_ids &&
		encap_tagged(s, i))
		i++;
	return i;
}

/* What of their decisions nobody has needed yet. */
static void
say_known(struct dp_stages *s, size_t n)
{
	const struct dp_backend *backends = s->snapshot->backends;

	for (size_t i = 0; i < n; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		d->service = backends[d->backend].service;
		d->slot = DP_NONE;
		d->verdict = LB_FORWARD;
		d->flow = DP_FLOW_HIT;
		d->is_new_flow = false;
		d->has_more = false;
		if (unlikely(s->has_begun && s->is_begun[i]))
			dp_usual_say_begun(s, i);
	}
}

size_t
dp_usual_send_known(struct dp_stages *s, size_t n, bool is_brief)
{
	size_t n_sent;

	s->worker->has_refreshed = false;
	n_sent = send_run(s, 0, n);
	if (unlikely(n_sent < s->burst->n || !is_brief))
		say_known(s, n_sent);
	return n_sent;
}

/* Decided, but not for this way of leaving. */
static void __attribute__((noinline, cold)) leave_decided(struct dp_stages *s, size_t i)
{
	struct dp_decision *d = &s->burst->decisions[i];
	const struct dp_decision decided = *d;

	dp_usual_leave(s, i);
	d->backend = decided.backend;
	d->slot = decided.slot;
	d->flow = decided.flow;
	d->is_new_flow = decided.is_new_flow;
}

/* Say where those that are decided go. @return the first that is not usual. */
static size_t
end_of_run(struct dp_stages *s, size_t from)
{
	const size_t n = s->burst->n;
	size_t i;

	for (i = from; i < n && s->is_usual[i]; i++) {
		struct dp_decision *d = &s->burst->decisions[i];

		d->service = s->snapshot->backends[d->backend].service;
	}
	return i;
}

size_t
dp_usual_send(struct dp_stages *s, size_t from)
{
	const size_t n = s->burst->n;
	size_t n_left = 0;
	size_t end = from;
	size_t i = from;

	while (i < n) {
		if (i >= end)
			end = end_of_run(s, i);
		if (i < end) {
			i = send_run(s, i, end);
			if (i == end)
				continue;
			leave_decided(s, i);
		}
		i++;
		n_left++;
	}
	return n - n_left;
}
