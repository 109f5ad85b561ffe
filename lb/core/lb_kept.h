/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_KEPT_H
#define LB_KEPT_H

/**
 * @file
 * Destinations that the prefix of a service does not take, however wide it is.
 *
 * Groups (RFC 5771; RFC 4291, section 2.7), the limited broadcast (RFC 919) and IPv6's
 * link-local addresses (RFC 4291, section 2.5.6) mean nothing beyond their link; the balancer's
 * own addresses, and its networks' broadcasts, are for the balancer; and what is a martian's
 * (lb_martian_destination()) is nobody's. All of them are kept from services by matches of
 * LB_SERVICE_NONE, of their own length, and only where a service's shorter prefix has them:
 * other tables get no length to look up.
 *
 * Pure; callable from any thread.
 */

#include "lb_service_table.h"

/** Most that lb_kept_groups(), and that lb_kept_network(), appends. */
#define LB_KEPT_GROUPS_MAX  8u
#define LB_KEPT_NETWORK_MAX 2u

/**
 * Keep groups, the limited broadcast, link-local and martian addresses.
 *
 * @param matches     n of them, of which the first n_services are services'; room for
 *                    LB_KEPT_GROUPS_MAX more.
 * @return how many there are now.
 */
size_t lb_kept_groups(struct lb_service_match *matches, size_t n_services, size_t n);

/**
 * The same for an address of the balancer's own and the broadcast address of its network,
 * where it has one.
 *
 * @param matches  As above, with room for LB_KEPT_NETWORK_MAX more.
 * @param network  With host bits, which are the address.
 */
size_t lb_kept_network(struct lb_service_match *matches, size_t n_services, size_t n,
	const struct lb_prefix *network);

#endif
