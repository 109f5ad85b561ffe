/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "replay_linktype.h"
#include "replay_message.h"

enum {
	BUFFER_BYTES = 1 << 16,
	PCAP_HEADER_BYTES = 24,
	PCAP_SNAPLEN_OFFSET = 16,
	PCAP_LINKTYPE_OFFSET = 20,
	/* The bits above are not the linktype's: they say how long an FCS is. */
	PCAP_LINKTYPE_MASK = 0x03ffffff,
};

static const uint32_t pcap_magic_micro = 0xa1b2c3d4;
static const uint32_t pcap_magic_nano = 0xa1b23c4d;
static const uint32_t pcap_magic_modified = 0xa1b2cd34; /* Kuznetzov's, of old Linux */

/* draft-ietf-opsawg-pcapng, section 4 */
enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET_OBSOLETE = 2,
	BLOCK_PACKET_SIMPLE = 3,
	BLOCK_PACKET = 6,

	BLOCK_HEADER_BYTES = 8,
	BLOCK_TRAILER_BYTES = 4,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,

	INTERFACE_FIXED_BYTES = 16,
	OPTION_END = 0,
	OPTION_TIME_RESOLUTION = 9,
};

struct interface {
	uint32_t linktype;
	uint32_t snaplen_bytes; /* 0: no limit */
};

struct replay_stream {
	int fd;
	bool is_pcap;
	bool is_swapped; /* numbers are in the other byte order than ours */
	bool is_nano;
	bool is_at_end;
	bool has_linktype; /* pcapng: an interface was seen */
	bool is_opaque;    /* pcapng: a block is damaged; the rest passes as it is */
	int error;         /* a negative errno */
	const char *refusal;
	uint32_t linktype;
	struct replay_stream_packet packet;

	struct interface *interfaces; /* of this section */
	size_t n_interfaces;
	size_t interfaces_max;

	uint64_t block_left_bytes; /* of the current block, yet to be passed on */
	uint64_t read_bytes;
	uint64_t file_bytes;
	size_t start; /* what is in the buffer: start..end */
	size_t end;
	uint8_t buffer[BUFFER_BYTES];
};

static const struct {
	const char *bytes;
	size_t n_bytes;
	const char *name;
} foreign_formats[] = {
	{"snoop\0\0", 8, "a snoop capture"},
	{"\x1f\x8b", 2, "compressed by gzip"},
	{"\x28\xb5\x2f\xfd", 4, "compressed by zstd"},
	{"\xfd"
	 "7zXZ",
		6, "compressed by xz"},
	{"BZh", 3, "compressed by bzip2"},
	{"\x04\x22\x4d\x18", 4, "compressed by lz4"},
	{"PK\x03\x04", 4, "a zip archive"},
	{"\x7f"
	 "ELF",
		4, "a program"},
	{"GMBU", 4, "a Microsoft Network Monitor capture"},
	{"RTSS", 4, "a Microsoft Network Monitor capture"},
	{"TRSNIFF data", 12, "a Sniffer capture"},
	{"XCP", 4, "a NetXRay capture"},
};

static uint32_t
load32(const struct replay_stream *stream, const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return stream->is_swapped ? __builtin_bswap32(value) : value;
}

static uint16_t
load16(const struct replay_stream *stream, const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return stream->is_swapped ? __builtin_bswap16(value) : value;
}

static void
store32(const struct replay_stream *stream, uint8_t *bytes, uint32_t value)
{
	if (stream->is_swapped)
		value = __builtin_bswap32(value);
	memcpy(bytes, &value, sizeof(value));
}

static void
store16(const struct replay_stream *stream, uint8_t *bytes, uint16_t value)
{
	if (stream->is_swapped)
		value = __builtin_bswap16(value);
	memcpy(bytes, &value, sizeof(value));
}

