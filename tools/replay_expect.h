/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_EXPECT_H
#define REPLAY_EXPECT_H

/**
 * @file
 * Expectations: what must hold after a replay, for people's own tests.
 */

#include "cfg_node.h"
#include "replay_report.h"

struct replay_expect; /* opaque */

/**
 * Read an expectations file.
 *
 * @retval 0        Success.
 * @retval -EINVAL  Something is wrong with it; messages was told all of it.
 * @retval -errno   It could not be read or memory is short; messages was told.
 */
int replay_expect_read(const char *path, FILE *messages,
	struct replay_expect **out) lb_must_check;

/** As replay_expect_read(), from memory; name stands in messages. */
int replay_expect_parse(const char *text, size_t n_bytes, const char *name, FILE *messages,
	struct replay_expect **out) lb_must_check;

/**
 * Hold a packet's decision against the expectations that name the packet. Call it for each
 * packet, in order; costs nothing where none names it.
 */
void replay_expect_packet(struct replay_expect *expect, const struct replay_decision *decision);

/**
 * Hold the report against the rest, and write what did not hold, FILE:LINE: each, in file
 * order, with what was found.
 *
 * @return how many did not hold.
 */
size_t replay_expect_finish(struct replay_expect *expect, const struct replay_report *report,
	FILE *messages);

void replay_expect_free(struct replay_expect *expect);

#endif
