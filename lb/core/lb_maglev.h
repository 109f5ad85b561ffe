/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_MAGLEV_H
#define LB_MAGLEV_H

/**
 * @file
 * Maglev hashing (NSDI'16, section 3.4): fill a table of slots by taking turns.
 *
 * Each backend has a permutation of the slots, offset + j * skip mod n_slots for j = 0, 1, ...
 * In rounds, in the order of the array, each backend adds its weight to an accumulator that
 * starts its own weight short of the largest; one that reaches the largest has that subtracted,
 * and the backend claims the first slot of its permutation that is still free. So everybody
 * claims in the first round, and no backend is without a slot where there are as many slots as
 * backends. With equal weights the numbers of slots differ by at most one, and with others,
 * where M slots are shared by n backends of the weights w and the sum W,
 *
 *     (M - n) * w / W - 1 < slots of a backend < M * w / W + 2.
 *
 * A function of its arguments alone; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/** One backend as the fill sees it. */
struct lb_maglev_backend {
	uint32_t offset; /**< 0..n_slots-1 */
	uint32_t skip;   /**< 1..n_slots-1 */
	uint32_t weight; /**< 1..LB_WEIGHT_MAX */
	uint32_t index;  /**< what its slots hold, 0..65535 */
};

/** The backend of an identity hashed to h_1 and h_2. */
struct lb_maglev_backend lb_maglev_backend(uint64_t h_1, uint64_t h_2, uint32_t n_slots);

/**
 * Fill slots[n_slots].
 *
 * The time is in proportion to n_slots and its logarithm, whatever the weights. It is a third
 * of the plain build's for six backends or more of like weights; where one has nearly all turns
 * it is twice as long, as hardly a probe is in vain then, and both are short.
 *
 * @param backends   n of them in canonical order, 1..LB_SERVICE_BACKENDS_MAX.
 * @param n_slots    A prime, LB_SLOTS_MIN..LB_SLOTS_MAX.
 * @param[out] slots The index of each slot's backend; unspecified on error.
 * @retval 0         Success.
 * @retval -ENOMEM   No memory for scratch space.
 */
int lb_maglev_fill(const struct lb_maglev_backend *backends, size_t n, uint32_t n_slots,
	uint16_t *slots) lb_must_check;

#endif
