/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_nearest.h"
#include "cfg_node.h"
#include "ctl_daemon.h"
#include "ctl_filter.h"
#include "ctl_json.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_places.h"
#include "ctl_proto.h"
#include "lb_hash.h"

#define NS_PER_S     UINT64_C(1000000000)
#define IDLE_S_MAX   10000000u
#define PAGE_FLOWS   1000u
#define CURSOR_BYTES 32u
#define BITS_A_WORD  64u
#define FLOW_PARAMS                                                                            \
	CTL_KEY_SERVICE, CTL_KEY_BACKEND, CTL_KEY_HOST, CTL_KEY_NET, CTL_KEY_CLIENT,           \
		CTL_KEY_PORT, CTL_KEY_PROTOCOL, CTL_KEY_CONFIRMED, CTL_KEY_IDLE

/* What a call asks for. */
struct asked {
	struct lb_flow_query query;
	uint64_t *backends; /* the query's bits, owned */
	struct dp_flow_cursor at;
};

static void
free_asked(struct asked *asked)
{
	free(asked->backends);
}

/* The first page begins without a cursor. */
static bool
read_cursor(const struct dp *dp, const json_t *params, struct ctl_call *call,
	struct dp_flow_cursor *at)
{
	char copy[CURSOR_BYTES];
	const char *text;
	uint64_t worker;
	uint64_t bucket;
	char *point;

	if (!ctl_filter_read_text(params, CTL_KEY_CURSOR, call, &text))
		return false;
	if (text == NULL)
		return true;
	(void)snprintf(copy, sizeof(copy), "%s", text);
	point = strchr(copy, '.');
	if (point != NULL) {
		*point = '\0';
		if (cfg_scan_u64(copy, 0, dp_n_workers(dp) - 1, &worker) &&
			cfg_scan_u64(point + 1, 0, dp_flow_buckets(dp) - 1, &bucket)) {
			*at = (struct dp_flow_cursor){(unsigned int)worker, (uint32_t)bucket};
			return true;
		}
	}
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS, "cursor: '%.*s' is none of flows",
		(int)CURSOR_BYTES, text);
	return false;
}

/* Whether SERVICE/NAME begins with a service's name. */
static bool
is_of(const struct cfg_service *service, const char *backend)
{
	const size_t n = strlen(service->name);

	return strncmp(backend, service->name, n) == 0 && backend[n] == '/';
}

static bool
refuse_backend(const struct cfg_model *model, const char *text, struct ctl_call *call)
{
	const struct cfg_service *service = NULL;
	struct cfg_nearest nearest;
	const char *name;

	for (size_t i = 0; i < model->n_services; i++)
		if (is_of(&model->services[i], text))
			service = &model->services[i];
	if (service == NULL) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"backend: expected SERVICE/NAME of one that is there, found '%s'",
			text);
		return false;
	}
	name = text + strlen(service->name) + 1;
	cfg_nearest_init(&nearest, name, strlen(name));
	for (size_t i = 0; i < service->n_backends; i++)
		cfg_nearest_offer(&nearest, service->backends[i].name);
	if (nearest.best != NULL)
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"there is no backend '%s'; the nearest is '%s/%s'", text, service->name,
			nearest.best);
	else
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS, "there is no backend '%s'", text);
	return false;
}

static void
set_bit(struct asked *asked, uint32_t id)
{
	asked->backends[id / BITS_A_WORD] |= UINT64_C(1) << id % BITS_A_WORD;
}

/* The backends of a service, or the one that is named SERVICE/NAME. @return whether any is. */
static bool
set_bits(const struct ctl_view *view, const struct cfg_service *service, const char *backend,
	struct asked *asked)
{
	bool is_any = false;

	for (size_t i = 0; i < view->model.n_services; i++) {
		const struct cfg_service *one = &view->model.services[i];

		if ((service != NULL && service != one) ||
			(backend != NULL && !is_of(one, backend)))
			continue;
		for (size_t k = 0; k < one->n_backends; k++) {
			if (backend != NULL && strcmp(backend + strlen(one->name) + 1,
						       one->backends[k].name) != 0)
				continue;
			set_bit(asked, view->services[i].ids[k]);
			is_any = true;
		}
	}
	return is_any;
}

/* Whose flows: of a service, of a backend, or all. */
static bool
read_backends(const struct ctl_view *view, const json_t *params, struct ctl_call *call,
	struct asked *asked)
{
	const struct cfg_service *service;
	const char *backend;

