/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_yaml.h"
#include "ctl_apply.h"
#include "expect.h"
#include "packet_builder.h"
#include "xrand.h"

#define SECOND_NS 1000000000u

/* web and all stand at one address; dead has nobody, and nowhere is on no network. */
static const char config[] =
	"dataplane:\n"
	"  kernel: tap\n"
	"  ports:\n"
	"    - {name: wan, device: net_null0, addresses: [192.0.2.1/24, '2001:db8::1/64'],\n"
	"       next_hop: '02:00:00:00:00:fe', mtu: 1500}\n"
	"services:\n"
	"  - name: web\n"
	"    address: 198.51.100.10\n"
	"    protocol: tcp\n"
	"    port: 443\n"
	"    table: {algorithm: maglev, size: 251}\n"
	"    backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n"
	"  - name: dead\n"
	"    address: 198.51.100.20\n"
	"    protocol: tcp\n"
	"    port: 443\n"
	"  - name: six\n"
	"    address: '2001:db8:5::10'\n"
	"    protocol: any\n"
	"    port: any\n"
	"    forward: gue\n"
	"    backends: [{name: a, address: '2001:db8:a::1'}]\n";

struct plane {
	struct cfg_model model;
	struct ctl_apply *apply;
	struct dp *dp;
	struct dp_batch *batch;
};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_batch", 8);
}

static void
publish(struct plane *plane)
{
	const struct ctl_paths paths = {.port = &plane->model.dataplane.ports[0]};
	struct dp_snapshot *snapshot;

	assert_int_equal(ctl_apply_build(plane->apply, &plane->model, &paths, stderr,
				 &snapshot),
		0);
	dp_publish(plane->dp, snapshot);
}

/* With conf's secret. */
static void
open_plane_of(struct plane *plane, struct dp_conf conf)
{
	const uint64_t secret = conf.secret[0];

	assert_int_equal(cfg_read_text_model("config", config, sizeof(config) - 1, stderr,
				 &plane->model),
		0);
	conf.flows = ctl_apply_flow_conf(&plane->model);
	conf.secret[0] = secret;
	assert_int_equal(ctl_apply_create(&plane->apply), 0);
	assert_int_equal(dp_create(&conf, 0, &plane->dp), 0);
	assert_int_equal(dp_batch_create(plane->dp, &plane->batch), 0);
	publish(plane);
}

static void
open_plane(struct plane *plane, unsigned int n_workers)
{
	open_plane_of(plane, (struct dp_conf){.n_workers = n_workers});
}

static void
close_plane(struct plane *plane)
{
	dp_batch_destroy(plane->batch);
	dp_destroy(plane->dp);
	ctl_apply_destroy(plane->apply);
	cfg_model_fini(&plane->model);
}

static void
add(struct plane *plane, const struct pb_layer *layers, uint64_t now_ns)
{
	uint8_t frame[PB_FRAME_MAX];
	const size_t n = pb_build(layers, frame);

	assert_int_equal(dp_batch_add(plane->batch, frame, (uint32_t)n, (uint32_t)n, now_ns, 0),
		0);
}

/* The next result, which is a packet's decision. */
static struct dp_result
next_result(struct plane *plane)
{
	struct dp_result result = {0};

	assert_true(dp_batch_next(plane->batch, &result));
	assert_non_null(result.decision);
	return result;
}

static struct dp_decision
next_decision(struct plane *plane)
{
	return *next_result(plane).decision;
}

static struct dp_decision
run_one(struct plane *plane, const struct pb_layer *layers, uint64_t now_ns)
{
	add(plane, layers, now_ns);
	dp_batch_run(plane->batch);
	assert_int_equal(dp_batch_count(plane->batch), 1);
	return next_decision(plane);
}

