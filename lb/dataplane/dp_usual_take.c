/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "dp_mbuf.h"
#include "dp_usual.h"
#include "dp_usual_parts.h"

#define AHEAD       8u   /* packets that are asked for before they are read: measured */
#define SYNS_AHEAD  16u  /* and SYNs' second buckets */
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

/* What locating a packet's flow needs of what lies behind pointers, at hand. */
struct at_hand {
	struct lb_flow_table flows;
	struct lb_hash_keyed keyed;
};

static inline struct at_hand
at_hand_of(const struct dp_stages *s)
{
	return (struct at_hand){*s->worker->flows, s->worker->keyed};
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
locate_v4(struct dp_stages *s, size_t i, const struct at_hand *at_hand)
{
	const struct lb_flow_hash hash = lb_hash_flow_v4(&at_hand->keyed, &s->v4[i]);

	locate(s, i, &at_hand->flows, &hash);
}

static inline bool
take_v6(struct dp_stages *s, size_t i, const uint8_t *ip, uint32_t n_bytes,
	const struct at_hand *at_hand)
{
	struct lb_usual usual;
	struct lb_flow_hash hash;

	if (unlikely(!lb_usual_parse_v6(ip, n_bytes, &usual)))
		return false;
	s->is_v6[i] = true;
	take(s, i, &usual);
	/* At once: a key of five words costs more to be kept. */
	hash = lb_hash_flow_v6(&at_hand->keyed, &usual.key);
	locate(s, i, &at_hand->flows, &hash);
	s->entropies[i] = lb_hash_entropy_v6(&usual.key);
	return true;
}

static inline uint16_t
type_before(const uint8_t *ip)
{
	uint16_t type_be;

	memcpy(&type_be, ip - sizeof(type_be), sizeof(type_be));
	return type_be;
}

/*
 * What is behind the Ethernet header of a frame that may be usual, and is of a type; NULL: it
 * is not. Frames to a group of the link are no host's.
 */
static inline const uint8_t *
behind_ether(const struct rte_mbuf *m, uint16_t type, uint32_t read_bytes)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	if (unlikely(m->data_len < read_bytes || m->nb_segs != 1 || (frame[0] & 1) != 0 ||
		     type_before(frame + LB_USUAL_IP_OFFSET) != htons(type)))
		return NULL;
	return frame + LB_USUAL_IP_OFFSET;
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

/* The same of the packet that is AHEAD. */
static inline void
prefetch_ahead(const struct dp_stages *s, size_t i, size_t n)
{
	if (likely(i + AHEAD < n))
		prefetch_packet(s->burst->pkts[i + AHEAD]);
}

/*
 * Packets one after the other that are IPv4 and have no tags. Apart from the parsing, their
 * hashes overlap as far as the processor looks ahead, and what they share stays in registers:
 * as fast as in one loop, or a little faster.
 *
 * @return the first that is not.
 */
static inline size_t
take_run_v4(struct dp_stages *s, size_t from)
{
	const struct at_hand at_hand = at_hand_of(s);
	const size_t n = s->burst->n;
	size_t end;

	for (end = from; end < n; end++) {
		const struct rte_mbuf *m = s->burst->pkts[end];
		const uint32_t n_bytes = m->data_len - LB_USUAL_IP_OFFSET;
		const uint8_t *ip;

		prefetch_ahead(s, end, n);
		ip = behind_ether(m, RTE_ETHER_TYPE_IPV4, LB_USUAL_V4_READ_BYTES);
		if (unlikely(ip == NULL || !take_v4(s, end, ip, n_bytes)))
			break;
	}
	for (size_t i = from; i < end; i++)
		locate_v4(s, i, &at_hand);
	return end;
}

/* The same of IPv6. */
static inline size_t
take_run_v6(struct dp_stages *s, size_t from)
{
	const struct at_hand at_hand = at_hand_of(s);
	const size_t n = s->burst->n;
	size_t i;

	for (i = from; i < n; i++) {
		const struct rte_mbuf *m = s->burst->pkts[i];
		const uint32_t n_bytes = m->data_len - LB_USUAL_IP_OFFSET;
		const uint8_t *ip;

		prefetch_ahead(s, i, n);
		ip = behind_ether(m, RTE_ETHER_TYPE_IPV6, LB_USUAL_V6_READ_BYTES);
		if (unlikely(ip == NULL || !take_v6(s, i, ip, n_bytes, &at_hand)))
			break;
	}
	s->n_v6 += i - from;
	return i;
}

/* Asked before what is at hand is gathered, so that what is not usual at all costs little. */
static inline bool
has_tag(const struct rte_mbuf *m)
{
	return behind_ether(m, RTE_ETHER_TYPE_VLAN, LB_USUAL_V4_READ_BYTES + DP_TAG_BYTES) !=
	       NULL;
}

static bool
take_tagged(struct dp_stages *s, size_t i, const struct at_hand *at_hand)
{
	const struct rte_mbuf *m = s->burst->pkts[i];
	const uint8_t *ip =
		behind_ether(m, RTE_ETHER_TYPE_VLAN, LB_USUAL_V4_READ_BYTES + DP_TAG_BYTES);
	const uint32_t n_bytes = m->data_len - LB_USUAL_IP_OFFSET - DP_TAG_BYTES;

	if (ip == NULL)
		return false;
	s->is_tagged[i] = true;
	s->has_tags = true;
	ip += DP_TAG_BYTES;
	if (type_before(ip) == htons(RTE_ETHER_TYPE_IPV4)) {
		if (!take_v4(s, i, ip, n_bytes))
			return false;
		locate_v4(s, i, at_hand);
		return true;
	}
	if (type_before(ip) != htons(RTE_ETHER_TYPE_IPV6) ||
		m->data_len < LB_USUAL_V6_READ_BYTES + DP_TAG_BYTES ||
		!take_v6(s, i, ip, n_bytes, at_hand))
		return false;
	s->n_v6++;
	return true;
}

/* The same of those that have a tag, of either family. */
static size_t __attribute__((noinline)) take_run_tagged(struct dp_stages *s, size_t from)
{
	const struct at_hand at_hand = at_hand_of(s);
	const size_t n = s->burst->n;
	size_t i;

	for (i = from; i < n; i++) {
		prefetch_ahead(s, i, n);
		if (!take_tagged(s, i, &at_hand))
			break;
	}
	return i;
}

/* What few are. */
static void
begin_burst(struct dp_stages *s)
{
	memset(s->is_usual, true, sizeof(s->is_usual));
	memset(s->is_v6, false, sizeof(s->is_v6));
	memset(s->is_tagged, false, sizeof(s->is_tagged));
	s->has_tags = false;
	s->has_begun = false;
	s->n_syns = 0;
	s->n_syns_asked = 0;
	s->n_v6 = 0;
	s->first_odd = s->burst->n;
}

size_t
dp_usual_take(struct dp_stages *s)
{
	const size_t n = s->burst->n;
	size_t n_odd = 0;
	size_t i = 0;

	begin_burst(s);
	for (size_t first = 0; first < n && first < AHEAD; first++)
		prefetch_packet(s->burst->pkts[first]);
	while (i < n) {
		const size_t begun = i;

		i = take_run_v6(s, take_run_v4(s, i));
		if (i == begun && has_tag(s->burst->pkts[i]))
			i = take_run_tagged(s, i);
		if (i != begun)
			continue;
		s->is_usual[i] = false;
		if (n_odd++ == 0)
			s->first_odd = i;
		i++;
	}
	if (unlikely(s->n_syns > 0))
		dp_prefetch_syns(s, SYNS_AHEAD);
	return n - n_odd;
}
