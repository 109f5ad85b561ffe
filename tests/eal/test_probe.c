/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Probes through the workers: to the backend whose id they have, up or not, and what comes back
 * to the prober instead of the kernel.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "dp_forward.h"
#include "dp_plane.h"
#include "expect.h"
#include "lb_compiler.h"
#include "lb_limits.h"
#include "packet_builder.h"

#define OWN         "192.0.2.1"
#define SERVICE     "198.51.100.10"
#define UP          3u /* backends' ids */
#define DOWN        5u
#define LOST        6u /* without a next hop */
#define NOBODY      4u
#define ETHER_BYTES 14u
#define S           UINT64_C(1000000000)

static const struct dp_conf usual = {
	.n_workers = 2,
	.flows = {.n_entries = 64, .timeout_ns = {900 * S, 900 * S, 900 * S, 900 * S}},
};

static struct rte_mempool *pool;

static int
start(void **state)
{
	(void)state;
	if (dp_start_unprivileged("test_probe", 8) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("packets", 15, 0, DP_BESIDE_BYTES, 2048, SOCKET_ID_ANY);
	return pool == NULL ? -1 : 0;
}

static struct dp_backend_conf
make_backend(uint32_t id, bool is_live, bool has_next_hop, const char *address)
{
	struct dp_backend_conf conf = {.id = id,
		.port = 1,
		.is_live = is_live,
		.has_next_hop = has_next_hop,
		.next_hop = {{2, 0, 0, 0, 0, (uint8_t)id}},
		.mtu = 1500,
		.encap = {.mode = LB_FORWARD_IPIP}};

	assert_int_equal(lb_addr_parse(OWN, &conf.encap.src), 0);
	assert_int_equal(lb_addr_parse(address, &conf.encap.dst), 0);
	return conf;
}

/* A plane with one service, of which one backend takes flows. */
static struct dp *
make_plane_of(const char *prefix)
{
	const struct dp_backend_conf backends[] = {make_backend(UP, true, true, "10.0.0.3"),
		make_backend(DOWN, false, true, "10.0.0.5"),
		make_backend(LOST, true, false, "10.0.0.6")};
	const struct dp_table_conf table_conf = {
		.picker = {.algorithm = LB_MAGLEV, .n_slots = 7}};
	struct dp_service_conf service = {.carry = 0};
	struct lb_prefix network;
	const struct dp_snapshot_port_conf ports[] = {
		{.networks = &network, .n_networks = 1},
		{.mac = {{2, 0, 0, 0, 1, 1}}, .has_mac = true},
	};
	const struct dp_snapshot_conf conf = {
		.services = &service,
		.n_services = 1,
		.backends = backends,
		.n_backends = LB_N_ELEMENTS(backends),
		.ports = ports,
		.n_ports = LB_N_ELEMENTS(ports),
		.has_kernel = true,
	};
	struct dp_snapshot *snapshot;
	struct dp *dp;

	assert_int_equal(lb_prefix_parse(OWN "/24", &network), 0);
	assert_int_equal(lb_prefix_parse(prefix, &service.match.prefix), 0);
	assert_int_equal(dp_table_create(&table_conf, &service.table), 0);
	assert_int_equal(dp_snapshot_create(&conf, &snapshot), 0);
	dp_table_release(service.table);
	assert_int_equal(dp_create(&usual, 0, &dp), 0);
	dp_publish(dp, snapshot);
	return dp;
}

static struct dp *
make_plane(void)
{
	return make_plane_of(SERVICE);
}

static size_t
build(const char *from, const char *to, int sport, int dport, int fragment,
	uint8_t out[static PB_FRAME_MAX])
{
	const struct pb_layer layers[] = {ETHER(),
		IPV4(.src = from, .dst = to, .fragment = fragment),
		TCP(.sport = sport, .dport = dport), PAYLOAD(4), END};

	return pb_build(layers, out);
}

static void
test_a_probe_goes_to_the_backend_of_its_id(void **state)
{
	static const struct {
		const char *what;
		uint32_t id;
		bool is_sent;
	} rows[] = {
		{"one that is up", UP, true},
		{"one that is down", DOWN, true},
		{"one without a next hop", LOST, false},
		{"an id that nobody has", NOBODY, false},
		{"an id beyond all", 77, false},
	};
	struct dp *dp = make_plane();
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = build(OWN, SERVICE, 20000, 8001, 0, frame) - ETHER_BYTES;
	uint64_t counts[LB_N_VERDICTS];
	static struct dp_burst burst;

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const uint8_t *out;
		struct rte_mbuf *m;

		assert_int_equal(dp_probe_send(dp, rows[i].id, frame + ETHER_BYTES, n), 0);
		EXPECT(dp_worker_probe(dp->workers[0], &burst) == 1, "%s: seen", rows[i].what);
		m = dp_chain_take(&burst.settled);
		EXPECT((m != NULL) == rows[i].is_sent, "%s: sent", rows[i].what);
		if (m == NULL)
			continue;
		out = rte_pktmbuf_mtod(m, const uint8_t *);
		EXPECT(m->pkt_len == ETHER_BYTES + 20 + n, "%s: its length", rows[i].what);
		EXPECT(out[5] == rows[i].id && out[ETHER_BYTES + 19] == rows[i].id,
			"%s: to its next hop and address", rows[i].what);
		EXPECT(out[6] == 2 && out[10] == 1 && out[11] == 1, "%s: from its port",
			rows[i].what);
		EXPECT(memcmp(out + ETHER_BYTES + 20, frame + ETHER_BYTES, n) == 0,
			"%s: the packet as it was", rows[i].what);
		EXPECT(dp_beside(m)->decision.port == 1, "%s: its port", rows[i].what);
		EXPECT(dp_beside(m)->decision.verdict == DP_PIECE, "%s: uncounted",
			rows[i].what);
		EXPECT(dp_chain_take(&burst.settled) == NULL, "%s: once", rows[i].what);
		rte_pktmbuf_free(m);
	}
	EXPECT(dp_worker_probe(dp->workers[0], &burst) == 0, "there are no more");
	dp_read_verdicts(dp, counts);
	for (size_t i = 0; i < LB_N_VERDICTS; i++)
		EXPECT(counts[i] == 0, "verdict %zu is counted", i);
	dp_destroy(dp);
}

