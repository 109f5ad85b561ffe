/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SVG_H
#define SVG_H

/**
 * @file
 * SVG as plain text: lines, words and marks, in colours that the colour-blind can tell apart
 * (Okabe and Ito's), and that follow the reader's light or dark background.
 *
 * Coordinates are pixels from the top left. Errors of writing stay in the stream, where
 * ferror() finds them.
 */

#include <stdio.h>

/** Series have a colour and a shape each, 0..SVG_SERIES-1. */
#define SVG_SERIES 10u

struct svg_point {
	double x;
	double y;
};

/** Begin a picture; title is what it shows, for those who cannot see it, too. */
void svg_begin(FILE *out, unsigned int width, unsigned int height, const char *title);

void svg_end(FILE *out);

/** A text from there on; class is "", or of "end", "middle", "small", "head", "label". */
void svg_text(FILE *out, struct svg_point at, const char *class, const char *text);

/** Likewise, turned to be read from the bottom up. */
void svg_text_upwards(FILE *out, struct svg_point at, const char *text);

/** class is "axis", "grid", "must", "thin" or "thick". */
void svg_line(FILE *out, struct svg_point from, struct svg_point to, const char *class);

/** A series' line through n points. */
void svg_path(FILE *out, const struct svg_point *points, size_t n, unsigned int series);

/** A series' mark. */
void svg_mark(FILE *out, struct svg_point at, unsigned int series);

/** A hollow circle, or a full square. */
void svg_circle(FILE *out, struct svg_point at);
void svg_square(FILE *out, struct svg_point at);

/**
 * What is drawn from here to svg_end_name() has a name, which browsers show beside the
 * pointer.
 */
void svg_begin_name(FILE *out, const char *name);
void svg_end_name(FILE *out);

#endif
