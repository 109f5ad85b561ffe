/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any series of fragments through a small table: what waits comes back, once, the bounds hold,
 * and no datagram has another's owner.
 *
 * Input: steps of 6 bytes: what (2 bits), datagram (3 bits) and whether more is to come (1
 * bit); milliseconds since the last step; offset and length, big endian.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz_require.h"
#include "lb_fragment.h"

#define STEP_BYTES    6u
#define N_DATAGRAMS   8u
#define N_WAITING     20u
#define WAITING_BYTES 4000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct step {
	unsigned int what;
	unsigned int id;
	struct lb_fragment_range range;
};

struct run {
	struct lb_fragment_table *table;
	uint64_t now_ns;
	uint32_t n_waiting;
};

static struct lb_fragment_key
key_of(unsigned int id)
{
	struct lb_fragment_key key = {.id = id, .proto = 17};

	key.src.bytes[0] = 0x20;
	key.dst.bytes[0] = 0x20;
	return key;
}

/* A packet that came back is freed: a second time would be seen, and none a leak. */
static void
give_back(struct run *run, void *packet)
{
	require(run->n_waiting != 0, "a packet came back, and none waited");
	run->n_waiting--;
	free(packet);
}

static void
expire(struct run *run)
{
	enum lb_verdict why;
	void *packet;

	while (lb_fragment_expire(run->table, run->now_ns, &packet, &why)) {
		require(why == LB_DROP_FRAGMENT_UNMATCHED || why == LB_DROP_FRAGMENT_OVERLAP ||
				why == LB_DROP_FRAGMENT_EXCESS,
			"why it came back");
		give_back(run, packet);
	}
}

static void
take(struct run *run, const struct lb_fragment_key *key)
{
	struct lb_fragment_waited waited;

	while (lb_fragment_take(run->table, key, &waited))
		give_back(run, waited.packet);
}

static bool
is_range_right(const struct lb_fragment_range *r)
{
	return r->bytes != 0 && r->offset % 8 == 0 && (!r->has_more || r->bytes % 8 == 0) &&
	       r->offset + r->bytes <= UINT16_MAX;
}

static void
first(struct run *run, const struct step *step)
{
	const struct lb_fragment_key key = key_of(step->id);
	const struct lb_fragment_decision decision = {step->what == 3 ? LB_DROP_NO_BACKEND
								      : LB_FORWARD,
		{step->id, 0}};
	const bool is_right =
		is_range_right(&step->range) && step->range.offset == 0 && step->range.has_more;
	const enum lb_verdict verdict =
		lb_fragment_first(run->table, &key, &step->range, run->now_ns);

	require((verdict == LB_DROP_FRAGMENT_BAD) == !is_right, "first: good or bad");
	require(verdict == LB_FORWARD || verdict == LB_DROP_FRAGMENT_BAD ||
			verdict == LB_DROP_FRAGMENT_OVERLAP ||
			verdict == LB_DROP_FRAGMENT_EXCESS || verdict == LB_DROP_NO_BACKEND,
		"first: verdict");
	if (verdict != LB_FORWARD)
		return;
	lb_fragment_decide(run->table, &key, &decision);
	take(run, &key);
}

static void
later(struct run *run, const struct step *step)
{
	const struct lb_fragment_key key = key_of(step->id);
	const struct lb_fragment_packet packet = {malloc(1), step->range.bytes};
	const bool is_right = is_range_right(&step->range) && step->range.offset != 0;
	struct lb_fragment_decision out;

	require(packet.packet != NULL, "no memory");
	if (lb_fragment_later(run->table, &key, &step->range, &packet, run->now_ns, &out)) {
		require(is_right, "a bad fragment waits");
		run->n_waiting++;
		return;
	}
	free(packet.packet);
	require((out.verdict == LB_DROP_FRAGMENT_BAD) == !is_right, "later: good or bad");
	if (out.verdict == LB_FORWARD)
		require(out.owner.backend == step->id, "later: another datagram's owner");
}

static void
check_bounds(const struct run *run)
{
	struct lb_fragment_stats stats;

	lb_fragment_table_stats(run->table, &stats);
	require(stats.waiting == run->n_waiting, "stats: waiting");
	require(stats.waiting <= N_WAITING && stats.waiting_bytes <= WAITING_BYTES,
		"more waits than may");
	require(stats.live + stats.whole <= N_DATAGRAMS, "more datagrams than there may be");
}

static void
do_step(struct run *run, const uint8_t *p)
{
	const struct step step = {
		.what = p[0] & 3u,
		.id = p[0] >> 2 & 7u,
		.range =
			{
				.offset = (uint16_t)(p[2] << 8 | p[3]),
				.bytes = (uint16_t)(p[4] << 8 | p[5]),
				.has_more = (p[0] & 0x20) != 0,
			},
	};

	run->now_ns += p[1] * UINT64_C(1000000);
	expire(run);
	if (step.what >= 2)
		first(run, &step);
	else
		later(run, &step);
	check_bounds(run);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct lb_fragment_conf conf = {N_DATAGRAMS, N_WAITING, WAITING_BYTES,
		LB_FRAGMENT_TIMEOUT_NS, 1};
	const size_t bytes = lb_fragment_table_bytes(&conf);
	void *mem = aligned_alloc(LB_CACHE_LINE, bytes);
	struct run run = {.now_ns = UINT64_MAX - 1};
	enum lb_verdict why;
	void *packet;

	require(mem != NULL, "no memory");
	memset(mem, 0, bytes);
	require(lb_fragment_table_init(mem, &conf, &run.table) == 0, "the table was refused");
	for (size_t i = 0; i + STEP_BYTES <= n; i += STEP_BYTES)
		do_step(&run, data + i);
	while (lb_fragment_abandon(run.table, &packet, &why))
		give_back(&run, packet);
	require(run.n_waiting == 0, "a packet was lost");
	free(mem);
	return 0;
}
