/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOP_TEXT_H
#define TOP_TEXT_H

/**
 * @file
 * A line of a screen in the making: text and cells, cut where the line ends.
 *
 * Widths are columns of a terminal, by the locale's LC_CTYPE. What is no printable character
 * there, such as an escape in a name, is shown as "?". Not thread-safe: the locale's state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Wider screens are used up to here. */
#define TOP_TEXT_COLUMNS_MAX 400u

/** Of a rate or a part as text, with the 0. */
#define TOP_NUMBER_BYTES 24u

struct top_text {
	unsigned int width;     /**< columns that there are */
	unsigned int n_columns; /**< of them in use */
	size_t n_bytes;
	char bytes[TOP_TEXT_COLUMNS_MAX * 8]; /**< with a 0 at the end */
};

/** @param width  In columns; what is over TOP_TEXT_COLUMNS_MAX is not used. */
void top_text_begin(struct top_text *text, unsigned int width);

/** Columns that are left. */
unsigned int top_text_room(const struct top_text *text);

/** Add a text, as it is or as printf() makes it. */
void top_text_put(struct top_text *text, const char *what);
void top_text_print(struct top_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * Add a text that is cut, with "~" for what is lost, or filled with blanks to n_columns.
 *
 * @param is_right  The blanks go before it.
 */
void top_text_put_cell(struct top_text *text, const char *what, unsigned int n_columns,
	bool is_right);

/** Columns that a text takes. */
unsigned int top_text_measure(const char *what);

/**
 * A rate in three digits: "0", "0.5", "712", "1.23k", "12.3M".
 *
 * @param rate  Below 0: it is not known, "-".
 * @return out.
 */
const char *top_format_rate(double rate, char out[static TOP_NUMBER_BYTES]);

/** A count, from 0 on, likewise: without decimals below a thousand. */
const char *top_format_count(int64_t count, char out[static TOP_NUMBER_BYTES]);

/** A part of 1 in percent, "33.3%". As above. */
const char *top_format_part(double part, char out[static TOP_NUMBER_BYTES]);

#endif
