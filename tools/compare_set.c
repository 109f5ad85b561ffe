/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_hash.h"
#include "lb_mul.h"

/* "backend-65536" and NUL. */
#define NAME_ROOM 16u

#define DEFAULT_WEIGHT 100u

enum stream { STREAM_WEIGHT, STREAM_CHANGE };

const char *const compare_change_words[] = {
	[COMPARE_REMOVE_ONE] = "remove-one",
	[COMPARE_ADD_ONE] = "add-one",
	[COMPARE_REWEIGHT] = "reweight",
	[COMPARE_DRAIN] = "drain",
	[COMPARE_REMOVE_TENTH] = "remove-tenth",
	[COMPARE_FAIL_TENTH] = "fail-tenth",
	[COMPARE_N_CHANGES] = NULL,
};

uint64_t
compare_random(uint64_t seed, uint64_t stream, uint64_t i)
{
	const uint64_t numbers[] = {stream, i};

	return lb_hash_bytes(numbers, sizeof(numbers), seed);
}

static uint32_t
draw_below(uint64_t seed, uint64_t i, uint32_t n)
{
	return (uint32_t)lb_mul_high(compare_random(seed, STREAM_CHANGE, i), n);
}

int
compare_set_make(size_t n, const struct compare_weights *weights, uint64_t seed,
	struct compare_set *out)
{
	const uint32_t n_weights = weights->most - weights->least + 1;
	struct compare_set set = {.n = n, .n_ids = n};

	set.backends = calloc(n, sizeof(*set.backends));
	set.names = malloc(n * NAME_ROOM);
	if (set.backends == NULL || set.names == NULL) {
		compare_set_fini(&set);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		char *name = set.names + i * NAME_ROOM;
		const uint64_t random = compare_random(seed, STREAM_WEIGHT, i);

		set.backends[i] = (struct compare_backend){
			.name = name,
			.name_bytes = (uint32_t)snprintf(name, NAME_ROOM, "backend-%zu", i + 1),
			.weight = weights->least + (uint32_t)lb_mul_high(random, n_weights),
			.id = (uint32_t)i,
		};
	}
	*out = set;
	return 0;
}

void
compare_set_fini(struct compare_set *set)
{
	free(set->backends);
	free(set->names);
	*set = (struct compare_set){0};
}

uint32_t
compare_set_weight(const struct compare_backend *backend)
{
	return backend->is_dead ? 0 : backend->weight;
}

uint64_t
compare_set_weight_sum(const struct compare_set *set)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < set->n; i++)
		sum += compare_set_weight(&set->backends[i]);
	return sum;
}

static bool
has_name(const struct compare_set *set, const char *name, uint32_t name_bytes)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct compare_backend *backend = &set->backends[i];

		if (backend->name_bytes == name_bytes &&
			memcmp(backend->name, name, name_bytes) == 0)
			return true;
	}
	return false;
}

/** Append a backend of a name that no other has, and the weight of the one in the middle. */
static int
add_one(const struct compare_set *before, struct compare_set *set)
{
	const struct compare_backend *middle = &before->backends[before->n / 2];
	int name_bytes;

	if (before->n == LB_SERVICE_BACKENDS_MAX)
		return -ENOENT;
	set->names = malloc(NAME_ROOM);
	if (set->names == NULL)
		return -ENOMEM;
	/* Of n + 1 names one is free. */
	for (size_t i = before->n + 1;; i++) {
		name_bytes = snprintf(set->names, NAME_ROOM, "backend-%zu", i);
		if (!has_name(before, set->names, (uint32_t)name_bytes))
			break;
	}
	set->backends[set->n++] = (struct compare_backend){
		.name = set->names,
		.name_bytes = (uint32_t)name_bytes,
		.weight = middle->weight > 0 ? middle->weight : DEFAULT_WEIGHT,
		.id = (uint32_t)before->n_ids,
	};
	return 0;
}

/** A tenth more, rounded, and 1 at least; a tenth less where more is no weight. */
static void
reweight(struct compare_backend *backend)
{
	const uint32_t tenth = (backend->weight + 5) / 10;
	const uint32_t step = tenth > 0 ? tenth : 1;

	if (backend->weight + step <= LB_WEIGHT_MAX)
		backend->weight += step;
	else
		backend->weight -= step;
}

static size_t
count_of(enum compare_change change, size_t n)
{
	const bool is_tenth = change == COMPARE_REMOVE_TENTH || change == COMPARE_FAIL_TENTH;

	return is_tenth && n > 10 ? n / 10 : 1;
}

/**
 * Draw whom a change is about, of those with a weight: the first places of those returned.
 *
 * @param places  Room for set->n; those with a weight, the drawn ones in front.
 * @return        How many have a weight.
 */
static size_t
draw_places(const struct compare_set *set, size_t n_drawn, uint64_t seed, uint32_t *places)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++) {
		if (compare_set_weight(&set->backends[i]) > 0)
			places[n++] = (uint32_t)i;
	}
	for (size_t i = 0; i < n_drawn && i < n; i++) {
		const size_t j = i + draw_below(seed, i, (uint32_t)(n - i));
		const uint32_t place = places[i];

		places[i] = places[j];
		places[j] = place;
	}
	return n;
}

static void
change_place(struct compare_set *set, enum compare_change change, uint32_t place)
{
	if (change == COMPARE_REWEIGHT)
		reweight(&set->backends[place]);
	else if (change == COMPARE_DRAIN || change == COMPARE_FAIL_TENTH)
		set->backends[place].is_dead = true;
	else
		set->backends[place].name = NULL; /* to be removed */
}

static void
close_gaps(struct compare_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++) {
		if (set->backends[i].name != NULL)
			set->backends[n++] = set->backends[i];
	}
	set->n = n;
}

static int
change_some(struct compare_set *set, enum compare_change change, uint64_t seed)
{
	uint32_t *places = malloc(set->n * sizeof(*places));
	const size_t n_drawn = count_of(change, set->n);
	size_t n;

	if (places == NULL)
		return -ENOMEM;
	n = draw_places(set, n_drawn, seed, places);
	for (size_t i = 0; i < n_drawn && i < n; i++)
		change_place(set, change, places[i]);
	free(places);
	close_gaps(set);
	if (n < n_drawn || compare_set_weight_sum(set) == 0)
		return -ENOENT;
	return 0;
}

int
compare_set_change(const struct compare_set *before, enum compare_change change, uint64_t seed,
	struct compare_set *out)
{
	struct compare_set set = {.n = before->n, .n_ids = before->n_ids + 1};
	int ret;

	set.backends = calloc(before->n + 1, sizeof(*set.backends));
	if (set.backends == NULL)
		return -ENOMEM;
	memcpy(set.backends, before->backends, before->n * sizeof(*set.backends));
	ret = change == COMPARE_ADD_ONE ? add_one(before, &set)
					: change_some(&set, change, seed);
	if (ret != 0) {
		compare_set_fini(&set);
		return ret;
	}
	*out = set;
	return 0;
}
