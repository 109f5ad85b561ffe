/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_port.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#include "dp_port_rss.h"
#include "dp_port_why.h"
#include "dp_port_xdp.h"
#include "lb_device.h"

#define TX_RING_SIZE 1024u
/** Buffers that each lcore keeps at hand. */
#define POOL_CACHE 256u
/**
 * net_tap passes on the descriptors of its queues, two of a pair, in a message with room for
 * RTE_MP_MAX_FD_NUM, 8, and writes beyond its end where they are more.
 */
#define TAP_QUEUES_MAX 4u

void
dp_port_device_name(const struct dp_port_conf *conf, unsigned int index, char *out)
{
	const size_t n = strcspn(conf->device, ",");

	if (lb_device_is_pci(conf->device) ||
		(n > 0 && conf->device[n - 1] >= '0' && conf->device[n - 1] <= '9'))
		(void)snprintf(out, RTE_DEV_NAME_MAX_LEN, "%.*s", (int)n, conf->device);
	else /* two ports may be of one driver; the EAL wants different names */
		(void)snprintf(out, RTE_DEV_NAME_MAX_LEN, "%.*s%u", (int)n, conf->device,
			index);
}

/*
 * Whatever a driver says of its queues: a device that does not hash ports puts a flow's ICMP
 * errors, or one address' flows, all in one; there each worker that has a queue spreads what it
 * finds, and no queue is left unread.
 */
static int
configure(struct dp_nic *nic, const struct rte_eth_dev_info *info,
	const struct dp_port_place *place)
{
	struct rte_eth_conf conf = {.txmode.mq_mode = RTE_ETH_MQ_TX_NONE};
	const bool is_tap = strcmp(info->driver_name, "net_tap") == 0;
	const uint16_t most = is_tap ? TAP_QUEUES_MAX : UINT16_MAX;
	const uint64_t rss = dp_port_rss(info);

	nic->n_rx = (uint16_t)RTE_MIN(RTE_MIN(place->n_workers, info->max_rx_queues), most);
	nic->n_tx = (uint16_t)RTE_MIN(RTE_MIN(place->n_workers, info->max_tx_queues), most);
	if (is_tap) /* its queues come in pairs */
		nic->n_rx = nic->n_tx = (uint16_t)RTE_MIN(nic->n_rx, nic->n_tx);
	nic->spreads = place->n_workers == 1 || (nic->n_rx == place->n_workers && rss != 0);

	if (nic->n_rx > 1 && rss != 0)
		dp_port_ask_rss(nic, info, rss, &conf);
	conf.rxmode.mtu = nic->mtu;
	return rte_eth_dev_configure(nic->id, nic->n_rx, nic->n_tx, &conf);
}

