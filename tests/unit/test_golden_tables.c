/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_golden_tables FILE: each set of the file that tests/golden/tables.py wrote gives the
 * table that it says.
 */
#include "golden_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_compiler.h"
#include "lb_picker.h"
#include "lb_stable.h"

#define BACKENDS_MAX 64

static const char *golden_path;

struct golden_set {
	struct lb_picker_conf conf;
	uint32_t n;
	char names[BACKENDS_MAX][64];
	struct lb_picker_backend backends[BACKENDS_MAX];
};

static void
read_backends(FILE *file, struct golden_set *set)
{
	EXPECT(set->n >= 1 && set->n <= BACKENDS_MAX, "%u backends", set->n);
	for (uint32_t i = 0; i < set->n; i++) {
		EXPECT(fscanf(file, " backend %63s", set->names[i]) == 1, "backend %u", i);
		set->backends[i].weight = (uint32_t)golden_read_number(file, 10);
		set->backends[i].name = set->names[i];
		set->backends[i].name_bytes = (uint32_t)strlen(set->names[i]);
	}
}

static enum lb_algorithm
algorithm_of(const char *name)
{
	unsigned int i = 0;

	while (i < LB_N_ALGORITHMS &&
		strcmp(lb_algorithm_name((enum lb_algorithm)i), name) != 0)
		i++;
	return (enum lb_algorithm)i;
}

static void
expect_picker(FILE *file, const struct lb_picker *picker, const char *algorithm)
{
	const uint32_t n_slots = lb_picker_slots(picker);
	uint16_t *slots = malloc(n_slots * sizeof(*slots));

	for (uint32_t s = 0; s < n_slots; s++)
		slots[s] = (uint16_t)lb_picker_backend(picker, s);
	golden_expect_slots(file, algorithm, slots, n_slots);
	free(slots);
}

static void
test_tables_are_those_of_an_independent_program(void **state)
{
	FILE *file = fopen(golden_path, "r");
	uint32_t n_of[LB_N_ALGORITHMS] = {0};
	struct golden_set set;
	char name[16], end[4];

	(void)state;
	EXPECT(file != NULL, "%s cannot be read", golden_path);
	while (fscanf(file, " set %15s", name) == 1) {
		const struct lb_picker *picker;
		void *mem;

		set.conf.algorithm = algorithm_of(name);
		set.conf.n_slots = (uint32_t)golden_read_number(file, 10);
		set.conf.slack = LB_STABLE_SLACK_DEFAULT;
		set.conf.hash_seed = golden_read_number(file, 10);
		set.n = (uint32_t)golden_read_number(file, 10);
		EXPECT(lb_picker_check_slots(set.conf.algorithm, set.conf.n_slots) == 0,
			"%s %u", name, set.conf.n_slots);
		read_backends(file, &set);
		mem = aligned_alloc(LB_CACHE_LINE,
			lb_picker_bytes(set.conf.algorithm, set.conf.n_slots));
		EXPECT(lb_picker_build(mem, &set.conf, set.backends, set.n, &picker) == 0,
			"build");
		expect_picker(file, picker, name);
		EXPECT(fscanf(file, "%3s", end) == 1 && strcmp(end, "end") == 0, "an end");
		n_of[set.conf.algorithm]++;
		free(mem);
	}
	EXPECT(feof(file), "something else than a set");
	for (int a = 0; a < LB_N_ALGORITHMS; a++)
		EXPECT(n_of[a] == 12, "%u sets of %s", n_of[a],
			lb_algorithm_name((enum lb_algorithm)a));
	(void)fclose(file);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_are_those_of_an_independent_program),
	};

	if (argc != 2) {
		(void)fprintf(stderr, "usage: test_golden_tables FILE\n");
		return 2;
	}
	golden_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
