/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_node.h"
#include "ctl_apply.h"
#include "ctl_fixed.h"
#include "ctl_index.h"
#include "ctl_params.h"
#include "ctl_picking.h"
#include "ctl_proto.h"

/* Takes from and to. A change that is none is no error. */
static int
add_change(json_t *list, const char *key, json_t *from, json_t *to)
{
	if (from != NULL && to != NULL && json_equal(from, to) != 0) {
		json_decref(from);
		json_decref(to);
		return 0;
	}
	return json_array_append_new(list,
		json_pack("{s:o, s:o, s:o}", CTL_KEY_KEY, ctl_params_any_text(key),
			CTL_KEY_FROM, from, CTL_KEY_TO, to));
}

static json_t *
make_overload(const struct cfg_service *service)
{
	char text[CFG_PERCENT_TEXT_BYTES];

	if (service->algorithm != CFG_STABLE)
		return json_null();
	return json_string(cfg_format_percent(service->overload, text));
}

static json_t *
make_text_or_null(const char *text)
{
	return text == NULL ? json_null() : ctl_params_any_text(text);
}

static json_t *
make_mac_or_null(bool has_mac, const struct lb_mac *mac)
{
	char text[LB_MAC_TEXT_BYTES];

	return has_mac ? json_string(lb_mac_format(mac, text)) : json_null();
}

static json_t *
make_addresses(const struct cfg_port *port)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < port->n_addresses; i++) {
		char text[LB_PREFIX_TEXT_BYTES];

		failed |= json_array_append_new(list,
			json_string(lb_prefix_format(&port->addresses[i], text)));
	}
	return ctl_params_finish(list, failed);
}

static json_t *
make_routes(const struct cfg_port *port)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < port->n_routes; i++) {
		char to[LB_PREFIX_TEXT_BYTES];
		char via[LB_ADDR_TEXT_BYTES];

		failed |= json_array_append_new(list,
			json_pack("{s:s, s:s}", "to", lb_prefix_format(&port->routes[i].to, to),
				"via", lb_addr_format(&port->routes[i].via, via)));
	}
	return ctl_params_finish(list, failed);
}

static json_t *
make_vlan(const struct cfg_port *port)
{
	if (port->vlan == CFG_VLAN_KEEP)
		return json_string("keep");
	return port->vlan == CFG_VLAN_NONE ? json_string("none") : json_integer(port->vlan);
}

/* A port as one value. */
static json_t *
make_port(const struct cfg_port *port)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:b, s:o}", CTL_KEY_NAME,
		ctl_params_any_text(port->name), CTL_KEY_DEVICE,
		ctl_params_any_text(port->device), "addresses", make_addresses(port), "routes",
		make_routes(port), "next_hop",
		make_mac_or_null(port->has_next_hop, &port->next_hop), CTL_KEY_MTU,
		(int)port->mtu, "answer_arp", (int)port->answer_arp, "vlan", make_vlan(port));
}

static json_t *
make_ports(const struct cfg_dataplane *plane)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < plane->n_ports; i++)
		failed |= json_array_append_new(list, make_port(&plane->ports[i]));
	return ctl_params_finish(list, failed);
}

/* Named as among what takes a restart. Takes from and to. */
static int
add_port_change(json_t *list, const struct cfg_port *port, const char *key, json_t *from,
	json_t *to)
{
	char *whole;
	int failed;

	if (asprintf(&whole, "dataplane.ports.%s.%s", port->name, key) < 0) {
		json_decref(from);
		json_decref(to);
		return -1;
	}
	failed = add_change(list, whole, from, to);
	free(whole);
	return failed;
}

static int
add_port(json_t *list, const struct cfg_port *now, const struct cfg_port *next)
{
	int failed = 0;

	failed |= add_port_change(list, now, CTL_KEY_DEVICE, ctl_params_any_text(now->device),
		ctl_params_any_text(next->device));
	failed |= add_port_change(list, now, "addresses", make_addresses(now),
		make_addresses(next));
	failed |= add_port_change(list, now, "next_hop",
		make_mac_or_null(now->has_next_hop, &now->next_hop),
		make_mac_or_null(next->has_next_hop, &next->next_hop));
	failed |= add_port_change(list, now, CTL_KEY_MTU, json_integer(now->mtu),
		json_integer(next->mtu));
	failed |= add_port_change(list, now, "answer_arp", json_boolean(now->answer_arp),
		json_boolean(next->answer_arp));
	failed |= add_port_change(list, now, "vlan", make_vlan(now), make_vlan(next));
	return failed;
}

