/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cfg_decode.h"
#include "cfg_yaml.h"

#define WEIGHT_DEFAULT 100u
#define VNI_MAX        16777215u
/* Below it Linux takes no MSS; above it no IPv4 packet holds one. */
#define MSS_MIN 88u
#define MSS_MAX 65495u

static const char *const backend_keys[] = {"name", "address", "weight", "state", "mac", "zone",
	"quic_id", NULL};

static bool
check_backend_keys(const struct cfg_node *node, const char *const extra[],
	struct cfg_errors *errors)
{
	const char *keys[CFG_KEYS_MAX + 1] = {NULL};
	size_t n = 0;

	for (size_t i = 0; extra != NULL && extra[i] != NULL && n < CFG_KEYS_MAX; i++)
		keys[n++] = extra[i];
	for (size_t i = 0; backend_keys[i] != NULL && n < CFG_KEYS_MAX; i++)
		keys[n++] = backend_keys[i];
	return cfg_node_check_keys(node, keys, errors);
}

static bool
decode_backend_address(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_backend *out)
{
	const struct cfg_node *value = cfg_node_get(node, "address");
	char text[LB_ADDR_TEXT_BYTES];

	if (value == NULL)
		return cfg_missing_key(node, "backend", "address", errors);
	out->address_pos = value->pos;
	if (!cfg_read_address(value, "address", errors, &out->address))
		return false;
	if (lb_addr_is_unicast(&out->address))
		return true;
	cfg_error(errors, value->pos, "address: expected a unicast address, found %s",
		lb_addr_format(&out->address, text));
	return false;
}

static void
decode_backend_options(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_backend *out)
{
	const struct cfg_node *value;
	uint64_t weight = WEIGHT_DEFAULT;
	unsigned int state = CFG_UP;
	const char *zone;

	value = cfg_node_get(node, "weight");
	if (value != NULL)
		(void)cfg_read_u64(value, "weight", 0, LB_WEIGHT_MAX, errors, &weight);
	value = cfg_node_get(node, "state");
	if (value != NULL)
		(void)cfg_read_word(value, "state", cfg_state_words, errors, &state);
	value = cfg_node_get(node, "mac");
	if (value != NULL) {
		out->mac_pos = value->pos;
		out->has_mac = cfg_read_mac(value, "mac", errors, &out->mac);
	}
	value = cfg_node_get(node, "zone");
	if (value != NULL && cfg_read_name(value, "zone", errors, &zone))
		out->zone = cfg_keep_text(zone, errors);
	out->weight = (uint32_t)weight;
	out->state = (enum cfg_state)state;
}

/*
 * Fills as much of out as is right, and marks the rest; what there is of its name is the
 * caller's.
 */
static void
decode_backend(const struct cfg_node *node, const char *const extra[],
	struct cfg_errors *errors, struct cfg_backend *out)
{
	const size_t n_before = errors->n_errors;

	*out = (struct cfg_backend){.pos = node->pos, .bad = CFG_BAD_ALL};
	if (!check_backend_keys(node, extra, errors))
		return;
	out->bad = 0;
	cfg_decode_name(node, "backend", errors, &out->name, &out->name_pos);
	if (!decode_backend_address(node, errors, out))
		out->bad |= CFG_BAD_ADDRESS;
	decode_backend_options(node, errors, out);
	cfg_decode_quic_ids(cfg_node_get(node, "quic_id"), errors, out);
	/* What was refused before, an alias say, is told already and counts no error here. */
	if (errors->n_errors != n_before || out->name == NULL)
		out->bad |= CFG_BAD_OTHER;
}

bool
cfg_decode_backend(const struct cfg_node *node, const char *const extra[],
	struct cfg_errors *errors, struct cfg_backend *out)
{
	struct cfg_backend backend;

	decode_backend(node, extra, errors, &backend);
	if (backend.bad != 0) {
		cfg_backend_fini(&backend);
		return false;
	}
	*out = backend;
	return true;
}

static void
decode_backends(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	size_t n = cfg_count_items(node, "backends", errors);

	if (n > LB_SERVICE_BACKENDS_MAX)
		n = LB_SERVICE_BACKENDS_MAX;
	if (n == 0)
		return;
	out->backends = calloc(n, sizeof(*out->backends));
	if (out->backends == NULL) {
		cfg_error_memory(errors);
		return;
	}
	out->backends_room = n;
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next) {
		if (out->n_backends == n) {
			cfg_error(errors, item->pos,
				"one backend too many; a service has at most %u",
				LB_SERVICE_BACKENDS_MAX);
			return;
		}
		if (cfg_must_stop(errors))
			return;
		decode_backend(item, NULL, errors, &out->backends[out->n_backends++]);
	}
}

