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

/* Its last byte is the last that may be read. */
static void
write_usual(const struct lb_encap *encap, bool is_v6, uint16_t n)
{
	struct lb_encap_packet packet;

	make_any(&packet, sizeof(packet));
	packet.is_v6 = is_v6;
	packet.inner_bytes = n;
	lb_encap_write_usual((struct lb_encap_part){encap->bytes, encap->sum},
		(enum lb_forward_mode)encap->mode, encap->is_v6, &packet,
		FRAME_END - n - encap->n_bytes);
}

/* The shortest of UDP, and what is summed by either way; proof_csum.c has each length. */
static void
write_each_usual(const struct lb_encap *encap)
{
	make_any(frame_memory, sizeof(frame_memory));
	write_usual(encap, false, 28);
	write_usual(encap, true, 48);
	write_usual(encap, false, LB_CSUM_SHORT_BYTES_MAX);
	write_usual(encap, true, LB_CSUM_SHORT_BYTES_MAX);
	write_usual(encap, false, LB_CSUM_SHORT_BYTES_MAX + 1);
	write_usual(encap, true, LB_CSUM_SHORT_BYTES_MAX + 1);
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
		if (mode != LB_FORWARD_L2)
			write_each_usual(&encap);
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