/* Key by key, unless there are others than there were. */
static int
add_ports(json_t *list, const struct cfg_dataplane *now, const struct cfg_dataplane *next)
{
	int failed = 0;

	if (!ctl_fixed_has_same_ports(now, next))
		return add_change(list, "dataplane.ports", make_ports(now), make_ports(next));
	for (size_t i = 0; i < now->n_ports; i++)
		failed |= add_port(list, &now->ports[i], &next->ports[i]);
	return failed;
}

static int
add_dataplane(json_t *list, const struct cfg_dataplane *now, const struct cfg_dataplane *next)
{
	int failed = 0;

	failed |= add_change(list, "dataplane.workers", json_integer(now->workers),
		json_integer(next->workers));
	failed |=
		add_change(list, "dataplane.kernel", json_string(cfg_kernel_words[now->kernel]),
			json_string(cfg_kernel_words[next->kernel]));
	failed |= add_change(list, "dataplane.idle", json_string(cfg_idle_words[now->idle]),
		json_string(cfg_idle_words[next->idle]));
	failed |= add_change(list, "dataplane.idle_sleep",
		ctl_params_duration(now->idle_sleep_ns),
		ctl_params_duration(next->idle_sleep_ns));
	failed |= add_change(list, "dataplane.flow_entries", json_integer(now->flow_entries),
		json_integer(next->flow_entries));
	failed |= add_change(list, "dataplane.flow_addresses",
		json_boolean(now->flow_addresses), json_boolean(next->flow_addresses));
	failed |= add_change(list, "dataplane.flow_timeout.tcp_syn",
		ctl_params_duration(now->tcp_syn_ns), ctl_params_duration(next->tcp_syn_ns));
	failed |= add_change(list, "dataplane.flow_timeout.tcp",
		ctl_params_duration(now->tcp_ns), ctl_params_duration(next->tcp_ns));
	failed |= add_change(list, "dataplane.flow_timeout.tcp_closing",
		ctl_params_duration(now->tcp_closing_ns),
		ctl_params_duration(next->tcp_closing_ns));
	failed |= add_change(list, "dataplane.flow_timeout.udp",
		ctl_params_duration(now->udp_ns), ctl_params_duration(next->udp_ns));
	failed |= add_change(list, "dataplane.fragments.datagrams",
		json_integer(now->fragment_datagrams), json_integer(next->fragment_datagrams));
	failed |= add_change(list, "dataplane.fragments.waiting",
		json_integer(now->fragment_waiting), json_integer(next->fragment_waiting));
	failed |= add_change(list, "dataplane.handoff", json_integer(now->handoff),
		json_integer(next->handoff));
	failed |= add_change(list, "dataplane.replies.total", json_integer(now->replies_total),
		json_integer(next->replies_total));
	failed |= add_change(list, "dataplane.replies.source",
		json_integer(now->replies_source), json_integer(next->replies_source));
	failed |= add_change(list, "dataplane.answer_arp", json_boolean(now->answer_arp),
		json_boolean(next->answer_arp));
	failed |= add_ports(list, now, next);
	return failed;
}

/* In decimal: a seed may be above what JSON's readers take for a number. */
static json_t *
make_seed(uint64_t seed)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, seed);
	return json_string(text);
}

static int
add_announce(json_t *list, const struct cfg_announce *now, const struct cfg_announce *next)
{
	int failed = 0;

	failed |= add_change(list, "announce.interface", make_text_or_null(now->interface),
		make_text_or_null(next->interface));
	failed |= add_change(list, "announce.table", json_integer(now->table),
		json_integer(next->table));
	failed |= add_change(list, "announce.metric", json_integer(now->metric),
		json_integer(next->metric));
	failed |= add_change(list, "announce.withdraw_before_stop",
		ctl_params_duration(now->withdraw_before_stop_ns),
		ctl_params_duration(next->withdraw_before_stop_ns));
	return failed;
}

static json_t *
make_settings(const struct cfg_model *now, const struct cfg_model *next)
{
	json_t *list = json_array();
	int failed = add_dataplane(list, &now->dataplane, &next->dataplane);

	failed |= add_change(list, "control.socket", make_text_or_null(now->control_socket),
		make_text_or_null(next->control_socket));
	failed |= add_change(list, "control.metrics", make_text_or_null(now->control_metrics),
		make_text_or_null(next->control_metrics));
	failed |= add_announce(list, &now->announce, &next->announce);
	failed |= add_change(list, "hash_seed", make_seed(now->hash_seed),
		make_seed(next->hash_seed));
	return ctl_params_finish(list, failed);
}

