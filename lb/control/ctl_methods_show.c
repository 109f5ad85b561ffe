/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "ctl_daemon.h"
#include "ctl_json.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_proto.h"
#include "ctl_ready.h"
#include "ctl_show.h"
#include "dp.h"

static const char *const no_keys[] = {NULL};

/* A member that could not be made for want of memory fails the whole. */
static int
add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

static json_t *
make_rpc(const struct ctl_daemon *daemon)
{
	struct ctl_rpc_stats stats;
	json_t *object = json_object();
	int failed = 0;

	ctl_daemon_read_rpc_stats(daemon, &stats);
	failed |= add(object, CTL_KEY_CLIENTS, ctl_params_number(stats.clients));
	failed |= add(object, CTL_KEY_ACCEPTED, ctl_params_number(stats.accepted));
	failed |= add(object, CTL_KEY_REFUSED, ctl_params_number(stats.refused));
	failed |= add(object, CTL_KEY_EVICTED, ctl_params_number(stats.evicted));
	failed |= add(object, CTL_KEY_REQUESTS, ctl_params_number(stats.requests));
	failed |= add(object, CTL_KEY_ERRORS, ctl_params_number(stats.errors));
	failed |= add(object, CTL_KEY_OVERSIZED, ctl_params_number(stats.oversized));
	failed |= add(object, CTL_KEY_STALLED, ctl_params_number(stats.stalled));
	return ctl_params_finish(object, failed);
}

/* Bytes of one, whatever how many there are. */
static json_t *
make_memory(const struct cfg_dataplane *plane, size_t n_services, unsigned int n_workers)
{
	const struct dp_footprint each =
		dp_footprint(plane->flow_entries, n_services, n_workers);
	json_t *object = json_object();
	int failed = 0;

	failed |= add(object, CTL_KEY_FLOW_BYTES,
		json_real(each.flow_bytes +
			  (plane->flow_addresses ? (double)sizeof(struct lb_flow_key) : 0)));
	failed |= add(object, CTL_KEY_SERVICE_BYTES, json_real(each.service_bytes));
	failed |= add(object, CTL_KEY_BACKEND_BYTES, json_real(each.backend_bytes));
	failed |= add(object, CTL_KEY_SLOT_BYTES, json_real(each.slot_bytes));
	return ctl_params_finish(object, failed);
}

/* Of the services, how many are announced. */
static json_t *
make_announce(const struct ctl_daemon *daemon)
{
	const struct ctl_announce *announce = ctl_daemon_announce(daemon);
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_model *model = &view->model;
	size_t n = 0;

	if (announce == NULL)
		return json_null();
	for (size_t i = 0; i < model->n_services; i++)
		n += ctl_announce_why_not(announce, view, i) == NULL;
	return json_pack("{s:s, s:s, s:I, s:I, s:I}", CTL_KEY_INTERFACE,
		model->announce.interface, CTL_KEY_LINK,
		ctl_announce_link_words[ctl_announce_read_link(announce)], CTL_KEY_TABLE,
		(json_int_t)model->announce.table, CTL_KEY_METRIC,
		(json_int_t)model->announce.metric, CTL_KEY_ANNOUNCED, (json_int_t)n);
}

void
ctl_method_status(void *context, const json_t *params, struct ctl_call *call)
{
	const struct ctl_daemon *daemon = context;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_dataplane *plane = &view->model.dataplane;
	const unsigned int n_workers = dp_n_workers(ctl_daemon_dp(daemon));
	json_t *result;
	size_t n_backends = 0;
	int failed = 0;

	if (!ctl_params_check(params, no_keys, call))
		return;
	for (size_t i = 0; i < view->model.n_services; i++)
		n_backends += view->model.services[i].n_backends;
	result = json_object();
	failed |= add(result, CTL_KEY_SCHEMA, json_integer(CTL_SCHEMA));
	failed |= add(result, CTL_KEY_VERSION, json_string(SHUNT_VERSION));
	failed |= add(result, CTL_KEY_PID, json_integer(getpid()));
	failed |= add(result, CTL_KEY_UPTIME_SECONDS,
		json_real((double)ctl_daemon_uptime_ms(daemon) / 1e3));
	failed |= add(result, CTL_KEY_GENERATION, ctl_params_number(view->generation));
	failed |= add(result, CTL_KEY_CONFIG,
		ctl_params_any_text(ctl_daemon_config_path(daemon)));
	failed |= add(result, CTL_KEY_ETCD, ctl_show_etcd(daemon));
	failed |= add(result, CTL_KEY_WORKERS, json_integer(n_workers));
	failed |= add(result, CTL_KEY_PORTS, ctl_show_ports(daemon, plane));
	failed |= add(result, CTL_KEY_SERVICES, ctl_params_number(view->model.n_services));
	failed |= add(result, CTL_KEY_BACKENDS, ctl_params_number(n_backends));
	failed |= add(result, CTL_KEY_UNREACHED, ctl_params_number(view->n_unreached));
	failed |= add(result, CTL_KEY_BUILD_SECONDS, json_real((double)view->build_ns / 1e9));
	failed |= add(result, CTL_KEY_MEMORY,
		make_memory(plane, view->model.n_services, n_workers));
	failed |= add(result, CTL_KEY_ANNOUNCE, make_announce(daemon));
	failed |= add(result, CTL_KEY_RPC, make_rpc(daemon));
	ctl_call_result(call, ctl_params_finish(result, failed));
}

