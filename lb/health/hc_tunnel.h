/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HC_TUNNEL_H
#define HC_TUNNEL_H

/**
 * @file
 * The way of probes through the balancer's own forwarding (`via: tunnel`).
 *
 * A probe is an ordinary socket of the kernel's. It connects to an address that stands for its
 * backend, behind a TUN device; what the kernel sends there is read here, given the addresses
 * that it goes by on the network, from the balancer's own to the service's, and handed to the
 * workers with the backend's id. What comes back is given the addresses of the socket. So the
 * host's routes and its own traffic are left alone, and thousands of backends of one service
 * address can be asked at a time: the source port tells them apart, one a probe in flight.
 *
 * The prober's thread alone, but for hc_tunnel_create() and _destroy().
 */

#include "hc_check.h"
#include "lb_limits.h"

struct hc_tunnel; /* opaque */

/** The device. Of a network namespace one process alone can have it. */
#define HC_TUNNEL_NAME "shunt-probe"

/** Of a packet, from the IP header on. */
#define HC_TUNNEL_BYTES_MAX 1500u

/** The device's MTU: with any outer header it fits where IPv6 does. */
#define HC_TUNNEL_MTU 1280u

/** Hand a packet to the workers. @return 0, or -errno: it is lost. */
typedef int (
	*hc_tunnel_send_fn)(void *context, uint32_t backend, const uint8_t *ip, size_t n_bytes);

/** Take one from them. @return its bytes; 0: there is none. */
typedef size_t (*hc_tunnel_take_fn)(void *context, uint8_t ip[static HC_TUNNEL_BYTES_MAX]);

/** Tell them whether a probe has a source port now. */
typedef void (*hc_tunnel_lend_fn)(void *context, uint16_t port, bool is_lent);

struct hc_tunnel_conf {
	int fd; /**< of the TUN device, which does not block; the caller's. What it stands for
		 * may become another device */
	hc_tunnel_send_fn send;
	hc_tunnel_take_fn take;
	hc_tunnel_lend_fn lend;
	void *context;
};

/** @retval -ENOMEM  No memory. */
int hc_tunnel_create(const struct hc_tunnel_conf *conf, struct hc_tunnel **out) lb_must_check;

/** NULL is allowed. */
void hc_tunnel_destroy(struct hc_tunnel *tunnel);

/** The device's own address of a family, and the network that backends stand in. */
struct lb_prefix hc_tunnel_network(bool is_v4);

/** What stands for a backend. @param id  Below 2^20. */
struct lb_addr hc_tunnel_address(uint32_t id, bool is_v4);

int hc_tunnel_fd(const struct hc_tunnel *tunnel);

/**
 * A source port for one probe. The one that has rested longest, so that nothing late of the
 * probe before it is taken for this one's.
 *
 * @return 0: all are in use.
 */
uint16_t hc_tunnel_borrow(struct hc_tunnel *tunnel, const struct hc_target *target);

/** Whether anything for the probe that has it came and the device did not take it. */
bool hc_tunnel_has_lost(const struct hc_tunnel *tunnel, uint16_t port);

/** Its probe has ended. What its socket sends at its end still goes to its backend. */
void hc_tunnel_return(struct hc_tunnel *tunnel, uint16_t port);

/** Whether any probe is in flight: then answers may have come. */
bool hc_tunnel_is_busy(const struct hc_tunnel *tunnel);

/** Take the packets that there are on their way, in both directions; some hundreds at most. */
void hc_tunnel_pump(struct hc_tunnel *tunnel);

#endif
