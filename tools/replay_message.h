/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_MESSAGE_H
#define REPLAY_MESSAGE_H

/**
 * @file
 * Filling a struct replay_message.
 */

#include "replay_capture.h"

/** Write a message, printf-like; a text that is too long is cut. */
void replay_message_set(struct replay_message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** What to call a path in a message: "-" is named by what it stands for. */
const char *replay_path_name(const char *path, const char *standard_name);

#endif
