/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SMALL_PLANE_H
#define SMALL_PLANE_H

/**
 * @file
 * A plane of one service with two backends, and buffers of which each has to come back: for
 * tests of what workers do to single packets. Its ports, if any, are devices that lead nowhere.
 *
 * What does not succeed fails the running test.
 */

#include <stddef.h>
#include <stdint.h>

#include "cfg_model.h"
#include "ctl_apply.h"
#include "dp_worker.h"

enum {
	SMALL_PLANE_BACKENDS = 2, /**< by id 0 and 1 */
	SMALL_PLANE_PORTS_MAX = 5,
};

struct small_plane_conf {
	struct dp_conf dp; /**< its flows are filled in */
	uint64_t now_ns;   /**< when it is made */
	unsigned int n_ports;
	unsigned int n_buffers;
	uint16_t buffer_bytes;
};

struct small_plane {
	struct cfg_model model;
	struct ctl_apply *apply;
	struct dp *dp;
	struct rte_mempool *pool;
	unsigned int n_buffers;
};

/**
 * Start the EAL, once in a program, with devices for the ports of all planes to come. They have
 * one queue of either kind: a second worker leaves what it sends to the first.
 *
 * @param n_ports   1..SMALL_PLANE_PORTS_MAX.
 * @param received  What the last one receives, a capture's path; NULL: nothing.
 * @return as of dp_start()
 */
int small_plane_start(const char *program, unsigned int n_workers, unsigned int n_ports,
	const char *received) lb_must_check;

/**
 * Make a plane, without a snapshot. The EAL has been started, by small_plane_start() where
 * there are to be ports: closed, a device is gone, so each plane takes the next ones.
 */
void small_plane_open(struct small_plane *plane, const struct small_plane_conf *conf);

/**
 * Put its configuration in force.
 *
 * @param paths  To its backends; NULL: both by the first port's fixed next hop.
 */
void small_plane_publish(struct small_plane *plane, const struct ctl_path *paths);

/** Nothing runs any more. */
void small_plane_close(struct small_plane *plane);

/** A buffer with a frame that has come by the first port; the caller's. */
struct rte_mbuf *small_plane_make(const struct small_plane *plane, const uint8_t *frame,
	size_t n);

/** Its verdicts' counters are those wanted, every one. @param what  For the message. */
void small_plane_expect_verdicts(const struct small_plane *plane, const char *what,
	const uint64_t want[LB_N_VERDICTS]);

#endif
