/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_apply_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_names.h"
#include "lb_hash.h"
#include "lb_overlay.h"

/* One service's tables, with all that they were made from: the same again is the same table. */
struct table_state {
	struct dp_table *configured; /* whoever is dead; NULL: none yet */
	struct dp_table *table;      /* in force; NULL: none yet */
	struct lb_picker_conf conf;
	uint32_t *ids;
	uint32_t *weights;
	uint8_t *shares; /* of its slots that each keeps */
	size_t n_backends;
	uint64_t hash; /* of what the configured table is made from, by which twins are found */
};

/*
 * When the id of a backend that is gone may go to another name. A worker that meets a flow
 * entry whose backend is in no snapshot picks afresh and writes the new id into it; where there
 * is nobody to pick, and for ICMP errors, it leaves the entry as it is, its time included. So
 * an entry with such an id is one that no packet has touched since the snapshot with the
 * backend was out of use, and the longest timeout later it is over. The rest is for what a flow
 * table's ticks round up, and for packets and fragments that were under way with a decision.
 */
#define REST_MORE_NS (UINT64_C(60) * 1000000000)

struct ctl_apply {
	struct ctl_names *services;
	struct ctl_names *backends;
	struct table_state *tables; /* by place in the last snapshot */
	uint32_t *numbers;          /* service numbers, by place in the last snapshot */
	size_t n_places;
	uint32_t *place_of; /* by service number: its place, or DP_NONE */
	size_t n_place_of;
	bool *is_live; /* by backend id */
	size_t n_is_live;
	size_t n_unreached;
	const uint8_t *shares;         /* by health, for the next build; NULL: all are whole */
	struct dp_backend_conf *confs; /* of the last snapshot, service after service */
	size_t *first_of;              /* of the service at a place: its first in confs */
	uint64_t now_ns;
};

/* A snapshot in the making. */
struct build {
	const struct cfg_model *model;
	const struct ctl_paths *paths;
	FILE *messages;
	size_t n_unreached;
	size_t next_path; /* after the last that was found: backends are often in order, too */
	struct dp_service_conf *services;
	struct ctl_apply_quic quic;
	struct dp_backend_conf *backends;
	size_t n_backends;
	size_t *first_of; /* by place: of the service's backends the first */
	struct table_state *tables;
	uint32_t *numbers;
	struct ctl_apply_twins twins; /* whose tables may be copied */
};

int
ctl_apply_create(struct ctl_apply **out)
{
	struct ctl_apply *apply = calloc(1, sizeof(*apply));

	if (apply == NULL)
		return -ENOMEM;
	if (ctl_names_create(LB_SERVICES_MAX, &apply->services) != 0 ||
		ctl_names_create(LB_BACKEND_IDS_MAX, &apply->backends) != 0) {
		ctl_apply_destroy(apply);
		return -ENOMEM;
	}
	*out = apply;
	return 0;
}

static void
free_tables(struct table_state *tables, size_t n)
{
	for (size_t i = 0; tables != NULL && i < n; i++) {
		dp_table_release(tables[i].table);
		dp_table_release(tables[i].configured);
		free(tables[i].ids);
		free(tables[i].weights);
		free(tables[i].shares);
	}
	free(tables);
}

void
ctl_apply_destroy(struct ctl_apply *apply)
{
	if (apply == NULL)
		return;
	free_tables(apply->tables, apply->n_places);
	free(apply->numbers);
	free(apply->place_of);
	free(apply->is_live);
	free(apply->confs);
	free(apply->first_of);
	ctl_names_destroy(apply->services);
	ctl_names_destroy(apply->backends);
	free(apply);
}

/*
 * How many of its slots a backend keeps; the others have those of whoever takes no new flow.
 * Health has a say in those alone that are up otherwise.
 */
static uint8_t
find_share(const struct cfg_backend *backend, uint8_t by_health)
{
	if (backend->state == CFG_UP)
		return by_health;
	return backend->weight > 0 ? 0 : LB_OVERLAY_WHOLE;
}

