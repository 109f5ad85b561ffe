/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The short way of usual packets and its plain twin: two planes, one configuration, the same
 * bursts of random packets. What becomes of each is the same to the byte.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

#include "burst_frames.h"
#include "burst_plane.h"
#include "dp_forward.h"
#include "dp_mbuf.h"
#include "dp_plane.h"
#include "dp_snapshot.h"
#include "expect.h"
#include "lb_compiler.h"
#include "lb_flow_lookup.h"
#include "packet_builder.h"
#include "xrand.h"

#define BURSTS     20000u
#define BUFFERS    4095u
#define PLANES     2u /* the second one goes the plain way */
#define IP_AT      14u
#define MACS_BYTES 12u
#define TAG_BYTES  4u
#define TCP_FLAGS  13u
#define STEP_NS    50000u
#define JUMP_NS    UINT64_C(20000000000) /* some flows time out */
#define MTU_BYTES  1500u
#define PORT       443u
#define SECOND_NS  UINT64_C(1000000000)
#define LONG_NS    (900 * SECOND_NS)

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, ACK = 0x10 };

struct pair {
	struct burst_plane planes[PLANES];
	struct dp_burst bursts[PLANES];
	struct rte_mempool *pool;
	uint64_t random;
	uint64_t now_ns;
	bool has_tags;         /* the burst */
	bool is_flood;         /* nearly all are SYNs of flows that nobody knows */
	bool is_calm;          /* nothing but segments of flows that may be known */
	uint64_t n_packets[2]; /* without tags, and with */
	uint64_t n_usual[2];
	uint64_t n_brief[2]; /* of bursts of which only what is_brief says holds: all, new flows
			      */
	uint64_t n_new_flows;
};

static int
start(void **state)
{
	(void)state;
	return dp_start_unprivileged("test_usual", 1);
}

static bool
one_in(struct pair *pair, uint32_t n)
{
	return xrand_below(&pair->random, n) == 0;
}

/* TCP or UDP of one of some flows, to one of the services, as long as it may be. */
static size_t
build_usual(struct pair *pair, uint8_t *frame)
{
	static const char *const v4[] = {PB_SERVICE_V4, PB_SERVICE_V4, "198.51.100.11",
		"198.51.100.12", "198.51.100.21", "198.51.100.33", "198.51.100.13",
		"192.0.2.99"};
	static const char *const v6[] = {PB_SERVICE_V6, "2001:db8:6::1", "2001:db8:7::1"};
	/* The balancer's, services', of no host; and a client in a service's prefix. */
	static const char *const odd_v4[] = {"192.0.2.1", "192.0.5.1", PB_SERVICE_V4,
		"198.51.100.13", "198.51.100.21", "0.1.2.3", "127.0.0.1", "239.1.1.1"};
	static const char *const odd_v6[] = {"2001:db8::1", PB_SERVICE_V6, "2001:db8:6::1",
		"::", "::1", "ff02::1"};
	static const uint8_t flags[] = {ACK, ACK, ACK, ACK, ACK, ACK, ACK, ACK, ACK, ACK, ACK,
		SYN, SYN | ACK, FIN | ACK, RST, SYN | FIN};
	const bool is_v6 = one_in(pair, 4);
	const bool is_tcp = !one_in(pair, 3);
	const bool is_odd = one_in(pair, 16);
	const struct pb_layer layers[] = {
		ETHER(),
		is_v6 ? (struct pb_layer)IPV6(.dst = v6[xrand_below(&pair->random, 3)],
				.src = is_odd ? odd_v6[xrand_below(&pair->random, 6)] : NULL)
		      : (struct pb_layer)IPV4(.dst = v4[xrand_below(&pair->random, 8)],
				.src = is_odd ? odd_v4[xrand_below(&pair->random, 8)] : NULL,
				.fragment = one_in(pair, 2) ? 0x4000 : 0),
		is_tcp ? (struct pb_layer)TCP(.tcp_flags = flags[xrand_below(&pair->random,
						      sizeof(flags))],
				 .sport = 1 + (int)xrand_below(&pair->random, 8))
		       : (struct pb_layer)UDP(.sport = 1 + (int)xrand_below(&pair->random, 8)),
		PAYLOAD(xrand_below(&pair->random, one_in(pair, 8) ? MTU_BYTES - 60 : 80)),
		END,
	};
	const size_t n = pb_build(layers, frame);

	/* The client's address, and DSCP and ECN. */
	if (is_odd)
		return n;
	if (is_v6) {
		frame[IP_AT + 23] = (uint8_t)xrand_below(&pair->random, 4);
		frame[IP_AT + 1] = (uint8_t)xrand(&pair->random);
	} else {
		frame[IP_AT + 15] = (uint8_t)xrand_below(&pair->random, 4);
		frame[IP_AT + 1] = (uint8_t)xrand(&pair->random);
		pb_fix_ipv4_csum(frame + IP_AT);
	}
	return n;
}

