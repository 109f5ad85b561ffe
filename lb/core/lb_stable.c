/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_stable.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_fraction.h"
#include "lb_limits.h"

/*
 * The definition sorts n * n_slots pairs. Nearly all of them find their slot taken: until all
 * slots are taken, only n_slots * ln(n_slots) pairs come up, if backends are followed through
 * their permutations in step. So time goes on in windows: all pairs of a window whose slot was
 * free at its start are collected, backend by backend, then sorted, then settled.
 *
 * - Inverses and times are the same for all backends: one table each.
 * - Positions are fractions of the table (lb_fraction.h), multiplied by less than 2^24.
 * - Once few slots are free, each free slot is asked for its least key among the backends that
 *   have not reached their capacity, and asked again when that one has.
 */

#define RATE_ONE   (UINT64_C(1) << 30)
#define STEP_FIRST 16u /* E[0] */

/** Pairs of a window: so few that they seldom collide, and stay in a core's own cache. */
#define WINDOW_PAIRS_MAX  32768u
#define WINDOWS_PER_TABLE 8u

/** Where a backend stands that is below its capacity. */
struct walker {
	uint64_t at;      /* A, as a fraction of the table */
	uint64_t step;    /* B, as a fraction of the table */
	uint64_t rate;    /* of its times */
	uint64_t phase;   /* added to its times */
	uint32_t rank;    /* the next to come up */
	uint32_t place;   /* (rank + C) mod n_slots */
	uint32_t n_left;  /* slots that it may still take */
	uint32_t backend; /* position in backends[] */
};

/** A pair of backend and slot that has come up. */
struct pair {
	uint64_t key;
	uint32_t slot;
	uint32_t walker; /* position in walkers[] */
};

/** All that a fill works on. */
struct fill {
	const struct lb_stable_backend *backends;
	size_t n;
	uint32_t n_slots;
	struct lb_fraction fraction;
	uint16_t *slots;
	uint32_t *inverses;
	uint64_t *times; /* E */
	uint8_t *is_free;
	uint32_t n_free;
	struct walker *walkers; /* in canonical order */
	size_t n_walkers;
	uint64_t weight_sum; /* of the walkers */
	uint64_t now;        /* where the window starts */
	uint64_t span;       /* and how long it is */
	uint32_t n_wanted;   /* pairs that a window should have */
	struct pair *pairs;
	struct pair *sorted;
	uint32_t *starts; /* of the sort's buckets */
	size_t n_pairs;
};

struct lb_stable_backend
lb_stable_backend(uint64_t h_1, uint64_t h_2, uint64_t h_3, uint32_t n_slots)
{
	return (struct lb_stable_backend){
		.phase = h_3,
		.dither = h_2,
		.offset = (uint32_t)(h_1 % n_slots),
		.scale = (uint32_t)(h_2 % (n_slots - 1)) + 1,
		.start = (uint32_t)(h_3 % n_slots),
	};
}

/**
 * All inverses: from M = q * i + rest follows 1 / i = -q / rest, and rest is less than i. That
 * is one multiplication modulo M for each, where inverting one product of all takes three, and
 * room for the products.
 */
static void
init_inverses(struct fill *f)
{
	const uint32_t n_slots = f->n_slots;
	uint32_t *inverses = f->inverses;

	inverses[0] = 0;
	inverses[1] = 1;
	for (uint32_t i = 2; i < n_slots; i++) {
		const uint32_t quotient = n_slots / i;
		const uint64_t inverse = inverses[n_slots - quotient * i];

		inverses[i] = n_slots - lb_fraction_reduce(&f->fraction, quotient * inverse);
	}
}

static void
init_times(struct fill *f)
{
	const uint64_t dividend = (uint64_t)STEP_FIRST * f->n_slots;
	uint64_t step = STEP_FIRST, time = 0;

	for (uint32_t k = 0; k < f->n_slots; k++) {
		const uint32_t divisor = f->n_slots - k;

		/* Most steps are their predecessor. */
		if ((step + 1) * divisor <= dividend)
			step = dividend / divisor;
		time += step;
		f->times[k] = time;
	}
}

