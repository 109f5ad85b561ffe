/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_maglev.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lb_fraction.h"
#include "lb_limits.h"

/*
 * The plain build (lb_maglev_plain.h) probes the table n_slots * ln(n_slots) times,
 * half of them for the last sqrt(n_slots) slots. Here the results are the same, and:
 *
 * - a probe reads one byte a slot, half of what the slots take. Bits would take an eighth of
 *   that, but a shift more for each probe, and a claim is then a word's read and write. While a
 *   claim needs a few probes they are made together, before a branch that would be
 *   mispredicted; not where a backend or two take most turns, as nobody comes to a slot of
 *   its own again;
 * - positions are fractions of the table (lb_fraction.h); at most 2^25 of them are added;
 * - once few slots are free, each free slot is asked for its rank in the permutation instead,
 *   (slot - offset) / skip, again a fraction, and the least rank wins: whatever lies before
 *   the backend's next probe is taken, so no free slot has a rank below it.
 */

/** About how many turns a block has: several for each backend, within these bounds. */
#define BLOCK_TURNS_PER_BACKEND 8u
#define BLOCK_TURNS_MIN         512u
#define BLOCK_TURNS_MAX         65535u /* a round takes 16 bits, and is at least one turn */

/** As many largest weights as all are worth, up to which probes are made one by one. */
#define FEW_WEIGHTS 2u

/** Where a backend stands. */
struct walker {
	uint64_t at;        /* next slot to probe, as a fraction of the table */
	uint64_t step;      /* skip, as a fraction of the table */
	uint64_t rank_step; /* 1 / skip modulo n_slots, as a fraction; 0 = not yet known */
};

/** When a backend's next turn comes. */
struct pace {
	uint32_t round;  /* of the next claim, from the start of the block */
	uint32_t excess; /* accumulator left by that claim */
	uint32_t whole;  /* largest weight / weight */
	uint32_t rest;   /* largest weight % weight */
};

/**
 * The order of claims, a block of whole rounds at a time. Walking all backends in every round
 * would cost n_slots * n where one weight dwarfs the others.
 */
struct turns {
	uint32_t turn; /* the next, in order[] */
	uint32_t n_turns;
	uint32_t n_rounds;
	bool is_equal;    /* each round is the same: everybody, in order */
	bool has_few;     /* the largest weight is half of all or more */
	uint16_t *order;  /* the block's claims: positions in backends[] */
	uint32_t *drawn;  /* the same before sorting: round << 16 | position */
	uint32_t *starts; /* first turn of each round of the block */
	struct pace *paces;
};

/** All that a fill works on. */
struct fill {
	const struct lb_maglev_backend *backends;
	size_t n;
	uint32_t n_slots;
	struct lb_fraction fraction;
	uint16_t *slots;
	struct walker *walkers;
	uint8_t *is_free;
	uint32_t *free_list;
	uint32_t n_free;
	uint32_t n_tail; /* free slots at which ranks become cheaper than probes */
	struct turns turns;
};

struct lb_maglev_backend
lb_maglev_backend(uint64_t h_1, uint64_t h_2, uint32_t n_slots)
{
	return (struct lb_maglev_backend){
		.offset = (uint32_t)(h_1 % n_slots),
		.skip = (uint32_t)(h_2 % (n_slots - 1)) + 1,
	};
}

/** 1 / x modulo the prime p, by Euclid's algorithm. */
static uint32_t
inverse(uint32_t x, uint32_t p)
{
	uint32_t a = p, b = x;
	int32_t of_a = 0, of_b = 1; /* a == of_a * x, b == of_b * x, modulo p */

	while (b != 1) {
		const uint32_t quotient = a / b;
		const uint32_t rest = a - quotient * b;
		const int32_t of_rest = of_a - (int32_t)quotient * of_b;

		a = b;
		b = rest;
		of_a = of_b;
		of_b = of_rest;
	}

	return of_b < 0 ? (uint32_t)(of_b + (int32_t)p) : (uint32_t)of_b;
}

/** On to the turn after: the first round in which the accumulator is full again. */
static void
advance_pace(struct pace *pace, uint32_t weight)
{
	/* Arithmetic, as a branch would be mispredicted every other time. */
	const uint32_t is_short = pace->excess < pace->rest;

	pace->round += pace->whole + is_short;
	pace->excess += is_short * weight - pace->rest;
}

