/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_golden_stable FILE: each set of the file that tests/golden/stable.py wrote gives the
 * table that it says, and the overlay.
 */
#include "golden_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb_hash.h"
#include "lb_overlay.h"
#include "lb_stable.h"

#define BACKENDS_MAX 64

static const char *golden_path;

static struct lb_stable_backend
read_backend(FILE *file, uint64_t hash_seed, uint32_t n_slots)
{
	struct lb_stable_backend backend;
	char name[64];
	size_t n_bytes;

	EXPECT(fscanf(file, " backend %63s", name) == 1, "a backend");
	n_bytes = strlen(name);
	backend = lb_stable_backend(lb_hash_name(name, n_bytes, hash_seed, 1),
		lb_hash_name(name, n_bytes, hash_seed, 2),
		lb_hash_name(name, n_bytes, hash_seed, 3), n_slots);
	backend.weight = (uint32_t)golden_read_number(file, 10);
	return backend;
}

static void
test_tables_are_those_of_an_independent_program(void **state)
{
	FILE *file = fopen(golden_path, "r");
	struct lb_stable_backend backends[BACKENDS_MAX];
	bool is_dead[BACKENDS_MAX];
	uint32_t n_sets = 0;
	char end[4];

	(void)state;
	EXPECT(file != NULL, "%s cannot be read", golden_path);
	while (fscanf(file, "%3s", end) == 1 && strcmp(end, "set") == 0) {
		const uint32_t n_slots = (uint32_t)golden_read_number(file, 10);
		const uint64_t hash_seed = golden_read_number(file, 10);
		const uint32_t slack = (uint32_t)golden_read_number(file, 10);
		const uint32_t n = (uint32_t)golden_read_number(file, 10);
		uint16_t *slots = malloc(n_slots * sizeof(*slots));
		uint16_t *overlay = malloc(n_slots * sizeof(*overlay));

		EXPECT(n >= 1 && n <= BACKENDS_MAX, "%u backends", n);
		for (uint32_t b = 0; b < n; b++) {
			backends[b] = read_backend(file, hash_seed, n_slots);
			backends[b].index = b;
			is_dead[b] = b % 3 == 0;
		}
		EXPECT(lb_stable_fill(backends, n, n_slots, slack, slots) == 0, "fill");
		golden_expect_slots(file, "stable", slots, n_slots);
		EXPECT(lb_overlay_fill(slots, n_slots, is_dead, overlay) == 0, "overlay");
		golden_expect_slots(file, "overlay", overlay, n_slots);
		EXPECT(fscanf(file, "%3s", end) == 1 && strcmp(end, "end") == 0, "an end");
		free(overlay);
		free(slots);
		n_sets++;
	}
	EXPECT(feof(file) && n_sets == 12, "%u sets", n_sets);
	(void)fclose(file);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_are_those_of_an_independent_program),
	};

	if (argc != 2) {
		(void)fprintf(stderr, "usage: test_golden_stable FILE\n");
		return 2;
	}
	golden_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
