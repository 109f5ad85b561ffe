/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_STREAM_H
#define REPLAY_STREAM_H

/**
 * @file
 * A capture's bytes on their way to libpcap.
 *
 * What libpcap would refuse or misread although it is sound is put right here, where the
 * bytes pass: snap lengths, which libpcap wants equal between interfaces and would cut
 * packets to, and linktypes, which it wants equal even of interfaces that have no packet.
 * Since nothing seeks, standard input is read as a file is.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "replay_capture.h"

struct replay_stream; /* opaque */

/** What the block that libpcap read last says beyond what libpcap hands out. */
struct replay_stream_packet {
	uint32_t linktype;   /**< normalised */
	uint32_t wire_bytes; /**< 0: libpcap's value holds */
	bool has_time;       /**< false in a pcapng simple packet */
};

/**
 * Open a file, and see by its first bytes whether it is a capture.
 *
 * @param path          A file, or "-" for standard input.
 * @param[out] out      Untouched on error.
 * @param[out] message  Set on error.
 * @retval -EINVAL  Not a pcap or pcapng file; the message says what it is, if known.
 * @retval -errno   It cannot be opened or read.
 */
int replay_stream_open(const char *path, struct replay_stream **out,
	struct replay_message *message) lb_must_check;

/**
 * The stream for libpcap to read. Of pcapng it buffers no further than to a block's end, so
 * that replay_stream_packet() is in step.
 *
 * @return NULL where memory is short. To be closed before the stream is.
 */
FILE *replay_stream_file(struct replay_stream *stream) lb_must_check;

/** About the packet that libpcap handed out last. */
struct replay_stream_packet replay_stream_packet(const struct replay_stream *stream);

/** The capture's (of pcapng, its first interface's) linktype, normalised. */
uint32_t replay_stream_linktype(const struct replay_stream *stream);

/**
 * Whether its timestamps are finer than microseconds: of pcapng, those of any interface that
 * comes before the first packet and within a buffer, or of the first.
 */
bool replay_stream_is_nano(const struct replay_stream *stream);

/** Seconds are of 32 bits, without a sign: pcap, not pcapng. */
bool replay_stream_is_pcap(const struct replay_stream *stream);

/** The negative errno of a read that failed, or 0. */
int replay_stream_error(const struct replay_stream *stream);

/** Why libpcap is not given the rest, although it is sound: a clause; NULL: it is given. */
const char *replay_stream_refusal(const struct replay_stream *stream);

/** Whether a read met the end of the file. */
bool replay_stream_is_at_end(const struct replay_stream *stream);

void replay_stream_progress(const struct replay_stream *stream, uint64_t *read_bytes,
	uint64_t *file_bytes);

void replay_stream_close(struct replay_stream *stream);

#endif
