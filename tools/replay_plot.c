/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_plot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"
#include "svg_file.h"

#define PROGRAM "shunt-replay"

#define WIDTH         960u
#define LEFT          84.0
#define RIGHT         700.0
#define NAMES         730.0
#define COUNTS        944.0
#define FIRST_TOP     66.0
#define PANEL         190.0 /* pixels from its top to its bottom */
#define PANEL_STEP    266.0
#define FOOT          64.0
#define EVENT_STEP    17.0
#define LEGEND_STEP   18.0
#define NUMBER_GAP    16.0 /* between the numbers of two events */
#define LINE_MARKS    5u
#define TEXT_MAX      512u
#define NAME_WIDTH    19u /* letters */
#define TITLE_WIDTH   60u
#define EVENT_WIDTH   100u
#define PANELS_MAX    12u
#define EVENTS_MAX    40u /* that are listed; the others have a line alone */
#define POINTS_LEAST  24u
#define POINTS_MOST   128u
#define PACKETS_LEAST 16u /* a point, on average, of a service's lines */

/* A line, of one backend or of several together. */
struct line {
	char name[4 * NAME_WIDTH + 4];
	const char *whole; /* its name as it is */
	uint64_t packets;
	uint64_t bins[REPLAY_TIMELINE_BINS];
};

/* A service. */
struct panel {
	uint32_t service;
	const char *name;
	uint64_t packets;
	size_t n_backends; /* with packets */
	double top;
};

struct plot {
	const struct replay_timeline *timeline;
	const struct replay_plot_backend *backends;
	uint64_t *sums;       /* packets of each backend, by id */
	struct panel *panels; /* those with packets, by number, but for the least of too many */
	size_t n_panels;
	size_t n_left_out;
	struct line lines[SVG_SERIES]; /* of the panel that is drawn */
	size_t n_lines;
	double most; /* packets a second, at the top of the panel */
};

/* Of a name as much as fits, by letters that are wide or not, into 4 * width + 4 bytes. */
static const char *
shorten(const char *name, unsigned int width, char out[])
{
	unsigned int n = 0;
	size_t i = 0;

	while (name[i] != '\0') {
		const unsigned char byte = (unsigned char)name[i];
		const size_t n_bytes = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;

		n += byte < 0xe0 ? 1 : 2;
		if (n > width - 1 && name[i + n_bytes] != '\0')
			break;
		memcpy(out + i, name + i, n_bytes);
		i += n_bytes;
	}
	(void)snprintf(out + i, 4, "%s", name[i] != '\0' ? "…" : "");
	return out;
}

/* Time. */

static double
place_time(const struct plot *plot, double ns)
{
	return LEFT + (RIGHT - LEFT) * ns / (double)plot->timeline->last_ns;
}

/* Bins that are one point: so many that a point is more than chance. */
static size_t
find_merge(const struct plot *plot, uint64_t n_packets, size_t n_lines)
{
	const size_t n_bins = replay_timeline_n_bins(plot->timeline);
	size_t merge = 1;

	while (n_bins / merge > POINTS_MOST ||
		(n_bins / merge > POINTS_LEAST &&
			n_packets / (n_bins / merge) < PACKETS_LEAST * n_lines))
		merge *= 2;
	return merge;
}

/* Points of so many bins each; of the last one half at least is there, if it is not the first.
 */
static size_t
count_points(const struct plot *plot, size_t merge)
{
	const double width_ns = (double)merge * (double)plot->timeline->width_ns;
	const double n = floor((double)plot->timeline->last_ns / width_ns + 0.5);

	return n < 1 ? 1 : (size_t)n;
}

struct point {
	double from_ns;
	double to_ns;
	double rate; /* packets a second */
};

static struct point
read_point(const struct plot *plot, const struct line *line, size_t merge, size_t i)
{
	const double width_ns = (double)merge * (double)plot->timeline->width_ns;
	const bool is_last = i + 1 == count_points(plot, merge);
	const size_t end = is_last ? REPLAY_TIMELINE_BINS : (i + 1) * merge;
	struct point point = {.from_ns = (double)i * width_ns};
	uint64_t packets = 0;

	for (size_t k = i * merge; k < end; k++)
		packets += line->bins[k];
	point.to_ns = is_last ? (double)plot->timeline->last_ns : point.from_ns + width_ns;
	point.rate = (double)packets / ((point.to_ns - point.from_ns) / 1e9);
	return point;
}

/* Lines of a panel. */

