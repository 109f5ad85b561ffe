/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fragmentation: every header, every length and MTU, each piece. Headers count words, so that
 * a rest of a word is looked at by nobody.
 */

#include "lb_split.c"
#include "proof.h"

/* No more of a packet is read. */
#define IP_BYTES_READ 60

static const uint8_t lengths[] = {0, 1, 19, 20, 24, 28, 32, 36, 39, 40, 44, 48, 52, 56};

static void
take_pieces(struct lb_split split)
{
	struct lb_split_piece piece;

	for (size_t i = 0; i < 3; i++)
		(void)lb_split_next(&split, &piece);
}

static void
plan(const uint8_t *ip, size_t ip_bytes)
{
	const size_t room = any_u64(0, SIZE_MAX);
	struct lb_split split = {0};

	if (lb_split_inner_v4(ip, ip_bytes, room, &split) == 0)
		take_pieces(split);
	if (lb_split_outer_v4(ip, ip_bytes, (uint16_t)any_u64(0, UINT16_MAX), room, &split) ==
		0)
		take_pieces(split);
	if (lb_split_outer_v6(ip, ip_bytes, (uint32_t)any_u64(0, UINT32_MAX), room, &split) ==
		0)
		take_pieces(split);
}

int
main(void)
{
	make_any(frame_memory, sizeof(frame_memory));
	for (size_t i = 0; i < sizeof(lengths); i++)
		plan(FRAME_END - lengths[i], lengths[i]);
	plan(FRAME_END - IP_BYTES_READ, any_u64(IP_BYTES_READ, SIZE_MAX));
	return 0;
}
