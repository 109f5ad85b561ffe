/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "dp_handoff.h"
#include "dp_plane.h"
#include "dp_port_fit.h"
#include "expect.h"
#include "packet_builder.h"
#include "small_plane.h"

struct plane {
	struct small_plane small;
	struct dp_burst burst;
	struct dp_rss rss;
};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_handoff", 2);
}

static void
open_plane_of(struct plane *plane, struct dp_conf dp_conf, uint16_t buffer_bytes)
{
	const struct small_plane_conf conf = {.dp = dp_conf,
		.n_buffers = 255,
		.buffer_bytes = buffer_bytes};

	memset(plane, 0, sizeof(*plane));
	small_plane_open(&plane->small, &conf);
	small_plane_publish(&plane->small, NULL);
	/* Whatever it is, the device puts it in the second worker's queue. */
	plane->rss.n_queues = 1;
	plane->rss.queue_of[0] = 1;
}

static void
open_plane(struct plane *plane)
{
	open_plane_of(plane, (struct dp_conf){.n_workers = 2, .n_handoff = 64},
		RTE_MBUF_DEFAULT_BUF_SIZE);
}

static void
close_plane(struct plane *plane)
{
	small_plane_close(&plane->small);
}

static struct rte_mbuf *
make(struct plane *plane, const struct pb_layer *layers)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = pb_build(layers, frame);

	return small_plane_make(&plane->small, frame, n);
}

/* One packet, as it comes from the device or by mail. */
static struct dp_decision
run(struct plane *plane, unsigned int worker, struct rte_mbuf *m, bool is_placed)
{
	struct dp_burst *burst = &plane->burst;

	burst->n = 1;
	burst->pkts[0] = m;
	burst->now_ns[0] = 1;
	burst->is_placed = is_placed;
	burst->rss = &plane->rss;
	dp_worker_online(plane->small.dp->workers[worker]);
	(void)dp_worker_burst(plane->small.dp->workers[worker], burst);
	dp_worker_offline(plane->small.dp->workers[worker]);
	return burst->decisions[0];
}

/* @return how many there were */
static unsigned int
free_all(struct dp_chain *chain)
{
	unsigned int n = 0;
	struct rte_mbuf *m;

	while ((m = dp_chain_take(chain)) != NULL) {
		rte_pktmbuf_free(m);
		n++;
	}
	return n;
}

static struct rte_mbuf *
next_mail(struct plane *plane, unsigned int worker)
{
	struct rte_mbuf *m = NULL;

	(void)rte_ring_dequeue(plane->small.dp->mail[worker].packets, (void **)&m);
	return m;
}

static const struct pb_layer segment[] = {ETHER(), IPV4(), TCP(.tcp_flags = 0x10), END};
static const struct pb_layer error[] = {ETHER(),
	IPV4(.src = "192.0.2.99", .dst = PB_SERVICE_V4), ICMP(.type = 3, .code = 4),
	IPV4(FROM_SERVICE_V4), TCP(FROM_SERVICE_L4, .n_bytes = 8), END};
static const struct pb_layer error_of_others[] = {ETHER(),
	IPV4(.src = "192.0.2.99", .dst = "198.51.100.99"), ICMP(.type = 3, .code = 4),
	IPV4(.src = "198.51.100.99", .dst = "203.0.113.7"), TCP(.n_bytes = 8), END};
static const struct pb_layer first[] = {ETHER(), IPV4(.fragment = 0x2000), UDP(), PAYLOAD(64),
	END};
static const struct pb_layer later[] = {ETHER(), IPV4(.fragment = 9, .proto = 17), PAYLOAD(64),
	END};

/* A fragment after the first of a datagram of its own. */
static struct rte_mbuf *
make_later(struct plane *plane, unsigned int number)
{
	char src[32];
	const struct pb_layer layers[] = {ETHER(),
		IPV4(.src = src, .fragment = 0x2009, .proto = 17), PAYLOAD(64), END};

	(void)snprintf(src, sizeof(src), "203.1.%u.%u", 113 + number / 200, 1 + number % 200);
	return make(plane, layers);
}

