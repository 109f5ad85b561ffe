/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_HANDOFF_H
#define DP_HANDOFF_H

/**
 * @file
 * Which worker owns a packet.
 *
 * A flow's owner is the worker whose queue the device puts its packets in, or where no device
 * spreads them, the one that the workers agree on. Fragments and ICMP errors come by other
 * queues than their flow's, and are handed over by ring:
 *
 * - an ICMP error, and a datagram's first fragment, to the owner of the flow, once;
 * - later fragments, which show no flow, to their datagram's home, a worker that follows from
 *   addresses and identification, once;
 * - first fragments, by the owner, when it has decided on them, to the home, once.
 *
 * So the flow's table answers for all of a datagram, and whether its fragments fit together is
 * seen where they all are, before any leaves:
 *
 *     received by         owner of the flow          home of the datagram
 *         |  first fragment       |                           |
 *         |---------------------->| its backend, or why none; |
 *         |       (packets)       | begins the flow           |
 *         |                       |-------------------------->| overlaps? dropped, with
 *         |                       |  the first, and what was  | what waits. Otherwise it is
 *         |                       |     decided (firsts)      | encapsulated, cut or answered
 *         |                       |                           | and leaves: so do those that
 *         |  later fragment       |                           | waited, and those to come.
 *         |-------------------------------------------------->| Or if that fails, all are
 *         |       (packets)       |                           | dropped for one reason.
 *
 * Any two of the three may be one worker: then there is no hand-over between them. No ring
 * leads back, so none can wait for another, and what finds one full is LB_DROP_HANDOFF_FULL:
 * a first that finds the owner's full is told of at home, where its datagram is dropped with
 * it; of one that finds home's full, those that wait do so in vain. Fragments of IPv4 without
 * ports, but for ICMP, show their flow: they are handed to its owner and leave there, and none
 * of them is held against another.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#include "lb_packet.h"

/** Longest key and table of a device's receive side scaling that are made use of. */
#define DP_RSS_KEY_BYTES_MAX 64u
#define DP_RSS_QUEUES_MAX    RTE_ETH_RSS_RETA_SIZE_512

/** How a device spreads packets: Toeplitz' hash over addresses and ports, and a table. */
struct dp_rss {
	uint16_t n_queues; /**< entries of queue_of in use, a power of two; 0: nobody knows */
	alignas(uint32_t) uint8_t key[DP_RSS_KEY_BYTES_MAX]; /**< DPDK reads it by words */
	uint8_t queue_of[DP_RSS_QUEUES_MAX];
};

/**
 * A flow's owner where a device spreads packets: computed as the device computes it.
 *
 * @param packet  Parsed. Of TCP and UDP its key's ports count, of others its addresses alone.
 */
unsigned int dp_handoff_rss(const struct dp_rss *rss, const struct lb_packet *packet);

/** Whether a packet shows no flow, and its datagram's home has to say where it goes. */
static inline bool
dp_handoff_is_later(const struct lb_packet *packet)
{
	return packet->kind == LB_PACKET_LATER_FRAGMENT ||
	       (packet->kind == LB_PACKET_ICMP_OTHER && lb_packet_is_later_fragment(packet));
}

/** Whether a device may have put it in another queue than its flow's. */
static inline bool
dp_handoff_is_astray(const struct lb_packet *packet)
{
	return packet->kind == LB_PACKET_ICMP_ERROR ||
	       (packet->flags & LB_PACKET_FRAGMENT) != 0;
}

/** The home of a fragment's datagram. @return 0..n_workers-1 */
unsigned int dp_handoff_home(const struct lb_packet *packet, unsigned int n_workers);

/**
 * A packet's owner where the workers spread packets themselves: of a later fragment its home,
 * of an ICMP error that of the flow it quotes.
 *
 * @param n_workers  1 or more.
 * @return 0..n_workers-1, the same for all packets of a flow.
 */
unsigned int dp_handoff_owner(const struct lb_packet *packet, unsigned int n_workers);

#endif
