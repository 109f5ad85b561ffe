/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_fit.h"

#include <string.h>

#include "lb_icmp.h"
#include "lb_split.h"

#define IP_BYTES_MAX 65535u

static void
free_chain(struct dp_chain *chain)
{
	struct rte_mbuf *m;

	while ((m = dp_chain_take(chain)) != NULL)
		rte_pktmbuf_free(m);
}

/* n_bytes of a packet that has as many from offset on, whatever its segments. */
static void
copy_bytes(const struct rte_mbuf *m, uint32_t offset, uint32_t n_bytes, uint8_t *to)
{
	const void *from = rte_pktmbuf_read(m, offset, n_bytes, to);

	if (from != NULL && from != to)
		memcpy(to, from, n_bytes);
}

/* One piece as a frame of its own, with m's Ethernet header and tags, or NULL. */
static struct rte_mbuf *
make_piece(struct rte_mempool *pool, struct rte_mbuf *m, uint16_t ip_offset,
	const struct lb_split_piece *piece)
{
	const uint32_t n_headers = (uint32_t)ip_offset + piece->header.n_bytes;
	struct rte_mbuf *made = rte_pktmbuf_alloc(pool);
	uint8_t *frame;

	if (made == NULL)
		return NULL;
	if (n_headers + piece->payload_bytes > rte_pktmbuf_tailroom(made)) {
		rte_pktmbuf_free(made);
		return NULL;
	}
	frame = (uint8_t *)rte_pktmbuf_append(made,
		(uint16_t)(n_headers + piece->payload_bytes));
	copy_bytes(m, 0, ip_offset, frame);
	memcpy(frame + ip_offset, piece->header.bytes, piece->header.n_bytes);
	copy_bytes(m, ip_offset + piece->payload_offset, piece->payload_bytes,
		frame + n_headers);
	made->port = m->port;
	*dp_beside(made) = *dp_beside(m);
	return made;
}

/* The pieces stand for the packet from here on. */
static enum lb_verdict
replace(struct rte_mbuf **m, struct dp_chain *pieces, struct dp_decision *d)
{
	for (struct rte_mbuf *piece = pieces->first; piece != NULL;
		piece = dp_beside(piece)->next) {
		dp_beside(piece)->decision = *d;
		dp_beside(piece)->decision.verdict = DP_PIECE;
		dp_beside(piece)->decision.has_more = false;
	}
	rte_pktmbuf_free(*m);
	*m = pieces->first;
	d->has_more = dp_beside(pieces->first)->next != NULL;
	return LB_FORWARD;
}

/* Each piece is a packet for the backend's tunnel, which need not put anything together. */
static enum lb_verdict
cut_inner(const struct dp_passage *passage, struct rte_mbuf **m, struct dp_decision *d)
{
	const struct lb_packet *packet = passage->packet;
	const struct dp_backend *backend = passage->backend;
	const uint8_t *ip = rte_pktmbuf_mtod_offset(*m, const uint8_t *, packet->ip_offset);
	struct dp_chain pieces = {NULL, NULL};
	struct lb_split_piece piece;
	struct lb_split split;

	if (lb_split_inner_v4(ip, packet->ip_bytes, backend->mtu - backend->encap.n_bytes,
		    &split) != 0)
		return LB_DROP_TOO_BIG;
	while (lb_split_next(&split, &piece)) {
		struct lb_packet part = *packet;
		struct rte_mbuf *made =
			make_piece(passage->worker->spare, *m, packet->ip_offset, &piece);

		if (made == NULL)
			goto no_memory;
		dp_chain_append(&pieces, made);
		part.ip_bytes = (uint32_t)piece.header.n_bytes + piece.payload_bytes;
		if (dp_mbuf_encap(made, &part, backend, passage->entropy) != LB_FORWARD)
			goto no_memory;
	}
	return replace(m, &pieces, d);

no_memory:
	free_chain(&pieces);
	return LB_DROP_NO_MEMORY;
}

/* Of this worker alone, so that two never give out one: a power of two divides its wraps. */
static uint32_t
next_id(struct dp_worker *worker)
{
	worker->next_id += rte_align32pow2(worker->n_workers);
	return worker->next_id;
}

