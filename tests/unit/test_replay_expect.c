/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "replay_expect.h"
#include "xrand.h"

static uint64_t phase_packets[] = {7, 8};

static struct replay_report_backend backends[] = {
	{"web-1", "up", 60, 6000, 6, 40000, phase_packets, phase_packets},
	{"web.2", "drain", 30, 3000, 3, 20000, phase_packets, phase_packets},
	{"web", "up", 10, 1000, 1, 5537, phase_packets, phase_packets},
};

static struct replay_report_service services[] = {
	{"web", "maglev", 65537, 100, 10000, 10, backends, 3, false},
	{"a.b.packets", "ring", 7, 0, 0, 0, backends, 1, false},
	{"empty", "ring", 7, 5, 0, 0, NULL, 0, false},
};

static struct replay_report_phase phases[] = {{"start", 1}, {"remove web/web.2", 51}};

static const struct replay_report report = {
	.verdicts = {[LB_FORWARD] = 100, [LB_DROP_TRUNCATED] = 3},
	.services = services,
	.n_services = 3,
	.phases = phases,
	.n_phases = 2,
	.flows = 10,
	.moved = 4,
	.broken = 3,
	.seconds = 0.5,
};

static const struct replay_decision decisions[] = {
	{1, LB_FORWARD, "web", "web-1", "miss", 4711},
	{2, LB_FORWARD, "web", "web-1", "hit", 0},
	{3, LB_DROP_TRUNCATED, NULL, NULL, "none", -1},
	{4, LB_TO_KERNEL, NULL, NULL, "none", -1},
	{5, LB_DROP_NO_BACKEND, "web", NULL, "none", -1},
};

/* On the heap at their exact length: ASan sees a byte too many. */
static char *
copy_bytes(const char *bytes, size_t n_bytes)
{
	char *copy = malloc(n_bytes == 0 ? 1 : n_bytes);

	assert_non_null(copy);
	memcpy(copy, bytes, n_bytes);
	return copy;
}

static int
parse(const char *text, FILE *messages, struct replay_expect **out)
{
	const size_t n_bytes = strlen(text);
	char *copy = copy_bytes(text, n_bytes);
	int ret;

	ret = replay_expect_parse(copy, n_bytes, "x.yaml", messages, out);
	free(copy);
	return ret;
}

