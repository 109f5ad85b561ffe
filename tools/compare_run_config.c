/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two configurations of one service: what the change from one to the other moves.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_run_parts.h"
#include "lb_slots16k.h"
#include "lb_stable.h"

static int
tell_missing(const struct cfg_model *model, const char *file, const char *name)
{
	(void)fprintf(stderr, "shunt-compare: %s has no service '%s'; it has", file, name);
	for (size_t i = 0; i < model->n_services; i++)
		(void)fprintf(stderr, "%s %s", i == 0 ? "" : ",", model->services[i].name);
	(void)fprintf(stderr, "%s\n", model->n_services == 0 ? " none" : "");
	return -EINVAL;
}

static void
copy_backends(const struct cfg_service *service, struct compare_set *set)
{
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];

		set->backends[i] = (struct compare_backend){
			.name = backend->name,
			.name_bytes = (uint32_t)strlen(backend->name),
			.weight = backend->weight,
			.id = (uint32_t)i,
			.is_dead = backend->state != CFG_UP,
		};
	}
}

int
compare_side_read(const struct compare_options *options, const char *file,
	struct compare_side *side)
{
	const struct cfg_service *service;
	int ret;

	*side = (struct compare_side){.n_slots = 0};
	cfg_model_init(&side->model);
	ret = cfg_read_file(file, stderr, &side->model);
	if (ret != 0)
		return -EINVAL;
	service = cfg_find_service(&side->model, options->service, strlen(options->service));
	if (service == NULL)
		return tell_missing(&side->model, file, options->service);
	side->service = service;
	side->n_slots = options->has_sizes ? options->sizes.items[0] : service->n_slots;
	side->slack =
		service->algorithm == CFG_STABLE ? service->overload : LB_STABLE_SLACK_DEFAULT;
	side->set.n = service->n_backends;
	side->set.backends = calloc(service->n_backends + 1, sizeof(*side->set.backends));
	if (side->set.backends == NULL)
		return -ENOMEM;
	copy_backends(service, &side->set);
	if (compare_set_weight_sum(&side->set) > 0)
		return 0;
	(void)fprintf(stderr,
		"shunt-compare: %s: no backend of service '%s' takes new flows: there is "
		"nothing "
		"to compare\n",
		file, options->service);
	return -EINVAL;
}

void
compare_side_fini(struct compare_side *side)
{
	compare_set_fini(&side->set);
	cfg_model_fini(&side->model);
}

