/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_picker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_hash.h"
#include "lb_hrw.h"
#include "lb_limits.h"
#include "lb_maglev.h"
#include "lb_overlay.h"
#include "lb_prime.h"
#include "lb_ring.h"
#include "lb_stable.h"

/** One backend on its way into a table. */
struct candidate {
	const struct lb_picker_backend *backend;
	uint64_t h_0;
	uint32_t index; /* in the caller's array */
};

/** What the algorithms are given. */
struct build {
	const struct lb_picker_backend *backends;
	const uint32_t *places; /* of those of a weight above 0, in canonical order */
	size_t n;
	const struct lb_picker_conf *conf;
	uint16_t *slots;
};

static const char *const algorithm_names[] = {
	[LB_MAGLEV] = "maglev",
	[LB_RING] = "ring",
	[LB_RENDEZVOUS] = "rendezvous",
	[LB_STABLE] = "stable",
};

static_assert(LB_N_ELEMENTS(algorithm_names) == LB_N_ALGORITHMS, "a name for each");

const char *
lb_algorithm_name(enum lb_algorithm algorithm)
{
	return (unsigned int)algorithm < LB_N_ALGORITHMS ? algorithm_names[algorithm]
							 : "unknown";
}

int
lb_picker_check_slots(enum lb_algorithm algorithm, uint32_t n_slots)
{
	if ((unsigned int)algorithm >= LB_N_ALGORITHMS)
		return -EINVAL;
	if (n_slots < LB_SLOTS_MIN || n_slots > LB_SLOTS_MAX)
		return -EINVAL;
	if ((algorithm == LB_MAGLEV || algorithm == LB_STABLE) && !lb_is_prime(n_slots))
		return -EINVAL;
	return 0;
}

size_t
lb_picker_bytes(enum lb_algorithm algorithm, uint32_t n_slots)
{
	size_t bytes;

	if (lb_picker_check_slots(algorithm, n_slots) != 0)
		return 0;

	bytes = offsetof(struct lb_picker, slots) + n_slots * sizeof(uint16_t);
	return (bytes + LB_CACHE_LINE - 1) / LB_CACHE_LINE * LB_CACHE_LINE;
}

static int
compare_names(const struct lb_picker_backend *a, const struct lb_picker_backend *b)
{
	const uint32_t n_bytes = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
	const int order = memcmp(a->name, b->name, n_bytes);

	if (order != 0)
		return order;
	return (a->name_bytes > b->name_bytes) - (a->name_bytes < b->name_bytes);
}

/** Canonical order. */
static int
compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->h_0 != y->h_0)
		return x->h_0 < y->h_0 ? -1 : 1;
	return compare_names(x->backend, y->backend);
}

static int
check_backends(const struct lb_picker_backend *backends, size_t n)
{
	if (n > LB_SERVICE_BACKENDS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (backends[i].name_bytes < 1 || backends[i].name_bytes > LB_NAME_BYTES_MAX)
			return -EINVAL;
		if (backends[i].weight > LB_WEIGHT_MAX)
			return -EINVAL;
	}
	return 0;
}

/** Refuses two of one name; the first *n_left places are the result. */
static int
order_candidates(struct candidate *candidates, size_t n, uint32_t *places, size_t *n_left)
{
	size_t left = 0;

	qsort(candidates, n, sizeof(*candidates), compare_candidates);
	for (size_t i = 1; i < n; i++) {
		if (compare_candidates(&candidates[i - 1], &candidates[i]) == 0)
			return -EEXIST;
	}
	for (size_t i = 0; i < n; i++) {
		if (candidates[i].backend->weight > 0)
			places[left++] = candidates[i].index;
	}
	*n_left = left;
	return 0;
}

int
lb_picker_order(const struct lb_picker_backend *backends, size_t n, uint64_t hash_seed,
	uint32_t *places, size_t *n_left)
{
	struct candidate *candidates;
	int ret = check_backends(backends, n);

	if (ret != 0)
		return ret;
	candidates = malloc((n + 1) * sizeof(*candidates));
	if (candidates == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		candidates[i] = (struct candidate){
			.backend = &backends[i],
			.h_0 = lb_hash_name(backends[i].name, backends[i].name_bytes, hash_seed,
				0),
			.index = (uint32_t)i,
		};
	}
	ret = order_candidates(candidates, n, places, n_left);
	free(candidates);
	return ret;
}

static uint64_t
hash_backend(const struct build *build, size_t i, unsigned int k)
{
	const struct lb_picker_backend *backend = &build->backends[build->places[i]];

	return lb_hash_name(backend->name, backend->name_bytes, build->conf->hash_seed, k);
}

static int
fill_maglev(const struct build *build)
{
	struct lb_maglev_backend *backends = malloc(build->n * sizeof(*backends));
	int ret;

	if (backends == NULL)
		return -ENOMEM;

	for (size_t i = 0; i < build->n; i++) {
		backends[i] = lb_maglev_backend(hash_backend(build, i, 1),
			hash_backend(build, i, 2), build->conf->n_slots);
		backends[i].weight = build->backends[build->places[i]].weight;
		backends[i].index = build->places[i];
	}
	ret = lb_maglev_fill(backends, build->n, build->conf->n_slots, build->slots);
	free(backends);
	return ret;
}

