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
	UDP_BYTES = LB_ENCAP_UDP_BYTES,
	VXLAN_BYTES = LB_ENCAP_VXLAN_BYTES,

	OUTER_TTL = 64,
	IPV4_FLAG_DF = 0x40, /* of the fragment field's first byte */
	VXLAN_FLAG_VNI = 0x08,
	SPORT_FIRST = 49152, /* the flow has the low 14 bits of a port: up to 65535 */
	VNI_MAX = 0xffffff,
};

static_assert(IPV6_BYTES + UDP_BYTES + LB_ENCAP_INNER_BYTES == LB_ENCAP_BYTES_MAX,
	"VXLAN over IPv6 is the longest");

static bool
is_udp(enum lb_forward_mode mode)
{
	return mode == LB_FORWARD_GUE || mode == LB_FORWARD_VXLAN;
}

unsigned int
lb_encap_overhead(enum lb_forward_mode mode, bool is_outer_v6)
{
	return lb_encap_bytes(mode, is_outer_v6);
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

	p[0] = LB_ENCAP_V4_FIRST;
	p[6] = IPV4_FLAG_DF;
	p[8] = OUTER_TTL;
	p[LB_ENCAP_V4_PROTO_AT] =
		conf->mode == LB_FORWARD_IPIP ? IPPROTO_IPIP : outer_proto(conf->mode);
	memcpy(p + 12, conf->src.bytes + 12, 4);
	memcpy(p + 16, conf->dst.bytes + 12, 4);
	sum = lb_csum_fold(lb_csum_add(0, p, IPV4_BYTES));
	memcpy(p + LB_ENCAP_V4_CSUM_AT, &sum, sizeof(sum));
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

/* The pseudo-header's constant part, and what the template has of UDP's payload. */
static uint16_t
sum_constant(const uint8_t bytes[static LB_ENCAP_BYTES_MAX])
{
	const size_t payload_at = IPV6_BYTES + UDP_BYTES;
	uint64_t sum = htons(IPPROTO_UDP);

	sum = lb_csum_add(sum, bytes + 8, IPV6_BYTES - 8);
	return lb_csum_fold(
		lb_csum_add(sum, bytes + payload_at, LB_ENCAP_BYTES_MAX - payload_at));
}

/* What follows the outer IP header; all of it is UDP's to sum, and evenly aligned. */
static void
init_payload(uint8_t *p, const struct lb_encap_conf *conf)
{
	if (is_udp(conf->mode)) {
		lb_bytes_store16_be(p, SPORT_FIRST);
		lb_bytes_store16_be(p + 2, conf->udp_port);
	}
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
	encap.n_bytes = lb_encap_overhead(conf->mode, encap.is_v6) & 0x7f;
	if (conf->mode != LB_FORWARD_L2 && encap.is_v6) {
		init_ipv6(&encap, conf);
		init_payload(encap.bytes + IPV6_BYTES, conf);
		encap.sum = sum_constant(encap.bytes);
	} else if (conf->mode != LB_FORWARD_L2) {
		init_ipv4(&encap, conf);
		init_payload(encap.bytes + IPV4_BYTES, conf);
	}

	*out = encap;
	return 0;
}

void
lb_encap_write(const struct lb_encap *encap, const struct lb_encap_packet *packet, uint8_t *out)
{
	if (encap->mode != LB_FORWARD_L2)
		lb_encap_write_outer(encap, packet, out);
}
