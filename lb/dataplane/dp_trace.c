/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_trace.h"

#include <errno.h>
#include <netinet/in.h>

#include "dp_memory.h"
#include "dp_plane.h"

/* Of one worker, until control empties it. */
#define LANE_RECORDS 1024u

struct lane {
	alignas(LB_CACHE_LINE) _Atomic uint32_t head; /* records put in so far; it wraps */
	uint32_t gap;    /* packets to be passed over before the next that is looked at */
	uint64_t random; /* never 0 */
	uint64_t missed; /* read relaxed by control */
	alignas(LB_CACHE_LINE) _Atomic uint32_t tail; /* records taken out so far */
	alignas(LB_CACHE_LINE) struct dp_trace_record records[LANE_RECORDS];
};

static_assert((LANE_RECORDS & (LANE_RECORDS - 1)) == 0, "places of records wrap as counts do");

struct dp_trace {
	struct dp_trace_conf conf;
	bool takes_unparsed;    /* nothing is asked for that only a parsed packet has */
	unsigned int next_lane; /* control's: where the next reading begins */
	unsigned int n_lanes;
	struct lane lanes[];
};

static size_t
bytes_for(unsigned int n_lanes)
{
	return sizeof(struct dp_trace) + n_lanes * sizeof(struct lane);
}

/*
 * Packets to pass over, sample - 1 on average and any number up to twice that: at equal
 * distances one in two of a question and an answer in turns would be questions alone.
 * Marsaglia's xorshift.
 */
static uint32_t
draw_gap(uint64_t *random, uint32_t sample)
{
	uint64_t x = *random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*random = x;
	return (uint32_t)((x >> 32) * (2 * (uint64_t)sample - 1) >> 32);
}

/* The part of a packet's that a filter knows; NULL: it has none. */
static const struct lb_packet *
readable(const struct dp_traced *traced)
{
	const struct lb_packet *packet = traced->packet;

	return packet != NULL && packet->kind != LB_PACKET_CUT_SHORT ? packet : NULL;
}

/* The packet's own, where its key is that of the flow it is about. */
static uint8_t
protocol_of(const struct lb_packet *packet)
{
	if (packet->kind != LB_PACKET_ICMP_ERROR)
		return packet->key.proto;
	return packet->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
}

/* Its number. What was decided under a snapshot before may have the place of none in this one.
 */
static uint32_t
service_of(const struct dp_snapshot *snapshot, const struct dp_decision *d)
{
	if (d->service == DP_NONE || d->service >= snapshot->n_services)
		return DP_NONE;
	return snapshot->services[d->service].number;
}

static bool
is_wanted(const struct dp_trace *trace, const struct dp_snapshot *snapshot,
	const struct dp_traced *traced)
{
	const struct dp_decision *d = traced->decision;
	const struct lb_packet *packet = readable(traced);

	if (trace->conf.dropped_only && d->verdict < LB_FIRST_DROP)
		return false;
	if (trace->conf.has_service && service_of(snapshot, d) != trace->conf.service)
		return false;
	if (packet == NULL)
		return trace->takes_unparsed;
	return lb_filter_passes(&trace->conf.filter, &packet->key, protocol_of(packet));
}

static void
write_record(const struct dp_snapshot *snapshot, const struct dp_traced *traced,
	unsigned int worker, struct dp_trace_record *to)
{
	const struct dp_decision *d = traced->decision;
	const struct lb_packet *packet = readable(traced);

	*to = (struct dp_trace_record){
		.now_ns = traced->now_ns,
		.service = service_of(snapshot, d),
		.backend = d->backend,
		.slot = d->slot,
		.n_bytes = traced->n_bytes,
		.port = traced->port,
		.kind = DP_TRACE_UNPARSED,
		.verdict = d->verdict,
		.flow = d->flow,
		.worker = (uint8_t)worker,
	};
	if (packet == NULL)
		return;
	to->key = packet->key;
	to->kind = packet->kind;
	to->protocol = protocol_of(packet);
}

static void
look(struct dp_trace *trace, unsigned int worker, const struct dp_snapshot *snapshot,
	const struct dp_traced *traced)
{
	struct lane *lane = &trace->lanes[worker];
	const uint32_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);

	/* Acquire: pairs with the release in take_from(), so that what was there has been read.
	 */
	if (head - atomic_load_explicit(&lane->tail, memory_order_acquire) == LANE_RECORDS) {
		dp_count(&lane->missed, 1);
		return;
	}
	if (!is_wanted(trace, snapshot, traced))
		return;
	write_record(snapshot, traced, worker, &lane->records[head % LANE_RECORDS]);
	/* Release: pairs with the acquire in take_from(), so that the record is seen whole. */
	atomic_store_explicit(&lane->head, head + 1, memory_order_release);
}

