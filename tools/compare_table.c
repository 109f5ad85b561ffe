/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare_table_parts.h"
#include "lb_hash.h"
#include "lb_jump.h"
#include "lb_modulo.h"
#include "lb_mul.h"
#include "lb_picker.h"
#include "lb_ring.h"

const char *const compare_algorithm_words[] = {
	[COMPARE_MAGLEV] = "maglev",
	[COMPARE_STABLE] = "stable",
	[COMPARE_RING] = "ring",
	[COMPARE_BOUNDED] = "bounded",
	[COMPARE_RENDEZVOUS] = "rendezvous",
	[COMPARE_SLOTS] = "slots",
	[COMPARE_ANCHOR] = "anchor",
	[COMPARE_JUMP] = "jump",
	[COMPARE_KETAMA] = "ketama",
	[COMPARE_MODULO] = "modulo",
	[COMPARE_N_ALGORITHMS] = NULL,
};

/** The picker's name of an algorithm that it has; LB_N_ALGORITHMS otherwise. */
static enum lb_algorithm
picker_algorithm(enum compare_algorithm algorithm)
{
	switch (algorithm) {
	case COMPARE_MAGLEV:
		return LB_MAGLEV;
	case COMPARE_STABLE:
		return LB_STABLE;
	case COMPARE_RING:
		return LB_RING;
	case COMPARE_RENDEZVOUS:
		return LB_RENDEZVOUS;
	default:
		return LB_N_ALGORITHMS;
	}
}

bool
compare_takes_size(enum compare_algorithm algorithm)
{
	return picker_algorithm(algorithm) != LB_N_ALGORITHMS || algorithm == COMPARE_BOUNDED;
}

bool
compare_takes_unit(enum compare_algorithm algorithm)
{
	return algorithm == COMPARE_MODULO || algorithm == COMPARE_JUMP ||
	       algorithm == COMPARE_ANCHOR;
}

static uint64_t
count_points(const struct compare_set *set)
{
	uint64_t n = 0;

	for (size_t i = 0; i < set->n; i++)
		n += set->backends[i].weight > 0 ? lb_ring_points(set->backends[i].weight) : 0;
	return n;
}

static size_t
count_weighted(const struct compare_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++)
		n += set->backends[i].weight > 0;
	return n;
}

const char *
compare_check_size(enum compare_algorithm algorithm, uint32_t n_slots,
	const struct compare_set *set, uint32_t unit)
{
	const size_t n = count_weighted(set);
	const enum lb_algorithm picker = picker_algorithm(algorithm);

	if (algorithm == COMPARE_SLOTS)
		return set->n > LB_SLOTS16K_NODES_MAX ? "has 16384 slots, for as many backends"
						      : NULL;
	if (algorithm == COMPARE_ANCHOR &&
		compare_set_weight_sum(set) / unit > COMPARE_ANCHOR_WORKING_MAX)
		return "has room for 11184800 buckets, of which these weights want more";
	if (!compare_takes_size(algorithm))
		return NULL;
	if (picker != LB_N_ALGORITHMS && lb_picker_check_slots(picker, n_slots) != 0)
		return "takes a prime number of slots";
	if (n > n_slots)
		return "takes no more backends than slots";
	if ((algorithm == COMPARE_RING || algorithm == COMPARE_BOUNDED) &&
		count_points(set) > LB_RING_POINTS_MAX)
		return "has room for 16777216 points, 160 of them for a weight of 100";
	if (algorithm == COMPARE_RENDEZVOUS && (uint64_t)n * n_slots > LB_HRW_SCORES_MAX)
		return "would compute more than 2^33 scores, one for each slot and backend";
	return NULL;
}

uint32_t
compare_common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		const uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint32_t
compare_unit(const struct compare_set *set)
{
	uint32_t unit = 0;

	for (size_t i = 0; i < set->n; i++)
		unit = compare_common_divisor(unit, set->backends[i].weight);
	return unit;
}

static int
fill_parts(struct compare_table *table, const struct compare_set *set)
{
	switch (table->spec.algorithm) {
	case COMPARE_BOUNDED:
		return compare_fill_bounded(table, set);
	case COMPARE_SLOTS:
		return compare_fill_slots(table, NULL, set);
	case COMPARE_ANCHOR:
		return compare_fill_anchor(table, set);
	case COMPARE_JUMP:
	case COMPARE_MODULO:
		return compare_fill_buckets(table, set);
	case COMPARE_KETAMA:
		return compare_fill_ketama(table, set);
	default:
		return compare_fill_picker(table, picker_algorithm(table->spec.algorithm), set);
	}
}

