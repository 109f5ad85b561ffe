/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_teach.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare_set.h"
#include "lb_hash.h"
#include "lb_modulo.h"
#include "lb_ring.h"

#define NODES_MAX  16u
#define NAME_BYTES 32u
#define N_KEYS     200000u
#define KEY_SEED   3u
#define KEY_STREAM 1u

/* Under this seed node-1 to node-3 have the shares of a case that is often told. */
#define PUBLISHED_SEED 79348u

/** Where the k-th point of a node is on the circle. */
typedef uint64_t (*point_fn)(uint32_t node, uint32_t k, uint64_t seed);

static uint64_t
place_xxh3(uint32_t node, uint32_t k, uint64_t seed)
{
	const uint32_t numbers[] = {node, k};

	return lb_hash_bytes(numbers, sizeof(numbers), seed);
}

static uint64_t
hash_fnv1a(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text != '\0'; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return hash;
}

static uint64_t
place_fnv1a(uint32_t node, uint32_t k, uint64_t seed)
{
	char text[NAME_BYTES];

	(void)seed;
	if (k == 0)
		(void)snprintf(text, sizeof(text), "node-%" PRIu32, node);
	else
		(void)snprintf(text, sizeof(text), "node-%" PRIu32 "-%" PRIu32, node, k);
	return hash_fnv1a(text);
}

/** The same, and MurmurHash3's finalizer after it. */
static uint64_t
place_fnv1a_finalized(uint32_t node, uint32_t k, uint64_t seed)
{
	uint64_t hash = place_fnv1a(node, k, seed);

	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
	hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
	return hash ^ hash >> 33;
}

static int
compare_points(const void *a, const void *b)
{
	const struct lb_ring_point *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/** n nodes, n_each points of each; to be freed. NULL: no memory. */
static struct lb_ring *
make_ring(point_fn place, uint32_t n, uint32_t n_each, uint64_t seed)
{
	const size_t n_points = (size_t)n * n_each;
	struct lb_ring *ring = malloc(sizeof(*ring) + n_points * sizeof(ring->points[0]));

	if (ring == NULL)
		return NULL;
	ring->n_points = n_points;
	for (uint32_t p = 0; p < n_points; p++) {
		const uint32_t node = p / n_each;

		ring->points[p] = (struct lb_ring_point){
			.at = place(node + 1, p % n_each, seed),
			.backend = node,
			.index = node,
		};
	}
	qsort(ring->points, n_points, sizeof(ring->points[0]), compare_points);
	return ring;
}

/** Each node's part of the circle, exactly: from the point before to each of its own. */
static void
measure_shares(const struct lb_ring *ring, uint32_t n, double *shares)
{
	uint64_t before = ring->points[ring->n_points - 1].at;

	for (uint32_t i = 0; i < n; i++)
		shares[i] = 0;
	for (size_t p = 0; p < ring->n_points; p++) {
		shares[ring->points[p].index] +=
			ldexp((double)(ring->points[p].at - before), -64);
		before = ring->points[p].at;
	}
}

static int
compare_shares(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x < *y) - (*x > *y);
}

/** Shares of n nodes, the largest first. */
static int
draw_shares(point_fn place, uint32_t n, uint32_t n_each, uint64_t seed, double *shares)
{
	struct lb_ring *ring = make_ring(place, n, n_each, seed);

	if (ring == NULL)
		return -ENOMEM;
	measure_shares(ring, n, shares);
	free(ring);
	qsort(shares, n, sizeof(shares[0]), compare_shares);
	return 0;
}

static int
teach_three_nodes(void)
{
	double shares[3], sums[3] = {0};
	const uint32_t n_seeds = 10000;

	for (uint32_t seed = 0; seed < n_seeds; seed++) {
		if (draw_shares(place_xxh3, 3, 1, seed, shares) != 0)
			return -ENOMEM;
		for (int i = 0; i < 3; i++)
			sums[i] += 100 * shares[i] / n_seeds;
	}
	if (draw_shares(place_xxh3, 3, 1, PUBLISHED_SEED, shares) != 0)
		return -ENOMEM;
	(void)printf("1. Three nodes, one point each on the ring\n\n"
		     "   Fair would be 33.3 %% each. With one seed they have %.1f, %.1f and "
		     "%.1f %%,\n"
		     "   which is a case that was published as 64.7 / 28.3 / 7.0 %%. That is "
		     "no bad\n"
		     "   luck: over %" PRIu32
		     " seeds the mean is %.1f, %.1f and %.1f %%, as three\n"
		     "   random cuts of a circle have it: 11/18, 5/18 and 2/18.\n\n",
		100 * shares[0], 100 * shares[1], 100 * shares[2], n_seeds, sums[0], sums[1],
		sums[2]);
	return 0;
}