/* A read that failed. Returns a negative errno, or 0 where it is worth another try. */
static int
await_input(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	if (errno == EINTR)
		return 0;
	if (errno != EAGAIN)
		return -errno;
	/* Standard input may be somebody's non-blocking pipe. */
	return poll(&ready, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* Have n bytes in the buffer, if the file has them. Returns how many there are. */
static size_t
peek(struct replay_stream *stream, size_t n)
{
	if (stream->start == stream->end || stream->start + n > BUFFER_BYTES) {
		memmove(stream->buffer, stream->buffer + stream->start,
			stream->end - stream->start);
		stream->end -= stream->start;
		stream->start = 0;
	}
	while (stream->end - stream->start < n && !stream->is_at_end && stream->error == 0) {
		ssize_t got = read(stream->fd, stream->buffer + stream->end,
			BUFFER_BYTES - stream->end);

		if (got > 0) {
			stream->end += (size_t)got;
			stream->read_bytes += (uint64_t)got;
		} else if (got == 0) {
			stream->is_at_end = true;
		} else {
			stream->error = await_input(stream->fd);
		}
	}
	return stream->end - stream->start;
}

/* The options of an interface: is its time resolution finer than a microsecond? */
static bool
has_nano_option(const struct replay_stream *stream, const uint8_t *bytes, size_t n_bytes)
{
	size_t at = 0;

	while (at + 4 < n_bytes) {
		uint16_t code = load16(stream, bytes + at);
		uint16_t length = load16(stream, bytes + at + 2);

		if (code == OPTION_END)
			return false;
		if (code == OPTION_TIME_RESOLUTION && length == 1) {
			uint8_t resolution = bytes[at + 4];

			/* A power of 2 with the high bit, else of 10; 2^-19 is above 1e-6. */
			return resolution & 0x80 ? (resolution & 0x7f) > 19 : resolution > 6;
		}
		at += 4 + ((size_t)length + 3) / 4 * 4;
	}
	return false;
}

static int
remember_interface(struct replay_stream *stream, struct interface interface)
{
	if (stream->n_interfaces == stream->interfaces_max) {
		size_t n = stream->interfaces_max != 0 ? stream->interfaces_max * 2 : 16;
		struct interface *more = reallocarray(stream->interfaces, n, sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		stream->interfaces = more;
		stream->interfaces_max = n;
	}
	stream->interfaces[stream->n_interfaces++] = interface;
	return 0;
}

static void
begin_section(struct replay_stream *stream)
{
	const uint8_t *block;

	if (peek(stream, BLOCK_HEADER_BYTES + 4) < BLOCK_HEADER_BYTES + 4)
		return;
	block = stream->buffer + stream->start;
	/* libpcap reads the length in the old order before it sees that there is a new one. */
	if (load32(stream, block + BLOCK_HEADER_BYTES) == __builtin_bswap32(BYTE_ORDER_MAGIC))
		stream->refusal = "the capture changes its byte order, and only one can be "
				  "read from a file; write it anew in one, e.g. by "
				  "editcap IN OUT";
	stream->n_interfaces = 0;
}

static void
begin_interface(struct replay_stream *stream, size_t block_bytes)
{
	size_t want = block_bytes < BUFFER_BYTES ? block_bytes : BUFFER_BYTES;
	size_t n = peek(stream, want);
	uint8_t *block = stream->buffer + stream->start;
	struct interface interface;

	if (n < want || want < INTERFACE_FIXED_BYTES + BLOCK_TRAILER_BYTES)
		return;
	interface.linktype = replay_linktype_normalise(load16(stream, block + 8));
	interface.snaplen_bytes = load32(stream, block + 12);
	if (!stream->has_linktype) {
		stream->has_linktype = true;
		stream->linktype = interface.linktype;
		if (has_nano_option(stream, block + INTERFACE_FIXED_BYTES,
			    want - INTERFACE_FIXED_BYTES - BLOCK_TRAILER_BYTES))
			stream->is_nano = true;
	}
	if (stream->error == 0)
		stream->error = remember_interface(stream, interface);
	store16(stream, block + 8, (uint16_t)stream->linktype);
	store32(stream, block + 12, REPLAY_SNAPLEN_BYTES);
}

/* An interface that is not there is left to libpcap to complain of. */
static uint32_t
linktype_of(const struct replay_stream *stream, uint32_t interface_index)
{
	return interface_index < stream->n_interfaces
		       ? stream->interfaces[interface_index].linktype
		       : stream->linktype;
}

/*
 * A simple packet says only how long it was on the wire; how much of it is there follows
 * from the first interface's snap length, and that libpcap is told another.
 */
static void
begin_simple_packet(struct replay_stream *stream, size_t block_bytes)
{
	size_t room = block_bytes - BLOCK_HEADER_BYTES - BLOCK_TRAILER_BYTES;
	uint8_t *block;
	uint32_t wire;
	uint32_t captured;
	uint32_t snaplen = 0;

	if (room < 4 || peek(stream, BLOCK_HEADER_BYTES + 4) < BLOCK_HEADER_BYTES + 4)
		return;
	block = stream->buffer + stream->start;
	wire = load32(stream, block + BLOCK_HEADER_BYTES);
	captured = wire;
	if (stream->n_interfaces > 0)
		snaplen = stream->interfaces[0].snaplen_bytes;
	if (snaplen != 0 && captured > snaplen)
		captured = snaplen;
	if (captured > room - 4)
		captured = (uint32_t)(room - 4);
	store32(stream, block + BLOCK_HEADER_BYTES, captured);
	stream->packet.linktype = linktype_of(stream, 0);
	stream->packet.wire_bytes = wire;
	stream->packet.has_time = false;
}

static void
begin_packet(struct replay_stream *stream, uint32_t type)
{
	const uint8_t *block;

	if (peek(stream, BLOCK_HEADER_BYTES + 4) < BLOCK_HEADER_BYTES + 4)
		return;
	block = stream->buffer + stream->start + BLOCK_HEADER_BYTES;
	stream->packet.linktype = linktype_of(stream,
		type == BLOCK_PACKET ? load32(stream, block) : load16(stream, block));
	stream->packet.wire_bytes = 0;
	stream->packet.has_time = true;
}

static bool
is_packet(uint32_t type)
{
	return type == BLOCK_PACKET || type == BLOCK_PACKET_SIMPLE ||
	       type == BLOCK_PACKET_OBSOLETE;
}

/* Where the next block begins is not known after another length. */
static bool
is_block_length(uint32_t block_bytes)
{
	return block_bytes >= BLOCK_HEADER_BYTES + BLOCK_TRAILER_BYTES && block_bytes % 4 == 0;
}

/*
 * Whether an interface before the first packet has times finer than microseconds. An output's
 * precision must be known before libpcap comes to any but the first.
 */
static bool
has_nano_interface(struct replay_stream *stream)
{
	const uint8_t *head = stream->buffer; /* nothing is passed on yet */
	size_t at = 0;

	while (at <= BUFFER_BYTES - BLOCK_HEADER_BYTES &&
		peek(stream, at + BLOCK_HEADER_BYTES) >= at + BLOCK_HEADER_BYTES) {
		uint32_t type = load32(stream, head + at);
		uint32_t block_bytes = load32(stream, head + at + 4);
		size_t end = at + block_bytes;

		if (is_packet(type) || !is_block_length(block_bytes) || end > BUFFER_BYTES)
			return false;
		if (type == BLOCK_INTERFACE && peek(stream, end) >= end &&
			block_bytes > INTERFACE_FIXED_BYTES + BLOCK_TRAILER_BYTES &&
			has_nano_option(stream, head + at + INTERFACE_FIXED_BYTES,
				block_bytes - INTERFACE_FIXED_BYTES - BLOCK_TRAILER_BYTES))
			return true;
		at = end;
	}
	return false;
}

/* At the first byte of a block: put right in the buffer what libpcap must not see. */
static void
begin_block(struct replay_stream *stream)
{
	uint8_t *block;
	uint32_t type;
	uint32_t block_bytes;

	if (peek(stream, BLOCK_HEADER_BYTES) < BLOCK_HEADER_BYTES) {
		stream->is_opaque = true;
		return;
	}
	block = stream->buffer + stream->start;
	type = load32(stream, block);
	if (type == BLOCK_SECTION) {
		begin_section(stream);
		block = stream->buffer + stream->start;
	}
	block_bytes = load32(stream, block + 4);
	/* libpcap will say what is wrong. */
	if (!is_block_length(block_bytes)) {
		stream->is_opaque = true;
		return;
	}
	stream->block_left_bytes = block_bytes;
	if (type == BLOCK_INTERFACE)
		begin_interface(stream, block_bytes);
	else if (type == BLOCK_PACKET_SIMPLE)
		begin_simple_packet(stream, block_bytes);
	else if (type == BLOCK_PACKET || type == BLOCK_PACKET_OBSOLETE)
		begin_packet(stream, type);
}

/* Never past a block's end: the buffer of the FILE then holds nothing of the next packet. */
static ssize_t
read_stream(void *cookie, char *out, size_t n)
{
	struct replay_stream *stream = cookie;
	size_t there;

	if (!stream->is_pcap && !stream->is_opaque && stream->block_left_bytes == 0)
		begin_block(stream);
	if (stream->refusal != NULL) {
		errno = EINVAL;
		return -1;
	}
	if (!stream->is_pcap && !stream->is_opaque && n > stream->block_left_bytes)
		n = (size_t)stream->block_left_bytes;
	there = peek(stream, 1);
	if (there == 0 && stream->error == 0)
		return 0;
	if (there == 0) {
		errno = -stream->error;
		return -1;
	}
	if (n > there)
		n = there;
	memcpy(out, stream->buffer + stream->start, n);
	stream->start += n;
	if (!stream->is_pcap && !stream->is_opaque)
		stream->block_left_bytes -= n;
	return (ssize_t)n;
}

static bool
is_text(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool is_space = bytes[i] >= '\t' && bytes[i] <= '\r';

		if ((bytes[i] < ' ' && !is_space) || bytes[i] == 0x7f)
			return false;
	}
	return true;
}

static const char *
foreign_name(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < LB_N_ELEMENTS(foreign_formats); i++) {
		if (n >= foreign_formats[i].n_bytes && memcmp(bytes, foreign_formats[i].bytes,
							       foreign_formats[i].n_bytes) == 0)
			return foreign_formats[i].name;
	}
	return is_text(bytes, n < 512 ? n : 512) ? "a text file" : NULL;
}

/* A pcap magic number, in either byte order. */
static bool
find_pcap_magic(struct replay_stream *stream, const uint8_t *head)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		uint32_t magic;

		stream->is_swapped = swapped != 0;
		magic = load32(stream, head);
		stream->is_nano = magic == pcap_magic_nano;
		if (magic == pcap_magic_micro || magic == pcap_magic_nano ||
			magic == pcap_magic_modified)
			return true;
	}
	return false;
}

