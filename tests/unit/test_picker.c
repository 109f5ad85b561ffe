/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_malloc.h"
#include "lb_compiler.h"
#include "lb_hash.h"
#include "lb_limits.h"
#include "lb_picker.h"
#include "lb_prime.h"
#include "lb_stable.h"
#include "xrand.h"

static struct lb_picker_backend
named(const char *name, uint32_t weight)
{
	return (struct lb_picker_backend){name, (uint32_t)strlen(name), weight};
}

static void *
picker_memory(enum lb_algorithm algorithm, uint32_t n_slots)
{
	void *mem = aligned_alloc(LB_CACHE_LINE, lb_picker_bytes(algorithm, n_slots));

	EXPECT(mem != NULL, "memory for %u slots", n_slots);
	return mem;
}

/** lb_picker_build() with the default slack. */
static int
build(void *mem, enum lb_algorithm algorithm, uint32_t n_slots, uint64_t hash_seed,
	const struct lb_picker_backend *backends, size_t n, const struct lb_picker **out)
{
	const struct lb_picker_conf conf = {
		.algorithm = algorithm,
		.n_slots = n_slots,
		.slack = LB_STABLE_SLACK_DEFAULT,
		.hash_seed = hash_seed,
	};

	return lb_picker_build(mem, &conf, backends, n, out);
}

static void
test_algorithms_have_names(void **state)
{
	(void)state;
	assert_string_equal(lb_algorithm_name(LB_MAGLEV), "maglev");
	assert_string_equal(lb_algorithm_name(LB_RING), "ring");
	assert_string_equal(lb_algorithm_name(LB_RENDEZVOUS), "rendezvous");
	assert_string_equal(lb_algorithm_name(LB_STABLE), "stable");
	assert_string_equal(lb_algorithm_name(LB_N_ALGORITHMS), "unknown");
}

