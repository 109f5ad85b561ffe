/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_worker.h"
#include "lb_flow_table.h"
#include "lb_limits.h"

struct dp_footprint
dp_footprint(uint32_t n_flow_entries, size_t n_services, unsigned int n_workers)
{
	const size_t n = n_services > 0 ? n_services : 1;
	struct dp_footprint footprint;

	footprint.flow_bytes = (double)lb_flow_table_bytes(n_flow_entries) /
			       lb_flow_table_entries(n_flow_entries);
	/* What finds a service is there twice: for flows, and for echo requests. Where one has
	 * affinity by source alone it is there twice more, for errors without ports. */
	footprint.service_bytes = (double)sizeof(struct dp_service) + sizeof(struct dp_table) +
				  2 * (double)lb_service_table_bytes(n) / (double)n;
	footprint.backend_bytes =
		(double)sizeof(struct dp_backend) + sizeof(uint32_t) +
		(double)n_workers * (sizeof(struct dp_worker_backend) + sizeof(uint64_t));
	footprint.slot_bytes =
		(double)lb_picker_bytes(LB_MAGLEV, LB_SLOTS_DEFAULT) / LB_SLOTS_DEFAULT;
	return footprint;
}
