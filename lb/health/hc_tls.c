/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Servers send tickets, two or four. One that sends them without end is not waited for. */
#define N_MESSAGES_MAX 32u

/* No groups of numbers, which a server may choose so large that a key takes a second. */
#define GROUPS  "X25519:P-256:X448:P-384:P-521"
#define CIPHERS "DEFAULT:!kDHE"

struct hc_tls_context {
	SSL_CTX *ctx;
};

struct hc_tls {
	SSL *ssl;
	SSL_SESSION *left; /* to be resumed; NULL: none yet */
	uint64_t id;       /* of the target */
	bool has_offered;
	unsigned int n_messages; /* of the server's, since the handshake, that bring no data */
	char host[HC_HOST_BYTES_MAX + 1]; /* what the certificate has to be for */
};

/* OpenSSL's reason for the last error, which is then forgotten. */
static void
say_reason(char words[static HC_WORDS_BYTES], const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	hc_words_set(words, "%s: %s", what, reason != NULL ? reason : "failed");
	ERR_clear_error();
}

/* Of a certificate that nobody asks about there is nothing to be found out. */
static int
verify(X509_STORE_CTX *store, void *argument)
{
	const SSL *ssl =
		X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

	(void)argument;
	return SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE ? 1 : X509_verify_cert(store);
}

/* A session is there to be resumed: with TLS 1.3 some time after the handshake. */
static int
take_session(SSL *ssl, SSL_SESSION *session)
{
	struct hc_tls *tls = SSL_get_app_data(ssl);

	SSL_SESSION_free(tls->left);
	tls->left = session;
	return 1;
}

