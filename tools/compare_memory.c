/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_memory.h"

#include <malloc.h>

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__real_realloc(void *old, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *old, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);
void __wrap_free(void *memory);

/* What was there before the beginning may be freed after it. */
static ptrdiff_t now_bytes, peak_bytes;

void
compare_memory_begin(void)
{
	now_bytes = 0;
	peak_bytes = 0;
}

size_t
compare_memory_peak(void)
{
	return (size_t)peak_bytes;
}

static void *
count(void *memory)
{
	if (memory != NULL)
		now_bytes += (ptrdiff_t)malloc_usable_size(memory);
	peak_bytes = now_bytes > peak_bytes ? now_bytes : peak_bytes;
	return memory;
}

void *
__wrap_malloc(size_t n_bytes)
{
	return count(__real_malloc(n_bytes));
}

void *
__wrap_calloc(size_t n, size_t n_bytes)
{
	return count(__real_calloc(n, n_bytes));
}

void *
__wrap_realloc(void *old, size_t n_bytes)
{
	const ptrdiff_t old_bytes = old != NULL ? (ptrdiff_t)malloc_usable_size(old) : 0;
	void *memory = __real_realloc(old, n_bytes);

	if (memory != NULL)
		now_bytes -= old_bytes;
	return count(memory);
}

void *
__wrap_aligned_alloc(size_t alignment, size_t n_bytes)
{
	return count(__real_aligned_alloc(alignment, n_bytes));
}

void
__wrap_free(void *memory)
{
	if (memory != NULL)
		now_bytes -= (ptrdiff_t)malloc_usable_size(memory);
	__real_free(memory);
}
