/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets of a known flow leave by what was published last about their backend: a worker has a
 * copy of it. Two workers' planes, one of which goes the plain way, send the same.
 */

#include <string.h>

#include <rte_mempool.h>

#include "dp_forward.h"
#include "dp_mbuf.h"
#include "dp_plane.h"
#include "dp_snapshot.h"
#include "expect.h"
#include "lb_compiler.h"
#include "packet_builder.h"

#define PLANES    2u /* the second one goes the plain way */
#define SECOND_NS UINT64_C(1000000000)
#define LONG_NS   (900 * SECOND_NS)
#define SEGMENT   0x10 /* ACK alone */
#define DF        0x4000
#define MAC(last)                                                                              \
	{                                                                                      \
		{                                                                              \
			2, 0, 0, 0, 0, (last)                                                  \
		}                                                                              \
	}

/* What is said of the one backend. */
struct said {
	const char *what;
	enum lb_forward_mode mode;
	const char *source;
	const char *address;
	uint32_t id;
	uint16_t port;
	uint16_t mtu;
	uint16_t vlan;
	bool is_dead;
	struct lb_mac next_hop;
};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_republish", 1);
}

static struct dp_table *
make_table(uint32_t id, bool is_dead)
{
	const struct lb_picker_backend only = {.name = "only", .name_bytes = 4, .weight = 100};
	const struct dp_table_conf conf = {
		.picker = {.algorithm = LB_MAGLEV, .n_slots = 7},
		.backends = &only,
		.ids = &id,
		.n_backends = is_dead ? 0 : 1,
	};
	struct dp_table *table;

	assert_int_equal(dp_table_create(&conf, &table), 0);
	return table;
}

static struct dp_snapshot *
make_snapshot(const struct said *said, bool is_v6)
{
	const struct dp_snapshot_port_conf ports[] = {
		{.id = 0, .mac = MAC(0x10), .has_mac = true},
		{.id = 1, .mac = MAC(0x11), .has_mac = true},
	};
	struct dp_service_conf service = {.match = {.port = PB_DPORT},
		.table = make_table(said->id, said->is_dead)};
	struct dp_backend_conf backend = {
		.id = said->id,
		.port = said->port,
		.is_live = !said->is_dead,
		.has_next_hop = true,
		.next_hop = said->next_hop,
		.mtu = said->mtu,
		.vlan = said->vlan,
		.encap = {.mode = said->mode, .udp_port = 6080},
	};
	const struct dp_snapshot_conf conf = {
		.services = &service,
		.n_services = 1,
		.backends = &backend,
		.n_backends = 1,
		.ports = ports,
		.n_ports = LB_N_ELEMENTS(ports),
	};
	struct dp_snapshot *snapshot;

	assert_int_equal(lb_prefix_parse(is_v6 ? PB_SERVICE_V6 : PB_SERVICE_V4,
				 &service.match.prefix),
		0);
	assert_int_equal(lb_addr_parse(said->source, &backend.encap.src), 0);
	assert_int_equal(lb_addr_parse(said->address, &backend.encap.dst), 0);
	assert_int_equal(dp_snapshot_create(&conf, &snapshot), 0);
	dp_table_release(service.table);
	return snapshot;
}

static struct rte_mbuf *
make_packet(struct rte_mempool *packets, bool is_v6)
{
	const struct pb_layer layers[] = {ETHER(), IPV4(.fragment = DF),
		TCP(.tcp_flags = SEGMENT), PAYLOAD(100), END};
	const struct pb_layer layers_v6[] = {ETHER(), IPV6(), TCP(.tcp_flags = SEGMENT),
		PAYLOAD(100), END};
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = pb_build(is_v6 ? layers_v6 : layers, frame);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	return m;
}

