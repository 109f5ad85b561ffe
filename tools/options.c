/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Digits of the largest number there can be. */
#define DIGITS_MAX 10u

bool
options_scan(const char *text, size_t n_bytes, struct options_range range, uint32_t *out)
{
	uint64_t value = 0;

	if (n_bytes == 0 || n_bytes > DIGITS_MAX || (text[0] == '0' && n_bytes > 1))
		return false;
	for (size_t i = 0; i < n_bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	if (value < range.min || value > range.max)
		return false;
	*out = (uint32_t)value;
	return true;
}

int
options_take_number(const char *option, const char *text, struct options_range range,
	uint32_t *out)
{
	if (options_scan(text, strlen(text), range, out))
		return 0;
	(void)fprintf(stderr,
		"%s: --%s wants a whole number, %" PRIu32 "..%" PRIu32 ", not '%s'\n",
		program_invocation_short_name, option, range.min, range.max, text);
	return -EINVAL;
}

static int
append(const char *option, uint32_t value, struct options_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i] == value)
			return 0;
	}
	if (list->n == OPTIONS_LIST_MAX) {
		(void)fprintf(stderr, "%s: --%s takes %u values at most\n",
			program_invocation_short_name, option, OPTIONS_LIST_MAX);
		return -EINVAL;
	}
	list->items[list->n++] = value;
	return 0;
}

int
options_take_numbers(const char *option, const char *text, struct options_range range,
	struct options_list *out)
{
	struct options_list list = {.n = 0};

	for (;;) {
		const size_t n_bytes = strcspn(text, ",");
		uint32_t value;

		if (!options_scan(text, n_bytes, range, &value)) {
			(void)fprintf(stderr,
				"%s: --%s wants whole numbers, %" PRIu32 "..%" PRIu32
				", with commas between, not '%.*s'\n",
				program_invocation_short_name, option, range.min, range.max,
				(int)n_bytes, text);
			return -EINVAL;
		}
		if (append(option, value, &list) != 0)
			return -EINVAL;
		if (text[n_bytes] == '\0')
			break;
		text += n_bytes + 1;
	}
	*out = list;
	return 0;
}

/* The place of text's first n_bytes among words; that of the NULL where it is none of them. */
static uint32_t
find_word(const char *const words[], const char *text, size_t n_bytes)
{
	uint32_t i = 0;

	while (words[i] != NULL &&
		(strlen(words[i]) != n_bytes || memcmp(words[i], text, n_bytes) != 0))
		i++;
	return i;
}

static void
tell_words(const char *option, const char *const words[], const char *text, size_t n_bytes)
{
	(void)fprintf(stderr, "%s: --%s knows", program_invocation_short_name, option);
	for (size_t i = 0; words[i] != NULL; i++)
		(void)fprintf(stderr, "%s %s", i == 0 ? "" : ",", words[i]);
	(void)fprintf(stderr, "; with commas between, not '%.*s'\n", (int)n_bytes, text);
}

int
options_take_words(const char *option, const char *text, const char *const words[],
	struct options_list *out)
{
	struct options_list list = {.n = 0};

	for (;;) {
		const size_t n_bytes = strcspn(text, ",");
		const uint32_t place = find_word(words, text, n_bytes);

		if (words[place] == NULL) {
			tell_words(option, words, text, n_bytes);
			return -EINVAL;
		}
		if (append(option, place, &list) != 0)
			return -EINVAL;
		if (text[n_bytes] == '\0')
			break;
		text += n_bytes + 1;
	}
	*out = list;
	return 0;
}

int
options_end(int argc, char *const argv[])
{
	if (optind >= argc)
		return 0;
	(void)fprintf(stderr,
		"%s: '%s' is no option, and there is nothing to name but options\n",
		program_invocation_short_name, argv[optind]);
	return -EINVAL;
}
