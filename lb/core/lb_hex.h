/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_HEX_H
#define LB_HEX_H

/**
 * @file
 * Hexadecimal digits.
 */

/** The value of a digit of either case, or -1. */
static inline int
lb_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/** The byte that text's first two digits say; -1 where they are none, or it ends before. */
static inline int
lb_hex_byte(const char *text)
{
	const int high = lb_hex_digit(text[0]);
	const int low = high < 0 ? -1 : lb_hex_digit(text[1]);

	return low < 0 ? -1 : high << 4 | low;
}

#endif
