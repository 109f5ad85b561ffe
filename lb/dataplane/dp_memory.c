/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lb_compiler.h"

#define HUGE_BYTES ((size_t)2 << 20)

/*
 * From here on a mapping of its own, of whole huge pages: half of the last one is used at
 * least. What is smaller is found in the heap's ordinary pages.
 */
#define MAPPED_BYTES_MIN (HUGE_BYTES / 2)

static size_t
round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

/* A part of a huge page at either end would be of ordinary ones, so none is left there. */
static void *
map_huge_pages(size_t bytes)
{
	const size_t room = bytes + HUGE_BYTES;
	uint8_t *mem =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (mem == MAP_FAILED)
		return NULL;
	before = round_up((uintptr_t)mem, HUGE_BYTES) - (uintptr_t)mem;
	if (before > 0)
		(void)munmap(mem, before);
	if (before < HUGE_BYTES)
		(void)munmap(mem + before + bytes, HUGE_BYTES - before);
	/* Only advice: without huge pages the table works as well, with more TLB misses. */
	(void)madvise(mem + before, bytes, MADV_HUGEPAGE);
	return mem + before;
}

void *
dp_memory_zalloc(size_t bytes)
{
	void *mem;

	if (bytes < MAPPED_BYTES_MIN) {
		bytes = round_up(bytes == 0 ? 1 : bytes, LB_CACHE_LINE);
		mem = aligned_alloc(LB_CACHE_LINE, bytes);
		if (mem != NULL)
			memset(mem, 0, bytes);
		return mem;
	}

	if (bytes > SIZE_MAX / 2) /* rounded up, it would be small */
		return NULL;
	return map_huge_pages(round_up(bytes, HUGE_BYTES));
}

void
dp_memory_free(void *mem, size_t bytes)
{
	if (mem == NULL)
		return;
	if (bytes < MAPPED_BYTES_MIN)
		free(mem);
	else
		(void)munmap(mem, round_up(bytes, HUGE_BYTES));
}
