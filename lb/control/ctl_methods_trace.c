/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

#include "ctl_daemon.h"
#include "ctl_filter.h"
#include "ctl_json.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_proto.h"
#include "ctl_trace.h"
#include "lb_packet.h"
#include "lb_verdict.h"

#define NS_PER_S   UINT64_C(1000000000)
#define TIME_BYTES 40u

static const char *const flow_words[] = {
	[DP_FLOW_NONE] = CTL_FLOW_NONE,
	[DP_FLOW_HIT] = CTL_FLOW_HIT,
	[DP_FLOW_MISS] = CTL_FLOW_MISS,
};

static const char *const kind_words[] = {
	[LB_PACKET_FLOW] = "flow",
	[LB_PACKET_ICMP_ERROR] = "icmp_error",
	[LB_PACKET_LATER_FRAGMENT] = "fragment",
	[LB_PACKET_ICMP_OTHER] = "icmp",
	[LB_PACKET_TUNNEL] = "tunnel",
	[LB_PACKET_NOT_FINAL] = "routed",
};

static bool
read_conf(const struct ctl_view *view, const json_t *params, struct ctl_call *call,
	struct dp_trace_conf *conf)
{
	const struct cfg_service *service;
	uint64_t sample = 1;

	*conf = (struct dp_trace_conf){.sample = 1};
	if (!ctl_filter_read(params, call, &conf->filter) ||
		!ctl_filter_read_service(params, &view->model, call, &service) ||
		!ctl_filter_read_flag(params, CTL_KEY_DROPPED, call, &conf->dropped_only) ||
		!ctl_filter_read_number(params, CTL_KEY_SAMPLE, 1, DP_TRACE_SAMPLE_MAX, call,
			&sample))
		return false;
	conf->sample = (uint32_t)sample;
	conf->has_service = service != NULL;
	if (service != NULL)
		conf->service = view->services[service - view->model.services].number;
	return true;
}

static void
tell_why_not(const struct ctl_trace *trace, int error, struct ctl_call *call)
{
	if (error == -EBUSY)
		ctl_call_error(call, CTL_RPC_REFUSED,
			"another trace runs, since %llu s ago, and there is one at a time; it "
			"ends with its client, or %u s after that has last read it",
			(unsigned long long)(ctl_loop_now_ms() - trace->begun_ms) / 1000,
			CTL_TRACE_LEASE_MS / 1000);
	else
		ctl_params_no_memory(call);
}

void
ctl_method_trace_begin(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_SERVICE, CTL_KEY_HOST, CTL_KEY_NET,
		CTL_KEY_PORT, CTL_KEY_PROTOCOL, CTL_KEY_DROPPED, CTL_KEY_SAMPLE, CTL_KEY_COUNT,
		CTL_KEY_SECONDS, NULL};
	struct ctl_trace *trace = ctl_daemon_trace(context);
	struct ctl_trace_bounds bounds = {UINT64_MAX, CTL_TRACE_SECONDS_DEFAULT};
	struct dp_trace_conf conf;
	int ret;

	if (!ctl_params_check(params, keys, call) ||
		!read_conf(ctl_daemon_view(context), params, call, &conf) ||
		!ctl_filter_read_number(params, CTL_KEY_COUNT, 1, INT64_MAX, call,
			&bounds.n_records) ||
		!ctl_filter_read_number(params, CTL_KEY_SECONDS, 1, CTL_TRACE_SECONDS_MAX, call,
			&bounds.seconds))
		return;
	if (!ctl_daemon_has_client(context, trace->client))
		ctl_trace_end(trace);
	ret = ctl_trace_begin(trace, &conf, &bounds);
	if (ret != 0) {
		tell_why_not(trace, ret, call);
		return;
	}
	trace->client = ctl_call_client(call);
	ctl_call_result(call, json_pack("{s:i, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
				      CTL_KEY_TRACE, ctl_params_number(trace->number),
				      CTL_KEY_SECONDS, ctl_params_number(bounds.seconds)));
}

/* RFC 3339, to the microsecond. @param to_wall_ns  From the workers' clock to the calendar's.
 */
static const char *
format_time(uint64_t now_ns, uint64_t to_wall_ns, char out[static TIME_BYTES])
{
	const uint64_t wall_ns = now_ns + to_wall_ns;
	const time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm when;
	size_t n;

	(void)gmtime_r(&seconds, &when);
	n = strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &when);
	(void)snprintf(out + n, TIME_BYTES - n, ".%06uZ",
		(unsigned int)(wall_ns % NS_PER_S / 1000));
	return out;
}

/* Of the port by which the device's packets come. */
static const char *
port_name(const struct ctl_daemon *daemon, uint16_t id)
{
	const struct cfg_dataplane *plane = &ctl_daemon_view(daemon)->model.dataplane;

	for (size_t i = 0; i < plane->n_ports; i++) {
		struct dp_port_info info;

		dp_port_read(ctl_daemon_dp(daemon), i, &info);
		if (info.id == id)
			return plane->ports[i].name;
	}
	return NULL;
}

