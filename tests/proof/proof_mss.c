/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The maximum segment size: every TCP header, cut or not. The header's own length counts words,
 * so that a rest of a word behind it is looked at by nobody.
 */

#include "lb_mss.c"
#include "proof.h"

#define TCP_BYTES_MAX 60

static const uint8_t lengths[] = {0, 1, 19, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56};

static void
clamp(size_t n)
{
	make_any(frame_memory, sizeof(frame_memory));
	(void)lb_mss_clamp(FRAME_END - n, n, (uint16_t)any_u64(0, UINT16_MAX));
}

int
main(void)
{
	(void)lb_mss_of((unsigned int)any_u64(0, UINT32_MAX),
		(unsigned int)any_u64(0, UINT32_MAX), any_bool());
	for (size_t i = 0; i < sizeof(lengths); i++)
		clamp(lengths[i]);
	clamp(any_u64(TCP_BYTES_MAX, FRAME_BYTES_MAX));
	return 0;
}
