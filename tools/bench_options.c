/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_traffic.h"

#define SECONDS_MAX 86400.0
/* The flow table of one worker is twice as large, and a power of two. */
#define FLOWS_MAX (LB_FLOW_ENTRIES_MAX / 2)

const char bench_help[] =
	"Usage: shunt-bench [OPTION]...\n"
	"Measure nanoseconds of CPU time a packet takes a worker, through the packet path\n"
	"of shuntd, on buffers in memory: no ports, no privileges.\n"
	"\n"
	"  -f, --flows N,N           flows, all workers' together (default: 1000,1000000)\n"
	"  -s, --services N          services (default: 1)\n"
	"  -b, --backends N          backends of each service (default: 100)\n"
	"  -F, --family 4,6          IP version, outside and inside (default: 4,6)\n"
	"  -m, --forward MODE,MODE   l2, ipip, gre, gue, vxlan (default: ipip)\n"
	"  -a, --algorithm NAME,...  of the services' tables (default: maglev)\n"
	"  -p, --packet-size B       bytes of a frame, its checksum included, up to 1518\n"
	"                            (default: the smallest, 64 with IPv4, 78 with IPv6)\n"
	"  -n, --workers N           workers, a thread each (default: 1)\n"
	"  -y, --syn                 every packet is the SYN of a new flow, and the flow\n"
	"                            table, of --flows entries, is full\n"
	"  -N, --new-flows PERCENT   of the packets are SYNs of new flows; what the known\n"
	"                            flows leave of the table is full of such\n"
	"  -w, --swap-every MS       meanwhile a new snapshot is put in force so often\n"
	"  -t, --stage STAGE,...     parse, service, hash, flow, table, encap, none: each\n"
	"                            alone; none does nothing\n"
	"  -S, --seconds S           of each case (default: 1)\n"
	"  -M, --memory              instead: bytes of a flow, service, backend and slot\n"
	"  -j, --json                a JSON object in the place of a table\n"
	"  -h, --help                this text\n"
	"  -V, --version             the version\n"
	"\n"
	"Every combination of the lists is a case. Exit status: 0 done; 1 the work\n"
	"failed, or packets did not come out right; 2 bad usage.\n";

static const struct option long_options[] = {
	{"flows", required_argument, NULL, 'f'},
	{"services", required_argument, NULL, 's'},
	{"backends", required_argument, NULL, 'b'},
	{"family", required_argument, NULL, 'F'},
	{"forward", required_argument, NULL, 'm'},
	{"algorithm", required_argument, NULL, 'a'},
	{"packet-size", required_argument, NULL, 'p'},
	{"workers", required_argument, NULL, 'n'},
	{"syn", no_argument, NULL, 'y'},
	{"new-flows", required_argument, NULL, 'N'},
	{"swap-every", required_argument, NULL, 'w'},
	{"stage", required_argument, NULL, 't'},
	{"seconds", required_argument, NULL, 'S'},
	{"memory", no_argument, NULL, 'M'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

const char *const bench_stage_words[] = {
	[BENCH_STAGE_PARSE] = "parse",
	[BENCH_STAGE_SERVICE] = "service",
	[BENCH_STAGE_HASH] = "hash",
	[BENCH_STAGE_FLOW] = "flow",
	[BENCH_STAGE_TABLE] = "table",
	[BENCH_STAGE_ENCAP] = "encap",
	[BENCH_STAGE_NONE] = "none",
	[BENCH_N_STAGES] = NULL,
};

static const char *const family_words[] = {"4", "6", NULL};

static int
take_families(const char *text, struct options_list *out)
{
	const int ret = options_take_words("family", text, family_words, out);

	for (size_t i = 0; ret == 0 && i < out->n; i++)
		out->items[i] = out->items[i] == 0 ? 4 : 6;
	return ret;
}

static int
take_seconds(const char *text, double *out)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(value) || value <= 0 ||
		value > SECONDS_MAX) {
		(void)fprintf(stderr,
			"shunt-bench: --seconds wants a number above 0, 86400 at most, not "
			"'%s'\n",
			text);
		return -EINVAL;
	}
	*out = value;
	return 0;
}

