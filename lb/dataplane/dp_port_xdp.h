/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_XDP_H
#define DP_PORT_XDP_H

/**
 * @file
 * Which queues of its interface a port of XDP sockets reads: each socket reads one, and the
 * device's arguments say which. What comes by another goes to the kernel.
 */

#include <stdio.h>

#include "dp.h"

/**
 * Refuse a device that leaves queues of its interface unread, unless its arguments say where to
 * begin, start_queue=: then somebody has the interface steer packets, and is told what is left.
 *
 * @param n_read    Queues that the device reads, 1 or more.
 * @retval -EINVAL  Messages was told why, with what cures it.
 */
int dp_port_check_xdp_queues(const struct dp_port_conf *conf, unsigned int n_read,
	FILE *messages) lb_must_check;

#endif
