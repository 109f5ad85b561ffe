/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_ADDR_H
#define LB_ADDR_H

/**
 * @file
 * IP addresses, prefixes and MAC addresses, and their text forms.
 *
 * An IPv4 address is held as the IPv6 address ::ffff:a.b.c.d (RFC 4291,
 * section 2.5.5.2), so that one comparison and one hash serve both families.
 *
 * All functions are pure and may be called from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lb_compiler.h"

#define LB_ADDR_BYTES 16u

/** Room for any text form here, the terminating NUL included. */
#define LB_ADDR_TEXT_BYTES   46u
#define LB_PREFIX_TEXT_BYTES 50u
#define LB_MAC_TEXT_BYTES    18u

struct lb_addr {
	uint8_t bytes[LB_ADDR_BYTES]; /**< network order */
};

/** An address with the length of its network part. */
struct lb_prefix {
	struct lb_addr addr;
	uint8_t n_bits; /**< 0..128 of the 16 bytes; an IPv4 /n is held as 96 + n */
};

struct lb_mac {
	uint8_t bytes[6];
};

static inline bool
lb_addr_is_v4(const struct lb_addr *addr)
{
	static const uint8_t mapped[LB_ADDR_BYTES - 4] = {[10] = 0xff, [11] = 0xff};

	return memcmp(addr->bytes, mapped, sizeof(mapped)) == 0;
}

static inline bool
lb_addr_equal(const struct lb_addr *a, const struct lb_addr *b)
{
	return memcmp(a->bytes, b->bytes, LB_ADDR_BYTES) == 0;
}

/** ::ffff:a.b.c.d from four bytes in network order. */
static inline struct lb_addr
lb_addr_from_v4(const uint8_t v4[4])
{
	struct lb_addr addr = {{[10] = 0xff, [11] = 0xff}};

	memcpy(addr.bytes + LB_ADDR_BYTES - 4, v4, 4);
	return addr;
}

/** Whether a backend may have this address: no multicast, loopback, unspecified or broadcast.
 */
bool lb_addr_is_unicast(const struct lb_addr *addr);

/**
 * Parse an address: dotted quad without leading zeros, or RFC 4291 text.
 *
 * @param text      NUL-terminated.
 * @param[out] out  The address; untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  Not an address. An IPv4-mapped IPv6 address is refused too:
 *                  it would be a second name for an IPv4 address.
 */
int lb_addr_parse(const char *text, struct lb_addr *out) lb_must_check;

/**
 * Parse ADDRESS or ADDRESS/LENGTH; without a length it is the whole address.
 * Host bits are kept: lb_prefix_has_host_bits() tells.
 *
 * @retval 0        Success.
 * @retval -EINVAL  Not a prefix.
 */
int lb_prefix_parse(const char *text, struct lb_prefix *out) lb_must_check;

/** Whether both are the same, host bits included. */
bool lb_prefix_equal(const struct lb_prefix *a, const struct lb_prefix *b);

/** Whether a bit after the first n_bits is set. */
bool lb_prefix_has_host_bits(const struct lb_prefix *prefix);

/** addr with all bits after the first n_bits (0..128) cleared. */
struct lb_addr lb_addr_mask(const struct lb_addr *addr, unsigned int n_bits);

/** Parse six pairs of hexadecimal digits with colons between. @retval -EINVAL  It is not. */
int lb_mac_parse(const char *text, struct lb_mac *out) lb_must_check;

/** Text forms: RFC 5952 for IPv6. out has room for the constants above. Return out. */
char *lb_addr_format(const struct lb_addr *addr, char out[static LB_ADDR_TEXT_BYTES]);
/** Without a length where the prefix is a whole address. */
char *lb_prefix_format(const struct lb_prefix *prefix, char out[static LB_PREFIX_TEXT_BYTES]);
char *lb_mac_format(const struct lb_mac *mac, char out[static LB_MAC_TEXT_BYTES]);

#endif
