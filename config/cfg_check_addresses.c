/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_check_parts.h"

/* Whose an address is: of a port's the whole of it, of a service's a prefix. */
struct place {
	struct lb_prefix prefix;
	const struct cfg_port *port;
	const struct cfg_service *service;
};

/* Places none of which is within another, ascending. */
struct places {
	struct place *items;
	size_t n;
};

/* IPv4 lies within ::/0 as it is held, and not as it is meant: so the families are apart. */
static int
compare_addresses(const struct lb_addr *a, const struct lb_addr *b)
{
	const int family = lb_addr_is_v4(a) - lb_addr_is_v4(b);

	return family != 0 ? family : memcmp(a->bytes, b->bytes, LB_ADDR_BYTES);
}

/* What is within another comes after it. */
static int
compare_places(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;
	const int order = compare_addresses(&x->prefix.addr, &y->prefix.addr);

	return order != 0 ? order : (int)x->prefix.n_bits - (int)y->prefix.n_bits;
}

static bool
is_within(const struct lb_addr *address, const struct lb_prefix *prefix)
{
	const struct lb_addr masked = lb_addr_mask(address, prefix->n_bits);

	return lb_addr_is_v4(address) == lb_addr_is_v4(&prefix->addr) &&
	       lb_addr_equal(&masked, &prefix->addr);
}

static void
sort_places(struct places *places)
{
	size_t n = 0;

	qsort(places->items, places->n, sizeof(*places->items), compare_places);
	for (size_t i = 0; i < places->n; i++) {
		if (n == 0 ||
			!is_within(&places->items[i].prefix.addr, &places->items[n - 1].prefix))
			places->items[n++] = places->items[i];
	}
	places->n = n;
}

/* The one that has an address, or NULL. */
static const struct place *
find_place(const struct places *places, const struct lb_addr *address)
{
	size_t low = 0;
	size_t high = places->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_addresses(&places->items[middle].prefix.addr, address) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !is_within(address, &places->items[low - 1].prefix))
		return NULL;
	return &places->items[low - 1];
}

static bool
list_own(const struct cfg_dataplane *dataplane, struct places *out, struct cfg_errors *errors)
{
	size_t n = 0;

	for (size_t i = 0; i < dataplane->n_ports; i++)
		n += dataplane->ports[i].n_addresses;
	*out = (struct places){.items = calloc(n + 1, sizeof(*out->items))};
	if (out->items == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		const struct cfg_port *port = &dataplane->ports[i];

		for (size_t k = 0; k < port->n_addresses; k++)
			out->items[out->n++] = (struct place){
				.prefix = {.addr = port->addresses[k].addr, .n_bits = 128},
				.port = port,
			};
	}
	sort_places(out);
	return true;
}

static bool
list_services(const struct cfg_model *model, struct places *out, struct cfg_errors *errors)
{
	*out = (struct places){.items = calloc(model->n_services + 1, sizeof(*out->items))};
	if (out->items == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];
		struct place *place = &out->items[out->n];

		if ((service->bad & CFG_BAD_ADDRESS) != 0)
			continue;
		*place = (struct place){.prefix = service->address, .service = service};
		place->prefix.addr = lb_addr_mask(&place->prefix.addr, place->prefix.n_bits);
		out->n++;
	}
	sort_places(out);
	return true;
}

static void
tell_own(const struct cfg_backend *backend, const struct cfg_port *port,
	struct cfg_errors *errors)
{
	char text[LB_ADDR_TEXT_BYTES];

	cfg_error(errors, backend->address_pos,
		"address: %s is the balancer's own, of port '%s'; expected another host's",
		lb_addr_format(&backend->address, text), port->name == NULL ? "" : port->name);
}

static bool
has_tunnel(const struct cfg_service *service)
{
	return (service->bad & CFG_BAD_FORWARD) == 0 && service->forward != CFG_FORWARD_L2;
}

static void
check_own(const struct cfg_service *service, const struct places *own,
	struct cfg_errors *errors)
{
	for (size_t i = 0; i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];
		const struct place *place = (backend->bad & CFG_BAD_ADDRESS) != 0
						    ? NULL
						    : find_place(own, &backend->address);

		if (place != NULL)
			tell_own(backend, place->port, errors);
	}
}

