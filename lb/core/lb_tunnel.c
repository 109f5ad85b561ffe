/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_tunnel.h"

#include <netinet/in.h>

uint8_t
lb_tunnel_of_port(uint16_t port)
{
	switch (port) {
	case LB_GUE_PORT:
		return LB_TUNNEL_GUE;
	case LB_VXLAN_PORT:
		return LB_TUNNEL_VXLAN;
	case LB_GENEVE_PORT:
		return LB_TUNNEL_GENEVE;
	default:
		return 0;
	}
}

uint8_t
lb_tunnel_of_mode(enum lb_forward_mode mode)
{
	switch (mode) {
	case LB_FORWARD_GUE:
		return LB_TUNNEL_GUE;
	case LB_FORWARD_VXLAN:
		return LB_TUNNEL_VXLAN;
	default:
		return 0;
	}
}

uint8_t
lb_tunnel_refused(const struct lb_service_match *match, uint8_t carry, uint8_t tunnels,
	enum lb_forward_mode mode)
{
	const uint8_t not_carried = (uint8_t)(LB_TUNNELS_BY_UDP & ~carry);

	if (match->proto == IPPROTO_TCP)
		return 0;
	if (match->port == 0)
		return not_carried;
	return lb_tunnel_of_mode(mode) != 0 ? tunnels & not_carried : 0;
}
