/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_READY_H
#define CTL_READY_H

/**
 * @file
 * Whether a service is ready: whether it may be announced. Here this is decided, and nowhere
 * else.
 *
 * Pure: on any thread.
 */

#include "cfg_model.h"
#include "dp.h"

enum ctl_ready {
	CTL_READY,
	CTL_READY_NO_BACKENDS, /**< none is configured */
	CTL_READY_NONE_UP,     /**< none of them takes new flows */
	CTL_READY_UNHEALTHY,   /**< too few of those that do pass their checks */
	CTL_READY_UNREACHED,   /**< none of those that do has a next hop */
	CTL_READY_PORT_DOWN,   /**< none of those that have one has it by a port that is up */
	CTL_N_READY
};

/** Why a service is not ready, in words that follow "not announced: "; "" where it is. */
extern const char *const ctl_ready_words[CTL_N_READY];

/**
 * @param service  Of the model in force: its tables are with the workers.
 * @param confs    How its backends are reached, in the same order.
 * @param n_unhealthy  Of its backends that are up with a weight above 0, those that are not
 *                     healthy, see hc_service.h.
 * @param ports_down   A bit for each port, by its place: what leaves by it is lost.
 * @return CTL_READY where at least one of its backends is up with a weight above 0 and has a
 *         next hop by a port that is up, and one at least and as many as min_healthy pass their
 *         checks.
 */
enum ctl_ready ctl_ready_look(const struct cfg_service *service,
	const struct dp_backend_conf confs[], size_t n_unhealthy, uint32_t ports_down);

#endif
