/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_port_fit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lb_device.h"

/* Ethernet's header and FCS: what the EAL takes for a frame's share where a driver says no
 * largest MTU. */
#define FRAME_OVERHEAD 18u

/* What the kernel keeps free before a frame in the buffers of an XDP socket. */
#define XDP_HEADROOM 256u
/* Both headrooms, tags and FCS are in a buffer, too; its driver counts less. */
#define XDP_MTU_MAX                                                                            \
	(DP_PORT_XDP_ROOM - RTE_PKTMBUF_HEADROOM - XDP_HEADROOM - DP_PORT_FRAME_OVER_MTU)

#define DESCRIPTORS 1024u
/*
 * As many as the driver gives the kernel buffers to fill: then what finds no room has found no
 * buffer, which the driver counts, and never a full ring, which it does not.
 */
#define XDP_DESCRIPTORS 2048u
/* What a worker may hold outside of queues: bursts, buffers at hand, its inbox, its twin's. */
#define WORKER_MBUFS 4096u

/* NICs of some makes count a buffer's room in these. */
#define ROOM_UNIT 1024u
#define ROOM_MIN  2048u

/* Whether one of n options is among arguments split at blanks. NULL: there are none. */
static bool
has_option(const char *extra, const char *const options[], size_t n_options)
{
	while (extra != NULL && *extra != '\0') {
		const size_t n = strcspn(extra, " \t=");

		for (size_t i = 0; i < n_options; i++)
			if (n == strlen(options[i]) && strncmp(extra, options[i], n) == 0)
				return true;
		extra += strcspn(extra, " \t");
		extra += strspn(extra, " \t");
	}
	return false;
}

bool
dp_port_wants_sharing(const char *extra)
{
	static const char *const options[] = {"--proc-type"};

	return has_option(extra, options, LB_N_ELEMENTS(options));
}

bool
dp_port_wants_huge_pages(const char *extra)
{
	static const char *const options[] = {"--huge-dir", "--huge-unlink", "--socket-mem",
		"--socket-limit", "--single-file-segments"};

	return dp_port_wants_sharing(extra) ||
	       has_option(extra, options, LB_N_ELEMENTS(options));
}

uint32_t
dp_port_mtu_max(const struct rte_eth_dev_info *info)
{
	const bool has_both =
		info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu;
	const uint32_t overhead =
		has_both ? info->max_rx_pktlen - info->max_mtu : FRAME_OVERHEAD;
	uint32_t most = info->max_mtu;

	if (info->max_rx_pktlen >= overhead)
		most = RTE_MIN(info->max_rx_pktlen - overhead, most);
	return dp_port_is_xdp(info->driver_name) ? RTE_MIN(most, XDP_MTU_MAX) : most;
}

bool
dp_port_is_xdp(const char *driver)
{
	return strcmp(driver, "net_af_xdp") == 0;
}

uint16_t
dp_port_descriptors(const char *driver)
{
	return dp_port_is_xdp(driver) ? XDP_DESCRIPTORS : DESCRIPTORS;
}

/* A vdev begins with its driver's name, or its own, in which "net" is "eth" and a number
 * follows.
 */
static bool
is_of_driver(const char *device, const char *name)
{
	return strncmp(device + strcspn(device, "_"), name, strlen(name)) == 0;
}

unsigned int
dp_port_n_kept(const char *device, unsigned int n_queues)
{
	char text[16];

	if (!is_of_driver(device, "_pcap"))
		return 0;
	lb_device_find_argument(device, "infinite_rx", text, sizeof(text));
	return strtol(text, NULL, 10) > 0 ? n_queues * DP_PORT_KEPT_MAX : 0;
}

unsigned int
dp_port_n_buffers(const char *device, const struct rte_eth_dev_info *info,
	unsigned int n_workers)
{
	const unsigned int n_queues = RTE_MIN(n_workers, info->max_rx_queues);

	/* To receive, to send, and sent but not yet taken back from the kernel. */
	if (dp_port_is_xdp(info->driver_name))
		return n_queues * 3 * XDP_DESCRIPTORS + n_workers * WORKER_MBUFS;
	return n_workers * (2 * DESCRIPTORS + WORKER_MBUFS) + dp_port_n_kept(device, n_queues);
}

static_assert(RTE_PKTMBUF_HEADROOM + DP_PORT_RING_FRAME_MAX <= UINT16_MAX,
	"a buffer of that room can be made");

uint64_t
dp_port_ring_frame(const char *device)
{
	char text[32];

	if (!is_of_driver(device, "_af_packet"))
		return 0;
	lb_device_find_argument(device, "framesz", text, sizeof(text));
	return strtoul(text, NULL, 10);
}

uint16_t
dp_port_room(uint16_t mtu, uint64_t ring_frame)
{
	const uint32_t frame =
		RTE_ALIGN_CEIL((uint32_t)mtu + DP_PORT_FRAME_OVER_MTU, ROOM_UNIT);

	return (uint16_t)(RTE_PKTMBUF_HEADROOM + RTE_MAX(RTE_MAX(frame, ROOM_MIN), ring_frame));
}

uint32_t
dp_port_buffer_bytes(const struct dp_port_conf *conf)
{
	if (is_of_driver(conf->device, "_af_xdp"))
		return DP_PORT_XDP_ROOM;
	return dp_port_room(conf->mtu,
		RTE_MIN(dp_port_ring_frame(conf->device), (uint64_t)DP_PORT_RING_FRAME_MAX));
}

uint64_t
dp_port_waiting_bytes(const struct dp_port_conf *conf, uint64_t n_packets)
{
	return n_packets *
	       (sizeof(struct rte_mempool_objhdr) + sizeof(struct rte_mbuf) + DP_BESIDE_BYTES +
		       dp_port_buffer_bytes(conf) + RTE_CACHE_LINE_SIZE);
}

uint64_t
dp_port_rss(const struct rte_eth_dev_info *info)
{
	const uint64_t ports = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP |
			       RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	const uint64_t wanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;

	if ((info->flow_type_rss_offloads & ports) != ports)
		return 0;
	return info->flow_type_rss_offloads & wanted;
}

bool
dp_port_has_fixed_queues(const char *driver)
{
	return strcmp(driver, "net_af_packet") == 0 || dp_port_is_xdp(driver);
}
