/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_print.h"
#include "cfg_yaml.h"
#include "lb_device.h"
#include "xrand.h"

/* Of a random model. */
#define PORTS_MAX 3u

/* Names that YAML, or some reader of it, could take for something else. */
static const char *const odd_names[] = {"true", "No", "~", "null", "1", "0x10", "1e3", "1:30",
	".inf", "- a", "-", "--- a", "? a", ": a", "a: b", "a #b", "#a", "&a", "*a", "!a", "|",
	">", "'", "\"", "\\", "\\n", "a\\", "{a}", "[a]", "a,b", "%a", "@a", "`a", "=", "<<",
	" a", "a ", "  ", "\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x98\x80",
	"\xc2\xa0", "a\"b'c\\d: e", "y", "2001-12-14", "web-1", "a.b_c-d", "..."};

/* Texts that are no names: a device may hold any character. */
static const char *const odd_texts[] = {"a\nb", "\t", "\x01", "\x1b[0m", "\x7f", "a/b",
	"\xc2\x85", "\xc2\x80", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae", "\xe2\x81\xa6",
	"\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf", "net_pcap0,iface=eth0", "0000:3b:00.0",
	"\r\n"};

static char *
print_model(const struct cfg_model *model)
{
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	assert_int_equal(cfg_print(model, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void
expect_identity(const struct cfg_model *model)
{
	struct cfg_model again;
	char *text = print_model(model);
	char *twice;

	EXPECT(cfg_read_text_model("printed", text, strlen(text), NULL, &again) == 0, "%s",
		text);
	EXPECT(cfg_model_equal(model, &again), "%s", text);
	twice = print_model(&again);
	assert_string_equal(text, twice);
	free(twice);
	free(text);
	cfg_model_fini(&again);
}

static void
test_every_key_is_printed(void **state)
{
	static const char text[] =
		"dataplane:\n"
		"  workers: 2\n"
		"  kernel: none\n"
		"  idle: adaptive\n"
		"  idle_sleep: 100us\n"
		"  flow_entries: 7\n"
		"  flow_addresses: true\n"
		"  flow_timeout: {tcp_syn: 1ms, tcp: 7d, tcp_closing: 90s, udp: 1m}\n"
		"  answer_arp: true\n"
		"  fragments: {datagrams: 64, waiting: 1024}\n"
		"  handoff: 64\n"
		"  replies: {total: 10000, source: 7}\n"
		"  ports:\n"
		"    - name: wan\n"
		"      device: \"a,b=c\"\n"
		"      addresses: [192.0.2.1/24, \"2001:db8::1/64\"]\n"
		"      next_hop: \"02:00:00:00:00:fe\"\n"
		"      mtu: 1280\n"
		"      answer_arp: false\n"
		"      vlan: none\n"
		"    - name: lan\n"
		"      device: d1\n"
		"      addresses: []\n"
		"      mtu: 9000\n"
		"      answer_arp: true\n"
		"      vlan: 4094\n"
		"control:\n"
		"  socket: \"/run/s\"\n"
		"  metrics: off\n"
		"announce:\n"
		"  interface: shunt-vips\n"
		"  table: main\n"
		"  metric: 20\n"
		"  withdraw_before_stop: 0s\n"
		"services:\n"
		"  - name: w\n"
		"    address: \"2001:db8::/32\"\n"
		"    protocol: udp\n"
		"    port: 65535\n"
		"    table: {algorithm: ring, size: 16}\n"
		"    affinity: source-ip-port\n"
		"    forward: vxlan\n"
		"    tunnel_port: 5\n"
		"    vni: 6\n"
		"    backends:\n"
		"      - {name: a, address: 10.0.0.1, weight: 7, state: down, mac: "
		"\"02:00:00:00:00:01\"}\n"
		"      - {name: \"no\", address: \"2001:db8::2\", weight: 0, state: up}\n"
		"  - name: t\n"
		"    address: 192.0.2.1\n"
		"    protocol: any\n"
		"    port: any\n"
		"    table: {algorithm: stable, size: 65537, overload: 0.5%}\n"
		"    affinity: 5-tuple\n"
		"    forward: ipip\n"
		"    carry: [ipip, gre]\n"
		"    echo: drop\n"
		"    fragment: outer\n"
		"    mss_clamp: auto\n"
		"    backends: []\n"
		"  - name: q\n"
		"    address: 192.0.2.2\n"
		"    protocol: udp\n"
		"    port: 443\n"
		"    table: {algorithm: maglev, size: 65537}\n"
		"    affinity: quic\n"
		"    forward: ipip\n"
		"    quic:\n"
		"      - {config_id: 6, server_id_length: 1, nonce_length: 18, cid_key: "
		"\"00112233445566778899aabbccddeeff\", first_octet_encodes_cid_length: true}\n"
		"      - {config_id: 0, server_id_length: 2, nonce_length: 4}\n"
		"    backends:\n"
		"      - {name: a, address: 10.0.0.1, weight: 100, state: up, quic_id: "
		"[\"00\", \"1e10\"]}\n"
		"      - {name: b, address: 10.0.0.2, weight: 100, state: up, quic_id: "
		"\"0012\"}\n"
		"hash_seed: 18446744073709551615\n";
	struct cfg_model model;
	char *printed;

	(void)state;
	assert_int_equal(cfg_read_text_model("f", text, strlen(text), NULL, &model), 0);
	printed = print_model(&model);
	assert_string_equal(printed, text);
	free(printed);
	cfg_model_fini(&model);
}

static void
test_an_empty_model_is_printed(void **state)
{
	struct cfg_model model;

	(void)state;
	cfg_model_init(&model);
	expect_identity(&model);
}

static const char *
pick(uint64_t *seed, const char *const *texts, size_t n)
{
	return texts[xrand_below(seed, (uint32_t)n)];
}

/* An odd name with a number after it where it is not the first, so that all differ. */
static char *
make_name(uint64_t *seed, size_t i)
{
	const char *odd = pick(seed, odd_names, sizeof(odd_names) / sizeof(odd_names[0]));
	char *name = NULL;

	assert_true(
		(i == 0 ? asprintf(&name, "%s", odd) : asprintf(&name, "%s#%zu", odd, i)) > 0);
	return name;
}

static struct lb_addr
make_address(uint64_t *seed)
{
	struct lb_addr addr = {{0x20, 0x01}};
	const bool is_v4 = xrand_below(seed, 2) == 0;
	const uint8_t v4[4] = {10, (uint8_t)xrand(seed), (uint8_t)xrand(seed), 1};

	if (is_v4)
		return lb_addr_from_v4(v4);
	for (size_t i = 2; i < sizeof(addr.bytes); i++)
		addr.bytes[i] = xrand_below(seed, 2) == 0 ? 0 : (uint8_t)xrand(seed);
	return addr;
}

static struct lb_prefix
make_prefix(uint64_t *seed)
{
	struct lb_prefix prefix = {.addr = make_address(seed)};

	prefix.n_bits = (uint8_t)(lb_addr_is_v4(&prefix.addr) ? 96 + xrand_below(seed, 33)
							      : xrand_below(seed, 129));
	return prefix;
}

/* Server ids that differ: by their place, after two bytes of anything. */
static void
make_quic_ids(uint64_t *seed, size_t place, const struct cfg_service *service,
	struct cfg_backend *out)
{
	out->quic_ids = calloc(service->n_quic, sizeof(*out->quic_ids));
	assert_non_null(out->quic_ids);
	for (size_t i = 0; i < service->n_quic; i++) {
		struct cfg_quic_id *id = &out->quic_ids[out->n_quic_ids++];

		id->n_bytes = service->quic[i].server_id_bytes;
		for (size_t k = 0; k + 1 < id->n_bytes; k++)
			id->bytes[k] = (uint8_t)xrand(seed);
		id->bytes[id->n_bytes - 1] = (uint8_t)(place * 16 + i);
	}
}

static void
make_quic(uint64_t *seed, struct cfg_service *out)
{
	out->n_quic = 1 + xrand_below(seed, CFG_QUIC_CONFIGS_MAX);
	out->quic = calloc(out->n_quic, sizeof(*out->quic));
	assert_non_null(out->quic);
	for (size_t i = 0; i < out->n_quic; i++) {
		struct cfg_quic *quic = &out->quic[i];

		quic->config_id = (uint8_t)(out->n_quic - 1 - i);
		quic->server_id_bytes = (uint8_t)(1 + xrand_below(seed, 15));
		quic->nonce_bytes =
			(uint8_t)(4 + xrand_below(seed, 16u - quic->server_id_bytes));
		quic->has_length = xrand_below(seed, 2) == 0;
		quic->has_key = xrand_below(seed, 2) == 0;
		for (size_t k = 0; quic->has_key && k < sizeof(quic->key); k++)
			quic->key[k] = (uint8_t)xrand(seed);
	}
	for (size_t i = 0; i < out->n_backends; i++)
		make_quic_ids(seed, i, out, &out->backends[i]);
}

static void
make_special(uint64_t *seed, struct cfg_service *out)
{
	out->echo = (enum cfg_echo)xrand_below(seed, CFG_N_ECHOES);
	out->fragment = (enum cfg_fragment)xrand_below(seed, CFG_N_FRAGMENTS);
	if (out->forward == CFG_FORWARD_L2 && out->fragment == CFG_FRAGMENT_OUTER)
		out->fragment = CFG_FRAGMENT_DROP;
	if (out->protocol != CFG_PROTOCOL_UDP && xrand_below(seed, 2) == 0)
		out->mss_clamp = xrand_below(seed, 2) == 0
					 ? CFG_MSS_AUTO
					 : (uint16_t)(88 + xrand_below(seed, 65495 - 87));
	if (out->affinity == CFG_AFFINITY_QUIC)
		make_quic(seed, out);
}

static void
make_service(uint64_t *seed, size_t i, struct cfg_service *out)
{
	static const uint32_t sizes[] = {7, 251, 65537, 16777213};

	out->name = make_name(seed, i);
	out->address = make_prefix(seed);
	out->address.addr = lb_addr_mask(&out->address.addr, out->address.n_bits);
	out->protocol = (enum cfg_protocol)xrand_below(seed, CFG_N_PROTOCOLS);
	out->port = (uint16_t)(i + 1); /* differs, so that no two services are one */
	out->algorithm = (enum cfg_algorithm)xrand_below(seed, CFG_N_ALGORITHMS);
	out->n_slots = sizes[xrand_below(seed, 4)];
	if (out->algorithm == CFG_STABLE)
		out->overload = xrand_below(seed, CFG_OVERLOAD_MAX + 1);
	out->affinity = (enum cfg_affinity)xrand_below(seed, CFG_N_AFFINITIES);
	if (out->affinity == CFG_AFFINITY_QUIC)
		out->protocol = CFG_PROTOCOL_UDP;
	out->forward = (enum cfg_forward)xrand_below(seed, CFG_N_FORWARDS);
	if (out->forward == CFG_FORWARD_GUE || out->forward == CFG_FORWARD_VXLAN)
		out->tunnel_port = (uint16_t)xrand(seed);
	if (out->forward == CFG_FORWARD_VXLAN)
		out->vni = xrand_below(seed, 1 << 24);
	if (out->protocol == CFG_PROTOCOL_ANY)
		out->carry = (uint8_t)xrand_below(seed, 1 << CFG_N_CARRIES);
	out->n_backends = xrand_below(seed, 7);
	out->backends = calloc(7, sizeof(*out->backends));
	assert_non_null(out->backends);
	for (size_t k = 0; k < out->n_backends; k++) {
		struct cfg_backend *backend = &out->backends[k];

		backend->name = make_name(seed, k);
		backend->address = make_address(seed);
		backend->weight = xrand_below(seed, 65536);
		backend->state = (enum cfg_state)xrand_below(seed, CFG_N_STATES);
		if (out->forward == CFG_FORWARD_L2 || out->forward == CFG_FORWARD_VXLAN)
			backend->has_mac = xrand_below(seed, 2) == 0;
		for (size_t j = 0; backend->has_mac && j < 6; j++)
			backend->mac.bytes[j] = (uint8_t)xrand(seed);
		if (xrand_below(seed, 2) == 0)
			backend->zone = make_name(seed, k);
	}
	make_special(seed, out);
}

/* Of one in PORTS_MAX the texts, so that ports have devices of their own. */
static const char *
pick_device(uint64_t *seed, size_t i)
{
	const uint32_t n_texts = (uint32_t)(sizeof(odd_texts) / sizeof(odd_texts[0]));
	const uint32_t n_names = (uint32_t)(sizeof(odd_names) / sizeof(odd_names[0]));

	if (xrand_below(seed, 2) == 0)
		return odd_texts[PORTS_MAX * xrand_below(seed, n_texts / PORTS_MAX) + i];
	return odd_names[PORTS_MAX * xrand_below(seed, n_names / PORTS_MAX) + i];
}

/* To networks that no other port has. */
static void
make_routes(uint64_t *seed, size_t i, struct cfg_port *out)
{
	const uint8_t to[4] = {10, (uint8_t)i, (uint8_t)xrand(seed), 0};
	const uint8_t via[4] = {192, 0, 2, (uint8_t)(2 + xrand_below(seed, 253))};

	out->routes = calloc(2, sizeof(*out->routes));
	assert_non_null(out->routes);
	out->n_routes = 1 + xrand_below(seed, 2);
	out->routes[0] = (struct cfg_route){.to = {lb_addr_from_v4(to), 120},
		.via = lb_addr_from_v4(via)};
	out->routes[1] =
		(struct cfg_route){.to = {{{0x20, 0x01, 0x0d, 0xb9, [7] = (uint8_t)i}}, 64},
			.via = {{0xfe, 0x80, [15] = (uint8_t)xrand(seed)}}};
}

static void
make_port(uint64_t *seed, size_t i, enum cfg_kernel kernel, struct cfg_port *out)
{
	static const uint8_t v4[4] = {192, 0, 2, 1};
	static const struct lb_addr v6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}};

	if (kernel == CFG_KERNEL_NONE) {
		out->name = make_name(seed, i);
	} else { /* a twin has it, too */
		assert_true(asprintf(&out->name, "~#%zu", i) > 0);
	}
	out->device = strdup(pick_device(seed, i));
	assert_non_null(out->device);
	out->addresses = calloc(3, sizeof(*out->addresses));
	assert_non_null(out->addresses);
	out->n_addresses = 3;
	out->addresses[0] = (struct lb_prefix){lb_addr_from_v4(v4), 120};
	out->addresses[1] = (struct lb_prefix){v6, 64};
	out->addresses[2] = make_prefix(seed);
	if (kernel == CFG_KERNEL_TAP && !lb_device_is_packet_socket(out->device))
		make_routes(seed, i, out);
	out->mtu = (uint16_t)(1280 + xrand_below(seed, 9216 - 1280 + 1));
	out->answer_arp = xrand_below(seed, 2) == 0;
	out->vlan =
		xrand_below(seed, 2) == 0 ? CFG_VLAN_NONE : (uint16_t)xrand_below(seed, 4095);
	out->has_next_hop = xrand_below(seed, 2) == 0;
	for (size_t j = 0; out->has_next_hop && j < 6; j++)
		out->next_hop.bytes[j] = (uint8_t)xrand(seed);
}

/* Each as usual or not, by itself. */
static void
make_bounds(uint64_t *seed, struct cfg_dataplane *out)
{
	if (xrand_below(seed, 2) == 0)
		out->fragment_datagrams = 64 + xrand_below(seed, 1048576 - 63);
	if (xrand_below(seed, 2) == 0)
		out->fragment_waiting = 16 + xrand_below(seed, 65535 - 15);
	if (xrand_below(seed, 2) == 0)
		out->handoff = 64u << xrand_below(seed, 11);
	if (xrand_below(seed, 2) == 0)
		out->replies_total = 1 + xrand_below(seed, 65536);
	if (xrand_below(seed, 2) == 0)
		out->replies_source = 1 + xrand_below(seed, 65536);
}

static void
make_announce(uint64_t *seed, struct cfg_announce *out)
{
	/* Table main does not take every prefix. */
	out->table = 1 + xrand_below(seed, CFG_TABLE_MAIN - 1);
	if (xrand_below(seed, 2) == 0)
		assert_int_equal(cfg_model_set_text(&out->interface, "shunt-vips"), 0);
	if (xrand_below(seed, 2) == 0)
		out->metric = xrand_below(seed, UINT32_MAX);
	if (xrand_below(seed, 2) == 0)
		out->withdraw_before_stop_ns = 1000000ull * xrand_below(seed, 300001);
}

static void
make_model(uint64_t *seed, struct cfg_model *out)
{
	cfg_model_init(out);
	out->hash_seed = xrand(seed);
	out->dataplane.workers = xrand_below(seed, LB_WORKERS_MAX + 1);
	out->dataplane.kernel = (enum cfg_kernel)xrand_below(seed, CFG_N_KERNELS);
	out->dataplane.idle = (enum cfg_idle)xrand_below(seed, CFG_N_IDLES);
	out->dataplane.idle_sleep_ns = 1000 + xrand_below(seed, 9999001);
	out->dataplane.flow_entries = 1 + xrand_below(seed, 1u << 30);
	out->dataplane.flow_addresses = xrand_below(seed, 2) == 0;
	out->dataplane.tcp_syn_ns = 1000000 + xrand(seed) % 604799999000000;
	out->dataplane.udp_ns = 1000000ull * (1 + xrand_below(seed, 604800000));
	out->dataplane.answer_arp = xrand_below(seed, 2) == 0;
	make_bounds(seed, &out->dataplane);
	assert_int_equal(cfg_model_set_text(&out->control_socket,
				 pick(seed, odd_texts,
					 sizeof(odd_texts) / sizeof(odd_texts[0]))),
		0);
	if (xrand_below(seed, 2) == 0)
		assert_int_equal(cfg_model_set_text(&out->control_metrics, NULL), 0);
	out->dataplane.ports = calloc(PORTS_MAX, sizeof(*out->dataplane.ports));
	assert_non_null(out->dataplane.ports);
	out->dataplane.n_ports = xrand_below(seed, PORTS_MAX + 1);
	for (size_t i = 0; i < out->dataplane.n_ports; i++)
		make_port(seed, i, out->dataplane.kernel, &out->dataplane.ports[i]);
	out->services = calloc(4, sizeof(*out->services));
	assert_non_null(out->services);
	out->n_services = xrand_below(seed, 5);
	for (size_t i = 0; i < out->n_services; i++)
		make_service(seed, i, &out->services[i]);
	make_announce(seed, &out->announce);
}

static void
test_printed_and_read_again_is_equal(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		uint64_t seed = i;
		struct cfg_model model;

		make_model(&seed, &model);
		expect_identity(&model);
		cfg_model_fini(&model);
	}
}

static void
test_every_odd_name_stays_itself(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(odd_names) / sizeof(odd_names[0]); i++) {
		struct cfg_model model;

		cfg_model_init(&model);
		model.services = calloc(1, sizeof(*model.services));
		assert_non_null(model.services);
		model.n_services = 1;
		model.services[0].name = strdup(odd_names[i]);
		model.services[0].n_slots = 7;
		expect_identity(&model);
		cfg_model_fini(&model);
	}
}

static void
test_a_full_disk_is_told(void **state)
{
	struct cfg_model model;
	FILE *to = fopen("/dev/full", "w");

	(void)state;
	if (to == NULL)
		skip();
	cfg_model_init(&model);
	assert_int_equal(cfg_print(&model, to), -EIO);
	(void)fclose(to);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_is_printed),
		cmocka_unit_test(test_an_empty_model_is_printed),
		cmocka_unit_test(test_printed_and_read_again_is_equal),
		cmocka_unit_test(test_every_odd_name_stays_itself),
		cmocka_unit_test(test_a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
