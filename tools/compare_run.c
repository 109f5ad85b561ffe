/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_run_parts.h"
#include "lb_prime.h"
#include "lb_slots16k.h"
#include "lb_stable.h"

/** What is measured, and with what. */
struct run {
	const struct compare_options *options;
	const struct compare_set *file_set; /* NULL: one is made up for each seed */
	struct compare_sample sample;
	struct compare_results results;
};

double
compare_mean(const struct compare_figure *figure)
{
	return figure->n > 0 ? figure->sum / figure->n : 0;
}

void
compare_add_value(struct compare_figure *figure, double value)
{
	if (figure->n == 0 || value < figure->min)
		figure->min = value;
	if (figure->n == 0 || value > figure->max)
		figure->max = value;
	figure->sum += value;
	figure->n++;
}

const struct compare_result *
compare_find(const struct compare_results *results, enum compare_algorithm algorithm,
	size_t n_backends, uint32_t n_slots)
{
	for (size_t i = 0; i < results->n; i++) {
		const struct compare_result *result = &results->items[i];

		if (result->algorithm == algorithm && result->n_backends == n_backends &&
			(!compare_takes_size(algorithm) || result->n_slots == n_slots))
			return result;
	}
	return NULL;
}

int
compare_tell_failure(int ret)
{
	if (ret != 0 && ret != -EINVAL)
		(void)fprintf(stderr, "shunt-compare: it cannot be measured: %s\n",
			strerror(-ret));
	return ret;
}

bool
compare_admit(const struct compare_options *options, enum compare_algorithm algorithm,
	uint32_t n_slots, const struct compare_set *set)
{
	const uint32_t unit =
		options->weights.least == options->weights.most || options->weights.file != NULL
			? compare_unit(set)
			: 1;
	const char *wants = compare_check_size(algorithm, n_slots, set, unit);

	if (wants == NULL)
		return true;
	(void)fprintf(stderr, "shunt-compare: %s%s %s: not %zu backends",
		options->is_all ? "warning: left out: " : "",
		compare_algorithm_words[algorithm], wants, set->n);
	if (compare_takes_size(algorithm))
		(void)fprintf(stderr, " and %" PRIu32 " slots", n_slots);
	if (compare_takes_size(algorithm) && !lb_is_prime(n_slots))
		(void)fprintf(stderr, ", of which the next prime is %" PRIu32,
			lb_next_prime(n_slots));
	(void)fprintf(stderr, "\n");
	return false;
}

void
compare_warn_shares(const struct compare_options *options, uint32_t n_slots,
	const struct compare_set *set)
{
	const uint64_t sum = compare_set_weight_sum(set);
	size_t n_small = 0, n_zero = 0;
	bool has_slots = false;

	for (size_t i = 0; i < options->algorithms.n; i++)
		has_slots |= compare_takes_size(options->algorithms.items[i]);
	for (size_t i = 0; i < set->n; i++) {
		n_zero += set->backends[i].weight == 0;
		n_small += set->backends[i].weight > 0 &&
			   (uint64_t)n_slots * set->backends[i].weight < sum;
	}
	if (n_zero > 0)
		(void)fprintf(stderr,
			"shunt-compare: warning: %zu of %zu backends have the weight 0, and "
			"get "
			"nothing\n",
			n_zero, set->n);
	if (n_small > 0 && has_slots)
		(void)fprintf(stderr,
			"shunt-compare: warning: the share of %zu of %zu backends is less than "
			"one of %" PRIu32
			" slots, so they get none, or more than their share\n",
			n_small, set->n, n_slots);
}

static int
make_set(const struct run *run, size_t n, uint64_t seed, struct compare_set *out)
{
	const struct compare_set *from = run->file_set;
	struct compare_set set;

	if (from == NULL)
		return compare_set_make(n, &run->options->weights, seed, out);
	set = (struct compare_set){.n = from->n, .n_ids = from->n_ids};
	set.backends = calloc(from->n, sizeof(*set.backends));
	if (set.backends == NULL)
		return -ENOMEM;
	memcpy(set.backends, from->backends, from->n * sizeof(*set.backends));
	*out = set;
	return 0;
}

int
compare_measure_table(const struct compare_spec *spec, const struct compare_set *set,
	const struct compare_sample *sample, struct compare_result *result,
	struct compare_table **out)
{
	struct compare_balance balance;
	struct compare_table *table;
	struct compare_cost cost;
	size_t n_owners;
	int ret = compare_measure_cost(spec, set, sample, &table, &cost);

