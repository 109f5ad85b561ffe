/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

/**
 * @file
 * Memory that the packet path reads and writes, by what it is for: from the sizes of the
 * structures, and of the tables that are allocated for so many entries.
 */

#include "bench_options.h"

/** Bytes of one. */
struct bench_memory {
	double flow;    /**< an entry of a worker's flow table */
	double service; /**< without its slots */
	double backend; /**< with its counters, of every worker */
	double slot;
	double total; /**< of all there are in the options' largest case */
};

struct bench_memory bench_memory_count(const struct bench_options *options);

#endif
