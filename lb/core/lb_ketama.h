/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_KETAMA_H
#define LB_KETAMA_H

/**
 * @file
 * The ring of libketama, and so of memcached's clients: points of 32 bits from MD5.
 *
 * Of n servers one of weight w has floor(40 * n * w / sum of weights) digests, 40 each where
 * weights are equal: of its name, "-", and the digest's number in decimal from 0. A digest is
 * four points, of 4 bytes each, least significant first. A key belongs to the first point at
 * or after the first 4 bytes of its own digest, past the last to the first of all.
 *
 * libketama computes the number in single precision, which may give it one less; libmemcached
 * and spymemcached give the same points for equal weights. The clients do not agree on who has
 * a point that two servers share; here that is the one earlier in the array.
 *
 * With equal weights a server that leaves or joins moves only its own keys. With others it
 * changes the sum of weights, and so the points of all. Balance: a share is good to about
 * 1 / sqrt(160), 8 %, of itself.
 *
 * Memory: 8 bytes a point. Time: points * log(points) to make, log2(points) to look up. The
 * digest is the caller's, so that core needs no library for it. Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

#define LB_KETAMA_DIGEST_BYTES 16u
#define LB_KETAMA_DIGESTS      40u /* of a server, where weights are equal */
#define LB_KETAMA_POINTS       4u  /* of a digest */

/** MD5 of n_bytes bytes. */
typedef void (*lb_ketama_digest_fn)(const void *bytes, size_t n_bytes,
	uint8_t digest[LB_KETAMA_DIGEST_BYTES]);

struct lb_ketama_server {
	const char *name;    /**< "host:port" usually, or as the client writes it */
	uint32_t name_bytes; /**< 1..LB_NAME_BYTES_MAX */
	uint32_t weight;     /**< 0..LB_WEIGHT_MAX */
};

struct lb_ketama_point {
	uint32_t at;
	uint32_t server; /**< position in the array of servers */
};

/** Points that lb_ketama_fill() makes of n servers, at most 160 * n. */
size_t lb_ketama_count(const struct lb_ketama_server *servers, size_t n);

/**
 * Make all points, ascending.
 *
 * @param servers     n of them, 0..LB_SERVICE_BACKENDS_MAX; not kept.
 * @param[out] points Room for lb_ketama_count(); untouched on error.
 * @retval 0          Success.
 * @retval -EINVAL    Weight or length of a name out of range.
 * @retval -E2BIG     Too many servers.
 * @retval -ENOENT    There is no point.
 */
int lb_ketama_fill(const struct lb_ketama_server *servers, size_t n, lb_ketama_digest_fn digest,
	struct lb_ketama_point *points) lb_must_check;

/** A key's place on the ring. */
uint32_t lb_ketama_hash(const void *key, size_t n_bytes, lb_ketama_digest_fn digest);

/** Position of the server that owns a place, of n_points points, 1 or more. */
uint32_t lb_ketama_owner(const struct lb_ketama_point *points, size_t n_points, uint32_t hash);

#endif
