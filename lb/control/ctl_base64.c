/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* Three bytes are four characters of six bits each. */
#define GROUP_BYTES 3u
#define GROUP_CHARS 4u
#define CHAR_BITS   6u
#define CHAR_MASK   0x3fu

/* And what stands for no byte. */
static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
#define PADDING 64u

char *
ctl_base64_encode(const void *bytes, size_t n_bytes)
{
	const uint8_t *from = bytes;
	char *text = malloc((n_bytes / GROUP_BYTES + 1) * GROUP_CHARS + 1);
	char *to = text;

	if (text == NULL)
		return NULL;
	for (size_t at = 0; at < n_bytes; at += GROUP_BYTES) {
		const size_t n = n_bytes - at < GROUP_BYTES ? n_bytes - at : GROUP_BYTES;
		uint32_t bits = 0;

		for (size_t i = 0; i < GROUP_BYTES; i++)
			bits = bits << 8 | (i < n ? from[at + i] : 0u);
		for (size_t i = 0; i < GROUP_CHARS; i++)
			*to++ = alphabet[i > n ? PADDING
					       : bits >> ((3 - i) * CHAR_BITS) & CHAR_MASK];
	}
	*to = '\0';
	return text;
}

/* What a character says; -1: it is none of the alphabet. */
static int
value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* n_chars: those of the group that are no padding, 2 to 4. */
static int
decode_group(const char *text, size_t n_chars, char *to)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < GROUP_CHARS; i++) {
		const int value = i < n_chars ? value_of(text[i]) : 0;

		if (value < 0)
			return -EINVAL;
		bits = bits << CHAR_BITS | (uint32_t)value;
	}
	for (size_t i = 0; i < GROUP_BYTES; i++) {
		const uint8_t byte = (uint8_t)(bits >> ((2 - i) * 8));

		if (i + 1 < n_chars)
			to[i] = (char)byte;
		else if (byte != 0)
			return -EINVAL;
	}
	return 0;
}

int
ctl_base64_decode(const char *text, size_t n_text, char **out, size_t *n_bytes)
{
	size_t n_padding = 0;
	char *bytes;

	if (n_text % GROUP_CHARS != 0)
		return -EINVAL;
	while (n_padding < n_text && n_padding < 2 && text[n_text - 1 - n_padding] == '=')
		n_padding++;
	bytes = malloc(n_text / GROUP_CHARS * GROUP_BYTES + 1);
	if (bytes == NULL)
		return -ENOMEM;
	for (size_t at = 0; at < n_text; at += GROUP_CHARS) {
		const size_t n_chars =
			at + GROUP_CHARS == n_text ? GROUP_CHARS - n_padding : GROUP_CHARS;

		if (decode_group(text + at, n_chars, bytes + at / GROUP_CHARS * GROUP_BYTES) !=
			0) {
			free(bytes);
			return -EINVAL;
		}
	}
	*n_bytes = n_text / GROUP_CHARS * GROUP_BYTES - n_padding;
	bytes[*n_bytes] = '\0';
	*out = bytes;
	return 0;
}
