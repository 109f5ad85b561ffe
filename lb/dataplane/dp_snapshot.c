/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_snapshot.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "dp_memory.h"
#include "lb_kept.h"
#include "lb_limits.h"
#include "lb_martian.h"
#include "lb_tunnel.h"

#define N_UDP_PORTS ((size_t)UINT16_MAX + 1)
#define LIVE_BITS   64u /* of a word of dp_snapshot.live */

/* Memory for a picker of the table. */
static int
take_picker_memory(struct dp_table *table, size_t n_bytes)
{
	table->picker_mem = dp_memory_zalloc(n_bytes);
	if (table->picker_mem == NULL)
		return -ENOMEM;
	table->picker_bytes = n_bytes;
	return 0;
}

static void
free_table(struct dp_table *table)
{
	dp_memory_free(table->picker_mem, table->picker_bytes);
	free(table->ids_mem);
	free(table);
}

/* What filling the picker said; nobody to pick is as good: there will be nothing to look up. */
static int
finish_table(struct dp_table *table, int ret)
{
	if (ret == -ENOENT) {
		dp_memory_free(table->picker_mem, table->picker_bytes);
		table->picker_mem = NULL;
		ret = 0;
	}
	if (ret != 0) {
		free_table(table);
		return ret;
	}
	atomic_init(&table->n_refs, 1);
	return 0;
}

int
dp_table_create(const struct dp_table_conf *conf, struct dp_table **out)
{
	const size_t n_bytes = lb_picker_bytes(conf->picker.algorithm, conf->picker.n_slots);
	struct dp_table *table = calloc(1, sizeof(*table));
	int ret;

	if (table == NULL)
		return -ENOMEM;

	table->ids_mem = calloc(conf->n_backends + 1, sizeof(*table->ids_mem));
	ret = table->ids_mem == NULL ? -ENOMEM : 0;
	if (ret == 0 && n_bytes == 0)
		ret = -EINVAL;
	if (ret == 0)
		ret = take_picker_memory(table, n_bytes);
	if (ret != 0) {
		free_table(table);
		return ret;
	}

	if (conf->n_backends > 0)
		memcpy(table->ids_mem, conf->ids, conf->n_backends * sizeof(*table->ids_mem));
	table->ids = table->ids_mem;
	ret = lb_picker_build(table->picker_mem, &conf->picker, conf->backends,
		conf->n_backends, &table->picker);
	ret = finish_table(table, ret);
	if (ret == 0)
		*out = table;
	return ret;
}

int
dp_table_overlay(struct dp_table *configured, const uint8_t *shares, struct dp_table **out)
{
	struct dp_table *table = calloc(1, sizeof(*table));
	int ret = -ENOENT;

	if (table == NULL)
		return -ENOMEM;

	table->ids = configured->ids;
	if (configured->picker != NULL) {
		ret = take_picker_memory(table, configured->picker_bytes);
		if (ret == 0)
			ret = lb_picker_overlay_shares(table->picker_mem, configured->picker,
				shares, &table->picker);
	}
	ret = finish_table(table, ret);
	if (ret != 0)
		return ret;
	table->base = configured;
	dp_table_hold(configured);
	*out = table;
	return 0;
}

