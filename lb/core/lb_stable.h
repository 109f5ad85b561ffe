/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_STABLE_H
#define LB_STABLE_H

/**
 * @file
 * The stable table: slots and backends matched so that a change moves fewer slots between
 * backends that it does not concern than Maglev's table does, at nearly its balance.
 *
 * Division below is of integers, rounded down; M is the number of slots, a prime.
 *
 * Each backend b of the weight w has a permutation of the slots, a time for each rank in it,
 * and a key for each slot: the earlier, the more it wants it.
 *
 *     slot_b(r) = (A + B * inv((r + C) mod M)) mod M       r = 0..M-1
 *     A = h_1 mod M,  B = h_2 mod (M - 1) + 1,  C = h_3 mod M
 *     inv(x) * x mod M = 1,  inv(0) = 0
 *     E[r] = sum over k = 0..r of 16 * M / (M - k)
 *     rate = 2^30 / w
 *     key_b(slot_b(r)) = E[r] * rate + (h_3 * 16 * rate) / 2^64
 *
 * So the times are spaced as those of random arrivals are, in proportion to the weight, and
 * the last term, the backend's phase, is below one step of them. A key is below 2^63.
 *
 * A backend takes at most its capacity of slots. With the slack e in thousandths, W the sum of
 * the weights, and u = h_2, or u = 0 where e = 0,
 *
 *     D = 1000 * W,  x = (1000 + e) * M * w + u * D / 2^64,  capacity = x / D.
 *
 * Where the capacities add up to less than M, by d, the d backends of the largest x mod D have
 * one more; of equal ones those earlier in canonical order. So a slack of 0 gives the method
 * of the largest remainder.
 *
 * Then the pairs of backend and slot are gone through by ascending key, of equal ones by
 * canonical order: a slot that is still free goes to a backend that is still below its
 * capacity. This is the one stable matching in which both sides want the least key, so the
 * order in which it is worked out has no part in it.
 *
 * With M * w / W slots as a backend's share,
 *
 *     slots of a backend <= (1 + e / 1000) * share + 2,
 *
 * and with a slack of 0, share - 1 < slots of a backend < share + 1. There is no bound from
 * below with another slack. With the default, of 3000 sets of 1000 equal backends at M = 65537
 * the least had 0.595 of its share of 65.5.
 *
 * A backend of the share s that is one of the lightest, and kept by no capacity of the others,
 * asks for its slot number k when about e^(-k / s) of all are free. So it has none with a
 * probability of about
 *
 *     product over k = 1, 2, ... of (1 - e^(-k / s)) = sqrt(2 * pi * s) * e^(-s * pi^2 / 6)
 *
 * and, by its phase, up to s times that. Measured, with weights of 1 to 100: one in 2 at a
 * share of 1.3, in 21 at 3.2, in 400 at 5.2, in 20000 at 8.2, none of 90000 at 10. The less
 * weights differ the rarer it is: with equal ones, one in 130 at 1.4, in 50000 at 4.1.
 *
 * A function of its arguments alone, in integers; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/** Slack where the configuration says nothing, and the largest, in thousandths. */
#define LB_STABLE_SLACK_DEFAULT 20u
#define LB_STABLE_SLACK_MAX     1000u

/** One backend as the fill sees it. */
struct lb_stable_backend {
	uint64_t phase;  /**< h_3 */
	uint64_t dither; /**< h_2 */
	uint32_t offset; /**< A, 0..n_slots-1 */
	uint32_t scale;  /**< B, 1..n_slots-1 */
	uint32_t start;  /**< C, 0..n_slots-1 */
	uint32_t weight; /**< 1..LB_WEIGHT_MAX */
	uint32_t index;  /**< what its slots hold, 0..65535 */
};

/** The backend of an identity hashed to h_1, h_2 and h_3; weight and index are left 0. */
struct lb_stable_backend lb_stable_backend(uint64_t h_1, uint64_t h_2, uint64_t h_3,
	uint32_t n_slots);

/**
 * Fill slots[n_slots].
 *
 * The time is in proportion to n_slots and its logarithm, whatever the weights; the scratch
 * space is some 20 bytes a slot and 100 a backend.
 *
 * @param backends   n of them in canonical order, 1..LB_SERVICE_BACKENDS_MAX and at most
 *                   n_slots.
 * @param n_slots    A prime, LB_SLOTS_MIN..LB_SLOTS_MAX.
 * @param slack      Thousandths, 0..LB_STABLE_SLACK_MAX.
 * @param[out] slots The index of each slot's backend; unspecified on error.
 * @retval 0         Success.
 * @retval -ENOMEM   No memory for scratch space.
 */
int lb_stable_fill(const struct lb_stable_backend *backends, size_t n, uint32_t n_slots,
	uint32_t slack, uint16_t *slots) lb_must_check;

#endif
