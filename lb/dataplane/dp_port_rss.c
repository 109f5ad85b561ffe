/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_port_rss.h"

#include <sys/random.h>

/* What rte_softrss() reads, and devices have that say nothing. */
#define KEY_BYTES 40u

#define GROUPS_MAX (DP_RSS_QUEUES_MAX / RTE_ETH_RETA_GROUP_SIZE)

void
dp_port_ask_rss(struct dp_nic *nic, const struct rte_eth_dev_info *info, uint64_t rss,
	struct rte_eth_conf *conf)
{
	const uint8_t n_bytes = info->hash_key_size != 0 ? info->hash_key_size : KEY_BYTES;

	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = rss;
	/* With a key that is not ours it spreads as well; but nobody can tell how. */
	if (n_bytes < KEY_BYTES || n_bytes > DP_RSS_KEY_BYTES_MAX ||
		getrandom(nic->rss.key, n_bytes, 0) != (ssize_t)n_bytes)
		return;
	conf->rx_adv_conf.rss_conf.rss_key = nic->rss.key;
	conf->rx_adv_conf.rss_conf.rss_key_len = n_bytes;
	nic->has_key = true;
}

static bool
is_power_of_2(unsigned int n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

/* In turn, so that a queue has as many places as any other. */
static void
fill_table(struct rte_eth_rss_reta_entry64 *table, uint16_t n, uint16_t n_queues)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rte_eth_rss_reta_entry64 *group = &table[i / RTE_ETH_RETA_GROUP_SIZE];

		group->mask = UINT64_MAX;
		group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = (uint16_t)(i % n_queues);
	}
}

void
dp_port_settle_rss(struct dp_nic *nic, const struct rte_eth_dev_info *info)
{
	struct rte_eth_rss_reta_entry64 table[GROUPS_MAX] = {0};
	const uint16_t n = info->reta_size;

	nic->rss.n_queues = 0;
	if (!nic->spreads || nic->n_rx < 2 || !nic->has_key || !is_power_of_2(n) ||
		n > DP_RSS_QUEUES_MAX)
		return;
	fill_table(table, n, nic->n_rx);
	/* One that takes no other table may still tell of its own. */
	if (rte_eth_dev_rss_reta_update(nic->id, table, n) != 0 &&
		rte_eth_dev_rss_reta_query(nic->id, table, n) != 0)
		return;
	for (uint16_t i = 0; i < n; i++) {
		const uint16_t queue =
			table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];

		if (queue >= nic->n_rx)
			return;
		nic->rss.queue_of[i] = (uint8_t)queue;
	}
	nic->rss.n_queues = n;
}
