/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_hex.h"

#define PLAIN "etcd://"
#define TLS   "etcds://"
/* Of a name in the DNS, RFC 1035 section 2.3.4; an address in brackets is shorter. */
#define HOST_BYTES_MAX 255u
#define PORT_DEFAULT   2379u
#define PORT_MAX       65535u

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool
ctl_etcd_url_is(const char *text)
{
	return begins(text, PLAIN) || begins(text, TLS);
}

/* How long the host is at the beginning of n characters; 0: there is none. */
static size_t
measure_host(const char *text, size_t n)
{
	size_t n_host = strspn(text, LETTERS DIGITS "-._");

	if (n > 0 && text[0] == '[') {
		n_host = 1 + strspn(text + 1, DIGITS "abcdefABCDEF:.");
		if (n_host == 1 || n_host >= n || text[n_host] != ']')
			return 0;
		n_host++;
	}
	return n_host > n || n_host > HOST_BYTES_MAX ? 0 : n_host;
}

/* text: n characters, ":PORT" or nothing. 0: it is neither. */
static unsigned int
read_port(const char *text, size_t n)
{
	unsigned int port = 0;

	if (n == 0)
		return PORT_DEFAULT;
	if (text[0] != ':' || n < 2)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		port = port * 10 + (unsigned int)(text[i] - '0');
		if (port > PORT_MAX)
			return 0;
	}
	return port;
}

static int
add_endpoint(struct ctl_etcd_url *url, const char *text, size_t n, const char **why)
{
	const size_t n_host = measure_host(text, n);
	const unsigned int port = read_port(text + n_host, n - n_host);
	char *endpoint;

	if (memchr(text, '@', n) != NULL)
		*why = "a user and a password are not for a command line, which everybody can "
		       "read: SHUNT_ETCD_USER and SHUNT_ETCD_PASSWORD_FILE are for them";
	else if (n_host == 0)
		*why = "expected a host, or an IPv6 address in brackets";
	else if (port == 0)
		*why = "expected a port, 1 to 65535, behind the host";
	else if (url->n_endpoints == CTL_ETCD_ENDPOINTS_MAX)
		*why = "expected 9 hosts at most";
	if (*why != NULL)
		return -EINVAL;
	if (asprintf(&endpoint, "http%s://%.*s:%u", url->is_tls ? "s" : "", (int)n_host, text,
		    port) < 0)
		return -ENOMEM;
	url->endpoints[url->n_endpoints++] = endpoint;
	return 0;
}

static int
add_endpoints(struct ctl_etcd_url *url, const char *hosts, const char **why)
{
	int ret;

	do {
		const size_t n = strcspn(hosts, ",/");

		ret = add_endpoint(url, hosts, n, why);
		hosts += n;
	} while (ret == 0 && *hosts++ == ',');
	return ret;
}

/* The byte that text begins with, and how many characters say it; -1: none that may be. */
static int
read_byte(const char *text, size_t *n_chars)
{
	int byte = (unsigned char)text[0];

	*n_chars = 1;
	if (byte == '%') {
		byte = lb_hex_byte(text + 1);
		*n_chars = 3;
	}
	return byte < ' ' || byte == '\x7f' ? -1 : byte;
}

static int
decode_key(struct ctl_etcd_url *url, const char *text, const char **why)
{
	size_t n = 0;
	size_t n_chars;

	url->key = malloc(CTL_ETCD_KEY_BYTES_MAX + 1);
	if (url->key == NULL)
		return -ENOMEM;
	for (; *text != '\0'; text += n_chars) {
		const int byte = read_byte(text, &n_chars);

		if (byte < 0)
			*why = "the key has a control character, or a % without two "
			       "hexadecimal digits";
		else if (n == CTL_ETCD_KEY_BYTES_MAX)
			*why = "the key is longer than 512 bytes";
		if (*why != NULL)
			return -EINVAL;
		url->key[n++] = (char)byte;
	}
	if (n == 0)
		*why = "expected a key behind the hosts: /shunt/site-1, say";
	url->key[n] = '\0';
	return n == 0 ? -EINVAL : 0;
}

int
ctl_etcd_url_parse(const char *text, struct ctl_etcd_url *out, const char **why)
{
	const bool is_tls = begins(text, TLS);
	const char *hosts = text + strlen(is_tls ? TLS : PLAIN);
	const char *slash = strchrnul(hosts, '/');
	struct ctl_etcd_url url = {.is_tls = is_tls};
	const char *fault = NULL;
	int ret = add_endpoints(&url, hosts, &fault);

	if (ret == 0)
		ret = decode_key(&url, *slash == '\0' ? slash : slash + 1, &fault);
	if (ret != 0) {
		ctl_etcd_url_fini(&url);
		*why = fault;
		return ret;
	}
	*out = url;
	return 0;
}

void
ctl_etcd_url_fini(struct ctl_etcd_url *url)
{
	for (size_t i = 0; i < url->n_endpoints; i++)
		free(url->endpoints[i]);
	free(url->key);
	*url = (struct ctl_etcd_url){0};
}
