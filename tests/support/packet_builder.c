/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet_builder.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame under construction: where each layer starts. */
struct build {
	const struct pb_layer *layers;
	uint8_t *bytes;
	size_t offset[PB_LAYERS_MAX + 1];
	size_t n_layers;
	size_t end; /* without padding */
};

static void
require(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "packet_builder: %s\n", what);
	abort();
}

static void
put16(uint8_t *p, unsigned int value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static int
usual(int value, int if_0)
{
	if (value == PB_ZERO)
		return 0;
	return value == 0 ? if_0 : value;
}

static uint32_t
sum_words(uint32_t sum, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint32_t)bytes[i] << 8 : bytes[i];
	return sum;
}

static uint16_t
finish_sum(uint32_t sum)
{
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

uint16_t
pb_csum(const uint8_t *bytes, size_t n)
{
	return finish_sum(sum_words(0, bytes, n));
}

void
pb_fix_ipv4_csum(uint8_t *header)
{
	put16(header + 10, 0);
	put16(header + 10, pb_csum(header, (size_t)(header[0] & 0x0f) * 4));
}

static void
put_addr(uint8_t *p, int family, const char *text, const char *if_null)
{
	require(inet_pton(family, text != NULL ? text : if_null, p) == 1, "not an address");
}

static size_t
layer_bytes(const struct pb_layer *l)
{
	switch (l->kind) {
	case PB_ETHER:
		return 14;
	case PB_VLAN:
		return 4;
	case PB_IPV4:
		return 20 + (size_t)l->options;
	case PB_IPV6:
		return 40;
	case PB_EXTENSION:
		return (size_t)usual(l->n_bytes, 8);
	case PB_TCP:
		return (size_t)usual(l->n_bytes, 20);
	case PB_UDP:
	case PB_ICMP:
	case PB_ICMPV6:
		return 8;
	case PB_PAYLOAD:
	case PB_PADDING:
		return (size_t)l->n_bytes;
	case PB_END:
		break;
	}
	return 0;
}

static unsigned int
ethertype_of(const struct pb_layer *l)
{
	switch (l->kind) {
	case PB_VLAN:
		return (unsigned int)usual(l->tpid, 0x8100);
	case PB_IPV4:
		return 0x0800;
	case PB_IPV6:
		return 0x86dd;
	default:
		return 0x0806; /* what is not IP may as well be ARP */
	}
}

static int
proto_of(const struct pb_layer *l)
{
	switch (l->kind) {
	case PB_IPV4:
		return 4;
	case PB_IPV6:
		return 41;
	case PB_EXTENSION:
		return l->type;
	case PB_TCP:
		return 6;
	case PB_UDP:
		return 17;
	case PB_ICMP:
		return 1;
	case PB_ICMPV6:
		return 58;
	case PB_PAYLOAD:
		return 253; /* for experiments, RFC 3692 */
	default:
		return 59; /* nothing follows */
	}
}

static void
put_ipv4(const struct build *b, const struct pb_layer *l, uint8_t *p)
{
	const size_t header_bytes = layer_bytes(l);

	p[0] = (uint8_t)(0x40 | header_bytes / 4);
	p[1] = (uint8_t)l->tos;
	put16(p + 2, (unsigned int)(b->bytes + b->end - p));
	put16(p + 4, (unsigned int)usual(l->id, 0x1234));
	put16(p + 6, (unsigned int)l->fragment);
	p[8] = (uint8_t)usual(l->ttl, 64);
	p[9] = (uint8_t)usual(l->proto, proto_of(l + 1));
	put_addr(p + 12, AF_INET, l->src, PB_CLIENT_V4);
	put_addr(p + 16, AF_INET, l->dst, PB_SERVICE_V4);
	memset(p + 20, 1, header_bytes - 20); /* no-operation, each */
}

static void
put_ipv6(const struct build *b, const struct pb_layer *l, uint8_t *p)
{
	put16(p, 0x6000u | (unsigned int)l->tos << 4);
	put16(p + 4, (unsigned int)(b->bytes + b->end - p - 40));
	p[6] = (uint8_t)usual(l->proto, proto_of(l + 1));
	p[7] = (uint8_t)usual(l->ttl, 64);
	put_addr(p + 8, AF_INET6, l->src, PB_CLIENT_V6);
	put_addr(p + 24, AF_INET6, l->dst, PB_SERVICE_V6);
}

static void
put_extension(const struct pb_layer *l, uint8_t *p)
{
	const size_t n = layer_bytes(l);

	p[0] = (uint8_t)usual(l->proto, proto_of(l + 1));
	if (l->type == 44)
		put16(p + 2, (unsigned int)l->fragment);
	else
		p[1] = (uint8_t)(l->type == 51 ? n / 4 - 2 : n / 8 - 1);
	if (l->type == 43) {
		p[2] = (uint8_t)l->routing;
		p[3] = (uint8_t)l->segments_left;
		if (n >= 24 && l->dst != NULL)
			put_addr(p + 8, AF_INET6, l->dst, PB_CLIENT_V6);
	}
}

static void
put_tcp(const struct build *b, const struct pb_layer *l, size_t i)
{
	uint8_t header[20] = {0};

	put16(header, (unsigned int)usual(l->sport, PB_SPORT));
	put16(header + 2, (unsigned int)usual(l->dport, PB_DPORT));
	put16(header + 4, PB_SEQ >> 16);
	put16(header + 6, PB_SEQ & 0xffff);
	header[12] = (uint8_t)(usual(l->tcp_words, 5) << 4);
	header[13] = (uint8_t)usual(l->tcp_flags, 0x10);
	put16(header + 14, 65535);
	require(layer_bytes(l) <= sizeof(header), "TCP can only be cut");
	memcpy(b->bytes + b->offset[i], header, layer_bytes(l));
}

static void
put_udp(const struct build *b, const struct pb_layer *l, size_t i)
{
	uint8_t *p = b->bytes + b->offset[i];

	put16(p, (unsigned int)usual(l->sport, PB_SPORT));
	put16(p + 2, (unsigned int)usual(l->dport, PB_DPORT));
	put16(p + 4, (unsigned int)(b->end - b->offset[i]));
}

static void
put_layer(const struct build *b, size_t i)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	const struct pb_layer *l = &b->layers[i];
	uint8_t *p = b->bytes + b->offset[i];

	switch (l->kind) {
	case PB_ETHER:
		memcpy(p, macs, sizeof(macs));
		put16(p + 12, (unsigned int)usual(l->proto, (int)ethertype_of(l + 1)));
		break;
	case PB_VLAN:
		put16(p, (unsigned int)l->vid);
		put16(p + 2, (unsigned int)usual(l->proto, (int)ethertype_of(l + 1)));
		break;
	case PB_IPV4:
		put_ipv4(b, l, p);
		break;
	case PB_IPV6:
		put_ipv6(b, l, p);
		break;
	case PB_EXTENSION:
		put_extension(l, p);
		break;
	case PB_TCP:
		put_tcp(b, l, i);
		break;
	case PB_UDP:
		put_udp(b, l, i);
		break;
	case PB_ICMP:
	case PB_ICMPV6:
		p[0] = (uint8_t)l->type;
		p[1] = (uint8_t)l->code;
		break;
	case PB_PAYLOAD:
		for (size_t k = 0; k < layer_bytes(l); k++)
			p[k] = (uint8_t)(k * 37 + 11);
		break;
	case PB_PADDING:
	case PB_END:
		break;
	}
}

