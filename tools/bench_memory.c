/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_memory.h"

#include "bench_case.h"
#include "dp_snapshot.h"
#include "lb_flow_table.h"

struct bench_memory
bench_memory_count(const struct bench_options *options)
{
	const double n_services = options->n_services;
	uint32_t n_entries = 0;
	struct bench_memory memory;

	for (size_t i = 0; i < options->flows.n; i++) {
		const uint32_t n = bench_case_entries(options, options->flows.items[i]);

		n_entries = n > n_entries ? n : n_entries;
	}
	memory.flow = (double)lb_flow_table_bytes(n_entries) / n_entries;
	/* What finds a service is there twice: for flows, and for echo requests. */
	memory.service = (double)sizeof(struct dp_service) + sizeof(struct dp_table) +
			 2 * (double)lb_service_table_bytes(options->n_services) / n_services;
	memory.backend = (double)sizeof(struct dp_backend) + sizeof(uint32_t) +
			 (double)options->n_workers * sizeof(struct dp_backend_counts);
	memory.slot = (double)lb_picker_bytes(LB_MAGLEV, LB_SLOTS_DEFAULT) / LB_SLOTS_DEFAULT;
	memory.total = (double)options->n_workers * n_entries * memory.flow +
		       n_services * (memory.service + LB_SLOTS_DEFAULT * memory.slot +
					    options->n_backends * memory.backend);
	return memory;
}
