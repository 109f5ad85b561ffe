/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_nearest.h"

#include <stdint.h>
#include <string.h>

void
replay_nearest_init(struct replay_nearest *nearest, const char *wanted, size_t n_wanted)
{
	nearest->wanted = wanted;
	nearest->n_wanted = n_wanted;
	nearest->best = NULL;
	nearest->distance = SIZE_MAX;
}

static size_t
min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The edit distance of a and b, both at most REPLAY_NEAREST_BYTES_MAX, by one row. */
static size_t
measure(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t row[REPLAY_NEAREST_BYTES_MAX + 1];

	for (size_t k = 0; k <= n_b; k++)
		row[k] = k;
	for (size_t i = 0; i < n_a; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t k = 0; k < n_b; k++) {
			const size_t changed = diagonal + (a[i] != b[k]);

			diagonal = row[k + 1];
			row[k + 1] = min_of(changed, min_of(row[k], diagonal) + 1);
		}
	}
	return row[n_b];
}

void
replay_nearest_offer(struct replay_nearest *nearest, const char *name)
{
	const size_t n_bytes = strlen(name);
	const size_t n_wanted = nearest->n_wanted;
	const size_t at_least = n_bytes > n_wanted ? n_bytes - n_wanted : n_wanted - n_bytes;
	size_t distance;

	/* Lengths alone rule most out, which keeps large sets cheap. */
	if (at_least >= nearest->distance || n_bytes > REPLAY_NEAREST_BYTES_MAX ||
		n_wanted > REPLAY_NEAREST_BYTES_MAX)
		return;

	distance = measure(nearest->wanted, n_wanted, name, n_bytes);
	if (distance < nearest->distance) {
		nearest->best = name;
		nearest->distance = distance;
	}
}
