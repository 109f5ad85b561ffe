/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_MEMORY_H
#define DP_MEMORY_H

/**
 * @file
 * Memory for tables: zeroed, cache-line aligned, and in huge pages where it is large and
 * the kernel has them to give, without any being reserved beforehand.
 */

#include <stddef.h>

/** @return bytes of zeroed memory, to be given to dp_memory_free(); NULL where there is none.
 */
void *dp_memory_zalloc(size_t bytes);

/** Free what dp_memory_zalloc(bytes) gave. NULL is allowed. */
void dp_memory_free(void *mem, size_t bytes);

#endif
