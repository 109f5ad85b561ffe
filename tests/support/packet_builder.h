/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PACKET_BUILDER_H
#define PACKET_BUILDER_H

/**
 * @file
 * Frames that read like the packet: a list of layers in, bytes out.
 *
 *	const struct pb_layer layers[] = {ETHER(), IPV4(.ttl = 3), TCP(.tcp_flags = 2), END};
 *
 * Lengths, checksums and the protocol of what comes next are filled in. A field that is
 * not named has its usual value; PB_ZERO stands for 0 where 0 would mean "the usual". What
 * follows an ICMP layer is what it quotes.
 */

#include <stddef.h>
#include <stdint.h>

#define PB_LAYERS_MAX 24
#define PB_FRAME_MAX  2048
#define PB_ZERO       (-1)

#define PB_CLIENT_V4  "203.0.113.7"
#define PB_SERVICE_V4 "198.51.100.10"
#define PB_CLIENT_V6  "2001:db8:c::7"
#define PB_SERVICE_V6 "2001:db8:5::10"
#define PB_SPORT      51515
#define PB_DPORT      443
#define PB_SEQ        0x01020304u

enum pb_kind {
	PB_END,
	PB_ETHER,
	PB_VLAN,
	PB_IPV4,
	PB_IPV6,
	PB_EXTENSION,
	PB_TCP,
	PB_UDP,
	PB_ICMP,
	PB_ICMPV6,
	PB_PAYLOAD,
	PB_PADDING, /* after the IP packet's end, as of short frames; last only */
};

struct pb_layer {
	enum pb_kind kind;
	const char *src; /* IP addresses as text; client to service where not given */
	const char *dst;
	int proto;    /* EtherType or protocol of what is next, where it is to lie */
	int n_bytes;  /* PAYLOAD, PADDING: how many; EXTENSION: 8 or more; TCP: to be cut to */
	int options;  /* IPV4: bytes of options, a multiple of 4 */
	int tos;      /* or traffic class */
	int ttl;      /* or hop limit; usually 64 */
	int fragment; /* IPV4: flags and offset; EXTENSION 44: its 16 bits */
	int id;       /* IPV4: identification; usually 0x1234 */
	int vid;
	int tpid; /* VLAN: usually 0x8100 */
	int sport;
	int dport;
	int tcp_flags;
	int tcp_words; /* of its header, as its data offset says; usually 5 */
	int type;      /* ICMP; EXTENSION: which */
	int code;
	int segments_left; /* EXTENSION 43 */
	int routing;       /* EXTENSION 43: its type; of 24 bytes and more, dst is at 8 */
};

#define ETHER(...)                                                                             \
	{                                                                                      \
		.kind = PB_ETHER, __VA_ARGS__                                                  \
	}
#define VLAN(...)                                                                              \
	{                                                                                      \
		.kind = PB_VLAN, __VA_ARGS__                                                   \
	}
#define IPV4(...)                                                                              \
	{                                                                                      \
		.kind = PB_IPV4, __VA_ARGS__                                                   \
	}
#define IPV6(...)                                                                              \
	{                                                                                      \
		.kind = PB_IPV6, __VA_ARGS__                                                   \
	}
#define EXTENSION(...)                                                                         \
	{                                                                                      \
		.kind = PB_EXTENSION, __VA_ARGS__                                              \
	}
#define TCP(...)                                                                               \
	{                                                                                      \
		.kind = PB_TCP, __VA_ARGS__                                                    \
	}
#define UDP(...)                                                                               \
	{                                                                                      \
		.kind = PB_UDP, __VA_ARGS__                                                    \
	}
#define ICMP(...)                                                                              \
	{                                                                                      \
		.kind = PB_ICMP, __VA_ARGS__                                                   \
	}
#define ICMPV6(...)                                                                            \
	{                                                                                      \
		.kind = PB_ICMPV6, __VA_ARGS__                                                 \
	}
#define PAYLOAD(n)                                                                             \
	{                                                                                      \
		.kind = PB_PAYLOAD, .n_bytes = (n)                                             \
	}
#define PADDING(n)                                                                             \
	{                                                                                      \
		.kind = PB_PADDING, .n_bytes = (n)                                             \
	}
#define END                                                                                    \
	{                                                                                      \
		.kind = PB_END                                                                 \
	}

/* Named alone for what a service sends, as ICMP errors quote it. */
#define FROM_SERVICE_V4 .src = PB_SERVICE_V4, .dst = PB_CLIENT_V4
#define FROM_SERVICE_V6 .src = PB_SERVICE_V6, .dst = PB_CLIENT_V6
#define FROM_SERVICE_L4 .sport = PB_DPORT, .dport = PB_SPORT

/**
 * Build a frame; without an ETHER layer, an IP packet. Aborts where a layer cannot be built.
 *
 * @param layers  At most PB_LAYERS_MAX, then END.
 * @param out     Room for PB_FRAME_MAX bytes.
 * @return the frame's length in bytes.
 */
size_t pb_build(const struct pb_layer *layers, uint8_t *out);

/** A checksum of its own making, to compare with: RFC 1071 over n bytes, host order. */
uint16_t pb_csum(const uint8_t *bytes, size_t n);

/** Put an IPv4 header's checksum right after a change to it. */
void pb_fix_ipv4_csum(uint8_t *header);

#endif
