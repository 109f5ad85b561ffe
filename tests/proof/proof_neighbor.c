/* SPDX-License-Identifier: BSD-3-Clause */

/* ARP and neighbour discovery: every frame that may ask, and every answer. */

#include "lb_neighbor.c"
#include "proof.h"

/* For all lengths at once asks() is looked at; for these, also what calls it. */
static const size_t lengths[] = {0, 42, 90};

static void
answer(const struct lb_mac *own, bool is_v6, uint16_t offset, uint16_t network_bytes)
{
	struct lb_neighbor_ask ask = {
		.network_offset = offset,
		.answer_bytes = (uint16_t)(offset + network_bytes),
	};

	make_any(&ask.target, sizeof(ask.target));
	make_any(&ask.asker, sizeof(ask.asker));
	if (is_v6)
		ask.target.bytes[0] = 0x20;
	else
		ask.target = lb_addr_from_v4(ask.target.bytes);
	lb_neighbor_answer(&ask, own, FRAME_END - ask.answer_bytes);
}

int
main(void)
{
	const size_t n = any_u64(0, FRAME_BYTES_MAX);
	struct lb_neighbor_ask ask;
	struct lb_mac own;

	make_any(&own, sizeof(own));
	make_any(frame_memory, sizeof(frame_memory));
	(void)asks(FRAME_END - n, FRAME_END, &own, &ask);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		(void)lb_neighbor_asks(FRAME_END - lengths[i], lengths[i], &own, &ask);
	for (uint16_t offset = 14; offset <= 22; offset += 4) {
		for (uint16_t arp = ARP_BYTES; arp <= ETHER_PAYLOAD_MIN; arp++)
			answer(&own, false, offset, arp);
		answer(&own, true, offset, IPV6_BYTES + ND_ANSWER_BYTES);
	}
	return 0;
}