/* Answer with what was written. */
static void
answer(struct ctl_call *call, struct ctl_json *json)
{
	ctl_call_text(call, ctl_json_text(json));
	ctl_json_fini(json);
}

/* The backends' figures, and what says which part of the packets is meant to be theirs. */
static void
put_counted_backends(const struct ctl_daemon *daemon, size_t place, struct ctl_json *json,
	struct dp_backend_counts *total)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_service *service = &view->model.services[place];

	for (size_t i = 0; i < service->n_backends; i++) {
		struct ctl_health_figures figures;

		ctl_health_read(ctl_daemon_health(daemon), service, &service->backends[i],
			&figures);
		ctl_json_put(json, i > 0 ? ",{" : "{");
		ctl_json_put(json, CTL_JSON_FIRST_KEY(CTL_KEY_NAME));
		ctl_json_put_text(json, service->backends[i].name);
		ctl_show_put_figures(daemon, place, i, json, total);
		ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_STATE));
		ctl_json_put_text(json, cfg_state_words[service->backends[i].state]);
		ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_WEIGHT));
		ctl_json_put_number(json, service->backends[i].weight);
		ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_HEALTH));
		ctl_json_put_text(json, ctl_health_word(&figures));
		ctl_show_put_reached(daemon, place, i, json);
		ctl_json_put(json, "}");
	}
}

static void
put_counted_services(const struct ctl_daemon *daemon, struct ctl_json *json)
{
	const struct cfg_model *model = &ctl_daemon_view(daemon)->model;

	for (size_t i = 0; i < model->n_services; i++) {
		struct dp_backend_counts total = {0};
		struct ctl_json list = {.has_failed = false};
		json_t *object = json_object();
		int failed = 0;

		put_counted_backends(daemon, i, &list, &total);
		failed |= add(object, CTL_KEY_NAME, json_string(model->services[i].name));
		failed |= ctl_show_add_total(object, &total);
		failed |= add(object, CTL_KEY_TABLE, ctl_show_table(&model->services[i]));
		ctl_json_put(json, i > 0 ? "," : "");
		ctl_show_put_backends(json, ctl_params_finish(object, failed), &list);
		ctl_json_fini(&list);
	}
}

/* How many turns took as long as a bucket says, and longer than the one before. */
static json_t *
make_turns(const struct dp_worker_figures *figures)
{
	json_t *list = json_array();
	json_t *object = json_object();
	int failed = 0;

	for (unsigned int i = 0; i < DP_TURN_BUCKETS; i++) {
		json_t *bucket = json_object();

		failed |= add(bucket, CTL_KEY_BELOW_NS,
			i + 1 < DP_TURN_BUCKETS ? ctl_params_number(UINT64_C(1) << i)
						: json_null());
		failed |= add(bucket, CTL_KEY_COUNT, ctl_params_number(figures->turns[i]));
		failed |= json_array_append_new(list, bucket);
	}
	failed |= add(object, CTL_KEY_TOTAL_NS, ctl_params_number(figures->turns_ns));
	failed |= add(object, CTL_KEY_BUCKETS, list);
	return ctl_params_finish(object, failed);
}

