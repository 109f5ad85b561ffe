/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "capture_builder.h"
#include "expect.h"

enum { ETHERNET = 1, NETLINK = 253 };

/* What came out of a capture, read to its end. */
struct reading {
	int open_rc;
	int last_rc;
	unsigned n_frames;
	bool is_nano;
	uint64_t read_bytes;
	uint64_t file_bytes;
	struct replay_frame frames[16]; /* bytes: into copies[] */
	uint8_t copies[16][128];
	struct replay_message message;
};

static struct capture built; /* the capture under test: too large for the stack */

static void
begin(bool is_big, bool is_nano)
{
	built.is_big = is_big;
	built.is_nano = is_nano;
	built.n_bytes = 0;
}

static void
read_path(const char *path, struct reading *reading)
{
	struct replay_capture *capture = NULL;
	struct replay_frame frame;

	memset(reading, 0, sizeof(*reading));
	reading->open_rc = replay_capture_open(path, &capture, &reading->message);
	if (reading->open_rc < 0) {
		EXPECT(capture == NULL, "out was touched on error");
		return;
	}
	reading->is_nano = replay_capture_is_nano(capture);
	while ((reading->last_rc = replay_capture_next(capture, &frame, &reading->message)) ==
		1) {
		unsigned i = reading->n_frames++;
		uint32_t n = frame.n_bytes < 128 ? frame.n_bytes : 128;

		assert_true(i < 16);
		memcpy(reading->copies[i], frame.bytes, n);
		reading->frames[i] = frame;
		reading->frames[i].bytes = reading->copies[i];
	}
	EXPECT(replay_capture_next(capture, &frame, &reading->message) == reading->last_rc,
		"the end is not the end");
	replay_capture_progress(capture, &reading->read_bytes, &reading->file_bytes);
	replay_capture_close(capture);
}

static void
read_built_bytes(size_t n_bytes, struct reading *reading)
{
	char path[CAPTURE_PATH_BYTES];

	capture_save(&built, n_bytes, path);
	read_path(path, reading);
	(void)unlink(path);
}

static void
read_built(struct reading *reading)
{
	read_built_bytes(built.n_bytes, reading);
}

static void
expect_words(const struct reading *reading, const char *words, const char *row)
{
	EXPECT(strstr(reading->message.text, words) != NULL, "%s: \"%s\" does not say \"%s\"",
		row, reading->message.text, words);
}

#define MACS 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2

/* linktype, packet, frame: all as bytes. wire_extra: what the capture cut off. */
static const struct {
	const char *sentence;
	uint16_t linktype;
	uint8_t n_packet;
	uint8_t n_frame;
	uint8_t packet[24];
	uint8_t frame[24];
	uint32_t wire_extra;
	uint32_t frame_wire;
} link_rows[] = {
	{"Ethernet stays as it is", 1, 5, 5, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, 3, 8},
	{"RAW of version 4", 101, 2, 16, {0x45, 9}, {MACS, 8, 0, 0x45, 9}, 0, 16},
	{"RAW of version 6", 101, 2, 16, {0x60, 9}, {MACS, 0x86, 0xdd, 0x60, 9}, 7, 23},
	{"RAW of version 5 is for the packet path to refuse", 101, 1, 15, {0x55},
		{MACS, 8, 0, 0x55}, 0, 15},
	{"RAW by its BSD number", 12, 1, 15, {0x60}, {MACS, 0x86, 0xdd, 0x60}, 0, 15},
	{"RAW by its OpenBSD number", 14, 1, 15, {0x45}, {MACS, 8, 0, 0x45}, 0, 15},
	{"RAW of no byte, cut by the capture", 101, 0, 12, {0}, {MACS}, 40, 54},
	{"RAW of no byte at all", 101, 0, 12, {0}, {MACS}, 0, 12},
	{"IPV4 whatever the version", 228, 1, 15, {0x60}, {MACS, 8, 0, 0x60}, 0, 15},
	{"IPV6 whatever the version", 229, 1, 15, {0x45}, {MACS, 0x86, 0xdd, 0x45}, 0, 15},
	{"IPV4 of no byte", 228, 0, 14, {0}, {MACS, 8, 0}, 20, 34},
	{"NULL, IPv4, little-endian", 0, 5, 15, {2, 0, 0, 0, 7}, {MACS, 8, 0, 7}, 0, 15},
	{"NULL, IPv4, big-endian", 0, 5, 15, {0, 0, 0, 2, 7}, {MACS, 8, 0, 7}, 1, 16},
	{"NULL, IPv6 of Linux", 0, 4, 14, {10, 0, 0, 0}, {MACS, 0x86, 0xdd}, 0, 14},
	{"NULL, IPv6 of NetBSD", 0, 4, 14, {0, 0, 0, 24}, {MACS, 0x86, 0xdd}, 0, 14},
	{"NULL, IPv6 of FreeBSD", 0, 4, 14, {28, 0, 0, 0}, {MACS, 0x86, 0xdd}, 0, 14},
	{"NULL, IPv6 of Darwin", 0, 4, 14, {30, 0, 0, 0}, {MACS, 0x86, 0xdd}, 0, 14},
	{"NULL, another family", 0, 4, 14, {7, 0, 0, 0}, {MACS, 0xff, 0xff}, 0, 14},
	{"NULL, a family from both ends", 0, 4, 14, {1, 0, 0, 1}, {MACS, 0xff, 0xff}, 0, 14},
	{"NULL, a family above a byte", 0, 4, 14, {2, 1, 0, 0}, {MACS, 0xff, 0xff}, 0, 14},
	{"NULL shorter than its header", 0, 3, 12, {2, 0, 0}, {MACS}, 0, 12},
	{"NULL cut within its header", 0, 3, 12, {2, 0, 0}, {MACS}, 61, 74},
	{"LOOP, network order", 108, 5, 15, {0, 0, 0, 2, 7}, {MACS, 8, 0, 7}, 0, 15},
	{"LOOP, host order", 108, 5, 15, {30, 0, 0, 0, 7}, {MACS, 0x86, 0xdd, 7}, 0, 15},
	{"SLL, IPv4", 113, 17, 15, {[15] = 0, [14] = 8, [16] = 0x45}, {MACS, 8, 0, 0x45}, 0,
		15},
	{"SLL, a VLAN tag stays", 113, 21, 19, {[14] = 0x81, [15] = 0, [16] = 0, 5, 8, 0, 0x45},
		{MACS, 0x81, 0, 0, 5, 8, 0, 0x45}, 10, 29},
	{"SLL cut within its header", 113, 15, 12, {[14] = 8}, {MACS}, 9, 22},
	{"SLL2, IPv6", 276, 21, 15, {0x86, 0xdd, [20] = 0x60}, {MACS, 0x86, 0xdd, 0x60}, 0, 15},
	{"SLL2 of nothing but its header", 276, 20, 14, {8, 6}, {MACS, 8, 6}, 0, 14},
	{"SLL2 cut within its header", 276, 19, 12, {8, 0}, {MACS}, 1, 14},
};

