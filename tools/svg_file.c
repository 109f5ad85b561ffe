/* SPDX-License-Identifier: BSD-3-Clause */
#include "svg_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int
svg_prepare_folder(const char *program, const char *folder)
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
		(void)fprintf(stderr, "%s: the folder '%s' cannot be made: %s\n", program,
			folder, strerror(-ret));
	return ret;
}

int
svg_write(const char *program, const char *folder, const char *name, svg_draw_fn draw,
	const void *context)
{
	char *path;
	FILE *out;
	int ret = 0;

	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		(void)fprintf(stderr, "%s: there is not enough memory for %s\n", program, name);
		return -ENOMEM;
	}
	out = fopen(path, "we");
	if (out == NULL) {
		ret = -errno;
	} else {
		draw(out, context);
		if (ferror(out) != 0)
			ret = -EIO;
		if (fclose(out) != 0 && ret == 0)
			ret = -errno;
	}
	if (ret != 0)
		(void)fprintf(stderr, "%s: %s cannot be written: %s\n", program, path,
			strerror(-ret));
	free(path);
	return ret;
}