/** Largest remainder first, then canonical order. */
static int
compare_remainders(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return x->walker < y->walker ? -1 : 1;
}

/** Set how many slots each walker may take. */
static void
init_capacities(struct fill *f, uint32_t slack)
{
	const uint64_t divisor = 1000 * f->weight_sum;
	const uint64_t share = (uint64_t)(1000 + slack) * f->n_slots;
	struct pair *remainders = f->pairs;
	uint64_t sum = 0;

	for (size_t b = 0; b < f->n; b++) {
		const uint64_t dither = slack > 0 ? f->backends[b].dither : 0;
		const uint64_t x = share * f->backends[b].weight + lb_mul_high(dither, divisor);

		f->walkers[b].n_left = (uint32_t)(x / divisor);
		sum += x / divisor;
		remainders[b] = (struct pair){.key = x % divisor, .walker = (uint32_t)b};
	}
	if (sum >= f->n_slots)
		return;

	/* Less than one for each is missing, as each was rounded down by less. */
	qsort(remainders, f->n, sizeof(*remainders), compare_remainders);
	for (size_t i = 0; i < f->n_slots - sum; i++)
		f->walkers[remainders[i].walker].n_left++;
}

static void
init_walkers(struct fill *f)
{
	for (size_t b = 0; b < f->n; b++) {
		const struct lb_stable_backend *backend = &f->backends[b];
		const uint64_t rate = RATE_ONE / backend->weight;

		f->walkers[b] = (struct walker){
			.at = lb_fraction_of(&f->fraction, backend->offset),
			.step = lb_fraction_of(&f->fraction, backend->scale),
			.rate = rate,
			.phase = lb_mul_high(backend->phase, STEP_FIRST * rate),
			.place = backend->start,
			.backend = (uint32_t)b,
		};
		f->weight_sum += backend->weight;
	}
	f->n_walkers = f->n;
}

/** Leave out who has reached capacity, or has been through all slots. */
static void
drop_walkers(struct fill *f)
{
	size_t n_kept = 0;
	uint64_t weight_sum = 0;

	for (size_t i = 0; i < f->n_walkers; i++) {
		const struct walker *w = &f->walkers[i];

		if (w->n_left == 0 || w->rank == f->n_slots)
			continue;
		weight_sum += f->backends[w->backend].weight;
		f->walkers[n_kept++] = *w;
	}
	f->n_walkers = n_kept;
	f->weight_sum = weight_sum;
}

/** Collect one walker's pairs of the window whose slots are free. */
static inline size_t
collect_walker(const struct fill *f, uint32_t index, size_t n_pairs)
{
	struct walker *walker = &f->walkers[index];
	const struct walker w = *walker;
	const uint32_t *inverses = f->inverses;
	const uint64_t *times = f->times;
	const uint8_t *is_free = f->is_free;
	struct pair *pairs = f->pairs;
	const uint64_t n_slots = f->n_slots, end = f->now + f->span;
	uint32_t rank = w.rank, place = w.place;

	for (; rank < n_slots; rank++) {
		const uint64_t key = times[rank] * w.rate + w.phase;
		const uint64_t slot = lb_mul_high(w.at + w.step * inverses[place], n_slots);

		if (key >= end)
			break;
		/* Written in any case, as a branch would be mispredicted. */
		pairs[n_pairs] = (struct pair){key, (uint32_t)slot, index};
		n_pairs += is_free[slot];
		place = place + 1 == n_slots ? 0 : place + 1;
	}
	walker->rank = rank;
	walker->place = place;
	return n_pairs;
}

static void
collect_pairs(struct fill *f)
{
	size_t n_pairs = 0;

	for (uint32_t i = 0; i < f->n_walkers; i++)
		n_pairs = collect_walker(f, i, n_pairs);
	f->n_pairs = n_pairs;
}

