/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000u

const char *const cfg_protocol_words[] = {"tcp", "udp", "any", NULL};
const char *const cfg_algorithm_words[] = {"maglev", "ring", "rendezvous", "stable", NULL};
const char *const cfg_affinity_words[] = {"5-tuple", "source-ip", "source-ip-port", "quic",
	NULL};
const char *const cfg_forward_words[] = {"l2", "ipip", "gre", "gue", "vxlan", NULL};
const char *const cfg_state_words[] = {"up", "drain", "down", NULL};
const char *const cfg_kernel_words[] = {"tap", "none", NULL};
const char *const cfg_idle_words[] = {"poll", "adaptive", NULL};
const char *const cfg_carry_words[] = {"ipip", "ipv6", "gre", "gue", "vxlan", "geneve", NULL};
const char *const cfg_echo_words[] = {"reply", "forward", "drop", NULL};
const char *const cfg_fragment_words[] = {"inner", "outer", "drop", NULL};
const char *const cfg_bool_words[] = {"false", "true", NULL};

static_assert(LB_N_ELEMENTS(cfg_protocol_words) == CFG_N_PROTOCOLS + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_algorithm_words) == CFG_N_ALGORITHMS + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_affinity_words) == CFG_N_AFFINITIES + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_forward_words) == CFG_N_FORWARDS + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_state_words) == CFG_N_STATES + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_kernel_words) == CFG_N_KERNELS + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_idle_words) == CFG_N_IDLES + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_echo_words) == CFG_N_ECHOES + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_fragment_words) == CFG_N_FRAGMENTS + 1, "a word each");
static_assert(LB_N_ELEMENTS(cfg_carry_words) == CFG_N_CARRIES + 1, "a word each");

/* Not on the heap, so that cfg_model_init() cannot fail; never written through. */
static char default_socket[] = "/run/shunt/shunt.sock";
static char default_metrics[] = "127.0.0.1:9464";

static void
free_text(char *text)
{
	if (text != default_socket && text != default_metrics)
		free(text);
}

void
cfg_model_init(struct cfg_model *model)
{
	*model = (struct cfg_model){
		.dataplane =
			{
				.kernel = CFG_KERNEL_TAP,
				.idle = CFG_IDLE_POLL,
				.idle_sleep_ns = 100000,
				.flow_entries = 1048576,
				.tcp_syn_ns = 10ull * NS_PER_S,
				.tcp_ns = 15ull * 60 * NS_PER_S,
				.tcp_closing_ns = 30ull * NS_PER_S,
				.udp_ns = 60ull * NS_PER_S,
				.fragment_datagrams = 4096,
				.fragment_waiting = 1024,
				.handoff = 2048,
				.replies_total = 10000,
				.replies_source = 100,
			},
		.control_socket = default_socket,
		.control_metrics = default_metrics,
		.announce =
			{
				.table = CFG_TABLE_MAIN,
				.withdraw_before_stop_ns = 5ull * NS_PER_S,
			},
	};
}

static void
free_port(struct cfg_port *port)
{
	free(port->name);
	free(port->device);
	free(port->addresses);
	free(port->routes);
}

void
cfg_backend_fini(struct cfg_backend *backend)
{
	free(backend->name);
	free(backend->zone);
	free(backend->quic_ids);
}

void
cfg_service_fini(struct cfg_service *service)
{
	for (size_t i = 0; i < service->n_backends; i++)
		cfg_backend_fini(&service->backends[i]);
	free(service->backends);
	free(service->quic);
	cfg_health_fini(&service->health);
	free(service->name);
}

void
cfg_model_fini(struct cfg_model *model)
{
	for (size_t i = 0; i < model->dataplane.n_ports; i++)
		free_port(&model->dataplane.ports[i]);
	free(model->dataplane.ports);
	for (size_t i = 0; i < model->n_services; i++)
		cfg_service_fini(&model->services[i]);
	free(model->services);
	free_text(model->control_socket);
	free_text(model->control_metrics);
	free(model->announce.interface);
	free(model->file);
	cfg_model_init(model);
}

/* A copy of a text that may be NULL. */
static int
copy_text(const char *text, char **out)
{
	char *copy;

	if (text == NULL) {
		*out = NULL;
		return 0;
	}
	copy = strdup(text);
	if (copy == NULL)
		return -ENOMEM;
	*out = copy;
	return 0;
}

int
cfg_model_set_text(char **where, const char *text)
{
	char *copy;
	const int ret = copy_text(text, &copy);

	if (ret != 0)
		return ret;
	free_text(*where);
	*where = copy;
	return 0;
}