static int
set_up_queues(const struct dp_nic *nic, struct rte_mempool *pool,
	const struct rte_eth_dev_info *info)
{
	const int node = rte_eth_dev_socket_id(nic->id);
	const unsigned int socket = node < 0 ? (unsigned int)SOCKET_ID_ANY : (unsigned int)node;
	uint16_t n_rx = dp_port_descriptors(info->driver_name);
	uint16_t n_tx = n_rx;
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

/* All but its start. */
static int
prepare_nic(struct dp_nic *nic, struct rte_mempool *pool, const struct rte_eth_dev_info *info,
	const struct dp_port_place *place)
{
	int ret = configure(nic, info, place);

	if (ret == 0)
		ret = set_up_queues(nic, pool, info);
	if (ret == 0)
		ret = create_ring(nic, place->n_workers);
	return ret;
}

static void
close_nic(struct dp_nic *nic)
{
	(void)rte_eth_dev_stop(nic->id);
	(void)rte_eth_dev_close(nic->id);
	rte_ring_free(nic->tx_ring);
	nic->tx_ring = NULL;
}

/*
 * A device that did not start is not closed: net_af_xdp takes the XDP program off an interface
 * then, which may be another shuntd's. The process ends, and what it holds with it.
 */
static void
give_up_nic(struct dp_nic *nic)
{
	rte_ring_free(nic->tx_ring);
	nic->tx_ring = NULL;
}

static void
free_zone(struct rte_mempool_memhdr *chunk, void *opaque)
{
	(void)opaque;
	(void)rte_memzone_free(rte_memzone_lookup(chunk->mp->name));
}

/* Each page may have an IOVA of its own. */
static void
init_mbuf(struct rte_mempool *pool, void *opaque, void *object, unsigned int index)
{
	rte_mempool_get_header(object)->iova = rte_mem_virt2iova(object);
	rte_pktmbuf_init(pool, opaque, object, index);
}

/* From one zone, each object where the one before ends. */
static int
populate_dense(struct rte_mempool *pool, size_t object_bytes)
{
	const long page_bytes = sysconf(_SC_PAGESIZE);
	const size_t n_bytes = pool->size * object_bytes;
	const struct rte_memzone *zone = rte_memzone_reserve_aligned(pool->name, n_bytes,
		SOCKET_ID_ANY, 0, (unsigned int)page_bytes);
	int ret;

	if (zone == NULL)
		return -rte_errno;
	ret = rte_mempool_populate_iova(pool, zone->addr, zone->iova, n_bytes, free_zone, NULL);
	if (ret <= 0) {
		(void)rte_memzone_free(zone);
		return ret < 0 ? ret : -ENOMEM;
	}
	return (unsigned int)ret == pool->size ? 0 : -ENOMEM;
}

/*
 * The driver of XDP sockets registers with the kernel, from the first object on, as many bytes
 * as all objects have together. A buffer that is not within these, or not within one page, the
 * kernel takes and never gives back. So there must be no gap between objects, and none may
 * cross a page: they are aligned, and divide a page.
 */
static int
create_xdp_pool(const char *name, unsigned int n, struct rte_mempool **out)
{
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = DP_PORT_XDP_ROOM,
		.mbuf_priv_size = DP_BESIDE_BYTES,
	};
	/* Spread over memory channels, they would be padded. */
	struct rte_mempool *pool = rte_mempool_create_empty(name, n,
		sizeof(struct rte_mbuf) + DP_BESIDE_BYTES + DP_PORT_XDP_ROOM, POOL_CACHE,
		sizeof(private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);
	int ret;

	if (pool == NULL)
		return -rte_errno;
	ret = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (ret == 0) {
		rte_pktmbuf_pool_init(pool, &private);
		ret = populate_dense(pool, DP_PORT_XDP_OBJECT_BYTES);
	}
	if (ret != 0) {
		rte_mempool_free(pool);
		return ret;
	}
	(void)rte_mempool_obj_iter(pool, init_mbuf, NULL);
	*out = pool;
	return 0;
}

static int
create_pool(const struct dp_port_conf *conf, const struct dp_port_place *place,
	const struct rte_eth_dev_info *info, struct rte_mempool **out, FILE *messages)
{
	const unsigned int n =
		dp_port_n_buffers(conf->device, info, place->n_workers) + place->n_waiting;
	const uint64_t n_bytes = dp_port_waiting_bytes(conf, n);
	const uint64_t waiting_bytes = dp_port_waiting_bytes(conf, place->n_waiting);
	char name[RTE_MEMPOOL_NAMESIZE];
	int ret;

	(void)snprintf(name, sizeof(name), "port_%u", place->index);
	if (dp_port_is_xdp(info->driver_name)) {
		ret = create_xdp_pool(name, n, out);
	} else {
		*out = rte_pktmbuf_pool_create(name, n, POOL_CACHE, DP_BESIDE_BYTES,
			dp_port_room(conf->mtu, dp_port_ring_frame(conf->device)),
			SOCKET_ID_ANY);
		ret = *out == NULL ? -rte_errno : 0;
	}
	if (ret != 0)
		(void)fprintf(messages,
			"port '%s': too little memory for packet buffers: %s; at least "
			"%" PRIu64 " bytes, and %" PRIu64
			" of these dataplane.fragments.waiting: that, or fewer workers, may be "
			"less, or give more by --eal '-m MIB'\n",
			conf->name, rte_strerror(-ret), n_bytes, waiting_bytes);
	return ret;
}

/* A TAP device named after the port, with its MAC address, so that the kernel answers for it.
 */
static int
open_twin(struct dp_port *port, const struct dp_port_conf *conf,
	const struct dp_port_place *place, FILE *messages)
{
	struct dp_nic *twin = &port->twin;
	struct rte_eth_dev_info info;
	char device[RTE_DEV_NAME_MAX_LEN];
	char args[128];
	char mac[LB_MAC_TEXT_BYTES];
	int ret;

	/* Cut, it would be another's: a name that the kernel has not is no proof then. */
	if (strlen(conf->name) >= IF_NAMESIZE)
		return -ENAMETOOLONG;
	/* The driver would take over a TAP device that somebody else keeps. */
	if (if_nametoindex(conf->name) != 0)
		return -EEXIST;
	(void)snprintf(device, sizeof(device), "net_tap_twin%u", place->index);
	(void)snprintf(args, sizeof(args), "iface=%s,mac=%s", conf->name,
		lb_mac_format(&port->mac, mac));
	ret = rte_eal_hotplug_add("vdev", device, args);
	if (ret != 0)
		return ret;
	ret = rte_eth_dev_get_port_by_name(device, &twin->id);
	if (ret == 0)
		ret = rte_eth_dev_info_get(twin->id, &info);
	if (ret == 0) {
		twin->mtu = (uint16_t)RTE_MIN((uint32_t)conf->mtu, dp_port_mtu_max(&info));
		ret = prepare_nic(twin, port->pool, &info, place);
		if (ret == 0)
			ret = rte_eth_dev_start(twin->id);
		if (ret != 0)
			give_up_nic(twin);
	}
	if (ret != 0) {
		(void)rte_eal_hotplug_remove("vdev", device);
		return ret;
	}
	if (twin->mtu < conf->mtu)
		(void)fprintf(messages,
			"port '%s': its twin takes an MTU of at most %u: longer packets for "
			"the kernel are dropped, too_big\n",
			conf->name, twin->mtu);
	port->has_twin = true;
	(void)snprintf(port->kernel_if, sizeof(port->kernel_if), "%s", conf->name);
	return 0;
}

/* What is wanted of the device and it cannot give, while it is still untouched. */
static int
check_device(const struct dp_port_conf *conf, const struct rte_eth_dev_info *info,
	const struct dp_port_place *place, FILE *messages)
{
	const uint32_t mtu_max = dp_port_mtu_max(info);
	const uint64_t ring_frame = dp_port_ring_frame(conf->device);

	if (ring_frame > DP_PORT_RING_FRAME_MAX) {
		(void)fprintf(messages,
			"port '%s': device '%s': a packet buffer has no room for framesz=; it "
			"may be %u\n",
			conf->name, conf->device, DP_PORT_RING_FRAME_MAX);
		return -EINVAL;
	}
	if (conf->mtu > mtu_max) {
		(void)fprintf(messages,
			"port '%s': device '%s' takes an MTU of at most %u, mtu: is %u\n",
			conf->name, conf->device, mtu_max, conf->mtu);
		return -EINVAL;
	}
	if (dp_port_has_fixed_queues(info->driver_name) &&
		info->max_rx_queues > place->n_workers) {
		(void)fprintf(messages,
			"port '%s': device '%s' has %u queues, and there is nobody to read "
			"more than %u: give it fewer, or set dataplane.workers: %u\n",
			conf->name, conf->device, info->max_rx_queues, place->n_workers,
			info->max_rx_queues);
		return -EINVAL;
	}
	return dp_port_is_xdp(info->driver_name)
		       ? dp_port_check_xdp_queues(conf, info->max_rx_queues, messages)
		       : 0;
}

/* @return the interface's, or 0. */
static unsigned int
read_interface_mtu(const char *name)
{
	struct ifreq request = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_known;

	if (fd < 0)
		return 0;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	is_known = ioctl(fd, SIOCGIFMTU, &request) == 0;
	(void)close(fd);
	return is_known ? (unsigned int)request.ifr_mtu : 0;
}

/*
 * Before the start: many drivers refuse it after. A driver without a way to set it has heard at
 * the start what is wanted, and has not objected. One that fails may be the kernel's interface,
 * which needs no change.
 */
static int
set_mtu(const struct dp_port *port, const struct dp_port_conf *conf, FILE *messages)
{
	const int ret = rte_eth_dev_set_mtu(port->nic.id, conf->mtu);

	if (ret == 0 || ret == -ENOTSUP)
		return 0;
	if (port->device_if[0] != '\0' && read_interface_mtu(port->device_if) >= conf->mtu)
		return 0;
	(void)fprintf(messages,
		"port '%s': device '%s' does not take mtu: %u: %s; give a smaller one, or set "
		"that of the device first\n",
		conf->name, conf->device, conf->mtu, rte_strerror(-ret));
	return ret;
}

/* What works, and not in the way that might be expected. */
static void
say_what_is_special(const struct dp_port *port, const struct dp_port_conf *conf,
	const struct dp_port_place *place, FILE *messages)
{
	const int node = rte_eth_dev_socket_id(port->nic.id);
	bool is_near = node < 0 || !port->is_pci; /* a vdev says any */
	unsigned int lcore;

	if (port->nic.n_rx > 1 && !port->nic.spreads && port->nic.n_rx == place->n_workers)
		(void)fprintf(messages,
			"port '%s': device '%s' does not spread packets by their ports over "
			"its %u queues; the workers do, and have that much less time\n",
			conf->name, conf->device, port->nic.n_rx);
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		is_near |= (int)rte_lcore_to_socket_id(lcore) == node;
	}
	if (!is_near)
		(void)fprintf(messages,
			"port '%s': device '%s' is at NUMA node %d, and no worker is: start "
			"shuntd by 'taskset -c' or 'numactl --cpunodebind=%d' on CPUs of that "
			"node\n",
			conf->name, conf->device, node, node);
}