void
dp_trace_one(struct dp_trace *trace, unsigned int worker, const struct dp_snapshot *snapshot,
	const struct dp_traced *traced)
{
	struct lane *lane = &trace->lanes[worker];

	if (lane->gap > 0) {
		lane->gap--;
		return;
	}
	lane->gap = draw_gap(&lane->random, trace->conf.sample);
	look(trace, worker, snapshot, traced);
}

uint64_t
dp_trace_draw(struct dp_trace *trace, unsigned int worker, unsigned int n)
{
	struct lane *lane = &trace->lanes[worker];
	uint64_t i = lane->gap;
	uint64_t drawn = 0;

	for (; i < n; i += 1 + (uint64_t)draw_gap(&lane->random, trace->conf.sample))
		drawn |= UINT64_C(1) << i;
	lane->gap = (uint32_t)(i - n);
	return drawn;
}

void
dp_trace_burst(struct dp_trace *trace, unsigned int worker, const struct dp_snapshot *snapshot,
	const struct dp_burst *burst, const struct lb_packet packets[], uint64_t traced)
{
	for (; traced != 0; traced &= traced - 1) {
		const unsigned int i = (unsigned int)__builtin_ctzll(traced);
		const struct dp_decision *d = &burst->decisions[i];
		const struct dp_traced one = {
			.packet = d->ip_bytes != 0 ? &packets[i] : NULL,
			.decision = d,
			.now_ns = burst->now_ns[i],
			.n_bytes = burst->wire_bytes[i],
			.port = d->verdict != DP_AWAY ? burst->pkts[i]->port : 0,
		};

		if (d->verdict != DP_AWAY)
			look(trace, worker, snapshot, &one);
	}
}

/* Control's. */

int
dp_trace_begin(struct dp *dp, const struct dp_trace_conf *conf)
{
	struct dp_trace *trace;

	if (atomic_load_explicit(&dp->trace, memory_order_relaxed) != NULL)
		return -EBUSY;
	trace = dp_memory_zalloc(bytes_for(dp->n_workers));
	if (trace == NULL)
		return -ENOMEM;
	trace->conf = *conf;
	trace->takes_unparsed = lb_filter_is_open(&conf->filter) && !conf->has_service;
	trace->n_lanes = dp->n_workers;
	for (unsigned int i = 0; i < trace->n_lanes; i++) {
		struct lane *lane = &trace->lanes[i];

		lane->random = dp_now_ns() * LB_WORKERS_MAX + i + 1;
		lane->gap = draw_gap(&lane->random, conf->sample);
	}
	/* Release: pairs with the acquire in dp_trace_of(). */
	atomic_store_explicit(&dp->trace, trace, memory_order_release);
	return 0;
}

void
dp_trace_end(struct dp *dp)
{
	struct dp_trace *trace =
		atomic_exchange_explicit(&dp->trace, NULL, memory_order_acq_rel);

	if (trace == NULL)
		return;
	dp_wait_for_workers(dp);
	dp_memory_free(trace, bytes_for(trace->n_lanes));
}

static size_t
take_from(struct lane *lane, struct dp_trace_record *records, size_t n)
{
	/* Acquire: pairs with the release in look(). */
	const uint32_t head = atomic_load_explicit(&lane->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
	size_t n_taken = 0;

	for (; tail != head && n_taken < n; tail++)
		records[n_taken++] = lane->records[tail % LANE_RECORDS];
	/* Release: pairs with the acquire in look(). */
	atomic_store_explicit(&lane->tail, tail, memory_order_release);
	return n_taken;
}

size_t
dp_trace_read(struct dp *dp, struct dp_trace_record *records, size_t n)
{
	/* Relaxed: this thread alone writes it. */
	struct dp_trace *trace = atomic_load_explicit(&dp->trace, memory_order_relaxed);
	size_t n_read = 0;

	if (trace == NULL)
		return 0;
	for (unsigned int i = 0; i < trace->n_lanes && n_read < n; i++) {
		struct lane *lane = &trace->lanes[trace->next_lane];

		n_read += take_from(lane, records + n_read, n - n_read);
		trace->next_lane = (trace->next_lane + 1) % trace->n_lanes;
	}
	return n_read;
}

uint64_t
dp_trace_missed(const struct dp *dp)
{
	struct dp_trace *trace = atomic_load_explicit(&dp->trace, memory_order_relaxed);
	uint64_t missed = 0;

	for (unsigned int i = 0; trace != NULL && i < trace->n_lanes; i++)
		missed += __atomic_load_n(&trace->lanes[i].missed, __ATOMIC_RELAXED);
	return missed;
}
