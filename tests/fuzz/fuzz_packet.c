/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes through the parser, and what it lets through into outer headers; and what asks for
 * a neighbour, answered.
 *
 * Input: two bytes, big endian, say how many bytes more than the frame's the wire had;
 * the rest is the frame.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz_require.h"
#include "lb_csum.h"
#include "lb_encap_write.h"
#include "lb_neighbor.h"
#include "lb_packet.h"
#include "lb_usual.h"
#include "packet_flaw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct lb_encap
encap_of(enum lb_forward_mode mode, bool is_v6)
{
	static const uint8_t v4[4] = {192, 0, 2, 1};
	struct lb_encap_conf conf = {
		.mode = mode,
		.src = lb_addr_from_v4(v4),
		.dst = lb_addr_from_v4(v4),
		.udp_port = LB_GUE_PORT,
		.vni = 0xabcdef,
		.inner_dst = {{2, 0, 0, 0, 0, 1}},
		.inner_src = {{2, 0, 0, 0, 0, 2}},
	};
	struct lb_encap encap;

	if (is_v6) {
		conf.src = (struct lb_addr){.bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
		conf.dst = (struct lb_addr){.bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 2}};
	}
	require(lb_encap_init(&encap, &conf) == 0, "a template was refused");
	require(encap.n_bytes == lb_encap_overhead(mode, is_v6), "n_bytes is not the overhead");
	return encap;
}

static void
check_outer_v4(const struct lb_encap *encap, const uint8_t *out, const uint8_t *inner, size_t n)
{
	(void)inner;
	require(out[0] == 0x45, "IPv4: version or header length");
	require(plain_sum(0, out, 20) == 0xffff, "IPv4: header checksum");
	require(get16(out + 2) == encap->n_bytes + n, "IPv4: total length");
	if (out[9] != 17)
		return;
	require(get16(out + 24) == encap->n_bytes - 20 + n, "UDP: length");
	require(get16(out + 26) == 0, "UDP over IPv4: a checksum");
	require(get16(out + 20) >= 49152, "UDP: source port");
}

static void
check_outer_v6(const struct lb_encap *encap, const uint8_t *out, const uint8_t *inner, size_t n)
{
	const unsigned int payload_bytes = (unsigned int)(encap->n_bytes - 40 + n);
	uint32_t sum;

	require(out[0] >> 4 == 6, "IPv6: version");
	require(get16(out + 4) == payload_bytes, "IPv6: payload length");
	require(((out[1] & 0x0fu) | get16(out + 2)) != 0, "IPv6: no flow label");
	if (out[6] != 17)
		return;
	require(get16(out + 44) == payload_bytes, "UDP: length");
	require(get16(out + 46) != 0, "UDP over IPv6: no checksum");
	sum = plain_sum(17 + payload_bytes, out + 8, 32);
	sum = plain_sum(sum, out + 40, encap->n_bytes - 40u);
	require(plain_sum(sum, inner, n) == 0xffff, "UDP over IPv6: checksum");
}

/* Of a packet with n_bytes from its IP header to the end of its frame. */
static bool
is_usual(const uint8_t *ip, size_t n_bytes, bool is_v6)
{
	const size_t n_headers = is_v6 ? LB_USUAL_V6_BYTES : LB_USUAL_V4_BYTES;
	struct lb_usual usual;

	if (n_bytes < n_headers + LB_USUAL_TCP_BYTES)
		return false;
	return is_v6 ? lb_usual_parse_v6(ip, (uint32_t)n_bytes, &usual)
		     : lb_usual_parse_v4(ip, (uint32_t)n_bytes, &usual);
}

/* The same bytes as were written before any packet. */
static void
try_usual(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	const uint8_t *inner, const uint8_t *want)
{
	uint8_t *all = exact((size_t)encap->n_bytes + packet->inner_bytes);

	memcpy(all + encap->n_bytes, inner, packet->inner_bytes);
	lb_encap_write_usual((struct lb_encap_part){encap->bytes, encap->sum},
		(enum lb_forward_mode)encap->mode, encap->is_v6, packet, all);
	require(memcmp(all, want, encap->n_bytes) == 0, "headers of a usual packet");
	free(all);
}

