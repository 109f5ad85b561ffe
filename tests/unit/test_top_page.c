/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_page.h"

#include <stdio.h>
#include <string.h>

#include "expect.h"

#define LINES_MAX 64u

static char lines[LINES_MAX][TOP_TEXT_COLUMNS_MAX + 1];
static enum top_look looks[LINES_MAX];
static unsigned int n_put;

static void
keep_line(void *context, unsigned int n, const char *text, enum top_look look)
{
	(void)context;
	EXPECT(n == n_put && n < LINES_MAX, "line %u after %u", n, n_put);
	(void)snprintf(lines[n], sizeof(lines[n]), "%s", text);
	looks[n] = look;
	n_put++;
}

/* n_backends of one service, b0 the busiest; 20 drop reasons, 30 workers. */
static json_t *
make_answer(size_t n_backends, json_int_t factor)
{
	json_t *backends = json_array();
	json_t *drops = json_object();
	json_t *workers = json_array();
	char name[32];

	for (size_t i = 0; i < n_backends; i++) {
		(void)snprintf(name, sizeof(name), "b%zu", i);
		(void)json_array_append_new(backends,
			json_pack("{s:s,s:I,s:I,s:I,s:s,s:i}", "name", name, "packets",
				factor * (json_int_t)(100 - i), "bytes",
				factor * (json_int_t)(1000 - i), "flows", factor, "state", "up",
				"weight", 1));
	}
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "reason_%d", i);
		(void)json_object_set_new(drops, name, json_integer(factor * (i + 1)));
	}
	for (int i = 0; i < 30; i++)
		(void)json_array_append_new(workers,
			json_pack("{s:i,s:{s:I},s:i}", "worker", i, "turns", "total_ns",
				factor * 500000000, "flow_entries", 7));
	return json_pack("{s:i,s:{s:I,s:I},s:o,s:o,s:[{s:s,s:I,s:I,s:I,s:o}]}", "generation", 3,
		"packets", "received", factor * 10, "forwarded", factor * 9, "drops", drops,
		"workers", workers, "services", "name", "web", "packets", factor * 1000,
		"bytes", factor, "flows", factor, "backends", backends);
}

static json_t *now;
static json_t *before;

static int
set_up(void **state)
{
	(void)state;
	before = make_answer(40, 1);
	now = make_answer(40, 2);
	return now != NULL && before != NULL ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)state;
	json_decref(now);
	json_decref(before);
	return 0;
}

static void
draw(struct top_page *page, unsigned int n_columns, unsigned int n_lines)
{
	const struct top_sample sample = {now, before, 1.0};
	const struct top_screen screen = {n_lines, n_columns, keep_line, NULL};

	n_put = 0;
	assert_int_equal(top_page_draw(page, &sample, &screen), 0);
	EXPECT(n_put == n_lines, "%u lines of %u are drawn", n_put, n_lines);
	for (unsigned int i = 0; i < n_put; i++)
		EXPECT(strlen(lines[i]) <= n_columns, "%ux%u, line %u: %s", n_columns, n_lines,
			i, lines[i]);
}

static struct top_page
make_page(void)
{
	return (struct top_page){.socket = "/run/shunt.sock"};
}

static void
press(struct top_page *page, const char *keys)
{
	for (; *keys != '\0'; keys++)
		assert_true(top_page_press(page, *keys));
}

static void
test_80_by_24(void **state)
{
	static const char *const wanted[] = {
		"shuntctl top: generation 3, services 1, backends 40              "
		"/run/shunt.sock",
		"packets/s:  received 10  forwarded 9.0",
		"drops/s (all):  reason_19 20 (40)  reason_18 19 (38)  reason_17 18 (36) +17",
		"workers, busy (flows):  0: 50.0% (7)  1: 50.0% (7)  2: 50.0% (7) +27",
		"",
		"BACKEND                  STATE       PACKETS/S   BITS/S  FLOWS/S   SHARE     "
		"DUE",
		"web/b0                   up                100    8.00k      1.0    3.1%    "
		"2.5%",
		"web/b1                   up                 99    7.99k      1.0    3.1%    "
		"2.5%",
	};
	struct top_page page = make_page();

	(void)state;
	draw(&page, 80, 24);
	for (size_t i = 0; i < LB_N_ELEMENTS(wanted); i++)
		assert_string_equal(lines[i], wanted[i]);
	assert_int_equal(looks[5], TOP_HEAD);
	assert_string_equal(lines[23],
		"1-17 of 40 by packets "
		"                                            h help  q quit");
}

static void
test_every_size_is_filled_and_none_run_over(void **state)
{
	struct top_page page = make_page();

	(void)state;
	for (unsigned int n_columns = 1; n_columns <= 200; n_columns += 3)
		for (unsigned int n_lines = 1; n_lines <= 60; n_lines += 2)
			draw(&page, n_columns, n_lines);
	draw(&page, 39, 24);
	assert_string_equal(lines[0], "it takes 40x6");
	draw(&page, 40, 6);
	assert_string_equal(lines[3], "BACKEND            STATE       PACKETS/S");
	assert_memory_equal(lines[4], "web/b0", 6);
	draw(&page, 200, 60);
	assert_memory_equal(lines[45], "web/b39", 7);
}