static void
check_link_row(size_t row, const char *form)
{
	const char *sentence = link_rows[row].sentence;
	const struct replay_frame *frame;
	struct reading reading;

	read_built(&reading);
	EXPECT(reading.open_rc == 0, "%s, %s: %s", sentence, form, reading.message.text);
	EXPECT(reading.last_rc == 0 && reading.n_frames == 1, "%s, %s: %u frames, then %d: %s",
		sentence, form, reading.n_frames, reading.last_rc, reading.message.text);
	EXPECT(reading.is_nano == built.is_nano, "%s, %s: precision", sentence, form);
	EXPECT(reading.read_bytes == built.n_bytes && reading.file_bytes == built.n_bytes,
		"%s, %s: progress", sentence, form);
	frame = &reading.frames[0];
	EXPECT(frame->n_bytes == link_rows[row].n_frame, "%s, %s: %u bytes", sentence, form,
		frame->n_bytes);
	EXPECT(memcmp(frame->bytes, link_rows[row].frame, frame->n_bytes) == 0, "%s, %s: bytes",
		sentence, form);
	EXPECT(frame->wire_bytes == link_rows[row].frame_wire, "%s, %s: %u on the wire",
		sentence, form, frame->wire_bytes);
	EXPECT(frame->time_ns == (built.is_nano ? 5000000007 : 5000007000), "%s, %s: time %llu",
		sentence, form, (unsigned long long)frame->time_ns);
}

static void
test_every_linktype_in_every_order_and_precision(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(link_rows) * 4; i++) {
		size_t row = i / 4;
		uint32_t n = link_rows[row].n_packet;
		uint32_t wire = n + link_rows[row].wire_extra;
		bool is_nano = (i & 2) != 0;

		begin((i & 1) != 0, is_nano);
		capture_pcap_header(&built, link_rows[row].linktype);
		capture_pcap_packet(&built, 5, 7, link_rows[row].packet, n, wire);
		check_link_row(row, "pcap");

		begin((i & 1) != 0, is_nano);
		capture_ng_section(&built);
		capture_ng_interface(&built, link_rows[row].linktype, 0);
		capture_ng_packet(&built, 0, is_nano ? 5000000007 : 5000007,
			link_rows[row].packet, n, wire);
		check_link_row(row, "pcapng");
	}
}

