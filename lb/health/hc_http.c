/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What an answer begins with: '0' is any digit, and ' ' what ends the status. */
static const char form[HC_HTTP_STATUS_BYTES + 1] = "HTTP/1.0 000 ";

/* As RFC 3986 has it: IPv6 in brackets, and the port where it is not the scheme's own. */
static void
write_authority(const struct hc_target *target, char *out, size_t n_out)
{
	const uint16_t usual = target->check->type == HC_HTTPS ? 443 : 80;
	const bool has_brackets =
		target->check->host == NULL && !lb_addr_is_v4(&target->address);
	const char *host = target->check->host;
	char address[LB_ADDR_TEXT_BYTES];
	char port[8] = "";

	if (host == NULL)
		host = lb_addr_format(&target->address, address);
	if (target->check->port != usual)
		(void)snprintf(port, sizeof(port), ":%u", (unsigned int)target->check->port);
	(void)snprintf(out, n_out, "%s%s%s%s", has_brackets ? "[" : "", host,
		has_brackets ? "]" : "", port);
}

size_t
hc_http_write(const struct hc_target *target, char out[static HC_HTTP_REQUEST_BYTES_MAX])
{
	char authority[HC_HOST_BYTES_MAX + 16];

	write_authority(target, authority, sizeof(authority));
	(void)snprintf(out, HC_HTTP_REQUEST_BYTES_MAX,
		"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: shunt-health\r\nAccept: */*\r\n"
		"Connection: close\r\n\r\n",
		target->check->path, authority);
	return strlen(out);
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
fits(char wanted, char c, bool is_end)
{
	if (wanted == '0')
		return is_digit(c);
	return c == wanted || (is_end && (c == '\r' || c == '\n'));
}

/* 0: there is none yet. */
static int
find_status(const struct hc_http *http)
{
	int status = 0;

	if (http->n_bytes < HC_HTTP_STATUS_BYTES)
		return 0;
	for (size_t i = HC_HTTP_STATUS_BYTES - 4; i < HC_HTTP_STATUS_BYTES - 1; i++)
		status = status * 10 + (http->bytes[i] - '0');
	return status >= 100 && status <= 599 ? status : -EBADMSG;
}

/* To the end of an interim answer. */
static int
skip(struct hc_http *http, char c)
{
	if (http->n_interim++ >= HC_HTTP_INTERIM_BYTES_MAX)
		return -EBADMSG;
	if (c == '\n' && http->is_line_empty)
		http->is_interim = false;
	if (c != '\r')
		http->is_line_empty = c == '\n';
	return 0;
}

static int
read_byte(struct hc_http *http, char c)
{
	const bool is_end = http->n_bytes == HC_HTTP_STATUS_BYTES - 1;
	int status;

	if (http->is_interim)
		return skip(http, c);
	if (!fits(form[http->n_bytes], c, is_end))
		return -EBADMSG;
	http->bytes[http->n_bytes++] = c;
	status = find_status(http);
	if (status < 100 || status >= 200 || status == 101)
		return status;
	http->n_bytes = 0;
	http->is_interim = true;
	http->is_line_empty = c == '\n';
	return 0;
}

int
hc_http_read(struct hc_http *http, const char *bytes, size_t n)
{
	int status = find_status(http);

	for (size_t i = 0; i < n && status == 0; i++)
		status = read_byte(http, bytes[i]);
	return status;
}
