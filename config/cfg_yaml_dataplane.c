/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_decode.h"

#define MTU_MIN           576u
#define MTU_MAX           9216u
#define MTU_DEFAULT       1500u
#define TIMEOUT_NS_MIN    1000000u
#define TIMEOUT_NS_MAX    (LB_FLOW_TIMEOUT_S_MAX * 1000000000ull)
#define VLAN_MAX          4094u
#define IDLE_SLEEP_NS_MIN 1000u
#define IDLE_SLEEP_NS_MAX 10000000u
#define DATAGRAMS_MIN     64u
#define DATAGRAMS_MAX     1048576u
#define WAITING_MIN       16u
#define WAITING_MAX       65535u
#define HANDOFF_MIN       64u
#define HANDOFF_MAX       65536u
#define REPLIES_MAX       65536u

/* The flow table tells all of them by one tick, and a flow stays two longer than its time. */
static void
check_precision(const uint64_t *const values[], size_t n, struct cfg_pos pos,
	struct cfg_errors *errors)
{
	char shortest[CFG_DURATION_TEXT_BYTES];
	char longest[CFG_DURATION_TEXT_BYTES];
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;
	uint64_t tick = 1;

	for (size_t i = 0; i < n; i++) {
		least = *values[i] < least ? *values[i] : least;
		most = *values[i] > most ? *values[i] : most;
	}
	while (most >> LB_FLOW_TICKS_LOG2 >= tick * 2)
		tick *= 2;
	if (tick * 2 > least / 10)
		cfg_warning(errors, pos,
			"flow_timeout: beside %s, %s may be up to %" PRIu64
			" us longer; for less bring them nearer to each other",
			cfg_format_duration(most, longest),
			cfg_format_duration(least, shortest), tick * 2 / 1000);
}

static void
decode_timeouts(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_dataplane *out)
{
	static const char *const keys[] = {"tcp_syn", "tcp", "tcp_closing", "udp", NULL};
	uint64_t *const values[] = {&out->tcp_syn_ns, &out->tcp_ns, &out->tcp_closing_ns,
		&out->udp_ns};

	if (node == NULL || cfg_node_is_null(node) || !cfg_node_check_keys(node, keys, errors))
		return;
	for (size_t i = 0; i < LB_N_ELEMENTS(values); i++) {
		const struct cfg_node *value = cfg_node_get(node, keys[i]);

		if (value != NULL)
			(void)cfg_read_duration(value, keys[i], TIMEOUT_NS_MIN, TIMEOUT_NS_MAX,
				errors, values[i]);
	}
	check_precision((const uint64_t *const *)values, LB_N_ELEMENTS(values), node->pos,
		errors);
}

/* A number that may be absent. */
static void
decode_number(const struct cfg_node *mapping, const char *key, const uint32_t range[2],
	struct cfg_errors *errors, uint32_t *out)
{
	const struct cfg_node *value = cfg_node_get(mapping, key);
	uint64_t number;

	if (value != NULL && cfg_read_u64(value, key, range[0], range[1], errors, &number))
		*out = (uint32_t)number;
}

static void
decode_fragments(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_dataplane *out)
{
	static const char *const keys[] = {"datagrams", "waiting", NULL};
	static const uint32_t datagrams[] = {DATAGRAMS_MIN, DATAGRAMS_MAX};
	static const uint32_t waiting[] = {WAITING_MIN, WAITING_MAX};

	if (node == NULL || cfg_node_is_null(node) || !cfg_node_check_keys(node, keys, errors))
		return;
	decode_number(node, "datagrams", datagrams, errors, &out->fragment_datagrams);
	decode_number(node, "waiting", waiting, errors, &out->fragment_waiting);
}

static void
decode_replies(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_dataplane *out)
{
	static const char *const keys[] = {"total", "source", NULL};
	static const uint32_t range[] = {1, REPLIES_MAX};

	if (node == NULL || cfg_node_is_null(node) || !cfg_node_check_keys(node, keys, errors))
		return;
	decode_number(node, "total", range, errors, &out->replies_total);
	decode_number(node, "source", range, errors, &out->replies_source);
}

