/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_ports.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl_log.h"

const char *const ctl_port_link_words[] = {
	[CTL_PORT_UP] = "up",
	[CTL_PORT_DOWN] = "down",
	[CTL_PORT_GONE] = "gone",
};

/* What has become of it, and the cure. A start opens an interface, and makes a twin. */
static const char *
words_of(const struct ctl_port_side *side, bool is_twin)
{
	if (side->link == CTL_PORT_UP)
		return "is up again";
	if (side->link == CTL_PORT_DOWN)
		return is_twin ? "is down; next hops through it stay those of before"
			       : "is down";
	if (is_twin)
		return side->is_back
			       ? "is gone, and another interface has its name; delete that one "
				 "and restart shuntd"
			       : "is gone; restart shuntd, which makes it anew; till then "
				 "next hops through it stay those of before";
	return side->is_back ? "is there again, but it is another one; restart shuntd to use it"
			     : "is gone; when there is one again, restart shuntd";
}

static void
say(const struct ctl_ports *ports, size_t port, const struct ctl_port_side *side)
{
	const bool is_twin = side == &ports->ports[port].twin;

	ctl_log(side->link == CTL_PORT_UP ? CTL_LOG_NOTICE : CTL_LOG_WARNING,
		"port '%s': its %s %s %s", ports->model->dataplane.ports[port].name,
		is_twin ? "twin" : "interface", side->name, words_of(side, is_twin));
}

static void
tell_plane(const struct ctl_ports *ports, size_t port)
{
	dp_port_set_down(ports->dp, port, ports->ports[port].device.link != CTL_PORT_UP,
		ports->ports[port].twin.link != CTL_PORT_UP);
}

/* @return the first error, after all that can be there is there. */
static int
give_addresses(const struct ctl_ports *ports, size_t port)
{
	const struct cfg_port *conf = &ports->model->dataplane.ports[port];
	int ret = 0;

	for (size_t i = 0; i < conf->n_addresses; i++) {
		const int rc = ctl_netlink_add_address(ports->netlink,
			ports->ports[port].twin.if_index, &conf->addresses[i]);

		if (ret == 0)
			ret = rc;
	}
	return ret;
}

/* Where one cannot be there, others and the port are of use still. */
static void
give_routes(const struct ctl_ports *ports, size_t port)
{
	const struct cfg_port *conf = &ports->model->dataplane.ports[port];

	for (size_t i = 0; i < conf->n_routes; i++) {
		const struct cfg_route *route = &conf->routes[i];
		const int rc = ctl_netlink_add_route(ports->netlink,
			ports->ports[port].twin.if_index, &route->to, &route->via);
		char to[LB_PREFIX_TEXT_BYTES];
		char via[LB_ADDR_TEXT_BYTES];

		/* That it is down again will be told, and is no error of ours. */
		if (rc == 0 || rc == -ENETDOWN)
			continue;
		ctl_log(CTL_LOG_ERROR,
			"port '%s': the kernel does not take the route to %s via %s: %s",
			conf->name, lb_prefix_format(&route->to, to),
			lb_addr_format(&route->via, via),
			rc == -EEXIST ? "there is another one to it" : strerror(-rc));
	}
}

static void
say_why_not_set_up(const struct ctl_ports *ports, size_t port, int error)
{
	ctl_log(CTL_LOG_ERROR, "port '%s': its twin '%s' cannot be set up: %s",
		ports->model->dataplane.ports[port].name, ports->ports[port].twin.name,
		strerror(-error));
}

/* A twin is ours: its MTU, its addresses, its routes. An interface that was there is its
 * owner's. */
static int
set_up_twin(const struct ctl_ports *ports, size_t port)
{
	const struct ctl_port_side *twin = &ports->ports[port].twin;
	struct dp_port_info info;
	int ret;

	dp_port_read(ports->dp, port, &info);
	ret = ctl_netlink_set_up(ports->netlink, twin->if_index, info.kernel_mtu);
	if (ret == 0)
		ret = give_addresses(ports, port);
	if (ret != 0)
		say_why_not_set_up(ports, port, ret);
	else
		give_routes(ports, port);
	return ret;
}

/*
 * The kernel takes IPv6 addresses off an interface that goes down. Once its administrator has
 * put it up they come back; it is not put up here, as he may have taken it down again.
 */
static void
set_up_twin_again(const struct ctl_ports *ports, size_t port)
{
	const struct ctl_port_side *twin = &ports->ports[port].twin;
	struct dp_port_info info;
	int ret;
	int rc;

	if (twin->if_index == 0 || twin->link != CTL_PORT_UP)
		return;
	dp_port_read(ports->dp, port, &info);
	ret = ctl_netlink_set_mtu(ports->netlink, twin->if_index, info.kernel_mtu);
	rc = give_addresses(ports, port);
	if (ret == 0)
		ret = rc;
	if (ret == -ENODEV) /* that will be told, and is no error of ours */
		return;
	if (ret != 0)
		say_why_not_set_up(ports, port, ret);
	give_routes(ports, port);
}

/* What is for services goes by the port's device, with the twin or without it. */
static void
keep_hops(const struct ctl_ports *ports, const struct ctl_port_side *twin)
{
	if (twin->link == CTL_PORT_UP)
		ctl_netlink_settle(ports->netlink, twin->if_index);
	else
		ctl_netlink_keep(ports->netlink, twin->if_index);
}

