/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <stdbool.h>
#include <stdlib.h>

#include "replay_flows.h"

#define S UINT64_C(1000000000)

static const uint64_t timeouts[LB_FLOW_N_TIMEOUTS] = {10 * S, 900 * S, 30 * S, 60 * S};

/* Backends below 10 are up. */
static bool
is_up(const void *context, uint32_t backend)
{
	(void)context;
	return backend < 10;
}

struct step {
	uint64_t at_s;
	int event; /* enum lb_flow_event; -1 an ICMP error */
	bool is_new_flow;
	bool is_dropped; /* after its backend was chosen */
	uint32_t backend;
};

static const struct {
	const char *name;
	struct step steps[5];
	size_t n_steps;
	uint64_t moved;
	uint64_t broken;
} rows[] = {
	{"one backend all along",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, LB_FLOW_SEGMENT, false, false, 1}}, 2, 0,
		0},
	{"off a backend that is gone",
		{{0, LB_FLOW_SYN, true, false, 11}, {1, LB_FLOW_SEGMENT, false, false, 2}}, 2,
		1, 0},
	{"off a backend that is up",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, LB_FLOW_SEGMENT, false, false, 2}}, 2, 1,
		1},
	{"a flow that the table forgot, and the auditor did not",
		{{0, LB_FLOW_DATAGRAM, true, false, 1}, {1, LB_FLOW_DATAGRAM, true, false, 2}},
		2, 1, 1},
	{"moved twice is moved once",
		{{0, LB_FLOW_SYN, true, false, 11}, {1, LB_FLOW_SEGMENT, false, false, 12},
			{2, LB_FLOW_SEGMENT, false, false, 2}},
		3, 1, 0},
	{"the same ports again are another flow",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, LB_FLOW_SYN, true, false, 2}}, 2, 0, 0},
	{"silent for too long, and another flow",
		{{0, LB_FLOW_SYN, true, false, 1}, {11, LB_FLOW_SEGMENT, true, false, 2}}, 2, 0,
		0},
	{"a packet that was dropped moves nothing",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, LB_FLOW_SEGMENT, false, true, 2}}, 2, 0,
		0},
	{"a packet that was dropped keeps its flow alive",
		{{0, LB_FLOW_SYN, true, false, 11}, {1, LB_FLOW_SEGMENT, false, true, 11},
			{25, LB_FLOW_SEGMENT, false, false, 2}},
		3, 1, 0},
	{"a FIN that was dropped closes its flow",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, LB_FLOW_SEGMENT, false, false, 1},
			{2, LB_FLOW_CLOSE, false, true, 1},
			{60, LB_FLOW_SEGMENT, true, false, 2}},
		4, 0, 0},
	{"a SYN that was dropped begins a flow",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, LB_FLOW_SEGMENT, false, false, 1},
			{20, LB_FLOW_SYN, true, true, 2},
			{21, LB_FLOW_SEGMENT, false, false, 2}},
		4, 0, 0},
	{"an ICMP error that went elsewhere",
		{{0, LB_FLOW_SYN, true, false, 1}, {1, -1, false, false, 2}}, 2, 1, 1},
	{"an ICMP error about no flow", {{0, -1, false, false, 2}}, 1, 0, 0},
};

static void
see(struct replay_flows *flows, const struct step *step, uint64_t id)
{
	const struct dp_decision d = {
		.hash = {.print = id * 0x9e3779b97f4a7c15u, .place = id * 0xd1b54a32d192ed03u},
		.backend = step->backend,
		.event = step->event < 0 ? DP_NO_EVENT : (uint8_t)step->event,
		.is_new_flow = step->is_new_flow,
		.verdict = step->is_dropped ? LB_DROP_TOO_BIG : LB_FORWARD,
	};

	replay_flows_see(flows, &d, step->at_s * S);
}

static void
test_moved_and_broken_are_what_a_user_means(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct replay_flows *flows;

		assert_int_equal(replay_flows_create(timeouts, is_up, NULL, &flows), 0);
		for (size_t k = 0; k < rows[i].n_steps; k++)
			see(flows, &rows[i].steps[k], 1);
		EXPECT(replay_flows_moved(flows) == rows[i].moved &&
				replay_flows_broken(flows) == rows[i].broken,
			"%s: moved %u, broken %u", rows[i].name,
			(unsigned int)replay_flows_moved(flows),
			(unsigned int)replay_flows_broken(flows));
		assert_int_equal(replay_flows_forgotten(flows), 0);
		replay_flows_destroy(flows);
	}
}

static void
test_what_is_given_up_is_counted(void **state)
{
	const struct step step = {0, LB_FLOW_DATAGRAM, true, false, 1};
	struct replay_flows *flows;
	uint64_t id = 0;

	(void)state;
	assert_int_equal(replay_flows_create(timeouts, is_up, NULL, &flows), 0);
	while (id < REPLAY_FLOWS_MAX / 2)
		see(flows, &step, ++id);
	assert_int_equal(replay_flows_forgotten(flows), 0);
	while (id < REPLAY_FLOWS_MAX + 1000)
		see(flows, &step, ++id);
	EXPECT(replay_flows_forgotten(flows) >= 1000, "only %u were given up",
		(unsigned int)replay_flows_forgotten(flows));
	replay_flows_destroy(flows);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved_and_broken_are_what_a_user_means),
		cmocka_unit_test(test_what_is_given_up_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
