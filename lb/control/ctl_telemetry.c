/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfg_node.h"
#include "dp.h"

/* Names in one answer: the EAL has 16 KiB for it, and writes some bytes of a name as two. */
#define PAGE 50u

struct ctl_telemetry {
	struct ctl_loop *loop;
	const struct ctl_daemon *daemon;
};

/* Names. */

/*
 * A name as it is shown: in ASCII, other bytes as %XX, and as much of it as there is room for.
 * The EAL would spoil what is not ASCII.
 */
static const char *
show_name(const char *name, char out[static DP_ANSWER_TEXT_BYTES_MAX + 1])
{
	size_t n = 0;

	for (; *name != '\0'; name++) {
		const unsigned char byte = (unsigned char)*name;
		const bool is_plain = byte >= 0x20 && byte < 0x7f;
		const size_t n_more = is_plain ? 1 : 3;

		if (n + n_more > DP_ANSWER_TEXT_BYTES_MAX)
			break;
		(void)snprintf(out + n, n_more + 1, is_plain ? "%c" : "%%%02X", byte);
		n += n_more;
	}
	out[n] = '\0';
	return out;
}

static bool
is_shown_as(const char *name, const char *text, size_t n_bytes)
{
	char shown[DP_ANSWER_TEXT_BYTES_MAX + 1];

	(void)show_name(name, shown);
	return strlen(shown) == n_bytes && memcmp(shown, text, n_bytes) == 0;
}

/* By its name, or as it is shown where no other is shown alike. */
static const struct cfg_service *
find_service(const struct cfg_model *model, const char *text, size_t n_bytes)
{
	const struct cfg_service *found = cfg_find_service(model, text, n_bytes);
	size_t n_found = 0;

	if (found != NULL)
		return found;
	for (size_t i = 0; i < model->n_services; i++) {
		if (!is_shown_as(model->services[i].name, text, n_bytes))
			continue;
		found = &model->services[i];
		n_found++;
	}
	return n_found == 1 ? found : NULL;
}

static const struct cfg_backend *
find_backend(const struct cfg_service *service, const char *text)
{
	const struct cfg_backend *found = cfg_find_backend(service, text);
	size_t n_found = 0;

	if (found != NULL)
		return found;
	for (size_t i = 0; i < service->n_backends; i++) {
		if (!is_shown_as(service->backends[i].name, text, strlen(text)))
			continue;
		found = &service->backends[i];
		n_found++;
	}
	return n_found == 1 ? found : NULL;
}

/* Lists in pages. */

static int
parse_number(const char *text, size_t below, size_t *out)
{
	size_t value = 0;

	if (*text == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (size_t)(*text - '0');
		if (value >= below)
			return -ENOENT;
	}
	*out = value;
	return 0;
}

/* The first of a page; NULL: the list's. */
static int
parse_first(const char *text, size_t n, size_t *out)
{
	*out = 0;
	return text != NULL ? parse_number(text, n, out) : 0;
}

static void
answer_services(const struct cfg_model *model, size_t first, struct dp_answer *answer)
{
	char shown[DP_ANSWER_TEXT_BYTES_MAX + 1];

	dp_answer_number(answer, "total", model->n_services);
	dp_answer_number(answer, "first", first);
	dp_answer_begin_texts(answer, "services");
	for (size_t i = first; i < model->n_services && i - first < PAGE; i++)
		dp_answer_append_text(answer, show_name(model->services[i].name, shown));
}

static void
answer_backends(const struct cfg_service *service, size_t first, struct dp_answer *answer)
{
	char shown[DP_ANSWER_TEXT_BYTES_MAX + 1];

	dp_answer_number(answer, "total", service->n_backends);
	dp_answer_number(answer, "first", first);
	dp_answer_begin_texts(answer, "backends");
	for (size_t i = first; i < service->n_backends && i - first < PAGE; i++)
		dp_answer_append_text(answer, show_name(service->backends[i].name, shown));
}

/* The commands. */

