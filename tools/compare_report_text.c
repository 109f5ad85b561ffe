/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES 32u

/** A share in percent with three digits that count, in 6 columns; "-" where there is none. */
static const char *
format_percent(const struct compare_figure *figure, char out[CELL_BYTES])
{
	const double percent = 100 * compare_mean(figure);

	if (figure->n == 0)
		(void)snprintf(out, CELL_BYTES, "-");
	else if (percent == 0)
		(void)snprintf(out, CELL_BYTES, "0");
	else if (percent < 0.0001)
		(void)snprintf(out, CELL_BYTES, "<.0001");
	else /* as it is rounded: 9.999 is 10.0 */
		(void)snprintf(out, CELL_BYTES, "%.*f",
			percent < 0.09995  ? 4
			: percent < 0.9995 ? 3
			: percent < 9.995  ? 2
					   : 1,
			percent);
	return out;
}

static const char *
format_bytes(double bytes, char out[CELL_BYTES])
{
	if (bytes < 10240)
		(void)snprintf(out, CELL_BYTES, "%.0f B", bytes);
	else if (bytes < 10485760)
		(void)snprintf(out, CELL_BYTES, "%.0f KiB", bytes / 1024);
	else
		(void)snprintf(out, CELL_BYTES, "%.0f MiB", bytes / 1048576);
	return out;
}

/** The algorithm, marked where it is the one that is configured. */
static const char *
format_name(const struct compare_results *results, const struct compare_result *result,
	char out[CELL_BYTES])
{
	const bool is_configured =
		results->against != NULL && result->algorithm == results->configured;

	(void)snprintf(out, CELL_BYTES, "%s%s", compare_algorithm_words[result->algorithm],
		is_configured ? " *" : "");
	return out;
}

static void
print_balance_row(const struct compare_results *results, const struct compare_result *result)
{
	char name[CELL_BYTES], slots[CELL_BYTES], bytes[CELL_BYTES];
	char ratio[CELL_BYTES], building[CELL_BYTES];

	(void)snprintf(slots, sizeof(slots), "%" PRIu32, result->n_slots);
	if (result->max_over_mean.n == 0) {
		(void)printf("%-12s %8s %8s\n", format_name(results, result, name), "-", "-");
		return;
	}
	(void)snprintf(ratio, sizeof(ratio), "%.2f", compare_mean(&result->build_over_plain));
	(void)printf("%-12s %8s %8.4f %8.4f %8.4f %9.3f %7s %9s %9.1f %9s\n",
		format_name(results, result, name), result->n_slots > 0 ? slots : "-",
		compare_mean(&result->max_over_mean), compare_mean(&result->min_over_mean),
		compare_mean(&result->stddev_over_mean), compare_mean(&result->build_ms),
		result->build_over_plain.n > 0 ? ratio : "-",
		format_bytes(compare_mean(&result->build_bytes), building),
		compare_mean(&result->lookup_ns),
		format_bytes(compare_mean(&result->bytes), bytes));
}

static void
print_change_row(const struct compare_results *results, const struct compare_result *result)
{
	char name[CELL_BYTES], moved[CELL_BYTES], needless[CELL_BYTES];

	(void)printf("%-12s", format_name(results, result, name));
	for (size_t i = 0; i < result->n_changes; i++)
		(void)printf(" %6s %6s", format_percent(&result->changes[i].moved, moved),
			format_percent(&result->changes[i].needless, needless));
	(void)printf("\n");
}

/** Who is left out is said in words, too: a column's 0 among others is easily missed. */
static void
print_without(const struct compare_results *results, size_t n_backends, uint32_t n_slots)
{
	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		const struct compare_result *result =
			compare_find(results, a, n_backends, n_slots);

		if (result == NULL || result->without.max == 0)
			continue;
		(void)printf("%s: %s%.0f of %zu backends ha%s no %s\n",
			compare_algorithm_words[a], result->without.n > 1 ? "up to " : "",
			result->without.max, n_backends, result->without.max == 1 ? "s" : "ve",
			result->n_slots > 0 ? "slot" : "key");
	}
}

