/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of slots.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare_table_parts.h"
#include "lb_bounded.h"
#include "lb_hash.h"
#include "lb_overlay.h"

/** By place; NULL where nobody is dead. */
static int
list_dead(const struct compare_set *set, bool **out)
{
	bool *is_dead = NULL, has_dead = false;

	for (size_t i = 0; i < set->n; i++)
		has_dead |= set->backends[i].is_dead;
	if (has_dead) {
		is_dead = calloc(set->n, sizeof(*is_dead));
		if (is_dead == NULL)
			return -ENOMEM;
		for (size_t i = 0; i < set->n; i++)
			is_dead[i] = set->backends[i].is_dead;
	}
	*out = is_dead;
	return 0;
}

static int
overlay_picker(struct compare_table *table, size_t n_bytes, const bool *is_dead)
{
	void *memory = aligned_alloc(LB_CACHE_LINE, n_bytes);
	int ret;

	if (memory == NULL)
		return -ENOMEM;
	ret = lb_picker_overlay(memory, table->picker, is_dead, &table->picker);
	if (ret != 0) {
		free(memory);
		return ret;
	}
	free(table->picker_memory);
	table->picker_memory = memory;
	return 0;
}

/** A set as the picker takes it; to be freed. NULL: no memory. */
static struct lb_picker_backend *
list_backends(const struct compare_set *set)
{
	struct lb_picker_backend *backends = malloc((set->n + 1) * sizeof(*backends));

	for (size_t i = 0; backends != NULL && i < set->n; i++) {
		backends[i] = (struct lb_picker_backend){
			.name = set->backends[i].name,
			.name_bytes = set->backends[i].name_bytes,
			.weight = set->backends[i].weight,
		};
	}
	return backends;
}

static int
build_picker(struct compare_table *table, const struct lb_picker_conf *conf,
	const struct compare_set *set)
{
	struct lb_picker_backend *backends = list_backends(set);
	int ret;

	if (backends == NULL)
		return -ENOMEM;
	ret = lb_picker_build(table->picker_memory, conf, backends, set->n, &table->picker);
	free(backends);
	return ret;
}

int
compare_order(const struct compare_set *set, uint64_t hash_seed, uint32_t *places, size_t *n)
{
	struct lb_picker_backend *backends = list_backends(set);
	int ret;

	if (backends == NULL)
		return -ENOMEM;
	ret = lb_picker_order(backends, set->n, hash_seed, places, n);
	free(backends);
	return ret;
}

int
compare_fill_picker(struct compare_table *table, enum lb_algorithm algorithm,
	const struct compare_set *set)
{
	const struct lb_picker_conf conf = {
		.algorithm = algorithm,
		.n_slots = table->spec.n_slots,
		.slack = table->spec.slack,
		.hash_seed = table->spec.hash_seed,
	};
	const size_t n_bytes = lb_picker_bytes(algorithm, conf.n_slots);
	bool *is_dead = NULL;
	int ret;

	table->picker_memory = aligned_alloc(LB_CACHE_LINE, n_bytes);
	if (table->picker_memory == NULL)
		return -ENOMEM;
	ret = build_picker(table, &conf, set);
	if (ret != 0)
		return ret;
	table->n_slots = conf.n_slots;
	table->bytes = n_bytes;

	ret = list_dead(set, &is_dead);
	if (ret == 0 && is_dead != NULL)
		ret = overlay_picker(table, n_bytes, is_dead);
	free(is_dead);
	return ret;
}

int
compare_order_ring(const struct compare_set *set, uint64_t hash_seed,
	struct lb_ring_backend *backends, size_t *n)
{
	uint32_t *places = malloc((set->n + 1) * sizeof(*places));
	int ret;

	if (places == NULL)
		return -ENOMEM;
	ret = compare_order(set, hash_seed, places, n);
	for (size_t i = 0; ret == 0 && i < *n; i++) {
		const struct compare_backend *b = &set->backends[places[i]];

		backends[i] = (struct lb_ring_backend){
			.h_1 = lb_hash_name(b->name, b->name_bytes, hash_seed, 1),
			.weight = b->weight,
			.index = places[i],
		};
	}
	free(places);
	return ret;
}

