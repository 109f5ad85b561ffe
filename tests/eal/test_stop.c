/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dp_handoff.h"
#include "dp_plane.h"
#include "expect.h"
#include "packet_builder.h"
#include "small_plane.h"

#define N_PORTS     4u
#define N_BUFFERS   1023u
#define N_DATAGRAMS 200u

static int
start(void **state)
{
	(void)state;
	return small_plane_start("test_stop", 2, N_PORTS, NULL);
}

static void
open_plane(struct small_plane *plane)
{
	const struct small_plane_conf conf = {.dp = {.n_workers = 2},
		.now_ns = dp_now_ns(),
		.n_ports = 1,
		.n_buffers = N_BUFFERS,
		.buffer_bytes = RTE_MBUF_DEFAULT_BUF_SIZE};

	small_plane_open(plane, &conf);
	assert_non_null(plane->dp->ports[0].nic.tx_ring);
	small_plane_publish(plane, NULL);
}

static struct rte_mbuf *
make(struct small_plane *plane, const struct pb_layer *layers)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = pb_build(layers, frame);

	return small_plane_make(plane, frame, n);
}

static void
mail(struct small_plane *plane, unsigned int worker, const struct pb_layer *layers)
{
	assert_int_equal(rte_ring_enqueue(plane->dp->mail[worker].packets, make(plane, layers)),
		0);
}

static const struct pb_layer segment[] = {ETHER(), IPV4(), TCP(.tcp_flags = 0x10), END};
static const struct pb_layer later[] = {ETHER(), IPV4(.fragment = 9, .proto = 17), PAYLOAD(64),
	END};
static const struct pb_layer of_another[] = {ETHER(),
	IPV4(.src = "203.0.113.99", .fragment = 9, .proto = 17), PAYLOAD(64), END};

static uint64_t
sent_to_backends(struct small_plane *plane)
{
	uint64_t n_sent = 0;

	for (uint32_t id = 0; id < SMALL_PLANE_BACKENDS; id++) {
		struct dp_backend_counts counts;

		dp_read_backend(plane->dp, id, &counts);
		n_sent += counts.packets;
	}
	return n_sent;
}

/* Of a datagram from src: the first fragment to the worker that is not its home. */
static void
mail_datagram(struct small_plane *plane, const char *src)
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
	struct small_plane plane;

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
	small_plane_expect_verdicts(&plane, "handed over", want);
	assert_int_equal(sent_to_backends(&plane), 2 + 2 * N_DATAGRAMS);
	small_plane_close(&plane);
}

static void
test_what_waits_is_given_up(void **state)
{
	const uint64_t want[LB_N_VERDICTS] = {[LB_DROP_FRAGMENT_UNMATCHED] = 3};
	struct small_plane plane;

	(void)state;
	open_plane(&plane);
	mail(&plane, 0, later);
	mail(&plane, 1, later);
	mail(&plane, 1, of_another);
	dp_stop(plane.dp);
	small_plane_expect_verdicts(&plane, "given up", want);
	small_plane_close(&plane);
}

/* A packet, a piece of it, and what the kernel sends: the packet alone counts. */
static void
leave_to_first_worker(struct small_plane *plane)
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
	struct small_plane plane;

	(void)state;
	open_plane(&plane);
	leave_to_first_worker(&plane);
	small_plane_expect_verdicts(&plane, "not sent yet", (const uint64_t[LB_N_VERDICTS]){0});
	dp_stop(plane.dp);
	small_plane_expect_verdicts(&plane, "sent", want);
	assert_int_equal(sent_to_backends(&plane), 1);
	small_plane_close(&plane);
}

static void
test_what_a_port_that_is_down_keeps_is_dropped(void **state)
{
	const uint64_t want[LB_N_VERDICTS] = {[LB_DROP_PORT_DOWN] = 2};
	struct small_plane plane;

	(void)state;
	open_plane(&plane);
	leave_to_first_worker(&plane);
	dp_port_set_down(plane.dp, 0, true, false);
	mail(&plane, 1, segment);
	dp_stop(plane.dp);
	small_plane_expect_verdicts(&plane, "down", want);
	assert_int_equal(sent_to_backends(&plane), 0);
	small_plane_close(&plane);
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