/** Draw the claims of the next block, and sort them by round, then canonical order. */
static void
draw_turns(struct turns *t, const struct lb_maglev_backend *backends, size_t n)
{
	uint32_t n_drawn = 0, sum = 0;

	for (uint32_t i = 0; i < t->n_rounds; i++)
		t->starts[i] = 0;

	for (size_t b = 0; b < n; b++) {
		struct pace pace = t->paces[b];

		while (pace.round <= t->n_rounds) {
			t->starts[pace.round - 1]++;
			t->drawn[n_drawn++] = (pace.round - 1) << 16 | (uint32_t)b;
			advance_pace(&pace, backends[b].weight);
		}
		pace.round -= t->n_rounds;
		t->paces[b] = pace;
	}

	for (uint32_t i = 0; i < t->n_rounds; i++) {
		const uint32_t n_claims = t->starts[i];

		t->starts[i] = sum;
		sum += n_claims;
	}
	for (uint32_t i = 0; i < n_drawn; i++)
		t->order[t->starts[t->drawn[i] >> 16]++] = (uint16_t)t->drawn[i];
	t->n_turns = n_drawn;
}

static void
free_turns(struct turns *t)
{
	free(t->order);
	free(t->drawn);
	free(t->starts);
	free(t->paces);
}

static uint64_t
turns_in_block(size_t n)
{
	const uint64_t aim = BLOCK_TURNS_PER_BACKEND * (uint64_t)n;

	if (aim < BLOCK_TURNS_MIN)
		return BLOCK_TURNS_MIN;
	return aim < BLOCK_TURNS_MAX ? aim : BLOCK_TURNS_MAX;
}

/** Prepare a first block of turns; free_turns() undoes it. */
static int
init_turns(struct turns *t, const struct lb_maglev_backend *backends, size_t n)
{
	const uint64_t aim = turns_in_block(n);
	uint64_t weight_sum = 0;
	uint32_t weight_max = 0, weight_min = UINT32_MAX;

	for (size_t b = 0; b < n; b++) {
		const uint32_t weight = backends[b].weight;

		assert(weight > 0);
		weight_sum += weight;
		weight_max = weight > weight_max ? weight : weight_max;
		weight_min = weight < weight_min ? weight : weight_min;
	}

	*t = (struct turns){
		.is_equal = weight_min == weight_max,
		.has_few = weight_sum <= FEW_WEIGHTS * (uint64_t)weight_max,
	};
	t->n_rounds = (uint32_t)(aim * weight_max / weight_sum) + 1;
	/*
	 * A backend has at most n_rounds * weight / weight_max turns in a block, and one more:
	 * aim + weight_sum / weight_max + n in all.
	 */
	t->order = calloc(aim + 2 * n, sizeof(*t->order));
	t->drawn = malloc((aim + 2 * n) * sizeof(*t->drawn));
	t->starts = malloc(t->n_rounds * sizeof(*t->starts));
	t->paces = malloc(n * sizeof(*t->paces));
	if (t->order == NULL || t->drawn == NULL || t->starts == NULL || t->paces == NULL) {
		free_turns(t);
		return -ENOMEM;
	}

	t->n_turns = (uint32_t)n;
	t->turn = t->is_equal ? 0 : t->n_turns;
	for (size_t b = 0; b < n; b++) {
		t->order[b] = (uint16_t)b;
		t->paces[b] = (struct pace){
			.round = 1,
			.whole = weight_max / backends[b].weight,
			.rest = weight_max % backends[b].weight,
		};
	}
	return 0;
}

/** Claim the next free slot by probing, n_probes of them before a branch. */
static inline void
claim_by_probes(const struct fill *f, size_t b, unsigned int n_probes)
{
	struct walker *w = &f->walkers[b];
	uint8_t *is_free = f->is_free;
	const uint64_t n_slots = f->n_slots, step = w->step;
	uint64_t at = w->at, slot;
	unsigned int found;

	for (;;) {
		found = 0;
		for (unsigned int i = 0; i < n_probes; i++)
			found |= (unsigned int)is_free[lb_mul_high(at + i * step, n_slots)]
				 << i;
		if (found != 0)
			break;
		at += n_probes * step;
	}

	if (n_probes > 1)
		at += (uint64_t)__builtin_ctz(found) * step;
	slot = lb_mul_high(at, n_slots);
	is_free[slot] = 0;
	f->slots[slot] = (uint16_t)f->backends[b].index;
	w->at = at + step;
}

