/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_memory.h"

#include "bench_case.h"

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
	memory.each = dp_footprint(n_entries, options->n_services, options->n_workers);
	memory.total_bytes =
		(double)options->n_workers * n_entries * memory.each.flow_bytes +
		n_services *
			(memory.each.service_bytes + LB_SLOTS_DEFAULT * memory.each.slot_bytes +
				options->n_backends * memory.each.backend_bytes);
	return memory;
}