/* What a device keeps beyond its share is missing where packets are received. */
static bool
keeps_too_many(const struct dp_port *port, const struct dp_port_conf *conf)
{
	const unsigned int n_kept = dp_port_n_kept(conf->device, port->nic.n_rx);

	return n_kept > 0 && rte_mempool_in_use_count(port->pool) > n_kept;
}

static int
open_device(struct dp_port *port, const struct dp_port_conf *conf,
	const struct dp_port_place *place, FILE *messages)
{
	struct rte_ether_addr mac;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->nic.id, &info);

	if (ret == 0)
		ret = rte_eth_macaddr_get(port->nic.id, &mac);
	if (ret != 0)
		goto failed;
	ret = check_device(conf, &info, place, messages);
	if (ret != 0)
		return ret;
	ret = create_pool(conf, place, &info, &port->pool, messages);
	if (ret != 0)
		return ret;
	memcpy(port->mac.bytes, mac.addr_bytes, sizeof(port->mac.bytes));
	(void)snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	/* The kernel sees what net_af_packet sees, and the other way round. */
	port->hears_itself = strcmp(port->driver, "net_af_packet") == 0;
	port->hears_others = port->hears_itself || dp_port_is_xdp(port->driver);
	lb_device_find_argument(conf->device, "iface", port->device_if,
		sizeof(port->device_if));
	memcpy(port->kernel_if, port->device_if, sizeof(port->kernel_if));
	port->is_pci = lb_device_is_pci(conf->device);
	port->if_index = info.if_index;
	port->nic.mtu = conf->mtu;
	ret = prepare_nic(&port->nic, port->pool, &info, place);
	if (ret == 0 && keeps_too_many(port, conf))
		ret = -ENOBUFS;
	if (ret != 0)
		goto give_up;
	ret = set_mtu(port, conf, messages);
	if (ret != 0) {
		give_up_nic(&port->nic);
		return ret;
	}
	ret = rte_eth_dev_start(port->nic.id);
	if (ret != 0)
		goto give_up;
	dp_port_settle_rss(&port->nic, &info);
	say_what_is_special(port, conf, place, messages);
	return 0;

