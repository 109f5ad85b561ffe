/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random operations on a few crowded buckets, against a plain model: one record a flow, time
 * in ticks that do not wrap, no sweep. And newcomers in a full table: who gives way to them.
 */

#include "lb_flow_lookup.h"

#include <stdlib.h>

#include "expect.h"
#include "lb_compiler.h"
#include "rounds.h"
#include "xrand.h"

#define N_WAYS    4u
#define N_BUCKETS 3u
#define N_FLOWS   21u /* 7 for each bucket of 4 */
#define N_ROUNDS  ROUNDS(12u)
#define N_STEPS   20000u
#define MS        UINT64_C(1000000)
#define S         UINT64_C(1000000000)

enum model_state { NO_ENTRY, NEW_TCP, OPEN_TCP, CLOSING_TCP, NEW_UDP, OPEN_UDP };

struct flow {
	struct lb_flow_hash hash;
	uint32_t bucket; /* its first choice */
	uint32_t where;  /* the bucket that it is in */
	/* The entry, as it should be. A timed-out one stays until its place is needed. */
	enum model_state state;
	uint64_t seen_tick;
	uint32_t backend;
	uint32_t syn_seq;
	bool by_syn;
};

struct model {
	struct lb_flow_table *table;
	struct flow flows[N_FLOWS];
	uint64_t timeout_ticks[LB_FLOW_N_TIMEOUTS];
	uint64_t tick_ns;
	uint64_t now_ns;
	uint64_t seed;
	uint64_t inserted, moved_on;
};

static uint64_t
timeout_ticks_of(const struct model *m, const struct flow *flow)
{
	switch (flow->state) {
	case NEW_TCP:
		return m->timeout_ticks[LB_FLOW_TIMEOUT_TCP_SYN];
	case OPEN_TCP:
		return m->timeout_ticks[LB_FLOW_TIMEOUT_TCP];
	case CLOSING_TCP:
		return m->timeout_ticks[LB_FLOW_TIMEOUT_TCP_CLOSING];
	default:
		return m->timeout_ticks[LB_FLOW_TIMEOUT_UDP];
	}
}

static bool
is_alive(const struct model *m, const struct flow *flow)
{
	return flow->state != NO_ENTRY &&
	       m->now_ns / m->tick_ns - flow->seen_tick <= timeout_ticks_of(m, flow);
}

static struct lb_flow_table *
new_table(const struct lb_flow_table_conf *conf, uint64_t now_ns)
{
	const size_t bytes = lb_flow_table_bytes(conf->n_entries);
	struct lb_flow_table *table = NULL;
	uint8_t *mem = aligned_alloc(LB_CACHE_LINE, bytes);

	assert_non_null(mem);
	for (size_t i = 0; i < bytes; i++)
		mem[i] = 0;
	assert_int_equal(lb_flow_table_init(mem, conf, now_ns, &table), 0);
	return table;
}

/* Flows that crowd N_BUCKETS buckets; a reference tells which bucket a flow is in. */
static void
choose_flows(struct model *m, const struct lb_flow_table_conf *conf)
{
	struct lb_flow_table *scratch = new_table(conf, 0);
	uint32_t n_in[N_BUCKETS] = {0};
	uint32_t n_flows = 0;

	while (n_flows < N_FLOWS) {
		struct lb_flow_hash hash;
		uint32_t bucket;

		hash.print = xrand(&m->seed);
		hash.place = xrand(&m->seed);
		bucket = lb_flow_locate(scratch, &hash).bucket;
		if (bucket >= N_BUCKETS || n_in[bucket] == N_FLOWS / N_BUCKETS)
			continue;
		n_in[bucket]++;
		m->flows[n_flows++] =
			(struct flow){.hash = hash, .bucket = bucket, .where = bucket};
	}
	free(scratch);
}

static void
init_model(struct model *m, uint64_t seed)
{
	struct lb_flow_table_conf conf = {.n_entries = 1};
	uint64_t longest = 0;

	*m = (struct model){.seed = seed, .tick_ns = 1};
	for (size_t i = 0; i < LB_FLOW_N_TIMEOUTS; i++) {
		/* Of all magnitudes from a millisecond to a week. */
		conf.timeout_ns[i] =
			MS + (xrand(&m->seed) % (604800 * S - MS) >> xrand_below(&m->seed, 30));
		if (conf.timeout_ns[i] > longest)
			longest = conf.timeout_ns[i];
	}
	while (longest / (m->tick_ns * 2) >= 1u << 20)
		m->tick_ns *= 2;
	for (size_t i = 0; i < LB_FLOW_N_TIMEOUTS; i++)
		m->timeout_ticks[i] = (conf.timeout_ns[i] + m->tick_ns - 1) / m->tick_ns;
	m->now_ns = xrand(&m->seed) >> 8;
	choose_flows(m, &conf);
	m->table = new_table(&conf, m->now_ns);
}

