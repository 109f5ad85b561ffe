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
