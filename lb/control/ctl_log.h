/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_LOG_H
#define CTL_LOG_H

/**
 * @file
 * What shuntd says of itself, on stderr: lines, each with its level. Where stderr is the
 * journal (JOURNAL_STREAM, systemd.exec(5)), a line begins with the level as sd-daemon(3) has
 * it, "<3>"; everywhere with "shuntd: ", and "error: " or "warning: " where it is one.
 *
 * Never for a packet. On any thread; a line is written at once.
 */

#include <stdbool.h>
#include <stdint.h>

/** As syslog(3) numbers them. */
enum ctl_log_level {
	CTL_LOG_ERROR = 3,   /**< something wanted is not done */
	CTL_LOG_WARNING = 4, /**< it goes on, with less */
	CTL_LOG_NOTICE = 5,  /**< something has changed */
	CTL_LOG_INFO = 6,
};

/**
 * Write a line, printf-like, without its end. Control characters, which a name may bring, are
 * written as '?': so it stays one line.
 */
void ctl_log(enum ctl_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Write lines that have a beginning of their own, FILE:LINE:COLUMN: they get the level alone.
 */
void ctl_log_lines(enum ctl_log_level level, const char *text);

/**
 * Write a line of a file that was refused: the first of its errors, and how many more there
 * are.
 *
 * @param what    What was to be done with it: "reload".
 * @param errors  A line each; none says that memory was short.
 */
void ctl_log_refused(const char *what, const char *path, const char *errors);

/**
 * How often something may be told that others can make happen at any rate: ten times, and then
 * once in CTL_LOG_LIMIT_MS. All zero: it was not told yet.
 */
struct ctl_log_limit {
	uint64_t busy_ms;    /**< until then what was told takes room */
	uint64_t n_left_out; /**< since it was told last */
};

#define CTL_LOG_LIMIT_MS 6000u

/** What is to be done. */
struct ctl_log_turn {
	bool is_told;
	bool is_last;        /**< and the next at once would not be */
	uint64_t n_left_out; /**< before this one; 0 where it is not told */
};

/** Pure. @param now_ms  Of a clock that does not go back. */
struct ctl_log_turn ctl_log_limit_take(struct ctl_log_limit *limit, uint64_t now_ms);

#endif
