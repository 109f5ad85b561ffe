/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "ctl_names.h"
#include "dp_snapshot.h"
#include "expect.h"

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
	assert_memory_equal(&snapshot->backends[0].next_hop, &hop, sizeof(hop));
	assert_memory_equal(&snapshot->backends[3].next_hop, &own, sizeof(own));
	assert_memory_equal(&snapshot->backends[4].next_hop, &hop, sizeof(hop));
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
	assert_memory_equal(&snapshot->backends[1].next_hop, &fixed, sizeof(fixed));
	/* No path at all. */
	assert_false(snapshot->backends[2].has_next_hop);
	assert_int_equal(ctl_apply_n_unreached(f.apply), 2);
	dp_snapshot_destroy(snapshot);
	close_fixture(&f);
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
	assert_int_equal(after->services[1].table->n_refs, 2);
	dp_snapshot_destroy(after);
	close_fixture(&f);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_say_who_is_picked_and_who_is_kept),
		cmocka_unit_test(test_a_port_says_how_a_backend_is_reached),
		cmocka_unit_test(test_a_backend_leaves_by_the_port_of_its_path),
		cmocka_unit_test(test_an_unchanged_service_keeps_its_table),
		cmocka_unit_test(test_a_name_keeps_its_id),
		cmocka_unit_test(test_a_failure_changes_nothing),
		cmocka_unit_test(test_names_are_numbered_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
