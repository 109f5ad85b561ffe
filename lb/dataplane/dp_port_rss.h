/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_PORT_RSS_H
#define DP_PORT_RSS_H

/**
 * @file
 * How a device is to spread packets, so that workers can tell a flow's queue as it does.
 */

#include "dp_port.h"

/**
 * Ask for receive side scaling with a key of our own, drawn anew: who does not know it cannot
 * aim at a queue.
 *
 * @param conf      Its rss_conf points into nic from here on.
 * @param rss       RTE_ETH_RSS_* to hash, not 0.
 */
void dp_port_ask_rss(struct dp_nic *nic, const struct rte_eth_dev_info *info, uint64_t rss,
	struct rte_eth_conf *conf);

/**
 * Find which queue each hash goes to; once the device has started. Where it does not tell, the
 * workers hand nothing on.
 */
void dp_port_settle_rss(struct dp_nic *nic, const struct rte_eth_dev_info *info);

#endif
