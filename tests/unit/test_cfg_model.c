/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"

/* One difference a row, each made by replacing the text `from`. */
static const char base[] =
	"dataplane:\n"
	"  workers: 2\n  kernel: tap\n  idle: poll\n  idle_sleep: 90us\n  flow_entries: 100\n"
	"  flow_addresses: false\n"
	"  flow_timeout: {tcp_syn: 11s, tcp: 12s, tcp_closing: 13s, udp: 14s}\n"
	"  ports:\n"
	"  - {name: p, device: d, addresses: [192.0.2.1/24], next_hop: 02:00:00:00:00:aa,\n"
	"     mtu: 1400, answer_arp: true, vlan: 7}\n"
	"  answer_arp: false\n"
	"  fragments: {datagrams: 100, waiting: 200}\n"
	"  handoff: 128\n"
	"  replies: {total: 300, source: 30}\n"
	"control: {socket: /run/s, metrics: '127.0.0.1:1'}\n"
	"announce: {interface: vips, table: 33, metric: 44, withdraw_before_stop: 55s}\n"
	"services:\n"
	"- {name: w, address: 198.51.100.0/28, protocol: any, port: any,\n"
	"   table: {algorithm: ring, size: 101}, affinity: source-ip, forward: vxlan,\n"
	"   tunnel_port: 5, vni: 6, carry: [gre], echo: forward, fragment: outer,\n"
	"   mss_clamp: 1234, backends: [\n"
	"   {name: a, address: 10.0.0.1, weight: 7, state: drain, mac: 02:00:00:00:00:bb,\n"
	"   zone: r1}]}\n"
	"- {name: v, address: 198.51.100.99, protocol: udp, port: 1,\n"
	"   table: {algorithm: stable, overload: 3%}, affinity: quic, quic: [\n"
	"   {config_id: 2, server_id_length: 2, nonce_length: 4,\n"
	"   cid_key: 00112233445566778899aabbccddeeff,\n"
	"   first_octet_encodes_cid_length: true},\n"
	"   {config_id: 3, server_id_length: 2, nonce_length: 5}], backends: [\n"
	"   {name: a, address: 10.0.0.1, quic_id: [0a0b, 0a0c]}]}\n"
	"hash_seed: 9\n";

