/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_TLS_H
#define HC_TLS_H

/**
 * @file
 * TLS for checks, by OpenSSL: TLS 1.2 or later, over a socket that does not block.
 *
 * Each check is a whole handshake: what a session of before would vouch for is just what is to
 * be found out. One thread's own.
 */

#include "hc_check.h"
#include "hc_words.h"

/** What all connections share: the system's certificate authorities. */
struct hc_tls_context;

/** One connection. */
struct hc_tls;

/**
 * @param[out] words  Why not.
 * @return NULL where it fails.
 */
struct hc_tls_context *hc_tls_context_create(char words[static HC_WORDS_BYTES]);

/** No connection is open any more. NULL is allowed. */
void hc_tls_context_destroy(struct hc_tls_context *context);

/**
 * Begin on a socket that is connected.
 *
 * @param target  Of https. Its host, or without one its address, is what the certificate has to
 *                be for, where it is verified.
 * @return NULL: no memory.
 */
struct hc_tls *hc_tls_open(struct hc_tls_context *context, int fd,
	const struct hc_target *target);

/** Without a word to the other end; the socket stays open. NULL is allowed. */
void hc_tls_close(struct hc_tls *tls);

/*
 * Each of these returns -EAGAIN where it has to wait for the socket, and another negative errno
 * where the connection is over; then words say why.
 */

/** @retval 0  Done. */
int hc_tls_handshake(struct hc_tls *tls, char words[static HC_WORDS_BYTES]) lb_must_check;

/** @return bytes sent, 1 or more. After -EAGAIN the same bytes have to be given again. */
int hc_tls_send(struct hc_tls *tls, const char *bytes, size_t n,
	char words[static HC_WORDS_BYTES]) lb_must_check;

/** @return bytes read; 0: the other end has said that it sends no more. */
int hc_tls_receive(struct hc_tls *tls, char *bytes, size_t n,
	char words[static HC_WORDS_BYTES]) lb_must_check;

#endif
