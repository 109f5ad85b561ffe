/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_measure.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "compare_memory.h"
#include "compare_plain.h"

#define KEY_SEED   0x6b657973u
#define KEY_STREAM 7u

/* A build that takes less is done again, so often at most, and the shortest counts. */
#define BUILD_SHORT_MS 2.0
#define BUILDS_MAX     8u

int
compare_sample_init(size_t n_keys, size_t room, struct compare_sample *out)
{
	const size_t n = n_keys > room ? n_keys : room;
	struct compare_sample sample = {
		.keys = malloc(n_keys * sizeof(*sample.keys)),
		.n = n_keys,
		.n_moves = (n_keys + COMPARE_MOVES_PART - 1) / COMPARE_MOVES_PART,
		.before = malloc(n * sizeof(*sample.before)),
		.after = malloc(n * sizeof(*sample.after)),
	};

	if (sample.keys == NULL || sample.before == NULL || sample.after == NULL) {
		compare_sample_fini(&sample);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_keys; i++)
		sample.keys[i] = compare_random(KEY_SEED, KEY_STREAM, i);
	*out = sample;
	return 0;
}

void
compare_sample_fini(struct compare_sample *sample)
{
	free(sample->keys);
	free(sample->before);
	free(sample->after);
	*sample = (struct compare_sample){0};
}

size_t
compare_own(const struct compare_table *table, const struct compare_sample *sample,
	uint32_t *owners)
{
	const uint32_t n_slots = compare_table_slots(table);

	if (n_slots > 0) {
		compare_table_own_slots(table, owners);
		return n_slots;
	}
	compare_table_own_keys(table, sample->keys, sample->n_moves, owners);
	compare_table_name_keys(table, sample->n_moves, owners);
	return sample->n_moves;
}

int
compare_measure_balance(const uint32_t *owners, size_t n, const struct compare_set *set,
	struct compare_balance *out)
{
	const double sum = (double)compare_set_weight_sum(set);
	uint32_t *counts = calloc(set->n_ids, sizeof(*counts));
	struct compare_balance balance = {.min_over_mean = INFINITY};
	double squares = 0;
	size_t n_weighted = 0;

	if (counts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		counts[owners[i]]++;
	for (size_t i = 0; i < set->n; i++) {
		const uint32_t weight = compare_set_weight(&set->backends[i]);
		double ratio;

		if (weight == 0)
			continue;
		ratio = counts[set->backends[i].id] / ((double)n * weight / sum);
		balance.max_over_mean = fmax(balance.max_over_mean, ratio);
		balance.min_over_mean = fmin(balance.min_over_mean, ratio);
		squares += (ratio - 1) * (ratio - 1);
		balance.n_without += ratio == 0;
		n_weighted++;
	}
	free(counts);
	balance.stddev_over_mean = sqrt(squares / (double)n_weighted);
	*out = balance;
	return 0;
}

/** A backend's weight before and after, by id; what is not in a set has none. */
struct quota {
	uint32_t from;
	uint32_t to;
};

struct quotas {
	struct quota *of;
	size_t n;
	uint64_t from_sum;
	uint64_t to_sum;
};

static int
list_quotas(const struct compare_set *from, const struct compare_set *to, struct quotas *out)
{
	struct quotas quotas = {
		.n = from->n_ids > to->n_ids ? from->n_ids : to->n_ids,
		.from_sum = compare_set_weight_sum(from),
		.to_sum = compare_set_weight_sum(to),
	};

	quotas.of = calloc(quotas.n, sizeof(*quotas.of));
	if (quotas.of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++)
		quotas.of[from->backends[i].id].from = compare_set_weight(&from->backends[i]);
	for (size_t i = 0; i < to->n; i++)
		quotas.of[to->backends[i].id].to = compare_set_weight(&to->backends[i]);
	*out = quotas;
	return 0;
}

/* A weight is below 2^16 and a sum of 65535 of them below 2^32: products fit. */
static bool
has_lost(const struct quotas *quotas, uint32_t id)
{
	const struct quota *quota = &quotas->of[id];

	return quota->to * quotas->from_sum < quota->from * quotas->to_sum;
}

static bool
has_gained(const struct quotas *quotas, uint32_t id)
{
	const struct quota *quota = &quotas->of[id];

	return quota->to * quotas->from_sum > quota->from * quotas->to_sum;
}

/** What is gained is lost elsewhere. */
static double
sum_gains(const struct quotas *quotas)
{
	double sum = 0;

	for (uint32_t id = 0; id < quotas->n; id++) {
		if (has_gained(quotas, id))
			sum += quotas->of[id].to / (double)quotas->to_sum -
			       quotas->of[id].from / (double)quotas->from_sum;
	}
	return sum;
}

int
compare_measure_moves(const struct compare_sample *sample, size_t n,
	const struct compare_set *from, const struct compare_set *to, struct compare_moves *out)
{
	struct quotas quotas;
	size_t n_moved = 0, n_needless = 0;
	const int ret = list_quotas(from, to, &quotas);

	if (ret != 0)
		return ret;
	for (size_t i = 0; i < n; i++) {
		const uint32_t before = sample->before[i], after = sample->after[i];

		if (before == after)
			continue;
		n_moved++;
		if (!has_lost(&quotas, before) || !has_gained(&quotas, after))
			n_needless++;
	}
	*out = (struct compare_moves){
		.moved = (double)n_moved / (double)n,
		.needless = (double)n_needless / (double)n,
		.minimal = sum_gains(&quotas),
	};
	free(quotas.of);
	return 0;
}

static uint64_t
cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/** Time a build, and the plain one after it. */
static int
time_builds(const struct compare_spec *spec, const struct compare_set *set,
	struct compare_table **table, struct compare_cost *cost)
{
	const uint64_t begin = cpu_ns();
	int ret;

	compare_memory_begin();
	ret = compare_table_create(spec, set, table);
	cost->build_ms = (double)(cpu_ns() - begin) / 1e6;
	cost->build_bytes = compare_memory_peak();
	cost->plain_ms = 0;
	if (ret == 0 && compare_plain_can(spec, set)) {
		const uint64_t middle = cpu_ns();

		ret = compare_plain_build(spec, set);
		cost->plain_ms = (double)(cpu_ns() - middle) / 1e6;
		if (ret != 0)
			compare_table_destroy(*table);
	}
	return ret;
}

int
compare_measure_cost(const struct compare_spec *spec, const struct compare_set *set,
	const struct compare_sample *sample, struct compare_table **table,
	struct compare_cost *cost)
{
	struct compare_cost least = {.build_ms = INFINITY, .plain_ms = INFINITY};
	struct compare_table *built = NULL;
	uint64_t begin;

	for (unsigned int i = 0; i < BUILDS_MAX; i++) {
		struct compare_cost once;
		int ret;

		compare_table_destroy(built);
		built = NULL;
		ret = time_builds(spec, set, &built, &once);
		if (ret != 0)
			return ret;
		least.build_ms = fmin(least.build_ms, once.build_ms);
		least.plain_ms = fmin(least.plain_ms, once.plain_ms);
		least.build_bytes = once.build_bytes;
		if (once.build_ms > BUILD_SHORT_MS)
			break;
	}
	begin = cpu_ns();
	compare_table_own_keys(built, sample->keys, sample->n, sample->before);
	least.lookup_ns = (double)(cpu_ns() - begin) / (double)sample->n;
	least.bytes = compare_table_bytes(built);
	*cost = least;
	*table = built;
	return 0;
}
