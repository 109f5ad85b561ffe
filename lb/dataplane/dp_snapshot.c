/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dp_memory.h"
#include "lb_limits.h"

int
dp_table_create(const struct dp_table_conf *conf, struct dp_table **out)
{
	struct dp_table *table = calloc(1, sizeof(*table));
	int ret = -ENOMEM;

	if (table == NULL)
		return -ENOMEM;

	table->ids = calloc(conf->n_backends + 1, sizeof(*table->ids));
	if (table->ids == NULL)
		goto free_table;
	if (conf->n_backends > 0)
		memcpy(table->ids, conf->ids, conf->n_backends * sizeof(*table->ids));

	table->picker_bytes = lb_picker_bytes(conf->algorithm, conf->n_slots);
	if (table->picker_bytes == 0) {
		ret = -EINVAL;
		goto free_ids;
	}
	table->picker_mem = dp_memory_zalloc(table->picker_bytes);
	if (table->picker_mem == NULL)
		goto free_ids;

	ret = lb_picker_build(table->picker_mem, conf->algorithm, conf->n_slots,
		conf->hash_seed, conf->backends, conf->n_backends, &table->picker);
	if (ret == -ENOENT) { /* nobody to pick: there will be nothing to look up */
		dp_memory_free(table->picker_mem, table->picker_bytes);
		table->picker_mem = NULL;
		ret = 0;
	}
	if (ret != 0)
		goto free_picker;

	table->n_refs = 1;
	*out = table;
	return 0;

free_picker:
	dp_memory_free(table->picker_mem, table->picker_bytes);
free_ids:
	free(table->ids);
free_table:
	free(table);
	return ret;
}

void
dp_table_hold(struct dp_table *table)
{
	table->n_refs++;
}

void
dp_table_release(struct dp_table *table)
{
	if (table == NULL || --table->n_refs > 0)
		return;
	dp_memory_free(table->picker_mem, table->picker_bytes);
	free(table->ids);
	free(table);
}

void
dp_table_count(const struct dp_table *table, uint32_t *counts, size_t n)
{
	if (table->picker != NULL)
		lb_picker_count(table->picker, counts, n);
	else
		memset(counts, 0, n * sizeof(*counts));
}

static int
build_match(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct lb_service_match *matches;
	int ret;

	snapshot->match_bytes = lb_service_table_bytes(conf->n_services);
	if (snapshot->match_bytes == 0)
		return -EINVAL;

	matches = calloc(conf->n_services + 1, sizeof(*matches));
	if (matches == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < conf->n_services; i++) {
		matches[i] = conf->services[i].match;
		matches[i].service = (uint32_t)i;
	}

	ret = -ENOMEM;
	snapshot->match_mem = dp_memory_zalloc(snapshot->match_bytes);
	if (snapshot->match_mem != NULL)
		ret = lb_service_table_build(snapshot->match_mem, matches, conf->n_services,
			&snapshot->match);
	free(matches);
	return ret;
}

static int
copy_services(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct dp_service *services = calloc(conf->n_services + 1, sizeof(*services));

	if (services == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < conf->n_services; i++) {
		struct dp_table *table = conf->services[i].table;

		dp_table_hold(table);
		services[i].table = table;
		services[i].picker = table->picker;
		services[i].ids = table->ids;
		services[i].affinity = (uint8_t)conf->services[i].affinity;
		services[i].carry = conf->services[i].carry;
	}
	snapshot->services_mem = services;
	snapshot->services = services;
	snapshot->n_services = conf->n_services;
	return 0;
}

static int
build_backends(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	uint8_t *is_taken;
	int ret = -ENOMEM;

	for (size_t i = 0; i < conf->n_backends; i++) {
		if (conf->backends[i].id >= LB_BACKEND_IDS_MAX ||
			conf->backends[i].service >= conf->n_services)
			return -EINVAL;
		if (conf->backends[i].id >= snapshot->n_ids)
			snapshot->n_ids = conf->backends[i].id + 1;
	}

	is_taken = calloc(snapshot->n_ids + 1u, 1);
	if (is_taken == NULL)
		return -ENOMEM;
	snapshot->backends_mem = dp_memory_zalloc(snapshot->n_ids * sizeof(struct dp_backend));
	if (snapshot->backends_mem == NULL)
		goto free_taken;
	snapshot->backends = snapshot->backends_mem;

	for (size_t i = 0; i < conf->n_backends; i++) {
		const struct dp_backend_conf *from = &conf->backends[i];
		struct dp_backend *to = &snapshot->backends_mem[from->id];

		ret = is_taken[from->id] != 0 ? -EEXIST
					      : lb_encap_init(&to->encap, &from->encap);
		if (ret != 0)
			goto free_taken;
		is_taken[from->id] = 1;
		to->next_hop = from->next_hop;
		to->has_next_hop = from->has_next_hop;
		to->mtu = from->mtu;
		to->is_live = from->is_live;
		to->service = from->service;
		to->port = from->port;
	}
	ret = 0;

free_taken:
	free(is_taken);
	return ret;
}

int
dp_snapshot_create(const struct dp_snapshot_conf *conf, struct dp_snapshot **out)
{
	struct dp_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	int ret;

	if (snapshot == NULL)
		return -ENOMEM;
	snapshot->hash_seed = conf->hash_seed;
	snapshot->has_kernel = conf->has_kernel;

	ret = build_match(snapshot, conf);
	if (ret == 0)
		ret = build_backends(snapshot, conf);
	if (ret == 0)
		ret = copy_services(snapshot, conf);
	if (ret != 0) {
		dp_snapshot_destroy(snapshot);
		return ret;
	}

	*out = snapshot;
	return 0;
}

void
dp_snapshot_destroy(struct dp_snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	for (size_t i = 0; i < snapshot->n_services; i++)
		dp_table_release(snapshot->services_mem[i].table);
	free(snapshot->services_mem);
	dp_memory_free(snapshot->backends_mem, snapshot->n_ids * sizeof(struct dp_backend));
	dp_memory_free(snapshot->match_mem, snapshot->match_bytes);
	free(snapshot);
}
