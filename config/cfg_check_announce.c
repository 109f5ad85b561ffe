/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cfg_check_parts.h"

static void
check_interface(const struct cfg_model *model, struct cfg_errors *errors)
{
	const struct cfg_dataplane *dataplane = &model->dataplane;
	const char *name = model->announce.interface;
	const char *expected = cfg_find_interface_flaw(name);

	if (expected != NULL)
		cfg_error(errors, model->announce.interface_pos,
			"interface: expected off or a name %s, found '%s'", expected, name);
	for (size_t i = 0; i < dataplane->n_ports; i++) {
		const struct cfg_port *port = &dataplane->ports[i];

		if (cfg_has_twin(dataplane, port) && strcmp(port->name, name) == 0)
			cfg_error(errors, model->announce.interface_pos,
				"interface: '%s' is that of a port's twin; expected a name of "
				"its own, such as shunt-vips",
				name);
	}
}

/* 0 bits of IPv4 are the 96 before them. */
static bool
is_everything(const struct lb_prefix *prefix)
{
	return prefix->n_bits == 0 || (lb_addr_is_v4(&prefix->addr) && prefix->n_bits == 96);
}

void
cfg_check_announce(const struct cfg_model *model, struct cfg_errors *errors)
{
	if (model->announce.interface == NULL)
		return;
	check_interface(model, errors);
	if (model->announce.table != CFG_TABLE_MAIN)
		return;
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];

		if ((service->bad & CFG_BAD_ADDRESS) == 0 && is_everything(&service->address))
			cfg_error(errors, service->address_pos,
				"address: announced in table main, a default route would take "
				"what the balancer itself sends; expected a longer prefix, or "
				"an announce.table of its own");
	}
}