int
dp_table_copy(struct dp_table *like, const uint32_t *ids, size_t n, struct dp_table **out)
{
	struct dp_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return -ENOMEM;
	table->ids_mem = calloc(n + 1, sizeof(*table->ids_mem));
	if (table->ids_mem == NULL) {
		free_table(table);
		return -ENOMEM;
	}
	if (n > 0)
		memcpy(table->ids_mem, ids, n * sizeof(*table->ids_mem));
	table->ids = table->ids_mem;
	table->picker = like->picker;
	table->picker_bytes = like->picker_bytes;
	/* Whose picker it is, so that copies of copies make no chain. */
	while (like->picker_mem == NULL && like->picker != NULL)
		like = like->base;
	table->base = like;
	dp_table_hold(like);
	atomic_init(&table->n_refs, 1);
	*out = table;
	return 0;
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
	while (table != NULL &&
		atomic_fetch_sub_explicit(&table->n_refs, 1, memory_order_acq_rel) == 1) {
		struct dp_table *base = table->base;

		free_table(table);
		table = base;
	}
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

static bool
has_more(const struct dp_service *service)
{
	return service->refused != 0 || service->affinity != LB_AFFINITY_5_TUPLE ||
	       service->quic != NULL;
}

/* Room for as many matches as there are services, and for what is kept from them. */
static struct lb_service_match *
allocate_matches(const struct dp_snapshot_conf *conf)
{
	size_t n = conf->n_services + LB_KEPT_GROUPS_MAX;

	for (size_t i = 0; i < conf->n_ports; i++)
		n += LB_KEPT_NETWORK_MAX * conf->ports[i].n_networks;
	return calloc(n, sizeof(struct lb_service_match));
}

/* What is kept from n services. @return how many there are with it. */
static size_t
append_kept(const struct dp_snapshot_conf *conf, struct lb_service_match *matches,
	size_t n_services)
{
	size_t n = lb_kept_groups(matches, n_services, n_services);

	for (size_t i = 0; i < conf->n_ports; i++)
		for (size_t k = 0; k < conf->ports[i].n_networks; k++)
			n = lb_kept_network(matches, n_services, n,
				&conf->ports[i].networks[k]);
	return n;
}

static int
build_table(const struct lb_service_match *matches, size_t n, void **mem, size_t *n_bytes,
	const struct lb_service_table **out)
{
	*n_bytes = lb_service_table_bytes(n);
	if (*n_bytes == 0)
		return -EINVAL;
	*mem = dp_memory_zalloc(*n_bytes);
	if (*mem == NULL)
		return -ENOMEM;
	return lb_service_table_build(*mem, matches, n, out);
}

/* Field by field: between them may be anything. */
static uint64_t
print_matches(const struct lb_service_match *matches, size_t n)
{
	uint64_t print = n;

	for (size_t i = 0; i < n; i++) {
		const struct lb_service_match *match = &matches[i];
		const uint32_t words[] = {match->prefix.n_bits, match->proto, match->port,
			match->service};

		print = lb_hash_bytes(match->prefix.addr.bytes, LB_ADDR_BYTES, print);
		print = lb_hash_bytes(words, sizeof(words), print);
	}
	return print;
}

static int
build_match(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct lb_service_match *matches;
	size_t n;
	int ret;

	if (conf->n_services > LB_SERVICES_MAX)
		return -EINVAL;
	matches = allocate_matches(conf);
	if (matches == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < conf->n_services; i++) {
		matches[i] = conf->services[i].match;
		matches[i].service = (uint32_t)i;
		if (has_more(&snapshot->services[i]))
			matches[i].service |= DP_MATCH_MORE;
		snapshot->has_odd_datagrams |= snapshot->services[i].refused != 0 ||
					       snapshot->services[i].quic != NULL;
	}
	n = append_kept(conf, matches, conf->n_services);
	snapshot->match_print = print_matches(matches, n);
	ret = build_table(matches, n, &snapshot->match_mem, &snapshot->match_bytes,
		&snapshot->match);
	free(matches);
	return ret;
}

static int
compare_prefixes(const void *a, const void *b)
{
	const struct lb_service_match *x = a;
	const struct lb_service_match *y = b;
	const int by_addr = memcmp(&x->prefix.addr, &y->prefix.addr, sizeof(x->prefix.addr));

	if (by_addr != 0)
		return by_addr;
	if (x->prefix.n_bits != y->prefix.n_bits)
		return x->prefix.n_bits < y->prefix.n_bits ? -1 : 1;
	return x->service < y->service ? -1 : x->service > y->service;
}

/* Of services that share a prefix the first has its echo requests. @return how many are left.
 */
static size_t
list_echo(const struct dp_snapshot_conf *conf, struct lb_service_match *out)
{
	size_t n = 0;

	for (size_t i = 0; i < conf->n_services; i++)
		out[i] = (struct lb_service_match){
			.prefix = conf->services[i].match.prefix,
			.service = (uint32_t)i,
		};
	qsort(out, conf->n_services, sizeof(*out), compare_prefixes);
	for (size_t i = 0; i < conf->n_services; i++)
		if (n == 0 || !lb_prefix_equal(&out[n - 1].prefix, &out[i].prefix))
			out[n++] = out[i];
	return n;
}

static int
build_echo(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct lb_service_match *matches = allocate_matches(conf);
	size_t n;
	int ret;

	if (matches == NULL)
		return -ENOMEM;
	n = append_kept(conf, matches, list_echo(conf, matches));
	ret = build_table(matches, n, &snapshot->echo_mem, &snapshot->echo_bytes,
		&snapshot->echo);
	free(matches);
	return ret;
}

/* Of the same family: ::/0 has no IPv4 address on it. */
static bool
is_on_network(const struct lb_prefix *network, const struct lb_addr *addr)
{
	const struct lb_addr masked = lb_addr_mask(addr, network->n_bits);

	return lb_addr_is_v4(&network->addr) == lb_addr_is_v4(addr) &&
	       lb_addr_equal(&masked, &network->addr);
}

/*
 * Services of a protocol, sorted: for each prefix one is left, the only one there if no shorter
 * prefix has those ports that it does not, and none of its clients' flows goes elsewhere than
 * another; otherwise nobody. What lies in a prefix follows it without a gap, so that of each
 * family the last outermost one is enough to look at. @return how many are left.
 */
static size_t
keep_portless(const struct dp_snapshot_conf *conf, struct lb_service_match *matches, size_t n)
{
	const struct lb_prefix *outermost[2] = {NULL, NULL};
	size_t n_kept = 0;
	size_t next;

	for (size_t i = 0; i < n; i = next) {
		const struct lb_service_match match = matches[i];
		const struct lb_prefix **outer = &outermost[lb_addr_is_v4(&match.prefix.addr)];
		const bool is_covered =
			*outer != NULL && is_on_network(*outer, &match.prefix.addr);
		struct lb_service_match *kept = &matches[n_kept++];

		for (next = i + 1; next < n; next++)
			if (!lb_prefix_equal(&matches[next].prefix, &match.prefix))
				break;
		*kept = (struct lb_service_match){.prefix = match.prefix,
			.service = (uint32_t)conf->n_services};
		if (next == i + 1 && (match.port == 0 || !is_covered) &&
			conf->services[match.service].affinity == LB_AFFINITY_SOURCE_IP)
			kept->service = match.service;
		if (!is_covered)
			*outer = &kept->prefix;
	}
	return n_kept;
}

static bool
has_by_source(const struct dp_snapshot_conf *conf)
{
	for (size_t i = 0; i < conf->n_services; i++) {
		if (conf->services[i].affinity == LB_AFFINITY_SOURCE_IP)
			return true;
	}
	return false;
}

/* The tables for TCP and UDP; empty where they would name nobody. */
static int
build_portless(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP};
	struct lb_service_match *matches = allocate_matches(conf);
	const size_t n_services = has_by_source(conf) ? conf->n_services : 0;
	int ret = matches == NULL ? -ENOMEM : 0;

	for (size_t p = 0; p < LB_N_ELEMENTS(protos) && ret == 0; p++) {
		size_t n = 0;

		for (size_t i = 0; i < n_services; i++) {
			matches[n] = conf->services[i].match;
			matches[n].service = (uint32_t)i;
			n += matches[n].proto == 0 || matches[n].proto == protos[p];
		}
		qsort(matches, n, sizeof(*matches), compare_prefixes);
		n = append_kept(conf, matches, keep_portless(conf, matches, n));
		ret = build_table(matches, n, &snapshot->portless_mem[p],
			&snapshot->portless_bytes[p], &snapshot->portless[p]);
	}
	free(matches);
	return ret;
}

