/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compare_plot_parts.h"

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
	struct stat found;
	int ret = 0;

	if (mkdir(folder, 0777) == 0)
		return 0;
	if (errno != EEXIST)
		ret = -errno;
	else if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode))
		ret = -ENOTDIR;
	if (ret != 0)
		(void)fprintf(stderr, "shunt-compare: the folder '%s' cannot be made: %s\n",
			folder, strerror(-ret));
	return ret;
}

typedef void (*draw_fn)(FILE *out, const struct compare_results *results);

static int
write_plot(const char *folder, const char *name, draw_fn draw,
	const struct compare_results *results)
{
	char *path;
	FILE *out;
	int ret = 0;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return -ENOMEM;
	out = fopen(path, "we");
	if (out == NULL) {
		ret = -errno;
	} else {
		draw(out, results);
		if (ferror(out) != 0)
			ret = -EIO;
		if (fclose(out) != 0 && ret == 0)
			ret = -errno;
	}
	if (ret != 0)
		(void)fprintf(stderr, "shunt-compare: %s cannot be written: %s\n", path,
			strerror(-ret));
	free(path);
	return ret;
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
			"shunt-compare: no backends.svg: that takes several --backends\n");
	if (ret != 0)
		return ret;
	if (results->sizes.n > 1)
		ret = write_plot(folder, "size.svg", compare_plot_size, results);
	else
		(void)fprintf(stderr,
			"shunt-compare: no size.svg: that takes several --size\n");
	return ret;
}
