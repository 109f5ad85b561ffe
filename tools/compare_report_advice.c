/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which algorithm suits what: by the figures alone, but for what no figure shows.
 */
#include "compare_report.h"

#include <math.h>
#include <stdio.h>

/*
 * A backend with so much more than its share is not noticed beside what flows differ by. One
 * with less has time to spare, so only one that gets nothing counts against an algorithm.
 */
#define EVEN_MAX 1.05

/** What figures do not say of an algorithm, and a user should know; by enum. */
static const char *const caveats[] = {
	[COMPARE_MAGLEV] = "even at any size; the larger the table, the less it moves",
	[COMPARE_STABLE] = "even to its overload; the larger the table, the less it moves",
	[COMPARE_RING] = "as even as 160 points of a backend are, whatever the table's size",
	[COMPARE_BOUNDED] = "a full backend sends slots on, so changes ripple",
	[COMPARE_RENDEZVOUS] =
		"as even as slots are many; a build scores every slot and backend",
	[COMPARE_SLOTS] = "who has a slot is written down: all balancers need the same list",
	[COMPARE_ANCHOR] = "depends on the order of removals: all balancers need one history",
	[COMPARE_JUMP] = "only the last of the list can leave, or join, without needless moves",
	[COMPARE_KETAMA] = "weights that change renumber points of all",
	[COMPARE_MODULO] = "here to compare with: nearly all moves whatever changes",
	[COMPARE_N_ALGORITHMS] = NULL,
};

/** Whether every balancer finds the same owners with nothing but the list of backends. */
static bool
is_of_the_set_alone(enum compare_algorithm algorithm)
{
	return algorithm != COMPARE_SLOTS && algorithm != COMPARE_ANCHOR;
}

/** The mean of all that was measured of needless moves; NAN where nothing was. */
static double
needless_of(const struct compare_result *result)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < result->n_changes; i++) {
		if (result->changes[i].needless.n == 0)
			continue;
		sum += compare_mean(&result->changes[i].needless);
		n++;
	}
	return n > 0 ? sum / (double)n : NAN;
}

static bool
is_even(const struct compare_result *result)
{
	return compare_mean(&result->max_over_mean) <= EVEN_MAX;
}

typedef double (*score_fn)(const struct compare_result *result);

/** How far the backend that is farthest from its share is from it, either way. */
static double
score_evenness(const struct compare_result *result)
{
	return fmax(compare_mean(&result->max_over_mean) - 1,
		1 - compare_mean(&result->min_over_mean));
}

/** Those that are even, by what they move; of equals the more even first. */
static double
score_both(const struct compare_result *result)
{
	if (!is_even(result))
		return NAN;
	return needless_of(result) + 1e-9 * score_evenness(result);
}

static double
score_stillness(const struct compare_result *result)
{
	return needless_of(result) + 1e-9 * score_evenness(result);
}

static double
score_build(const struct compare_result *result)
{
	return compare_takes_size(result->algorithm) ? compare_mean(&result->build_ms) : NAN;
}

static double
score_memory(const struct compare_result *result)
{
	return compare_mean(&result->bytes);
}

static const struct compare_result *
find_least(const struct compare_results *results, size_t n_backends, uint32_t n_slots,
	score_fn score)
{
	const struct compare_result *least = NULL;
	double least_score = NAN;

	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		const struct compare_result *result =
			compare_find(results, a, n_backends, n_slots);
		double value;

		if (result == NULL || !is_of_the_set_alone(a) || a == COMPARE_MODULO ||
			result->max_over_mean.n == 0 || result->without.max > 0)
			continue;
		value = score(result);
		if (!isnan(value) && (isnan(least_score) || value < least_score)) {
			least = result;
			least_score = value;
		}
	}
	return least;
}

static void
print_figures(const struct compare_result *result)
{
	const double needless = needless_of(result);

	(void)printf("%s: max/mean %.3f, min/mean %.3f",
		compare_algorithm_words[result->algorithm],
		compare_mean(&result->max_over_mean), compare_mean(&result->min_over_mean));
	if (!isnan(needless))
		(void)printf(", needless %.3g %% a change", 100 * needless);
	if (!is_even(result))
		(void)printf("; uneven");
	(void)printf("\n");
}

static bool
has_result(const struct compare_results *results, enum compare_algorithm algorithm)
{
	for (size_t i = 0; i < results->n; i++) {
		if (results->items[i].algorithm == algorithm)
			return true;
	}
	return false;
}

void
compare_report_caveats(const struct compare_results *results)
{
	(void)printf("What figures do not say:\n");
	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		if (has_result(results, a) && caveats[a] != NULL)
			(void)printf("  %-10s %s\n", compare_algorithm_words[a], caveats[a]);
	}
}

void
compare_report_advice(const struct compare_results *results, size_t n_backends,
	uint32_t n_slots)
{
	static const struct {
		const char *what;
		score_fn score;
	} questions[] = {
		{"most even", score_evenness},
		{"moves the least", score_stillness},
		{"with nobody 5 % above a share, moves the least", score_both},
		{"builds a table of this size fastest", score_build},
		{"least memory", score_memory},
	};

	(void)printf("What suits, by these figures, of what follows from the list of backends "
		     "alone\nand leaves nobody without:\n");
	for (size_t i = 0; i < LB_N_ELEMENTS(questions); i++) {
		const struct compare_result *result =
			find_least(results, n_backends, n_slots, questions[i].score);

		(void)printf("  %-48s", questions[i].what);
		if (result == NULL)
			(void)printf("none of these\n");
		else
			print_figures(result);
	}
}
