/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_plot.h"

#include <math.h>

#include "compare_plot_parts.h"
#include "svg_file.h"

#define PROGRAM "shunt-compare"

void
compare_scale_widen(struct compare_log_scale *scale, double percent)
{
	if (!(percent > 0))
		return;
	scale->least = (int)fmin(scale->least, floor(log10(percent)));
	scale->most = (int)fmax(scale->most, ceil(log10(percent)));
}

double
compare_scale_percent(const struct compare_log_scale *scale, double percent)
{
	const double power = log10(percent);

	if (percent <= 0)
		return scale->zero_at;
	if (power <= scale->least)
		return scale->from;
	if (power >= scale->most)
		return scale->to;
	return scale->from + (scale->to - scale->from) * (power - scale->least) /
				     (scale->most - scale->least);
}

const char *
compare_format_power(int power, char out[static 16])
{
	(void)snprintf(out, 16, "%.*f %%", power < 0 ? -power : 0, pow(10, power));
	return out;
}

int
compare_plot_prepare(const char *folder)
{
	return svg_prepare_folder(PROGRAM, folder);
}

/* A picture, and what is in it. */
struct plot {
	void (*draw)(FILE *out, const struct compare_results *results);
	const struct compare_results *results;
};

static void
draw_plot(FILE *out, const void *context)
{
	const struct plot *plot = context;

	plot->draw(out, plot->results);
}

static int
write_plot(const char *folder, const char *name,
	void (*draw)(FILE *out, const struct compare_results *results),
	const struct compare_results *results)
{
	const struct plot plot = {.draw = draw, .results = results};

	return svg_write(PROGRAM, folder, name, draw_plot, &plot);
}

int
compare_plot(const char *folder, const struct compare_results *results)
{
	int ret = write_plot(folder, "balance.svg", compare_plot_balance, results);

	if (ret == 0 && results->items[0].n_changes > 0)
		ret = write_plot(folder, "disruption.svg", compare_plot_disruption, results);
	if (results->against != NULL || ret != 0)
		return ret;
	if (results->backends.n > 1)
		ret = write_plot(folder, "backends.svg", compare_plot_backends, results);
	else
		(void)fprintf(stderr,
			PROGRAM ": no backends.svg: that takes several --backends\n");
	if (ret != 0)
		return ret;
	if (results->sizes.n > 1)
		ret = write_plot(folder, "size.svg", compare_plot_size, results);
	else
		(void)fprintf(stderr, PROGRAM ": no size.svg: that takes several --size\n");
	return ret;
}
