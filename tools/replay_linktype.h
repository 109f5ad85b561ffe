/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_LINKTYPE_H
#define REPLAY_LINKTYPE_H

/**
 * @file
 * Link layers of captures, and how a packet of each becomes an Ethernet frame.
 *
 * Numbers are those of the files (LINKTYPE_*), not libpcap's own (DLT_*), which differ from
 * one system to another.
 */

#include <stdbool.h>
#include <stdint.h>

/** Bytes put in front of a packet that has no Ethernet header. */
#define REPLAY_ETHERNET_BYTES 14u

#define REPLAY_LINKTYPE_NAME_BYTES 96u

/** One number for each layout: the two older numbers of RAW are RAW. */
uint32_t replay_linktype_normalise(uint32_t linktype);

/** Whether packets of it can be made frames; linktype is normalised. */
bool replay_linktype_is_supported(uint32_t linktype);

/** Whether a packet of it is a frame as it stands. */
bool replay_linktype_is_ethernet(uint32_t linktype);

/** Its name and number, for a message. */
void replay_linktype_name(uint32_t linktype, char name[REPLAY_LINKTYPE_NAME_BYTES]);

/**
 * Make a frame of a packet of a supported linktype other than Ethernet.
 *
 * A packet that does not reach to the end of its link header has no known EtherType: its
 * frame is the two addresses alone, too short for the packet path.
 *
 * @param bytes            The packet, n_bytes of it.
 * @param n_bytes          Bytes there are.
 * @param[in,out] wire_bytes  Bytes on the wire: of the packet, then of the frame.
 * @param[out] frame       Room for n_bytes + REPLAY_ETHERNET_BYTES.
 * @return the frame's bytes in frame[].
 */
uint32_t replay_linktype_convert(uint32_t linktype, const uint8_t *bytes, uint32_t n_bytes,
	uint32_t *wire_bytes, uint8_t *frame);

#endif
