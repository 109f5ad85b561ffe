/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a worker's loop makes of a burst: each packet that a device hands over has one verdict,
 * and goes where that says, also where the burst cannot be sent as it is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture_builder.h"
#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "dp_handoff.h"
#include "dp_loop.h"
#include "dp_plane.h"
#include "expect.h"
#include "packet_builder.h"

static const char config[] =
	"dataplane:\n"
	"  ports:\n"
	"    - {name: wan, device: net_null0, addresses: [192.0.2.1/24]}\n"
	"    - {name: lan, device: net_null1, addresses: [192.0.3.1/24]}\n"
	"services:\n"
	"  - name: web\n"
	"    address: 198.51.100.10\n"
	"    protocol: any\n"
	"    port: any\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n";

#define N_WORKERS  2u
#define N_BACKENDS 2u
#define N_PORTS    5u
#define N_BUFFERS  1023u
#define N_ROUNDS   20u
#define WAITS_MAX  3000u
#define WAIT_NS    10000000
#define ACK        0x10
#define SERVED     "198.51.100.10"
#define NOBODY     "198.51.100.99"

/* With one queue of either kind: the second worker leaves what it sends to the first. */
static struct dp_port_conf ports[N_PORTS];
static char devices[N_PORTS][128];
static unsigned int n_used;
static char received[CAPTURE_PATH_BYTES]; /* by the last port */

struct plane {
	struct cfg_model model;
	struct ctl_apply *apply;
	struct dp *dp;
	struct rte_mempool *pool;
};

static size_t
build(uint8_t *frame, const char *dst, unsigned int flow)
{
	const struct pb_layer layers[] = {ETHER(), IPV4(.dst = dst),
		TCP(.tcp_flags = ACK, .sport = 1 + (int)flow), END};

	return pb_build(layers, frame);
}

static void
put_round(struct capture *capture, const char *dst)
{
	for (unsigned int i = 0; i < 2 * DP_BURST_MAX; i++) {
		uint8_t frame[PB_FRAME_MAX];
		const uint32_t n = (uint32_t)build(frame, dst, i);

		capture_pcap_packet(capture, 0, 0, frame, n, n);
	}
}

/* Known flows, between them what is for nobody. */
static void
save_capture(void)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	assert_non_null(capture);
	capture_pcap_header(capture, 1);
	for (unsigned int i = 0; i < N_ROUNDS; i++)
		put_round(capture, i % 4 == 2 ? NOBODY : SERVED);
	capture_save(capture, capture->n_bytes, received);
	free(capture);
}

static int
start(void **state)
{
	const struct dp_start_conf conf = {.program = "test_loop",
		.ports = ports,
		.n_ports = N_PORTS,
		.n_workers = N_WORKERS,
		.instance = "test_loop"};

	(void)state;
	save_capture();
	for (unsigned int i = 0; i < N_PORTS; i++) {
		const bool is_last = i == N_PORTS - 1;

		(void)snprintf(devices[i], sizeof(devices[i]),
			"net_pcap%u,%s%s%stx_pcap=/dev/null", i, is_last ? "rx_pcap=" : "",
			is_last ? received : "", is_last ? "," : "");
		ports[i] =
			(struct dp_port_conf){.name = "wan", .device = devices[i], .mtu = 1500};
	}
	return dp_start(&conf, stderr);
}

static int
end(void **state)
{
	(void)state;
	return unlink(received);
}

/* The first backend is behind the first port, the other behind the last. */
static void
publish(struct plane *plane, unsigned int n_ports)
{
	struct ctl_path items[N_BACKENDS];
	const struct ctl_paths paths = {.items = items, .n_items = N_BACKENDS};
	struct dp_snapshot *snapshot;

	for (unsigned int i = 0; i < N_BACKENDS; i++)
		items[i] = (struct ctl_path){
			.dst = plane->model.services[0].backends[i].address,
			.port = (uint16_t)(i == 0 ? 0 : n_ports - 1),
			.is_resolved = true,
			.mac = {{2, 0, 0, 0, 1, (uint8_t)i}},
		};
	assert_int_equal(ctl_apply_build(plane->apply, &plane->model, &paths, stderr,
				 &snapshot),
		0);
	dp_publish(plane->dp, snapshot);
	/* For long, so that a flow is known from its second packet on. */
	for (unsigned int i = 0; i < N_WORKERS; i++) {
		plane->dp->workers[i]->match_print = snapshot->match_print;
		plane->dp->workers[i]->n_losses = snapshot->n_losses;
		plane->dp->workers[i]->match_since_ns = 0;
	}
}