/* A copy of n items; NULL where there are none. */
static int
copy_items(const void *items, size_t n, size_t item_bytes, void **out)
{
	*out = NULL;
	if (n == 0)
		return 0;
	*out = calloc(n, item_bytes);
	if (*out == NULL)
		return -ENOMEM;
	memcpy(*out, items, n * item_bytes);
	return 0;
}

/* out owns nothing on error. */
static int
copy_backend(const struct cfg_backend *backend, struct cfg_backend *out)
{
	struct cfg_backend copy = *backend;
	void *quic_ids;

	if (copy_text(backend->name, &copy.name) != 0)
		return -ENOMEM;
	if (copy_text(backend->zone, &copy.zone) != 0)
		goto free_name;
	if (copy_items(backend->quic_ids, backend->n_quic_ids, sizeof(*backend->quic_ids),
		    &quic_ids) != 0)
		goto free_zone;
	copy.quic_ids = quic_ids;
	*out = copy;
	return 0;

free_zone:
	free(copy.zone);
free_name:
	free(copy.name);
	return -ENOMEM;
}

/* out is owned by a model from the first step on, so what is there is freed with it. */
static int
copy_port(const struct cfg_port *port, struct cfg_port *out)
{
	void *addresses;
	void *routes;

	*out = *port;
	out->name = NULL;
	out->device = NULL;
	out->addresses = NULL;
	out->n_addresses = 0;
	out->routes = NULL;
	out->n_routes = 0;
	if (copy_text(port->name, &out->name) != 0 ||
		copy_text(port->device, &out->device) != 0)
		return -ENOMEM;
	if (copy_items(port->addresses, port->n_addresses, sizeof(*port->addresses),
		    &addresses) != 0)
		return -ENOMEM;
	out->addresses = addresses;
	out->n_addresses = port->n_addresses;
	if (copy_items(port->routes, port->n_routes, sizeof(*port->routes), &routes) != 0)
		return -ENOMEM;
	out->routes = routes;
	out->n_routes = port->n_routes;
	return 0;
}

int
cfg_service_copy(const struct cfg_service *service, struct cfg_service *out)
{
	void *quic;

	*out = *service;
	out->name = NULL;
	out->quic = NULL;
	cfg_health_init(&out->health);
	out->backends = NULL;
	out->n_backends = 0;
	out->backends_room = 0;
	if (copy_text(service->name, &out->name) != 0 ||
		cfg_health_copy(&service->health, &out->health) != 0 ||
		copy_items(service->quic, service->n_quic, sizeof(*service->quic), &quic) != 0)
		return -ENOMEM;
	out->quic = quic;
	if (service->n_backends == 0)
		return 0;

	out->backends = calloc(service->n_backends, sizeof(*out->backends));
	if (out->backends == NULL)
		return -ENOMEM;
	out->backends_room = service->n_backends;
	for (size_t i = 0; i < service->n_backends; i++) {
		if (copy_backend(&service->backends[i], &out->backends[i]) != 0)
			return -ENOMEM;
		out->n_backends++;
	}
	return 0;
}

