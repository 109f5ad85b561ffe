/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms without slots.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "compare_table_parts.h"

int
compare_fill_buckets(struct compare_table *table, const struct compare_set *set)
{
	uint32_t *weights = malloc(set->n * sizeof(*weights));
	int ret = -ENOMEM;

	table->ends = malloc(set->n * sizeof(*table->ends));
	if (weights == NULL || table->ends == NULL)
		goto free_weights;
	for (size_t i = 0; i < set->n; i++)
		weights[i] = compare_set_weight(&set->backends[i]) / table->spec.unit;
	table->bytes = set->n * sizeof(*table->ends);
	ret = lb_buckets_init(weights, set->n, table->ends, &table->buckets);

free_weights:
	free(weights);
	return ret;
}

static uint32_t
count_buckets(const struct compare_table *table, const struct compare_backend *backend)
{
	return compare_set_weight(backend) / table->spec.unit;
}

static int
make_anchor(struct compare_table *table, uint32_t capacity)
{
	free(table->ids);
	table->ids = calloc(capacity, sizeof(*table->ids));
	table->anchor_buckets = calloc(capacity, sizeof(*table->anchor_buckets));
	table->bytes = capacity * sizeof(*table->anchor_buckets);
	return table->ids == NULL || table->anchor_buckets == NULL ? -ENOMEM : 0;
}

int
compare_fill_anchor(struct compare_table *table, const struct compare_set *set)
{
	uint64_t n_working = 0;
	uint32_t capacity, bucket = 0;
	int ret;

	for (size_t i = 0; i < set->n; i++)
		n_working += count_buckets(table, &set->backends[i]);
	if (n_working > COMPARE_ANCHOR_WORKING_MAX)
		return -E2BIG;
	capacity = (uint32_t)(n_working + n_working / 2 + 1);
	ret = make_anchor(table, capacity);
	if (ret != 0)
		return ret;
	for (size_t i = 0; i < set->n; i++) {
		const uint32_t n = count_buckets(table, &set->backends[i]);

		for (uint32_t k = 0; k < n; k++)
			table->ids[bucket++] = set->backends[i].id;
	}
	return lb_anchor_init(&table->anchor, table->anchor_buckets, capacity,
		(uint32_t)n_working);
}

/** How many buckets each backend has to give, or to get, by id. */
static void
count_changes(const struct compare_table *table, const struct compare_set *from,
	const struct compare_set *to, int64_t *changes)
{
	for (size_t i = 0; i < from->n; i++)
		changes[from->backends[i].id] -= count_buckets(table, &from->backends[i]);
	for (size_t i = 0; i < to->n; i++)
		changes[to->backends[i].id] += count_buckets(table, &to->backends[i]);
}

/** From the last down, so that a backend loses the buckets that it got last. */
static int
remove_buckets(struct compare_table *table, int64_t *changes)
{
	for (uint32_t b = table->anchor.capacity; b > 0; b--) {
		int64_t *change = &changes[table->ids[b - 1]];

		if (table->anchor_buckets[b - 1].n_after != 0 || *change >= 0)
			continue;
		if (lb_anchor_remove(&table->anchor, b - 1) != 0)
			return -E2BIG;
		++*change;
	}
	return 0;
}

static int
add_buckets(struct compare_table *table, size_t n_ids, int64_t *changes)
{
	for (size_t id = 0; id < n_ids; id++) {
		for (; changes[id] > 0; changes[id]--) {
			uint32_t bucket;

			if (lb_anchor_add(&table->anchor, &bucket) != 0)
				return -E2BIG;
			table->ids[bucket] = (uint32_t)id;
		}
	}
	return 0;
}

/*
 * Whoever takes over all there was would have to remove the last bucket before there is
 * another; then those that gain go first, if there is room.
 */
static int
apply_changes(struct compare_table *table, const struct compare_set *to, int64_t *changes)
{
	int64_t n_left = table->anchor.n_working;
	int ret;

	for (size_t id = 0; id < to->n_ids; id++)
		n_left += changes[id] < 0 ? changes[id] : 0;
	if (n_left > 0) {
		ret = remove_buckets(table, changes);
		return ret != 0 ? ret : add_buckets(table, to->n_ids, changes);
	}
	ret = add_buckets(table, to->n_ids, changes);
	return ret != 0 ? ret : remove_buckets(table, changes);
}

int
compare_follow_anchor(struct compare_table *table, const struct compare_table *before,
	const struct compare_set *from, const struct compare_set *to)
{
	const uint32_t capacity = before->anchor.capacity;
	int64_t *changes = calloc(to->n_ids, sizeof(*changes));
	int ret;

	if (changes == NULL)
		return -ENOMEM;
	ret = make_anchor(table, capacity);
	if (ret != 0)
		goto free_changes;
	memcpy(table->ids, before->ids, capacity * sizeof(*table->ids));
	memcpy(table->anchor_buckets, before->anchor_buckets,
		capacity * sizeof(*table->anchor_buckets));
	table->anchor = before->anchor;
	table->anchor.buckets = table->anchor_buckets;
	count_changes(table, from, to, changes);
	ret = apply_changes(table, to, changes);

free_changes:
	free(changes);
	return ret;
}

static void
digest_md5(const void *bytes, size_t n_bytes, uint8_t digest[LB_KETAMA_DIGEST_BYTES])
{
	/* It fails where the library has no MD5: then all points are one, for all to see. */
	if (EVP_Digest(bytes, n_bytes, digest, NULL, EVP_md5(), NULL) != 1)
		memset(digest, 0, LB_KETAMA_DIGEST_BYTES);
}

/** Of those alone that take flows: the clients take a dead server off their lists. */
static size_t
list_servers(struct compare_table *table, const struct compare_set *set,
	struct lb_ketama_server *servers)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++) {
		const struct compare_backend *backend = &set->backends[i];

		if (compare_set_weight(backend) == 0)
			continue;
		table->ids[n] = backend->id;
		servers[n++] = (struct lb_ketama_server){
			.name = backend->name,
			.name_bytes = backend->name_bytes,
			.weight = backend->weight,
		};
	}
	return n;
}

int
compare_fill_ketama(struct compare_table *table, const struct compare_set *set)
{
	struct lb_ketama_server *servers = malloc(set->n * sizeof(*servers));
	int ret = -ENOMEM;
	size_t n;

	if (servers == NULL)
		return -ENOMEM;
	n = list_servers(table, set, servers);
	table->n_points = lb_ketama_count(servers, n);
	table->bytes = table->n_points * sizeof(*table->points);
	table->points = malloc(table->bytes + 1);
	if (table->points != NULL)
		ret = lb_ketama_fill(servers, n, digest_md5, table->points);
	free(servers);
	return ret;
}
