/* SPDX-License-Identifier: BSD-3-Clause */
#include "svg_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* 0 or a negative errno: of writing all, or of what is seen of it at the end. */
static int
write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		const ssize_t n_written = write(fd, text, n);

		if (n_written < 0 && errno != EINTR)
			return -errno;
		if (n_written > 0) {
			text += n_written;
			n -= (size_t)n_written;
		}
	}
	return 0;
}

/* Beside the place first: a picture that is there is a whole one, or the one before. */
static int
replace(const char *path, const char *beside, const char *text, size_t n)
{
	const int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, text, n);
	if (close(fd) != 0 && ret == 0)
		ret = -errno;
	if (ret == 0 && rename(beside, path) != 0)
		ret = -errno;
	if (ret != 0)
		(void)unlink(beside);
	return ret;
}

/* In memory first, as a stream does not keep why it failed. */
static int
draw_and_replace(const char *path, const char *beside, svg_draw_fn draw, const void *context)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int ret = 0;

	if (out == NULL)
		return -ENOMEM;
	draw(out, context);
	if (ferror(out) != 0)
		ret = -ENOMEM;
	if (fclose(out) != 0)
		ret = -ENOMEM;
	if (ret == 0)
		ret = replace(path, beside, text, n);
	free(text);
	return ret;
}

int
svg_write(const char *program, const char *folder, const char *name, svg_draw_fn draw,
	const void *context)
{
	char *path;
	int ret;

	if (asprintf(&path, "%s/%s%c%s/.%s.tmp", folder, name, '\0', folder, name) < 0) {
		(void)fprintf(stderr, "%s: there is not enough memory for %s\n", program, name);
		return -ENOMEM;
	}
	ret = draw_and_replace(path, path + strlen(path) + 1, draw, context);
	if (ret != 0)
		(void)fprintf(stderr, "%s: %s cannot be written: %s\n", program, path,
			strerror(-ret));
	free(path);
	return ret;
}
