/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "dp_handoff.h"
#include "dp_plane.h"
#include "expect.h"
#include "packet_builder.h"

static const char config[] = "dataplane:\n"
			     "  ports:\n"
			     "    - {name: wan, device: net_null0, addresses: [192.0.2.1/24],\n"
			     "       next_hop: '02:00:00:00:00:fe'}\n"
			     "services:\n"
			     "  - name: web\n"
			     "    address: 198.51.100.10\n"
			     "    protocol: any\n"
			     "    port: any\n"
			     "    table: {algorithm: maglev, size: 251}\n"
			     "    backends: [{name: a, address: 10.0.0.1}]\n";

#define N_PORTS     4u
#define N_BUFFERS   1023u
#define N_DATAGRAMS 200u

/* With one queue of either kind, so that the second worker leaves its frames to the first. */
static struct dp_port_conf ports[N_PORTS];
static char devices[N_PORTS][64];
static unsigned int n_used;

struct plane {
	struct cfg_model model;
	struct ctl_apply *apply;
	struct dp *dp;
	struct rte_mempool *pool;
};

static int
start(void **state)
{
	const struct dp_start_conf conf = {.program = "test_stop",
		.ports = ports,
		.n_ports = N_PORTS,
		.n_workers = 2,
		.instance = "test_stop"};

	(void)state;
	for (unsigned int i = 0; i < N_PORTS; i++) {
		(void)snprintf(devices[i], sizeof(devices[i]),
			"net_pcap%u,tx_pcap=/dev/null,infinite_rx=0", i);
		ports[i] =
			(struct dp_port_conf){.name = "wan", .device = devices[i], .mtu = 1500};
	}
	return dp_start(&conf, stderr);
}

static void
open_plane(struct plane *plane)
{
	struct dp_conf conf = {.n_workers = 2};
	struct dp_snapshot *snapshot;
	struct ctl_paths paths;

	memset(plane, 0, sizeof(*plane));
	assert_int_equal(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				 &plane->model),
		0);
	conf.flows = ctl_apply_flow_conf(&plane->model);
	assert_int_equal(ctl_apply_create(&plane->apply), 0);
	assert_int_equal(dp_create(&conf, dp_now_ns(), &plane->dp), 0);
	/* Closed, a device is gone: each test has one of its own. */
	assert_int_equal(dp_open_ports(plane->dp, &ports[n_used++], 1, stderr), 0);
	assert_non_null(plane->dp->ports[0].nic.tx_ring);
	paths = (struct ctl_paths){.port = &plane->model.dataplane.ports[0]};
	assert_int_equal(ctl_apply_build(plane->apply, &plane->model, &paths, stderr,
				 &snapshot),
		0);
	dp_publish(plane->dp, snapshot);
	plane->pool = rte_pktmbuf_pool_create("stop", N_BUFFERS, 0, DP_BESIDE_BYTES,
		RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(plane->pool);
}

static void
close_plane(struct plane *plane)
{
	/* Each packet that was made has come back. */
	assert_int_equal(rte_mempool_avail_count(plane->pool), N_BUFFERS);
	dp_destroy(plane->dp);
	rte_mempool_free(plane->pool);
	ctl_apply_destroy(plane->apply);
	cfg_model_fini(&plane->model);
}

static struct rte_mbuf *
make(struct plane *plane, const struct pb_layer *layers)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = pb_build(layers, frame);
	struct rte_mbuf *m = rte_pktmbuf_alloc(plane->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	m->port = plane->dp->ports[0].nic.id;
	return m;
}

static void
mail(struct plane *plane, unsigned int worker, const struct pb_layer *layers)
{
	assert_int_equal(rte_ring_enqueue(plane->dp->mail[worker].packets, make(plane, layers)),
		0);
}

static const struct pb_layer segment[] = {ETHER(), IPV4(), TCP(.tcp_flags = 0x10), END};
static const struct pb_layer later[] = {ETHER(), IPV4(.fragment = 9, .proto = 17), PAYLOAD(64),
	END};
static const struct pb_layer of_another[] = {ETHER(),
	IPV4(.src = "203.0.113.99", .fragment = 9, .proto = 17), PAYLOAD(64), END};

/* All verdicts there are: those wanted, and no other. */
static void
expect_verdicts(struct plane *plane, const uint64_t want[LB_N_VERDICTS])
{
	uint64_t counts[LB_N_VERDICTS];

	dp_read_verdicts(plane->dp, counts);
	for (unsigned int v = 0; v < LB_N_VERDICTS; v++)
		EXPECT(counts[v] == want[v], "verdict %u: %lu, want %lu", v,
			(unsigned long)counts[v], (unsigned long)want[v]);
}

