/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_SLOTS16K_H
#define LB_SLOTS16K_H

/**
 * @file
 * 16,384 hash slots as Redis Cluster has them: a key's slot is fixed, and whose a slot is, is
 * written down and changed by hand.
 *
 * A slot is CRC16 (XMODEM: polynomial 0x1021, from 0, not reflected) of the key, modulo 16384.
 * Where the key has a '{', and after it a '}' with something between the first of each, that
 * part alone is hashed: keys of one hash tag have one slot.
 *
 * With a table that rebalance() leaves, each node has fewer than one slot more or less than
 * its share, 16384 * weight / sum of weights, and no way to get there moves fewer slots. Which
 * slots those are depends on the table before: two tables of one set may differ.
 *
 * Memory: 32 KiB, whatever the nodes. Time: a lookup O(bytes of the key); rebalance() n *
 * log(n) and 16384. Pure functions; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_compiler.h"

#define LB_SLOTS16K 16384u

/** Most nodes: a slot each. */
#define LB_SLOTS16K_NODES_MAX LB_SLOTS16K

/** Owner of a slot that is nobody's. */
#define LB_SLOTS16K_NONE 0xffffu

struct lb_slots16k_node {
	uint32_t weight;  /**< 0..LB_WEIGHT_MAX; 0 = gets no slot, or loses those it has */
	uint32_t n_slots; /**< of the result; set by assign() and rebalance() */
};

/** Scratch space of rebalance(), an element a node. */
struct lb_slots16k_claim {
	uint32_t rest; /* of the node's share, below one slot */
	uint16_t node;
	bool has_more;   /* than its share without the rest */
	uint32_t n_open; /* of the node at the element's position: still to be kept or taken */
};

/** CRC16 of n_bytes bytes. */
uint16_t lb_slots16k_crc16(const void *bytes, size_t n_bytes);

/** Slot of a key of n_bytes bytes. */
uint32_t lb_slots16k_slot(const void *key, size_t n_bytes);

/**
 * Assign all slots anew, in one range a node in the order of the array, as redis-cli does: the
 * borders are round(16384 * sum of the weights so far / sum of weights).
 *
 * @param nodes       n of them.
 * @param[out] owners Of each slot the position of its node; untouched on error.
 * @retval 0          Success.
 * @retval -E2BIG     More than LB_SLOTS16K_NODES_MAX nodes.
 * @retval -EINVAL    A weight out of range.
 * @retval -ENOENT    No weight above 0.
 */
int lb_slots16k_assign(struct lb_slots16k_node *nodes, size_t n,
	uint16_t owners[LB_SLOTS16K]) lb_must_check;

/**
 * Move the fewest slots after which each node has its share. A node gives away its last slots;
 * those take them, in ascending order, that have too few, in the order of the array.
 *
 * @param nodes   n of them, at the positions that owners[] says: a node that left stays, with
 *                weight 0, until this has been called.
 * @param claims  Room for n.
 * @param owners  Changed in place; n and above is nobody's. Untouched on error.
 * @return        As lb_slots16k_assign().
 */
int lb_slots16k_rebalance(struct lb_slots16k_node *nodes, size_t n,
	struct lb_slots16k_claim *claims, uint16_t owners[LB_SLOTS16K]) lb_must_check;

#endif