static int
plan_outer(struct dp_worker *worker, const struct dp_backend *backend, const uint8_t *ip,
	uint32_t ip_bytes, struct lb_split *out)
{
	if (backend->encap.is_v6)
		return lb_split_outer_v6(ip, ip_bytes, next_id(worker), backend->mtu, out);
	return lb_split_outer_v4(ip, ip_bytes, (uint16_t)next_id(worker), backend->mtu, out);
}

/*
 * The outer packet is cut: where the configuration wants it, and where the inner one can be
 * neither cut nor its sender told to send less (RFC 2473, section 7.1).
 */
static enum lb_verdict
cut_outer(const struct dp_passage *passage, struct rte_mbuf **m, struct dp_decision *d)
{
	struct dp_backend wide = *passage->backend;
	const uint32_t ip_bytes = passage->packet->ip_bytes + wide.encap.n_bytes;
	struct dp_chain pieces = {NULL, NULL};
	struct lb_split_piece piece;
	struct lb_split split;
	uint16_t ip_offset;

	if (wide.encap.n_bytes == 0 || ip_bytes > IP_BYTES_MAX)
		return LB_DROP_TOO_BIG;
	wide.mtu = IP_BYTES_MAX;
	/* One of no memory is untouched, all others are whole from here on. */
	if (dp_mbuf_encap(*m, passage->packet, &wide, passage->entropy) != LB_FORWARD)
		return LB_DROP_NO_MEMORY;
	ip_offset = dp_mbuf_ip_offset(passage->packet, &wide);
	if (plan_outer(passage->worker, passage->backend,
		    rte_pktmbuf_mtod_offset(*m, const uint8_t *, ip_offset), ip_bytes,
		    &split) != 0)
		return LB_DROP_TOO_BIG;
	while (lb_split_next(&split, &piece)) {
		struct rte_mbuf *made =
			make_piece(passage->worker->spare, *m, ip_offset, &piece);

		if (made == NULL) {
			free_chain(&pieces);
			return LB_DROP_NO_MEMORY;
		}
		dp_chain_append(&pieces, made);
	}
	return replace(m, &pieces, d);
}

static bool
prepend_error(struct rte_mbuf *m, const struct lb_packet *packet,
	const struct lb_icmp_too_big *error)
{
	if (rte_pktmbuf_headroom(m) < error->prepend_bytes)
		return false;
	dp_mbuf_cut(m, (uint32_t)error->frame_bytes - error->prepend_bytes);
	(void)rte_pktmbuf_prepend(m, error->prepend_bytes);
	lb_icmp_too_big_write(rte_pktmbuf_mtod(m, uint8_t *), packet, error, &packet->dst);
	return true;
}

enum lb_verdict
dp_fit(const struct dp_passage *passage, struct rte_mbuf **m, struct dp_decision *d)
{
	const struct lb_packet *packet = passage->packet;
	const uint32_t room = passage->backend->mtu - passage->backend->encap.n_bytes;
	const uint8_t *frame = rte_pktmbuf_mtod(*m, const uint8_t *);
	struct lb_icmp_too_big error;

	if ((packet->flags & LB_PACKET_DF) == 0) {
		if (passage->service->fragment == DP_FRAGMENT_DROP)
			return LB_DROP_TOO_BIG;
		return passage->service->fragment == DP_FRAGMENT_OUTER
			       ? cut_outer(passage, m, d)
			       : cut_inner(passage, m, d);
	}
	if (packet->is_v6 && packet->ip_bytes <= LB_ICMP_MTU_MIN_V6)
		return cut_outer(passage, m, d);
	if (!lb_icmp_too_big_size(frame, (*m)->data_len, packet, room, &error))
		return LB_DROP_TOO_BIG;
	if (!dp_worker_may_reply(passage->worker, &packet->key.src, passage->now_ns))
		return LB_DROP_RATE_LIMITED;
	return prepend_error(*m, packet, &error) ? LB_REPLY : LB_DROP_NO_MEMORY;
}