static uint64_t
sent_to_backend(struct plane *plane)
{
	struct dp_backend_counts counts;

	dp_read_backend(plane->dp, 0, &counts);
	return counts.packets;
}

/* Of a datagram from src: the first fragment to the worker that is not its home. */
static void
mail_datagram(struct plane *plane, const char *src)
{
	const struct pb_layer first[] = {ETHER(), IPV4(.src = src, .fragment = 0x2000), UDP(),
		PAYLOAD(64), END};
	const struct pb_layer second[] = {ETHER(), IPV4(.src = src, .fragment = 9, .proto = 17),
		PAYLOAD(64), END};
	struct rte_mbuf *m = make(plane, second);
	struct lb_packet packet;
	unsigned int home;

	assert_int_equal(dp_mbuf_parse(m, m->pkt_len, &packet), LB_FORWARD);
	rte_pktmbuf_free(m);
	home = dp_handoff_home(&packet, 2);
	mail(plane, home, second);
	mail(plane, 1 - home, first);
}

/*
 * Handed over and not taken: forwarded as ever, by the first worker's queue whoever decides.
 * Of the datagrams either worker is home to more than it hears of at a time.
 */
static void
test_what_was_handed_over_is_dealt_with(void **state)
{
	const uint64_t want[LB_N_VERDICTS] = {[LB_FORWARD] = 2 + 2 * N_DATAGRAMS};
	struct plane plane;

	(void)state;
	open_plane(&plane);
	mail(&plane, 0, segment);
	mail(&plane, 1, segment);
	for (unsigned int i = 0; i < N_DATAGRAMS; i++) {
		char src[16];

		(void)snprintf(src, sizeof(src), "203.0.113.%u", i + 1);
		mail_datagram(&plane, src);
	}
	dp_stop(plane.dp);
	expect_verdicts(&plane, want);
	assert_int_equal(sent_to_backend(&plane), 2 + 2 * N_DATAGRAMS);
	close_plane(&plane);
}

static void
test_what_waits_is_given_up(void **state)
{
	const uint64_t want[LB_N_VERDICTS] = {[LB_DROP_FRAGMENT_UNMATCHED] = 3};
	struct plane plane;

	(void)state;
	open_plane(&plane);
	mail(&plane, 0, later);
	mail(&plane, 1, later);
	mail(&plane, 1, of_another);
	dp_stop(plane.dp);
	expect_verdicts(&plane, want);
	close_plane(&plane);
}

/* A packet, a piece of it, and what the kernel sends: the packet alone counts. */
static void
leave_to_first_worker(struct plane *plane)
{
	const struct dp_decision decisions[] = {
		{.verdict = LB_FORWARD, .backend = 0, .ip_bytes = 40},
		{.verdict = DP_PIECE},
	};

	for (size_t i = 0; i < LB_N_ELEMENTS(decisions); i++) {
		struct rte_mbuf *m = make(plane, segment);

		dp_beside(m)->decision = decisions[i];
		assert_int_equal(rte_ring_enqueue(plane->dp->ports[0].nic.tx_ring, m), 0);
	}
}

static void
test_what_another_worker_sends_counts_as_it_leaves(void **state)
{
	const uint64_t want[LB_N_VERDICTS] = {[LB_FORWARD] = 1};
	struct plane plane;

	(void)state;
	open_plane(&plane);
	leave_to_first_worker(&plane);
	expect_verdicts(&plane, (const uint64_t[LB_N_VERDICTS]){0});
	dp_stop(plane.dp);
	expect_verdicts(&plane, want);
	assert_int_equal(sent_to_backend(&plane), 1);
	close_plane(&plane);
}

static void
test_what_a_port_that_is_down_keeps_is_dropped(void **state)
{
	const uint64_t want[LB_N_VERDICTS] = {[LB_DROP_PORT_DOWN] = 2};
	struct plane plane;

	(void)state;
	open_plane(&plane);
	leave_to_first_worker(&plane);
	dp_port_set_down(plane.dp, 0, true, false);
	mail(&plane, 1, segment);
	dp_stop(plane.dp);
	expect_verdicts(&plane, want);
	assert_int_equal(sent_to_backend(&plane), 0);
	close_plane(&plane);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_handed_over_is_dealt_with),
		cmocka_unit_test(test_what_waits_is_given_up),
		cmocka_unit_test(test_what_another_worker_sends_counts_as_it_leaves),
		cmocka_unit_test(test_what_a_port_that_is_down_keeps_is_dropped),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