static void
test_sizes_that_an_algorithm_takes(void **state)
{
	static const struct {
		const char *what;
		enum lb_algorithm algorithm;
		uint32_t n_slots;
		int ret;
	} rows[] = {
		{"the smallest", LB_MAGLEV, 7, 0},
		{"a prime below it", LB_MAGLEV, 5, -EINVAL},
		{"no prime", LB_MAGLEV, 9, -EINVAL},
		{"even", LB_MAGLEV, 65536, -EINVAL},
		{"the default", LB_MAGLEV, LB_SLOTS_DEFAULT, 0},
		{"the square of a prime", LB_MAGLEV, 4093 * 4093, -EINVAL},
		{"the largest", LB_MAGLEV, LB_SLOTS_MAX, 0},
		{"a prime above it", LB_MAGLEV, 16777259, -EINVAL},
		{"nothing", LB_MAGLEV, 0, -EINVAL},
		{"a ring needs no prime", LB_RING, 8, 0},
		{"a ring of 6", LB_RING, 6, -EINVAL},
		{"a large ring", LB_RING, LB_SLOTS_MAX, 0},
		{"too large a ring", LB_RING, LB_SLOTS_MAX + 1, -EINVAL},
		{"rendezvous needs no prime", LB_RENDEZVOUS, 65536, 0},
		{"too large a rendezvous", LB_RENDEZVOUS, LB_SLOTS_MAX + 1, -EINVAL},
		{"the smallest stable", LB_STABLE, 7, 0},
		{"stable needs a prime", LB_STABLE, 65536, -EINVAL},
		{"the largest stable", LB_STABLE, LB_SLOTS_MAX, 0},
		{"no algorithm", LB_N_ALGORITHMS, 7, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const size_t bytes = lb_picker_bytes(rows[i].algorithm, rows[i].n_slots);

		EXPECT(lb_picker_check_slots(rows[i].algorithm, rows[i].n_slots) == rows[i].ret,
			"%s", rows[i].what);
		EXPECT((bytes == 0) == (rows[i].ret != 0), "%s: %zu bytes", rows[i].what,
			bytes);
		EXPECT(bytes == 0 || (bytes >= 4 + 2 * (size_t)rows[i].n_slots &&
					     bytes % LB_CACHE_LINE == 0),
			"%s: %zu bytes", rows[i].what, bytes);
	}
}

static void
test_next_prime(void **state)
{
	static const struct {
		uint32_t n, prime;
	} rows[] = {
		{0, 2},
		{2, 2},
		{3, 3},
		{4, 5},
		{8, 11},
		{9, 11},
		{25, 29},
		{65536, 65537},
		{65537, 65537},
		{65538, 65539},
		{655360, 655373},
		{LB_SLOTS_MAX, LB_SLOTS_MAX},
		{4294967291u, 4294967291u},
		{4294967292u, 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(lb_next_prime(rows[i].n) == rows[i].prime, "%u: %u", rows[i].n,
			lb_next_prime(rows[i].n));
}

static void
test_what_build_refuses(void **state)
{
	static char long_name[LB_NAME_BYTES_MAX + 1];
	const struct {
		const char *what;
		struct lb_picker_backend backends[3];
		size_t n;
		uint32_t n_slots;
		int ret;
	} rows[] = {
		{"not a prime", {{"a", 1, 1}}, 1, 8, -EINVAL},
		{"nobody", {{"a", 1, 1}}, 0, 7, -ENOENT},
		{"only weight 0", {{"a", 1, 0}, {"b", 1, 0}}, 2, 7, -ENOENT},
		{"an empty name", {{"a", 0, 1}}, 1, 7, -EINVAL},
		{"the longest name", {{long_name, LB_NAME_BYTES_MAX, 1}}, 1, 7, 0},
		{"a longer name", {{long_name, LB_NAME_BYTES_MAX + 1, 1}}, 1, 7, -EINVAL},
		{"the largest weight", {{"a", 1, LB_WEIGHT_MAX}}, 1, 7, 0},
		{"a larger weight", {{"a", 1, LB_WEIGHT_MAX + 1}}, 1, 7, -EINVAL},
		{"one name twice", {{"a", 1, 1}, {"b", 1, 1}, {"a", 1, 2}}, 3, 7, -EEXIST},
		{"also of weight 0", {{"a", 1, 1}, {"b", 1, 1}, {"b", 1, 0}}, 3, 7, -EEXIST},
		{"also if nobody is left", {{"a", 1, 0}, {"a", 1, 0}}, 2, 7, -EEXIST},
		{"names that begin alike", {{"ab", 1, 1}, {"ab", 2, 1}}, 2, 7, 0},
		{"a NUL is a byte", {{"a\0b", 3, 1}, {"a\0c", 3, 1}}, 2, 7, 0},
	};

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_picker *picker = NULL;
		void *mem = picker_memory(LB_MAGLEV, 7);
		const int ret = build(mem, LB_MAGLEV, rows[i].n_slots, 1, rows[i].backends,
			rows[i].n, &picker);

		EXPECT(ret == rows[i].ret, "%s: %d", rows[i].what, ret);
		EXPECT((picker == NULL) == (ret != 0), "%s: out", rows[i].what);
		free(mem);
	}
}

static void
test_a_slack_is_of_stable_alone(void **state)
{
	static const struct {
		const char *what;
		enum lb_algorithm algorithm;
		uint32_t slack;
		int ret;
	} rows[] = {
		{"none", LB_STABLE, 0, 0},
		{"the largest", LB_STABLE, LB_STABLE_SLACK_MAX, 0},
		{"a larger one", LB_STABLE, LB_STABLE_SLACK_MAX + 1, -EINVAL},
		{"not looked at", LB_MAGLEV, LB_STABLE_SLACK_MAX + 1, 0},
	};
	const struct lb_picker_backend backends[] = {named("a", 3), named("b", 3)};
	void *mem = picker_memory(LB_STABLE, 65537);
	uint32_t counts[2];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_picker_conf conf = {
			.algorithm = rows[i].algorithm,
			.n_slots = 65537,
			.slack = rows[i].slack,
		};
		const struct lb_picker *picker = NULL;
		const int ret = lb_picker_build(mem, &conf, backends, 2, &picker);

		EXPECT(ret == rows[i].ret, "%s: %d", rows[i].what, ret);
		EXPECT((picker == NULL) == (ret != 0), "%s: out", rows[i].what);
		if (ret != 0)
			continue;
		/* Without slack halves are exact; left alone the two of this seed are not. */
		lb_picker_count(picker, counts, 2);
		EXPECT((rows[i].slack == LB_STABLE_SLACK_MAX) !=
				(counts[0] == 32768 || counts[1] == 32768),
			"%s: %u and %u", rows[i].what, counts[0], counts[1]);
	}
	free(mem);
}

static void
test_an_overlay_gives_away_what_the_dead_have(void **state)
{
	static const struct {
		const char *what;
		bool is_dead[4];
		int ret;
	} rows[] = {
		{"nobody", {0}, 0},
		{"one", {0, 1, 0, 0}, 0},
		{"all but one", {1, 1, 0, 0}, 0},
		{"one without slots", {0, 0, 0, 1}, 0},
		{"all", {1, 1, 1, 1}, -ENOENT},
		{"all that have slots", {1, 1, 1, 0}, -ENOENT},
	};
	const struct lb_picker_backend backends[] = {named("a", 3), named("b", 5),
		named("c", 9), named("none", 0)};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows) * LB_N_ALGORITHMS; i++) {
		const size_t row = i / LB_N_ALGORITHMS;
		const enum lb_algorithm algorithm = (enum lb_algorithm)(i % LB_N_ALGORITHMS);
		const bool *is_dead = rows[row].is_dead;
		void *mem = picker_memory(algorithm, 251),
		     *mem2 = picker_memory(algorithm, 251);
		const struct lb_picker *configured, *overlay = NULL;
		int ret;

		EXPECT(build(mem, algorithm, 251, 7, backends, 4, &configured) == 0, "build");
		ret = lb_picker_overlay(mem2, configured, is_dead, &overlay);
		EXPECT(ret == rows[row].ret, "%s: %d", rows[row].what, ret);
		EXPECT((overlay == NULL) == (ret != 0), "%s: out", rows[row].what);
		for (uint32_t s = 0; s < 251 && ret == 0; s++) {
			const uint32_t was = lb_picker_backend(configured, s);
			const uint32_t is = lb_picker_backend(overlay, s);

			EXPECT(lb_picker_slots(overlay) == 251, "as many slots");
			EXPECT(!is_dead[is], "%s: slot %u is a dead one's", rows[row].what, s);
			EXPECT(is == was || is_dead[was], "%s: slot %u of %u moved",
				rows[row].what, s, was);
		}
		free(mem2);
		free(mem);
	}
}

