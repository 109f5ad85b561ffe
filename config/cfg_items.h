/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_ITEMS_H
#define CFG_ITEMS_H

/**
 * @file
 * Where in a text each item of its services begins, and which of them a change touches; only
 * cfg_reader.c and cfg_items.c include this.
 *
 * An item reaches from the begin of the line of its dash to that of the next item, the last
 * one to the line of the key after services, or to the end of the text.
 */

#include "cfg_node.h"

struct cfg_items {
	size_t *starts; /**< n + 1 offsets: the last is where the last item ends */
	size_t n;
	size_t column; /**< of the dashes, from 0 */
};

/** Items [first, end) of an old text, and the bytes of the new one to be read for them. */
struct cfg_change {
	size_t first;
	size_t end;
	size_t start_bytes; /**< offset of the same in both texts */
	size_t n_bytes;     /**< of the new text */
};

/**
 * Find the items of a text that was read without a message.
 *
 * @param root      Its tree.
 * @param[out] out  To be given to cfg_items_fini(); untouched on error.
 * @retval 0         Success.
 * @retval -ENOTSUP  They do not stand as a block list of which each item begins on the line of
 *                   its dash, under a key in column 1, or the text has line ends other than
 *                   '\n', or a byte order mark.
 * @retval -ENOMEM   No memory.
 */
int cfg_items_find(const char *text, size_t n_bytes, const struct cfg_node *root,
	struct cfg_items *out) lb_must_check;

void cfg_items_fini(struct cfg_items *items);

/**
 * What has to be read anew where a text became another.
 *
 * @param items     Of the old text.
 * @param[out] out  Undefined on false.
 * @return whether all that differs lies in whole items: each of the two texts is the same up to
 *         and with the dash of item `first`, and from the line of item `end` (or what follows
 *         the last) on.
 */
bool cfg_items_compare(const struct cfg_items *items, const char *old, size_t n_old,
	const char *text, size_t n_text, struct cfg_change *out);

#endif
