/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line for each algorithm, over the number of backends or of slots.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare_plot_parts.h"

#define WIDTH     880u
#define HEIGHT    440u
#define TOP       84.0
#define BOTTOM    370.0
#define LABEL_GAP 15.0
#define TITLE_MAX 512u

static_assert(COMPARE_N_ALGORITHMS <= SVG_SERIES, "a colour and a shape for each");

/** What stands over what. */
struct figure {
	const struct compare_results *results;
	struct options_list xs; /* ascending */
	bool is_over_size;
	double left;
	double right;
	struct compare_log_scale scale;
	bool is_balance; /* otherwise the disruption by a change */
	size_t change;
};

static int
compare_items(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double
place_x(const struct figure *figure, uint32_t x)
{
	const double least = log(figure->xs.items[0]);
	const double most = log(figure->xs.items[figure->xs.n - 1]);

	return figure->left +
	       (figure->right - figure->left) * (log(x) - least) / (most - least);
}

/** In percent; NAN where it was not measured. */
static double
value_at(const struct figure *figure, enum compare_algorithm algorithm, uint32_t x)
{
	const struct compare_results *results = figure->results;
	const size_t n = figure->is_over_size ? results->backends.items[0] : x;
	const uint32_t n_slots = figure->is_over_size ? x : results->sizes.items[0];
	const struct compare_result *result = compare_find(results, algorithm, n, n_slots);

	if (result == NULL || result->max_over_mean.n == 0)
		return NAN;
	if (figure->is_balance)
		return 100 * (compare_mean(&result->max_over_mean) - 1);
	if (result->changes[figure->change].needless.n == 0)
		return NAN;
	return 100 * compare_mean(&result->changes[figure->change].needless);
}

/** Where a line ends, and where its name stands. */
struct label {
	enum compare_algorithm algorithm;
	struct svg_point end;
	double y;
};

static int
compare_labels(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	if (x->end.y < y->end.y || x->end.y > y->end.y)
		return x->end.y < y->end.y ? -1 : 1;
	return (x->algorithm > y->algorithm) - (x->algorithm < y->algorithm);
}

/** Push names apart, downwards, and where they leave the picture up again. */
static void
spread_labels(struct label *labels, size_t n)
{
	double last = BOTTOM + 12;

	qsort(labels, n, sizeof(*labels), compare_labels);
	for (size_t i = 0; i < n; i++) {
		labels[i].y = labels[i].end.y;
		if (i > 0 && labels[i].y < labels[i - 1].y + LABEL_GAP)
			labels[i].y = labels[i - 1].y + LABEL_GAP;
	}
	for (size_t i = n; i > 0; i--) {
		if (labels[i - 1].y > last)
			labels[i - 1].y = last;
		last = labels[i - 1].y - LABEL_GAP;
	}
}

static void
draw_labels(FILE *out, struct label *labels, size_t n)
{
	spread_labels(labels, n);
	for (size_t i = 0; i < n; i++) {
		const struct svg_point end = labels[i].end;
		const struct svg_point at = {end.x + 34, labels[i].y};

		svg_line(out, (struct svg_point){end.x + 7, end.y},
			(struct svg_point){at.x - 9, at.y}, "grid");
		svg_mark(out, at, labels[i].algorithm);
		svg_text(out, (struct svg_point){at.x + 10, at.y + 4}, "label",
			compare_algorithm_words[labels[i].algorithm]);
	}
}

static void
draw_axes(FILE *out, const struct figure *figure)
{
	const struct compare_log_scale *scale = &figure->scale;
	char text[16];

	for (int power = scale->least; power <= scale->most; power++) {
		const double y = compare_scale_percent(scale, pow(10, power));

		svg_line(out, (struct svg_point){figure->left, y},
			(struct svg_point){figure->right, y}, "grid");
		svg_text(out, (struct svg_point){figure->left - 12, y + 4}, "small end",
			compare_format_power(power, text));
	}
	svg_line(out, (struct svg_point){figure->left, scale->zero_at},
		(struct svg_point){figure->right, scale->zero_at}, "axis");
	svg_text(out, (struct svg_point){figure->left - 12, scale->zero_at + 4}, "small end",
		"0");
	for (size_t i = 0; i < figure->xs.n; i++) {
		const double x = place_x(figure, figure->xs.items[i]);

		svg_line(out, (struct svg_point){x, TOP}, (struct svg_point){x, BOTTOM},
			"grid");
		(void)snprintf(text, sizeof(text), "%" PRIu32, figure->xs.items[i]);
		svg_text(out, (struct svg_point){x, BOTTOM + 20}, "small middle", text);
	}
	svg_text(out, (struct svg_point){(figure->left + figure->right) / 2, BOTTOM + 44},
		"middle label", figure->is_over_size ? "slots" : "backends");
}

static bool
has_line(const struct figure *figure, enum compare_algorithm algorithm)
{
	return !figure->is_over_size || compare_takes_size(algorithm);
}

/** No value lies beyond an end. */
static void
fit_scale(struct figure *figure)
{
	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		for (size_t i = 0; has_line(figure, a) && i < figure->xs.n; i++)
			compare_scale_widen(&figure->scale,
				value_at(figure, a, figure->xs.items[i]));
	}
}

