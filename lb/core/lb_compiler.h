/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_COMPILER_H
#define LB_COMPILER_H

/**
 * @file
 * The few compiler features that core relies on, under one name each.
 */

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/** The caller must look at the result: it may be an error. */
#define lb_must_check __attribute__((warn_unused_result))

/**
 * A function of a loop that every packet goes through. With callers enough the compiler would
 * leave it out of line, and what is constant in a caller would not be: up to 1.4 times the
 * instructions of a packet.
 */
#define lb_always_inline static inline __attribute__((always_inline))

/** Bytes in a cache line of every machine Shunt runs on. */
#define LB_CACHE_LINE 64

/** Elements of an array (never of a pointer). */
#define LB_N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

#endif
