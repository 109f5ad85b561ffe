/* SPDX-License-Identifier: BSD-3-Clause */

/* Services whose backends have the same names and weights have one table's slots. */
#include <string.h>

#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "dp_snapshot.h"
#include "expect.h"

static const char config[] =
	"dataplane:\n"
	"  ports: [{name: wan, device: net_null0, next_hop: '02:00:00:00:00:fe',\n"
	"           addresses: [192.0.2.1/24]}]\n"
	"services:\n"
	"  - {name: web, address: 198.51.100.1, protocol: tcp, port: 80, table: {size: 251},\n"
	"     backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]}\n"
	"  - {name: tls, address: 198.51.100.1, protocol: tcp, port: 443, table: {size: 251},\n"
	"     backends: [{name: a, address: 10.0.1.1}, {name: b, address: 10.0.1.2}]}\n"
	"  - {name: dns, address: 198.51.100.2, protocol: udp, port: 53, table: {size: 251},\n"
	"     backends: [{name: a, address: 10.0.2.1}, {name: b, address: 10.0.2.2}]}\n";

enum { WEB, TLS, DNS };

struct fixture {
	struct cfg_model model;
	struct ctl_apply *apply;
	struct dp_snapshot *snapshot;
};

static void
open_fixture(struct fixture *f)
{
	assert_int_equal(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				 &f->model),
		0);
	assert_int_equal(ctl_apply_create(&f->apply), 0);
	f->snapshot = NULL;
}

static void
close_fixture(struct fixture *f)
{
	dp_snapshot_destroy(f->snapshot);
	ctl_apply_destroy(f->apply);
	cfg_model_fini(&f->model);
}

static const struct dp_service *
build(struct fixture *f)
{
	const struct ctl_paths paths = {.port = &f->model.dataplane.ports[0]};

	dp_snapshot_destroy(f->snapshot);
	assert_int_equal(ctl_apply_build(f->apply, &f->model, &paths, stderr, &f->snapshot), 0);
	return f->snapshot->services;
}

static void
test_the_same_backends_have_the_same_slots_once(void **state)
{
	const struct dp_service *services;
	struct fixture f;

	(void)state;
	open_fixture(&f);
	services = build(&f);
	assert_ptr_equal(services[TLS].picker, services[WEB].picker);
	assert_ptr_equal(services[DNS].picker, services[WEB].picker);
	/* Whom a slot names is each service's own. */
	for (uint32_t s = WEB; s <= DNS; s++)
		for (uint32_t b = 0; b < 2; b++)
			assert_int_equal(services[s].ids[b],
				ctl_apply_backend_id(f.apply, s, b));
	assert_int_not_equal(services[WEB].ids[0], services[TLS].ids[0]);
	close_fixture(&f);
}

static void
test_what_a_table_is_made_from_sets_services_apart(void **state)
{
	static const struct row {
		const char *name;
		uint32_t weight;
		uint32_t n_slots;
		enum cfg_algorithm algorithm;
		size_t n_backends;
		const char *first;
	} rows[] = {
		{"a weight", 99, 251, CFG_MAGLEV, 2, "a"},
		{"a size", 100, 257, CFG_MAGLEV, 2, "a"},
		{"an algorithm", 100, 251, CFG_RING, 2, "a"},
		{"a number of backends", 100, 251, CFG_MAGLEV, 1, "a"},
		{"a name", 100, 251, CFG_MAGLEV, 2, "c"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct dp_service *services;
		struct cfg_service *tls;
		struct fixture f;

		open_fixture(&f);
		tls = &f.model.services[TLS];
		tls->backends[0].weight = (uint16_t)rows[i].weight;
		memcpy(tls->backends[0].name, rows[i].first, 1);
		tls->n_slots = rows[i].n_slots;
		tls->algorithm = rows[i].algorithm;
		tls->n_backends = rows[i].n_backends;
		services = build(&f);
		EXPECT(services[TLS].picker != services[WEB].picker, "%s", rows[i].name);
		EXPECT(services[DNS].picker == services[WEB].picker, "%s", rows[i].name);
		tls->n_backends = 2;
		close_fixture(&f);
	}
}

static void
test_backends_that_are_down_everywhere_cost_one_table(void **state)
{
	const struct lb_picker *configured;
	const struct dp_service *services;
	struct fixture f;

	(void)state;
	open_fixture(&f);
	configured = build(&f)[WEB].picker;
	for (uint32_t s = WEB; s <= DNS; s++)
		f.model.services[s].backends[s == DNS].state = CFG_DOWN;
	services = build(&f);
	assert_ptr_not_equal(services[WEB].picker, configured);
	assert_ptr_equal(services[TLS].picker, services[WEB].picker);
	assert_ptr_not_equal(services[DNS].picker, configured);
	assert_ptr_not_equal(services[DNS].picker, services[WEB].picker);

	/* Nobody is left, here and there. */
	f.model.services[WEB].backends[1].state = CFG_DOWN;
	f.model.services[TLS].backends[1].state = CFG_DOWN;
	services = build(&f);
	assert_null(services[WEB].picker);
	assert_null(services[TLS].picker);

	/* All come back: it is the table that there was. */
	for (uint32_t s = WEB; s <= DNS; s++)
		for (uint32_t b = 0; b < 2; b++)
			f.model.services[s].backends[b].state = CFG_UP;
	services = build(&f);
	for (uint32_t s = WEB; s <= DNS; s++)
		assert_ptr_equal(services[s].picker, configured);
	close_fixture(&f);
}

static void
test_a_shared_table_outlives_the_service_that_it_was_built_for(void **state)
{
	const struct dp_service *services;
	struct cfg_service first;
	struct fixture f;
	uint32_t slot;
	uint32_t id;

	(void)state;
	open_fixture(&f);
	(void)build(&f);
	first = f.model.services[WEB];
	memmove(&f.model.services[0], &f.model.services[1], 2 * sizeof(first));
	f.model.n_services = 2;
	services = build(&f);
	assert_ptr_equal(services[0].picker, services[1].picker);
	assert_true(dp_table_pick(services[0].table, 0, &slot, &id));
	assert_true(id == services[0].ids[0] || id == services[0].ids[1]);
	/* Once more, with nothing left of the first; what copies a copy holds no chain of them.
	 */
	f.model.services[1].backends[0].weight = 99;
	(void)build(&f);
	f.model.services[1].backends[0].weight = 100;
	services = build(&f);
	assert_ptr_equal(services[1].picker, services[0].picker);
	assert_non_null(services[1].table->base->picker_mem);
	assert_true(dp_table_pick(services[1].table, UINT64_MAX, &slot, &id));
	assert_int_equal(slot, 250);
	f.model.n_services = 3;
	f.model.services[2] = first;
	close_fixture(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_backends_have_the_same_slots_once),
		cmocka_unit_test(test_what_a_table_is_made_from_sets_services_apart),
		cmocka_unit_test(test_backends_that_are_down_everywhere_cost_one_table),
		cmocka_unit_test(
			test_a_shared_table_outlives_the_service_that_it_was_built_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
