/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_show.h"

#include <inttypes.h>

#include "ctl_params.h"
#include "ctl_proto.h"

/* A member that could not be made for want of memory fails the whole. */
static int
add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

json_t *
ctl_show_mac(const struct lb_mac *mac)
{
	char text[LB_MAC_TEXT_BYTES];

	return json_string(lb_mac_format(mac, text));
}

static json_t *
make_revision(uint64_t revision)
{
	return revision != 0 ? ctl_params_number(revision) : json_null();
}

static json_t *
make_hash(const struct ctl_etcd_status *status)
{
	return status->revision != 0 ? json_sprintf("%016" PRIx64, status->hash) : json_null();
}

static json_t *
make_words(const char *words)
{
	return words[0] != '\0' ? ctl_params_any_text(words) : json_null();
}

static json_t *
make_refused(const struct ctl_etcd_status *status)
{
	if (status->refused_revision == 0)
		return json_null();
	return json_pack("{s:o, s:o}", CTL_KEY_REVISION,
		ctl_params_number(status->refused_revision), CTL_KEY_ERROR,
		make_words(status->refused_why));
}

static json_t *
make_copy(const struct ctl_etcd_status *status)
{
	return json_pack("{s:o, s:o}", CTL_KEY_SAVED,
		status->copy_s != 0 ? json_integer(status->copy_s) : json_null(), CTL_KEY_ERROR,
		make_words(status->copy_why));
}

json_t *
ctl_show_etcd(const struct ctl_daemon *daemon)
{
	struct ctl_etcd *etcd = ctl_daemon_etcd(daemon);
	struct ctl_etcd_status status;
	json_t *object;
	int failed = 0;

	if (etcd == NULL)
		return json_null();
	ctl_etcd_read_status(etcd, &status);
	object = json_pack("{s:s, s:I, s:b}", CTL_KEY_STATE, ctl_etcd_link_words[status.link],
		CTL_KEY_SINCE, (json_int_t)status.link_since_s, CTL_KEY_FROM_COPY,
		status.is_copy);
	failed |= add(object, CTL_KEY_ERROR,
		status.link == CTL_ETCD_UNREACHABLE ? make_words(status.why) : json_null());
	failed |= add(object, CTL_KEY_REVISION, make_revision(status.revision));
	failed |= add(object, CTL_KEY_HASH, make_hash(&status));
	failed |= add(object, CTL_KEY_KNOWN_REVISION, make_revision(status.known_revision));
	failed |= add(object, CTL_KEY_REFUSED_DOCUMENT, make_refused(&status));
	failed |= add(object, CTL_KEY_APPLIED, ctl_params_number(status.n_applied));
	failed |= add(object, CTL_KEY_REFUSED, ctl_params_number(status.n_refused));
	failed |= add(object, CTL_KEY_FAILURES, ctl_params_number(status.n_failures));
	failed |= add(object, CTL_KEY_COPY, make_copy(&status));
	return ctl_params_finish(object, failed);
}

static json_t *
make_link(const struct ctl_port_state *state, bool is_twin)
{
	if (is_twin && !state->has_twin)
		return json_null();
	return json_string(ctl_port_link_words[is_twin ? state->twin : state->link]);
}

static json_t *
make_missed(const struct dp *dp, size_t port)
{
	json_t *object = json_object();
	uint64_t packets[DP_N_MISSED];
	int failed = 0;

	dp_port_read_missed(dp, port, packets);
	for (size_t i = 0; i < DP_N_MISSED; i++)
		failed |= add(object, dp_missed_words[i], ctl_params_number(packets[i]));
	return ctl_params_finish(object, failed);
}

