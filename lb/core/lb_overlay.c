/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_overlay.h"

#include <errno.h>

#include "lb_hrw.h"
#include "lb_mul.h"

/** The backend of the first live slot that is drawn, or what no draw decides. */
static uint16_t
draw_backend(const uint16_t *configured, uint32_t n_slots, const bool *is_dead, uint32_t slot,
	uint16_t undecided)
{
	const uint64_t key = lb_hrw_key(slot);

	for (uint32_t k = 0; k < LB_OVERLAY_DRAWS; k++) {
		const uint16_t backend = configured[lb_mul_high(lb_hrw_mix(k, key), n_slots)];

		if (!is_dead[backend])
			return backend;
	}
	return undecided;
}

int
lb_overlay_fill(const uint16_t *configured, uint32_t n_slots, const bool *is_dead,
	uint16_t *slots)
{
	uint32_t first = 0;
	uint16_t next;

	while (first < n_slots && is_dead[configured[first]])
		first++;
	if (first == n_slots)
		return -ENOENT;

	/* Backwards, so that the next live slot's backend is at hand; the last has the first.
	 */
	next = configured[first];
	for (uint32_t slot = n_slots; slot-- > 0;) {
		if (is_dead[configured[slot]]) {
			slots[slot] = draw_backend(configured, n_slots, is_dead, slot, next);
			continue;
		}
		next = configured[slot];
		slots[slot] = next;
	}
	return 0;
}
