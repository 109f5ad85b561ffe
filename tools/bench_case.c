/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_case.h"

#include <stdio.h>

#include "bench_traffic.h"
#include "lb_flow_table.h"

const char *
bench_case_name(const struct bench_case *c, char out[static 32])
{
	if (c->stage != BENCH_NO_STAGE)
		(void)snprintf(out, 32, "stage-%s", bench_stage_words[c->stage]);
	else
		(void)snprintf(out, 32, "%s%s",
			c->options->is_syn        ? "syn"
			: c->options->new_pct > 0 ? "mixed"
						  : "warm",
			c->options->swap_ms != 0 ? "-swap" : "");
	return out;
}

uint32_t
bench_case_entries(const struct bench_options *options, uint64_t n_flows)
{
	const uint64_t n = (n_flows + options->n_workers - 1) / options->n_workers;

	/* Up to half full every flow finds room; a flood is to find none. */
	return lb_flow_table_entries((uint32_t)(options->is_syn ? n : 2 * n));
}

size_t
bench_case_count(const struct bench_options *options)
{
	return options->families.n * options->forwards.n * options->algorithms.n *
	       options->flows.n * (options->stages.n == 0 ? 1 : options->stages.n);
}

/* One digit of the index, whose base is the length of the list. */
static uint64_t
take_item(const struct options_list *list, size_t *index)
{
	const size_t i = *index % list->n;

	*index /= list->n;
	return list->items[i];
}

struct bench_case
bench_case_at(const struct bench_options *options, size_t index)
{
	struct bench_case c = {.options = options, .stage = BENCH_NO_STAGE};

	if (options->stages.n > 0)
		c.stage = (enum bench_stage)take_item(&options->stages, &index);
	c.n_flows = take_item(&options->flows, &index);
	c.algorithm = (enum cfg_algorithm)take_item(&options->algorithms, &index);
	c.forward = (enum cfg_forward)take_item(&options->forwards, &index);
	c.family = (unsigned int)take_item(&options->families, &index);
	c.packet_bytes = options->packet_bytes != 0 ? options->packet_bytes
						    : bench_packet_bytes_min(c.family);
	c.flow_entries = bench_case_entries(options, c.n_flows);
	return c;
}