static const uint8_t payload[64] = {0xaa, 0xbb, 0xcc, 0xdd, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static void
expect_cut(size_t n, const size_t ends[4], const char *form)
{
	struct reading reading;
	unsigned whole = 0;
	bool is_boundary = n == ends[0];

	read_built_bytes(n, &reading);
	if (n < ends[0]) {
		EXPECT(reading.open_rc == -EINVAL, "%s cut at %zu: open gives %d", form, n,
			reading.open_rc);
		EXPECT(strncmp(reading.message.text, "/tmp/", 5) == 0,
			"no name of the file: %s", reading.message.text);
		return;
	}
	for (unsigned i = 1; i <= 3; i++) {
		whole += n >= ends[i];
		is_boundary = is_boundary || n == ends[i];
	}
	EXPECT(reading.open_rc == 0, "%s cut at %zu: %s", form, n, reading.message.text);
	EXPECT(reading.n_frames == whole, "%s cut at %zu: %u frames", form, n,
		reading.n_frames);
	EXPECT(reading.last_rc == (is_boundary ? 0 : -EINVAL), "%s cut at %zu: %d", form, n,
		reading.last_rc);
	if (!is_boundary) {
		char words[64];

		(void)snprintf(words, sizeof(words),
			"packet %u: the capture ends in the middle", whole + 1);
		expect_words(&reading, words, form);
	}
}

static void
test_all_before_a_cut_is_given(void **state)
{
	size_t ends[4];

	(void)state;
	begin(false, false);
	capture_pcap_header(&built, ETHERNET);
	ends[0] = built.n_bytes;
	for (unsigned i = 0; i < 3; i++) {
		capture_pcap_packet(&built, i, 0, payload, 10 + i, 60);
		ends[i + 1] = built.n_bytes;
	}
	for (size_t n = 0; n <= built.n_bytes; n++)
		expect_cut(n, ends, "pcap");

	begin(true, true);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	ends[0] = built.n_bytes;
	for (unsigned i = 0; i < 3; i++) {
		capture_ng_packet(&built, 0, i, payload, 10 + i, 60);
		ends[i + 1] = built.n_bytes;
	}
	for (size_t n = 0; n <= built.n_bytes; n++)
		expect_cut(n, ends, "pcapng");
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *sentence;
	const char *bytes;
	size_t n_bytes;
	const char *words;
} refused_rows[] = {
	{"an empty file", BYTES(""), "an empty file"},
	{"three bytes", BYTES("\xd4\xc3\xb2"), "3 bytes, too few"},
	{"snoop", BYTES("snoop\0\0\0\0\0\0\2\0\0\0\4"), "a snoop capture"},
	{"gzip", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3"), "compressed by gzip"},
	{"zstd", BYTES("\x28\xb5\x2f\xfd\4\0"), "compressed by zstd"},
	{"xz", BYTES("\xfd\x37zXZ\0\0\4"), "compressed by xz"},
	{"bzip2", BYTES("BZh91AY&SY"), "compressed by bzip2"},
	{"a configuration", BYTES("version: 1\nports:\n  - name: west\n"), "a text file"},
	{"zeros", BYTES("\0\0\0\0\0\0\0\0\0\0\0\0"), "neither pcap nor pcapng"},
	{"a magic number alone", BYTES("\xd4\xc3\xb2\xa1"), "within its header, after 4 of 24"},
	{"an archaic version", BYTES("\xd4\xc3\xb2\xa1\1\0\0\0............\1\0\0\0"), "1.0"},
	{"a version to come", BYTES("\xa1\xb2\xc3\xd4\0\2\0\5............\0\0\0\1"), "2.5"},
	{"pcapng of no byte order", BYTES("\n\r\r\n\x1c\0\0\0wxyz\1\0\0\0........\x1c\0\0\0"),
		"begins as a pcapng file does, but is of neither byte order"},
	{"pcapng to come",
		BYTES("\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a\2\0\0\0........\x1c\0\0\0"),
		"header: a section of a version of pcapng that cannot be read; 1.0 and 1.2"},
	{"pcapng of nothing but its header",
		BYTES("\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0........\x1c\0\0\0"),
		"header: the capture ends before any interface is described"},
};

static void
test_what_is_no_capture_is_refused_by_name(void **state)
{
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(refused_rows); i++) {
		begin(false, false);
		for (size_t at = 0; at < refused_rows[i].n_bytes; at++)
			built.bytes[built.n_bytes++] = (uint8_t)refused_rows[i].bytes[at];
		read_built(&reading);
		EXPECT(reading.open_rc == -EINVAL, "%s: %d", refused_rows[i].sentence,
			reading.open_rc);
		expect_words(&reading, refused_rows[i].words, refused_rows[i].sentence);
	}
	read_path("/", &reading);
	EXPECT(reading.open_rc == -EINVAL, "a directory: %d", reading.open_rc);
	expect_words(&reading, "/: a directory", "a directory");
	read_path("/nonexistent/file.pcap", &reading);
	EXPECT(reading.open_rc == -ENOENT, "no file: %d", reading.open_rc);
	expect_words(&reading, "/nonexistent/file.pcap: cannot be opened: No such file",
		"no file");
}

static void
test_other_linktypes_are_refused_by_name(void **state)
{
	struct reading reading;

	(void)state;
	begin(true, false);
	capture_pcap_header(&built, NETLINK);
	read_built(&reading);
	EXPECT(reading.open_rc == -EINVAL, "NETLINK: %d", reading.open_rc);
	expect_words(&reading, "NETLINK (linktype 253)", "pcap");
	begin(false, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, 65000, 0);
	read_built(&reading);
	EXPECT(reading.open_rc == -EINVAL, "65000: %d", reading.open_rc);
	expect_words(&reading, "(linktype 65000)", "pcapng");
}

static void
test_fcs_bits_are_not_of_the_linktype(void **state)
{
	struct reading reading;

	(void)state;
	begin(false, false);
	capture_pcap_header(&built, 0x44000000 | ETHERNET);
	capture_pcap_packet(&built, 1, 0, payload, 60, 60);
	read_built(&reading);
	EXPECT(reading.open_rc == 0 && reading.n_frames == 1, "%s", reading.message.text);
}

static void
test_an_interface_of_another_linktype_ends_it_at_its_first_packet(void **state)
{
	struct reading reading;

	(void)state;
	begin(false, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	capture_ng_interface(&built, 113, 0);
	capture_ng_packet(&built, 0, 1, payload, 20, 20);
	capture_ng_packet(&built, 0, 2, payload, 21, 21);
	read_built(&reading);
	EXPECT(reading.n_frames == 2 && reading.last_rc == 0, "unused: %s",
		reading.message.text);
	capture_ng_packet(&built, 1, 3, payload, 22, 22);
	capture_ng_packet(&built, 0, 4, payload, 23, 23);
	read_built(&reading);
	EXPECT(reading.n_frames == 2 && reading.last_rc == -EINVAL, "%u frames, then %d",
		reading.n_frames, reading.last_rc);
	expect_words(&reading, "packet 3: the capture changes its linktype from", "change");
	expect_words(&reading, "(linktype 1) to LINUX_SLL (linktype 113)", "change");
}

static void
test_a_new_section_has_its_own_interfaces(void **state)
{
	struct reading reading;

	(void)state;
	begin(false, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	capture_ng_packet(&built, 0, 1, payload, 20, 20);
	capture_ng_section(&built);
	capture_ng_interface(&built, 113, 0);
	capture_ng_interface(&built, ETHERNET, 0);
	capture_ng_packet(&built, 1, 2, payload, 21, 21);
	capture_ng_packet(&built, 0, 3, payload, 22, 22);
	read_built(&reading);
	EXPECT(reading.n_frames == 2 && reading.last_rc == -EINVAL, "%u frames, then %d",
		reading.n_frames, reading.last_rc);
	expect_words(&reading, "packet 3: the capture changes its linktype", "section");
}

/* Either order first; also where the new section stands before the first packet. */
static void
test_a_section_of_the_other_byte_order_is_named(void **state)
{
	struct reading reading;

	(void)state;
	for (unsigned is_big = 0; is_big < 2; is_big++) {
		begin(is_big != 0, false);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		capture_ng_packet(&built, 0, 1, payload, 20, 20);
		capture_ng_packet(&built, 0, 2, payload, 20, 20);
		built.is_big = is_big == 0;
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		capture_ng_packet(&built, 0, 3, payload, 20, 20);
		read_built(&reading);
		EXPECT(reading.n_frames == 2 && reading.last_rc == -EINVAL, "%u frames, %d",
			reading.n_frames, reading.last_rc);
		expect_words(&reading,
			": packet 3: the capture changes its byte order, and only one can be",
			"after packets");

		begin(is_big != 0, false);
		capture_ng_section(&built);
		built.is_big = is_big == 0;
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		read_built(&reading);
		EXPECT(reading.open_rc == -EINVAL, "at once: %d", reading.open_rc);
		expect_words(&reading, "the capture changes its byte order", "at once");
	}
}

/* What is wrong is said in the format's words, not in libpcap's. */
static void
test_damage_is_named(void **state)
{
	/* A field of 32 bits, at an offset from the second packet block's begin. */
	static const struct {
		const char *sentence;
		size_t offset;
		uint32_t value;
		const char *words;
	} rows[] = {
		{"a block that is too long", 4, 0x7ffffffc, "a block of an impossible length"},
		{"a block that is too short", 4, 8, "a block of an impossible length"},
		{"a block of an odd length", 4, 53, "a block of an impossible length"},
		{"a block with two lengths", 48, 56,
			"the lengths at a block's two ends differ"},
		{"an unknown interface", 8, 1, "the packet's interface is not described"},
		{"a packet longer than its block", 20, 24,
			"a block is too short for what is in it"},
		{"a packet longer than any", 20, 262145, "a packet of an impossible length"},
	};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		char words[160];
		size_t at;

		begin(false, false);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		capture_ng_packet(&built, 0, 1, payload, 20, 20);
		at = built.n_bytes + rows[i].offset;
		capture_ng_packet(&built, 0, 1, payload, 20, 20);
		memcpy(built.bytes + at, &rows[i].value, 4);
		read_built(&reading);
		EXPECT(reading.n_frames == 1 && reading.last_rc == -EINVAL, "%s: %u frames, %d",
			rows[i].sentence, reading.n_frames, reading.last_rc);
		(void)snprintf(words, sizeof(words),
			": packet 2: the capture is damaged here: %s", rows[i].words);
		expect_words(&reading, words, rows[i].sentence);
	}
}

static void
test_snap_lengths_neither_cut_nor_end_it(void **state)
{
	static const uint32_t snaplens[] = {0, 1, 0x7fffffff, 0xffffffff};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(snaplens); i++) {
		begin(false, false);
		capture_pcap_header(&built, ETHERNET);
		memcpy(built.bytes + 16, &snaplens[i], 4);
		capture_pcap_packet(&built, 1, 0, payload, 60, 60);
		read_built(&reading);
		EXPECT(reading.n_frames == 1 && reading.frames[0].n_bytes == 60, "pcap, %u: %s",
			snaplens[i], reading.message.text);

		begin(false, false);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 96);
		capture_ng_interface(&built, ETHERNET, snaplens[i]);
		capture_ng_packet(&built, 1, 1, payload, 60, 60);
		read_built(&reading);
		EXPECT(reading.n_frames == 1 && reading.frames[0].n_bytes == 60,
			"pcapng, %u: %s", snaplens[i], reading.message.text);
	}
}