/* @return whether it went the short way to its end. */
static bool
send_one(struct dp *dp, struct dp_burst *burst, struct rte_mbuf *m, bool goes_plainly)
{
	struct dp_worker *worker = dp->workers[0];
	const struct dp_snapshot *snapshot;
	bool is_forwarded = false;

	burst->pkts[0] = m;
	burst->wire_bytes[0] = m->pkt_len;
	burst->now_ns[0] += SECOND_NS;
	burst->n = 1;
	burst->is_placed = true;
	dp_worker_online(worker);
	snapshot = atomic_load_explicit(&dp->current, memory_order_acquire);
	if (goes_plainly)
		dp_forward_burst_plainly(worker, snapshot, burst);
	else
		is_forwarded = dp_forward_burst(worker, snapshot, burst) == 1;
	dp_worker_offline(worker);
	return is_forwarded;
}

static void
expect_alike(const struct said *said, struct dp_burst bursts[PLANES])
{
	const struct dp_decision *a = &bursts[0].decisions[0];
	const struct dp_decision *b = &bursts[1].decisions[0];
	const struct rte_mbuf *short_way = bursts[0].pkts[0];
	const struct rte_mbuf *plainly = bursts[1].pkts[0];

	EXPECT(a->verdict == b->verdict && a->backend == b->backend && a->flow == b->flow,
		"%s: verdict %u, backend %u, flow %u; plainly %u, %u, %u", said->what,
		a->verdict, a->backend, a->flow, b->verdict, b->backend, b->flow);
	if (b->verdict != LB_FORWARD)
		return;
	EXPECT(a->port == said->port && b->port == said->port, "%s: by port %u, plainly %u",
		said->what, a->port, b->port);
	EXPECT(short_way->pkt_len == plainly->pkt_len &&
			memcmp(rte_pktmbuf_mtod(short_way, void *),
				rte_pktmbuf_mtod(plainly, void *), plainly->pkt_len) == 0,
		"%s: another frame than plainly", said->what);
}

static void
say_and_send(const struct said *said, struct dp *planes[PLANES], struct dp_burst bursts[PLANES],
	struct rte_mempool *packets, bool is_v6)
{
	bool was_short = false;

	for (unsigned int p = 0; p < PLANES; p++)
		dp_publish(planes[p], make_snapshot(said, is_v6));
	/* After the second the flow is known, whoever it is with now. */
	for (unsigned int k = 0; k < 3; k++) {
		for (unsigned int p = 0; p < PLANES; p++)
			was_short |= send_one(planes[p], &bursts[p],
				make_packet(packets, is_v6), p > 0);
		expect_alike(said, bursts);
		for (unsigned int p = 0; p < PLANES; p++)
			rte_pktmbuf_free(bursts[p].pkts[0]);
	}
	EXPECT(was_short == (bursts[1].decisions[0].verdict == LB_FORWARD),
		"%s: the short way was %s", said->what, was_short ? "taken" : "not taken");
}

static void
follow_what_is_said(const struct said said[], size_t n, bool is_v6)
{
	static const struct dp_conf conf = {
		.n_workers = 1,
		.flows = {.n_entries = 64, .timeout_ns = {LONG_NS, LONG_NS, LONG_NS, LONG_NS}},
	};
	static struct dp_burst bursts[PLANES];
	struct rte_mempool *packets =
		rte_pktmbuf_pool_create("some", 15, 0, DP_BESIDE_BYTES, 2048, SOCKET_ID_ANY);
	struct dp *planes[PLANES];

	assert_non_null(packets);
	memset(bursts, 0, sizeof(bursts));
	for (unsigned int p = 0; p < PLANES; p++)
		assert_int_equal(dp_create(&conf, 0, &planes[p]), 0);
	for (size_t i = 0; i < n; i++)
		say_and_send(&said[i], planes, bursts, packets, is_v6);
	for (unsigned int p = 0; p < PLANES; p++)
		dp_destroy(planes[p]);
	rte_mempool_free(packets);
}

