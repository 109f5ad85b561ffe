/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any frame that the parser lets through, answered: an echo reply and an error too big are
 * right wherever they are made, and what is refused is untouched.
 *
 * Input: two bytes, big endian, of MTU; two that say how many bytes more than the frame's the
 * wire had; the rest is the frame.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz_require.h"
#include "lb_icmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ICMP of n bytes in a packet. */
static bool
is_icmp_right(const uint8_t *ip, const uint8_t *icmp, size_t n)
{
	uint32_t sum = 0;

	if (ip[0] >> 4 == 6)
		sum = plain_sum((uint32_t)(58 + n), ip + 8, 32);
	return plain_sum(sum, icmp, n) == 0xffff;
}

/* What holds of whatever is sent back: parsed answers packet, and lies in frame. */
static void
check_answer(const struct lb_packet *packet, const uint8_t *asked, const uint8_t *frame,
	size_t n, struct lb_packet *parsed)
{
	const uint8_t *ip = frame + packet->ip_offset;

	require(lb_packet_parse(frame, n, n, parsed) == LB_FORWARD, "an answer nobody parses");
	require(parsed->ip_offset + parsed->ip_bytes == n, "an answer's length");
	require(parsed->is_v6 == packet->is_v6, "an answer's family");
	require(lb_addr_equal(&parsed->dst, &packet->key.src), "an answer to somebody else");
	require(memcmp(frame, asked + 6, 6) == 0 && memcmp(frame + 6, asked, 6) == 0,
		"MAC addresses");
	require(memcmp(frame + 12, asked + 12, packet->ip_offset - 12u) == 0, "other tags");
	require(ip[packet->is_v6 ? 7 : 8] == 64, "TTL");
	require((parsed->tos & 3) == 0, "ECN");
}

/* A reply has all of what a request has, but for type and checksum of the first part. */
static void
check_echo(const struct lb_packet *packet, const uint8_t *frame, const struct lb_packet *parsed,
	const uint8_t *reply)
{
	const bool has_type = (packet->flags & LB_PACKET_ECHO_REQUEST) != 0;
	const size_t n = (size_t)packet->ip_offset + packet->ip_bytes - packet->l4_offset;
	const size_t same = has_type ? 4 : 0;
	const uint8_t *asked = frame + packet->l4_offset;
	const uint8_t *told = reply + parsed->l4_offset;

	require((size_t)parsed->ip_offset + parsed->ip_bytes - parsed->l4_offset == n,
		"length");
	require(memcmp(told + same, asked + same, n - same) == 0, "data");
	require((parsed->flags & ~LB_PACKET_DF) ==
			(packet->flags & ~LB_PACKET_DF & ~LB_PACKET_ECHO_REQUEST),
		"a reply that asks, or is another fragment");
	require(parsed->frag_id == packet->frag_id &&
			parsed->frag_offset == packet->frag_offset &&
			parsed->frag_bytes == packet->frag_bytes,
		"another place in the datagram");
	if (!has_type)
		return;
	require(parsed->kind == LB_PACKET_ICMP_OTHER && told[0] == (packet->is_v6 ? 129 : 0) &&
			told[1] == asked[1],
		"no reply");
	if ((packet->flags & LB_PACKET_FRAGMENT) != 0)
		return;
	require(is_icmp_right(frame + packet->ip_offset, asked, n) ==
			is_icmp_right(reply + parsed->ip_offset, told, n),
		"a reply's checksum is as right as the request's");
}

static void
echo(const uint8_t *frame, size_t n, const struct lb_packet *packet)
{
	const size_t untouched = n + 1;
	uint8_t *reply = exact(n);
	struct lb_packet parsed;
	size_t begin = untouched;
	size_t n_reply;

	memcpy(reply, frame, n);
	n_reply = lb_icmp_echo_reply(reply, n, packet, &begin);
	if (n_reply == 0) {
		require(begin == untouched && memcmp(reply, frame, n) == 0,
			"refused and touched");
		free(reply);
		return;
	}
	require(n_reply <= n && begin <= n - n_reply, "a longer reply");
	check_answer(packet, frame, reply + begin, n_reply, &parsed);
	require(lb_addr_equal(&parsed.key.src, &packet->dst), "a reply from somebody else");
	check_echo(packet, frame, &parsed, reply + begin);
	if ((packet->flags & LB_PACKET_ECHO_REQUEST) != 0)
		require(lb_icmp_echo_reply(reply + begin, n_reply, &parsed, &begin) == 0,
			"a reply to a reply");
	free(reply);
}

static void
too_big(const uint8_t *frame, size_t n, const struct lb_packet *packet, uint32_t mtu)
{
	const size_t ip_offset = packet->ip_offset;
	struct lb_icmp_too_big error;
	struct lb_packet parsed;
	size_t n_quote;
	uint8_t *answer;

	if (!lb_icmp_too_big_size(frame, n, packet, mtu, &error))
		return;
	require(lb_icmp_may_answer(frame, n, packet), "an error about what may have none");
	require(packet->ip_bytes > error.mtu, "too big, and no larger than the MTU");
	require(error.frame_bytes <= n + error.prepend_bytes, "a quote past the packet's end");
	require(error.frame_bytes - ip_offset <= (packet->is_v6 ? 1280 : 576), "too long");

	answer = exact(error.frame_bytes);
	n_quote = error.frame_bytes - ip_offset - error.prepend_bytes;
	memset(answer, 0xee, error.prepend_bytes);
	memcpy(answer + error.prepend_bytes, frame, ip_offset + n_quote);
	lb_icmp_too_big_write(answer, packet, &error, &packet->dst);
	check_answer(packet, frame, answer, error.frame_bytes, &parsed);
	require(lb_addr_equal(&parsed.key.src, &packet->dst), "an error from somebody else");
	require((parsed.flags & (LB_PACKET_FRAGMENT | LB_PACKET_ECHO_REQUEST)) == 0,
		"an error that asks, or is a fragment");
	require(is_icmp_right(answer + ip_offset, answer + parsed.l4_offset,
			error.frame_bytes - parsed.l4_offset),
		"an error's checksum");
	require(get16(answer + ip_offset + (packet->is_v6 ? 46 : 26)) == error.mtu, "MTU");
	require(memcmp(answer + ip_offset + error.prepend_bytes, frame + ip_offset, n_quote) ==
			0,
		"quote");
	require(!lb_icmp_may_answer(answer, error.frame_bytes, &parsed),
		"an error has another");
	free(answer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct lb_packet packet;
	size_t n_frame;
	uint8_t *frame;

	if (n < 4)
		return 0;
	n_frame = n - 4;
	frame = exact(n_frame);
	memcpy(frame, data + 4, n_frame);
	if (lb_packet_parse(frame, n_frame, n_frame + get16(data + 2), &packet) == LB_FORWARD) {
		echo(frame, n_frame, &packet);
		too_big(frame, n_frame, &packet, get16(data));
	}
	free(frame);
	return 0;
}
