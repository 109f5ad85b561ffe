/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Echo replies and packets that are too big, of every length and with any bytes.
 *
 * EVA does not see that one length is the sum of two. So all lengths at once are for what is
 * handed pointers to the beginning and the end; and what adds them up has lengths chosen here.
 */

#include "lb_icmp.c"
#include "proof.h"

#define TOO_BIG_BYTES_MAX (LB_ICMP_TOO_BIG_PREPEND_MAX + ERROR_BYTES_MAX_V6)

/* Extension headers together. */
#define HEADERS_BYTES_MAX 32u

static const uint16_t payloads[] = {8, 9, 56, 1300, 8900};
static const uint16_t offsets[] = {14, 18, 22};

static void
answer_parts(void)
{
	const size_t n = any_u64(ICMP_BYTES, FRAME_BYTES_MAX);

	make_any(frame_memory, sizeof(frame_memory));
	answer_icmp(FRAME_END - n, FRAME_END, (uint8_t)any_u64(0, UINT8_MAX));
	for (size_t bytes = 0; bytes <= IPV4_BYTES_MAX + 4; bytes += 4) {
		make_any(frame_memory, sizeof(frame_memory));
		(void)answer_ipv4(FRAME_END - bytes, bytes);
		answer_ipv6(FRAME_END - IPV6_BYTES - bytes, (uint16_t)bytes,
			(uint8_t)any_u64(0, UINT8_MAX));
	}
}

/* Headers of every length there may be, and what is in them. */
static void
answer_headers(void)
{
	const size_t n = any_u64(0, FRAME_BYTES_MAX);

	make_any(frame_memory, sizeof(frame_memory));
	(void)may_skip_options(FRAME_END - n, FRAME_END);
	for (size_t bytes = 0; bytes <= HEADERS_BYTES_MAX; bytes += EXTENSION_BYTES) {
		(void)may_skip_headers(FRAME_END - bytes - IPV6_BYTES, FRAME_END,
			(uint8_t)any_u64(0, UINT8_MAX));
		(void)may_keep_headers((uint8_t)any_u64(0, UINT8_MAX), FRAME_END - bytes,
			FRAME_END);
	}
}

static void
write_parts(void)
{
	const size_t n_v4 = any_u64(IPV4_BYTES + ICMP_BYTES, TOO_BIG_BYTES_MAX);
	const size_t n_v6 = any_u64(IPV6_BYTES + ICMP_BYTES, TOO_BIG_BYTES_MAX);
	const uint16_t mtu = (uint16_t)any_u64(0, UINT16_MAX);
	struct lb_packet packet;
	struct lb_addr src;

	make_any(&src, sizeof(src));
	make_any(&packet, sizeof(packet));
	make_any(frame_memory, sizeof(frame_memory));
	write_too_big_v4(FRAME_END - n_v4, FRAME_END, &packet, mtu, &src);
	write_too_big_v6(FRAME_END - n_v6, FRAME_END, &packet, mtu, &src);
}

static void
answer(const struct lb_packet *packet)
{
	const size_t n = (size_t)packet->ip_offset + packet->ip_bytes;
	struct lb_icmp_too_big error = {0};
	struct lb_addr src;
	size_t begin;

	make_any(&src, sizeof(src));
	make_any(frame_memory, sizeof(frame_memory));
	(void)lb_icmp_echo_reply(FRAME_END - n, n, packet, &begin);
	if (!lb_icmp_too_big_size(FRAME_END - n, n, packet, (uint32_t)any_u64(0, UINT32_MAX),
		    &error))
		return;
	//@ split error.frame_bytes;
	lb_icmp_too_big_write(FRAME_END - error.frame_bytes, packet, &error, &src);
}

/* As a fragment, it has the last cut_bytes of its headers as part of what was cut. */
static void
answer_all(bool is_v6, uint16_t header_bytes, uint16_t cut_bytes)
{
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct lb_packet packet;

		make_any(&packet, sizeof(packet));
		packet.is_v6 = is_v6;
		packet.ip_offset = offsets[i % 3];
		packet.l4_offset = (uint16_t)(packet.ip_offset + header_bytes);
		packet.ip_bytes = header_bytes + payloads[i];
		packet.frag_bytes = (uint16_t)(cut_bytes + payloads[i]);
		answer(&packet);
	}
}

int
main(void)
{
	answer_parts();
	answer_headers();
	write_parts();
	answer_all(false, IPV4_BYTES, 0);
	answer_all(false, IPV4_BYTES + 4, 0);
	answer_all(true, IPV6_BYTES, 0);
	answer_all(true, IPV6_BYTES + 8, 0);
	answer_all(true, IPV6_BYTES + 32, 0);
	answer_all(true, IPV6_BYTES + 8, 8);
	answer_all(true, IPV6_BYTES + 32, 16);
	return 0;
}