static const struct pb_layer syn[] = {ETHER(), IPV4(), TCP(.tcp_flags = 0x02), END};
static const struct pb_layer ack[] = {ETHER(), IPV4(), TCP(.tcp_flags = 0x10), END};
static const struct pb_layer fin[] = {ETHER(), IPV4(), TCP(.tcp_flags = 0x11), END};
static const struct pb_layer too_big_error[] = {ETHER(),
	IPV4(.src = "192.0.2.99", .dst = PB_SERVICE_V4), ICMP(.type = 3, .code = 4),
	IPV4(FROM_SERVICE_V4), TCP(FROM_SERVICE_L4, .n_bytes = 8), END};

static const struct {
	const char *name;
	struct pb_layer layers[PB_LAYERS_MAX];
	enum lb_verdict verdict;
	enum dp_flow flow;
} rows[] = {
	{"a segment to the service", {ETHER(), IPV4(), TCP(), END}, LB_FORWARD, DP_FLOW_MISS},
	{"a datagram to the service's port, of another protocol", {ETHER(), IPV4(), UDP(), END},
		LB_TO_KERNEL, DP_FLOW_NONE},
	{"a segment to another port", {ETHER(), IPV4(), TCP(.dport = 80), END}, LB_TO_KERNEL,
		DP_FLOW_NONE},
	{"a service without backends", {ETHER(), IPV4(.dst = "198.51.100.20"), TCP(), END},
		LB_DROP_NO_BACKEND, DP_FLOW_MISS},
	{"an echo request to the service", {ETHER(), IPV4(), ICMP(.type = 8), END}, LB_REPLY,
		DP_FLOW_NONE},
	{"an echo request to somebody else",
		{ETHER(), IPV4(.dst = "198.51.100.99"), ICMP(.type = 8), END}, LB_TO_KERNEL,
		DP_FLOW_NONE},
	{"from a source that is nobody's", {ETHER(), IPV4(.src = "127.0.0.1"), TCP(), END},
		LB_DROP_MARTIAN_SOURCE, DP_FLOW_NONE},
	{"from the balancer's own address", {ETHER(), IPV4(.src = "224.0.0.5"), TCP(), END},
		LB_DROP_MARTIAN_SOURCE, DP_FLOW_NONE},
	{"an error about a flow never seen",
		{ETHER(), IPV4(.src = "192.0.2.99"), ICMP(.type = 11), IPV4(FROM_SERVICE_V4),
			TCP(FROM_SERVICE_L4, .n_bytes = 8), END},
		LB_FORWARD, DP_FLOW_MISS},
	{"a later fragment for the service",
		{ETHER(), IPV4(.fragment = 185, .proto = 6), PAYLOAD(64), END},
		LB_DROP_FRAGMENT_UNMATCHED, DP_FLOW_NONE},
	{"a later fragment for somebody else",
		{ETHER(), IPV4(.dst = "198.51.100.99", .fragment = 185, .proto = 6),
			PAYLOAD(64), END},
		LB_TO_KERNEL, DP_FLOW_NONE},
	{"a tunnel to the service", {ETHER(), IPV4(.proto = 4), IPV4(), UDP(), END},
		LB_DROP_UNSUPPORTED_L4, DP_FLOW_NONE},
	{"a tunnel to somebody else",
		{ETHER(), IPV4(.dst = "198.51.100.99", .proto = 4), IPV4(), UDP(), END},
		LB_TO_KERNEL, DP_FLOW_NONE},
	{"as much as fits the MTU with 20 bytes of outer header",
		{ETHER(), IPV4(), TCP(), PAYLOAD(1440), END}, LB_FORWARD, DP_FLOW_MISS},
	{"one byte more", {ETHER(), IPV4(), TCP(), PAYLOAD(1441), END}, LB_FORWARD,
		DP_FLOW_MISS},
	{"one byte more, and it may not be cut",
		{ETHER(), IPV4(.fragment = 0x4000), TCP(), PAYLOAD(1441), END}, LB_REPLY,
		DP_FLOW_MISS},
	{"any protocol over IPv6", {ETHER(), IPV6(.proto = 132), PAYLOAD(20), END}, LB_FORWARD,
		DP_FLOW_MISS},
	{"a later fragment of ping, where any protocol is served",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 8, .proto = 58), PAYLOAD(8),
			END},
		LB_DROP_FRAGMENT_UNMATCHED, DP_FLOW_NONE},
	{"a later fragment of ping for somebody else",
		{ETHER(), IPV4(.dst = "198.51.100.99", .fragment = 1, .proto = 1), PAYLOAD(8),
			END},
		LB_TO_KERNEL, DP_FLOW_NONE},
	{"a later fragment of a tunnel that is not carried",
		{ETHER(), IPV4(.fragment = 1, .proto = 47), PAYLOAD(8), END},
		LB_DROP_UNSUPPORTED_L4, DP_FLOW_NONE},
	{"one of whatever its first is, over IPv6",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 8, .proto = 47), PAYLOAD(8),
			END},
		LB_DROP_FRAGMENT_UNMATCHED, DP_FLOW_NONE},
	{"a later fragment whose headers were in the first",
		{ETHER(), IPV6(), EXTENSION(.type = 44, .fragment = 8, .proto = 60), PAYLOAD(8),
			END},
		LB_DROP_FRAGMENT_UNMATCHED, DP_FLOW_NONE},
	{"ARP", {ETHER(.proto = 0x0806), PAYLOAD(28), END}, LB_TO_KERNEL, DP_FLOW_NONE},
};