static struct lb_picker_conf
translate_table(const struct cfg_service *service, uint64_t hash_seed)
{
	return (struct lb_picker_conf){
		.algorithm = (enum lb_algorithm)service->algorithm,
		.n_slots = service->n_slots,
		.slack = service->overload,
		.hash_seed = hash_seed,
	};
}

int
ctl_apply_configure(const struct cfg_service *service, uint64_t hash_seed, const uint32_t *ids,
	struct dp_table **out)
{
	const size_t n = service->n_backends;
	struct lb_picker_backend *backends = calloc(n + 1, sizeof(*backends));
	const struct dp_table_conf conf = {
		.picker = translate_table(service, hash_seed),
		.backends = backends,
		.ids = ids,
		.n_backends = n,
	};
	int ret;

	if (backends == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		backends[i].name = service->backends[i].name;
		backends[i].name_bytes = (uint32_t)strlen(service->backends[i].name);
		backends[i].weight = service->backends[i].weight;
	}
	ret = dp_table_create(&conf, out);
	free(backends);
	return ret;
}

int
ctl_apply_overlay(const struct cfg_service *service, const uint8_t *shares,
	struct dp_table *configured, struct dp_table **out)
{
	uint8_t *left = calloc(service->n_backends + 1, sizeof(*left));
	bool is_whole = true;
	int ret = 0;

	if (left == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < service->n_backends; i++) {
		left[i] = find_share(&service->backends[i],
			shares != NULL ? shares[i] : LB_OVERLAY_WHOLE);
		is_whole &= left[i] == LB_OVERLAY_WHOLE;
	}
	if (!is_whole) {
		ret = dp_table_overlay(configured, left, out);
	} else {
		dp_table_hold(configured);
		*out = configured;
	}
	free(left);
	return ret;
}

static bool
has_same_conf(const struct table_state *a, const struct table_state *b)
{
	return a->conf.algorithm == b->conf.algorithm && a->conf.n_slots == b->conf.n_slots &&
	       a->conf.slack == b->conf.slack && a->conf.hash_seed == b->conf.hash_seed;
}

static bool
is_same_configured(const struct table_state *a, const struct table_state *b)
{
	const size_t n = b->n_backends;

	return a->configured != NULL && has_same_conf(a, b) && a->n_backends == n &&
	       (n == 0 ||
		       (memcmp(a->ids, b->ids, n * sizeof(*a->ids)) == 0 &&
			       memcmp(a->weights, b->weights, n * sizeof(*a->weights)) == 0));
}

/* Of two with one configured table. */
static bool
is_same_table(const struct table_state *a, const struct table_state *b)
{
	const size_t n = b->n_backends;

	return a->table != NULL &&
	       (n == 0 || memcmp(a->shares, b->shares, n * sizeof(*a->shares)) == 0);
}

static int
build_table(struct build *build, const struct cfg_service *service, struct table_state *state)
{
	const int ret = ctl_apply_configure(service, state->conf.hash_seed, state->ids,
		&state->configured);

	if (ret == -E2BIG)
		(void)fprintf(build->messages,
			"service '%s': a %s table of %u slots cannot hold its %zu backends "
			"with "
			"their weights; make the table larger or the weights smaller\n",
			service->name, lb_algorithm_name(state->conf.algorithm),
			state->conf.n_slots, state->n_backends);
	return ret;
}

/* The names' order is part of it: a slot says a place among them. */
static uint64_t
hash_configured(const struct cfg_service *service, const struct table_state *state)
{
	const uint64_t conf[] = {state->conf.algorithm, state->conf.n_slots, state->conf.slack,
		state->conf.hash_seed, state->n_backends};
	uint64_t hash = lb_hash_bytes(conf, sizeof(conf), 0);

	for (size_t i = 0; i < state->n_backends; i++) {
		const char *name = service->backends[i].name;

		hash = lb_hash_bytes(name, strlen(name), hash + state->weights[i]);
	}
	return hash;
}