static void
test_a_flow_s_own_packets_are_not_handed_on(void **state)
{
	struct plane plane;
	struct rte_mbuf *m;

	(void)state;
	open_plane(&plane);
	m = make(&plane, segment);
	assert_int_equal(run(&plane, 0, m, false).verdict, LB_FORWARD);
	assert_null(next_mail(&plane, 1));
	rte_pktmbuf_free(m);
	close_plane(&plane);
}

static void
test_an_error_is_handed_to_the_owner_once(void **state)
{
	struct plane plane;
	struct rte_mbuf *m;

	(void)state;
	open_plane(&plane);
	m = make(&plane, error);
	assert_int_equal(run(&plane, 0, m, false).verdict, DP_AWAY);
	assert_ptr_equal(next_mail(&plane, 1), m);
	/* Wherever it comes by mail, there it stays. */
	plane.rss.queue_of[0] = 0;
	assert_int_equal(run(&plane, 1, m, true).verdict, LB_FORWARD);
	assert_null(next_mail(&plane, 0));
	rte_pktmbuf_free(m);

	m = make(&plane, error);
	assert_int_equal(run(&plane, 0, m, false).verdict, LB_FORWARD);
	assert_null(next_mail(&plane, 0));
	rte_pktmbuf_free(m);
	close_plane(&plane);
}

static void
test_what_is_for_no_service_stays(void **state)
{
	struct plane plane;
	struct rte_mbuf *m;

	(void)state;
	open_plane(&plane);
	m = make(&plane, error_of_others);
	assert_int_equal(run(&plane, 0, m, false).verdict, LB_TO_KERNEL);
	assert_null(next_mail(&plane, 1));
	rte_pktmbuf_free(m);
	close_plane(&plane);
}

static void
test_a_full_ring_is_counted(void **state)
{
	uint64_t counts[LB_N_VERDICTS];
	unsigned int n_full = 0;
	struct plane plane;
	struct rte_mbuf *m;

	(void)state;
	open_plane(&plane);
	for (unsigned int i = 0; i < 70; i++) {
		m = make(&plane, error);
		if (run(&plane, 0, m, false).verdict != DP_AWAY) {
			n_full++;
			rte_pktmbuf_free(m);
		}
	}
	assert_int_equal(n_full, 70 - 64);
	dp_read_verdicts(plane.small.dp, counts);
	assert_int_equal(counts[LB_DROP_HANDOFF_FULL], n_full);
	while ((m = next_mail(&plane, 1)) != NULL)
		rte_pktmbuf_free(m);
	close_plane(&plane);
}

/* The home, of the datagram of first and later; and the worker that is not. */
static unsigned int
find_home(struct plane *plane)
{
	struct rte_mbuf *m = make(plane, later);
	struct lb_packet packet;
	unsigned int home;

	assert_int_equal(dp_mbuf_parse(m, m->pkt_len, &packet), LB_FORWARD);
	home = dp_handoff_home(&packet, 2);
	rte_pktmbuf_free(m);
	return home;
}

/* What a worker has to say, besides a burst, at a time. */
static struct dp_chain
hear(struct plane *plane, unsigned int worker, uint64_t now_ns)
{
	struct dp_burst nothing = {.n = 0};

	dp_worker_online(plane->small.dp->workers[worker]);
	(void)dp_worker_hear(plane->small.dp->workers[worker], &nothing, now_ns);
	dp_worker_offline(plane->small.dp->workers[worker]);
	return nothing.settled;
}

/* The flow's owner is the worker that is not the datagrams' home. @return the home */
static unsigned int
part_owner_and_home(struct plane *plane)
{
	const unsigned int home = find_home(plane);

	plane->rss.queue_of[0] = (uint8_t)(1 - home);
	return home;
}

/*
 * A later fragment waits at home; the first is decided by the owner, and leaves by the home,
 * too, before what waited for it.
 */