/** n backends with names of their own in *names (free it), all of one weight. */
static struct lb_picker_backend *
make_many(size_t n, uint32_t weight, char **names)
{
	struct lb_picker_backend *backends = malloc(n * sizeof(*backends));

	*names = malloc(n * 16);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(*names + i * 16, 16, "b%u", (unsigned int)i);
		backends[i] = named(*names + i * 16, weight);
	}
	return backends;
}

static void
test_too_many_is_refused(void **state)
{
	static const struct {
		const char *what;
		enum lb_algorithm algorithm;
		uint32_t n_slots;
		size_t n;
		uint32_t weight;
		int ret;
	} rows[] = {
		{"a slot for each", LB_MAGLEV, 7, 7, 1, 0},
		{"one more than slots", LB_MAGLEV, 7, 8, 1, -E2BIG},
		{"more than slots, on a ring", LB_RING, 7, 8, 1, -E2BIG},
		{"more than slots, by rendezvous", LB_RENDEZVOUS, 7, 8, 1, -E2BIG},
		{"more than slots, stable", LB_STABLE, 7, 8, 1, -E2BIG},
		{"a stable slot for each", LB_STABLE, 7, 7, 1, 0},
		{"as many as a table holds", LB_MAGLEV, 65537, 65535, 1, 0},
		{"more than a table holds", LB_MAGLEV, 65537, 65536, 1, -E2BIG},
		{"too many points for a ring", LB_RING, 251, 161, 65535, -E2BIG},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct lb_picker *picker = NULL;
		char *names;
		struct lb_picker_backend *backends =
			make_many(rows[i].n, rows[i].weight, &names);
		void *mem = picker_memory(rows[i].algorithm, rows[i].n_slots);
		const int ret = build(mem, rows[i].algorithm, rows[i].n_slots, 1, backends,
			rows[i].n, &picker);

		EXPECT(ret == rows[i].ret, "%s: %d", rows[i].what, ret);
		EXPECT((picker == NULL) == (ret != 0), "%s: out", rows[i].what);
		free(mem);
		free(backends);
		free(names);
	}
}