static void
test_each_packet_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct plane plane;
		struct dp_result result;
		struct dp_decision d;

		open_plane(&plane, 1);
		add(&plane, rows[i].layers, 0);
		dp_batch_run(plane.batch);
		if (!dp_batch_next(plane.batch, &result)) { /* it waits, till the end */
			dp_batch_end(plane.batch);
			result = next_result(&plane);
		}
		d = *result.decision;
		EXPECT(d.verdict == rows[i].verdict && d.flow == rows[i].flow,
			"%s: verdict %u, flow %u; want %u, %u", rows[i].name, d.verdict, d.flow,
			rows[i].verdict, rows[i].flow);
		EXPECT((result.bytes != NULL) == (rows[i].verdict <= LB_REPLY),
			"%s: a frame leaves if it is forwarded or answered, else none",
			rows[i].name);
		close_plane(&plane);
	}
}

static void
test_counters_add_up_to_the_packets(void **state)
{
	uint64_t counts[LB_N_VERDICTS];
	uint64_t want[LB_N_VERDICTS] = {0};
	uint64_t sum = 0;
	struct plane plane;

	(void)state;
	open_plane(&plane, 3);
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		want[rows[i].verdict]++;
		add(&plane, rows[i].layers, 0);
	}
	dp_batch_run(plane.batch);
	dp_batch_end(plane.batch);
	dp_read_verdicts(plane.dp, counts);
	for (size_t v = 0; v < LB_N_VERDICTS; v++) {
		EXPECT(counts[v] == want[v], "verdict %zu: counted %lu times, want %lu", v,
			(unsigned long)counts[v], (unsigned long)want[v]);
		sum += counts[v];
	}
	assert_int_equal(sum, LB_N_ELEMENTS(rows));
	close_plane(&plane);
}

/* Where the flow's packets went, and whether the flow table said so. */
static void
expect_decision(struct plane *plane, const struct pb_layer *layers, uint64_t now_ns,
	const char *what, uint32_t backend, enum dp_flow flow, bool is_new_flow)
{
	const struct dp_decision d = run_one(plane, layers, now_ns);

	EXPECT(d.backend == backend, "%s: went to backend %u, want %u", what, d.backend,
		backend);
	EXPECT(d.flow == flow, "%s: flow %u, want %u", what, d.flow, flow);
	EXPECT(d.is_new_flow == is_new_flow, "%s: a flow begins: %d", what, d.is_new_flow);
	EXPECT((d.slot != DP_NONE) == (flow == DP_FLOW_MISS), "%s: slot %u", what, d.slot);
}