static void
let_time_pass(struct model *m)
{
	const uint64_t unit =
		m->timeout_ticks[xrand_below(&m->seed, LB_FLOW_N_TIMEOUTS)] * m->tick_ns;

	switch (xrand_below(&m->seed, 40)) {
	case 0:
		m->now_ns += unit;
		break;
	case 1:
		m->now_ns += xrand(&m->seed) % (4 * unit);
		break;
	case 2:
		/* Now and then a jump over the wrap of ticks. */
		if (xrand_below(&m->seed, 20) == 0)
			m->now_ns += (m->tick_ns << 23) * xrand_below(&m->seed, 3) +
				     xrand(&m->seed) % unit;
		break;
	default:
		m->now_ns += xrand(&m->seed) % (unit / 8 + 1);
	}
	lb_flow_table_expire(m->table, m->now_ns);
}

static void
check_flow(const struct model *m, const struct flow *flow)
{
	const uint32_t ref = lb_flow_find(m->table, &flow->hash, m->now_ns);

	EXPECT((ref != LB_FLOW_NONE) == is_alive(m, flow), "flow %zu: found %d",
		(size_t)(flow - m->flows), ref != LB_FLOW_NONE);
	if (ref == LB_FLOW_NONE)
		return;
	EXPECT(ref / N_WAYS == flow->where, "another bucket");
	EXPECT(lb_flow_backend(m->table, ref) == flow->backend, "another backend");
	EXPECT(lb_flow_is_repeated_syn(m->table, ref, flow->syn_seq) == flow->by_syn, "SYN");
	EXPECT(!lb_flow_is_repeated_syn(m->table, ref, flow->syn_seq + 1), "another SYN");
}

static void
insert_flow(struct model *m, struct flow *flow, bool is_tcp)
{
	static const enum lb_flow_event tcp_events[] = {LB_FLOW_SEGMENT, LB_FLOW_SYN,
		LB_FLOW_CLOSE};
	const enum lb_flow_event event =
		is_tcp ? tcp_events[xrand_below(&m->seed, 3)] : LB_FLOW_DATAGRAM;
	const uint32_t seq = (uint32_t)xrand(&m->seed);
	const uint32_t backend = xrand_below(&m->seed, 1u << LB_FLOW_BACKEND_BITS);
	uint32_t n_alive = 0;
	uint32_t ref;

	for (size_t i = 0; i < N_FLOWS; i++)
		if (m->flows[i].where == flow->bucket && is_alive(m, &m->flows[i]))
			n_alive++;
	ref = lb_flow_insert(m->table, &flow->hash, backend, event, seq, m->now_ns);
	/* Second buckets are anywhere in the table, and not crowded: none has to give way. */
	EXPECT(ref != LB_FLOW_NONE, "no room in two buckets");
	EXPECT((ref / N_WAYS == flow->bucket) == (n_alive < N_WAYS),
		"bucket %u, though in %u are %u live flows", ref / N_WAYS, flow->bucket,
		n_alive);
	m->moved_on += n_alive == N_WAYS;

	flow->where = ref / N_WAYS;
	flow->state = is_tcp ? NEW_TCP : NEW_UDP;
	flow->seen_tick = m->now_ns / m->tick_ns;
	flow->backend = backend;
	flow->syn_seq = seq;
	flow->by_syn = event == LB_FLOW_SYN;
	m->inserted++;
}

static void
touch_tcp(struct model *m, struct flow *flow, uint32_t ref)
{
	const uint32_t backend = xrand_below(&m->seed, 1u << LB_FLOW_BACKEND_BITS);
	const uint32_t seq = (uint32_t)xrand(&m->seed);

	switch (xrand_below(&m->seed, 8)) {
	case 0:
		lb_flow_touch(m->table, ref, LB_FLOW_CLOSE, m->now_ns);
		flow->state = CLOSING_TCP;
		break;
	case 1:
		lb_flow_restart(m->table, ref, backend, seq, m->now_ns);
		flow->state = NEW_TCP;
		flow->backend = backend;
		flow->syn_seq = seq;
		flow->by_syn = true;
		break;
	case 2:
	case 3:
	case 4:
		lb_flow_touch(m->table, ref, LB_FLOW_SYN, m->now_ns);
		break;
	default:
		lb_flow_touch(m->table, ref, LB_FLOW_SEGMENT, m->now_ns);
		if (flow->state == NEW_TCP)
			flow->state = OPEN_TCP;
	}
	flow->seen_tick = m->now_ns / m->tick_ns;
}

