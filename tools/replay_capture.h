/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_CAPTURE_H
#define REPLAY_CAPTURE_H

/**
 * @file
 * Captures in: pcap and pcapng through libpcap, with our own checks in front, every packet
 * turned into an Ethernet frame; captures out: pcap, Ethernet, in the input's precision.
 *
 * Streaming: memory does not grow with a capture's length.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

#define REPLAY_MESSAGE_BYTES 1024u

/** Longest packet of a capture: libpcap's own limit. */
#define REPLAY_SNAPLEN_BYTES 262144u

/** Longest frame handed out: such a packet, and an Ethernet header put before it. */
#define REPLAY_FRAME_BYTES_MAX (REPLAY_SNAPLEN_BYTES + 14u)

/**
 * What went wrong, in words: a whole sentence that begins with the file's name, or with
 * "..." and the end of a name that is too long; in it, control characters are '?'.
 */
struct replay_message {
	char text[REPLAY_MESSAGE_BYTES];
};

struct replay_frame {
	const uint8_t *bytes; /**< an Ethernet frame, good until the next call */
	uint32_t n_bytes;
	uint32_t wire_bytes; /**< on the wire; more than n_bytes where the capture cut it */
	/**
	 * Since 1970; its predecessor's where its own is before that, missing, or of no year
	 * from 1970 to 2554. A fraction of a second or more adds up. It is 0 until the first
	 * packet with a timestamp.
	 */
	uint64_t time_ns;
	/**
	 * time_ns is a time: false until the first packet with a timestamp, true from it on.
	 * Only pcapng has packets without one (simple packets), or one of no year as above.
	 */
	bool has_time;
};

struct replay_capture; /* opaque */

/**
 * Open a capture. Of a pipe, this waits for what stands before the first packet.
 *
 * @param path          A file, or "-" for standard input.
 * @param[out] out      Untouched on error.
 * @param[out] message  Set on error.
 * @retval 0        Success.
 * @retval -EINVAL  Not a capture that can be read: another format (named where it is known:
 *                  snoop, a text file, gzip, an empty file, a directory …), or a linktype
 *                  that is not supported, by its name.
 * @retval -errno   It cannot be opened or read.
 */
int replay_capture_open(const char *path, struct replay_capture **out,
	struct replay_message *message) lb_must_check;

/**
 * The next frame.
 *
 * @param[out] frame    Untouched unless 1 is returned.
 * @param[out] message  Set on error: names the packet's number, from 1.
 * @retval 1        A frame.
 * @retval 0        The end.
 * @retval -EINVAL  The capture is damaged from here on, or changes its linktype or, between
 *                  sections of pcapng, its byte order.
 * @retval -errno   It cannot be read.
 */
int replay_capture_next(struct replay_capture *capture, struct replay_frame *frame,
	struct replay_message *message) lb_must_check;

/**
 * Whether its timestamps are of nanoseconds; microseconds otherwise. It does not change.
 *
 * Of pcapng, whether any interface has them that is described before the first packet and
 * within the file's first 64 KiB, or is the first: usually these are all. What an interface
 * described later has finer than microseconds is in time_ns, but lost to an output that was
 * begun without.
 */
bool replay_capture_is_nano(const struct replay_capture *capture);

/** Bytes read so far, and the file's size (0 where it is not known), for a progress line. */
void replay_capture_progress(const struct replay_capture *capture, uint64_t *read_bytes,
	uint64_t *file_bytes);

void replay_capture_close(struct replay_capture *capture);

struct replay_output; /* opaque */

/**
 * Begin a pcap file of Ethernet frames, snaplen 262144.
 *
 * @param path  Created or truncated; "-" is standard output.
 */
int replay_output_open(const char *path, bool is_nano, struct replay_output **out,
	struct replay_message *message) lb_must_check;

/**
 * Append a frame. Of one longer than the snaplen, as much as that; of a time beyond 2106,
 * where pcap's seconds end, the last second.
 *
 * @retval -errno  It could not be written (ENOSPC: a full disk): the file is cut back to
 *                 the last whole packet, where it is a file, and nothing more is written.
 */
int replay_output_write(struct replay_output *output, const uint8_t *bytes, uint32_t n_bytes,
	uint64_t time_ns, struct replay_message *message) lb_must_check;

/** Flush and close. @retval -errno  As replay_output_write(); it is closed all the same. */
int replay_output_close(struct replay_output *output,
	struct replay_message *message) lb_must_check;

struct replay_compare; /* opaque */

/**
 * Begin to compare with a capture, frame by frame: the bytes, not the times.
 */
int replay_compare_open(const char *path, struct replay_compare **out,
	struct replay_message *message) lb_must_check;

/**
 * Compare the next frame.
 *
 * @param[out] message  Set where it differs: the packet's number in the expected capture
 *                      (from 1), the first byte that differs, both values, both lengths.
 * @retval 0        The same, or a difference was found before.
 * @retval 1        It differs, the first that does.
 * @retval -errno   The expected capture cannot be read.
 */
int replay_compare_next(struct replay_compare *compare, const uint8_t *bytes, uint32_t n_bytes,
	struct replay_message *message) lb_must_check;

/** As replay_compare_next(), at the end: 1 where the expected capture holds more. */
int replay_compare_end(struct replay_compare *compare,
	struct replay_message *message) lb_must_check;

void replay_compare_close(struct replay_compare *compare);

#endif
