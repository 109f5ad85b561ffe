/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any frames, one after the other in time, through the whole packet path: bursts of one worker
 * and of three, under a configuration that uses everything. What must hold is in burst_plane.h.
 *
 * Input: records, each of a byte that says what happens; for a frame two more, big endian, say
 * how long it is, and then its bytes come, as far as there are any.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "burst_plane.h"

/* Bits of a record's first byte. The lowest are the time since the record before. */
enum {
	STEP_MASK = 0x0f,
	RUN = 0x10,    /* what was added is run first */
	CHANGE = 0x20, /* and the other configuration put in force */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
require(const char *flaw)
{
	if (flaw == NULL)
		return;
	(void)fprintf(stderr, "fuzz_burst: %s\n", flaw);
	abort();
}

/* Nothing of an input is known to the next: all that is remembered times out. */
#define APART_NS (UINT64_C(3600) * 1000000000u)

static uint64_t
step_ns(uint8_t record)
{
	/* 0, then from a nanosecond to some seconds. */
	return (record & STEP_MASK) == 0 ? 0 : UINT64_C(1) << 2 * ((record & STEP_MASK) + 1);
}

/* One input through one plane. */
static void
go_through(struct burst_plane *plane, const uint8_t *data, size_t n)
{
	unsigned int which = 0;
	size_t at = 0;

	plane->now_ns += APART_NS;
	while (n - at >= 3 && plane->n_added - plane->n_ended < BURST_PLANE_PACKETS_MAX) {
		const uint8_t record = data[at];
		const size_t wanted = (size_t)data[at + 1] << 8 | data[at + 2];
		const size_t left = n - at - 3;
		const size_t length = wanted < left ? wanted : left;

		if ((record & RUN) != 0)
			require(burst_plane_run(plane));
		if ((record & (RUN | CHANGE)) == (RUN | CHANGE)) {
			which = (which + 1) % BURST_PLANE_MODELS;
			burst_plane_publish(plane, which);
		}
		require(burst_plane_add(plane, data + at + 3, length, step_ns(record)));
		at += 3 + length;
	}
	require(burst_plane_end(plane));
	if (which != 0)
		burst_plane_publish(plane, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct burst_plane one;
	static struct burst_plane three;

	if (one.dp == NULL) {
		require(dp_start_unprivileged("fuzz_burst", 4) == 0 ? NULL : "no EAL");
		burst_plane_open(&one, 1);
		burst_plane_open(&three, 3);
	}
	go_through(&one, data, n);
	go_through(&three, data, n);
	return 0;
}
