/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_seen.h"

#include <stdlib.h>

bool
cfg_seen_init(struct cfg_seen *seen, const void *items, size_t n, cfg_is_same_fn is_same,
	struct cfg_errors *errors)
{
	size_t room = 16;

	while (room < n * 2)
		room *= 2;
	*seen = (struct cfg_seen){
		.items = items,
		.is_same = is_same,
		.places = calloc(room, sizeof(*seen->places)),
		.mask = room - 1,
	};
	if (seen->places == NULL)
		cfg_error_memory(errors);
	return seen->places != NULL;
}

void
cfg_seen_fini(struct cfg_seen *seen)
{
	free(seen->places);
}

/* Linear probing; a place of 0 is free and i + 1 stands for item i. */
size_t
cfg_seen_find_or_add(struct cfg_seen *seen, size_t i, uint64_t hash)
{
	size_t at = hash & seen->mask;

	while (seen->places[at] != 0 && !seen->is_same(seen->items, seen->places[at] - 1, i))
		at = (at + 1) & seen->mask;
	if (seen->places[at] == 0)
		seen->places[at] = (uint32_t)i + 1;
	return seen->places[at] - 1;
}

/* FNV-1a, and mixed once more, as only its low bits pick the place. */
uint64_t
cfg_hash_bytes(const void *bytes, size_t n, uint64_t hash)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}
