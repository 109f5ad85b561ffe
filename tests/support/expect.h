/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPECT_H
#define EXPECT_H

/**
 * @file
 * cmocka with one addition: EXPECT(), which says in a sentence what did not hold.
 */

/* cmocka.h wants these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** Fail the running test with a printf-formatted message unless condition holds. */
#define EXPECT(condition, ...)                                                                 \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			print_error(__VA_ARGS__);                                              \
			print_error("\n");                                                     \
			fail_msg("%s", #condition);                                            \
		}                                                                              \
	} while (0)

#endif
