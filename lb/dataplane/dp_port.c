/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_port.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#define DESCRIPTORS  1024u
#define TX_RING_SIZE 1024u
/** What a worker may hold outside of queues: bursts, buffers, its inbox. */
#define WORKER_MBUFS 4096u
/** Room for Ethernet, two tags and the FCS around an IP packet of the MTU. */
#define FRAME_OVER_MTU 32u
/** net_tap has as many. */
#define TWIN_QUEUES_MAX 16u

bool
dp_port_is_pci(const char *device)
{
	/* A vdev begins with its driver's name, a PCI address with a digit or has a colon. */
	return strncmp(device, "net_", 4) != 0 && strncmp(device, "eth_", 4) != 0 &&
	       strchr(device, ':') != NULL;
}

void
dp_port_device_name(const struct dp_port_conf *conf, unsigned int index, char *out)
{
	const size_t n = strcspn(conf->device, ",");

	if (dp_port_is_pci(conf->device) ||
		(n > 0 && conf->device[n - 1] >= '0' && conf->device[n - 1] <= '9'))
		(void)snprintf(out, RTE_DEV_NAME_MAX_LEN, "%.*s", (int)n, conf->device);
	else /* two ports may be of one driver; the EAL wants different names */
		(void)snprintf(out, RTE_DEV_NAME_MAX_LEN, "%.*s%u", (int)n, conf->device,
			index);
}

static int
configure(struct dp_nic *nic, uint16_t mtu, unsigned int n_workers, bool is_twin)
{
	struct rte_eth_conf conf = {.txmode.mq_mode = RTE_ETH_MQ_TX_NONE};
	const uint16_t most = is_twin ? TWIN_QUEUES_MAX : UINT16_MAX;
	struct rte_eth_dev_info info;
	int ret;

	ret = rte_eth_dev_info_get(nic->id, &info);
	if (ret != 0)
		return ret;
	nic->n_rx = (uint16_t)RTE_MIN(RTE_MIN(n_workers, info.max_rx_queues), most);
	nic->n_tx = (uint16_t)RTE_MIN(RTE_MIN(n_workers, info.max_tx_queues), most);
	if (is_twin) /* its queues come in pairs */
		nic->n_rx = nic->n_tx = (uint16_t)RTE_MIN(nic->n_rx, nic->n_tx);

	if (nic->n_rx > 1 && info.flow_type_rss_offloads != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	}
	conf.rxmode.mtu = RTE_MIN(mtu, info.max_mtu);
	return rte_eth_dev_configure(nic->id, nic->n_rx, nic->n_tx, &conf);
}

static int
set_up_queues(const struct dp_nic *nic, struct rte_mempool *pool)
{
	const int node = rte_eth_dev_socket_id(nic->id);
	const unsigned int socket = node < 0 ? (unsigned int)SOCKET_ID_ANY : (unsigned int)node;
	uint16_t n_rx = DESCRIPTORS;
	uint16_t n_tx = DESCRIPTORS;
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(nic->id, &n_rx, &n_tx);

	for (uint16_t q = 0; q < nic->n_rx && ret == 0; q++)
		ret = rte_eth_rx_queue_setup(nic->id, q, n_rx, socket, NULL, pool);
	for (uint16_t q = 0; q < nic->n_tx && ret == 0; q++)
		ret = rte_eth_tx_queue_setup(nic->id, q, n_tx, socket, NULL);
	return ret;
}

static int
create_ring(struct dp_nic *nic, unsigned int n_workers)
{
	char name[RTE_RING_NAMESIZE];

	nic->tx_ring = NULL;
	if (nic->n_tx >= n_workers)
		return 0;
	(void)snprintf(name, sizeof(name), "tx_%u", nic->id);
	nic->tx_ring = rte_ring_create(name, TX_RING_SIZE, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return nic->tx_ring == NULL ? -rte_errno : 0;
}

static int
start_nic(struct dp_nic *nic, struct rte_mempool *pool, uint16_t mtu, unsigned int n_workers,
	bool is_twin)
{
	int ret = configure(nic, mtu, n_workers, is_twin);

	if (ret == 0)
		ret = set_up_queues(nic, pool);
	if (ret == 0)
		ret = create_ring(nic, n_workers);
	if (ret == 0)
		ret = rte_eth_dev_start(nic->id);
	if (ret != 0) {
		rte_ring_free(nic->tx_ring);
		nic->tx_ring = NULL;
		return ret;
	}
	/* Not every device can; then what it has is what there is. */
	(void)rte_eth_dev_set_mtu(nic->id, mtu);
	return 0;
}

static void
close_nic(struct dp_nic *nic)
{
	(void)rte_eth_dev_stop(nic->id);
	(void)rte_eth_dev_close(nic->id);
	rte_ring_free(nic->tx_ring);
	nic->tx_ring = NULL;
}

static int
create_pool(const struct dp_port_conf *conf, unsigned int index, unsigned int n_workers,
	struct rte_mempool **out)
{
	const unsigned int n = n_workers * (2 * DESCRIPTORS + WORKER_MBUFS);
	const uint32_t frame = RTE_MAX((uint32_t)conf->mtu + FRAME_OVER_MTU, 2048u);
	char name[RTE_MEMPOOL_NAMESIZE];

	(void)snprintf(name, sizeof(name), "port_%u", index);
	*out = rte_pktmbuf_pool_create(name, n, 256, 0,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + frame), SOCKET_ID_ANY);
	return *out == NULL ? -rte_errno : 0;
}

