/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Who asks for an address: which ports answer, for which addresses, and what becomes of the
 * packet. A frame from memory came by no port.
 */
#include <string.h>

#include "dp_forward.h"
#include "expect.h"
#include "lb_compiler.h"
#include "lb_flow_lookup.h"

#define PORT     3u /* the device's id */
#define QUIET    4u
#define V4_ONLY  5u
#define ASK_AT   38u /* the address that ARP asks for */
#define ND_BYTES 78u

static const uint8_t arp[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7, 8, 6, 0,
	1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 7, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 192, 0, 2, 50};
/* A probe for a duplicate of 2001:db8:2::50, which has no option. */
static const uint8_t nd[ND_BYTES] = {0x33, 0x33, 0xff, 0, 0, 0x50, 2, 0, 0, 0, 0, 7, 0x86, 0xdd,
	0x60, 0, 0, 0, 0, 24, 58, 255, [38] = 0xff, 0x02, [49] = 1, 0xff, 0, 0, 0x50, 135, 0,
	0x4c, 0x4d, [62] = 0x20, 0x01, 0x0d, 0xb8, 0, 2, [77] = 0x50};

static const struct {
	const char *what;
	const char *target;
	uint16_t port;
	bool is_answered;
} rows[] = {
	{"a service's address", "192.0.2.50", PORT, true},
	{"the first of a service's prefix", "192.0.2.64", PORT, true},
	{"the last of it", "192.0.2.79", PORT, true},
	{"the one after it", "192.0.2.80", PORT, false},
	{"a service's address on the second network", "10.1.0.9", PORT, true},
	{"a service's address on no network", "198.51.100.10", PORT, false},
	{"a service's address by a port that does not answer", "192.0.2.50", QUIET, false},
	{"a service's address by a port that nobody has", "192.0.2.50", 77, false},
	{"a service's address by no port", "192.0.2.50", RTE_MBUF_PORT_INVALID, false},
	{"IPv6", "2001:db8:2::50", PORT, true},
	{"IPv6 on no network", "2001:db8:2::50", V4_ONLY, false},
	{"IPv4 that a network of IPv6 seems to hold", "10.9.0.9", PORT, false},
};

static struct rte_mempool *pool;

static int
start(void **state)
{
	(void)state;
	if (dp_start_unprivileged("test_answer", 8) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("packets", 15, 0, 0, 2048, SOCKET_ID_ANY);
	return pool == NULL ? -1 : 0;
}

static struct dp_snapshot *
make_snapshot(bool has_kernel)
{
	static const char *const addresses[] = {"192.0.2.50", "192.0.2.64/28", "10.1.0.9",
		"10.9.0.9", "198.51.100.10", "2001:db8:2::50"};
	/* With host bits, as the configuration has them. */
	static const char *const networks[] = {"192.0.2.1/24", "10.1.0.1/24", "::1/0"};
	struct dp_service_conf services[LB_N_ELEMENTS(addresses)] = {{.carry = 0}};
	struct lb_prefix prefixes[LB_N_ELEMENTS(networks)];
	const struct dp_snapshot_port_conf ports[] = {
		{.id = QUIET, .mac = {{2, 4}}, .networks = prefixes, .n_networks = 3},
		{.id = PORT,
			.mac = {{2, 3}},
			.answers = true,
			.networks = prefixes,
			.n_networks = 3},
		{.id = V4_ONLY,
			.mac = {{2, 5}},
			.answers = true,
			.networks = prefixes,
			.n_networks = 2},
	};
	const struct dp_table_conf table_conf = {
		.picker = {.algorithm = LB_MAGLEV, .n_slots = 7}};
	const struct dp_snapshot_conf conf = {
		.services = services,
		.n_services = LB_N_ELEMENTS(addresses),
		.ports = ports,
		.n_ports = LB_N_ELEMENTS(ports),
		.has_kernel = has_kernel,
	};
	struct dp_snapshot *snapshot;
	struct dp_table *table;

	assert_int_equal(dp_table_create(&table_conf, &table), 0);
	for (size_t i = 0; i < LB_N_ELEMENTS(networks); i++)
		assert_int_equal(lb_prefix_parse(networks[i], &prefixes[i]), 0);
	for (size_t i = 0; i < LB_N_ELEMENTS(addresses); i++) {
		assert_int_equal(lb_prefix_parse(addresses[i], &services[i].match.prefix), 0);
		services[i].table = table;
	}
	assert_int_equal(dp_snapshot_create(&conf, &snapshot), 0);
	dp_table_release(table);
	return snapshot;
}

/* One packet through; the caller's to free, with its verdict. */
static struct rte_mbuf *
run(const struct dp_snapshot *snapshot, const char *target, uint16_t port,
	enum lb_verdict *verdict)
{
	static dp_trace_ref no_trace;
	static struct lb_flow_table no_flows;
	static struct dp_worker nobody = {.flows = &no_flows,
		.n_workers = 1,
		.trace = &no_trace};
	static struct dp_burst burst;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct lb_addr addr;

	assert_non_null(m);
	assert_int_equal(lb_addr_parse(target, &addr), 0);
	if (lb_addr_is_v4(&addr)) {
		memcpy(rte_pktmbuf_append(m, sizeof(arp)), arp, sizeof(arp));
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, ASK_AT), addr.bytes + 12, 4);
	} else {
		memcpy(rte_pktmbuf_append(m, sizeof(nd)), nd, sizeof(nd));
	}
	m->port = port;
	burst.n = 1;
	burst.pkts[0] = m;
	/* Nothing of it belongs to a flow. */
	dp_forward_burst(&nobody, snapshot, &burst);
	*verdict = (enum lb_verdict)burst.decisions[0].verdict;
	return m;
}

static void
test_ports_answer_for_services_on_their_networks(void **state)
{
	(void)state;
	for (unsigned int has_kernel = 0; has_kernel < 2; has_kernel++) {
		struct dp_snapshot *snapshot = make_snapshot(has_kernel != 0);

		for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
			const enum lb_verdict otherwise =
				has_kernel != 0 ? LB_TO_KERNEL : LB_DROP_NO_SERVICE;
			const enum lb_verdict want = rows[i].is_answered ? LB_REPLY : otherwise;
			enum lb_verdict verdict;

			rte_pktmbuf_free(run(snapshot, rows[i].target, rows[i].port, &verdict));
			EXPECT(verdict == want, "%s: verdict %d, want %d", rows[i].what,
				(int)verdict, (int)want);
		}
		dp_snapshot_destroy(snapshot);
	}
}

static void
test_an_answer_may_be_longer(void **state)
{
	static const uint8_t option[8] = {2, 1, 2, 3};
	struct dp_snapshot *snapshot = make_snapshot(true);
	enum lb_verdict verdict;
	struct rte_mbuf *m = run(snapshot, "2001:db8:2::50", PORT, &verdict);

	(void)state;
	assert_int_equal(verdict, LB_REPLY);
	assert_int_equal(m->pkt_len, ND_BYTES + sizeof(option));
	assert_int_equal(m->data_len, m->pkt_len);
	assert_memory_equal(rte_pktmbuf_mtod_offset(m, uint8_t *, ND_BYTES), option,
		sizeof(option));
	rte_pktmbuf_free(m);
	dp_snapshot_destroy(snapshot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports_answer_for_services_on_their_networks),
		cmocka_unit_test(test_an_answer_may_be_longer),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