/* A SYN, or a segment of a flow whose SYN may have come, to services that let flows begin. */
static size_t
build_flood(struct pair *pair, uint8_t *frame)
{
	static const char *const v4[] = {"198.51.100.33", "198.51.100.33", "198.51.100.33",
		"198.51.100.34", "198.51.100.35", "198.51.100.46"};
	const bool is_v6 = one_in(pair, 4);
	const bool is_odd = one_in(pair, 64);
	const bool is_known = one_in(pair, 8);
	const int sport =
		1 + (int)xrand_below(&pair->random, is_known || one_in(pair, 64) ? 16 : 60000);
	const struct pb_layer layers[] = {
		ETHER(),
		is_v6 ? (struct pb_layer)IPV6(.dst = "2001:db8:6::1",
				.src = is_odd ? "2001:db8:5::10" : NULL)
		      : (struct pb_layer)IPV4(.dst = v4[xrand_below(&pair->random,
						      one_in(pair, 4) ? 6 : 3)],
				.src = is_odd ? "192.0.2.1" : NULL),
		TCP(.tcp_flags = is_known ? ACK : SYN, .sport = sport),
		PAYLOAD(one_in(pair, 32) ? xrand_below(&pair->random, MTU_BYTES - 60) : 0),
		END,
	};
	const size_t n = pb_build(layers, frame);
	uint8_t *seq = frame + IP_AT + (is_v6 ? 40 : 20) + 4;

	seq[3] = (uint8_t)xrand_below(&pair->random, 2);
	return n;
}

/* A segment of one of some flows, or a SYN to a service that lets one begin. */
static size_t
build_calm(struct pair *pair, uint8_t *frame)
{
	static const char *const v4[] = {"198.51.100.33", PB_SERVICE_V4, "198.51.100.12"};
	static const char *const v6[] = {"2001:db8:6::1", PB_SERVICE_V6};
	const bool begins = one_in(pair, 64);
	const struct pb_layer layers[] = {
		ETHER(),
		one_in(pair, 4)
			? (struct pb_layer)IPV6(.dst = v6[begins ? 0 : one_in(pair, 2)])
			: (struct pb_layer)
				  IPV4(.dst = v4[begins ? 0 : xrand_below(&pair->random, 3)]),
		TCP(.tcp_flags = begins ? SYN : ACK,
			.sport = 1 + (int)xrand_below(&pair->random, begins ? 60000 : 8)),
		PAYLOAD(begins ? 0 : xrand_below(&pair->random, 80)),
		END,
	};

	return pb_build(layers, frame);
}

/* @return the frame's bytes with a tag put in. */
static size_t
put_tag(struct pair *pair, uint8_t *frame, size_t n)
{
	uint8_t *tag = frame + MACS_BYTES;

	memmove(tag + TAG_BYTES, tag, n - MACS_BYTES);
	tag[0] = one_in(pair, 32) ? 0x88 : 0x81;
	tag[1] = tag[0] == 0x88 ? 0xa8 : 0x00;
	tag[2] = (uint8_t)xrand(&pair->random);
	tag[3] = (uint8_t)xrand(&pair->random);
	return n + TAG_BYTES;
}

