/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_owners.h"

#include <stdbool.h>

/** Who is chosen already; zones is NULL where they have no part. */
struct chosen {
	const uint32_t *owners;
	size_t n;
	const uint32_t *zones;
};

/** Whether a backend, or its zone, is chosen already. */
static bool
is_chosen(const struct chosen *chosen, uint32_t backend)
{
	for (size_t i = 0; i < chosen->n; i++) {
		if (chosen->owners[i] == backend)
			return true;
		if (chosen->zones != NULL &&
			chosen->zones[chosen->owners[i]] == chosen->zones[backend])
			return true;
	}
	return false;
}

/** Go once around the ring; returns how many owners there are then. */
static size_t
walk_ring(const struct lb_ring *ring, size_t start, struct chosen chosen, size_t k,
	uint32_t *owners)
{
	size_t p = start;

	for (size_t i = 0; i < ring->n_points && chosen.n < k; i++) {
		const uint32_t backend = ring->points[p].backend;

		if (!is_chosen(&chosen, backend))
			owners[chosen.n++] = backend;
		p = p + 1 < ring->n_points ? p + 1 : 0;
	}
	return chosen.n;
}

size_t
lb_owners_on_ring(const struct lb_ring *ring, uint64_t hash, const uint32_t *zones, size_t k,
	uint32_t *owners)
{
	struct chosen chosen = {owners, 0, zones};
	const size_t start = lb_ring_find(ring, hash);

	chosen.n = walk_ring(ring, start, chosen, k, owners);
	if (zones != NULL && chosen.n < k) {
		chosen.zones = NULL;
		chosen.n = walk_ring(ring, start, chosen, k, owners);
	}
	return chosen.n;
}

/** A backend's rank for a key. */
struct rank {
	uint64_t u;
	uint64_t score;
	uint32_t weight;
};

static struct rank
rank_of(const struct lb_owners_hrw *hrw, size_t b, uint64_t key)
{
	const uint64_t u = lb_hrw_mix(hrw->backends[b].h_1, key);

	return (struct rank){
		.u = u,
		.score = lb_hrw_score(hrw->log2, u),
		.weight = hrw->backends[b].weight,
	};
}

/** As lb_hrw.h orders them; what is equal is not better. */
static bool
is_better(const struct rank *a, const struct rank *b)
{
	const uint64_t a_scaled = a->score * b->weight, b_scaled = b->score * a->weight;

	return a_scaled != b_scaled ? a_scaled < b_scaled : a->u > b->u;
}

/** Position of the best that is not chosen; n where all are. */
static size_t
find_best(const struct lb_owners_hrw *hrw, uint64_t key, const struct chosen *chosen)
{
	struct rank best = {0};
	size_t found = hrw->n;

	for (size_t b = 0; b < hrw->n; b++) {
		struct rank rank;

		if (is_chosen(chosen, (uint32_t)b))
			continue;
		rank = rank_of(hrw, b, key);
		if (found == hrw->n || is_better(&rank, &best)) {
			best = rank;
			found = b;
		}
	}
	return found;
}

size_t
lb_owners_by_hrw(const struct lb_owners_hrw *hrw, uint64_t key, size_t k, uint32_t *owners)
{
	struct chosen chosen = {owners, 0, hrw->zones};

	while (chosen.n < k) {
		const size_t best = find_best(hrw, key, &chosen);

		if (best < hrw->n)
			owners[chosen.n++] = (uint32_t)best;
		else if (chosen.zones != NULL)
			chosen.zones = NULL; /* no zone is left: now those passed over */
		else
			break;
	}
	return chosen.n;
}