static const struct {
	const char *name;
	const char *text;
	const char *want;
} mistakes[] = {
	{"a mapping", "value: flows.total\n",
		"x.yaml:1:1: expectations: expected a list, with an item such as - {value: "
		"flows.broken, max: 0} for each, found a mapping\n"},
	{"nothing that is expected", "- {is: 1}\n",
		"x.yaml:1:3: an expectation of nothing; write one of value, share, drops or "
		"packet\n"},
	{"an empty item", "- {}\n",
		"x.yaml:1:3: an expectation of nothing; write one of value, share, drops or "
		"packet\n"},
	{"two things", "- {value: flows.total, packet: 1, is: 1}\n",
		"x.yaml:1:3: two expectations in one item; write one of value, share, drops or "
		"packet\n"},
	{"a misspelt subject", "- {vaule: flows.total, is: 1}\n",
		"x.yaml:1:4: unknown key 'vaule'; did you mean 'value'?\n"},
	{"a misspelt condition", "- {value: flows.total, maxi: 1}\n",
		"x.yaml:1:24: unknown key 'maxi'; did you mean 'max'?\n"},
	{"no condition for a value", "- {value: flows.total}\n",
		"x.yaml:1:3: value: without a condition; write is: N, or min: N and max: N, or "
		"one "
		"of them\n"},
	{"no condition for a share", "- {share: web/web-1}\n",
		"x.yaml:1:3: share: without a condition; write is: N, or min: N and max: N, or "
		"one "
		"of them\n"},
	{"no condition for drops", "- {drops: truncated}\n",
		"x.yaml:1:3: drops: without a condition; write is: N, or min: N and max: N, or "
		"one "
		"of them\n"},
	{"no condition for a packet", "- {packet: 1}\n",
		"x.yaml:1:3: packet: without a condition; write any of verdict, service, "
		"backend, "
		"flow, slot and reason\n"},
	{"is beside max", "- {value: flows.total, is: 1, max: 2}\n",
		"x.yaml:1:3: is: beside min: or max:; write one or the other\n"},
	{"an empty range", "- {value: flows.total, min: 3, max: 2}\n",
		"x.yaml:1:3: min: is above max:; nothing lies between them\n"},
	{"a condition that is no number", "- {value: flows.total, max: many}\n",
		"x.yaml:1:29: max: expected a decimal number such as 0.5, found the value "
		"'many'\n"},
	{"a share in percent", "- {share: web/web-1, min: 45}\n",
		"x.yaml:1:3: share: a share is a number from 0 to 1; write 0.5 for a half\n"},
	{"a share of a service", "- {share: web, min: 0.1}\n",
		"x.yaml:1:11: share: expected SERVICE/NAME such as web/web-1, found the value "
		"'web'\n"},
	{"an unknown reason", "- {drops: trunkated, is: 1}\n",
		"x.yaml:1:11: drops: expected truncated, bad_ip_version, bad_header_length, "
		"bad_total_length, bad_checksum, ttl_expired, unknown_extension_header, "
		"fragment_unmatched, no_backend, no_next_hop, too_big, unsupported_l4, "
		"vlan_depth, "
		"no_service, tx_full, no_memory, snaplen, handoff_full, port_down, "
		"kernel_down, fragment_bad, fragment_overlap, fragment_excess, martian_source, "
		"echo_refused, rate_limited, link_multicast, martian_destination or "
		"source_route, "
		"found the value "
		"'trunkated'; did "
		"you "
		"mean truncated?\n"},
	{"an anchor and aliases hide nothing",
		"- {value: &a flows.total, is: *a}\n- {share: *a, min: 0}\n- *a\n"
		"- {packet: *a, verdict: *a, backend: *a, slot: x}\n",
		"x.yaml:1:11: anchors (&a) are not taken; write the value out where it is "
		"used\n"
		"x.yaml:1:31: aliases (*a) are not taken; write the value out\n"
		"x.yaml:2:11: aliases (*a) are not taken; write the value out\n"
		"x.yaml:3:3: aliases (*a) are not taken; write the value out\n"
		"x.yaml:4:12: aliases (*a) are not taken; write the value out\n"
		"x.yaml:4:25: aliases (*a) are not taken; write the value out\n"
		"x.yaml:4:38: aliases (*a) are not taken; write the value out\n"
		"x.yaml:4:48: slot: expected a whole number from 0 to 16777212, found the "
		"value "
		"'x'\n"},
	{"packet 0", "- {packet: 0, verdict: drop}\n",
		"x.yaml:1:12: packet: expected a whole number from 1 to 18446744073709551615, "
		"found "
		"the value '0'\n"},
	{"an unknown verdict", "- {packet: 1, verdict: forwarded}\n",
		"x.yaml:1:24: verdict: expected forward, reply, kernel or drop, found the "
		"value "
		"'forwarded'; did you mean forward?\n"},
	{"a verdict of null", "- {packet: 1, verdict: null}\n",
		"x.yaml:1:24: verdict: expected forward, reply, kernel or drop, found "
		"nothing\n"},
	{"an unknown flow", "- {packet: 1, flow: lost}\n",
		"x.yaml:1:21: flow: expected hit, miss or none, found the value 'lost'\n"},
	{"a slot that is no number", "- {packet: 1, slot: x}\n",
		"x.yaml:1:21: slot: expected a whole number from 0 to 16777212, found the "
		"value "
		"'x'\n"},
	{"a backend of two strokes", "- {packet: 1, backend: a/b/c}\n",
		"x.yaml:1:24: backend: expected NAME or SERVICE/NAME such as web/web-1, found "
		"the "
		"value 'a/b/c'\n"},
	{"a path with a dot at its end", "- {value: flows., is: 1}\n",
		"x.yaml:1:11: value: expected the path of a number of the report such as "
		"flows.broken, found the value 'flows.'\n"},
	{"all mistakes are told", "- {packet: 1}\n- {value: flows.total}\n- 3\n",
		"x.yaml:1:3: packet: without a condition; write any of verdict, service, "
		"backend, "
		"flow, slot and reason\n"
		"x.yaml:2:3: value: without a condition; write is: N, or min: N and max: N, or "
		"one "
		"of them\n"
		"x.yaml:3:3: expected a mapping with the keys value, share, drops, packet, is, "
		"min, "
		"max, verdict, service, backend, flow, slot and reason, found the value '3'\n"},
};

