/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_PLOT_H
#define REPLAY_PLOT_H

/**
 * @file
 * A replay as a picture in a folder, packets.svg: for each service the packets a second of its
 * backends over time, with a line for each event.
 */

#include "replay_timeline.h"

/** Whose backend an id is, and its name. */
struct replay_plot_backend {
	uint32_t service;    /**< number of the service, below n_services */
	const char *name;    /**< not owned */
	const char *of_name; /**< its service's; not owned */
};

/**
 * Make the folder, if it is not there, before anything is replayed.
 *
 * @retval -errno  It is not there; stderr was told.
 */
int replay_plot_prepare(const char *folder) lb_must_check;

/**
 * Write packets.svg.
 *
 * @param backends  By id; as many as the timeline has rows, at least.
 * @retval -errno   It could not be written; stderr was told.
 */
int replay_plot_write(const char *folder, const struct replay_timeline *timeline,
	const struct replay_plot_backend backends[], size_t n_services) lb_must_check;

#endif