static void
test_packets_leave_by_what_was_published_last(void **state)
{
	static const struct said over_v4[] = {
		{"IPIP", LB_FORWARD_IPIP, "192.0.2.1", "10.0.0.1", 0, 0, 1500, 0, false,
			MAC(1)},
		{"another next hop", LB_FORWARD_IPIP, "192.0.2.1", "10.0.0.1", 0, 0, 1500, 0,
			false, MAC(2)},
		{"another port", LB_FORWARD_IPIP, "192.0.2.1", "10.0.0.1", 0, 1, 1500, 0, false,
			MAC(2)},
		{"another address", LB_FORWARD_IPIP, "192.0.2.1", "10.0.0.2", 0, 1, 1500, 0,
			false, MAC(2)},
		{"another source", LB_FORWARD_IPIP, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0,
			false, MAC(2)},
		{"GRE", LB_FORWARD_GRE, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0, false, MAC(2)},
		{"GUE", LB_FORWARD_GUE, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0, false, MAC(2)},
		{"it is down", LB_FORWARD_GUE, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0, true,
			MAC(2)},
		{"it is up", LB_FORWARD_GUE, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0, false,
			MAC(2)},
		{"VXLAN", LB_FORWARD_VXLAN, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0, false,
			MAC(2)},
		{"over IPv6", LB_FORWARD_IPIP, "2001:db8::1", "2001:db8::2", 0, 1, 1500, 0,
			false, MAC(2)},
		{"a tag is put in", LB_FORWARD_IPIP, "2001:db8::1", "2001:db8::2", 0, 1, 1500,
			7, false, MAC(2)},
		{"none is, another address", LB_FORWARD_IPIP, "2001:db8::1", "2001:db8::3", 0,
			1, 1500, 0, false, MAC(2)},
		{"as it is", LB_FORWARD_L2, "192.0.2.9", "10.0.0.2", 0, 1, 1500, 0, false,
			MAC(3)},
		{"too small a link", LB_FORWARD_IPIP, "192.0.2.9", "10.0.0.2", 0, 1, 159, 0,
			false, MAC(3)},
		{"one that is large enough", LB_FORWARD_IPIP, "192.0.2.9", "10.0.0.2", 0, 1,
			160, 0, false, MAC(3)},
		{"too small a link again", LB_FORWARD_IPIP, "192.0.2.9", "10.0.0.2", 0, 1, 159,
			0, false, MAC(3)},
		{"another id, the last has nobody", LB_FORWARD_IPIP, "192.0.2.1", "10.0.0.1", 1,
			0, 1500, 0, false, MAC(1)},
		{"a smaller one, the last is beyond them", LB_FORWARD_IPIP, "192.0.2.1",
			"10.0.0.1", 0, 0, 1500, 0, false, MAC(4)},
	};
	static const struct said over_v6[] = {
		{"IPIP", LB_FORWARD_IPIP, "2001:db8::1", "2001:db8::2", 0, 0, 1500, 0, false,
			MAC(1)},
		{"another next hop", LB_FORWARD_IPIP, "2001:db8::1", "2001:db8::2", 0, 0, 1500,
			0, false, MAC(2)},
		{"another address", LB_FORWARD_IPIP, "2001:db8::1", "2001:db8::3", 0, 0, 1500,
			0, false, MAC(2)},
		{"GRE", LB_FORWARD_GRE, "2001:db8::1", "2001:db8::3", 0, 0, 1500, 0, false,
			MAC(2)},
		{"GUE", LB_FORWARD_GUE, "2001:db8::1", "2001:db8::3", 0, 0, 1500, 0, false,
			MAC(2)},
		{"VXLAN", LB_FORWARD_VXLAN, "2001:db8::1", "2001:db8::3", 0, 0, 1500, 0, false,
			MAC(2)},
		{"over IPv4", LB_FORWARD_IPIP, "192.0.2.1", "10.0.0.1", 0, 0, 1500, 0, false,
			MAC(2)},
		{"as it is", LB_FORWARD_L2, "2001:db8::1", "2001:db8::3", 0, 1, 1500, 0, false,
			MAC(3)},
	};

	(void)state;
	follow_what_is_said(over_v4, LB_N_ELEMENTS(over_v4), false);
	follow_what_is_said(over_v6, LB_N_ELEMENTS(over_v6), true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_leave_by_what_was_published_last),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
