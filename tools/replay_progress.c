/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS   1000000000u
#define INTERVAL_NS 200000000u

uint64_t
replay_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void
replay_progress_begin(struct replay_progress *progress)
{
	progress->is_shown = isatty(STDERR_FILENO) == 1;
	progress->has_line = false;
	progress->next_ns = replay_clock_ns() + SECOND_NS;
}

void
replay_progress_tell(struct replay_progress *progress, uint64_t packets, uint64_t done,
	uint64_t total)
{
	uint64_t now_ns;

	if (!progress->is_shown)
		return;
	now_ns = replay_clock_ns();
	if (now_ns < progress->next_ns)
		return;

	progress->next_ns = now_ns + INTERVAL_NS;
	progress->has_line = true;
	(void)fprintf(stderr, "\rreplayed %" PRIu64 " packets", packets);
	if (total > 0)
		(void)fprintf(stderr, ", %3.0f %% of the capture",
			100.0 * (double)done / (double)total);
	(void)fflush(stderr);
}

void
replay_progress_end(struct replay_progress *progress)
{
	if (progress->has_line)
		(void)fprintf(stderr, "\r\033[K");
	progress->has_line = false;
}