static const struct {
	const char *what;
	const char *from;
	const char *to;
	bool is_equal;
} changes[] = {
	{"a comment", "  workers", "# a comment\n  workers", true},
	{"a number in quotes", "hash_seed: 9", "hash_seed: '9'", true},
	{"another unit", "12s", "12000ms", true},
	{"workers", "workers: 2", "workers: 3", false},
	{"kernel", "kernel: tap", "kernel: none", false},
	{"idle", "idle: poll", "idle: adaptive", false},
	{"idle_sleep", "90us", "91us", false},
	{"flow_entries", "flow_entries: 100", "flow_entries: 101", false},
	{"flow_addresses", "flow_addresses: false", "flow_addresses: true", false},
	{"tcp_syn", "11s", "1s", false},
	{"tcp", "12s", "1s", false},
	{"tcp_closing", "13s", "1s", false},
	{"udp", "14s", "1s", false},
	{"a port's name", "name: p", "name: q", false},
	{"a device", "device: d", "device: e", false},
	{"a port's address", "192.0.2.1/24", "192.0.2.2/24", false},
	{"no routes", "vlan: 7", "vlan: 7, routes: []", true},
	{"a route", "vlan: 7", "vlan: 7, routes: [{to: 0.0.0.0/0, via: 192.0.2.9}]", false},
	{"a port's network", "192.0.2.1/24", "192.0.2.1/25", false},
	{"one more address", "192.0.2.1/24", "192.0.2.1/24, 192.0.2.9/24", false},
	{"a next hop", "00:aa", "00:ab", false},
	{"no next hop", ", next_hop: 02:00:00:00:00:aa", "", false},
	{"an mtu", "mtu: 1400", "mtu: 1401", false},
	{"whether a port answers ARP", "answer_arp: true", "answer_arp: false", false},
	{"a port that leaves it open", "1400, answer_arp: true", "1400", false},
	{"whether other ports do", "  answer_arp: false", "  answer_arp: true", false},
	{"what is so anyway", "  answer_arp: false\n", "", true},
	{"the socket", "/run/s", "/run/t", false},
	{"metrics", "127.0.0.1:1'", "127.0.0.1:2'", false},
	{"metrics off", "'127.0.0.1:1'", "off", false},
	{"where it is announced", "interface: vips", "interface: vip", false},
	{"nothing announced", "interface: vips", "interface: off", false},
	{"the table of what is announced", "table: 33", "table: 34", false},
	{"the metric", "metric: 44", "metric: 43", false},
	{"the time before a stop", "before_stop: 55s", "before_stop: 56s", false},
	{"the same in another unit", "before_stop: 55s", "before_stop: 55000ms", true},
	{"a service's name", "name: w", "name: x", false},
	{"a service's address", "198.51.100.0/28", "198.51.100.16/28", false},
	{"a service's prefix", "198.51.100.0/28", "198.51.100.0/29", false},
	{"a service's port", "port: any", "port: 1", false},
	{"the algorithm", "ring", "maglev", false},
	{"the size", "size: 101", "size: 103", false},
	{"affinity", "source-ip", "source-ip-port", false},
	{"the tunnel port", "tunnel_port: 5", "tunnel_port: 4", false},
	{"the vni", "vni: 6", "vni: 5", false},
	{"carry", "[gre]", "[gre, 4]", false},
	{"echo", "echo: forward", "echo: drop", false},
	{"echo as it is anyway", "echo: forward, ", "", false},
	{"fragment", "fragment: outer", "fragment: drop", false},
	{"an MSS", "mss_clamp: 1234", "mss_clamp: 1235", false},
	{"an MSS of its own", "mss_clamp: 1234", "mss_clamp: auto", false},
	{"no MSS", "   mss_clamp: 1234, ", "   ", false},
	{"a VLAN", "vlan: 7", "vlan: 8", false},
	{"no VLAN", "vlan: 7", "vlan: none", false},
	{"any VLAN", ", vlan: 7", "", false},
	{"datagrams", "datagrams: 100", "datagrams: 101", false},
	{"waiting", "waiting: 200", "waiting: 201", false},
	{"handoff", "handoff: 128", "handoff: 256", false},
	{"replies", "total: 300", "total: 301", false},
	{"replies to a source", "source: 30}", "source: 31}", false},
	{"an overload", "overload: 3%", "overload: 3.1%", false},
	{"an overload with a decimal", "overload: 3%", "overload: 3.0%", true},
	{"the default overload", ", overload: 3%", "", false},
	{"a config id", "config_id: 2", "config_id: 1", false},
	{"a nonce's length", "server_id_length: 2, nonce_length: 5",
		"server_id_length: 2, nonce_length: 6", false},
	{"a key", "ddeeff", "ddeef0", false},
	{"a key in capitals", "ddeeff", "DDEEFF", true},
	{"no key", "   cid_key: 00112233445566778899aabbccddeeff,\n", "", false},
	{"whether the length is in it", "length: true", "length: false", false},
	{"one configuration less", ",\n   {config_id: 3, server_id_length: 2, nonce_length: 5}",
		"", false},
	{"a server id", "0a0c", "0a0d", false},
	{"a server id in quotes", "0a0c", "'0A0C'", true},
	{"a server id less", ", 0a0c", "", false},
	{"server ids in another order", "0a0b, 0a0c", "0a0c, 0a0b", false},
	{"a backend's name", "name: a", "name: b", false},
	{"a backend's address", "10.0.0.1", "10.0.0.2", false},
	{"a backend's weight", "weight: 7", "weight: 8", false},
	{"a backend's state", "drain", "down", false},
	{"a backend's MAC address", "00:bb", "00:bc", false},
	{"no MAC address", ", mac: 02:00:00:00:00:bb", "", false},
	{"a zone", "zone: r1", "zone: r2", false},
	{"a zone in quotes", "zone: r1", "zone: 'r1'", true},
	{"no zone", ",\n   zone: r1", "", false},
	{"one more backend", "   {name: a", "   {name: b, address: 10.0.0.9}, {name: a", false},
	{"one more service", "services:\n",
		"services:\n- {name: y, address: 192.0.2.9, protocol: tcp, port: 1}\n", false},
	{"the seed", "hash_seed: 9", "hash_seed: 8", false},
};

