/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The variable is inherited by whatever a service starts, also with another stderr: so it says
 * which one it speaks of. */
static bool
is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device;
	uintmax_t inode;
	struct stat file;
	char *end;

	if (stream == NULL || fstat(STDERR_FILENO, &file) != 0)
		return false;
	device = strtoumax(stream, &end, 10);
	if (*end != ':')
		return false;
	inode = strtoumax(end + 1, &end, 10);
	return *end == '\0' && device == file.st_dev && inode == file.st_ino;
}

static void
make_plain(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
}

/* One call of stdio's, so that lines of other threads do not come between. */
static void
write_line(enum ctl_log_level level, const char *begin, const char *text, int n_text)
{
	if (is_journal())
		(void)fprintf(stderr, "<%d>%s%.*s\n", (int)level, begin, n_text, text);
	else
		(void)fprintf(stderr, "%s%.*s\n", begin, n_text, text);
}

static const char *
begin_of(enum ctl_log_level level)
{
	if (level == CTL_LOG_ERROR)
		return "shuntd: error: ";
	return level == CTL_LOG_WARNING ? "shuntd: warning: " : "shuntd: ";
}

void
ctl_log(enum ctl_log_level level, const char *format, ...)
{
	va_list arguments;
	char *text;
	int n;

	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		/* Without what it is about, better than nothing. */
		write_line(level, begin_of(level), format, (int)strlen(format));
		return;
	}
	make_plain(text);
	write_line(level, begin_of(level), text, n);
	free(text);
}

void
ctl_log_lines(enum ctl_log_level level, const char *text)
{
	while (*text != '\0') {
		const size_t n = strcspn(text, "\n");
		char *line = strndup(text, n);

		if (line != NULL)
			make_plain(line);
		write_line(level, "", line != NULL ? line : text, (int)n);
		free(line);
		text += n + (text[n] == '\n');
	}
}

void
ctl_log_refused(const char *what, const char *path, const char *errors)
{
	const size_t n_first = strcspn(errors, "\n");
	size_t n_more = 0;

	for (const char *at = errors + n_first; *at != '\0'; at++)
		n_more += at[0] == '\n' && at[1] != '\0';
	if (n_first == 0)
		ctl_log(CTL_LOG_ERROR, "%s of %s failed: there is not enough memory", what,
			path);
	else if (n_more == 0)
		ctl_log(CTL_LOG_ERROR, "%s of %s failed: %.*s", what, path, (int)n_first,
			errors);
	else
		ctl_log(CTL_LOG_ERROR, "%s of %s failed: %.*s; and %zu more", what, path,
			(int)n_first, errors, n_more);
}

#define LIMIT_ROOM_MS (UINT64_C(10) * CTL_LOG_LIMIT_MS)

struct ctl_log_turn
ctl_log_limit_take(struct ctl_log_limit *limit, uint64_t now_ms)
{
	const uint64_t from_ms = limit->busy_ms > now_ms ? limit->busy_ms : now_ms;
	const uint64_t to_ms = from_ms + CTL_LOG_LIMIT_MS;
	struct ctl_log_turn turn = {.n_left_out = limit->n_left_out};

	if (to_ms - now_ms > LIMIT_ROOM_MS) {
		limit->n_left_out++;
		return (struct ctl_log_turn){0};
	}
	limit->busy_ms = to_ms;
	limit->n_left_out = 0;
	turn.is_told = true;
	turn.is_last = to_ms + CTL_LOG_LIMIT_MS - now_ms > LIMIT_ROOM_MS;
	return turn;
}