static int
fill_from_ring(struct compare_table *table, const struct lb_ring *ring,
	const struct lb_ring_backend *backends, size_t n)
{
	struct lb_bounded bounded = {
		.ring = ring,
		.backends = backends,
		.n = n,
		.excess_pct = COMPARE_BOUNDED_PCT,
		.rooms = calloc(n, sizeof(*bounded.rooms)),
		.links = calloc(ring->n_points, sizeof(*bounded.links)),
	};
	int ret = -ENOMEM;

	table->slots = malloc(table->spec.n_slots * sizeof(*table->slots));
	if (bounded.rooms != NULL && bounded.links != NULL && table->slots != NULL)
		ret = lb_bounded_fill(&bounded, table->spec.n_slots, table->slots);
	free(bounded.rooms);
	free(bounded.links);
	return ret;
}

static int
overlay_slots(struct compare_table *table, const bool *is_dead)
{
	uint16_t *slots = malloc(table->n_slots * sizeof(*slots));
	int ret;

	if (slots == NULL)
		return -ENOMEM;
	ret = lb_overlay_fill(table->slots, table->n_slots, is_dead, slots);
	if (ret != 0) {
		free(slots);
		return ret;
	}
	free(table->slots);
	table->slots = slots;
	return 0;
}

int
compare_fill_bounded(struct compare_table *table, const struct compare_set *set)
{
	struct lb_ring_backend *backends = malloc(set->n * sizeof(*backends));
	struct lb_ring *ring = NULL;
	bool *is_dead = NULL;
	size_t n;
	int ret;

	if (backends == NULL)
		return -ENOMEM;
	ret = compare_order_ring(set, table->spec.hash_seed, backends, &n);
	if (ret == 0 && n == 0)
		ret = -ENOENT;
	if (ret == 0)
		ret = lb_ring_create(backends, n, &ring);
	if (ret == 0)
		ret = fill_from_ring(table, ring, backends, n);
	lb_ring_destroy(ring);
	free(backends);
	if (ret != 0)
		return ret;
	table->n_slots = table->spec.n_slots;
	table->bytes = table->n_slots * sizeof(*table->slots);

	ret = list_dead(set, &is_dead);
	if (ret == 0 && is_dead != NULL)
		ret = overlay_slots(table, is_dead);
	free(is_dead);
	return ret;
}

/** Nodes are known by their ids here, so that those that left keep theirs. */
static int
name_by_id(struct compare_table *table, const struct compare_set *set)
{
	free(table->ids);
	table->ids = malloc(set->n_ids * sizeof(*table->ids));
	if (table->ids == NULL)
		return -ENOMEM;
	for (size_t id = 0; id < set->n_ids; id++)
		table->ids[id] = (uint32_t)id;
	return 0;
}

static int
assign_slots(struct compare_table *table, const struct compare_table *before,
	struct lb_slots16k_node *nodes, size_t n)
{
	struct lb_slots16k_claim *claims;
	int ret;

	if (before == NULL)
		return lb_slots16k_assign(nodes, n, table->slots);

	claims = malloc(n * sizeof(*claims));
	if (claims == NULL)
		return -ENOMEM;
	memcpy(table->slots, before->slots, LB_SLOTS16K * sizeof(*table->slots));
	ret = lb_slots16k_rebalance(nodes, n, claims, table->slots);
	free(claims);
	return ret;
}

int
compare_fill_slots(struct compare_table *table, const struct compare_table *before,
	const struct compare_set *set)
{
	struct lb_slots16k_node *nodes = calloc(set->n_ids, sizeof(*nodes));
	int ret = -ENOMEM;

	table->slots = malloc(LB_SLOTS16K * sizeof(*table->slots));
	if (nodes == NULL || table->slots == NULL)
		goto free_nodes;
	for (size_t i = 0; i < set->n; i++)
		nodes[set->backends[i].id].weight = compare_set_weight(&set->backends[i]);
	ret = name_by_id(table, set);
	if (ret == 0)
		ret = assign_slots(table, before, nodes, set->n_ids);
	table->n_slots = LB_SLOTS16K;
	table->bytes = LB_SLOTS16K * sizeof(*table->slots);

free_nodes:
	free(nodes);
	return ret;
}
