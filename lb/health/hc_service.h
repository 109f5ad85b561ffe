/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_SERVICE_H
#define HC_SERVICE_H

/**
 * @file
 * From the health of its backends to whom of them a service uses.
 *
 * A function of its arguments alone; any thread.
 */

#include <stddef.h>

#include "hc_state.h"

/** Where no backend passes. */
enum hc_all_down {
	HC_KEEP, /**< as if all were up: rather a server that may be there than none */
	HC_DROP, /**< none is used */
};

struct hc_member {
	enum hc_use use;
	uint32_t share;   /**< 1..HC_SHARE_WHOLE */
	bool takes_flows; /**< by its administrative state and its weight; the others do not
			     count */
	bool is_awaited;  /**< used, as all are at a start, before anything is known of it */
};

struct hc_service {
	size_t n_members; /**< that count */
	size_t n_healthy; /**< of these, that are used for what is known of them: those with
			     HC_USE_YES, or where there is none, with HC_USE_LAST */
	bool is_ready;    /**< as many as are needed are healthy, and one at least */
	bool is_all_down; /**< some count, and none of them passes */
};

/**
 * @param n_needed     Healthy backends that it takes to be ready.
 * @param[out] shares  n of them: 0..HC_SHARE_WHOLE. 0 is whoever is not used; of those that do
 *                     not count it is HC_SHARE_WHOLE, as health has no say in them.
 */
struct hc_service hc_service_judge(const struct hc_member *members, size_t n,
	enum hc_all_down all_down, size_t n_needed, uint8_t *shares);

#endif
