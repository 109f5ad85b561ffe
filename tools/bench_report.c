/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_worker.h"

#define SCHEMA 1

struct bench_report {
	bool is_json;
	json_t *root;
	json_t *results; /* root's */
	size_t n_rows;   /* of the table */
	bool has_huge_pages;
};

static int
add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

static json_t *
count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

int
bench_report_create(bool is_json, struct bench_report **out)
{
	struct bench_report *report = calloc(1, sizeof(*report));

	if (report == NULL)
		return -ENOMEM;
	report->is_json = is_json;
	report->root = json_object();
	report->results = json_array();
	if (add(report->root, "schema", json_integer(SCHEMA)) != 0 ||
		add(report->root, "results", report->results) != 0) {
		json_decref(report->root);
		free(report);
		return -ENOMEM;
	}
	*out = report;
	return 0;
}

void
bench_report_destroy(struct bench_report *report)
{
	if (report == NULL)
		return;
	json_decref(report->root);
	free(report);
}

/* Of a stage that costs next to nothing a difference may be none, or below. */
static double
mpps(const struct bench_result *result)
{
	return result->ns > 0 ? 1000 / result->ns : 0;
}

static int
describe_case(json_t *object, const struct bench_case *c)
{
	const struct bench_options *options = c->options;
	char name[32];
	int failed = 0;

	failed |= add(object, "case", json_string(bench_case_name(c, name)));
	failed |= add(object, "family", count(c->family));
	failed |= add(object, "forward", json_string(cfg_forward_words[c->forward]));
	failed |= add(object, "algorithm", json_string(cfg_algorithm_words[c->algorithm]));
	failed |= add(object, "flows", count(c->n_flows));
	failed |= add(object, "services", count(options->n_services));
	failed |= add(object, "backends", count(options->n_backends));
	failed |= add(object, "workers", count(options->n_workers));
	failed |= add(object, "packet_size", count(c->packet_bytes));
	failed |= add(object, "new_flows", count(options->new_pct));
	failed |= add(object, "flow_entries", count(c->flow_entries));
	return failed;
}

static int
describe_result(json_t *object, const struct bench_case *c, const struct bench_result *result)
{
	const bool is_stage = c->stage != BENCH_NO_STAGE;
	json_t *spread = json_object();
	int failed = 0;

	failed |= add(object, "ns_per_packet", json_real(result->ns));
	failed |= add(object, "mpps_per_worker", json_real(mpps(result)));
	failed |= add(object, "generator_ns", json_real(result->generator_ns));
	failed |= add(object, "hugepages", json_boolean(result->has_huge_pages));
	failed |= add(object, "rounds", count(result->n_rounds));
	failed |= add(spread, "min", json_real(result->ns_min));
	failed |= add(spread, "max", json_real(result->ns_max));
	failed |= add(object, "spread", spread);
	failed |= add(object, "packets", count(result->n_packets));
	/* A stage decides on no packet. */
	failed |= add(object, "forwarded", is_stage ? json_null() : count(result->n_forwarded));
	failed |=
		add(object, "hit_share", is_stage ? json_null() : json_real(result->hit_share));
	failed |= add(object, "checked", count(result->n_checked));
	failed |= add(object, "flow_table_fill", json_real(result->fill));
	failed |= add(object, "swaps", count(result->n_swaps));
	return failed;
}

static int
add_json(struct bench_report *report, const struct bench_case *c,
	const struct bench_result *result)
{
	json_t *object = json_object();
	int failed = describe_case(object, c);

	failed |= describe_result(object, c, result);
	failed |= json_array_append_new(report->results, object);
	return failed != 0 ? -ENOMEM : 0;
}

static int
add_row(struct bench_report *report, const struct bench_case *c,
	const struct bench_result *result)
{
	char name[32];

	if (report->n_rows++ == 0)
		(void)printf("%-13s %6s %-7s %-10s %9s %8s %8s %7s %9s %8s %8s %8s %9s\n",
			"case", "family", "forward", "algorithm", "flows", "services",
			"backends", "workers", "ns/packet", "least", "most", "Mpps",
			"generator");
	(void)printf("%-13s %6u %-7s %-10s %9" PRIu64 " %8" PRIu32 " %8" PRIu32 " %7" PRIu32
		     " %9.1f %8.1f %8.1f %8.2f %9.1f\n",
		bench_case_name(c, name), c->family, cfg_forward_words[c->forward],
		cfg_algorithm_words[c->algorithm], c->n_flows, c->options->n_services,
		c->options->n_backends, c->options->n_workers, result->ns, result->ns_min,
		result->ns_max, mpps(result), result->generator_ns);
	report->has_huge_pages = result->has_huge_pages;
	return fflush(stdout) == 0 ? 0 : -errno;
}

int
bench_report_add(struct bench_report *report, const struct bench_case *c,
	const struct bench_result *result)
{
	return report->is_json ? add_json(report, c, result) : add_row(report, c, result);
}

int
bench_report_add_memory(struct bench_report *report, const struct bench_options *options,
	const struct bench_memory *memory)
{
	json_t *object;
	int failed = 0;

	if (!report->is_json) {
		(void)printf("bytes of packet path memory\n"
			     "  a flow     %10.1f\n"
			     "  a service  %10.1f  besides its slots\n"
			     "  a backend  %10.1f  with counters of %" PRIu32 " worker%s\n"
			     "  a slot     %10.1f  of a table\n"
			     "  together   %10.0f\n",
			memory->each.flow_bytes, memory->each.service_bytes,
			memory->each.backend_bytes, options->n_workers,
			options->n_workers == 1 ? "" : "s", memory->each.slot_bytes,
			memory->total_bytes);
		return 0;
	}
	object = json_object();
	failed |= add(object, "flow_bytes", json_real(memory->each.flow_bytes));
	failed |= add(object, "service_bytes", json_real(memory->each.service_bytes));
	failed |= add(object, "backend_bytes", json_real(memory->each.backend_bytes));
	failed |= add(object, "slot_bytes", json_real(memory->each.slot_bytes));
	failed |= add(object, "total_bytes", json_real(memory->total_bytes));
	failed |= add(report->root, "memory", object);
	return failed != 0 ? -ENOMEM : 0;
}

int
bench_report_end(struct bench_report *report)
{
	if (report->is_json) {
		if (json_dumpf(report->root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) !=
			0)
			return -EIO;
		(void)printf("\n");
	} else if (report->n_rows > 0) {
		(void)printf("Nanoseconds of CPU time: the median of %u rounds, its least and "
			     "most; the\ngenerator's are taken off. %u packets lie between it "
			     "and the worker, in %s pages.\n",
			BENCH_ROUNDS, BENCH_WINDOW_PACKETS,
			report->has_huge_pages ? "huge" : "ordinary");
	}
	return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : -EIO;
}
