/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_ready.h"

#include <assert.h>

static_assert(LB_PORTS_MAX <= 32, "a bit for each port");

const char *const ctl_ready_words[CTL_N_READY] = {
	[CTL_READY] = "",
	[CTL_READY_NO_BACKENDS] = "it has no backends",
	[CTL_READY_NONE_UP] = "no backend is up with a weight above 0",
	[CTL_READY_UNHEALTHY] = "fewer backends are healthy than have to be",
	[CTL_READY_UNREACHED] = "no backend that is up has a next hop",
	[CTL_READY_PORT_DOWN] = "no backend that is up has a next hop by a port that is up",
};

enum ctl_ready
ctl_ready_look(const struct cfg_service *service, const struct dp_backend_conf confs[],
	size_t n_unhealthy, uint32_t ports_down)
{
	bool has_hop = false;
	bool has_port = false;
	size_t n_up = 0;

	if (service->n_backends == 0)
		return CTL_READY_NO_BACKENDS;
	for (size_t i = 0; i < service->n_backends; i++) {
		if (service->backends[i].state != CFG_UP || service->backends[i].weight == 0)
			continue;
		has_hop |= confs[i].has_next_hop;
		has_port |= confs[i].has_next_hop && (ports_down >> confs[i].port & 1) == 0;
		n_up++;
	}
	if (n_up == 0)
		return CTL_READY_NONE_UP;
	if (n_up <= n_unhealthy || n_up - n_unhealthy < service->min_healthy)
		return CTL_READY_UNHEALTHY;
	if (!has_hop)
		return CTL_READY_UNREACHED;
	return has_port ? CTL_READY : CTL_READY_PORT_DOWN;
}
