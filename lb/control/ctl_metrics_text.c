/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_metrics_text.h"

#include <inttypes.h>

#include "ctl_ready.h"

static const char counter[] = "counter";
static const char gauge[] = "gauge";
static const char histogram[] = "histogram";

void
ctl_metrics_sample(struct ctl_metrics_busy *busy, const struct dp *dp)
{
	const uint64_t now_ns = dp_now_ns();
	const double passed_ns = (double)(now_ns - busy->last_ns);

	busy->last_ns = now_ns;
	for (unsigned int i = 0; i < dp_n_workers(dp); i++) {
		struct dp_worker_figures now;
		double ratio;

		dp_read_worker(dp, i, &now);
		ratio = (double)(now.turns_ns - busy->last_turns_ns[i]) / passed_ns;
		busy->last_turns_ns[i] = now.turns_ns;
		/* A turn counts at its end, and may have begun before. */
		busy->ratio[i] = ratio < 1 ? ratio : 1;
	}
}

/* All samples of a name stand together, below its two lines. */
static void
begin(FILE *to, const char *name, const char *type, const char *help)
{
	(void)fprintf(to, "# HELP shunt_%s %s\n# TYPE shunt_%s %s\n", name, help, name, type);
}

static void
put_number(FILE *to, const char *name, const char *type, const char *help, uint64_t value)
{
	begin(to, name, type, help);
	(void)fprintf(to, "shunt_%s %" PRIu64 "\n", name, value);
}

static void
put_seconds(FILE *to, const char *name, const char *help, double value)
{
	begin(to, name, gauge, help);
	(void)fprintf(to, "shunt_%s %.9f\n", name, value);
}

/* A label's value, with what the format wants escaped. */
static void
put_label(FILE *to, const char *name, const char *value)
{
	(void)fprintf(to, "%s=\"", name);
	for (; *value != '\0'; value++) {
		if (*value == '\n') {
			(void)fputs("\\n", to);
			continue;
		}
		if (*value == '\\' || *value == '"')
			(void)putc('\\', to);
		(void)putc(*value, to);
	}
	(void)putc('"', to);
}

static void
put_daemon(const struct ctl_daemon *daemon, FILE *to)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);

	begin(to, "build_info", gauge, "Which shuntd this is.");
	(void)fputs("shunt_build_info{", to);
	put_label(to, "version", SHUNT_VERSION);
	(void)fputs("} 1\n", to);
	put_seconds(to, "uptime_seconds", "Time since the start.",
		(double)ctl_daemon_uptime_ms(daemon) / 1e3);
	put_number(to, "config_generation", gauge,
		"Number of the configuration in force: 1 at the start, one more each change.",
		view->generation);
	put_seconds(to, "table_build_seconds",
		"What building what is in force took, tables that had changed included.",
		(double)view->build_ns / 1e9);
	put_number(to, "backends_unreached", gauge,
		"Backends whose packets are dropped for want of a next hop.",
		view->n_unreached);
}

static void
put_missed(const struct ctl_daemon *daemon, FILE *to)
{
	const struct cfg_dataplane *plane = &ctl_daemon_view(daemon)->model.dataplane;

	begin(to, "port_missed_packets_total", counter,
		"Packets that a port's device itself dropped, and no worker received, by "
		"reason.");
	for (size_t i = 0; i < plane->n_ports; i++) {
		uint64_t packets[DP_N_MISSED];

		dp_port_read_missed(ctl_daemon_dp(daemon), i, packets);
		for (size_t k = 0; k < DP_N_MISSED; k++) {
			(void)fputs("shunt_port_missed_packets_total{", to);
			put_label(to, "port", plane->ports[i].name);
			(void)fprintf(to, ",reason=\"%s\"} %" PRIu64 "\n", dp_missed_words[k],
				packets[k]);
		}
	}
}

