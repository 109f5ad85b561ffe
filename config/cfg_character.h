/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_CHARACTER_H
#define CFG_CHARACTER_H

/**
 * @file
 * Characters of UTF-8 (RFC 3629), and those that no name and no file of ours holds. Functions
 * of their arguments alone; any thread.
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Decode the character at text, of which there are n_bytes.
 *
 * @param[out] out  Its number; untouched where there is none.
 * @return          Its bytes, 1..4; 0 where it is not UTF-8: cut, longer than it need be, a
 *                  surrogate, beyond U+10FFFF.
 */
size_t cfg_decode_character(const char *text, size_t n_bytes, uint32_t *out);

/**
 * What is wrong with a character that is not seen and makes text look like other text; NULL
 * where nothing is: control characters, tabs and line ends among them; line ends of YAML 1.1
 * that other programs have not; marks of byte order, and of direction (UAX 9: embeddings,
 * overrides and isolates, by which text is shown in another order than it is read).
 */
const char *cfg_find_character_flaw(uint32_t character);

#endif
