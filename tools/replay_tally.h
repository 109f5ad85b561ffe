/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_TALLY_H
#define REPLAY_TALLY_H

/**
 * @file
 * Adds decisions up: per service, per backend and per phase, and makes the report of them.
 */

#include "ctl_apply.h"
#include "replay_report.h"

struct replay_tally; /* opaque */

/** @retval -ENOMEM  No memory. */
int replay_tally_create(const struct ctl_apply *apply, struct replay_tally **out) lb_must_check;

void replay_tally_destroy(struct replay_tally *tally);

/**
 * A snapshot of ctl_apply has come into force: a phase begins.
 *
 * A phase in which no packet came is continued under both titles.
 *
 * @param model    What the snapshot was built from.
 * @param title    For people; copied.
 * @retval -ENOMEM No memory.
 */
int replay_tally_phase(struct replay_tally *tally, const struct cfg_model *model,
	const char *title, uint64_t first_packet) lb_must_check;

/** Add one decision, of the phase that is. */
void replay_tally_add(struct replay_tally *tally, const struct dp_decision *decision);

/**
 * Make the report, all but its verdicts and times.
 *
 * @param model     As it is at the end: states, sizes.
 * @param[out] out  Points into the tally and the model; good while they are.
 * @retval -ENOMEM  No memory.
 */
int replay_tally_report(struct replay_tally *tally, const struct cfg_model *model,
	struct replay_report *out) lb_must_check;

#endif
