/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_plain.h"

#include <errno.h>
#include <stdlib.h>

#include "compare_table_parts.h"
#include "lb_hash.h"
#include "lb_maglev_plain.h"

/** One for each backend in each round. */
#define ADDITIONS_MAX (UINT64_C(1) << 28)

bool
compare_plain_can(const struct compare_spec *spec, const struct compare_set *set)
{
	uint64_t sum = 0, largest = 0;
	size_t n = 0;

	if (!compare_takes_size(spec->algorithm) ||
		lb_picker_check_slots(LB_MAGLEV, spec->n_slots) != 0)
		return false;
	for (size_t i = 0; i < set->n; i++) {
		const uint64_t weight = set->backends[i].weight;

		largest = weight > largest ? weight : largest;
		sum += weight;
		n += weight > 0;
	}
	/* A round gives sum / largest slots. */
	return n > 0 && n <= spec->n_slots &&
	       (spec->n_slots * largest / sum + 1) * n <= ADDITIONS_MAX;
}

static int
fill(const struct compare_spec *spec, const struct compare_set *set, const uint32_t *places,
	size_t n)
{
	struct lb_maglev_backend *backends = malloc(n * sizeof(*backends));
	uint16_t *slots = malloc(spec->n_slots * sizeof(*slots));
	struct lb_maglev_plain_walker *walkers = malloc(n * sizeof(*walkers));
	int ret = -ENOMEM;

	if (backends == NULL || slots == NULL || walkers == NULL)
		goto free_all;
	for (size_t i = 0; i < n; i++) {
		const struct compare_backend *b = &set->backends[places[i]];
		const uint64_t seed = spec->hash_seed;

		backends[i] = lb_maglev_backend(lb_hash_name(b->name, b->name_bytes, seed, 1),
			lb_hash_name(b->name, b->name_bytes, seed, 2), spec->n_slots);
		backends[i].weight = b->weight;
		backends[i].index = places[i];
	}
	lb_maglev_plain_fill(backends, n, spec->n_slots, walkers, slots);
	ret = 0;

free_all:
	free(walkers);
	free(slots);
	free(backends);
	return ret;
}

int
compare_plain_build(const struct compare_spec *spec, const struct compare_set *set)
{
	uint32_t *places = malloc((set->n + 1) * sizeof(*places));
	size_t n;
	int ret = -ENOMEM;

	if (places == NULL)
		return ret;
	ret = compare_order(set, spec->hash_seed, places, &n);
	if (ret == 0)
		ret = fill(spec, set, places, n);
	free(places);
	return ret;
}
