/* SPDX-License-Identifier: BSD-3-Clause */
#include "top_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "lb_compiler.h"

/* A character of a text: where it is, and the columns it takes. */
struct character {
	const char *bytes;
	size_t n_bytes;
	unsigned int n_columns;
};

/* The first of a text that is not empty. Returns what follows. */
static const char *
take_character(const char *text, struct character *out)
{
	mbstate_t state = {0};
	wchar_t code;
	const size_t n = mbrtowc(&code, text, MB_LEN_MAX, &state);
	const int n_columns = n <= MB_LEN_MAX ? wcwidth(code) : -1;

	if (n_columns < 0) {
		*out = (struct character){.bytes = "?", .n_bytes = 1, .n_columns = 1};
		return text + (n <= MB_LEN_MAX ? n : 1);
	}
	*out = (struct character){.bytes = text,
		.n_bytes = n,
		.n_columns = (unsigned int)n_columns};
	return text + n;
}

unsigned int
top_text_measure(const char *what)
{
	struct character character;
	unsigned int n = 0;

	while (*what != '\0') {
		what = take_character(what, &character);
		n += character.n_columns;
	}
	return n;
}

void
top_text_begin(struct top_text *text, unsigned int width)
{
	text->width = width < TOP_TEXT_COLUMNS_MAX ? width : TOP_TEXT_COLUMNS_MAX;
	text->n_columns = 0;
	text->n_bytes = 0;
	text->bytes[0] = '\0';
}

unsigned int
top_text_room(const struct top_text *text)
{
	return text->width - text->n_columns;
}

/* Characters up to n_columns; of none but the last some columns are left over. */
static unsigned int
put_up_to(struct top_text *text, const char *what, unsigned int n_columns)
{
	struct character character;
	unsigned int n = 0;

	while (*what != '\0') {
		what = take_character(what, &character);
		if (n + character.n_columns > n_columns ||
			text->n_bytes + character.n_bytes >= sizeof(text->bytes))
			break;
		memcpy(text->bytes + text->n_bytes, character.bytes, character.n_bytes);
		text->n_bytes += character.n_bytes;
		n += character.n_columns;
	}
	text->bytes[text->n_bytes] = '\0';
	text->n_columns += n;
	return n;
}

void
top_text_put(struct top_text *text, const char *what)
{
	(void)put_up_to(text, what, top_text_room(text));
}

void
top_text_print(struct top_text *text, const char *format, ...)
{
	char what[sizeof(text->bytes)];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	top_text_put(text, what);
}

static void
put_blanks(struct top_text *text, unsigned int n)
{
	while (n-- > 0)
		top_text_put(text, " ");
}

void
top_text_put_cell(struct top_text *text, const char *what, unsigned int n_columns,
	bool is_right)
{
	const unsigned int room = top_text_room(text);
	const unsigned int n = n_columns < room ? n_columns : room;
	const unsigned int wanted = top_text_measure(what);

	if (wanted > n) {
		const unsigned int used = n > 0 ? put_up_to(text, what, n - 1) : 0;

		top_text_put(text, n > 0 ? "~" : "");
		put_blanks(text, n > used ? n - used - 1 : 0);
		return;
	}
	put_blanks(text, is_right ? n - wanted : 0);
	top_text_put(text, what);
	put_blanks(text, is_right ? 0 : n - wanted);
}

const char *
top_format_rate(double rate, char out[static TOP_NUMBER_BYTES])
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P"};
	size_t unit = 0;
	int n_decimals;

	if (rate < 0 || rate == 0) {
		(void)snprintf(out, TOP_NUMBER_BYTES, rate < 0 ? "-" : "0");
		return out;
	}
	while (rate >= 999.5 && unit + 1 < LB_N_ELEMENTS(units)) {
		rate /= 1000;
		unit++;
	}
	n_decimals = rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0;
	if (unit == 0)
		n_decimals = rate < 9.95 ? 1 : 0;
	(void)snprintf(out, TOP_NUMBER_BYTES, "%.*f%s", n_decimals, rate, units[unit]);
	return out;
}

const char *
top_format_count(int64_t count, char out[static TOP_NUMBER_BYTES])
{
	if (count >= 1000)
		return top_format_rate((double)count, out);
	(void)snprintf(out, TOP_NUMBER_BYTES, "%" PRId64, count);
	return out;
}

const char *
top_format_part(double part, char out[static TOP_NUMBER_BYTES])
{
	if (part < 0)
		(void)snprintf(out, TOP_NUMBER_BYTES, "-");
	else
		(void)snprintf(out, TOP_NUMBER_BYTES, "%.1f%%", part * 100);
	return out;
}
