/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

/**
 * @file
 * The replay itself: a capture through the data plane, with what happens on the way.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lb_compiler.h"

/** What the command line asks for; texts are not owned. */
struct replay_options {
	const char *config;
	const char *events;        /**< NULL: none */
	const char *write;         /**< NULL: no capture is written */
	const char *port;          /**< NULL: the configuration's first */
	const char *decisions;     /**< NULL: none are written */
	const char *expect;        /**< NULL: nothing is expected */
	const char *expect_output; /**< NULL: the output is not compared */
	const char *input;         /**< a file, or "-" */
	unsigned int n_workers;    /**< 1..128 */
	uint64_t n_loops;          /**< 1.. */
	bool is_json;
};

/** What a program of ours exits with. */
enum replay_status {
	REPLAY_DONE = 0,
	REPLAY_FAILED = 1,          /**< the work failed */
	REPLAY_BAD_USAGE = 2,       /**< bad usage or bad configuration */
	REPLAY_NOT_AS_EXPECTED = 3, /**< an expectation did not hold */
};

/**
 * Replay. Reads all that it is told to read before it writes anything.
 *
 * @param program  argv[0].
 * @return what to exit with; everything wrong has been said on stderr.
 */
enum replay_status replay_run(const char *program,
	const struct replay_options *options) lb_must_check;

#endif
