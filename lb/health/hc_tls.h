/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_TLS_H
#define HC_TLS_H

/**
 * @file
 * TLS for checks, by OpenSSL: TLS 1.2 or later, over a socket that does not block.
 *
 * Each check is a handshake of its own, with keys of its own. It may resume the session of one
 * before (RFC 8446, section 2.2), which is half the work, as the server then shows no
 * certificate: it has the keys of whom it was shown by, so that is looked at every minute, and
 * after each failure. One thread's own.
 */

#include "hc_check.h"
#include "hc_words.h"

/** What all connections share: the system's certificate authorities. */
struct hc_tls_context;

/** One connection. */
struct hc_tls;

/** A server shows its certificate again after this long, or half of it, by its target's id. */
#define HC_TLS_SESSION_NS (UINT64_C(60) * 1000000000)

/** What one handshake leaves for the next with the same target; all zero: nothing. */
struct hc_tls_session {
	void *handle;      /**< OpenSSL's, owned; NULL: none */
	uint64_t until_ns; /**< no handshake resumes it from then on */
	bool is_refused;   /**< the server has failed to take one: none is offered any more */
};

/** Forget it; that it is refused is kept. */
void hc_tls_session_drop(struct hc_tls_session *session);

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
 * @param target   Of https. Its host, or without one its address, is what the certificate has
 *                 to be for, where it is verified.
 * @param now_ns   Of a clock that does not go back.
 * @param session  Of a check of the same target, to be resumed if there is one; forgotten where
 *                 its time is over.
 * @return NULL: no memory.
 */
struct hc_tls *hc_tls_open(struct hc_tls_context *context, int fd,
	const struct hc_target *target, uint64_t now_ns, struct hc_tls_session *session);

/** Whether it has offered a session to be resumed. */
bool hc_tls_has_offered(const struct hc_tls *tls);

/**
 * Keep what the connection has left to be resumed; it has passed.
 *
 * @param now_ns, session  As given to hc_tls_open().
 */
void hc_tls_keep(struct hc_tls *tls, uint64_t now_ns, struct hc_tls_session *session);

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
