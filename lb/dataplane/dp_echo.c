/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_echo.h"

#include <netinet/in.h>

#include "dp_mbuf.h"
#include "lb_icmp.h"
#include "lb_service_lookup.h"

enum lb_verdict
dp_echo_answer(struct rte_mbuf *m, const struct lb_packet *packet)
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

enum lb_verdict
dp_echo_take(const struct dp_stages *s, uint16_t i, uint32_t *service)
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
	if ((packet->flags & LB_PACKET_LINK_GROUP) != 0)
		return LB_DROP_LINK_MULTICAST;
	if (s->snapshot->services[found].echo == DP_ECHO_FORWARD)
		return LB_FORWARD;
	if (dp_snapshot_is_martian(s->snapshot, &packet->key.src, &packet->dst))
		return LB_DROP_MARTIAN_SOURCE;
	if (!dp_worker_may_reply(s->worker, &packet->key.src, s->burst->now_ns[i]))
		return LB_DROP_RATE_LIMITED;
	return LB_REPLY;
}

enum lb_verdict
dp_echo_later(const struct dp_stages *s, const struct lb_packet *packet, struct rte_mbuf *m,
	struct dp_decision *d)
{
	const uint32_t found =
		lb_service_find(s->snapshot->echo, &packet->dst, IPPROTO_ICMP, 0);
	enum lb_verdict verdict;

	if (found == LB_SERVICE_NONE || s->snapshot->services[found].echo != DP_ECHO_REPLY)
		return LB_DROP_FRAGMENT_UNMATCHED;
	d->service = found;
	verdict = dp_echo_answer(m, packet);
	return verdict == LB_TO_KERNEL ? LB_DROP_FRAGMENT_BAD : verdict;
}
