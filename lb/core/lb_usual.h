/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_USUAL_H
#define LB_USUAL_H

/**
 * @file
 * The usual packet: TCP or UDP, whole and in one piece, without options or extension headers.
 * It is recognized in a few words of its headers, and its flow's key stays in registers. What
 * is not usual, or wrong in any way, is left to lb_packet_parse_plainly(), which says the same
 * of what is.
 *
 * Pure and inline. Callable from any thread.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_bytes.h"
#include "lb_compiler.h"
#include "lb_csum.h"
#include "lb_flow.h"

enum {
	LB_USUAL_IP_OFFSET = 14,
	LB_USUAL_V4_BYTES = 20,
	LB_USUAL_V6_BYTES = 40,
	LB_USUAL_TCP_BYTES = 20,
	LB_USUAL_UDP_BYTES = 8,
	LB_USUAL_TCP_SEQ_AT = 4,
	LB_USUAL_TCP_FLAGS_AT = 13,
	/** What is read of a frame without tags: up to a TCP header's end. */
	LB_USUAL_V4_READ_BYTES = LB_USUAL_IP_OFFSET + LB_USUAL_V4_BYTES + LB_USUAL_TCP_BYTES,
	LB_USUAL_V6_READ_BYTES = LB_USUAL_IP_OFFSET + LB_USUAL_V6_BYTES + LB_USUAL_TCP_BYTES,
};

/** What of a usual packet decides where it goes. */
struct lb_usual {
	/** Its key's words, as struct lb_flow_key has them in memory: source, destination, and
	 *  ports with protocol. */
	struct lb_flow_words key;
	struct lb_flow_v4 v4; /**< the same of an IPv4 packet; of an IPv6 packet unspecified */
	uint32_t ip_bytes;    /**< IPv4 total length, or 40 + IPv6 payload length */
	bool is_tcp;          /**< or it is UDP */
	uint8_t tcp_flags;    /**< 0 where it is UDP */
};

/* The second word of an IPv4 address, ::ffff:a.b.c.d; its first is 0. */
static inline uint64_t
lb_usual_mapped(uint32_t v4)
{
	return (uint64_t)v4 << 32 | UINT32_C(0xffff0000);
}

/*
 * Of the L4 header at p, whose 20 bytes may be read. An IP packet of ip_bytes has its header
 * of header_bytes, and so much of it at least.
 */
static inline bool
lb_usual_take_l4(const uint8_t *p, uint8_t proto, uint32_t header_bytes, struct lb_usual *out)
{
	out->key.word[4] = (uint64_t)proto << 32 | lb_bytes_load32(p);
	out->v4.rest = out->key.word[4];
	out->is_tcp = proto == IPPROTO_TCP;
	if (likely(out->is_tcp)) {
		out->tcp_flags = p[LB_USUAL_TCP_FLAGS_AT];
		return likely(out->ip_bytes >= header_bytes + LB_USUAL_TCP_BYTES);
	}
	out->tcp_flags = 0;
	return likely(
		proto == IPPROTO_UDP && out->ip_bytes >= header_bytes + LB_USUAL_UDP_BYTES);
}

/**
 * Whether an IPv4 packet is usual.
 *
 * @param p        Its header; 40 bytes may be read.
 * @param n_bytes  From there to the end of its frame; 40 at least.
 * @param[out] out  Unspecified where it is not.
 */