/* Of so many sources, ten requests each, at one time. @return how many are answered. */
static unsigned int
count_answers(struct plane *plane, unsigned int n_sources)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 10 * n_sources; i++) {
		char src[32];
		const struct pb_layer request[] = {ETHER(), IPV4(.src = src), ICMP(.type = 8),
			PAYLOAD(8), END};

		(void)snprintf(src, sizeof(src), "203.0.113.%u", 1 + i % n_sources);
		n += run_one(plane, request, 0).verdict == LB_REPLY;
	}
	return n;
}

static void
test_workers_share_what_may_be_answered(void **state)
{
	static const struct {
		const char *what;
		unsigned int n_workers;
		unsigned int n_sources;
		uint32_t per_s;
		uint32_t per_s_source;
		bool is_one_thread;
		unsigned int want;
	} rows_of_limits[] = {
		{"one worker, in all", 1, 100, 20, 6, false, 20},
		{"one worker, one source", 1, 1, 20, 6, false, 6},
		{"two workers, in all", 2, 100, 20, 6, false, 20},
		{"two workers, one source: all of it comes to one", 2, 1, 20, 6, false, 6},
		{"eight workers, one source", 8, 1, 80, 6, false, 6},
		{"one source has no more than its worker's share of all", 8, 1, 20, 6, false,
			2},
		{"a share that is no whole number", 3, 100, 20, 6, false, 18},
		{"more workers than answers: each has one", 8, 100, 7, 6, false, 8},
		{"on one thread, in all", 3, 100, 20, 6, true, 20},
		{"on one thread, one source", 3, 1, 20, 6, true, 6},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows_of_limits); i++) {
		struct plane plane;
		unsigned int n;

		open_plane_of(&plane,
			(struct dp_conf){.n_workers = rows_of_limits[i].n_workers,
				.is_one_thread = rows_of_limits[i].is_one_thread,
				.replies_per_s = rows_of_limits[i].per_s,
				.replies_per_s_source = rows_of_limits[i].per_s_source});
		n = count_answers(&plane, rows_of_limits[i].n_sources);
		EXPECT(n == rows_of_limits[i].want, "%s: %u answers, want %u",
			rows_of_limits[i].what, n, rows_of_limits[i].want);
		close_plane(&plane);
	}
}

static void
test_a_flow_stays_until_its_backend_is_gone(void **state)
{
	struct plane plane;
	struct cfg_service *web;
	struct cfg_backend *mine;
	uint32_t first;
	uint32_t other;

	(void)state;
	open_plane(&plane, 1);
	web = &plane.model.services[0];
	first = run_one(&plane, syn, 0).backend;
	other = 1 - first;
	mine = &web->backends[first];
	expect_decision(&plane, syn, 1, "the SYN again", first, DP_FLOW_HIT, false);
	expect_decision(&plane, ack, 2, "the next segment", first, DP_FLOW_HIT, false);

	mine->state = CFG_DRAIN;
	publish(&plane);
	expect_decision(&plane, ack, 3, "draining", first, DP_FLOW_HIT, false);
	expect_decision(&plane, too_big_error, 4, "an error while draining", first, DP_FLOW_HIT,
		false);

	mine->state = CFG_UP;
	mine->weight = 0;
	publish(&plane);
	expect_decision(&plane, ack, 5, "weight 0", first, DP_FLOW_HIT, false);

	mine->state = CFG_DOWN;
	publish(&plane);
	expect_decision(&plane, too_big_error, 6, "an error before the re-pick", other,
		DP_FLOW_MISS, false);
	expect_decision(&plane, ack, 7, "down: picked again", other, DP_FLOW_MISS, false);
	expect_decision(&plane, ack, 8, "and there it stays", other, DP_FLOW_HIT, false);

	mine->state = CFG_UP;
	mine->weight = 100;
	publish(&plane);
	expect_decision(&plane, ack, 9, "the first is back", other, DP_FLOW_HIT, false);
	expect_decision(&plane, too_big_error, 10, "an error then", other, DP_FLOW_HIT, false);
	close_plane(&plane);
}

