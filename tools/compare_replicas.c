/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_replicas.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_replicas_parts.h"
#include "compare_table_parts.h"
#include "lb_hash.h"
#include "lb_owners.h"

#define KEYS_DEFAULT 65536u
#define KEY_SEED     0x636f7079u
#define KEY_STREAM   5u

/** What owners are looked up in: backends in canonical order, and theirs by that order. */
struct ranker {
	struct lb_ring *ring;
	struct lb_ring_backend *on_ring;
	struct lb_hrw_backend *by_hrw;
	struct lb_hrw_log2 log2;
	uint32_t *zones;
	size_t n;
};

struct named_zone {
	const char *zone; /* NULL: one of its own */
	uint32_t at;      /* in canonical order */
};

static int
compare_zones(const void *a, const void *b)
{
	const struct named_zone *x = a, *y = b;

	if (x->zone == NULL || y->zone == NULL)
		return (x->zone == NULL) - (y->zone == NULL);
	return strcmp(x->zone, y->zone);
}

/** Number the zones. */
static int
number_zones(const struct cfg_service *service, struct ranker *ranker,
	struct compare_replicas_result *result)
{
	struct named_zone *sorted = malloc(ranker->n * sizeof(*sorted));
	uint32_t n_zones = 0;

	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < ranker->n; i++)
		sorted[i] = (struct named_zone){
			service->backends[ranker->on_ring[i].index].zone,
			(uint32_t)i,
		};
	qsort(sorted, ranker->n, sizeof(*sorted), compare_zones);
	for (size_t i = 0; i < ranker->n; i++) {
		const bool is_known = i > 0 && sorted[i].zone != NULL &&
				      compare_zones(&sorted[i], &sorted[i - 1]) == 0;

		n_zones += !is_known;
		ranker->zones[sorted[i].at] = n_zones - 1;
		result->has_zones |= sorted[i].zone != NULL;
	}
	free(sorted);
	result->n_zones = n_zones;
	return 0;
}

static void
fini_ranker(struct ranker *ranker)
{
	lb_ring_destroy(ranker->ring);
	free(ranker->on_ring);
	free(ranker->by_hrw);
	free(ranker->zones);
}

/** What there is of it is the caller's, also on error. */
static int
init_ranker(const struct compare_set *set, uint64_t hash_seed, struct ranker *out)
{
	int ret;

	out->on_ring = malloc(set->n * sizeof(*out->on_ring));
	out->by_hrw = malloc(set->n * sizeof(*out->by_hrw));
	out->zones = malloc(set->n * sizeof(*out->zones));
	if (out->on_ring == NULL || out->by_hrw == NULL || out->zones == NULL)
		return -ENOMEM;
	ret = compare_order_ring(set, hash_seed, out->on_ring, &out->n);
	if (ret != 0)
		return ret;
	for (size_t i = 0; i < out->n; i++)
		out->by_hrw[i] = (struct lb_hrw_backend){
			.h_1 = out->on_ring[i].h_1,
			.weight = out->on_ring[i].weight,
			.index = out->on_ring[i].index,
		};
	lb_hrw_log2_init(&out->log2);
	return lb_ring_create(out->on_ring, out->n, &out->ring);
}

static size_t
find_owners(const struct ranker *ranker, enum compare_algorithm algorithm, uint64_t key,
	const uint32_t *zones, size_t k, uint32_t *owners)
{
	const struct lb_owners_hrw hrw = {ranker->by_hrw, ranker->n, &ranker->log2, zones};

	if (algorithm == COMPARE_RING)
		return lb_owners_on_ring(ranker->ring, key, zones, k, owners);
	return lb_owners_by_hrw(&hrw, key, k, owners);
}

/** Zones of n owners: whether each has another, and whether all have the same. */
static void
judge_zones(const struct ranker *ranker, const uint32_t *owners, size_t n, uint64_t *n_apart,
	uint32_t *n_lost_of_zone)
{
	bool is_apart = true, is_same = true;

	for (size_t i = 1; i < n; i++) {
		const uint32_t zone = ranker->zones[owners[i]];

		is_same &= zone == ranker->zones[owners[0]];
		for (size_t j = 0; j < i; j++)
			is_apart &= zone != ranker->zones[owners[j]];
	}
	*n_apart += is_apart;
	if (is_same)
		n_lost_of_zone[ranker->zones[owners[0]]]++;
}

static uint32_t
find_largest(const uint32_t *counts, size_t n)
{
	uint32_t largest = 0;

	for (size_t i = 0; i < n; i++)
		largest = counts[i] > largest ? counts[i] : largest;
	return largest;
}

/** Ask for all keys, with zones and without. */
static int
judge_keys(const struct ranker *ranker, const struct compare_replicas_result *result,
	struct compare_ranking *ranking)
{
	uint32_t owners[COMPARE_REPLICAS_MAX];
	uint32_t *lost = calloc(result->n_zones, sizeof(*lost));
	uint32_t *lost_by_rank = calloc(result->n_zones, sizeof(*lost_by_rank));
	const size_t k = result->n_owners;
	int ret = -ENOMEM;