static void
decode_handoff(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_dataplane *out)
{
	uint64_t number;
	uint32_t power = HANDOFF_MIN;

	if (node == NULL ||
		!cfg_read_u64(node, "handoff", HANDOFF_MIN, HANDOFF_MAX, errors, &number))
		return;
	while (power < number)
		power *= 2;
	if (power != number)
		cfg_error(errors, node->pos,
			"handoff: expected a power of two, and %" PRIu64
			" is none; the next is %" PRIu32,
			number, power);
	out->handoff = power;
}

/* What is made room for at the start. */
static void
decode_bounds(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_dataplane *out)
{
	static const uint32_t flow_entries[] = {1, LB_FLOW_ENTRIES_MAX};

	const struct cfg_node *addresses = cfg_node_get(node, "flow_addresses");

	decode_number(node, "flow_entries", flow_entries, errors, &out->flow_entries);
	if (addresses != NULL)
		(void)cfg_read_bool(addresses, "flow_addresses", errors, &out->flow_addresses);
	decode_timeouts(cfg_node_get(node, "flow_timeout"), errors, out);
	decode_fragments(cfg_node_get(node, "fragments"), errors, out);
	decode_handoff(cfg_node_get(node, "handoff"), errors, out);
	decode_replies(cfg_node_get(node, "replies"), errors, out);
}

static bool
decode_port_address(const struct cfg_node *node, struct cfg_errors *errors,
	struct lb_prefix *out)
{
	struct lb_prefix prefix;

	if (!cfg_read_prefix(node, "addresses", errors, &prefix))
		return false;
	if (!lb_addr_is_unicast(&prefix.addr))
		return cfg_expected(node, "addresses", errors,
			"a unicast address of the balancer's own such as 192.0.2.1/24");
	*out = prefix;
	return true;
}

