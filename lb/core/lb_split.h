/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_SPLIT_H
#define LB_SPLIT_H

/**
 * @file
 * Fragmentation: what an IP packet that does not fit becomes.
 *
 * A plan is made from the packet's IP header; lb_split_next() then gives the pieces in their
 * order, each as the header to write and the run of the packet's bytes to put behind it. The
 * caller copies the payload, which is never looked at.
 *
 * IPv4 by RFC 791: offsets in 8-octet units; options that are not to be copied are in the
 * first piece alone. IPv6 by RFC 8200, section 4.5. All pieces but the last are as long as
 * fits. A packet that fits is one piece, its header unchanged.
 *
 * A tunnel's packet can be split in two places. The inner packet, before it gets its outer
 * headers: then the pieces are packets that the backend takes off one by one, and the
 * receiver puts together. Or the outer packet: then what follows its IP header (GRE, UDP,
 * VXLAN) is payload, in the first piece alone, and the backend puts it together.
 *
 * Pure; callable from any thread, each with its own plan.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

/** Of one piece: an IPv4 header with all options it can have. */
#define LB_SPLIT_HEADER_BYTES_MAX 60u

/** In one packet, whatever the MTU: 65535 bytes by eight. */
#define LB_SPLIT_PIECES_MAX 8192u

struct lb_split_header {
	uint8_t bytes[LB_SPLIT_HEADER_BYTES_MAX];
	uint8_t n_bytes; /**< of bytes[] in use: 20..60 for IPv4, 40 or 48 for IPv6 */
};

/** One fragment: the header, then payload_bytes of the packet from payload_offset on. */
struct lb_split_piece {
	struct lb_split_header header;
	uint16_t payload_bytes;
	uint32_t payload_offset; /**< in the packet, from its IP header's first byte */
};

/** A plan. Only n_pieces is the caller's to read; copies of it go on independently. */
struct lb_split {
	uint32_t n_pieces; /**< all of them, 1..LB_SPLIT_PIECES_MAX */

	struct lb_split_header first; /* without lengths, fragment field and checksum */
	struct lb_split_header later;
	uint32_t room;
	uint32_t begin;    /* of the payload in the packet */
	uint32_t next;     /* where the next piece's payload begins */
	uint32_t end;      /* past the last; above it when there are no more pieces */
	uint16_t fragment; /* IPv4: the packet's own fragment field, DF off */
	bool is_v6;
	bool is_whole; /* it fits */
};

/**
 * Plan to split an inner IPv4 packet. A fragment is split into smaller ones of the same
 * datagram. Identification, TTL, TOS and the reserved flag are kept. The walk over options
 * ends at the first that is malformed: later pieces get what came before it.
 *
 * @param ip        The packet, of which only the header is read; its checksum has been checked.
 * @param ip_bytes  Its total length.
 * @param room      Bytes that a piece may have, its IPv4 header included.
 * @param[out] out  Untouched on error.
 * @retval 0          Success.
 * @retval -EINVAL    Not IPv4, the header's lengths are not those of ip_bytes, DF is set and it
 *                    does not fit, or it is a fragment that ends above 65535.
 * @retval -EMSGSIZE  room is not enough for the header and eight bytes.
 */
int lb_split_inner_v4(const uint8_t *ip, size_t ip_bytes, size_t room,
	struct lb_split *out) lb_must_check;

/**
 * Plan to split an outer IPv4 packet: DF is cleared.
 *
 * @param ip        The packet, of which only the IPv4 header is read; no fragment.
 * @param ip_bytes  Its total length, with all that it carries.
 * @param id        Identification of all pieces, which should not return for the same
 *                  addresses and protocol while they are on their way (RFC 6864).
 * @param room      The MTU.
 * @param[out] out  Untouched on error.
 * @retval 0          Success.
 * @retval -EINVAL    Not IPv4, the header's lengths are not those of ip_bytes, or a fragment.
 * @retval -EMSGSIZE  room is not enough for the header and eight bytes.
 */
int lb_split_outer_v4(const uint8_t *ip, size_t ip_bytes, uint16_t id, size_t room,
	struct lb_split *out) lb_must_check;

/**
 * Plan to split an outer IPv6 packet: each piece gets a fragment header.
 *
 * @param ip        The packet, of which only the IPv6 header is read.
 * @param ip_bytes  40 and its payload length.
 * @param id        Identification of all pieces; as for IPv4.
 * @param room      The MTU.
 * @param[out] out  Untouched on error.
 * @retval 0          Success.
 * @retval -EINVAL    Not IPv6, the header's length is not that of ip_bytes, or an extension
 *                    header follows that may have to stand in every piece.
 * @retval -EMSGSIZE  room is not enough for both headers and eight bytes.
 */
int lb_split_outer_v6(const uint8_t *ip, size_t ip_bytes, uint32_t id, size_t room,
	struct lb_split *out) lb_must_check;

/**
 * The next piece, n_pieces times; then false, with out untouched.
 *
 * @param split  As one of the above made it.
 */
bool lb_split_next(struct lb_split *split, struct lb_split_piece *out) lb_must_check;

#endif
