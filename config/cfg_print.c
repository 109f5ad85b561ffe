/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "cfg_character.h"
#include "cfg_node.h"

/* Words that some reader of YAML takes for a boolean or null. */
static bool
is_special_word(const char *text)
{
	static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "y", "n",
		"null"};

	for (size_t i = 0; i < LB_N_ELEMENTS(words); i++) {
		if (strcasecmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

/* Whether every reader of YAML takes the text for itself: a letter first, then few more. */
static bool
is_plain(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_.-";

	return text[0] != '\0' && strchr(letters, text[0]) != NULL &&
	       text[strspn(text, rest)] == '\0' && !is_special_word(text);
}

static void
print_quoted(const char *text, FILE *to)
{
	(void)fputc('"', to);
	while (*text != '\0') {
		uint32_t c = (unsigned char)*text;
		const size_t n = cfg_decode_character(text, strnlen(text, 4), &c);
		const size_t n_bytes = n > 0 ? n : 1;

		/* A space that does not break is no flaw, but is not seen either. */
		if (n > 0 && (cfg_find_character_flaw(c) != NULL || c == 0xa0))
			(void)fprintf(to, c < 0x80 ? "\\x%02" PRIx32 : "\\u%04" PRIx32, c);
		else if (c == '"' || c == '\\')
			(void)fprintf(to, "\\%c", (int)c);
		else
			(void)fwrite(text, 1, n_bytes, to);
		text += n_bytes;
	}
	(void)fputc('"', to);
}

static void
print_text(const char *text, FILE *to)
{
	if (is_plain(text))
		(void)fputs(text, to);
	else
		print_quoted(text, to);
}

/* IPv6 in quotes: its colons mean something to YAML in some places. */
static void
print_prefix(const struct lb_prefix *prefix, FILE *to)
{
	const char *quote = lb_addr_is_v4(&prefix->addr) ? "" : "\"";
	char text[LB_PREFIX_TEXT_BYTES];

	(void)fprintf(to, "%s%s%s", quote, lb_prefix_format(prefix, text), quote);
}

static void
print_address(const struct lb_addr *address, FILE *to)
{
	const struct lb_prefix prefix = {.addr = *address, .n_bits = 128};

	print_prefix(&prefix, to);
}

/* In quotes: 02:00:00:00:00:10 is a number to the base of 60 for some readers. */
static void
print_mac(const struct lb_mac *mac, FILE *to)
{
	char text[LB_MAC_TEXT_BYTES];

	(void)fprintf(to, "\"%s\"", lb_mac_format(mac, text));
}

static void
print_routes(const struct cfg_port *port, FILE *to)
{
	(void)fputs("      routes:\n", to);
	for (size_t i = 0; i < port->n_routes; i++) {
		const struct cfg_route *route = &port->routes[i];

		(void)fputs("        - {to: ", to);
		print_prefix(&route->to, to);
		(void)fputs(", via: ", to);
		print_address(&route->via, to);
		(void)fputs("}\n", to);
	}
}

static void
print_port(const struct cfg_port *port, FILE *to)
{
	(void)fputs("    - name: ", to);
	print_text(port->name, to);
	(void)fputs("\n      device: ", to);
	print_text(port->device, to);
	(void)fputs("\n      addresses: [", to);
	for (size_t i = 0; i < port->n_addresses; i++) {
		(void)fputs(i == 0 ? "" : ", ", to);
		print_prefix(&port->addresses[i], to);
	}
	(void)fputs("]\n", to);
	if (port->n_routes != 0)
		print_routes(port, to);
	if (port->has_next_hop) {
		(void)fputs("      next_hop: ", to);
		print_mac(&port->next_hop, to);
		(void)fputc('\n', to);
	}
	(void)fprintf(to, "      mtu: %u\n      answer_arp: %s\n", (unsigned int)port->mtu,
		cfg_bool_words[port->answer_arp]);
	if (port->vlan == CFG_VLAN_NONE)
		(void)fputs("      vlan: none\n", to);
	else if (port->vlan != CFG_VLAN_KEEP)
		(void)fprintf(to, "      vlan: %u\n", (unsigned int)port->vlan);
}

/* The rest of what is fixed at the start, where it is not as it would be anyway. */
static void
print_bounds(const struct cfg_dataplane *dataplane, FILE *to)
{
	struct cfg_model defaults;
	const struct cfg_dataplane *usual = &defaults.dataplane;

	cfg_model_init(&defaults);
	if (dataplane->fragment_datagrams != usual->fragment_datagrams ||
		dataplane->fragment_waiting != usual->fragment_waiting)
		(void)fprintf(to,
			"  fragments: {datagrams: %" PRIu32 ", waiting: %" PRIu32 "}\n",
			dataplane->fragment_datagrams, dataplane->fragment_waiting);
	if (dataplane->handoff != usual->handoff)
		(void)fprintf(to, "  handoff: %" PRIu32 "\n", dataplane->handoff);
	if (dataplane->replies_total != usual->replies_total ||
		dataplane->replies_source != usual->replies_source)
		(void)fprintf(to, "  replies: {total: %" PRIu32 ", source: %" PRIu32 "}\n",
			dataplane->replies_total, dataplane->replies_source);
}

static void
print_dataplane(const struct cfg_dataplane *dataplane, FILE *to)
{
	char syn[CFG_DURATION_TEXT_BYTES];
	char tcp[CFG_DURATION_TEXT_BYTES];
	char closing[CFG_DURATION_TEXT_BYTES];
	char udp[CFG_DURATION_TEXT_BYTES];
	char sleep[CFG_DURATION_TEXT_BYTES];

	(void)fputs("dataplane:\n  workers: ", to);
	if (dataplane->workers == 0)
		(void)fputs("auto\n", to);
	else
		(void)fprintf(to, "%" PRIu32 "\n", dataplane->workers);
	(void)fprintf(to, "  kernel: %s\n  idle: %s\n  idle_sleep: %s\n",
		cfg_kernel_words[dataplane->kernel], cfg_idle_words[dataplane->idle],
		cfg_format_duration(dataplane->idle_sleep_ns, sleep));
	(void)fprintf(to, "  flow_entries: %" PRIu32 "\n", dataplane->flow_entries);
	(void)fprintf(to, "  flow_addresses: %s\n", cfg_bool_words[dataplane->flow_addresses]);
	(void)fprintf(to, "  flow_timeout: {tcp_syn: %s, tcp: %s, tcp_closing: %s, udp: %s}\n",
		cfg_format_duration(dataplane->tcp_syn_ns, syn),
		cfg_format_duration(dataplane->tcp_ns, tcp),
		cfg_format_duration(dataplane->tcp_closing_ns, closing),
		cfg_format_duration(dataplane->udp_ns, udp));
	(void)fprintf(to, "  answer_arp: %s\n", cfg_bool_words[dataplane->answer_arp]);
	print_bounds(dataplane, to);
	if (dataplane->n_ports == 0) {
		(void)fputs("  ports: []\n", to);
		return;
	}
	(void)fputs("  ports:\n", to);
	for (size_t i = 0; i < dataplane->n_ports; i++)
		print_port(&dataplane->ports[i], to);
}

static void
print_control(const struct cfg_model *model, FILE *to)
{
	(void)fputs("control:\n  socket: ", to);
	print_text(model->control_socket, to);
	(void)fputs("\n  metrics: ", to);
	if (model->control_metrics == NULL)
		(void)fputs("off", to);
	else
		print_text(model->control_metrics, to);
	(void)fputc('\n', to);
}

/* Where it is not as it would be anyway. */
static void
print_announce(const struct cfg_announce *announce, FILE *to)
{
	char delay[CFG_DURATION_TEXT_BYTES];
	struct cfg_model defaults;
	const struct cfg_announce *usual = &defaults.announce;

	cfg_model_init(&defaults);
	if (announce->interface == NULL && announce->table == usual->table &&
		announce->metric == usual->metric &&
		announce->withdraw_before_stop_ns == usual->withdraw_before_stop_ns)
		return;
	(void)fputs("announce:\n  interface: ", to);
	if (announce->interface == NULL)
		(void)fputs("off", to);
	else
		print_text(announce->interface, to);
	if (announce->table == CFG_TABLE_MAIN)
		(void)fputs("\n  table: main\n", to);
	else
		(void)fprintf(to, "\n  table: %" PRIu32 "\n", announce->table);
	(void)fprintf(to, "  metric: %" PRIu32 "\n  withdraw_before_stop: %s\n",
		announce->metric,
		cfg_format_duration(announce->withdraw_before_stop_ns, delay));
}

/* In quotes: 0012 and 1e10 are numbers for some readers. */
static void
print_quic_ids(const struct cfg_backend *backend, FILE *to)
{
	const bool is_list = backend->n_quic_ids > 1;

	(void)fprintf(to, ", quic_id: %s", is_list ? "[" : "");
	for (size_t i = 0; i < backend->n_quic_ids; i++) {
		char text[CFG_QUIC_ID_TEXT_BYTES];

		(void)fprintf(to, "%s\"%s\"", i == 0 ? "" : ", ",
			cfg_quic_id_format(&backend->quic_ids[i], text));
	}
	(void)fputs(is_list ? "]" : "", to);
}

static void
print_backend(const struct cfg_backend *backend, FILE *to)
{
	(void)fputs("      - {name: ", to);
	print_text(backend->name, to);
	(void)fputs(", address: ", to);
	print_address(&backend->address, to);
	(void)fprintf(to, ", weight: %" PRIu32 ", state: %s", backend->weight,
		cfg_state_words[backend->state]);
	if (backend->has_mac) {
		(void)fputs(", mac: ", to);
		print_mac(&backend->mac, to);
	}
	if (backend->zone != NULL) {
		(void)fputs(", zone: ", to);
		print_text(backend->zone, to);
	}
	if (backend->n_quic_ids > 0)
		print_quic_ids(backend, to);
	(void)fputs("}\n", to);
}

static void
print_carry(uint8_t carry, FILE *to)
{
	const char *between = "";

	(void)fputs("    carry: [", to);
	for (unsigned int i = 0; i < CFG_N_CARRIES; i++) {
		if ((carry & 1u << i) == 0)
			continue;
		(void)fprintf(to, "%s%s", between, cfg_carry_words[i]);
		between = ", ";
	}
	(void)fputs("]\n", to);
}

static void
print_quic(const struct cfg_quic *quic, FILE *to)
{
	(void)fprintf(to, "      - {config_id: %u, server_id_length: %u, nonce_length: %u",
		(unsigned int)quic->config_id, (unsigned int)quic->server_id_bytes,
		(unsigned int)quic->nonce_bytes);
	if (quic->has_key) {
		(void)fputs(", cid_key: \"", to);
		for (size_t i = 0; i < sizeof(quic->key); i++)
			(void)fprintf(to, "%02x", (unsigned int)quic->key[i]);
		(void)fputc('"', to);
	}
	if (quic->has_length)
		(void)fputs(", first_octet_encodes_cid_length: true", to);
	(void)fputs("}\n", to);
}

/* Where it is not as it would be anyway. */
static void
print_special(const struct cfg_service *service, FILE *to)
{
	if (service->echo != CFG_ECHO_REPLY)
		(void)fprintf(to, "    echo: %s\n", cfg_echo_words[service->echo]);
	if (service->fragment != CFG_FRAGMENT_INNER)
		(void)fprintf(to, "    fragment: %s\n", cfg_fragment_words[service->fragment]);
	if (service->mss_clamp == CFG_MSS_AUTO)
		(void)fputs("    mss_clamp: auto\n", to);
	else if (service->mss_clamp != 0)
		(void)fprintf(to, "    mss_clamp: %u\n", (unsigned int)service->mss_clamp);
	if (service->n_quic > 0)
		(void)fputs("    quic:\n", to);
	for (size_t i = 0; i < service->n_quic; i++)
		print_quic(&service->quic[i], to);
}

/* Of http and https: statuses, as they are written; nothing where they are the usual ones. */
static void
print_statuses(const struct cfg_health *health, FILE *to)
{
	if (health->n_expect > 0)
		(void)fputs(", expect: [", to);
	for (size_t i = 0; i < health->n_expect; i++) {
		const struct cfg_range *range = &health->expect[i];

		(void)fprintf(to, range->first == range->last ? "%s%u" : "%s%u-%u",
			i > 0 ? ", " : "", (unsigned int)range->first,
			(unsigned int)range->last);
	}
	if (health->n_expect > 0)
		(void)fputc(']', to);
}

static void
print_check(const struct cfg_health *health, FILE *to)
{
	char interval[CFG_DURATION_TEXT_BYTES];
	char timeout[CFG_DURATION_TEXT_BYTES];
	char half_life[CFG_DURATION_TEXT_BYTES];

	(void)fprintf(to, "    health: {type: %s", cfg_health_words[health->type]);
	if (health->port != 0)
		(void)fprintf(to, ", port: %u", (unsigned int)health->port);
	if (health->path != NULL) {
		(void)fputs(", path: ", to);
		print_text(health->path, to);
	}
	if (health->host != NULL) {
		(void)fputs(", host: ", to);
		print_text(health->host, to);
	}
	print_statuses(health, to);
	if (health->wants_reply)
		(void)fputs(", expect: reply", to);
	if (!health->is_verified)
		(void)fputs(", verify: false", to);
	if (health->is_tunnelled)
		(void)fputs(", via: tunnel", to);
	(void)fprintf(to,
		", interval: %s, timeout: %s, rise: %" PRIu32 ", fall: %" PRIu32
		", flap_half_life: %s}\n",
		cfg_format_duration(health->interval_ns, interval),
		cfg_format_duration(health->timeout_ns, timeout), health->rise, health->fall,
		health->half_life_ns == 0
			? "off"
			: cfg_format_duration(health->half_life_ns, half_life));
}

/* Where it is not as it would be anyway. */
static void
print_health(const struct cfg_service *service, FILE *to)
{
	char slow_start[CFG_DURATION_TEXT_BYTES];

	if (service->health.type != CFG_HEALTH_NONE)
		print_check(&service->health, to);
	if (service->slow_start_ns != 0)
		(void)fprintf(to, "    slow_start: %s\n",
			cfg_format_duration(service->slow_start_ns, slow_start));
	if (service->min_healthy > 1)
		(void)fprintf(to, "    min_healthy: %" PRIu32 "\n", service->min_healthy);
	if (service->when_all_down != CFG_ALL_DOWN_KEEP)
		(void)fprintf(to, "    when_all_down: %s\n",
			cfg_all_down_words[service->when_all_down]);
}

static void
print_table(const struct cfg_service *service, FILE *to)
{
	char overload[CFG_PERCENT_TEXT_BYTES];

	(void)fprintf(to, "    table: {algorithm: %s, size: %" PRIu32,
		cfg_algorithm_words[service->algorithm], service->n_slots);
	if (service->algorithm == CFG_STABLE)
		(void)fprintf(to, ", overload: %s",
			cfg_format_percent(service->overload, overload));
	(void)fputs("}\n", to);
}

static void
print_service(const struct cfg_service *service, FILE *to)
{
	(void)fputs("  - name: ", to);
	print_text(service->name, to);
	(void)fputs("\n    address: ", to);
	print_prefix(&service->address, to);
	(void)fprintf(to, "\n    protocol: %s\n", cfg_protocol_words[service->protocol]);
	if (service->port == 0)
		(void)fputs("    port: any\n", to);
	else
		(void)fprintf(to, "    port: %u\n", (unsigned int)service->port);
	print_table(service, to);
	(void)fprintf(to, "    affinity: %s\n    forward: %s\n",
		cfg_affinity_words[service->affinity], cfg_forward_words[service->forward]);
	if (service->tunnel_port != 0)
		(void)fprintf(to, "    tunnel_port: %u\n", (unsigned int)service->tunnel_port);
	if (service->forward == CFG_FORWARD_VXLAN)
		(void)fprintf(to, "    vni: %" PRIu32 "\n", service->vni);
	if (service->carry != 0)
		print_carry(service->carry, to);
	print_special(service, to);
	print_health(service, to);
	if (service->n_backends == 0) {
		(void)fputs("    backends: []\n", to);
		return;
	}
	(void)fputs("    backends:\n", to);
	for (size_t i = 0; i < service->n_backends; i++)
		print_backend(&service->backends[i], to);
}

int
cfg_print(const struct cfg_model *model, FILE *to)
{
	print_dataplane(&model->dataplane, to);
	print_control(model, to);
	print_announce(&model->announce, to);
	if (model->n_services == 0)
		(void)fputs("services: []\n", to);
	else
		(void)fputs("services:\n", to);
	for (size_t i = 0; i < model->n_services; i++)
		print_service(&model->services[i], to);
	(void)fprintf(to, "hash_seed: %" PRIu64 "\n", model->hash_seed);

	/* One look at the end is enough: a stream remembers its errors. */
	if (fflush(to) != 0 || ferror(to) != 0)
		return -EIO;
	return 0;
}