/** List the free slots; a free slot holds its place in the list. */
static void
list_free(struct fill *f)
{
	uint32_t n_listed = 0;

	const uint8_t *end = f->is_free + f->n_slots;
	const uint8_t *at = memchr(f->is_free, 1, f->n_slots);

	while (at != NULL) {
		const uint32_t slot = (uint32_t)(at - f->is_free);

		f->slots[slot] = (uint16_t)n_listed;
		f->free_list[n_listed++] = slot;
		at = memchr(at + 1, 1, (size_t)(end - at) - 1);
	}
}

/** Claim the free slot of the least rank; f->n_free of them are listed. */
static void
claim_by_rank(struct fill *f, size_t b)
{
	const struct lb_maglev_backend *backend = &f->backends[b];
	const uint32_t n_free = f->n_free, *list = f->free_list;
	uint64_t step = f->walkers[b].rank_step, least = UINT64_MAX, slot;
	uint32_t last;

	if (step == 0) {
		step = lb_fraction_of(&f->fraction, inverse(backend->skip, f->n_slots));
		f->walkers[b].rank_step = step;
	}

	const uint64_t start = (f->n_slots - backend->offset) * step;

	for (uint32_t i = 0; i < n_free; i++) {
		const uint64_t rank = start + list[i] * step;

		least = rank < least ? rank : least;
	}

	/* The argument of the least rank, rather than a conditional move for each slot. */
	slot = (backend->offset + lb_mul_high(least, f->n_slots) * backend->skip) % f->n_slots;
	last = list[n_free - 1];
	f->free_list[f->slots[slot]] = last;
	f->slots[last] = f->slots[slot];
	f->slots[slot] = (uint16_t)backend->index;
}

/** The backend whose turn it is. */
static inline size_t
next_turn(struct fill *f)
{
	struct turns *t = &f->turns;

	while (unlikely(t->turn == t->n_turns)) {
		if (!t->is_equal)
			draw_turns(t, f->backends, f->n);
		t->turn = 0;
	}
	return t->order[t->turn++];
}

/** Take turns until n_left slots are free. */
static inline void
probe_until(struct fill *f, uint32_t n_left, unsigned int n_probes)
{
	for (uint32_t n = f->n_free; n > n_left; n--)
		claim_by_probes(f, next_turn(f), n_probes);
	f->n_free = n_left < f->n_free ? n_left : f->n_free;
}

static void
fill_slots(struct fill *f)
{
	if (!f->turns.has_few) {
		probe_until(f, f->n_slots / 5 * 4, 1);
		probe_until(f, f->n_slots / 4, 4);
		probe_until(f, f->n_slots / 32, 8);
	}
	probe_until(f, f->n_tail, 1);
	list_free(f);
	for (; f->n_free > 0; f->n_free--)
		claim_by_rank(f, next_turn(f));
}

/** The root of n_slots: there a rank of each free slot costs as much as the probes to one. */
static uint32_t
tail_slots(uint32_t n_slots)
{
	uint32_t root = 1;

	while ((uint64_t)root * root < n_slots)
		root++;
	return root;
}

static void
init_fill(struct fill *f)
{
	for (size_t b = 0; b < f->n; b++) {
		f->walkers[b] = (struct walker){
			.at = lb_fraction_of(&f->fraction, f->backends[b].offset),
			.step = lb_fraction_of(&f->fraction, f->backends[b].skip),
		};
	}
	memset(f->is_free, 1, f->n_slots);
}

int
lb_maglev_fill(const struct lb_maglev_backend *backends, size_t n, uint32_t n_slots,
	uint16_t *slots)
{
	struct fill f = {
		.backends = backends,
		.n = n,
		.n_slots = n_slots,
		.fraction = lb_fraction_init(n_slots),
		.slots = slots,
		.n_free = n_slots,
		.n_tail = tail_slots(n_slots),
	};
	int ret;

	assert(n > 0);
	ret = init_turns(&f.turns, backends, n);
	if (ret != 0)
		return ret;

	f.walkers = calloc(n, sizeof(*f.walkers));
	f.is_free = malloc(n_slots);
	f.free_list = calloc(f.n_tail, sizeof(*f.free_list));
	if (f.walkers == NULL || f.is_free == NULL || f.free_list == NULL) {
		ret = -ENOMEM;
		goto free_all;
	}

	init_fill(&f);
	fill_slots(&f);

free_all:
	free(f.free_list);
	free(f.is_free);
	free(f.walkers);
	free_turns(&f.turns);
	return ret;
}