static size_t
build(struct pair *pair, uint8_t *frame)
{
	size_t n;

	if (pair->is_calm) {
		n = build_calm(pair, frame);
		return pair->has_tags ? put_tag(pair, frame, n) : n;
	}
	if (pair->is_flood && !one_in(pair, 32))
		return build_flood(pair, frame);
	if (one_in(pair, 16))
		n = burst_frames_build(xrand_below(&pair->random,
					       (uint32_t)burst_frames_count()),
			frame);
	else
		n = build_usual(pair, frame);
	if (one_in(pair, 16)) {
		const uint32_t bit = xrand_below(&pair->random, 8 * 60);

		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (n >= IP_AT + 20 && one_in(pair, 2))
			pb_fix_ipv4_csum(frame + IP_AT);
	}
	if (pair->has_tags && n >= MACS_BYTES && !one_in(pair, 4))
		n = put_tag(pair, frame, n);
	if (one_in(pair, 64))
		frame[0] ^= 1; /* to a group of the link */
	return one_in(pair, 64) ? xrand_below(&pair->random, (uint32_t)n) : n;
}

static struct rte_mbuf *
make(struct pair *pair, const uint8_t *frame, size_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pair->pool);

	assert_non_null(m);
	if (n > 0)
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	return m;
}

static void
fill(struct pair *pair)
{
	const uint16_t n = (uint16_t)(1 + xrand_below(&pair->random, DP_BURST_MAX));
	/* Within a replayed burst time goes on. */
	const bool is_replay = one_in(pair, 8);
	const bool is_brief = one_in(pair, 2);

	pair->has_tags = one_in(pair, 4);
	pair->is_flood = one_in(pair, 4);
	pair->is_calm = one_in(pair, 4);
	pair->now_ns += one_in(pair, 64) ? JUMP_NS : STEP_NS;
	for (unsigned int p = 0; p < PLANES; p++) {
		pair->bursts[p].n = n;
		pair->bursts[p].is_brief = is_brief;
		pair->bursts[p].is_placed = true;
		pair->bursts[p].settled.first = NULL;
	}
	for (uint16_t i = 0; i < n; i++) {
		uint8_t frame[PB_FRAME_MAX + TAG_BYTES];
		const size_t n_bytes = build(pair, frame);

		if (is_replay && one_in(pair, 4))
			pair->now_ns += one_in(pair, 16) ? JUMP_NS : STEP_NS;
		for (unsigned int p = 0; p < PLANES; p++) {
			struct dp_burst *burst = &pair->bursts[p];

			burst->pkts[i] = make(pair, frame, n_bytes);
			burst->wire_bytes[i] = (uint32_t)n_bytes;
			burst->now_ns[i] = pair->now_ns;
		}
	}
}

static bool
is_same_frame(const struct rte_mbuf *a, const struct rte_mbuf *b)
{
	return a->nb_segs == 1 && b->nb_segs == 1 && a->pkt_len == b->pkt_len &&
	       a->data_len == b->data_len && a->pkt_len == a->data_len &&
	       memcmp(rte_pktmbuf_mtod(a, const void *), rte_pktmbuf_mtod(b, const void *),
		       a->data_len) == 0;
}

/* Where a's burst is brief and all of it is forwarded. */
static bool
is_same_in_brief(const struct dp_decision *a, const struct dp_decision *b)
{
	return b->verdict == LB_FORWARD && !b->has_more && a->backend == b->backend &&
	       a->ip_bytes == b->ip_bytes && a->port == b->port;
}

