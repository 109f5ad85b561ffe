/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_MARTIAN_H
#define LB_MARTIAN_H

/**
 * @file
 * Sources that no packet to a service has: who has one is forged, or went round; and
 * destinations that no packet on a wire has.
 *
 * Pure; callable from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"
#include "lb_service_table.h"
#include "lb_usual.h"

/**
 * Whether no packet to dst may come from an address: it is no single host's (RFC 1122, section
 * 3.2.1.3; RFC 6890), dst itself, the balancer's, or that of a service of one address. Within
 * the prefix of a service there may be clients.
 *
 * @param services  As they are matched.
 * @param own       The balancer's n_own addresses.
 */
bool lb_martian_source(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const struct lb_addr *source, const struct lb_addr *dst);

/* The first byte of an IPv4 address, which is mapped. */
static inline uint32_t
lb_martian_first_byte(const uint64_t addr[2])
{
	return (uint32_t)(addr[1] >> 32) & 0xff;
}

/* :: and ::1. */
static inline bool
lb_martian_is_lowest(const uint64_t addr[2])
{
	return addr[0] == 0 && (addr[1] & ~(UINT64_C(1) << 56)) == 0;
}

/**
 * Whether an address in two words is no single host's: 0/8, 127/8, 224/4, and 240/4, with
 * all-ones among it; ::, ::1 and ff00::/8.
 */
static inline bool
lb_martian_is_no_host(const uint64_t source[2])
{
	if (lb_usual_is_mapped(source[0], source[1])) {
		const uint32_t first = lb_martian_first_byte(source);

		/* 0 is above all, less 1. */
		return first - 1 >= 223 || first == 127;
	}
	return (source[0] & 0xff) == 0xff || lb_martian_is_lowest(source);
}

/** The same of addresses in two words, as lb_service_words() has them. */
bool lb_martian_words(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const uint64_t source[2], const uint64_t dst[2]);

/**
 * Addresses that are hosts' here, as bits of their hashes: a Bloom filter (CACM 13, 1970) of
 * one bit each, by which most sources are known to be others at once.
 */
struct lb_martian_filter {
	const uint64_t *bits;
	uint8_t shift; /**< of a hash, of which what is left is a bit's number */
};

/** Words of a filter for n_hosts addresses: 32 bits each, a line at least. A power of two. */
size_t lb_martian_filter_words(size_t n_hosts);

/**
 * Put addresses into a filter.
 *
 * @param words   lb_martian_filter_words(n_hosts) of them, all zero; the caller's, for as long
 *                as the filter is used.
 * @param hosts   n_hosts of them; not kept.
 */
void lb_martian_filter_init(struct lb_martian_filter *filter, uint64_t *words,
	const struct lb_addr *hosts, size_t n_hosts);

/** A sum of products, of which the upper bits are good. */
static inline uint64_t
lb_martian_hash(const uint64_t addr[2])
{
	return addr[0] * UINT64_C(0x9e3779b97f4a7c15) + addr[1] * UINT64_C(0xd1b54a32d192ed03);
}

/**
 * Whether a source may be one that lb_martian_words() says is a martian; if not, it is none.
 *
 * @param filter  Has the balancer's addresses and those of services of one address.
 */
static inline bool
lb_martian_may_be(const struct lb_martian_filter *filter, const uint64_t source[2],
	const uint64_t dst[2])
{
	const uint64_t bit = lb_martian_hash(source) >> filter->shift;

	if (unlikely(lb_martian_is_no_host(source) ||
		     ((source[0] ^ dst[0]) | (source[1] ^ dst[1])) == 0))
		return true;
	return unlikely((filter->bits[bit / 64] >> bit % 64 & 1) != 0);
}

/**
 * Whether an address is nobody's beyond its own host, so that a packet to it is for nobody:
 * this network and loopback (0/8, 127/8; RFC 1812, sections 4.2.2.11 and 5.3.7), unspecified
 * and loopback over IPv6 (RFC 4291, sections 2.5.2 and 2.5.3).
 */
bool lb_martian_destination(const struct lb_addr *dst);

#endif
