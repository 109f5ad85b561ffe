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
#include "dp_handoff.h"
#include "dp_loop.h"
#include "dp_plane.h"
#include "expect.h"
#include "packet_builder.h"
#include "small_plane.h"

#define N_WORKERS 2u
#define N_PORTS   5u
#define N_BUFFERS 1023u
#define N_ROUNDS  20u
#define WAITS_MAX 3000u
#define WAIT_NS   10000000
#define ACK       0x10
#define SERVED    "198.51.100.10"
#define NOBODY    "198.51.100.99"

static char received[CAPTURE_PATH_BYTES]; /* by the last port */

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
	(void)state;
	save_capture();
	return small_plane_start("test_loop", N_WORKERS, N_PORTS, received);
}

static int
end(void **state)
{
	(void)state;
	return unlink(received);
}

/* The first backend is behind the first port, the other behind the last. */
static void
publish(struct small_plane *plane, unsigned int n_ports)
{
	struct ctl_path paths[SMALL_PLANE_BACKENDS];

	for (unsigned int i = 0; i < SMALL_PLANE_BACKENDS; i++)
		paths[i] = (struct ctl_path){
			.dst = plane->model.services[0].backends[i].address,
			.port = (uint16_t)(i == 0 ? 0 : n_ports - 1),
			.is_resolved = true,
			.mac = {{2, 0, 0, 0, 1, (uint8_t)i}},
		};
	small_plane_publish(plane, paths);
	/* For long, so that a flow is known from its second packet on. */
	for (unsigned int i = 0; i < N_WORKERS; i++) {
		const struct dp_snapshot *snapshot =
			atomic_load_explicit(&plane->dp->current, memory_order_relaxed);

		plane->dp->workers[i]->match_print = snapshot->match_print;
		plane->dp->workers[i]->n_losses = snapshot->n_losses;
		plane->dp->workers[i]->match_since_ns = 0;
	}
}

static void
open_plane(struct small_plane *plane, unsigned int n_ports)
{
	const struct small_plane_conf conf = {.dp = {.n_workers = N_WORKERS},
		.now_ns = dp_now_ns(),
		.n_ports = n_ports,
		.n_buffers = N_BUFFERS,
		.buffer_bytes = RTE_MBUF_DEFAULT_BUF_SIZE};

	small_plane_open(plane, &conf);
	assert_int_equal(plane->dp->ports[0].nic.n_tx, 1);
	publish(plane, n_ports);
}

static void
mail(struct small_plane *plane, unsigned int worker, struct rte_mbuf *m)
{
	assert_int_equal(rte_ring_enqueue(plane->dp->mail[worker].packets, m), 0);
}

static void
mail_segments(struct small_plane *plane, unsigned int worker, const char *dst, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint8_t frame[PB_FRAME_MAX];
		const size_t n_bytes = build(frame, dst, i);

		mail(plane, worker, small_plane_make(plane, frame, n_bytes));
	}
}

/* A datagram's last fragment before its first, at home: it waits, and leaves after that. */
static void
mail_datagram(struct small_plane *plane, unsigned int worker)
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
		m = small_plane_make(plane, frame, pb_build(last, frame));
		assert_int_equal(dp_mbuf_parse(m, m->pkt_len, &packet), LB_FORWARD);
		if (dp_handoff_home(&packet, N_WORKERS) == worker) {
			mail(plane, worker, m);
			mail(plane, worker,
				small_plane_make(plane, frame, pb_build(first, frame)));
			return;
		}
		rte_pktmbuf_free(m);
	}
	fail_msg("no datagram has that home");
}

/* So many frames have left, to both backends, each by its port. */
static void
expect_sent(const struct small_plane *plane, const char *what, uint64_t n)
{
	uint64_t by_port[SMALL_PLANE_BACKENDS] = {0};
	uint64_t n_sent = 0;

	for (uint32_t id = 0; id < SMALL_PLANE_BACKENDS; id++) {
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
		struct small_plane plane;

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
		small_plane_expect_verdicts(&plane, rows[i].what, want);
		expect_sent(&plane, rows[i].what, rows[i].is_down ? 0 : n);
		dp_stop(plane.dp);
		small_plane_close(&plane);
	}
}

/* Wait until the device has handed over what it has. @return how many that is. */
static uint64_t
wait_for_device(const struct small_plane *plane, uint64_t n)
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
	struct small_plane plane;

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
	small_plane_close(&plane);
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
