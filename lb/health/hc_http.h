/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_HTTP_H
#define HC_HTTP_H

/**
 * @file
 * The least of HTTP/1.1 (RFC 9112) that asks for a status: a request, and the first 13 bytes of
 * an answer. What follows them, however long, is never read.
 *
 * Functions of their arguments alone.
 */

#include "hc_check.h"

/** What a request is at most, NUL included. */
#define HC_HTTP_REQUEST_BYTES_MAX (HC_PATH_BYTES_MAX + HC_HOST_BYTES_MAX + 128u)

/** "HTTP/1.1 200", and whatever ends the status. */
#define HC_HTTP_STATUS_BYTES 13u

/** An answer as far as it has come; all zero: nothing yet. */
struct hc_http {
	uint8_t n_bytes;
	char bytes[HC_HTTP_STATUS_BYTES];
};

/** Write the request, NUL-terminated. @return its length. */
size_t hc_http_write(const struct hc_target *target,
	char out[static HC_HTTP_REQUEST_BYTES_MAX]);

/**
 * Read on.
 *
 * @param n          Bytes that have come, 0 or more.
 * @return the status, 100..599, or 0 where more is needed.
 * @retval -EBADMSG  This is no HTTP/1.
 */
int hc_http_read(struct hc_http *http, const char *bytes, size_t n) lb_must_check;

#endif