static void
test_a_simple_packet_has_its_lengths_and_the_last_time(void **state)
{
	struct reading reading;

	(void)state;
	begin(true, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 30);
	capture_ng_simple_packet(&built, payload, 17, 17);
	capture_ng_packet(&built, 0, 9000000, payload, 20, 20);
	capture_ng_simple_packet(&built, payload, 30, 1500);
	read_built(&reading);
	EXPECT(reading.n_frames == 3 && reading.last_rc == 0, "%s", reading.message.text);
	EXPECT(!reading.frames[0].has_time && reading.frames[0].time_ns == 0,
		"the first has no time to take");
	EXPECT(reading.frames[1].has_time && reading.frames[2].has_time, "a time is none");
	EXPECT(reading.frames[0].n_bytes == 17 && reading.frames[0].wire_bytes == 17, "whole");
	EXPECT(reading.frames[2].time_ns == 9000000000, "the last time");
	EXPECT(reading.frames[2].n_bytes == 30 && reading.frames[2].wire_bytes == 1500,
		"%u of %u bytes", reading.frames[2].n_bytes, reading.frames[2].wire_bytes);
}

/* An interface whose times count from second 100 (if_tsoffset): no time is not second 100. */
static void
test_an_offset_of_times_gives_a_simple_packet_none(void **state)
{
	struct reading reading;

	(void)state;
	begin(false, false);
	capture_ng_section(&built);
	capture_put32(&built, 1);
	capture_put32(&built, 32);
	capture_put32(&built, ETHERNET);
	capture_put32(&built, 0);
	capture_put16(&built, 14);
	capture_put16(&built, 8);
	capture_put32(&built, 100);
	capture_put32(&built, 0);
	capture_put32(&built, 32);
	capture_ng_simple_packet(&built, payload, 17, 17);
	capture_ng_packet(&built, 0, 1000000, payload, 20, 20);
	read_built(&reading);
	EXPECT(reading.n_frames == 2 && reading.last_rc == 0, "%s", reading.message.text);
	EXPECT(reading.frames[0].time_ns == 0 && !reading.frames[0].has_time,
		"a simple packet has a time");
	EXPECT(reading.frames[1].time_ns == 101000000000, "the offset is not added");
}

