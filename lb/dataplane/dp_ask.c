/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dp_plane.h"

/* Lines of a flow table that a turn reads for a question: some microseconds' worth. */
#define BUCKETS_A_TURN 512u

/* The same of a query, which reads two lines more a bucket, where keys are kept. */
#define QUERIED_A_TURN 64u

/* That one question of those goes through: with a turn of 20 microseconds 20 ms. */
#define QUERIED_AT_ONCE 65536u

#define POLL_NS 20000

/* Whether a question is with the worker; otherwise the answer to the last can be read. */
static bool
is_busy(const struct dp_ask *ask)
{
	/* Acquire: pairs with the release in dp_ask_answer(), so that the answer is seen. */
	return atomic_load_explicit(&ask->posted, memory_order_acquire) != NULL;
}

static void
post(struct dp_ask *ask)
{
	/* Release: pairs with the acquire in dp_ask_answer(), so that the question is seen. */
	atomic_store_explicit(&ask->posted, &ask->question, memory_order_release);
}

static void
post_find(struct dp_ask *ask, const struct lb_flow_hash *hash)
{
	dp_ask_fini(ask); /* counts that nobody took */
	ask->question = (struct dp_question){.kind = DP_ASK_FIND, .hash = *hash};
	post(ask);
}

/* The worker finds the memory there already, on lines that are no other worker's. */
static int
post_count(struct dp_ask *ask, uint32_t n_counts)
{
	const size_t n_lines = n_counts * sizeof(uint32_t) / LB_CACHE_LINE + 1;
	uint32_t *counts = aligned_alloc(LB_CACHE_LINE, n_lines * LB_CACHE_LINE);

	if (counts == NULL)
		return -ENOMEM;
	memset(counts, 0, n_lines * LB_CACHE_LINE);
	dp_ask_fini(ask);
	ask->question = (struct dp_question){.kind = DP_ASK_COUNT,
		.counts = counts,
		.n_counts = n_counts};
	post(ask);
	return 0;
}

void
dp_ask_fini(struct dp_ask *ask)
{
	free(ask->question.counts);
	free(ask->question.backends);
	free(ask->question.entries);
	ask->question.counts = NULL;
	ask->question.backends = NULL;
	ask->question.entries = NULL;
}

static void
find_flow(struct dp_question *question, const struct lb_flow_table *flows, uint64_t now_ns)
{
	const uint32_t ref = lb_flow_find(flows, &question->hash, now_ns);

	question->is_found = ref != LB_FLOW_NONE;
	if (question->is_found)
		lb_flow_read(flows, ref, now_ns, &question->info);
}

/* A turn's share of a question with a query. @return whether there is more to do. */
static bool
query_some(struct dp_question *q, struct lb_flow_table *flows, uint64_t now_ns)
{
	const uint32_t n_left = q->end_bucket - q->bucket;
	struct lb_flow_walk walk = {
		.bucket = q->bucket,
		.end = q->bucket + (n_left < QUERIED_A_TURN ? n_left : QUERIED_A_TURN),
	};

	if (q->kind == DP_ASK_LIST)
		q->n_entries += lb_flow_list(flows, &q->query, now_ns, &walk,
			q->entries + q->n_entries, q->room - q->n_entries);
	else if (q->kind == DP_ASK_TALLY)
		lb_flow_tally_some(flows, &q->query, now_ns, &walk, q->counts, q->n_counts);
	else
		q->n_entries += lb_flow_clear(flows, &q->query, now_ns, &walk);
	q->bucket = walk.bucket;
	/* Before the end only a list stops, that has no more room. */
	return walk.bucket == walk.end && walk.bucket < q->end_bucket;
}

static bool
count_some(struct dp_question *question, const struct lb_flow_table *flows, uint64_t now_ns)
{
	return lb_flow_tally(flows, &question->bucket, BUCKETS_A_TURN, now_ns, question->counts,
		question->n_counts);
}

/* @return whether there is more to do. */
static bool
answer_some(struct dp_question *question, struct lb_flow_table *flows, uint64_t now_ns)
{
	switch (question->kind) {
	case DP_ASK_FIND:
		find_flow(question, flows, now_ns);
		return false;
	case DP_ASK_COUNT:
		return count_some(question, flows, now_ns);
	default:
		return query_some(question, flows, now_ns);
	}
}

bool
dp_ask_answer(struct dp_ask *ask, struct lb_flow_table *flows, uint64_t now_ns)
{
	/* Acquire: pairs with post(). */
	struct dp_question *question = atomic_load_explicit(&ask->posted, memory_order_acquire);

	if (question == NULL)
		return false;
	if (answer_some(question, flows, now_ns))
		return true;
	/* Release: pairs with is_busy(). */
	atomic_store_explicit(&ask->posted, NULL, memory_order_release);
	return false;
}

static bool
is_any_busy(const struct dp *dp)
{
	for (unsigned int i = 0; i < dp->n_workers; i++)
		if (is_busy(&dp->workers[i]->ask))
			return true;
	return false;
}

