/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "ctl_names.h"
#include "dp_snapshot.h"
#include "expect.h"
#include "xrand.h"

static const char config[] =
	"dataplane:\n"
	"  ports:\n"
	"    - {name: wan, device: net_null0, addresses: [192.0.2.1/24], mtu: 1400,\n"
	"       next_hop: '02:00:00:00:00:fe'}\n"
	"    - {name: bare, device: net_null1, addresses: ['2001:db8::1/64']}\n"
	"services:\n"
	"  - {name: web, address: 198.51.100.10, protocol: tcp, port: 80,\n"
	"     table: {size: 251}, backends: [{name: a, address: 10.0.0.1},\n"
	"     {name: b, address: 10.0.0.2, state: drain}, {name: c, address: 10.0.0.3,\n"
	"     state: down}]}\n"
	"  - {name: dns, address: 198.51.100.10, protocol: udp, port: 53, forward: l2,\n"
	"     table: {size: 251}, backends: [{name: a, address: 10.0.0.1,\n"
	"     mac: '02:00:00:00:00:0a'}, {name: b, address: 10.0.0.2}]}\n";

struct fixture {
	struct cfg_model model;
	struct ctl_apply *apply;
};

static void
open_fixture(struct fixture *f)
{
	assert_int_equal(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				 &f->model),
		0);
	assert_int_equal(ctl_apply_create(&f->apply), 0);
}

static void
close_fixture(struct fixture *f)
{
	ctl_apply_destroy(f->apply);
	cfg_model_fini(&f->model);
}

static struct dp_snapshot *
build(struct fixture *f, const struct cfg_port *port)
{
	const struct ctl_paths paths = {.port = port};
	struct dp_snapshot *snapshot;

	assert_int_equal(ctl_apply_build(f->apply, &f->model, &paths, stderr, &snapshot), 0);
	return snapshot;
}