static bool
has_same_names(const struct cfg_service *a, const struct cfg_service *b)
{
	for (size_t i = 0; i < a->n_backends; i++)
		if (strcmp(a->backends[i].name, b->backends[i].name) != 0)
			return false;
	return true;
}

/*
 * A service before it whose configured table is the same but for the backends' ids, and, where
 * hash is of its shares, whose table in force is, too. NULL: none.
 */
static const struct table_state *
find_twin(const struct build *build, uint64_t hash, size_t place)
{
	const uint32_t twin = ctl_apply_twins_find(&build->twins, hash);
	const struct table_state *state = &build->tables[place];
	const struct table_state *other;
	const size_t n = state->n_backends;

	if (twin == DP_NONE)
		return NULL;
	other = &build->tables[twin];
	if (!has_same_conf(other, state) || other->n_backends != n ||
		(n > 0 && memcmp(other->weights, state->weights, n * sizeof(*state->weights)) !=
				  0) ||
		!has_same_names(&build->model->services[twin], &build->model->services[place]))
		return NULL;
	return other;
}

/* The configured table: the one it had, a copy of another service's, or a new one. */
static int
take_configured(struct build *build, size_t place, const struct table_state *old)
{
	const struct cfg_service *service = &build->model->services[place];
	struct table_state *state = &build->tables[place];
	const struct table_state *twin;
	int ret;

	if (old != NULL) {
		state->hash = old->hash;
		state->configured = old->configured;
		dp_table_hold(state->configured);
		ret = 0;
	} else {
		state->hash = hash_configured(service, state);
		twin = find_twin(build, state->hash, place);
		ret = twin != NULL ? dp_table_copy(twin->configured, state->ids,
					     state->n_backends, &state->configured)
				   : build_table(build, service, state);
	}
	if (ret == 0)
		ctl_apply_twins_add(&build->twins, state->hash, (uint32_t)place);
	return ret;
}

/* The table in force, likewise. */
static int
take_overlay(struct build *build, size_t place, const struct table_state *old)
{
	struct table_state *state = &build->tables[place];
	const size_t n = state->n_backends;
	const uint64_t hash = lb_hash_bytes(state->shares, n, ~state->hash);
	const struct table_state *twin;
	int ret = 0;

	if (old != NULL && is_same_table(old, state)) {
		state->table = old->table;
		dp_table_hold(state->table);
	} else {
		twin = find_twin(build, hash, place);
		if (twin != NULL && is_same_table(twin, state) &&
			twin->table != twin->configured)
			ret = dp_table_copy(twin->table, state->ids, n, &state->table);
		else
			ret = ctl_apply_overlay(&build->model->services[place], state->shares,
				state->configured, &state->table);
	}
	if (ret == 0)
		ctl_apply_twins_add(&build->twins, hash, (uint32_t)place);
	return ret;
}

/* The tables of the service at a place: those it had, as far as they are the same. */
static int
take_table(struct ctl_apply *apply, struct build *build, size_t place)
{
	struct table_state *state = &build->tables[place];
	const uint32_t number = build->numbers[place];
	const uint32_t old_place =
		number < apply->n_place_of ? apply->place_of[number] : DP_NONE;
	const struct table_state *old = NULL;
	int ret;

	state->conf = translate_table(&build->model->services[place], build->model->hash_seed);
	if (old_place != DP_NONE && is_same_configured(&apply->tables[old_place], state))
		old = &apply->tables[old_place];
	ret = take_configured(build, place, old);
	if (ret == 0)
		ret = take_overlay(build, place, old);
	build->services[place].table = state->table;
	return ret;
}