static bool
is_same_decision(const struct dp_decision *a, const struct dp_decision *b)
{
	return a->verdict == b->verdict && a->service == b->service &&
	       a->backend == b->backend && a->slot == b->slot && a->ip_bytes == b->ip_bytes &&
	       a->flow == b->flow && a->event == b->event && a->is_new_flow == b->is_new_flow &&
	       a->has_more == b->has_more && (a->verdict != LB_FORWARD || a->port == b->port) &&
	       (a->flow == DP_FLOW_NONE ||
		       (a->hash.print == b->hash.print && a->hash.place == b->hash.place));
}

/* Of both planes one packet, and what leaves after it; all are freed. */
static const char *
compare_chains(struct rte_mbuf *a, struct rte_mbuf *b)
{
	const char *flaw = NULL;

	while (a != NULL && b != NULL) {
		struct rte_mbuf *const next[] = {dp_beside(a)->next, dp_beside(b)->next};

		if (!is_same_decision(&dp_beside(a)->decision, &dp_beside(b)->decision))
			flaw = "of one that leaves after it the decision";
		else if (dp_beside(a)->decision.verdict <= LB_TO_KERNEL && !is_same_frame(a, b))
			flaw = "one that leaves after it";
		rte_pktmbuf_free(a);
		rte_pktmbuf_free(b);
		a = next[0];
		b = next[1];
	}
	return a != b ? "how many leave after it" : flaw;
}

/* @param is_brief  Of the first plane's decisions no more than that holds. */
static const char *
compare_packets(struct pair *pair, uint16_t i, bool is_brief)
{
	const struct dp_decision *a = &pair->bursts[0].decisions[i];
	const struct dp_decision *b = &pair->bursts[1].decisions[i];
	struct rte_mbuf *m[PLANES] = {pair->bursts[0].pkts[i], pair->bursts[1].pkts[i]};
	const char *flaw = NULL;

	if (is_brief ? !is_same_in_brief(a, b) : !is_same_decision(a, b))
		return is_brief ? "the brief decision" : "the decision";
	pair->n_new_flows += b->is_new_flow;
	pair->n_brief[1] += is_brief && b->is_new_flow;
	if (b->verdict == DP_AWAY)
		return NULL;
	if (b->verdict <= LB_TO_KERNEL && !is_same_frame(m[0], m[1]))
		flaw = "the frame";
	if (b->has_more && flaw == NULL)
		flaw = compare_chains(dp_beside(m[0])->next, dp_beside(m[1])->next);
	rte_pktmbuf_free(m[0]);
	rte_pktmbuf_free(m[1]);
	return flaw;
}

/* @return whether all that holds of the first plane's decisions is what is_brief says. */
static bool
run(struct pair *pair)
{
	const uint16_t n = pair->bursts[0].n;
	unsigned int n_usual = 0;

	for (unsigned int p = 0; p < PLANES; p++) {
		struct dp *dp = pair->planes[p].dp;
		struct dp_worker *worker = dp->workers[0];
		struct dp_burst *burst = &pair->bursts[p];
		const struct dp_snapshot *snapshot =
			atomic_load_explicit(&dp->current, memory_order_acquire);

		/* What is not written is not what it was a burst before. */
		memset(burst->decisions, 0xff, sizeof(burst->decisions));
		dp_worker_online(worker);
		if (p == 0)
			n_usual = dp_forward_burst(worker, snapshot, burst);
		else
			dp_forward_burst_plainly(worker, snapshot, burst);
		dp_worker_offline(worker);
	}
	pair->n_usual[pair->has_tags] += n_usual;
	pair->n_packets[pair->has_tags] += n;
	if (!pair->bursts[0].is_brief || n_usual < n)
		return false;
	pair->n_brief[0] += n;
	return true;
}

static void
give_up_waiting(struct pair *pair)
{
	for (unsigned int p = 0; p < PLANES; p++)
		dp_worker_abandon(pair->planes[p].dp->workers[0], &pair->bursts[p]);
	assert_null(
		compare_chains(pair->bursts[0].settled.first, pair->bursts[1].settled.first));
}