static void
test_a_first_leaves_by_its_home(void **state)
{
	struct dp_burst nothing = {.n = 0};
	struct plane plane;
	struct rte_mbuf *waiting;
	struct rte_mbuf *m;
	unsigned int home;
	unsigned int owner;

	(void)state;
	open_plane(&plane);
	home = part_owner_and_home(&plane);
	owner = 1 - home;

	waiting = make(&plane, later);
	assert_int_equal(run(&plane, owner, waiting, false).verdict, DP_AWAY);
	assert_ptr_equal(next_mail(&plane, home), waiting);
	assert_int_equal(run(&plane, home, waiting, true).verdict, DP_AWAY);

	m = make(&plane, first);
	assert_int_equal(run(&plane, home, m, false).verdict, DP_AWAY);
	assert_ptr_equal(next_mail(&plane, owner), m);
	assert_int_equal(run(&plane, owner, m, true).verdict, DP_AWAY);
	assert_null(next_mail(&plane, home));

	dp_worker_online(plane.small.dp->workers[home]);
	assert_int_equal(dp_worker_hear(plane.small.dp->workers[home], &nothing, 2), 1);
	dp_worker_offline(plane.small.dp->workers[home]);
	assert_ptr_equal(nothing.settled.first, m);
	assert_int_equal(dp_beside(m)->decision.verdict, LB_FORWARD);
	assert_int_equal(dp_beside(m)->decision.flow, DP_FLOW_MISS);
	assert_true(dp_beside(m)->decision.is_new_flow);
	assert_ptr_equal(dp_beside(m)->next, waiting);
	assert_int_equal(dp_beside(waiting)->decision.verdict, LB_FORWARD);
	assert_int_equal(dp_beside(waiting)->decision.backend, dp_beside(m)->decision.backend);
	assert_int_equal(dp_beside(waiting)->decision.flow, DP_FLOW_HIT);
	assert_null(dp_beside(waiting)->next);
	assert_null(hear(&plane, home, 2).first);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(waiting);
	close_plane(&plane);
}

/* Nothing of a datagram whose fragments overlap leaves, whoever owns its flow. */
static void
test_a_first_that_overlaps_does_not_leave(void **state)
{
	static const struct pb_layer longer[] = {ETHER(), IPV4(.fragment = 0x2000), UDP(),
		PAYLOAD(72), END};
	uint64_t counts[LB_N_VERDICTS];
	struct dp_chain settled;
	struct plane plane;
	struct rte_mbuf *waiting;
	struct rte_mbuf *m;
	unsigned int home;

	(void)state;
	open_plane(&plane);
	home = part_owner_and_home(&plane);
	waiting = make(&plane, later);
	assert_int_equal(run(&plane, home, waiting, true).verdict, DP_AWAY);
	m = make(&plane, longer);
	assert_int_equal(run(&plane, 1 - home, m, true).verdict, DP_AWAY);
	settled = hear(&plane, home, 2);
	assert_ptr_equal(settled.first, m);
	assert_null(dp_beside(m)->next);
	settled = hear(&plane, home, 2);
	assert_ptr_equal(settled.first, waiting);
	dp_read_verdicts(plane.small.dp, counts);
	assert_int_equal(counts[LB_DROP_FRAGMENT_OVERLAP], 2);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(waiting);
	close_plane(&plane);
}

/* Where there is no way to its home a first is dropped there and then. */
static void
test_a_full_ring_to_the_home_is_counted(void **state)
{
	uint64_t counts[LB_N_VERDICTS];
	unsigned int n_full = 0;
	struct dp_chain settled;
	struct plane plane;
	struct rte_mbuf *m;
	unsigned int home;
	unsigned int n_home = 0;

	(void)state;
	open_plane(&plane);
	home = part_owner_and_home(&plane);
	for (unsigned int i = 0; i < 70; i++) {
		m = make(&plane, first);
		if (run(&plane, 1 - home, m, true).verdict != DP_AWAY) {
			n_full++;
			rte_pktmbuf_free(m);
		}
	}
	assert_int_equal(n_full, 70 - 64);
	dp_read_verdicts(plane.small.dp, counts);
	assert_int_equal(counts[LB_DROP_HANDOFF_FULL], n_full);
	while ((settled = hear(&plane, home, 2)).first != NULL)
		n_home += free_all(&settled);
	assert_int_equal(n_home, 64);
	close_plane(&plane);
}

