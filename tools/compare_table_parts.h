/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_TABLE_PARTS_H
#define COMPARE_TABLE_PARTS_H

/**
 * @file
 * What compare_table.c is made of: the inside of a table, and how each kind is filled. Each
 * fill returns 0, -ENOENT, -E2BIG or -ENOMEM, and leaves to the destroyer what it made.
 */

#include <assert.h>

#include "compare_table.h"
#include "lb_anchor.h"
#include "lb_buckets.h"
#include "lb_ketama.h"
#include "lb_picker.h"
#include "lb_ring.h"
#include "lb_slots16k.h"

/** Anchor's buckets are half as many again as work, so that backends can join. */
#define COMPARE_ANCHOR_WORKING_MAX 11184800u

static_assert(COMPARE_ANCHOR_WORKING_MAX / 2 * 3 < LB_ANCHOR_BUCKETS_MAX, "and one to spare");

struct compare_table {
	struct compare_spec spec;
	uint32_t n_slots; /* 0: none */
	uint32_t *ids;    /* by what lookups find: a place in the set, or a bucket of anchor */
	size_t bytes;
	void *picker_memory;
	const struct lb_picker *picker;
	uint16_t *slots; /* of what has slots and is no picker */
	uint32_t *ends;
	struct lb_buckets buckets;
	struct lb_anchor_bucket *anchor_buckets;
	struct lb_anchor anchor;
	struct lb_ketama_point *points;
	size_t n_points;
};

/**
 * The places of a set's backends in canonical order, those of weight 0 left out.
 *
 * @param[out] places  Room for set->n.
 */
int compare_order(const struct compare_set *set, uint64_t hash_seed, uint32_t *places,
	size_t *n) lb_must_check;

/**
 * Those that are ordered so as a ring takes them; index is the place in the set.
 *
 * @param[out] backends  Room for set->n.
 */
int compare_order_ring(const struct compare_set *set, uint64_t hash_seed,
	struct lb_ring_backend *backends, size_t *n) lb_must_check;

int compare_fill_picker(struct compare_table *table, enum lb_algorithm algorithm,
	const struct compare_set *set) lb_must_check;
int compare_fill_bounded(struct compare_table *table,
	const struct compare_set *set) lb_must_check;

/** Assign anew, or where there is a table before, move the fewest of its slots. */
int compare_fill_slots(struct compare_table *table, const struct compare_table *before,
	const struct compare_set *set) lb_must_check;

int compare_fill_buckets(struct compare_table *table,
	const struct compare_set *set) lb_must_check;
int compare_fill_anchor(struct compare_table *table,
	const struct compare_set *set) lb_must_check;

/** Take buckets from those that lost some, then give those that gained some theirs. */
int compare_follow_anchor(struct compare_table *table, const struct compare_table *before,
	const struct compare_set *from, const struct compare_set *to) lb_must_check;

int compare_fill_ketama(struct compare_table *table,
	const struct compare_set *set) lb_must_check;

#endif