static int
begin_pcap(struct replay_stream *stream, uint8_t *head, size_t n, const char *name,
	struct replay_message *message)
{
	uint16_t major;
	uint16_t minor;

	if (n < PCAP_HEADER_BYTES) {
		replay_message_set(message,
			"%s: a pcap file that ends within its header, after %zu of %d bytes",
			name, n, (int)PCAP_HEADER_BYTES);
		return -EINVAL;
	}
	major = load16(stream, head + 4);
	minor = load16(stream, head + 6);
	if (major != 2 || minor > 4) {
		replay_message_set(message,
			"%s: a pcap file of version %u.%u; only 2.0 to 2.4 can be read", name,
			major, minor);
		return -EINVAL;
	}
	stream->is_pcap = true;
	stream->linktype = replay_linktype_normalise(
		load32(stream, head + PCAP_LINKTYPE_OFFSET) & PCAP_LINKTYPE_MASK);
	stream->packet.linktype = stream->linktype;
	stream->packet.has_time = true;
	/* Files lie about it (0, -1, less than their packets), and libpcap cuts to it. */
	store32(stream, head + PCAP_SNAPLEN_OFFSET, REPLAY_SNAPLEN_BYTES);
	return 0;
}

static int
begin_pcapng(struct replay_stream *stream, const uint8_t *head, size_t n, const char *name,
	struct replay_message *message)
{
	uint32_t magic;