static void
test_what_there_is_no_room_for_is_said(void **state)
{
	static const uint8_t ip[DP_PROBE_BYTES_MAX + 1] = {0x45};
	struct dp *dp = make_plane();
	static struct dp_burst burst;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(dp_probe_send(dp, UP, ip, sizeof(ip)), -EMSGSIZE);
	while (n < 100000 && dp_probe_send(dp, UP, ip, 20) == 0)
		n++;
	EXPECT(n > 64 && n < 100000, "room for %u", n);
	assert_int_equal(dp_probe_send(dp, UP, ip, 20), -ENOBUFS);
	/* None of them is a packet of TCP or UDP, and none keeps a buffer. */
	while (n > 0) {
		const unsigned int n_seen = dp_worker_probe(dp->workers[0], &burst);

		EXPECT(n_seen > 0, "%u are left", n);
		EXPECT(burst.settled.first == NULL, "one was sent");
		n -= n_seen;
	}
	EXPECT(rte_mempool_in_use_count(dp->spare) == 0, "a buffer is lost");
	dp_destroy(dp);
}

/* What becomes of a packet that came by a port. */
static uint8_t
run(struct dp *dp, const uint8_t *frame, size_t n)
{
	static struct dp_burst burst;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t verdict;

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	burst.n = 1;
	burst.is_placed = true;
	burst.pkts[0] = m;
	(void)dp_worker_burst(dp->workers[1], &burst);
	verdict = burst.decisions[0].verdict;
	if (verdict != DP_AWAY)
		rte_pktmbuf_free(m);
	return verdict;
}

static const struct {
	const char *what;
	const char *from;
	const char *to;
	int dport;
	int fragment;
	bool is_taken;
} answers[] = {
	{"an answer", SERVICE, OWN, LB_PROBE_PORT_FIRST, 0, true},
	{"at the last port", SERVICE, OWN, LB_PROBE_PORT_LAST, 0, true},
	{"at the port before", SERVICE, OWN, LB_PROBE_PORT_FIRST - 1, 0, false},
	{"at the port after", SERVICE, OWN, LB_PROBE_PORT_LAST + 1, 0, false},
	{"from no service", "198.51.100.11", OWN, LB_PROBE_PORT_FIRST, 0, false},
	{"to no address of ours", SERVICE, "192.0.2.2", LB_PROBE_PORT_FIRST, 0, false},
	{"in fragments", SERVICE, OWN, LB_PROBE_PORT_FIRST, 0x2000, false},
};

static void
test_answers_are_the_probers(void **state)
{
	struct dp *dp = make_plane();

	(void)state;
	for (unsigned int is_open = 0; is_open < 2; is_open++) {
		if (is_open != 0)
			dp_probe_open(dp);
		dp_probe_lend(dp, LB_PROBE_PORT_FIRST, true);
		dp_probe_lend(dp, LB_PROBE_PORT_LAST, true);
		for (size_t i = 0; i < LB_N_ELEMENTS(answers); i++) {
			const bool is_taken = is_open != 0 && answers[i].is_taken;
			uint8_t ip[DP_PROBE_BYTES_MAX];
			uint8_t frame[PB_FRAME_MAX];
			const size_t n = build(answers[i].from, answers[i].to, 8001,
				answers[i].dport, answers[i].fragment, frame);
			const uint8_t want = is_taken ? DP_AWAY : LB_TO_KERNEL;
			const uint8_t verdict = run(dp, frame, n);
			size_t n_taken;

			EXPECT(verdict == want, "%s: verdict %d", answers[i].what, verdict);
			n_taken = dp_probe_take(dp, ip);
			EXPECT(n_taken == (is_taken ? n - ETHER_BYTES : 0), "%s: %zu bytes",
				answers[i].what, n_taken);
			EXPECT(memcmp(ip, frame + ETHER_BYTES, n_taken) == 0, "%s: as it came",
				answers[i].what);
		}
	}
	dp_destroy(dp);
}

