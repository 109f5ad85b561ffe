/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OPTIONS_H
#define OPTIONS_H

/**
 * @file
 * Values of command lines' options: whole numbers, words, and lists of these with commas
 * between. What is wrong with one is told on stderr, with the program's name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/** Most values of one list. */
#define OPTIONS_LIST_MAX 16u

/** Values in the order of their first mention, each once. */
struct options_list {
	uint32_t items[OPTIONS_LIST_MAX];
	size_t n;
};

/** Both ends belong to it. */
struct options_range {
	uint32_t min;
	uint32_t max;
};

/** Whether the first n_bytes of text are a number of the range: digits, no 0 before others. */
bool options_scan(const char *text, size_t n_bytes, struct options_range range, uint32_t *out);

/**
 * Take a number.
 *
 * @param option    The option's long name, without dashes.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  It is none of the range, which is told.
 */
int options_take_number(const char *option, const char *text, struct options_range range,
	uint32_t *out) lb_must_check;

/**
 * Take a list of numbers.
 *
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  One is none of the range, or they are too many, which is told.
 */
int options_take_numbers(const char *option, const char *text, struct options_range range,
	struct options_list *out) lb_must_check;

/**
 * Take a list of words, of each its place among those there are.
 *
 * @param words     Ends with NULL.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  One is none of the words, or they are too many, which is told.
 */
int options_take_words(const char *option, const char *text, const char *const words[],
	struct options_list *out) lb_must_check;

/**
 * Of a program that takes options alone, after getopt_long().
 *
 * @retval -EINVAL  There is more in the command line, which is told.
 */
int options_end(int argc, char *const argv[]) lb_must_check;

#endif
