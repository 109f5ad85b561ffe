/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "compare_replicas_parts.h"

#define SCHEMA 1

static double
percent_of(uint64_t n, uint64_t of)
{
	return 100.0 * (double)n / (double)of;
}

static uint64_t
count_copies(const struct compare_replicas_result *result)
{
	return (uint64_t)result->n_keys * result->n_owners;
}

/** The backend's zone; NULL where it names none. */
static const char *
zone_of(const struct compare_replicas_result *result, size_t place)
{
	return result->side->service->backends[place].zone;
}

static void
print_backends(const struct compare_replicas_result *result)
{
	const struct compare_set *set = &result->side->set;
	const uint64_t sum = compare_set_weight_sum(set);

	(void)printf("%15s", "percent");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %15s", compare_algorithm_words[result->rankings[i].algorithm]);
	(void)printf("\n%7s %7s", "weight", "share");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %7s %7s", "first", "copies");
	(void)printf("  backend%s\n", result->has_zones ? " (zone)" : "");
	for (size_t b = 0; b < set->n; b++) {
		const struct compare_backend *backend = &set->backends[b];

		if (backend->weight == 0)
			continue;
		(void)printf("%7" PRIu32 " %7.2f", backend->weight,
			percent_of(backend->weight, sum));
		for (size_t i = 0; i < result->n_rankings; i++)
			(void)printf(" %7.2f %7.2f",
				percent_of(result->rankings[i].n_first[b], result->n_keys),
				percent_of(result->rankings[i].n_copies[b],
					count_copies(result)));
		(void)printf("  %s", backend->name);
		if (zone_of(result, b) != NULL)
			(void)printf(" (%s)", zone_of(result, b));
		(void)printf("\n");
	}
}

static void
print_zones(const struct compare_replicas_result *result)
{
	(void)printf("\n%15s", "percent");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %15s", compare_algorithm_words[result->rankings[i].algorithm]);
	(void)printf("\n%15s", "apart");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %15.2f",
			percent_of(result->rankings[i].n_apart, result->n_keys));
	(void)printf("\n%15s", "without zones");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %15.2f",
			percent_of(result->rankings[i].n_apart_by_rank, result->n_keys));
	(void)printf("\n%15s", "lost");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %15.2f", percent_of(result->rankings[i].n_lost, result->n_keys));
	(void)printf("\n%15s", "without zones");
	for (size_t i = 0; i < result->n_rankings; i++)
		(void)printf(" %15.2f",
			percent_of(result->rankings[i].n_lost_by_rank, result->n_keys));
	(void)printf("\n");
}

static void
print_owners(const struct compare_replicas_result *result,
	const struct compare_ranking *ranking, const uint32_t *owners)
{
	(void)printf("  %-12s", compare_algorithm_words[ranking->algorithm]);
	for (size_t j = 0; j < result->n_owners; j++) {
		const char *zone = zone_of(result, owners[j]);

		(void)printf("%s %s", j == 0 ? "" : ",",
			result->side->service->backends[owners[j]].name);
		if (zone != NULL)
			(void)printf(" (%s)", zone);
	}
	(void)printf("\n");
}

static void
print_examples(const struct compare_replicas_result *result)
{
	for (size_t e = 0; e < result->options->n_examples; e++) {
		(void)printf("\nkey %s\n", result->options->examples[e]);
		for (size_t i = 0; i < result->n_rankings; i++)
			print_owners(result, &result->rankings[i],
				result->rankings[i].examples + e * result->n_owners);
	}
}

static const char legend[] = "\n"
			     "share      what is a backend's by weight\n"
			     "first      keys whose first copy it has: what it serves\n"
			     "copies     its part of all copies: what it stores\n";

static const char zones_legend[] =
	"apart      keys whose copies are all in zones of their own\n"
	"lost       keys of which one zone, where it is the worst, takes all copies with it\n"
	"           Without zones copies go to the next backends by rank, whatever their "
	"zones.\n";

int
compare_replicas_report_text(const struct compare_replicas_result *result)
{
	(void)printf("%s, service %s: %" PRIu32 " cop%s of each of %" PRIu32 " keys",
		result->options->config, result->options->service, result->n_owners,
		result->n_owners == 1 ? "y" : "ies", result->n_keys);
	if (result->has_zones)
		(void)printf(", %" PRIu32 " zones", result->n_zones);
	(void)printf("\n\n");
	print_backends(result);
	if (result->has_zones)
		print_zones(result);
	print_examples(result);
	(void)fputs(legend, stdout);
	if (result->has_zones)
		(void)fputs(zones_legend, stdout);
	return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : -EIO;
}

static int
append(json_t *list, json_t *value)
{
	return json_array_append_new(list, value);
}

static json_t *
describe_backends(const struct compare_replicas_result *result,
	const struct compare_ranking *ranking)
{
	const struct compare_set *set = &result->side->set;
	const double sum = (double)compare_set_weight_sum(set);
	json_t *list = json_array();

	for (size_t b = 0; b < set->n; b++) {
		const struct compare_backend *backend = &set->backends[b];

		if (backend->weight == 0)
			continue;
		if (append(list,
			    json_pack("{s:s, s:s?, s:i, s:f, s:f, s:f}", "name", backend->name,
				    "zone", zone_of(result, b), "weight", (int)backend->weight,
				    "share", backend->weight / sum, "first",
				    ranking->n_first[b] / (double)result->n_keys, "copies",
				    ranking->n_copies[b] / (double)count_copies(result))) !=
			0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *
describe_examples(const struct compare_replicas_result *result,
	const struct compare_ranking *ranking)
{
	const struct compare_options *options = result->options;
	const size_t k = result->n_owners;
	json_t *list = json_array();
	int failed = 0;

	for (size_t e = 0; e < options->n_examples; e++) {
		json_t *owners = json_array();

		for (size_t j = 0; j < k; j++) {
			const uint32_t place = ranking->examples[e * k + j];

			failed |= append(owners,
				json_string(result->side->service->backends[place].name));
		}
		failed |= append(list,
			json_pack("{s:s, s:o}", "key", options->examples[e], "owners", owners));
	}
	if (failed == 0)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *
describe_ranking(const struct compare_replicas_result *result,
	const struct compare_ranking *ranking)
{
	const double n = result->n_keys;

	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:o, s:o}", "algorithm",
		compare_algorithm_words[ranking->algorithm], "apart",
		(double)ranking->n_apart / n, "apart_without_zones",
		(double)ranking->n_apart_by_rank / n, "lost", (double)ranking->n_lost / n,
		"lost_without_zones", (double)ranking->n_lost_by_rank / n, "backends",
		describe_backends(result, ranking), "examples",
		describe_examples(result, ranking));
}

int
compare_replicas_report_json(const struct compare_replicas_result *result)
{
	json_t *list = json_array();
	int failed = 0;
	json_t *root;
	int ret = 0;

	for (size_t i = 0; i < result->n_rankings; i++)
		failed |= append(list, describe_ranking(result, &result->rankings[i]));
	root = json_pack("{s:i, s:s, s:i, s:i, s:i, s:o}", "schema", SCHEMA, "service",
		result->options->service, "keys", (int)result->n_keys, "replicas",
		(int)result->n_owners, "zones", (int)result->n_zones, "results", list);
	if (root == NULL || failed != 0)
		ret = -ENOMEM;
	else if (json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8)) != 0)
		ret = -EIO;
	json_decref(root);
	(void)printf("\n");
	if (ret == 0 && (fflush(stdout) != 0 || ferror(stdout) != 0))
		ret = -EIO;
	return ret;
}
