/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_neighbor.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_csum.h"
#include "lb_limits.h"

enum {
	MAC_BYTES = 6,
	ETHER_BYTES = 14,
	ETHER_PAYLOAD_MIN = 46, /* shorter ones are padded to it on a wire */
	VLAN_TAG_BYTES = 4,

	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_QINQ = 0x88a8,
	ETHERTYPE_QINQ_OLD = 0x9100,

	/* ARP over Ethernet and IPv4, by offset. */
	ARP_OP = 6,
	ARP_SENDER_MAC = 8,
	ARP_SENDER_IP = 14,
	ARP_TARGET_MAC = 18,
	ARP_TARGET_IP = 24,
	ARP_BYTES = 28,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,

	/* IPv6, by offset. */
	IPV6_PAYLOAD_BYTES = 4,
	IPV6_NEXT_HEADER = 6,
	IPV6_HOP_LIMIT = 7,
	IPV6_SRC = 8,
	IPV6_DST = 24,
	IPV6_BYTES = 40,
	ND_HOP_LIMIT = 255, /* no router has passed it on */

	/* A solicitation or advertisement, by offset in its ICMPv6. */
	ND_CSUM = 2,
	ND_FLAGS = 4,
	ND_TARGET = 8,
	ND_OPTIONS = 24,
	ND_OPTION_BYTES = 8, /* of a link-layer address */
	ND_ANSWER_BYTES = ND_OPTIONS + ND_OPTION_BYTES,
	ND_SOLICITATION = 135,
	ND_ADVERTISEMENT = 136,
	ND_SOLICITED = 0x40,
	ND_OVERRIDE = 0x20,
	ND_OPTION_SOURCE = 1,
	ND_OPTION_TARGET = 2,
};

static_assert(ND_OPTION_BYTES == LB_NEIGHBOR_GROWTH_MAX, "an option is all that is added");

static const struct lb_addr unspecified;
static const struct lb_addr all_nodes = {.bytes = {0xff, 0x02, [15] = 1}};
static const struct lb_mac all_nodes_mac = {.bytes = {0x33, 0x33, 0, 0, 0, 1}};

static struct lb_mac
load_mac(const uint8_t *p)
{
	struct lb_mac mac;

	memcpy(mac.bytes, p, MAC_BYTES);
	return mac;
}

static struct lb_addr
load_v6(const uint8_t *p)
{
	struct lb_addr addr;

	memcpy(addr.bytes, p, LB_ADDR_BYTES);
	return addr;
}

static bool
is_group(const uint8_t *mac)
{
	return (mac[0] & 1) != 0;
}

static bool
is_vlan_tag(uint16_t ethertype)
{
	return ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ ||
	       ethertype == ETHERTYPE_QINQ_OLD;
}

/* Where the network layer begins; NULL where there is none. */
static const uint8_t *
find_network(const uint8_t *frame, const uint8_t *end, uint16_t *ethertype)
{
	const uint8_t *p = frame;

	if (end - p < ETHER_BYTES)
		return NULL;
	p += ETHER_BYTES;
	*ethertype = lb_bytes_load16_be(p - 2);
	for (unsigned int i = 0; i < LB_VLAN_TAGS_MAX && is_vlan_tag(*ethertype); i++) {
		if (end - p < VLAN_TAG_BYTES)
			return NULL;
		p += VLAN_TAG_BYTES;
		*ethertype = lb_bytes_load16_be(p - 2);
	}
	return p;
}

/* p: the network layer, which alone answer_bytes counts of the answer. */
static bool
asks_by_arp(const uint8_t *p, const uint8_t *end, struct lb_neighbor_ask *out)
{
	static const uint8_t request[] = {0, 1, ETHERTYPE_IPV4 >> 8, ETHERTYPE_IPV4 & 0xff,
		MAC_BYTES, 4, 0, ARP_REQUEST};

	if (end - p < ARP_BYTES || memcmp(p, request, sizeof(request)) != 0)
		return false;
	if (memcmp(p + ARP_SENDER_IP, p + ARP_TARGET_IP, 4) == 0)
		return false;
	out->target = lb_addr_from_v4(p + ARP_TARGET_IP);
	out->asker = load_mac(p + ARP_SENDER_MAC);
	out->answer_bytes =
		(uint16_t)(end - p < ETHER_PAYLOAD_MIN ? end - p : ETHER_PAYLOAD_MIN);
	return true;
}

