/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lb_compiler.h"

/* From here on a mapping of its own: lazily zeroed, and worth a huge page. */
#define MAPPED_BYTES_MIN ((size_t)2 << 20)

static size_t
round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
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

	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	/* Only advice: without huge pages the table works as well, with more TLB misses. */
	(void)madvise(mem, bytes, MADV_HUGEPAGE);
	return mem;
}

void
dp_memory_free(void *mem, size_t bytes)
{
	if (mem == NULL)
		return;
	if (bytes < MAPPED_BYTES_MIN)
		free(mem);
	else
		(void)munmap(mem, bytes);
}
