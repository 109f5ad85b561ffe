/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The stable table beside Maglev's: time of a build, balance, and needless moves.
 *
 * bench_stable [--quick]: --quick does each once, and leaves large tables out, for the check
 * alone. Times are of the processor, the best of several. A move is needless where the slot's
 * backend before neither left nor lost share, or its backend after gained none; that and
 * balance are means over 10 sets. Exits with 1 where memory ran out.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lb_compiler.h"
#include "lb_maglev.h"
#include "lb_stable.h"
#include "xrand.h"

#define SLACK_MAGLEV UINT32_MAX /* not the stable table, but Maglev's */

/** A backend before it becomes that of one table or the other. */
struct identity {
	uint64_t h_1, h_2, h_3;
	uint32_t weight; /* 0 = not there */
};

struct table {
	uint32_t n;
	uint32_t n_slots;
	uint32_t slack;
};

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *
allocate(size_t n, size_t n_bytes)
{
	void *mem = calloc(n, n_bytes);

	if (mem == NULL)
		exit(1);
	return mem;
}

static void
fill_maglev(const struct identity *ids, const struct table *t, uint16_t *slots)
{
	struct lb_maglev_backend *backends = allocate(t->n, sizeof(*backends));
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (ids[i].weight == 0)
			continue;
		backends[n] = lb_maglev_backend(ids[i].h_1, ids[i].h_2, t->n_slots);
		backends[n].weight = ids[i].weight;
		backends[n++].index = i;
	}
	if (lb_maglev_fill(backends, n, t->n_slots, slots) != 0)
		exit(1);
	free(backends);
}

/** The owners of a table's slots; free them. */
static uint16_t *
fill(const struct identity *ids, const struct table *t)
{
	uint16_t *slots = allocate(t->n_slots, sizeof(*slots));
	struct lb_stable_backend *backends;
	uint32_t n = 0;

	if (t->slack == SLACK_MAGLEV) {
		fill_maglev(ids, t, slots);
		return slots;
	}
	backends = allocate(t->n, sizeof(*backends));
	for (uint32_t i = 0; i < t->n; i++) {
		if (ids[i].weight == 0)
			continue;
		backends[n] = lb_stable_backend(ids[i].h_1, ids[i].h_2, ids[i].h_3, t->n_slots);
		backends[n].weight = ids[i].weight;
		backends[n++].index = i;
	}
	if (lb_stable_fill(backends, n, t->n_slots, t->slack, slots) != 0)
		exit(1);
	free(backends);
	return slots;
}

static struct identity *
make_identities(uint32_t n, uint32_t weight_max, uint64_t seed)
{
	struct identity *ids = allocate(n, sizeof(*ids));

	for (uint32_t i = 0; i < n; i++) {
		ids[i].h_1 = xrand(&seed);
		ids[i].h_2 = xrand(&seed);
		ids[i].h_3 = xrand(&seed);
		ids[i].weight = weight_max == 1 ? 100 : 1 + xrand_below(&seed, weight_max);
	}
	return ids;
}

static void
time_builds(bool is_quick)
{
	static const struct {
		uint32_t n, n_slots, weight_max, slack;
	} rows[] = {
		{10, 65537, 1, LB_STABLE_SLACK_DEFAULT},
		{100, 65537, 1, LB_STABLE_SLACK_DEFAULT},
		{1000, 65537, 1, LB_STABLE_SLACK_DEFAULT},
		{1000, 65537, 100, LB_STABLE_SLACK_DEFAULT},
		{1000, 65537, 65535, LB_STABLE_SLACK_DEFAULT},
		{1000, 65537, 1, 0},
		{60000, 65537, 1, LB_STABLE_SLACK_DEFAULT},
		{100, 655373, 1, LB_STABLE_SLACK_DEFAULT},
		{1000, 655373, 1, LB_STABLE_SLACK_DEFAULT},
		{1000, 655373, 100, LB_STABLE_SLACK_DEFAULT},
		{1000, 655373, 1, 0},
		{1000, 655373, 1, SLACK_MAGLEV},
		{1000, 16777213, 1, LB_STABLE_SLACK_DEFAULT},
	};

	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		if (is_quick && rows[i].n_slots > 65537)
			continue;

		const struct table t = {rows[i].n, rows[i].n_slots, rows[i].slack};
		struct identity *ids = make_identities(t.n, rows[i].weight_max, 1);
		double best = 1e9;

		for (int run = 0; run < (is_quick || t.n_slots > 1000000 ? 1 : 10); run++) {
			const double start = now_ms();
			uint16_t *slots = fill(ids, &t);
			const double ms = now_ms() - start;

			free(slots);
			best = ms < best ? ms : best;
		}
		printf("build  %5" PRIu32 " backends of 1..%-5" PRIu32 " %8" PRIu32
		       " slots, slack %2d: %9.3f ms\n",
			t.n, rows[i].weight_max, t.n_slots, (int)t.slack, best);
		free(ids);
	}
}