static void
test_what_is_for_a_port_that_nobody_has_now_is_lost(void **state)
{
	struct dp *dp = make_plane();
	uint8_t ip[DP_PROBE_BYTES_MAX];
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = build(SERVICE, OWN, 8001, LB_PROBE_PORT_FIRST + 7, 0, frame);

	(void)state;
	dp_probe_open(dp);
	for (unsigned int i = 0; i < 3; i++) {
		dp_probe_lend(dp, LB_PROBE_PORT_FIRST + 7, i == 1);
		assert_int_equal(run(dp, frame, n), DP_AWAY);
		EXPECT((dp_probe_take(dp, ip) != 0) == (i == 1), "%u", i);
	}
	EXPECT(rte_mempool_in_use_count(pool) == 0, "a buffer is lost");
	dp_destroy(dp);
}

static void
test_each_answer_is_counted_and_its_buffer_freed(void **state)
{
	struct dp *dp = make_plane();
	uint8_t ip[DP_PROBE_BYTES_MAX];
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = build(SERVICE, OWN, 8001, LB_PROBE_PORT_FIRST, 0, frame);
	uint64_t counts[LB_N_VERDICTS];
	unsigned int n_taken = 0;

	(void)state;
	dp_probe_open(dp);
	dp_probe_lend(dp, LB_PROBE_PORT_FIRST, true);
	/* More than there is room for, and than there are buffers. */
	for (unsigned int i = 0; i < 2000; i++)
		assert_int_equal(run(dp, frame, n), DP_AWAY);
	dp_read_verdicts(dp, counts);
	EXPECT(counts[LB_TO_KERNEL] == 2000, "%llu are counted",
		(unsigned long long)counts[LB_TO_KERNEL]);
	while (dp_probe_take(dp, ip) != 0)
		n_taken++;
	EXPECT(n_taken > 64 && n_taken < 2000, "%u are there", n_taken);
	EXPECT(rte_mempool_in_use_count(pool) == 0, "a buffer is lost");
	dp_destroy(dp);
}

/* A probe goes to a service's one address: from within a prefix comes a client, or nobody. */
static void
test_from_a_prefix_nothing_is_an_answer(void **state)
{
	struct dp *dp = make_plane_of("198.51.100.0/24");
	uint8_t ip[DP_PROBE_BYTES_MAX];
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = build(SERVICE, OWN, 8001, LB_PROBE_PORT_FIRST, 0, frame);

	(void)state;
	dp_probe_open(dp);
	assert_int_equal(run(dp, frame, n), LB_TO_KERNEL);
	assert_int_equal(dp_probe_take(dp, ip), 0);
	dp_destroy(dp);
}

/* As what is the kernel's, with the length that it came with. */
static void
test_an_answer_is_traced(void **state)
{
	static const struct dp_trace_conf everything = {.sample = 1};
	struct dp *dp = make_plane();
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = build(SERVICE, OWN, 8001, LB_PROBE_PORT_FIRST, 0, frame);
	struct dp_trace_record records[2];

	(void)state;
	dp_probe_open(dp);
	assert_int_equal(dp_trace_begin(dp, &everything), 0);
	assert_int_equal(run(dp, frame, n), DP_AWAY);
	assert_int_equal(dp_trace_read(dp, records, LB_N_ELEMENTS(records)), 1);
	assert_int_equal(records[0].verdict, LB_TO_KERNEL);
	assert_int_equal(records[0].n_bytes, n);
	assert_int_equal(records[0].key.dport_be, htons(LB_PROBE_PORT_FIRST));
	dp_trace_end(dp);
	dp_destroy(dp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_probe_goes_to_the_backend_of_its_id),
		cmocka_unit_test(test_what_there_is_no_room_for_is_said),
		cmocka_unit_test(test_answers_are_the_probers),
		cmocka_unit_test(test_what_is_for_a_port_that_nobody_has_now_is_lost),
		cmocka_unit_test(test_each_answer_is_counted_and_its_buffer_freed),
		cmocka_unit_test(test_from_a_prefix_nothing_is_an_answer),
		cmocka_unit_test(test_an_answer_is_traced),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