/** Its points, each with its value as a name. */
static void
draw_marks(FILE *out, const struct figure *figure, enum compare_algorithm algorithm)
{
	for (size_t i = 0; i < figure->xs.n; i++) {
		const uint32_t x = figure->xs.items[i];
		const double value = value_at(figure, algorithm, x);
		const struct svg_point at = {place_x(figure, x),
			compare_scale_percent(&figure->scale, value)};
		char name[64];

		if (isnan(value))
			continue;
		(void)snprintf(name, sizeof(name), "%s, %" PRIu32 " %s: %.3g %%",
			compare_algorithm_words[algorithm], x,
			figure->is_over_size ? "slots" : "backends", value);
		svg_begin_name(out, name);
		svg_mark(out, at, algorithm);
		svg_end_name(out);
	}
}

static void
draw_figure(FILE *out, const struct figure *figure, const char *heading)
{
	struct label labels[COMPARE_N_ALGORITHMS];
	size_t n_labels = 0;

	svg_text(out, (struct svg_point){figure->left - 60, TOP - 24}, "label", heading);
	draw_axes(out, figure);
	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		struct svg_point points[OPTIONS_LIST_MAX];
		size_t n = 0;

		if (!has_line(figure, a))
			continue;
		for (size_t i = 0; i < figure->xs.n; i++) {
			const double value = value_at(figure, a, figure->xs.items[i]);

			if (isnan(value))
				continue;
			points[n].x = place_x(figure, figure->xs.items[i]);
			points[n++].y = compare_scale_percent(&figure->scale, value);
		}
		if (n == 0)
			continue;
		svg_path(out, points, n, a);
		draw_marks(out, figure, a);
		labels[n_labels++] = (struct label){.algorithm = a, .end = points[n - 1]};
	}
	draw_labels(out, labels, n_labels);
}

static void
draw_both(FILE *out, const struct compare_results *results, bool is_over_size,
	const char *title)
{
	const struct compare_result *first = &results->items[0];
	struct figure figure = {
		.results = results,
		.xs = is_over_size ? results->sizes : results->backends,
		.is_over_size = is_over_size,
		.left = 76,
		.right = 316,
		.scale = {-2, 2, BOTTOM, BOTTOM - 26, TOP},
		.is_balance = true,
	};
	char heading[64];

	qsort(figure.xs.items, figure.xs.n, sizeof(figure.xs.items[0]), compare_items);
	fit_scale(&figure);
	svg_begin(out, WIDTH, HEIGHT, title);
	draw_figure(out, &figure, "the largest share, percent above what is its by weight");
	if (first->n_changes > 0) {
		figure.is_balance = false;
		figure.left += WIDTH / 2.0;
		figure.right += WIDTH / 2.0;
		figure.scale.least = -3;
		figure.scale.most = 2;
		fit_scale(&figure);
		(void)snprintf(heading, sizeof(heading), "moved needlessly by %s, percent",
			first->changes[0].change);
		draw_figure(out, &figure, heading);
	}
	svg_end(out);
}

void
compare_plot_backends(FILE *out, const struct compare_results *results)
{
	char title[TITLE_MAX];

	(void)snprintf(title, sizeof(title),
		"With the number of backends: weights %s, %" PRIu32 " slots", results->weights,
		results->sizes.items[0]);
	draw_both(out, results, false, title);
}

void
compare_plot_size(FILE *out, const struct compare_results *results)
{
	char title[TITLE_MAX];

	(void)snprintf(title, sizeof(title),
		"With the number of slots: %" PRIu32 " backends, weights %s",
		results->backends.items[0], results->weights);
	draw_both(out, results, true, title);
}
