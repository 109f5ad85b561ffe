/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_FIT_H
#define DP_PORT_FIT_H

/**
 * @file
 * What a device can do, from what its driver says of it, and what a port's configuration asks
 * for. Pure: nothing here looks at the machine.
 */

#include <rte_ethdev.h>

#include "dp.h"

/** Whether a device is a PCI address rather than a vdev. */
bool dp_port_is_pci(const char *device);

/**
 * The value of one of a vdev's arguments, "iface" say.
 *
 * @param[out] out  Room for n bytes, 1 or more; cut where it is longer, "" where there is none.
 */
void dp_port_find_argument(const char *device, const char *key, char *out, size_t n);

/** Whether two ports' devices are one: a PCI address, an interface, or a vdev's full name. */
bool dp_port_is_same_device(const char *a, const char *b);

/** Whether arguments of the EAL, split at blanks, ask for huge pages. NULL: there are none. */
bool dp_port_wants_huge_pages(const char *extra);

/** The largest MTU that the device takes, bytes. */
uint32_t dp_port_mtu_max(const struct rte_eth_dev_info *info);

/**
 * What the device's receive side scaling is to hash.
 *
 * @return RTE_ETH_RSS_*; 0 unless addresses and ports of TCP and UDP are among it, for by less
 *         than these it does not spread by flow.
 */
uint64_t dp_port_rss(const struct rte_eth_dev_info *info);

/**
 * What the device is to do for transmission.
 *
 * @param n_ports  Of the plane: with more than one, a queue sees buffers of several pools.
 * @return RTE_ETH_TX_OFFLOAD_*.
 */
uint64_t dp_port_tx_offloads(const struct rte_eth_dev_info *info, size_t n_ports);

/**
 * Whether the device's queues are there once it exists, used or not, so that packets would wait
 * for good in one that nobody polls.
 */
bool dp_port_has_fixed_queues(const char *driver);

#endif