static json_t *
make_port(const struct ctl_daemon *daemon, const struct cfg_port *port, size_t place)
{
	json_t *object = json_object();
	struct dp_port_info info;
	struct ctl_port_state state;
	int failed = 0;

	dp_port_read(ctl_daemon_dp(daemon), place, &info);
	ctl_ports_read(ctl_daemon_ports(daemon), place, &state);
	failed |= add(object, CTL_KEY_NAME, ctl_params_any_text(port->name));
	failed |= add(object, CTL_KEY_DEVICE, ctl_params_any_text(port->device));
	failed |= add(object, CTL_KEY_DRIVER, json_string(info.driver));
	failed |= add(object, CTL_KEY_KERNEL_INTERFACE,
		info.kernel_if != NULL ? json_string(info.kernel_if) : json_null());
	failed |= add(object, CTL_KEY_LINK, make_link(&state, false));
	failed |= add(object, CTL_KEY_KERNEL_LINK, make_link(&state, true));
	failed |= add(object, CTL_KEY_KEPT_NEXT_HOPS,
		json_integer((json_int_t)state.n_kept_hops));
	failed |= add(object, CTL_KEY_SPEED_MBPS,
		state.speed_mbps != 0 ? json_integer(state.speed_mbps) : json_null());
	failed |= add(object, CTL_KEY_MAC, ctl_show_mac(&info.mac));
	failed |= add(object, CTL_KEY_MTU, json_integer(port->mtu));
	failed |= add(object, CTL_KEY_RX_QUEUES, json_integer(info.n_rx_queues));
	failed |= add(object, CTL_KEY_TX_QUEUES, json_integer(info.n_tx_queues));
	failed |= add(object, CTL_KEY_SPREAD_BY,
		json_string(info.spreads ? "device" : "workers"));
	failed |= add(object, CTL_KEY_MISSED, make_missed(ctl_daemon_dp(daemon), place));
	return ctl_params_finish(object, failed);
}

json_t *
ctl_show_ports(const struct ctl_daemon *daemon, const struct cfg_dataplane *plane)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < plane->n_ports; i++)
		failed |= json_array_append_new(list, make_port(daemon, &plane->ports[i], i));
	return ctl_params_finish(list, failed);
}

json_t *
ctl_show_packets(const uint64_t verdicts[static LB_N_VERDICTS])
{
	json_t *object = json_object();
	uint64_t n_dropped = 0;
	uint64_t n_received = 0;
	int failed = 0;

	for (size_t i = 0; i < LB_N_VERDICTS; i++) {
		n_received += verdicts[i];
		n_dropped += i >= LB_FIRST_DROP ? verdicts[i] : 0;
	}
	failed |= add(object, CTL_KEY_RECEIVED, ctl_params_number(n_received));
	failed |= add(object, CTL_KEY_FORWARDED, ctl_params_number(verdicts[LB_FORWARD]));
	failed |= add(object, CTL_KEY_REPLIED, ctl_params_number(verdicts[LB_REPLY]));
	failed |= add(object, CTL_KEY_TO_KERNEL, ctl_params_number(verdicts[LB_TO_KERNEL]));
	failed |= add(object, CTL_KEY_DROPPED, ctl_params_number(n_dropped));
	return ctl_params_finish(object, failed);
}

json_t *
ctl_show_drops(const uint64_t verdicts[static LB_N_VERDICTS])
{
	json_t *object = json_object();
	int failed = 0;

	for (int i = LB_FIRST_DROP; i < LB_N_VERDICTS; i++)
		failed |= add(object, lb_verdict_reason((enum lb_verdict)i),
			ctl_params_number(verdicts[i]));
	return ctl_params_finish(object, failed);
}

json_t *
ctl_show_table(const struct cfg_service *service)
{
	char overload[CFG_PERCENT_TEXT_BYTES];
	json_t *object = json_pack("{s:s, s:I}", CTL_KEY_ALGORITHM,
		cfg_algorithm_words[service->algorithm], CTL_KEY_SIZE,
		(json_int_t)service->n_slots);
	int failed = 0;

	if (service->algorithm == CFG_STABLE)
		failed |= add(object, CTL_KEY_OVERLOAD,
			json_string(cfg_format_percent(service->overload, overload)));
	return ctl_params_finish(object, failed);
}

int
ctl_show_add_service(json_t *object, const struct cfg_service *service)
{
	char address[LB_PREFIX_TEXT_BYTES];
	int failed = 0;

	failed |= add(object, CTL_KEY_NAME, json_string(service->name));
	failed |= add(object, CTL_KEY_ADDRESS,
		json_string(lb_prefix_format(&service->address, address)));
	failed |= add(object, CTL_KEY_PROTOCOL,
		json_string(cfg_protocol_words[service->protocol]));
	failed |= add(object, CTL_KEY_PORT,
		service->port == 0 ? json_string("any") : json_integer(service->port));
	failed |=
		add(object, CTL_KEY_FORWARD, json_string(cfg_forward_words[service->forward]));
	failed |= add(object, CTL_KEY_TABLE, ctl_show_table(service));
	failed |= add(object, CTL_KEY_MIN_HEALTHY,
		json_integer(service->min_healthy > 1 ? service->min_healthy : 1));
	return failed;
}

