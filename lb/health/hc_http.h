/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_HTTP_H
#define HC_HTTP_H

/**
 * @file
 * The least of HTTP/1.1 (RFC 9112) that asks for a status: a request, and the first 13 bytes of
 * an answer. What follows them, however long, is never read, unless it is an interim answer
 * (RFC 9110, section 15.2: 1xx but 101), behind which the one that is meant comes.
 *
 * Functions of their arguments alone.
 */

#include "hc_check.h"

/** What a request is at most, NUL included. */
#define HC_HTTP_REQUEST_BYTES_MAX (HC_PATH_BYTES_MAX + HC_HOST_BYTES_MAX + 128u)

/** "HTTP/1.1 200", and whatever ends the status. */
#define HC_HTTP_STATUS_BYTES 13u

/** What interim answers are in all, at most. */
#define HC_HTTP_INTERIM_BYTES_MAX 8192u

/** An answer as far as it has come; all zero: nothing yet. */
struct hc_http {
	uint8_t n_bytes;
	char bytes[HC_HTTP_STATUS_BYTES];
	bool is_interim;    /**< what comes is such an answer's, to its empty line */
	bool is_line_empty; /**< so far */
	uint16_t n_interim;
};

/** Write the request, NUL-terminated. @return its length. */
size_t hc_http_write(const struct hc_target *target,
	char out[static HC_HTTP_REQUEST_BYTES_MAX]);

/**
 * Read on.
 *
 * @param n          Bytes that have come, 0 or more.
 * @return the status, 101 or 200..599, or 0 where more is needed.
 * @retval -EBADMSG  This is no HTTP/1, or there is no end of interim answers.
 */
int hc_http_read(struct hc_http *http, const char *bytes, size_t n) lb_must_check;

#endif