/* Nothing where no port has a twin, as with kernel: none. */
static void
put_twins(const struct ctl_daemon *daemon, FILE *to)
{
	const struct cfg_dataplane *plane = &ctl_daemon_view(daemon)->model.dataplane;
	bool has_begun = false;

	for (size_t i = 0; i < plane->n_ports; i++) {
		struct ctl_port_state state;

		ctl_ports_read(ctl_daemon_ports(daemon), i, &state);
		if (!state.has_twin)
			continue;
		if (!has_begun)
			begin(to, "twin_up", gauge,
				"Whether the link of a port's twin is up: 0 where it is down, "
				"without a carrier or gone.");
		has_begun = true;
		(void)fputs("shunt_twin_up{", to);
		put_label(to, "port", plane->ports[i].name);
		(void)fprintf(to, "} %d\n", state.twin == CTL_PORT_UP);
	}
}

static void
put_ports(const struct ctl_daemon *daemon, FILE *to)
{
	const struct cfg_dataplane *plane = &ctl_daemon_view(daemon)->model.dataplane;

	begin(to, "port_up", gauge,
		"Whether a port's link is up: 0 where it is down, without a carrier or gone.");
	for (size_t i = 0; i < plane->n_ports; i++) {
		struct ctl_port_state state;

		ctl_ports_read(ctl_daemon_ports(daemon), i, &state);
		(void)fputs("shunt_port_up{", to);
		put_label(to, "port", plane->ports[i].name);
		(void)fprintf(to, "} %d\n", state.link == CTL_PORT_UP);
	}
	put_twins(daemon, to);
	put_missed(daemon, to);
}

static void
put_packets(const struct dp *dp, FILE *to)
{
	uint64_t verdicts[LB_N_VERDICTS];
	uint64_t n_received = 0;

	dp_read_verdicts(dp, verdicts);
	for (size_t i = 0; i < LB_N_VERDICTS; i++)
		n_received += verdicts[i];
	put_number(to, "received_packets_total", counter,
		"Packets received: the sum of those forwarded, replied to, given to the kernel "
		"and dropped.",
		n_received);
	put_number(to, "forwarded_packets_total", counter, "Packets sent to a backend.",
		verdicts[LB_FORWARD]);
	put_number(to, "replied_packets_total", counter, "Packets answered by the balancer.",
		verdicts[LB_REPLY]);
	put_number(to, "to_kernel_packets_total", counter,
		"Packets for no service, given to the kernel.", verdicts[LB_TO_KERNEL]);
	begin(to, "dropped_packets_total", counter, "Packets dropped, by reason.");
	for (unsigned int i = LB_FIRST_DROP; i < LB_N_VERDICTS; i++)
		(void)fprintf(to, "shunt_dropped_packets_total{reason=\"%s\"} %" PRIu64 "\n",
			lb_verdict_reason((enum lb_verdict)i), verdicts[i]);
}

static void
put_worker_number(FILE *to, const char *name, unsigned int worker, uint64_t value)
{
	(void)fprintf(to, "shunt_%s{worker=\"%u\"} %" PRIu64 "\n", name, worker, value);
}

/* Bounds of the turns' histogram: from about a microsecond to about a second. */
#define FIRST_BOUND 10u
#define LAST_BOUND  30u

/* Turns are counted by powers of two of ns already; here each bucket has those below it too. */
static void
put_turns_of(FILE *to, unsigned int worker, const struct dp_worker_figures *figures)
{
	static const char name[] = "shunt_worker_turn_seconds";
	uint64_t n = 0;

	for (unsigned int i = 0; i < DP_TURN_BUCKETS; i++) {
		n += figures->turns[i];
		if (i >= FIRST_BOUND && i <= LAST_BOUND)
			(void)fprintf(to, "%s_bucket{worker=\"%u\",le=\"%.9f\"} %" PRIu64 "\n",
				name, worker, (double)(UINT64_C(1) << i) / 1e9, n);
	}
	(void)fprintf(to, "%s_bucket{worker=\"%u\",le=\"+Inf\"} %" PRIu64 "\n", name, worker,
		n);
	(void)fprintf(to, "%s_sum{worker=\"%u\"} %" PRIu64 ".%09" PRIu64 "\n", name, worker,
		figures->turns_ns / 1000000000u, figures->turns_ns % 1000000000u);
	(void)fprintf(to, "%s_count{worker=\"%u\"} %" PRIu64 "\n", name, worker, n);
}

