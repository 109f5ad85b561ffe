/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dp_plane.h"

/* Lines of a flow table that a turn reads for a question: some microseconds' worth. */
#define BUCKETS_A_TURN 512u

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
	ask->question.counts = NULL;
}

static void
find_flow(struct dp_question *question, const struct lb_flow_table *flows, uint64_t now_ns)
{
	const uint32_t ref = lb_flow_find(flows, &question->hash, now_ns);

	question->is_found = ref != LB_FLOW_NONE;
	if (question->is_found)
		lb_flow_read(flows, ref, now_ns, &question->info);
}

bool
dp_ask_answer(struct dp_ask *ask, const struct lb_flow_table *flows, uint64_t now_ns)
{
	/* Acquire: pairs with post(). */
	struct dp_question *question = atomic_load_explicit(&ask->posted, memory_order_acquire);

	if (question == NULL)
		return false;
	if (question->kind == DP_ASK_FIND)
		find_flow(question, flows, now_ns);
	else if (lb_flow_tally(flows, &question->bucket, BUCKETS_A_TURN, now_ns,
			 question->counts, question->n_counts))
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

uint64_t
dp_flow_seed(const struct dp *dp)
{
	return dp->workers[0]->flow_seed; /* all have the same */
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
