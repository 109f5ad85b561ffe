/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_check_parts.h"
#include "cfg_seen.h"
#include "lb_prime.h"

static uint64_t
hash_name(const char *name)
{
	return cfg_hash_bytes(name, strlen(name), CFG_HASH_BEGIN);
}

void
cfg_check_tell_duplicate(struct cfg_errors *errors, const char *what, const char *name,
	struct cfg_pos pos, struct cfg_pos first)
{
	if (first.line != 0)
		cfg_error(errors, pos,
			"the name '%s' is taken by another %s, on line %" PRIu32
			"; give each its own",
			name, what, first.line);
	else
		cfg_error(errors, pos,
			"the name '%s' is taken by another %s; give each its own", name, what);
}

static bool
is_same_backend_name(const void *items, size_t a, size_t b)
{
	const struct cfg_backend *backends = items;

	return strcmp(backends[a].name, backends[b].name) == 0;
}

static void
check_backend_names(const struct cfg_service *service, struct cfg_errors *errors)
{
	const struct cfg_backend *backends = service->backends;
	struct cfg_seen seen;

	if (!cfg_seen_init(&seen, backends, service->n_backends, is_same_backend_name, errors))
		return;
	for (size_t i = 0; i < service->n_backends; i++) {
		const char *name = backends[i].name;
		const size_t first =
			name == NULL ? i : cfg_seen_find_or_add(&seen, i, hash_name(name));

		if (first != i)
			cfg_check_tell_duplicate(errors, "backend of the service", name,
				backends[i].name_pos, backends[first].name_pos);
	}
	cfg_seen_fini(&seen);
}

static bool
is_same_service_name(const void *items, size_t a, size_t b)
{
	const struct cfg_service *services = items;

	return strcmp(services[a].name, services[b].name) == 0;
}

static void
check_service_names(const struct cfg_model *model, struct cfg_errors *errors)
{
	const struct cfg_service *services = model->services;
	struct cfg_seen seen;

	if (!cfg_seen_init(&seen, services, model->n_services, is_same_service_name, errors))
		return;
	for (size_t i = 0; i < model->n_services; i++) {
		const char *name = services[i].name;
		const size_t first =
			name == NULL ? i : cfg_seen_find_or_add(&seen, i, hash_name(name));

		if (first != i)
			cfg_check_tell_duplicate(errors, "service", name, services[i].name_pos,
				services[first].name_pos);
	}
	cfg_seen_fini(&seen);
}

static uint64_t
hash_place(const struct cfg_service *service)
{
	const uint8_t rest[] = {service->address.n_bits, (uint8_t)service->protocol,
		(uint8_t)(service->port >> 8), (uint8_t)service->port};

	return cfg_hash_bytes(rest, sizeof(rest),
		cfg_hash_bytes(service->address.addr.bytes, LB_ADDR_BYTES, CFG_HASH_BEGIN));
}

static bool
is_same_place(const void *items, size_t index_a, size_t index_b)
{
	const struct cfg_service *a = (const struct cfg_service *)items + index_a;
	const struct cfg_service *b = (const struct cfg_service *)items + index_b;

	return a->address.n_bits == b->address.n_bits && a->protocol == b->protocol &&
	       a->port == b->port && lb_addr_equal(&a->address.addr, &b->address.addr);
}

static void
tell_same_place(struct cfg_errors *errors, const struct cfg_service *service,
	const struct cfg_service *first)
{
	char address[LB_PREFIX_TEXT_BYTES];
	char port[8] = "any";

	if (service->port != 0)
		(void)snprintf(port, sizeof(port), "%u", (unsigned int)service->port);
	cfg_error(errors, service->address_pos,
		"address %s, protocol %s and port %s are those of service '%s', on line "
		"%" PRIu32 "; one of the three has to differ",
		lb_prefix_format(&service->address, address),
		cfg_protocol_words[service->protocol], port,
		first->name == NULL ? "" : first->name, first->pos.line);
}

/* No two services for one packet. */
static void
check_places(const struct cfg_model *model, struct cfg_errors *errors)
{
	const uint8_t bad = CFG_BAD_ADDRESS | CFG_BAD_PROTOCOL | CFG_BAD_PORT;
	const struct cfg_service *services = model->services;
	struct cfg_seen seen;

	if (!cfg_seen_init(&seen, services, model->n_services, is_same_place, errors))
		return;
	for (size_t i = 0; i < model->n_services; i++) {
		size_t first;

		if ((services[i].bad & bad) != 0)
			continue;
		first = cfg_seen_find_or_add(&seen, i, hash_place(&services[i]));
		if (first != i)
			tell_same_place(errors, &services[i], &services[first]);
	}
	cfg_seen_fini(&seen);
}