static json_t *
make_address(const struct lb_addr *address)
{
	char text[LB_ADDR_TEXT_BYTES];

	return json_string(lb_addr_format(address, text));
}

/* now or next is NULL: it is added, or removed. */
static json_t *
make_changed(const char *name, const void *now, const void *next, json_t *changes)
{
	const char *change = CTL_CHANGE_CHANGE;

	if (now == NULL)
		change = CTL_CHANGE_ADD;
	else if (next == NULL)
		change = CTL_CHANGE_REMOVE;
	return json_pack("{s:s, s:s, s:o}", CTL_KEY_NAME, name, CTL_KEY_CHANGE, change,
		CTL_KEY_CHANGES, changes);
}

/* One backend, if it differs. */
static int
append_backend(json_t *list, const char *name, const struct cfg_backend *now,
	const struct cfg_backend *next)
{
	json_t *changes = json_array();
	int failed = 0;

	if (now != NULL && next != NULL) {
		failed |= add_change(changes, CTL_KEY_ADDRESS, make_address(&now->address),
			make_address(&next->address));
		failed |= add_change(changes, CTL_KEY_WEIGHT, json_integer(now->weight),
			json_integer(next->weight));
		failed |= add_change(changes, CTL_KEY_STATE,
			json_string(cfg_state_words[now->state]),
			json_string(cfg_state_words[next->state]));
		failed |= add_change(changes, CTL_KEY_MAC,
			make_mac_or_null(now->has_mac, &now->mac),
			make_mac_or_null(next->has_mac, &next->mac));
		failed |= add_change(changes, CTL_KEY_ZONE, make_text_or_null(now->zone),
			make_text_or_null(next->zone));
		failed |= add_change(changes, CTL_KEY_QUIC_ID, ctl_params_quic_ids(now),
			ctl_params_quic_ids(next));
		if (failed == 0 && json_array_size(changes) == 0) {
			json_decref(changes);
			return 0;
		}
	}
	changes = ctl_params_finish(changes, failed);
	if (changes == NULL)
		return -1;
	return json_array_append_new(list, make_changed(name, now, next, changes));
}

/* The backends that differ: in the order of next, and then those that are gone. */
static json_t *
make_backends(const struct cfg_service *now, const struct cfg_service *next)
{
	struct ctl_index of_now = {.items = NULL};
	struct ctl_index of_next = {.items = NULL};
	json_t *list = json_array();
	int failed = ctl_index_backends(now, &of_now) != 0 ||
		     ctl_index_backends(next, &of_next) != 0;

	for (size_t i = 0; i < next->n_backends && failed == 0; i++) {
		const struct cfg_backend *backend = &next->backends[i];
		const size_t place = ctl_index_find(&of_now, backend->name);

		failed |= append_backend(list, backend->name,
			place == CTL_INDEX_NONE ? NULL : &now->backends[place], backend);
	}
	for (size_t i = 0; i < now->n_backends && failed == 0; i++) {
		const struct cfg_backend *backend = &now->backends[i];

		if (ctl_index_find(&of_next, backend->name) == CTL_INDEX_NONE)
			failed |= append_backend(list, backend->name, backend, NULL);
	}
	ctl_index_fini(&of_now);
	ctl_index_fini(&of_next);
	return ctl_params_finish(list, failed);
}

static json_t *
make_prefix(const struct lb_prefix *prefix)
{
	char text[LB_PREFIX_TEXT_BYTES];

	return json_string(lb_prefix_format(prefix, text));
}

static json_t *
make_word_or_number(uint32_t number, const char *zero)
{
	return number == 0 ? json_string(zero) : json_integer(number);
}

/* 0 is as 1. */
static json_t *
make_minimum(const struct cfg_service *service)
{
	return json_integer(service->min_healthy > 1 ? service->min_healthy : 1);
}

static int
add_health(json_t *list, const struct cfg_service *now, const struct cfg_service *next)
{
	int failed = 0;

	failed |= add_change(list, CTL_KEY_HEALTH, ctl_params_health(now),
		ctl_params_health(next));
	failed |= add_change(list, CTL_KEY_SLOW_START, ctl_params_duration(now->slow_start_ns),
		ctl_params_duration(next->slow_start_ns));
	failed |= add_change(list, CTL_KEY_MIN_HEALTHY, make_minimum(now), make_minimum(next));
	failed |= add_change(list, CTL_KEY_WHEN_ALL_DOWN,
		json_string(cfg_all_down_words[now->when_all_down]),
		json_string(cfg_all_down_words[next->when_all_down]));
	return failed;
}