static void
read_model(const char *text, struct cfg_model *out)
{
	EXPECT(cfg_read_text_model("f", text, strlen(text), stderr, out) == 0, "%s", text);
}

static void
test_every_difference_is_seen(void **state)
{
	struct cfg_model model;

	(void)state;
	read_model(base, &model);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const char *at = strstr(base, changes[i].from);
		struct cfg_model other;
		char text[2048];

		EXPECT(at != NULL, "%s is not in the text", changes[i].from);
		(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - base), base,
			changes[i].to, at + strlen(changes[i].from));
		read_model(text, &other);
		EXPECT(cfg_model_equal(&model, &other) == changes[i].is_equal, "%s",
			changes[i].what);
		EXPECT(cfg_model_equal(&other, &model) == changes[i].is_equal, "%s",
			changes[i].what);
		cfg_model_fini(&other);
	}
	cfg_model_fini(&model);
}

static void
test_a_copy_is_equal_and_its_own(void **state)
{
	struct cfg_model model;
	struct cfg_model copy;

	(void)state;
	read_model(base, &model);
	assert_int_equal(cfg_model_copy(&model, &copy), 0);
	assert_true(cfg_model_equal(&model, &copy));
	assert_string_equal(copy.file, "f");
	assert_int_equal(copy.services[0].pos.line, model.services[0].pos.line);

	/* Freed first: the copy must not point into it. */
	cfg_model_fini(&model);
	assert_string_equal(copy.services[0].backends[0].name, "a");
	assert_string_equal(copy.dataplane.ports[0].device, "d");
	assert_int_equal(copy.services[1].quic[0].key[15], 0xff);
	assert_int_equal(copy.services[1].backends[0].quic_ids[1].bytes[1], 0x0c);
	cfg_model_fini(&copy);
}

#define ROUTED(to, via)                                                                        \
	"dataplane: {ports: [{name: p, device: d, addresses: [192.0.2.1/24], routes: [{to: "   \
	"10.0.0.0/8, via: 192.0.2.9}, {to: " to ", via: " via "}]}]}\n"

static void
test_routes_are_copied_and_compared(void **state)
{
	static const char *const others[] = {ROUTED("0.0.0.0/0", "192.0.2.8"),
		ROUTED("0.0.0.0/1", "192.0.2.9"), ROUTED("11.0.0.0/8", "192.0.2.9")};
	struct cfg_model model;
	struct cfg_model copy;

	(void)state;
	read_model(ROUTED("0.0.0.0/0", "192.0.2.9"), &model);
	assert_int_equal(cfg_model_copy(&model, &copy), 0);
	assert_true(cfg_model_equal(&model, &copy));
	cfg_model_fini(&model);
	assert_int_equal(copy.dataplane.ports[0].n_routes, 2);
	assert_int_equal(copy.dataplane.ports[0].routes[1].to.n_bits, 96);
	assert_int_equal(copy.dataplane.ports[0].routes[1].via.bytes[15], 9);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct cfg_model other;

		read_model(others[i], &other);
		EXPECT(!cfg_model_equal(&copy, &other), "%s", others[i]);
		cfg_model_fini(&other);
	}
	cfg_model_fini(&copy);
}