static bool
is_same_prefix(const void *items, size_t a, size_t b)
{
	const struct cfg_service *services = items;

	return lb_prefix_equal(&services[a].address, &services[b].address);
}

static void
warn_of_echo(const struct cfg_service *service, const struct cfg_service *first,
	struct cfg_errors *errors)
{
	const struct cfg_pos pos =
		service->echo_pos.line != 0 ? service->echo_pos : service->address_pos;
	char address[LB_PREFIX_TEXT_BYTES];

	cfg_warning(errors, pos,
		"echo: %s of service '%s' is not used, as service '%s' has the same address "
		"%s, comes first, and has %s; give both the same",
		cfg_echo_words[service->echo], service->name == NULL ? "" : service->name,
		first->name == NULL ? "" : first->name,
		lb_prefix_format(&service->address, address), cfg_echo_words[first->echo]);
}

/* An echo request has no port, so of the services of one address one says what becomes of it.
 */
static void
check_echoes(const struct cfg_model *model, struct cfg_errors *errors)
{
	const struct cfg_service *services = model->services;
	struct cfg_seen seen;

	if (!cfg_seen_init(&seen, services, model->n_services, is_same_prefix, errors))
		return;
	for (size_t i = 0; i < model->n_services; i++) {
		const struct lb_prefix *address = &services[i].address;
		size_t first;

		if ((services[i].bad & (CFG_BAD_ADDRESS | CFG_BAD_OTHER)) != 0)
			continue;
		first = cfg_seen_find_or_add(&seen, i,
			cfg_hash_bytes(&address->n_bits, 1,
				cfg_hash_bytes(address->addr.bytes, LB_ADDR_BYTES,
					CFG_HASH_BEGIN)));
		if (services[first].echo != services[i].echo)
			warn_of_echo(&services[i], &services[first], errors);
	}
	cfg_seen_fini(&seen);
}

/* Whether a tunnel to a backend of this family has an address to begin at. */
static bool
can_send(const struct cfg_dataplane *dataplane, bool is_v4)
{
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		if ((dataplane->ports[i].bad & CFG_BAD_ADDRESS) != 0 ||
			cfg_check_has_family(&dataplane->ports[i], is_v4))
			return true;
	}
	return dataplane->n_ports == 0;
}

/* Where an error of a service's table is told. */
static struct cfg_pos
find_table_pos(const struct cfg_service *service)
{
	return service->table_size_pos.line != 0 ? service->table_size_pos : service->pos;
}

/* A backend that drains or is down may come up, so it counts. */
static uint64_t
count_points(const struct cfg_service *service)
{
	uint64_t total = 0;

	for (size_t i = 0; i < service->n_backends; i++)
		total += cfg_check_points(service->backends[i].weight);
	return total;
}

bool
cfg_check_room(const struct cfg_service *service, struct cfg_pos pos, struct cfg_errors *errors)
{
	const uint64_t n_scores = (uint64_t)service->n_backends * service->n_slots;
	const uint64_t n_points = service->algorithm == CFG_RING ? count_points(service) : 0;

	if (n_points > LB_RING_POINTS_MAX) {
		cfg_error(errors, pos,
			"the weights of all backends make %" PRIu64
			" points on the ring, and there may be %u; expected weights in the "
			"same proportions, at most 1/%" PRIu64 " of these",
			n_points, LB_RING_POINTS_MAX,
			n_points / LB_RING_POINTS_MAX + (n_points % LB_RING_POINTS_MAX != 0));
		return false;
	}
	if (service->algorithm == CFG_RENDEZVOUS && n_scores > LB_HRW_SCORES_MAX) {
		cfg_error(errors, pos,
			"size: rendezvous compares every backend for every slot, and %zu "
			"backends for %" PRIu32 " slots take too long; expected at most "
			"%" PRIu64 " slots for so many, or another algorithm",
			service->n_backends, service->n_slots,
			LB_HRW_SCORES_MAX / service->n_backends);
		return false;
	}
	return true;
}

static bool
needs_prime(enum cfg_algorithm algorithm)
{
	return algorithm == CFG_MAGLEV || algorithm == CFG_STABLE;
}

static void
check_overload(const struct cfg_service *service, struct cfg_errors *errors)
{
	const bool is_there = service->overload != 0 || service->overload_pos.line != 0;

	if (is_there && service->algorithm != CFG_STABLE)
		cfg_error(errors, service->overload_pos,
			"overload is for algorithm stable, and this service has %s; remove it",
			cfg_algorithm_words[service->algorithm]);
}

