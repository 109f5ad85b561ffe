/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Prints what a look-up costs, with 1 service and with 10,000, addresses in random order, as
 * they come in packets. Asserts nothing: numbers depend on the machine.
 */

#include "lb_service_table.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lb_compiler.h"
#include "xrand.h"

#define N_SERVICES_MAX 10000u
#define N_LOOKUPS      (1u << 16)
#define N_ROUNDS       100u

static uint64_t
clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct lb_service_match
nth_match(uint32_t i, bool is_v4)
{
	struct lb_service_match match = {
		.prefix = {.addr = {{0x20, 0x01, 0x0d, 0xb8}}, .n_bits = 128},
		.proto = IPPROTO_TCP,
		.port = 443,
		.service = i,
	};

	if (is_v4)
		match.prefix.addr = lb_addr_from_v4((const uint8_t[4]){10, 0, 0, 0});
	match.prefix.addr.bytes[14] = (uint8_t)(i >> 8);
	match.prefix.addr.bytes[15] = (uint8_t)i;
	return match;
}

static int
measure(uint32_t n, bool is_v4, struct lb_service_match *matches, struct lb_addr *dsts)
{
	void *mem = aligned_alloc(LB_CACHE_LINE, lb_service_table_bytes(n));
	const struct lb_service_table *table;
	uint64_t seed = 1;
	uint64_t n_found = 0;
	uint64_t begin;
	int ret = -1;

	if (mem == NULL)
		return -1;
	for (uint32_t i = 0; i < n; i++)
		matches[i] = nth_match(i, is_v4);
	for (uint32_t i = 0; i < N_LOOKUPS; i++)
		dsts[i] = matches[xrand_below(&seed, n)].prefix.addr;
	if (lb_service_table_build(mem, matches, n, &table) != 0)
		goto free_mem;

	begin = clock_ns();
	for (uint32_t round = 0; round < N_ROUNDS; round++)
		for (uint32_t i = 0; i < N_LOOKUPS; i++)
			n_found +=
				lb_service_find(table, &dsts[i], IPPROTO_TCP, 443) < n ? 1 : 0;
	(void)printf("IPv%d, %5u services: %5.1f ns a look-up\n", is_v4 ? 4 : 6, n,
		(double)(clock_ns() - begin) / (N_ROUNDS * (double)N_LOOKUPS));
	ret = n_found == (uint64_t)N_ROUNDS * N_LOOKUPS ? 0 : -1;

free_mem:
	free(mem);
	return ret;
}

int
main(void)
{
	struct lb_service_match *matches = calloc(N_SERVICES_MAX, sizeof(*matches));
	struct lb_addr *dsts = calloc(N_LOOKUPS, sizeof(*dsts));
	int status = EXIT_FAILURE;

	if (matches != NULL && dsts != NULL && measure(1, true, matches, dsts) == 0 &&
		measure(N_SERVICES_MAX, true, matches, dsts) == 0 &&
		measure(1, false, matches, dsts) == 0 &&
		measure(N_SERVICES_MAX, false, matches, dsts) == 0)
		status = EXIT_SUCCESS;
	free(dsts);
	free(matches);
	return status;
}
