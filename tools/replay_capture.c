/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_linktype.h"
#include "replay_message.h"
#include "replay_stream.h"

static const int64_t ns_per_s = 1000000000;

struct replay_capture {
	struct replay_stream *stream;
	pcap_t *pcap;
	uint64_t n_packets; /* read so far */
	uint64_t time_ns;   /* of the packet before */
	bool has_time;      /* a packet had one */
	int error;          /* what ended it: a negative errno; 0 while it goes on */
	bool is_done;
	struct replay_message message; /* of error */
	char name[REPLAY_NAME_BYTES];
	uint8_t *frame; /* REPLAY_FRAME_BYTES_MAX, for packets that are not Ethernet */
};

/*
 * What libpcap says, by a part of it that tells it from the rest, and what it means. The first
 * that fits holds.
 */
static const struct {
	const char *part;
	const char *text;
} reasons[] = {
	{"no Interface Description Blocks",
		"the capture ends before any interface is described"},
	{"before any Interface", "the capture is damaged here: a packet comes before any "
				 "interface is described"},
	{"no Interface Description Block for", "the capture is damaged here: the packet's "
					       "interface is not described"},
	{"is too high", "an interface counts time in units too small to be read"},
	{"Interface Description Block has", "the capture is damaged here: an interface's "
					    "description contradicts itself"},
	{"byte order magic", "the capture is damaged here: a section is of neither byte order"},
	{"version", "a section of a version of pcapng that cannot be read; 1.0 and 1.2 can"},
	{"header and trailer", "the capture is damaged here: the lengths at a block's two ends "
			       "differ"},
	{"is too short", "the capture is damaged here: a block is too short for what is in it"},
	{"packet capture length", "the capture is damaged here: a packet of an impossible "
				  "length"},
	{"length of", "the capture is damaged here: a block of an impossible length"},
	{"invalid length", "the capture is damaged here: a block of an impossible length"},
	{"block size", "the capture is damaged here: a block of an impossible length"},
};

/* NULL for a cut, and for what is not known. */
static const char *
find_reason(const char *reason)
{
	for (size_t i = 0; i < LB_N_ELEMENTS(reasons); i++) {
		if (strstr(reason, reasons[i].part) != NULL)
			return reasons[i].text;
	}
	return NULL;
}

/* Why libpcap gave up, in words that do not need libpcap known. */
static int
explain_failure(const struct replay_stream *stream, const char *reason, char *text,
	size_t text_bytes)
{
	const char *known = replay_stream_refusal(stream);
	int error = replay_stream_error(stream);

	if (error == 0 && (strstr(reason, "out of memory") != NULL ||
				  strstr(reason, strerror(ENOMEM)) != NULL))
		error = -ENOMEM;
	if (error != 0) {
		(void)snprintf(text, text_bytes, "cannot be read: %s", strerror(-error));
		return error;
	}
	if (known == NULL)
		known = find_reason(reason);
	if (known == NULL)
		known = replay_stream_is_at_end(stream) ? "the capture ends in the middle of it"
							: "the capture is damaged here";
	(void)snprintf(text, text_bytes, "%s", known);
	return -EINVAL;
}

static int
open_pcap(struct replay_capture *capture, struct replay_message *message)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	char text[REPLAY_MESSAGE_BYTES / 2];
	FILE *file = replay_stream_file(capture->stream);
	int rc;

	if (file == NULL) {
		replay_message_set(message, "%s: not enough memory to read it", capture->name);
		return -ENOMEM;
	}
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(file,
		PCAP_TSTAMP_PRECISION_NANO, reason);
	if (capture->pcap != NULL)
		return 0; /* file is closed with it */
	(void)fclose(file);
	rc = explain_failure(capture->stream, reason, text, sizeof(text));
	replay_message_set(message, "%s: in the capture's header: %s", capture->name, text);
	return rc;
}

static int
check_linktype(const struct replay_capture *capture, struct replay_message *message)
{
	uint32_t linktype = replay_stream_linktype(capture->stream);
	char link[REPLAY_LINKTYPE_NAME_BYTES];

	if (replay_linktype_is_supported(linktype))
		return 0;
	replay_linktype_name(linktype, link);
	replay_message_set(message,
		"%s: its packets are of link layer %s, which cannot be replayed; Ethernet, "
		"RAW, IPV4, IPV6, NULL, LOOP, LINUX_SLL and LINUX_SLL2 can",
		capture->name, link);
	return -EINVAL;
}

int
replay_capture_open(const char *path, struct replay_capture **out,
	struct replay_message *message)
{
	struct replay_capture *capture = calloc(1, sizeof(*capture));
	char name[REPLAY_NAME_BYTES];
	int rc = -ENOMEM;

	replay_path_name(name, path, "standard input");
	if (capture != NULL)
		capture->frame = malloc(REPLAY_FRAME_BYTES_MAX);
	if (capture == NULL || capture->frame == NULL) {
		replay_message_set(message, "%s: not enough memory to read it", name);
		goto close_capture;
	}
	memcpy(capture->name, name, sizeof(name));
	rc = replay_stream_open(path, &capture->stream, message);
	if (rc < 0)
		goto close_capture;
	rc = open_pcap(capture, message);
	if (rc < 0)
		goto close_capture;
	rc = check_linktype(capture, message);
	if (rc < 0)
		goto close_capture;
	*out = capture;
	return 0;

close_capture:
	replay_capture_close(capture);
	return rc;
}

