/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_SET_H
#define COMPARE_SET_H

/**
 * @file
 * Sets of backends to compare algorithms on: made up, or of a file; and one after a change.
 *
 * A backend keeps its id from one set to the next, whatever place it has there. A set owns its
 * array and its names but those that it borrows, as said. One thread's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_limits.h"

enum compare_change {
	COMPARE_REMOVE_ONE,
	COMPARE_ADD_ONE,
	COMPARE_REWEIGHT,
	COMPARE_DRAIN,
	COMPARE_REMOVE_TENTH,
	COMPARE_FAIL_TENTH,
	COMPARE_N_CHANGES
};

/** Indexed by the above; ends with NULL. */
extern const char *const compare_change_words[];

struct compare_backend {
	const char *name;
	uint32_t name_bytes; /**< 1..LB_NAME_BYTES_MAX */
	uint32_t weight;     /**< 0..LB_WEIGHT_MAX */
	uint32_t id;         /**< below the set's n_ids */
	bool is_dead;        /**< in the configured set, and takes no new flows */
};

struct compare_set {
	struct compare_backend *backends; /**< in the order of the list */
	size_t n;
	size_t n_ids; /**< also of the set before or after a change */
	char *names;
};

/** How weights are given. */
struct compare_weights {
	const char *text; /**< as it was asked for */
	const char *file; /**< NULL: drawn, from least to most */
	uint32_t least;
	uint32_t most;
};

/** A number of 64 random bits: the i-th of a stream, the same on every machine. */
uint64_t compare_random(uint64_t seed, uint64_t stream, uint64_t i);

/**
 * Make up n backends, "backend-1" and so on.
 *
 * @param n         1..LB_SERVICE_BACKENDS_MAX.
 * @param seed      Of the weights, where they are not all the same.
 * @param[out] out  To be given to compare_set_fini(); untouched on error.
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int compare_set_make(size_t n, const struct compare_weights *weights, uint64_t seed,
	struct compare_set *out) lb_must_check;

/** Whether text is UTF-8, as names are. */
bool compare_is_utf8(const char *text, size_t n_bytes);

/**
 * Read a file of weights: a backend a line, its weight or its name and weight, with white space
 * between; empty lines and those that begin with '#' do not count. What is wrong with it is
 * told on stderr as FILE:LINE, all of it.
 *
 * @param[out] out  To be given to compare_set_fini(); untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  Something is wrong with it; stderr was told.
 * @retval -ENOMEM  No memory.
 */
int compare_set_read(const char *file, struct compare_set *out) lb_must_check;

/**
 * The set after a change. Its names are before's, and but for a new one it owns none.
 *
 * @param seed      Says whom the change is about.
 * @param[out] out  To be given to compare_set_fini(), before `before` is; untouched on error.
 * @retval 0        Success.
 * @retval -ENOENT  Nobody would be left, or there is nobody to change.
 * @retval -ENOMEM  No memory.
 */
int compare_set_change(const struct compare_set *before, enum compare_change change,
	uint64_t seed, struct compare_set *out) lb_must_check;

void compare_set_fini(struct compare_set *set);

/** The weight that counts: 0 where the backend takes no new flows. */
uint32_t compare_set_weight(const struct compare_backend *backend);

/** The sum of the weights that count. */
uint64_t compare_set_weight_sum(const struct compare_set *set);

#endif