static void
test_weight_0_is_not_counted_against_slots(void **state)
{
	char *names;
	struct lb_picker_backend *backends = make_many(20, 0, &names);
	void *mem = picker_memory(LB_MAGLEV, 7);
	const struct lb_picker *picker;
	uint32_t counts[20];

	(void)state;
	for (size_t i = 3; i < 10; i++)
		backends[i].weight = 5;
	EXPECT(build(mem, LB_MAGLEV, 7, 1, backends, 20, &picker) == 0, "7 of 20");
	lb_picker_count(picker, counts, 20);
	for (size_t i = 0; i < 20; i++)
		EXPECT(counts[i] == (i >= 3 && i < 10), "backend %zu: %u", i, counts[i]);
	free(mem);
	free(backends);
	free(names);
}

static void
test_weight_0_changes_nothing(void **state)
{
	const struct lb_picker_backend with[] = {named("gone", 0), named("a", 3), named("b", 5),
		named("away", 0), named("c", 9)};
	const struct lb_picker_backend without[] = {named("a", 3), named("b", 5),
		named("c", 9)};
	static const uint32_t same[] = {99, 0, 1, 99, 2};

	(void)state;
	for (int a = 0; a < LB_N_ALGORITHMS; a++) {
		void *mem = picker_memory((enum lb_algorithm)a, 251);
		void *mem2 = picker_memory((enum lb_algorithm)a, 251);
		const struct lb_picker *picker, *picker2;

		EXPECT(build(mem, (enum lb_algorithm)a, 251, 7, with, 5, &picker) == 0, "with");
		EXPECT(build(mem2, (enum lb_algorithm)a, 251, 7, without, 3, &picker2) == 0,
			"without");
		for (uint32_t s = 0; s < 251; s++)
			EXPECT(same[lb_picker_backend(picker, s)] ==
					lb_picker_backend(picker2, s),
				"algorithm %d, slot %u", a, s);
		free(mem2);
		free(mem);
	}
}

static void
test_picks_spread_in_proportion(void **state)
{
	static const struct {
		const char *what;
		uint64_t pick;
		uint32_t slot;
	} rows[] = {
		{"the first", 0, 0},
		{"the last pick of slot 0 of 7", 2635249153387078802u, 0},
		{"the first pick of slot 1 of 7", 2635249153387078803u, 1},
		{"half", UINT64_C(1) << 63, 3},
		{"the last", UINT64_MAX, 6},
	};
	const struct lb_picker_backend backends[] = {named("a", 3), named("b", 5)};
	void *mem = picker_memory(LB_RING, 7);
	const struct lb_picker *picker;
	uint32_t counts[2] = {1000, 1000}, slots_of[2] = {0, 0};

	(void)state;
	EXPECT(build(mem, LB_RING, 7, 7, backends, 2, &picker) == 0, "build");
	EXPECT(lb_picker_slots(picker) == 7, "slots");
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		EXPECT(lb_picker_slot(picker, rows[i].pick) == rows[i].slot, "%s: %u",
			rows[i].what, lb_picker_slot(picker, rows[i].pick));
		lb_picker_prefetch(picker, rows[i].slot);
	}
	for (uint32_t s = 0; s < 7; s++)
		slots_of[lb_picker_backend(picker, s)]++;
	lb_picker_count(picker, counts, 2);
	assert_memory_equal(counts, slots_of, sizeof(counts));
	EXPECT(counts[0] + counts[1] == 7, "all slots are counted");
	free(mem);
}

/** A copy without a NUL, at exact length. */
static char *
heap_bytes(const char *bytes, size_t n)
{
	char *copy = malloc(n);

	for (size_t i = 0; i < n; i++)
		copy[i] = bytes[i];
	return copy;
}

