/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Time of lb_maglev_fill() against its plain twin.
 *
 * bench_maglev [--quick]: one line a case, the best of several runs each, and the ratio.
 * --quick runs each once, for the check alone. Exits with 1 if the two builds differ.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lb_compiler.h"
#include "lb_maglev.h"
#include "lb_maglev_plain.h"
#include "xrand.h"

struct bench_case {
	const char *name;
	uint32_t n;
	uint32_t n_slots;
	uint32_t weight_max; /* weights are 1..weight_max */
	uint32_t first;      /* weight of the first backend, or 0: like the others */
	int n_runs;
};

static const struct bench_case cases[] = {
	{"equal weights", 100, 65537, 1, 0, 40},
	{"equal weights", 1000, 65537, 1, 0, 40},
	{"equal weights", 1000, 655373, 1, 0, 10},
	{"weights 1..100", 1000, 65537, 100, 0, 40},
	{"weights 1..100", 1000, 655373, 100, 0, 10},
	{"65535 beside 1s", 1000, 65537, 1, 65535, 3},
};

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void
make_backends(const struct bench_case *c, struct lb_maglev_backend *backends)
{
	uint64_t seed = 1;

	for (uint32_t i = 0; i < c->n; i++) {
		const uint64_t h_1 = xrand(&seed), h_2 = xrand(&seed);

		backends[i] = lb_maglev_backend(h_1, h_2, c->n_slots);
		backends[i].weight = 1 + xrand_below(&seed, c->weight_max);
		backends[i].index = i;
	}
	if (c->first != 0)
		backends[0].weight = c->first;
}

/** Run one case; whether both builds agree. */
static bool
run(const struct bench_case *c, int n_runs)
{
	struct lb_maglev_backend *backends = malloc(c->n * sizeof(*backends));
	uint16_t *fast = malloc(c->n_slots * sizeof(*fast));
	uint16_t *plain = malloc(c->n_slots * sizeof(*plain));
	struct lb_maglev_plain_walker *walkers = malloc(c->n * sizeof(*walkers));
	double fast_ms = 1e9, plain_ms = 1e9;
	bool is_same = true;

	if (backends == NULL || fast == NULL || plain == NULL || walkers == NULL)
		abort();
	make_backends(c, backends);

	for (int i = 0; i < n_runs; i++) {
		const double start = now_ms();
		const int ret = lb_maglev_fill(backends, c->n, c->n_slots, fast);
		const double middle = now_ms();

		lb_maglev_plain_fill(backends, c->n, c->n_slots, walkers, plain);

		const double end = now_ms();

		fast_ms = middle - start < fast_ms ? middle - start : fast_ms;
		plain_ms = end - middle < plain_ms ? end - middle : plain_ms;
		is_same = is_same && ret == 0 &&
			  memcmp(fast, plain, c->n_slots * sizeof(*fast)) == 0;
	}

	printf("%-16s %5" PRIu32 " backends %7" PRIu32
	       " slots: fast %8.3f ms, plain %8.3f ms, ratio %.2f%s\n",
		c->name, c->n, c->n_slots, fast_ms, plain_ms, fast_ms / plain_ms,
		is_same ? "" : ", BUT THEY DIFFER");
	free(walkers);
	free(plain);
	free(fast);
	free(backends);
	return is_same;
}

int
main(int argc, char **argv)
{
	const bool is_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
	bool is_same = true;

	for (size_t i = 0; i < LB_N_ELEMENTS(cases); i++)
		is_same = run(&cases[i], is_quick ? 1 : cases[i].n_runs) && is_same;
	return is_same ? 0 : 1;
}
