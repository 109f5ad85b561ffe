/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ODD_SERVER_H
#define ODD_SERVER_H

/**
 * @file
 * Servers for health checks to ask, on 127.0.0.1, each in a thread: most of them are not well.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum odd_manner {
	ODD_ANSWER,       /**< text, once a request has come whole */
	ODD_BYTE_BY_BYTE, /**< the same, a byte each gap_ms */
	ODD_ENDLESS,      /**< text, and then no end of bytes */
	ODD_TICKETS,      /**< by TLS: no end of tickets for sessions */
	ODD_CLOSE,        /**< closes what it has taken */
	ODD_RESET,        /**< resets it */
	ODD_HANG,         /**< takes it, and is silent */
};

struct odd_server {
	enum odd_manner manner;
	const char *text;
	unsigned int gap_ms;
	void *tls; /**< of odd_tls_create(); NULL: none */

	uint16_t port; /**< from here on odd_server_start()'s */
	int fd;
	pthread_t thread;
	atomic_uint n_taken;   /**< connections so far */
	atomic_uint n_resumed; /**< of these, by a session of one before */
	atomic_bool is_over;
};

void odd_server_start(struct odd_server *server);

void odd_server_stop(struct odd_server *server);

/** A port of 127.0.0.1 that nobody listens at. */
uint16_t odd_closed_port(void);

/**
 * What a TLS server needs, with a certificate of its own making.
 *
 * @param name  Whom the certificate is for.
 * @param path  Where to write the certificate, for who is to trust it.
 */
void *odd_tls_create(const char *name, const char *path);

/** Have it give out sessions, and fail each handshake that would resume one. */
void odd_tls_refuse_sessions(void *tls);

void odd_tls_destroy(void *tls);

#endif