/* The outer source: the port's first address of the backend's family, if it has one. */
static bool
find_source(const struct cfg_port *port, const struct lb_addr *dst, struct lb_addr *out)
{
	const bool is_v4 = lb_addr_is_v4(dst);

	for (size_t i = 0; port != NULL && i < port->n_addresses; i++) {
		if (lb_addr_is_v4(&port->addresses[i].addr) == is_v4) {
			*out = port->addresses[i].addr;
			return true;
		}
	}
	*out = is_v4 ? lb_addr_from_v4((const uint8_t[4]){0}) : (struct lb_addr){0};
	return false;
}

/* 02:00 and the last four bytes of an address: an inner MAC that both ends can work out. */
static struct lb_mac
mac_of(const struct lb_addr *addr)
{
	struct lb_mac mac = {.bytes = {0x02}};

	memcpy(mac.bytes + 2, addr->bytes + LB_ADDR_BYTES - 4, 4);
	return mac;
}

static int
compare_dst(const void *key, const void *item)
{
	const struct ctl_path *path = item;

	return memcmp(key, path->dst.bytes, LB_ADDR_BYTES);
}

/* NULL: there is none. */
static const struct ctl_path *
find_item(struct build *build, const struct lb_addr *dst)
{
	const struct ctl_paths *paths = build->paths;
	const struct ctl_path *path;

	if (build->next_path < paths->n_items &&
		lb_addr_equal(&paths->items[build->next_path].dst, dst))
		path = &paths->items[build->next_path];
	else
		path = bsearch(dst->bytes, paths->items, paths->n_items, sizeof(*path),
			compare_dst);
	if (path != NULL)
		build->next_path = (size_t)(path - paths->items) + 1;
	return path;
}

/* The way to a backend. Returns the port it goes out by; NULL where there is none. */
static const struct cfg_port *
find_path(struct build *build, const struct lb_addr *dst, struct ctl_path *out)
{
	const struct ctl_paths *paths = build->paths;
	const struct cfg_port *port = paths->port;

	*out = (struct ctl_path){0};
	if (paths->n_items > 0) {
		const struct ctl_path *path = find_item(build, dst);

		if (path == NULL)
			return NULL;
		*out = *path;
		port = &build->model->dataplane.ports[path->port];
	}
	if (port != NULL && port->has_next_hop) {
		out->mac = port->next_hop;
		out->is_resolved = true;
		out->is_gateway = false; /* whatever it is, it was asked for */
	}
	return port;
}

static void
translate_backend(struct build *build, const struct cfg_service *service,
	const struct cfg_backend *from, uint8_t share, struct dp_backend_conf *to)
{
	const bool is_l2 = service->forward == CFG_FORWARD_L2;
	struct ctl_path path;
	const struct cfg_port *port = find_path(build, &from->address, &path);
	struct lb_addr src;
	const bool has_source = find_source(port, &from->address, &src);

	to->is_live = from->state == CFG_DRAIN || (from->state == CFG_UP && share > 0);
	to->mtu = port != NULL ? port->mtu : 0;
	to->vlan = port != NULL ? port->vlan : DP_VLAN_KEEP;
	to->port = path.port;
	to->next_hop = is_l2 && from->has_mac ? from->mac : path.mac;
	/* A router would send a frame for the service's address back to us. */
	if (is_l2)
		to->has_next_hop = port != NULL &&
				   (from->has_mac || (path.is_resolved && !path.is_gateway));
	else
		to->has_next_hop = port != NULL && has_source && path.is_resolved;
	build->n_unreached += !to->has_next_hop;
	to->encap = (struct lb_encap_conf){
		.mode = (enum lb_forward_mode)service->forward,
		.src = src,
		.dst = from->address,
		.udp_port = ctl_apply_tunnel_port(service),
		.vni = service->vni,
		.inner_dst = from->has_mac ? from->mac : mac_of(&from->address),
		.inner_src = mac_of(&src),
	};
}

static int
intern(struct build *build, struct ctl_names *names, uint32_t parent, const char *name,
	uint32_t *out)
{
	const int ret = ctl_names_intern(names, parent, name, out);

	if (ret != -ENOSPC)
		return ret;
	(void)fprintf(build->messages,
		"no number is left for '%s': this process has seen as many names as it can; "
		"restart it\n",
		name);
	return -E2BIG;
}

