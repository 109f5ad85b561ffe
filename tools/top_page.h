/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

/**
 * @file
 * What is on the screen of `shuntctl top`, line by line, for any size: a summary, a table, and
 * a line for keys, a question or a message. And what each key does to it.
 *
 * Pure but for the locale, see top_text.h: who calls has the terminal.
 */

#include "top_rows.h"
#include "top_text.h"

/** Of a filter, with the 0. */
#define TOP_FILTER_BYTES 128u

/** Smaller screens say that they are. */
#define TOP_PAGE_COLUMNS_MIN 40u
#define TOP_PAGE_LINES_MIN   6u

enum top_look { TOP_PLAIN, TOP_STRONG, TOP_HEAD };

struct top_page {
	bool of_services;
	bool is_reverse;
	bool is_help;
	bool is_asking; /**< the filter is being typed */
	enum top_sort sort;
	char filter[TOP_FILTER_BYTES];
	size_t first;        /**< row of the table that is at its top */
	size_t n_shown;      /**< rows there was room for, when last drawn */
	const char *message; /**< of what is wrong; NULL: nothing */
	const char *socket;
};

/** Write line number n, of what the terminal has; text has no more than its columns. */
typedef void (
	*top_line_fn)(void *context, unsigned int n, const char *text, enum top_look look);

/** A screen, and where its lines go. */
struct top_screen {
	unsigned int n_lines;
	unsigned int n_columns;
	top_line_fn put;
	void *context;
};

/**
 * Draw each line of a screen.
 *
 * @param page    Its first and n_shown are changed: the table does not end above the last line.
 * @param sample  now is NULL: there is no answer yet.
 * @retval -ENOMEM  There is not enough memory; some lines may have been drawn.
 */
int top_page_draw(struct top_page *page, const struct top_sample *sample,
	const struct top_screen *screen) lb_must_check;

/** Keys beyond those that are characters. */
enum top_key {
	TOP_KEY_UP = 0x1000,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE
};

/**
 * A key was pressed.
 *
 * @param key  A byte of text, or of enum top_key.
 * @return whether it goes on: false ends the program.
 */
bool top_page_press(struct top_page *page, int key) lb_must_check;

#endif
