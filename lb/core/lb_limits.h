/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_LIMITS_H
#define LB_LIMITS_H

/**
 * @file
 * Capacities, each with its reason.
 */

#include <stddef.h>
#include <stdint.h>

/** Backends of one service: a table slot holds a 16-bit index, 65535 of them. */
#define LB_SERVICE_BACKENDS_MAX 65535u

/** Largest weight. Products of a weight with a table size stay inside 64 bits. */
#define LB_WEIGHT_MAX 65535u

/** Backend ids of one process: a flow entry holds 20 bits of id. */
#define LB_BACKEND_IDS_MAX (1u << 20)

/** Services of one process; an id is a 32-bit index, this bounds memory only. */
#define LB_SERVICES_MAX (1u << 20)

/** Matches of one table: the services', and addresses that are kept from their prefixes. */
#define LB_MATCHES_MAX ((size_t)2 * LB_SERVICES_MAX)

/** Smallest and largest table, in slots. 7 is what the Maglev paper draws. */
#define LB_SLOTS_MIN 7u
#define LB_SLOTS_MAX 16777213u /* the largest prime under 2^24 */

/** Table size where the configuration says nothing: the paper's small table. */
#define LB_SLOTS_DEFAULT 65537u

/** Points on a ring of a backend of weight 100, as libketama has. */
#define LB_RING_POINTS_PER_100 160u

/** Most points on a ring, 256 MiB of them. */
#define LB_RING_POINTS_MAX (1u << 24)

/** Most backends times slots of a rendezvous table: a score each, computed in half a minute. */
#define LB_HRW_SCORES_MAX (UINT64_C(1) << 33)

/** Ports of one plane; each worker turns to every one, so they are few. */
#define LB_PORTS_MAX 16u

/** Workers of one plane: DPDK, as it is usually built, has 128 lcores, and one is control's. */
#define LB_WORKERS_MAX 127u

/** Longest name of a service, backend or port, in bytes of UTF-8. */
#define LB_NAME_BYTES_MAX 255u

/** VLAN tags looked through: 802.1ad's service tag and one customer tag. */
#define LB_VLAN_TAGS_MAX 2u

/** IPv6 extension headers walked; RFC 8200 names six, and each once is usual. */
#define LB_IPV6_EXTENSIONS_MAX 16u

/** Flow entries of one worker, per configuration. */
#define LB_FLOW_ENTRIES_MAX (1u << 30)

/** The longest flow timeout has 2^20 ticks at least, and 2^23 fit: so they wrap safely. */
#define LB_FLOW_TICKS_LOG2 20u

/**
 * Source ports of health checks that go through the balancer's own forwarding: below those that
 * Linux gives out by itself (net.ipv4.ip_local_port_range), above those that servers listen at.
 */
#define LB_PROBE_PORT_FIRST 20000u
#define LB_PROBE_PORT_LAST  32767u

/** Longest flow timeout: a week. */
#define LB_FLOW_TIMEOUT_S_MAX 604800u

#endif