static void
add_to_line(const struct plot *plot, struct line *line, uint32_t id)
{
	for (size_t i = 0; i < REPLAY_TIMELINE_BINS; i++)
		line->bins[i] += plot->timeline->rows[id][i];
	line->packets += plot->sums[id];
}

/* Those of a panel with the most packets, n at most; of equals those seen first. Returns n. */
static size_t
find_best(const struct plot *plot, const struct panel *panel, uint32_t best[], size_t n)
{
	size_t n_best = 0;

	for (uint32_t id = 0; id < plot->timeline->n_rows; id++) {
		size_t place = n_best;

		if (plot->backends[id].service != panel->service || plot->sums[id] == 0)
			continue;
		while (place > 0 && plot->sums[best[place - 1]] < plot->sums[id])
			place--;
		if (place == n)
			continue;
		if (n_best < n)
			n_best++;
		memmove(&best[place + 1], &best[place], (n_best - place - 1) * sizeof(best[0]));
		best[place] = id;
	}
	return n_best;
}

static bool
is_in(const uint32_t ids[], size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* Each backend has one, in the order of ids; of too many those with the least packets share. */
static void
list_lines(struct plot *plot, const struct panel *panel)
{
	const bool is_cut = panel->n_backends > SVG_SERIES;
	const size_t n_alone = is_cut ? SVG_SERIES - 1 : panel->n_backends;
	struct line *others = &plot->lines[SVG_SERIES - 1];
	uint32_t alone[SVG_SERIES];
	const size_t n_found = find_best(plot, panel, alone, n_alone);

	memset(plot->lines, 0, sizeof(plot->lines));
	plot->n_lines = 0;
	for (uint32_t id = 0; id < plot->timeline->n_rows; id++) {
		struct line *line = &plot->lines[plot->n_lines];

		if (plot->backends[id].service != panel->service || plot->sums[id] == 0)
			continue;
		if (!is_in(alone, n_found, id)) {
			add_to_line(plot, others, id);
			continue;
		}
		(void)shorten(plot->backends[id].name, NAME_WIDTH, line->name);
		line->whole = plot->backends[id].name;
		add_to_line(plot, line, id);
		plot->n_lines++;
	}
	if (is_cut) {
		(void)snprintf(others->name, sizeof(others->name), "%zu others together",
			panel->n_backends - n_alone);
		others->whole = others->name;
		plot->n_lines = SVG_SERIES;
	}
}

/* Drawing. */

/* A step of 1, 2 or 5 and zeros, of which a few make up most. */
static double
find_step(double most, double n)
{
	const double power = pow(10, floor(log10(most / n)));
	const double part = most / n / power;

	return power * (part > 5 ? 10 : part > 2 ? 5 : part > 1 ? 2 : 1);
}

static const char *
format_number(double value, char out[static 32])
{
	static const struct {
		double size;
		const char *unit;
	} units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (value >= units[i].size) {
			(void)snprintf(out, 32, "%.6g%s", value / units[i].size, units[i].unit);
			return out;
		}
	}
	(void)snprintf(out, 32, "%.6g", value);
	return out;
}

static void
draw_axes(FILE *out, const struct plot *plot, const struct panel *panel)
{
	const double seconds = (double)plot->timeline->last_ns / 1e9;
	const double rate_step = find_step(plot->most, 4);
	const double time_step = find_step(seconds, 8);
	const double bottom = panel->top + PANEL;
	char text[32];

	for (unsigned int i = 0; i * rate_step <= plot->most * 1.0001; i++) {
		const double y = bottom - PANEL * i * rate_step / plot->most;

		svg_line(out, (struct svg_point){LEFT, y}, (struct svg_point){RIGHT, y},
			i == 0 ? "axis" : "grid");
		svg_text(out, (struct svg_point){LEFT - 10, y + 4}, "small end",
			format_number(i * rate_step, text));
	}
	for (unsigned int i = 0; i * time_step <= seconds * 1.0001; i++) {
		const double x = place_time(plot, i * time_step * 1e9);

		svg_line(out, (struct svg_point){x, bottom}, (struct svg_point){x, bottom + 5},
			"axis");
		(void)snprintf(text, sizeof(text), "%.6g", i * time_step);
		svg_text(out, (struct svg_point){x, bottom + 19}, "small middle", text);
	}
	svg_text(out, (struct svg_point){(LEFT + RIGHT) / 2, bottom + 37}, "middle small",
		"seconds since the first packet");
	svg_text_upwards(out, (struct svg_point){22, panel->top + PANEL / 2},
		"packets a second");
}