static void
test_only_the_name_and_the_seed_are_hashed(void **state)
{
	/* The turns of maglev follow h_0, the slots h_1, h_2.
	 */
	char *name = heap_bytes("abc", 3), *other = heap_bytes("xy", 2);
	const struct lb_picker_backend backends[] = {{name, 3, 100}, {other, 2, 100}};
	void *mem = picker_memory(LB_MAGLEV, 11);
	const struct lb_picker *picker;

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		const uint32_t first =
			lb_hash_name(name, 3, seed, 0) > lb_hash_name(other, 2, seed, 0);
		const uint64_t h_1 =
			lb_hash_name(backends[first].name, backends[first].name_bytes, seed, 1);

		EXPECT(build(mem, LB_MAGLEV, 11, seed, backends, 2, &picker) == 0, "build");
		EXPECT(lb_picker_backend(picker, (uint32_t)(h_1 % 11)) == first,
			"seed %u: the canonically first has its first choice",
			(unsigned int)seed);
	}
	free(mem);
	free(other);
	free(name);
}

static void
test_canonical_order_goes_by_hash_and_leaves_weight_0_out(void **state)
{
	const struct lb_picker_backend backends[] = {named("a", 3), named("b", 0),
		named("c", 5), named("d", 1), named("e", 9)};
	const struct lb_picker_backend twice[] = {named("a", 3), named("b", 5), named("a", 0)};
	uint32_t places[5];
	size_t n = 9;

	(void)state;
	EXPECT(lb_picker_order(backends, 5, 7, places, &n) == 0 && n == 4, "%zu are left", n);
	for (size_t i = 0; i < n; i++) {
		EXPECT(backends[places[i]].weight > 0, "place %zu", i);
		EXPECT(i == 0 || lb_hash_name(backends[places[i - 1]].name, 1, 7, 0) <
					 lb_hash_name(backends[places[i]].name, 1, 7, 0),
			"place %zu", i);
	}
	EXPECT(lb_picker_order(backends, 0, 7, places, &n) == 0 && n == 0, "nobody");
	EXPECT(lb_picker_order(twice, 3, 7, places, &n) == -EEXIST && n == 0,
		"a name twice is one too many even without a weight");
}

static void
test_each_allocation_may_fail(void **state)
{
	/* Places, candidates, the algorithm's backends, and what the algorithm takes itself. */
	static const int n_allocations[] = {
		[LB_MAGLEV] = 3 + 7,
		[LB_RING] = 3 + 2,
		[LB_RENDEZVOUS] = 3 + 2,
		[LB_STABLE] = 3 + 7,
	};
	const struct lb_picker_backend backends[] = {named("a", 3), named("b", 5)};
	void *mem = picker_memory(LB_MAGLEV, 7);

	(void)state;
	for (int a = 0; a < LB_N_ALGORITHMS; a++) {
		const struct lb_picker *picker = NULL;
		int ret;

		for (int i = 1; i <= n_allocations[a]; i++) {
			failing_malloc_at = i;
			ret = build(mem, (enum lb_algorithm)a, 7, 1, backends, 2, &picker);
			EXPECT(ret == -ENOMEM, "algorithm %d, allocation %d: %d", a, i, ret);
			EXPECT(picker == NULL, "untouched");
		}
		failing_malloc_at = n_allocations[a] + 1;
		ret = build(mem, (enum lb_algorithm)a, 7, 1, backends, 2, &picker);
		EXPECT(ret == 0 && picker != NULL, "algorithm %d makes no more: %d", a, ret);
		failing_malloc_at = 0;
	}
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_algorithms_have_names),
		cmocka_unit_test(test_sizes_that_an_algorithm_takes),
		cmocka_unit_test(test_next_prime),
		cmocka_unit_test(test_what_build_refuses),
		cmocka_unit_test(test_a_slack_is_of_stable_alone),
		cmocka_unit_test(test_an_overlay_gives_away_what_the_dead_have),
		cmocka_unit_test(test_too_many_is_refused),
		cmocka_unit_test(test_weight_0_is_not_counted_against_slots),
		cmocka_unit_test(test_weight_0_changes_nothing),
		cmocka_unit_test(test_picks_spread_in_proportion),
		cmocka_unit_test(test_only_the_name_and_the_seed_are_hashed),
		cmocka_unit_test(test_canonical_order_goes_by_hash_and_leaves_weight_0_out),
		cmocka_unit_test(test_each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