static void
put_workers(const struct ctl_daemon *daemon, const struct ctl_metrics_busy *busy, FILE *to)
{
	const uint32_t n_asked = ctl_daemon_view(daemon)->model.dataplane.flow_entries;
	const struct dp *dp = ctl_daemon_dp(daemon);
	const unsigned int n = dp_n_workers(dp);
	struct dp_worker_figures figures[LB_WORKERS_MAX];
	uint64_t n_entries = 0;

	for (unsigned int i = 0; i < n; i++) {
		dp_read_worker(dp, i, &figures[i]);
		n_entries += figures[i].flow_entries;
	}
	put_number(to, "flow_entries", gauge, "Flows in the workers' tables.", n_entries);
	put_number(to, "flow_entries_max", gauge,
		"Flows that the workers' tables have room for.",
		(uint64_t)n * lb_flow_table_entries(n_asked));
	begin(to, "worker_polls_total", counter, "Turns of a worker's loop.");
	for (unsigned int i = 0; i < n; i++)
		put_worker_number(to, "worker_polls_total", i, figures[i].polls);
	begin(to, "worker_busy_polls_total", counter,
		"Turns of a worker's loop that found packets.");
	for (unsigned int i = 0; i < n; i++)
		put_worker_number(to, "worker_busy_polls_total", i, figures[i].busy_polls);
	begin(to, "worker_busy_ratio", gauge,
		"Share of a worker's time in turns that found packets, over the last second.");
	for (unsigned int i = 0; i < n; i++)
		(void)fprintf(to, "shunt_worker_busy_ratio{worker=\"%u\"} %.6f\n", i,
			busy->ratio[i]);
	begin(to, "worker_turn_seconds", histogram,
		"How long turns of a worker's loop took that found packets.");
	for (unsigned int i = 0; i < n; i++)
		put_turns_of(to, i, &figures[i]);
}

/* One figure of each backend. */
struct backend_figure {
	const char *name;
	const char *type;
	const char *help;
	uint64_t (*read)(const struct ctl_daemon *daemon, size_t service, size_t backend);
};

static struct dp_backend_counts
read_counts(const struct ctl_daemon *daemon, size_t service, size_t backend)
{
	struct dp_backend_counts counts;

	dp_read_backend(ctl_daemon_dp(daemon),
		ctl_daemon_view(daemon)->services[service].ids[backend], &counts);
	return counts;
}

static uint64_t
read_packets(const struct ctl_daemon *daemon, size_t service, size_t backend)
{
	return read_counts(daemon, service, backend).packets;
}

static uint64_t
read_bytes(const struct ctl_daemon *daemon, size_t service, size_t backend)
{
	return read_counts(daemon, service, backend).bytes;
}

static uint64_t
read_flows(const struct ctl_daemon *daemon, size_t service, size_t backend)
{
	return read_counts(daemon, service, backend).flows;
}

static uint64_t
read_slots(const struct ctl_daemon *daemon, size_t service, size_t backend)
{
	return ctl_daemon_view(daemon)->services[service].slots[backend];
}

static uint64_t
read_weight(const struct ctl_daemon *daemon, size_t service, size_t backend)
{
	return ctl_daemon_view(daemon)->model.services[service].backends[backend].weight;
}

static const struct backend_figure backend_figures[] = {
	{"backend_packets_total", counter, "Packets sent to a backend.", read_packets},
	{"backend_bytes_total", counter, "Bytes of IP, as received, sent to a backend.",
		read_bytes},
	{"backend_flows_total", counter, "Flows begun on a backend.", read_flows},
	{"backend_slots", gauge, "Slots of its service's table that a backend has.",
		read_slots},
	{"backend_weight", gauge, "Weight of a backend, as configured.", read_weight},
};

static void
put_backend(FILE *to, const char *name, const struct cfg_service *service, size_t backend)
{
	(void)fprintf(to, "shunt_%s{", name);
	put_label(to, "service", service->name);
	(void)putc(',', to);
	put_label(to, "backend", service->backends[backend].name);
}