/* In steps, as a point is all of its time. */
static void
draw_line(FILE *out, const struct plot *plot, const struct panel *panel, size_t merge,
	unsigned int series)
{
	const struct line *line = &plot->lines[series];
	const size_t n = count_points(plot, merge);
	const size_t between = n / LINE_MARKS + 1;
	struct svg_point steps[2 * REPLAY_TIMELINE_BINS];
	char name[TEXT_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct point point = read_point(plot, line, merge, i);
		const double y = panel->top + PANEL * (1 - point.rate / plot->most);

		steps[2 * i] = (struct svg_point){place_time(plot, point.from_ns), y};
		steps[2 * i + 1] = (struct svg_point){place_time(plot, point.to_ns), y};
	}
	(void)snprintf(name, sizeof(name), "%s: %" PRIu64 " packets", line->whole,
		line->packets);
	svg_begin_name(out, name);
	svg_path(out, steps, 2 * n, series);
	/* Who cannot tell the colours tells the shapes; no two lines' stand together.
	 * Where nothing came there is nothing to tell apart. */
	for (size_t i = series * between / SVG_SERIES; i < n; i += between) {
		const double middle = (steps[2 * i].x + steps[2 * i + 1].x) / 2;

		if (steps[2 * i].y < panel->top + PANEL)
			svg_mark(out, (struct svg_point){middle, steps[2 * i].y}, series);
	}
	svg_end_name(out);
}

static void
draw_legend(FILE *out, const struct plot *plot, const struct panel *panel)
{
	char text[32];

	for (unsigned int i = 0; i < plot->n_lines; i++) {
		const double y = panel->top + 8 + i * LEGEND_STEP;

		svg_mark(out, (struct svg_point){NAMES, y}, i);
		svg_text(out, (struct svg_point){NAMES + 14, y + 4}, "label",
			plot->lines[i].name);
		(void)snprintf(text, sizeof(text), "%" PRIu64, plot->lines[i].packets);
		svg_text(out, (struct svg_point){COUNTS, y + 4}, "small end", text);
	}
}

static void
draw_events(FILE *out, const struct plot *plot, const struct panel *panel)
{
	double last = LEFT - NUMBER_GAP;
	char text[32];

	for (size_t i = 0; i < plot->timeline->n_marks; i++) {
		const struct replay_timeline_mark *mark = &plot->timeline->marks[i];
		const double x = place_time(plot, (double)mark->at_ns);

		svg_begin_name(out, mark->title);
		svg_line(out, (struct svg_point){x, panel->top - 6},
			(struct svg_point){x, panel->top + PANEL}, "must");
		(void)snprintf(text, sizeof(text), "%zu", i + 1);
		if (i < EVENTS_MAX && x - last >= NUMBER_GAP) {
			svg_text(out, (struct svg_point){x, panel->top - 10}, "small middle",
				text);
			last = x;
		}
		svg_end_name(out);
	}
}

static void
draw_panel(FILE *out, struct plot *plot, const struct panel *panel)
{
	char name[4 * EVENT_WIDTH + 4];
	size_t merge;

	list_lines(plot, panel);
	merge = find_merge(plot, panel->packets, plot->n_lines);
	plot->most = 0;
	for (size_t i = 0; i < plot->n_lines; i++)
		for (size_t k = 0; k < count_points(plot, merge); k++)
			plot->most = fmax(plot->most,
				read_point(plot, &plot->lines[i], merge, k).rate);
	plot->most = ceil(plot->most / find_step(plot->most, 4)) * find_step(plot->most, 4);
	svg_text(out, (struct svg_point){16, panel->top - 22}, "label",
		shorten(panel->name, TITLE_WIDTH, name));
	svg_text(out, (struct svg_point){COUNTS, panel->top - 10}, "small end", "packets");
	draw_axes(out, plot, panel);
	draw_events(out, plot, panel);
	for (unsigned int i = 0; i < plot->n_lines; i++)
		draw_line(out, plot, panel, merge, i);
	draw_legend(out, plot, panel);
}

