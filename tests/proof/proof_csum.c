/* SPDX-License-Identifier: BSD-3-Clause */

/* The Internet checksum, of bytes of every length. */

#include "lb_csum.c"
#include "lb_csum_short.h"
#include "proof.h"

int
main(void)
{
	const size_t n = any_u64(0, FRAME_BYTES_MAX);
	const uint64_t before = any_u64(0, UINT64_MAX);
	uint64_t sum;

	make_any(frame_memory, sizeof(frame_memory));
	sum = lb_csum_range(before, FRAME_END - n, FRAME_END);
	(void)lb_csum_finish(sum);
	(void)lb_csum_swap(sum);
	for (size_t k = 0; k <= 60; k++)
		(void)lb_csum_add(before, FRAME_END - k, k);
	//@ loop unroll LB_CSUM_SHORT_BYTES_MAX;
	for (size_t k = 1; k <= LB_CSUM_SHORT_BYTES_MAX; k++)
		(void)lb_csum_add_short(before, FRAME_END - k, k);
	return 0;
}
