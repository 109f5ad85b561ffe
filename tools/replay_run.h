/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

/**
 * @file
 * The replay itself: a capture through the data plane, with what happens on the way.
 */

#include "lb_compiler.h"
#include "replay_options.h"

/**
 * Replay. Reads all that it is told to read before it writes anything.
 *
 * @param program  argv[0].
 * @return what to exit with; everything wrong has been said on stderr.
 */
enum replay_status replay_run(const char *program,
	const struct replay_options *options) lb_must_check;

#endif
