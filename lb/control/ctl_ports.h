/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PORTS_H
#define CTL_PORTS_H

/**
 * @file
 * The links of the ports: the kernel's interface that a port's device is, and its twin. They
 * are followed; the data plane is told which are down, so that it counts what is lost there,
 * and the log which are gone. A twin has the port's MTU and addresses whenever it is up;
 * whether it is, is its administrator's to say once it was put up at the start. While it is
 * not, the next hops through it are kept.
 *
 * Not thread-safe: the control thread's.
 */

#include "cfg_model.h"
#include "ctl_netlink.h"
#include "dp.h"

enum ctl_port_link {
	CTL_PORT_UP,
	CTL_PORT_DOWN, /**< by its administrator, or without a carrier */
	CTL_PORT_GONE, /**< for good, as far as this process is concerned */
};

/** "up", "down", "gone". */
extern const char *const ctl_port_link_words[];

/** An interface of a port. */
struct ctl_port_side {
	int if_index; /**< 0: there is none */
	char name[16];
	enum ctl_port_link link;
	bool is_back; /**< gone, and another one has its name */
};

/** Another set of ports is down. */
typedef void (*ctl_ports_fn)(void *context);

struct ctl_ports {
	ctl_ports_fn on_change; /**< called by the loop */
	void *context;
	uint32_t down; /**< a bit for each port, by its place: what leaves by it is lost */
	const struct cfg_model *model;
	struct dp *dp;
	struct ctl_netlink *netlink;
	size_t n;
	struct {
		struct ctl_port_side device;
		struct ctl_port_side twin;
	} ports[LB_PORTS_MAX];
};

/** What is to be told of a port's link. */
struct ctl_port_state {
	enum ctl_port_link link;
	bool has_twin;
	enum ctl_port_link twin; /**< where has_twin */
	size_t n_kept_hops;      /**< destinations, as ctl_netlink_count_kept() has it */
	uint32_t speed_mbps;     /**< 0: nobody knows */
};

/**
 * Set up the twins of the plane's ports, and follow the links from there on.
 *
 * @param ports   Zero but for on_change and its context, and good until netlink is closed.
 * @param model   Has the ports' names and addresses; may change, but for the names.
 * @retval -errno A twin cannot be set up, the kernel's reason; stderr was told. No link is
 *                followed.
 */
int ctl_ports_open(struct ctl_ports *ports, const struct cfg_model *model, struct dp *dp,
	struct ctl_netlink *netlink) lb_must_check;

/**
 * Look which ports are down. The kernel tells of its interfaces, but of other devices nobody
 * does: to be called every few seconds.
 */
void ctl_ports_look(struct ctl_ports *ports);

void ctl_ports_read(const struct ctl_ports *ports, size_t port, struct ctl_port_state *out);

#endif
