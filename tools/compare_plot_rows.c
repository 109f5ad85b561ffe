/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A row for each algorithm.
 */
#include <inttypes.h>
#include <math.h>

#include "compare_plot_parts.h"

#define WIDTH      880u
#define ROW        22.0
#define NAMES      100.0 /* pixels for the names of algorithms */
#define TITLE_MAX  512u
#define LEAST      (-3) /* 0.001 % */
#define MOST       2
#define PANEL_HEAD 34.0
#define PANEL_FOOT 34.0

/** The results that a picture of rows shows. */
struct rows {
	const struct compare_result *of[COMPARE_N_ALGORITHMS];
	size_t n;
};

static struct rows
list_rows(const struct compare_results *results)
{
	struct rows rows = {.n = 0};

	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		const struct compare_result *result = compare_find(results, a,
			results->backends.items[0], results->sizes.items[0]);

		if (result != NULL && result->max_over_mean.n > 0)
			rows.of[rows.n++] = result;
	}
	return rows;
}

static const char *
format_title(const struct compare_results *results, const char *what, char out[TITLE_MAX])
{
	if (results->against != NULL)
		(void)snprintf(out, TITLE_MAX, "%s: %s against %s", what, results->weights,
			results->against);
	else
		(void)snprintf(out, TITLE_MAX,
			"%s: %" PRIu32 " backends, weights %s, %" PRIu32 " slots", what,
			results->backends.items[0], results->weights, results->sizes.items[0]);
	return out;
}

/** A linear axis from 0 at `from` to `most` at `to`, with a line each quarter. */
struct axis {
	double from;
	double to;
	double most;
	double top;
	double bottom;
};

static double
scale_share(const struct axis *axis, double share)
{
	return axis->from + (axis->to - axis->from) * share / axis->most;
}

static void
draw_share_axis(FILE *out, const struct axis *axis)
{
	const double step = axis->most > 8 ? ceil(axis->most / 8) : axis->most > 3 ? 0.5 : 0.25;

	for (unsigned int i = 0; i * step <= axis->most + 1e-9; i++) {
		const double share = i * step;
		const double x = scale_share(axis, share);
		char text[16];

		svg_line(out, (struct svg_point){x, axis->top},
			(struct svg_point){x, axis->bottom},
			fabs(share - 1) < 1e-9 ? "must" : "grid");
		(void)snprintf(text, sizeof(text), "%g", share);
		svg_text(out, (struct svg_point){x, axis->bottom + 16}, "small middle", text);
	}
	svg_text(out, (struct svg_point){(axis->from + axis->to) / 2, axis->bottom + 36},
		"middle label",
		"a backend's share, divided by what is its by weight (1 = even)");
}

static void
draw_balance_row(FILE *out, const struct axis *axis, const struct compare_result *result,
	double y)
{
	const double least = compare_mean(&result->min_over_mean);
	const double most = compare_mean(&result->max_over_mean);
	char text[48];

	svg_text(out, (struct svg_point){axis->from - 10, y + 4}, "end",
		compare_algorithm_words[result->algorithm]);
	svg_line(out, (struct svg_point){scale_share(axis, result->min_over_mean.min), y},
		(struct svg_point){scale_share(axis, result->max_over_mean.max), y}, "thin");
	/* At least as wide as it can be seen. */
	svg_line(out, (struct svg_point){scale_share(axis, least) - 0.7, y},
		(struct svg_point){scale_share(axis, most) + 0.7, y}, "thick");
	(void)snprintf(text, sizeof(text), "%.3f to %.3f", least, most);
	svg_text(out, (struct svg_point){WIDTH - 16, y + 4}, "end label", text);
}

void
compare_plot_balance(FILE *out, const struct compare_results *results)
{
	const struct rows rows = list_rows(results);
	const double top = 62, bottom = top + ROW * (double)rows.n;
	struct axis axis = {NAMES, WIDTH - 150, 1.5, top, bottom};
	char title[TITLE_MAX];

	for (size_t i = 0; i < rows.n; i++)
		axis.most = fmax(axis.most, ceil(4 * rows.of[i]->max_over_mean.max) / 4);
	svg_begin(out, WIDTH, (unsigned int)bottom + 48,
		format_title(results, "How even", title));
	svg_text(out, (struct svg_point){16, 46}, "small",
		"thick: least to largest share, mean over the seeds; thin: of the worst seed. "
		"Modulo shows the spread of keys alone.");
	draw_share_axis(out, &axis);
	for (size_t i = 0; i < rows.n; i++)
		draw_balance_row(out, &axis, rows.of[i], top + ROW * ((double)i + 0.5));
	svg_end(out);
}

/** One change's panel. */
struct panel {
	struct compare_log_scale scale;
	double top; /* of its rows */
	double bottom;
	bool has_names;
};

