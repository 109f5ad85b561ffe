/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_OPTIONS_H
#define REPLAY_OPTIONS_H

/**
 * @file
 * What the command line of shunt-replay asks for, and what the program exits with.
 */

#include <stdbool.h>
#include <stdint.h>

/** Texts are not owned. */
struct replay_options {
	const char *config;
	const char *events;        /**< NULL: none */
	const char *write;         /**< NULL: no capture is written */
	const char *port;          /**< NULL: the configuration's first */
	const char *decisions;     /**< NULL: none are written */
	const char *expect;        /**< NULL: nothing is expected */
	const char *expect_output; /**< NULL: the output is not compared */
	const char *plot;          /**< a folder; NULL: no picture is drawn */
	const char *input;         /**< a file, or "-" */
	unsigned int n_workers;    /**< 1..128 */
	uint32_t n_loops;          /**< 1..1000000000 */
	bool is_json;
};

enum replay_status {
	REPLAY_DONE = 0,
	REPLAY_FAILED = 1,          /**< the work failed */
	REPLAY_BAD_USAGE = 2,       /**< bad usage or bad configuration */
	REPLAY_NOT_AS_EXPECTED = 3, /**< an expectation did not hold */
};

#endif
