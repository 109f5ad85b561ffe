/* SPDX-License-Identifier: BSD-3-Clause */
#include "hc_tunnel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hc_translate.h"

/* Packets of one call each way, so that what others send to the device holds nothing up. */
#define N_AT_ONCE 512u

#define N_PORTS (LB_PROBE_PORT_LAST - LB_PROBE_PORT_FIRST + 1)

/* 240.0.0.0/4 is nobody's on any network (RFC 1112, section 4); of IPv6, a ULA (RFC 4193). */
static const struct lb_prefix networks[] = {
	{{{0xfd, 0x73, 0x68, 0x75, 0x6e, 0x74, [15] = 1}}, 64},
	{{{[10] = 0xff, 0xff, 240, 0, 0, 1}}, 96 + 10},
};

/* Where the ids begin in them. */
static const struct lb_addr bases[] = {
	{{0xfd, 0x73, 0x68, 0x75, 0x6e, 0x74, [9] = 1}},
	{{[10] = 0xff, 0xff, 240, 16, 0, 0}},
};

/* Whose a port is, or was last. */
struct user {
	bool is_lent;
	bool has_lost; /* since it is lent */
	struct lb_addr own;
	struct lb_addr service;
	struct lb_addr stand_in; /* of its backend */
	uint32_t backend;
};

struct hc_tunnel {
	struct hc_tunnel_conf conf;
	struct user users[N_PORTS];
	uint16_t rested[N_PORTS]; /* ports that are free: a ring */
	uint32_t first;           /* of it, the one that has rested longest */
	uint32_t n_rested;
};

int
hc_tunnel_create(const struct hc_tunnel_conf *conf, struct hc_tunnel **out)
{
	struct hc_tunnel *tunnel = calloc(1, sizeof(*tunnel));

	if (tunnel == NULL)
		return -ENOMEM;
	tunnel->conf = *conf;
	for (uint32_t i = 0; i < N_PORTS; i++)
		tunnel->rested[i] = (uint16_t)(LB_PROBE_PORT_FIRST + i);
	tunnel->n_rested = N_PORTS;
	*out = tunnel;
	return 0;
}

void
hc_tunnel_destroy(struct hc_tunnel *tunnel)
{
	free(tunnel);
}

struct lb_prefix
hc_tunnel_network(bool is_v4)
{
	return networks[is_v4];
}

struct lb_addr
hc_tunnel_address(uint32_t id, bool is_v4)
{
	struct lb_addr address = bases[is_v4];

	address.bytes[13] |= (uint8_t)(id >> 16);
	address.bytes[14] = (uint8_t)(id >> 8);
	address.bytes[15] = (uint8_t)id;
	return address;
}

int
hc_tunnel_fd(const struct hc_tunnel *tunnel)
{
	return tunnel->conf.fd;
}

uint16_t
hc_tunnel_borrow(struct hc_tunnel *tunnel, const struct hc_target *target)
{
	uint16_t port;

	if (tunnel->n_rested == 0)
		return 0;
	port = tunnel->rested[tunnel->first];
	tunnel->first = (tunnel->first + 1) % N_PORTS;
	tunnel->n_rested--;
	tunnel->users[port - LB_PROBE_PORT_FIRST] = (struct user){
		.is_lent = true,
		.own = target->source,
		.service = target->address,
		.stand_in = hc_tunnel_address(target->backend, lb_addr_is_v4(&target->address)),
		.backend = target->backend,
	};
	tunnel->conf.lend(tunnel->conf.context, port, true);
	return port;
}

bool
hc_tunnel_has_lost(const struct hc_tunnel *tunnel, uint16_t port)
{
	return tunnel->users[port - LB_PROBE_PORT_FIRST].has_lost;
}

void
hc_tunnel_return(struct hc_tunnel *tunnel, uint16_t port)
{
	tunnel->users[port - LB_PROBE_PORT_FIRST].is_lent = false;
	tunnel->conf.lend(tunnel->conf.context, port, false);
	tunnel->rested[(tunnel->first + tunnel->n_rested++) % N_PORTS] = port;
}

bool
hc_tunnel_is_busy(const struct hc_tunnel *tunnel)
{
	return tunnel->n_rested < N_PORTS;
}

/* NULL: no probe has ever had it. */
static struct user *
find_user(struct hc_tunnel *tunnel, uint16_t port)
{
	if (port < LB_PROBE_PORT_FIRST || port > LB_PROBE_PORT_LAST)
		return NULL;
	return &tunnel->users[port - LB_PROBE_PORT_FIRST];
}

/* From the kernel to the workers; what is no probe's goes nowhere. */
static void
send_out(struct hc_tunnel *tunnel, uint8_t *ip, size_t n_bytes)
{
	const struct user *user;
	struct hc_ends ends;

	if (!hc_translate_read(ip, n_bytes, &ends))
		return;
	user = find_user(tunnel, ends.source_port);
	if (user == NULL || !lb_addr_equal(&user->stand_in, &ends.destination))
		return;
	hc_translate_write(ip, &user->own, &user->service);
	/* What is lost here the kernel sends again, as it does what is lost farther on. */
	(void)tunnel->conf.send(tunnel->conf.context, user->backend, ip, n_bytes);
}

/* From the workers to the kernel. */
static void
bring_in(struct hc_tunnel *tunnel, uint8_t *ip, size_t n_bytes)
{
	struct user *user;
	struct hc_ends ends;

	if (!hc_translate_read(ip, n_bytes, &ends))
		return;
	user = find_user(tunnel, ends.destination_port);
	/* For a port that nobody has now it is late, or forged, and the kernel would answer. */
	if (user == NULL || !user->is_lent || !lb_addr_equal(&user->service, &ends.source) ||
		!lb_addr_equal(&user->own, &ends.destination))
		return;
	hc_translate_finish(ip, n_bytes);
	hc_translate_write(ip, &user->stand_in, &networks[lb_addr_is_v4(&user->service)].addr);
	/* A packet that the kernel drops is none that the device refuses: it is down, or gone.
	 */
	user->has_lost |= write(tunnel->conf.fd, ip, n_bytes) < 0;
}

void
hc_tunnel_pump(struct hc_tunnel *tunnel)
{
	uint8_t ip[HC_TUNNEL_BYTES_MAX];

	for (unsigned int i = 0; i < N_AT_ONCE; i++) {
		const ssize_t n = read(tunnel->conf.fd, ip, sizeof(ip));

		if (n <= 0)
			break;
		send_out(tunnel, ip, (size_t)n);
	}
	for (unsigned int i = 0; i < N_AT_ONCE; i++) {
		const size_t n = tunnel->conf.take(tunnel->conf.context, ip);

		if (n == 0)
			break;
		bring_in(tunnel, ip, n);
	}
}