/** Sort pairs into sorted by key; equal ones stay in their order, which is canonical. */
static void
sort_pairs(struct fill *f)
{
	const size_t n = f->n_pairs;
	uint32_t n_buckets = 1, shift = 64 - (uint32_t)__builtin_clzll(f->span), sum = 0;

	while (n_buckets < n && shift > 0) {
		n_buckets *= 2;
		shift--;
	}

	/* span < 2^bits, so a key's distance from now, shifted, is below n_buckets. */
	memset(f->starts, 0, n_buckets * sizeof(*f->starts));
	for (size_t i = 0; i < n; i++)
		f->starts[(f->pairs[i].key - f->now) >> shift]++;
	for (uint32_t i = 0; i < n_buckets; i++) {
		const uint32_t n_in_bucket = f->starts[i];

		f->starts[i] = sum;
		sum += n_in_bucket;
	}
	for (size_t i = 0; i < n; i++)
		f->sorted[f->starts[(f->pairs[i].key - f->now) >> shift]++] = f->pairs[i];

	/* Phases are hashes, so a bucket holds one or two. */
	for (size_t i = 1; i < n; i++) {
		const struct pair moved = f->sorted[i];
		size_t to = i;

		for (; to > 0 && f->sorted[to - 1].key > moved.key; to--)
			f->sorted[to] = f->sorted[to - 1];
		f->sorted[to] = moved;
	}
}

static inline void
assign(struct fill *f, uint32_t slot, struct walker *w)
{
	f->slots[slot] = (uint16_t)f->backends[w->backend].index;
	f->is_free[slot] = 0;
	f->n_free--;
	w->n_left--;
}

static void
settle_pairs(struct fill *f)
{
	for (size_t i = 0; i < f->n_pairs; i++) {
		const struct pair *pair = &f->sorted[i];
		struct walker *w = &f->walkers[pair->walker];

		if (f->is_free[pair->slot] != 0 && w->n_left > 0)
			assign(f, pair->slot, w);
	}
}

/** Whether to ask each free slot is cheaper than to wait until walkers come to it. */
static bool
is_tail(const struct fill *f)
{
	return (uint64_t)f->n_free * f->n_free <= f->n_slots &&
	       (uint64_t)f->n_free * f->n_walkers <= f->n_slots / 2;
}

/** The rank of a slot in a backend's permutation. */
static uint32_t
rank_of(const struct fill *f, const struct lb_stable_backend *b, uint32_t slot)
{
	const uint32_t n_slots = f->n_slots;
	const uint64_t distance =
		slot >= b->offset ? slot - b->offset : slot + n_slots - b->offset;
	const uint32_t place =
		f->inverses[lb_fraction_reduce(&f->fraction, distance * f->inverses[b->scale])];

	return place >= b->start ? place - b->start : place + n_slots - b->start;
}

/** The least key of a free slot. Of equal ones the first, as walkers are in canonical order. */
static struct pair
find_least(const struct fill *f, uint32_t slot)
{
	struct pair least = {.key = UINT64_MAX, .slot = slot};

	for (uint32_t i = 0; i < f->n_walkers; i++) {
		const struct walker *w = &f->walkers[i];
		uint64_t rank, key;

		if (w->n_left == 0)
			continue;
		rank = rank_of(f, &f->backends[w->backend], slot);
		/* A time is STEP_FIRST a rank or more, which spares most of them a load. */
		if ((rank + 1) * STEP_FIRST * w->rate + w->phase >= least.key)
			continue;
		key = f->times[rank] * w->rate + w->phase;
		if (key < least.key) {
			least.key = key;
			least.walker = i;
		}
	}
	return least;
}

/**
 * Take a pair of the least key from n pairs, and put the last into its place. Which of equal
 * ones is all the same, as they are of different slots and walkers.
 */