/** What each change asks for, whatever the algorithm. */
static void
print_minimal_row(const struct compare_result *result)
{
	char minimal[CELL_BYTES];

	(void)printf("%-12s", "must move");
	for (size_t i = 0; i < result->n_changes; i++)
		(void)printf(" %6s %6s", format_percent(&result->changes[i].minimal, minimal),
			"");
	(void)printf("\n");
}

static void
print_change_heads(const struct compare_result *result)
{
	(void)printf("\n%-12s", "percent");
	for (size_t i = 0; i < result->n_changes; i++)
		(void)printf(" %13s", result->changes[i].change);
	(void)printf("\n%-12s", "");
	for (size_t i = 0; i < result->n_changes; i++)
		(void)printf(" %6s %6s", "moved", "needl.");
	(void)printf("\n");
}

static void
print_tables(const struct compare_results *results, size_t n_backends, uint32_t n_slots)
{
	const struct compare_result *first = NULL;

	(void)printf("%-12s %8s %8s %8s %8s %9s %7s %9s %9s %9s\n", "", "slots", "max/mean",
		"min/mean", "sd/mean", "build ms", "x plain", "building", "lookup ns",
		"memory");
	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		const struct compare_result *result =
			compare_find(results, a, n_backends, n_slots);

		if (result == NULL)
			continue;
		print_balance_row(results, result);
		/* Of any algorithm that has them all it is the same. */
		if (first == NULL || result->changes[0].minimal.n > first->changes[0].minimal.n)
			first = result;
	}
	print_without(results, n_backends, n_slots);
	if (first == NULL || first->n_changes == 0)
		return;
	print_change_heads(first);
	print_minimal_row(first);
	for (uint32_t a = 0; a < COMPARE_N_ALGORITHMS; a++) {
		const struct compare_result *result =
			compare_find(results, a, n_backends, n_slots);

		if (result != NULL)
			print_change_row(results, result);
	}
}

static void
print_heading(const struct compare_results *results, size_t n_backends, uint32_t n_slots)
{
	if (results->against != NULL) {
		(void)printf("%s against %s: %zu backends, then %zu; %" PRIu32
			     " slots; * is what is configured\n\n",
			results->weights, results->against, n_backends,
			results->n_backends_against, n_slots);
		return;
	}
	(void)printf("%zu backends, weights %s, %" PRIu32 " slots: means over %" PRIu32
		     " seed%s\n\n",
		n_backends, results->weights, n_slots, results->n_seeds,
		results->n_seeds == 1 ? "" : "s");
}

static const char legend[] =
	"max/mean   the largest share, divided by what is its owner's by weight: 1 is even\n"
	"min/mean   the smallest likewise: 0 is a backend that gets nothing\n"
	"sd/mean    the standard deviation of all of them\n"
	"           Algorithms without slots were asked for %" PRIu32
	" keys, which have a spread of\n"
	"           their own: modulo shows nothing else.\n"
	"build ms   CPU time to make the table\n"
	"x plain    the same, divided by that of Maglev's table of as many slots, built as its "
	"paper\n"
	"           tells it, in turns with it\n"
	"building   the most memory that a build has at once, the table with it\n"
	"lookup ns  CPU time from a flow's hash to its backend\n"
	"memory     what lookups read\n"
	"moved      percent of all slots, or of a quarter of the keys, that change their "
	"backend\n"
	"needless   of these, those whose old backend neither left nor lost quota, or whose "
	"new\n"
	"           one gained none\n"
	"must move  what the change of quotas asks for\n"
	"In drain and fail-tenth backends stay in the table, and only their slots move. For "
	"an\n"
	"algorithm without slots they are as if they had left.\n";

int
compare_report_text(const struct compare_results *results)
{
	for (size_t b = 0; b < results->backends.n; b++) {
		for (size_t s = 0; s < results->sizes.n; s++) {
			const size_t n_backends = results->backends.items[b];
			const uint32_t n_slots = results->sizes.items[s];

			print_heading(results, n_backends, n_slots);
			print_tables(results, n_backends, n_slots);
			(void)printf("\n");
			compare_report_advice(results, n_backends, n_slots);
			(void)printf("\n");
		}
	}
	compare_report_caveats(results);
	(void)printf("\n");
	(void)printf(legend, results->n_keys);
	return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : -EIO;
}
