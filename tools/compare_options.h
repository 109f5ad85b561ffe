/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_OPTIONS_H
#define COMPARE_OPTIONS_H

/**
 * @file
 * What a user of shunt-compare asks for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare_set.h"
#include "compare_table.h"
#include "lb_compiler.h"
#include "options.h"

/** The project's statuses of a program's end. */
enum compare_status { COMPARE_DONE = 0, COMPARE_FAILED = 1, COMPARE_BAD_USAGE = 2 };

/** Most copies of a key. */
#define COMPARE_REPLICAS_MAX 64u

/** Most keys whose copies are shown. */
#define COMPARE_EXAMPLES_MAX 16u

struct compare_options {
	struct options_list algorithms; /**< enum compare_algorithm, each once */
	bool is_all; /**< what an algorithm cannot take is left out, not wrong */
	struct options_list backends;
	struct options_list sizes;
	struct options_list changes; /**< enum compare_change, each once */
	struct compare_weights weights;
	uint32_t n_seeds;
	uint32_t n_keys;
	const char *config; /**< with service and against: two files are compared */
	const char *service;
	const char *against;
	uint32_t n_replicas; /**< copies of a key; 0: they are not what is asked for */
	const char *examples[COMPARE_EXAMPLES_MAX]; /**< keys whose copies are shown */
	size_t n_examples;
	const char *plot; /**< a folder, or NULL */
	bool has_backends;
	bool has_sizes;
	bool has_keys;
	bool is_json;
	bool wants_teach;
	bool wants_help;
	bool wants_version;
};

/**
 * Read a command line. What is wrong with it is told on stderr.
 *
 * @retval -EINVAL  It is wrong; out is then worth nothing.
 */
int compare_options_read(int argc, char *argv[], struct compare_options *out) lb_must_check;

extern const char compare_help[];

#endif