/* The checksum at p[at] over all up to the end, with the last IP layer's pseudo-header. */
static void
put_l4_csum(const struct build *b, size_t i, size_t at)
{
	uint8_t *p = b->bytes + b->offset[i];
	const size_t n = b->end - b->offset[i];
	uint32_t sum = 0;
	size_t ip = i;

	if (layer_bytes(&b->layers[i]) < at + 2)
		return;
	while (ip > 0 && b->layers[ip].kind != PB_IPV4 && b->layers[ip].kind != PB_IPV6)
		ip--;
	if (b->layers[ip].kind == PB_IPV4 && b->layers[i].kind != PB_ICMP)
		sum = sum_words(0, b->bytes + b->offset[ip] + 12, 8);
	else if (b->layers[ip].kind == PB_IPV6)
		sum = sum_words(0, b->bytes + b->offset[ip] + 8, 32);
	if (b->layers[i].kind != PB_ICMP)
		sum += (uint32_t)n + (uint32_t)proto_of(&b->layers[i]);
	put16(p + at, 0);
	sum = finish_sum(sum_words(sum, p, n));
	/* RFC 768: 0 is UDP without a checksum. */
	put16(p + at, sum == 0 && b->layers[i].kind == PB_UDP ? 0xffff : sum);
}

static void
put_csum(const struct build *b, size_t i)
{
	switch (b->layers[i].kind) {
	case PB_IPV4:
		pb_fix_ipv4_csum(b->bytes + b->offset[i]);
		break;
	case PB_TCP:
		put_l4_csum(b, i, 16);
		break;
	case PB_UDP:
		put_l4_csum(b, i, 6);
		break;
	case PB_ICMP:
	case PB_ICMPV6:
		put_l4_csum(b, i, 2);
		break;
	default:
		break;
	}
}

size_t
pb_build(const struct pb_layer *layers, uint8_t *out)
{
	struct build b = {.layers = layers, .bytes = out};
	size_t n = 0;

	for (; layers[b.n_layers].kind != PB_END; b.n_layers++) {
		require(b.n_layers < PB_LAYERS_MAX, "too many layers");
		b.offset[b.n_layers] = n;
		if (layers[b.n_layers].kind != PB_PADDING)
			b.end = n + layer_bytes(&layers[b.n_layers]);
		n += layer_bytes(&layers[b.n_layers]);
		require(n <= PB_FRAME_MAX, "too many bytes");
	}
	memset(out, 0, n);
	for (size_t i = 0; i < b.n_layers; i++)
		put_layer(&b, i);
	/* Checksums last, from the inside out: each covers what is already right. */
	for (size_t i = b.n_layers; i > 0; i--)
		put_csum(&b, i - 1);
	return n;
}