/** A table with nothing in it but the ids of the backends, by place. */
static int
create_empty(const struct compare_spec *spec, const struct compare_set *set,
	struct compare_table **out)
{
	struct compare_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return -ENOMEM;
	table->spec = *spec;
	table->ids = malloc((set->n + 1) * sizeof(*table->ids));
	if (table->ids == NULL) {
		free(table);
		return -ENOMEM;
	}
	for (size_t i = 0; i < set->n; i++)
		table->ids[i] = set->backends[i].id;
	*out = table;
	return 0;
}

int
compare_table_create(const struct compare_spec *spec, const struct compare_set *set,
	struct compare_table **out)
{
	struct compare_table *table;
	int ret;

	if (compare_set_weight_sum(set) == 0)
		return -ENOENT;
	ret = create_empty(spec, set, &table);
	if (ret != 0)
		return ret;
	ret = fill_parts(table, set);
	if (ret != 0) {
		compare_table_destroy(table);
		return ret;
	}
	*out = table;
	return 0;
}

int
compare_table_follow(const struct compare_spec *spec, const struct compare_table *before,
	const struct compare_set *from, const struct compare_set *to,
	struct compare_table **out)
{
	const enum compare_algorithm algorithm = spec->algorithm;
	struct compare_table *table;
	int ret;

	if (algorithm != COMPARE_ANCHOR && algorithm != COMPARE_SLOTS)
		return compare_table_create(spec, to, out);
	if (compare_set_weight_sum(to) == 0)
		return -ENOENT;
	ret = create_empty(spec, to, &table);
	if (ret != 0)
		return ret;
	ret = algorithm == COMPARE_ANCHOR ? compare_follow_anchor(table, before, from, to)
					  : compare_fill_slots(table, before, to);
	if (ret != 0) {
		compare_table_destroy(table);
		return ret;
	}
	*out = table;
	return 0;
}

void
compare_table_destroy(struct compare_table *table)
{
	if (table == NULL)
		return;
	free(table->ids);
	free(table->picker_memory);
	free(table->slots);
	free(table->ends);
	free(table->anchor_buckets);
	free(table->points);
	free(table);
}

uint32_t
compare_table_slots(const struct compare_table *table)
{
	return table->n_slots;
}

size_t
compare_table_bytes(const struct compare_table *table)
{
	return table->bytes;
}

void
compare_table_own_slots(const struct compare_table *table, uint32_t *owners)
{
	for (uint32_t s = 0; s < table->n_slots; s++)
		owners[s] =
			table->ids[table->picker != NULL ? lb_picker_backend(table->picker, s)
							 : table->slots[s]];
}

/* A loop each, so that a lookup is all that is timed. */
void
compare_table_own_keys(const struct compare_table *table, const uint64_t *keys, size_t n,
	uint32_t *owners)
{
	const struct lb_picker *picker = table->picker;

	if (picker != NULL) {
		for (size_t i = 0; i < n; i++)
			owners[i] = lb_picker_backend(picker, lb_picker_slot(picker, keys[i]));
	} else if (table->slots != NULL) {
		for (size_t i = 0; i < n; i++)
			owners[i] = table->slots[lb_mul_high(keys[i], table->n_slots)];
	} else if (table->points != NULL) {
		for (size_t i = 0; i < n; i++)
			owners[i] = lb_ketama_owner(table->points, table->n_points,
				(uint32_t)(keys[i] >> 32));
	} else if (table->anchor_buckets != NULL) {
		for (size_t i = 0; i < n; i++)
			owners[i] = lb_anchor_owner(&table->anchor, keys[i]);
	} else if (table->spec.algorithm == COMPARE_JUMP) {
		for (size_t i = 0; i < n; i++)
			owners[i] = lb_jump_owner(&table->buckets, keys[i]);
	} else {
		for (size_t i = 0; i < n; i++)
			owners[i] = lb_modulo_owner(&table->buckets, keys[i]);
	}
}

void
compare_table_name_keys(const struct compare_table *table, size_t n, uint32_t *owners)
{
	for (size_t i = 0; i < n; i++)
		owners[i] = table->ids[owners[i]];
}
