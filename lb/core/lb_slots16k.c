/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_slots16k.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "lb_limits.h"

#define POLYNOMIAL 0x1021u

static_assert((uint64_t)LB_SLOTS16K_NODES_MAX * LB_WEIGHT_MAX <= UINT32_MAX,
	"the sum of weights takes 32 bits");

uint16_t
lb_slots16k_crc16(const void *bytes, size_t n_bytes)
{
	const uint8_t *at = bytes;
	uint32_t crc = 0;

	for (size_t i = 0; i < n_bytes; i++) {
		crc ^= (uint32_t)at[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000) != 0 ? crc << 1 ^ POLYNOMIAL : crc << 1;
		crc &= 0xffff;
	}
	return (uint16_t)crc;
}

uint32_t
lb_slots16k_slot(const void *key, size_t n_bytes)
{
	const uint8_t *bytes = key;
	size_t open = 0, close;

	while (open < n_bytes && bytes[open] != '{')
		open++;
	close = open + 1;
	while (close < n_bytes && bytes[close] != '}')
		close++;

	if (close < n_bytes && close > open + 1)
		return lb_slots16k_crc16(bytes + open + 1, close - open - 1) % LB_SLOTS16K;
	return lb_slots16k_crc16(bytes, n_bytes) % LB_SLOTS16K;
}

static int
sum_weights(const struct lb_slots16k_node *nodes, size_t n, uint32_t *out)
{
	uint32_t sum = 0;

	if (n > LB_SLOTS16K_NODES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (nodes[i].weight > LB_WEIGHT_MAX)
			return -EINVAL;
		sum += nodes[i].weight;
	}
	if (sum == 0)
		return -ENOENT;

	*out = sum;
	return 0;
}

int
lb_slots16k_assign(struct lb_slots16k_node *nodes, size_t n, uint16_t owners[LB_SLOTS16K])
{
	uint64_t so_far = 0;
	uint32_t slot = 0, sum;
	const int ret = sum_weights(nodes, n, &sum);

	if (ret != 0)
		return ret;

	for (size_t i = 0; i < n; i++) {
		uint32_t end;

		so_far += nodes[i].weight;
		end = (uint32_t)(((uint64_t)2 * LB_SLOTS16K * so_far + sum) /
				 (2 * (uint64_t)sum));
		nodes[i].n_slots = end - slot;
		while (slot < end)
			owners[slot++] = (uint16_t)i;
	}
	return 0;
}

/** Who gets a slot for a rest: first who has it already, then the larger rest. */
static int
compare_claims(const void *a, const void *b)
{
	const struct lb_slots16k_claim *x = a, *y = b;

	if (x->has_more != y->has_more)
		return x->has_more > y->has_more ? -1 : 1;
	if (x->rest != y->rest)
		return x->rest > y->rest ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

/** Turn n_slots from what the nodes have to what they are to have. */
static void
set_quotas(struct lb_slots16k_node *nodes, size_t n, uint32_t sum,
	struct lb_slots16k_claim *claims)
{
	uint32_t n_left = LB_SLOTS16K, n_claims = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t share = (uint64_t)LB_SLOTS16K * nodes[i].weight;
		const uint32_t quota = (uint32_t)(share / sum);
		const uint32_t rest = (uint32_t)(share % sum);

		if (rest != 0) {
			claims[n_claims++] = (struct lb_slots16k_claim){
				.rest = rest,
				.node = (uint16_t)i,
				.has_more = nodes[i].n_slots > quota,
			};
		}
		nodes[i].n_slots = quota;
		n_left -= quota;
	}

	/* The rests, each below one slot, add up to n_left: there are more of them. */
	qsort(claims, n_claims, sizeof(*claims), compare_claims);
	for (uint32_t i = 0; i < n_left; i++)
		nodes[claims[i].node].n_slots++;
}

static void
count_slots(struct lb_slots16k_node *nodes, size_t n, const uint16_t *owners)
{
	for (size_t i = 0; i < n; i++)
		nodes[i].n_slots = 0;
	for (uint32_t slot = 0; slot < LB_SLOTS16K; slot++) {
		if (owners[slot] < n)
			nodes[owners[slot]].n_slots++;
	}
}

/** Bring owners to the numbers that the nodes say. */
static void
move_slots(const struct lb_slots16k_node *nodes, size_t n, struct lb_slots16k_claim *claims,
	uint16_t *owners)
{
	size_t taker = 0;

	for (size_t i = 0; i < n; i++)
		claims[i].n_open = nodes[i].n_slots;
	for (uint32_t slot = 0; slot < LB_SLOTS16K; slot++) {
		if (owners[slot] < n && claims[owners[slot]].n_open > 0)
			claims[owners[slot]].n_open--;
		else
			owners[slot] = LB_SLOTS16K_NONE;
	}
	for (uint32_t slot = 0; slot < LB_SLOTS16K; slot++) {
		if (owners[slot] != LB_SLOTS16K_NONE)
			continue;
		while (claims[taker].n_open == 0)
			taker++;
		owners[slot] = (uint16_t)taker;
		claims[taker].n_open--;
	}
}

int
lb_slots16k_rebalance(struct lb_slots16k_node *nodes, size_t n,
	struct lb_slots16k_claim *claims, uint16_t owners[LB_SLOTS16K])
{
	uint32_t sum;
	const int ret = sum_weights(nodes, n, &sum);

	if (ret != 0)
		return ret;

	count_slots(nodes, n, owners);
	set_quotas(nodes, n, sum, claims);
	move_slots(nodes, n, claims, owners);
	return 0;
}
