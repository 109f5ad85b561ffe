/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "ctl_fixed.h"
#include "expect.h"

#define PORT(rest)  "{name: wan, device: net_null0, addresses: [192.0.2.1/24]" rest "}"
#define PLANE(rest) "dataplane: {ports: [" PORT("") "]" rest "}\n"

static const struct {
	const char *what;
	const char *old;
	const char *next;
	const char *obstacle; /* NULL: none */
} rows[] = {
	{"the same", PLANE(""), PLANE(""), NULL},
	{"nothing at all", "{}", "{}", NULL},
	{"services and the seed", PLANE(""),
		PLANE("") "hash_seed: 7\nservices: [{name: s, address: 198.51.100.1, protocol: "
			  "tcp, "
			  "port: 80}]\n",
		NULL},
	{"answer_arp of all ports", PLANE(""), PLANE(", answer_arp: true"), NULL},
	{"workers", PLANE(""), PLANE(", workers: 2"), "dataplane.workers"},
	{"kernel", PLANE(""), PLANE(", kernel: none"), "dataplane.kernel"},
	{"idle", PLANE(""), PLANE(", idle: adaptive"), "dataplane.idle"},
	{"idle_sleep", PLANE(""), PLANE(", idle_sleep: 1ms"), "dataplane.idle_sleep"},
	{"flow entries", PLANE(""), PLANE(", flow_entries: 7"), "dataplane.flow_entries"},
	{"addresses of flows", PLANE(""), PLANE(", flow_addresses: true"),
		"dataplane.flow_addresses"},
	{"each timeout", PLANE(""),
		PLANE(", flow_timeout: {tcp_syn: 1s, tcp: 2s, tcp_closing: 3s, udp: 4s}"),
		"dataplane.flow_timeout.tcp_syn, dataplane.flow_timeout.tcp, "
		"dataplane.flow_timeout.tcp_closing, dataplane.flow_timeout.udp"},
	{"bounds of fragments", PLANE(""), PLANE(", fragments: {datagrams: 64, waiting: 17}"),
		"dataplane.fragments.datagrams, dataplane.fragments.waiting"},
	{"handoff", PLANE(""), PLANE(", handoff: 64"), "dataplane.handoff"},
	{"replies", PLANE(""), PLANE(", replies: {total: 7, source: 8}"),
		"dataplane.replies.total, dataplane.replies.source"},
	{"a port more", PLANE(""),
		"dataplane: {ports: [" PORT("") ", {name: lan, device: net_null1}]}\n",
		"dataplane.ports"},
	{"a port less", PLANE(""), "dataplane: {ports: []}\n", "dataplane.ports"},
	{"another name", PLANE(""),
		"dataplane: {ports: [{name: lan, device: net_null0, addresses: "
		"[192.0.2.1/24]}]}\n",
		"dataplane.ports"},
	{"another device", PLANE(""),
		"dataplane: {ports: [{name: wan, device: net_null1, addresses: "
		"[192.0.2.1/24]}]}\n",
		"dataplane.ports.wan.device"},
	{"an MTU", PLANE(""), "dataplane: {ports: [" PORT(", mtu: 1400") "]}\n",
		"dataplane.ports.wan.mtu"},
	{"a next hop and a tag", PLANE(""),
		"dataplane: {ports: [" PORT(", vlan: 7, next_hop: 02:00:00:00:00:01") "]}\n",
		NULL},
	{"an address of a port with a twin", PLANE(""),
		"dataplane: {ports: [{name: wan, device: net_null0, addresses: "
		"[192.0.2.2/24]}]}\n",
		"dataplane.ports.wan.addresses"},
	{"a prefix of one", PLANE(""),
		"dataplane: {ports: [{name: wan, device: net_null0, addresses: "
		"[192.0.2.1/25]}]}\n",
		"dataplane.ports.wan.addresses"},
	{"a route more", PLANE(""),
		"dataplane: {ports: [" PORT(
			", routes: [{to: 0.0.0.0/0, via: 192.0.2.2}]") "]}\n",
		"dataplane.ports.wan.routes"},
	{"a route by another gateway",
		"dataplane: {ports: [" PORT(
			", routes: [{to: 0.0.0.0/0, via: 192.0.2.2}]") "]}\n",
		"dataplane: {ports: [" PORT(
			", routes: [{to: 0.0.0.0/0, via: 192.0.2.3}]") "]}\n",
		"dataplane.ports.wan.routes"},
	{"an address of one without, as there is no kernel",
		"dataplane: {kernel: none, ports: [{name: wan, device: net_null0}]}\n",
		"dataplane: {kernel: none, ports: [" PORT("") "]}\n", NULL},
	{"an address of one without, as packet sockets have none",
		"dataplane: {ports: [{name: wan, device: \"net_af_packet,iface=a\"}]}\n",
		"dataplane: {ports: [{name: wan, device: \"net_af_packet,iface=a\", addresses: "
		"[192.0.2.1/24]}]}\n",
		NULL},
	{"the socket and the metrics", "control: {socket: /a, metrics: off}\n",
		"control: {socket: /b}\n", "control.socket, control.metrics"},
	{"what is announced, and where", "announce: {interface: a, table: 1, metric: 1}\n",
		"announce: {interface: off, table: 2, metric: 2}\n",
		"announce.interface, announce.table, announce.metric"},
	{"but not the time before a stop",
		"announce: {interface: a, withdraw_before_stop: 1s}\n",
		"announce: {interface: a, withdraw_before_stop: 2s}\n", NULL},
};

static void
read_model(const char *text, struct cfg_model *out)
{
	EXPECT(cfg_read_text_model("f", text, strlen(text), stderr, out) == 0, "%s", text);
}

static void
test_what_takes_a_restart_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const char *keys = rows[i].obstacle;
		struct cfg_model old;
		struct cfg_model next;
		char *want = NULL;
		char *got;
		json_t *list;

		read_model(rows[i].old, &old);
		read_model(rows[i].next, &next);
		if (keys != NULL)
			assert_true(
				asprintf(&want,
					"%s: fixed at the start; restart shuntd to change %s",
					keys, strchr(keys, ',') != NULL ? "them" : "it") > 0);
		got = ctl_fixed_obstacle(&old, &next);
		EXPECT((got == NULL) == (want == NULL) &&
				(got == NULL || strcmp(got, want) == 0),
			"%s: got %s", rows[i].what, got != NULL ? got : "none");
		list = ctl_fixed_find(&old, &next);
		EXPECT((json_array_size(list) == 0) == (want == NULL), "%s", rows[i].what);
		json_decref(list);
		free(want);
		free(got);
		cfg_model_fini(&old);
		cfg_model_fini(&next);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_takes_a_restart_is_named),
	};

	return cmocka_run_group_tests_name("ctl_fixed", tests, NULL, NULL);
}