	if (ret != 0)
		return ret;
	if (compare_table_slots(table) > 0) {
		n_owners = compare_own(table, sample, sample->before);
	} else {
		n_owners = sample->n;
		compare_table_name_keys(table, n_owners, sample->before);
	}
	ret = compare_measure_balance(sample->before, n_owners, set, &balance);
	if (ret != 0) {
		compare_table_destroy(table);
		return ret;
	}
	result->n_slots = compare_table_slots(table);
	compare_add_value(&result->max_over_mean, balance.max_over_mean);
	compare_add_value(&result->min_over_mean, balance.min_over_mean);
	compare_add_value(&result->stddev_over_mean, balance.stddev_over_mean);
	compare_add_value(&result->without, (double)balance.n_without);
	compare_add_value(&result->build_ms, cost.build_ms);
	if (cost.plain_ms > 0)
		compare_add_value(&result->build_over_plain, cost.build_ms / cost.plain_ms);
	compare_add_value(&result->build_bytes, (double)cost.build_bytes);
	compare_add_value(&result->lookup_ns, cost.lookup_ns);
	compare_add_value(&result->bytes, (double)cost.bytes);
	*out = table;
	return 0;
}

void
compare_add_moves(struct compare_change_result *result, const struct compare_moves *moves)
{
	compare_add_value(&result->moved, moves->moved);
	compare_add_value(&result->needless, moves->needless);
	compare_add_value(&result->minimal, moves->minimal);
	if (moves->minimal > 0)
		compare_add_value(&result->moved_over_minimal, moves->moved / moves->minimal);
}

/** A table before a change, and whose it is. */
struct base {
	struct compare_spec spec;
	const struct compare_set *set;
	const struct compare_table *table;
};

static int
measure_after(const struct run *run, const struct base *base, const struct compare_set *to,
	struct compare_change_result *result)
{
	struct compare_moves moves;
	struct compare_table *after;
	size_t n_owners;
	int ret = compare_table_follow(&base->spec, base->table, base->set, to, &after);

	if (ret != 0)
		return ret;
	n_owners = compare_own(after, &run->sample, run->sample.after);
	compare_table_destroy(after);
	ret = compare_measure_moves(&run->sample, n_owners, base->set, to, &moves);
	if (ret == 0)
		compare_add_moves(result, &moves);
	return ret;
}

/**
 * Measure one change. Where a bucket is less weight for the set after it than for the one
 * before, the table before is built of such buckets, too: who has them is known from the start.
 */
static int
measure_change(const struct run *run, const struct base *base, const struct compare_set *to,
	struct compare_change_result *result)
{
	struct base finer = *base;
	struct compare_table *table;
	int ret;

	finer.spec.unit = compare_common_divisor(base->spec.unit, compare_unit(to));
	if (!compare_takes_unit(base->spec.algorithm) || finer.spec.unit == base->spec.unit)
		return measure_after(run, base, to, result);

	ret = compare_table_create(&finer.spec, base->set, &table);
	if (ret != 0)
		return ret;
	finer.table = table;
	(void)compare_own(table, &run->sample, run->sample.before);
	ret = measure_after(run, &finer, to, result);
	compare_table_destroy(table);
	(void)compare_own(base->table, &run->sample, run->sample.before);
	return ret;
}

/** A change that is none, or too much for an algorithm, has no figures. */
static int
measure_changes(const struct run *run, const struct base *base, struct compare_result *result)
{
	for (size_t i = 0; i < run->options->changes.n; i++) {
		const enum compare_change change = run->options->changes.items[i];
		struct compare_set to;
		int ret = compare_set_change(base->set, change, base->spec.hash_seed, &to);

		if (ret == 0) {
			ret = measure_change(run, base, &to, &result->changes[i]);
			compare_set_fini(&to);
		}
		if (ret != 0 && ret != -ENOENT && ret != -E2BIG)
			return ret;
	}
	return 0;
}

static int
measure_seed(const struct run *run, uint32_t n_slots, uint64_t seed,
	struct compare_result *result)
{
	struct base base = {
		.spec =
			{
				.algorithm = result->algorithm,
				.n_slots = n_slots,
				.slack = LB_STABLE_SLACK_DEFAULT,
				.hash_seed = seed,
			},
	};
	struct compare_table *table;
	struct compare_set set;
	int ret = make_set(run, result->n_backends, seed, &set);

	if (ret != 0)
		return ret;
	base.set = &set;
	base.spec.unit = compare_unit(&set);
	ret = compare_measure_table(&base.spec, &set, &run->sample, result, &table);
	if (ret == 0) {
		base.table = table;
		ret = measure_changes(run, &base, result);
		compare_table_destroy(table);
	}
	compare_set_fini(&set);
	return ret;
}