enum change { REMOVE_ONE, ADD_ONE, REWEIGHT, REMOVE_TENTH, N_CHANGES };

/** Make a change; the last identity is nobody before. */
static void
apply(enum change change, struct identity *ids, uint32_t n)
{
	switch (change) {
	case REMOVE_ONE:
		ids[n / 2].weight = 0;
		break;
	case ADD_ONE:
		ids[n - 1].weight = 100;
		break;
	case REWEIGHT:
		ids[n / 2].weight = 110;
		break;
	case REMOVE_TENTH:
		for (uint32_t i = 0; i < n - 1; i += 10)
			ids[i].weight = 0;
		break;
	case N_CHANGES:
		break;
	}
}

static uint64_t
sum_weights(const struct identity *ids, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += ids[i].weight;
	return sum;
}

/** Slots that moved needlessly, in percent. */
static double
needless_pct(const struct identity *before, const uint16_t *slots, const struct table *t,
	enum change change)
{
	struct identity *after = allocate(t->n, sizeof(*after));
	uint16_t *now;
	uint64_t sum, sum_now;
	uint32_t n_needless = 0;

	memcpy(after, before, t->n * sizeof(*after));
	apply(change, after, t->n);
	now = fill(after, t);
	sum = sum_weights(before, t->n);
	sum_now = sum_weights(after, t->n);
	for (uint32_t s = 0; s < t->n_slots; s++) {
		const uint32_t from = slots[s], to = now[s];
		const bool has_lost = after[from].weight * sum < before[from].weight * sum_now;
		const bool has_gained = after[to].weight * sum > before[to].weight * sum_now;

		n_needless += from != to && !(has_lost && has_gained);
	}
	free(now);
	free(after);
	return 100.0 * n_needless / t->n_slots;
}

/** Most and fewest slots of a backend, as parts of the mean. */
static void
measure_balance(const uint16_t *slots, const struct table *t, double *most, double *least)
{
	uint32_t *counts = allocate(t->n, sizeof(*counts));
	uint32_t largest = 0, smallest = UINT32_MAX;

	for (uint32_t s = 0; s < t->n_slots; s++)
		counts[slots[s]]++;
	for (uint32_t i = 0; i < t->n - 1; i++) {
		largest = counts[i] > largest ? counts[i] : largest;
		smallest = counts[i] < smallest ? counts[i] : smallest;
	}
	*most += (double)largest * (t->n - 1) / t->n_slots;
	*least += (double)smallest * (t->n - 1) / t->n_slots;
	free(counts);
}

static void
measure_moves(uint32_t n, uint32_t n_slots, uint32_t slack, uint32_t n_sets)
{
	const struct table t = {n + 1, n_slots, slack};
	double most = 0, least = 0, pct[N_CHANGES] = {0};
	char name[32] = "maglev";

	for (uint32_t set = 0; set < n_sets; set++) {
		struct identity *ids = make_identities(t.n, 1, 1000 + set);
		uint16_t *slots;

		ids[n].weight = 0;
		slots = fill(ids, &t);
		measure_balance(slots, &t, &most, &least);
		for (int change = 0; change < N_CHANGES; change++)
			pct[change] += needless_pct(ids, slots, &t, (enum change)change);
		free(slots);
		free(ids);
	}
	if (slack != SLACK_MAGLEV)
		(void)snprintf(name, sizeof(name), "stable %g %%", slack / 10.0);
	printf("%5" PRIu32 " %8" PRIu32 "  %-12s %6.3f %6.3f   %8.4f %8.4f %8.4f %8.4f\n", n,
		n_slots, name, most / n_sets, least / n_sets, pct[REMOVE_ONE] / n_sets,
		pct[ADD_ONE] / n_sets, pct[REWEIGHT] / n_sets, pct[REMOVE_TENTH] / n_sets);
}

int
main(int argc, char **argv)
{
	static const uint32_t slacks[] = {SLACK_MAGLEV, 0, 10, LB_STABLE_SLACK_DEFAULT, 50};
	static const uint32_t sizes[] = {65537, 655373};
	static const uint32_t ns[] = {100, 1000};
	const bool is_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;

	time_builds(is_quick);
	printf("\n%5s %8s  %-12s %6s %6s   needless moves, %% of all slots\n", "", "", "",
		"max /", "min /");
	printf("%5s %8s  %-12s %6s %6s   %8s %8s %8s %8s\n", "N", "slots", "", "mean", "mean",
		"remove-1", "add-1", "weight+", "remove/10");
	for (size_t m = 0; m < (is_quick ? 1 : LB_N_ELEMENTS(sizes)); m++) {
		for (size_t n = 0; n < LB_N_ELEMENTS(ns); n++) {
			for (size_t i = 0; i < LB_N_ELEMENTS(slacks); i++)
				measure_moves(ns[n], sizes[m], slacks[i], is_quick ? 1 : 10);
		}
	}
	return 0;
}
