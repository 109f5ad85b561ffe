/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No configuration is longer; an endless device must not fill the memory. */
#define FILE_BYTES_MAX ((size_t)256 << 20)

static int
read_failed(struct cfg_errors *errors, int error)
{
	if (error == EISDIR)
		cfg_error(errors, (struct cfg_pos){0}, "it is a directory; expected a file");
	else
		cfg_error(errors, (struct cfg_pos){0}, "it cannot be read: %s",
			strerror(error));
	return -EIO;
}

/* The whole stream on the heap. */
static int
read_stream(FILE *stream, struct cfg_errors *errors, char **out, size_t *n_out)
{
	size_t room = 16384;
	size_t n = 0;
	char *text = NULL;

	do {
		char *grown;

		if (n == FILE_BYTES_MAX) {
			cfg_error(errors, (struct cfg_pos){0},
				"it is longer than 256 MiB; no configuration is");
			free(text);
			return -EINVAL;
		}
		room = room < FILE_BYTES_MAX / 2 ? room * 2 : FILE_BYTES_MAX;
		grown = realloc(text, room);
		if (grown == NULL) {
			free(text);
			cfg_error_memory(errors);
			return -ENOMEM;
		}
		text = grown;
		errno = 0;
		n += fread(text + n, 1, room - n, stream);
	} while (n == room);
	if (ferror(stream) != 0) {
		free(text);
		return read_failed(errors, errno == 0 ? EIO : errno);
	}
	*out = text;
	*n_out = n;
	return 0;
}

int
cfg_node_read(FILE *stream, struct cfg_errors *errors, struct cfg_node **out)
{
	char *text;
	size_t n_bytes;
	int ret;

	ret = read_stream(stream, errors, &text, &n_bytes);
	if (ret != 0)
		return ret;
	ret = cfg_node_parse(text, n_bytes, errors, out);
	free(text);
	return ret;
}

int
cfg_read_bytes(struct cfg_errors *errors, char **out, size_t *n_out)
{
	FILE *stream = fopen(errors->file, "re");
	int ret;

	if (stream == NULL) {
		ret = -errno;
		cfg_error(errors, (struct cfg_pos){0}, "it cannot be opened: %s",
			strerror(-ret));
		return ret;
	}
	ret = read_stream(stream, errors, out, n_out);
	(void)fclose(stream); /* only read from: nothing is lost */
	return ret;
}

int
cfg_node_read_file(struct cfg_errors *errors, struct cfg_node **out)
{
	char *text = NULL;
	size_t n_bytes = 0;
	int ret;

	ret = cfg_read_bytes(errors, &text, &n_bytes);
	if (ret != 0)
		return ret;
	ret = cfg_node_parse(text, n_bytes, errors, out);
	free(text);
	return ret;
}
