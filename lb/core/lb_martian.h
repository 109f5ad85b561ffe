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

#include "lb_service_table.h"

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

/** The same of addresses in two words, as lb_service_words() has them. */
bool lb_martian_words(const struct lb_service_table *services, const struct lb_addr *own,
	size_t n_own, const uint64_t source[2], const uint64_t dst[2]);

/**
 * Whether an address is nobody's beyond its own host, so that a packet to it is for nobody:
 * this network and loopback (0/8, 127/8; RFC 1812, sections 4.2.2.11 and 5.3.7), unspecified
 * and loopback over IPv6 (RFC 4291, sections 2.5.2 and 2.5.3).
 */
bool lb_martian_destination(const struct lb_addr *dst);

#endif
