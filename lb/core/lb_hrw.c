/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_hrw.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lb_mul.h"

/** A backend of a group. */
struct member {
	uint64_t h_1;
	uint32_t weight;
	uint32_t position; /* in canonical order */
};

/** Who leads for a slot. */
struct leader {
	uint64_t u;
	uint64_t score;
	const struct member *member;
};

void
lb_hrw_log2_init(struct lb_hrw_log2 *log2)
{
	for (uint64_t i = 0; i < 256; i++) {
		uint64_t x = (256 + i) << 55; /* 1 + i / 256, 63 bits after the point */
		uint64_t digits = 0;

		/*
		 * Squaring doubles the logarithm, so its next binary digit is whether
		 * the square is 2 or more. Dropping the bits below 2^-62 costs less
		 * than 2^-60 of the logarithm in all: no digit here is that close.
		 */
		for (int digit = 0; digit < LB_HRW_SCORE_BITS; digit++) {
			const uint64_t square = lb_mul_high(x, x); /* 62 bits after it */
			const uint64_t is_two = square >> 63;

			x = is_two != 0 ? square : 2 * square;
			digits = digits << 1 | is_two;
		}
		log2->at[i] = digits;
	}
	log2->at[256] = UINT64_C(1) << LB_HRW_SCORE_BITS;
}

uint64_t
lb_hrw_score(const struct lb_hrw_log2 *log2, uint64_t u)
{
	uint64_t e, m, i;

	if (u == 0)
		return UINT64_C(64) << LB_HRW_SCORE_BITS;

	e = 63 - (uint64_t)__builtin_clzll(u);
	m = (u << (63 - e) & INT64_MAX) >> 24;
	i = m >> 31;
	return ((64 - e) << LB_HRW_SCORE_BITS) - log2->at[i] -
	       ((log2->at[i + 1] - log2->at[i]) * (m & 0x7fffffff) >> 31);
}

static int
compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->position < y->position ? -1 : 1;
}

/** Whether a beats b, of another weight; so not both score and u are the same. */
static bool
is_better(const struct leader *a, const struct leader *b)
{
	const uint64_t a_scaled = a->score * b->member->weight;
	const uint64_t b_scaled = b->score * a->member->weight;

	if (a_scaled != b_scaled)
		return a_scaled < b_scaled;
	return a->u > b->u;
}

/**
 * The best for a key, of one group: n members of one weight in canonical order. Theirs is the
 * largest u, without a logarithm.
 */
static struct leader
lead_group(const struct member *members, size_t n, uint64_t key)
{
	struct leader best = {.u = lb_hrw_mix(members[0].h_1, key), .member = members};

	for (size_t i = 1; i < n; i++) {
		const uint64_t u = lb_hrw_mix(members[i].h_1, key);

		if (u > best.u) {
			best.u = u;
			best.member = &members[i];
		}
	}
	return best;
}

/** The best for a key, of all groups. */
static const struct member *
lead_slot(const struct lb_hrw_log2 *log2, const struct member *members, const uint32_t *groups,
	size_t n_groups, uint64_t key)
{
	struct leader best = lead_group(members, groups[1], key);

	if (n_groups == 1)
		return best.member;

	best.score = lb_hrw_score(log2, best.u);
	for (size_t g = 1; g < n_groups; g++) {
		struct leader next =
			lead_group(members + groups[g], groups[g + 1] - groups[g], key);

		next.score = lb_hrw_score(log2, next.u);
		if (is_better(&next, &best))
			best = next;
	}
	return best.member;
}

/** Sort members by weight; groups[g] becomes the first of group g. Returns how many groups. */
static size_t
group_members(struct member *members, size_t n, uint32_t *groups)
{
	size_t n_groups = 0;

	qsort(members, n, sizeof(*members), compare_members);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || members[i].weight != members[i - 1].weight)
			groups[n_groups++] = (uint32_t)i;
	}
	groups[n_groups] = (uint32_t)n;
	return n_groups;
}

int
lb_hrw_fill(const struct lb_hrw_backend *backends, size_t n, uint32_t n_slots, uint16_t *slots)
{
	struct lb_hrw_log2 log2;
	struct member *members;
	uint32_t *groups;
	size_t n_groups;

	members = malloc(n * sizeof(*members));
	if (members == NULL)
		return -ENOMEM;
	groups = malloc((n + 1) * sizeof(*groups));
	if (groups == NULL) {
		free(members);
		return -ENOMEM;
	}

	for (size_t b = 0; b < n; b++) {
		members[b] = (struct member){
			.h_1 = backends[b].h_1,
			.weight = backends[b].weight,
			.position = (uint32_t)b,
		};
	}
	n_groups = group_members(members, n, groups);
	lb_hrw_log2_init(&log2);
	for (uint32_t slot = 0; slot < n_slots; slot++) {
		const struct member *best =
			lead_slot(&log2, members, groups, n_groups, lb_hrw_key(slot));

		slots[slot] = (uint16_t)backends[best->position].index;
	}

	free(groups);
	free(members);
	return 0;
}