/* What began on each backend was counted, each flow once. */
static void
compare_counts(const struct pair *pair)
{
	const uint64_t *a = pair->planes[0].dp->workers[0]->backend_flows;
	const uint64_t *b = pair->planes[1].dp->workers[0]->backend_flows;
	uint64_t n_counted = 0;

	for (uint32_t id = 0; id < LB_BACKEND_IDS_MAX; id++) {
		EXPECT(a[id] == b[id], "of backend %u, %lu flows or %lu", id, a[id], b[id]);
		n_counted += a[id];
	}
	EXPECT(n_counted == pair->n_new_flows, "%lu flows were counted of %lu", n_counted,
		pair->n_new_flows);
}

/* The keys of flows are kept, too. */
static struct lb_flow_key *
keep_keys(const struct burst_plane *plane)
{
	struct lb_flow_table *flows = plane->dp->workers[0]->flows;
	struct lb_flow_key *keys =
		calloc((size_t)lb_flow_n_buckets(flows) * LB_FLOW_WAYS, sizeof(*keys));

	assert_non_null(keys);
	lb_flow_keep_keys(flows, keys);
	return keys;
}

/* What is left in both tables is the same, place by place. */
static void
compare_tables(const struct pair *pair)
{
	const struct lb_flow_table *a = pair->planes[0].dp->workers[0]->flows;
	const struct lb_flow_table *b = pair->planes[1].dp->workers[0]->flows;
	const size_t n = lb_flow_n_buckets(a);

	assert_memory_equal(a->buckets, b->buckets, n * sizeof(*a->buckets));
	assert_memory_equal(a->syn_seq, b->syn_seq, n * LB_FLOW_WAYS * sizeof(*a->syn_seq));
	assert_memory_equal(a->keys, b->keys, n * LB_FLOW_WAYS * sizeof(*a->keys));
	assert_memory_equal(&a->stats, &b->stats, sizeof(a->stats));
}

/* As if the table had no more buckets: no lookup goes beyond them. */
static void
narrow(const struct burst_plane *plane, uint8_t n_buckets_log2)
{
	struct lb_flow_table *flows = plane->dp->workers[0]->flows;
	const uint32_t n_buckets = 1u << n_buckets_log2;

	flows->n_buckets_log2 = n_buckets_log2;
	flows->bucket_shift = (uint8_t)(64 - n_buckets_log2);
	flows->bucket_mask = n_buckets - 1;
	flows->n_crowded = n_buckets * LB_FLOW_WAYS * 7 / 8;
}

/* Bursts of random packets through both planes. @param out  The first one's table, at last. */
static void
expect_the_same_of_both(uint8_t n_buckets_log2, struct lb_flow_table_stats *out)
{
	struct lb_flow_key *keys[PLANES];
	static struct pair pair;

	pair = (struct pair){.random = 1};
	for (unsigned int p = 0; p < PLANES; p++) {
		burst_plane_open(&pair.planes[p], 1);
		if (n_buckets_log2 != 0)
			narrow(&pair.planes[p], n_buckets_log2);
		keys[p] = keep_keys(&pair.planes[p]);
	}
	pair.pool = rte_pktmbuf_pool_create("usual", BUFFERS, 0, DP_BESIDE_BYTES,
		RTE_PKTMBUF_HEADROOM + PB_FRAME_MAX + TAG_BYTES, SOCKET_ID_ANY);
	assert_non_null(pair.pool);

	for (unsigned int n = 0; n < BURSTS; n++) {
		const char *flaw = NULL;
		bool is_brief;

		if (one_in(&pair, 128)) {
			const unsigned int which =
				xrand_below(&pair.random, BURST_PLANE_MODELS);

			for (unsigned int p = 0; p < PLANES; p++)
				burst_plane_publish(&pair.planes[p], which);
		}
		fill(&pair);
		is_brief = run(&pair);
		for (uint16_t i = 0; i < pair.bursts[0].n && flaw == NULL; i++) {
			flaw = compare_packets(&pair, i, is_brief);
			EXPECT(flaw == NULL, "burst %u, packet %u: %s differs", n, i, flaw);
		}
		if (flaw != NULL)
			break;
		assert_null(compare_chains(pair.bursts[0].settled.first,
			pair.bursts[1].settled.first));
	}
	/* Of flows that are known, or begin, to backends that take them. */
	for (unsigned int i = 0; i < 2; i++)
		EXPECT(pair.n_usual[i] > pair.n_packets[i] / 8,
			"only %lu of %lu packets %s tags went the short way", pair.n_usual[i],
			pair.n_packets[i], i == 0 ? "without" : "with");
	EXPECT(pair.n_brief[0] > BURSTS / 2 && pair.n_brief[1] > 100,
		"only %lu packets were of brief bursts, and %lu of them began flows",
		pair.n_brief[0], pair.n_brief[1]);
	give_up_waiting(&pair);
	compare_counts(&pair);
	compare_tables(&pair);
	lb_flow_table_stats(pair.planes[0].dp->workers[0]->flows, out);
	assert_int_equal(rte_mempool_avail_count(pair.pool), BUFFERS);
	rte_mempool_free(pair.pool);
	for (unsigned int p = 0; p < PLANES; p++) {
		burst_plane_close(&pair.planes[p]);
		free(keys[p]);
	}
}