/* A datagram's home follows from its headers, whatever is known of the device. */
static void
test_a_later_fragment_goes_home_whatever_the_device_tells(void **state)
{
	struct plane plane;
	struct rte_mbuf *m;
	unsigned int home;

	(void)state;
	open_plane(&plane);
	plane.rss.n_queues = 0;
	home = find_home(&plane);
	m = make(&plane, later);
	assert_int_equal(run(&plane, 1 - home, m, false).verdict, DP_AWAY);
	assert_ptr_equal(next_mail(&plane, home), m);
	rte_pktmbuf_free(m);

	/* What is the device's to say stays. */
	m = make(&plane, error);
	assert_int_equal(run(&plane, 0, m, false).verdict, LB_FORWARD);
	assert_null(next_mail(&plane, 1));
	rte_pktmbuf_free(m);
	close_plane(&plane);
}

/* Others of it would not ask where it went: they show their flow as it does. */
static void
test_a_datagram_without_ports_is_not_remembered(void **state)
{
	static const struct pb_layer first_of_esp[] = {ETHER(),
		IPV4(.fragment = 0x2000, .proto = 50), PAYLOAD(64), END};
	struct lb_fragment_stats stats;
	struct plane plane;
	struct rte_mbuf *m;
	unsigned int home;

	(void)state;
	open_plane(&plane);
	home = find_home(&plane);
	for (unsigned int worker = 0; worker < 2; worker++) {
		m = make(&plane, first_of_esp);
		assert_int_equal(run(&plane, worker, m, true).verdict, LB_FORWARD);
		lb_fragment_table_stats(plane.small.dp->workers[worker]->fragments.table,
			&stats);
		assert_int_equal(stats.live, 0);
		assert_true(rte_ring_empty(plane.small.dp->mail[worker].firsts));
		rte_pktmbuf_free(m);
	}

	m = make(&plane, first);
	assert_int_equal(run(&plane, home, m, true).verdict, LB_FORWARD);
	lb_fragment_table_stats(plane.small.dp->workers[home]->fragments.table, &stats);
	assert_int_equal(stats.live, 1);
	rte_pktmbuf_free(m);
	close_plane(&plane);
}

/* Without its first one waits a second and no longer. */
static void
test_what_waits_is_given_up_in_time(void **state)
{
	const uint64_t second = 1000000000u;
	struct dp_burst nothing = {.n = 0};
	uint64_t counts[LB_N_VERDICTS];
	struct plane plane;
	struct rte_mbuf *m;

	(void)state;
	open_plane(&plane);
	m = make(&plane, later);
	assert_int_equal(run(&plane, find_home(&plane), m, true).verdict, DP_AWAY);
	(void)dp_worker_hear(plane.small.dp->workers[find_home(&plane)], &nothing, 1 + second);
	assert_null(nothing.settled.first);
	(void)dp_worker_hear(plane.small.dp->workers[find_home(&plane)], &nothing, 2 + second);
	assert_ptr_equal(nothing.settled.first, m);
	dp_read_verdicts(plane.small.dp, counts);
	assert_int_equal(counts[LB_DROP_FRAGMENT_UNMATCHED], 1);
	rte_pktmbuf_free(m);
	close_plane(&plane);
}

/* Of XDP sockets a buffer is a page, whatever the MTU: as many wait as may. */
static void
test_as_many_wait_as_are_configured_whatever_their_buffers(void **state)
{
	const unsigned int n_waiting = 16;
	struct lb_fragment_stats stats;
	struct dp_burst nothing = {.n = 0};
	struct plane plane;
	struct rte_mbuf *m;

	(void)state;
	open_plane_of(&plane,
		(struct dp_conf){.n_workers = 1,
			.n_waiting = n_waiting,
			.buffer_bytes = DP_PORT_XDP_ROOM},
		DP_PORT_XDP_ROOM);
	for (unsigned int i = 0; i <= n_waiting; i++) {
		lb_fragment_table_stats(plane.small.dp->workers[0]->fragments.table, &stats);
		assert_int_equal(stats.waiting, i);
		m = make_later(&plane, i);
		assert_int_equal(run(&plane, 0, m, true).verdict, DP_AWAY);
		/* Not one more: then the oldest makes room. */
		assert_int_equal(free_all(&plane.burst.settled), i == n_waiting);
	}
	dp_worker_abandon(plane.small.dp->workers[0], &nothing);
	assert_int_equal(free_all(&nothing.settled), n_waiting);
	close_plane(&plane);
}