static void
test_mistakes_are_told_with_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(mistakes); i++) {
		struct replay_expect *expect = NULL;
		char *got = NULL;
		size_t n;
		FILE *to = open_memstream(&got, &n);
		const int ret = parse(mistakes[i].text, to, &expect);

		assert_int_equal(fclose(to), 0);
		EXPECT(ret == -EINVAL, "%s: returned %d", mistakes[i].name, ret);
		EXPECT(strcmp(got, mistakes[i].want) == 0, "%s:\ngot  %swant %s",
			mistakes[i].name, got, mistakes[i].want);
		free(got);
	}
}

static const struct {
	const char *name;
	const char *text;
	const char *want; /* what did not hold; "" where all does */
} rows[] = {
	{"an empty file expects nothing", "", ""},
	{"an empty list expects nothing", "[]\n", ""},
	{"a value that holds", "- {value: flows.broken, is: 3}\n", ""},
	{"a value at its limits", "- {value: flows.broken, min: 3, max: 3}\n", ""},
	{"a value above", "- {value: flows.broken, max: 0}\n",
		"x.yaml:1: expected flows.broken at most 0, found 3\n"},
	{"a value below", "- {value: flows.broken, min: 4}\n",
		"x.yaml:1: expected flows.broken at least 4, found 3\n"},
	{"a value outside", "- {value: flows.broken, min: 5, max: 9}\n",
		"x.yaml:1: expected flows.broken at least 5 and at most 9, found 3\n"},
	{"a value that is another", "- {value: packets.received, is: 104}\n",
		"x.yaml:1: expected packets.received to be 104, found 103\n"},
	{"a fraction as the limit of a whole number",
		"- {value: flows.broken, max: 2.5}\n- {value: flows.broken, min: 2.5}\n",
		"x.yaml:1: expected flows.broken at most 2.5, found 3\n"},
	{"a negative limit", "- {value: flows.broken, max: -1}\n",
		"x.yaml:1: expected flows.broken at most -1, found 3\n"},
	{"a rate", "- {value: rate.seconds, is: 0.5}\n- {value: rate.mpps, min: 1}\n",
		"x.yaml:2: expected rate.mpps at least 1, found 0.000206\n"},
	{"items by their names",
		"- {value: services.web.packets, is: 100}\n"
		"- {value: services.web.backends.web-1.slots, is: 40000}\n"
		"- {value: services.web.table.size, is: 65537}\n"
		"- {value: drops.truncated, is: 3}\n"
		"- {value: drops.snaplen, is: 0}\n"
		"- {value: schema, is: 1}\n"
		"- {value: phases.start.first_packet, is: 1}\n"
		"- {value: phases.remove web/web.2.services.web.backends.web.2.packets, is: "
		"8}\n",
		""},
	{"names with dots, and a name that begins another",
		"- {value: services.web.backends.web.2.packets, is: 30}\n"
		"- {value: services.web.backends.web.packets, is: 10}\n"
		"- {value: services.a.b.packets.packets, is: 0}\n"
		"- {value: services.a.b.packets.backends.web-1.flows, is: 6}\n",
		""},
	{"a name that is not there", "- {value: flows.brokn, max: 0}\n",
		"x.yaml:1: expected flows.brokn at most 0, but the report has no 'brokn' in "
		"flows; "
		"the nearest is 'broken'\n"},
	{"a first name that is not there", "- {value: flow.broken, max: 0}\n",
		"x.yaml:1: expected flow.broken at most 0, but the report has no 'flow'; the "
		"nearest is 'flows'\n"},
	{"a backend that is not there",
		"- {value: services.web.backends.web-11.slots, is: 1}\n",
		"x.yaml:1: expected services.web.backends.web-11.slots to be 1, but the report "
		"has "
		"no 'web-11' in services.web.backends; the nearest is 'web-1'\n"},
	{"a backend where there is none", "- {value: services.empty.backends.x.slots, is: 1}\n",
		"x.yaml:1: expected services.empty.backends.x.slots to be 1, but the report "
		"has no "
		"'x' in services.empty.backends, nor any other\n"},
	{"a path that ends too early", "- {value: flows, is: 1}\n",
		"x.yaml:1: expected flows to be 1, but flows is no number\n"},
	{"a path to a word", "- {value: services.web.backends.web-1.state, is: 1}\n",
		"x.yaml:1: expected services.web.backends.web-1.state to be 1, but "
		"services.web.backends.web-1.state is no number\n"},
	{"a path that goes on after a number", "- {value: flows.total.x, is: 1}\n",
		"x.yaml:1: expected flows.total.x to be 1, but there is nothing in "
		"flows.total\n"},
	{"shares that hold",
		"- {share: web/web-1, is: 0.6}\n- {share: web/web.2, min: 0.3, max: 0.3}\n",
		""},
	{"a share outside", "- {share: web/web-1, min: 0.45, max: 0.55}\n",
		"x.yaml:1: expected the share of web/web-1 at least 0.45 and at most 0.55, "
		"found "
		"0.6 (6 of 10 flows)\n"},
	{"a share of a service without flows", "- {share: a.b.packets/web-1, min: 0}\n",
		"x.yaml:1: expected the share of a.b.packets/web-1 at least 0, but service "
		"'a.b.packets' had no new flows\n"},
	{"a share of an unknown service", "- {share: wep/web-1, min: 0}\n",
		"x.yaml:1: expected the share of wep/web-1 at least 0, but the report has no "
		"service 'wep'; the nearest is 'web'\n"},
	{"a share of an unknown backend", "- {share: web/web-2, min: 0}\n",
		"x.yaml:1: expected the share of web/web-2 at least 0, but service 'web' has "
		"no "
		"backend 'web-2'; the nearest is 'web-1'\n"},
	{"drops that hold", "- {drops: truncated, is: 3}\n- {drops: snaplen, max: 0}\n", ""},
	{"drops that do not", "# two\n- {drops: truncated, is: 2}\n",
		"x.yaml:2: expected drops.truncated to be 2, found 3\n"},
	{"packets that hold",
		"- {packet: 5, verdict: drop, reason: no_backend, backend: null, service: "
		"web}\n"
		"- {packet: 1, verdict: forward, service: web, backend: web-1, flow: miss, "
		"slot: "
		"4711, reason: null}\n"
		"- {packet: 1, backend: web/web-1}\n"
		"- {packet: 2, flow: hit, slot: 0, reason: ~}\n"
		"- {packet: 3, verdict: drop, reason: truncated, slot: null, flow: none, "
		"service: "
		"~, backend: ~}\n"
		"- {packet: 4, verdict: kernel}\n",
		""},
	{"packets that do not, in file order",
		"- {packet: 3, verdict: forward, backend: web-1}\n"
		"- {packet: 1, verdict: forward, backend: web-2, slot: 4712}\n"
		"- {packet: 1, backend: dns/web-1}\n"
		"- {packet: 2, backend: null, slot: null}\n"
		"- {packet: 5, reason: snaplen}\n"
		"- {packet: 4, service: web}\n",
		"x.yaml:1: expected packet 3 to have verdict forward, backend web-1, found "
		"verdict "
		"drop (truncated), backend null\n"
		"x.yaml:2: expected packet 1 to have backend web-2, slot 4712, found backend "
		"web-1, "
		"slot 4711\n"
		"x.yaml:3: expected packet 1 to have backend dns/web-1, found backend "
		"web/web-1\n"
		"x.yaml:4: expected packet 2 to have backend null, slot null, found backend "
		"web-1, "
		"slot 0\n"
		"x.yaml:5: expected packet 5 to have reason snaplen, found reason no_backend\n"
		"x.yaml:6: expected packet 4 to have service web, found service null\n"},
	{"a packet that never came", "- {packet: 6, verdict: drop}\n",
		"x.yaml:1: expected packet 6, but the capture has 103 packets\n"},
	{"a quoted null is a name", "- {packet: 3, backend: 'null'}\n",
		"x.yaml:1: expected packet 3 to have backend 'null', found backend null\n"},
};

