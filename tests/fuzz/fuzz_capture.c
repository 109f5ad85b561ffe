/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as a capture: it opens or is refused with words, and every frame's bytes are
 * there to be read, within bounds and in the order of time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay_capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds)
{
	if (!holds)
		abort();
}

static void
read_all(struct replay_capture *capture)
{
	struct replay_message message = {""};
	struct replay_frame frame;
	uint64_t time_ns = 0;
	bool has_time = false;
	int rc;

	while ((rc = replay_capture_next(capture, &frame, &message)) == 1) {
		volatile uint8_t sum = 0;

		for (uint32_t i = 0; i < frame.n_bytes; i++)
			sum = (uint8_t)(sum + frame.bytes[i]);
		require(frame.n_bytes <= REPLAY_FRAME_BYTES_MAX);
		require(frame.n_bytes <= frame.wire_bytes);
		require(frame.time_ns >= time_ns);
		require(frame.has_time || (frame.time_ns == 0 && !has_time));
		time_ns = frame.time_ns;
		has_time = frame.has_time;
	}
	require(rc == 0 || message.text[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replay_capture *capture;
	struct replay_message message = {""};
	char path[32];
	int fd = memfd_create("capture", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) == (ssize_t)size) {
		if (replay_capture_open(path, &capture, &message) == 0) {
			read_all(capture);
			replay_capture_close(capture);
		} else {
			require(message.text[0] != '\0');
		}
	}
	(void)close(fd);
	return 0;
}
