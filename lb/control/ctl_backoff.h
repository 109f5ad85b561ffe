/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_BACKOFF_H
#define CTL_BACKOFF_H

/**
 * @file
 * How long to wait before the next try of what has failed: twice as long each time, to a limit,
 * and never as long as others who failed at the same moment, so that all of a fleet do not come
 * back at once. Pure: chance is passed in.
 */

#include <stdint.h>

#define CTL_BACKOFF_MS_MIN 100u
#define CTL_BACKOFF_MS_MAX 10000u

/** All zero is what has not failed. */
struct ctl_backoff {
	uint32_t limit_ms;
};

/**
 * One more failure.
 *
 * @param random  Any 32 bits, another each time.
 * @return milliseconds to wait: of a limit that begins with CTL_BACKOFF_MS_MIN and doubles up
 *         to CTL_BACKOFF_MS_MAX, from a half to the whole.
 */
uint32_t ctl_backoff_next(struct ctl_backoff *backoff, uint32_t random);

#endif
