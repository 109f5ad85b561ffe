/* SPDX-License-Identifier: BSD-3-Clause */

/* Parsing: every frame of every length, cut by a capture or not. */

#include "lb_packet.c"
#include "proof.h"

/* For all lengths at once parse_frame() is looked at; for these, also what calls it. */
static const size_t lengths[] = {0, 18, 98};

int
main(void)
{
	const size_t n = any_u64(0, FRAME_BYTES_MAX);
	struct lb_packet packet;
	struct view view = {
		.bytes = FRAME_END - n,
		.limit = FRAME_END,
		.n_cut = any_u64(0, SIZE_MAX - FRAME_BYTES_MAX),
	};

	make_any(frame_memory, sizeof(frame_memory));
	(void)parse_usual(&view, &packet);
	(void)parse_frame(&view, &packet);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		(void)lb_packet_parse(FRAME_END - lengths[i], lengths[i], any_u64(0, SIZE_MAX),
			&packet);
	return 0;
}