static void
touch_flow(struct model *m, struct flow *flow, bool is_tcp, uint32_t ref)
{
	if (xrand_below(&m->seed, 4) == 0) {
		flow->backend = xrand_below(&m->seed, 1u << LB_FLOW_BACKEND_BITS);
		lb_flow_set_backend(m->table, ref, flow->backend);
	} else if (is_tcp) {
		touch_tcp(m, flow, ref);
	} else {
		lb_flow_touch(m->table, ref, LB_FLOW_DATAGRAM, m->now_ns);
		flow->state = OPEN_UDP;
		flow->seen_tick = m->now_ns / m->tick_ns;
	}
}

static void
check_stats(const struct model *m)
{
	struct lb_flow_table_stats stats;
	uint32_t n_alive = 0;

	for (size_t i = 0; i < N_FLOWS; i++)
		n_alive += is_alive(m, &m->flows[i]) ? 1 : 0;
	lb_flow_table_stats(m->table, &stats);
	EXPECT(stats.inserted == m->inserted, "inserted");
	EXPECT(stats.evicted == 0, "evicted");
	EXPECT(stats.refused == 0, "refused");
	EXPECT(stats.live == stats.inserted - stats.expired, "live");
	/* Who timed out may be there still: in the crowded buckets, and in all second ones. */
	EXPECT(stats.live >= n_alive && stats.live <= (N_BUCKETS + N_FLOWS) * N_WAYS,
		"live bounds");
}

static void
test_table_agrees_with_a_plain_model(void **state)
{
	struct model *m = malloc(sizeof(*m));
	uint64_t moved_on = 0;

	(void)state;
	assert_non_null(m);
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		init_model(m, round);
		for (uint32_t step = 0; step < N_STEPS; step++) {
			const uint32_t i = xrand_below(&m->seed, N_FLOWS);
			/* A flow keeps its protocol. */
			const bool is_tcp = i % 3 != 0;
			uint32_t ref;

			if (xrand_below(&m->seed, 4) == 0)
				let_time_pass(m);
			ref = lb_flow_find(m->table, &m->flows[i].hash, m->now_ns);
			check_flow(m, &m->flows[i]);
			if (ref == LB_FLOW_NONE)
				insert_flow(m, &m->flows[i], is_tcp);
			else
				touch_flow(m, &m->flows[i], is_tcp, ref);
			for (size_t k = 0; k < N_FLOWS; k++)
				check_flow(m, &m->flows[k]);
			check_stats(m);
		}
		moved_on += m->moved_on;
		free(m->table);
	}
	EXPECT(moved_on > 1000, "too tame: %u sent on", (unsigned int)moved_on);
	free(m);
}

/* The entries of the one bucket and of the other that flows of a full table are in. */
struct neighbours {
	uint32_t flows[2 * N_WAYS];
	uint32_t n;
};

struct full {
	struct lb_flow_table *table;
	struct lb_flow_hash *hashes;
	uint32_t *flow_of; /* by reference; NO_FLOW where it is not one of those */
	uint64_t seed;
	uint32_t n_evicted, n_refused, n_moved;
};

#define N_ENTRIES   (1u << 19)
#define N_NEWCOMERS 20000u
#define NO_FLOW     UINT32_MAX

/* Confirmed flows till hardly one more finds room. */
static void
fill(struct full *full)
{
	const struct lb_flow_table_conf conf = {.n_entries = N_ENTRIES,
		.timeout_ns = {10 * S, 900 * S, 30 * S, 60 * S}};

	full->table = new_table(&conf, 0);
	full->hashes = calloc(2 * (size_t)N_ENTRIES, sizeof(*full->hashes));
	full->flow_of = calloc(N_ENTRIES, sizeof(*full->flow_of));
	assert_true(full->hashes != NULL && full->flow_of != NULL);
	for (uint32_t i = 0; i < 2 * N_ENTRIES; i++) {
		uint32_t ref;

		full->hashes[i] = (struct lb_flow_hash){xrand(&full->seed), xrand(&full->seed)};
		ref = lb_flow_insert(full->table, &full->hashes[i], 0, LB_FLOW_SYN, i, 0);
		if (ref != LB_FLOW_NONE)
			lb_flow_touch(full->table, ref, LB_FLOW_SEGMENT, 0);
	}
	for (uint32_t ref = 0; ref < N_ENTRIES; ref++)
		full->flow_of[ref] = NO_FLOW;
	for (uint32_t i = 0; i < 2 * N_ENTRIES; i++) {
		const uint32_t ref = lb_flow_find(full->table, &full->hashes[i], 0);

		if (ref != LB_FLOW_NONE)
			full->flow_of[ref] = i;
	}
}

