/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAILING_MALLOC_H
#define FAILING_MALLOC_H

/**
 * @file
 * An allocation that fails when told to: malloc(), calloc(), realloc() or strdup().
 *
 * For a test linked with -Wl,--wrap for each of the four; include it in one file only.
 */

#include <stdbool.h>
#include <stddef.h>

/** The allocation that fails, counted from 1 and down; 0 = none. */
static int failing_malloc_at;

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__real_realloc(void *old, size_t n_bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *old, size_t n_bytes);
char *__wrap_strdup(const char *text);

static bool
is_failing(void)
{
	return failing_malloc_at > 0 && --failing_malloc_at == 0;
}

void *
__wrap_malloc(size_t n_bytes)
{
	return is_failing() ? NULL : __real_malloc(n_bytes);
}

void *
__wrap_calloc(size_t n, size_t n_bytes)
{
	return is_failing() ? NULL : __real_calloc(n, n_bytes);
}

void *
__wrap_realloc(void *old, size_t n_bytes)
{
	return is_failing() ? NULL : __real_realloc(old, n_bytes);
}

char *
__wrap_strdup(const char *text)
{
	return is_failing() ? NULL : __real_strdup(text);
}

#endif
