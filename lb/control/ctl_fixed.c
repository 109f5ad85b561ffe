/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_fixed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_params.h"
#include "lb_device.h"

struct findings {
	json_t *keys;
	int failed; /* no memory */
};

static void
check(struct findings *found, bool is_same, const char *key)
{
	if (!is_same)
		found->failed |= json_array_append_new(found->keys, json_string(key));
}

static void
check_port_key(struct findings *found, bool is_same, const struct cfg_port *port,
	const char *key)
{
	char *text = NULL;

	if (is_same)
		return;
	if (asprintf(&text, "dataplane.ports.%s.%s", port->name, key) < 0) {
		found->failed = -1;
		return;
	}
	found->failed |= json_array_append_new(found->keys, ctl_params_any_text(text));
	free(text);
}

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool
ctl_fixed_has_same_ports(const struct cfg_dataplane *a, const struct cfg_dataplane *b)
{
	if (a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->n_ports; i++)
		if (!is_same_text(a->ports[i].name, b->ports[i].name))
			return false;
	return true;
}

static bool
has_same_addresses(const struct cfg_port *a, const struct cfg_port *b)
{
	if (a->n_addresses != b->n_addresses)
		return false;
	for (size_t i = 0; i < a->n_addresses; i++)
		if (!lb_prefix_equal(&a->addresses[i], &b->addresses[i]))
			return false;
	return true;
}

static bool
has_twin(const struct cfg_dataplane *plane, const struct cfg_port *port)
{
	return plane->kernel == CFG_KERNEL_TAP && !lb_device_is_packet_socket(port->device);
}

/* What a device was given, and a twin. */
static void
check_port(struct findings *found, const struct cfg_dataplane *plane,
	const struct cfg_port *old, const struct cfg_port *next)
{
	check_port_key(found, is_same_text(old->device, next->device), old, "device");
	check_port_key(found, !has_twin(plane, old) || has_same_addresses(old, next), old,
		"addresses");
	check_port_key(found, !has_twin(plane, old) || cfg_has_same_routes(old, next), old,
		"routes");
	check_port_key(found, old->mtu == next->mtu, old, "mtu");
}

/* What workers have room for. */
static void
check_bounds(struct findings *found, const struct cfg_dataplane *old,
	const struct cfg_dataplane *next)
{
	check(found, old->flow_entries == next->flow_entries, "dataplane.flow_entries");
	check(found, old->flow_addresses == next->flow_addresses, "dataplane.flow_addresses");
	check(found, old->tcp_syn_ns == next->tcp_syn_ns, "dataplane.flow_timeout.tcp_syn");
	check(found, old->tcp_ns == next->tcp_ns, "dataplane.flow_timeout.tcp");
	check(found, old->tcp_closing_ns == next->tcp_closing_ns,
		"dataplane.flow_timeout.tcp_closing");
	check(found, old->udp_ns == next->udp_ns, "dataplane.flow_timeout.udp");
	check(found, old->fragment_datagrams == next->fragment_datagrams,
		"dataplane.fragments.datagrams");
	check(found, old->fragment_waiting == next->fragment_waiting,
		"dataplane.fragments.waiting");
	check(found, old->handoff == next->handoff, "dataplane.handoff");
	check(found, old->replies_total == next->replies_total, "dataplane.replies.total");
	check(found, old->replies_source == next->replies_source, "dataplane.replies.source");
}

json_t *
ctl_fixed_find(const struct cfg_model *old, const struct cfg_model *next)
{
	const struct cfg_dataplane *a = &old->dataplane;
	const struct cfg_dataplane *b = &next->dataplane;
	const bool are_same_ports = ctl_fixed_has_same_ports(a, b);
	struct findings found = {.keys = json_array()};

	check(&found, a->workers == b->workers, "dataplane.workers");
	check(&found, a->kernel == b->kernel, "dataplane.kernel");
	check(&found, a->idle == b->idle, "dataplane.idle");
	check(&found, a->idle_sleep_ns == b->idle_sleep_ns, "dataplane.idle_sleep");
	check_bounds(&found, a, b);
	check(&found, are_same_ports, "dataplane.ports");
	for (size_t i = 0; i < a->n_ports && are_same_ports; i++)
		check_port(&found, a, &a->ports[i], &b->ports[i]);
	check(&found, is_same_text(old->control_socket, next->control_socket),
		"control.socket");
	check(&found, is_same_text(old->control_metrics, next->control_metrics),
		"control.metrics");
	check(&found, is_same_text(old->announce.interface, next->announce.interface),
		"announce.interface");
	check(&found, old->announce.table == next->announce.table, "announce.table");
	check(&found, old->announce.metric == next->announce.metric, "announce.metric");
	return ctl_params_finish(found.keys, found.failed);
}

/* NULL: no memory. */
static char *
write_obstacle(const json_t *keys)
{
	const size_t n = json_array_size(keys);
	char *text = NULL;
	size_t n_text = 0;
	FILE *stream = open_memstream(&text, &n_text);

	if (stream == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		(void)fprintf(stream, "%s%s", i > 0 ? ", " : "",
			json_string_value(json_array_get(keys, i)));
	(void)fprintf(stream, ": fixed at the start; restart shuntd to change %s",
		n == 1 ? "it" : "them");
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}

char *
ctl_fixed_obstacle(const struct cfg_model *old, const struct cfg_model *next)
{
	json_t *keys = ctl_fixed_find(old, next);
	char *text = NULL;

	if (keys != NULL && json_array_size(keys) == 0) {
		json_decref(keys);
		return NULL;
	}
	if (keys != NULL)
		text = write_obstacle(keys);
	json_decref(keys);
	return text != NULL ? text : strdup("there is not enough memory");
}