static json_t *
make_service_changes(const struct cfg_service *now, const struct cfg_service *next)
{
	json_t *list = json_array();
	int failed = 0;

	failed |= add_change(list, CTL_KEY_ADDRESS, make_prefix(&now->address),
		make_prefix(&next->address));
	failed |= add_change(list, CTL_KEY_PROTOCOL,
		json_string(cfg_protocol_words[now->protocol]),
		json_string(cfg_protocol_words[next->protocol]));
	failed |= add_change(list, CTL_KEY_PORT, make_word_or_number(now->port, "any"),
		make_word_or_number(next->port, "any"));
	failed |= add_change(list, CTL_KEY_TABLE "." CTL_KEY_ALGORITHM,
		json_string(cfg_algorithm_words[now->algorithm]),
		json_string(cfg_algorithm_words[next->algorithm]));
	failed |= add_change(list, CTL_KEY_TABLE "." CTL_KEY_SIZE, json_integer(now->n_slots),
		json_integer(next->n_slots));
	failed |= add_change(list, CTL_KEY_TABLE "." CTL_KEY_OVERLOAD, make_overload(now),
		make_overload(next));
	failed |= add_change(list, CTL_KEY_AFFINITY,
		json_string(cfg_affinity_words[now->affinity]),
		json_string(cfg_affinity_words[next->affinity]));
	failed |=
		add_change(list, CTL_KEY_FORWARD, json_string(cfg_forward_words[now->forward]),
			json_string(cfg_forward_words[next->forward]));
	failed |= add_change(list, CTL_KEY_TUNNEL_PORT,
		make_word_or_number(now->tunnel_port, "default"),
		make_word_or_number(next->tunnel_port, "default"));
	failed |=
		add_change(list, CTL_KEY_VNI, json_integer(now->vni), json_integer(next->vni));
	failed |=
		add_change(list, CTL_KEY_CARRY, ctl_params_carry(now), ctl_params_carry(next));
	failed |= add_change(list, CTL_KEY_ECHO, json_string(cfg_echo_words[now->echo]),
		json_string(cfg_echo_words[next->echo]));
	failed |= add_change(list, CTL_KEY_FRAGMENT,
		json_string(cfg_fragment_words[now->fragment]),
		json_string(cfg_fragment_words[next->fragment]));
	failed |= add_change(list, CTL_KEY_MSS_CLAMP, ctl_params_mss_clamp(now),
		ctl_params_mss_clamp(next));
	failed |= add_health(list, now, next);
	failed |= add_change(list, CTL_KEY_QUIC, ctl_params_quic(now, NULL),
		ctl_params_quic(next, now));
	return ctl_params_finish(list, failed);
}

/* What is in force, what would be, and what the workers say of the former's flows. */
struct plan {
	const struct ctl_view *view;
	const struct cfg_model *next;
	const uint32_t *counts;  /* live flows by backend id; NULL: the workers do not say */
	const atomic_bool *stop; /* asked between services */
	uint64_t n_flows;        /* of them: what moves, of all services seen so far */
	bool is_vague; /* a service goes elsewhere: who finds its flows, nobody knows */
};

/* Slots that a change moves: a number, or null where there is no telling. NULL: no memory. */
static json_t *
make_moved(const struct plan *plan, const struct cfg_service *now,
	const struct cfg_service *next)
{
	const struct cfg_model *model = &plan->view->model;
	uint32_t n_moved;

	if (now == NULL)
		return json_integer(0);
	if (next == NULL)
		return json_integer(now->n_slots);
	if (model->hash_seed != plan->next->hash_seed ||
		ctl_apply_affinity(now) != ctl_apply_affinity(next))
		return json_null();
	if (ctl_picking_count_moved(now, &plan->view->services[now - model->services], next,
		    plan->next->hash_seed, &n_moved) != 0)
		return NULL;
	return json_integer(n_moved);
}

/*
 * Live flows that a change moves: those of backends that are live and would not be. All others
 * stay where they are, whatever becomes of the table.
 */
static int
count_flows(const struct plan *plan, const struct cfg_service *now,
	const struct cfg_service *next, uint64_t *out)
{
	static const struct cfg_service nothing;
	const struct ctl_view_service *view;
	struct ctl_index index;

	*out = 0;
	if (now == NULL)
		return 0;
	view = &plan->view->services[now - plan->view->model.services];
	next = next != NULL ? next : &nothing;
	if (ctl_index_backends(next, &index) != 0)
		return -1;
	for (size_t i = 0; i < now->n_backends; i++) {
		const size_t place = ctl_index_find(&index, now->backends[i].name);
		const bool stays =
			place != CTL_INDEX_NONE && next->backends[place].state != CFG_DOWN;

		if (!stays && now->backends[i].state != CFG_DOWN)
			*out += plan->counts[view->ids[i]];
	}
	ctl_index_fini(&index);
	return 0;
}

