/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_SVG_H
#define COMPARE_SVG_H

/**
 * @file
 * SVG as plain text: lines, words and marks, in colours that the colour-blind can tell apart
 * (Okabe and Ito's), and that follow the reader's light or dark background.
 *
 * Coordinates are pixels from the top left. Errors of writing stay in the stream, where
 * ferror() finds them.
 */

#include <stdio.h>

/** Series have a colour and a shape each, 0..COMPARE_SVG_SERIES-1. */
#define COMPARE_SVG_SERIES 10u

struct compare_point {
	double x;
	double y;
};

/** Begin a picture; title is what it shows, for those who cannot see it, too. */
void compare_svg_begin(FILE *out, unsigned int width, unsigned int height, const char *title);

void compare_svg_end(FILE *out);

/** A text from there on; class is "", or of "end", "middle", "small", "head", "label". */
void compare_svg_text(FILE *out, struct compare_point at, const char *class, const char *text);

/** Likewise, turned to be read from the bottom up. */
void compare_svg_text_upwards(FILE *out, struct compare_point at, const char *text);

/** class is "axis", "grid", "must", "thin" or "thick". */
void compare_svg_line(FILE *out, struct compare_point from, struct compare_point to,
	const char *class);

/** A series' line through n points. */
void compare_svg_path(FILE *out, const struct compare_point *points, size_t n,
	unsigned int series);

/** A series' mark. */
void compare_svg_mark(FILE *out, struct compare_point at, unsigned int series);

/** A hollow circle, or a full square. */
void compare_svg_circle(FILE *out, struct compare_point at);
void compare_svg_square(FILE *out, struct compare_point at);

/**
 * What is drawn from here to compare_svg_end_name() has a name, which browsers show beside the
 * pointer.
 */
void compare_svg_begin_name(FILE *out, const char *name);
void compare_svg_end_name(FILE *out);

#endif