/* RFC 2003, section 3.2, has what becomes of a tunnel that leads to where it begins. */
static void
warn_of_loops(const struct cfg_service *service, const struct places *covered,
	struct cfg_errors *errors)
{
	const struct cfg_backend *first = NULL;
	const struct place *first_place = NULL;
	char address[LB_ADDR_TEXT_BYTES];
	char prefix[LB_PREFIX_TEXT_BYTES];
	size_t n = 0;

	for (size_t i = 0; has_tunnel(service) && i < service->n_backends; i++) {
		const struct cfg_backend *backend = &service->backends[i];
		const struct place *place = (backend->bad & CFG_BAD_ADDRESS) != 0
						    ? NULL
						    : find_place(covered, &backend->address);

		if (place == NULL)
			continue;
		if (n++ == 0) {
			first = backend;
			first_place = place;
		}
	}
	if (first == NULL)
		return;
	cfg_warning(errors, first->address_pos,
		"address: %s is within %s of service '%s', so that what a tunnel takes there "
		"comes back to a balancer (%zu such %s); expected an address of no service",
		lb_addr_format(&first->address, address),
		lb_prefix_format(&first_place->prefix, prefix),
		first_place->service->name == NULL ? "" : first_place->service->name, n,
		n == 1 ? "backend" : "backends");
}

/* The first port's address within a prefix, or NULL; n is out, how many there are. */
static const struct place *
find_covered(const struct places *own, const struct lb_prefix *prefix, size_t *n)
{
	const struct place *first = NULL;

	*n = 0;
	for (size_t i = 0; i < own->n; i++) {
		if (!is_within(&own->items[i].prefix.addr, prefix))
			continue;
		if (first == NULL)
			first = &own->items[i];
		++*n;
	}
	return first;
}

/* What comes to the balancer itself, ssh and BGP, is not a service's to take unnoticed. */
static void
warn_of_own(const struct cfg_service *service, const struct places *own,
	struct cfg_errors *errors)
{
	const struct lb_prefix *prefix = &service->address;
	char text[LB_PREFIX_TEXT_BYTES];
	char address[LB_ADDR_TEXT_BYTES];
	const struct place *place;
	const char *port;
	size_t n;

	if ((service->bad & CFG_BAD_ADDRESS) != 0)
		return;
	place = find_covered(own, prefix, &n);
	if (place == NULL)
		return;
	port = place->port->name == NULL ? "" : place->port->name;
	lb_prefix_format(prefix, text);
	if (prefix->n_bits == place->prefix.n_bits)
		cfg_warning(errors, service->address_pos,
			"address: %s is the balancer's own, of port '%s', and what comes to "
			"this service no longer comes to the balancer: ssh or BGP, if it takes "
			"their port; expected an address of its own",
			text, port);
	else
		cfg_warning(errors, service->address_pos,
			"address: %s is around the balancer's own %s, of port '%s' (%zu such "
			"%s), which stays the kernel's; a service takes packets there only "
			"with just that address",
			text, lb_addr_format(&place->prefix.addr, address), port, n,
			n == 1 ? "address" : "addresses");
}

void
cfg_check_addresses(const struct cfg_model *model, struct cfg_errors *errors)
{
	struct places own;
	struct places covered;

	if (!list_own(&model->dataplane, &own, errors))
		return;
	if (list_services(model, &covered, errors)) {
		for (size_t i = 0; i < model->n_services; i++) {
			check_own(&model->services[i], &own, errors);
			warn_of_loops(&model->services[i], &covered, errors);
			warn_of_own(&model->services[i], &own, errors);
		}
		free(covered.items);
	}
	free(own.items);
}

static bool
has_address(const struct cfg_port *port, const struct lb_addr *address)
{
	for (size_t i = 0; i < port->n_addresses; i++) {
		if (lb_addr_equal(&port->addresses[i].addr, address))
			return true;
	}
	return false;
}

void
cfg_check_own_address(const struct cfg_dataplane *dataplane, const struct cfg_backend *backend,
	struct cfg_errors *errors)
{
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		if (has_address(&dataplane->ports[i], &backend->address)) {
			tell_own(backend, &dataplane->ports[i], errors);
			return;
		}
	}
}
