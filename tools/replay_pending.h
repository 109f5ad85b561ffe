/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_PENDING_H
#define REPLAY_PENDING_H

/**
 * @file
 * Decisions put in the order of their packets: one that is decided late, a fragment that waited
 * for its first, holds up those of the packets after it.
 *
 * One thread's own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lb_compiler.h"

/** What became of a packet, in 24 bytes: as many as come within a second may be pending. */
struct replay_outcome {
	uint32_t service; /**< the control's number, or UINT32_MAX */
	uint32_t backend; /**< its id, or UINT32_MAX */
	uint32_t slot;    /**< or UINT32_MAX */
	uint8_t verdict;  /**< enum lb_verdict */
	uint8_t flow;     /**< enum dp_flow */
	bool is_settled;  /**< this module's */
};

struct replay_pending; /* opaque */

/** @retval -ENOMEM  No memory. */
int replay_pending_create(struct replay_pending **out) lb_must_check;

/** NULL is allowed. */
void replay_pending_destroy(struct replay_pending *pending);

/**
 * A packet is decided.
 *
 * @param number     From 0; each once, none of them far ahead of the others.
 * @retval -ENOMEM   No memory.
 */
int replay_pending_settle(struct replay_pending *pending, uint64_t number,
	const struct replay_outcome *outcome) lb_must_check;

/**
 * The next packet in order, if it is decided.
 *
 * @param[out] number, outcome  Untouched where the result is false.
 */
bool replay_pending_next(struct replay_pending *pending, uint64_t *number,
	struct replay_outcome *outcome) lb_must_check;

#endif
