/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_encap_write.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "lb_bytes.h"
#include "lb_csum.h"

enum {
	IPV4_BYTES = LB_ENCAP_V4_BYTES,
	IPV6_BYTES = LB_ENCAP_V6_BYTES,
	GRE_BYTES = 4,
	UDP_BYTES = 8,
	VXLAN_BYTES = 8,
	ETHER_BYTES = 14,

	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,

	OUTER_TTL = 64,
	IPV4_FLAG_DF = 0x40, /* of the fragment field's first byte */
	VXLAN_FLAG_VNI = 0x08,
	SPORT_FIRST = 49152,
	SPORT_SHIFT = 18, /* leaves the top 14 of 32 bits: 49152..65535 */
	VNI_MAX = 0xffffff,
};

static_assert(IPV6_BYTES + UDP_BYTES + VXLAN_BYTES + ETHER_BYTES == LB_ENCAP_BYTES_MAX,
	"VXLAN over IPv6 is the longest");

/* A 16-bit field as lb_csum_add() would count it from memory. */
static uint64_t
sum16(unsigned int value)
{
	return htons((uint16_t)value);
}

static bool
is_udp(enum lb_forward_mode mode)
{
	return mode == LB_FORWARD_GUE || mode == LB_FORWARD_VXLAN;
}

unsigned int
lb_encap_overhead(enum lb_forward_mode mode, bool is_outer_v6)
{
	const unsigned int ip_bytes = is_outer_v6 ? IPV6_BYTES : IPV4_BYTES;

	switch (mode) {
	case LB_FORWARD_IPIP:
		return ip_bytes;
	case LB_FORWARD_GRE:
		return ip_bytes + GRE_BYTES;
	case LB_FORWARD_GUE:
		return ip_bytes + UDP_BYTES;
	case LB_FORWARD_VXLAN:
		return ip_bytes + UDP_BYTES + VXLAN_BYTES + ETHER_BYTES;
	case LB_FORWARD_L2:
	case LB_N_FORWARD_MODES:
		break;
	}
	return 0;
}

/* The outer protocol where it is constant; 0 for IPIP, whose protocol is the inner family. */
static uint8_t
outer_proto(enum lb_forward_mode mode)
{
	if (is_udp(mode))
		return IPPROTO_UDP;
	return mode == LB_FORWARD_GRE ? IPPROTO_GRE : 0;
}

static void
init_ipv4(struct lb_encap *encap, const struct lb_encap_conf *conf)
{
	uint8_t *p = encap->bytes;
	uint16_t sum;

	p[0] = 0x45;
	p[6] = IPV4_FLAG_DF;
	p[8] = OUTER_TTL;
	p[9] = outer_proto(conf->mode);
	memcpy(p + 12, conf->src.bytes + 12, 4);
	memcpy(p + 16, conf->dst.bytes + 12, 4);
	sum = lb_csum_fold(lb_csum_add(0, p, IPV4_BYTES));
	encap->ipv4_sum = lb_bytes_swap16(ntohs(sum));
}

static void
init_ipv6(struct lb_encap *encap, const struct lb_encap_conf *conf)
{
	uint8_t *p = encap->bytes;

	p[0] = 0x60;
	p[6] = outer_proto(conf->mode);
	p[7] = OUTER_TTL;
	memcpy(p + 8, conf->src.bytes, LB_ADDR_BYTES);
	memcpy(p + 24, conf->dst.bytes, LB_ADDR_BYTES);
}

/* What follows the outer IP header; all of it is UDP's to sum, and evenly aligned. */
static void
init_payload(uint8_t *p, const struct lb_encap_conf *conf)
{
	if (is_udp(conf->mode))
		lb_bytes_store16_be(p + 2, conf->udp_port);
	if (conf->mode != LB_FORWARD_VXLAN)
		return;

	p += UDP_BYTES;
	p[0] = VXLAN_FLAG_VNI;
	p[4] = (uint8_t)(conf->vni >> 16);
	lb_bytes_store16_be(p + 5, conf->vni & 0xffff);
	p += VXLAN_BYTES;
	memcpy(p, conf->inner_dst.bytes, sizeof(conf->inner_dst.bytes));
	memcpy(p + 6, conf->inner_src.bytes, sizeof(conf->inner_src.bytes));
}