static void
test_scrolling_stops_at_both_ends(void **state)
{
	struct top_page page = make_page();

	(void)state;
	draw(&page, 80, 24);
	assert_int_equal(page.n_shown, 17);
	assert_true(top_page_press(&page, TOP_KEY_UP));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b0 ", 7);
	assert_true(top_page_press(&page, TOP_KEY_DOWN));
	assert_true(top_page_press(&page, 'j'));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b2 ", 7);
	assert_true(top_page_press(&page, TOP_KEY_PAGE_DOWN));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b19 ", 8);
	assert_true(top_page_press(&page, TOP_KEY_END));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b23 ", 8);
	assert_memory_equal(lines[22], "web/b39 ", 8);
	assert_true(top_page_press(&page, TOP_KEY_PAGE_UP));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b6 ", 7);
	assert_true(top_page_press(&page, TOP_KEY_PAGE_UP));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b0 ", 7);
	assert_true(top_page_press(&page, TOP_KEY_END));
	assert_true(top_page_press(&page, TOP_KEY_HOME));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b0 ", 7);
}

static void
test_keys_that_choose(void **state)
{
	static const struct {
		const char *keys;
		const char *first_row;
		const char *foot;
	} rows[] = {
		{"p", "web/b0 ", "1-17 of 40 by packets "},
		{"r", "web/b39 ", "1-17 of 40 by packets, reversed "},
		{"t", "web/b0 ", "1-17 of 40 by bits "},
		{"f", "web/b0 ", "1-17 of 40 by new flows "},
		{"d", "web/b39 ", "1-17 of 40 by share off due "},
		{"nr", "web/b9 ", "1-17 of 40 by name, reversed "},
		{"s", "web ", "1-1 of 1 by packets "},
		{"sb", "web/b0 ", "1-17 of 40 by packets "},
		{"\t", "web ", "1-1 of 1 by packets "},
		{"x", "web/b0 ", "1-17 of 40 by packets "},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct top_page page = make_page();

		press(&page, rows[i].keys);
		draw(&page, 80, 24);
		EXPECT(strncmp(lines[6], rows[i].first_row, strlen(rows[i].first_row)) == 0,
			"%s: %s", rows[i].keys, lines[6]);
		EXPECT(strncmp(lines[23], rows[i].foot, strlen(rows[i].foot)) == 0, "%s: %s",
			rows[i].keys, lines[23]);
	}
}

static void
test_a_filter_is_typed(void **state)
{
	struct top_page page = make_page();

	(void)state;
	press(&page, "/b3q");
	draw(&page, 80, 24);
	assert_string_equal(lines[23], "names that contain: b3q_");
	assert_true(top_page_press(&page, TOP_KEY_BACKSPACE));
	assert_true(top_page_press(&page, TOP_KEY_ENTER));
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b3 ", 7);
	assert_memory_equal(lines[7], "web/b30 ", 8);
	assert_memory_equal(lines[23], "1-11 of 11 by packets, with 'b3' ", 33);
	assert_true(top_page_press(&page, TOP_KEY_ESCAPE));
	draw(&page, 80, 24);
	assert_memory_equal(lines[23], "1-17 of 40 by packets ", 22);
}

static void
test_a_filter_has_an_end_and_whole_letters(void **state)
{
	struct top_page page = make_page();

	(void)state;
	press(&page, "/a");
	assert_true(top_page_press(&page, 0xc3));
	assert_true(top_page_press(&page, 0xa9));
	assert_true(top_page_press(&page, TOP_KEY_BACKSPACE));
	assert_string_equal(page.filter, "a");
	for (unsigned int i = 0; i < 2 * TOP_FILTER_BYTES; i++)
		press(&page, "x");
	assert_int_equal(strlen(page.filter), TOP_FILTER_BYTES - 1);
	for (unsigned int i = 0; i < 2 * TOP_FILTER_BYTES; i++)
		assert_true(top_page_press(&page, TOP_KEY_BACKSPACE));
	assert_string_equal(page.filter, "");
}

static void
test_help_and_the_end(void **state)
{
	struct top_page page = make_page();

	(void)state;
	press(&page, "?");
	draw(&page, 80, 24);
	assert_string_equal(lines[0], "shuntctl top: keys");
	press(&page, "x");
	draw(&page, 80, 24);
	assert_memory_equal(lines[6], "web/b0 ", 7);
	assert_false(top_page_press(&page, 'q'));
	press(&page, "h");
	assert_false(top_page_press(&page, 'q'));
}

static void
test_a_message_takes_the_last_line(void **state)
{
	struct top_page page = make_page();

	(void)state;
	page.message = "no connection";
	draw(&page, 80, 24);
	assert_string_equal(lines[23], "no connection");
	assert_int_equal(looks[23], TOP_STRONG);
	assert_memory_equal(lines[6], "web/b0 ", 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_80_by_24),
		cmocka_unit_test(test_every_size_is_filled_and_none_run_over),
		cmocka_unit_test(test_scrolling_stops_at_both_ends),
		cmocka_unit_test(test_keys_that_choose),
		cmocka_unit_test(test_a_filter_is_typed),
		cmocka_unit_test(test_a_filter_has_an_end_and_whole_letters),
		cmocka_unit_test(test_help_and_the_end),
		cmocka_unit_test(test_a_message_takes_the_last_line),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