static void
check_table(const struct cfg_service *service, struct cfg_errors *errors)
{
	const struct cfg_pos pos = find_table_pos(service);
	const uint32_t n_slots = service->n_slots;

	if ((service->bad & CFG_BAD_TABLE) != 0)
		return;
	check_overload(service, errors);
	if (n_slots < LB_SLOTS_MIN || n_slots > LB_SLOTS_MAX)
		cfg_error(errors, pos,
			"size: expected a whole number from %u to %u, found %" PRIu32,
			LB_SLOTS_MIN, LB_SLOTS_MAX, n_slots);
	else if (needs_prime(service->algorithm) && !lb_is_prime(n_slots))
		cfg_error(errors, pos,
			"size: %s needs a prime number, and %" PRIu32
			" is none; the nearest above is %" PRIu32,
			cfg_algorithm_words[service->algorithm], n_slots,
			lb_next_prime(n_slots));
	if (service->n_backends > n_slots)
		cfg_error(errors, pos,
			"size: %zu backends do not fit into %" PRIu32
			" slots; expected at least as many slots as backends",
			service->n_backends, n_slots);
	else
		(void)cfg_check_room(service, pos, errors);
}

/* Multicast (RFC 5771; RFC 4291, section 2.7) or the limited broadcast (RFC 919), and no more.
 */
static bool
is_group(const struct lb_prefix *prefix)
{
	static const uint8_t broadcast[4] = {255, 255, 255, 255};
	const uint8_t *v4 = prefix->addr.bytes + 12;

	if (!lb_addr_is_v4(&prefix->addr))
		return prefix->addr.bytes[0] == 0xff && prefix->n_bits >= 8;
	if (v4[0] >> 4 == 14)
		return prefix->n_bits >= 96 + 4;
	return prefix->n_bits == 128 && memcmp(v4, broadcast, sizeof(broadcast)) == 0;
}

static void
check_prefix(const struct cfg_service *service, struct cfg_errors *errors)
{
	const struct lb_prefix *address = &service->address;
	struct lb_prefix right = *address;
	char found[LB_PREFIX_TEXT_BYTES];
	char expected[LB_PREFIX_TEXT_BYTES];

	if ((service->bad & CFG_BAD_ADDRESS) != 0)
		return;
	right.addr = lb_addr_mask(&address->addr, address->n_bits);
	if (lb_prefix_has_host_bits(address))
		cfg_error(errors, service->address_pos,
			"address: %s has bits set after its prefix length; expected %s",
			lb_prefix_format(address, found), lb_prefix_format(&right, expected));
	else if (is_group(address))
		cfg_error(errors, service->address_pos,
			"address: %s is multicast or broadcast, which is always the kernel's; "
			"expected unicast",
			lb_prefix_format(address, found));
}

/* Tunnels by protocol have no port, and those by UDP are no TCP. */
static void
check_carry(const struct cfg_service *service, struct cfg_errors *errors)
{
	const bool has_others = (service->carry & ~CFG_CARRIES_BY_UDP) != 0;

	if (service->protocol == CFG_PROTOCOL_TCP)
		cfg_error(errors, service->carry_pos,
			"carry is for protocol any or udp, and this service has tcp; remove "
			"it");
	else if (service->protocol == CFG_PROTOCOL_UDP && has_others)
		cfg_error(errors, service->carry_pos,
			"carry: ipip, ipv6 and gre are for protocol any, and this service has "
			"udp; remove them");
	else if (service->port != 0 && has_others)
		cfg_warning(errors, service->carry_pos,
			"ipip, ipv6 and gre have no port, so carry needs 'port: any' to find "
			"this service");
}

/* Keys that mean something with one value of another key only. */
static void
check_combinations(const struct cfg_service *service, struct cfg_errors *errors)
{
	const bool is_vxlan = service->forward == CFG_FORWARD_VXLAN;

	if ((service->bad & CFG_BAD_FORWARD) == 0) {
		const char *forward = cfg_forward_words[service->forward];

		if ((service->tunnel_port != 0 || service->tunnel_port_pos.line != 0) &&
			!is_vxlan && service->forward != CFG_FORWARD_GUE)
			cfg_error(errors, service->tunnel_port_pos,
				"tunnel_port is for forward gue or vxlan, and this service has "
				"%s; remove it",
				forward);
		if ((service->vni != 0 || service->vni_pos.line != 0) && !is_vxlan)
			cfg_error(errors, service->vni_pos,
				"vni is for forward vxlan, and this service has %s; remove it",
				forward);
		if (service->fragment == CFG_FRAGMENT_OUTER &&
			service->forward == CFG_FORWARD_L2)
			cfg_error(errors, service->fragment_pos,
				"fragment: outer is for tunnels, and this service has forward "
				"l2; expected inner or drop");
	}
	if ((service->bad & CFG_BAD_PROTOCOL) == 0 && service->mss_clamp != 0 &&
		service->protocol == CFG_PROTOCOL_UDP)
		cfg_error(errors, service->mss_clamp_pos,
			"mss_clamp is for protocol tcp or any, and this service has udp; "
			"remove it");
	if ((service->bad & CFG_BAD_PROTOCOL) == 0 && service->carry != 0)
		check_carry(service, errors);
}

