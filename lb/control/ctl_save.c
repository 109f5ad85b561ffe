/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_save.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfg_print.h"

#define SUFFIX ".XXXXXX"

/* Owner and mode of the old file, as far as this process may give them. */
static int
dress(int fd, const char *path)
{
	struct stat old;

	if (stat(path, &old) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (fchown(fd, old.st_uid, old.st_gid) != 0 && errno != EPERM)
		return -errno;
	return fchmod(fd, old.st_mode & 07777) != 0 ? -errno : 0;
}

/* Takes fd. */
static int
write_model(const struct cfg_model *model, int fd)
{
	FILE *stream = fdopen(fd, "w");
	int ret = 0;

	if (stream == NULL) {
		ret = -errno;
		(void)close(fd);
		return ret;
	}
	errno = 0;
	if (cfg_print(model, stream) != 0 || fsync(fd) != 0)
		ret = errno != 0 ? -errno : -EIO;
	if (fclose(stream) != 0 && ret == 0)
		ret = -errno;
	return ret;
}

/*
 * The new name is as lasting as the file once its folder is on the disk. Not every file system
 * can; the file is in its place either way.
 */
static void
sync_folder(char *path)
{
	const int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd);
	(void)close(fd);
}

/* new_path: room for path and SUFFIX. */
static int
replace(const struct cfg_model *model, const char *path, char *new_path)
{
	int fd;
	int ret;

	(void)sprintf(new_path, "%s" SUFFIX, path);
	fd = mkostemp(new_path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = dress(fd, path);
	if (ret != 0)
		(void)close(fd);
	else
		ret = write_model(model, fd);
	if (ret == 0 && rename(new_path, path) != 0)
		ret = -errno;
	if (ret != 0) {
		(void)unlink(new_path);
		return ret;
	}
	sync_folder(new_path);
	return 0;
}

int
ctl_save(const struct cfg_model *model, const char *path)
{
	char *real = realpath(path, NULL);
	char *new_path;
	int ret;

	if (real == NULL && errno == ENOENT) /* somebody removed it: it comes back */
		real = strdup(path);
	if (real == NULL)
		return -errno;
	new_path = malloc(strlen(real) + sizeof(SUFFIX));
	ret = new_path == NULL ? -ENOMEM : replace(model, real, new_path);
	free(new_path);
	free(real);
	return ret;
}
