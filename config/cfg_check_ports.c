/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "cfg_check.h"
#include "cfg_check_parts.h"
#include "lb_device.h"

#define MTU_IPV6_MIN 1280u
/** Linux' IFNAMSIZ, less the NUL. */
#define INTERFACE_BYTES_MAX 15u

bool
cfg_check_has_family(const struct cfg_port *port, bool is_v4)
{
	for (size_t i = 0; i < port->n_addresses; i++) {
		if (lb_addr_is_v4(&port->addresses[i].addr) == is_v4)
			return true;
	}
	return false;
}

/* The first n ports: few. */
static void
check_names(const struct cfg_port *ports, size_t n, struct cfg_errors *errors)
{
	for (size_t i = 1; i < n; i++) {
		size_t first = 0;

		if (ports[i].name == NULL)
			continue;
		while (first < i && (ports[first].name == NULL ||
					    strcmp(ports[first].name, ports[i].name) != 0))
			first++;
		if (first < i)
			cfg_check_tell_duplicate(errors, "port", ports[i].name,
				ports[i].name_pos, ports[first].name_pos);
	}
}

const char *
cfg_find_interface_flaw(const char *name)
{
	/* Sysctls have folders of these names beside the interfaces', and lo is there already.
	 */
	static const char *const taken[] = {".", "..", "all", "default", "lo", NULL};

	for (const char *at = name; *at != '\0'; at++) {
		/* Of a TAP or TUN device the kernel replaces %d, and the driver splits at ,=[.
		 */
		if (*at <= ' ' || *at > '~' || strchr("/:,%=[", *at) != NULL)
			return "of printable ASCII without blanks and any of /:,%=[";
	}
	if (strlen(name) > INTERFACE_BYTES_MAX)
		return "of at most 15 bytes";
	if (taken[cfg_find_word(name, taken)] != NULL)
		return "other than '.', '..', 'all', 'default' and 'lo'";
	return NULL;
}

/*
 * A port's twin is a TAP device of its name. Packet sockets have none: the kernel hears by
 * their interface itself.
 */
bool
cfg_has_twin(const struct cfg_dataplane *dataplane, const struct cfg_port *port)
{
	return dataplane->kernel == CFG_KERNEL_TAP && port->name != NULL &&
	       port->device != NULL && !lb_device_is_packet_socket(port->device);
}

static void
check_twin_names(const struct cfg_dataplane *dataplane, size_t n, struct cfg_errors *errors)
{
	for (size_t i = 0; i < n; i++) {
		const struct cfg_port *port = &dataplane->ports[i];
		const char *expected;

		if (!cfg_has_twin(dataplane, port))
			continue;
		expected = cfg_find_interface_flaw(port->name);
		if (expected != NULL)
			cfg_error(errors, port->name_pos,
				"name: expected one %s, as with kernel: tap the kernel has an "
				"interface of this name, found '%s'; kernel: none takes any",
				expected, port->name);
	}
}

/* The first of the ports before one that has the same device; NULL: none. */
static const struct cfg_port *
find_same_device(const struct cfg_port *ports, size_t port)
{
	for (size_t i = 0; i < port && ports[port].device != NULL; i++) {
		if (ports[i].device != NULL &&
			lb_device_is_same(ports[i].device, ports[port].device))
			return &ports[i];
	}
	return NULL;
}

static void
check_devices(const struct cfg_port *ports, size_t n, struct cfg_errors *errors)
{
	for (size_t i = 1; i < n; i++) {
		const struct cfg_port *first = find_same_device(ports, i);

		if (first != NULL)
			cfg_error(errors, ports[i].device_pos,
				"device: '%s' is that of port '%s', on line %" PRIu32
				"; expected one of its own",
				ports[i].device, first->name == NULL ? "" : first->name,
				first->device_pos.line);
	}
}

static void
check_mtus(const struct cfg_dataplane *dataplane, struct cfg_errors *errors)
{
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		const struct cfg_port *port = &dataplane->ports[i];

		if (port->mtu < MTU_IPV6_MIN && cfg_check_has_family(port, false))
			cfg_error(errors, port->mtu_pos,
				"mtu: expected at least %u, as the port has an IPv6 address, "
				"found %u",
				MTU_IPV6_MIN, (unsigned int)port->mtu);
	}
}

/* One of the segment: not the port's own address. Each has all link-local ones (RFC 4291). */
static bool
is_neighbour(const struct cfg_port *port, const struct lb_addr *address)
{
	if (address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80)
		return true;
	for (size_t i = 0; i < port->n_addresses; i++) {
		const struct lb_prefix *own = &port->addresses[i];
		const struct lb_addr mine = lb_addr_mask(&own->addr, own->n_bits);
		const struct lb_addr its = lb_addr_mask(address, own->n_bits);

		if (lb_addr_is_v4(&own->addr) == lb_addr_is_v4(address) &&
			lb_addr_equal(&mine, &its) && !lb_addr_equal(&own->addr, address))
			return true;
	}
	return false;
}