static int
on_status(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	size_t n_backends = 0;

	if (param != NULL)
		return -EINVAL;
	for (size_t i = 0; i < view->model.n_services; i++)
		n_backends += view->model.services[i].n_backends;
	dp_answer_text(answer, "version", SHUNT_VERSION);
	dp_answer_number(answer, "pid", (uint64_t)getpid());
	dp_answer_number(answer, "uptime_seconds", ctl_daemon_uptime_ms(daemon) / 1000);
	dp_answer_number(answer, "generation", view->generation);
	dp_answer_number(answer, "workers", dp_n_workers(ctl_daemon_dp(daemon)));
	dp_answer_number(answer, "services", view->model.n_services);
	dp_answer_number(answer, "backends", n_backends);
	dp_answer_number(answer, "unreached", view->n_unreached);
	dp_answer_number(answer, "build_ns", view->build_ns);
	return 0;
}

static int
on_packets(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	uint64_t verdicts[LB_N_VERDICTS];
	uint64_t n_received = 0;
	uint64_t n_dropped = 0;

	if (param != NULL)
		return -EINVAL;
	dp_read_verdicts(ctl_daemon_dp(daemon), verdicts);
	for (size_t i = 0; i < LB_N_VERDICTS; i++) {
		n_received += verdicts[i];
		n_dropped += i >= LB_FIRST_DROP ? verdicts[i] : 0;
	}
	dp_answer_number(answer, "received", n_received);
	dp_answer_number(answer, "forwarded", verdicts[LB_FORWARD]);
	dp_answer_number(answer, "replied", verdicts[LB_REPLY]);
	dp_answer_number(answer, "to_kernel", verdicts[LB_TO_KERNEL]);
	dp_answer_number(answer, "dropped", n_dropped);
	return 0;
}

static int
on_drops(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	uint64_t verdicts[LB_N_VERDICTS];

	if (param != NULL)
		return -EINVAL;
	dp_read_verdicts(ctl_daemon_dp(daemon), verdicts);
	for (unsigned int i = LB_FIRST_DROP; i < LB_N_VERDICTS; i++)
		dp_answer_number(answer, lb_verdict_reason((enum lb_verdict)i), verdicts[i]);
	return 0;
}

/* No turn took as long, rounded up to a power of two; UINT64_MAX: 17 seconds or more. */
static uint64_t
find_longest_turn(const struct dp_worker_figures *figures)
{
	unsigned int i = DP_TURN_BUCKETS;

	while (i > 0 && figures->turns[i - 1] == 0)
		i--;
	if (i == 0)
		return 0;
	return i == DP_TURN_BUCKETS ? UINT64_MAX : UINT64_C(1) << (i - 1);
}

static uint64_t
read_polls(const struct dp_worker_figures *figures)
{
	return figures->polls;
}

static uint64_t
read_busy_polls(const struct dp_worker_figures *figures)
{
	return figures->busy_polls;
}

static uint64_t
read_flow_entries(const struct dp_worker_figures *figures)
{
	return figures->flow_entries;
}

static uint64_t
read_turns_ns(const struct dp_worker_figures *figures)
{
	return figures->turns_ns;
}

static const struct worker_figure {
	const char *name;
	uint64_t (*read)(const struct dp_worker_figures *figures);
} worker_figures[] = {
	{"polls", read_polls},
	{"busy_polls", read_busy_polls},
	{"flow_entries", read_flow_entries},
	{"turns_ns", read_turns_ns},
	{"turns_below_ns", find_longest_turn},
};

/* A list of each figure: as objects, many workers would not fit the EAL's answer. */
static int
on_workers(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const unsigned int n = dp_n_workers(ctl_daemon_dp(daemon));
	struct dp_worker_figures figures[LB_WORKERS_MAX];

	if (param != NULL)
		return -EINVAL;
	for (unsigned int i = 0; i < n; i++)
		dp_read_worker(ctl_daemon_dp(daemon), i, &figures[i]);
	for (size_t k = 0; k < LB_N_ELEMENTS(worker_figures); k++) {
		dp_answer_begin_numbers(answer, worker_figures[k].name);
		for (unsigned int i = 0; i < n; i++)
			dp_answer_append_number(answer, worker_figures[k].read(&figures[i]));
	}
	return 0;
}

static int
on_worker(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const unsigned int n = dp_n_workers(ctl_daemon_dp(daemon));
	struct dp_worker_figures figures;
	size_t worker;

	if (param == NULL || parse_number(param, n, &worker) != 0)
		return -EINVAL;
	dp_read_worker(ctl_daemon_dp(daemon), (unsigned int)worker, &figures);
	for (size_t k = 0; k < LB_N_ELEMENTS(worker_figures); k++)
		dp_answer_number(answer, worker_figures[k].name,
			worker_figures[k].read(&figures));
	dp_answer_begin_numbers(answer, "turns");
	for (unsigned int i = 0; i < DP_TURN_BUCKETS; i++)
		dp_answer_append_number(answer, figures.turns[i]);
	return 0;
}