static void
test_a_new_syn_on_the_same_ports_picks_afresh(void **state)
{
	uint8_t frame[PB_FRAME_MAX];
	struct plane plane;
	struct dp_decision d;
	uint32_t first;
	size_t n;

	(void)state;
	open_plane(&plane, 1);
	first = run_one(&plane, syn, 0).backend;
	plane.model.services[0].backends[first].state = CFG_DRAIN;
	publish(&plane);
	expect_decision(&plane, fin, 1, "the end of the first", first, DP_FLOW_HIT, false);

	n = pb_build(syn, frame);
	frame[14 + 20 + 7] ^=
		1; /* its sequence number; checksums of TCP are not ours to check */
	assert_int_equal(dp_batch_add(plane.batch, frame, (uint32_t)n, (uint32_t)n, 2, 0), 0);
	dp_batch_run(plane.batch);
	d = next_decision(&plane);
	assert_int_equal(d.backend, 1 - first);
	assert_int_equal(d.flow, DP_FLOW_MISS);
	assert_true(d.is_new_flow);
	close_plane(&plane);
}

static void
test_a_closed_flow_is_forgotten_after_30_seconds(void **state)
{
	const uint64_t half = 30ull * SECOND_NS / 2;
	struct plane plane;
	uint32_t first;

	(void)state;
	open_plane(&plane, 1);
	first = run_one(&plane, syn, 0).backend;
	expect_decision(&plane, ack, 1, "open", first, DP_FLOW_HIT, false);
	expect_decision(&plane, fin, half, "closing", first, DP_FLOW_HIT, false);
	expect_decision(&plane, ack, 3 * half, "30 s after", first, DP_FLOW_HIT, false);
	expect_decision(&plane, ack, 5 * half + SECOND_NS / 100, "a little over 30 s after",
		first, DP_FLOW_MISS, true);
	close_plane(&plane);
}

static void
test_packets_of_one_burst_see_each_other(void **state)
{
	struct plane plane;

	(void)state;
	open_plane(&plane, 1);
	add(&plane, syn, 0);
	add(&plane, ack, 0);
	dp_batch_run(plane.batch);
	assert_int_equal(next_decision(&plane).flow, DP_FLOW_MISS);
	assert_int_equal(next_decision(&plane).flow, DP_FLOW_HIT);
	close_plane(&plane);
}

static const struct pb_layer other_flow[] = {ETHER(), IPV4(.src = "203.0.113.99"),
	TCP(.tcp_flags = 0x10), END};

static void
test_time_may_jump_within_a_burst(void **state)
{
	const uint64_t late = 1000ull * SECOND_NS;
	struct plane plane;
	struct dp_decision d;

	(void)state;
	open_plane(&plane, 1);
	add(&plane, other_flow, 0);
	add(&plane, syn, late);
	add(&plane, ack, late + SECOND_NS / 2);
	dp_batch_run(plane.batch);
	add(&plane, ack, late + SECOND_NS);
	/* So far on that ticks of 24 bits have come round, and a little. */
	add(&plane, ack, late + (1ull << 42) + 5ull * SECOND_NS);
	dp_batch_run(plane.batch);
	assert_int_equal(next_decision(&plane).flow, DP_FLOW_HIT);
	d = next_decision(&plane);
	assert_int_equal(d.flow, DP_FLOW_MISS);
	assert_true(d.is_new_flow);
	close_plane(&plane);
}