static void
try_encap(const struct lb_packet *p, const uint8_t *inner, bool has_usual,
	enum lb_forward_mode mode, bool is_v6)
{
	const struct lb_encap encap = encap_of(mode, is_v6);
	const struct lb_encap_packet packet = {
		.is_v6 = p->is_v6,
		.tos = p->tos,
		.inner_bytes = (uint16_t)p->ip_bytes,
		.entropy = p->tcp_seq ^ p->key.sport_be,
		.inner_sum = lb_csum_add(0, inner, p->ip_bytes),
	};
	uint8_t *out;

	if (encap.n_bytes - (is_v6 ? 40u : 0u) + p->ip_bytes > UINT16_MAX ||
		p->ip_bytes > UINT16_MAX)
		return; /* over any MTU */
	out = exact(encap.n_bytes);
	lb_encap_write(&encap, &packet, out);
	if (mode != LB_FORWARD_L2 && is_v6)
		check_outer_v6(&encap, out, inner, p->ip_bytes);
	else if (mode != LB_FORWARD_L2)
		check_outer_v4(&encap, out, inner, p->ip_bytes);
	if (mode != LB_FORWARD_L2 && has_usual)
		try_usual(&encap, &packet, inner, out);
	free(out);
}

static void
parse_and_encap(const uint8_t *frame, size_t n, size_t wire_bytes)
{
	struct lb_packet p;
	struct lb_packet plain;
	const enum lb_verdict verdict = lb_packet_parse(frame, n, wire_bytes, &p);
	const uint8_t *ip;
	const char *flaw;
	bool has_usual;

	require(verdict >= 0 && verdict < LB_N_VERDICTS && verdict != LB_REPLY, "verdict");
	require(verdict == lb_packet_parse_plainly(frame, n, wire_bytes, &plain), "twins");
	if (verdict != LB_FORWARD)
		return;
	flaw = packet_flaw(&p, n, wire_bytes);
	require(flaw == NULL, flaw);
	if ((p.flags & LB_PACKET_CUT) != 0)
		return; /* not all of the inner packet is here to be summed */
	ip = frame + p.ip_offset;
	has_usual = is_usual(ip, n - p.ip_offset, p.is_v6);
	for (int mode = LB_FORWARD_L2; mode < LB_N_FORWARD_MODES; mode++) {
		try_encap(&p, ip, has_usual, (enum lb_forward_mode)mode, false);
		try_encap(&p, ip, has_usual, (enum lb_forward_mode)mode, true);
	}
}

static void
check_advertisement(const uint8_t *ip)
{
	require(get16(ip + 4) == 32 && ip[6] == 58 && ip[7] == 255, "ND: IPv6 header");
	require(ip[40] == 136 && ip[41] == 0, "ND: no advertisement");
	require(plain_sum(plain_sum(58 + 32, ip + 8, 32), ip + 40, 32) == 0xffff,
		"ND: checksum");
}

static void
ask_and_answer(const uint8_t *frame, size_t n)
{
	static const struct lb_mac own = {{2, 0, 0, 0, 0, 1}};
	struct lb_neighbor_ask ask;
	struct lb_neighbor_ask again;
	uint8_t *answer;

	if (!lb_neighbor_asks(frame, n, &own, &ask))
		return;
	require(ask.answer_bytes <= n + LB_NEIGHBOR_GROWTH_MAX, "an answer too long");
	answer = exact(ask.answer_bytes);
	memcpy(answer, frame, n < ask.answer_bytes ? n : ask.answer_bytes);
	lb_neighbor_answer(&ask, &own, answer);
	require(memcmp(answer, ask.asker.bytes, 6) == 0, "an answer to somebody else");
	require(memcmp(answer + 6, own.bytes, 6) == 0, "an answer from somebody else");
	require(memcmp(answer + 12, frame + 12, ask.network_offset - 12u) == 0, "other tags");
	require(!lb_neighbor_asks(answer, ask.answer_bytes, &own, &again), "an answer asks");
	if (lb_addr_is_v4(&ask.target))
		require(get16(answer + ask.network_offset + 6) == 2, "ARP: no reply");
	else
		check_advertisement(answer + ask.network_offset);
	free(answer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t n_frame;
	uint8_t *frame;

	if (n < 2)
		return 0;
	n_frame = n - 2;
	frame = exact(n_frame);
	memcpy(frame, data + 2, n_frame);
	parse_and_encap(frame, n_frame, n_frame + get16(data));
	ask_and_answer(frame, n_frame);
	free(frame);
	return 0;
}
