/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "dp_port_fit.h"
#include "expect.h"

#define ALL_PORTS                                                                              \
	(RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP |                         \
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

static void
test_huge_pages_are_asked_for_by_name(void **state)
{
	static const struct {
		const char *extra;
		bool wants;
	} rows[] = {
		{NULL, false},
		{"", false},
		{"-m 64", false},
		{"--socket-mem=64", true},
		{"--socket-mem 64,64", true},
		{"-m 64  --huge-dir /mnt", true},
		{"--huge-unlink", true},
		{"--huge-unlinked", false},
		{"--no-huge", false},
		{"--proc-type=primary", true},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++)
		EXPECT(dp_port_wants_huge_pages(rows[i].extra) == rows[i].wants, "'%s'",
			rows[i].extra != NULL ? rows[i].extra : "NULL");
}

/* Drivers as DPDK 22.11 has them. */
static void
test_the_largest_mtu_is_what_fits_a_frame(void **state)
{
	static const struct {
		const char *driver;
		uint32_t max_rx_pktlen;
		uint16_t max_mtu;
		uint32_t mtu;
	} rows[] = {
		{"net_af_packet", 1518, UINT16_MAX, 1500},
		{"net_tap", 1522, UINT16_MAX, 1504},
		{"net_null", UINT32_MAX, UINT16_MAX, UINT16_MAX},
		{"net_af_xdp", 3560, 3542, DP_PORT_XDP_ROOM - RTE_PKTMBUF_HEADROOM - 256 - 32},
		{"net_af_xdp", 2048, 2030, 2030},
		{"net_ixgbe", 15872, 15854, 15854},
		{"net_mlx5", 65536, UINT16_MAX, 65518},
		{"says no frame", 0, 9000, 9000},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct rte_eth_dev_info info = {.driver_name = rows[i].driver,
			.max_rx_pktlen = rows[i].max_rx_pktlen,
			.max_mtu = rows[i].max_mtu};
		const uint32_t mtu = dp_port_mtu_max(&info);

		EXPECT(mtu == rows[i].mtu, "%s: %u", rows[i].driver, mtu);
	}
}

static void
test_a_buffer_holds_a_frame_of_the_mtu(void **state)
{
	static const struct {
		const char *what;
		uint16_t mtu;
		uint32_t ring_frame;
		uint16_t room;
	} rows[] = {
		{"the smallest", 576, 0, 2048},
		{"the usual", 1500, 0, 2048},
		{"with two tags and the FCS it is just 2 KiB", 2016, 0, 2048},
		{"a byte more, and a NIC that counts by KiB has room", 2017, 0, 3072},
		{"large", 9000, 0, 9216},
		{"the largest that is configured", 9216, 0, 10240},
		{"a ring's frame that is less", 1500, 1984, 2048},
		{"a ring's frame that is more", 1500, 4096, 4096},
		{"the largest of them", 9216, DP_PORT_RING_FRAME_MAX, DP_PORT_RING_FRAME_MAX},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint16_t room = dp_port_room(rows[i].mtu, rows[i].ring_frame);

		EXPECT(room == RTE_PKTMBUF_HEADROOM + rows[i].room, "%s: %u", rows[i].what,
			room);
	}
}

static void
test_a_port_s_buffers_are_known_before_it_is_opened(void **state)
{
	static const struct {
		const char *device;
		uint16_t mtu;
		uint32_t n_bytes;
	} rows[] = {
		{"0000:03:00.0", 1500, RTE_PKTMBUF_HEADROOM + 2048},
		{"0000:03:00.0", 9000, RTE_PKTMBUF_HEADROOM + 9216},
		{"net_af_packet,iface=eth0", 1500, RTE_PKTMBUF_HEADROOM + 2048},
		{"net_af_packet,iface=eth0,framesz=4096", 1500, RTE_PKTMBUF_HEADROOM + 4096},
		{"net_af_packet,framesz=99999999999", 1500,
			RTE_PKTMBUF_HEADROOM + DP_PORT_RING_FRAME_MAX},
		{"net_af_xdp,iface=eth0", 1500, DP_PORT_XDP_ROOM},
		{"eth_af_xdp3,iface=eth0", 3000, DP_PORT_XDP_ROOM},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct dp_port_conf conf = {.device = rows[i].device, .mtu = rows[i].mtu};
		const uint32_t n_bytes = dp_port_buffer_bytes(&conf);

		EXPECT(n_bytes == rows[i].n_bytes, "%s: %u", rows[i].device, n_bytes);
		EXPECT(dp_port_waiting_bytes(&conf, 10) >= UINT64_C(10) * n_bytes, "%s",
			rows[i].device);
	}
}

static void
test_a_ring_s_frame_is_what_the_device_says(void **state)
{
	static const struct {
		const char *device;
		uint64_t n_bytes;
	} rows[] = {
		{"net_af_packet,iface=eth0", 0},
		{"net_af_packet,iface=eth0,framesz=4096", 4096},
		{"eth_af_packet1,framesz=4096,iface=eth0", 4096},
		{"net_af_packet,framesz=", 0},
		{"net_af_packet,framesz=99999999999999999999999", UINT64_MAX},
		{"net_af_xdp,iface=eth0,framesz=4096", 0},
		{"0000:03:00.0,framesz=4096", 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint64_t n_bytes = dp_port_ring_frame(rows[i].device);

		EXPECT(n_bytes == rows[i].n_bytes, "%s: %lu", rows[i].device,
			(unsigned long)n_bytes);
	}
}

/* What its kernel and driver may keep, whatever the workers do. */
static void
test_xdp_sockets_have_buffers_for_all_their_rings(void **state)
{
	static const struct {
		const char *what;
		const char *driver;
		uint16_t n_queues;
		unsigned int n_workers;
		unsigned int in_queues;
	} rows[] = {
		{"one of all", "net_af_xdp", 1, 1, 6144},
		{"a queue and two workers", "net_af_xdp", 1, 2, 6144},
		{"a queue for each worker", "net_af_xdp", 2, 2, 2 * 6144},
		{"queues that are not used", "net_af_xdp", 4, 2, 2 * 6144},
		{"another driver", "net_ixgbe", 128, 2, 2 * 2048},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct rte_eth_dev_info info = {.driver_name = rows[i].driver,
			.max_rx_queues = rows[i].n_queues};
		const unsigned int n =
			dp_port_n_buffers(rows[i].driver, &info, rows[i].n_workers);

		EXPECT(n == rows[i].in_queues + rows[i].n_workers * 4096, "%s: %u",
			rows[i].what, n);
	}
	assert_int_equal(dp_port_descriptors("net_af_xdp"), 2048);
	assert_int_equal(dp_port_descriptors("net_ixgbe"), 1024);
}

static void
test_a_device_that_keeps_a_capture_has_buffers_for_it(void **state)
{
	static const struct {
		const char *device;
		uint16_t n_queues;
		unsigned int n_workers;
		unsigned int n_kept;
	} rows[] = {
		{"net_pcap0,rx_pcap=in.pcap,infinite_rx=1", 1, 1, 16384},
		{"eth_pcap0,infinite_rx=2,rx_pcap=in.pcap", 1, 1, 16384},
		{"net_pcap,rx_pcap=a,rx_pcap=b,infinite_rx=1", 2, 1, 16384},
		{"net_pcap,rx_pcap=a,rx_pcap=b,infinite_rx=1", 2, 4, 2 * 16384},
		{"net_pcap0,rx_pcap=in.pcap,infinite_rx=0", 1, 2, 0},
		{"net_pcap0,rx_pcap=in.pcap,infinite_rx=", 1, 2, 0},
		{"net_pcap0,rx_pcap=in.pcap", 1, 1, 0},
		{"net_null0,infinite_rx=1", 1, 1, 0},
		{"0000:03:00.0", 128, 3, 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const struct rte_eth_dev_info info = {.driver_name = "whichever",
			.max_rx_queues = rows[i].n_queues};
		const unsigned int n =
			dp_port_n_buffers(rows[i].device, &info, rows[i].n_workers);

		EXPECT(n == rows[i].n_workers * 6144 + rows[i].n_kept, "%s: %u", rows[i].device,
			n);
	}
}

static void
test_less_than_all_ports_is_no_spreading(void **state)
{
	const uint64_t more = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_VXLAN;
	struct rte_eth_dev_info info = {.flow_type_rss_offloads = ALL_PORTS | more};

	(void)state;
	assert_int_equal(dp_port_rss(&info), ALL_PORTS | RTE_ETH_RSS_IPV4);
	for (unsigned int bit = 0; bit < 64; bit++) {
		const uint64_t mask = UINT64_C(1) << bit;

		if ((ALL_PORTS & mask) == 0)
			continue;
		info.flow_type_rss_offloads = (ALL_PORTS | more) & ~mask;
		EXPECT(dp_port_rss(&info) == 0, "without bit %u", bit);
	}
	info.flow_type_rss_offloads = 0;
	assert_int_equal(dp_port_rss(&info), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_huge_pages_are_asked_for_by_name),
		cmocka_unit_test(test_the_largest_mtu_is_what_fits_a_frame),
		cmocka_unit_test(test_a_buffer_holds_a_frame_of_the_mtu),
		cmocka_unit_test(test_a_port_s_buffers_are_known_before_it_is_opened),
		cmocka_unit_test(test_a_ring_s_frame_is_what_the_device_says),
		cmocka_unit_test(test_xdp_sockets_have_buffers_for_all_their_rings),
		cmocka_unit_test(test_a_device_that_keeps_a_capture_has_buffers_for_it),
		cmocka_unit_test(test_less_than_all_ports_is_no_spreading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
