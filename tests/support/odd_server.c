/* SPDX-License-Identifier: BSD-3-Clause */
#include "odd_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* A client's connection, with TLS or without. */
struct talk {
	const struct odd_server *server;
	int fd;
	SSL *ssl;
	unsigned char secret[48]; /* of ODD_TICKETS: what the server's keys are of */
};

/* Of TLS records. */
#define HEAD_BYTES 5
#define TAG_BYTES  16

static void
must(bool is_so)
{
	if (!is_so)
		abort();
}

static bool
put(const struct talk *talk, const char *bytes, size_t n)
{
	if (n == 0)
		return true;
	if (talk->ssl != NULL)
		return SSL_write(talk->ssl, bytes, (int)n) > 0;
	return send(talk->fd, bytes, n, MSG_NOSIGNAL) > 0;
}

static ssize_t
get(const struct talk *talk, char *bytes, size_t n)
{
	return talk->ssl != NULL ? SSL_read(talk->ssl, bytes, (int)n)
				 : recv(talk->fd, bytes, n, 0);
}

/* The end of the request; false: the client has gone before it. */
static bool
read_request(const struct talk *talk)
{
	char text[4096];
	size_t n = 0;

	while (n < sizeof(text) - 1) {
		const ssize_t more = get(talk, text + n, sizeof(text) - 1 - n);

		if (more <= 0)
			return false;
		n += (size_t)more;
		text[n] = '\0';
		if (strstr(text, "\r\n\r\n") != NULL)
			return true;
	}
	return false;
}

/* Until the client goes, or the server is stopped. */
static void
wait_for_end(const struct talk *talk)
{
	struct pollfd fd = {.fd = talk->fd, .events = POLLIN};
	char bytes[512];

	while (!talk->server->is_over) {
		if (poll(&fd, 1, 10) > 0 && recv(talk->fd, bytes, sizeof(bytes), 0) <= 0)
			return;
	}
}

/* HKDF-Expand-Label of RFC 8446, section 7.1, without a context. */
static void
expand(const struct talk *talk, const char *label, unsigned char *out, size_t n)
{
	char digest[] = "SHA384", mode[] = "EXPAND_ONLY", prefix[] = "tls13 ";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_MODE, mode, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY,
			(void *)(uintptr_t)talk->secret, sizeof(talk->secret)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, prefix,
			strlen(prefix)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL,
			(void *)(uintptr_t)label, strlen(label)),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
	EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);

	must(EVP_KDF_derive(context, out, n, params) == 1);
	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
}

/* The server's n-th record (RFC 8446, section 5.2), into the room behind its head. */
static void
seal_record(EVP_CIPHER_CTX *cipher, const unsigned char iv[12], uint64_t n,
	const unsigned char *inner, size_t n_inner, unsigned char *record)
{
	const size_t n_sealed = n_inner + TAG_BYTES;
	unsigned char nonce[12];
	int n_out;

	record[0] = 23;
	record[1] = 3;
	record[2] = 3;
	record[3] = (unsigned char)(n_sealed >> 8);
	record[4] = (unsigned char)n_sealed;
	for (size_t i = 0; i < sizeof(nonce); i++)
		nonce[i] = iv[i] ^ (i < 4 ? 0 : (unsigned char)(n >> (8 * (11 - i))));
	must(EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, nonce) == 1 &&
		EVP_EncryptUpdate(cipher, NULL, &n_out, record, HEAD_BYTES) == 1 &&
		EVP_EncryptUpdate(cipher, record + HEAD_BYTES, &n_out, inner, (int)n_inner) ==
			1 &&
		EVP_EncryptFinal_ex(cipher, record + HEAD_BYTES + n_inner, &n_out) == 1 &&
		EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES,
			record + HEAD_BYTES + n_inner) == 1);
}

/*
 * Hundreds of tickets a record, which cost the client a hundred times what they cost here, so
 * that it never finds its socket empty. OpenSSL would write each into a record of its own.
 */
static void
put_tickets(const struct talk *talk)
{
	static const unsigned char ticket[] = {4, 0, 0, 14, 0, 0, 28, 32, 0, 0, 0, 1, 0, 0, 1,
		65, 0, 0};
	static unsigned char inner[910 * sizeof(ticket) + 1];
	static unsigned char record[HEAD_BYTES + sizeof(inner) + TAG_BYTES];
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	unsigned char key[32], iv[12];

	for (size_t i = 0; i + 1 < sizeof(inner); i++)
		inner[i] = ticket[i % sizeof(ticket)];
	inner[sizeof(inner) - 1] = 22; /* what is within: handshake messages */
	expand(talk, "key", key, sizeof(key));
	expand(talk, "iv", iv, sizeof(iv));
	must(EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, NULL) == 1);
	for (uint64_t n = 0; !talk->server->is_over; n++) {
		seal_record(cipher, iv, n, inner, sizeof(inner), record);
		if (send(talk->fd, record, sizeof(record), MSG_NOSIGNAL) <= 0)
			break;
	}
	EVP_CIPHER_CTX_free(cipher);
}

static void
answer(const struct talk *talk)
{
	const struct odd_server *server = talk->server;
	const char *text = server->text;
	static const char more[4096];

	if (!read_request(talk))
		return;
	if (server->manner == ODD_TICKETS) {
		put_tickets(talk);
		return;
	}
	if (server->manner != ODD_BYTE_BY_BYTE && !put(talk, text, strlen(text)))
		return;
	if (server->manner == ODD_ENDLESS)
		while (!server->is_over && put(talk, more, sizeof(more)))
			;
	for (; server->manner == ODD_BYTE_BY_BYTE && *text != '\0' && !server->is_over;
		text++) {
		(void)usleep(server->gap_ms * 1000);
		if (!put(talk, text, 1))
			return;
	}
	wait_for_end(talk);
}