	if (!ctl_filter_read_service(params, &view->model, call, &service) ||
		!ctl_filter_read_text(params, CTL_KEY_BACKEND, call, &backend))
		return false;
	if (service == NULL && backend == NULL)
		return true;
	asked->backends = calloc(view->n_ids / BITS_A_WORD + 1, sizeof(*asked->backends));
	if (asked->backends == NULL) {
		ctl_params_no_memory(call);
		return false;
	}
	asked->query.backends = asked->backends;
	asked->query.n_backends = view->n_ids;
	if (backend == NULL)
		(void)set_bits(view, service, NULL, asked);
	else if (!set_bits(view, NULL, backend, asked))
		return refuse_backend(&view->model, backend, call);
	else if (service != NULL && !is_of(service, backend)) /* there is none that is both */
		asked->query.n_backends = 0;
	return true;
}

/* What is asked of ends, where they are not kept. */
static bool
check_addresses(const struct dp *dp, const struct lb_filter *filter, struct ctl_call *call)
{
	struct lb_filter without = *filter;

	if (filter->protocols[0] == IPPROTO_TCP || filter->protocols[0] == IPPROTO_UDP)
		without.has_protocol = false;
	if (dp_keeps_flow_keys(dp) || lb_filter_is_open(&without))
		return true;
	ctl_call_error(call, CTL_RPC_REFUSED,
		"the addresses of flows are not kept; with 'flow_addresses: true' under "
		"'dataplane:' they are, from the next start on");
	return false;
}

static bool
read_query(struct ctl_daemon *daemon, const json_t *params, struct ctl_call *call,
	struct asked *asked)
{
	const json_t *confirmed = json_object_get(params, CTL_KEY_CONFIRMED);
	bool is_confirmed = false;
	uint64_t idle_s = 0;

	if (!ctl_filter_read(params, call, &asked->query.filter) ||
		!check_addresses(ctl_daemon_dp(daemon), &asked->query.filter, call) ||
		!ctl_filter_read_flag(params, CTL_KEY_CONFIRMED, call, &is_confirmed) ||
		!ctl_filter_read_number(params, CTL_KEY_IDLE, 0, IDLE_S_MAX, call, &idle_s) ||
		!read_cursor(ctl_daemon_dp(daemon), params, call, &asked->at) ||
		!read_backends(ctl_daemon_view(daemon), params, call, asked))
		return false;
	if (json_is_boolean(confirmed))
		asked->query.confirmed = is_confirmed ? LB_FLOW_CONFIRMED : LB_FLOW_UNCONFIRMED;
	asked->query.idle_ns = idle_s * NS_PER_S;
	return true;
}

static void
tell_error(int error, struct ctl_call *call)
{
	if (error == -ENOMEM)
		ctl_params_no_memory(call);
	else
		ctl_call_error(call, CTL_RPC_LATE, "the workers did not answer in time");
}

static void
put_cursor(struct ctl_json *json, const struct dp *dp, const struct dp_flow_cursor *at)
{
	char text[CURSOR_BYTES];

	(void)snprintf(text, sizeof(text), "%u.%" PRIu32, at->worker, at->bucket);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_CURSOR),
		at->worker < dp_n_workers(dp) ? text : NULL);
}

static void
put_flag(struct ctl_json *json, const char *key, bool value)
{
	ctl_json_put(json, key);
	ctl_json_put(json, value ? "true" : "false");
}

/* Of a backend that is gone neither name is known. */
static void
put_backend(struct ctl_json *json, const struct ctl_view *view, struct ctl_place place)
{
	const struct cfg_service *service =
		place.service != CTL_PLACE_NONE ? &view->model.services[place.service] : NULL;

	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_SERVICE),
		service != NULL ? service->name : NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_BACKEND),
		service != NULL ? service->backends[place.backend].name : NULL);
}

/* The ends; where they are not kept, of the protocol that is known which TCP is. */
static void
put_ends(struct ctl_json *json, const struct lb_flow_key *key, bool has_key)
{
	const bool has_ports = key->sport_be != 0 || key->dport_be != 0;
	char protocol[CTL_PROTOCOL_TEXT_BYTES];
	char end[CTL_END_TEXT_BYTES];

	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_PROTOCOL),
		has_key || key->proto == IPPROTO_TCP ? ctl_filter_protocol(key->proto, protocol)
						     : NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_CLIENT),
		has_key ? ctl_filter_end(&key->src, key->sport_be, has_ports, end) : NULL);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_DESTINATION),
		has_key ? ctl_filter_end(&key->dst, key->dport_be, has_ports, end) : NULL);
}

