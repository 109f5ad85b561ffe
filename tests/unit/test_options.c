/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "options.h"

static const char *const words[] = {"one", "two", "three", NULL};

/* What is told goes to stderr, which is text here from begin_told() to end_told(). */
static char *told;
static size_t n_told;
static FILE *real_stderr;

static void
begin_told(void)
{
	real_stderr = stderr;
	stderr = open_memstream(&told, &n_told);
	assert_non_null(stderr);
}

/* To be freed. Without the program's name, which is this test's. */
static const char *
end_told(void)
{
	static const char name[] = "test_options: ";

	assert_int_equal(fclose(stderr), 0);
	stderr = real_stderr;
	if (n_told == 0)
		return told;
	assert_memory_equal(told, name, strlen(name));
	assert_int_equal(told[n_told - 1], '\n');
	told[n_told - 1] = '\0';
	return told + strlen(name);
}

static void
test_numbers(void **state)
{
	static const struct {
		const char *text;
		uint32_t min;
		uint32_t max;
		int want;
		uint32_t number;
	} rows[] = {
		{"1", 1, 1, 0, 1},
		{"0", 0, 1, 0, 0},
		{"4294967295", 1, UINT32_MAX, 0, UINT32_MAX},
		{"7", 7, 9, 0, 7},
		{"9", 7, 9, 0, 9},
		{"6", 7, 9, -EINVAL, 0},
		{"10", 7, 9, -EINVAL, 0},
		{"4294967296", 0, UINT32_MAX, -EINVAL, 0},
		{"18446744073709551617", 0, UINT32_MAX, -EINVAL, 0},
		{"", 0, 9, -EINVAL, 0},
		{"00", 0, 9, -EINVAL, 0},
		{"07", 0, 9, -EINVAL, 0},
		{"+7", 0, 9, -EINVAL, 0},
		{"-7", 0, 9, -EINVAL, 0},
		{" 7", 0, 9, -EINVAL, 0},
		{"7 ", 0, 9, -EINVAL, 0},
		{"7.0", 0, 9, -EINVAL, 0},
		{"7,8", 0, 9, -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct options_range range = {rows[i].min, rows[i].max};
		uint32_t number = 4711;
		char expected[128] = "";
		const char *said;
		int ret;

		if (rows[i].want != 0)
			(void)snprintf(expected, sizeof(expected),
				"--n wants a whole number, %u..%u, not '%s'", rows[i].min,
				rows[i].max, rows[i].text);
		begin_told();
		ret = options_take_number("n", rows[i].text, range, &number);
		said = end_told();
		EXPECT(ret == rows[i].want, "'%s': returns %d", rows[i].text, ret);
		EXPECT(number == (ret == 0 ? rows[i].number : 4711), "'%s': %u", rows[i].text,
			number);
		EXPECT(strcmp(said, expected) == 0, "'%s': says %s", rows[i].text, said);
		free(told);
	}
}

static void
test_a_part_of_a_text_is_a_number(void **state)
{
	uint32_t number;

	(void)state;
	assert_true(options_scan("12..34", 2, (struct options_range){1, 99}, &number));
	assert_int_equal(number, 12);
	assert_false(options_scan("12..34", 3, (struct options_range){1, 99}, &number));
	assert_false(options_scan("12", 0, (struct options_range){0, 99}, &number));
}

static void
test_lists(void **state)
{
	static const struct {
		const char *text;
		bool is_words;
		const char *items; /* NULL: it is refused */
		const char *said;
	} rows[] = {
		{"5", false, "5", ""},
		{"5,3,5,3,9", false, "5 3 9", ""},
		{"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,1", false,
			"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", ""},
		{"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", false, NULL,
			"--x takes 16 values at most"},
		{"", false, NULL,
			"--x wants whole numbers, 1..99, with commas between, not ''"},
		{"1,", false, NULL,
			"--x wants whole numbers, 1..99, with commas between, not ''"},
		{"1,100,2", false, NULL,
			"--x wants whole numbers, 1..99, with commas between, not '100'"},
		{"1;2", false, NULL,
			"--x wants whole numbers, 1..99, with commas between, not '1;2'"},
		{"three,one,three", true, "2 0", ""},
		{"two", true, "1", ""},
		{"one,tw,two", true, NULL,
			"--x knows one, two, three; with commas between, not 'tw'"},
		{"twofold", true, NULL,
			"--x knows one, two, three; with commas between, not 'twofold'"},
		{",one", true, NULL, "--x knows one, two, three; with commas between, not ''"},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct options_list list = {{4711}, 1};
		char items[128] = "";
		const char *said;
		int ret;

		begin_told();
		if (rows[i].is_words)
			ret = options_take_words("x", rows[i].text, words, &list);
		else
			ret = options_take_numbers("x", rows[i].text,
				(struct options_range){1, 99}, &list);
		said = end_told();
		for (size_t k = 0; k < list.n; k++)
			(void)snprintf(items + strlen(items), sizeof(items) - strlen(items),
				"%s%u", k == 0 ? "" : " ", list.items[k]);
		EXPECT(ret == (rows[i].items == NULL ? -EINVAL : 0), "'%s': returns %d",
			rows[i].text, ret);
		EXPECT(strcmp(items, rows[i].items == NULL ? "4711" : rows[i].items) == 0,
			"'%s': %s", rows[i].text, items);
		EXPECT(strcmp(said, rows[i].said) == 0, "'%s': says %s", rows[i].text, said);
		free(told);
	}
}

static void
test_what_is_no_option_is_refused(void **state)
{
	char *argv[] = {(char[]){"x"}, (char[]){"y"}, NULL};

	(void)state;
	begin_told();
	optind = 2;
	assert_int_equal(options_end(2, argv), 0);
	optind = 1;
	assert_int_equal(options_end(2, argv), -EINVAL);
	assert_string_equal(end_told(),
		"'y' is no option, and there is nothing to name but options");
	free(told);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_a_part_of_a_text_is_a_number),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_what_is_no_option_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
