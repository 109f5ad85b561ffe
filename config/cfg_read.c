/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_BYTES_MIN ((size_t)32 << 10)
/* Between two looks at whether to stop. */
#define PIECE_BYTES ((size_t)1 << 20)

static int
read_failed(struct cfg_errors *errors, int error)
{
	if (error == EISDIR)
		cfg_error(errors, (struct cfg_pos){0}, "it is a directory; expected a file");
	else if (error == EAGAIN)
		cfg_error(errors, (struct cfg_pos){0},
			"reading it would wait for somebody; expected a regular file");
	else
		cfg_error(errors, (struct cfg_pos){0}, "it cannot be read: %s",
			strerror(error));
	return -EIO;
}

/* Fills the room of n bytes, or to the end; the number of bytes. */
static size_t
fill(FILE *stream, struct cfg_errors *errors, char *to, size_t n)
{
	size_t at = 0;

	while (at < n && !cfg_must_stop(errors)) {
		const size_t n_left = n - at;
		const size_t n_piece = n_left < PIECE_BYTES ? n_left : PIECE_BYTES;
		const size_t n_read = fread(to + at, 1, n_piece, stream);

		at += n_read;
		if (n_read < n_piece)
			break;
	}
	return at;
}

int
cfg_read_stream(FILE *stream, struct cfg_errors *errors, char **out, size_t *n_out)
{
	const size_t room_max = CFG_FILE_BYTES_MAX + 1;
	size_t room = ROOM_BYTES_MIN / 2;
	size_t n = 0;
	char *text = NULL;

	do {
		char *grown;

		/* An endless device must not fill the memory. */
		if (n == room_max) {
			cfg_error(errors, (struct cfg_pos){0},
				"it is longer than %zu MiB; no configuration is",
				CFG_FILE_BYTES_MAX >> 20);
			free(text);
			return -EINVAL;
		}
		room = room < room_max / 2 ? room * 2 : room_max;
		grown = realloc(text, room);
		if (grown == NULL) {
			free(text);
			cfg_error_memory(errors);
			return -ENOMEM;
		}
		text = grown;
		errno = 0;
		n += fill(stream, errors, text + n, room - n);
	} while (n == room);
	if (errors->is_stopped) {
		free(text);
		return -EINVAL;
	}
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

	ret = cfg_read_stream(stream, errors, &text, &n_bytes);
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
	ret = cfg_read_stream(stream, errors, out, n_out);
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