static void
test_a_running_flow_stays_though_a_service_comes_before_its_own(void **state)
{
	static const struct pb_layer v6[] = {ETHER(), IPV6(), TCP(.tcp_flags = 0x10), END};
	struct cfg_service *any;
	struct plane plane;
	struct dp_decision d;

	(void)state;
	open_plane(&plane, 1);
	any = &plane.model.services[2];
	assert_int_equal(run_one(&plane, v6, 0).backend, 2);
	(void)run_one(&plane, v6, 1);

	/* dead becomes the more specific one, without anybody behind it. */
	plane.model.services[1].address = any->address;
	publish(&plane);
	d = run_one(&plane, v6, 2);
	assert_int_equal(d.flow, DP_FLOW_HIT);
	assert_int_equal(d.backend, 2);
	assert_int_equal(d.service, 2);
	close_plane(&plane);
}

static void
test_a_cut_packet_counts_where_a_service_is_meant(void **state)
{
	static const struct {
		const char *name;
		const char *dst;
		uint32_t n_bytes;
		enum lb_verdict want;
	} cuts[] = {
		{"ports cut, for the service", PB_SERVICE_V4, 34, LB_DROP_SNAPLEN},
		{"payload cut, for the service", PB_SERVICE_V4, 54, LB_DROP_SNAPLEN},
		{"ports cut, for somebody else", "198.51.100.99", 34, LB_TO_KERNEL},
		{"payload cut, for somebody else", "198.51.100.99", 54, LB_TO_KERNEL},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(cuts); i++) {
		const struct pb_layer layers[] = {ETHER(), IPV4(.dst = cuts[i].dst), TCP(),
			PAYLOAD(10), END};
		uint8_t frame[PB_FRAME_MAX];
		const uint32_t wire = (uint32_t)pb_build(layers, frame);
		struct plane plane;
		uint8_t verdict;

		open_plane(&plane, 1);
		assert_int_equal(dp_batch_add(plane.batch, frame, cuts[i].n_bytes, wire, 0, 0),
			0);
		dp_batch_run(plane.batch);
		verdict = next_decision(&plane).verdict;
		EXPECT(verdict == cuts[i].want, "%s: verdict %u", cuts[i].name, verdict);
		close_plane(&plane);
	}
}

static void
test_a_batch_refuses_what_it_cannot_hold(void **state)
{
	uint8_t *frame = calloc(1, DP_FRAME_BYTES_MAX + 1);
	struct plane plane;

	(void)state;
	open_plane(&plane, 1);
	assert_non_null(frame);
	assert_int_equal(dp_batch_add(plane.batch, frame, DP_FRAME_BYTES_MAX + 1,
				 DP_FRAME_BYTES_MAX + 1, 0, 0),
		-EMSGSIZE);
	for (unsigned int i = 0; i < DP_BURST_MAX; i++)
		assert_int_equal(dp_batch_add(plane.batch, frame, DP_FRAME_BYTES_MAX,
					 DP_FRAME_BYTES_MAX, 0, 0),
			0);
	assert_int_equal(dp_batch_add(plane.batch, frame, 60, 60, 0, 0), -ENOBUFS);
	dp_batch_run(plane.batch);
	assert_int_equal(dp_batch_count(plane.batch), DP_BURST_MAX);
	assert_null(next_result(&plane).bytes);
	/* All buffers came back, or a second full batch would not fit. */
	for (unsigned int i = 0; i < DP_BURST_MAX; i++)
		assert_int_equal(dp_batch_add(plane.batch, frame, DP_FRAME_BYTES_MAX,
					 DP_FRAME_BYTES_MAX, 0, 0),
			0);
	close_plane(&plane);
	free(frame);
}

static const struct pb_layer later[] = {ETHER(), IPV4(.fragment = 9, .proto = 17), PAYLOAD(64),
	END};