static void
test_time_does_not_turn_back(void **state)
{
	static const struct {
		uint32_t seconds;
		uint32_t micros;
		uint64_t time_ns;
	} rows[] = {
		{10, 5, 10000005000}, {9, 999999, 10000005000}, /* before its predecessor's */
		{10, 1000006, 11000006000},    /* a fraction of more than a second adds up */
		{11, 0xffffffff, 11000006000}, /* a fraction below 0 is no time */
		{4000000000, 1, 4000000000000001000}, /* beyond 2038 */
	};
	struct reading reading;

	(void)state;
	begin(false, false);
	capture_pcap_header(&built, ETHERNET);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		capture_pcap_packet(&built, rows[i].seconds, rows[i].micros, payload, 60, 60);
	read_built(&reading);
	EXPECT(reading.n_frames == LB_N_ELEMENTS(rows), "%s", reading.message.text);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(reading.frames[i].time_ns == rows[i].time_ns &&
				reading.frames[i].has_time,
			"row %zu: %llu", i, (unsigned long long)reading.frames[i].time_ns);
}

static void
test_a_time_beyond_nanoseconds_is_none(void **state)
{
	struct reading reading;

	(void)state;
	begin(false, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	capture_ng_packet(&built, 0, UINT64_MAX, payload, 20, 20);
	capture_ng_packet(&built, 0, 1000000, payload, 20, 20);
	capture_ng_packet(&built, 0, UINT64_MAX, payload, 20, 20);
	capture_ng_packet(&built, 0, 2000000, payload, 20, 20);
	read_built(&reading);
	EXPECT(reading.n_frames == 4, "%s", reading.message.text);
	EXPECT(reading.frames[0].time_ns == 0 && !reading.frames[0].has_time, "wild, first");
	EXPECT(reading.frames[1].time_ns == 1000000000 && reading.frames[1].has_time, "first");
	EXPECT(reading.frames[2].time_ns == 1000000000 && reading.frames[2].has_time, "wild");
	EXPECT(reading.frames[3].time_ns == 2000000000, "after it");
}

static void
test_impossible_lengths_are_damage(void **state)
{
	static const struct {
		const char *sentence;
		uint32_t captured;
		uint32_t wire;
	} rows[] = {
		{"more captured than there was", 60, 59},
		{"more than any packet", 262145, 262145},
		{"a length below 0", 0xffffffff, 0xffffffff},
	};
	static uint8_t large[REPLAY_SNAPLEN_BYTES];
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		begin(false, false);
		capture_pcap_header(&built, ETHERNET);
		capture_pcap_packet(&built, 1, 0, payload, 60, 60);
		capture_pcap_packet(&built, 1, 0, payload, 0, rows[i].wire);
		memcpy(built.bytes + built.n_bytes - 8, &rows[i].captured, 4);
		capture_put_bytes(&built, large, sizeof(large));
		read_built(&reading);
		EXPECT(reading.n_frames == 1 && reading.last_rc == -EINVAL, "%s: %u frames, %d",
			rows[i].sentence, reading.n_frames, reading.last_rc);
		expect_words(&reading, "packet 2: the capture is damaged", rows[i].sentence);
	}
	begin(false, false);
	capture_pcap_header(&built, 101);
	capture_pcap_packet(&built, 1, 0, large, sizeof(large), 0xffffffff);
	read_built(&reading);
	EXPECT(reading.n_frames == 1 && reading.frames[0].n_bytes == REPLAY_FRAME_BYTES_MAX,
		"the largest: %s", reading.message.text);
	EXPECT(reading.frames[0].wire_bytes == UINT32_MAX, "its wire length wrapped");
}