static void
open_plane(struct plane *plane, unsigned int n_ports)
{
	struct dp_conf conf = {.n_workers = N_WORKERS};

	memset(plane, 0, sizeof(*plane));
	assert_int_equal(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				 &plane->model),
		0);
	conf.flows = ctl_apply_flow_conf(&plane->model);
	assert_int_equal(ctl_apply_create(&plane->apply), 0);
	assert_int_equal(dp_create(&conf, dp_now_ns(), &plane->dp), 0);
	/* Closed, a device is gone: each test has its own. */
	assert_true(n_used + n_ports <= N_PORTS);
	assert_int_equal(dp_open_ports(plane->dp, &ports[n_used], n_ports, stderr), 0);
	n_used += n_ports;
	assert_int_equal(plane->dp->ports[0].nic.n_tx, 1);
	publish(plane, n_ports);
	plane->pool = rte_pktmbuf_pool_create("loop", N_BUFFERS, 0, DP_BESIDE_BYTES,
		RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(plane->pool);
}

static void
close_plane(struct plane *plane)
{
	/* Each packet that was made has come back, once. */
	assert_int_equal(rte_mempool_avail_count(plane->pool), N_BUFFERS);
	dp_destroy(plane->dp);
	rte_mempool_free(plane->pool);
	ctl_apply_destroy(plane->apply);
	cfg_model_fini(&plane->model);
}

static struct rte_mbuf *
make(struct plane *plane, const uint8_t *frame, size_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(plane->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	m->port = plane->dp->ports[0].nic.id;
	/* What lies beside it is of another life. */
	memset(dp_beside(m), 0xff, sizeof(*dp_beside(m)));
	return m;
}

static void
mail(struct plane *plane, unsigned int worker, struct rte_mbuf *m)
{
	assert_int_equal(rte_ring_enqueue(plane->dp->mail[worker].packets, m), 0);
}

static void
mail_segments(struct plane *plane, unsigned int worker, const char *dst, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint8_t frame[PB_FRAME_MAX];
		const size_t n_bytes = build(frame, dst, i);

		mail(plane, worker, make(plane, frame, n_bytes));
	}
}

/* A datagram's last fragment before its first, at home: it waits, and leaves after that. */
static void
mail_datagram(struct plane *plane, unsigned int worker)
{
	for (unsigned int i = 1; i < 255; i++) {
		char src[16];
		const struct pb_layer first[] = {ETHER(), IPV4(.src = src, .fragment = 0x2000),
			UDP(), PAYLOAD(64), END};
		const struct pb_layer last[] = {ETHER(),
			IPV4(.src = src, .fragment = 9, .proto = 17), PAYLOAD(64), END};
		struct lb_packet packet;
		uint8_t frame[PB_FRAME_MAX];
		struct rte_mbuf *m;

		(void)snprintf(src, sizeof(src), "203.0.113.%u", i);
		m = make(plane, frame, pb_build(last, frame));
		assert_int_equal(dp_mbuf_parse(m, m->pkt_len, &packet), LB_FORWARD);
		if (dp_handoff_home(&packet, N_WORKERS) == worker) {
			mail(plane, worker, m);
			mail(plane, worker, make(plane, frame, pb_build(first, frame)));
			return;
		}
		rte_pktmbuf_free(m);
	}
	fail_msg("no datagram has that home");
}

/* All verdicts there are: those wanted, and no other. */
static void
expect_verdicts(const struct plane *plane, const char *what, const uint64_t want[LB_N_VERDICTS])
{
	uint64_t counts[LB_N_VERDICTS];

	dp_read_verdicts(plane->dp, counts);
	for (unsigned int v = 0; v < LB_N_VERDICTS; v++)
		EXPECT(counts[v] == want[v], "%s: verdict %u: %lu, want %lu", what, v,
			(unsigned long)counts[v], (unsigned long)want[v]);
}