/* Of fragments that wait in vain the oldest make room for those that wait a moment. */
static void
test_a_flood_of_fragments_keeps_nobody_waiting(void **state)
{
	static const struct pb_layer first[] = {ETHER(), IPV4(.fragment = 0x2000), UDP(),
		PAYLOAD(64), END};
	const unsigned int n_waiting = 16;
	uint64_t counts[LB_N_VERDICTS];
	struct dp_result result;
	struct plane plane;

	(void)state;
	open_plane_of(&plane, (struct dp_conf){.n_workers = 1, .n_waiting = n_waiting});
	for (unsigned int i = 0; i < 3 * n_waiting; i++) {
		char src[32];
		const struct pb_layer lost[] = {ETHER(),
			IPV4(.src = src, .fragment = 9, .proto = 17), PAYLOAD(64), END};

		(void)snprintf(src, sizeof(src), "203.0.113.%u", 100 + i);
		add(&plane, lost, 0);
	}
	add(&plane, later, 0);
	add(&plane, first, 0);
	dp_batch_run(plane.batch);
	while (dp_batch_next(plane.batch, &result)) {
	}
	dp_batch_end(plane.batch);
	dp_read_verdicts(plane.dp, counts);
	/* No service has the port; but the kernel gets both. */
	assert_int_equal(counts[LB_TO_KERNEL], 2);
	assert_int_equal(counts[LB_DROP_FRAGMENT_EXCESS], 2 * n_waiting + 1);
	assert_int_equal(counts[LB_DROP_FRAGMENT_UNMATCHED], n_waiting - 1);
	close_plane(&plane);
}

static void
test_the_end_is_no_run_of_what_was_added(void **state)
{
	struct dp_result result;
	struct plane plane;

	(void)state;
	open_plane(&plane, 2);
	assert_int_equal(run_one(&plane, syn, 0).verdict, LB_FORWARD);
	add(&plane, ack, 1);
	dp_batch_end(plane.batch);
	assert_false(dp_batch_next(plane.batch, &result));
	assert_int_equal(run_one(&plane, ack, 2).flow, DP_FLOW_HIT);
	close_plane(&plane);
}

/* A batch's packets are of its own pools: none may wait for longer than it is there. */
static void
test_what_waits_goes_with_its_batch(void **state)
{
	uint64_t counts[LB_N_VERDICTS];
	struct dp_result result;
	struct plane plane;

	(void)state;
	open_plane(&plane, 2);
	add(&plane, later, 0);
	dp_batch_run(plane.batch);
	assert_false(dp_batch_next(plane.batch, &result));
	dp_batch_destroy(plane.batch);
	dp_read_verdicts(plane.dp, counts);
	assert_int_equal(counts[LB_DROP_FRAGMENT_UNMATCHED], 1);

	assert_int_equal(dp_batch_create(plane.dp, &plane.batch), 0);
	(void)run_one(&plane, ack, 2ull * SECOND_NS);
	assert_false(dp_batch_next(plane.batch, &result));
	close_plane(&plane);
}

/* The identification of the first outer packet that is cut, under a secret. */
static unsigned int
read_first_outer_id(uint64_t secret, unsigned int n_workers)
{
	static const struct pb_layer large[] = {ETHER(), IPV4(), TCP(), PAYLOAD(1441), END};
	struct dp_result result;
	struct plane plane;
	unsigned int id;

	open_plane_of(&plane, (struct dp_conf){.n_workers = n_workers, .secret = {secret}});
	plane.model.services[0].fragment = CFG_FRAGMENT_OUTER;
	publish(&plane);
	add(&plane, large, 0);
	dp_batch_run(plane.batch);
	result = next_result(&plane);
	assert_non_null(result.bytes);
	id = (unsigned int)result.bytes[14 + 4] << 8 | result.bytes[14 + 5];
	close_plane(&plane);
	return id;
}