/* What became of packets. */
struct outcome {
	unsigned int n[LB_N_VERDICTS];
	struct dp_decision forwarded; /* the last */
};

static void
account(struct outcome *outcome, struct rte_mbuf *m, struct dp_decision d)
{
	struct dp_chain more = {NULL, NULL};
	struct rte_mbuf *next;

	if (d.verdict == DP_AWAY)
		return;
	if (d.has_more)
		more.first = dp_beside(m)->next;
	outcome->n[d.verdict]++;
	if (d.verdict == LB_FORWARD)
		outcome->forwarded = d;
	rte_pktmbuf_free(m);
	while ((next = dp_chain_take(&more)) != NULL)
		account(outcome, next, dp_beside(next)->decision);
}

static void
account_chain(struct outcome *outcome, struct dp_chain chain)
{
	struct rte_mbuf *m;

	while ((m = dp_chain_take(&chain)) != NULL)
		account(outcome, m, dp_beside(m)->decision);
}

/* A packet comes by a worker's queue, and the workers do all that there is to do. */
static struct outcome
pass(struct plane *plane, unsigned int worker, struct rte_mbuf *m)
{
	struct outcome outcome = {.n = {0}};

	account(&outcome, m, run(plane, worker, m, false));
	account_chain(&outcome, plane->burst.settled);
	for (unsigned int turn = 0; turn < 2 * 2; turn++) {
		while ((m = next_mail(plane, turn % 2)) != NULL) {
			account(&outcome, m, run(plane, turn % 2, m, true));
			account_chain(&outcome, plane->burst.settled);
		}
		account_chain(&outcome, hear(plane, turn % 2, 1));
	}
	return outcome;
}

/* What others send meanwhile leaves at once, and as it did before: in either order. */
static void
expect_others_pass(struct plane *plane, unsigned int n, uint32_t backend)
{
	const struct pb_layer next_first[] = {ETHER(),
		IPV4(.fragment = 0x2000, .id = (int)n + 1), UDP(), PAYLOAD(64), END};
	const struct pb_layer next_later[] = {ETHER(),
		IPV4(.fragment = 9, .id = (int)n + 1, .proto = 17), PAYLOAD(64), END};
	struct outcome outcome = pass(plane, n % 2, make(plane, first));

	assert_int_equal(outcome.n[LB_FORWARD], 1);
	outcome = pass(plane, n % 2, make(plane, later));
	assert_int_equal(outcome.n[LB_FORWARD], 1);
	outcome = pass(plane, n % 2, make(plane, next_later));
	assert_int_equal(outcome.n[LB_FORWARD], 0);
	outcome = pass(plane, n % 2, make(plane, next_first));
	assert_int_equal(outcome.n[LB_FORWARD], 2);

	outcome = pass(plane, 1, make(plane, segment));
	assert_int_equal(outcome.n[LB_FORWARD], 1);
	assert_int_equal(outcome.forwarded.backend, backend);
	assert_int_equal(outcome.forwarded.flow, DP_FLOW_HIT);
}

static uint64_t
count_flows(const struct plane *plane)
{
	uint64_t n = 0;

	for (unsigned int worker = 0; worker < 2; worker++) {
		struct lb_flow_table_stats stats;

		lb_flow_table_stats(plane->small.dp->workers[worker]->flows, &stats);
		n += stats.live;
	}
	return n;
}

/*
 * Later fragments without end, of which no first ever comes: of one datagram, or of one each.
 * There are 255 buffers, and a buffer that cannot be had ends the test.
 */
