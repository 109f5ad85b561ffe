/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_save.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfg_print.h"

/* The file beside the old one: always the same, so that no two are ever left behind. */
#define AROUND ".%s.tmp"

static struct ctl_save_mark
make_mark(const struct stat *file)
{
	return (struct ctl_save_mark){.is_there = true,
		.device = file->st_dev,
		.inode = file->st_ino,
		.size_bytes = file->st_size,
		.written_s = file->st_mtim.tv_sec,
		.written_ns = file->st_mtim.tv_nsec};
}

struct ctl_save_mark
ctl_save_look(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 ? make_mark(&file) : (struct ctl_save_mark){0};
}

struct ctl_save_mark
ctl_save_look_at(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 ? make_mark(&file) : (struct ctl_save_mark){0};
}

bool
ctl_save_is_same_file(const struct ctl_save_mark *a, const struct ctl_save_mark *b)
{
	return a->is_there && b->is_there && a->device == b->device && a->inode == b->inode;
}

static bool
is_as_marked(const char *path, const struct ctl_save_mark *mark)
{
	const struct ctl_save_mark now = ctl_save_look(path);

	return !now.is_there ||
	       (ctl_save_is_same_file(&now, mark) && now.size_bytes == mark->size_bytes &&
		       now.written_s == mark->written_s && now.written_ns == mark->written_ns);
}

/* Owner and mode of the old file, as far as this process may give them. */
static int
dress(int fd, const char *path)
{
	struct stat old;

	if (stat(path, &old) != 0)
		return errno == ENOENT ? 0 : -errno;
	/* The mode first: of a file given away it takes CAP_FOWNER, which may not be there. */
	if (fchmod(fd, old.st_mode & 07777) != 0)
		return -errno;
	return fchown(fd, old.st_uid, old.st_gid) != 0 && errno != EPERM ? -errno : 0;
}

/* Takes fd. */
static int
write_model(const struct cfg_model *model, int fd, struct ctl_save_mark *mark)
{
	FILE *stream = fdopen(fd, "w");
	struct stat written;
	int ret = 0;

	if (stream == NULL) {
		ret = -errno;
		(void)close(fd);
		return ret;
	}
	errno = 0;
	if (cfg_print(model, stream) != 0 || fsync(fd) != 0 || fstat(fd, &written) != 0)
		ret = errno != 0 ? -errno : -EIO;
	else
		*mark = make_mark(&written);
	if (fclose(stream) != 0 && ret == 0)
		ret = -errno;
	return ret;
}

/* name: of the file beside the old one, not there yet. */
static int
write_beside(const struct cfg_model *model, int folder, const char *name, const char *path,
	struct ctl_save_mark *mark)
{
	const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int ret;

	if (fd < 0)
		return -errno;
	ret = dress(fd, path);
	if (ret == 0)
		return write_model(model, fd, mark);
	(void)close(fd);
	return ret;
}

/* beside: room for path's last part, and what is AROUND it. */
static int
replace(const struct cfg_model *model, int folder, const char *path, char *beside,
	struct ctl_save_mark *mark)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash == NULL ? path : slash + 1;
	struct ctl_save_mark written;
	int ret;

	(void)sprintf(beside, AROUND, last);
	/* Of a process that was killed while it saved: whoever lives holds the lock. */
	if (unlinkat(folder, beside, 0) != 0 && errno != ENOENT)
		return -errno;
	ret = write_beside(model, folder, beside, path, &written);
	/* As late as can be: writing takes its time. */
	if (ret == 0 && !is_as_marked(path, mark))
		ret = -ESTALE;
	if (ret == 0 && renameat(folder, beside, folder, last) != 0)
		ret = -errno;
	if (ret != 0) {
		(void)unlinkat(folder, beside, 0);
		return ret;
	}
	*mark = written;
	/* The new name is as lasting as the file once its folder is on the disk. Not every file
	 * system can; the file is in its place either way. */
	(void)fsync(folder);
	return 0;
}

/* With the folder locked: two that save there at once would take each other's file. */
static int
save_to(const struct cfg_model *model, const char *path, struct ctl_save_mark *mark)
{
	const size_t n = strlen(path) + sizeof(AROUND);
	char *text = malloc(n);
	int folder;
	int ret = 0;

	if (text == NULL)
		return -ENOMEM;
	memcpy(text, path, strlen(path) + 1);
	folder = open(dirname(text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) != 0)
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else
		ret = replace(model, folder, path, text, mark);
	if (folder >= 0)
		(void)close(folder);
	free(text);
	return ret;
}

int
ctl_save(const struct cfg_model *model, const char *path, struct ctl_save_mark *mark)
{
	char *real = realpath(path, NULL);
	int ret;

	if (real == NULL && errno == ENOENT) /* somebody removed it: it comes back */
		real = strdup(path);
	if (real == NULL)
		return -errno;
	ret = save_to(model, real, mark);
	free(real);
	return ret;
}