static void
test_ids_of_outer_packets_begin_where_the_secret_says(void **state)
{
	(void)state;
	for (unsigned int n_workers = 1; n_workers <= 4; n_workers++) {
		unsigned int n_same = 0;

		assert_int_equal(read_first_outer_id(7, n_workers),
			read_first_outer_id(7, n_workers));
		for (uint64_t secret = 0; secret < 8; secret++)
			n_same += read_first_outer_id(secret, n_workers) ==
				  read_first_outer_id(secret + 100, n_workers);
		assert_in_range(n_same, 0, 1);
	}
}

static void
test_a_frame_of_several_buffers_is_cut_to_its_packet(void **state)
{
	const uint32_t n_frame = 70000; /* padded beyond one buffer, with an IP packet of 40 */
	uint8_t *frame = calloc(1, n_frame);
	struct plane plane;
	struct dp_result result;

	(void)state;
	open_plane(&plane, 1);
	assert_non_null(frame);
	(void)pb_build(ack, frame);
	assert_int_equal(dp_batch_add(plane.batch, frame, n_frame, n_frame, 0, 0), 0);
	dp_batch_run(plane.batch);
	result = next_result(&plane);
	assert_non_null(result.bytes);
	assert_int_equal(result.n_bytes, 14 + 20 + 40);
	assert_memory_equal(result.bytes + 34, frame + 14, 40);
	close_plane(&plane);
	free(frame);
}

static void
test_workers_decide_as_one_does(void **state)
{
	uint64_t random = 1;
	struct plane one;
	struct plane many;

	(void)state;
	open_plane(&one, 1);
	open_plane(&many, 5);
	for (unsigned int round = 0; round < 200; round++) {
		for (unsigned int i = 0; i < DP_BURST_MAX; i++) {
			uint8_t frame[PB_FRAME_MAX];
			struct pb_layer layers[] = {ETHER(), IPV4(),
				TCP(.sport = 1 + (int)xrand_below(&random, 500),
					.tcp_flags = 0x10),
				END};
			const uint32_t n = (uint32_t)pb_build(layers, frame);

			assert_int_equal(dp_batch_add(one.batch, frame, n, n, round, 0), 0);
			assert_int_equal(dp_batch_add(many.batch, frame, n, n, round, 0), 0);
		}
		dp_batch_run(one.batch);
		dp_batch_run(many.batch);
		for (unsigned int i = 0; i < DP_BURST_MAX; i++) {
			const struct dp_decision a = next_decision(&one);
			const struct dp_decision b = next_decision(&many);

			EXPECT(a.backend == b.backend && a.flow == b.flow && a.slot == b.slot,
				"round %u, packet %u: the workers differ", round, i);
		}
	}
	close_plane(&one);
	close_plane(&many);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet_has_its_verdict),
		cmocka_unit_test(test_counters_add_up_to_the_packets),
		cmocka_unit_test(test_workers_share_what_may_be_answered),
		cmocka_unit_test(test_a_flow_stays_until_its_backend_is_gone),
		cmocka_unit_test(test_a_new_syn_on_the_same_ports_picks_afresh),
		cmocka_unit_test(test_a_closed_flow_is_forgotten_after_30_seconds),
		cmocka_unit_test(test_packets_of_one_burst_see_each_other),
		cmocka_unit_test(test_time_may_jump_within_a_burst),
		cmocka_unit_test(
			test_a_running_flow_stays_though_a_service_comes_before_its_own),
		cmocka_unit_test(test_a_cut_packet_counts_where_a_service_is_meant),
		cmocka_unit_test(test_a_batch_refuses_what_it_cannot_hold),
		cmocka_unit_test(test_a_flood_of_fragments_keeps_nobody_waiting),
		cmocka_unit_test(test_the_end_is_no_run_of_what_was_added),
		cmocka_unit_test(test_what_waits_goes_with_its_batch),
		cmocka_unit_test(test_ids_of_outer_packets_begin_where_the_secret_says),
		cmocka_unit_test(test_a_frame_of_several_buffers_is_cut_to_its_packet),
		cmocka_unit_test(test_workers_decide_as_one_does),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
