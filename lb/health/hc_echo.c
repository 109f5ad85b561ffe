/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_echo.h"

#include <string.h>

#include "lb_csum.h"

#define TYPE_REQUEST_V4 8u
#define TYPE_REPLY_V4   0u
#define TYPE_REQUEST_V6 128u
#define TYPE_REPLY_V6   129u

#define CSUM_AT  2u
#define ID_AT    4u
#define HERE_AT  8u
#define IPV4_MIN 20u

void
hc_echo_write(const struct hc_echo *echo, bool is_v4, uint8_t out[static HC_ECHO_BYTES])
{
	const uint64_t words[] = {echo->secret, echo->id, echo->begun_ns};

	memset(out, 0, HERE_AT);
	out[0] = is_v4 ? TYPE_REQUEST_V4 : TYPE_REQUEST_V6;
	memcpy(out + ID_AT, &echo->id, 4);
	memcpy(out + HERE_AT, words, sizeof(words));
	if (is_v4) {
		const uint16_t csum = lb_csum_finish(lb_csum_add(0, out, HC_ECHO_BYTES));

		memcpy(out + CSUM_AT, &csum, sizeof(csum));
	}
}

bool
hc_echo_read(const uint8_t *bytes, size_t n, bool is_v4, bool has_header, uint64_t secret,
	struct hc_echo *out)
{
	uint64_t words[3];
	size_t at = 0;

	if (has_header) {
		if (n < IPV4_MIN)
			return false;
		at = (size_t)(bytes[0] & 15u) * 4;
		if (at < IPV4_MIN)
			return false;
	}
	if (n < at + HC_ECHO_BYTES || bytes[at] != (is_v4 ? TYPE_REPLY_V4 : TYPE_REPLY_V6) ||
		bytes[at + 1] != 0)
		return false;
	memcpy(words, bytes + at + HERE_AT, sizeof(words));
	if (words[0] != secret)
		return false;
	*out = (struct hc_echo){.secret = words[0], .id = words[1], .begun_ns = words[2]};
	return true;
}
