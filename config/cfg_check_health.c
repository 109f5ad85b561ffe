/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "cfg_check_parts.h"

void
cfg_check_health(const struct cfg_service *service, struct cfg_errors *errors)
{
	const enum cfg_health_type type = service->health.type;

	if (type != CFG_HEALTH_NONE && type != CFG_HEALTH_ICMP && service->health.port == 0 &&
		service->port == 0 && (service->bad & CFG_BAD_PORT) == 0)
		cfg_error(errors, service->health_pos,
			"health: type %s needs a port, as the service has 'port: any'; add "
			"'port' to it",
			cfg_health_words[type]);
	if (service->n_backends > 0 && service->min_healthy > service->n_backends &&
		service->min_healthy_pos.line != 0)
		cfg_warning(errors, service->min_healthy_pos,
			"min_healthy: the service has %zu backends, so %" PRIu32
			" are never healthy and it is never ready",
			service->n_backends, service->min_healthy);
}

/* The balancer's address of a family that checks ask from; NULL: there is none. */
static const struct lb_addr *
find_own(const struct cfg_dataplane *plane, bool is_v4)
{
	for (size_t i = 0; i < plane->n_ports; i++) {
		const struct cfg_port *port = &plane->ports[i];

		for (size_t k = 0; k < port->n_addresses; k++) {
			if (lb_addr_is_v4(&port->addresses[k].addr) == is_v4)
				return &port->addresses[k].addr;
		}
	}
	return NULL;
}

/* A service that takes what answers come to; NULL: there is none. */
static const struct cfg_service *
find_taker(const struct cfg_model *model, bool is_v4)
{
	const struct lb_addr *own = find_own(&model->dataplane, is_v4);

	for (size_t i = 0; own != NULL && i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];
		const bool has_port =
			service->port == 0 || (service->port >= LB_PROBE_PORT_FIRST &&
						      service->port <= LB_PROBE_PORT_LAST);

		if ((service->bad & (CFG_BAD_ADDRESS | CFG_BAD_PORT)) == 0 && has_port &&
			service->address.n_bits == 128 &&
			lb_addr_equal(&service->address.addr, own))
			return service;
	}
	return NULL;
}

static void
check_probe(const struct cfg_dataplane *plane, const struct cfg_service *service,
	const struct cfg_service *taker, struct cfg_errors *errors)
{
	const bool is_v4 = lb_addr_is_v4(&service->address.addr);

	if (plane->kernel == CFG_KERNEL_NONE)
		cfg_error(errors, service->health_pos,
			"health: via: tunnel needs the kernel, which has the address that "
			"answers come to, and this dataplane has kernel: none; expected via: "
			"direct");
	if ((service->bad & CFG_BAD_ADDRESS) != 0)
		return;
	if (service->address.n_bits != 128)
		cfg_error(errors, service->health_pos,
			"health: via: tunnel asks for the service's one address, and this "
			"service has a prefix; expected via: direct");
	/* Without ports, as in a replay, there is nobody to ask. */
	if (plane->n_ports > 0 && plane->bad == 0 && find_own(plane, is_v4) == NULL)
		cfg_error(errors, service->health_pos,
			"health: via: tunnel asks from an address of the balancer's own, and "
			"no port has one of %s; give a port one among its 'addresses'",
			is_v4 ? "IPv4" : "IPv6");
	if (taker != NULL)
		cfg_warning(errors, service->health_pos,
			"health: via: tunnel: answers come to the balancer's own address, "
			"ports %u to %u, which service '%s' takes, so that none comes back; "
			"expected via: direct, or another address of that service",
			LB_PROBE_PORT_FIRST, LB_PROBE_PORT_LAST,
			taker->name == NULL ? "" : taker->name);
}

void
cfg_check_probes(const struct cfg_model *model, struct cfg_errors *errors)
{
	const struct cfg_service *takers[] = {find_taker(model, false),
		find_taker(model, true)};

	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];

		if (service->health.is_tunnelled)
			check_probe(&model->dataplane, service,
				takers[lb_addr_is_v4(&service->address.addr)], errors);
	}
}
