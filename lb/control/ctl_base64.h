/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_BASE64_H
#define CTL_BASE64_H

/**
 * @file
 * Base64, RFC 4648 section 4, as JSON carries bytes in. Pure; on any thread.
 */

#include <stddef.h>

#include "lb_compiler.h"

/**
 * Encode bytes.
 *
 * @return the text, the caller's to free; NULL: no memory.
 */
char *ctl_base64_encode(const void *bytes, size_t n_bytes);

/**
 * Decode a text that is base64 to the letter: padded, without blanks, and with no bit set that
 * no byte takes.
 *
 * @param text          n_text characters, not NUL-terminated.
 * @param[out] out      The bytes and a NUL behind them, the caller's to free; untouched on
 *                      error.
 * @param[out] n_bytes  How many, without the NUL; untouched on error.
 * @retval -EINVAL  It is no base64.
 * @retval -ENOMEM  No memory.
 */
int ctl_base64_decode(const char *text, size_t n_text, char **out,
	size_t *n_bytes) lb_must_check;

#endif