static int
build_quic(const struct dp_service_conf *from, struct dp_service *to)
{
	if (from->n_quic == 0)
		return 0;
	to->quic_bytes = lb_quic_table_bytes(from->n_quic_servers);
	if (to->quic_bytes == 0)
		return -EINVAL;
	to->quic_mem = dp_memory_zalloc(to->quic_bytes);
	if (to->quic_mem == NULL)
		return -ENOMEM;
	return lb_quic_table_build(to->quic_mem, from->quic, from->n_quic, from->quic_servers,
		from->n_quic_servers, &to->quic);
}

/* All services' tunnels: another balancer has them, too, and they may come from there. */
static int
build_tunnels(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	static const uint16_t ports[] = {LB_GUE_PORT, LB_VXLAN_PORT, LB_GENEVE_PORT};
	uint8_t *tunnels = dp_memory_zalloc(N_UDP_PORTS);

	if (tunnels == NULL)
		return -ENOMEM;
	snapshot->tunnels_mem = tunnels;
	snapshot->tunnels = tunnels;
	for (size_t i = 0; i < LB_N_ELEMENTS(ports); i++)
		tunnels[ports[i]] = lb_tunnel_of_port(ports[i]);
	for (size_t i = 0; i < conf->n_services; i++)
		tunnels[conf->services[i].tunnel_port] |=
			lb_tunnel_of_mode(conf->services[i].forward);
	return 0;
}

