/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_SERVICE_TABLE_H
#define LB_SERVICE_TABLE_H

/**
 * @file
 * Service table: (address, protocol, port) -> service.
 *
 * Longest prefix with a match first; within it an exact port before any, then an exact
 * protocol before any; no match falls back to the next shorter prefix. IPv4 and IPv6 are
 * apart: ::/0 matches no IPv4 address. Open addressing over whole keys, one search for each
 * prefix length of the family and each combination of exact and any that occurs at that
 * length; so 10,000 services with one prefix length cost what one does. A search looks at a
 * number of keys that is fixed when the table is built, whatever the packet.
 *
 * Immutable once built; lookups from any number of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"

#define LB_SERVICE_NONE UINT32_MAX

struct lb_service_match {
	struct lb_prefix prefix; /**< without host bits */
	uint8_t proto;           /**< IPPROTO_TCP, IPPROTO_UDP; 0 for any */
	uint16_t port;           /**< host order; 0 for any */
	/** What lb_service_find() returns; LB_SERVICE_NONE keeps what it matches from shorter
	 * prefixes, and gives way to a service that matches alike. */
	uint32_t service;
};

struct lb_service_table; /* opaque */

/** Bytes for lb_service_table_build() of n matches, 0..LB_MATCHES_MAX; 0 if more. */
size_t lb_service_table_bytes(size_t n);

/**
 * Build a table in the caller's memory.
 *
 * @param mem       lb_service_table_bytes(n) bytes, LB_CACHE_LINE aligned.
 * @param matches   n of them, in any order; not kept.
 * @param[out] out  The table, inside mem; untouched on error.
 * @retval 0        Success.
 * @retval -E2BIG   n is over LB_MATCHES_MAX.
 * @retval -EINVAL  A prefix has host bits, or over 128 bits; a protocol is none of those
 *                  above.
 * @retval -EEXIST  Two services have the same prefix, protocol and port.
 */
int lb_service_table_build(void *mem, const struct lb_service_match *matches, size_t n,
	const struct lb_service_table **out) lb_must_check;

/**
 * The service of a packet.
 *
 * @param proto  The packet's protocol, 1..255. One that is neither TCP nor UDP matches
 *               only services of any protocol and any port.
 * @param port   Destination port, host order; 0 where the protocol has none.
 * @return its number, or LB_SERVICE_NONE.
 */
uint32_t lb_service_find(const struct lb_service_table *table, const struct lb_addr *dst,
	uint8_t proto, uint16_t port);

/**
 * Whether any service, whatever its protocol and port, covers the address: of all prefixes
 * around it the longest has a service's match.
 */
bool lb_service_covers(const struct lb_service_table *table, const struct lb_addr *dst);

/** Whether a service has just this address, and not a prefix around it. */
bool lb_service_has_host(const struct lb_service_table *table, const struct lb_addr *addr);

#endif
