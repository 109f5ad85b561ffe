/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_OVERLAY_H
#define LB_OVERLAY_H

/**
 * @file
 * Health overlay: give the slots of backends that are dead, or take no new flows, to the others
 * while the configured table stays as it is, whatever algorithm filled it.
 *
 * Every slot has a ranking of all slots, and goes to the backend of the first one in it that
 * is not dead. With M slots, and key and mix as in lb_hrw.h, the ranking of a dead slot s is
 *
 *     floor(lb_hrw_mix(k, lb_hrw_key(s)) * M / 2^64), k = 0..LB_OVERLAY_DRAWS - 1
 *     then s + 1, s + 2, ..., M - 1, 0, 1, ...
 *
 * So the result depends on the configured table and on who is dead, never on history:
 *
 * - only slots of dead backends differ from the configured table;
 * - when one more dies, only the slots that it then had move; when it returns, only slots to
 * it;
 * - with nobody dead the result is the configured table.
 *
 * A live backend is drawn in proportion to the slots it is configured to have, and so to its
 * weight as the table keeps it: what it is given spreads about that as independent draws do.
 * Neighbouring slots share only what no draw decides, less than 2 % of the slots while a
 * sixteenth of the table is alive.
 *
 * A backend may also keep a share of its slots, in sixteenths, and then the others are as a
 * dead one's: those slots s whose lb_hrw_mix(LB_OVERLAY_SHARE_KEY, lb_hrw_key(s)) >> 60 is not
 * below its share. So with each sixteenth more only slots to it move. Where nobody has a slot
 * left, who has any share has them all.
 *
 * A function of its arguments alone; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lb_compiler.h"

/** Slots drawn before the neighbours are asked. It bounds the time where few are alive. */
#define LB_OVERLAY_DRAWS 64u

/** A whole share. */
#define LB_OVERLAY_WHOLE 16u

/** No draw has it. */
#define LB_OVERLAY_SHARE_KEY UINT64_MAX

/**
 * Fill slots[n_slots]. The time is in proportion to n_slots, and for each slot of a dead
 * backend to n_slots / live slots, at most LB_OVERLAY_DRAWS.
 *
 * @param configured  The configured table: n_slots indices of backends.
 * @param n_slots     1..LB_SLOTS_MAX.
 * @param is_dead     By index, for each that configured holds.
 * @param[out] slots  Not overlapping configured; untouched on error.
 * @retval 0          Success.
 * @retval -ENOENT    All slots are of dead backends.
 */
int lb_overlay_fill(const uint16_t *configured, uint32_t n_slots, const bool *is_dead,
	uint16_t *slots) lb_must_check;

/** The same by shares, 0..LB_OVERLAY_WHOLE of each. @retval -ENOENT  All are 0. */
int lb_overlay_fill_shares(const uint16_t *configured, uint32_t n_slots, const uint8_t *shares,
	uint16_t *slots) lb_must_check;

#endif
