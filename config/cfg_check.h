/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_CHECK_H
#define CFG_CHECK_H

/**
 * @file
 * What is wrong with a model as a whole: duplicates, capacity, families.
 */

#include "cfg_node.h"

/**
 * Tell errors of everything wrong between the parts of a model: duplicate names, more ports
 * than LB_PORTS_MAX, a port's name that its twin cannot have, two ports with one device, two
 * services with the same (address, protocol, port), more backends than slots, a table size that
 * is not prime where it must be, a ring with too many points, a backend of a family that no
 * port can send from or of an address that is the balancer's own, server ids that QUIC
 * configurations do not fit.
 *
 * @return whether nothing is wrong. Warnings (all weights 0, a share of so few slots
 *         that there may be none, a tunnel that leads back) do not count.
 */
bool cfg_check_model(const struct cfg_model *model, struct cfg_errors *errors);

/**
 * Tell errors where a model, which may be right for others, is none that shuntd could start
 * from: it has no ports, and nothing was told yet of why.
 */
void cfg_check_daemon(const struct cfg_dataplane *dataplane, struct cfg_errors *errors);

/**
 * Whether one backend may stand in a service of this model; errors is told otherwise.
 * For changes of a running set. The name's uniqueness is not looked at.
 */
bool cfg_check_backend(const struct cfg_model *model, const struct cfg_service *service,
	const struct cfg_backend *backend, struct cfg_errors *errors);

/**
 * Whether a table with all backends of a service, whatever their states, can be built: a ring
 * has at most LB_RING_POINTS_MAX points, and rendezvous computes LB_HRW_SCORES_MAX scores.
 * errors is told otherwise, at pos. For changes of a running set, after the change.
 */
bool cfg_check_room(const struct cfg_service *service, struct cfg_pos pos,
	struct cfg_errors *errors);

#endif