static void
put_flow(struct ctl_json *json, const struct ctl_view *view, const struct ctl_places *places,
	const struct lb_flow_entry *entry, bool has_key)
{
	put_backend(json, view, ctl_places_backend(places, entry->info.backend));
	put_ends(json, &entry->key, has_key);
	put_flag(json, CTL_JSON_KEY(CTL_KEY_CONFIRMED), entry->info.is_confirmed);
	put_flag(json, CTL_JSON_KEY(CTL_KEY_CLOSING), entry->info.is_closing);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_IDLE_SECONDS));
	ctl_json_put_value(json, json_real((double)entry->info.idle_ns / 1e9));
	ctl_json_put(json, "}");
}

static void
begin_answer(struct ctl_json *json)
{
	ctl_json_put(json, "{" CTL_JSON_FIRST_KEY(CTL_KEY_SCHEMA));
	ctl_json_put_number(json, CTL_SCHEMA);
}

static void
end_answer(struct ctl_json *json, struct ctl_call *call)
{
	ctl_json_put(json, "}");
	ctl_call_text(call, ctl_json_text(json));
	ctl_json_fini(json);
}

static void
begin_flow(struct ctl_json *json, unsigned int worker, bool is_first)
{
	ctl_json_put(json, is_first ? "{" : ",{");
	ctl_json_put(json, CTL_JSON_FIRST_KEY(CTL_KEY_WORKER));
	ctl_json_put_number(json, worker);
}

/* A page, at most; often less of one, as few buckets are gone through at a time. */
static void
answer_list(struct ctl_daemon *daemon, struct asked *asked, struct lb_flow_entry *entries,
	struct ctl_call *call)
{
	struct dp *dp = ctl_daemon_dp(daemon);
	const unsigned int worker = asked->at.worker;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct ctl_places *places = ctl_daemon_find_places(daemon);
	struct ctl_json json = {.has_failed = false};
	size_t n = PAGE_FLOWS;
	const int ret = dp_list_flows(dp, &asked->query, &asked->at, entries, &n);

	if (ret != 0) {
		tell_error(ret, call);
		return;
	}
	begin_answer(&json);
	put_flag(&json, CTL_JSON_KEY(CTL_KEY_ADDRESSES), dp_keeps_flow_keys(dp));
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_FLOWS) "[");
	for (size_t i = 0; i < n; i++) {
		begin_flow(&json, worker, i == 0);
		put_flow(&json, view, places, &entries[i], dp_keeps_flow_keys(dp));
	}
	ctl_json_put(&json, "]");
	put_cursor(&json, dp, &asked->at);
	end_answer(&json, call);
}

/* Whether the places of what is in force are known; otherwise the call is answered. */
static bool
follow_places(struct ctl_daemon *daemon, struct ctl_call *call)
{
	if (ctl_daemon_find_places(daemon) != NULL)
		return true;
	ctl_params_no_memory(call);
	return false;
}

/* What a page is asked for, and n_bytes, all zero, for what is found. NULL: answered. */
static void *
begin_page(struct ctl_daemon *daemon, const json_t *params, struct ctl_call *call,
	size_t n_bytes, struct asked *asked)
{
	static const char *const keys[] = {FLOW_PARAMS, CTL_KEY_CURSOR, NULL};
	void *found;

	if (!ctl_params_check(params, keys, call) || !follow_places(daemon, call) ||
		!read_query(daemon, params, call, asked))
		return NULL;
	found = calloc(1, n_bytes);
	if (found == NULL)
		ctl_params_no_memory(call);
	return found;
}

void
ctl_method_flows_list(void *context, const json_t *params, struct ctl_call *call)
{
	struct asked asked = {.backends = NULL};
	struct lb_flow_entry *entries =
		begin_page(context, params, call, PAGE_FLOWS * sizeof(*entries), &asked);

	if (entries != NULL)
		answer_list(context, &asked, entries, call);
	free(entries);
	free_asked(&asked);
}

static void
put_count(struct ctl_json *json, const struct ctl_view *view, struct ctl_place place,
	uint64_t count, bool *is_first)
{
	/* The names are put as members that follow another. */
	ctl_json_put(json, *is_first ? "{" : ",{");
	ctl_json_put(json, CTL_JSON_FIRST_KEY(CTL_KEY_FLOWS));
	ctl_json_put_number(json, count);
	put_backend(json, view, place);
	ctl_json_put(json, "}");
	*is_first = false;
}