static void
check_gateway(const struct cfg_port *port, const struct cfg_route *route,
	struct cfg_errors *errors)
{
	const bool is_v4 = lb_addr_is_v4(&route->to.addr);
	char via[LB_ADDR_TEXT_BYTES];

	(void)lb_addr_format(&route->via, via);
	if (lb_addr_is_v4(&route->via) != is_v4)
		cfg_error(errors, route->pos,
			"via: expected an %s address, as the route is to one, found '%s'",
			is_v4 ? "IPv4" : "IPv6", via);
	else if ((port->bad & CFG_BAD_ADDRESS) == 0 && !is_neighbour(port, &route->via))
		cfg_error(errors, route->pos,
			"via: expected a neighbour, on the network of one of the port's "
			"addresses, found '%s'",
			via);
}

/* The first route before one that leads to the same; NULL: none. Two twins' would be one. */
static const struct cfg_route *
find_same_route(const struct cfg_dataplane *dataplane, size_t port, size_t place)
{
	for (size_t i = 0; i <= port; i++) {
		const struct cfg_port *other = &dataplane->ports[i];
		const size_t n = i < port ? other->n_routes : place;

		for (size_t k = 0; k < n; k++)
			if (lb_prefix_equal(&other->routes[k].to,
				    &dataplane->ports[port].routes[place].to))
				return &other->routes[k];
	}
	return NULL;
}

static void
check_route(const struct cfg_dataplane *dataplane, size_t port, size_t place,
	struct cfg_errors *errors)
{
	const struct cfg_route *route = &dataplane->ports[port].routes[place];
	const struct cfg_route *first = find_same_route(dataplane, port, place);
	char to[LB_PREFIX_TEXT_BYTES];
	char whole[LB_PREFIX_TEXT_BYTES];

	(void)lb_prefix_format(&route->to, to);
	if (lb_prefix_has_host_bits(&route->to)) {
		const struct lb_prefix masked = {.addr = lb_addr_mask(&route->to.addr,
							 route->to.n_bits),
			.n_bits = route->to.n_bits};

		cfg_error(errors, route->pos,
			"to: expected a network such as '%s', found '%s', which has bits set "
			"beyond its length",
			lb_prefix_format(&masked, whole), to);
	}
	if (first != NULL)
		cfg_error(errors, route->pos,
			"to: there is a route to '%s' already, on line %" PRIu32, to,
			first->pos.line);
	check_gateway(&dataplane->ports[port], route, errors);
}

static void
check_routes(const struct cfg_dataplane *dataplane, size_t n, struct cfg_errors *errors)
{
	for (size_t i = 0; i < n; i++) {
		const struct cfg_port *port = &dataplane->ports[i];

		if (port->n_routes != 0 && port->name != NULL && port->device != NULL &&
			!cfg_has_twin(dataplane, port))
			cfg_error(errors, port->routes[0].pos,
				"routes: expected none, as port '%s' has no twin to put them "
				"on; %s",
				port->name,
				dataplane->kernel == CFG_KERNEL_TAP
					? "give them to its interface itself"
					: "with kernel: none there is next_hop");
		for (size_t k = 0; k < port->n_routes; k++)
			check_route(dataplane, i, k, errors);
	}
}

void
cfg_check_ports(const struct cfg_dataplane *dataplane, struct cfg_errors *errors)
{
	const bool are_too_many = dataplane->n_ports > LB_PORTS_MAX;
	const size_t n = are_too_many ? LB_PORTS_MAX : dataplane->n_ports;

	check_names(dataplane->ports, n, errors);
	check_twin_names(dataplane, n, errors);
	check_devices(dataplane->ports, n, errors);
	check_mtus(dataplane, errors);
	check_routes(dataplane, n, errors);
	if (are_too_many)
		cfg_error(errors, dataplane->ports[LB_PORTS_MAX].pos,
			"one port too many; expected at most %u", LB_PORTS_MAX);
}

void
cfg_check_daemon(const struct cfg_dataplane *dataplane, struct cfg_errors *errors)
{
	const struct cfg_pos top = {1, 1};

	if (dataplane->n_ports == 0 && dataplane->bad == 0)
		cfg_error(errors, dataplane->ports_pos.line != 0 ? dataplane->ports_pos : top,
			"dataplane.ports: expected 1 to %u ports, found none", LB_PORTS_MAX);
}
