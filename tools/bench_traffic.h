/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

/**
 * @file
 * The traffic of a measurement: which flow comes next, and the bytes of its packets.
 *
 * A flow is a number; addresses and ports of client, service and backend follow from it, so
 * that nothing has to be looked up. Pure, but for the state that is passed in; a thread's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lb_addr.h"

/** Frames as Ethernet counts them, with 4 bytes of checksum that no buffer holds. */
#define BENCH_PACKET_BYTES_MAX 1518u
#define BENCH_FCS_BYTES        4u
/** In a buffer. */
#define BENCH_FRAME_BYTES_MAX (BENCH_PACKET_BYTES_MAX - BENCH_FCS_BYTES)
#define BENCH_ETHER_BYTES     14u

/** Flows are numbered below it. */
#define BENCH_FLOWS_MAX (UINT64_C(1) << 36)

/** Smallest frame of a TCP segment of a family, 4 or 6, as Ethernet counts them. */
uint32_t bench_packet_bytes_min(unsigned int family);

/** An order in which each of n numbers comes once before any comes again. */
struct bench_order {
	uint64_t n;
	uint64_t mask;
	unsigned int shift;
	uint64_t state;
};

/** @param n  1..2^62. */
void bench_order_init(struct bench_order *order, uint64_t n);

/** The next number, 0..n-1: near ones do not follow near ones. */
uint64_t bench_order_next(struct bench_order *order);

/** Addresses by number, as the configuration of the measurement has them too. */
struct lb_addr bench_service_addr(unsigned int family, uint32_t service);
uint16_t bench_service_port(uint32_t service);
/** @param backend  Place of its service, times backends a service, and its place there. */
struct lb_addr bench_backend_addr(unsigned int family, uint32_t backend);
/** The balancer's own. */
struct lb_addr bench_own_addr(unsigned int family);
/** Next hop of all that leaves, and the port that it leaves by. */
extern const struct lb_mac bench_next_hop;
extern const struct lb_mac bench_port_mac;

struct bench_traffic {
	unsigned int family; /**< 4 or 6 */
	uint32_t n_services;
	uint16_t frame_bytes; /**< in a buffer */
	bool is_syn;
	uint32_t header_sum; /**< of the IPv4 header, addresses left out */
	uint8_t frame[BENCH_FRAME_BYTES_MAX];
};

/**
 * @param packet_bytes  As Ethernet counts them: bench_packet_bytes_min()..
 *                      BENCH_PACKET_BYTES_MAX.
 * @param is_syn        Packets begin connections; otherwise they are segments of one.
 */
void bench_traffic_init(struct bench_traffic *traffic, unsigned int family, uint32_t n_services,
	uint32_t packet_bytes, bool is_syn);

/** The service of a flow. */
uint32_t bench_traffic_service(const struct bench_traffic *traffic, uint64_t flow);

/**
 * Write a packet of a flow. TCP's checksum is left 0, as nobody on the way looks at it.
 *
 * @param flow  Below BENCH_FLOWS_MAX.
 * @param seq   TCP's sequence number.
 * @param out   traffic->frame_bytes bytes.
 */
void bench_traffic_write(const struct bench_traffic *traffic, uint64_t flow, uint32_t seq,
	uint8_t *out);

#endif