static inline bool
lb_usual_parse_v4(const uint8_t *p, uint32_t n_bytes, struct lb_usual *out)
{
	const uint64_t a = lb_bytes_load64(p);
	const uint64_t b = lb_bytes_load64(p + 8);
	const uint32_t dst = lb_bytes_load32(p + 16);
	const uint32_t ip_bytes = lb_bytes_load16_be(p + 2);
	/* In the order of memory, and of words of any length, as RFC 1071, section 2 allows. */
	const uint64_t sum = lb_csum_join(lb_csum_join(a, b), dst);

	/* Version, header length, and neither an offset nor more to come. */
	if (unlikely((a & UINT64_C(0xff3f0000000000ff)) != 0x45))
		return false;
	/* TTL; a sum of 0xffff, or what is a multiple of it: 0 it is not, the version is not.
	 */
	if (unlikely((b & 0xff) == 0 || sum % UINT16_MAX != 0))
		return false;
	if (unlikely(ip_bytes > n_bytes))
		return false;
	out->key.word[0] = 0;
	out->key.word[1] = lb_usual_mapped((uint32_t)(b >> 32));
	out->key.word[2] = 0;
	out->key.word[3] = lb_usual_mapped(dst);
	out->v4.addresses = lb_bytes_load64(p + 12);
	out->ip_bytes = ip_bytes;
	return lb_usual_take_l4(p + LB_USUAL_V4_BYTES, p[9], LB_USUAL_V4_BYTES, out);
}

/* Whether an address is ::ffff:0:0/96, which has no place on a wire. */
static inline bool
lb_usual_is_mapped(uint64_t first, uint64_t second)
{
	return first == 0 && (uint32_t)second == UINT32_C(0xffff0000);
}

/** The same for IPv6, of 60 bytes at least. */
static inline bool
lb_usual_parse_v6(const uint8_t *p, uint32_t n_bytes, struct lb_usual *out)
{
	const uint64_t a = lb_bytes_load64(p);
	const uint32_t l4_bytes = lb_bytes_load16_be(p + 4);
	uint64_t *word = out->key.word;

	/* The version, and a hop limit. */
	if (unlikely((a & 0xf0) != 0x60 || a >> 56 == 0))
		return false;
	if (unlikely(l4_bytes > n_bytes - LB_USUAL_V6_BYTES))
		return false;
	word[0] = lb_bytes_load64(p + 8);
	word[1] = lb_bytes_load64(p + 16);
	word[2] = lb_bytes_load64(p + 24);
	word[3] = lb_bytes_load64(p + 32);
	if (unlikely(lb_usual_is_mapped(word[0], word[1]) ||
		     lb_usual_is_mapped(word[2], word[3])))
		return false;
	out->ip_bytes = LB_USUAL_V6_BYTES + l4_bytes;
	return lb_usual_take_l4(p + LB_USUAL_V6_BYTES, p[6], LB_USUAL_V6_BYTES, out);
}

/** The key of a usual packet's flow, once more from the packet. @param p  Its IP header. */
static inline void
lb_usual_read_key(const uint8_t *p, bool is_v6, struct lb_flow_words *out)
{
	if (is_v6) {
		for (unsigned int i = 0; i < 4; i++)
			out->word[i] = lb_bytes_load64(p + 8 + (size_t)8 * i);
		out->word[4] = (uint64_t)p[6] << 32 | lb_bytes_load32(p + LB_USUAL_V6_BYTES);
		return;
	}
	out->word[0] = 0;
	out->word[1] = lb_usual_mapped(lb_bytes_load32(p + 12));
	out->word[2] = 0;
	out->word[3] = lb_usual_mapped(lb_bytes_load32(p + 16));
	out->word[4] = (uint64_t)p[9] << 32 | lb_bytes_load32(p + LB_USUAL_V4_BYTES);
}

/** IPv4 TOS or IPv6 traffic class. @param p  An IP header. */
static inline uint8_t
lb_usual_read_tos(const uint8_t *p, bool is_v6)
{
	return is_v6 ? (uint8_t)(lb_bytes_load16_be(p) >> 4) : p[1];
}

/** The sequence number of a usual packet that is TCP. @param p  Its IP header. */
static inline uint32_t
lb_usual_read_seq(const uint8_t *p, bool is_v6)
{
	p += is_v6 ? LB_USUAL_V6_BYTES : LB_USUAL_V4_BYTES;
	return lb_bytes_load32_be(p + LB_USUAL_TCP_SEQ_AT);
}

/** A key from its words. */
static inline void
lb_usual_store_key(const struct lb_flow_words *words, struct lb_flow_key *out)
{
	for (unsigned int i = 0; i < LB_N_ELEMENTS(words->word); i++)
		lb_bytes_store64((uint8_t *)out + (size_t)8 * i, words->word[i]);
}

#endif
