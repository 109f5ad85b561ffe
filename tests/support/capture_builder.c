/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

void
capture_put_bytes(struct capture *capture, const uint8_t *bytes, size_t n_bytes)
{
	assert_true(n_bytes <= CAPTURE_BYTES_MAX - capture->n_bytes);
	if (n_bytes > 0)
		memcpy(capture->bytes + capture->n_bytes, bytes, n_bytes);
	capture->n_bytes += n_bytes;
}

void
capture_put16(struct capture *capture, uint16_t value)
{
	uint8_t low = (uint8_t)value;
	uint8_t high = (uint8_t)(value >> 8);
	uint8_t bytes[2] = {capture->is_big ? high : low, capture->is_big ? low : high};

	capture_put_bytes(capture, bytes, sizeof(bytes));
}

void
capture_put32(struct capture *capture, uint32_t value)
{
	uint16_t low = (uint16_t)value;
	uint16_t high = (uint16_t)(value >> 16);

	capture_put16(capture, capture->is_big ? high : low);
	capture_put16(capture, capture->is_big ? low : high);
}

void
capture_pcap_header(struct capture *capture, uint32_t linktype)
{
	capture_put32(capture, capture->is_nano ? 0xa1b23c4d : 0xa1b2c3d4);
	capture_put16(capture, 2);
	capture_put16(capture, 4);
	capture_put32(capture, 0);
	capture_put32(capture, 0);
	capture_put32(capture, 65535);
	capture_put32(capture, linktype);
}

void
capture_pcap_packet(struct capture *capture, uint32_t seconds, uint32_t fraction,
	const uint8_t *bytes, uint32_t n_bytes, uint32_t wire_bytes)
{
	capture_put32(capture, seconds);
	capture_put32(capture, fraction);
	capture_put32(capture, n_bytes);
	capture_put32(capture, wire_bytes);
	capture_put_bytes(capture, bytes, n_bytes);
}

void
capture_ng_section(struct capture *capture)
{
	capture_put32(capture, 0x0a0d0d0a);
	capture_put32(capture, 28);
	capture_put32(capture, 0x1a2b3c4d);
	capture_put16(capture, 1);
	capture_put16(capture, 0);
	capture_put32(capture, 0xffffffff);
	capture_put32(capture, 0xffffffff);
	capture_put32(capture, 28);
}

void
capture_ng_interface(struct capture *capture, uint16_t linktype, uint32_t snaplen)
{
	static const uint8_t resolution[4] = {9, 0, 0, 0};
	static const uint8_t name[4] = {'e', 't', 'h', '0'};
	uint32_t block_bytes = capture->is_nano ? 40 : 20;

	capture_put32(capture, 1);
	capture_put32(capture, block_bytes);
	capture_put16(capture, linktype);
	capture_put16(capture, 0);
	capture_put32(capture, snaplen);
	if (capture->is_nano) {
		capture_put16(capture, 2); /* if_name */
		capture_put16(capture, 4);
		capture_put_bytes(capture, name, sizeof(name));
		capture_put16(capture, 9); /* if_tsresol */
		capture_put16(capture, 1);
		capture_put_bytes(capture, resolution, sizeof(resolution));
		capture_put32(capture, 0); /* opt_endofopt */
	}
	capture_put32(capture, block_bytes);
}

static void
put_padded(struct capture *capture, const uint8_t *bytes, uint32_t n_bytes)
{
	static const uint8_t zero[3];

	capture_put_bytes(capture, bytes, n_bytes);
	capture_put_bytes(capture, zero, (4 - n_bytes % 4) % 4);
}

void
capture_ng_packet(struct capture *capture, uint32_t interface_index, uint64_t time,
	const uint8_t *bytes, uint32_t n_bytes, uint32_t wire_bytes)
{
	uint32_t block_bytes = 32 + (n_bytes + 3) / 4 * 4;

	capture_put32(capture, 6);
	capture_put32(capture, block_bytes);
	capture_put32(capture, interface_index);
	capture_put32(capture, (uint32_t)(time >> 32));
	capture_put32(capture, (uint32_t)time);
	capture_put32(capture, n_bytes);
	capture_put32(capture, wire_bytes);
	put_padded(capture, bytes, n_bytes);
	capture_put32(capture, block_bytes);
}

void
capture_ng_simple_packet(struct capture *capture, const uint8_t *bytes, uint32_t n_bytes,
	uint32_t wire_bytes)
{
	uint32_t block_bytes = 16 + (n_bytes + 3) / 4 * 4;

	capture_put32(capture, 3);
	capture_put32(capture, block_bytes);
	capture_put32(capture, wire_bytes);
	put_padded(capture, bytes, n_bytes);
	capture_put32(capture, block_bytes);
}

void
capture_save(const struct capture *capture, size_t n_bytes, char path[CAPTURE_PATH_BYTES])
{
	int fd;

	(void)snprintf(path, CAPTURE_PATH_BYTES, "/tmp/shunt-test-capture-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(write(fd, capture->bytes, n_bytes) == (ssize_t)n_bytes);
	assert_int_equal(close(fd), 0);
}
