/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_text.h"

#include <locale.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"

static void
test_rates_have_three_digits(void **state)
{
	static const struct {
		const char *what;
		double rate;
		const char *text;
	} rows[] = {
		{"not known", -1, "-"},
		{"none", 0, "0"},
		{"less than one a second", 0.5, "0.5"},
		{"small ones have a decimal", 9.94, "9.9"},
		{"which rounds up to two digits", 9.96, "10"},
		{"below a thousand", 999.4, "999"},
		{"rounded up to a thousand", 999.6, "1.00k"},
		{"two decimals", 1234, "1.23k"},
		{"one decimal", 12345, "12.3k"},
		{"one decimal no more", 99960, "100k"},
		{"no decimal", 123456, "123k"},
		{"millions", 1.488e7, "14.9M"},
		{"thousands of millions", 1e11, "100G"},
		{"as high as names go", 1e18, "1000P"},
	};
	char out[TOP_NUMBER_BYTES];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(strcmp(top_format_rate(rows[i].rate, out), rows[i].text) == 0,
			"%s: %s, not %s", rows[i].what, out, rows[i].text);
}

static void
test_counts_are_whole(void **state)
{
	char out[TOP_NUMBER_BYTES];

	(void)state;
	assert_string_equal(top_format_count(0, out), "0");
	assert_string_equal(top_format_count(7, out), "7");
	assert_string_equal(top_format_count(999, out), "999");
	assert_string_equal(top_format_count(1000, out), "1.00k");
}

static void
test_parts_are_percent(void **state)
{
	char out[TOP_NUMBER_BYTES];

	(void)state;
	assert_string_equal(top_format_part(-1, out), "-");
	assert_string_equal(top_format_part(0, out), "0.0%");
	assert_string_equal(top_format_part(1.0 / 3, out), "33.3%");
	assert_string_equal(top_format_part(1, out), "100.0%");
}

static void
test_cells_are_as_wide_as_they_are_told(void **state)
{
	static const struct {
		const char *what;
		const char *text;
		unsigned int n_columns;
		bool is_right;
		const char *cell;
	} rows[] = {
		{"filled on the right", "web", 5, false, "web  "},
		{"filled on the left", "web", 5, true, "  web"},
		{"just as wide", "web", 3, true, "web"},
		{"cut", "web-1", 4, false, "web~"},
		{"cut to one column", "web-1", 1, true, "~"},
		{"no column", "web", 0, false, ""},
		{"an empty text", "", 3, false, "   "},
		{"letters of two bytes are one column",
			"w\xc3\xa9"
			"b",
			4, false,
			"w\xc3\xa9"
			"b "},
		{"wide letters are two", "\xe6\x9c\xac", 3, false, "\xe6\x9c\xac "},
		{"of a wide letter no half is left", "\xe6\x9c\xac\xe6\x9c\xac", 3, false,
			"\xe6\x9c\xac~"},
		{"where it would be, there is a blank", "a\xe6\x9c\xac\xe6\x9c\xac", 3, false,
			"a~ "},
		{"an escape is none", "a\033[2Jb", 6, false, "a?[2Jb"},
		{"nor is a control of Latin-1",
			"a\xc2\x9b"
			"b",
			3, false, "a?b"},
		{"half a letter", "a\xc3", 3, false, "a? "},
	};
	struct top_text text;

	(void)state;
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		skip();
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		top_text_begin(&text, 20);
		top_text_put_cell(&text, rows[i].text, rows[i].n_columns, rows[i].is_right);
		EXPECT(strcmp(text.bytes, rows[i].cell) == 0, "%s: '%s', not '%s'",
			rows[i].what, text.bytes, rows[i].cell);
		EXPECT(text.n_columns == rows[i].n_columns, "%s: %u columns", rows[i].what,
			text.n_columns);
	}
	(void)setlocale(LC_CTYPE, "C");
}

static void
test_without_utf8_each_byte_is_a_question_mark(void **state)
{
	struct top_text text;

	(void)state;
	top_text_begin(&text, 20);
	top_text_put(&text, "w\xc3\xa9"
			    "b\x7f");
	assert_string_equal(text.bytes, "w??b?");
}

static void
test_a_line_ends_where_it_ends(void **state)
{
	struct top_text text;
	char many[TOP_TEXT_COLUMNS_MAX * 8];

	(void)state;
	top_text_begin(&text, 6);
	top_text_put(&text, "abc");
	assert_int_equal(top_text_room(&text), 3);
	top_text_put_cell(&text, "defgh", 5, false);
	assert_string_equal(text.bytes, "abcde~");
	top_text_put(&text, "x");
	assert_string_equal(text.bytes, "abcde~");

	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	top_text_begin(&text, 10000);
	top_text_put(&text, many);
	assert_int_equal(strlen(text.bytes), TOP_TEXT_COLUMNS_MAX);
}

/* They take bytes and no columns. */
static void
test_marks_without_width_do_not_run_over(void **state)
{
	struct top_text text;
	char marks[TOP_TEXT_COLUMNS_MAX * 12];

	(void)state;
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		skip();
	for (size_t i = 0; i + 2 < sizeof(marks); i += 2)
		memcpy(marks + i, "\xcc\x81", 3);
	marks[sizeof(marks) - 2] = '\0';
	top_text_begin(&text, 40);
	top_text_put(&text, marks);
	EXPECT(strlen(text.bytes) < sizeof(text.bytes), "%zu bytes", strlen(text.bytes));
	assert_int_equal(text.n_columns, 0);
	(void)setlocale(LC_CTYPE, "C");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_have_three_digits),
		cmocka_unit_test(test_counts_are_whole),
		cmocka_unit_test(test_parts_are_percent),
		cmocka_unit_test(test_cells_are_as_wide_as_they_are_told),
		cmocka_unit_test(test_without_utf8_each_byte_is_a_question_mark),
		cmocka_unit_test(test_a_line_ends_where_it_ends),
		cmocka_unit_test(test_marks_without_width_do_not_run_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
