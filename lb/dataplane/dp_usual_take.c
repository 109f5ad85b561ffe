/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "dp_mbuf.h"
#include "dp_usual.h"
#include "dp_usual_parts.h"

#define AHEAD       8u   /* packets that are asked for before they are read: measured */
#define TCP_UNUSUAL 0x07 /* FIN, SYN, RST */

/* Of TCP, what is more than a segment. */
static enum lb_flow_event __attribute__((noinline))
tcp_event(struct dp_stages *s, size_t i, uint8_t tcp_flags)
{
	if ((tcp_flags & (LB_TCP_FIN | LB_TCP_RST)) != 0)
		return LB_FLOW_CLOSE;
	if ((tcp_flags & LB_TCP_ACK) != 0)
		return LB_FLOW_SEGMENT;
	s->syns[s->n_syns++] = (uint8_t)i;
	return LB_FLOW_SYN;
}

static inline void
take(struct dp_stages *s, size_t i, const struct lb_usual *usual)
{
	struct dp_decision *d = &s->burst->decisions[i];

	d->ip_bytes = usual->ip_bytes;
	d->event = usual->is_tcp ? LB_FLOW_SEGMENT : LB_FLOW_DATAGRAM;
	if (unlikely((usual->tcp_flags & TCP_UNUSUAL) != 0))
		d->event = (uint8_t)tcp_event(s, i, usual->tcp_flags);
}

static inline bool
take_v4(struct dp_stages *s, size_t i, const uint8_t *ip, uint32_t n_bytes)
{
	struct lb_usual usual;

	if (unlikely(!lb_usual_parse_v4(ip, n_bytes, &usual)))
		return false;
	s->v4[i] = usual.v4;
	take(s, i, &usual);
	return true;
}

static inline void
locate(struct dp_stages *s, size_t i, const struct lb_flow_table *flows,
	const struct lb_flow_hash *hash)
{
	const struct lb_flow_place place = lb_flow_locate(flows, hash);

	lb_flow_prefetch(flows, &place);
	s->buckets[i] = place.bucket;
	s->tags[i] = place.tag;
	s->burst->decisions[i].hash = *hash;
}

static inline bool
take_v6(struct dp_stages *s, size_t i, const uint8_t *ip, uint32_t n_bytes)
{
	struct lb_usual usual;
	struct lb_flow_hash hash;

	if (unlikely(n_bytes < LB_USUAL_V6_READ_BYTES - LB_USUAL_IP_OFFSET ||
		     !lb_usual_parse_v6(ip, n_bytes, &usual)))
		return false;
	s->is_v6[i] = true;
	s->n_v6++;
	/* At once: a key of five words costs more to be kept. */
	hash = lb_hash_flow_v6(&s->worker->keyed, &usual.key);
	locate(s, i, s->worker->flows, &hash);
	s->entropies[i] = lb_hash_entropy_v6(&usual.key);
	take(s, i, &usual);
	return true;
}

static inline uint16_t
type_before(const uint8_t *ip)
{
	uint16_t type_be;

	memcpy(&type_be, ip - sizeof(type_be), sizeof(type_be));
	return type_be;
}

/* The same behind a tag. */
static bool __attribute__((noinline))
take_tagged(struct dp_stages *s, size_t i, const uint8_t *ip, uint32_t n_bytes)
{
	if (type_before(ip) != htons(RTE_ETHER_TYPE_VLAN))
		return false;
	s->is_tagged[i] = true;
	s->has_tags = true;
	ip += DP_TAG_BYTES;
	n_bytes -= DP_TAG_BYTES;
	if (n_bytes < LB_USUAL_V4_READ_BYTES - LB_USUAL_IP_OFFSET)
		return false;
	if (type_before(ip) == htons(RTE_ETHER_TYPE_IPV4))
		return take_v4(s, i, ip, n_bytes);
	return type_before(ip) == htons(RTE_ETHER_TYPE_IPV6) && take_v6(s, i, ip, n_bytes);
}

/*
 * Start loading a packet's headers, and the line before them, which outer headers go to.
 * Nothing is read of it, nor is it looked for where it begins.
 */
static inline void
prefetch_packet(const struct rte_mbuf *m)
{
	const uint8_t *frame =
		(const uint8_t *)m + sizeof(*m) + DP_BESIDE_BYTES + RTE_PKTMBUF_HEADROOM;

	__builtin_prefetch(frame);
	__builtin_prefetch(frame - LB_CACHE_LINE, 1);
}

static inline bool
take_packet(struct dp_stages *s, size_t i)
{
	const struct rte_mbuf *m = s->burst->pkts[i];
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *ip = frame + LB_USUAL_IP_OFFSET;
	const uint32_t n_bytes = m->data_len - LB_USUAL_IP_OFFSET;

	/* Frames to a group of the link are no host's. */
	if (unlikely(m->data_len < LB_USUAL_V4_READ_BYTES || m->nb_segs != 1 ||
		     (frame[0] & 1) != 0))
		return false;
	if (likely(type_before(ip) == htons(RTE_ETHER_TYPE_IPV4)))
		return take_v4(s, i, ip, n_bytes);
	if (type_before(ip) == htons(RTE_ETHER_TYPE_IPV6))
		return take_v6(s, i, ip, n_bytes);
	return take_tagged(s, i, ip, n_bytes);
}

static size_t
take_all(struct dp_stages *s)
{
	const size_t n = s->burst->n;
	size_t n_odd = 0;

	/* What few are. */
	memset(s->is_usual, true, sizeof(s->is_usual));
	memset(s->is_v6, false, sizeof(s->is_v6));
	memset(s->is_tagged, false, sizeof(s->is_tagged));
	s->has_tags = false;
	s->has_begun = false;
	s->n_syns = 0;
	s->n_v6 = 0;
	s->first_odd = n;
	for (size_t i = 0; i < n; i++) {
		if (likely(i + AHEAD < n))
			prefetch_packet(s->burst->pkts[i + AHEAD]);
		if (likely(take_packet(s, i)))
			continue;
		s->is_usual[i] = false;
		if (n_odd++ == 0)
			s->first_odd = i;
	}
	return n - n_odd;
}

/*
 * Apart from the parsing, hashes of several packets overlap as far as the processor looks
 * ahead, and what they share stays in registers: as fast as in one loop, or a little faster.
 */
static inline void
locate_v4(struct dp_stages *s, bool is_all)
{
	const struct lb_flow_table flows = *s->worker->flows;
	const struct lb_hash_keyed keyed = s->worker->keyed;
	const size_t n = s->burst->n;

	for (size_t i = 0; i < n; i++) {
		struct lb_flow_hash hash;

		if (!is_all && (!s->is_usual[i] || s->is_v6[i]))
			continue;
		hash = lb_hash_flow_v4(&keyed, &s->v4[i]);
		locate(s, i, &flows, &hash);
	}
}

size_t
dp_usual_take(struct dp_stages *s)
{
	const size_t n = take_all(s);

	if (likely(n == s->burst->n && s->n_v6 == 0))
		locate_v4(s, true);
	else if (n > s->n_v6)
		locate_v4(s, false);
	s->n_syns_asked = 0;
	if (unlikely(s->n_syns > 0))
		dp_prefetch_syns(s, AHEAD);
	return n;
}