int
ctl_show_add_total(json_t *object, const struct dp_backend_counts *total)
{
	int failed = 0;

	failed |= add(object, CTL_KEY_PACKETS, ctl_params_number(total->packets));
	failed |= add(object, CTL_KEY_BYTES, ctl_params_number(total->bytes));
	failed |= add(object, CTL_KEY_FLOWS, ctl_params_number(total->flows));
	return failed;
}

int
ctl_show_add_announced(json_t *object, const struct ctl_daemon *daemon, size_t place)
{
	const struct ctl_announce *announce = ctl_daemon_announce(daemon);
	const char *why_not = announce == NULL ? NULL
					       : ctl_announce_why_not(announce,
							 ctl_daemon_view(daemon), place);
	int failed = 0;

	failed |= add(object, CTL_KEY_ANNOUNCED,
		announce == NULL ? json_null() : json_boolean(why_not == NULL));
	failed |= add(object, CTL_KEY_NOT_ANNOUNCED,
		why_not == NULL ? json_null() : json_string(why_not));
	return failed;
}

void
ctl_show_put_figures(const struct ctl_daemon *daemon, size_t service, size_t backend,
	struct ctl_json *json, struct dp_backend_counts *total)
{
	const struct ctl_view_service *view = &ctl_daemon_view(daemon)->services[service];
	struct dp_backend_counts counts;

	dp_read_backend(ctl_daemon_dp(daemon), view->ids[backend], &counts);
	total->packets += counts.packets;
	total->bytes += counts.bytes;
	total->flows += counts.flows;
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_PACKETS));
	ctl_json_put_number(json, counts.packets);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_BYTES));
	ctl_json_put_number(json, counts.bytes);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_FLOWS));
	ctl_json_put_number(json, counts.flows);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_SLOTS));
	ctl_json_put_number(json, view->slots[backend]);
}

void
ctl_show_put_backend(const struct ctl_daemon *daemon, size_t service, size_t backend,
	struct ctl_json *json)
{
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const struct cfg_backend *shown = &view->model.services[service].backends[backend];
	char address[LB_ADDR_TEXT_BYTES];
	uint64_t ms;

	ctl_json_put_member(json, "{" CTL_JSON_FIRST_KEY(CTL_KEY_NAME), shown->name);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_ADDRESS),
		lb_addr_format(&shown->address, address));
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_WEIGHT));
	ctl_json_put_number(json, shown->weight);
	ctl_json_put_member(json, CTL_JSON_KEY(CTL_KEY_STATE), cfg_state_words[shown->state]);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_STATE_SECONDS));
	ctl_json_put_value(json,
		ctl_daemon_read_state_ms(daemon, view->services[service].ids[backend], &ms)
			? json_real((double)ms / 1e3)
			: json_null());
}

void
ctl_show_put_reached(const struct ctl_daemon *daemon, size_t service, size_t backend,
	struct ctl_json *json)
{
	const struct ctl_view_service *view = &ctl_daemon_view(daemon)->services[service];

	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_REACHED));
	ctl_json_put(json, view->confs[backend].has_next_hop ? "true" : "false");
}

void
ctl_show_put_health(const struct ctl_daemon *daemon, const struct cfg_service *service,
	const struct cfg_backend *backend, struct ctl_json *json)
{
	struct ctl_health_figures figures;

	ctl_health_read(ctl_daemon_health(daemon), service, backend, &figures);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_HEALTH));
	ctl_json_put_text(json, ctl_health_word(&figures));
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_HEALTH_SECONDS));
	ctl_json_put_value(json,
		figures.is_checked ? json_real((double)figures.since_ns / 1e9) : json_null());
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_HEALTH_BACK));
	ctl_json_put_value(json,
		figures.back_ns > 0 ? json_real((double)figures.back_ns / 1e9) : json_null());
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_HEALTH_ERROR));
	ctl_json_put_value(json,
		figures.error != NULL ? json_string(figures.error) : json_null());
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_SHARE));
	ctl_json_put_number(json, figures.use == HC_USE_YES ? figures.share : 0);
}

void
ctl_show_put_backends(struct ctl_json *json, json_t *object, struct ctl_json *list)
{
	ctl_json_put_open(json, object);
	ctl_json_put(json, CTL_JSON_KEY(CTL_KEY_BACKENDS));
	ctl_json_put(json, "[");
	ctl_json_put_all(json, list);
	ctl_json_put(json, "]}");
}
