/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SINCE_H
#define CTL_SINCE_H

/**
 * @file
 * Since when each backend has had its state: up, drain or down, as configured. One that is gone
 * and comes back begins anew.
 *
 * Not thread-safe: the control thread's. Time is passed in: milliseconds of any clock.
 */

#include "ctl_view.h"

/** All zero knows of nobody. */
struct ctl_since {
	struct ctl_since_entry *entries; /**< by backend id */
	size_t n_entries;
	uint32_t turn; /**< of ctl_since_follow(), from 1 */
};

struct ctl_since_entry {
	uint64_t since_ms;
	uint32_t turn; /**< the last that it was there in; 0: none */
	enum cfg_state state;
};

/** A view comes into force. Without memory, of backends that are new it is not known. */
void ctl_since_follow(struct ctl_since *since, const struct ctl_view *view, uint64_t now_ms);

/** @param id  Of a backend of the view that was followed last. @return whether it is known. */
bool ctl_since_read(const struct ctl_since *since, uint32_t id, uint64_t *since_ms);

void ctl_since_fini(struct ctl_since *since);

#endif
