/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_log.h"
#include "expect.h"

#define TEXT_BYTES 1024

enum stream { NONE, OURS, OTHER, NUMBERS, EMPTY };

/* What JOURNAL_STREAM says, of a log that fd is. */
static void
set_stream(enum stream stream, int fd)
{
	struct stat file;
	char text[64];

	assert_int_equal(fstat(fd, &file), 0);
	(void)snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)file.st_dev,
		(uintmax_t)file.st_ino + (stream == OTHER));
	if (stream == NUMBERS)
		*strchr(text, ':') = ' ';
	if (stream == EMPTY)
		text[0] = '\0';
	if (stream == NONE)
		assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
	else
		assert_int_equal(setenv("JOURNAL_STREAM", text, 1), 0);
}

/* What write_log() writes to stderr. */
static void
take_log(enum stream stream, void (*write_log)(const void *), const void *context,
	char text[TEXT_BYTES])
{
	FILE *log = tmpfile();
	const int old = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(log);
	assert_true(old >= 0);
	set_stream(stream, fileno(log));
	assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
	write_log(context);
	assert_true(dup2(old, STDERR_FILENO) >= 0);
	(void)close(old);
	rewind(log);
	n = fread(text, 1, TEXT_BYTES - 1, log);
	text[n] = '\0';
	(void)fclose(log);
}

static const struct row {
	const char *what;
	enum stream stream;
	enum ctl_log_level level;
	const char *text;
	const char *written;
} rows[] = {
	{"to a person an error is one in words", NONE, CTL_LOG_ERROR, "a",
		"shuntd: error: a\n"},
	{"so is a warning", NONE, CTL_LOG_WARNING, "a", "shuntd: warning: a\n"},
	{"what is neither has no word", NONE, CTL_LOG_NOTICE, "a", "shuntd: a\n"},
	{"nor has what is less", NONE, CTL_LOG_INFO, "a", "shuntd: a\n"},
	{"the journal gets an error's level", OURS, CTL_LOG_ERROR, "a",
		"<3>shuntd: error: a\n"},
	{"and a warning's", OURS, CTL_LOG_WARNING, "a", "<4>shuntd: warning: a\n"},
	{"and a notice's", OURS, CTL_LOG_NOTICE, "a", "<5>shuntd: a\n"},
	{"and the lowest", OURS, CTL_LOG_INFO, "a", "<6>shuntd: a\n"},
	{"a variable of another stderr is not ours", OTHER, CTL_LOG_INFO, "a", "shuntd: a\n"},
	{"nor is one that is no such pair", NUMBERS, CTL_LOG_INFO, "a", "shuntd: a\n"},
	{"nor an empty one", EMPTY, CTL_LOG_INFO, "a", "shuntd: a\n"},
	{"what a name brings stays in the line", OURS, CTL_LOG_INFO, "a\n<0>b\x1b[1m\x7f",
		"<6>shuntd: a?<0>b?[1m?\n"},
	{"letters of other scripts stay", NONE, CTL_LOG_INFO, "\xc3\xa4", "shuntd: \xc3\xa4\n"},
};

static void
write_row(const void *context)
{
	const struct row *row = context;

	ctl_log(row->level, "%s", row->text);
}

static void
test_a_line_has_its_level(void **state)
{
	char text[TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		take_log(rows[i].stream, write_row, &rows[i], text);
		EXPECT(strcmp(text, rows[i].written) == 0, "%s: '%s'", rows[i].what, text);
	}
}

static void
write_lines(const void *context)
{
	ctl_log_lines(CTL_LOG_ERROR, context);
}

static void
test_each_of_many_lines_has_its_level(void **state)
{
	char text[TEXT_BYTES];

	(void)state;
	take_log(OURS, write_lines, "f:1:2: a\nf:3:4: b\n", text);
	assert_string_equal(text, "<3>f:1:2: a\n<3>f:3:4: b\n");
	take_log(NONE, write_lines, "f:1:2: a\nf:3:4: b", text);
	assert_string_equal(text, "f:1:2: a\nf:3:4: b\n");
	take_log(OURS, write_lines, "", text);
	assert_string_equal(text, "");
	/* A file's name may have anything in it. */
	take_log(OURS, write_lines, "\x1b[1m\r:1:2: \xc3\xa4\n\n\tb\n", text);
	assert_string_equal(text, "<3>?[1m?:1:2: \xc3\xa4\n<3>\n<3>?b\n");
}

static void
write_refused(const void *context)
{
	ctl_log_refused("plan", "f", context);
}

static void
test_of_many_errors_the_first_and_how_many_more(void **state)
{
	static const struct {
		const char *what;
		const char *errors;
		const char *written;
	} refused[] = {
		{"one", "a\n", "shuntd: error: plan of f failed: a\n"},
		{"one without its end", "a", "shuntd: error: plan of f failed: a\n"},
		{"three", "a\nb\nc\n", "shuntd: error: plan of f failed: a; and 2 more\n"},
		{"three without their end", "a\nb\nc",
			"shuntd: error: plan of f failed: a; and 2 more\n"},
		{"none", "", "shuntd: error: plan of f failed: there is not enough memory\n"},
	};
	char text[TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		take_log(NONE, write_refused, refused[i].errors, text);
		EXPECT(strcmp(text, refused[i].written) == 0, "%s: '%s'", refused[i].what,
			text);
	}
}

/* What is told of what happens at a time, a letter each: t told, l the last, . left out. */
static void
test_what_others_can_make_happen_is_told_now_and_then(void **state)
{
	struct ctl_log_limit limit = {0};
	uint64_t now_ms = 12345;
	char told[64];
	size_t n = 0;
	struct ctl_log_turn turn;

	(void)state;
	for (; n < 20; n++) {
		turn = ctl_log_limit_take(&limit, now_ms);
		told[n] = (char)(turn.is_last ? 'l' : turn.is_told ? 't' : '.');
		assert_int_equal(turn.n_left_out, 0);
	}
	told[n] = '\0';
	assert_string_equal(told, "tttttttttl..........");
	now_ms += CTL_LOG_LIMIT_MS - 1;
	assert_false(ctl_log_limit_take(&limit, now_ms).is_told);
	now_ms += 1;
	turn = ctl_log_limit_take(&limit, now_ms);
	assert_true(turn.is_told && turn.is_last);
	assert_int_equal(turn.n_left_out, 11);
	assert_false(ctl_log_limit_take(&limit, now_ms).is_told);
	/* After a minute it is as if nothing had been. */
	now_ms += 10 * CTL_LOG_LIMIT_MS;
	turn = ctl_log_limit_take(&limit, now_ms);
	assert_true(turn.is_told && !turn.is_last);
	assert_int_equal(turn.n_left_out, 1);
	for (n = 0; n < 9; n++)
		turn = ctl_log_limit_take(&limit, now_ms);
	assert_true(turn.is_last);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_has_its_level),
		cmocka_unit_test(test_each_of_many_lines_has_its_level),
		cmocka_unit_test(test_of_many_errors_the_first_and_how_many_more),
		cmocka_unit_test(test_what_others_can_make_happen_is_told_now_and_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
