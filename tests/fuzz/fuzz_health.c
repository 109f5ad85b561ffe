/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What backends answer to checks: the status is the same in one piece and in two, and a reply
 * to an echo request is one of ours only if it has our secret.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hc_echo.h"
#include "hc_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void
read_status(const char *text, size_t n)
{
	struct hc_http whole = {0};
	const int want = hc_http_read(&whole, text, n);

	if (want != -EBADMSG && want != 0 && (want < 100 || want > 599))
		abort();
	for (size_t at = 0; at <= n; at++) {
		struct hc_http parts = {0};
		int got = hc_http_read(&parts, text, at);

		if (got == 0)
			got = hc_http_read(&parts, text + at, n - at);
		if (got != want)
			abort();
	}
}

static void
read_echo(const uint8_t *bytes, size_t n)
{
	const uint64_t secret = UINT64_C(0x2174656572636573);

	for (unsigned int i = 0; i < 4; i++) {
		struct hc_echo echo;

		if (hc_echo_read(bytes, n, (i & 1) != 0, (i & 2) != 0, secret, &echo) &&
			(echo.secret != secret || memmem(bytes, n, &secret, 8) == NULL))
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	/* The status' begin is all that is read of an answer. */
	const size_t n_text = n_bytes < 64 ? n_bytes : 64;
	uint8_t *copy = malloc(n_bytes + (n_bytes == 0));

	if (copy == NULL)
		return 0;
	if (n_bytes > 0)
		memcpy(copy, data, n_bytes);
	read_status((const char *)copy, n_text);
	read_echo(copy, n_bytes);
	free(copy);
	return 0;
}
