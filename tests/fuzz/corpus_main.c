/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Replays files through a fuzz target, so that what fuzzing once found stays tested in
 * every build, with any compiler. Arguments are files, and folders of files.
 */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int
replay_stream(FILE *file, size_t n)
{
	/* Exact length on the heap, as libFuzzer gives it: ASan sees the byte after. */
	uint8_t *data = malloc(n == 0 ? 1 : n);
	int ret = 0;

	if (data == NULL)
		return -ENOMEM;
	if (fread(data, 1, n, file) == n)
		(void)LLVMFuzzerTestOneInput(data, n);
	else
		ret = -EIO;
	free(data);
	return ret;
}

static int
replay_file(const char *path, size_t n)
{
	FILE *file = fopen(path, "rb");
	int ret;

	if (file == NULL)
		return -errno;
	ret = replay_stream(file, n);
	(void)fclose(file);
	return ret;
}

static int
is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Files of one folder, in the order of their names; out counts them. */
static int
replay_folder(const char *path, size_t *out)
{
	struct dirent **entries;
	const int n = scandir(path, &entries, is_visible, alphasort);
	int ret = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		char file[PATH_MAX];
		struct stat st;

		(void)snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		if (ret == 0 && stat(file, &st) != 0)
			ret = -errno;
		if (ret == 0 && S_ISREG(st.st_mode)) {
			ret = replay_file(file, (size_t)st.st_size);
			(*out)++;
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return ret;
}

static int
replay(const char *path)
{
	struct stat st;
	size_t n_files = 0;
	int ret;

	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return replay_file(path, (size_t)st.st_size);
	ret = replay_folder(path, &n_files);
	if (ret == 0 && n_files == 0)
		return -ENOENT; /* a test of nothing must not pass */
	(void)printf("%s: %zu files\n", path, n_files);
	return ret;
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		(void)fprintf(stderr, "usage: %s FILE|FOLDER ...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		const int ret = replay(argv[i]);

		if (ret != 0) {
			(void)fprintf(stderr, "%s: %s\n", argv[i], strerror(-ret));
			return 1;
		}
	}
	return 0;
}