static int
translate_service(struct ctl_apply *apply, struct build *build, size_t place)
{
	const struct cfg_service *service = &build->model->services[place];
	struct table_state *state = &build->tables[place];
	uint32_t number;
	int ret;

	ret = intern(build, apply->services, CTL_NAMES_NO_PARENT, service->name, &number);
	if (ret != 0)
		return ret;
	build->numbers[place] = number;
	build->services[place] = (struct dp_service_conf){
		.match = ctl_apply_match(service),
		.number = number,
		.affinity = ctl_apply_affinity(service),
		.carry = service->carry,
		.forward = (enum lb_forward_mode)service->forward,
		.tunnel_port = ctl_apply_tunnel_port(service),
		.echo = (enum dp_echo)service->echo,
		.fragment = (enum dp_fragmenting)service->fragment,
		.mss_clamp = service->mss_clamp,
	};

	build->first_of[place] = build->n_backends;
	state->n_backends = service->n_backends;
	state->ids = calloc(service->n_backends + 1, sizeof(*state->ids));
	state->weights = calloc(service->n_backends + 1, sizeof(*state->weights));
	state->shares = calloc(service->n_backends + 1, sizeof(*state->shares));
	if (state->ids == NULL || state->weights == NULL || state->shares == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];
		const uint8_t by_health = apply->shares != NULL
						  ? apply->shares[build->n_backends]
						  : LB_OVERLAY_WHOLE;
		struct dp_backend_conf *to = &build->backends[build->n_backends++];

		ret = intern(build, apply->backends, number, backend->name, &state->ids[i]);
		if (ret != 0)
			return ret;
		state->weights[i] = backend->weight;
		state->shares[i] = find_share(backend, by_health);
		to->id = state->ids[i];
		to->service = (uint32_t)place;
		translate_backend(build, service, backend, state->shares[i], to);
	}
	ctl_apply_quic_append(&build->quic, service, state->ids, &build->services[place]);
	return take_table(apply, build, place);
}

static int
translate(struct ctl_apply *apply, struct build *build)
{
	const struct cfg_model *model = build->model;
	size_t n_backends = 0;

	for (size_t i = 0; i < model->n_services; i++)
		n_backends += model->services[i].n_backends;

	if (ctl_apply_quic_init(&build->quic, model) != 0)
		return -ENOMEM;
	if (ctl_apply_twins_init(&build->twins, 2 * model->n_services) != 0)
		return -ENOMEM;
	build->services = calloc(model->n_services + 1, sizeof(*build->services));
	build->backends = calloc(n_backends + 1, sizeof(*build->backends));
	build->tables = calloc(model->n_services + 1, sizeof(*build->tables));
	build->numbers = calloc(model->n_services + 1, sizeof(*build->numbers));
	build->first_of = calloc(model->n_services + 1, sizeof(*build->first_of));
	if (build->services == NULL || build->backends == NULL || build->tables == NULL ||
		build->numbers == NULL || build->first_of == NULL)
		return -ENOMEM;

	for (size_t i = 0; i < model->n_services; i++) {
		const int ret = translate_service(apply, build, i);

		if (ret != 0)
			return ret;
	}
	return 0;
}

/* Their addresses are nobody else's to send from; those that are open can also answer. */
static void
translate_ports(const struct build *build, struct dp_snapshot_conf *conf,
	struct dp_snapshot_port_conf ports[static LB_PORTS_MAX])
{
	const struct cfg_dataplane *plane = &build->model->dataplane;