static void
put_backend_figure(const struct ctl_daemon *daemon, const struct backend_figure *figure,
	FILE *to)
{
	const struct cfg_model *model = &ctl_daemon_view(daemon)->model;

	begin(to, figure->name, figure->type, figure->help);
	for (size_t i = 0; i < model->n_services; i++) {
		for (size_t k = 0; k < model->services[i].n_backends; k++) {
			put_backend(to, figure->name, &model->services[i], k);
			(void)fprintf(to, "} %" PRIu64 "\n", figure->read(daemon, i, k));
		}
	}
}

static void
put_backend_info(const struct cfg_model *model, FILE *to)
{
	static const char name[] = "backend_info";

	begin(to, name, gauge, "Address and state of a backend, as configured.");
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];

		for (size_t k = 0; k < service->n_backends; k++) {
			char address[LB_ADDR_TEXT_BYTES];

			put_backend(to, name, service, k);
			(void)fprintf(to, ",address=\"%s\",state=\"%s\"} 1\n",
				lb_addr_format(&service->backends[k].address, address),
				cfg_state_words[service->backends[k].state]);
		}
	}
}

/* Nothing where it is off. */
static void
put_announced(const struct ctl_daemon *daemon, FILE *to)
{
	const struct ctl_announce *announce = ctl_daemon_announce(daemon);
	const struct ctl_view *view = ctl_daemon_view(daemon);

	if (announce == NULL)
		return;
	begin(to, "service_announced", gauge,
		"Whether there is a route to the address of a service (1) or not (0).");
	for (size_t i = 0; i < view->model.n_services; i++) {
		(void)fputs("shunt_service_announced{", to);
		put_label(to, "service", view->model.services[i].name);
		(void)fprintf(to, "} %d\n", ctl_announce_why_not(announce, view, i) == NULL);
	}
}

/* In use by its state and its checks, if it has any. */
static void
put_backends_up(const struct ctl_daemon *daemon, FILE *to)
{
	static const char name[] = "backend_up";
	const struct cfg_model *model = &ctl_daemon_view(daemon)->model;

	begin(to, name, gauge,
		"Whether a backend's state is up and its checks, if there are any, pass.");
	for (size_t i = 0; i < model->n_services; i++) {
		const struct cfg_service *service = &model->services[i];

		for (size_t k = 0; k < service->n_backends; k++) {
			struct ctl_health_figures figures;

			ctl_health_read(ctl_daemon_health(daemon), service,
				&service->backends[k], &figures);
			put_backend(to, name, service, k);
			(void)fprintf(to, "} %d\n",
				service->backends[k].state == CFG_UP &&
					figures.use == HC_USE_YES);
		}
	}
}

static void
put_service(FILE *to, const char *name, const struct cfg_service *service, uint64_t value)
{
	(void)fprintf(to, "shunt_%s{", name);
	put_label(to, "service", service->name);
	(void)fprintf(to, "} %" PRIu64 "\n", value);
}

static void
put_services_ready(const struct ctl_daemon *daemon, FILE *to)
{
	static const char healthy[] = "service_healthy_backends";
	static const char ready[] = "service_ready";
	const struct ctl_health *health = ctl_daemon_health(daemon);
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_model *model = &view->model;

	begin(to, healthy, gauge,
		"Backends with a weight whose state is up and whose checks, if any, pass.");
	for (size_t i = 0; i < model->n_services; i++)
		put_service(to, healthy, &model->services[i],
			ctl_health_read_service(health, &model->services[i]).n_healthy);
	begin(to, ready, gauge,
		"Whether a service has as many of them as min_healthy says, and one with a "
		"next hop by a port that is up.");
	for (size_t i = 0; i < model->n_services; i++)
		put_service(to, ready, &model->services[i],
			ctl_ready_look(&model->services[i], view->services[i].confs,
				view->services[i].n_unhealthy,
				ctl_daemon_ports(daemon)->down) == CTL_READY);
}