/* So many frames have left, to both backends, each by its port. */
static void
expect_sent(const struct plane *plane, const char *what, uint64_t n)
{
	uint64_t by_port[N_BACKENDS] = {0};
	uint64_t n_sent = 0;

	for (uint32_t id = 0; id < N_BACKENDS; id++) {
		struct dp_backend_counts counts;

		dp_read_backend(plane->dp, id, &counts);
		EXPECT((counts.packets > 0) == (n > 0), "%s: %lu to backend %u", what,
			(unsigned long)counts.packets, id);
		by_port[id < plane->dp->n_ports ? id : 0] += counts.packets;
		n_sent += counts.packets;
	}
	EXPECT(n_sent == n, "%s: %lu to backends", what, (unsigned long)n_sent);
	for (size_t i = 0; i < plane->dp->n_ports; i++) {
		struct rte_eth_stats stats;

		assert_int_equal(rte_eth_stats_get(plane->dp->ports[i].nic.id, &stats), 0);
		EXPECT(stats.opackets == by_port[i], "%s: %lu by port %zu, want %lu", what,
			(unsigned long)stats.opackets, i, (unsigned long)by_port[i]);
	}
}

/*
 * Flows begin; then there is a burst of which nothing is forwarded but a datagram, in two
 * fragments of which one leaves after the other; then one that is all forwarded, as all its
 * flows are known.
 */
static void
test_a_known_burst_that_is_not_sent_at_once_goes_where_it_should(void **state)
{
	static const struct {
		const char *what;
		unsigned int worker;
		unsigned int n_ports;
		bool is_down;
	} rows[] = {
		{"a worker without a queue to send by", 1, 1, false},
		{"a port that is down", 0, 1, true},
		{"backends behind two ports", 0, 2, false},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const unsigned int worker = rows[i].worker;
		const uint64_t n = UINT64_C(2) * DP_BURST_MAX + 2;
		uint64_t want[LB_N_VERDICTS] = {[LB_TO_KERNEL] = DP_BURST_MAX - 2};
		struct plane plane;

		open_plane(&plane, rows[i].n_ports);
		dp_port_set_down(plane.dp, 0, rows[i].is_down, false);
		mail_segments(&plane, worker, SERVED, DP_BURST_MAX);
		mail_datagram(&plane, worker);
		mail_segments(&plane, worker, NOBODY, DP_BURST_MAX - 2);
		mail_segments(&plane, worker, SERVED, DP_BURST_MAX);
		dp_loop_empty_inbox(plane.dp->lcores[worker].loop);
		dp_loop_give_up(plane.dp->lcores[worker].loop);
		dp_loop_empty_rings(plane.dp->lcores[0].loop);

		want[rows[i].is_down ? LB_DROP_PORT_DOWN : LB_FORWARD] = n;
		expect_verdicts(&plane, rows[i].what, want);
		expect_sent(&plane, rows[i].what, rows[i].is_down ? 0 : n);
		dp_stop(plane.dp);
		close_plane(&plane);
	}
}

/* Wait until the device has handed over what it has. @return how many that is. */
static uint64_t
wait_for_device(const struct plane *plane, uint64_t n)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	struct rte_eth_stats stats = {0};

	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		assert_int_equal(rte_eth_stats_get(plane->dp->ports[0].nic.id, &stats), 0);
		if (stats.ipackets + stats.rx_nombuf >= n)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return stats.ipackets;
}

/* Of two workers that run: the one with the device's queues hands half of them to the other. */
static void
test_as_many_are_counted_as_the_device_hands_over(void **state)
{
	const uint64_t n = UINT64_C(2) * DP_BURST_MAX * N_ROUNDS;
	const uint64_t n_nobody = n / 4;
	uint64_t counts[LB_N_VERDICTS];
	uint64_t n_received;
	uint64_t n_counted = 0;
	struct plane plane;

	(void)state;
	open_plane(&plane, 1);
	assert_int_equal(dp_run(plane.dp, 1000000), 0);
	n_received = wait_for_device(&plane, n);
	dp_stop(plane.dp);
	dp_read_verdicts(plane.dp, counts);
	for (unsigned int v = 0; v < LB_N_VERDICTS; v++)
		n_counted += counts[v];
	EXPECT(n_received > n / 2, "the device has handed over %lu of %lu",
		(unsigned long)n_received, (unsigned long)n);
	EXPECT(n_counted == n_received, "%lu are counted of %lu", (unsigned long)n_counted,
		(unsigned long)n_received);
	EXPECT(counts[LB_TO_KERNEL] <= n_nobody, "%lu are the kernel's, want %lu",
		(unsigned long)counts[LB_TO_KERNEL], (unsigned long)n_nobody);
	close_plane(&plane);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_known_burst_that_is_not_sent_at_once_goes_where_it_should),
		cmocka_unit_test(test_as_many_are_counted_as_the_device_hands_over),
	};

	return cmocka_run_group_tests(tests, start, end);
}
