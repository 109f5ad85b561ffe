/* SPDX-License-Identifier: BSD-3-Clause */
#include "cfg_nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void
cfg_nearest_init(struct cfg_nearest *nearest, const char *wanted, size_t n_wanted)
{
	*nearest = (struct cfg_nearest){
		.wanted = wanted,
		.n_wanted = n_wanted,
		.distance = SIZE_MAX,
	};
}

static int
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static size_t
min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How far a is from b, both at most CFG_NEAREST_BYTES_MAX. Three rows of the table suffice. */
static size_t
measure(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t rows[3][CFG_NEAREST_BYTES_MAX + 1];

	for (size_t j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		const size_t *before = rows[(i - 1) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			const bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
			const bool is_swap = i > 1 && j > 1 &&
					     lower(a[i - 1]) == lower(b[j - 2]) &&
					     lower(a[i - 2]) == lower(b[j - 1]);

			row[j] = min_of(before[j], row[j - 1]) + 1;
			row[j] = min_of(row[j], before[j - 1] + (is_same ? 0 : 1));
			if (is_swap)
				row[j] = min_of(row[j], rows[(i - 2) % 3][j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

void
cfg_nearest_offer(struct cfg_nearest *nearest, const char *name)
{
	const size_t n_bytes = name == NULL ? 0 : strlen(name);
	const size_t n_wanted = nearest->n_wanted;
	const size_t at_least = n_bytes > n_wanted ? n_bytes - n_wanted : n_wanted - n_bytes;
	size_t distance;

	/* Lengths alone rule most out, which keeps large sets cheap. */
	if (name == NULL || at_least >= nearest->distance || n_bytes > CFG_NEAREST_BYTES_MAX ||
		n_wanted > CFG_NEAREST_BYTES_MAX)
		return;

	distance = measure(nearest->wanted, n_wanted, name, n_bytes);
	if (distance < nearest->distance) {
		nearest->best = name;
		nearest->distance = distance;
	}
}