give_up:
	give_up_nic(&port->nic);
failed:
	(void)fprintf(messages, "port '%s': device '%s' does not start: %s; %s\n", conf->name,
		conf->device, rte_strerror(-ret), dp_port_find_cure(conf, ret));
	return ret;
}

int
dp_port_open(const struct dp_port_conf *conf, const struct dp_port_place *place,
	struct dp_port *out, FILE *messages)
{
	struct dp_port port = {.nic.down_verdict = LB_DROP_PORT_DOWN,
		.twin.down_verdict = LB_DROP_KERNEL_DOWN};
	char name[RTE_DEV_NAME_MAX_LEN];
	int ret;

	dp_port_device_name(conf, place->index, name);
	if (rte_eth_dev_get_port_by_name(name, &port.nic.id) != 0) {
		dp_port_say_why_missing(conf, messages);
		return -ENODEV;
	}
	ret = open_device(&port, conf, place, messages);
	if (ret != 0) /* its queues may point to its pool */
		return ret;
	if (conf->wants_twin && !port.hears_itself) {
		ret = open_twin(&port, conf, place, messages);
		if (ret != 0) {
			dp_port_say_why_no_twin(conf, ret, messages);
			dp_port_close(&port);
			dp_port_free_buffers(&port);
			return ret;
		}
	}
	*out = port;
	return 0;
}

void
dp_port_close(struct dp_port *port)
{
	if (port->has_twin)
		close_nic(&port->twin);
	close_nic(&port->nic);
}

void
dp_port_free_buffers(struct dp_port *port)
{
	rte_mempool_free(port->pool);
}
