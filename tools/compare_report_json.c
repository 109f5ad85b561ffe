/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#define SCHEMA     1
#define NAME_BYTES 40u

static int
add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

/** The mean, and beside it the extremes; null where there is no value. */
static int
add_figure(json_t *object, const char *key, const struct compare_figure *figure)
{
	const bool has_value = figure->n > 0;
	char name[NAME_BYTES];
	int failed =
		add(object, key, has_value ? json_real(compare_mean(figure)) : json_null());

	(void)snprintf(name, sizeof(name), "%s_max", key);
	failed |= add(object, name, has_value ? json_real(figure->max) : json_null());
	return failed;
}

static json_t *
describe_balance(const struct compare_result *result)
{
	const struct compare_figure *min = &result->min_over_mean;
	json_t *object = json_object();
	int failed = add_figure(object, "max_over_mean", &result->max_over_mean);

	failed |= add_figure(object, "min_over_mean", min);
	/* Of the least share it is the least that is the worst. */
	failed |= add(object, "min_over_mean_min",
		min->n > 0 ? json_real(min->min) : json_null());
	failed |= add_figure(object, "stddev_over_mean", &result->stddev_over_mean);
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *
describe_change(const struct compare_change_result *change)
{
	json_t *object = json_object();
	int failed = add(object, "change", json_string(change->change));

	failed |= add_figure(object, "moved", &change->moved);
	failed |= add_figure(object, "needless", &change->needless);
	failed |= add_figure(object, "moved_over_minimal", &change->moved_over_minimal);
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int
add_changes(json_t *object, const struct compare_result *result)
{
	json_t *list = json_array();
	int failed = add(object, "changes", list);

	for (size_t i = 0; i < result->n_changes; i++)
		failed |= json_array_append_new(list, describe_change(&result->changes[i]));
	return failed;
}

static json_t *
describe_result(const struct compare_results *results, const struct compare_result *result)
{
	const bool has_slots = result->n_slots > 0;
	json_t *object = json_object();
	int failed = add(object, "algorithm",
		json_string(compare_algorithm_words[result->algorithm]));

	failed |= add(object, "backends", json_integer((json_int_t)result->n_backends));
	failed |= add(object, "slots", has_slots ? json_integer(result->n_slots) : json_null());
	failed |= add(object, "weights", json_string(results->weights));
	failed |= add(object, "balance", describe_balance(result));
	failed |= add_changes(object, result);
	failed |= add_figure(object, "build_ms", &result->build_ms);
	failed |= add_figure(object, "build_over_plain", &result->build_over_plain);
	failed |= add_figure(object, "build_bytes", &result->build_bytes);
	failed |= add_figure(object, "lookup_ns", &result->lookup_ns);
	failed |= add_figure(object, "bytes", &result->bytes);
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int
describe_all(json_t *root, const struct compare_results *results)
{
	json_t *list = json_array();
	int failed = add(root, "schema", json_integer(SCHEMA));

	failed |= add(root, "seeds", json_integer(results->n_seeds));
	failed |= add(root, "keys", json_integer(results->n_keys));
	if (results->against != NULL) {
		failed |= add(root, "against", json_string(results->against));
		failed |= add(root, "backends_against",
			json_integer((json_int_t)results->n_backends_against));
	}
	failed |= add(root, "results", list);
	for (size_t i = 0; i < results->n; i++)
		failed |= json_array_append_new(list,
			describe_result(results, &results->items[i]));
	return failed != 0 ? -ENOMEM : 0;
}

int
compare_report_json(const struct compare_results *results)
{
	json_t *root = json_object();
	int ret = describe_all(root, results);

	if (ret == 0 && json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8)) != 0)
		ret = -EIO;
	json_decref(root);
	(void)printf("\n");
	if (ret == 0 && (fflush(stdout) != 0 || ferror(stdout) != 0))
		ret = -EIO;
	return ret;
}