static bool
is_conf_valid(const struct lb_encap_conf *conf)
{
	/* As unsigned, so that an enum that a compiler makes signed has one range too. */
	if ((unsigned int)conf->mode >= LB_N_FORWARD_MODES)
		return false;
	if (conf->mode == LB_FORWARD_L2)
		return true;
	if (lb_addr_is_v4(&conf->src) != lb_addr_is_v4(&conf->dst))
		return false;
	if (is_udp(conf->mode) && conf->udp_port == 0)
		return false;
	return conf->mode != LB_FORWARD_VXLAN || conf->vni <= VNI_MAX;
}

int
lb_encap_init(struct lb_encap *out, const struct lb_encap_conf *conf)
{
	struct lb_encap encap = {0};

	if (!is_conf_valid(conf))
		return -EINVAL;

	encap.mode = (uint8_t)conf->mode;
	encap.is_v6 = !lb_addr_is_v4(&conf->dst);
	encap.n_bytes = (uint8_t)lb_encap_overhead(conf->mode, encap.is_v6);
	if (conf->mode == LB_FORWARD_IPIP) {
		encap.inner_proto[false] = IPPROTO_IPIP;
		encap.inner_proto[true] = IPPROTO_IPV6;
	}
	if (conf->mode != LB_FORWARD_L2 && encap.is_v6) {
		init_ipv6(&encap, conf);
		init_payload(encap.bytes + IPV6_BYTES, conf);
		/* The pseudo-header's constant part and all that the template has of UDP. */
		encap.sum = lb_csum_add(sum16(IPPROTO_UDP), encap.bytes + 8,
			sizeof(encap.bytes) - 8);
	} else if (conf->mode != LB_FORWARD_L2) {
		init_ipv4(&encap, conf);
		init_payload(encap.bytes + IPV4_BYTES, conf);
	}

	*out = encap;
	return 0;
}

/* RFC 768 and RFC 8200, section 8.1; all at even offsets, so that sums just add up. */
static void
write_udp_csum(const struct lb_encap *encap, const struct lb_encap_packet *packet, uint8_t *udp)
{
	uint16_t length_be;
	uint16_t sport_be;
	uint64_t sum;
	uint16_t csum;

	memcpy(&sport_be, udp, sizeof(sport_be));
	memcpy(&length_be, udp + 4, sizeof(length_be));
	/* The length counts twice: in the pseudo-header and in UDP's own. */
	sum = (uint64_t)sport_be + length_be + length_be;
	if (encap->mode == LB_FORWARD_VXLAN)
		sum += sum16(packet->is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);

	csum = lb_csum_finish(lb_csum_join(lb_csum_join(encap->sum, sum), packet->inner_sum));
	if (csum == 0)
		csum = UINT16_MAX; /* 0 on the wire means that there is none */
	memcpy(udp + 6, &csum, sizeof(csum));
}

static void
write_udp(const struct lb_encap *encap, const struct lb_encap_packet *packet, uint8_t *udp)
{
	const unsigned int ip_bytes = encap->is_v6 ? IPV6_BYTES : IPV4_BYTES;

	memcpy(udp, encap->bytes + ip_bytes, UDP_BYTES);
	lb_bytes_store16_be(udp, SPORT_FIRST + (packet->entropy >> SPORT_SHIFT));
	lb_bytes_store16_be(udp + 4, encap->n_bytes - ip_bytes + packet->inner_bytes);
	if (encap->is_v6)
		write_udp_csum(encap, packet, udp);
}

void
lb_encap_write_payload(const struct lb_encap *encap, const struct lb_encap_packet *packet,
	uint8_t *out)
{
	const unsigned int ethertype = packet->is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
	const unsigned int ip_bytes = encap->is_v6 ? IPV6_BYTES : IPV4_BYTES;

	switch (encap->mode) {
	case LB_FORWARD_GRE:
		lb_bytes_store16_be(out, 0); /* no checksum, key or sequence; version 0 */
		lb_bytes_store16_be(out + 2, ethertype);
		break;
	case LB_FORWARD_VXLAN:
		memcpy(out + UDP_BYTES, encap->bytes + ip_bytes + UDP_BYTES,
			VXLAN_BYTES + ETHER_BYTES - 2);
		lb_bytes_store16_be(out + UDP_BYTES + VXLAN_BYTES + 12, ethertype);
		write_udp(encap, packet, out);
		break;
	default:
		write_udp(encap, packet, out);
		break;
	}
}

void
lb_encap_write(const struct lb_encap *encap, const struct lb_encap_packet *packet, uint8_t *out)
{
	if (encap->mode != LB_FORWARD_L2)
		lb_encap_write_outer(encap, packet, out);
}
