/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_check.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "bench_traffic.h"

enum {
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	GRE_BYTES = 4,
	VXLAN_BYTES = 8,
	PROTO_IPIP = 4,
	PROTO_IPV6 = 41,
	PROTO_GRE = 47,
	GUE_PORT = 6080,
	VXLAN_PORT = 4789,
	ENTROPY_PORT_MIN = 49152,
};

static uint32_t
read_u16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* RFC 1071, two bytes at a time; sums of less than 64 KiB fit. */
static uint32_t
sum_up(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Bytes between the outer IP header and the inner one. */
static size_t
shim_bytes(enum cfg_forward forward)
{
	switch (forward) {
	case CFG_FORWARD_GRE:
		return GRE_BYTES;
	case CFG_FORWARD_GUE:
		return UDP_BYTES;
	case CFG_FORWARD_VXLAN:
		return UDP_BYTES + VXLAN_BYTES + BENCH_ETHER_BYTES;
	default:
		return 0;
	}
}

static uint32_t
outer_protocol(const struct bench_sample *s)
{
	if (s->forward == CFG_FORWARD_GRE)
		return PROTO_GRE;
	if (s->forward == CFG_FORWARD_IPIP)
		return s->family == 4 ? PROTO_IPIP : PROTO_IPV6;
	return IPPROTO_UDP;
}

static const char *
check_ipv4(const struct bench_sample *s, const uint8_t *ip, size_t n)
{
	if (ip[0] != 0x45 || read_u16(ip + 2) != n)
		return "the outer IPv4 header's version or length";
	if ((ip[6] & 0x40) == 0 || (read_u16(ip + 6) & 0x3fff) != 0)
		return "the outer IPv4 header has no DF, or is a fragment's";
	if (ip[8] != 64 || ip[9] != outer_protocol(s))
		return "the outer IPv4 header's TTL or protocol";
	if (sum_up(0, ip, IPV4_BYTES) != 0xffff)
		return "the outer IPv4 header's checksum";
	if (memcmp(ip + 12, s->own.bytes + 12, 4) != 0)
		return "the outer source is not the balancer";
	if (memcmp(ip + 16, s->backend.bytes + 12, 4) != 0)
		return "the outer destination is not the backend that was decided on";
	return NULL;
}

static const char *
check_ipv6(const struct bench_sample *s, const uint8_t *ip, size_t n)
{
	if (ip[0] >> 4 != 6 || read_u16(ip + 4) != n - IPV6_BYTES)
		return "the outer IPv6 header's version or length";
	if (ip[6] != outer_protocol(s) || ip[7] != 64)
		return "the outer IPv6 header's next header or hop limit";
	if (memcmp(ip + 8, s->own.bytes, LB_ADDR_BYTES) != 0)
		return "the outer source is not the balancer";
	if (memcmp(ip + 24, s->backend.bytes, LB_ADDR_BYTES) != 0)
		return "the outer destination is not the backend that was decided on";
	return NULL;
}

static const char *
check_udp(const struct bench_sample *s, const uint8_t *ip, const uint8_t *udp, size_t n)
{
	const uint32_t port = s->forward == CFG_FORWARD_GUE ? GUE_PORT : VXLAN_PORT;

	if (read_u16(udp) < ENTROPY_PORT_MIN || read_u16(udp + 2) != port)
		return "a port of the outer UDP header";
	if (read_u16(udp + 4) != n)
		return "the outer UDP header's length";
	if (s->family == 4)
		return read_u16(udp + 6) == 0 ? NULL : "a UDP checksum over IPv4";
	if (read_u16(udp + 6) == 0 ||
		sum_up(sum_up((uint32_t)n + IPPROTO_UDP, ip + 8, (size_t)2 * LB_ADDR_BYTES),
			udp, n) != 0xffff)
		return "the outer UDP checksum over IPv6";
	return NULL;
}

/* What lies between the two IP headers, n bytes from there to the end. */
static const char *
check_shim(const struct bench_sample *s, const uint8_t *ip, const uint8_t *shim, size_t n)
{
	static const uint8_t vxlan[VXLAN_BYTES] = {0x08};
	const uint32_t ethertype = s->family == 4 ? 0x0800 : 0x86dd;
	const size_t shim_end = shim_bytes(s->forward);
	const char *wrong = NULL;

	if (s->forward == CFG_FORWARD_GRE && read_u16(shim) != 0)
		return "the GRE header's flags";
	if (s->forward == CFG_FORWARD_GUE || s->forward == CFG_FORWARD_VXLAN)
		wrong = check_udp(s, ip, shim, n);
	if (wrong == NULL && s->forward == CFG_FORWARD_VXLAN &&
		memcmp(shim + UDP_BYTES, vxlan, sizeof(vxlan)) != 0)
		return "the VXLAN header";
	if (wrong == NULL &&
		(s->forward == CFG_FORWARD_GRE || s->forward == CFG_FORWARD_VXLAN) &&
		read_u16(shim + shim_end - 2) != ethertype)
		return "the inner packet's EtherType";
	return wrong;
}

static const char *
check_outer(const struct bench_sample *s, size_t overhead)
{
	const uint8_t *ip = s->sent + BENCH_ETHER_BYTES;
	const size_t ip_bytes = s->family == 4 ? IPV4_BYTES : IPV6_BYTES;
	const size_t n = s->sent_bytes - BENCH_ETHER_BYTES;
	const char *wrong;

	if (overhead == 0)
		return NULL;
	wrong = s->family == 4 ? check_ipv4(s, ip, n) : check_ipv6(s, ip, n);
	return wrong != NULL ? wrong : check_shim(s, ip, ip + ip_bytes, n - ip_bytes);
}

const char *
bench_check(const struct bench_sample *s)
{
	const size_t overhead =
		s->forward == CFG_FORWARD_L2
			? 0
			: (s->family == 4 ? IPV4_BYTES : IPV6_BYTES) + shim_bytes(s->forward);
	const uint32_t ethertype = s->family == 4 ? 0x0800 : 0x86dd;
	const char *wrong;

	if (s->sent_bytes != s->received_bytes + overhead)
		return "its length";
	if (memcmp(s->sent, s->next_hop.bytes, sizeof(s->next_hop.bytes)) != 0)
		return "its destination MAC is not the next hop";
	if (memcmp(s->sent + sizeof(s->port.bytes), s->port.bytes, sizeof(s->port.bytes)) != 0)
		return "its source MAC is not the port's";
	if (read_u16(s->sent + BENCH_ETHER_BYTES - 2) != ethertype)
		return "its EtherType";
	wrong = check_outer(s, overhead);
	if (wrong != NULL)
		return wrong;
	if (memcmp(s->sent + BENCH_ETHER_BYTES + overhead, s->received + BENCH_ETHER_BYTES,
		    s->received_bytes - BENCH_ETHER_BYTES) != 0)
		return "the inner packet is not what was received";
	return NULL;
}
