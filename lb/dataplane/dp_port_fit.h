/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_FIT_H
#define DP_PORT_FIT_H

/**
 * @file
 * What a device can do, from what its driver says of it, and what a port's configuration asks
 * for. Pure: nothing here looks at the machine.
 */

#include <rte_ethdev.h>

#include "dp_mbuf.h"

/** Room for Ethernet, two tags and the FCS around an IP packet of the MTU, bytes. */
#define DP_PORT_FRAME_OVER_MTU 32u

/** A buffer of an XDP socket with all that DPDK keeps before it: the kernel's most, a page. */
#define DP_PORT_XDP_OBJECT_BYTES 4096u
/** A packet's part of it, headrooms included. */
#define DP_PORT_XDP_ROOM                                                                       \
	(DP_PORT_XDP_OBJECT_BYTES - RTE_CACHE_LINE_SIZE -                                      \
		(unsigned int)sizeof(struct rte_mbuf) - (unsigned int)DP_BESIDE_BYTES)

/** Whether arguments of the EAL, split at blanks, ask for memory that other processes of DPDK
 * can share, by --proc-type. NULL: there are none. */
bool dp_port_wants_sharing(const char *extra);

/** Whether they ask for huge pages, as the above does. */
bool dp_port_wants_huge_pages(const char *extra);

/** The largest MTU that the device takes, bytes. */
uint32_t dp_port_mtu_max(const struct rte_eth_dev_info *info);

/** Whether the driver is that of XDP sockets, whose buffers are laid out in their own way. */
bool dp_port_is_xdp(const char *driver);

/** Descriptors of each of its queues. */
uint16_t dp_port_descriptors(const char *driver);

/** Packets that a device may keep of a port's buffers for each queue that it receives by. */
#define DP_PORT_KEPT_MAX 16384u

/**
 * How many of a port's buffers its device may keep for good: net_pcap does with infinite_rx, a
 * capture's packets, of which it gives copies again and again; any other none.
 */
unsigned int dp_port_n_kept(const char *device, unsigned int n_queues);

/**
 * Buffers that a port needs so that none of its queues, rings and workers waits for one.
 *
 * @param device  As configured, with its arguments.
 */
unsigned int dp_port_n_buffers(const char *device, const struct rte_eth_dev_info *info,
	unsigned int n_workers);

/** Largest framesz= of packet sockets: a buffer's room is 16 bits wide, headroom included. */
#define DP_PORT_RING_FRAME_MAX 65392u

/**
 * Bytes of a frame in the rings of a packet socket, where the device's arguments say so.
 *
 * Its driver takes no buffer that has less room, and says that there is too little memory.
 *
 * @return what framesz= says; 0: nothing, or it is none.
 */
uint64_t dp_port_ring_frame(const char *device);

/** Bytes of buffers of a port in which as many packets wait, and of what DPDK keeps for each.
 */
uint64_t dp_port_waiting_bytes(const struct dp_port_conf *conf, uint64_t n_packets);

/**
 * Bytes of a packet buffer, headroom included, for frames of the MTU in one piece.
 *
 * @param ring_frame  From dp_port_ring_frame(), 0..DP_PORT_RING_FRAME_MAX.
 */
uint16_t dp_port_room(uint16_t mtu, uint64_t ring_frame);

/**
 * What the device's receive side scaling is to hash.
 *
 * @return RTE_ETH_RSS_*; 0 unless addresses and ports of TCP and UDP are among it, for by less
 *         than these it does not spread by flow.
 */
uint64_t dp_port_rss(const struct rte_eth_dev_info *info);

/**
 * Whether the device's queues are there once it exists, used or not, so that packets would wait
 * for good in one that nobody polls.
 */
bool dp_port_has_fixed_queues(const char *driver);

#endif
