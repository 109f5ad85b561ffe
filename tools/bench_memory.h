/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

/**
 * @file
 * Memory that the packet path reads and writes, by what it is for.
 */

#include "bench_options.h"
#include "dp.h"

struct bench_memory {
	struct dp_footprint each;
	double total_bytes; /**< of all there are in the options' largest case */
};

struct bench_memory bench_memory_count(const struct bench_options *options);

#endif