static void
test_states_say_who_is_picked_and_who_is_kept(void **state)
{
	uint32_t slots[5];
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	open_fixture(&f);
	snapshot = build(&f, &f.model.dataplane.ports[0]);
	assert_int_equal(ctl_apply_n_backends(f.apply), 5);
	assert_int_equal(ctl_apply_count_slots(f.apply, slots, 5), 0);
	assert_int_equal(slots[0], 251);
	assert_int_equal(slots[1], 0);
	assert_int_equal(slots[2], 0);
	assert_true(ctl_apply_is_live(f.apply, 0));
	assert_true(ctl_apply_is_live(f.apply, 1));
	assert_false(ctl_apply_is_live(f.apply, 2));
	assert_false(ctl_apply_is_live(f.apply, 99));
	assert_non_null(dp_snapshot_live_backend(snapshot, 1));
	assert_null(dp_snapshot_live_backend(snapshot, 2));
	assert_null(dp_snapshot_live_backend(snapshot, 99));
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

static void
test_a_port_says_how_a_backend_is_reached(void **state)
{
	static const struct lb_mac hop = {{0x02, 0, 0, 0, 0, 0xfe}};
	static const struct lb_mac own = {{0x02, 0, 0, 0, 0, 0x0a}};
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	open_fixture(&f);
	snapshot = build(&f, &f.model.dataplane.ports[0]);
	assert_true(snapshot->backends[0].has_next_hop);
	assert_int_equal(snapshot->backends[0].mtu, 1400);
	assert_memory_equal(&snapshot->backends[0].ether.dst, &hop, sizeof(hop));
	assert_memory_equal(&snapshot->backends[3].ether.dst, &own, sizeof(own));
	assert_memory_equal(&snapshot->backends[4].ether.dst, &hop, sizeof(hop));
	dp_snapshot_destroy(snapshot);

	/* Without a next hop only the backend that names its own is reached. */
	snapshot = build(&f, &f.model.dataplane.ports[1]);
	assert_false(snapshot->backends[0].has_next_hop);
	assert_true(snapshot->backends[3].has_next_hop);
	assert_false(snapshot->backends[4].has_next_hop);
	dp_snapshot_destroy(snapshot);

	snapshot = build(&f, NULL);
	for (uint32_t id = 0; id < 5; id++)
		assert_false(snapshot->backends[id].has_next_hop);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

static void
test_a_backend_leaves_by_the_port_of_its_path(void **state)
{
	static const struct lb_mac fixed = {{0x02, 0, 0, 0, 0, 0xfe}};
	struct ctl_path items[] = {
		{.port = 1, .is_resolved = true, .mac = {{0x02, 0, 0, 0, 0, 0x21}}},
		{.port = 0, .is_resolved = false},
	};
	const struct ctl_paths paths = {.items = items, .n_items = 2};
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	open_fixture(&f);
	assert_int_equal(lb_addr_parse("10.0.0.1", &items[0].dst), 0);
	assert_int_equal(lb_addr_parse("10.0.0.2", &items[1].dst), 0);
	assert_int_equal(ctl_apply_build(f.apply, &f.model, &paths, stderr, &snapshot), 0);

	/* The port has no address of the tunnel's family; l2 needs none. */
	assert_int_equal(snapshot->backends[0].port, 1);
	assert_false(snapshot->backends[0].has_next_hop);
	assert_true(snapshot->backends[3].has_next_hop);
	/* A port's fixed next hop needs no neighbour. */
	assert_int_equal(snapshot->backends[1].port, 0);
	assert_true(snapshot->backends[1].has_next_hop);
	assert_memory_equal(&snapshot->backends[1].ether.dst, &fixed, sizeof(fixed));
	/* No path at all. */
	assert_false(snapshot->backends[2].has_next_hop);
	assert_int_equal(ctl_apply_n_unreached(f.apply), 2);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

static void
read_model(const char *text, struct cfg_model *out)
{
	assert_int_equal(cfg_read_text_model("config", text, strlen(text), stderr, out), 0);
}

static void
test_a_service_says_what_becomes_of_special_packets(void **state)
{
	static const char text[] = "services:\n"
				   "- {name: a, address: 198.51.100.1, protocol: tcp, port: "
				   "80, table: {size: 7},\n"
				   "   echo: drop, fragment: outer, mss_clamp: auto}\n"
				   "- {name: b, address: 198.51.100.2, protocol: any, port: "
				   "any, table: {size: 7},\n"
				   "   echo: forward, fragment: drop, mss_clamp: 1234}\n"
				   "- {name: c, address: 198.51.100.3, protocol: tcp, port: "
				   "80, table: {size: 7}}\n";
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	read_model(text, &f.model);
	assert_int_equal(ctl_apply_create(&f.apply), 0);
	snapshot = build(&f, NULL);
	assert_int_equal(snapshot->services[0].echo, DP_ECHO_DROP);
	assert_int_equal(snapshot->services[0].fragment, DP_FRAGMENT_OUTER);
	assert_int_equal(snapshot->services[0].mss_clamp, DP_MSS_AUTO);
	assert_int_equal(snapshot->services[1].echo, DP_ECHO_FORWARD);
	assert_int_equal(snapshot->services[1].fragment, DP_FRAGMENT_DROP);
	assert_int_equal(snapshot->services[1].mss_clamp, 1234);
	assert_int_equal(snapshot->services[2].echo, DP_ECHO_REPLY);
	assert_int_equal(snapshot->services[2].fragment, DP_FRAGMENT_INNER);
	assert_int_equal(snapshot->services[2].mss_clamp, 0);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

static void
test_a_backend_has_the_tags_of_the_port_it_leaves_by(void **state)
{
	static const char text[] =
		"dataplane:\n"
		"  ports:\n"
		"    - {name: a, device: d0, addresses: [192.0.2.1/24], vlan: 4094}\n"
		"    - {name: b, device: d1, addresses: [192.0.3.1/24], vlan: none}\n"
		"    - {name: c, device: d2, addresses: [192.0.4.1/24]}\n"
		"services:\n"
		"- {name: w, address: 198.51.100.1, protocol: tcp, port: 80, table: {size: "
		"7},\n"
		"   backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2},\n"
		"   {name: c, address: 10.0.0.3}, {name: nowhere, address: 10.0.0.4}]}\n";
	struct ctl_path items[] = {{.port = 0}, {.port = 1}, {.port = 2}};
	const struct ctl_paths paths = {.items = items, .n_items = 3};
	static const uint16_t expected[] = {4094, DP_VLAN_NONE, DP_VLAN_KEEP, DP_VLAN_KEEP};
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	read_model(text, &f.model);
	assert_int_equal(ctl_apply_create(&f.apply), 0);
	for (size_t i = 0; i < 3; i++)
		items[i].dst = f.model.services[0].backends[i].address;
	assert_int_equal(ctl_apply_build(f.apply, &f.model, &paths, stderr, &snapshot), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(snapshot->backends[i].vlan, expected[i]);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

/* Of a short header's packet: the first octet, then the id without a key. */
static uint32_t
find_server(const struct dp_service *service, uint8_t config_id, const uint8_t *id, size_t n)
{
	uint8_t payload[32] = {0x40, (uint8_t)(config_id << 5)};

	memcpy(payload + 2, id, n);
	return lb_quic_find(service->quic, payload, sizeof(payload));
}

/* Each id counts under each configuration of its length, the second service's for itself. */
static void
test_server_ids_name_the_backends_of_their_service(void **state)
{
	static const char text[] =
		"services:\n"
		"- {name: a, address: 198.51.100.1, protocol: udp, port: 443, table: {size: "
		"7},\n"
		"   affinity: quic, quic: [\n"
		"   {config_id: 0, server_id_length: 2, nonce_length: 4},\n"
		"   {config_id: 4, server_id_length: 1, nonce_length: 18},\n"
		"   {config_id: 6, server_id_length: 2, nonce_length: 8}], backends: [\n"
		"   {name: x, address: 10.0.0.1, quic_id: [0a0b, 0c]},\n"
		"   {name: y, address: 10.0.0.2, state: down, quic_id: [0d, 0a0c, '0e0f']}]}\n"
		"- {name: b, address: 198.51.100.2, protocol: udp, port: 443, table: {size: "
		"7},\n"
		"   affinity: quic, quic: [\n"
		"   {config_id: 0, server_id_length: 2, nonce_length: 4}], backends: [\n"
		"   {name: x, address: 10.0.0.1, quic_id: 0a0b}]}\n"
		"- {name: c, address: 198.51.100.3, protocol: udp, port: 443, table: {size: "
		"7}}\n";
	static const struct {
		const char *what;
		size_t service;
		uint8_t config_id;
		uint8_t id[2];
		size_t n;
		uint32_t backend;
	} rows[] = {
		{"an id", 0, 0, {0x0a, 0x0b}, 2, 0},
		{"the same under another configuration", 0, 6, {0x0a, 0x0b}, 2, 0},
		{"a shorter id", 0, 4, {0x0c}, 1, 0},
		{"an id of a backend that is down", 0, 4, {0x0d}, 1, 1},
		{"the second of two of one length", 0, 6, {0x0e, 0x0f}, 2, 1},
		{"nobody's id", 0, 0, {0x0a, 0x0d}, 2, LB_QUIC_NONE},
		{"a configuration that is none", 0, 1, {0x0a, 0x0b}, 2, LB_QUIC_NONE},
		{"another service's id", 1, 0, {0x0a, 0x0b}, 2, 2},
		{"an id that another service alone has", 1, 0, {0x0a, 0x0c}, 2, LB_QUIC_NONE},
	};
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	read_model(text, &f.model);
	assert_int_equal(ctl_apply_create(&f.apply), 0);
	snapshot = build(&f, NULL);
	assert_int_equal(snapshot->services[0].affinity, LB_AFFINITY_5_TUPLE);
	assert_null(snapshot->services[2].quic);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint32_t found = find_server(&snapshot->services[rows[i].service],
			rows[i].config_id, rows[i].id, rows[i].n);

		EXPECT(found == rows[i].backend, "%s: %u", rows[i].what, found);
	}
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

/* The single pass of draft-ietf-quic-load-balancers-21, appendix B. */
static void
test_a_key_deciphers_and_another_does_not(void **state)
{
	static const char text[] =
		"services:\n"
		"- {name: a, address: 198.51.100.1, protocol: udp, port: 443, table: {size: "
		"7},\n"
		"   affinity: quic, quic: [{config_id: 2, server_id_length: 8, nonce_length: "
		"8,\n"
		"   cid_key: 8f95f09245765f80256934e50c66207f,\n"
		"   first_octet_encodes_cid_length: true}], backends: [\n"
		"   {name: x, address: 10.0.0.1, quic_id: ed793a51d49b8f5f}]}\n";
	static const uint8_t payload[] = {0x40, 0x50, 0x4d, 0xd2, 0xd0, 0x5a, 0x7b, 0x0d, 0xe9,
		0xb2, 0xb9, 0x90, 0x7a, 0xfb, 0x5e, 0xcf, 0x8c, 0xc3};
	struct fixture f;
	struct dp_snapshot *snapshot;

	(void)state;
	read_model(text, &f.model);
	assert_int_equal(ctl_apply_create(&f.apply), 0);
	snapshot = build(&f, NULL);
	assert_int_equal(lb_quic_find(snapshot->services[0].quic, payload, sizeof(payload)), 0);
	dp_snapshot_destroy(snapshot);
	f.model.services[0].quic[0].key[15] ^= 1;
	snapshot = build(&f, NULL);
	assert_int_equal(lb_quic_find(snapshot->services[0].quic, payload, sizeof(payload)),
		LB_QUIC_NONE);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

static void
test_the_plane_is_as_the_model_says(void **state)
{
	static const char text[] = "dataplane:\n"
				   "  flow_entries: 1000\n"
				   "  flow_timeout: {udp: 7s}\n"
				   "  fragments: {datagrams: 65, waiting: 17}\n"
				   "  handoff: 128\n"
				   "  replies: {total: 55, source: 44}\n"
				   "  ports:\n"
				   "    - {name: a, device: d0, mtu: 1400}\n"
				   "    - {name: b, device: d1, mtu: 9000}\n"
				   "    - {name: c, device: d2}\n"
				   "services: []\n"
				   "hash_seed: 99\n";
	static const uint64_t secret[2] = {3, 4};
	struct cfg_model model;
	struct dp_conf conf;

	(void)state;
	read_model(text, &model);
	conf = ctl_apply_dp_conf(&model, 5, secret);
	cfg_model_fini(&model);
	assert_int_equal(conf.n_workers, 5);
	assert_int_equal(conf.flows.n_entries, 1000);
	assert_int_equal(conf.secret[0], 3);
	assert_int_equal(conf.secret[1], 4);
	assert_int_equal(conf.flows.timeout_ns[LB_FLOW_TIMEOUT_UDP], 7000000000);
	assert_int_equal(conf.mtu_max, 9000);
	assert_int_equal(conf.n_datagrams, 65);
	assert_int_equal(conf.n_waiting, 17);
	assert_int_equal(conf.buffer_bytes, RTE_PKTMBUF_HEADROOM + 9216);
	assert_int_equal(conf.n_handoff, 128);
	assert_int_equal(conf.replies_per_s, 55);
	assert_int_equal(conf.replies_per_s_source, 44);
}

static void
test_an_unchanged_service_keeps_its_table(void **state)
{
	struct fixture f;
	struct dp_snapshot *before;
	struct dp_snapshot *after;

	(void)state;
	open_fixture(&f);
	before = build(&f, &f.model.dataplane.ports[0]);
	f.model.services[0].backends[0].weight = 7; /* beside nobody: still another table */
	f.model.services[1].backends[0].address.bytes[15] = 77; /* an address is not identity */
	after = build(&f, &f.model.dataplane.ports[0]);
	assert_ptr_not_equal(before->services[0].table, after->services[0].table);
	assert_ptr_equal(before->services[1].table, after->services[1].table);

	/* The shared table outlives the snapshot that it was built for. */
	dp_snapshot_destroy(before);
	assert_int_equal(after->services[1].table->n_refs, 3); /* apply has two */
	dp_snapshot_destroy(after);
	close_fixture(&f);
}

static void
test_a_change_of_states_builds_no_table(void **state)
{
	struct cfg_backend *backends;
	const struct dp_table *configured;
	struct dp_snapshot *snapshot;
	struct fixture f;

	(void)state;
	open_fixture(&f);
	backends = f.model.services[1].backends;
	snapshot = build(&f, NULL);
	configured = snapshot->services[1].table;
	dp_snapshot_destroy(snapshot);
	backends[0].state = CFG_DRAIN;
	snapshot = build(&f, NULL);
	assert_ptr_not_equal(snapshot->services[1].table, configured);
	assert_ptr_equal(snapshot->services[1].table->base, configured);

	/* To the table it is all the same whether it drains or is down, and what else changes.
	 */
	backends[0].state = CFG_DOWN;
	backends[0].address.bytes[15] = 77;
	f.model.services[1].echo = CFG_ECHO_DROP;
	dp_snapshot_destroy(snapshot);
	snapshot = build(&f, NULL);
	assert_ptr_equal(snapshot->services[1].table->base, configured);
	assert_int_equal(snapshot->services[1].table->n_refs, 2);

	/* All are down: nobody to pick. Then up again: the very table, and no other is left. */
	backends[1].state = CFG_DOWN;
	dp_snapshot_destroy(snapshot);
	snapshot = build(&f, NULL);
	assert_null(snapshot->services[1].picker);
	dp_snapshot_destroy(snapshot);
	backends[0].state = CFG_UP;
	backends[1].state = CFG_UP;
	snapshot = build(&f, NULL);
	assert_ptr_equal(snapshot->services[1].table, configured);
	assert_int_equal(configured->n_refs, 3);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
}

static void
test_an_overload_is_part_of_a_table(void **state)
{
	struct dp_snapshot *before;
	struct dp_snapshot *after;
	struct fixture f;
	uint32_t slots[5];

	(void)state;
	open_fixture(&f);
	f.model.services[1].algorithm = CFG_STABLE;
	before = build(&f, NULL);
	assert_int_equal(ctl_apply_count_slots(f.apply, slots, 5), 0);
	assert_true(slots[3] == 125 || slots[3] == 126); /* to the slot, with none at all */
	f.model.services[1].overload = 1000;
	after = build(&f, NULL);
	assert_ptr_not_equal(before->services[1].table, after->services[1].table);
	assert_int_equal(ctl_apply_count_slots(f.apply, slots, 5), 0);
	assert_int_equal(slots[3] + slots[4], 251);
	assert_false(slots[3] == 125 || slots[3] == 126);
	dp_snapshot_destroy(before);
	dp_snapshot_destroy(after);
	close_fixture(&f);
}

/* One service of N backends, and a table of SLOTS. */
#define N     12
#define SLOTS 251

static void
read_states_model(enum cfg_algorithm algorithm, struct cfg_model *out)
{
	char text[2048];
	size_t n = 0;

	n += (size_t)snprintf(text, sizeof(text),
		"services:\n- {name: w, address: 198.51.100.1, protocol: tcp, port: 80,\n"
		"   table: {algorithm: %s, size: %u}, backends: [",
		cfg_algorithm_words[algorithm], SLOTS);
	for (unsigned int i = 0; i < N; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"%s{name: b%u, address: 10.0.0.1, weight: %u}", i > 0 ? ",\n   " : "",
			i, 50 + i * 10);
	(void)snprintf(text + n, sizeof(text) - n, "]}\n");
	read_model(text, out);
}

/* Whose each slot is, by place; N: nobody's. */
static void
read_owners(struct ctl_apply *apply, const struct cfg_model *model, uint32_t owners[SLOTS])
{
	const struct ctl_paths paths = {.port = NULL};
	struct dp_snapshot *snapshot;

	assert_int_equal(ctl_apply_build(apply, model, &paths, stderr, &snapshot), 0);
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		const struct dp_service *service = &snapshot->services[0];

		owners[slot] = N;
		for (uint32_t i = 0; i < N && service->picker != NULL; i++)
			if (service->ids[lb_picker_backend(service->picker, slot)] ==
				ctl_apply_backend_id(apply, 0, i))
				owners[slot] = i;
	}
	dp_snapshot_destroy(snapshot);
}

/* Counts the slots that moved; those that a change of one backend's state need not move fail.
 */
static void
expect_moves_of_one(const uint32_t before[SLOTS], const uint32_t after[SLOTS], uint32_t one,
	bool was_up, bool is_up)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		const uint32_t mine = was_up ? before[slot] : after[slot];

		if (before[slot] == after[slot])
			continue;
		EXPECT(was_up != is_up && mine == one,
			"backend %u %s, and slot %u went from %u to %u", one,
			is_up ? "is up" : "is not up", slot, before[slot], after[slot]);
	}
}

/*
 * Backends come and go at random: only their own slots move, and a balancer that begins with
 * the same states, or has all up again, has the same table.
 */
static void
expect_no_history(enum cfg_algorithm algorithm, uint64_t *seed)
{
	struct cfg_model model;
	struct ctl_apply *apply;
	uint32_t first[SLOTS], before[SLOTS], after[SLOTS], fresh[SLOTS];

	read_states_model(algorithm, &model);
	assert_int_equal(ctl_apply_create(&apply), 0);
	read_owners(apply, &model, first);
	memcpy(before, first, sizeof(before));
	for (int i = 0; i < 200; i++) {
		const uint32_t one = xrand_below(seed, N);
		struct cfg_backend *backend = &model.services[0].backends[one];
		const bool was_up = backend->state == CFG_UP;
		struct ctl_apply *other;

		backend->state = (enum cfg_state)xrand_below(seed, CFG_N_STATES);
		read_owners(apply, &model, after);
		expect_moves_of_one(before, after, one, was_up, backend->state == CFG_UP);
		assert_int_equal(ctl_apply_create(&other), 0);
		read_owners(other, &model, fresh);
		ctl_apply_destroy(other);
		EXPECT(memcmp(after, fresh, sizeof(after)) == 0, "%s, step %d",
			cfg_algorithm_words[algorithm], i);
		memcpy(before, after, sizeof(before));
	}
	for (uint32_t i = 0; i < N; i++)
		model.services[0].backends[i].state = CFG_UP;
	read_owners(apply, &model, after);
	EXPECT(memcmp(after, first, sizeof(after)) == 0, "%s: all are up again",
		cfg_algorithm_words[algorithm]);
	ctl_apply_destroy(apply);
	cfg_model_fini(&model);
}

static void
test_states_move_only_what_they_must_and_leave_no_trace(void **state)
{
	uint64_t seed = 81;

	(void)state;
	for (int i = 0; i < CFG_N_ALGORITHMS; i++)
		expect_no_history((enum cfg_algorithm)i, &seed);
}

static void
test_a_name_keeps_its_id(void **state)
{
	struct fixture f;
	struct cfg_backend again = {.name = (char[]){"a"}, .weight = 1};
	struct cfg_backend other = {.name = (char[]){"z"}, .weight = 1};

	(void)state;
	open_fixture(&f);
	assert_int_equal(lb_addr_parse("10.0.0.9", &again.address), 0);
	other.address = again.address;
	dp_snapshot_destroy(build(&f, NULL));
	cfg_remove_backend(&f.model.services[0], &f.model.services[0].backends[0]);
	assert_int_equal(cfg_add_backend(&f.model.services[0], &other), 0);
	dp_snapshot_destroy(build(&f, NULL));
	assert_false(ctl_apply_is_live(f.apply, 0));
	assert_int_equal(ctl_apply_n_backends(f.apply), 6);
	assert_string_equal(ctl_apply_backend(f.apply, 5).name, "z");

	assert_int_equal(cfg_add_backend(&f.model.services[0], &again), 0);
	dp_snapshot_destroy(build(&f, NULL));
	assert_true(ctl_apply_is_live(f.apply, 0));
	assert_int_equal(ctl_apply_n_backends(f.apply), 6);
	assert_int_equal(ctl_apply_backend(f.apply, 0).service, 0);
	close_fixture(&f);
}

static void
test_a_failure_changes_nothing(void **state)
{
	const struct ctl_paths nowhere = {0};
	char *text = NULL;
	size_t n = 0;
	FILE *messages = open_memstream(&text, &n);
	struct fixture f;
	struct dp_snapshot *snapshot = NULL;

	(void)state;
	open_fixture(&f);
	dp_snapshot_destroy(build(&f, NULL));
	/* 700 times 160 points a weight of 65535 asks for is more than a ring may have. */
	f.model.services[0].algorithm = CFG_RING;
	for (unsigned int i = 0; i < 200; i++) {
		char name[16];
		struct cfg_backend backend = {.name = name, .weight = 65535};

		(void)snprintf(name, sizeof(name), "n%u", i);
		backend.address = f.model.services[0].backends[0].address;
		assert_int_equal(cfg_add_backend(&f.model.services[0], &backend), 0);
	}
	assert_int_equal(ctl_apply_build(f.apply, &f.model, &nowhere, messages, &snapshot),
		-E2BIG);
	assert_null(snapshot);
	assert_int_equal(fclose(messages), 0);
	EXPECT(strstr(text, "service 'web'") != NULL, "said: %s", text);
	assert_int_equal(ctl_apply_n_backends(f.apply), 5);
	assert_true(ctl_apply_is_live(f.apply, 0));
	free(text);
	close_fixture(&f);
}

static void
test_names_are_numbered_once(void **state)
{
	struct ctl_names *names;
	uint32_t number;

	(void)state;
	assert_int_equal(ctl_names_create(1000, &names), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%u", i / 2);
		assert_int_equal(ctl_names_intern(names, i % 2, name, &number), 0);
		assert_int_equal(number, i);
	}
	assert_int_equal(ctl_names_intern(names, 1, "n123", &number), 0);
	assert_int_equal(number, 247);
	assert_string_equal(ctl_names_text(names, 247), "n123");
	assert_int_equal(ctl_names_parent(names, 247), 1);
	assert_int_equal(ctl_names_intern(names, 2, "n123", &number), -ENOSPC);
	assert_int_equal(ctl_names_count(names), 1000);

	/* Taken back, the numbers are given out again, and the names before are as they were.
	 */
	ctl_names_take_back(names, 200);
	assert_int_equal(ctl_names_count(names), 200);
	assert_int_equal(ctl_names_intern(names, 7, "new", &number), 0);
	assert_int_equal(number, 200);
	for (uint32_t i = 0; i < 200; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%u", i / 2);
		assert_int_equal(ctl_names_intern(names, i % 2, name, &number), 0);
		assert_int_equal(number, i);
	}
	ctl_names_destroy(names);
}

/* Their names become ROUND-0, ROUND-1, ... */
static void
rename_all(struct cfg_service *service, unsigned int round)
{
	for (size_t i = 0; i < service->n_backends; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%u-%zu", round, i);
		free(service->backends[i].name);
		service->backends[i].name = strdup(name);
		assert_non_null(service->backends[i].name);
	}
}

/* The first service alone, with as many backends as it may have. */
static void
fill(struct cfg_model *model)
{
	struct cfg_service *service = &model->services[0];

	while (model->n_services > 1)
		cfg_service_fini(&model->services[--model->n_services]);
	service->n_slots = 65537;
	service->backends_room = LB_SERVICE_BACKENDS_MAX;
	service->backends = realloc(service->backends,
		LB_SERVICE_BACKENDS_MAX * sizeof(*service->backends));
	assert_non_null(service->backends);
	while (service->n_backends < LB_SERVICE_BACKENDS_MAX) {
		service->backends[service->n_backends] = service->backends[0];
		service->backends[service->n_backends++].name = NULL;
	}
}

static int
build_round(struct fixture *f, unsigned int round)
{
	const struct ctl_paths nowhere = {.port = NULL};
	struct dp_snapshot *snapshot;
	int ret;

	rename_all(&f->model.services[0], round);
	ret = ctl_apply_build(f->apply, &f->model, &nowhere, stderr, &snapshot);
	if (ret == 0)
		dp_snapshot_destroy(snapshot);
	return ret;
}

/*
 * All ids are given out, 65535 in each round. Those of the first rounds are free once the
 * longest timeout and a minute are over; those of the last that came into force are not, nor
 * those of one that was built and did not.
 */
static void
test_an_id_goes_to_another_name_when_no_flow_can_have_it(void **state)
{
	const uint64_t rest_ns = UINT64_C(16) * 60 * 1000000000;
	const unsigned int n_rounds = LB_BACKEND_IDS_MAX / LB_SERVICE_BACKENDS_MAX;
	struct fixture f;
	uint32_t id;

	(void)state;
	open_fixture(&f);
	fill(&f.model);
	for (unsigned int round = 0; round < n_rounds; round++) {
		ctl_apply_set_time(f.apply, 1000 + round);
		assert_int_equal(build_round(&f, round), 0);
		/* The last but one comes into force, and the last does not. */
		if (round < n_rounds - 1)
			ctl_apply_published(f.apply);
	}
	/* The first began its rest when the second came into force. */
	ctl_apply_set_time(f.apply, 1000 + rest_ns);
	assert_int_equal(build_round(&f, 100), -E2BIG);
	ctl_apply_set_time(f.apply, 1001 + rest_ns);
	assert_int_equal(build_round(&f, 101), 0);
	/* After the few that were left over. */
	id = ctl_apply_backend_id(f.apply, 0, LB_BACKEND_IDS_MAX % LB_SERVICE_BACKENDS_MAX);
	assert_in_range(id, 0, LB_SERVICE_BACKENDS_MAX - 1);
	assert_string_equal(ctl_apply_backend(f.apply, id).name, "101-16");

	/* Whoever holds them keeps them: the last in force, and those built since. */
	ctl_apply_set_time(f.apply, 1000 + 100 * rest_ns);
	for (unsigned int round = 200; round < 200 + n_rounds - 3; round++)
		assert_int_equal(build_round(&f, round), 0);
	assert_int_equal(build_round(&f, 300), -E2BIG);
	close_fixture(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_say_who_is_picked_and_who_is_kept),
		cmocka_unit_test(test_a_port_says_how_a_backend_is_reached),
		cmocka_unit_test(test_a_backend_leaves_by_the_port_of_its_path),
		cmocka_unit_test(test_a_service_says_what_becomes_of_special_packets),
		cmocka_unit_test(test_a_backend_has_the_tags_of_the_port_it_leaves_by),
		cmocka_unit_test(test_server_ids_name_the_backends_of_their_service),
		cmocka_unit_test(test_a_key_deciphers_and_another_does_not),
		cmocka_unit_test(test_the_plane_is_as_the_model_says),
		cmocka_unit_test(test_an_unchanged_service_keeps_its_table),
		cmocka_unit_test(test_a_change_of_states_builds_no_table),
		cmocka_unit_test(test_an_overload_is_part_of_a_table),
		cmocka_unit_test(test_states_move_only_what_they_must_and_leave_no_trace),
		cmocka_unit_test(test_a_name_keeps_its_id),
		cmocka_unit_test(test_a_failure_changes_nothing),
		cmocka_unit_test(test_names_are_numbered_once),
		cmocka_unit_test(test_an_id_goes_to_another_name_when_no_flow_can_have_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
