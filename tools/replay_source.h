/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_SOURCE_H
#define REPLAY_SOURCE_H

/**
 * @file
 * The packets of a replay: a capture once or several times over, and their time.
 *
 * Time begins at 0 with the first packet that has a timestamp, and goes on when the capture
 * begins again: its first packet then comes when the last one before it came.
 */

#include "replay_capture.h"

/** One packet and when it came. */
struct replay_packet {
	struct replay_frame frame; /**< as it stands in the capture */
	uint64_t since_ns;         /**< since the replay's first packet; never going back */
	uint64_t time_ns;          /**< the same since 1970; 0 before the first timestamp */
};

struct replay_source; /* opaque */

/**
 * Open a capture that is to be read n_passes times.
 *
 * @param path      A file; "-" for standard input only where n_passes is 1.
 * @param n_passes  1 or more.
 * @retval 0        Success.
 * @retval -errno   As replay_capture_open().
 */
int replay_source_open(const char *path, uint64_t n_passes, struct replay_source **out,
	struct replay_message *message) lb_must_check;

/** The next packet. Returns as replay_capture_next(). */
int replay_source_next(struct replay_source *source, struct replay_packet *packet,
	struct replay_message *message) lb_must_check;

/** As replay_capture_is_nano(). */
bool replay_source_is_nano(const struct replay_source *source);

/** Bytes read of this pass, and of the file. */
void replay_source_progress(const struct replay_source *source, uint64_t *read_bytes,
	uint64_t *file_bytes);

/** NULL is allowed. */
void replay_source_close(struct replay_source *source);

#endif