/* Options that say how much. */
static int
take_size(int option, const char *value, struct bench_options *out)
{
	switch (option) {
	case 'f':
		return options_take_numbers("flows", value,
			(struct options_range){1, FLOWS_MAX}, &out->flows);
	case 's':
		return options_take_number("services", value,
			(struct options_range){1, LB_SERVICES_MAX}, &out->n_services);
	case 'b':
		return options_take_number("backends", value,
			(struct options_range){1, LB_SERVICE_BACKENDS_MAX}, &out->n_backends);
	case 'p':
		return options_take_number("packet-size", value,
			(struct options_range){1, BENCH_PACKET_BYTES_MAX}, &out->packet_bytes);
	case 'n':
		return options_take_number("workers", value,
			(struct options_range){1, BENCH_WORKERS_MAX}, &out->n_workers);
	case 'N':
		return options_take_number("new-flows", value, (struct options_range){0, 100},
			&out->new_pct);
	case 'w':
		return options_take_number("swap-every", value,
			(struct options_range){1, 3600000}, &out->swap_ms);
	case 'S':
		return take_seconds(value, &out->seconds);
	default: /* getopt_long() has said what is wrong */
		return -EINVAL;
	}
}

static int
take_option(int option, const char *value, struct bench_options *out)
{
	switch (option) {
	case 'F':
		return take_families(value, &out->families);
	case 'm':
		return options_take_words("forward", value, cfg_forward_words, &out->forwards);
	case 'a':
		return options_take_words("algorithm", value, cfg_algorithm_words,
			&out->algorithms);
	case 't':
		return options_take_words("stage", value, bench_stage_words, &out->stages);
	case 'y':
		out->is_syn = true;
		return 0;
	case 'M':
		out->wants_memory = true;
		return 0;
	case 'j':
		out->is_json = true;
		return 0;
	case 'h':
		out->wants_help = true;
		return 0;
	case 'V':
		out->wants_version = true;
		return 0;
	default:
		return take_size(option, value, out);
	}
}

/* Whether the frames hold a TCP segment of each family. */
static int
check_packets(const struct bench_options *options)
{
	for (size_t i = 0; options->packet_bytes != 0 && i < options->families.n; i++) {
		const unsigned int family = (unsigned int)options->families.items[i];

		if (options->packet_bytes >= bench_packet_bytes_min(family))
			continue;
		(void)fprintf(stderr,
			"shunt-bench: --packet-size is %" PRIu32 " at least with --family %u, "
			"not %" PRIu32 "\n",
			bench_packet_bytes_min(family), family, options->packet_bytes);
		return -EINVAL;
	}
	return 0;
}

static int
check_flows(const struct bench_options *options)
{
	for (size_t i = 0; i < options->flows.n; i++) {
		if (options->flows.items[i] >= options->n_workers)
			continue;
		(void)fprintf(stderr,
			"shunt-bench: --flows is %" PRIu32 " at least, one for each worker\n",
			options->n_workers);
		return -EINVAL;
	}
	return 0;
}

/* What is right by itself and not together. */
static int
check_options(const struct bench_options *options)
{
	const char *wrong = NULL;
	int ret = check_packets(options);

	if (ret == 0)
		ret = check_flows(options);
	if (ret != 0)
		return ret;
	if ((uint64_t)options->n_services * options->n_backends > LB_BACKEND_IDS_MAX)
		wrong = "--services times --backends is 1048576 at most: a process has no more "
			"backends";
	else if (options->stages.n > 0 && options->is_syn)
		wrong = "--stage times packets of known flows; leave --syn out";
	else if (options->stages.n > 0 && options->swap_ms != 0)
		wrong = "--stage times one snapshot; leave --swap-every out";
	else if (options->stages.n > 0 && options->new_pct != 0)
		wrong = "--stage times packets of known flows; leave --new-flows out";
	else if (options->is_syn && options->new_pct != 0)
		wrong = "--syn has new flows alone; leave --new-flows out";
	if (wrong == NULL)
		return 0;
	(void)fprintf(stderr, "shunt-bench: %s\n", wrong);
	return -EINVAL;
}

int
bench_options_read(int argc, char *argv[], struct bench_options *out)
{
	struct bench_options options = {
		.flows = {{1000, 1000000}, 2},
		.families = {{4, 6}, 2},
		.forwards = {{CFG_FORWARD_IPIP}, 1},
		.algorithms = {{CFG_MAGLEV}, 1},
		.n_services = 1,
		.n_backends = 100,
		.n_workers = 1,
		.seconds = 1,
	};
	int option;

	while ((option = getopt_long(argc, argv, "f:s:b:F:m:a:p:n:yN:w:t:S:MjhV", long_options,
			NULL)) != -1) {
		if (take_option(option, optarg, &options) != 0)
			return -EINVAL;
		if (options.wants_help || options.wants_version)
			break;
	}
	if (!options.wants_help && !options.wants_version) {
		if (options_end(argc, argv) != 0 || check_options(&options) != 0)
			return -EINVAL;
	}
	*out = options;
	return 0;
}
