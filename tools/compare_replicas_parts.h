/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_REPLICAS_PARTS_H
#define COMPARE_REPLICAS_PARTS_H

/**
 * @file
 * What compare_replicas.c finds and compare_replicas_report.c writes.
 */

#include <stddef.h>
#include <stdint.h>

#include "compare_options.h"
#include "compare_run_parts.h"
#include "lb_compiler.h"

enum { COMPARE_ON_RING, COMPARE_BY_HRW, COMPARE_N_RANKINGS };

/** Of one ranking, over all keys. */
struct compare_ranking {
	enum compare_algorithm algorithm;
	uint32_t *n_first;  /**< keys whose first copy a backend has, by place in the set */
	uint32_t *n_copies; /**< and any copy */
	uint64_t n_apart;   /**< keys whose copies are all in zones of their own */
	uint64_t n_lost;    /**< keys that one zone, the worst, takes all copies of */
	uint64_t n_apart_by_rank; /**< the same two, where zones have no part */
	uint64_t n_lost_by_rank;
	uint32_t *examples; /**< places of the owners of each example, n_owners each */
};

struct compare_replicas_result {
	const struct compare_options *options;
	const struct compare_side *side;
	uint32_t n_keys;
	uint32_t n_wanted;
	uint32_t n_owners; /**< as many as wanted, or all backends */
	uint32_t n_zones;  /**< a backend that names none has one of its own */
	bool has_zones;    /**< somebody names one */
	struct compare_ranking rankings[COMPARE_N_RANKINGS];
	size_t n_rankings;
};

/** As compare_report_json(). */
int compare_replicas_report_json(const struct compare_replicas_result *result) lb_must_check;

/** Likewise. */
int compare_replicas_report_text(const struct compare_replicas_result *result) lb_must_check;

#endif
