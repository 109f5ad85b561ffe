/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_TRANSLATE_H
#define HC_TRANSLATE_H

/**
 * @file
 * Addresses of an IP packet read, and replaced with its checksums (RFC 1624).
 *
 * Pure functions, callable from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"

/** From where to where a packet goes. */
struct hc_ends {
	struct lb_addr source;
	struct lb_addr destination;
	uint16_t source_port; /**< host order */
	uint16_t destination_port;
};

/**
 * Read the ends of an IPv4 or IPv6 packet of TCP or UDP, whole and without extension headers.
 *
 * @param ip        n_bytes from its header on; more than the packet has are let be.
 * @param[out] out  Untouched where it is no such packet.
 * @return whether it is one.
 */
bool hc_translate_read(const uint8_t *ip, size_t n_bytes, struct hc_ends *out);

/**
 * Finish a checksum that its sender has left to a device, as virtual ones hand on packets: it
 * is that of the addresses, protocol and length alone. Any other is left as it is, right or
 * wrong.
 *
 * @param ip  n_bytes that hc_translate_read() has read.
 */
void hc_translate_finish(uint8_t *ip, size_t n_bytes);

/**
 * Replace both addresses; ports stay. A checksum that was wrong is as wrong afterwards, and a
 * UDP checksum of 0 stays one.
 *
 * @param ip           hc_translate_read() has read it.
 * @param source       Of the packet's family, as is destination.
 */
void hc_translate_write(uint8_t *ip, const struct lb_addr *source,
	const struct lb_addr *destination);

#endif
