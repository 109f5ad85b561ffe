/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

/**
 * @file
 * One case, and what was measured of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_options.h"

/** In the place of a stage: the whole pipeline. */
#define BENCH_NO_STAGE BENCH_N_STAGES

struct bench_case {
	const struct bench_options *options;
	unsigned int family; /**< 4 or 6 */
	enum cfg_forward forward;
	enum cfg_algorithm algorithm;
	enum bench_stage stage; /**< or BENCH_NO_STAGE */
	uint64_t n_flows;       /**< all workers' together */
	uint32_t packet_bytes;  /**< of a frame, its checksum included */
	uint32_t flow_entries;  /**< of each worker's table */
};

/** Times are medians over the rounds of each worker, then means over the workers. */
struct bench_result {
	double ns;     /**< a packet */
	double ns_min; /**< least and most of all rounds of all workers */
	double ns_max;
	double generator_ns; /**< a packet */
	uint32_t n_rounds;
	uint64_t n_packets;   /**< timed */
	uint64_t n_forwarded; /**< of these */
	uint64_t n_checked;   /**< more packets, each looked at after the pipeline */
	uint64_t n_swaps;
	double hit_share; /**< of the timed packets, those whose flow was known */
	double fill;      /**< share of the flow tables' entries in use */
	bool has_huge_pages;
};

/** "warm", "mixed", "syn", these with "-swap", or "stage-parse" and so on; good as long as out.
 */
const char *bench_case_name(const struct bench_case *c, char out[static 32]);

/** Entries of each worker's flow table, for n_flows of all workers together. */
uint32_t bench_case_entries(const struct bench_options *options, uint64_t n_flows);

/** How many cases the options have: every combination of their lists. */
size_t bench_case_count(const struct bench_options *options);

/** @param index  0..bench_case_count()-1: the last list, of stages, goes fastest. */
struct bench_case bench_case_at(const struct bench_options *options, size_t index);

#endif
