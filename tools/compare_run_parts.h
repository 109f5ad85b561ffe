/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_RUN_PARTS_H
#define COMPARE_RUN_PARTS_H

/**
 * @file
 * What compare_run.c, compare_run_config.c and compare_replicas.c share.
 */

#include "cfg_yaml.h"
#include "compare_measure.h"
#include "compare_run.h"

/** A service of a configuration, and its backends as a set. */
struct compare_side {
	struct cfg_model model;
	const struct cfg_service *service; /**< of the model */
	struct compare_set set;            /**< its names are the model's */
	uint32_t n_slots;
	uint32_t slack;
};

/**
 * Read the service that options name.
 *
 * @param[out] out  To be given to compare_side_fini(), also on error.
 * @retval 0        Success.
 * @retval -EINVAL  Something is wrong, or nobody takes new flows; stderr was told.
 * @retval -ENOMEM  No memory.
 */
int compare_side_read(const struct compare_options *options, const char *file,
	struct compare_side *out) lb_must_check;

/** A side of zeros is allowed. */
void compare_side_fini(struct compare_side *side);

/** Build a table, and add what it costs and how even it is to a result. Returns as
 * compare_table_create(). */
int compare_measure_table(const struct compare_spec *spec, const struct compare_set *set,
	const struct compare_sample *sample, struct compare_result *result,
	struct compare_table **out) lb_must_check;

void compare_add_moves(struct compare_change_result *result, const struct compare_moves *moves);

/**
 * Whether an algorithm takes so many slots and these backends; stderr is told otherwise, as an
 * error, or where all algorithms are wanted as a warning that it is left out.
 */
bool compare_admit(const struct compare_options *options, enum compare_algorithm algorithm,
	uint32_t n_slots, const struct compare_set *set);

/** Warn of backends whose share of a table is below one slot, and of those without a weight. */
void compare_warn_shares(const struct compare_options *options, uint32_t n_slots,
	const struct compare_set *set);

/** Say on stderr what an errno means that is not told yet; returns ret. */
int compare_tell_failure(int ret);

#endif