struct hc_tls_context *
hc_tls_context_create(char words[static HC_WORDS_BYTES])
{
	struct hc_tls_context *context = calloc(1, sizeof(*context));

	if (context == NULL) {
		hc_words_set(words, "there is not enough memory");
		return NULL;
	}
	context->ctx = SSL_CTX_new(TLS_client_method());
	if (context->ctx == NULL ||
		SSL_CTX_set_min_proto_version(context->ctx, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set1_groups_list(context->ctx, GROUPS) != 1 ||
		SSL_CTX_set_cipher_list(context->ctx, CIPHERS) != 1 ||
		SSL_CTX_set_default_verify_file(context->ctx) != 1 ||
		SSL_CTX_set_default_verify_dir(context->ctx) != 1) {
		say_reason(words, "TLS");
		hc_tls_context_destroy(context);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(context->ctx,
		SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	/* Back after each message, so that they are counted: see hc_tls_receive(). */
	SSL_CTX_clear_mode(context->ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_options(context->ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_sess_set_new_cb(context->ctx, take_session);
	SSL_CTX_set_cert_verify_callback(context->ctx, verify, NULL);
	SSL_CTX_set_mode(context->ctx,
		SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return context;
}

void
hc_tls_context_destroy(struct hc_tls_context *context)
{
	if (context == NULL)
		return;
	SSL_CTX_free(context->ctx);
	free(context);
}

/* The name, also for the server to choose its certificate by; an address is none (RFC 6066). */
static bool
set_host(struct hc_tls *tls, const struct hc_target *target)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
	const char *host = target->check->host;
	struct lb_addr address;

	if (host == NULL)
		(void)lb_addr_format(&target->address, tls->host);
	else
		(void)snprintf(tls->host, sizeof(tls->host), "%s", host);
	if (lb_addr_parse(tls->host, &address) == 0)
		return X509_VERIFY_PARAM_set1_ip_asc(param, tls->host) == 1;
	return SSL_set_tlsext_host_name(tls->ssl, tls->host) == 1 &&
	       X509_VERIFY_PARAM_set1_host(param, tls->host, 0) == 1;
}

void
hc_tls_session_drop(struct hc_tls_session *session)
{
	SSL_SESSION_free(session->handle);
	session->handle = NULL;
}

static bool
offer(struct hc_tls *tls, uint64_t now_ns, struct hc_tls_session *session)
{
	if (now_ns >= session->until_ns)
		hc_tls_session_drop(session);
	tls->has_offered = session->handle != NULL && !session->is_refused;
	return !tls->has_offered || SSL_set_session(tls->ssl, session->handle) == 1;
}

struct hc_tls *
hc_tls_open(struct hc_tls_context *context, int fd, const struct hc_target *target,
	uint64_t now_ns, struct hc_tls_session *session)
{
	struct hc_tls *tls = calloc(1, sizeof(*tls));

	if (tls == NULL)
		return NULL;
	tls->id = target->id;
	tls->ssl = SSL_new(context->ctx);
	if (tls->ssl == NULL || SSL_set_fd(tls->ssl, fd) != 1 ||
		SSL_set_app_data(tls->ssl, tls) != 1 || !set_host(tls, target) ||
		!offer(tls, now_ns, session)) {
		ERR_clear_error();
		hc_tls_close(tls);
		return NULL;
	}
	SSL_set_verify(tls->ssl, target->check->is_verified ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
		NULL);
	return tls;
}

bool
hc_tls_has_offered(const struct hc_tls *tls)
{
	return tls->has_offered;
}

/* Half the time to all of it: whoever is asked first at once does not show it at once again. */
static uint64_t
find_life(uint64_t id)
{
	const uint32_t fraction = (uint32_t)id * UINT32_C(2654435769);

	return HC_TLS_SESSION_NS / 2 + (HC_TLS_SESSION_NS / 2 * (fraction >> 16) >> 16);
}

void
hc_tls_keep(struct hc_tls *tls, uint64_t now_ns, struct hc_tls_session *session)
{
	const bool is_resumed = SSL_session_reused(tls->ssl) == 1;

	if (!is_resumed)
		session->until_ns = now_ns + find_life(tls->id);
	if (is_resumed && tls->left == NULL)
		return;
	SSL_SESSION_free(session->handle);
	session->handle = tls->left;
	tls->left = NULL;
}

void
hc_tls_close(struct hc_tls *tls)
{
	if (tls == NULL)
		return;
	/* Otherwise OpenSSL takes it for cut off, and its session for one not to be resumed. */
	if (tls->ssl != NULL)
		SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(tls->ssl);
	SSL_SESSION_free(tls->left);
	free(tls);
}

/* Whether the certificate is what was wrong; then words say how. */
static bool
say_certificate(const struct hc_tls *tls, char words[static HC_WORDS_BYTES])
{
	const long result = SSL_get_verify_result(tls->ssl);

	if (result == X509_V_OK || SSL_get_verify_mode(tls->ssl) == SSL_VERIFY_NONE)
		return false;
	if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH)
		hc_words_set(words, "certificate: it is for another name than %s", tls->host);
	else
		hc_words_set(words, "certificate: %s", X509_verify_cert_error_string(result));
	ERR_clear_error();
	return true;
}

/* What a call that came to `ret` means, as the functions of the header return it. */
static int
end_call(const struct hc_tls *tls, int ret, const char *what, char words[static HC_WORDS_BYTES])
{
	const int error = errno;

	switch (SSL_get_error(tls->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		if (error == 0)
			hc_words_set(words, "%s: the connection was closed", what);
		else
			hc_words_set_error(words, what, error);
		ERR_clear_error();
		return -ECONNRESET;
	default:
		if (!say_certificate(tls, words))
			say_reason(words, what);
		return -EPROTO;
	}
}

int
hc_tls_handshake(struct hc_tls *tls, char words[static HC_WORDS_BYTES])
{
	static const char what[] = "TLS handshake";
	int ret;

	errno = 0;
	ret = SSL_connect(tls->ssl);
	if (ret == 1)
		return 0;
	ret = end_call(tls, ret, what, words);
	if (ret == 0) {
		hc_words_set(words, "%s: the connection was closed", what);
		return -ECONNRESET;
	}
	return ret;
}

int
hc_tls_send(struct hc_tls *tls, const char *bytes, size_t n, char words[static HC_WORDS_BYTES])
{
	int ret;

	errno = 0;
	ret = SSL_write(tls->ssl, bytes, (int)n);
	if (ret > 0)
		return ret;
	ret = end_call(tls, ret, "request", words);
	if (ret == 0) {
		hc_words_set(words, "request: the connection was closed");
		return -EPIPE;
	}
	return ret;
}

int
hc_tls_receive(struct hc_tls *tls, char *bytes, size_t n, char words[static HC_WORDS_BYTES])
{
	int ret;

	do {
		errno = 0;
		ret = SSL_read(tls->ssl, bytes, (int)n);
		/* The socket has no more, or it is about data. */
		if (ret > 0 || errno == EAGAIN ||
			SSL_get_error(tls->ssl, ret) != SSL_ERROR_WANT_READ)
			return ret > 0 ? ret : end_call(tls, ret, "status", words);
	} while (++tls->n_messages <= N_MESSAGES_MAX);
	hc_words_set(words, "status: no end of TLS messages before it");
	return -EPROTO;
}