/* ICMPv6's sum with the pseudo-header (RFC 8200, section 8.1), below 64 KiB. */
static uint16_t
icmpv6_csum(const uint8_t *ip, const uint8_t *icmp, const uint8_t *end)
{
	uint8_t tail[8] = {0};
	uint64_t sum;

	lb_bytes_store16_be(tail + 2, (uint16_t)(end - icmp));
	tail[7] = IPPROTO_ICMPV6;
	sum = lb_csum_add(0, ip + IPV6_SRC, (size_t)2 * LB_ADDR_BYTES);
	sum = lb_csum_add(sum, tail, sizeof(tail));
	return lb_csum_finish(lb_csum_range(sum, icmp, end));
}

/* Walk the options; the source's MAC address is taken where there is one. */
static bool
read_options(const uint8_t *p, const uint8_t *end, bool *has_source, struct lb_mac *source)
{
	//@ loop variant end - p;
	while (end - p > 0) {
		ptrdiff_t n_option;

		if (end - p < ND_OPTION_BYTES)
			return false;
		n_option = (ptrdiff_t)p[1] * 8;
		if (n_option == 0 || n_option > end - p)
			return false;
		if (p[0] == ND_OPTION_SOURCE) {
			*source = load_mac(p + 2);
			*has_source = true;
		}
		p += n_option;
	}
	return true;
}

/* ff02::1:ffXX:XXXX, where those who may have an address listen. */
static bool
is_solicited_node(const uint8_t *addr)
{
	static const uint8_t prefix[13] = {0xff, 0x02, [11] = 0x01, [12] = 0xff};

	return memcmp(addr, prefix, sizeof(prefix)) == 0;
}

/* As asks_by_arp(); asker is already the frame's source. */
static bool
asks_by_nd(const uint8_t *p, const uint8_t *end, struct lb_neighbor_ask *out)
{
	const uint8_t *icmp;
	struct lb_addr src;
	bool has_source = false;
	ptrdiff_t n_icmp;
	ptrdiff_t n_padding;

	if (end - p < IPV6_BYTES || p[0] >> 4 != 6 || p[IPV6_NEXT_HEADER] != IPPROTO_ICMPV6 ||
		p[IPV6_HOP_LIMIT] != ND_HOP_LIMIT)
		return false;
	n_icmp = lb_bytes_load16_be(p + IPV6_PAYLOAD_BYTES);
	icmp = p + IPV6_BYTES;
	n_padding = end - icmp - n_icmp;
	if (n_icmp < ND_OPTIONS || n_padding < 0)
		return false;
	end -= n_padding;
	if (icmp[0] != ND_SOLICITATION || icmp[1] != 0 || icmp[ND_TARGET] == 0xff ||
		icmpv6_csum(p, icmp, end) != 0 ||
		!read_options(icmp + ND_OPTIONS, end, &has_source, &out->asker))
		return false;

	out->target = load_v6(icmp + ND_TARGET);
	src = load_v6(p + IPV6_SRC);
	if (lb_addr_is_v4(&out->target) || lb_addr_is_v4(&src) || src.bytes[0] == 0xff)
		return false;
	if (lb_addr_equal(&src, &unspecified)) {
		if (has_source || !is_solicited_node(p + IPV6_DST))
			return false;
		out->asker = all_nodes_mac;
	} else if (is_group(out->asker.bytes)) {
		return false;
	}
	out->answer_bytes = IPV6_BYTES + ND_ANSWER_BYTES;
	return true;
}

/* lb_neighbor_asks() of a frame that ends at end. */
static bool
asks(const uint8_t *frame, const uint8_t *end, const struct lb_mac *own,
	struct lb_neighbor_ask *out)
{
	struct lb_neighbor_ask ask;
	uint16_t ethertype = 0;
	const uint8_t *network = find_network(frame, end, &ethertype);