static void
test_usual_packets_fare_as_they_would_plainly(void **state)
{
	struct lb_flow_table_stats stats;

	(void)state;
	expect_the_same_of_both(0, &stats);
	assert_true(stats.live > 1000);
}

/* Flows of a burst take one another's places, or move away for one another. */
static void
test_usual_packets_fare_so_in_a_crowded_table(void **state)
{
	struct lb_flow_table_stats stats;

	(void)state;
	expect_the_same_of_both(4, &stats);
	assert_true(stats.evicted > 1000);
	assert_true(stats.refused > 0);
}

static struct dp_table *
make_table(const uint32_t *id, bool is_live)
{
	const struct lb_picker_backend only = {.name = "only", .name_bytes = 4, .weight = 100};
	const struct dp_table_conf table_conf = {
		.picker = {.algorithm = LB_MAGLEV, .n_slots = 7},
		.backends = &only,
		.ids = id,
		.n_backends = is_live ? 1 : 0,
	};
	struct dp_table *table;

	assert_int_equal(dp_table_create(&table_conf, &table), 0);
	return table;
}

/*
 * Services of one backend each, its id its service's place, that look at nothing but flows: the
 * first at a port, the other where PORT would be with its bytes the other way round. The first
 * one's backend is live or not.
 */
static struct dp_snapshot *
make_snapshot(uint16_t port, bool is_live)
{
	static const uint32_t ids[] = {0, 1};
	struct dp_service_conf services[] = {{.match = {.port = port}},
		{.match = {.port = (uint16_t)(PORT << 8 | PORT >> 8)}}};
	struct dp_backend_conf backends[LB_N_ELEMENTS(services)];
	const struct dp_snapshot_conf conf = {
		.services = services,
		.n_services = LB_N_ELEMENTS(services),
		.backends = backends,
		.n_backends = LB_N_ELEMENTS(backends),
		.has_kernel = true,
	};
	struct dp_snapshot *snapshot;

	for (uint32_t i = 0; i < LB_N_ELEMENTS(services); i++) {
		backends[i] = (struct dp_backend_conf){.id = ids[i],
			.service = i,
			.is_live = i > 0 || is_live,
			.has_next_hop = true,
			.mtu = MTU_BYTES,
			.encap = {.mode = LB_FORWARD_IPIP}};
		assert_int_equal(lb_addr_parse("192.0.2.1", &backends[i].encap.src), 0);
		assert_int_equal(lb_addr_parse("10.0.0.1", &backends[i].encap.dst), 0);
		assert_int_equal(lb_prefix_parse(PB_SERVICE_V4, &services[i].match.prefix), 0);
		services[i].table = make_table(&ids[i], backends[i].is_live);
	}
	assert_int_equal(dp_snapshot_create(&conf, &snapshot), 0);
	for (uint32_t i = 0; i < LB_N_ELEMENTS(services); i++)
		dp_table_release(services[i].table);
	assert_false(snapshot->has_odd_datagrams);
	return snapshot;
}