	/* libpcap will say that it is cut. */
	if (n < BLOCK_HEADER_BYTES + sizeof(magic))
		return 0;
	memcpy(&magic, head + BLOCK_HEADER_BYTES, sizeof(magic));
	stream->is_swapped = magic == __builtin_bswap32(BYTE_ORDER_MAGIC);
	if (!stream->is_swapped && magic != BYTE_ORDER_MAGIC) {
		replay_message_set(message,
			"%s: begins as a pcapng file does, but is of neither byte order", name);
		return -EINVAL;
	}
	stream->is_nano = has_nano_interface(stream);
	return 0;
}

static int
recognise(struct replay_stream *stream, const char *name, struct replay_message *message)
{
	size_t n = peek(stream, PCAP_HEADER_BYTES);
	uint8_t *head = stream->buffer + stream->start;
	const char *foreign;
	uint32_t type;

	if (stream->error != 0) {
		replay_message_set(message, "%s: cannot be read: %s", name,
			stream->error == -EISDIR ? "it is a directory"
						 : strerror(-stream->error));
		return stream->error;
	}
	if (n == 0) {
		replay_message_set(message, "%s: an empty file, not a capture", name);
		return -EINVAL;
	}
	if (n < sizeof(type)) {
		replay_message_set(message, "%s: %zu bytes, too few for a capture", name, n);
		return -EINVAL;
	}
	memcpy(&type, head, sizeof(type));
	if (type == BLOCK_SECTION)
		return begin_pcapng(stream, head, n, name, message);
	if (find_pcap_magic(stream, head))
		return begin_pcap(stream, head, n, name, message);
	foreign = foreign_name(head, n);
	if (foreign != NULL)
		replay_message_set(message,
			"%s: %s, not a capture that can be read: pcap or pcapng are", name,
			foreign);
	else
		replay_message_set(message,
			"%s: neither pcap nor pcapng, by its first bytes; nothing else can be "
			"read",
			name);
	return -EINVAL;
}

