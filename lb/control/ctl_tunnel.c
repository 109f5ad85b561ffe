/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_tunnel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_log.h"
#include "ctl_tun.h"

static_assert(HC_TUNNEL_BYTES_MAX == DP_PROBE_BYTES_MAX, "health's packets are the plane's");

struct ctl_tunnel {
	struct ctl_tun tun;
	bool has_no_v6; /* and the log was told */
	struct hc_tunnel *way;
	struct dp *dp;
};

static int
send_probe(void *context, uint32_t backend, const uint8_t *ip, size_t n_bytes)
{
	const struct ctl_tunnel *tunnel = context;

	return dp_probe_send(tunnel->dp, backend, ip, n_bytes);
}

static size_t
take_answer(void *context, uint8_t ip[static HC_TUNNEL_BYTES_MAX])
{
	const struct ctl_tunnel *tunnel = context;

	return dp_probe_take(tunnel->dp, ip);
}

static void
lend_port(void *context, uint16_t port, bool is_lent)
{
	const struct ctl_tunnel *tunnel = context;

	dp_probe_lend(tunnel->dp, port, is_lent);
}

/* A kernel without IPv6 has no services of it to check. */
static int
set_up(struct ctl_tunnel *tunnel, struct ctl_netlink *netlink)
{
	const int if_index = tunnel->tun.if_index;
	const struct lb_prefix v6 = hc_tunnel_network(false);
	const struct lb_prefix v4 = hc_tunnel_network(true);
	int ret = ctl_netlink_set_up(netlink, if_index, HC_TUNNEL_MTU);

	if (ret == 0)
		ret = ctl_netlink_add_address(netlink, if_index, &v4);
	if (ret == 0 && ctl_netlink_add_address(netlink, if_index, &v6) != 0 &&
		!tunnel->has_no_v6) {
		tunnel->has_no_v6 = true;
		ctl_log(CTL_LOG_INFO, "%s has no address of IPv6", HC_TUNNEL_NAME);
	}
	return ret;
}

static int
fill(struct ctl_tunnel *tunnel, struct ctl_netlink *netlink)
{
	char name[] = HC_TUNNEL_NAME;
	const struct cfg_announce conf = {.interface = name};
	struct hc_tunnel_conf way = {.send = send_probe,
		.take = take_answer,
		.lend = lend_port,
		.context = tunnel};
	int ret = ctl_tun_open(&conf, &tunnel->tun);

	if (ret == 0)
		ret = ctl_tun_make(&tunnel->tun);
	if (ret == 0)
		ret = set_up(tunnel, netlink);
	way.fd = tunnel->tun.fd;
	return ret == 0 ? hc_tunnel_create(&way, &tunnel->way) : ret;
}

int
ctl_tunnel_open(struct ctl_netlink *netlink, struct dp *dp, struct ctl_tunnel **out)
{
	struct ctl_tunnel *tunnel = calloc(1, sizeof(*tunnel));
	int ret;

	if (tunnel == NULL)
		return -ENOMEM;
	tunnel->dp = dp;
	ret = fill(tunnel, netlink);
	if (ret != 0) {
		ctl_tunnel_close(tunnel);
		return ret;
	}
	dp_probe_open(dp);
	*out = tunnel;
	return 0;
}

int
ctl_tunnel_mend(struct ctl_tunnel *tunnel, struct ctl_netlink *netlink)
{
	const int made = ctl_tun_mend(&tunnel->tun);
	const int ret = made < 0 ? made : set_up(tunnel, netlink);

	return ret == 0 ? made : ret;
}

void
ctl_tunnel_say_why_not(int error)
{
	ctl_log(CTL_LOG_ERROR,
		"health: via: tunnel takes a TUN device, and '%s' cannot be made: %s%s",
		HC_TUNNEL_NAME, strerror(-error),
		error == -EBUSY || error == -EEXIST ? "; another shuntd has it" : "");
}

void
ctl_tunnel_close(struct ctl_tunnel *tunnel)
{
	if (tunnel == NULL)
		return;
	hc_tunnel_destroy(tunnel->way);
	ctl_tun_close(&tunnel->tun);
	free(tunnel);
}

struct hc_tunnel *
ctl_tunnel_way(struct ctl_tunnel *tunnel)
{
	return tunnel->way;
}