static int
fill_ring(const struct build *build)
{
	struct lb_ring_backend *backends = malloc(build->n * sizeof(*backends));
	struct lb_ring *ring;
	int ret;

	if (backends == NULL)
		return -ENOMEM;

	for (size_t i = 0; i < build->n; i++) {
		backends[i] = (struct lb_ring_backend){
			.h_1 = hash_backend(build, i, 1),
			.weight = build->backends[build->places[i]].weight,
			.index = build->places[i],
		};
	}
	ret = lb_ring_create(backends, build->n, &ring);
	free(backends);
	if (ret != 0)
		return ret;

	lb_ring_fill(ring, build->conf->n_slots, build->slots);
	lb_ring_destroy(ring);
	return 0;
}

static int
fill_rendezvous(const struct build *build)
{
	struct lb_hrw_backend *backends = malloc(build->n * sizeof(*backends));
	int ret;

	if (backends == NULL)
		return -ENOMEM;

	for (size_t i = 0; i < build->n; i++) {
		backends[i] = (struct lb_hrw_backend){
			.h_1 = hash_backend(build, i, 1),
			.weight = build->backends[build->places[i]].weight,
			.index = build->places[i],
		};
	}
	ret = lb_hrw_fill(backends, build->n, build->conf->n_slots, build->slots);
	free(backends);
	return ret;
}

static int
fill_stable(const struct build *build)
{
	struct lb_stable_backend *backends = malloc(build->n * sizeof(*backends));
	int ret;

	if (backends == NULL)
		return -ENOMEM;

	for (size_t i = 0; i < build->n; i++) {
		backends[i] =
			lb_stable_backend(hash_backend(build, i, 1), hash_backend(build, i, 2),
				hash_backend(build, i, 3), build->conf->n_slots);
		backends[i].weight = build->backends[build->places[i]].weight;
		backends[i].index = build->places[i];
	}
	ret = lb_stable_fill(backends, build->n, build->conf->n_slots, build->conf->slack,
		build->slots);
	free(backends);
	return ret;
}

static int
run_algorithm(const struct build *build)
{
	if (build->n == 0)
		return -ENOENT;
	if (build->n > build->conf->n_slots)
		return -E2BIG;

	switch (build->conf->algorithm) {
	case LB_MAGLEV:
		return fill_maglev(build);
	case LB_RING:
		return fill_ring(build);
	case LB_RENDEZVOUS:
		return fill_rendezvous(build);
	case LB_STABLE:
		return fill_stable(build);
	case LB_N_ALGORITHMS:
		break;
	}
	return -EINVAL;
}

static int
check_conf(const struct lb_picker_conf *conf)
{
	if (conf->algorithm == LB_STABLE && conf->slack > LB_STABLE_SLACK_MAX)
		return -EINVAL;
	return lb_picker_check_slots(conf->algorithm, conf->n_slots);
}

int
lb_picker_build(void *mem, const struct lb_picker_conf *conf,
	const struct lb_picker_backend *backends, size_t n, const struct lb_picker **out)
{
	struct lb_picker *picker = mem;
	struct build build = {.backends = backends, .conf = conf, .slots = picker->slots};
	uint32_t *places;
	int ret = check_conf(conf);

	if (ret != 0)
		return ret;
	places = malloc((n + 1) * sizeof(*places));
	if (places == NULL)
		return -ENOMEM;

	ret = lb_picker_order(backends, n, conf->hash_seed, places, &build.n);
	if (ret != 0)
		goto free_places;

	picker->n_slots = conf->n_slots;
	build.places = places;
	ret = run_algorithm(&build);
	if (ret != 0)
		goto free_places;

	*out = picker;

free_places:
	free(places);
	return ret;
}

int
lb_picker_overlay(void *mem, const struct lb_picker *configured, const bool *is_dead,
	const struct lb_picker **out)
{
	struct lb_picker *picker = mem;
	const int ret =
		lb_overlay_fill(configured->slots, configured->n_slots, is_dead, picker->slots);

	if (ret != 0)
		return ret;
	picker->n_slots = configured->n_slots;
	*out = picker;
	return 0;
}

int
lb_picker_overlay_shares(void *mem, const struct lb_picker *configured, const uint8_t *shares,
	const struct lb_picker **out)
{
	struct lb_picker *picker = mem;
	const int ret = lb_overlay_fill_shares(configured->slots, configured->n_slots, shares,
		picker->slots);

	if (ret != 0)
		return ret;
	picker->n_slots = configured->n_slots;
	*out = picker;
	return 0;
}

uint32_t
lb_picker_slots(const struct lb_picker *picker)
{
	return picker->n_slots;
}

void
lb_picker_count(const struct lb_picker *picker, uint32_t *counts, size_t n)
{
	memset(counts, 0, n * sizeof(*counts));
	for (uint32_t slot = 0; slot < picker->n_slots; slot++)
		counts[picker->slots[slot]]++;
}