static int
compare_by_name(const void *a, const void *b)
{
	const struct compare_backend *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/** Give the backends of the second side the ids of those of their names in the first. */
static int
match_ids(const struct compare_set *from, struct compare_set *to)
{
	struct compare_backend *sorted = malloc((from->n + 1) * sizeof(*sorted));
	size_t n_ids = from->n;

	if (sorted == NULL)
		return -ENOMEM;
	memcpy(sorted, from->backends, from->n * sizeof(*sorted));
	qsort(sorted, from->n, sizeof(*sorted), compare_by_name);
	for (size_t i = 0; i < to->n; i++) {
		const struct compare_backend *found = bsearch(&to->backends[i], sorted, from->n,
			sizeof(*sorted), compare_by_name);

		to->backends[i].id = found != NULL ? found->id : (uint32_t)n_ids++;
	}
	free(sorted);
	to->n_ids = n_ids;
	return 0;
}

static int
check_sides(const struct compare_options *options, const struct compare_side *from,
	const struct compare_side *to)
{
	const char *what = NULL;

	if (from->model.hash_seed != to->model.hash_seed)
		what = "hash_seed";
	else if (from->service->affinity != to->service->affinity)
		what = "affinity";
	if (what == NULL)
		return 0;
	(void)fprintf(stderr,
		"shunt-compare: %s and %s have each another %s: all new flows are hashed anew, "
		"whatever the algorithm\n",
		options->config, options->against, what);
	return -EINVAL;
}

/** Owners of the keys, of tables whose numbers of slots differ. */
static size_t
own_by_keys(const struct compare_table *table, const struct compare_sample *sample,
	uint32_t *owners)
{
	compare_table_own_keys(table, sample->keys, sample->n, owners);
	compare_table_name_keys(table, sample->n, owners);
	return sample->n;
}

static int
measure_sides(const struct compare_sample *sample, const struct compare_side *from,
	const struct compare_side *to, struct compare_result *result)
{
	struct compare_spec spec = {
		.algorithm = result->algorithm,
		.n_slots = from->n_slots,
		.slack = from->slack,
		.hash_seed = from->model.hash_seed,
		.unit = compare_common_divisor(compare_unit(&from->set),
			compare_unit(&to->set)),
	};
	struct compare_table *before, *after;
	struct compare_moves moves;
	size_t n_owners;
	int ret = compare_measure_table(&spec, &from->set, sample, result, &before);

	if (ret != 0)
		return ret;
	spec.n_slots = to->n_slots;
	spec.slack = to->slack;
	ret = compare_table_follow(&spec, before, &from->set, &to->set, &after);
	if (ret != 0)
		goto destroy_before;
	if (compare_table_slots(before) == compare_table_slots(after)) {
		n_owners = compare_own(after, sample, sample->after);
	} else {
		(void)own_by_keys(before, sample, sample->before);
		n_owners = own_by_keys(after, sample, sample->after);
	}
	compare_table_destroy(after);
	ret = compare_measure_moves(sample, n_owners, &from->set, &to->set, &moves);
	if (ret == 0)
		compare_add_moves(&result->changes[0], &moves);

destroy_before:
	compare_table_destroy(before);
	return ret;
}

static bool
admit_both(const struct compare_options *options, enum compare_algorithm algorithm,
	const struct compare_side *from, const struct compare_side *to)
{
	return compare_admit(options, algorithm, from->n_slots, &from->set) &&
	       compare_admit(options, algorithm, to->n_slots, &to->set);
}

static int
measure_algorithms(const struct compare_options *options, const struct compare_sample *sample,
	const struct compare_side sides[2], struct compare_results *results)
{
	for (size_t i = 0; i < options->algorithms.n; i++) {
		struct compare_result *result = &results->items[results->n];
		int ret;

		*result = (struct compare_result){
			.algorithm = options->algorithms.items[i],
			.n_backends = sides[0].set.n,
			.n_changes = 1,
		};
		result->changes[0].change = "against";
		if (!admit_both(options, result->algorithm, &sides[0], &sides[1])) {
			if (!options->is_all)
				return -EINVAL;
			continue;
		}
		results->n++;
		/* What anchor has no room for has no figures. */
		ret = measure_sides(sample, &sides[0], &sides[1], result);
		if (ret != 0 && ret != -E2BIG && ret != -ENOENT)
			return ret;
	}
	return results->n == 0 ? -EINVAL : 0;
}

static enum compare_algorithm
name_configured(enum cfg_algorithm algorithm)
{
	for (uint32_t i = 0; i < COMPARE_N_ALGORITHMS; i++) {
		if (strcmp(compare_algorithm_words[i], cfg_algorithm_words[algorithm]) == 0)
			return (enum compare_algorithm)i;
	}
	return COMPARE_N_ALGORITHMS;
}

static int
measure_config(const struct compare_options *options, const struct compare_side sides[2],
	struct compare_results *out)
{
	const uint32_t n_slots =
		sides[0].n_slots > sides[1].n_slots ? sides[0].n_slots : sides[1].n_slots;
	struct compare_sample sample;
	struct compare_results results = {
		.items = calloc(options->algorithms.n, sizeof(*results.items)),
		.backends = {{(uint32_t)sides[0].set.n}, 1},
		.sizes = {{sides[0].n_slots}, 1},
		.weights = options->config,
		.n_seeds = 1,
		.n_keys = options->n_keys,
		.against = options->against,
		.n_backends_against = sides[1].set.n,
		.configured = name_configured(sides[0].service->algorithm),
	};
	int ret = -ENOMEM;

	if (results.items == NULL)
		return ret;
	ret = compare_sample_init(options->n_keys,
		n_slots > LB_SLOTS16K ? n_slots : LB_SLOTS16K, &sample);
	if (ret == 0) {
		ret = measure_algorithms(options, &sample, sides, &results);
		compare_sample_fini(&sample);
	}
	if (ret != 0)
		compare_results_fini(&results);
	else
		*out = results;
	return ret;
}

int
compare_run_config(const struct compare_options *options, struct compare_results *out)
{
	struct compare_side sides[2] = {0};
	int ret;

	ret = compare_side_read(options, options->config, &sides[0]);
	if (ret == 0)
		ret = compare_side_read(options, options->against, &sides[1]);
	if (ret == 0)
		ret = check_sides(options, &sides[0], &sides[1]);
	if (ret == 0)
		ret = match_ids(&sides[0].set, &sides[1].set);
	if (ret == 0) {
		sides[0].set.n_ids = sides[1].set.n_ids;
		compare_warn_shares(options, sides[0].n_slots, &sides[0].set);
		ret = measure_config(options, sides, out);
	}
	compare_side_fini(&sides[0]);
	compare_side_fini(&sides[1]);
	return compare_tell_failure(ret);
}
