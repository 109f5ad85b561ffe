/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_MBUF_H
#define DP_MBUF_H

/**
 * @file
 * Between mbufs and bytes: core knows bytes, the ports know mbufs.
 */

#include <rte_mbuf.h>

#include "dp_snapshot.h"
#include "lb_neighbor.h"
#include "lb_packet.h"

/**
 * What lies beside each packet, in its mbuf's private area. The packet path writes it only for
 * fragments and for what is cut into pieces, so that others do not pay for its cache line.
 */
struct dp_beside {
	struct rte_mbuf *next; /**< leaves right after this one, where its decision has_more */
	struct dp_decision decision; /**< of one that is another's next, or has waited */
	uint64_t now_ns;             /**< when it came; of one that has waited */
	uint64_t number;             /**< a batch's */
	uint64_t cookie;
	uint32_t wire_bytes; /**< on the wire; of one that waits or is on its way home */
};

/* Whole lines, so that a frame begins with one: what is read of most frames lies on it. */
#define DP_BESIDE_BYTES RTE_ALIGN_CEIL(sizeof(struct dp_beside), LB_CACHE_LINE)

static_assert(DP_BESIDE_BYTES % RTE_MBUF_PRIV_ALIGN == 0, "as mbufs have it");
static_assert((sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM) % LB_CACHE_LINE == 0,
	"what else lies before a frame is whole lines, too");

/** All packets of the data plane are of pools that have room for it. */
static inline struct dp_beside *
dp_beside(struct rte_mbuf *m)
{
	return (struct dp_beside *)rte_mbuf_to_priv(m);
}

/** Packets one after the other, by what lies beside them. */
struct dp_chain {
	struct rte_mbuf *first; /**< NULL: none */
	struct rte_mbuf *last;
};

static inline void
dp_chain_append(struct dp_chain *chain, struct rte_mbuf *m)
{
	dp_beside(m)->next = NULL;
	if (chain->first == NULL)
		chain->first = m;
	else
		dp_beside(chain->last)->next = m;
	chain->last = m;
}

/** Take the first one off, or NULL. */
static inline struct rte_mbuf *
dp_chain_take(struct dp_chain *chain)
{
	struct rte_mbuf *m = chain->first;

	if (m != NULL)
		chain->first = dp_beside(m)->next;
	return m;
}

/** Headers that are read lie in a packet's first segment; so lb_packet_parse() on that. */
static inline enum lb_verdict
dp_mbuf_parse(const struct rte_mbuf *m, uint32_t wire_bytes, struct lb_packet *out)
{
	const enum lb_verdict verdict = lb_packet_parse(rte_pktmbuf_mtod(m, const uint8_t *),
		m->data_len, wire_bytes, out);

	/* The parser saw the first segment alone: what lies in the others is not missing. */
	if (unlikely(m->nb_segs > 1) && verdict == LB_FORWARD &&
		m->pkt_len >= out->ip_offset + out->ip_bytes)
		out->flags &= (uint8_t)~LB_PACKET_CUT;
	return verdict;
}

/**
 * The bytes from the L4 header on that are the packet's and in its first segment: what pads a
 * short frame is its sender's to choose, and nobody behind sees it.
 */
static inline size_t
dp_mbuf_l4_bytes(const struct rte_mbuf *m, const struct lb_packet *packet)
{
	const uint32_t end =
		RTE_MIN((uint32_t)m->data_len, packet->ip_offset + packet->ip_bytes);

	return end > packet->l4_offset ? end - packet->l4_offset : 0;
}

/**
 * Make a packet into the frame that goes to a backend: outer headers, MAC addresses, and the
 * padding cut off.
 *
 * The source MAC is the backend's, or the old destination: the port that received it. VLAN tags
 * are as the backend's vlan says.
 *
 * @retval LB_FORWARD           Ready to be sent.
 * @retval LB_DROP_NO_NEXT_HOP  Nobody to send it to; untouched.
 * @retval LB_DROP_TOO_BIG      Over the MTU with its outer header; untouched.
 * @retval LB_DROP_NO_MEMORY    No headroom; to be dropped.
 */
enum lb_verdict dp_mbuf_encap(struct rte_mbuf *m, const struct lb_packet *packet,
	const struct dp_backend *backend, uint32_t entropy);

/** Where the outer IP header begins in a frame that dp_mbuf_encap() made. */
uint16_t dp_mbuf_ip_offset(const struct lb_packet *packet, const struct dp_backend *backend);

/** Leave the first n_bytes, 1 at least, of a packet; all of it where it has no more. */
void dp_mbuf_cut(struct rte_mbuf *m, uint32_t n_bytes);

/**
 * Make a packet that asks for an address into the answer.
 *
 * @param ask    What lb_neighbor_asks() said of its first segment.
 * @param own    The answer, and the frame's source.
 * @return whether there was room; if not it is untouched.
 */
bool dp_mbuf_answer(struct rte_mbuf *m, const struct lb_neighbor_ask *ask,
	const struct lb_mac *own) lb_must_check;

#endif
