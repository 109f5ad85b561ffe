/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl_etcd_client.h"
#include "lb_hash.h"
#include "lb_hex.h"

#define HEAD_CLUSTER  "# shuntd's copy of what etcd has: cluster "
#define HEAD_REVISION ", revision "
#define HEAD_HASH     ", hash "
#define HEAD_KEY      ", key "
#define HEAD                                                                                   \
	HEAD_CLUSTER "%" PRIu64 HEAD_REVISION "%" PRIu64 HEAD_HASH "%016" PRIx64 HEAD_KEY "%s" \
		     "\n"
/* With the longest key and numbers. */
#define HEAD_BYTES (sizeof(HEAD) + CTL_ETCD_KEY_BYTES_MAX + 64)

#define LOCK_TRIES 25u

/* Of a name. What is longer has a hash at its end instead of the rest. */
#define NAME_BYTES_MAX 160u

uint64_t
ctl_etcd_document_hash(const char *text, size_t n_bytes)
{
	return lb_hash_bytes(text, n_bytes, 0);
}

void
ctl_etcd_document_fini(struct ctl_etcd_document *document)
{
	free(document->text);
	*document = (struct ctl_etcd_document){0};
}

/* Where it is. */

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

/* A key as part of a file's name: other keys are other names. */
static void
write_name(const char *key, FILE *to)
{
	size_t n = 0;

	for (const char *at = key; *at != '\0' && n < NAME_BYTES_MAX; at++)
		n += (size_t)(is_plain(*at) ? fprintf(to, "%c", *at)
					    : fprintf(to, "%%%02x", (unsigned char)*at));
	if (n >= NAME_BYTES_MAX)
		(void)fprintf(to, "-%016" PRIx64, lb_hash_bytes(key, strlen(key), 0));
}

char *
ctl_etcd_copy_path(const char *key)
{
	const char *folders = getenv("STATE_DIRECTORY");
	const char *folder =
		folders != NULL && folders[0] != '\0' ? folders : CTL_ETCD_COPY_FOLDER;
	size_t n_path = 0;
	char *path = NULL;
	FILE *to = open_memstream(&path, &n_path);

	if (to == NULL)
		return NULL;
	(void)fprintf(to, "%.*s/etcd-", (int)strcspn(folder, ":"), folder);
	write_name(key, to);
	(void)fputs(".yaml", to);
	if (fclose(to) != 0) {
		free(path);
		return NULL;
	}
	return path;
}

/* Writing. */

static int
write_all(int fd, const char *bytes, size_t n_bytes)
{
	while (n_bytes > 0) {
		const ssize_t n = write(fd, bytes, n_bytes);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			n_bytes -= (size_t)n;
		}
	}
	return 0;
}

static int
write_file(int folder, const char *name, const char *key,
	const struct ctl_etcd_document *document)
{
	char head[HEAD_BYTES];
	const int n_head = snprintf(head, sizeof(head), HEAD, document->cluster,
		document->revision, document->hash, key);
	int ret = 0;
	int fd;

	/* Of a process that was killed, or found no room, while it wrote. */
	if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
		return -errno;
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, head, (size_t)n_head);
	if (ret == 0)
		ret = write_all(fd, document->text, document->n_bytes);
	if (ret == 0 && fsync(fd) != 0)
		ret = -errno;
	if (close(fd) != 0 && ret == 0)
		ret = -errno;
	return ret;
}

static int
replace(int folder, const char *name, const char *key, const struct ctl_etcd_document *document)
{
	char *beside;
	int ret;

	if (asprintf(&beside, ".%s.tmp", name) < 0)
		return -ENOMEM;
	ret = write_file(folder, beside, key, document);
	if (ret == 0 && renameat(folder, beside, folder, name) != 0)
		ret = -errno;
	if (ret != 0)
		(void)unlinkat(folder, beside, 0);
	/* The new name is as lasting as the file once its folder is on the disk. Not every file
	 * system can; the file is in its place either way. */
	(void)fsync(folder);
	free(beside);
	return ret;
}