static void
test_what_does_not_hold_is_told_with_what_was_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct replay_expect *expect = NULL;
		char *got = NULL;
		size_t n_bytes;
		size_t n_want = 0;
		size_t n;
		FILE *to = open_memstream(&got, &n_bytes);

		EXPECT(parse(rows[i].text, stderr, &expect) == 0, "%s", rows[i].name);
		for (size_t k = 0; k < LB_N_ELEMENTS(decisions); k++)
			replay_expect_packet(expect, &decisions[k]);
		n = replay_expect_finish(expect, &report, to);
		assert_int_equal(fclose(to), 0);
		EXPECT(strcmp(got, rows[i].want) == 0, "%s:\ngot  %swant %s", rows[i].name, got,
			rows[i].want);
		for (const char *c = rows[i].want; *c != '\0'; c++)
			n_want += *c == '\n';
		EXPECT(n == n_want, "%s: %zu did not hold", rows[i].name, n);
		replay_expect_free(expect);
		free(got);
	}
}

/* Whole numbers beyond a double's 53 bits are compared exactly. */
static void
test_large_numbers_are_exact(void **state)
{
	struct replay_report large = report;
	struct replay_expect *expect;
	char *got = NULL;
	size_t n;
	FILE *to = open_memstream(&got, &n);

	(void)state;
	large.flows = (UINT64_C(1) << 60) + 1;
	assert_int_equal(parse("- {value: flows.total, is: 1152921504606846977}\n"
			       "- {value: flows.total, is: 1152921504606846976}\n",
				 stderr, &expect),
		0);
	assert_int_equal(replay_expect_finish(expect, &large, to), 1);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(got, "x.yaml:2: expected flows.total to be 1152921504606846976, "
				 "found 1152921504606846977\n");
	replay_expect_free(expect);
	free(got);
}

