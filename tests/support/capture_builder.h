/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CAPTURE_BUILDER_H
#define CAPTURE_BUILDER_H

/**
 * @file
 * pcap and pcapng files for tests, byte by byte, sound or not, in either byte order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_BYTES_MAX  (1u << 20)
#define CAPTURE_PATH_BYTES 64

/** Begin with {0}; set is_big and is_nano before the first call. */
struct capture {
	bool is_big;  /**< big-endian */
	bool is_nano; /**< pcap: the nanosecond magic; pcapng: if_tsresol of 9 */
	size_t n_bytes;
	uint8_t bytes[CAPTURE_BYTES_MAX];
};

void capture_put16(struct capture *capture, uint16_t value);
void capture_put32(struct capture *capture, uint32_t value);
void capture_put_bytes(struct capture *capture, const uint8_t *bytes, size_t n_bytes);

void capture_pcap_header(struct capture *capture, uint32_t linktype);

/** fraction: micro- or nanoseconds; bytes: n_bytes of them, of wire_bytes. */
void capture_pcap_packet(struct capture *capture, uint32_t seconds, uint32_t fraction,
	const uint8_t *bytes, uint32_t n_bytes, uint32_t wire_bytes);

void capture_ng_section(struct capture *capture);
void capture_ng_interface(struct capture *capture, uint16_t linktype, uint32_t snaplen);

/** time: in the interface's units. */
void capture_ng_packet(struct capture *capture, uint32_t interface_index, uint64_t time,
	const uint8_t *bytes, uint32_t n_bytes, uint32_t wire_bytes);

/** A simple packet block: no time. */
void capture_ng_simple_packet(struct capture *capture, const uint8_t *bytes, uint32_t n_bytes,
	uint32_t wire_bytes);

/** Its first n_bytes as a new temporary file, to be unlinked by the caller. */
void capture_save(const struct capture *capture, size_t n_bytes, char path[CAPTURE_PATH_BYTES]);

#endif