static json_t *
make_workers(const struct dp *dp)
{
	json_t *list = json_array();
	int failed = 0;

	for (unsigned int i = 0; i < dp_n_workers(dp); i++) {
		json_t *object = json_object();
		struct dp_worker_figures figures;

		dp_read_worker(dp, i, &figures);
		failed |= add(object, CTL_KEY_WORKER, json_integer(i));
		failed |= add(object, CTL_KEY_POLLS, ctl_params_number(figures.polls));
		failed |=
			add(object, CTL_KEY_BUSY_POLLS, ctl_params_number(figures.busy_polls));
		failed |= add(object, CTL_KEY_FLOW_ENTRIES,
			ctl_params_number(figures.flow_entries));
		failed |= add(object, CTL_KEY_TURNS, make_turns(&figures));
		failed |= json_array_append_new(list, object);
	}
	return ctl_params_finish(list, failed);
}

void
ctl_method_stats(void *context, const json_t *params, struct ctl_call *call)
{
	const struct ctl_daemon *daemon = context;
	uint64_t verdicts[LB_N_VERDICTS];
	struct ctl_json json = {.has_failed = false};

	if (!ctl_params_check(params, no_keys, call))
		return;
	dp_read_verdicts(ctl_daemon_dp(daemon), verdicts);
	ctl_json_put_open(&json,
		json_pack("{s:i, s:o, s:o, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
			CTL_KEY_GENERATION,
			ctl_params_number(ctl_daemon_view(daemon)->generation), CTL_KEY_PACKETS,
			ctl_show_packets(verdicts), CTL_KEY_DROPS, ctl_show_drops(verdicts),
			CTL_KEY_WORKERS, make_workers(ctl_daemon_dp(daemon))));
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_SERVICES));
	ctl_json_put(&json, "[");
	put_counted_services(daemon, &json);
	ctl_json_put(&json, "]}");
	answer(call, &json);
}

/* A backend with its keys and its figures; service: its name, or NULL to leave it out. */
static void
put_backend(const struct ctl_daemon *daemon, size_t place, size_t i, const char *service,
	struct ctl_json *json, struct dp_backend_counts *total)
{
	const struct cfg_service *of = &ctl_daemon_view(daemon)->model.services[place];
	const struct cfg_backend *backend = &of->backends[i];

	ctl_show_put_backend(daemon, place, i, json);
	ctl_show_put_reached(daemon, place, i, json);
	if (service != NULL)
		ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_SERVICE), service);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_MAC));
	ctl_json_put_value(json, backend->has_mac ? ctl_show_mac(&backend->mac) : json_null());
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_ZONE), backend->zone);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_QUIC_ID));
	if (backend->n_quic_ids > 0)
		ctl_json_put_value(json, ctl_params_quic_ids(backend));
	else
		ctl_json_put(json, "[]");
	ctl_show_put_health(daemon, of, backend, json);
	ctl_show_put_figures(daemon, place, i, json, total);
	ctl_json_put(json, "}");
}

static void
put_backends(const struct ctl_daemon *daemon, size_t place, const char *service,
	struct ctl_json *json, struct dp_backend_counts *total)
{
	const size_t n = ctl_daemon_view(daemon)->model.services[place].n_backends;

	for (size_t i = 0; i < n; i++) {
		ctl_json_put(json, i > 0 ? "," : "");
		put_backend(daemon, place, i, service, json, total);
	}
}

/* The keys of a service in a file, but its backends. */
static json_t *
make_service(const struct cfg_service *service)
{
	json_t *object = json_object();
	int failed = ctl_show_add_service(object, service);

	failed |= add(object, CTL_KEY_AFFINITY,
		json_string(cfg_affinity_words[service->affinity]));
	failed |= add(object, CTL_KEY_TUNNEL_PORT,
		service->tunnel_port != 0 ? json_integer(service->tunnel_port) : json_null());
	failed |= add(object, CTL_KEY_VNI,
		service->forward == CFG_FORWARD_VXLAN ? json_integer(service->vni)
						      : json_null());
	failed |= add(object, CTL_KEY_CARRY, ctl_params_carry(service));
	failed |= add(object, CTL_KEY_ECHO, json_string(cfg_echo_words[service->echo]));
	failed |= add(object, CTL_KEY_FRAGMENT,
		json_string(cfg_fragment_words[service->fragment]));
	failed |= add(object, CTL_KEY_MSS_CLAMP, ctl_params_mss_clamp(service));
	failed |= add(object, CTL_KEY_QUIC, ctl_params_quic(service, NULL));
	failed |= add(object, CTL_KEY_HEALTH, ctl_params_health(service));
	failed |= add(object, CTL_KEY_SLOW_START,
		service->slow_start_ns != 0 ? ctl_params_duration(service->slow_start_ns)
					    : json_null());
	failed |= add(object, CTL_KEY_WHEN_ALL_DOWN,
		json_string(cfg_all_down_words[service->when_all_down]));
	return ctl_params_finish(object, failed);
}