static int
teach_points(void)
{
	static const uint32_t counts[] = {1, 2, 5, 10, 20, 50, 100, 160, 200, 500};
	const uint32_t n = 10, n_seeds = 50;

	(void)printf("2. More points even it out: ten nodes, means over %" PRIu32 " seeds\n\n"
		     "   points a node   largest   smallest   standard deviation\n"
		     "                    (1 is a fair share)\n",
		n_seeds);
	for (size_t i = 0; i < LB_N_ELEMENTS(counts); i++) {
		double largest = 0, smallest = 0, squares = 0;

		for (uint32_t seed = 0; seed < n_seeds; seed++) {
			double shares[NODES_MAX];

			if (draw_shares(place_xxh3, n, counts[i], seed, shares) != 0)
				return -ENOMEM;
			largest += n * shares[0] / n_seeds;
			smallest += n * shares[n - 1] / n_seeds;
			for (uint32_t b = 0; b < n; b++)
				squares += pow(n * shares[b] - 1, 2) / (n * n_seeds);
		}
		(void)printf("   %13" PRIu32 "   %7.2f   %8.2f   %18.3f\n", counts[i], largest,
			smallest, sqrt(squares));
	}
	(void)printf("\n   It shrinks as one over the square root: four times the points, half "
		     "the\n   deviation. No number of points makes it even.\n\n");
	return 0;
}

/** Keys that move on a ring when a fourth node joins three, and how many move between those. */
static int
count_ring_moves(uint32_t *n_moved, uint32_t *n_needless)
{
	struct lb_ring *three = make_ring(place_xxh3, 3, 160, 0);
	struct lb_ring *four = make_ring(place_xxh3, 4, 160, 0);
	int ret = -ENOMEM;

	*n_moved = *n_needless = 0;
	if (three == NULL || four == NULL)
		goto free_rings;
	for (uint32_t i = 0; i < N_KEYS; i++) {
		const uint64_t key = compare_random(KEY_SEED, KEY_STREAM, i);
		const uint32_t to = lb_ring_owner(four, key);
		const bool has_moved = lb_ring_owner(three, key) != to;

		*n_moved += has_moved;
		*n_needless += has_moved && to != 3;
	}
	ret = 0;

free_rings:
	free(three);
	free(four);
	return ret;
}

static void
count_modulo_moves(uint32_t *n_moved, uint32_t *n_needless)
{
	const uint32_t ends[] = {1, 2, 3, 4};
	const struct lb_buckets three = {3, ends}, four = {4, ends};

	*n_moved = *n_needless = 0;
	for (uint32_t i = 0; i < N_KEYS; i++) {
		const uint64_t key = compare_random(KEY_SEED, KEY_STREAM, i);
		const uint32_t to = lb_modulo_owner(&four, key);
		const bool has_moved = lb_modulo_owner(&three, key) != to;

		*n_moved += has_moved;
		*n_needless += has_moved && to != 3;
	}
}

static int
teach_fourth_node(void)
{
	uint32_t n_moved, n_needless;
	const int ret = count_ring_moves(&n_moved, &n_needless);

	if (ret != 0)
		return ret;
	(void)printf("3. A fourth node joins three: it must get a quarter of all keys\n\n"
		     "   ring, 160 points   %5.1f %% of the keys move, %.1f %% to a node that "
		     "was there\n",
		100.0 * n_moved / N_KEYS, 100.0 * n_needless / N_KEYS);
	count_modulo_moves(&n_moved, &n_needless);
	(void)printf("   modulo             %5.1f %% of the keys move, %.1f %% to a node that "
		     "was there\n\n"
		     "   hash %% 3 and hash %% 4 agree for 3 of 12 hashes: three quarters "
		     "move.\n\n",
		100.0 * n_moved / N_KEYS, 100.0 * n_needless / N_KEYS);
	return 0;
}

static int
teach_weak_hash(void)
{
	static const struct {
		const char *what;
		point_fn place;
	} hashes[] = {
		{"FNV-1a", place_fnv1a},
		{"FNV-1a, finalizer", place_fnv1a_finalized},
		{"XXH3", place_xxh3},
	};
	const uint32_t n = 9;

	(void)printf("4. A weak hash: nine nodes, points at the hashes of \"node-1\", "
		     "\"node-1-1\" and so on\n\n"
		     "                       one point each      160 points each\n"
		     "   hash                largest smallest    largest smallest\n"
		     "                       (1 is a fair share)\n");
	for (size_t i = 0; i < LB_N_ELEMENTS(hashes); i++) {
		double one[NODES_MAX], many[NODES_MAX];

		if (draw_shares(hashes[i].place, n, 1, 0, one) != 0 ||
			draw_shares(hashes[i].place, n, 160, 0, many) != 0)
			return -ENOMEM;
		(void)printf("   %-18s  %7.2f %8.4f    %7.2f %8.4f\n", hashes[i].what,
			n * one[0], n * one[n - 1], n * many[0], n * many[n - 1]);
	}
	(void)printf("\n   FNV-1a multiplies once after the last byte, so names that differ "
		     "near\n   their end stand near each other on the circle, and who is "
		     "first of the\n   bunch has nearly all. A finalizer spreads them. Shunt "
		     "hashes by XXH3.\n");
	return 0;
}

int
compare_teach(void)
{
	int ret = teach_three_nodes();

	if (ret == 0)
		ret = teach_points();
	if (ret == 0)
		ret = teach_fourth_node();
	if (ret == 0)
		ret = teach_weak_hash();
	if (ret == 0 && (fflush(stdout) != 0 || ferror(stdout) != 0))
		ret = -EIO;
	return ret;
}