static bool
is_same_match(const struct cfg_service *a, const struct cfg_service *b)
{
	return lb_prefix_equal(&a->address, &b->address) && a->protocol == b->protocol &&
	       a->port == b->port;
}

/*
 * The flows that a change moves, and to the sum. Null where the service is to be found by
 * another address, protocol or port: which of its flows some service still covers then is not
 * counted. NULL: no memory.
 */
static json_t *
make_flows(struct plan *plan, const struct cfg_service *now, const struct cfg_service *next)
{
	uint64_t n_flows;

	if (plan->counts == NULL)
		return json_null();
	if (now != NULL && next != NULL && !is_same_match(now, next)) {
		plan->is_vague = true;
		return json_null();
	}
	if (count_flows(plan, now, next, &n_flows) != 0)
		return NULL;
	plan->n_flows += n_flows;
	return ctl_params_number(n_flows);
}

/* One service, if it differs; now or next is NULL where it is added or removed. */
static int
append_service(json_t *list, struct plan *plan, const struct cfg_service *now,
	const struct cfg_service *next)
{
	static const struct cfg_service nothing;
	const struct cfg_service *named = next != NULL ? next : now;
	const bool is_both = now != NULL && next != NULL;
	json_t *changes = is_both ? make_service_changes(now, next) : json_array();
	json_t *backends =
		make_backends(now != NULL ? now : &nothing, next != NULL ? next : &nothing);
	json_t *object;
	int failed = 0;

	if (changes != NULL && backends != NULL && is_both && json_array_size(changes) == 0 &&
		json_array_size(backends) == 0 &&
		plan->view->model.hash_seed == plan->next->hash_seed) {
		json_decref(changes);
		json_decref(backends);
		return 0;
	}
	object = make_changed(named->name, now, next, changes);
	failed |= json_object_set_new(object, CTL_KEY_BACKENDS, backends);
	failed |= json_object_set_new(object, CTL_KEY_SLOTS, json_integer(named->n_slots));
	failed |= json_object_set_new(object, CTL_KEY_SLOTS_MOVED, make_moved(plan, now, next));
	failed |= json_object_set_new(object, CTL_KEY_FLOWS, make_flows(plan, now, next));
	return json_array_append_new(list, ctl_params_finish(object, failed));
}

/* A plan of many tables takes long. */
static bool
is_stopped(const struct plan *plan)
{
	return atomic_load_explicit(plan->stop, memory_order_relaxed);
}

static json_t *
make_services(struct plan *plan)
{
	const struct cfg_model *now = &plan->view->model;
	const struct cfg_model *next = plan->next;
	struct ctl_index of_now = {.items = NULL};
	struct ctl_index of_next = {.items = NULL};
	json_t *list = json_array();
	int failed = ctl_index_services(now, &of_now) != 0 ||
		     ctl_index_services(next, &of_next) != 0;

	for (size_t i = 0; i < next->n_services && failed == 0; i++) {
		const struct cfg_service *service = &next->services[i];
		const size_t place = ctl_index_find(&of_now, service->name);

		failed |= is_stopped(plan) ||
			  append_service(list, plan,
				  place == CTL_INDEX_NONE ? NULL : &now->services[place],
				  service) != 0;
	}
	for (size_t i = 0; i < now->n_services && failed == 0; i++) {
		const struct cfg_service *service = &now->services[i];

		if (ctl_index_find(&of_next, service->name) == CTL_INDEX_NONE)
			failed |= is_stopped(plan) ||
				  append_service(list, plan, service, NULL) != 0;
	}
	ctl_index_fini(&of_now);
	ctl_index_fini(&of_next);
	return ctl_params_finish(list, failed);
}

json_t *
ctl_plan_make(const struct ctl_view *view, const struct cfg_model *next, const uint32_t *counts,
	const atomic_bool *stop)
{
	struct plan plan = {.view = view, .next = next, .counts = counts, .stop = stop};
	/* In this order: the flows are summed up on the way. */
	json_t *settings = make_settings(&view->model, next);
	json_t *services = make_services(&plan);

	return json_pack("{s:i, s:o, s:o, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
		CTL_KEY_GENERATION, ctl_params_number(view->generation), CTL_KEY_SETTINGS,
		settings, CTL_KEY_SERVICES, services, CTL_KEY_FLOWS,
		counts != NULL && !plan.is_vague ? ctl_params_number(plan.n_flows)
						 : json_null());
}
