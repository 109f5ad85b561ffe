/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_NEIGHBOR_H
#define LB_NEIGHBOR_H

/**
 * @file
 * Who has this address: ARP requests (RFC 826) and neighbour solicitations (RFC 4861), and
 * the answers to them.
 *
 * Pure; reads nothing past the given length, whatever the bytes are. Callable from any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"

/** By how much an answer may be longer than what it answers, bytes. */
#define LB_NEIGHBOR_GROWTH_MAX 8u

/** What somebody asks, and how to answer. */
struct lb_neighbor_ask {
	struct lb_addr target;   /**< whose MAC address is asked for */
	struct lb_mac asker;     /**< whom the answer goes to; a group's for a probe by ND */
	uint16_t network_offset; /**< from the frame's start, after VLAN tags */
	uint16_t answer_bytes;   /**< of the answer's frame */
};

/**
 * Whether a frame asks one of us for an address.
 *
 * An ARP request must be of Ethernet and IPv4. One whose sender has the address already
 * (RFC 5227, section 3: an announcement) asks nothing; a probe, whose sender has none, does.
 * A neighbour solicitation must pass the checks of RFC 4861, section 7.1.1, and ask for an
 * IPv6 address: one that is IPv4-mapped would be taken for IPv4 here. Extension headers are
 * not looked through: no node puts one before a solicitation, and RFC 6980 forbids fragments.
 *
 * Nothing is answered to a MAC address that is a group's; nor is what another host is asked
 * (a NIC may be promiscuous) or what we ask ourselves (a packet socket shows that too).
 *
 * @param frame     n_bytes bytes.
 * @param own       MAC address of the port that the frame came by.
 * @param[out] out  Written only where it does.
 */
bool lb_neighbor_asks(const uint8_t *frame, size_t n_bytes, const struct lb_mac *own,
	struct lb_neighbor_ask *out) lb_must_check;

/**
 * Turn the frame that asks into the answer.
 *
 * VLAN tags are kept. ARP keeps its padding's length. A neighbour advertisement is solicited
 * and overrides; to a probe (RFC 4862, section 5.4), whose sender has no address yet, it goes
 * to all nodes and is not called solicited.
 *
 * @param ask    What lb_neighbor_asks() said of the frame.
 * @param own    The answer: also the frame's source.
 * @param frame  Room for ask->answer_bytes: no more than LB_NEIGHBOR_GROWTH_MAX above what it
 *               had.
 */
void lb_neighbor_answer(const struct lb_neighbor_ask *ask, const struct lb_mac *own,
	uint8_t *frame);

#endif