	for (size_t i = 0; i < plane->n_ports && i < LB_PORTS_MAX; i++) {
		struct dp_snapshot_port_conf *to = &ports[conf->n_ports++];
		struct dp_port_info info;

		*to = (struct dp_snapshot_port_conf){
			.networks = plane->ports[i].addresses,
			.n_networks = plane->ports[i].n_addresses,
		};
		if (build->paths->mac != NULL) {
			to->mac = *build->paths->mac;
			to->has_mac = true;
		}
		if (build->paths->dp == NULL)
			continue;
		dp_port_read(build->paths->dp, i, &info);
		to->id = info.id;
		to->mac = info.mac;
		to->has_mac = true;
		to->answers = plane->ports[i].answer_arp;
	}
	conf->ports = ports;
}

/* What the last snapshot says of each number, ready to replace what the one before said. */
static int
index_build(const struct ctl_apply *apply, const struct build *build, uint32_t **place_of,
	bool **is_live)
{
	const size_t n_services = ctl_names_count(apply->services);
	const size_t n_backends = ctl_names_count(apply->backends);
	uint32_t *places = malloc((n_services + 1) * sizeof(*places));
	bool *live = calloc(n_backends + 1, sizeof(*live));

	if (places == NULL || live == NULL) {
		free(places);
		free(live);
		return -ENOMEM;
	}
	memset(places, 0xff, (n_services + 1) * sizeof(*places));
	for (size_t i = 0; i < build->model->n_services; i++)
		places[build->numbers[i]] = (uint32_t)i;
	for (size_t i = 0; i < build->n_backends; i++)
		live[build->backends[i].id] = build->backends[i].is_live;
	*place_of = places;
	*is_live = live;
	return 0;
}

/* The ids of the last snapshot are in use, whether it comes into force or not. */
static void
hold_ids(struct ctl_apply *apply)
{
	for (size_t i = 0; i < apply->n_places; i++)
		for (size_t k = 0; k < apply->tables[i].n_backends; k++)
			ctl_names_hold(apply->backends, apply->tables[i].ids[k]);
}

void
ctl_apply_set_shares(struct ctl_apply *apply, const uint8_t *shares)
{
	apply->shares = shares;
}

void
ctl_apply_set_time(struct ctl_apply *apply, uint64_t now_ns)
{
	apply->now_ns = now_ns;
}

void
ctl_apply_published(struct ctl_apply *apply)
{
	ctl_names_set_time(apply->backends, apply->now_ns, UINT64_MAX);
	ctl_names_release_all(apply->backends);
	hold_ids(apply);
}

/* Keep what the build made; build then holds what it replaced. */
static void
commit(struct ctl_apply *apply, struct build *build, uint32_t *place_of, bool *is_live)
{
	free_tables(apply->tables, apply->n_places);
	free(apply->numbers);
	free(apply->place_of);
	free(apply->is_live);
	free(apply->confs);
	free(apply->first_of);
	apply->tables = build->tables;
	apply->numbers = build->numbers;
	apply->n_places = build->model->n_services;
	apply->place_of = place_of;
	apply->n_place_of = ctl_names_count(apply->services);
	apply->is_live = is_live;
	apply->n_is_live = ctl_names_count(apply->backends);
	apply->n_unreached = build->n_unreached;
	apply->confs = build->backends;
	apply->first_of = build->first_of;
	build->backends = NULL;
	build->first_of = NULL;
	build->tables = NULL;
	build->numbers = NULL;
	hold_ids(apply);
}

