/* SPDX-License-Identifier: BSD-3-Clause */

/* What the builder tells of jobs, when control takes it late. */
#include "ctl_builder.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfg_yaml.h"
#include "dp_plane.h"
#include "expect.h"

#define WAIT_MS 60000
#define S       UINT64_C(1000000000)

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_builder", 8);
}

/* A model that can be built, or whose table is too small for its backends. */
static void
submit(struct ctl_builder *builder, uint64_t generation, bool is_good)
{
	static const char text[] =
		"services:\n"
		"  - {name: s, address: 198.51.100.1, protocol: tcp, port: 80,\n"
		"     table: {algorithm: maglev, size: 11}, backends: [\n"
		"     {name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2},\n"
		"     {name: c, address: 10.0.0.3}, {name: d, address: 10.0.0.4},\n"
		"     {name: e, address: 10.0.0.5}, {name: f, address: 10.0.0.6},\n"
		"     {name: g, address: 10.0.0.7}, {name: h, address: 10.0.0.8}]}\n";
	struct ctl_job job = {.generation = generation};

	assert_int_equal(cfg_read_text_model("f", text, strlen(text), stderr, &job.model), 0);
	if (!is_good)
		job.model.services[0].n_slots = 7;
	ctl_builder_submit(builder, &job);
}

/* Until one more outcome is there, which is left there. */
static void
wait_for_outcome(struct ctl_builder *builder)
{
	struct pollfd fd = {.fd = ctl_builder_fd(builder), .events = POLLIN};
	uint64_t n = 0;

	assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
	assert_int_equal(read(fd.fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 1);
}

/* "+": it can be built; "-": it cannot. What is then to be taken, as the number of each job. */
static const struct {
	const char *what;
	const char *jobs;
	const char *outcomes;
} rows[] = {
	{"the last says all", "+++", "+3"},
	{"a failure does not hide what is in force", "+-", "+1-2"},
	{"nor do several", "++--", "+2-4"},
	{"after failures alone nothing is in force", "--", "-2"},
	{"what works in the end says all", "+-+", "+3"},
	{"and again", "+-+-", "+3-4"},
};

static void
test_what_waits_to_be_taken(void **state)
{
	const struct dp_conf conf = {
		.n_workers = 1,
		.flows = {.n_entries = 1, .timeout_ns = {900 * S, 900 * S, 900 * S, 900 * S}},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ctl_builder *builder;
		struct ctl_built built;
		char got[64] = "";
		struct dp *dp;

		assert_int_equal(dp_create(&conf, dp_now_ns(), &dp), 0);
		assert_int_equal(ctl_builder_create(dp, &builder), 0);
		assert_false(ctl_builder_is_busy(builder));
		for (size_t k = 0; rows[i].jobs[k] != '\0'; k++) {
			submit(builder, k + 1, rows[i].jobs[k] == '+');
			assert_true(ctl_builder_is_busy(builder));
			wait_for_outcome(builder);
			assert_true(ctl_builder_is_busy(builder));
		}
		while (ctl_builder_take(builder, &built)) {
			const size_t n = strlen(got);

			(void)snprintf(got + n, sizeof(got) - n, "%c%u",
				built.view != NULL ? '+' : '-', (unsigned int)built.generation);
			assert_int_equal(built.view == NULL, built.message[0] != '\0');
			ctl_view_release(built.view);
			free(built.message);
		}
		assert_false(ctl_builder_is_busy(builder));
		EXPECT(strcmp(got, rows[i].outcomes) == 0, "%s: %s", rows[i].what, got);
		ctl_builder_destroy(builder);
		dp_destroy(dp);
	}
}

/* What nobody takes is freed with the builder: that is for the leak sanitizer. */
static void
test_what_is_not_taken_is_freed(void **state)
{
	const struct dp_conf conf = {
		.n_workers = 1,
		.flows = {.n_entries = 1, .timeout_ns = {900 * S, 900 * S, 900 * S, 900 * S}},
	};
	struct ctl_builder *builder;
	struct dp *dp;

	(void)state;
	assert_int_equal(dp_create(&conf, dp_now_ns(), &dp), 0);
	assert_int_equal(ctl_builder_create(dp, &builder), 0);
	submit(builder, 1, true);
	wait_for_outcome(builder);
	submit(builder, 2, false);
	wait_for_outcome(builder);
	submit(builder, 3, true);
	ctl_builder_destroy(builder);
	dp_destroy(dp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_waits_to_be_taken),
		cmocka_unit_test(test_what_is_not_taken_is_freed),
	};

	return cmocka_run_group_tests_name("builder", tests, start, NULL);
}
