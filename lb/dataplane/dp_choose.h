/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_CHOOSE_H
#define DP_CHOOSE_H

/**
 * @file
 * Which backend a packet goes to: that of its flow, of its connection, or of its service's
 * table. Stages of dp_forward.c, each for all packets of a burst.
 */

#include "dp_stages.h"

/**
 * The place of each packet's flow. No bucket is read before all are asked for, so that their
 * loads overlap.
 *
 * @return whether any packet has a flow.
 */
bool dp_choose_hash(struct dp_stages *s);

/**
 * Decide on the packets from the given one on. All before it are decided, and the table has
 * been told the time.
 */
void dp_choose(struct dp_stages *s, uint16_t from);

#endif
