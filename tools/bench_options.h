/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

/**
 * @file
 * What a user of shunt-bench asks for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfg_model.h"
#include "lb_compiler.h"
#include "options.h"

/** The project's statuses of a program's end. */
enum bench_status { BENCH_DONE = 0, BENCH_FAILED = 1, BENCH_BAD_USAGE = 2 };

#define BENCH_WORKERS_MAX LB_WORKERS_MAX

enum bench_stage {
	BENCH_STAGE_PARSE,
	BENCH_STAGE_SERVICE,
	BENCH_STAGE_HASH,
	BENCH_STAGE_FLOW,
	BENCH_STAGE_TABLE,
	BENCH_STAGE_ENCAP,
	BENCH_STAGE_NONE, /**< does nothing, and so should cost nothing */
	BENCH_N_STAGES
};

/** Indexed by the above; ends with NULL. */
extern const char *const bench_stage_words[];

struct bench_options {
	struct options_list flows;      /**< all workers' together */
	struct options_list families;   /**< 4 and 6 */
	struct options_list forwards;   /**< enum cfg_forward */
	struct options_list algorithms; /**< enum cfg_algorithm */
	struct options_list stages;     /**< enum bench_stage; none: the whole pipeline */
	uint32_t n_services;
	uint32_t n_backends;   /**< of each service */
	uint32_t packet_bytes; /**< 0: the smallest of each family */
	uint32_t n_workers;
	uint32_t swap_ms; /**< a new snapshot each; 0: never */
	uint32_t new_pct; /**< of the packets, SYNs of new flows between the known ones' */
	double seconds;   /**< of each case */
	bool is_syn;
	bool is_json;
	bool wants_memory; /**< nothing is timed */
	bool wants_help;
	bool wants_version;
};

/**
 * Read a command line. What is wrong with it is told on stderr.
 *
 * @retval -EINVAL  It is wrong; out is then worth nothing.
 */
int bench_options_read(int argc, char *argv[], struct bench_options *out) lb_must_check;

extern const char bench_help[];

#endif