static void
put_checks(const struct ctl_daemon *daemon, FILE *to)
{
	static const char name[] = "health_checks_total";
	const struct ctl_health_counts counts =
		ctl_health_read_counts(ctl_daemon_health(daemon));

	begin(to, name, counter,
		"Health checks by result; those that were not made, for want of files or "
		"ports, as not_made.");
	(void)fprintf(to,
		"shunt_%s{result=\"passed\"} %" PRIu64 "\n"
		"shunt_%s{result=\"failed\"} %" PRIu64 "\n"
		"shunt_%s{result=\"not_made\"} %" PRIu64 "\n",
		name, counts.passed, name, counts.failed, name, counts.not_asked);
}

static void
put_control(const struct ctl_daemon *daemon, FILE *to)
{
	struct ctl_rpc_stats stats;

	ctl_daemon_read_rpc_stats(daemon, &stats);
	put_number(to, "control_clients", gauge, "Clients of the control socket.",
		stats.clients);
	put_number(to, "control_accepted_total", counter, "Clients accepted.", stats.accepted);
	put_number(to, "control_refused_total", counter,
		"Clients refused, for there were too many.", stats.refused);
	put_number(to, "control_evicted_total", counter,
		"Clients closed for another, for there were too many: the longest idle, or who "
		"asked the most.",
		stats.evicted);
	put_number(to, "control_requests_total", counter, "Requests.", stats.requests);
	put_number(to, "control_errors_total", counter, "Requests answered with an error.",
		stats.errors);
	put_number(to, "control_oversized_total", counter,
		"Clients cut off for a request too long.", stats.oversized);
	put_number(to, "control_stalled_total", counter,
		"Clients cut off for not reading their answers.", stats.stalled);
}

static void
put_etcd_documents(const struct ctl_etcd_status *status, FILE *to)
{
	static const char name[] = "etcd_documents_total";

	begin(to, name, counter, "Configurations that came from etcd, by what was done.");
	(void)fprintf(to,
		"shunt_%s{result=\"applied\"} %" PRIu64 "\n"
		"shunt_%s{result=\"refused\"} %" PRIu64 "\n",
		name, status->n_applied, name, status->n_refused);
}

/* Nothing where the configuration is a file. */
static void
put_etcd(const struct ctl_daemon *daemon, FILE *to)
{
	struct ctl_etcd *etcd = ctl_daemon_etcd(daemon);
	struct ctl_etcd_status status;

	if (etcd == NULL)
		return;
	ctl_etcd_read_status(etcd, &status);
	put_number(to, "etcd_watching", gauge,
		"Whether etcd is there and tells what changes (1) or not (0).",
		status.link == CTL_ETCD_WATCHING);
	put_number(to, "etcd_failures_total", counter,
		"Loads and watches of the configuration that failed.", status.n_failures);
	put_number(to, "etcd_revision", gauge,
		"Of the configuration in force, the revision of its key.", status.revision);
	put_number(to, "etcd_from_copy", gauge,
		"Whether the start took the copy on the disk, and nothing newer has come (1).",
		status.is_copy);
	put_number(to, "etcd_refused", gauge,
		"Whether the last configuration that came was refused (1).",
		status.refused_revision != 0);
	put_number(to, "etcd_copy_written", gauge,
		"Whether the copy on the disk is of the configuration in force (1) or could "
		"not be written (0).",
		status.copy_why[0] == '\0');
	put_etcd_documents(&status, to);
}

void
ctl_metrics_write(const struct ctl_daemon *daemon, const struct ctl_metrics_busy *busy,
	FILE *to)
{
	put_daemon(daemon, to);
	put_ports(daemon, to);
	put_packets(ctl_daemon_dp(daemon), to);
	put_workers(daemon, busy, to);
	put_announced(daemon, to);
	put_backend_info(&ctl_daemon_view(daemon)->model, to);
	put_backends_up(daemon, to);
	put_services_ready(daemon, to);
	put_checks(daemon, to);
	for (size_t i = 0; i < LB_N_ELEMENTS(backend_figures); i++)
		put_backend_figure(daemon, &backend_figures[i], to);
	put_control(daemon, to);
	put_etcd(daemon, to);
}
