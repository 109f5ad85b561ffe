/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_names.h"
#include "expect.h"
#include "xrand.h"

#define REST_NS 100u

/*
 * What is done to three numbers, which "a", "b" and "c" have from time 10 on: @TIME, +NUMBER
 * holds, "release", NAME=NUMBER asks for a name and is told, NAME! is told that none is left.
 */
static const struct {
	const char *what;
	const char *steps;
} rows[] = {
	{"a name that nobody has held goes after its rest, and not before",
		"@109 new! @110 new=0"},
	{"the number of a name that is held stays its own", "+0 +1 +2 @1000 new! a=0"},
	{"of a name that was held the rest begins when it is let go",
		"+0 @1000 b=1 c=2 release @1099 new!"},
	{"and ends", "+0 @1000 b=1 c=2 release @1100 new=0 other=1"},
	{"to be asked for is use: a build must not give away what it has just been given",
		"@110 a=0 b=1 new=2 newer!"},
	{"so is to be given out anew", "@110 x=0 y=1 z=2 new! @209 new! @210 new=0"},
	{"a name that lost its number gets another one", "@110 x=0 a=1 a=1 b=2 x=0"},
};

static void
ask(struct ctl_names *names, char *step, const char *what)
{
	char *end = step + strcspn(step, "=!");
	const bool is_left = *end == '=';
	uint32_t number = UINT32_MAX;
	int ret;

	*end = '\0';
	ret = ctl_names_intern(names, 7, step, &number);
	EXPECT(ret == (is_left ? 0 : -ENOSPC), "%s: '%s' returns %d", what, step, ret);
	if (!is_left)
		return;
	EXPECT(number == strtoul(end + 1, NULL, 10), "%s: '%s' is %u", what, step, number);
	assert_string_equal(ctl_names_text(names, number), step);
}

static void
test_numbers_go_to_others_after_a_rest(void **state)
{
	static const char *const first[] = {"a", "b", "c"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *steps = strdup(rows[i].steps);
		char *rest = NULL;
		struct ctl_names *names;
		uint32_t number;

		assert_non_null(steps);
		assert_int_equal(ctl_names_create(3, &names), 0);
		ctl_names_set_time(names, 10, REST_NS);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(ctl_names_intern(names, 7, first[k], &number), 0);
		for (char *step = strtok_r(steps, " ", &rest); step != NULL;
			step = strtok_r(NULL, " ", &rest)) {
			if (step[0] == '@')
				ctl_names_set_time(names, strtoul(step + 1, NULL, 10), REST_NS);
			else if (step[0] == '+')
				ctl_names_hold(names, (uint32_t)strtoul(step + 1, NULL, 10));
			else if (strcmp(step, "release") == 0)
				ctl_names_release_all(names);
			else
				ask(names, step, rows[i].what);
		}
		assert_int_equal(ctl_names_count(names), 3);
		ctl_names_destroy(names);
		free(steps);
	}
}

/* Whoever tells no time has all numbers for good, and may take them back. */
static void
test_without_a_time_no_number_rests(void **state)
{
	struct ctl_names *names;
	uint32_t number;

	(void)state;
	assert_int_equal(ctl_names_create(2, &names), 0);
	assert_int_equal(ctl_names_intern(names, 0, "a", &number), 0);
	assert_int_equal(ctl_names_intern(names, 1, "a", &number), 0);
	assert_int_equal(ctl_names_intern(names, 2, "a", &number), -ENOSPC);
	ctl_names_take_back(names, 1);
	assert_int_equal(ctl_names_intern(names, 2, "a", &number), 0);
	assert_int_equal(number, 1);
	ctl_names_destroy(names);
}

/*
 * Random names, releases and times, against what may never be: a number whose name changes
 * though it was held, asked for or given out less than the rest ago; a name that loses its
 * number otherwise; two names with one number.
 */
#define N_NUMBERS 96u
#define N_NAMES   300u
#define N_STEPS   200000u

struct law {
	uint32_t name_of[N_NUMBERS]; /* N_NAMES: none */
	uint64_t used_ns[N_NUMBERS];
	bool is_held[N_NUMBERS];
	uint64_t now_ns;
	uint32_t n_given; /* to another name */
};

static void
intern_by_law(struct ctl_names *names, struct law *law, uint32_t name)
{
	uint32_t number = N_NUMBERS;
	uint32_t old = 0;
	char text[16];

	(void)snprintf(text, sizeof(text), "n%u", name / 3);
	while (old < N_NUMBERS && law->name_of[old] != name)
		old++;
	if (ctl_names_intern(names, name % 3, text, &number) != 0) {
		assert_int_equal(old, N_NUMBERS);
		for (uint32_t i = 0; i < N_NUMBERS; i++)
			EXPECT(law->is_held[i] || law->now_ns - law->used_ns[i] < REST_NS,
				"%u has rested, and is not given", i);
		return;
	}
	assert_in_range(number, 0, N_NUMBERS - 1);
	EXPECT(old == N_NUMBERS || old == number, "a name loses its number %u", old);
	if (law->name_of[number] != name && law->name_of[number] != N_NAMES) {
		EXPECT(!law->is_held[number] && law->now_ns - law->used_ns[number] >= REST_NS,
			"%u goes to another name too early", number);
		law->n_given++;
	}
	assert_string_equal(ctl_names_text(names, number), text);
	assert_int_equal(ctl_names_parent(names, number), name % 3);
	law->name_of[number] = name;
	law->used_ns[number] = law->now_ns;
}

static void
hold_some(struct ctl_names *names, struct law *law, uint64_t *random)
{
	ctl_names_release_all(names);
	for (uint32_t i = 0; i < N_NUMBERS; i++) {
		if (law->is_held[i])
			law->used_ns[i] = law->now_ns;
		law->is_held[i] = law->name_of[i] != N_NAMES && xrand_below(random, 3) == 0;
		if (law->is_held[i])
			ctl_names_hold(names, i);
	}
}

static void
test_no_number_means_two_names_within_a_rest(void **state)
{
	struct law law = {.now_ns = 1};
	uint64_t random = 1;
	struct ctl_names *names;

	(void)state;
	assert_int_equal(ctl_names_create(N_NUMBERS, &names), 0);
	for (uint32_t i = 0; i < N_NUMBERS; i++)
		law.name_of[i] = N_NAMES;
	for (uint32_t i = 0; i < N_STEPS; i++) {
		if (xrand_below(&random, 40) == 0)
			law.now_ns += xrand_below(&random, REST_NS);
		ctl_names_set_time(names, law.now_ns, REST_NS);
		if (xrand_below(&random, 100) == 0)
			hold_some(names, &law, &random);
		intern_by_law(names, &law, xrand_below(&random, N_NAMES));
	}
	EXPECT(law.n_given > N_STEPS / 100, "only %u numbers were given to another name",
		law.n_given);
	ctl_names_destroy(names);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_go_to_others_after_a_rest),
		cmocka_unit_test(test_without_a_time_no_number_rests),
		cmocka_unit_test(test_no_number_means_two_names_within_a_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
