/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_MEASURE_H
#define COMPARE_MEASURE_H

/**
 * @file
 * Figures of tables: how even, what a change moves, what a build and a lookup cost.
 *
 * They are shares of all slots, or where a table has none, of a sample of keys. Times are CPU
 * time of the calling thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "compare_table.h"
#include "lb_compiler.h"

/** Moves are judged by one in so many keys. */
#define COMPARE_MOVES_PART 4u

/** Keys to ask tables about, and room for the owners of as many, or of all slots. */
struct compare_sample {
	uint64_t *keys;
	size_t n;
	size_t n_moves; /**< the first of them, by which moves are judged: that takes fewer */
	uint32_t *before;
	uint32_t *after;
};

/** Of a backend's share, divided by what is its by weight; those of weight 0 do not count. */
struct compare_balance {
	double max_over_mean;
	double min_over_mean;
	double stddev_over_mean;
	size_t n_without; /**< backends with a weight and no slot or key */
};

/** What a change moves: shares of all slots or keys. */
struct compare_moves {
	double moved;
	double needless; /**< the old owner lost no quota, or the new one gained none */
	double minimal;  /**< what the change of quotas asks for; may be 0 */
};

struct compare_cost {
	double build_ms; /**< the least of several builds, where they are short */
	double plain_ms; /**< likewise of Maglev's plain build beside them; 0: there is none */
	size_t build_bytes; /**< the most there were at once, the table's own with them */
	double lookup_ns;   /**< from a key's hash to its owner: mean over the sample */
	size_t bytes;
};

/**
 * Make a sample. The keys are the same in every run.
 *
 * @param n_keys    1 or more.
 * @param room      Most slots of a table that will be asked about.
 * @param[out] out  To be given to compare_sample_fini(); untouched on error.
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int compare_sample_init(size_t n_keys, size_t room, struct compare_sample *out) lb_must_check;

void compare_sample_fini(struct compare_sample *sample);

/**
 * Find the owners of what moves are judged by: a table's slots, or the sample's keys.
 *
 * @param owners  sample->before or sample->after.
 * @return        How many there are.
 */
size_t compare_own(const struct compare_table *table, const struct compare_sample *sample,
	uint32_t *owners);

/**
 * Judge n owners of a set's slots or keys.
 *
 * @param[out] out  Untouched on error.
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int compare_measure_balance(const uint32_t *owners, size_t n, const struct compare_set *set,
	struct compare_balance *out) lb_must_check;

/**
 * Compare the owners of n slots or keys in sample->before and sample->after.
 *
 * @param[out] out  Untouched on error.
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int compare_measure_moves(const struct compare_sample *sample, size_t n,
	const struct compare_set *from, const struct compare_set *to,
	struct compare_moves *out) lb_must_check;

/**
 * Build a table, and time that and its lookups. All keys' owners, as the table names them, are
 * in sample->before then.
 *
 * @param[out] table  To be given to compare_table_destroy(); untouched on error, as is cost.
 * @return            As compare_table_create().
 */
int compare_measure_cost(const struct compare_spec *spec, const struct compare_set *set,
	const struct compare_sample *sample, struct compare_table **table,
	struct compare_cost *cost) lb_must_check;

#endif
