/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_TUNNEL_H
#define LB_TUNNEL_H

/**
 * @file
 * Tunnels that arrive at a service, and which of them it refuses: one that is encapsulated once
 * more, at a balancer whose backend is another's service address, would grow with every turn of
 * the loop (RFC 2003, section 4.4). Those by protocol have a number of their own; those by UDP
 * are known by their destination port: GUE's 6080, VXLAN's 4789 (RFC 7348), Geneve's 6081
 * (RFC 8926), and whatever ports the balancer's own services have their tunnels on.
 *
 * Pure; callable from any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lb_encap.h"
#include "lb_service_table.h"

enum {
	LB_TUNNEL_IPIP = 1 << 0,
	LB_TUNNEL_IPV6 = 1 << 1,
	LB_TUNNEL_GRE = 1 << 2,
	LB_TUNNEL_GUE = 1 << 3,
	LB_TUNNEL_VXLAN = 1 << 4,
	LB_TUNNEL_GENEVE = 1 << 5,
	LB_TUNNELS_BY_UDP = LB_TUNNEL_GUE | LB_TUNNEL_VXLAN | LB_TUNNEL_GENEVE,
};

#define LB_GENEVE_PORT 6081u

/** The tunnel, LB_TUNNEL_*, that has a UDP destination port of its own, host order; or 0. */
uint8_t lb_tunnel_of_port(uint16_t port);

/** The tunnel by UDP that a way to forward makes; 0 for one that makes none. */
uint8_t lb_tunnel_of_mode(enum lb_forward_mode mode);

/**
 * The tunnels by UDP that a service refuses, whatever port they come to: all that it does not
 * carry, if it has any port. One with an exact port was asked for that by name, and refuses
 * what it does not carry only where it would put it into UDP again: so every loop has a service
 * that says what it carries.
 *
 * @param carry    LB_TUNNEL_* that it takes.
 * @param tunnels  LB_TUNNEL_* of the match's port, if it has one.
 * @param mode     How the service forwards.
 * @return LB_TUNNEL_*; 0 for nearly every service, and for those of TCP.
 */
uint8_t lb_tunnel_refused(const struct lb_service_match *match, uint8_t carry, uint8_t tunnels,
	enum lb_forward_mode mode);

#endif
