/* SPDX-License-Identifier: BSD-3-Clause */

/* Outer headers: every mode, both outer families, whatever the configuration. */

#include "lb_encap.c"
#include "proof.h"

static void
write_one(const struct lb_encap *encap)
{
	uint8_t room[LB_ENCAP_BYTES_MAX];
	struct lb_encap_packet packet;

	make_any(&packet, sizeof(packet));
	packet.is_v6 = any_bool();
	lb_encap_write(encap, &packet, room + sizeof(room) - encap->n_bytes);
	(void)lb_encap_needs_sum(encap);
}

static void
make_one(enum lb_forward_mode mode, struct lb_addr src, struct lb_addr dst)
{
	struct lb_encap_conf conf = {.mode = mode, .src = src, .dst = dst};
	struct lb_encap encap;

	conf.udp_port = (uint16_t)any_u64(0, UINT16_MAX);
	conf.vni = (uint32_t)any_u64(0, UINT32_MAX);
	make_any(&conf.inner_dst, sizeof(conf.inner_dst));
	make_any(&conf.inner_src, sizeof(conf.inner_src));
	if (lb_encap_init(&encap, &conf) == 0) {
		//@ split encap.n_bytes;
		write_one(&encap);
	}
}

int
main(void)
{
	struct lb_addr any[2] = {lb_addr_from_v4((const uint8_t[]){192, 0, 2, 1}),
		{{0x20, 0x01}}};

	make_any(any[0].bytes + 12, 4);
	make_any(any[1].bytes + 1, 15);
	for (unsigned int mode = 0; mode <= LB_N_FORWARD_MODES; mode++) {
		for (unsigned int i = 0; i < 4; i++)
			make_one((enum lb_forward_mode)mode, any[i / 2], any[i % 2]);
	}
	return 0;
}
