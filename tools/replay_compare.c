/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay_message.h"

struct replay_compare {
	struct replay_capture *expected;
	uint64_t n_packets; /* compared so far */
	bool is_different;
	char name[REPLAY_NAME_BYTES];
};

int
replay_compare_open(const char *path, struct replay_compare **out,
	struct replay_message *message)
{
	struct replay_compare *compare = calloc(1, sizeof(*compare));
	char name[REPLAY_NAME_BYTES];
	int rc;

	replay_path_name(name, path, "standard input");
	if (compare == NULL) {
		replay_message_set(message, "%s: not enough memory to read it", name);
		return -ENOMEM;
	}
	memcpy(compare->name, name, sizeof(name));
	rc = replay_capture_open(path, &compare->expected, message);
	if (rc < 0) {
		free(compare);
		return rc;
	}
	*out = compare;
	return 0;
}

static uint32_t
first_difference(const uint8_t *a, const uint8_t *b, uint32_t n_bytes)
{
	uint32_t i = 0;

	while (i < n_bytes && a[i] == b[i])
		i++;
	return i;
}

/* Bytes are numbered from 0, as hex dumps of packets do. */
static void
describe_difference(const struct replay_compare *compare, const struct replay_frame *expected,
	const uint8_t *bytes, uint32_t n_bytes, struct replay_message *message)
{
	uint32_t shorter = n_bytes < expected->n_bytes ? n_bytes : expected->n_bytes;
	uint32_t at = first_difference(expected->bytes, bytes, shorter);
	unsigned long long number = compare->n_packets;

	if (at < shorter)
		replay_message_set(message,
			"%s: packet %llu differs from byte %u (0x%x) on: expected 0x%02x, "
			"found 0x%02x (expected %u bytes in all, found %u)",
			compare->name, number, at, at, expected->bytes[at], bytes[at],
			expected->n_bytes, n_bytes);
	else if (n_bytes < expected->n_bytes)
		replay_message_set(message,
			"%s: packet %llu differs from byte %u (0x%x) on: expected 0x%02x, "
			"found its end (expected %u bytes in all, found %u)",
			compare->name, number, at, at, expected->bytes[at], expected->n_bytes,
			n_bytes);
	else
		replay_message_set(message,
			"%s: packet %llu differs from byte %u (0x%x) on: expected its end, "
			"found 0x%02x (expected %u bytes in all, found %u)",
			compare->name, number, at, at, bytes[at], expected->n_bytes, n_bytes);
}

int
replay_compare_next(struct replay_compare *compare, const uint8_t *bytes, uint32_t n_bytes,
	struct replay_message *message)
{
	struct replay_frame expected;
	int rc;

	if (compare->is_different)
		return 0;
	rc = replay_capture_next(compare->expected, &expected, message);
	if (rc < 0)
		return rc;
	compare->n_packets++;
	if (rc == 0) {
		compare->is_different = true;
		replay_message_set(message,
			"%s: packet %llu: expected the end, found one more packet, of %u bytes",
			compare->name, (unsigned long long)compare->n_packets, n_bytes);
		return 1;
	}
	/* A capture of ours holds no more of a frame. */
	if (n_bytes > REPLAY_SNAPLEN_BYTES)
		n_bytes = REPLAY_SNAPLEN_BYTES;
	if (n_bytes == expected.n_bytes && memcmp(bytes, expected.bytes, n_bytes) == 0)
		return 0;
	compare->is_different = true;
	describe_difference(compare, &expected, bytes, n_bytes, message);
	return 1;
}

int
replay_compare_end(struct replay_compare *compare, struct replay_message *message)
{
	struct replay_frame expected;
	int rc;

	if (compare->is_different)
		return 0;
	rc = replay_capture_next(compare->expected, &expected, message);
	if (rc <= 0)
		return rc;
	compare->is_different = true;
	replay_message_set(message,
		"%s: packet %llu: expected one of %u bytes, found the end after %llu packets",
		compare->name, (unsigned long long)compare->n_packets + 1, expected.n_bytes,
		(unsigned long long)compare->n_packets);
	return 1;
}

void
replay_compare_close(struct replay_compare *compare)
{
	if (compare == NULL)
		return;
	replay_capture_close(compare->expected);
	free(compare);
}