	if (network == NULL)
		return false;
	if (!is_group(frame) && memcmp(frame, own->bytes, MAC_BYTES) != 0)
		return false;
	ask.asker = load_mac(frame + MAC_BYTES);
	if (is_group(ask.asker.bytes) || memcmp(ask.asker.bytes, own->bytes, MAC_BYTES) == 0)
		return false;

	if (ethertype == ETHERTYPE_ARP) {
		if (!asks_by_arp(network, end, &ask) || is_group(ask.asker.bytes) ||
			memcmp(ask.asker.bytes, own->bytes, MAC_BYTES) == 0)
			return false;
	} else if (ethertype != ETHERTYPE_IPV6 || !asks_by_nd(network, end, &ask)) {
		return false;
	}
	ask.network_offset = (uint16_t)(network - frame);
	ask.answer_bytes = (uint16_t)(ask.answer_bytes + ask.network_offset);
	*out = ask;
	return true;
}

bool
lb_neighbor_asks(const uint8_t *frame, size_t n_bytes, const struct lb_mac *own,
	struct lb_neighbor_ask *out)
{
	return asks(frame, frame + n_bytes, own, out);
}

static void
answer_by_arp(const struct lb_mac *own, uint8_t *p, size_t n)
{
	uint8_t target[4];

	memcpy(target, p + ARP_TARGET_IP, sizeof(target));
	memcpy(p + ARP_TARGET_MAC, p + ARP_SENDER_MAC, ARP_TARGET_MAC - ARP_SENDER_MAC);
	memcpy(p + ARP_SENDER_MAC, own->bytes, MAC_BYTES);
	memcpy(p + ARP_SENDER_IP, target, sizeof(target));
	lb_bytes_store16_be(p + ARP_OP, ARP_REPLY);
	if (n > ARP_BYTES)
		memset(p + ARP_BYTES, 0, n - ARP_BYTES); /* padding may hold anything */
}

static void
answer_by_nd(const struct lb_neighbor_ask *ask, const struct lb_mac *own, uint8_t *p)
{
	static const uint8_t header[IPV6_SRC] = {0x60,
		[IPV6_PAYLOAD_BYTES + 1] = ND_ANSWER_BYTES, [IPV6_NEXT_HEADER] = IPPROTO_ICMPV6,
		[IPV6_HOP_LIMIT] = ND_HOP_LIMIT};
	uint8_t *icmp = p + IPV6_BYTES;
	struct lb_addr dst = load_v6(p + IPV6_SRC);
	const bool is_probe = lb_addr_equal(&dst, &unspecified);
	uint16_t csum;

	if (is_probe)
		dst = all_nodes;
	memcpy(p, header, sizeof(header));
	memcpy(p + IPV6_SRC, ask->target.bytes, LB_ADDR_BYTES);
	memcpy(p + IPV6_DST, dst.bytes, LB_ADDR_BYTES);

	memset(icmp, 0, ND_TARGET);
	icmp[0] = ND_ADVERTISEMENT;
	icmp[ND_FLAGS] = is_probe ? ND_OVERRIDE : ND_SOLICITED | ND_OVERRIDE;
	memcpy(icmp + ND_TARGET, ask->target.bytes, LB_ADDR_BYTES);
	icmp[ND_OPTIONS] = ND_OPTION_TARGET;
	icmp[ND_OPTIONS + 1] = ND_OPTION_BYTES / 8;
	memcpy(icmp + ND_OPTIONS + 2, own->bytes, MAC_BYTES);
	csum = icmpv6_csum(p, icmp, icmp + ND_ANSWER_BYTES);
	memcpy(icmp + ND_CSUM, &csum, sizeof(csum));
}

void
lb_neighbor_answer(const struct lb_neighbor_ask *ask, const struct lb_mac *own, uint8_t *frame)
{
	uint8_t *network = frame + ask->network_offset;

	if (lb_addr_is_v4(&ask->target))
		answer_by_arp(own, network, (size_t)ask->answer_bytes - ask->network_offset);
	else
		answer_by_nd(ask, own, network);
	memcpy(frame, ask->asker.bytes, MAC_BYTES);
	memcpy(frame + MAC_BYTES, own->bytes, MAC_BYTES);
}
