/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_character.h"

#include "lb_compiler.h"

size_t
cfg_decode_character(const char *text, size_t n_bytes, uint32_t *out)
{
	static const struct {
		unsigned char mask, value, n;
		uint32_t min;
	} forms[] = {
		{0x80, 0x00, 1, 0},
		{0xe0, 0xc0, 2, 0x80},
		{0xf0, 0xe0, 3, 0x800},
		{0xf8, 0xf0, 4, 0x10000},
	};
	const unsigned char *at = (const unsigned char *)text;
	uint32_t c;
	size_t i = 0;

	if (n_bytes == 0)
		return 0;
	while (i < LB_N_ELEMENTS(forms) && (at[0] & forms[i].mask) != forms[i].value)
		i++;
	if (i == LB_N_ELEMENTS(forms) || forms[i].n > n_bytes)
		return 0;
	c = at[0] & (unsigned char)~forms[i].mask;
	for (size_t k = 1; k < forms[i].n; k++) {
		if ((at[k] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[k] & 0x3fu);
	}
	if (c < forms[i].min || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*out = c;
	return forms[i].n;
}

const char *
cfg_find_character_flaw(uint32_t character)
{
	static const struct {
		uint32_t first, last;
		const char *flaw;
	} flaws[] = {
		{0x00, 0x1f, "is a control character"},
		{0x7f, 0x9f, "is a control character"},
		{0x2028, 0x2029, "ends a line for some programs only"},
		{0x202a, 0x202e, "changes the direction of text"},
		{0x2066, 0x2069, "changes the direction of text"},
		{0xfeff, 0xfeff, "is a byte order mark, which stands at a file's beginning"},
		{0xfffe, 0xffff, "is none of Unicode's"},
	};

	for (size_t i = 0; i < LB_N_ELEMENTS(flaws); i++) {
		if (character >= flaws[i].first && character <= flaws[i].last)
			return flaws[i].flaw;
	}
	return NULL;
}