static bool
decode_port_addresses(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_port *out)
{
	const size_t n_before = errors->n_errors;
	const size_t n = cfg_count_items(node, "addresses", errors);

	if (n == 0)
		return errors->n_errors == n_before;
	out->addresses = calloc(n, sizeof(*out->addresses));
	if (out->addresses == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	for (const struct cfg_node *item = node->first; item != NULL && !cfg_must_stop(errors);
		item = item->next) {
		if (decode_port_address(item, errors, &out->addresses[out->n_addresses]))
			out->n_addresses++;
	}
	return errors->n_errors == n_before;
}

static bool
decode_route(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_route *out)
{
	static const char *const keys[] = {"to", "via", NULL};
	const struct cfg_node *to = cfg_node_get(node, "to");
	const struct cfg_node *via = cfg_node_get(node, "via");

	if (!cfg_node_check_keys(node, keys, errors))
		return false;
	if (to == NULL)
		return cfg_missing_key(node, "route", "to", errors);
	if (via == NULL)
		return cfg_missing_key(node, "route", "via", errors);
	out->pos = node->pos;
	return cfg_read_prefix(to, "to", errors, &out->to) &&
	       cfg_read_address(via, "via", errors, &out->via);
}

static void
decode_routes(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_port *out)
{
	const size_t n = cfg_count_items(node, "routes", errors);

	if (n == 0)
		return;
	out->routes = calloc(n, sizeof(*out->routes));
	if (out->routes == NULL) {
		cfg_error_memory(errors);
		return;
	}
	for (const struct cfg_node *item = node->first; item != NULL && !cfg_must_stop(errors);
		item = item->next) {
		if (decode_route(item, errors, &out->routes[out->n_routes]))
			out->n_routes++;
	}
}

static void
decode_mtu(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_port *out)
{
	uint64_t mtu;

	if (node == NULL || !cfg_read_u64(node, "mtu", MTU_MIN, MTU_MAX, errors, &mtu))
		return;
	out->mtu = (uint16_t)mtu;
	out->mtu_pos = node->pos;
}

static void
decode_vlan(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_port *out)
{
	uint64_t id;

	if (node == NULL)
		return;
	if (node->kind == CFG_SCALAR && strcmp(node->text, "keep") == 0)
		out->vlan = CFG_VLAN_KEEP;
	else if (node->kind == CFG_SCALAR && strcmp(node->text, "none") == 0)
		out->vlan = CFG_VLAN_NONE;
	else if (node->kind == CFG_SCALAR && cfg_scan_u64(node->text, 1, VLAN_MAX, &id))
		out->vlan = (uint16_t)id;
	else
		(void)cfg_expected(node, "vlan", errors,
			"keep, none or a whole number from 1 to 4094");
}

static void
decode_device(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_port *out)
{
	const struct cfg_node *value = cfg_node_get(node, "device");
	const char *text;

	if (value == NULL) {
		(void)cfg_missing_key(node, "port", "device", errors);
	} else if (cfg_read_text(value, "device", errors, &text)) {
		out->device = cfg_keep_text(text, errors);
		out->device_pos = value->pos;
	}
}

static void
decode_port(const struct cfg_node *node, bool answer_arp, struct cfg_errors *errors,
	struct cfg_port *out)
{
	static const char *const keys[] = {"name", "device", "addresses", "routes", "next_hop",
		"mtu", "answer_arp", "vlan", NULL};
	const struct cfg_node *next_hop;
	const struct cfg_node *value;

	out->pos = node->pos;
	out->mtu = MTU_DEFAULT;
	out->answer_arp = answer_arp;
	if (!cfg_node_check_keys(node, keys, errors)) {
		out->bad = CFG_BAD_ALL;
		return;
	}
	cfg_decode_name(node, "port", errors, &out->name, &out->name_pos);
	decode_device(node, errors, out);
	if (!decode_port_addresses(cfg_node_get(node, "addresses"), errors, out))
		out->bad |= CFG_BAD_ADDRESS;
	decode_routes(cfg_node_get(node, "routes"), errors, out);
	decode_mtu(cfg_node_get(node, "mtu"), errors, out);
	next_hop = cfg_node_get(node, "next_hop");
	if (next_hop != NULL)
		out->has_next_hop = cfg_read_mac(next_hop, "next_hop", errors, &out->next_hop);
	value = cfg_node_get(node, "answer_arp");
	if (value != NULL)
		(void)cfg_read_bool(value, "answer_arp", errors, &out->answer_arp);
	decode_vlan(cfg_node_get(node, "vlan"), errors, out);
}

static void
decode_ports(const struct cfg_node *node, struct cfg_errors *errors, struct cfg_dataplane *out)
{
	size_t n;

	if (node == NULL)
		return;
	out->ports_pos = node->pos;
	if (node->kind != CFG_SEQUENCE && !cfg_node_is_null(node))
		out->bad = CFG_BAD_OTHER;
	n = cfg_count_items(node, "ports", errors);
	if (n == 0)
		return;
	out->ports = calloc(n, sizeof(*out->ports));
	if (out->ports == NULL) {
		cfg_error_memory(errors);
		return;
	}
	for (const struct cfg_node *item = node->first; item != NULL && !cfg_must_stop(errors);
		item = item->next)
		decode_port(item, out->answer_arp, errors, &out->ports[out->n_ports++]);
}

void
cfg_decode_dataplane(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_dataplane *out)
{
	static const char *const keys[] = {"workers", "kernel", "idle", "idle_sleep",
		"flow_entries", "flow_addresses", "flow_timeout", "answer_arp", "fragments",
		"handoff", "replies", "ports", NULL};
	const struct cfg_node *value;
	unsigned int word;
	uint64_t number;

	if (node == NULL)
		return;
	out->ports_pos = node->pos;
	if (cfg_node_is_null(node))
		return;
	if (!cfg_node_check_keys(node, keys, errors)) {
		out->bad = CFG_BAD_OTHER;
		return;
	}
	value = cfg_node_get(node, "workers");
	if (value != NULL &&
		cfg_read_u64_or_word(value, "workers", "auto", LB_WORKERS_MAX, errors, &number))
		out->workers = (uint32_t)number;
	value = cfg_node_get(node, "kernel");
	if (value != NULL && cfg_read_word(value, "kernel", cfg_kernel_words, errors, &word))
		out->kernel = (enum cfg_kernel)word;
	value = cfg_node_get(node, "idle");
	if (value != NULL && cfg_read_word(value, "idle", cfg_idle_words, errors, &word))
		out->idle = (enum cfg_idle)word;
	value = cfg_node_get(node, "idle_sleep");
	if (value != NULL)
		(void)cfg_read_duration(value, "idle_sleep", IDLE_SLEEP_NS_MIN,
			IDLE_SLEEP_NS_MAX, errors, &out->idle_sleep_ns);
	decode_bounds(node, errors, out);
	value = cfg_node_get(node, "answer_arp");
	if (value != NULL)
		(void)cfg_read_bool(value, "answer_arp", errors, &out->answer_arp);
	/* Last: what a port does not say is said above. */
	decode_ports(cfg_node_get(node, "ports"), errors, out);
}
