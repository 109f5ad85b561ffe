/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_WORDS_H
#define HC_WORDS_H

/**
 * @file
 * Why a check failed, in words for people: "connect: Connection refused". They are never text
 * of the backend's.
 */

#include <stdint.h>

/** Room for them, NUL included. */
#define HC_WORDS_BYTES 128u

/** printf() into words; what does not fit is left out. */
void hc_words_set(char words[static HC_WORDS_BYTES], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** "WHAT: the system's words for an error". */
void hc_words_set_error(char words[static HC_WORDS_BYTES], const char *what, int error);

/** "WHAT: timed out after 1.5 s". */
void hc_words_set_timeout(char words[static HC_WORDS_BYTES], const char *what,
	uint64_t timeout_ns);

#endif