void
ctl_method_service_list(void *context, const json_t *params, struct ctl_call *call)
{
	const struct ctl_daemon *daemon = context;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	json_t *list;
	int failed = 0;

	if (!ctl_params_check(params, no_keys, call))
		return;
	list = json_array();
	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *service = &view->model.services[i];
		const struct hc_service health =
			ctl_health_read_service(ctl_daemon_health(daemon), service);
		json_t *object = make_service(service);
		size_t n_up = 0;

		for (size_t k = 0; k < service->n_backends; k++)
			n_up += service->backends[k].state == CFG_UP;
		failed |= add(object, CTL_KEY_BACKENDS, ctl_params_number(service->n_backends));
		failed |= add(object, CTL_KEY_UP, ctl_params_number(n_up));
		failed |= ctl_show_add_announced(object, daemon, i);
		failed |= add(object, CTL_KEY_HEALTHY, ctl_params_number(health.n_healthy));
		failed |= add(object, CTL_KEY_READY,
			json_boolean(ctl_ready_look(service, view->services[i].confs,
					     view->services[i].n_unhealthy,
					     ctl_daemon_ports(daemon)->down) == CTL_READY));
		failed |= json_array_append_new(list, object);
	}
	ctl_call_result(call, json_pack("{s:i, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
				      CTL_KEY_GENERATION, ctl_params_number(view->generation),
				      CTL_KEY_SERVICES, ctl_params_finish(list, failed)));
}

void
ctl_method_service_show(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_NAME, NULL};
	const struct ctl_daemon *daemon = context;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	struct dp_backend_counts total = {0};
	const struct cfg_service *service;
	const char *name;
	json_t *object;
	struct ctl_json list = {.has_failed = false};
	struct ctl_json json = {.has_failed = false};
	size_t place;
	int failed = 0;

	if (!ctl_params_check(params, keys, call))
		return;
	name = ctl_params_text(params, CTL_KEY_NAME, call);
	if (name == NULL)
		return;
	service = ctl_method_find_service(&view->model, name, call);
	if (service == NULL)
		return;
	object = make_service(service);
	place = (size_t)(service - view->model.services);
	put_backends(daemon, place, NULL, &list, &total);
	failed |= ctl_show_add_announced(object, daemon, place);
	failed |= ctl_show_add_total(object, &total);
	ctl_json_put_open(&json,
		json_pack("{s:i, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_GENERATION,
			ctl_params_number(view->generation)));
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_SERVICE));
	ctl_show_put_backends(&json, ctl_params_finish(object, failed), &list);
	ctl_json_put(&json, "}");
	ctl_json_fini(&list);
	answer(call, &json);
}

void
ctl_method_backend_list(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_SERVICE, NULL};
	const struct ctl_daemon *daemon = context;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_service *wanted = NULL;
	struct dp_backend_counts total = {0};
	struct ctl_json json = {.has_failed = false};
	const char *comma = "";

	if (!ctl_params_check(params, keys, call))
		return;
	if (json_object_get(params, CTL_KEY_SERVICE) != NULL) {
		const char *name = ctl_params_text(params, CTL_KEY_SERVICE, call);

		if (name != NULL)
			wanted = ctl_method_find_service(&view->model, name, call);
		if (wanted == NULL)
			return;
	}
	ctl_json_put_open(&json,
		json_pack("{s:i, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_GENERATION,
			ctl_params_number(view->generation)));
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_BACKENDS));
	ctl_json_put(&json, "[");
	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *service = &view->model.services[i];

		if ((wanted != NULL && wanted != service) || service->n_backends == 0)
			continue;
		ctl_json_put(&json, comma);
		put_backends(daemon, i, service->name, &json, &total);
		comma = ",";
	}
	ctl_json_put(&json, "]}");
	answer(call, &json);
}