/* A list of each figure, as above. */
static int
on_ports(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const struct cfg_dataplane *plane = &ctl_daemon_view(daemon)->model.dataplane;
	char shown[DP_ANSWER_TEXT_BYTES_MAX + 1];

	if (param != NULL)
		return -EINVAL;
	dp_answer_begin_texts(answer, "ports");
	for (size_t i = 0; i < plane->n_ports; i++)
		dp_answer_append_text(answer, show_name(plane->ports[i].name, shown));
	dp_answer_begin_texts(answer, "links");
	for (size_t i = 0; i < plane->n_ports; i++) {
		struct ctl_port_state state;

		ctl_ports_read(ctl_daemon_ports(daemon), i, &state);
		dp_answer_append_text(answer, ctl_port_link_words[state.link]);
	}
	for (size_t k = 0; k < DP_N_MISSED; k++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "missed_%s", dp_missed_words[k]);
		dp_answer_begin_numbers(answer, key);
		for (size_t i = 0; i < plane->n_ports; i++) {
			uint64_t packets[DP_N_MISSED];

			dp_port_read_missed(ctl_daemon_dp(daemon), i, packets);
			dp_answer_append_number(answer, packets[k]);
		}
	}
	return 0;
}

static int
on_services(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const struct cfg_model *model = &ctl_daemon_view(daemon)->model;
	size_t first;
	const int ret = parse_first(param, model->n_services, &first);

	if (ret != 0)
		return ret;
	answer_services(model, first, answer);
	return 0;
}

static struct dp_backend_counts
count_service(const struct ctl_daemon *daemon, size_t place)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	struct dp_backend_counts total = {0};

	for (size_t i = 0; i < view->model.services[place].n_backends; i++) {
		struct dp_backend_counts counts;

		dp_read_backend(ctl_daemon_dp(daemon), view->services[place].ids[i], &counts);
		total.packets += counts.packets;
		total.bytes += counts.bytes;
		total.flows += counts.flows;
	}
	return total;
}

static void
answer_counts(const struct dp_backend_counts *counts, struct dp_answer *answer)
{
	dp_answer_number(answer, "packets", counts->packets);
	dp_answer_number(answer, "bytes", counts->bytes);
	dp_answer_number(answer, "flows", counts->flows);
}

static int
on_service(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const struct cfg_model *model = &ctl_daemon_view(daemon)->model;
	const struct cfg_service *service;
	struct dp_backend_counts counts;
	char address[LB_PREFIX_TEXT_BYTES];
	char overload[CFG_PERCENT_TEXT_BYTES];

	service = param != NULL ? find_service(model, param, strlen(param)) : NULL;
	if (service == NULL)
		return -ENOENT;
	counts = count_service(daemon, (size_t)(service - model->services));
	dp_answer_text(answer, "address", lb_prefix_format(&service->address, address));
	dp_answer_text(answer, "protocol", cfg_protocol_words[service->protocol]);
	dp_answer_number(answer, "port", service->port);
	dp_answer_text(answer, "algorithm", cfg_algorithm_words[service->algorithm]);
	dp_answer_number(answer, "size", service->n_slots);
	if (service->algorithm == CFG_STABLE)
		dp_answer_text(answer, "overload",
			cfg_format_percent(service->overload, overload));
	answer_counts(&counts, answer);
	answer_backends(service, 0, answer);
	return 0;
}

/* SERVICE, or SERVICE/FIRST: no name has a '/'. */
static int
on_backends(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const struct cfg_service *service;
	const char *slash;
	size_t first;
	int ret;

	if (param == NULL)
		return -EINVAL;
	slash = strchr(param, '/');
	service = find_service(&ctl_daemon_view(daemon)->model, param,
		slash != NULL ? (size_t)(slash - param) : strlen(param));
	if (service == NULL)
		return -ENOENT;
	ret = parse_first(slash != NULL ? slash + 1 : NULL, service->n_backends, &first);
	if (ret != 0)
		return ret;
	answer_backends(service, first, answer);
	return 0;
}