	if (lost == NULL || lost_by_rank == NULL)
		goto free_all;
	for (uint32_t i = 0; i < result->n_keys; i++) {
		const uint64_t key = compare_random(KEY_SEED, KEY_STREAM, i);

		(void)find_owners(ranker, ranking->algorithm, key, NULL, k, owners);
		judge_zones(ranker, owners, k, &ranking->n_apart_by_rank, lost_by_rank);
		(void)find_owners(ranker, ranking->algorithm, key, ranker->zones, k, owners);
		judge_zones(ranker, owners, k, &ranking->n_apart, lost);
		ranking->n_first[ranker->on_ring[owners[0]].index]++;
		for (size_t j = 0; j < k; j++)
			ranking->n_copies[ranker->on_ring[owners[j]].index]++;
	}
	ranking->n_lost = find_largest(lost, result->n_zones);
	ranking->n_lost_by_rank = find_largest(lost_by_rank, result->n_zones);
	ret = 0;

free_all:
	free(lost_by_rank);
	free(lost);
	return ret;
}

static void
place_examples(const struct ranker *ranker, const struct compare_replicas_result *result,
	struct compare_ranking *ranking)
{
	const struct compare_options *options = result->options;
	const size_t k = result->n_owners;

	for (size_t i = 0; i < options->n_examples; i++) {
		const char *text = options->examples[i];
		const uint64_t key =
			lb_hash_bytes(text, strlen(text), result->side->model.hash_seed);
		uint32_t *owners = ranking->examples + i * k;
		const size_t n =
			find_owners(ranker, ranking->algorithm, key, ranker->zones, k, owners);

		for (size_t j = 0; j < n; j++)
			owners[j] = ranker->on_ring[owners[j]].index;
	}
}

static int
rank_keys(const struct ranker *ranker, struct compare_replicas_result *result)
{
	const struct compare_options *options = result->options;
	const size_t n = result->side->set.n;

	for (size_t i = 0; i < options->algorithms.n; i++) {
		const enum compare_algorithm algorithm = options->algorithms.items[i];
		struct compare_ranking *ranking = &result->rankings[result->n_rankings];
		int ret;

		if (algorithm != COMPARE_RING && algorithm != COMPARE_RENDEZVOUS)
			continue;
		result->n_rankings++;
		*ranking = (struct compare_ranking){
			.algorithm = algorithm,
			.n_first = calloc(n, sizeof(*ranking->n_first)),
			.n_copies = calloc(n, sizeof(*ranking->n_copies)),
			.examples = calloc(options->n_examples * result->n_owners + 1,
				sizeof(*ranking->examples)),
		};
		if (ranking->n_first == NULL || ranking->n_copies == NULL ||
			ranking->examples == NULL)
			return -ENOMEM;
		ret = judge_keys(ranker, result, ranking);
		if (ret != 0)
			return ret;
		place_examples(ranker, result, ranking);
	}
	return 0;
}

static void
warn_of_shortage(const struct compare_replicas_result *result)
{
	if (result->n_owners < result->n_wanted)
		(void)fprintf(stderr,
			"shunt-compare: warning: %" PRIu32 " copies are wanted, and %" PRIu32
			" backends take any: there is one on each\n",
			result->n_wanted, result->n_owners);
	if (result->n_zones < result->n_owners)
		(void)fprintf(stderr,
			"shunt-compare: warning: there are %" PRIu32 " zones for %" PRIu32
			" copies: some share one\n",
			result->n_zones, result->n_owners);
}

/** Those that take no new flows get no copies. */
static int
keep_takers(struct compare_side *side)
{
	const char *wants;

	for (size_t i = 0; i < side->set.n; i++)
		side->set.backends[i].weight = compare_set_weight(&side->set.backends[i]);
	wants = compare_check_size(COMPARE_RING, LB_SLOTS_MAX, &side->set, 1);
	if (wants == NULL)
		return 0;
	(void)fprintf(stderr, "shunt-compare: ring %s\n", wants);
	return -EINVAL;
}

static int
place_copies(const struct compare_options *options, struct compare_side *side,
	struct ranker *ranker, struct compare_replicas_result *result)
{
	int ret = compare_side_read(options, options->config, side);

	if (ret == 0)
		ret = keep_takers(side);
	if (ret == 0)
		ret = init_ranker(&side->set, side->model.hash_seed, ranker);
	if (ret == 0)
		ret = number_zones(side->service, ranker, result);
	if (ret != 0)
		return ret;
	result->n_owners =
		options->n_replicas < ranker->n ? options->n_replicas : (uint32_t)ranker->n;
	warn_of_shortage(result);
	return rank_keys(ranker, result);
}

static void
fini_result(struct compare_replicas_result *result)
{
	for (size_t i = 0; i < result->n_rankings; i++) {
		free(result->rankings[i].n_first);
		free(result->rankings[i].n_copies);
		free(result->rankings[i].examples);
	}
}

int
compare_replicas(const struct compare_options *options)
{
	struct compare_side side = {.n_slots = 0};
	struct ranker ranker = {.n = 0};
	struct compare_replicas_result result = {
		.options = options,
		.side = &side,
		.n_keys = options->has_keys ? options->n_keys : KEYS_DEFAULT,
		.n_wanted = options->n_replicas,
	};
	int ret = place_copies(options, &side, &ranker, &result);

	if (ret == 0)
		ret = options->is_json ? compare_replicas_report_json(&result)
				       : compare_replicas_report_text(&result);
	if (ret != -EIO)
		(void)compare_tell_failure(ret);
	fini_result(&result);
	fini_ranker(&ranker);
	compare_side_fini(&side);
	return ret;
}