/* One packet to PORT, whose first layer above IPv4 this is. */
static struct dp_decision
go(struct dp *dp, struct rte_mempool *packets, struct pb_layer layer, bool goes_plainly,
	uint64_t now_ns)
{
	static struct dp_burst burst;
	const struct pb_layer layers[] = {ETHER(), IPV4(), layer, PAYLOAD(20), END};
	struct dp_worker *worker = dp->workers[0];
	uint8_t frame[PB_FRAME_MAX];
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	const size_t n = pb_build(layers, frame);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	burst.pkts[0] = m;
	burst.wire_bytes[0] = (uint32_t)n;
	burst.now_ns[0] = now_ns;
	burst.n = 1;
	burst.is_placed = true;
	dp_worker_online(worker);
	if (goes_plainly)
		dp_forward_burst_plainly(worker,
			atomic_load_explicit(&dp->current, memory_order_acquire), &burst);
	else
		(void)dp_worker_burst(worker, &burst);
	dp_worker_offline(worker);
	rte_pktmbuf_free(burst.pkts[0]);
	return burst.decisions[0];
}

static struct pb_layer
segment(int flags)
{
	return (struct pb_layer)TCP(.tcp_flags = flags, .dport = PORT);
}

static struct pb_layer
datagram(void)
{
	return (struct pb_layer)UDP(.dport = PORT);
}

static const struct dp_conf small_conf = {
	.n_workers = 1,
	.flows = {.n_entries = 64, .timeout_ns = {LONG_NS, LONG_NS, LONG_NS, LONG_NS}},
};

static struct rte_mempool *
make_pool(void)
{
	struct rte_mempool *packets =
		rte_pktmbuf_pool_create("known", 15, 0, DP_BESIDE_BYTES, 2048, SOCKET_ID_ANY);

	assert_non_null(packets);
	return packets;
}

/* Also of datagrams, where no service looks at more than their flow. */
static void
test_known_flows_ask_again_when_services_are_matched_otherwise(void **state)
{
	static const struct {
		const char *what;
		uint16_t port;
		uint8_t verdict;
		uint8_t flow;
	} rows[] = {
		{"it begins", PORT, LB_FORWARD, DP_FLOW_MISS},
		{"it is known", PORT, LB_FORWARD, DP_FLOW_HIT},
		{"it was seen under this match", PORT, LB_FORWARD, DP_FLOW_HIT},
		{"the service is at another port", PORT + 1, LB_TO_KERNEL, DP_FLOW_NONE},
		{"it still is", PORT + 1, LB_TO_KERNEL, DP_FLOW_NONE},
		{"it is back, and so is its entry", PORT, LB_FORWARD, DP_FLOW_HIT},
	};
	struct rte_mempool *packets = make_pool();

	(void)state;
	for (unsigned int is_tcp = 0; is_tcp < 2; is_tcp++) {
		struct dp *dp;

		assert_int_equal(dp_create(&small_conf, 0, &dp), 0);
		for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
			struct dp_decision d;

			if (i == 0 || rows[i].port != rows[i - 1].port)
				dp_publish(dp, make_snapshot(rows[i].port, true));
			d = go(dp, packets, is_tcp != 0 ? segment(ACK) : datagram(), false,
				(i + 1) * SECOND_NS);
			EXPECT(d.verdict == rows[i].verdict && d.flow == rows[i].flow,
				"%s, %s: verdict %u, flow %u", is_tcp != 0 ? "TCP" : "UDP",
				rows[i].what, d.verdict, d.flow);
			EXPECT(d.verdict != LB_FORWARD || d.backend == 0, "%s, %s: backend %u",
				is_tcp != 0 ? "TCP" : "UDP", rows[i].what, d.backend);
		}
		dp_destroy(dp);
	}
	rte_mempool_free(packets);
}

