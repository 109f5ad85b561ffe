/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_ASK_H
#define DP_ASK_H

/**
 * @file
 * Control's questions to one worker about its flow table, a question at a time.
 *
 * Whose the question is, one pointer says: while it is NULL control may write the question and
 * read its answer; control sets it, and from then on all of it is the worker's, until the
 * worker sets it to NULL again. A question that control no longer waits for is finished all
 * the same, in memory that is the worker's to have.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_flow_table.h"

enum dp_question_kind {
	DP_ASK_FIND,  /**< one flow */
	DP_ASK_COUNT, /**< live flows by backend */
	DP_ASK_LIST,  /**< those of a query, in some buckets; and so the next two */
	DP_ASK_TALLY, /**< by backend */
	DP_ASK_CLEAR, /**< to be forgotten */
};

struct dp_question {
	enum dp_question_kind kind;

	/* Of DP_ASK_FIND. */
	struct lb_flow_hash hash;
	bool is_found; /**< the answer; info where it is true */
	struct lb_flow_info info;

	/* Of DP_ASK_COUNT and DP_ASK_TALLY. */
	uint32_t *counts; /**< n_counts of them by backend id, 0 at first: the answer */
	uint32_t n_counts;
	uint32_t bucket; /**< the worker's: the next to look at */

	/* Of those with a query. */
	uint32_t end_bucket;
	struct lb_flow_query query;    /**< its bits are those below */
	uint64_t *backends;            /**< NULL: all */
	struct lb_flow_entry *entries; /**< of DP_ASK_LIST: the answer, n_entries of room */
	size_t n_entries;              /**< how many there are; and how many were cleared */
	size_t room;
};

struct dp_ask {
	/** The worker looks here each turn: read-only but for questions. */
	alignas(LB_CACHE_LINE) _Atomic(struct dp_question *) posted;

	alignas(LB_CACHE_LINE) struct dp_question question; /**< see above whose */
};

/** Free what questions hold. The worker runs no more. */
void dp_ask_fini(struct dp_ask *ask);

/* For the worker. */

/** A hint, and in time the truth: what is there is seen by dp_ask_answer(). */
static inline bool
dp_ask_is_posted(const struct dp_ask *ask)
{
	return atomic_load_explicit(&ask->posted, memory_order_relaxed) != NULL;
}

/** Do a turn's share of the question. @return whether there is more to do. */
bool dp_ask_answer(struct dp_ask *ask, struct lb_flow_table *flows, uint64_t now_ns);

#endif
