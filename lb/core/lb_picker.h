/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_PICKER_H
#define LB_PICKER_H

/**
 * @file
 * Picker: flow hash -> slot -> backend, whatever algorithm filled the slots.
 *
 * Every algorithm fills the same kind of table, n_slots 16-bit backend indices, and differs
 * only in how. So a lookup is one multiplication and one load under all of them, without a
 * branch on the algorithm, and every decision has a slot to show. Ring and rendezvous keep
 * what they are chosen for: a slot is a fixed point of the ring, or a fixed key of
 * rendezvous, so that a change moves no slot that it need not.
 *
 * A picker is immutable once built, and a function of the set of (name, weight) and the conf
 * alone: neither the order of the backends nor any earlier picker has a part in it. All
 * arithmetic is integer: it is the same on every machine.
 *
 * Who is down for a while, or takes no new flows, keeps its weight in the configured picker.
 * An overlay of that one gives its slots to the others, and moves no other slot (lb_overlay.h).
 *
 * build() and overlay() may run on one thread per picker; lookups on any number.
 */

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_limits.h"
#include "lb_mul.h"

enum lb_algorithm { LB_MAGLEV, LB_RING, LB_RENDEZVOUS, LB_STABLE, LB_N_ALGORITHMS };

/** A table, whoever is in it. */
struct lb_picker_conf {
	enum lb_algorithm algorithm;
	uint32_t n_slots;   /**< one that lb_picker_check_slots() takes */
	uint32_t slack;     /**< of stable, 0..LB_STABLE_SLACK_MAX; the others do without */
	uint64_t hash_seed; /**< the cluster's */
};

/** One backend as an algorithm sees it. */
struct lb_picker_backend {
	const char *name;    /**< identity inside the service; read only during the build */
	uint32_t name_bytes; /**< 1..LB_NAME_BYTES_MAX */
	uint32_t weight;     /**< 0..LB_WEIGHT_MAX; 0 gets no slot */
};

/** Others than the functions below leave it alone. */
struct lb_picker {
	alignas(LB_CACHE_LINE) uint32_t n_slots;
	uint16_t slots[];
};

static_assert(LB_SERVICE_BACKENDS_MAX <= UINT16_MAX, "a slot holds a backend's position");

/** "maglev", "ring", "rendezvous", "stable". */
const char *lb_algorithm_name(enum lb_algorithm algorithm);

/**
 * Whether n_slots is a size that the algorithm takes: LB_SLOTS_MIN..LB_SLOTS_MAX, and a prime
 * for Maglev and stable.
 */
int lb_picker_check_slots(enum lb_algorithm algorithm, uint32_t n_slots) lb_must_check;

/** Bytes of a picker; 0 where lb_picker_check_slots() refuses. */
size_t lb_picker_bytes(enum lb_algorithm algorithm, uint32_t n_slots);

/**
 * The canonical order, which every build begins with: by h_0, then by the names' bytes, those
 * of weight 0 left out.
 *
 * @param backends     n of them, 0..LB_SERVICE_BACKENDS_MAX.
 * @param[out] places  Room for n: positions in that array, as many as n_left says. Undefined on
 *                     error.
 * @param[out] n_left  Untouched on error.
 * @retval 0           Success.
 * @retval -EINVAL     Weight or name length out of range.
 * @retval -E2BIG      More than LB_SERVICE_BACKENDS_MAX.
 * @retval -EEXIST     Two backends have one name.
 * @retval -ENOMEM     No memory for scratch space.
 */
int lb_picker_order(const struct lb_picker_backend *backends, size_t n, uint64_t hash_seed,
	uint32_t *places, size_t *n_left) lb_must_check;

/**
 * Fill a picker in the caller's memory.
 *
 * @param mem        lb_picker_bytes() bytes, LB_CACHE_LINE aligned.
 * @param backends   n of them in any order; not kept. The picker's results are positions in
 *                   this array.
 * @param[out] out   The picker, inside mem; untouched on error.
 * @retval 0         Success.
 * @retval -EINVAL   Size, slack, weight or name length out of range.
 * @retval -E2BIG    More than LB_SERVICE_BACKENDS_MAX backends; more backends of a weight above
 *                   0 than slots; or a ring of more than 2^24 points.
 * @retval -EEXIST   Two backends have one name.
 * @retval -ENOENT   No backend has a weight above 0.
 * @retval -ENOMEM   No memory for scratch space.
 */
int lb_picker_build(void *mem, const struct lb_picker_conf *conf,
	const struct lb_picker_backend *backends, size_t n,
	const struct lb_picker **out) lb_must_check;

/**
 * Fill a picker with a configured one's slots, those of dead backends given to the others.
 *
 * @param mem         As many bytes as configured has, aligned as they are; not the same.
 * @param configured  From lb_picker_build(); not kept.
 * @param is_dead     By position in build()'s array.
 * @param[out] out    The picker, inside mem; untouched on error.
 * @retval 0          Success.
 * @retval -ENOENT    All backends with a slot are dead.
 */
int lb_picker_overlay(void *mem, const struct lb_picker *configured, const bool *is_dead,
	const struct lb_picker **out) lb_must_check;

/** The same by what share of its slots each keeps, 0..LB_OVERLAY_WHOLE. */
int lb_picker_overlay_shares(void *mem, const struct lb_picker *configured,
	const uint8_t *shares, const struct lb_picker **out) lb_must_check;

uint32_t lb_picker_slots(const struct lb_picker *picker);

/** Slot of a flow, 0..n_slots-1: multiply-shift, in proportion. */
static inline uint32_t
lb_picker_slot(const struct lb_picker *picker, uint64_t pick)
{
	return (uint32_t)lb_mul_high(pick, picker->n_slots);
}

/** Backend of a slot: its position in build()'s array. */
static inline uint32_t
lb_picker_backend(const struct lb_picker *picker, uint32_t slot)
{
	return picker->slots[slot];
}

/** Start loading a slot. */
static inline void
lb_picker_prefetch(const struct lb_picker *picker, uint32_t slot)
{
	__builtin_prefetch(&picker->slots[slot]);
}

/** Count the slots of each of n backends into counts[n], zeroed first. */
void lb_picker_count(const struct lb_picker *picker, uint32_t *counts, size_t n);

#endif
