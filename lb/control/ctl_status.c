/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_status.h"

#include "ctl_params.h"
#include "ctl_proto.h"
#include "ctl_ready.h"
#include "ctl_show.h"

static json_t *
make_worker(const struct dp *dp, const struct ctl_metrics_busy *busy, unsigned int worker)
{
	struct dp_worker_figures figures;

	dp_read_worker(dp, worker, &figures);
	return json_pack("{s:i, s:f, s:o, s:o, s:o}", CTL_KEY_WORKER, (int)worker,
		CTL_KEY_BUSY_RATIO, busy->ratio[worker], CTL_KEY_POLLS,
		ctl_params_number(figures.polls), CTL_KEY_BUSY_POLLS,
		ctl_params_number(figures.busy_polls), CTL_KEY_FLOW_ENTRIES,
		ctl_params_number(figures.flow_entries));
}

static json_t *
make_workers(const struct dp *dp, const struct ctl_metrics_busy *busy)
{
	json_t *list = json_array();
	int failed = 0;

	for (unsigned int i = 0; i < dp_n_workers(dp); i++)
		failed |= json_array_append_new(list, make_worker(dp, busy, i));
	return ctl_params_finish(list, failed);
}

/* All but the services. */
static json_t *
make_daemon(const struct ctl_daemon *daemon, const struct ctl_metrics_busy *busy)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_dataplane *plane = &view->model.dataplane;
	const struct dp *dp = ctl_daemon_dp(daemon);
	uint64_t verdicts[LB_N_VERDICTS];

	dp_read_verdicts(dp, verdicts);
	return json_pack("{s:i, s:s, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_VERSION, SHUNT_VERSION,
		CTL_KEY_UPTIME_SECONDS, (double)ctl_daemon_uptime_ms(daemon) / 1e3,
		CTL_KEY_GENERATION, ctl_params_number(view->generation), CTL_KEY_UNREACHED,
		ctl_params_number(view->n_unreached), CTL_KEY_PACKETS,
		ctl_show_packets(verdicts), CTL_KEY_DROPS, ctl_show_drops(verdicts),
		CTL_KEY_FLOW_ENTRIES_MAX,
		ctl_params_number((uint64_t)dp_n_workers(dp) *
				  lb_flow_table_entries(plane->flow_entries)),
		CTL_KEY_WORKERS, make_workers(dp, busy), CTL_KEY_PORTS,
		ctl_show_ports(daemon, plane), CTL_KEY_ETCD, ctl_show_etcd(daemon));
}

static void
put_backend(const struct ctl_daemon *daemon, size_t place, size_t i, struct ctl_json *json,
	struct dp_backend_counts *total)
{
	const struct cfg_service *service = &ctl_daemon_view(daemon)->model.services[place];

	ctl_json_put(json, i > 0 ? "," : "");
	ctl_show_put_backend(daemon, place, i, json);
	ctl_show_put_reached(daemon, place, i, json);
	ctl_show_put_health(daemon, service, &service->backends[i], json);
	ctl_show_put_figures(daemon, place, i, json, total);
	ctl_json_put(json, "}");
}

/* A service but its backends, and with what they have together. */
static json_t *
make_service(const struct ctl_daemon *daemon, size_t place,
	const struct dp_backend_counts *total)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_service *service = &view->model.services[place];
	const struct hc_service health =
		ctl_health_read_service(ctl_daemon_health(daemon), service);
	const enum ctl_ready ready = ctl_ready_look(service, view->services[place].confs,
		view->services[place].n_unhealthy, ctl_daemon_ports(daemon)->down);
	json_t *object = json_object();
	int failed = ctl_show_add_service(object, service);

	failed |= json_object_set_new(object, CTL_KEY_READY, json_boolean(ready == CTL_READY));
	failed |= json_object_set_new(object, CTL_KEY_NOT_READY,
		ready == CTL_READY ? json_null() : json_string(ctl_ready_words[ready]));
	failed |= ctl_show_add_announced(object, daemon, place);
	failed |= json_object_set_new(object, CTL_KEY_HEALTHY,
		ctl_params_number(health.n_healthy));
	failed |= ctl_show_add_total(object, total);
	return ctl_params_finish(object, failed);
}

static void
put_service(const struct ctl_daemon *daemon, size_t place, struct ctl_json *json)
{
	const struct cfg_service *service = &ctl_daemon_view(daemon)->model.services[place];
	struct dp_backend_counts total = {0};
	struct ctl_json list = {.has_failed = false};

	for (size_t i = 0; i < service->n_backends; i++)
		put_backend(daemon, place, i, &list, &total);
	ctl_json_put(json, place > 0 ? "," : "");
	ctl_show_put_backends(json, make_service(daemon, place, &total), &list);
	ctl_json_fini(&list);
}

void
ctl_status_put(const struct ctl_daemon *daemon, const struct ctl_metrics_busy *busy,
	struct ctl_json *json)
{
	ctl_json_put_open(json, make_daemon(daemon, busy));
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_SERVICES));
	ctl_json_put(json, "[");
	for (size_t i = 0; i < ctl_daemon_view(daemon)->model.n_services; i++)
		put_service(daemon, i, json);
	ctl_json_put(json, "]}");
}