/* What a flow's entry says but for who it is. */
static uint64_t
entry_of(const struct dp *dp, const struct lb_flow_hash *hash, uint64_t now_ns)
{
	const struct lb_flow_table *flows = dp->workers[0]->flows;
	const struct lb_flow_place place = lb_flow_locate(flows, hash);
	const uint64_t *rest = lb_flow_find_rest(flows, place.bucket, place.tag, hash->print,
		lb_flow_tick(flows, now_ns));

	assert_non_null(rest);
	return *rest;
}

/* A flow whose one backend comes and goes. Of each loss every flow asks once; of what is back
 * none does. */
static void
follow_flow(struct dp *dp, struct rte_mempool *packets, bool is_tcp, bool goes_plainly)
{
	static const struct {
		const char *what;
		bool is_live;
		int flags;
		uint64_t n_losses;
	} rows[] = {
		{"it begins", true, ACK, 0},
		{"it is known", true, ACK, 0},
		{"its backend is down", false, ACK, 1},
		{"it still is", false, ACK, 1},
		{"it ends, for nobody", false, FIN | ACK, 1},
		{"the backend is live again", true, ACK, 1},
		{"it still is live", true, ACK, 1},
		{"it is down once more", false, RST, 2},
		{"and live once more", true, ACK, 2},
	};
	uint64_t since_ns = SECOND_NS;
	uint64_t entry = 0;

	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const char *way = goes_plainly ? "plainly" : "the short way";
		const uint64_t now_ns = (i + 1) * SECOND_NS;
		const uint64_t was = entry;
		struct dp_decision d;

		if (i == 0 || rows[i].is_live != rows[i - 1].is_live)
			dp_publish(dp, make_snapshot(PORT, rows[i].is_live));
		if (i > 0 && rows[i].n_losses != rows[i - 1].n_losses)
			since_ns = now_ns;
		d = go(dp, packets, is_tcp ? segment(rows[i].flags) : datagram(), goes_plainly,
			now_ns);
		EXPECT(d.verdict == (rows[i].is_live ? LB_FORWARD : LB_DROP_NO_BACKEND) &&
				d.flow ==
					(i > 0 && rows[i].is_live ? DP_FLOW_HIT : DP_FLOW_MISS),
			"%s, %s: verdict %u, flow %u", rows[i].what, way, d.verdict, d.flow);
		entry = entry_of(dp, &d.hash, now_ns);
		EXPECT(rows[i].is_live ? entry != was : entry == was, "%s, %s: its entry is %s",
			rows[i].what, way, entry == was ? "as it was" : "another");
		EXPECT(lb_flow_state_of(entry) != LB_FLOW_TCP_CLOSING &&
				lb_flow_backend_of(entry) == 0,
			"%s, %s: its entry has state %u, backend %u", rows[i].what, way,
			lb_flow_state_of(entry), lb_flow_backend_of(entry));
		EXPECT(dp->workers[0]->match_since_ns == since_ns, "%s, %s: since %lu",
			rows[i].what, way, dp->workers[0]->match_since_ns);
	}
}

static void
test_entries_are_left_alone_while_nobody_takes_their_flows(void **state)
{
	struct rte_mempool *packets = make_pool();

	(void)state;
	for (unsigned int k = 0; k < 4; k++) {
		struct dp *dp;

		assert_int_equal(dp_create(&small_conf, 0, &dp), 0);
		follow_flow(dp, packets, k / 2 != 0, k % 2 != 0);
		dp_destroy(dp);
	}
	rte_mempool_free(packets);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual_packets_fare_as_they_would_plainly),
		cmocka_unit_test(test_usual_packets_fare_so_in_a_crowded_table),
		cmocka_unit_test(
			test_known_flows_ask_again_when_services_are_matched_otherwise),
		cmocka_unit_test(test_entries_are_left_alone_while_nobody_takes_their_flows),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
