/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ring_elem.h>

#include "dp_memory.h"
#include "dp_plane.h"
#include "lb_hash.h"
#include "lb_limits.h"

/* A prober's turn of 2 ms at 10,000 backends a second has 60. */
#define N_ON_THE_WAY 512u

static int
make_ring(size_t n_bytes, unsigned int flags, struct rte_ring **out)
{
	struct rte_ring *ring = dp_memory_zalloc(n_bytes);

	if (ring == NULL)
		return -ENOMEM;
	*out = ring;
	return rte_ring_init(ring, "probes", N_ON_THE_WAY, flags);
}

int
dp_probes_init(struct dp_probes *probes)
{
	const ssize_t n_bytes =
		rte_ring_get_memsize_elem(sizeof(struct dp_probe), N_ON_THE_WAY);
	int ret;

	if (n_bytes < 0)
		return (int)n_bytes;
	probes->ring_bytes = (size_t)n_bytes;
	ret = make_ring(probes->ring_bytes, RING_F_SP_ENQ | RING_F_SC_DEQ, &probes->asked);
	if (ret == 0)
		ret = make_ring(probes->ring_bytes, RING_F_SC_DEQ, &probes->answers);
	return ret;
}

void
dp_probes_fini(struct dp_probes *probes)
{
	dp_memory_free(probes->asked, probes->ring_bytes);
	dp_memory_free(probes->answers, probes->ring_bytes);
}

/* The prober's side. */

void
dp_probe_open(struct dp *dp)
{
	atomic_store_explicit(&dp->probes.is_open, true, memory_order_relaxed);
}

void
dp_probe_lend(struct dp *dp, uint16_t port, bool is_lent)
{
	atomic_store_explicit(&dp->probes.is_lent[port - LB_PROBE_PORT_FIRST], is_lent,
		memory_order_relaxed);
}

int
dp_probe_send(struct dp *dp, uint32_t backend, const uint8_t *ip, size_t n_bytes)
{
	struct dp_probe probe = {.backend = backend, .n_bytes = (uint32_t)n_bytes};

	if (n_bytes > sizeof(probe.bytes))
		return -EMSGSIZE;
	memcpy(probe.bytes, ip, n_bytes);
	return rte_ring_enqueue_elem(dp->probes.asked, &probe, sizeof(probe));
}

size_t
dp_probe_take(struct dp *dp, uint8_t ip[static DP_PROBE_BYTES_MAX])
{
	struct dp_probe probe;

	if (rte_ring_dequeue_elem(dp->probes.answers, &probe, sizeof(probe)) != 0)
		return 0;
	memcpy(ip, probe.bytes, probe.n_bytes);
	return probe.n_bytes;
}

/* The workers'. */

/* MAC addresses are those of whom it leaves to and by: nobody's yet. */
static struct rte_mbuf *
make_frame(const struct dp_worker *worker, const struct dp_probe *probe)
{
	const bool is_v6 = probe->bytes[0] >> 4 == 6;
	struct rte_ether_hdr ether = {
		.ether_type = htons(is_v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4)};
	struct rte_mbuf *m = rte_pktmbuf_alloc(worker->spare);
	char *bytes;

	if (m == NULL)
		return NULL;
	bytes = rte_pktmbuf_append(m, (uint16_t)(sizeof(ether) + probe->n_bytes));
	if (bytes == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	memcpy(bytes, &ether, sizeof(ether));
	memcpy(bytes + sizeof(ether), probe->bytes, probe->n_bytes);
	return m;
}

/* As dp_mbuf_encap(), to whoever has the id, if anybody has. */
static enum lb_verdict
encap(const struct dp_snapshot *snapshot, uint32_t id, struct rte_mbuf *m)
{
	struct lb_packet packet;

	if (id >= snapshot->n_ids || dp_mbuf_parse(m, m->pkt_len, &packet) != LB_FORWARD ||
		packet.kind != LB_PACKET_FLOW)
		return LB_DROP_NO_BACKEND;
	return dp_mbuf_encap(m, &packet, &snapshot->backends[id], lb_hash_entropy(&packet.key));
}

unsigned int
dp_probes_send(const struct dp_worker *worker, const struct dp_snapshot *snapshot,
	struct dp_chain *chain)
{
	struct dp_probe probe;
	unsigned int n = 0;

	while (n < DP_BURST_MAX &&
		rte_ring_dequeue_elem(worker->probes->asked, &probe, sizeof(probe)) == 0) {
		struct rte_mbuf *m = make_frame(worker, &probe);

		n++;
		if (m == NULL)
			continue;
		if (encap(snapshot, probe.backend, m) != LB_FORWARD) {
			rte_pktmbuf_free(m);
			continue;
		}
		dp_beside(m)->decision = (struct dp_decision){
			.verdict = DP_PIECE,
			.port = snapshot->backends[probe.backend].port,
		};
		dp_chain_append(chain, m);
	}
	return n;
}

static bool
is_own(const struct dp_snapshot *snapshot, const struct lb_addr *address)
{
	for (size_t i = 0; i < snapshot->n_own; i++) {
		if (lb_addr_equal(&snapshot->own[i], address))
			return true;
	}
	return false;
}

bool
dp_probes_take(const struct dp_worker *worker, const struct dp_snapshot *snapshot,
	const struct lb_packet *packet, const struct rte_mbuf *m)
{
	const uint16_t port = ntohs(packet->key.dport_be);
	struct dp_probe probe;

	if (worker->probes == NULL ||
		!atomic_load_explicit(&worker->probes->is_open, memory_order_relaxed) ||
		packet->kind != LB_PACKET_FLOW || (packet->flags & LB_PACKET_FRAGMENT) != 0 ||
		port < LB_PROBE_PORT_FIRST || port > LB_PROBE_PORT_LAST ||
		packet->ip_bytes > sizeof(probe.bytes) ||
		packet->ip_offset + packet->ip_bytes > m->data_len ||
		!is_own(snapshot, &packet->dst) ||
		!lb_service_has_host(snapshot->match, &packet->key.src))
		return false;
	if (!atomic_load_explicit(&worker->probes->is_lent[port - LB_PROBE_PORT_FIRST],
		    memory_order_relaxed))
		return true;
	probe.backend = DP_NONE;
	probe.n_bytes = packet->ip_bytes;
	memcpy(probe.bytes, rte_pktmbuf_mtod_offset(m, const uint8_t *, packet->ip_offset),
		probe.n_bytes);
	/* Where there is no room it is as one that was lost on the way. */
	(void)rte_ring_enqueue_elem(worker->probes->answers, &probe, sizeof(probe));
	return true;
}