int
replay_stream_open(const char *path, struct replay_stream **out, struct replay_message *message)
{
	struct replay_stream *stream = calloc(1, sizeof(*stream));
	char name[REPLAY_NAME_BYTES];
	struct stat status;
	int rc;

	replay_path_name(name, path, "standard input");
	if (stream == NULL) {
		replay_message_set(message, "%s: not enough memory to read it", name);
		return -ENOMEM;
	}
	stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (stream->fd < 0) {
		rc = -errno;
		replay_message_set(message, "%s: cannot be opened: %s", name, strerror(-rc));
		goto free_stream;
	}
	if (fstat(stream->fd, &status) == 0) {
		if (S_ISREG(status.st_mode))
			stream->file_bytes = (uint64_t)status.st_size;
		/* Before read() does with an errno, and of -EINVAL as any that is no capture.
		 */
		if (S_ISDIR(status.st_mode)) {
			replay_message_set(message, "%s: a directory, not a capture", name);
			rc = -EINVAL;
			goto close_fd;
		}
	}
	rc = recognise(stream, name, message);
	if (rc < 0)
		goto close_fd;
	*out = stream;
	return 0;

close_fd:
	if (stream->fd != STDIN_FILENO)
		(void)close(stream->fd);
free_stream:
	free(stream);
	return rc;
}

FILE *
replay_stream_file(struct replay_stream *stream)
{
	const cookie_io_functions_t functions = {.read = read_stream};

	return fopencookie(stream, "rb", functions);
}

struct replay_stream_packet
replay_stream_packet(const struct replay_stream *stream)
{
	return stream->packet;
}

uint32_t
replay_stream_linktype(const struct replay_stream *stream)
{
	return stream->linktype;
}

bool
replay_stream_is_nano(const struct replay_stream *stream)
{
	return stream->is_nano;
}

bool
replay_stream_is_pcap(const struct replay_stream *stream)
{
	return stream->is_pcap;
}

int
replay_stream_error(const struct replay_stream *stream)
{
	return stream->error;
}

const char *
replay_stream_refusal(const struct replay_stream *stream)
{
	return stream->refusal;
}

bool
replay_stream_is_at_end(const struct replay_stream *stream)
{
	return stream->is_at_end && stream->start == stream->end;
}

void
replay_stream_progress(const struct replay_stream *stream, uint64_t *read_bytes,
	uint64_t *file_bytes)
{
	*read_bytes = stream->read_bytes - (stream->end - stream->start);
	*file_bytes = stream->file_bytes;
}

void
replay_stream_close(struct replay_stream *stream)
{
	if (stream == NULL)
		return;
	if (stream->fd != STDIN_FILENO)
		(void)close(stream->fd);
	free(stream->interfaces);
	free(stream);
}