static int
copy_ports(const struct cfg_dataplane *dataplane, struct cfg_dataplane *out)
{
	if (dataplane->n_ports == 0)
		return 0;
	out->ports = calloc(dataplane->n_ports, sizeof(*out->ports));
	if (out->ports == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		out->n_ports++;
		if (copy_port(&dataplane->ports[i], &out->ports[i]) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int
copy_services(const struct cfg_model *model, struct cfg_model *out)
{
	if (model->n_services == 0)
		return 0;
	out->services = calloc(model->n_services, sizeof(*out->services));
	if (out->services == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_services; i++) {
		out->n_services++;
		if (cfg_service_copy(&model->services[i], &out->services[i]) != 0)
			return -ENOMEM;
	}
	return 0;
}

int
cfg_model_copy(const struct cfg_model *model, struct cfg_model *out)
{
	struct cfg_model copy;

	cfg_model_init(&copy);
	copy.dataplane = model->dataplane;
	copy.dataplane.ports = NULL;
	copy.dataplane.n_ports = 0;
	copy.announce = model->announce;
	copy.announce.interface = NULL;
	copy.hash_seed = model->hash_seed;
	if (cfg_model_set_text(&copy.control_socket, model->control_socket) != 0 ||
		cfg_model_set_text(&copy.control_metrics, model->control_metrics) != 0 ||
		copy_text(model->announce.interface, &copy.announce.interface) != 0 ||
		copy_text(model->file, &copy.file) != 0 ||
		copy_ports(&model->dataplane, &copy.dataplane) != 0 ||
		copy_services(model, &copy) != 0) {
		cfg_model_fini(&copy);
		return -ENOMEM;
	}
	*out = copy;
	return 0;
}

static bool
is_same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

static bool
is_same_mac(bool has_a, const struct lb_mac *a, bool has_b, const struct lb_mac *b)
{
	if (!has_a || !has_b)
		return has_a == has_b;
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool
cfg_has_same_routes(const struct cfg_port *a, const struct cfg_port *b)
{
	if (a->n_routes != b->n_routes)
		return false;
	for (size_t i = 0; i < a->n_routes; i++) {
		if (!lb_prefix_equal(&a->routes[i].to, &b->routes[i].to) ||
			!lb_addr_equal(&a->routes[i].via, &b->routes[i].via))
			return false;
	}
	return true;
}

static bool
is_same_port(const struct cfg_port *a, const struct cfg_port *b)
{
	if (!is_same_text(a->name, b->name) || !is_same_text(a->device, b->device) ||
		a->n_addresses != b->n_addresses || a->mtu != b->mtu ||
		a->answer_arp != b->answer_arp || a->vlan != b->vlan ||
		!is_same_mac(a->has_next_hop, &a->next_hop, b->has_next_hop, &b->next_hop) ||
		!cfg_has_same_routes(a, b))
		return false;
	for (size_t i = 0; i < a->n_addresses; i++) {
		if (!lb_prefix_equal(&a->addresses[i], &b->addresses[i]))
			return false;
	}
	return true;
}

const char *
cfg_quic_id_format(const struct cfg_quic_id *id, char out[static CFG_QUIC_ID_TEXT_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < id->n_bytes; i++) {
		out[2 * i] = digits[id->bytes[i] >> 4];
		out[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	out[(size_t)2 * id->n_bytes] = '\0';
	return out;
}

bool
cfg_quic_id_equal(const struct cfg_quic_id *a, const struct cfg_quic_id *b)
{
	return a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

size_t
cfg_count_quic_servers(const struct cfg_service *service)
{
	size_t n_of[CFG_QUIC_ID_BYTES_MAX + 1] = {0};
	size_t n = 0;

	for (size_t i = 0; i < service->n_quic; i++)
		n_of[service->quic[i].server_id_bytes]++;
	for (size_t i = 0; service->n_quic > 0 && i < service->n_backends; i++) {
		for (size_t k = 0; k < service->backends[i].n_quic_ids; k++)
			n += n_of[service->backends[i].quic_ids[k].n_bytes];
	}
	return n;
}

bool
cfg_quic_key_equal(const struct cfg_quic *a, const struct cfg_quic *b)
{
	if (!a->has_key || !b->has_key)
		return a->has_key == b->has_key;
	return memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

static bool
is_same_quic(const struct cfg_service *a, const struct cfg_service *b)
{
	if (a->n_quic != b->n_quic)
		return false;
	for (size_t i = 0; i < a->n_quic; i++) {
		const struct cfg_quic *x = &a->quic[i];
		const struct cfg_quic *y = &b->quic[i];

		if (x->config_id != y->config_id || x->server_id_bytes != y->server_id_bytes ||
			x->nonce_bytes != y->nonce_bytes || x->has_length != y->has_length ||
			!cfg_quic_key_equal(x, y))
			return false;
	}
	return true;
}

static bool
has_same_quic_ids(const struct cfg_backend *a, const struct cfg_backend *b)
{
	if (a->n_quic_ids != b->n_quic_ids)
		return false;
	for (size_t i = 0; i < a->n_quic_ids; i++) {
		if (!cfg_quic_id_equal(&a->quic_ids[i], &b->quic_ids[i]))
			return false;
	}
	return true;
}

static bool
is_same_backend(const struct cfg_backend *a, const struct cfg_backend *b)
{
	return is_same_text(a->name, b->name) && lb_addr_equal(&a->address, &b->address) &&
	       a->weight == b->weight && a->state == b->state &&
	       is_same_mac(a->has_mac, &a->mac, b->has_mac, &b->mac) &&
	       is_same_text(a->zone, b->zone) && has_same_quic_ids(a, b);
}

/* 0 is as 1. */
static bool
is_same_minimum(uint32_t a, uint32_t b)
{
	return a == b || (a <= 1 && b <= 1);
}

static bool
is_same_service(const struct cfg_service *a, const struct cfg_service *b)
{
	if (!is_same_text(a->name, b->name) || !lb_prefix_equal(&a->address, &b->address) ||
		a->protocol != b->protocol || a->port != b->port ||
		a->algorithm != b->algorithm || a->n_slots != b->n_slots ||
		a->overload != b->overload || a->affinity != b->affinity ||
		a->forward != b->forward || a->tunnel_port != b->tunnel_port ||
		a->vni != b->vni || a->carry != b->carry || a->echo != b->echo ||
		a->fragment != b->fragment || a->mss_clamp != b->mss_clamp ||
		a->slow_start_ns != b->slow_start_ns ||
		!is_same_minimum(a->min_healthy, b->min_healthy) ||
		a->when_all_down != b->when_all_down ||
		!cfg_health_equal(&a->health, &b->health) || a->n_backends != b->n_backends ||
		!is_same_quic(a, b))
		return false;
	for (size_t i = 0; i < a->n_backends; i++) {
		if (!is_same_backend(&a->backends[i], &b->backends[i]))
			return false;
	}
	return true;
}

static bool
is_same_dataplane(const struct cfg_dataplane *a, const struct cfg_dataplane *b)
{
	if (a->workers != b->workers || a->kernel != b->kernel || a->idle != b->idle ||
		a->idle_sleep_ns != b->idle_sleep_ns || a->flow_entries != b->flow_entries ||
		a->flow_addresses != b->flow_addresses || a->tcp_syn_ns != b->tcp_syn_ns ||
		a->tcp_ns != b->tcp_ns || a->tcp_closing_ns != b->tcp_closing_ns ||
		a->udp_ns != b->udp_ns || a->answer_arp != b->answer_arp ||
		a->fragment_datagrams != b->fragment_datagrams ||
		a->fragment_waiting != b->fragment_waiting || a->handoff != b->handoff ||
		a->replies_total != b->replies_total ||
		a->replies_source != b->replies_source || a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++) {
		if (!is_same_port(&a->ports[i], &b->ports[i]))
			return false;
	}
	return true;
}

static bool
is_same_announce(const struct cfg_announce *a, const struct cfg_announce *b)
{
	return is_same_text(a->interface, b->interface) && a->table == b->table &&
	       a->metric == b->metric &&
	       a->withdraw_before_stop_ns == b->withdraw_before_stop_ns;
}

bool
cfg_model_equal(const struct cfg_model *a, const struct cfg_model *b)
{
	if (!is_same_dataplane(&a->dataplane, &b->dataplane) ||
		!is_same_text(a->control_socket, b->control_socket) ||
		!is_same_text(a->control_metrics, b->control_metrics) ||
		!is_same_announce(&a->announce, &b->announce) || a->hash_seed != b->hash_seed ||
		a->n_services != b->n_services)
		return false;
	for (size_t i = 0; i < a->n_services; i++) {
		if (!is_same_service(&a->services[i], &b->services[i]))
			return false;
	}
	return true;
}

struct cfg_service *
cfg_find_service(const struct cfg_model *model, const char *name, size_t n_bytes)
{
	for (size_t i = 0; i < model->n_services; i++) {
		struct cfg_service *service = &model->services[i];

		if (strlen(service->name) == n_bytes &&
			memcmp(service->name, name, n_bytes) == 0)
			return service;
	}
	return NULL;
}

struct cfg_backend *
cfg_find_backend(const struct cfg_service *service, const char *name)
{
	for (size_t i = 0; i < service->n_backends; i++) {
		if (strcmp(service->backends[i].name, name) == 0)
			return &service->backends[i];
	}
	return NULL;
}

static int
make_room(struct cfg_service *service)
{
	const size_t room = service->backends_room < 4 ? 8 : service->backends_room * 2;
	struct cfg_backend *backends;

	if (service->n_backends < service->backends_room)
		return 0;
	backends = realloc(service->backends, room * sizeof(*backends));
	if (backends == NULL)
		return -ENOMEM;
	service->backends = backends;
	service->backends_room = room;
	return 0;
}

int
cfg_add_backend(struct cfg_service *service, const struct cfg_backend *backend)
{
	/* Copied first: backend may stand in the array that grows. */
	struct cfg_backend added;
	int ret;

	if (cfg_find_backend(service, backend->name) != NULL)
		return -EEXIST;
	if (service->n_backends >= LB_SERVICE_BACKENDS_MAX)
		return -E2BIG;
	ret = copy_backend(backend, &added);
	if (ret != 0)
		return ret;
	ret = make_room(service);
	if (ret != 0) {
		cfg_backend_fini(&added);
		return ret;
	}
	service->backends[service->n_backends++] = added;
	return 0;
}

void
cfg_remove_backend(struct cfg_service *service, struct cfg_backend *backend)
{
	const size_t at = (size_t)(backend - service->backends);

	cfg_backend_fini(backend);
	service->n_backends--;
	memmove(backend, backend + 1, (service->n_backends - at) * sizeof(*backend));
}