/* can: whether tunnels to IPv6, IPv4 have an address to begin at. */
static void
check_backend(const struct cfg_service *service, const struct cfg_backend *backend,
	const bool can[2], struct cfg_errors *errors)
{
	const bool is_v4 = lb_addr_is_v4(&backend->address);
	const bool knows_forward = (service->bad & CFG_BAD_FORWARD) == 0;
	const enum cfg_forward forward = service->forward;
	char text[LB_ADDR_TEXT_BYTES];

	if ((backend->bad & CFG_BAD_ADDRESS) == 0 && knows_forward &&
		forward != CFG_FORWARD_L2 && !can[is_v4])
		cfg_error(errors, backend->address_pos,
			"address: no port has an %s address to send to %s from; add one to "
			"dataplane.ports[].addresses",
			is_v4 ? "IPv4" : "IPv6", lb_addr_format(&backend->address, text));
	if (backend->has_mac && knows_forward && forward != CFG_FORWARD_L2 &&
		forward != CFG_FORWARD_VXLAN)
		cfg_error(errors, backend->mac_pos,
			"mac is for forward l2 or vxlan, and this service has %s; remove it",
			cfg_forward_words[forward]);
	if (backend->weight > LB_WEIGHT_MAX)
		cfg_error(errors, backend->pos,
			"weight: expected a whole number from 0 to %u, found %" PRIu32,
			LB_WEIGHT_MAX, backend->weight);
}

bool
cfg_check_backend(const struct cfg_model *model, const struct cfg_service *service,
	const struct cfg_backend *backend, struct cfg_errors *errors)
{
	const bool can[2] = {can_send(&model->dataplane, false),
		can_send(&model->dataplane, true)};
	const size_t n_before = errors->n_errors;

	check_backend(service, backend, can, errors);
	cfg_check_own_address(&model->dataplane, backend, errors);
	cfg_check_quic_backend(service, backend, errors);
	return errors->n_errors == n_before;
}

/** Where a zone is missing, copies may be put in one zone that belong apart. */
static void
warn_of_zones(const struct cfg_service *service, struct cfg_errors *errors)
{
	const struct cfg_backend *first = NULL;
	size_t n_missing = 0;

	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];

		if (backend->bad != 0)
			return;
		if (backend->zone == NULL && n_missing++ == 0)
			first = backend;
	}
	if (first == NULL || n_missing == service->n_backends)
		return;
	cfg_warning(errors, first->pos,
		"backend '%s' has no zone, and others of the service have (%zu such %s); each "
		"counts as a zone of its own; expected a zone for all of them or for none",
		first->name, n_missing, n_missing == 1 ? "backend" : "backends");
}

static void
check_service(const struct cfg_service *service, const bool can[2], struct cfg_errors *errors)
{
	check_prefix(service, errors);
	check_table(service, errors);
	check_combinations(service, errors);
	for (size_t i = 0; i < service->n_backends; i++)
		check_backend(service, &service->backends[i], can, errors);
	check_backend_names(service, errors);
	cfg_check_quic(service, errors);
	cfg_check_health(service, errors);
	warn_of_zones(service, errors);
	if ((service->bad & CFG_BAD_TABLE) == 0 && service->n_backends <= service->n_slots)
		cfg_check_shares(service, errors);
}

bool
cfg_check_model(const struct cfg_model *model, struct cfg_errors *errors)
{
	const bool can[2] = {can_send(&model->dataplane, false),
		can_send(&model->dataplane, true)};
	const size_t n_before = errors->n_errors;
	size_t n_backends = 0;

	cfg_check_ports(&model->dataplane, errors);
	if (model->n_services > LB_SERVICES_MAX)
		cfg_error(errors, model->services[LB_SERVICES_MAX].pos,
			"one service too many; expected at most %u", LB_SERVICES_MAX);
	check_service_names(model, errors);
	check_places(model, errors);
	check_echoes(model, errors);
	cfg_check_addresses(model, errors);
	cfg_check_tunnels(model, errors);
	cfg_check_probes(model, errors);
	cfg_check_announce(model, errors);
	for (size_t i = 0; i < model->n_services; i++) {
		const size_t n = n_backends + model->services[i].n_backends;

		check_service(&model->services[i], can, errors);
		if (n > LB_BACKEND_IDS_MAX && n_backends <= LB_BACKEND_IDS_MAX)
			cfg_error(errors, model->services[i].pos,
				"with this service there are more than %u backends in all; "
				"expected at most so many",
				LB_BACKEND_IDS_MAX);
		n_backends = n;
	}
	return errors->n_errors == n_before;
}
