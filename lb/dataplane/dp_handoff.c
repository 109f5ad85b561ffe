/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_handoff.h"

#include "dp_mbuf.h"
#include "lb_hash.h"

unsigned int
dp_handoff_owner(const struct rte_mbuf *m, uint32_t wire_bytes, unsigned int n_workers)
{
	struct lb_packet packet;
	uint64_t hash;

	if (dp_mbuf_parse(m, wire_bytes, &packet) != LB_FORWARD)
		return 0;
	hash = lb_hash_bytes(&packet.key, sizeof(packet.key), 0);
	return (unsigned int)(((hash >> 32) * n_workers) >> 32);
}