/* As a line of the NSS key log has it: LABEL RANDOM SECRET. */
static void
keep_secret(const SSL *ssl, const char *line)
{
	struct talk *talk = SSL_get_app_data(ssl);
	const char *digits = strrchr(line, ' ');

	if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) != 0)
		return;
	must(strlen(digits) == 1 + 2 * sizeof(talk->secret));
	for (size_t i = 0; i < sizeof(talk->secret); i++)
		must(sscanf(digits + 1 + 2 * i, "%2hhx", &talk->secret[i]) == 1);
}

/* The tickets are the first that it sends with the keys of this secret. */
static void
prepare_tickets(struct talk *talk)
{
	SSL_CTX_set_keylog_callback(talk->server->tls, keep_secret);
	must(SSL_set_app_data(talk->ssl, talk) == 1 && SSL_set_num_tickets(talk->ssl, 0) == 1 &&
		SSL_set_ciphersuites(talk->ssl, "TLS_AES_256_GCM_SHA384") == 1);
}

static void
serve(struct odd_server *server, int fd)
{
	const struct linger at_once = {.l_onoff = 1};
	struct talk talk = {.server = server, .fd = fd};

	if (server->manner == ODD_RESET)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (server->manner == ODD_HANG)
		wait_for_end(&talk);
	if (server->manner >= ODD_CLOSE)
		return;
	if (server->tls != NULL) {
		talk.ssl = SSL_new(server->tls);
		must(talk.ssl != NULL && SSL_set_fd(talk.ssl, fd) == 1);
		if (server->manner == ODD_TICKETS)
			prepare_tickets(&talk);
		if (SSL_accept(talk.ssl) == 1) {
			server->n_resumed += SSL_session_reused(talk.ssl) == 1;
			answer(&talk);
		}
		SSL_free(talk.ssl);
	} else {
		answer(&talk);
	}
}

static void *
run(void *argument)
{
	struct odd_server *server = argument;

	while (!server->is_over) {
		struct pollfd ready = {.fd = server->fd, .events = POLLIN};
		int fd;

		if (poll(&ready, 1, 10) <= 0)
			continue;
		fd = accept(server->fd, NULL, NULL);
		if (fd < 0)
			continue;
		server->n_taken++;
		serve(server, fd);
		(void)close(fd);
	}
	return NULL;
}

static int
open_port(uint16_t *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t n_address = sizeof(address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
		getsockname(fd, (struct sockaddr *)&address, &n_address) == 0);
	*port = ntohs(address.sin_port);
	return fd;
}

void
odd_server_start(struct odd_server *server)
{
	server->fd = open_port(&server->port);
	must(listen(server->fd, 4096) == 0);
	server->is_over = false;
	server->n_taken = 0;
	server->n_resumed = 0;
	must(pthread_create(&server->thread, NULL, run, server) == 0);
}

void
odd_server_stop(struct odd_server *server)
{
	server->is_over = true;
	(void)pthread_join(server->thread, NULL);
	(void)close(server->fd);
}

uint16_t
odd_closed_port(void)
{
	uint16_t port;

	(void)close(open_port(&port));
	return port;
}

static X509 *
make_certificate(EVP_PKEY *key, const char *name)
{
	X509 *certificate = X509_new();
	X509_NAME *subject = X509_get_subject_name(certificate);
	X509_EXTENSION *names;
	char text[128];

	(void)snprintf(text, sizeof(text), "DNS:%s", name);
	names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
	must(names != NULL && X509_set_version(certificate, 2) == 1 &&
		ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
		X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != NULL &&
		X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) != NULL &&
		X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
			(const unsigned char *)name, -1, -1, 0) == 1 &&
		X509_set_issuer_name(certificate, subject) == 1 &&
		X509_set_pubkey(certificate, key) == 1 &&
		X509_add_ext(certificate, names, -1) == 1 &&
		X509_sign(certificate, key, EVP_sha256()) > 0);
	X509_EXTENSION_free(names);
	return certificate;
}

void *
odd_tls_create(const char *name, const char *path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = make_certificate(key, name);
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	FILE *file = fopen(path, "w");

	must(key != NULL && tls != NULL && file != NULL &&
		PEM_write_X509(file, certificate) == 1 && fclose(file) == 0 &&
		SSL_CTX_use_certificate(tls, certificate) == 1 &&
		SSL_CTX_use_PrivateKey(tls, key) == 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return tls;
}

/* Of OpenSSL's: 1, the ticket is sealed; -1, it is an error. */
static int
seal_alone(SSL *ssl, unsigned char name[16], unsigned char iv[EVP_MAX_IV_LENGTH],
	EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_sealing)
{
	static const unsigned char key[32];
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key,
			sizeof(key)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	(void)ssl;
	if (is_sealing == 0)
		return -1;
	memset(name, 1, 16);
	memset(iv, 2, EVP_MAX_IV_LENGTH);
	must(EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key, iv) == 1 &&
		EVP_MAC_CTX_set_params(mac, params) == 1);
	return 1;
}

void
odd_tls_refuse_sessions(void *tls)
{
	must(SSL_CTX_set_tlsext_ticket_key_evp_cb(tls, seal_alone) == 1);
}

void
odd_tls_destroy(void *tls)
{
	SSL_CTX_free(tls);
}
