/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_MESSAGE_H
#define REPLAY_MESSAGE_H

/**
 * @file
 * Filling a struct replay_message.
 */

#include "replay_capture.h"

/** Room for a file's name in a message: what else a message says fits beside it. */
#define REPLAY_NAME_BYTES 320u

/** Write a message, printf-like; a text that is too long is cut. */
void replay_message_set(struct replay_message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * What to call a path in a message: "-" is named by what it stands for; of a path that is too
 * long, the end, after "..."; control characters, a newline say, become '?'.
 */
void replay_path_name(char name[REPLAY_NAME_BYTES], const char *path,
	const char *standard_name);

#endif
