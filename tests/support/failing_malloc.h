/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAILING_MALLOC_H
#define FAILING_MALLOC_H

/**
 * @file
 * malloc() and calloc() that fail when told to.
 *
 * For a test linked with -Wl,--wrap=malloc,--wrap=calloc; include it in one file only.
 */

#include <stddef.h>

/** The allocation that fails, counted from 1; 0 = none. */
static int failing_malloc_at;

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);

void *
__wrap_malloc(size_t n_bytes)
{
	if (failing_malloc_at > 0 && --failing_malloc_at == 0)
		return NULL;
	return __real_malloc(n_bytes);
}

void *
__wrap_calloc(size_t n, size_t n_bytes)
{
	if (failing_malloc_at > 0 && --failing_malloc_at == 0)
		return NULL;
	return __real_calloc(n, n_bytes);
}

#endif