static struct pair
take_least(struct pair *pairs, size_t n)
{
	struct pair taken;
	size_t least = 0;

	for (size_t i = 1; i < n; i++)
		least = pairs[i].key < pairs[least].key ? i : least;
	taken = pairs[least];
	pairs[least] = pairs[n - 1];
	return taken;
}

static void
fill_tail(struct fill *f)
{
	struct pair *pairs = f->sorted;
	size_t n = 0;

	for (uint32_t slot = 0; slot < f->n_slots; slot++) {
		if (f->is_free[slot] != 0)
			pairs[n++] = find_least(f, slot);
	}
	for (; n > 0; n--) {
		const struct pair taken = take_least(pairs, n);

		assign(f, taken.slot, &f->walkers[taken.walker]);
		if (f->walkers[taken.walker].n_left > 0)
			continue;
		for (size_t i = 0; i < n - 1; i++) {
			if (pairs[i].walker == taken.walker)
				pairs[i] = find_least(f, pairs[i].slot);
		}
	}
}

static void
fill_slots(struct fill *f)
{
	/* While a slot is free somebody is below capacity, and has not been there yet. */
	while (f->weight_sum > 0 && !is_tail(f)) {
		f->span = ((uint64_t)f->n_wanted << 34) / f->weight_sum;
		collect_pairs(f);
		sort_pairs(f);
		settle_pairs(f);
		f->now += f->span;
		drop_walkers(f);
	}
	fill_tail(f);
}

static void
free_scratch(struct fill *f)
{
	free(f->starts);
	free(f->sorted);
	free(f->pairs);
	free(f->walkers);
	free(f->is_free);
	free(f->times);
	free(f->inverses);
}

static uint32_t
pairs_in_window(uint32_t n_slots)
{
	const uint32_t n_pairs = n_slots / WINDOWS_PER_TABLE + 1;

	return n_pairs < WINDOW_PAIRS_MAX ? n_pairs : WINDOW_PAIRS_MAX;
}

static int
alloc_scratch(struct fill *f)
{
	/*
	 * The keys of a backend are 16 * rate or more apart, and a rate, rounded down, is too
	 * small by 2^-14 or less of it. So n_wanted * (1 + 2^-13) + n pairs come up at most in
	 * a window, and one more is written.
	 */
	const size_t n_max = f->n_wanted + f->n_wanted / 4096 + f->n + 2;

	f->inverses = malloc(f->n_slots * sizeof(*f->inverses));
	f->times = malloc(f->n_slots * sizeof(*f->times));
	f->is_free = malloc(f->n_slots);
	f->walkers = malloc(f->n * sizeof(*f->walkers));
	f->pairs = malloc(n_max * sizeof(*f->pairs));
	f->sorted = calloc(n_max, sizeof(*f->sorted));
	f->starts = malloc(2 * n_max * sizeof(*f->starts));
	if (f->inverses == NULL || f->times == NULL || f->is_free == NULL ||
		f->walkers == NULL || f->pairs == NULL || f->sorted == NULL ||
		f->starts == NULL) {
		free_scratch(f);
		return -ENOMEM;
	}
	return 0;
}

int
lb_stable_fill(const struct lb_stable_backend *backends, size_t n, uint32_t n_slots,
	uint32_t slack, uint16_t *slots)
{
	struct fill f = {
		.backends = backends,
		.n = n,
		.n_slots = n_slots,
		.fraction = lb_fraction_init(n_slots),
		.slots = slots,
		.n_free = n_slots,
		.n_wanted = pairs_in_window(n_slots),
	};
	int ret;

	assert(n > 0 && n <= n_slots && slack <= LB_STABLE_SLACK_MAX);
	ret = alloc_scratch(&f);
	if (ret != 0)
		return ret;

	init_inverses(&f);
	init_times(&f);
	init_walkers(&f);
	init_capacities(&f, slack);
	drop_walkers(&f);
	memset(f.is_free, 1, n_slots);
	fill_slots(&f);
	free_scratch(&f);
	return 0;
}
