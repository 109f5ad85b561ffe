/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "replay_report.h"
#include "xrand.h"

#define PHASES_MAX 20u

static char *
print_text(const struct replay_report *report)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	assert_int_equal(replay_report_write_text(report, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static char *
print_json(const struct replay_report *report)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	assert_int_equal(replay_report_write_json(report, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static uint64_t phase_packets[2][PHASES_MAX] = {{100, 50, 1}, {100, 0, 9999}};
static uint64_t phase_slots[2][PHASES_MAX] = {{32768, 65537, 65537}, {32769}};

static struct replay_report_backend backends[] = {
	{"web-1", "up", 1500, 90000, 20, 65537, phase_packets[0], phase_slots[0]},
	{"w\xc3\xa9"
	 "b-2",
		"removed", 500, 3000, 10, 0, phase_packets[1], phase_slots[1]},
};

static struct replay_report_service services[] = {
	{"web", "maglev", 65537, 2000, 93000, 30, backends, 2, false},
	{"dns", "ring", 7, 0, 0, 0, NULL, 0, true},
};

static struct replay_report_phase phases[PHASES_MAX] = {
	{"start", 1},
	{"remove web/w\xc3\xa9"
	 "b-2",
		201},
	{"up web/web-1", 251},
};

static struct replay_report
make_report(size_t n_phases)
{
	return (struct replay_report){
		.verdicts = {[LB_FORWARD] = 2000,
			[LB_TO_KERNEL] = 12,
			[LB_DROP_TRUNCATED] = 3,
			[LB_DROP_SNAPLEN] = 1},
		.services = services,
		.n_services = 2,
		.phases = phases,
		.n_phases = n_phases,
		.flows = 30,
		.moved = 3,
		.broken = 0,
		.seconds = 0.25,
	};
}

static void
test_text_is_aligned(void **state)
{
	const struct replay_report report = make_report(3);
	static const char want[] =
		"packets\n"
		"  received   2016\n"
		"  forwarded  2000\n"
		"  replied       0\n"
		"  to kernel    12\n"
		"  dropped       4\n"
		"                3  truncated\n"
		"                1  snaplen\n"
		"\n"
		"service web\n"
		"  packets 2000, bytes 93000, flows 30, table maglev of 65537 slots\n"
		"  backend  state    packets  share  flows  slots\n"
		"  web-1    up          1500  75.0%     20  65537\n"
		"  w\xc3\xa9"
		"b-2    removed      500  25.0%     10      0\n"
		"\n"
		"service dns (removed)\n"
		"  packets 0, bytes 0, flows 0, table ring of 7 slots\n"
		"  no backends\n"
		"\n"
		"where the packets went\n"
		"  start, from packet 1\n"
		"  remove web/w\xc3\xa9"
		"b-2, from packet 201\n"
		"  up web/web-1, from packet 251\n"
		"\n"
		"  service web\n"
		"  backend       start  remove web/w\xc3\xa9"
		"b-2  up web/web-1\n"
		"  web-1    100  50.0%         50 100.0%      1   0.0%\n"
		"  w\xc3\xa9"
		"b-2    100  50.0%          0   0.0%   9999 100.0%\n"
		"\n"
		"flows\n"
		"  total 30, moved 3, broken 0\n"
		"  3 flows moved, all of them off backends that were gone; none was broken.\n"
		"\n"
		"rate\n"
		"  0.250000 seconds, 0.008 million packets a second\n";
	char *got = print_text(&report);

	(void)state;
	EXPECT(strcmp(got, want) == 0, "got\n%s\nwant\n%s", got, want);
	free(got);
}

static void
test_long_titles_get_numbers_and_a_legend(void **state)
{
	struct replay_report report = make_report(2);
	const struct replay_report_phase before = phases[1];
	static const char want[] =
		"where the packets went\n"
		"  1  start, from packet 1\n"
		"  2  reload a-name-of-a-file-too-long.yaml, from packet 201\n"
		"\n"
		"  service web\n"
		"  backend           1          2\n"
		"  web-1    100  50.0%  50 100.0%\n"
		"  w\xc3\xa9"
		"b-2    100  50.0%   0   0.0%\n";
	char *got;

	(void)state;
	phases[1].title = "reload a-name-of-a-file-too-long.yaml";
	got = print_text(&report);
	EXPECT(strstr(got, want) != NULL, "got\n%s\nwant in it\n%s", got, want);
	free(got);
	phases[1] = before;
}

static void
test_many_phases_come_in_blocks(void **state)
{
	struct replay_report report = make_report(PHASES_MAX);
	char *got;

	(void)state;
	for (size_t i = 3; i < PHASES_MAX; i++)
		phases[i] = (struct replay_report_phase){"up web/web-1", 300 + i};
	got = print_text(&report);
	EXPECT(strstr(got, "\n   1  start, from packet 1\n") != NULL, "got\n%s", got);
	EXPECT(strstr(got, "\n  20  up web/web-1, from packet 319\n") != NULL, "got\n%s", got);
	/* 20 phases in blocks of 6: the last has two, without a packet. */
	EXPECT(strstr(got, "\n\n  backend        19        20\n"
			   "  web-1    0      -  0      -\n") != NULL,
		"got\n%s", got);
	free(got);
}

static void
test_one_phase_has_no_table_of_phases(void **state)
{
	const struct replay_report report = make_report(1);
	char *got = print_text(&report);

	(void)state;
	EXPECT(strstr(got, "where") == NULL, "got\n%s", got);
	free(got);
}

static void
test_flows_are_told_in_words(void **state)
{
	static const struct {
		uint64_t moved, broken;
		const char *want;
	} rows[] = {
		{0, 0, "  No flow moved.\n"},
		{1, 0, "  1 flow moved, off a backend that was gone; it was not broken.\n"},
		{2, 0,
			"  2 flows moved, all of them off backends that were gone; none was "
			"broken.\n"},
		{1, 1, "  1 flow moved, and was broken: its first backend was still there.\n"},
		{5, 1,
			"  5 flows moved, and 1 of them was broken: moved although the first "
			"backend was still there.\n"},
		{5, 5,
			"  5 flows moved, and 5 of them were broken: moved although the first "
			"backend was still there.\n"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct replay_report report = make_report(1);
		char *got;

		report.moved = rows[i].moved;
		report.broken = rows[i].broken;
		got = print_text(&report);
		EXPECT(strstr(got, rows[i].want) != NULL, "got %s want %s", got, rows[i].want);
		free(got);
	}
}

static void
test_json_has_the_names_of_the_interface_in_order(void **state)
{
	const struct replay_report report = make_report(2);
	static const char want[] =
		"{\"schema\":1,"
		"\"packets\":{\"received\":2016,\"forwarded\":2000,\"replied\":0,"
		"\"to_kernel\":12,\"dropped\":4},"
		"\"drops\":{\"truncated\":3,\"bad_ip_version\":0,\"bad_header_length\":0,"
		"\"bad_total_length\":0,\"bad_checksum\":0,\"ttl_expired\":0,"
		"\"unknown_extension_header\":0,\"fragment_unmatched\":0,\"no_backend\":0,"
		"\"no_next_hop\":0,\"too_big\":0,\"unsupported_l4\":0,\"vlan_depth\":0,"
		"\"no_service\":0,\"tx_full\":0,\"no_memory\":0,\"snaplen\":1,"
		"\"handoff_full\":0,\"port_down\":0,\"kernel_down\":0,"
		"\"fragment_bad\":0,\"fragment_overlap\":0,\"fragment_excess\":0,"
		"\"martian_source\":0,\"echo_refused\":0,\"rate_limited\":0,"
		"\"link_multicast\":0,\"martian_destination\":0,\"source_route\":0},"
		"\"services\":[{\"name\":\"web\",\"packets\":2000,\"bytes\":93000,\"flows\":30,"
		"\"table\":{\"algorithm\":\"maglev\",\"size\":65537},\"backends\":["
		"{\"name\":\"web-1\",\"packets\":1500,\"bytes\":90000,\"flows\":20,"
		"\"slots\":65537,\"state\":\"up\"},"
		"{\"name\":\"w\xc3\xa9"
		"b-2\",\"packets\":500,\"bytes\":3000,\"flows\":10,\"slots\":0,"
		"\"state\":\"removed\"}]},"
		"{\"name\":\"dns\",\"packets\":0,\"bytes\":0,\"flows\":0,"
		"\"table\":{\"algorithm\":\"ring\",\"size\":7},\"backends\":[]}],"
		"\"flows\":{\"total\":30,\"moved\":3,\"broken\":0},\"audit\":{\"unwatched\":0},"
		"\"phases\":[{\"title\":\"start\",\"first_packet\":1,\"services\":["
		"{\"name\":\"web\",\"backends\":[{\"name\":\"web-1\",\"packets\":100,"
		"\"slots\":32768},{\"name\":\"w\xc3\xa9"
		"b-2\",\"packets\":100,\"slots\":32769}]},{\"name\":\"dns\",\"backends\":[]}]},"
		"{\"title\":\"remove web/w\xc3\xa9"
		"b-2\",\"first_packet\":201,\"services\":["
		"{\"name\":\"web\",\"backends\":[{\"name\":\"web-1\",\"packets\":50,"
		"\"slots\":65537},{\"name\":\"w\xc3\xa9"
		"b-2\",\"packets\":0,\"slots\":0}]},{\"name\":\"dns\",\"backends\":[]}]}],"
		"\"rate\":{\"seconds\":0.25,\"mpps\":";
	json_t *root = replay_report_json(&report);
	char *got = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));

	(void)state;
	/* The rate is looked at as a number, by its own test. */
	EXPECT(strncmp(got, want, (size_t)(strstr(want, "\"mpps\":") - want)) == 0,
		"got\n%s\nwant\n%s", got, want);
	free(got);
	json_decref(root);
}

static void
test_rate_is_always_a_number(void **state)
{
	static const struct {
		const char *name;
		double seconds, want_seconds, want_mpps;
	} rows[] = {
		{"a quarter of a second", 0.25, 0.25, 0.008064},
		{"a clock that did not move", 0.0, 0.0, 0.0},
		{"a clock that went back", -1.0, -1.0, 0.0},
		{"no number", NAN, 0.0, 0.0},
		{"for ever", INFINITY, 0.0, 0.0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct replay_report report = make_report(1);
		double seconds;
		double mpps;
		json_t *root;

		report.seconds = rows[i].seconds;
		root = replay_report_json(&report);
		assert_non_null(root);
		assert_int_equal(json_unpack(root, "{s:{s:f,s:f}}", "rate", "seconds", &seconds,
					 "mpps", &mpps),
			0);
		EXPECT(fabs(seconds - rows[i].want_seconds) < 1e-12, "%s: %g", rows[i].name,
			seconds);
		EXPECT(fabs(mpps - rows[i].want_mpps) < 1e-12, "%s: %g", rows[i].name, mpps);
		json_decref(root);
	}
}

static void
test_decisions_are_lines_of_json(void **state)
{
	static const struct {
		const char *name;
		struct replay_decision decision;
		const char *want;
	} rows[] = {
		{"forwarded", {17, LB_FORWARD, "web", "web-1", "hit", 4711},
			"{\"packet\":17,\"verdict\":\"forward\",\"service\":\"web\","
			"\"backend\":"
			"\"web-1\",\"flow\":\"hit\",\"slot\":4711,\"reason\":null}\n"},
		{"slot 0 is a slot", {1, LB_FORWARD, "w", "x", "miss", 0},
			"{\"packet\":1,\"verdict\":\"forward\",\"service\":\"w\",\"backend\":"
			"\"x\","
			"\"flow\":\"miss\",\"slot\":0,\"reason\":null}\n"},
		{"replied", {2, LB_REPLY, "w", NULL, "none", -1},
			"{\"packet\":2,\"verdict\":\"reply\",\"service\":\"w\",\"backend\":"
			"null,"
			"\"flow\":\"none\",\"slot\":null,\"reason\":null}\n"},
		{"to the kernel", {UINT64_MAX, LB_TO_KERNEL, NULL, NULL, "none", -1},
			"{\"packet\":18446744073709551615,\"verdict\":\"kernel\",\"service\":"
			"null,"
			"\"backend\":null,\"flow\":\"none\",\"slot\":null,\"reason\":null}\n"},
		{"dropped", {3, LB_DROP_NO_BACKEND, "w", NULL, "none", -1},
			"{\"packet\":3,\"verdict\":\"drop\",\"service\":\"w\",\"backend\":null,"
			"\"flow\":\"none\",\"slot\":null,\"reason\":\"no_backend\"}\n"},
		{"names with all that is escaped",
			{4, LB_FORWARD, "a\"b\\c/\x01\x1f\n", "\xc3\xa9\x7f", "hit", 1},
			"{\"packet\":4,\"verdict\":\"forward\",\"service\":"
			"\"a\\\"b\\\\c/\\u0001\\u001f\\u000a\",\"backend\":\"\xc3\xa9\x7f\","
			"\"flow\":\"hit\",\"slot\":1,\"reason\":null}\n"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		char *got = NULL;
		size_t n;
		FILE *to = open_memstream(&got, &n);

		assert_int_equal(replay_decision_write(&rows[i].decision, to), 0);
		assert_int_equal(fclose(to), 0);
		EXPECT(strcmp(got, rows[i].want) == 0, "%s:\ngot  %swant %s", rows[i].name, got,
			rows[i].want);
		free(got);
	}
}

/* Any ASCII, controls included, and letters of two, three and four bytes. */
static void
make_name(uint64_t *random, char *out, size_t n_max)
{
	static const char *const letters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x8b",
		"\"", "\\", ".", "%s"};
	const size_t n = xrand_below(random, (uint32_t)n_max - 4);
	size_t at = 0;

	while (at < n) {
		const uint32_t kind = xrand_below(random, 20);

		if (kind < LB_N_ELEMENTS(letters)) {
			memcpy(out + at, letters[kind], strlen(letters[kind]));
			at += strlen(letters[kind]);
		} else {
			out[at++] = (char)(1 + xrand_below(random, 127));
		}
	}
	out[at] = '\0';
}

static void
test_any_decision_reads_back(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		/* Longer than the writer's own line at times. */
		char service[1200];
		char backend[1200];
		const struct replay_decision decision = {
			.packet = xrand(&random) >> (1 + xrand_below(&random, 63)),
			.verdict = (enum lb_verdict)xrand_below(&random, LB_N_VERDICTS),
			.service = service,
			.backend = xrand_below(&random, 4) == 0 ? NULL : backend,
			.flow = "miss",
			.slot = (int64_t)xrand_below(&random, 1000) - 1,
		};
		char *text = NULL;
		json_t *root;
		json_t *want;
		size_t n;
		FILE *to = open_memstream(&text, &n);

		make_name(&random, service, xrand_below(&random, 8) == 0 ? 1200 : 60);
		make_name(&random, backend, xrand_below(&random, 8) == 0 ? 1200 : 60);
		assert_int_equal(replay_decision_write(&decision, to), 0);
		assert_int_equal(fclose(to), 0);
		EXPECT(strchr(text, '\n') == text + n - 1, "not one line: %s", text);

		root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		EXPECT(root != NULL, "no JSON: %s", text);
		want = json_pack("{s:I,s:s,s:s,s:s?,s:s,s:o,s:s?}", "packet",
			(json_int_t)decision.packet, "verdict",
			lb_verdict_name(decision.verdict), "service", service, "backend",
			decision.backend, "flow", "miss", "slot",
			decision.slot < 0 ? json_null() : json_integer(decision.slot), "reason",
			lb_verdict_reason(decision.verdict));
		assert_non_null(want);
		EXPECT(json_equal(root, want), "reads back otherwise: %s", text);
		json_decref(root);
		json_decref(want);
		free(text);
	}
}

/* A number of any size, small ones as often as large ones. */
static uint64_t
make_number(uint64_t *random)
{
	return xrand(random) >> (12 + xrand_below(random, 52));
}

static void
test_any_report_prints_and_reads_back(void **state)
{
	uint64_t random = 2;

	(void)state;
	for (int round = 0; round < 300; round++) {
		char names[8][60];
		struct replay_report_backend some[6];
		struct replay_report_service two[2];
		struct replay_report_phase all[PHASES_MAX];
		uint64_t numbers[PHASES_MAX];
		struct replay_report report = {
			.services = two,
			.n_services = xrand_below(&random, 3),
			.phases = all,
			.n_phases = xrand_below(&random, PHASES_MAX + 1),
			.flows = make_number(&random),
			.moved = make_number(&random),
			.broken = make_number(&random),
			.seconds = (double)make_number(&random) / 1e9,
		};
		json_t *root;
		json_t *tree;
		char *text;

		for (size_t i = 0; i < 8; i++)
			make_name(&random, names[i], sizeof(names[i]));
		for (size_t i = 0; i < LB_N_VERDICTS; i++)
			report.verdicts[i] = make_number(&random);
		for (size_t i = 0; i < PHASES_MAX; i++) {
			numbers[i] = make_number(&random);
			all[i] = (struct replay_report_phase){names[xrand_below(&random, 8)],
				make_number(&random)};
		}
		for (size_t i = 0; i < 6; i++)
			some[i] = (struct replay_report_backend){names[i], "up",
				make_number(&random), make_number(&random), 1, 2, numbers,
				numbers};
		for (size_t i = 0; i < 2; i++)
			two[i] = (struct replay_report_service){.name = names[6 + i],
				.algorithm = "maglev",
				.packets = make_number(&random),
				.backends = some,
				.n_backends = xrand_below(&random, 7)};

		text = print_text(&report);
		EXPECT(strstr(text, "\nflows\n") != NULL, "cut short: %s", text);
		free(text);

		text = print_json(&report);
		root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		EXPECT(root != NULL, "no JSON: %s", text);
		tree = replay_report_json(&report);
		/* The rate is printed with nine digits. */
		assert_int_equal(json_object_del(root, "rate"), 0);
		assert_int_equal(json_object_del(tree, "rate"), 0);
		EXPECT(json_equal(root, tree), "reads back otherwise: %s", text);
		json_decref(root);
		json_decref(tree);
		free(text);
	}
}

static void
test_a_full_disk_is_an_error(void **state)
{
	const struct replay_report report = make_report(3);
	const struct replay_decision decision = {17, LB_FORWARD, "web", "web-1", "hit", 4711};
	FILE *to = fopen("/dev/full", "we");

	(void)state;
	if (to == NULL)
		skip();
	assert_int_equal(replay_report_write_text(&report, to), -EIO);
	assert_int_equal(replay_report_write_json(&report, to), -EIO);
	assert_int_equal(setvbuf(to, NULL, _IONBF, 0), 0);
	assert_int_equal(replay_decision_write(&decision, to), -EIO);
	(void)fclose(to);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_aligned),
		cmocka_unit_test(test_long_titles_get_numbers_and_a_legend),
		cmocka_unit_test(test_many_phases_come_in_blocks),
		cmocka_unit_test(test_one_phase_has_no_table_of_phases),
		cmocka_unit_test(test_flows_are_told_in_words),
		cmocka_unit_test(test_json_has_the_names_of_the_interface_in_order),
		cmocka_unit_test(test_rate_is_always_a_number),
		cmocka_unit_test(test_decisions_are_lines_of_json),
		cmocka_unit_test(test_any_decision_reads_back),
		cmocka_unit_test(test_any_report_prints_and_reads_back),
		cmocka_unit_test(test_a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
