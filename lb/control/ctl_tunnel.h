/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_TUNNEL_H
#define CTL_TUNNEL_H

/**
 * @file
 * The kernel's end of the way by which checks go through the balancer's own forwarding: a TUN
 * device, and the data plane behind it. hc_tunnel.h has what becomes of the packets.
 *
 * Not thread-safe: the control thread's.
 */

#include "ctl_netlink.h"
#include "dp.h"
#include "hc_tunnel.h"

struct ctl_tunnel; /* opaque */

/**
 * Make the device, with its addresses, and have the workers look for answers.
 *
 * @param dp        Outlives it.
 * @param[out] out  Untouched on error.
 * @retval -errno   The kernel's reason.
 */
int ctl_tunnel_open(struct ctl_netlink *netlink, struct dp *dp,
	struct ctl_tunnel **out) lb_must_check;

/**
 * Have the device there, up and with its addresses, whatever others did to it.
 *
 * @retval 1       It was made again: hc_prober_attach().
 * @retval 0       It is as it is to be.
 * @retval -errno  The kernel's reason.
 */
int ctl_tunnel_mend(struct ctl_tunnel *tunnel, struct ctl_netlink *netlink) lb_must_check;

/** Tell the log why it cannot be had. */
void ctl_tunnel_say_why_not(int error);

/** Nobody uses its way any more. NULL is allowed. */
void ctl_tunnel_close(struct ctl_tunnel *tunnel);

/** For hc_prober_attach(). */
struct hc_tunnel *ctl_tunnel_way(struct ctl_tunnel *tunnel);

#endif
