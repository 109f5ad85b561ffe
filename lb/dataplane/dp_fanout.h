/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_FANOUT_H
#define DP_FANOUT_H

/**
 * @file
 * What DPDK's driver of packet sockets, net_af_packet, leaves no choice in.
 *
 * It puts its sockets, even where there is one, into a fan-out group that has the kernel put
 * fragments of IPv4 together first (packet(7), PACKET_FANOUT_FLAG_DEFRAG). Then a datagram may
 * be longer than a frame of its ring and is cut off, and of a flood of fragments nobody counts
 * what the kernel gives up. No argument of the driver's says otherwise, and a group's flags
 * stay what they are. So setsockopt() is defined here, in the C library's stead, for the whole
 * process: that flag is taken out, and all else goes to the kernel as it is.
 *
 * The sockets are remembered, as the driver does not tell what their rings had no room for.
 */

#include <stdint.h>

/**
 * Packets that the rings of an interface's sockets had no room for, and no driver has told of.
 *
 * Any thread; of several at a time one may see some packets fewer.
 *
 * @param interface  Its index.
 * @return how many since the start.
 */
uint64_t dp_fanout_missed(unsigned int interface);

#endif
