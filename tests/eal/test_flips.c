/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Each kind of frame, broken in each way that is easily named: cut after each byte, and each of
 * the bits turned over that the packet path reads. What must hold is in burst_plane.h.
 */

#include "burst_frames.h"
#include "burst_plane.h"
#include "expect.h"
#include "xrand.h"

/* All headers of all kinds, but for what lies behind the longest chains of them. */
#define FLIPPED_BYTES 80u
/* So that what waits, limits and flows are also seen to time out. */
#define STEP_NS 700000u

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_flips", 3);
}

static void
expect_no_flaw(const char *flaw, size_t row, const char *how, size_t at)
{
	EXPECT(flaw == NULL, "%s, %s %zu: %s", burst_frames_name(row), how, at, flaw);
}

/* A frame as it is, after which whatever was changed has something to meet. */
static void
add_whole(struct burst_plane *plane, size_t row)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = burst_frames_build(row, frame);

	expect_no_flaw(burst_plane_add(plane, frame, n, STEP_NS), row, "whole", n);
}

static void
cut_everywhere(struct burst_plane *plane, size_t row)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = burst_frames_build(row, frame);

	for (size_t length = 0; length <= n; length++)
		expect_no_flaw(burst_plane_add(plane, frame, length, STEP_NS), row, "cut to",
			length);
	expect_no_flaw(burst_plane_end(plane), row, "cut, by", n);
}

static void
flip_every_bit(struct burst_plane *plane, size_t row)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = burst_frames_build(row, frame);

	for (size_t bit = 0; bit < 8 * (n < FLIPPED_BYTES ? n : FLIPPED_BYTES); bit++) {
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		expect_no_flaw(burst_plane_add(plane, frame, n, STEP_NS), row, "bit", bit);
		/* A flipped header has a wrong checksum: with the right one it goes on. */
		pb_fix_ipv4_csum(frame + 14);
		expect_no_flaw(burst_plane_add(plane, frame, n, STEP_NS), row, "summed bit",
			bit);
		(void)burst_frames_build(row, frame);
		if (bit % 32 == 0)
			add_whole(plane, row);
	}
	expect_no_flaw(burst_plane_end(plane), row, "flipped, by", n);
}

/*
 * What a batch never says: it has no ports and no mail, its captures are whole, and buffers for
 * all that it takes.
 */
static bool
is_elsewhere(size_t verdict)
{
	return verdict == LB_DROP_TX_FULL || verdict == LB_DROP_PORT_DOWN ||
	       verdict == LB_DROP_KERNEL_DOWN || verdict == LB_DROP_HANDOFF_FULL ||
	       verdict == LB_DROP_SNAPLEN || verdict == LB_DROP_NO_MEMORY ||
	       verdict == LB_DROP_NO_SERVICE || verdict == LB_DROP_NO_NEXT_HOP;
}

static void
expect_every_verdict(const struct burst_plane *plane)
{
	uint64_t counts[LB_N_VERDICTS];

	dp_read_verdicts(plane->dp, counts);
	for (size_t v = 0; v < LB_N_VERDICTS; v++)
		EXPECT((counts[v] > 0) != is_elsewhere(v), "%lu packets were %s",
			(unsigned long)counts[v],
			v < LB_FIRST_DROP ? lb_verdict_name((enum lb_verdict)v)
					  : lb_verdict_reason((enum lb_verdict)v));
}

static void
break_each_kind(unsigned int n_workers)
{
	static struct burst_plane plane;

	burst_plane_open(&plane, n_workers);
	for (size_t row = 0; row < burst_frames_count(); row++) {
		cut_everywhere(&plane, row);
		flip_every_bit(&plane, row);
	}
	expect_every_verdict(&plane);
	burst_plane_close(&plane);
}

static void
test_no_broken_frame_is_lost_or_breaks_anything(void **state)
{
	(void)state;
	break_each_kind(1);
}

static void
test_nor_among_workers(void **state)
{
	(void)state;
	break_each_kind(3);
}

/* Frames of all kinds one after the other, a bit turned over here and there. */
static void
mix(unsigned int n_workers, uint64_t random)
{
	static struct burst_plane plane;

	burst_plane_open(&plane, n_workers);
	for (unsigned int i = 1; i <= 20000; i++) {
		const size_t row = xrand_below(&random, (uint32_t)burst_frames_count());
		uint8_t frame[PB_FRAME_MAX];
		const size_t n = burst_frames_build(row, frame);

		if (xrand_below(&random, 4) == 0)
			frame[xrand_below(&random, (uint32_t)n)] ^=
				(uint8_t)(1u << xrand_below(&random, 8));
		expect_no_flaw(burst_plane_add(&plane, frame, n, xrand_below(&random, 1000000)),
			row, "mixed, at", i);
		if (i % 500 == 0) {
			expect_no_flaw(burst_plane_run(&plane), row, "run, at", i);
			burst_plane_publish(&plane, i % 1000 == 0);
		}
		if (i % 5000 == 0)
			expect_no_flaw(burst_plane_end(&plane), row, "end, at", i);
	}
	burst_plane_close(&plane);
}

static void
test_kinds_may_be_mixed_and_the_configuration_change(void **state)
{
	(void)state;
	mix(1, 1);
	mix(3, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_broken_frame_is_lost_or_breaks_anything),
		cmocka_unit_test(test_nor_among_workers),
		cmocka_unit_test(test_kinds_may_be_mixed_and_the_configuration_change),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