int
ctl_apply_build(struct ctl_apply *apply, const struct cfg_model *model,
	const struct ctl_paths *paths, FILE *messages, struct dp_snapshot **out)
{
	struct build build = {.model = model, .paths = paths, .messages = messages};
	struct dp_snapshot_conf conf = {
		.hash_seed = model->hash_seed,
		.has_kernel = model->dataplane.kernel != CFG_KERNEL_NONE,
	};
	struct dp_snapshot_port_conf ports[LB_PORTS_MAX];
	const uint32_t n_services = ctl_names_count(apply->services);
	const uint32_t n_backends = ctl_names_count(apply->backends);
	uint32_t *place_of;
	bool *is_live;
	int ret;

	ctl_names_set_time(apply->backends, apply->now_ns,
		ctl_apply_longest_timeout(&model->dataplane) + REST_MORE_NS);
	ret = translate(apply, &build);
	apply->shares = NULL;
	if (ret != 0)
		goto free_build;
	ret = index_build(apply, &build, &place_of, &is_live);
	if (ret != 0)
		goto free_build;

	conf.services = build.services;
	conf.n_services = model->n_services;
	conf.backends = build.backends;
	conf.n_backends = build.n_backends;
	translate_ports(&build, &conf, ports);
	ret = dp_snapshot_create(&conf, out);
	if (ret != 0) {
		free(place_of);
		free(is_live);
		goto free_build;
	}
	commit(apply, &build, place_of, is_live); /* nothing can fail past this line */

free_build:
	if (ret != 0) {
		ctl_names_take_back(apply->services, n_services);
		ctl_names_take_back(apply->backends, n_backends);
	}
	if (ret == -ENOMEM)
		(void)fprintf(messages, "there is not enough memory for the tables\n");
	free_tables(build.tables, model->n_services);
	free(build.numbers);
	free(build.services);
	ctl_apply_twins_fini(&build.twins);
	ctl_apply_quic_fini(&build.quic);
	free(build.backends);
	free(build.first_of);
	return ret;
}

uint32_t
ctl_apply_service(const struct ctl_apply *apply, uint32_t place)
{
	return apply->numbers[place];
}

uint32_t
ctl_apply_backend_id(const struct ctl_apply *apply, size_t service_place, size_t backend_place)
{
	return apply->tables[service_place].ids[backend_place];
}

const struct dp_backend_conf *
ctl_apply_backend_confs(const struct ctl_apply *apply, size_t service_place)
{
	return &apply->confs[apply->first_of[service_place]];
}

const uint8_t *
ctl_apply_shares(const struct ctl_apply *apply, size_t service_place)
{
	return apply->tables[service_place].shares;
}

struct dp_table *
ctl_apply_table(const struct ctl_apply *apply, size_t service_place)
{
	return apply->tables[service_place].table;
}

uint32_t
ctl_apply_n_services(const struct ctl_apply *apply)
{
	return ctl_names_count(apply->services);
}

const char *
ctl_apply_service_name(const struct ctl_apply *apply, uint32_t service)
{
	return ctl_names_text(apply->services, service);
}

uint32_t
ctl_apply_n_backends(const struct ctl_apply *apply)
{
	return ctl_names_count(apply->backends);
}

struct ctl_backend_name
ctl_apply_backend(const struct ctl_apply *apply, uint32_t id)
{
	return (struct ctl_backend_name){
		.service = ctl_names_parent(apply->backends, id),
		.name = ctl_names_text(apply->backends, id),
	};
}

bool
ctl_apply_is_live(const struct ctl_apply *apply, uint32_t id)
{
	return id < apply->n_is_live && apply->is_live[id];
}

int
ctl_apply_count_slots(const struct ctl_apply *apply, uint32_t *slots, size_t n)
{
	memset(slots, 0, n * sizeof(*slots));
	for (size_t i = 0; i < apply->n_places; i++) {
		const struct table_state *state = &apply->tables[i];
		uint32_t *counts = calloc(state->n_backends + 1, sizeof(*counts));

		if (counts == NULL)
			return -ENOMEM;
		dp_table_count(state->table, counts, state->n_backends);
		for (size_t k = 0; k < state->n_backends; k++)
			slots[state->ids[k]] = counts[k];
		free(counts);
	}
	return 0;
}

void
ctl_apply_read_slots(const struct ctl_apply *apply, size_t service_place, uint32_t *slots)
{
	const struct table_state *state = &apply->tables[service_place];

	dp_table_count(state->table, slots, state->n_backends);
}

size_t
ctl_apply_n_unreached(const struct ctl_apply *apply)
{
	return apply->n_unreached;
}