/* Some flows of the two buckets begin again, unconfirmed, at times of their own. */
static void
restart_some(struct full *full, const struct neighbours *around, uint64_t now_ns,
	uint64_t seen_ns[static 2 * N_WAYS])
{
	for (uint32_t k = 0; k < around->n; k++) {
		const uint32_t flow = around->flows[k];
		const uint32_t ref = lb_flow_find(full->table, &full->hashes[flow], now_ns);

		seen_ns[k] = UINT64_MAX;
		if (xrand_below(&full->seed, 3) != 0)
			continue;
		seen_ns[k] = now_ns - xrand_below(&full->seed, 1000) * MS;
		lb_flow_restart(full->table, ref, 0, flow, seen_ns[k]);
	}
}

/* The oldest unconfirmed of both buckets is gone, or where there is none, nobody of them. */
static void
check_who_went(struct full *full, const struct neighbours *around, uint64_t now_ns,
	const uint64_t seen_ns[static 2 * N_WAYS], bool has_room)
{
	uint64_t oldest = UINT64_MAX;
	uint32_t n_gone = 0;

	for (uint32_t k = 0; k < around->n; k++)
		oldest = seen_ns[k] < oldest ? seen_ns[k] : oldest;
	for (uint32_t k = 0; k < around->n; k++) {
		const struct lb_flow_hash *hash = &full->hashes[around->flows[k]];

		if (lb_flow_find(full->table, hash, now_ns) != LB_FLOW_NONE)
			continue;
		EXPECT(seen_ns[k] == oldest, "a younger or a confirmed flow gave way");
		n_gone++;
	}
	EXPECT(n_gone == (oldest != UINT64_MAX), "%u gave way", n_gone);
	EXPECT(has_room || oldest == UINT64_MAX, "refused, though one was unconfirmed");
	full->n_evicted += n_gone;
	full->n_moved += has_room && n_gone == 0;
	full->n_refused += !has_room;
}

static void
list_neighbours(const struct full *full, const struct lb_flow_place *place,
	struct neighbours *out)
{
	const uint32_t buckets[] = {place->bucket, place->second};

	out->n = 0;
	for (uint32_t k = 0; k < 2 * N_WAYS; k++) {
		const uint32_t ref = buckets[k / N_WAYS] * N_WAYS + k % N_WAYS;
		const uint32_t flow = full->flow_of[ref];

		/* Newcomers before this one may have moved it, or taken its place. */
		if (flow != NO_FLOW &&
			lb_flow_find(full->table, &full->hashes[flow], 2 * S) == ref)
			out->flows[out->n++] = flow;
	}
}

/* Each bucket serves once: of those in it some have begun again. */
static bool
take_buckets(bool *is_used, const struct lb_flow_place *place)
{
	if (is_used[place->bucket] || is_used[place->second])
		return false;
	is_used[place->bucket] = is_used[place->second] = true;
	return true;
}

static void
test_the_oldest_unconfirmed_of_both_buckets_gives_way(void **state)
{
	struct full full = {.seed = 77};
	bool *is_used = calloc(N_ENTRIES / N_WAYS, sizeof(*is_used));
	uint32_t n_tried = 0;

	(void)state;
	assert_non_null(is_used);
	fill(&full);
	for (uint32_t i = 0; i < N_NEWCOMERS; i++) {
		const uint64_t now_ns = 2 * S;
		const struct lb_flow_hash hash = {xrand(&full.seed), xrand(&full.seed)};
		const struct lb_flow_place place = lb_flow_locate(full.table, &hash);
		uint64_t seen_ns[2 * N_WAYS];
		struct neighbours around;
		uint32_t ref;

		list_neighbours(&full, &place, &around);
		if (around.n < 2 * N_WAYS || !take_buckets(is_used, &place))
			continue;
		restart_some(&full, &around, now_ns, seen_ns);
		ref = lb_flow_insert(full.table, &hash, 1, LB_FLOW_SYN, 0, now_ns);
		check_who_went(&full, &around, now_ns, seen_ns, ref != LB_FLOW_NONE);
		n_tried++;
	}
	EXPECT(full.n_evicted > 1000 && full.n_moved + full.n_refused > 50,
		"too tame: of %u newcomers %u pushed one out, %u moved one, %u found no room",
		n_tried, full.n_evicted, full.n_moved, full.n_refused);
	free(is_used);
	free(full.flow_of);
	free(full.hashes);
	free(full.table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_agrees_with_a_plain_model),
		cmocka_unit_test(test_the_oldest_unconfirmed_of_both_buckets_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