static int
copy_services(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct dp_service *services = calloc(conf->n_services + 1, sizeof(*services));

	if (services == NULL)
		return -ENOMEM;
	snapshot->services_mem = services;
	snapshot->services = services;
	for (size_t i = 0; i < conf->n_services; i++) {
		const struct dp_service_conf *from = &conf->services[i];
		struct dp_table *table = from->table;
		int ret;

		dp_table_hold(table);
		snapshot->n_services++;
		services[i].table = table;
		services[i].picker = table->picker;
		services[i].ids = table->ids;
		services[i].affinity = (uint8_t)from->affinity;
		services[i].carry = from->carry;
		services[i].refused = lb_tunnel_refused(&from->match, from->carry,
			snapshot->tunnels[from->match.port], from->forward);
		services[i].echo = (uint8_t)from->echo;
		services[i].fragment = (uint8_t)from->fragment;
		services[i].mss_clamp = from->mss_clamp;
		services[i].number = from->number;
		ret = build_quic(from, &services[i]);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int
copy_own(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	size_t n = 0;

	for (size_t i = 0; i < conf->n_ports; i++)
		n += conf->ports[i].n_networks;
	snapshot->own_mem = calloc(n + 1, sizeof(*snapshot->own_mem));
	if (snapshot->own_mem == NULL)
		return -ENOMEM;
	snapshot->own = snapshot->own_mem;
	for (size_t i = 0; i < conf->n_ports; i++)
		for (size_t k = 0; k < conf->ports[i].n_networks; k++)
			snapshot->own_mem[snapshot->n_own++] = conf->ports[i].networks[k].addr;
	return 0;
}

/* The balancer's addresses, which are there, and services' of one address. */
static int
build_hosts(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	struct lb_addr *hosts = calloc(snapshot->n_own + conf->n_services + 1, sizeof(*hosts));
	size_t n = snapshot->n_own;

	if (hosts == NULL)
		return -ENOMEM;
	memcpy(hosts, snapshot->own, n * sizeof(*hosts));
	for (size_t i = 0; i < conf->n_services; i++)
		if (conf->services[i].match.prefix.n_bits == 8 * LB_ADDR_BYTES)
			hosts[n++] = conf->services[i].match.prefix.addr;
	snapshot->hosts_bytes = lb_martian_filter_words(n) * sizeof(uint64_t);
	snapshot->hosts_mem = dp_memory_zalloc(snapshot->hosts_bytes);
	if (snapshot->hosts_mem != NULL)
		lb_martian_filter_init(&snapshot->hosts, snapshot->hosts_mem, hosts, n);
	free(hosts);
	return snapshot->hosts_mem == NULL ? -ENOMEM : 0;
}

bool
dp_snapshot_is_martian(const struct dp_snapshot *snapshot, const struct lb_addr *source,
	const struct lb_addr *dst)
{
	return lb_martian_source(snapshot->match, snapshot->own, snapshot->n_own, source, dst);
}

static uint32_t
live_words(const struct dp_snapshot *snapshot)
{
	return (snapshot->n_ids + LIVE_BITS - 1) / LIVE_BITS;
}

bool
dp_snapshot_has_lost(const struct dp_snapshot *snapshot, const struct dp_snapshot *next)
{
	const uint32_t n_next = live_words(next);

	for (uint32_t i = 0; i < live_words(snapshot); i++)
		if ((snapshot->live[i] & ~(i < n_next ? next->live[i] : 0)) != 0)
			return true;
	return false;
}

/* All but its template, which is made. */
static void
fill_backend(struct dp_backend *to, const struct dp_backend_conf *from,
	const struct dp_snapshot_conf *conf)
{
	to->ether.dst = from->next_hop;
	to->ether.type_be =
		rte_cpu_to_be_16(to->encap.is_v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	if (from->port < conf->n_ports && conf->ports[from->port].has_mac) {
		to->ether.src = conf->ports[from->port].mac;
		to->has_source = true;
	}
	to->kind = (uint8_t)DP_KIND(to->encap.mode, to->encap.is_v6);
	to->has_next_hop = from->has_next_hop;
	to->mtu = from->mtu;
	to->is_live = from->is_live;
	to->service = from->service;
	to->port = (uint8_t)from->port;
	to->vlan = from->vlan;
	if (to->has_next_hop && to->is_live)
		to->plain_bytes = (uint16_t)(to->mtu - to->encap.n_bytes);
}

/* A service's packets are of its address' family. */
static void
note_kind(struct dp_snapshot *snapshot, uint8_t kind, const struct dp_service_conf *service)
{
	const bool is_v6 = !lb_addr_is_v4(&service->match.prefix.addr);

	snapshot->has_long[is_v6] |= dp_kind_is_long(kind);
}

static int
build_backends(struct dp_snapshot *snapshot, const struct dp_snapshot_conf *conf)
{
	uint8_t *is_taken;
	int ret = -ENOMEM;

	snapshot->fits_bytes = UINT16_MAX;
	snapshot->is_plain = true;
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
	snapshot->live = calloc(live_words(snapshot) + 1, sizeof(*snapshot->live));
	if (snapshot->live == NULL)
		goto free_taken;

	for (size_t i = 0; i < conf->n_backends; i++) {
		const struct dp_backend_conf *from = &conf->backends[i];
		struct dp_backend *to = &snapshot->backends_mem[from->id];

		ret = is_taken[from->id] != 0 ? -EEXIST
					      : lb_encap_init(&to->encap, &from->encap);
		if (ret != 0)
			goto free_taken;
		is_taken[from->id] = 1;
		fill_backend(to, from, conf);
		snapshot->live[from->id / LIVE_BITS] |= (uint64_t)from->is_live
							<< from->id % LIVE_BITS;
		if ((uint32_t)to->mtu - to->encap.n_bytes < snapshot->fits_bytes)
			snapshot->fits_bytes = (uint32_t)to->mtu - to->encap.n_bytes;
		note_kind(snapshot, to->kind, &conf->services[from->service]);
		snapshot->is_plain &= to->has_source &&
				      (to->vlan == DP_VLAN_KEEP || to->vlan == DP_VLAN_NONE);
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
	lb_hash_seed(&snapshot->seeded, conf->hash_seed);
	snapshot->has_kernel = conf->has_kernel;

	ret = build_echo(snapshot, conf);
	if (ret == 0)
		ret = build_portless(snapshot, conf);
	if (ret == 0)
		ret = build_backends(snapshot, conf);
	if (ret == 0)
		ret = build_tunnels(snapshot, conf);
	if (ret == 0)
		ret = copy_services(snapshot, conf);
	if (ret == 0)
		ret = build_match(snapshot, conf);
	if (ret == 0)
		ret = copy_answering(snapshot, conf);
	if (ret == 0)
		ret = copy_own(snapshot, conf);
	if (ret == 0)
		ret = build_hosts(snapshot, conf);
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
	for (size_t i = 0; i < snapshot->n_services; i++) {
		struct dp_service *service = &snapshot->services_mem[i];

		dp_table_release(service->table);
		dp_memory_free(service->quic_mem, service->quic_bytes);
	}
	free(snapshot->services_mem);
	dp_memory_free(snapshot->tunnels_mem, N_UDP_PORTS);
	free(snapshot->own_mem);
	dp_memory_free(snapshot->hosts_mem, snapshot->hosts_bytes);
	dp_memory_free(snapshot->echo_mem, snapshot->echo_bytes);
	for (size_t i = 0; i < LB_N_ELEMENTS(snapshot->portless_mem); i++)
		dp_memory_free(snapshot->portless_mem[i], snapshot->portless_bytes[i]);
	free(snapshot->networks_mem);
	free(snapshot->answering_mem);
	dp_memory_free(snapshot->backends_mem, snapshot->n_ids * sizeof(struct dp_backend));
	free(snapshot->live);
	dp_memory_free(snapshot->match_mem, snapshot->match_bytes);
	free(snapshot);
}