static void
put_ends(struct ctl_json *json, const struct dp_trace_record *record)
{
	/* A later fragment has none, and what is no TCP or UDP neither. */
	const bool has_ports = record->key.sport_be != 0 || record->key.dport_be != 0;
	const bool has_ends = record->kind != DP_TRACE_UNPARSED;
	char protocol[CTL_PROTOCOL_TEXT_BYTES];
	char end[CTL_END_TEXT_BYTES];

	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_KIND),
		has_ends ? kind_words[record->kind] : NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_PROTOCOL),
		has_ends ? ctl_filter_protocol(record->protocol, protocol) : NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_CLIENT),
		has_ends
			? ctl_filter_end(&record->key.src, record->key.sport_be, has_ports, end)
			: NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_DESTINATION),
		has_ends
			? ctl_filter_end(&record->key.dst, record->key.dport_be, has_ports, end)
			: NULL);
}

/* Names as they are now: of what has been removed since there are none. */
static void
put_choice(struct ctl_json *json, const struct ctl_view *view, const struct ctl_places *places,
	const struct dp_trace_record *record)
{
	const struct cfg_service *services = view->model.services;
	const struct ctl_place place = ctl_places_backend(places, record->backend);
	const uint32_t service = ctl_places_service(places, record->service);

	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_SERVICE),
		service != CTL_PLACE_NONE ? services[service].name : NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_BACKEND),
		place.service != CTL_PLACE_NONE
			? services[place.service].backends[place.backend].name
			: NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_FLOW), flow_words[record->flow]);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_SLOT));
	if (record->slot == DP_NONE)
		ctl_json_put(json, "null");
	else
		ctl_json_put_number(json, record->slot);
}

static void
put_record(struct ctl_json *json, const struct ctl_daemon *daemon,
	const struct ctl_places *places, const struct dp_trace_record *record,
	uint64_t to_wall_ns)
{
	const enum lb_verdict verdict = (enum lb_verdict)record->verdict;
	const char *port = port_name(daemon, record->port);
	char when[TIME_BYTES];

	ctl_json_put_member(json, "{" CTL_JSON_FIRST_KEY(CTL_KEY_TIME),
		format_time(record->now_ns, to_wall_ns, when));
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_WORKER));
	ctl_json_put_number(json, record->worker);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_IN_PORT));
	ctl_json_put_value(json, port != NULL ? ctl_params_any_text(port) : json_null());
	put_ends(json, record);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_BYTES));
	ctl_json_put_number(json, record->n_bytes);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_VERDICT), lb_verdict_name(verdict));
	put_choice(json, ctl_daemon_view(daemon), places, record);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_REASON), lb_verdict_reason(verdict));
	ctl_json_put(json, "}");
}

static uint64_t
find_wall_offset(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec - dp_now_ns();
}

static void
answer_records(const struct ctl_daemon *daemon, struct ctl_trace *trace,
	const struct ctl_places *places, struct ctl_call *call)
{
	const uint64_t to_wall_ns = find_wall_offset();
	struct ctl_json json = {.has_failed = false};
	const char *ended;
	uint64_t missed;
	const size_t n = ctl_trace_read(trace, &missed, &ended);

	ctl_json_put(&json, "{" CTL_JSON_FIRST_KEY(CTL_KEY_SCHEMA));
	ctl_json_put_number(&json, CTL_SCHEMA);
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_PACKETS) "[");
	for (size_t i = 0; i < n; i++) {
		ctl_json_put(&json, i > 0 ? "," : "");
		put_record(&json, daemon, places, &trace->records[i], to_wall_ns);
	}
	ctl_json_put(&json, "]" CTL_JSON_KEY(CTL_KEY_MISSED));
	ctl_json_put_number(&json, missed);
	ctl_json_put_member(&json, CTL_JSON_KEY(CTL_KEY_ENDED), ended);
	ctl_json_put(&json, "}");
	ctl_call_text(call, ctl_json_text(&json));
	ctl_json_fini(&json);
}

/* Whether a call is about the trace that runs; otherwise it is answered. */
static bool
check_number(const struct ctl_trace *trace, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_TRACE, NULL};
	uint64_t number = 0;

	if (!ctl_params_check(params, keys, call) ||
		!ctl_filter_read_number(params, CTL_KEY_TRACE, 1, INT64_MAX, call, &number))
		return false;
	if (ctl_trace_is(trace, number))
		return true;
	ctl_call_error(call, CTL_RPC_REFUSED,
		"trace %llu does not run; one that is not read for %u s ends",
		(unsigned long long)number, CTL_TRACE_LEASE_MS / 1000);
	return false;
}

void
ctl_method_trace_read(void *context, const json_t *params, struct ctl_call *call)
{
	struct ctl_trace *trace = ctl_daemon_trace(context);
	const struct ctl_places *places;

	if (!check_number(trace, params, call))
		return;
	trace->client = ctl_call_client(call);
	places = ctl_daemon_find_places(context);
	if (places == NULL)
		ctl_params_no_memory(call);
	else
		answer_records(context, trace, places, call);
}

void
ctl_method_trace_end(void *context, const json_t *params, struct ctl_call *call)
{
	struct ctl_trace *trace = ctl_daemon_trace(context);

	if (!check_number(trace, params, call))
		return;
	ctl_trace_end(trace);
	ctl_call_result(call, json_pack("{s:i}", CTL_KEY_SCHEMA, CTL_SCHEMA));
}
