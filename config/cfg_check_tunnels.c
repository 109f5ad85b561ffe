/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "cfg_check_parts.h"

#define PORTS (UINT16_MAX + 1u)

/* Of all words of carry, with what stands between them. */
#define WORDS_BYTES 64u

/* The tunnel that a service makes over UDP, a bit of carry; 0: none. */
static uint8_t
tunnel_of(const struct cfg_service *service)
{
	if ((service->bad & CFG_BAD_FORWARD) != 0)
		return 0;
	switch (service->forward) {
	case CFG_FORWARD_GUE:
		return CFG_CARRY_GUE;
	case CFG_FORWARD_VXLAN:
		return CFG_CARRY_VXLAN;
	default:
		return 0;
	}
}

/* Which tunnels come to each port: those that it is known for, and the services' own. */
static void
find_tunnels(const struct cfg_model *model, uint8_t tunnels[static PORTS])
{
	tunnels[CFG_GUE_PORT] = CFG_CARRY_GUE;
	tunnels[CFG_VXLAN_PORT] = CFG_CARRY_VXLAN;
	tunnels[CFG_GENEVE_PORT] = CFG_CARRY_GENEVE;
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];

		if (service->tunnel_port != 0)
			tunnels[service->tunnel_port] |= tunnel_of(service);
	}
}

/* As a list of carry has them. */
static void
format_tunnels(uint8_t tunnels, char out[static WORDS_BYTES])
{
	size_t n = 0;

	out[0] = '\0';
	for (unsigned int i = 0; i < CFG_N_CARRIES; i++) {
		if ((tunnels & 1u << i) != 0 && n < WORDS_BYTES)
			n += (size_t)snprintf(out + n, WORDS_BYTES - n, "%s%s",
				n == 0 ? "" : ", ", cfg_carry_words[i]);
	}
}

void
cfg_check_tunnels(const struct cfg_model *model, struct cfg_errors *errors)
{
	uint8_t tunnels[PORTS] = {0};

	find_tunnels(model, tunnels);
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];
		const uint8_t refused = tunnels[service->port] & (uint8_t)~service->carry;
		char dropped[WORDS_BYTES];
		char expected[WORDS_BYTES];

		if (refused == 0 || tunnel_of(service) == 0 ||
			service->protocol == CFG_PROTOCOL_TCP ||
			(service->bad & (CFG_BAD_PROTOCOL | CFG_BAD_PORT)) != 0)
			continue;
		format_tunnels(refused, dropped);
		format_tunnels(service->carry | refused, expected);
		cfg_warning(errors, service->port_pos,
			"port: %u is for tunnels (%s), which a service with forward %s drops, "
			"unsupported_l4, unless carry names them; expected carry: [%s], or "
			"another forward",
			service->port, dropped, cfg_forward_words[service->forward], expected);
	}
}
