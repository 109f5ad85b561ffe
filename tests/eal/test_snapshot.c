/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "dp_snapshot.h"
#include "expect.h"
#include "lb_compiler.h"
#include "xrand.h"

#define IDS_MAX 200u

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_snapshot", 1);
}

/* Of backends whose ids are below n; a character each: '.' nobody's, 'd' dead, 'l' live. */
static struct dp_snapshot *
make_snapshot(const char *ids, size_t n)
{
	static const uint32_t first = 0;
	const struct dp_table_conf table_conf = {.picker = {.algorithm = LB_MAGLEV,
							 .n_slots = 7},
		.ids = &first};
	struct dp_service_conf service = {.match = {.port = 443}};
	struct dp_backend_conf backends[IDS_MAX];
	struct dp_snapshot_conf conf = {.services = &service,
		.n_services = 1,
		.backends = backends};
	struct dp_snapshot *snapshot;

	for (size_t id = 0; id < n; id++) {
		struct dp_backend_conf *backend = &backends[conf.n_backends];

		if (ids[id] == '.')
			continue;
		*backend = (struct dp_backend_conf){.id = (uint32_t)id,
			.is_live = ids[id] == 'l',
			.mtu = 1500,
			.encap = {.mode = LB_FORWARD_IPIP}};
		assert_int_equal(lb_addr_parse("192.0.2.1", &backend->encap.src), 0);
		assert_int_equal(lb_addr_parse("10.0.0.1", &backend->encap.dst), 0);
		conf.n_backends++;
	}
	assert_int_equal(lb_prefix_parse("198.51.100.10", &service.match.prefix), 0);
	assert_int_equal(dp_table_create(&table_conf, &service.table), 0);
	assert_int_equal(dp_snapshot_create(&conf, &snapshot), 0);
	dp_table_release(service.table);
	return snapshot;
}

static bool
has_lost(const char *before, size_t n_before, const char *after, size_t n_after)
{
	struct dp_snapshot *one = make_snapshot(before, n_before);
	struct dp_snapshot *next = make_snapshot(after, n_after);
	const bool result = dp_snapshot_has_lost(one, next);

	dp_snapshot_destroy(one);
	dp_snapshot_destroy(next);
	return result;
}

static void
test_a_backend_is_lost_where_it_is_live_no_longer(void **state)
{
	static const struct {
		const char *what;
		const char *before;
		const char *after;
		bool want;
	} rows[] = {
		{"nobody was there", "", "l", false},
		{"nobody is there", "l", "", true},
		{"all stay", "ll", "ll", false},
		{"one dies", "ll", "ld", true},
		{"one goes", "lll", "l.l", true},
		{"the last one goes", "ll", "l", true},
		{"one that was dead goes", "ld", "l", false},
		{"one that was dead lives", "ld", "ll", false},
		{"one comes, another goes", "l.", ".l", true},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(has_lost(rows[i].before, strlen(rows[i].before), rows[i].after,
			       strlen(rows[i].after)) == rows[i].want,
			"%s", rows[i].what);
}

/* In sets of any size, one of them is the only one that dies, or that goes. */
static void
test_whichever_it_is_its_loss_is_seen(void **state)
{
	char before[IDS_MAX];
	char after[IDS_MAX];
	uint64_t seed = 1;

	(void)state;
	for (size_t n = 1; n <= IDS_MAX; n++) {
		const size_t gone = xrand_below(&seed, (uint32_t)n);

		for (size_t id = 0; id < n; id++) {
			before[id] = ".dl"[xrand_below(&seed, 3)];
			after[id] = before[id] == 'l' ? 'l' : ".dl"[xrand_below(&seed, 3)];
		}
		EXPECT(!has_lost(before, n, after, n), "none of %zu", n);
		before[gone] = 'l';
		after[gone] = ".d"[xrand_below(&seed, 2)];
		EXPECT(has_lost(before, n, after, n), "%zu of %zu", gone, n);
		EXPECT(has_lost(before, n, before, gone), "%zu of %zu and all after it", gone,
			n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_backend_is_lost_where_it_is_live_no_longer),
		cmocka_unit_test(test_whichever_it_is_its_loss_is_seen),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
