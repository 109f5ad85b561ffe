/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_overlay.h"

#include <errno.h>

#include "lb_hrw.h"
#include "lb_mul.h"

/** A configured table, and whose slots stay: by is_dead, or where that is NULL by shares. */
struct subject {
	const uint16_t *configured;
	uint32_t n_slots;
	const bool *is_dead;
	const uint8_t *shares;
	uint32_t part; /**< of a share that is not whole: sixteenths, or all of it */
};

/** Whether a slot stays with its backend. */
static inline bool
is_live(const struct subject *subject, uint32_t slot)
{
	const uint16_t backend = subject->configured[slot];
	uint32_t share;

	if (subject->is_dead != NULL)
		return !subject->is_dead[backend];
	share = subject->shares[backend] * subject->part;
	return share >= LB_OVERLAY_WHOLE ||
	       (share > 0 && lb_hrw_mix(LB_OVERLAY_SHARE_KEY, lb_hrw_key(slot)) >> 60 < share);
}

/** The backend of the first live slot that is drawn, or what no draw decides. */
static uint16_t
draw_backend(const struct subject *subject, uint32_t slot, uint16_t undecided)
{
	const uint64_t key = lb_hrw_key(slot);

	for (uint32_t k = 0; k < LB_OVERLAY_DRAWS; k++) {
		const uint32_t at = (uint32_t)lb_mul_high(lb_hrw_mix(k, key), subject->n_slots);

		if (is_live(subject, at))
			return subject->configured[at];
	}
	return undecided;
}

static int
fill(const struct subject *subject, uint16_t *slots)
{
	uint32_t first = 0;
	uint16_t next;

	while (first < subject->n_slots && !is_live(subject, first))
		first++;
	if (first == subject->n_slots)
		return -ENOENT;

	/* Backwards, so that the next live slot's backend is at hand; the last has the first.
	 */
	next = subject->configured[first];
	for (uint32_t slot = subject->n_slots; slot-- > 0;) {
		if (!is_live(subject, slot)) {
			slots[slot] = draw_backend(subject, slot, next);
			continue;
		}
		next = subject->configured[slot];
		slots[slot] = next;
	}
	return 0;
}

int
lb_overlay_fill(const uint16_t *configured, uint32_t n_slots, const bool *is_dead,
	uint16_t *slots)
{
	const struct subject subject = {.configured = configured,
		.n_slots = n_slots,
		.is_dead = is_dead};

	return fill(&subject, slots);
}

int
lb_overlay_fill_shares(const uint16_t *configured, uint32_t n_slots, const uint8_t *shares,
	uint16_t *slots)
{
	struct subject subject = {.configured = configured,
		.n_slots = n_slots,
		.shares = shares,
		.part = 1};
	const int ret = fill(&subject, slots);

	if (ret != -ENOENT)
		return ret;
	subject.part = LB_OVERLAY_WHOLE;
	return fill(&subject, slots);
}