/* The value of iface= among a vdev's arguments; "" where there is none. */
static void
find_interface(const char *device, char *out, size_t n)
{
	const char *at = strstr(device, ",iface=");

	out[0] = '\0';
	if (at != NULL) {
		at += strlen(",iface=");
		(void)snprintf(out, n, "%.*s", (int)strcspn(at, ","), at);
	}
}

/* A TAP device named after the port, with its MAC address, so that the kernel answers for it.
 */
static int
open_twin(struct dp_port *port, const struct dp_port_conf *conf, unsigned int index,
	unsigned int n_workers)
{
	char device[RTE_DEV_NAME_MAX_LEN];
	char args[128];
	char mac[LB_MAC_TEXT_BYTES];
	int ret;

	(void)snprintf(device, sizeof(device), "net_tap_twin%u", index);
	(void)snprintf(args, sizeof(args), "iface=%.15s,mac=%s", conf->name,
		lb_mac_format(&port->mac, mac));
	ret = rte_eal_hotplug_add("vdev", device, args);
	if (ret != 0)
		return ret;
	ret = rte_eth_dev_get_port_by_name(device, &port->twin.id);
	if (ret == 0)
		ret = start_nic(&port->twin, port->pool, conf->mtu, n_workers, true);
	if (ret != 0) {
		(void)rte_eal_hotplug_remove("vdev", device);
		return ret;
	}
	port->has_twin = true;
	(void)snprintf(port->kernel_if, sizeof(port->kernel_if), "%.15s", conf->name);
	return 0;
}

/* The kernel sees what net_af_packet sees; no twin is to show it again. */
static bool
is_seen_by_kernel(const struct dp_port *port)
{
	return strcmp(port->driver, "net_af_packet") == 0;
}

static int
open_device(struct dp_port *port, const struct dp_port_conf *conf, unsigned int n_workers)
{
	struct rte_ether_addr mac;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->nic.id, &info);

	if (ret == 0)
		ret = rte_eth_macaddr_get(port->nic.id, &mac);
	if (ret != 0)
		return ret;
	memcpy(port->mac.bytes, mac.addr_bytes, sizeof(port->mac.bytes));
	(void)snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	find_interface(conf->device, port->kernel_if, sizeof(port->kernel_if));
	return start_nic(&port->nic, port->pool, conf->mtu, n_workers, false);
}

int
dp_port_open(const struct dp_port_conf *conf, unsigned int index, unsigned int n_workers,
	struct dp_port *out, FILE *messages)
{
	struct dp_port port = {0};
	char name[RTE_DEV_NAME_MAX_LEN];
	int ret;

	dp_port_device_name(conf, index, name);
	if (rte_eth_dev_get_port_by_name(name, &port.nic.id) != 0) {
		(void)fprintf(messages,
			"port '%s': there is no device '%s'; a PCI device must be bound to "
			"vfio-pci (dpdk-devbind.py --status shows it), a vdev's interface must "
			"exist, and both need root or CAP_NET_ADMIN and CAP_NET_RAW\n",
			conf->name, conf->device);
		return -ENODEV;
	}
	ret = create_pool(conf, index, n_workers, &port.pool);
	if (ret != 0) {
		(void)fprintf(messages,
			"port '%s': too little memory for packet buffers: %s; fewer workers "
			"need less, or give more by --eal '-m MIB'\n",
			conf->name, rte_strerror(-ret));
		return ret;
	}
	ret = open_device(&port, conf, n_workers);
	if (ret != 0) {
		(void)fprintf(messages, "port '%s': device '%s' does not start: %s\n",
			conf->name, conf->device, rte_strerror(-ret));
		goto free_pool;
	}
	if (conf->wants_twin && !is_seen_by_kernel(&port)) {
		ret = open_twin(&port, conf, index, n_workers);
		if (ret != 0) {
			(void)fprintf(messages,
				"port '%s': its twin, TAP device '%.15s', cannot be made: %s; "
				"it needs /dev/net/tun and CAP_NET_ADMIN, and no other "
				"interface "
				"of that name. 'kernel: none' does without\n",
				conf->name, conf->name, rte_strerror(-ret));
			goto close_nic;
		}
	}
	*out = port;
	return 0;

close_nic:
	close_nic(&port.nic);
free_pool:
	rte_mempool_free(port.pool);
	return ret;
}

void
dp_port_close(struct dp_port *port)
{
	if (port->has_twin)
		close_nic(&port->twin);
	close_nic(&port->nic);
	rte_mempool_free(port->pool);
}