static bool
decode_table(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	static const char *const keys[] = {"algorithm", "size", "overload", NULL};
	const struct cfg_node *value;
	uint64_t n_slots = LB_SLOTS_DEFAULT;
	unsigned int algorithm = CFG_MAGLEV;
	bool is_right = true;

	if (node == NULL || cfg_node_is_null(node))
		return true;
	if (!cfg_node_check_keys(node, keys, errors))
		return false;
	value = cfg_node_get(node, "algorithm");
	if (value != NULL)
		is_right &= cfg_read_word(value, "algorithm", cfg_algorithm_words, errors,
			&algorithm);
	value = cfg_node_get(node, "size");
	if (value != NULL) {
		out->table_size_pos = value->pos;
		is_right &= cfg_read_u64(value, "size", LB_SLOTS_MIN, LB_SLOTS_MAX, errors,
			&n_slots);
	}
	out->algorithm = (enum cfg_algorithm)algorithm;
	out->n_slots = (uint32_t)n_slots;
	out->overload = algorithm == CFG_STABLE ? CFG_OVERLOAD_DEFAULT : 0;
	value = cfg_node_get(node, "overload");
	if (value != NULL) {
		out->overload_pos = value->pos;
		is_right &= cfg_read_percent(value, "overload", errors, &out->overload);
	}
	return is_right;
}

/* One item of carry: the bit that it stands for. */
static bool
decode_tunnel(const struct cfg_node *node, struct cfg_errors *errors, uint8_t *out)
{
	static const char *const numbers[] = {"4", "41", "47"};
	unsigned int i;

	for (i = 0; node->kind == CFG_SCALAR && i < LB_N_ELEMENTS(numbers); i++) {
		if (strcmp(node->text, numbers[i]) == 0) {
			*out = (uint8_t)(1u << i);
			return true;
		}
	}
	if (!cfg_read_word(node, "carry", cfg_carry_words, errors, &i))
		return false;
	*out = (uint8_t)(1u << i);
	return true;
}

static void
decode_carry(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	if (cfg_count_items(node, "carry", errors) == 0)
		return;
	out->carry_pos = node->pos;
	for (const struct cfg_node *item = node->first; item != NULL; item = item->next) {
		uint8_t bit;

		if (cfg_must_stop(errors))
			return;
		if (!decode_tunnel(item, errors, &bit))
			continue;
		if ((out->carry & bit) != 0)
			cfg_error(errors, item->pos,
				"carry: '%s' is there already; remove one of them", item->text);
		out->carry |= bit;
	}
}

/* Address, protocol and port: what the service is found by. */
static void
decode_place(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	const struct cfg_node *address = cfg_node_get(node, "address");
	const struct cfg_node *protocol = cfg_node_get(node, "protocol");
	const struct cfg_node *port = cfg_node_get(node, "port");
	unsigned int word = 0;
	uint64_t number = 0;

	out->address_pos = address == NULL ? node->pos : address->pos;
	out->port_pos = port == NULL ? node->pos : port->pos;
	if (address == NULL)
		(void)cfg_missing_key(node, "service", "address", errors);
	if (address == NULL || !cfg_read_prefix(address, "address", errors, &out->address))
		out->bad |= CFG_BAD_ADDRESS;
	if (protocol == NULL)
		(void)cfg_missing_key(node, "service", "protocol", errors);
	if (protocol == NULL ||
		!cfg_read_word(protocol, "protocol", cfg_protocol_words, errors, &word))
		out->bad |= CFG_BAD_PROTOCOL;
	if (port == NULL)
		(void)cfg_missing_key(node, "service", "port", errors);
	if (port == NULL || !cfg_read_u64_or_word(port, "port", "any", 65535, errors, &number))
		out->bad |= CFG_BAD_PORT;
	out->protocol = (enum cfg_protocol)word;
	out->port = (uint16_t)number;
}

