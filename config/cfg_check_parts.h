/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_CHECK_PARTS_H
#define CFG_CHECK_PARTS_H

/**
 * @file
 * Parts of cfg_check_model() and cfg_check_backend(); only cfg_check*.c include this. Each
 * tells errors of what is wrong, and passes over what CFG_BAD_* says was told already.
 */

#include "cfg_node.h"

/** Ports: their names and twins' names, devices and MTUs, and how many they are. */
void cfg_check_ports(const struct cfg_dataplane *dataplane, struct cfg_errors *errors);

/** Whether one of a port's addresses is of IPv4, or of IPv6. */
bool cfg_check_has_family(const struct cfg_port *port, bool is_v4);

/** Tell of a name that another of its kind has, which `what` says; first: where, if known. */
void cfg_check_tell_duplicate(struct cfg_errors *errors, const char *what, const char *name,
	struct cfg_pos pos, struct cfg_pos first);

/** The service's affinity, its QUIC configurations, and its backends' server ids. */
void cfg_check_quic(const struct cfg_service *service, struct cfg_errors *errors);

/** What is between a service's `health`, its port and its backends. */
void cfg_check_health(const struct cfg_service *service, struct cfg_errors *errors);

/** That checks through the tunnel have an address to ask, one to ask from, and a way back. */
void cfg_check_probes(const struct cfg_model *model, struct cfg_errors *errors);

/**
 * Warnings of weights that a table cannot keep: all 0, a share of so few slots that there may
 * be none, points of a ring that are too few to be in proportion.
 */
void cfg_check_shares(const struct cfg_service *service, struct cfg_errors *errors);

/** Points on a ring, as lb_ring_points() counts them; none of the weight 0. */
uint32_t cfg_check_points(uint32_t weight);

/** The server ids of one backend that is to come to a service. */
void cfg_check_quic_backend(const struct cfg_service *service,
	const struct cfg_backend *backend, struct cfg_errors *errors);

/**
 * That no backend has an address of the balancer's own; and warnings of those that a tunnel
 * leads to and that a service covers, as their packets come back to a balancer, and of services
 * that have, or cover, an address of the balancer's own.
 */
void cfg_check_addresses(const struct cfg_model *model, struct cfg_errors *errors);

/** The same of one backend, but for the warning. */
void cfg_check_own_address(const struct cfg_dataplane *dataplane,
	const struct cfg_backend *backend, struct cfg_errors *errors);

/**
 * A warning of services whose port is that of tunnels which they refuse; those that have any
 * port do so by custom, and are not told of.
 */
void cfg_check_tunnels(const struct cfg_model *model, struct cfg_errors *errors);

/** What an interface's name is to be where this is none; NULL: it may be one. */
const char *cfg_find_interface_flaw(const char *name);

/** Whether the kernel has a TAP device of the port's name. */
bool cfg_has_twin(const struct cfg_dataplane *dataplane, const struct cfg_port *port);

/** What is announced, and the interface for it. */
void cfg_check_announce(const struct cfg_model *model, struct cfg_errors *errors);

#endif
