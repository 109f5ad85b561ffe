/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_TIMELINE_H
#define REPLAY_TIMELINE_H

/**
 * @file
 * Packets of each backend over time, and what happened when.
 *
 * Time is cut into at most REPLAY_TIMELINE_BINS bins of one width, which is doubled as often as
 * it takes: so memory does not grow with the capture, and of one that lasts longer than all
 * bins of the least width more than half are used. It depends on times alone, not on their
 * order.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

#define REPLAY_TIMELINE_BINS     256u
#define REPLAY_TIMELINE_LEAST_NS 1000u

/** All zero is an empty one. */
struct replay_timeline {
	uint64_t width_ns; /**< of a bin; 0: nothing came yet */
	uint64_t last_ns;  /**< when the last packet or event came, since the first packet */
	uint64_t **rows;   /**< by backend id; NULL: none of its packets came yet */
	size_t n_rows;
	struct replay_timeline_mark *marks; /**< in the order they were put */
	size_t n_marks;
};

/** Something that happened. */
struct replay_timeline_mark {
	uint64_t at_ns; /**< since the first packet */
	char *title;
};

/** A packet of any kind came: the time that is shown goes up to it. */
void replay_timeline_reach(struct replay_timeline *timeline, uint64_t now_ns);

/** One was forwarded to a backend. @retval -ENOMEM  No memory. */
int replay_timeline_add(struct replay_timeline *timeline, uint32_t backend,
	uint64_t now_ns) lb_must_check;

/** @param title  Copied. @retval -ENOMEM  No memory. */
int replay_timeline_mark(struct replay_timeline *timeline, const char *title,
	uint64_t now_ns) lb_must_check;

/** Bins in use, 1 at least. */
size_t replay_timeline_n_bins(const struct replay_timeline *timeline);

/** Packets of a backend in all bins. */
uint64_t replay_timeline_sum(const struct replay_timeline *timeline, uint32_t backend);

void replay_timeline_fini(struct replay_timeline *timeline);

#endif