static void
test_an_empty_model_has_defaults_and_copies(void **state)
{
	struct cfg_model model;
	struct cfg_model copy;

	(void)state;
	cfg_model_init(&model);
	assert_int_equal(model.dataplane.workers, 0);
	assert_int_equal(model.dataplane.kernel, CFG_KERNEL_TAP);
	assert_int_equal(model.dataplane.idle, CFG_IDLE_POLL);
	assert_int_equal(model.dataplane.idle_sleep_ns, 100000);
	assert_int_equal(model.dataplane.flow_entries, 1048576);
	assert_int_equal(model.dataplane.tcp_syn_ns, 10 * 1000000000ull);
	assert_int_equal(model.dataplane.tcp_ns, 900 * 1000000000ull);
	assert_int_equal(model.dataplane.tcp_closing_ns, 30 * 1000000000ull);
	assert_int_equal(model.dataplane.udp_ns, 60 * 1000000000ull);
	assert_int_equal(model.dataplane.fragment_datagrams, 4096);
	assert_int_equal(model.dataplane.fragment_waiting, 1024);
	assert_int_equal(model.dataplane.handoff, 2048);
	assert_int_equal(model.dataplane.replies_total, 10000);
	assert_int_equal(model.dataplane.replies_source, 100);
	assert_string_equal(model.control_socket, "/run/shunt/shunt.sock");
	assert_string_equal(model.control_metrics, "127.0.0.1:9464");
	assert_null(model.announce.interface);
	assert_int_equal(model.announce.table, 254);
	assert_int_equal(model.announce.metric, 0);
	assert_int_equal(model.announce.withdraw_before_stop_ns, 5 * 1000000000ull);
	assert_int_equal(model.hash_seed, 0);
	assert_int_equal(model.n_services, 0);
	assert_int_equal(cfg_model_copy(&model, &copy), 0);
	assert_true(cfg_model_equal(&model, &copy));
	cfg_model_fini(&copy);
	assert_true(cfg_model_equal(&model, &copy));
	cfg_model_fini(&model);
	cfg_model_fini(&model);
}

static void
test_services_are_found_by_part_of_a_text(void **state)
{
	struct cfg_model model;

	(void)state;
	read_model(base, &model);
	assert_ptr_equal(cfg_find_service(&model, "w/a", 1), &model.services[0]);
	assert_null(cfg_find_service(&model, "w/a", 2));
	assert_null(cfg_find_service(&model, "", 0));
	assert_ptr_equal(cfg_find_backend(&model.services[0], "a"),
		&model.services[0].backends[0]);
	assert_null(cfg_find_backend(&model.services[0], "ab"));
	cfg_model_fini(&model);
}

static void
test_backends_come_and_go_in_order(void **state)
{
	struct cfg_service service = {.backends = NULL};
	char name[16];
	struct cfg_backend backend = {.name = name};

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "b%u", i);
		backend.weight = i;
		assert_int_equal(cfg_add_backend(&service, &backend), 0);
	}
	assert_int_equal(cfg_add_backend(&service, &backend), -EEXIST);
	assert_int_equal(service.n_backends, 20);

	cfg_remove_backend(&service, cfg_find_backend(&service, "b0"));
	cfg_remove_backend(&service, cfg_find_backend(&service, "b10"));
	cfg_remove_backend(&service, cfg_find_backend(&service, "b19"));
	assert_int_equal(service.n_backends, 17);
	assert_string_equal(service.backends[0].name, "b1");
	assert_int_equal(service.backends[8].weight, 9);
	assert_int_equal(service.backends[9].weight, 11);
	assert_null(cfg_find_backend(&service, "b10"));
	assert_int_equal(cfg_add_backend(&service, &backend), 0);
	while (service.n_backends > 0)
		cfg_remove_backend(&service, &service.backends[0]);
	free(service.backends);
}

static void
test_a_full_service_takes_no_more(void **state)
{
	/* Only the count matters: the names are looked at first, so all are one. */
	static char name[] = "x";
	static char other[] = "y";
	const struct cfg_backend backend = {.name = other};
	struct cfg_service service = {.n_backends = LB_SERVICE_BACKENDS_MAX};

	(void)state;
	service.backends = calloc(service.n_backends, sizeof(*service.backends));
	assert_non_null(service.backends);
	for (size_t i = 0; i < service.n_backends; i++)
		service.backends[i].name = name;
	assert_int_equal(cfg_add_backend(&service, &backend), -E2BIG);
	free(service.backends);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_difference_is_seen),
		cmocka_unit_test(test_a_copy_is_equal_and_its_own),
		cmocka_unit_test(test_routes_are_copied_and_compared),
		cmocka_unit_test(test_an_empty_model_has_defaults_and_copies),
		cmocka_unit_test(test_services_are_found_by_part_of_a_text),
		cmocka_unit_test(test_backends_come_and_go_in_order),
		cmocka_unit_test(test_a_full_service_takes_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