static void
test_damaged_blocks_end_it(void **state)
{
	static const uint32_t lengths[] = {0, 11, 12, 33, 0xfffffffc};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(lengths); i++) {
		size_t at;

		begin(false, false);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		capture_ng_packet(&built, 0, 1, payload, 20, 20);
		at = built.n_bytes;
		capture_ng_packet(&built, 0, 1, payload, 20, 20);
		memcpy(built.bytes + at + 4, &lengths[i], 4);
		read_built(&reading);
		EXPECT(reading.n_frames == 1 && reading.last_rc == -EINVAL, "%u: %u frames, %d",
			lengths[i], reading.n_frames, reading.last_rc);
		expect_words(&reading, "packet 2: the capture", "block length");
	}
	for (uint32_t length = 12; length < 20; length += 4) {
		begin(false, false);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		memcpy(built.bytes + 28 + 4, &length, 4);
		/* More than a buffer of bytes that look like options. */
		while (built.n_bytes < 70000)
			capture_put32(&built, 0xffffffff);
		read_built(&reading);
		EXPECT(reading.open_rc == -EINVAL, "interface block of %u: %d", length,
			reading.open_rc);
	}
	begin(false, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	capture_ng_packet(&built, 1, 1, payload, 20, 20);
	read_built(&reading);
	EXPECT(reading.n_frames == 0 && reading.last_rc == -EINVAL, "no such interface");
	expect_words(&reading, "packet 1: the capture is damaged", "interface");
}

/* Read what fd gives, as standard input, and close it. */
static void
read_as_standard_input(int fd, struct reading *reading)
{
	int saved = dup(STDIN_FILENO);

	assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	(void)close(fd);
	read_path("-", reading);
	if (saved >= 0) {
		assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
		(void)close(saved);
	} else {
		(void)close(STDIN_FILENO);
	}
}

