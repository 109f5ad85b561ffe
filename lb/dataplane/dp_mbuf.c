/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_mbuf.h"

#include <string.h>

#include "lb_csum.h"

enum {
	MACS_BYTES = 12,
	ETHER_BYTES = 14,
	TAG_BYTES = 4,
	PRIORITY_MASK = 0xf0, /* and DEI, of a tag's third byte */
};

void
dp_mbuf_cut(struct rte_mbuf *m, uint32_t n_bytes)
{
	struct rte_mbuf *segment = m;
	uint32_t left = n_bytes;

	if (m->pkt_len <= n_bytes)
		return;
	m->pkt_len = n_bytes;
	m->nb_segs = 1;
	while (segment->data_len < left) {
		left -= segment->data_len;
		segment = segment->next;
		m->nb_segs++;
	}
	segment->data_len = (uint16_t)left;
	if (segment->next != NULL) {
		rte_pktmbuf_free(segment->next);
		segment->next = NULL;
	}
}

static uint64_t __attribute__((noinline, cold))
sum_from(const struct rte_mbuf *m, uint32_t offset)
{
	uint64_t sum = 0;
	bool is_odd = false;

	for (; m != NULL; m = m->next) {
		const uint32_t n = m->data_len - offset;
		const uint64_t part =
			lb_csum_add(0, rte_pktmbuf_mtod_offset(m, const uint8_t *, offset), n);

		sum = lb_csum_join(sum, is_odd ? lb_csum_swap(part) : part);
		is_odd ^= (n & 1) != 0;
		offset = 0;
	}
	return sum;
}

/*
 * The tags that a port wants, of a frame that has n_tags: none, or the one of its VLAN.
 * Priority and drop eligibility are those of the outermost tag that came (802.1Q,
 * section 6.9.3).
 */
static bool __attribute__((noinline, cold))
set_vlan(struct rte_mbuf *m, unsigned int n_tags, uint16_t vlan)
{
	const unsigned int n_wanted = vlan == DP_VLAN_NONE ? 0 : 1;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const uint8_t priority = n_tags > 0 ? frame[MACS_BYTES + 2] & PRIORITY_MASK : 0;
	uint8_t *to = frame;

	if (n_tags > n_wanted)
		to = (uint8_t *)rte_pktmbuf_adj(m, (uint16_t)((n_tags - n_wanted) * TAG_BYTES));
	else if (n_tags < n_wanted)
		to = (uint8_t *)rte_pktmbuf_prepend(m, TAG_BYTES);
	if (to == NULL)
		return false;
	memmove(to, frame, MACS_BYTES);
	if (n_wanted > 0) {
		to[MACS_BYTES] = 0x81;
		to[MACS_BYTES + 1] = 0x00;
		to[MACS_BYTES + 2] = (uint8_t)(priority | vlan >> 8);
		to[MACS_BYTES + 3] = (uint8_t)vlan;
	}
	return true;
}

/* Room for n_bytes before a packet, and the padding behind its first n_kept cut off. */
static inline uint8_t *
make_frame(struct rte_mbuf *m, uint16_t n_bytes, uint32_t n_kept)
{
	if (unlikely(m->nb_segs > 1 || n_kept > m->data_len)) {
		dp_mbuf_cut(m, n_kept);
		return (uint8_t *)rte_pktmbuf_prepend(m, n_bytes);
	}
	if (unlikely(n_bytes > rte_pktmbuf_headroom(m)))
		return NULL;
	/* In one segment: each field is written once. */
	m->data_off = (uint16_t)(m->data_off - n_bytes);
	m->data_len = (uint16_t)(n_kept + n_bytes);
	m->pkt_len = n_kept + n_bytes;
	return rte_pktmbuf_mtod(m, uint8_t *);
}

enum lb_verdict
dp_mbuf_encap(struct rte_mbuf *m, const struct lb_packet *packet,
	const struct dp_backend *backend, uint32_t entropy)
{
	const struct lb_encap *encap = &backend->encap;
	const uint16_t ip_offset = packet->ip_offset;
	struct lb_encap_packet inner = {
		.is_v6 = packet->is_v6,
		.tos = packet->tos,
		.entropy = entropy,
	};
	struct lb_mac own;
	uint8_t *frame;

	if (unlikely(!backend->has_next_hop))
		return LB_DROP_NO_NEXT_HOP;
	if (unlikely(packet->ip_bytes + encap->n_bytes > backend->mtu))
		return LB_DROP_TOO_BIG;
	frame = make_frame(m, encap->n_bytes, ip_offset + packet->ip_bytes);
	if (unlikely(frame == NULL))
		return LB_DROP_NO_MEMORY;

	/* Before it is written over. Of the old header only tags are moved, if there are any.
	 */
	if (backend->has_source)
		own = backend->ether.src;
	else
		memcpy(own.bytes, frame + encap->n_bytes, sizeof(own.bytes));
	if (encap->n_bytes > 0) {
		inner.inner_bytes = (uint16_t)packet->ip_bytes; /* at most the MTU */
		if (unlikely(lb_encap_needs_sum(encap)))
			inner.inner_sum = sum_from(m, encap->n_bytes + ip_offset);
		if (unlikely(packet->n_tags > 0))
			memmove(frame + MACS_BYTES, frame + encap->n_bytes + MACS_BYTES,
				(size_t)packet->n_tags * TAG_BYTES);
		lb_encap_write(encap, &inner, frame + ip_offset);
		frame[ip_offset - 2] = encap->is_v6 ? 0x86 : 0x08;
		frame[ip_offset - 1] = encap->is_v6 ? 0xdd : 0x00;
	}
	memcpy(frame, backend->ether.dst.bytes, sizeof(own.bytes));
	memcpy(frame + sizeof(own.bytes), own.bytes, sizeof(own.bytes));
	if (unlikely(backend->vlan != DP_VLAN_KEEP))
		return set_vlan(m, packet->n_tags, backend->vlan) ? LB_FORWARD
								  : LB_DROP_NO_MEMORY;
	return LB_FORWARD;
}

uint16_t
dp_mbuf_ip_offset(const struct lb_packet *packet, const struct dp_backend *backend)
{
	if (backend->vlan == DP_VLAN_KEEP)
		return packet->ip_offset;
	return backend->vlan == DP_VLAN_NONE ? ETHER_BYTES : ETHER_BYTES + TAG_BYTES;
}

bool
dp_mbuf_answer(struct rte_mbuf *m, const struct lb_neighbor_ask *ask, const struct lb_mac *own)
{
	dp_mbuf_cut(m, ask->answer_bytes);
	if (m->pkt_len < ask->answer_bytes &&
		rte_pktmbuf_append(m, (uint16_t)(ask->answer_bytes - m->pkt_len)) == NULL)
		return false;
	lb_neighbor_answer(ask, own, rte_pktmbuf_mtod(m, uint8_t *));
	return true;
}