static void
flood_with_later_ones(bool is_one_datagram)
{
	const unsigned int n_waiting = 64;
	const unsigned int n_flood = 5000;
	unsigned int n_wait = 0;
	unsigned int n_dropped = 0;
	struct dp_burst nothing = {.n = 0};
	uint64_t counts[LB_N_VERDICTS];
	struct plane plane;
	uint32_t backend;

	open_plane_of(&plane,
		(struct dp_conf){.n_workers = 2, .n_handoff = 64, .n_waiting = n_waiting},
		RTE_MBUF_DEFAULT_BUF_SIZE);
	(void)part_owner_and_home(&plane);
	backend = pass(&plane, 1, make(&plane, segment)).forwarded.backend;
	for (unsigned int i = 0; i < n_flood; i++) {
		const struct outcome outcome =
			pass(&plane, i % 2, make_later(&plane, is_one_datagram ? 0 : i));

		assert_int_equal(outcome.n[LB_FORWARD], 0);
		if (i % 50 == 49)
			expect_others_pass(&plane, i / 50, backend);
	}
	/* Of the flows there are, none is the flood's. */
	assert_int_equal(count_flows(&plane), 2);
	for (unsigned int worker = 0; worker < 2; worker++) {
		struct lb_fragment_stats stats;

		lb_fragment_table_stats(plane.small.dp->workers[worker]->fragments.table,
			&stats);
		assert_true(stats.waiting <= n_waiting);
		n_wait += stats.waiting;
		dp_worker_abandon(plane.small.dp->workers[worker], &nothing);
		n_dropped += free_all(&nothing.settled);
	}
	assert_int_equal(n_dropped, n_wait);
	dp_read_verdicts(plane.small.dp, counts);
	assert_int_equal(counts[LB_DROP_FRAGMENT_EXCESS], n_flood - n_wait);
	/* The last others had the place of one each at their homes, which may be one. */
	if (is_one_datagram)
		assert_int_equal(n_wait, 0);
	else
		assert_in_range(n_wait, 2 * n_waiting - 2, 2 * n_waiting - 1);
	close_plane(&plane);
}

static void
test_later_ones_without_a_first_cost_nobody_else(void **state)
{
	(void)state;
	flood_with_later_ones(true);
	flood_with_later_ones(false);
}

/* The vectors that Microsoft published for receive side scaling; the hash's lowest octet. */
static void
test_the_hash_is_the_device_s(void **state)
{
	static const uint8_t key[] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41,
		0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b,
		0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7,
		0x3b, 0xbe, 0xac, 0x01, 0xfa};
	static const struct {
		const char *src;
		uint16_t sport;
		const char *dst;
		uint16_t dport;
		uint8_t proto;
		uint8_t want;
	} rows[] = {
		{"66.9.149.187", 2794, "161.142.100.80", 1766, 6, 0x78},
		{"66.9.149.187", 2794, "161.142.100.80", 1766, 50, 0xc2},
		{"199.92.111.2", 14230, "65.69.140.83", 4739, 17, 0xea},
		{"3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 6, 0x3d},
		{"3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 50, 0xd5},
	};
	struct dp_rss rss = {.n_queues = 256};

	(void)state;
	memcpy(rss.key, key, sizeof(key));
	for (unsigned int i = 0; i < rss.n_queues; i++)
		rss.queue_of[i] = (uint8_t)i;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct lb_packet packet = {.key = {.proto = rows[i].proto}};
		unsigned int queue;

		assert_int_equal(lb_addr_parse(rows[i].src, &packet.key.src), 0);
		assert_int_equal(lb_addr_parse(rows[i].dst, &packet.key.dst), 0);
		packet.key.sport_be = htons(rows[i].sport);
		packet.key.dport_be = htons(rows[i].dport);
		queue = dp_handoff_rss(&rss, &packet);
		EXPECT(queue == rows[i].want, "row %zu: queue 0x%x, want 0x%x", i, queue,
			rows[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_flow_s_own_packets_are_not_handed_on),
		cmocka_unit_test(test_an_error_is_handed_to_the_owner_once),
		cmocka_unit_test(test_what_is_for_no_service_stays),
		cmocka_unit_test(test_a_full_ring_is_counted),
		cmocka_unit_test(test_a_first_leaves_by_its_home),
		cmocka_unit_test(test_a_first_that_overlaps_does_not_leave),
		cmocka_unit_test(test_a_full_ring_to_the_home_is_counted),
		cmocka_unit_test(test_a_later_fragment_goes_home_whatever_the_device_tells),
		cmocka_unit_test(test_a_datagram_without_ports_is_not_remembered),
		cmocka_unit_test(test_what_waits_is_given_up_in_time),
		cmocka_unit_test(test_as_many_wait_as_are_configured_whatever_their_buffers),
		cmocka_unit_test(test_later_ones_without_a_first_cost_nobody_else),
		cmocka_unit_test(test_the_hash_is_the_device_s),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