static void
draw_list(FILE *out, const struct plot *plot, double y)
{
	const size_t n = plot->timeline->n_marks;
	char name[4 * EVENT_WIDTH + 4];
	char text[TEXT_MAX];

	for (size_t i = 0; i < n && i < EVENTS_MAX; i++) {
		const struct replay_timeline_mark *mark = &plot->timeline->marks[i];

		(void)snprintf(text, sizeof(text), "%zu", i + 1);
		svg_text(out, (struct svg_point){LEFT - 44, y}, "small end", text);
		(void)snprintf(text, sizeof(text), "%.6f s", (double)mark->at_ns / 1e9);
		svg_text(out, (struct svg_point){LEFT + 50, y}, "small end", text);
		svg_text(out, (struct svg_point){LEFT + 66, y}, "label",
			shorten(mark->title, EVENT_WIDTH, name));
		y += EVENT_STEP;
	}
	if (n > EVENTS_MAX) {
		(void)snprintf(text, sizeof(text), "and %zu more events", n - EVENTS_MAX);
		svg_text(out, (struct svg_point){LEFT + 66, y}, "small", text);
		y += EVENT_STEP;
	}
	if (plot->n_left_out > 0) {
		(void)snprintf(text, sizeof(text),
			"not shown: %zu more services, with fewer packets", plot->n_left_out);
		svg_text(out, (struct svg_point){16, y}, "small", text);
	}
}

/* A copy is drawn from, as lines are made one panel after another. */
static void
draw(FILE *out, const void *context)
{
	struct plot plot = *(const struct plot *)context;
	const size_t n = plot.timeline->n_marks;
	const size_t n_rows =
		(n < EVENTS_MAX ? n : EVENTS_MAX) + (n > EVENTS_MAX) + (plot.n_left_out > 0);
	const double end = FIRST_TOP + (double)plot.n_panels * PANEL_STEP;

	svg_begin(out, WIDTH, (unsigned int)(end + (double)n_rows * EVENT_STEP + FOOT / 2),
		"Packets of each backend over time");
	if (plot.n_panels == 0)
		svg_text(out, (struct svg_point){16, FIRST_TOP - 10}, "label",
			"Nothing to show: no packets were forwarded, or all came at one time.");
	for (size_t i = 0; i < plot.n_panels; i++) {
		plot.panels[i].top = FIRST_TOP + (double)i * PANEL_STEP;
		draw_panel(out, &plot, &plot.panels[i]);
	}
	draw_list(out, &plot, end + 10);
	svg_end(out);
}

/* Of too many those with the least packets are left out; the others stay in order. */
static void
cut_panels(struct plot *plot)
{
	while (plot->n_panels > PANELS_MAX) {
		size_t least = 0;

		for (size_t i = 1; i < plot->n_panels; i++)
			if (plot->panels[i].packets < plot->panels[least].packets)
				least = i;
		plot->n_panels--;
		plot->n_left_out++;
		memmove(&plot->panels[least], &plot->panels[least + 1],
			(plot->n_panels - least) * sizeof(plot->panels[0]));
	}
}

static void
list_panels(struct plot *plot, size_t n_services)
{
	size_t n = 0;

	for (uint32_t id = 0; id < plot->timeline->n_rows; id++) {
		struct panel *panel = &plot->panels[plot->backends[id].service];

		plot->sums[id] = replay_timeline_sum(plot->timeline, id);
		panel->service = plot->backends[id].service;
		panel->name = plot->backends[id].of_name;
		panel->packets += plot->sums[id];
		panel->n_backends += plot->sums[id] > 0;
	}
	/* Nothing is over time where there is none. */
	for (size_t i = 0; i < n_services && plot->timeline->last_ns > 0; i++)
		if (plot->panels[i].packets > 0)
			plot->panels[n++] = plot->panels[i];
	plot->n_panels = n;
	cut_panels(plot);
}

int
replay_plot_prepare(const char *folder)
{
	return svg_prepare_folder(PROGRAM, folder);
}

int
replay_plot_write(const char *folder, const struct replay_timeline *timeline,
	const struct replay_plot_backend backends[], size_t n_services)
{
	struct plot *plot = calloc(1, sizeof(*plot));
	struct panel *panels = calloc(n_services + 1, sizeof(*panels));
	uint64_t *sums = calloc(timeline->n_rows + 1, sizeof(*sums));
	int ret = -ENOMEM;

	if (plot != NULL && panels != NULL && sums != NULL) {
		plot->timeline = timeline;
		plot->backends = backends;
		plot->panels = panels;
		plot->sums = sums;
		list_panels(plot, n_services);
		ret = svg_write(PROGRAM, folder, "packets.svg", draw, plot);
	} else {
		(void)fprintf(stderr, PROGRAM ": there is not enough memory for the plot\n");
	}
	free(sums);
	free(panels);
	free(plot);
	return ret;
}
