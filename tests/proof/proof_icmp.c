/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Echo replies and packets that are too big: every header and any bytes, but payloads of
 * lengths chosen here, since EVA does not see that one length is the sum of two.
 */

#include "lb_icmp.c"
#include "proof.h"

static const uint16_t payloads[] = {8, 9, 56, 1300, 8900};
static const uint16_t offsets[] = {14, 18, 22};

static void
answer(struct lb_packet *packet)
{
	const size_t n = (size_t)packet->ip_offset + packet->ip_bytes;
	struct lb_icmp_too_big error = {0};
	struct lb_addr src;

	make_any(&src, sizeof(src));
	make_any(frame_memory, sizeof(frame_memory));
	(void)lb_icmp_echo_reply(FRAME_END - n, n, packet);
	if (!lb_icmp_too_big_size(FRAME_END - n, n, packet, (uint32_t)any_u64(0, UINT32_MAX),
		    &error))
		return;
	//@ split error.frame_bytes;
	lb_icmp_too_big_write(FRAME_END - error.frame_bytes, packet, &error, &src);
}

static void
answer_all(bool is_v6, uint16_t header_bytes)
{
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct lb_packet packet;

		make_any(&packet, sizeof(packet));
		packet.is_v6 = is_v6;
		packet.ip_offset = offsets[i % 3];
		packet.l4_offset = (uint16_t)(packet.ip_offset + header_bytes);
		packet.ip_bytes = header_bytes + payloads[i];
		answer(&packet);
	}
}

int
main(void)
{
	answer_all(false, 20);
	answer_all(false, 24);
	answer_all(false, 60);
	answer_all(true, 40);
	answer_all(true, 48);
	return 0;
}