static void
set_link(struct ctl_ports *ports, size_t port, struct ctl_port_side *side,
	enum ctl_port_link link)
{
	if (side->link == link)
		return;
	side->link = link;
	tell_plane(ports, port);
	say(ports, port, side);
	if (side == &ports->ports[port].twin) {
		keep_hops(ports, side);
		set_up_twin_again(ports, port);
	}
}

static void
take_link(struct ctl_ports *ports, size_t port, struct ctl_port_side *side,
	const struct ctl_link *link)
{
	if (side->if_index == 0)
		return;
	/* For good: another interface may get its number. */
	if (side->link == CTL_PORT_GONE) {
		const bool is_back = link->is_there && strcmp(link->name, side->name) == 0;

		if (!is_back || side->is_back)
			return;
		side->is_back = true;
		say(ports, port, side);
		return;
	}
	if (link->if_index != side->if_index)
		return;
	if (!link->is_there)
		set_link(ports, port, side, CTL_PORT_GONE);
	else
		set_link(ports, port, side, link->is_up ? CTL_PORT_UP : CTL_PORT_DOWN);
}

/* As the kernel has it now; where it cannot be asked, what was known stays. */
static void
look(struct ctl_ports *ports, size_t port, struct ctl_port_side *side)
{
	struct ctl_link link = {.if_index = side->if_index};
	int rc;

	if (side->if_index == 0)
		return;
	rc = ctl_netlink_read_link(ports->netlink, side->if_index, &link);
	if (rc == 0 || rc == -ENODEV)
		take_link(ports, port, side, &link);
}

static void
look_at_all(struct ctl_ports *ports)
{
	for (size_t i = 0; i < ports->n; i++) {
		look(ports, i, &ports->ports[i].device);
		look(ports, i, &ports->ports[i].twin);
	}
}

/* As the driver has it, where there is no interface of the kernel's. */
static bool
is_down(const struct ctl_ports *ports, size_t port)
{
	const struct ctl_port_side *device = &ports->ports[port].device;
	struct dp_port_link link;

	if (device->if_index != 0)
		return device->link != CTL_PORT_UP;
	dp_port_read_link(ports->dp, port, &link);
	return !link.is_up;
}

void
ctl_ports_look(struct ctl_ports *ports)
{
	uint32_t down = 0;

	for (size_t i = 0; i < ports->n; i++)
		down |= (uint32_t)is_down(ports, i) << i;
	if (down == ports->down)
		return;
	ports->down = down;
	ports->on_change(ports->context);
}

static void
on_link(void *context, const struct ctl_link *link)
{
	struct ctl_ports *ports = context;

	if (link == NULL)
		look_at_all(ports);
	for (size_t i = 0; i < ports->n; i++) {
		if (link != NULL) {
			take_link(ports, i, &ports->ports[i].device, link);
			take_link(ports, i, &ports->ports[i].twin, link);
		} else { /* it may have been down in between */
			set_up_twin_again(ports, i);
		}
	}
	ctl_ports_look(ports);
}

static void
find_side(struct ctl_port_side *side, const char *name)
{
	if (name == NULL)
		return;
	side->if_index = (int)if_nametoindex(name);
	if (side->if_index == 0) { /* it went away since it was opened */
		side->if_index = -1;
		side->link = CTL_PORT_GONE;
	}
	(void)snprintf(side->name, sizeof(side->name), "%.15s", name);
}

int
ctl_ports_open(struct ctl_ports *ports, const struct cfg_model *model, struct dp *dp,
	struct ctl_netlink *netlink)
{
	ports->model = model;
	ports->dp = dp;
	ports->netlink = netlink;
	ports->n = model->dataplane.n_ports;
	for (size_t i = 0; i < ports->n; i++) {
		struct dp_port_info info;
		int ret = 0;

		dp_port_read(dp, i, &info);
		find_side(&ports->ports[i].device, info.device_if);
		find_side(&ports->ports[i].twin, info.has_twin ? info.kernel_if : NULL);
		if (info.has_twin)
			ret = set_up_twin(ports, i);
		if (ret != 0)
			return ret;
	}
	ctl_netlink_watch_links(netlink, on_link, ports);
	/* After that, so that no change falls between the two. */
	look_at_all(ports);
	return 0;
}

/* Of a kernel's interface; 0: it does not say. */
static uint32_t
read_speed(const char *name)
{
	struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
	struct ifreq request = {.ifr_data = (void *)&command};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t speed = 0;

	if (fd < 0)
		return 0;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCETHTOOL, &request) == 0)
		speed = ethtool_cmd_speed(&command);
	(void)close(fd);
	return speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}

void
ctl_ports_read(const struct ctl_ports *ports, size_t port, struct ctl_port_state *out)
{
	const struct ctl_port_side *device = &ports->ports[port].device;
	const struct ctl_port_side *twin = &ports->ports[port].twin;

	*out = (struct ctl_port_state){.link = device->link,
		.has_twin = twin->if_index != 0,
		.twin = twin->link,
		.n_kept_hops = ctl_netlink_count_kept(ports->netlink, twin->if_index)};
	if (device->if_index == 0) {
		struct dp_port_link link;

		dp_port_read_link(ports->dp, port, &link);
		out->link = link.is_up ? CTL_PORT_UP : CTL_PORT_DOWN;
		out->speed_mbps = link.speed_mbps;
	} else if (device->link == CTL_PORT_UP) {
		out->speed_mbps = read_speed(device->name);
	}
}
