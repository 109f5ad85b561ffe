/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPARE_MEMORY_H
#define COMPARE_MEMORY_H

/**
 * @file
 * How much memory a piece of work has at once: malloc(), calloc(), realloc(), aligned_alloc()
 * and free() of this program's own objects are counted, by what the allocator set aside.
 *
 * The program is linked with -Wl,--wrap for each of the five. One thread alone.
 */

#include <stddef.h>

/** Count from 0 on. */
void compare_memory_begin(void);

/** The most bytes there were at once since compare_memory_begin(). */
size_t compare_memory_peak(void);

#endif
