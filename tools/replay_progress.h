/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_PROGRESS_H
#define REPLAY_PROGRESS_H

/**
 * @file
 * The line that tells a person at a terminal how far a long replay is.
 */

#include <stdbool.h>
#include <stdint.h>

struct replay_progress {
	bool is_shown;    /**< standard error is a terminal */
	bool has_line;    /**< a line stands there, to be wiped */
	uint64_t next_ns; /**< monotonic time of the next line */
};

/** Nanoseconds of a clock that never goes back. */
uint64_t replay_clock_ns(void);

/** Nothing is written in the first second, nor where standard error is no terminal. */
void replay_progress_begin(struct replay_progress *progress);

/**
 * Perhaps write a line: five times a second at most.
 *
 * @param done  Bytes read of total; a total of 0 is not known.
 */
void replay_progress_tell(struct replay_progress *progress, uint64_t packets, uint64_t done,
	uint64_t total);

/** Wipe the line. */
void replay_progress_end(struct replay_progress *progress);

#endif