/* An error is for good: what follows damage would be guesswork. */
static int
fail(struct replay_capture *capture, int error, const char *text,
	struct replay_message *message)
{
	capture->error = error;
	replay_message_set(&capture->message, "%s: packet %llu: %s", capture->name,
		(unsigned long long)capture->n_packets + 1, text);
	*message = capture->message;
	return error;
}

static int
fail_of_linktype(struct replay_capture *capture, uint32_t linktype,
	struct replay_message *message)
{
	char from[REPLAY_LINKTYPE_NAME_BYTES];
	char to[REPLAY_LINKTYPE_NAME_BYTES];
	char text[REPLAY_MESSAGE_BYTES - 64];

	replay_linktype_name(replay_stream_linktype(capture->stream), from);
	replay_linktype_name(linktype, to);
	(void)snprintf(text, sizeof(text),
		"the capture changes its linktype from %s to %s, and only one can be read from "
		"a file; split it by interface, e.g. by "
		"tshark -r IN -Y 'frame.interface_id == 0' -w OUT",
		from, to);
	return fail(capture, -EINVAL, text, message);
}

/* Lengths that contradict each other or any capture: a boundary between packets was lost. */
static int
check_lengths(struct replay_capture *capture, const struct pcap_pkthdr *header,
	struct replay_message *message)
{
	char text[128];

	if (header->caplen > REPLAY_SNAPLEN_BYTES)
		(void)snprintf(text, sizeof(text),
			"the capture is damaged here: a packet of %u bytes, more than the %u "
			"that are possible",
			header->caplen, REPLAY_SNAPLEN_BYTES);
	else if (header->caplen > header->len)
		(void)snprintf(text, sizeof(text),
			"the capture is damaged here: %u bytes captured of a packet of %u",
			header->caplen, header->len);
	else
		return 0;
	return fail(capture, -EINVAL, text, message);
}

/*
 * The packet's time, or its predecessor's (0 before the first) where it has none, where it
 * is before it, or where it is of no year that can be told in nanoseconds (beyond 2554). A
 * fraction of a second or more, which some tools write, is added up.
 */
static uint64_t
advance_time(struct replay_capture *capture, const struct timeval *stamp, bool has_time)
{
	/* libpcap reads the 32 bits as signed, and a tv_usec of nanoseconds. */
	int64_t seconds = replay_stream_is_pcap(capture->stream)
				  ? (int64_t)(uint32_t)stamp->tv_sec
				  : (int64_t)stamp->tv_sec;
	int64_t fraction = stamp->tv_usec;
	uint64_t time_ns;

	if (!has_time || seconds < 0 || fraction < 0)
		return capture->time_ns;
	if (__builtin_mul_overflow((uint64_t)seconds, (uint64_t)ns_per_s, &time_ns) ||
		__builtin_add_overflow(time_ns, (uint64_t)fraction, &time_ns))
		return capture->time_ns;
	capture->has_time = true;
	if (time_ns > capture->time_ns)
		capture->time_ns = time_ns;
	return capture->time_ns;
}

static void
fill_frame(struct replay_capture *capture, const struct pcap_pkthdr *header,
	const uint8_t *bytes, const struct replay_stream_packet *packet,
	struct replay_frame *frame)
{
	frame->time_ns = advance_time(capture, &header->ts, packet->has_time);
	frame->has_time = capture->has_time;
	frame->wire_bytes = packet->wire_bytes != 0 ? packet->wire_bytes : header->len;
	if (replay_linktype_is_ethernet(packet->linktype)) {
		frame->bytes = bytes;
		frame->n_bytes = header->caplen;
		return;
	}
	frame->n_bytes = replay_linktype_convert(packet->linktype, bytes, header->caplen,
		&frame->wire_bytes, capture->frame);
	frame->bytes = capture->frame;
}

int
replay_capture_next(struct replay_capture *capture, struct replay_frame *frame,
	struct replay_message *message)
{
	struct replay_stream_packet packet;
	struct pcap_pkthdr *header;
	const uint8_t *bytes;
	char text[REPLAY_MESSAGE_BYTES / 2];
	int rc;

	if (capture->error != 0) {
		*message = capture->message;
		return capture->error;
	}
	if (capture->is_done)
		return 0;
	rc = pcap_next_ex(capture->pcap, &header, &bytes);
	if (rc == PCAP_ERROR_BREAK && replay_stream_error(capture->stream) == 0) {
		capture->is_done = true;
		return 0;
	}
	if (rc != 1) {
		rc = explain_failure(capture->stream, pcap_geterr(capture->pcap), text,
			sizeof(text));
		return fail(capture, rc, text, message);
	}
	packet = replay_stream_packet(capture->stream);
	if (packet.linktype != replay_stream_linktype(capture->stream))
		return fail_of_linktype(capture, packet.linktype, message);
	rc = check_lengths(capture, header, message);
	if (rc < 0)
		return rc;
	fill_frame(capture, header, bytes, &packet, frame);
	capture->n_packets++;
	return 1;
}

bool
replay_capture_is_nano(const struct replay_capture *capture)
{
	return replay_stream_is_nano(capture->stream);
}

void
replay_capture_progress(const struct replay_capture *capture, uint64_t *read_bytes,
	uint64_t *file_bytes)
{
	replay_stream_progress(capture->stream, read_bytes, file_bytes);
}

void
replay_capture_close(struct replay_capture *capture)
{
	if (capture == NULL)
		return;
	if (capture->pcap != NULL)
		pcap_close(capture->pcap);
	replay_stream_close(capture->stream);
	free(capture->frame);
	free(capture);
}