static void
draw_percent_axis(FILE *out, const struct panel *panel)
{
	const struct compare_log_scale *scale = &panel->scale;
	/* Numbers of many powers would lie over each other. */
	const int n_powers = scale->most - scale->least;
	const int step = n_powers > 7 ? 3 : n_powers > 5 ? 2 : 1;
	char text[16];

	svg_line(out, (struct svg_point){scale->zero_at, panel->top},
		(struct svg_point){scale->zero_at, panel->bottom}, "axis");
	svg_text(out, (struct svg_point){scale->zero_at, panel->bottom + 14}, "small middle",
		"0");
	for (int power = scale->least; power <= scale->most; power++) {
		const double x = compare_scale_percent(scale, pow(10, power));

		svg_line(out, (struct svg_point){x, panel->top},
			(struct svg_point){x, panel->bottom}, "grid");
		if ((scale->most - power) % step != 0)
			continue;
		svg_text(out, (struct svg_point){x, panel->bottom + 14}, "small middle",
			compare_format_power(power, text));
	}
}

static void
draw_moves(FILE *out, const struct panel *panel, const struct compare_result *result,
	size_t change, double y)
{
	const double moved = 100 * compare_mean(&result->changes[change].moved);
	const double needless = 100 * compare_mean(&result->changes[change].needless);
	char name[96];

	(void)snprintf(name, sizeof(name), "%s, %s: %.3g %% moved, %.3g %% needlessly",
		compare_algorithm_words[result->algorithm], result->changes[change].change,
		moved, needless);
	svg_begin_name(out, name);
	svg_circle(out, (struct svg_point){compare_scale_percent(&panel->scale, moved), y});
	svg_square(out, (struct svg_point){compare_scale_percent(&panel->scale, needless), y});
	svg_end_name(out);
}

static void
draw_change(FILE *out, const struct panel *panel, const struct rows *rows, size_t change)
{
	const struct compare_result *first = rows->of[0];
	double must = 0;

	svg_text(out, (struct svg_point){panel->scale.zero_at, panel->top - 8}, "label",
		first->changes[change].change);
	draw_percent_axis(out, panel);
	for (size_t i = 0; i < rows->n; i++)
		must = fmax(must, compare_mean(&rows->of[i]->changes[change].minimal));
	if (must > 0) {
		const double x = compare_scale_percent(&panel->scale, 100 * must);

		svg_line(out, (struct svg_point){x, panel->top},
			(struct svg_point){x, panel->bottom}, "must");
	}
	for (size_t i = 0; i < rows->n; i++) {
		const struct compare_change_result *result = &rows->of[i]->changes[change];
		const double y = panel->top + ROW * ((double)i + 0.5);

		if (panel->has_names)
			svg_text(out, (struct svg_point){panel->scale.zero_at - 12, y + 4},
				"end", compare_algorithm_words[rows->of[i]->algorithm]);
		if (result->moved.n == 0)
			continue;
		draw_moves(out, panel, rows->of[i], change, y);
	}
}

static void
draw_disruption_key(FILE *out)
{
	svg_circle(out, (struct svg_point){24, 46});
	svg_text(out, (struct svg_point){36, 50}, "label", "moved");
	svg_square(out, (struct svg_point){104, 46});
	svg_text(out, (struct svg_point){114, 50}, "label", "of it needlessly");
	svg_line(out, (struct svg_point){246, 39}, (struct svg_point){246, 53}, "must");
	svg_text(out, (struct svg_point){256, 50}, "label",
		"what must move; in percent of all slots, or keys");
}

/** Of all panels, so that they compare. */
static struct compare_log_scale
fit_scale(const struct rows *rows)
{
	struct compare_log_scale scale = {.least = LEAST, .most = MOST};

	for (size_t i = 0; i < rows->n; i++) {
		for (size_t k = 0; k < rows->of[i]->n_changes; k++) {
			const struct compare_change_result *result = &rows->of[i]->changes[k];

			compare_scale_widen(&scale, 100 * compare_mean(&result->moved));
			compare_scale_widen(&scale, 100 * compare_mean(&result->needless));
		}
	}
	return scale;
}

void
compare_plot_disruption(FILE *out, const struct compare_results *results)
{
	const struct rows rows = list_rows(results);
	const size_t n_changes = rows.n > 0 ? rows.of[0]->n_changes : 0;
	const size_t n_columns = n_changes > 1 ? 2 : 1;
	const size_t n_lines = (n_changes + n_columns - 1) / n_columns;
	const double height = ROW * (double)rows.n;
	const double line = PANEL_HEAD + height + PANEL_FOOT;
	const double width = (WIDTH - NAMES - 30) / (double)n_columns;
	const struct compare_log_scale fit = fit_scale(&rows);
	char title[TITLE_MAX];

	svg_begin(out, WIDTH, (unsigned int)(62 + line * (double)n_lines),
		format_title(results, "What a change moves", title));
	draw_disruption_key(out);
	for (size_t i = 0; i < n_changes; i++) {
		const size_t row = i / n_columns, column = i % n_columns;
		const double left = NAMES + 10 + width * (double)column;
		const double top = 62 + PANEL_HEAD + line * (double)row;
		const struct panel panel = {
			.scale = {fit.least, fit.most, left, left + 40, left + width - 36},
			.top = top,
			.bottom = top + height,
			.has_names = column == 0,
		};

		draw_change(out, &panel, &rows, i);
	}
	svg_end(out);
}