static void
answer_count(struct ctl_daemon *daemon, struct asked *asked, uint32_t *counts,
	struct ctl_call *call)
{
	struct dp *dp = ctl_daemon_dp(daemon);
	const unsigned int worker = asked->at.worker;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct ctl_places *places = ctl_daemon_find_places(daemon);
	struct ctl_json json = {.has_failed = false};
	bool is_first = true;
	uint64_t n_gone = 0;
	const int ret = dp_tally_flows(dp, &asked->query, &asked->at, counts, view->n_ids);

	if (ret != 0) {
		tell_error(ret, call);
		return;
	}
	begin_answer(&json);
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_WORKER));
	ctl_json_put_number(&json, worker);
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_FLOWS) "[");
	for (uint32_t id = 0; id < view->n_ids; id++) {
		const struct ctl_place place = ctl_places_backend(places, id);

		if (counts[id] == 0)
			continue;
		if (place.service == CTL_PLACE_NONE)
			n_gone += counts[id];
		else
			put_count(&json, view, place, counts[id], &is_first);
	}
	if (n_gone > 0)
		put_count(&json, view, (struct ctl_place){CTL_PLACE_NONE, CTL_PLACE_NONE},
			n_gone, &is_first);
	ctl_json_put(&json, "]");
	put_cursor(&json, dp, &asked->at);
	end_answer(&json, call);
}

void
ctl_method_flows_count(void *context, const json_t *params, struct ctl_call *call)
{
	const size_t n = (size_t)ctl_daemon_view(context)->n_ids + 1;
	struct asked asked = {.backends = NULL};
	uint32_t *counts = begin_page(context, params, call, n * sizeof(*counts), &asked);

	if (counts != NULL)
		answer_count(context, &asked, counts, call);
	free(counts);
	free_asked(&asked);
}

/* Whether the flows to be cleared are named, or all are meant. */
static bool
check_meant(const json_t *params, struct ctl_call *call)
{
	static const char *const filters[] = {FLOW_PARAMS};
	bool is_meant = false;

	if (!ctl_filter_read_flag(params, CTL_KEY_ALL, call, &is_meant))
		return false;
	for (size_t i = 0; i < LB_N_ELEMENTS(filters) && !is_meant; i++) {
		const json_t *value = json_object_get(params, filters[i]);

		is_meant = value != NULL && !json_is_null(value);
	}
	if (!is_meant)
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"which flows? Say what of them, such as a backend; or 'all'");
	return is_meant;
}

void
ctl_method_flows_clear(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {FLOW_PARAMS, CTL_KEY_CURSOR, CTL_KEY_ALL, NULL};
	struct dp *dp = ctl_daemon_dp(context);
	struct asked asked = {.backends = NULL};
	struct ctl_json json = {.has_failed = false};
	uint64_t cleared;
	int ret;

	if (ctl_params_check(params, keys, call) && check_meant(params, call) &&
		read_query(context, params, call, &asked)) {
		ret = dp_clear_flows(dp, &asked.query, &asked.at, &cleared);
		if (ret != 0) {
			tell_error(ret, call);
		} else {
			begin_answer(&json);
			ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_CLEARED));
			ctl_json_put_number(&json, cleared);
			put_cursor(&json, dp, &asked.at);
			end_answer(&json, call);
		}
	}
	free_asked(&asked);
}

void
ctl_method_flows_find(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PROTOCOL, CTL_KEY_CLIENT,
		CTL_KEY_DESTINATION, NULL};
	struct dp *dp = ctl_daemon_dp(context);
	struct ctl_json json = {.has_failed = false};
	struct dp_flow_answer answer;
	struct lb_flow_entry entry;
	struct lb_flow_hash hash;
	int ret;

	if (!ctl_params_check(params, keys, call) || !follow_places(context, call) ||
		!ctl_filter_read_flow(params, call, &entry.key))
		return;
	hash = dp_flow_hash(dp, &entry.key);
	ret = dp_ask_flow(dp, &hash, &answer);
	if (ret != 0 && ret != -ENOENT) {
		tell_error(ret, call);
		return;
	}
	begin_answer(&json);
	ctl_json_put(&json, CTL_JSON_KEY(CTL_KEY_FLOWS) "[");
	if (ret == 0) {
		entry.info = answer.info;
		begin_flow(&json, answer.worker, true);
		put_flow(&json, ctl_daemon_view(context), ctl_daemon_find_places(context),
			&entry, true);
	}
	ctl_json_put(&json, "]");
	end_answer(&json, call);
}