/* Two that write there at once would take each other's file. */
static int
lock_folder(int folder)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		if (flock(folder, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		(void)nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

int
ctl_etcd_copy_write(const char *path, const char *key, const struct ctl_etcd_document *document)
{
	const char *name = strrchr(path, '/') + 1;
	char *folder_path = strndup(path, (size_t)(name - path));
	int folder;
	int ret;

	if (folder_path == NULL)
		return -ENOMEM;
	/* Where it is there, or cannot be made, open() says what matters. */
	(void)!mkdir(folder_path, 0700);
	folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = folder < 0 ? -errno : lock_folder(folder);
	if (ret == 0)
		ret = replace(folder, name, key, document);
	if (folder >= 0)
		(void)close(folder);
	free(folder_path);
	return ret;
}

/* Reading. */

/* A number behind words. Returns what comes after both; NULL: they are not there. */
static const char *
parse_number(const char *text, const char *words, int base, uint64_t *out)
{
	const size_t n_words = strlen(words);
	char *end;

	if (text == NULL || strncmp(text, words, n_words) != 0 ||
		lb_hex_digit(text[n_words]) < 0)
		return NULL;
	errno = 0;
	*out = strtoull(text + n_words, &end, base);
	return errno == 0 ? end : NULL;
}

/* Whether the first line says what it is a copy of, and that is the key. */
static bool
parse_head(const char *line, const char *key, struct ctl_etcd_document *document)
{
	const char *at = parse_number(line, HEAD_CLUSTER, 10, &document->cluster);

	at = parse_number(at, HEAD_REVISION, 10, &document->revision);
	at = parse_number(at, HEAD_HASH, 16, &document->hash);
	return at != NULL && strncmp(at, HEAD_KEY, strlen(HEAD_KEY)) == 0 &&
	       strcmp(at + strlen(HEAD_KEY), key) == 0 && document->revision > 0 &&
	       document->revision <= INT64_MAX;
}

int
ctl_etcd_copy_parse(const char *bytes, size_t n_bytes, const char *key,
	struct ctl_etcd_document *out)
{
	const char *end = memchr(bytes, '\n', n_bytes < HEAD_BYTES ? n_bytes : HEAD_BYTES);
	struct ctl_etcd_document document = {0};
	char head[HEAD_BYTES];
	const char *text;

	if (end == NULL)
		return -EBADMSG;
	text = end + 1;
	memcpy(head, bytes, (size_t)(end - bytes));
	head[end - bytes] = '\0';
	document.n_bytes = n_bytes - (size_t)(text - bytes);
	if (!parse_head(head, key, &document) ||
		document.hash != ctl_etcd_document_hash(text, document.n_bytes))
		return -EBADMSG;
	document.text = malloc(document.n_bytes + 1);
	if (document.text == NULL)
		return -ENOMEM;
	memcpy(document.text, text, document.n_bytes);
	document.text[document.n_bytes] = '\0';
	*out = document;
	return 0;
}

static int
parse_file(int fd, size_t n_bytes, const char *key, struct ctl_etcd_document *out)
{
	char *bytes = malloc(n_bytes + 1);
	size_t n_read = 0;
	ssize_t n = 1;
	int ret;

	if (bytes == NULL)
		return -ENOMEM;
	while (n_read < n_bytes && n > 0) {
		n = read(fd, bytes + n_read, n_bytes - n_read);
		if (n > 0)
			n_read += (size_t)n;
	}
	ret = n < 0 ? -errno : ctl_etcd_copy_parse(bytes, n_read, key, out);
	free(bytes);
	return ret;
}

int
ctl_etcd_copy_read(const char *path, const char *key, struct ctl_etcd_document *out,
	int64_t *saved_s)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat file;
	int ret;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &file) != 0)
		ret = -errno;
	else if (!S_ISREG(file.st_mode) ||
		 file.st_size > (off_t)(CTL_ETCD_VALUE_BYTES_MAX + HEAD_BYTES))
		ret = -EBADMSG;
	else
		ret = parse_file(fd, (size_t)file.st_size, key, out);
	if (ret == 0)
		*saved_s = file.st_mtim.tv_sec;
	(void)close(fd);
	return ret;
}