/*
 * Many expectations in any order against many packets: as many do not hold as were made so.
 * Were each packet held against each item, this would take 10^10 steps.
 */
static void
test_many_packets_in_any_order(void **state)
{
	enum { N_PACKETS = 100000 };
	struct replay_expect *expect;
	uint64_t random = 3;
	size_t n_wrong = 0;
	char *text = NULL;
	char *got = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	(void)state;
	for (int i = 0; i < N_PACKETS; i++) {
		const uint64_t packet = 1 + xrand_below(&random, N_PACKETS);
		const bool is_wrong = xrand_below(&random, 1000) == 0;

		n_wrong += is_wrong;
		(void)fprintf(to, "- {packet: %" PRIu64 ", slot: %" PRIu64 "}\n", packet,
			packet % 7 + is_wrong);
	}
	assert_int_equal(fclose(to), 0);
	assert_int_equal(parse(text, stderr, &expect), 0);
	for (uint64_t i = 1; i <= N_PACKETS; i++) {
		const struct replay_decision decision = {i, LB_FORWARD, "web", "web-1", "hit",
			(int64_t)(i % 7)};

		replay_expect_packet(expect, &decision);
	}
	to = open_memstream(&got, &n);
	assert_int_equal(replay_expect_finish(expect, &report, to), n_wrong);
	assert_int_equal(fclose(to), 0);
	replay_expect_free(expect);
	free(text);
	free(got);
}

static void
test_a_file_that_is_not_there(void **state)
{
	struct replay_expect *expect;
	char *messages = NULL;
	size_t n;
	FILE *to = open_memstream(&messages, &n);

	(void)state;
	assert_int_equal(replay_expect_read("/nonexistent/x", to, &expect), -ENOENT);
	assert_int_equal(replay_expect_read("/", to, &expect), -EIO);
	assert_int_equal(fclose(to), 0);
	EXPECT(strncmp(messages,
		       "/nonexistent/x: it cannot be opened: No such file or directory\n/: ",
		       66) == 0,
		"got %s", messages);
	free(messages);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes_are_told_with_their_place),
		cmocka_unit_test(test_what_does_not_hold_is_told_with_what_was_found),
		cmocka_unit_test(test_large_numbers_are_exact),
		cmocka_unit_test(test_many_packets_in_any_order),
		cmocka_unit_test(test_a_file_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