/* How its packets go on: affinity, forward and what belongs to a mode. */
static void
decode_forward(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	const struct cfg_node *value;
	unsigned int affinity = CFG_AFFINITY_5_TUPLE;
	unsigned int forward = CFG_FORWARD_IPIP;
	uint64_t tunnel_port = 0;
	uint64_t vni = 0;

	value = cfg_node_get(node, "affinity");
	if (value != NULL) {
		out->affinity_pos = value->pos;
		if (!cfg_read_word(value, "affinity", cfg_affinity_words, errors, &affinity))
			out->bad |= CFG_BAD_AFFINITY;
	}
	value = cfg_node_get(node, "forward");
	if (value != NULL &&
		!cfg_read_word(value, "forward", cfg_forward_words, errors, &forward))
		out->bad |= CFG_BAD_FORWARD;
	value = cfg_node_get(node, "tunnel_port");
	if (value != NULL) {
		out->tunnel_port_pos = value->pos;
		(void)cfg_read_u64(value, "tunnel_port", 1, 65535, errors, &tunnel_port);
	}
	value = cfg_node_get(node, "vni");
	if (value != NULL) {
		out->vni_pos = value->pos;
		(void)cfg_read_u64(value, "vni", 0, VNI_MAX, errors, &vni);
	}
	out->affinity = (enum cfg_affinity)affinity;
	out->forward = (enum cfg_forward)forward;
	out->tunnel_port = (uint16_t)tunnel_port;
	out->vni = (uint32_t)vni;
}

static void
decode_mss_clamp(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_service *out)
{
	uint64_t mss;

	if (node == NULL)
		return;
	out->mss_clamp_pos = node->pos;
	if (node->kind == CFG_SCALAR && strcmp(node->text, "auto") == 0)
		out->mss_clamp = CFG_MSS_AUTO;
	else if (node->kind == CFG_SCALAR && cfg_scan_u64(node->text, MSS_MIN, MSS_MAX, &mss))
		out->mss_clamp = (uint16_t)mss;
	else
		(void)cfg_expected(node, "mss_clamp", errors,
			"auto or a whole number from 88 to 65495");
}

/* What becomes of packets that are special. */
static void
decode_special(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	const struct cfg_node *value = cfg_node_get(node, "echo");
	unsigned int word;

	if (value != NULL) {
		out->echo_pos = value->pos;
		if (cfg_read_word(value, "echo", cfg_echo_words, errors, &word))
			out->echo = (enum cfg_echo)word;
		else
			out->bad |= CFG_BAD_OTHER;
	}
	value = cfg_node_get(node, "fragment");
	if (value != NULL) {
		out->fragment_pos = value->pos;
		if (cfg_read_word(value, "fragment", cfg_fragment_words, errors, &word))
			out->fragment = (enum cfg_fragment)word;
	}
	decode_mss_clamp(cfg_node_get(node, "mss_clamp"), errors, out);
}

static void
decode_service(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_service *out)
{
	static const char *const keys[] = {"name", "address", "protocol", "port", "table",
		"affinity", "forward", "tunnel_port", "vni", "carry", "echo", "fragment",
		"mss_clamp", "quic", "health", "slow_start", "min_healthy", "when_all_down",
		"backends", NULL};

	*out = (struct cfg_service){
		.pos = node->pos,
		.n_slots = LB_SLOTS_DEFAULT,
		.forward = CFG_FORWARD_IPIP,
	};
	if (!cfg_node_check_keys(node, keys, errors)) {
		out->bad = CFG_BAD_ALL;
		return;
	}
	cfg_decode_name(node, "service", errors, &out->name, &out->name_pos);
	decode_place(node, errors, out);
	if (!decode_table(cfg_node_get(node, "table"), errors, out))
		out->bad |= CFG_BAD_TABLE;
	decode_forward(node, errors, out);
	decode_carry(cfg_node_get(node, "carry"), errors, out);
	decode_special(node, errors, out);
	if (!cfg_decode_quic(cfg_node_get(node, "quic"), errors, out))
		out->bad |= CFG_BAD_QUIC;
	cfg_decode_health(node, errors, out);
	decode_backends(cfg_node_get(node, "backends"), errors, out);
}

void
cfg_decode_services(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_model *out)
{
	const size_t n = cfg_count_items(node, "services", errors);

	if (n == 0)
		return;
	out->services = calloc(n, sizeof(*out->services));
	if (out->services == NULL) {
		cfg_error_memory(errors);
		return;
	}
	for (const struct cfg_node *item = node->first; item != NULL && !cfg_must_stop(errors);
		item = item->next)
		decode_service(item, errors, &out->services[out->n_services++]);
}