static int
on_backend(const struct ctl_daemon *daemon, const char *param, struct dp_answer *answer)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const char *slash = param != NULL ? strchr(param, '/') : NULL;
	const struct cfg_service *service;
	const struct cfg_backend *backend;
	const struct ctl_view_service *numbers;
	struct dp_backend_counts counts;
	char address[LB_ADDR_TEXT_BYTES];

	if (slash == NULL)
		return -EINVAL;
	service = find_service(&view->model, param, (size_t)(slash - param));
	backend = service != NULL ? find_backend(service, slash + 1) : NULL;
	if (backend == NULL)
		return -ENOENT;
	numbers = &view->services[service - view->model.services];
	dp_read_backend(ctl_daemon_dp(daemon), numbers->ids[backend - service->backends],
		&counts);
	dp_answer_text(answer, "address", lb_addr_format(&backend->address, address));
	dp_answer_text(answer, "state", cfg_state_words[backend->state]);
	dp_answer_number(answer, "weight", backend->weight);
	answer_counts(&counts, answer);
	dp_answer_number(answer, "slots", numbers->slots[backend - service->backends]);
	return 0;
}

/* In one order in both tables. */
enum command {
	STATUS,
	PACKETS,
	DROPS,
	WORKERS,
	WORKER,
	PORTS,
	SERVICES,
	SERVICE,
	BACKENDS,
	BACKEND,
	N_COMMANDS,
};

static const struct dp_telemetry_command commands[N_COMMANDS] = {
	[STATUS] = {"/shunt/status",
		"The daemon: generation in force, uptime, sizes. No parameter"},
	[PACKETS] = {"/shunt/packets", "Packets by what became of them. No parameter"},
	[DROPS] = {"/shunt/drops", "Dropped packets by reason. No parameter"},
	[WORKERS] = {"/shunt/workers", "Lists of figures, one element a worker. No parameter"},
	[WORKER] = {"/shunt/worker",
		"One worker, and its turns by powers of two of ns. Parameter: number"},
	[PORTS] = {"/shunt/ports",
		"Lists, one element a port: links, packets that devices missed. No parameter"},
	[SERVICES] = {"/shunt/services",
		"Names of 50 services. Parameter: place of the first, from 0; or none"},
	[SERVICE] = {"/shunt/service", "One service, its first 50 backends. Parameter: name"},
	[BACKENDS] = {"/shunt/backends",
		"Names of 50 backends of a service. Parameter: SERVICE, or SERVICE/FIRST"},
	[BACKEND] = {"/shunt/backend", "One backend. Parameter: SERVICE/NAME"},
};

typedef int (*figures_fn)(const struct ctl_daemon *daemon, const char *param,
	struct dp_answer *answer);

static const figures_fn figures_fns[N_COMMANDS] = {
	[STATUS] = on_status,
	[PACKETS] = on_packets,
	[DROPS] = on_drops,
	[WORKERS] = on_workers,
	[WORKER] = on_worker,
	[PORTS] = on_ports,
	[SERVICES] = on_services,
	[SERVICE] = on_service,
	[BACKENDS] = on_backends,
	[BACKEND] = on_backend,
};

/* On a thread of the EAL's: what is read is kept still meanwhile. */
static int
on_command(void *context, size_t command, const char *param, struct dp_answer *answer)
{
	struct ctl_telemetry *telemetry = context;
	int ret = ctl_loop_enter(telemetry->loop);

	if (ret != 0)
		return ret;
	ret = figures_fns[command](telemetry->daemon, param, answer);
	ctl_loop_leave(telemetry->loop);
	return ret;
}

int
ctl_telemetry_open(struct ctl_loop *loop, const struct ctl_daemon *daemon,
	struct ctl_telemetry **out)
{
	struct ctl_telemetry *telemetry = calloc(1, sizeof(*telemetry));
	int ret;

	if (telemetry == NULL)
		return -ENOMEM;
	telemetry->loop = loop;
	telemetry->daemon = daemon;
	ret = dp_telemetry_open(commands, N_COMMANDS, on_command, telemetry);
	if (ret != 0) {
		free(telemetry);
		return ret;
	}
	*out = telemetry;
	return 0;
}

void
ctl_telemetry_close(struct ctl_telemetry *telemetry)
{
	if (telemetry == NULL)
		return;
	dp_telemetry_close();
	free(telemetry);
}