/* Until no worker has a question. @return whether that was before end_ns. */
static bool
wait_for_all(const struct dp *dp, uint64_t end_ns)
{
	static const struct timespec nap = {.tv_nsec = POLL_NS};

	while (is_any_busy(dp)) {
		if (dp_now_ns() >= end_ns)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

/* Before a question: those that run, and the end of the wait. */
static int
begin(const struct dp *dp, uint64_t *end_ns)
{
	*end_ns = dp_now_ns() + UINT64_C(1000000) * DP_ASK_MS;
	if (dp->n_running < dp->n_workers)
		return -ENODEV;
	return wait_for_all(dp, *end_ns) ? 0 : -ETIMEDOUT;
}

struct lb_flow_hash
dp_flow_hash(const struct dp *dp, const struct lb_flow_key *key)
{
	return lb_hash_flow(&dp->workers[0]->keyed, key); /* all have the same */
}

int
dp_ask_flow(struct dp *dp, const struct lb_flow_hash *hash, struct dp_flow_answer *out)
{
	bool is_found = false;
	bool is_whole;
	uint64_t end_ns;
	const int ret = begin(dp, &end_ns);

	if (ret != 0)
		return ret;
	for (unsigned int i = 0; i < dp->n_workers; i++)
		post_find(&dp->workers[i]->ask, hash);
	is_whole = wait_for_all(dp, end_ns);
	for (unsigned int i = 0; i < dp->n_workers; i++) {
		const struct dp_ask *ask = &dp->workers[i]->ask;

		if (is_busy(ask) || !ask->question.is_found ||
			(is_found && out->info.idle_ns <= ask->question.info.idle_ns))
			continue;
		*out = (struct dp_flow_answer){.worker = i, .info = ask->question.info};
		is_found = true;
	}
	if (is_found)
		return 0;
	return is_whole ? -ENOENT : -ETIMEDOUT;
}

int
dp_count_flows(struct dp *dp, uint32_t *counts, uint32_t n)
{
	uint64_t end_ns;
	int ret = begin(dp, &end_ns);

	for (unsigned int i = 0; i < dp->n_workers && ret == 0; i++)
		ret = post_count(&dp->workers[i]->ask, n);
	if (ret != 0)
		return ret; /* who was asked lets go of it in time */
	if (!wait_for_all(dp, end_ns))
		return -ETIMEDOUT;
	memset(counts, 0, n * sizeof(*counts));
	for (unsigned int i = 0; i < dp->n_workers; i++) {
		struct dp_ask *ask = &dp->workers[i]->ask;

		for (uint32_t id = 0; id < n; id++)
			counts[id] += ask->question.counts[id];
		dp_ask_fini(ask);
	}
	return 0;
}

uint32_t
dp_flow_buckets(const struct dp *dp)
{
	return lb_flow_n_buckets(dp->workers[0]->flows); /* all have the same */
}

bool
dp_keeps_flow_keys(const struct dp *dp)
{
	return lb_flow_keeps_keys(dp->workers[0]->flows);
}

/* What the worker then owns: the bits, counted or listed in. */
static int
fill_query(struct dp_question *question, const struct lb_flow_query *query, size_t room)
{
	const size_t n_words = query->n_backends / 64 + 1;

	question->query = *query;
	if (query->backends != NULL) {
		question->backends = malloc(n_words * sizeof(*question->backends));
		if (question->backends == NULL)
			return -ENOMEM;
		memcpy(question->backends, query->backends,
			n_words * sizeof(*question->backends));
		question->query.backends = question->backends;
	}
	if (question->kind == DP_ASK_LIST) {
		question->room = room;
		question->entries = malloc(room * sizeof(*question->entries));
		return question->entries == NULL ? -ENOMEM : 0;
	}
	if (question->kind == DP_ASK_TALLY) {
		question->n_counts = (uint32_t)room;
		question->counts = calloc(room + 1, sizeof(*question->counts));
		return question->counts == NULL ? -ENOMEM : 0;
	}
	return 0;
}

/* Put a question with a query to one worker, and wait. @return its answer in out; or why none.
 */
static int
ask_query(struct dp *dp, enum dp_question_kind kind, const struct lb_flow_query *query,
	size_t room, struct dp_flow_cursor *at, struct dp_question **out)
{
	struct dp_ask *ask = &dp->workers[at->worker]->ask;
	const uint32_t n_left = dp_flow_buckets(dp) - at->bucket;
	uint64_t end_ns;
	int ret = begin(dp, &end_ns);

	if (ret != 0)
		return ret;
	dp_ask_fini(ask);
	ask->question = (struct dp_question){
		.kind = kind,
		.bucket = at->bucket,
		.end_bucket =
			at->bucket + (n_left < QUERIED_AT_ONCE ? n_left : QUERIED_AT_ONCE),
	};
	ret = fill_query(&ask->question, query, room);
	if (ret != 0)
		return ret;
	post(ask);
	if (!wait_for_all(dp, end_ns))
		return -ETIMEDOUT;
	at->bucket = ask->question.bucket;
	if (at->bucket == dp_flow_buckets(dp))
		*at = (struct dp_flow_cursor){.worker = at->worker + 1};
	*out = &ask->question;
	return 0;
}

int
dp_list_flows(struct dp *dp, const struct lb_flow_query *query, struct dp_flow_cursor *at,
	struct lb_flow_entry *entries, size_t *n)
{
	struct dp_question *answer;
	const int ret = ask_query(dp, DP_ASK_LIST, query, *n, at, &answer);

	if (ret != 0)
		return ret;
	memcpy(entries, answer->entries, answer->n_entries * sizeof(*entries));
	*n = answer->n_entries;
	return 0;
}

int
dp_tally_flows(struct dp *dp, const struct lb_flow_query *query, struct dp_flow_cursor *at,
	uint32_t *counts, uint32_t n)
{
	struct dp_question *answer;
	const int ret = ask_query(dp, DP_ASK_TALLY, query, n, at, &answer);

	if (ret == 0)
		memcpy(counts, answer->counts, n * sizeof(*counts));
	return ret;
}

int
dp_clear_flows(struct dp *dp, const struct lb_flow_query *query, struct dp_flow_cursor *at,
	uint64_t *cleared)
{
	struct dp_question *answer;
	const int ret = ask_query(dp, DP_ASK_CLEAR, query, 0, at, &answer);

	if (ret == 0)
		*cleared = answer->n_entries;
	return ret;
}