static int
measure_case(struct run *run, enum compare_algorithm algorithm, size_t n, uint32_t n_slots)
{
	const struct compare_options *options = run->options;
	struct compare_result *result = &run->results.items[run->results.n++];

	*result = (struct compare_result){
		.algorithm = algorithm,
		.n_backends = n,
		.n_changes = options->changes.n,
	};
	for (size_t i = 0; i < options->changes.n; i++)
		result->changes[i].change = compare_change_words[options->changes.items[i]];
	for (uint32_t seed = 0; seed < options->n_seeds; seed++) {
		const int ret = measure_seed(run, n_slots, seed, result);

		if (ret != 0)
			return ret;
	}
	return 0;
}

/** Admit each case: by a set of the largest weights, as each seed draws others. */
static int
admit_cases(const struct run *run, size_t n, bool is_admitted[])
{
	const struct compare_options *options = run->options;
	struct compare_weights largest = options->weights;
	struct compare_set set;
	size_t n_admitted = 0, k = 0;
	int ret;

	largest.least = largest.most;
	ret = run->file_set != NULL ? make_set(run, n, 0, &set)
				    : compare_set_make(n, &largest, 0, &set);
	if (ret != 0)
		return ret;
	for (size_t s = 0; s < options->sizes.n; s++) {
		for (size_t a = 0; a < options->algorithms.n; a++, k++) {
			const enum compare_algorithm algorithm = options->algorithms.items[a];

			is_admitted[k] = (s == 0 || compare_takes_size(algorithm)) &&
					 compare_admit(options, algorithm,
						 options->sizes.items[s], &set);
			n_admitted += is_admitted[k];
			if (!is_admitted[k] && !options->is_all &&
				(s == 0 || compare_takes_size(algorithm)))
				ret = -EINVAL;
		}
		compare_warn_shares(options, options->sizes.items[s], &set);
	}
	compare_set_fini(&set);
	return n_admitted == 0 ? -EINVAL : ret;
}

/** All cases of one number of backends. */
static int
measure_backends(struct run *run, size_t n)
{
	const struct compare_options *options = run->options;
	bool is_admitted[OPTIONS_LIST_MAX * COMPARE_N_ALGORITHMS];
	const int ret = admit_cases(run, n, is_admitted);

	if (ret != 0)
		return ret;
	for (size_t k = 0; k < options->sizes.n * options->algorithms.n; k++) {
		const uint32_t n_slots = options->sizes.items[k / options->algorithms.n];
		const uint32_t algorithm = options->algorithms.items[k % options->algorithms.n];
		const int failed =
			is_admitted[k] ? measure_case(run, algorithm, n, n_slots) : 0;

		if (failed != 0)
			return failed;
	}
	return 0;
}

static int
measure_all(struct run *run)
{
	for (size_t b = 0; b < run->results.backends.n; b++) {
		const int ret = measure_backends(run, run->results.backends.items[b]);

		if (ret != 0)
			return ret;
	}
	return 0;
}

static uint32_t
largest_size(const struct compare_options *options)
{
	uint32_t largest = LB_SLOTS16K;

	for (size_t i = 0; i < options->sizes.n; i++) {
		if (options->sizes.items[i] > largest)
			largest = options->sizes.items[i];
	}
	return largest;
}

static int
run_with(struct run *run)
{
	const struct compare_options *options = run->options;
	struct compare_results *results = &run->results;
	int ret;

	*results = (struct compare_results){
		.items = calloc(options->algorithms.n * options->backends.n * options->sizes.n,
			sizeof(*results->items)),
		.backends = options->backends,
		.sizes = options->sizes,
		.weights = options->weights.text,
		.n_seeds = options->n_seeds,
		.n_keys = options->n_keys,
	};
	if (results->items == NULL)
		return -ENOMEM;
	if (run->file_set != NULL)
		results->backends = (struct options_list){{(uint32_t)run->file_set->n}, 1};
	ret = compare_sample_init(options->n_keys, largest_size(options), &run->sample);
	if (ret == 0)
		ret = measure_all(run);
	compare_sample_fini(&run->sample);
	if (ret != 0)
		compare_results_fini(results);
	return ret;
}

int
compare_run(const struct compare_options *options, struct compare_results *out)
{
	struct run run = {.options = options};
	struct compare_set set = {0};
	int ret = 0;

	if (options->weights.file != NULL) {
		ret = compare_set_read(options->weights.file, &set);
		run.file_set = &set;
	}
	if (ret == 0)
		ret = run_with(&run);
	compare_set_fini(&set);
	if (ret == 0)
		*out = run.results;
	return compare_tell_failure(ret);
}

void
compare_results_fini(struct compare_results *results)
{
	free(results->items);
	*results = (struct compare_results){0};
}
