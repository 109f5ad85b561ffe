/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
hc_words_set(char words[static HC_WORDS_BYTES], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line above is not seen */
	(void)vsnprintf(words, HC_WORDS_BYTES, format, arguments);
	va_end(arguments);
}

void
hc_words_set_error(char words[static HC_WORDS_BYTES], const char *what, int error)
{
	char text[64];

	/* The GNU function, which may run on any thread. */
	hc_words_set(words, "%s: %s", what, strerror_r(error, text, sizeof(text)));
}

void
hc_words_set_timeout(char words[static HC_WORDS_BYTES], const char *what, uint64_t timeout_ns)
{
	hc_words_set(words, "%s: timed out after %g s", what, (double)timeout_ns / 1e9);
}
