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

	atomic_init(&table->n_refs, 1);
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
	/* Relaxed: who holds one gives nothing away with another. */
	atomic_fetch_add_explicit(&table->n_refs, 1, memory_order_relaxed);
}

void
dp_table_release(struct dp_table *table)
{
	/* Acquire and release: pairs with itself, so that all others are done before the last
	 * one frees. */
	if (table == NULL ||
		atomic_fetch_sub_explicit(&table->n_refs, 1, memory_order_acq_rel) > 1)
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

bool
dp_table_pick(const struct dp_table *table, uint64_t pick, uint32_t *slot, uint32_t *id)
{
	if (table->picker == NULL)
		return false;
	*slot = lb_picker_slot(table->picker, pick);
	*id = table->ids[lb_picker_backend(table->picker, *slot)];
	return true;
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

/* Networks of all ports lie in one array. */
static int
copy_answering(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct lb_prefix *networks;
	size_t n_networks = 0;

	for (size_t i = 0; i < conf->n_ports; i++)
		n_networks += conf->ports[i].n_networks;
	snapshot->answering_mem = calloc(conf->n_ports + 1, sizeof(*snapshot->answering_mem));
	snapshot->networks_mem = calloc(n_networks + 1, sizeof(*snapshot->networks_mem));
	if (snapshot->answering_mem == NULL || snapshot->networks_mem == NULL)
		return -ENOMEM;
	snapshot->answering = snapshot->answering_mem;

	networks = snapshot->networks_mem;
	for (size_t i = 0; i < conf->n_ports; i++) {
		const struct dp_snapshot_port_conf *from = &conf->ports[i];

		if (!from->answers)
			continue;
		snapshot->answering_mem[snapshot->n_answering++] = (struct dp_answering_port){
			.id = from->id,
			.mac = from->mac,
			.networks = networks,
			.n_networks = from->n_networks,
		};
		for (size_t k = 0; k < from->n_networks; k++) {
			*networks = from->networks[k];
			networks->addr = lb_addr_mask(&networks->addr, networks->n_bits);
			networks++;
		}
	}
	return 0;
}

const struct dp_answering_port *
dp_snapshot_find_answering(const struct dp_snapshot *snapshot, uint16_t id)
{
	for (size_t i = 0; i < snapshot->n_answering; i++) {
		if (snapshot->answering[i].id == id)
			return &snapshot->answering[i];
	}
	return NULL;
}

/* Of the same family: ::/0 has no IPv4 address on it. */
static bool
is_on_network(const struct lb_prefix *network, const struct lb_addr *addr)
{
	const struct lb_addr masked = lb_addr_mask(addr, network->n_bits);

	return lb_addr_is_v4(&network->addr) == lb_addr_is_v4(addr) &&
	       lb_addr_equal(&masked, &network->addr);
}

bool
dp_snapshot_answers_for(const struct dp_snapshot *snapshot,
	const struct dp_answering_port *port, const struct lb_addr *target)
{
	for (size_t i = 0; i < port->n_networks; i++) {
		if (is_on_network(&port->networks[i], target))
			return lb_service_covers(snapshot->match, target);
	}
	return false;
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
	if (ret == 0)
		ret = copy_answering(snapshot, conf);
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
	free(snapshot->networks_mem);
	free(snapshot->answering_mem);
	dp_memory_free(snapshot->backends_mem, snapshot->n_ids * sizeof(struct dp_backend));
	dp_memory_free(snapshot->match_mem, snapshot->match_bytes);
	free(snapshot);
}
