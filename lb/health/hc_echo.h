/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_ECHO_H
#define HC_ECHO_H

/**
 * @file
 * ICMP echo messages (RFC 792, RFC 4443) that know whom they are for. All checks share a
 * socket, which hears everybody's replies: a reply is one of ours by a secret in its payload.
 *
 * Functions of their arguments alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Header, secret, id, time. */
#define HC_ECHO_BYTES 32u

/** What a request carries and its reply brings back. */
struct hc_echo {
	uint64_t secret; /**< drawn at the start, so that nobody outside can make a reply up */
	uint64_t id;     /**< of whom is asked */
	uint64_t begun_ns; /**< of this question: a reply to an older one is none to this */
};

/** Write a request, with ICMP's checksum; ICMPv6's is the kernel's to write. */
void hc_echo_write(const struct hc_echo *echo, bool is_v4, uint8_t out[static HC_ECHO_BYTES]);

/**
 * Read what a socket has heard.
 *
 * @param has_header  An IPv4 header comes first, as a raw socket of that family has it.
 * @param[out] out    Untouched where it is no reply with this secret.
 * @return whether it is.
 */
bool hc_echo_read(const uint8_t *bytes, size_t n, bool is_v4, bool has_header, uint64_t secret,
	struct hc_echo *out);

#endif
