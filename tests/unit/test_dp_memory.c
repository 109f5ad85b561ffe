/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_memory.h"

#include <stdint.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"

#define MIB ((size_t)1 << 20)

static void
test_it_is_zeroed_aligned_and_there_to_the_last_byte(void **state)
{
	static const struct row {
		const char *name;
		size_t n_bytes;
		size_t aligned_to;
	} rows[] = {
		{"nothing", 0, LB_CACHE_LINE},
		{"a byte", 1, LB_CACHE_LINE},
		{"less than half a huge page", MIB - 1, LB_CACHE_LINE},
		{"half a huge page", MIB, 2 * MIB},
		{"a huge page", 2 * MIB, 2 * MIB},
		{"a huge page and a byte", 2 * MIB + 1, 2 * MIB},
		{"many", 9 * MIB + 64, 2 * MIB},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const size_t n = rows[i].n_bytes;
		uint8_t *mem = dp_memory_zalloc(n);
		size_t n_set = 0;

		assert_non_null(mem);
		EXPECT((uintptr_t)mem % rows[i].aligned_to == 0, "%s: %p", rows[i].name,
			(void *)mem);
		for (size_t k = 0; k < n; k++)
			n_set += mem[k] != 0;
		EXPECT(n_set == 0, "%s: %zu bytes are not zero", rows[i].name, n_set);
		memset(mem, 0xff, n);
		dp_memory_free(mem, n);
	}
	dp_memory_free(NULL, 0);
}

static void
test_what_no_machine_has_is_none(void **state)
{
	(void)state;
	assert_null(dp_memory_zalloc(SIZE_MAX / 4));
	assert_null(dp_memory_zalloc(SIZE_MAX - 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_zeroed_aligned_and_there_to_the_last_byte),
		cmocka_unit_test(test_what_no_machine_has_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
