/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_capture.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "replay_message.h"

/*
 * Little-endian on every machine, so that a replay's output is the same everywhere.
 *
 * Not stdio, and not pcap_dump(): after a failed write neither knows how much of its buffer
 * is in the file, and that must be known to cut the file at a packet's end.
 */

enum {
	/* Several of the largest packets, so that writes are large and a packet always fits. */
	BUFFER_BYTES = 1 << 20,
	FILE_HEADER_BYTES = 24,
	PACKET_HEADER_BYTES = 16,
	CAPTURED_OFFSET = 8, /* of a packet's captured length, in its header */
	LINKTYPE_ETHERNET = 1,
};

static_assert(BUFFER_BYTES > REPLAY_SNAPLEN_BYTES + PACKET_HEADER_BYTES,
	"a packet must fit the empty buffer");

static const uint32_t magic_micro = 0xa1b2c3d4;
static const uint32_t magic_nano = 0xa1b23c4d;
static const uint64_t ns_per_s = 1000000000;

struct replay_output {
	int fd;
	bool is_nano;
	bool has_file_header; /* it is in the file, so the buffer begins with a packet */
	int error;            /* what ended it: a negative errno */
	off_t end_offset;     /* where the buffer goes in the file; -1: it cannot seek */
	struct replay_message message; /* of error */
	char name[REPLAY_NAME_BYTES];
	size_t n_bytes;
	uint8_t buffer[BUFFER_BYTES];
};

static void
put16(struct replay_output *output, uint16_t value)
{
	output->buffer[output->n_bytes++] = (uint8_t)value;
	output->buffer[output->n_bytes++] = (uint8_t)(value >> 8);
}

static void
put32(struct replay_output *output, uint32_t value)
{
	put16(output, (uint16_t)value);
	put16(output, (uint16_t)(value >> 16));
}

static uint32_t
load_le32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Write what is in the buffer. *written says how much of it is in the file, in any case. */
static int
write_buffer(struct replay_output *output, size_t *written)
{
	*written = 0;
	while (*written < output->n_bytes) {
		ssize_t n = write(output->fd, output->buffer + *written,
			output->n_bytes - *written);

		if (n >= 0) {
			*written += (size_t)n;
		} else if (errno == EAGAIN) {
			/* Standard output may be somebody's non-blocking pipe. */
			struct pollfd ready = {.fd = output->fd, .events = POLLOUT};

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				return -errno;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* The end of the last whole packet (or of the file header) in the buffer's first bytes. */
static size_t
last_boundary(const struct replay_output *output, size_t n_bytes)
{
	size_t at = 0;
	size_t next = FILE_HEADER_BYTES;

	if (output->has_file_header)
		next = PACKET_HEADER_BYTES + load_le32(output->buffer + CAPTURED_OFFSET);
	while (next <= n_bytes) {
		at = next;
		if (at == output->n_bytes)
			break;
		next = at + PACKET_HEADER_BYTES +
		       load_le32(output->buffer + at + CAPTURED_OFFSET);
	}
	return at;
}

static int
fail(struct replay_output *output, int error, const char *consequence,
	struct replay_message *message)
{
	output->error = error;
	replay_message_set(&output->message, "%s: cannot be written: %s%s", output->name,
		error == -EPIPE ? "its reader is gone" : strerror(-error), consequence);
	*message = output->message;
	return error;
}

/* Leave no part of a packet behind. A pipe cannot be cut: what is in it is gone. */
static bool
cut_back(const struct replay_output *output, size_t written)
{
	if (output->end_offset < 0)
		return true;
	return ftruncate(output->fd,
		       output->end_offset + (off_t)last_boundary(output, written)) == 0;
}

static int
flush(struct replay_output *output, struct replay_message *message)
{
	size_t written;
	int error = write_buffer(output, &written);

	if (error < 0)
		return fail(output, error,
			cut_back(output, written) ? "" : "; it may end in part of a packet",
			message);
	if (output->end_offset >= 0)
		output->end_offset += (off_t)written;
	output->has_file_header = true;
	output->n_bytes = 0;
	return 0;
}

static void
put_file_header(struct replay_output *output)
{
	put32(output, output->is_nano ? magic_nano : magic_micro);
	put16(output, 2);
	put16(output, 4);
	put32(output, 0);
	put32(output, 0);
	put32(output, REPLAY_SNAPLEN_BYTES);
	put32(output, LINKTYPE_ETHERNET);
}

/* Where the next byte goes; -1 in what cannot be cut, a pipe say. */
static off_t
write_offset(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat status;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -1;
	/* Of standard output opened by >>, the place is not known before the first write. */
	return lseek(fd, 0, flags >= 0 && (flags & O_APPEND) != 0 ? SEEK_END : SEEK_CUR);
}

int
replay_output_open(const char *path, bool is_nano, struct replay_output **out,
	struct replay_message *message)
{
	struct replay_output *output = calloc(1, sizeof(*output));
	char name[REPLAY_NAME_BYTES];
	int rc;

	replay_path_name(name, path, "standard output");
	if (output == NULL) {
		replay_message_set(message, "%s: not enough memory to write it", name);
		return -ENOMEM;
	}
	memcpy(output->name, name, sizeof(name));
	output->is_nano = is_nano;
	output->fd = strcmp(path, "-") == 0
			     ? STDOUT_FILENO
			     : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (output->fd < 0) {
		rc = fail(output, -errno, "", message);
		goto free_output;
	}
	output->end_offset = write_offset(output->fd);
	put_file_header(output);
	/* At once: a full disk is told before the replay, and a killed one leaves a capture. */
	rc = flush(output, message);
	if (rc < 0)
		goto close_fd;
	*out = output;
	return 0;

close_fd:
	if (output->fd != STDOUT_FILENO)
		(void)close(output->fd);
free_output:
	free(output);
	return rc;
}

int
replay_output_write(struct replay_output *output, const uint8_t *bytes, uint32_t n_bytes,
	uint64_t time_ns, struct replay_message *message)
{
	uint32_t captured = n_bytes < REPLAY_SNAPLEN_BYTES ? n_bytes : REPLAY_SNAPLEN_BYTES;
	uint64_t seconds = time_ns / ns_per_s;
	uint32_t fraction = (uint32_t)(time_ns % ns_per_s);

	if (output->error == 0 &&
		BUFFER_BYTES - output->n_bytes < PACKET_HEADER_BYTES + (size_t)captured)
		(void)flush(output, message);
	if (output->error != 0) {
		*message = output->message;
		return output->error;
	}
	/* A pcap file's seconds end in 2106. */
	put32(output, seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX);
	put32(output, output->is_nano ? fraction : fraction / 1000);
	put32(output, captured);
	put32(output, n_bytes);
	memcpy(output->buffer + output->n_bytes, bytes, captured);
	output->n_bytes += captured;
	return 0;
}

int
replay_output_close(struct replay_output *output, struct replay_message *message)
{
	int rc = output->error;

	if (rc == 0)
		rc = flush(output, message);
	else
		*message = output->message;
	/* What some file systems could not write they say only here. */
	if (output->fd != STDOUT_FILENO && close(output->fd) < 0 && rc == 0)
		rc = fail(output, -errno, "", message);
	free(output);
	return rc;
}
