/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_QUIC_H
#define LB_QUIC_H

/**
 * @file
 * Which server a QUIC packet is for, by the server id in its destination connection id, as
 * draft-ietf-quic-load-balancers-21 has it: plaintext, single-pass and four-pass.
 *
 * A connection id's first octet says by its top three bits, the codepoint, which of up to
 * seven configurations made it; codepoint 7 stands for none. Whatever is not surely a known
 * server's is LB_QUIC_NONE, and the caller goes by the 5-tuple: another protocol's datagram,
 * another version of QUIC, an id that the client made up, one that is cut off.
 *
 * Long headers are looked at in versions 1 and 2 alone, short ones of whatever version. Every
 * version has its ids where RFC 8999 says, and the draft ("Version Invariance of QUIC-LB")
 * would have those of any looked at. But a header is known to be long by one bit, which another
 * protocol's datagram may have set, too; with the version it is sure. What another version
 * loses by it is little: it has long headers while a connection begins, when its flow's entry
 * is new and its client has not moved.
 *
 * A client makes up the ids of its first packets, so that such an id can be a server's by
 * chance, the more likely the shorter server ids are. That does no harm: the client goes on
 * with it until the server it names answers.
 *
 * A table is immutable once built; lookups from any number of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_aes.h"
#include "lb_compiler.h"
#include "lb_limits.h"

#define LB_QUIC_NONE UINT32_MAX

/** Configurations at a time: codepoints 0..6. */
#define LB_QUIC_CONFIGS_MAX 7u

/** Versions 1 and 2 have no longer connection ids. */
#define LB_QUIC_CID_BYTES_MAX 20u

#define LB_QUIC_SERVER_ID_BYTES_MAX 15u
#define LB_QUIC_NONCE_BYTES_MIN     4u

/** Server ids of one table: each backend of a service, under each configuration. */
#define LB_QUIC_SERVERS_MAX ((size_t)LB_QUIC_CONFIGS_MAX * LB_SERVICE_BACKENDS_MAX)

/** How servers make connection ids under one codepoint. */
struct lb_quic_config {
	uint8_t codepoint;       /**< 0..6 */
	uint8_t server_id_bytes; /**< 1..15 */
	uint8_t nonce_bytes;     /**< 4..18; 19 with server_id_bytes at most */
	bool has_key;            /**< server id and nonce are enciphered */
	bool has_length;         /**< the first octet's low five bits say how many follow it */
	uint8_t key[LB_AES_BLOCK_BYTES]; /**< where has_key */
};

/** A server id under one codepoint. */
struct lb_quic_server {
	uint8_t codepoint;
	uint8_t n_bytes; /**< as its configuration says */
	uint8_t id[LB_QUIC_SERVER_ID_BYTES_MAX];
	uint32_t value; /**< what lb_quic_find() returns */
};

/** What RFC 8999 says of every version's packet, as far as the destination's id. */
struct lb_quic_header {
	bool is_long;
	uint32_t version;   /**< 0 where the header is short */
	const uint8_t *cid; /**< inside the payload */
	/** The id's own length; where the header is short, which does not tell it, what there
	 * is of the payload, to LB_QUIC_CID_BYTES_MAX. */
	size_t cid_bytes;
};

struct lb_quic_table; /* opaque */

/** Bytes for lb_quic_table_build() of n servers, 0..LB_QUIC_SERVERS_MAX; 0 if more. */
size_t lb_quic_table_bytes(size_t n);

/**
 * Build a table in the caller's memory, which then has the keys in it.
 *
 * @param mem        lb_quic_table_bytes(n_servers) bytes, LB_CACHE_LINE aligned.
 * @param configs    n_configs of them, in any order; not kept.
 * @param servers    n_servers of them, in any order; not kept. A value may occur more than
 *                   once: one backend, several ids.
 * @param[out] out   The table, inside mem; untouched on error.
 * @retval 0         Success.
 * @retval -E2BIG    n_servers is over LB_QUIC_SERVERS_MAX.
 * @retval -EINVAL   A codepoint or a length is out of range; a server's configuration is not
 *                   among these, or its id not of that one's length; a value is LB_QUIC_NONE.
 * @retval -EEXIST   Two configurations have one codepoint, or two servers one id under it.
 */
int lb_quic_table_build(void *mem, const struct lb_quic_config *configs, size_t n_configs,
	const struct lb_quic_server *servers, size_t n_servers,
	const struct lb_quic_table **out) lb_must_check;

/**
 * Find the destination's connection id in a packet of QUIC.
 *
 * @param payload   The UDP payload's first n bytes, any n; no more is read.
 * @param[out] out  Untouched where the result is false.
 * @return whether there is one to look at, whole if the header is long. The versions with
 *         long headers are 1 (RFC 9000) and 2 (RFC 9369), so version negotiation is none.
 */
bool lb_quic_parse(const uint8_t *payload, size_t n, struct lb_quic_header *out);

/**
 * The server of a packet.
 *
 * Hot path: at most four blocks of AES and one search, of a number of places that is fixed
 * when the table is built, whatever the packet.
 *
 * @param payload  The UDP payload's first n bytes, any n; no more is read.
 * @return its value, or LB_QUIC_NONE.
 */
uint32_t lb_quic_find(const struct lb_quic_table *table, const uint8_t *payload, size_t n);

#endif