static void
build_three_packets(void)
{
	begin(true, true);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	for (unsigned i = 0; i < 3; i++)
		capture_ng_packet(&built, 0, i, payload, 10 + i, 60);
}

/* The writer is a child; it waits before each 100 bytes, so that the pipe is found empty. */
static void
expect_pipe_is_read(bool is_nonblocking)
{
	struct reading reading;
	int status;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	if (is_nonblocking)
		assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < built.n_bytes; i++) {
			if (i % 100 == 0)
				(void)usleep(20000);
			if (write(ends[1], built.bytes + i, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	(void)close(ends[1]);
	read_as_standard_input(ends[0], &reading);
	assert_int_equal(waitpid(child, &status, 0), child);
	EXPECT(status == 0, "the writer met %d", status);
	EXPECT(reading.n_frames == 3 && reading.last_rc == 0 && reading.is_nano, "%s",
		reading.message.text);
	EXPECT(reading.read_bytes == built.n_bytes && reading.file_bytes == 0, "progress");
}

static void
test_standard_input_is_read_as_a_file_is(void **state)
{
	(void)state;
	build_three_packets();
	expect_pipe_is_read(false);
}

static void
test_a_pipe_that_does_not_block_is_waited_for(void **state)
{
	(void)state;
	build_three_packets();
	expect_pipe_is_read(true);
}

/* A terminal whose other end is closed gives what was written to it, and then EIO. */
static void
test_a_read_that_fails_is_told_with_its_packet(void **state)
{
	struct reading reading;
	struct termios raw;
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	int slave;

	(void)state;
	if (master < 0)
		skip();
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
	build_three_packets();
	assert_true(write(slave, built.bytes, built.n_bytes) == (ssize_t)built.n_bytes);
	(void)close(slave);
	read_as_standard_input(master, &reading);
	EXPECT(reading.n_frames == 3 && reading.last_rc == -EIO, "%u frames, then %d: %s",
		reading.n_frames, reading.last_rc, reading.message.text);
	EXPECT(strcmp(reading.message.text,
		       "standard input: packet 4: cannot be read: Input/output error") == 0,
		"%s", reading.message.text);
}

static void
test_a_name_is_cut_rather_than_the_sentence(void **state)
{
	static char path[6000];
	struct reading reading;
	size_t n;

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	(void)snprintf(path + sizeof(path) - sizeof("b.pcap"), sizeof("b.pcap"), "b.pcap");
	read_path(path, &reading);
	EXPECT(reading.open_rc == -ENAMETOOLONG, "%d", reading.open_rc);
	EXPECT(strncmp(reading.message.text, "...aaa", 6) == 0, "%s", reading.message.text);
	expect_words(&reading, "aab.pcap: cannot be opened: File name too long", "long");

	/* A file of a long name, and the longest sentence there is. */
	begin(false, false);
	capture_ng_section(&built);
	capture_ng_interface(&built, ETHERNET, 0);
	capture_ng_interface(&built, 65000, 0);
	capture_ng_packet(&built, 1, 1, payload, 20, 20);
	capture_save(&built, built.n_bytes, path);
	n = strlen(path);
	/* The same file, by a path as long as they get. */
	memmove(path + 4000 - n + 4, path + 4, n - 4 + 1);
	memset(path + 4, '/', 4000 - n);
	read_path(path, &reading);
	(void)unlink(path);
	EXPECT(reading.last_rc == -EINVAL, "%d", reading.last_rc);
	expect_words(&reading, "-w OUT", "the longest");
}

static void
test_a_name_with_control_characters_keeps_the_line(void **state)
{
	struct reading reading;

	(void)state;
	read_path("/nonexistent/a\n\033b\177\xc3\xa9", &reading);
	EXPECT(strcmp(reading.message.text, "/nonexistent/a??b?\xc3\xa9: cannot be opened: "
					    "No such file or directory") == 0,
		"%s", reading.message.text);
}

/* Cut so that it would begin within a character of two bytes: each at one of two lengths. */
static void
test_a_name_is_not_cut_within_a_character(void **state)
{
	static char path[6002];
	struct reading reading;

	(void)state;
	for (size_t odd = 0; odd < 2; odd++) {
		memset(path, 0, sizeof(path));
		for (size_t i = 0; i < 6000; i++)
			path[i] = "\xc3\xa9"[i % 2];
		memset(path + 6000, 'x', odd);
		read_path(path, &reading);
		EXPECT(strncmp(reading.message.text, "...\xc3\xa9", 5) == 0, "%zu: %s", odd,
			reading.message.text);
	}
}

static void
test_resolutions_beyond_a_microsecond_are_nano(void **state)
{
	static const struct {
		uint8_t resolution;
		bool is_nano;
	} rows[] = {{3, false}, {6, false}, {7, true}, {9, true}, {0x80 | 19, false},
		{0x80 | 20, true}};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		begin(false, true);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		built.bytes[28 + 16 + 8 + 4] = rows[i].resolution;
		read_built(&reading);
		EXPECT(reading.open_rc == 0 && reading.is_nano == rows[i].is_nano, "0x%02x: %s",
			rows[i].resolution, reading.message.text);
	}
}

/* One that comes later than the first is enough, wherever before the first packet. */
static void
test_the_finest_interface_before_a_packet_decides(void **state)
{
	enum { NO_GAP = 0, FILLER = 0x0bad };
	static const struct {
		const char *sentence;
		bool is_second_section;
		bool is_after_packet;
		uint32_t gap_bytes; /* of a block of another kind before it */
		bool is_nano;
	} rows[] = {
		{"right after the first", false, false, NO_GAP, true},
		{"after another block", false, false, 1000, true},
		{"in a section without packets before", true, false, NO_GAP, true},
		{"up to the end of the buffer", false, false, 65536 - 28 - 20 - 40, true},
		{"beyond the buffer", false, false, 65536 - 28 - 20 - 40 + 4, false},
		{"far beyond the buffer", false, false, 200000, false},
		{"after a packet", false, true, NO_GAP, false},
	};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows) * 2; i++) {
		const char *sentence = rows[i / 2].sentence;
		uint32_t gap_bytes = rows[i / 2].gap_bytes;
		uint32_t index = rows[i / 2].is_second_section ? 0 : 1;

		begin(i % 2 != 0, false);
		capture_ng_section(&built);
		capture_ng_interface(&built, ETHERNET, 0);
		if (rows[i / 2].is_after_packet)
			capture_ng_packet(&built, 0, 1, payload, 20, 20);
		if (rows[i / 2].is_second_section)
			capture_ng_section(&built);
		if (gap_bytes != NO_GAP) {
			capture_put32(&built, FILLER);
			capture_put32(&built, gap_bytes);
			memset(built.bytes + built.n_bytes, 9, gap_bytes - 12);
			built.n_bytes += gap_bytes - 12;
			capture_put32(&built, gap_bytes);
		}
		built.is_nano = true;
		capture_ng_interface(&built, ETHERNET, 0);
		capture_ng_packet(&built, index, 1700000000123456789, payload, 21, 21);
		read_built(&reading);
		EXPECT(reading.open_rc == 0 && reading.last_rc == 0, "%s: %s", sentence,
			reading.message.text);
		EXPECT(reading.is_nano == rows[i / 2].is_nano, "%s: nano %d", sentence,
			reading.is_nano);
		EXPECT(reading.frames[reading.n_frames - 1].time_ns == 1700000000123456789,
			"%s: the time", sentence);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_linktype_in_every_order_and_precision),
		cmocka_unit_test(test_all_before_a_cut_is_given),
		cmocka_unit_test(test_what_is_no_capture_is_refused_by_name),
		cmocka_unit_test(test_other_linktypes_are_refused_by_name),
		cmocka_unit_test(test_fcs_bits_are_not_of_the_linktype),
		cmocka_unit_test(
			test_an_interface_of_another_linktype_ends_it_at_its_first_packet),
		cmocka_unit_test(test_a_new_section_has_its_own_interfaces),
		cmocka_unit_test(test_a_section_of_the_other_byte_order_is_named),
		cmocka_unit_test(test_damage_is_named),
		cmocka_unit_test(test_snap_lengths_neither_cut_nor_end_it),
		cmocka_unit_test(test_a_simple_packet_has_its_lengths_and_the_last_time),
		cmocka_unit_test(test_an_offset_of_times_gives_a_simple_packet_none),
		cmocka_unit_test(test_time_does_not_turn_back),
		cmocka_unit_test(test_a_time_beyond_nanoseconds_is_none),
		cmocka_unit_test(test_impossible_lengths_are_damage),
		cmocka_unit_test(test_damaged_blocks_end_it),
		cmocka_unit_test(test_standard_input_is_read_as_a_file_is),
		cmocka_unit_test(test_a_pipe_that_does_not_block_is_waited_for),
		cmocka_unit_test(test_a_read_that_fails_is_told_with_its_packet),
		cmocka_unit_test(test_a_name_is_cut_rather_than_the_sentence),
		cmocka_unit_test(test_a_name_with_control_characters_keeps_the_line),
		cmocka_unit_test(test_a_name_is_not_cut_within_a_character),
		cmocka_unit_test(test_resolutions_beyond_a_microsecond_are_nano),
		cmocka_unit_test(test_the_finest_interface_before_a_packet_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
