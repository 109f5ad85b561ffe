/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_PLAIN_H
#define COMPARE_PLAIN_H

/**
 * @file
 * The measure of build times: Maglev's table, built as its paper tells it, of the same backends
 * and slots. It differs from one machine to the next as other builds do, so that a ratio to it
 * can be told to others.
 */

#include <stdbool.h>

#include "compare_table.h"

/** Whether there is such a table, and it takes no more than a second or so. */
bool compare_plain_can(const struct compare_spec *spec, const struct compare_set *set);

/**
 * Hash and order the backends, and fill the slots; nothing is kept. Only where
 * compare_plain_can().
 *
 * @retval 0        Success.
 * @retval -ENOMEM  No memory.
 */
int compare_plain_build(const struct compare_spec *spec,
	const struct compare_set *set) lb_must_check;

#endif
