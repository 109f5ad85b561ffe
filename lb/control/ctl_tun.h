/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_TUN_H
#define CTL_TUN_H

/**
 * @file
 * A TUN device of this process' own and routes to it, over rtnetlink (libmnl; RFC 3549).
 *
 * Not thread-safe: the control thread's. What changes something waits for the kernel's answer.
 */

#include "ctl_routes.h"

struct mnl_socket;

/** Routes of one ctl_tun_put(). Their answers fit into a socket's buffer. */
#define CTL_TUN_BATCH 32u

struct ctl_tun {
	char name[16];
	uint32_t table;
	uint32_t metric;
	int fd; /**< of the device; -1: there is none */
	int if_index;
	struct mnl_socket *requests;
	struct mnl_socket *events; /**< NULL: nobody listens */
	uint32_t next_seq;
};

enum ctl_tun_what {
	CTL_TUN_UP,
	CTL_TUN_DOWN,     /**< and the kernel has taken its routes */
	CTL_TUN_GONE,     /**< the same, with the device, or its name; it is closed */
	CTL_TUN_ROUTE,    /**< another program has taken a route */
	CTL_TUN_REPLACED, /**< one to a prefix by its own; maybe ours: ctl_tun_look() says */
	CTL_TUN_LOST, /**< events of routes, as there was no room for them: ctl_tun_look() */
};

struct ctl_tun_event {
	enum ctl_tun_what what;
	struct lb_prefix prefix; /**< of CTL_TUN_ROUTE and CTL_TUN_REPLACED */
};

typedef void (*ctl_tun_fn)(void *context, const struct ctl_tun_event *event);

/**
 * Open what the device is made by; not the device.
 *
 * @param conf     Copied; with an interface.
 * @param tun      In any case to be given to ctl_tun_close().
 * @retval -errno  The kernel's reason.
 */
int ctl_tun_open(const struct cfg_announce *conf, struct ctl_tun *tun) lb_must_check;

/**
 * Open what the device is followed by: ctl_tun_events_fd(), which is to be read from then on.
 *
 * @retval -errno  The kernel's reason.
 */
int ctl_tun_listen(struct ctl_tun *tun) lb_must_check;

/**
 * Make the device and bring it up, where there is none.
 *
 * @retval -EBUSY   There is an interface of that name.
 * @retval -EPERM   It takes CAP_NET_ADMIN.
 * @retval -ENOENT  There is no /dev/net/tun.
 * @retval -errno   The kernel's other reasons.
 */
int ctl_tun_make(struct ctl_tun *tun) lb_must_check;

/**
 * Make the device again where it has gone, in name or altogether. The file keeps its number: a
 * thread that reads and writes it goes on, and epoll has to be told of it anew.
 *
 * @retval 1       It is another.
 * @retval 0       It has not gone.
 * @retval -errno  As of ctl_tun_make().
 */
int ctl_tun_mend(struct ctl_tun *tun) lb_must_check;

void ctl_tun_close(struct ctl_tun *tun);

/**
 * Bring routes to what is wanted of them; each has then is_there and error as they are, or is
 * unsure: the kernel has done it, or not, and its answer did not come. ctl_tun_look() says.
 *
 * @param routes  n that are not as they are wanted, 1..CTL_TUN_BATCH.
 */
void ctl_tun_put(struct ctl_tun *tun, struct ctl_route *const routes[], size_t n);

/**
 * Have is_there of all routes as the kernel has them now.
 *
 * @retval -errno  The kernel's reason; or -EINTR, as others changed routes meanwhile. Nothing
 * is changed then.
 */
int ctl_tun_look(struct ctl_tun *tun, struct ctl_routes *routes) lb_must_check;

/** A file that is readable while there are events. */
int ctl_tun_events_fd(const struct ctl_tun *tun);

/** Tell fn all events there are. It calls nothing here but ctl_tun_put() and ctl_tun_look().
 */
void ctl_tun_take(struct ctl_tun *tun, ctl_tun_fn fn, void *context);

#endif
