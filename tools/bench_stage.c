/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_stage.h"

#include <netinet/in.h>

#include "dp_mbuf.h"
#include "lb_hash_flow.h"
#include "lb_service_lookup.h"

static void
parse(struct bench_stages *s, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		s->verdicts[i] =
			(uint8_t)dp_mbuf_parse(s->pkts[i], s->pkts[i]->pkt_len, &s->packets[i]);
}

static void
find_services(struct bench_stages *s, unsigned int from, unsigned int to)
{
	const struct lb_service_table *match = s->snapshot->match;
	struct lb_service_search searches[DP_BURST_MAX];

	for (unsigned int i = from; i < to; i++) {
		const struct lb_flow_key *key = &s->packets[i].key;

		lb_service_begin(match, &key->dst, key->proto, ntohs(key->dport_be),
			&searches[i - from]);
	}
	for (unsigned int i = from; i < to; i++) {
		const struct lb_flow_key *key = &s->packets[i].key;

		s->services[i] = lb_service_end(match, &searches[i - from], &key->dst,
			key->proto, ntohs(key->dport_be));
	}
}

static void
hash(struct bench_stages *s, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		s->hashes[i] = lb_hash_flow_keyed(&s->worker->keyed, &s->packets[i].key);
}

static void
find_flows(struct bench_stages *s, unsigned int from, unsigned int to)
{
	struct lb_flow_table *flows = s->worker->flows;

	for (unsigned int i = from; i < to; i++) {
		s->places[i] = lb_flow_locate(flows, &s->hashes[i]);
		lb_flow_prefetch(flows, &s->places[i]);
	}
	for (unsigned int i = from; i < to; i++) {
		s->refs[i] = lb_flow_find_at(flows, &s->places[i], s->now_ns);
		if (likely(s->refs[i] != LB_FLOW_NONE)) {
			s->backends[i] = lb_flow_backend(flows, s->refs[i]);
			lb_flow_touch(flows, s->refs[i], LB_FLOW_SEGMENT, s->now_ns);
		}
	}
}

static inline uint32_t
slot_of(const struct bench_stages *s, const struct lb_picker *picker, unsigned int i)
{
	return lb_picker_slot(picker,
		lb_hash_pick_seeded(&s->snapshot->seeded, &s->packets[i].key));
}

static void
pick(struct bench_stages *s, unsigned int from, unsigned int to)
{
	const struct dp_service *services = s->snapshot->services;
	uint32_t slots[DP_BURST_MAX];

	for (unsigned int i = from; i < to; i++) {
		const struct lb_picker *picker =
			services[s->services[i] & DP_MATCH_PLACE].picker;

		slots[i - from] = slot_of(s, picker, i);
		lb_picker_prefetch(picker, slots[i - from]);
	}
	for (unsigned int i = from; i < to; i++) {
		const struct dp_service *service = &services[s->services[i] & DP_MATCH_PLACE];

		s->backends[i] =
			service->ids[lb_picker_backend(service->picker, slots[i - from])];
	}
}

static void
encapsulate(struct bench_stages *s, unsigned int from, unsigned int to)
{
	const struct dp_backend *backends = s->snapshot->backends;

	for (unsigned int i = from; i < to; i++)
		__builtin_prefetch(&backends[s->backends[i]]);
	for (unsigned int i = from; i < to; i++)
		s->verdicts[i] = (uint8_t)dp_mbuf_encap(s->pkts[i], &s->packets[i],
			&backends[s->backends[i]], lb_hash_entropy(&s->packets[i].key));
}

void
bench_stage_run(struct bench_stages *s, enum bench_stage stage)
{
	for (unsigned int from = 0; from < BENCH_WINDOW_PACKETS; from += DP_BURST_MAX) {
		const unsigned int to = from + DP_BURST_MAX;

		switch (stage) {
		case BENCH_STAGE_PARSE:
			parse(s, from, to);
			break;
		case BENCH_STAGE_SERVICE:
			find_services(s, from, to);
			break;
		case BENCH_STAGE_HASH:
			hash(s, from, to);
			break;
		case BENCH_STAGE_FLOW:
			find_flows(s, from, to);
			break;
		case BENCH_STAGE_TABLE:
			pick(s, from, to);
			break;
		case BENCH_STAGE_ENCAP:
			encapsulate(s, from, to);
			break;
		case BENCH_STAGE_NONE:
		case BENCH_NO_STAGE:
			break;
		}
	}
}

void
bench_stage_prepare(struct bench_stages *s, enum bench_stage stage)
{
	static const enum bench_stage before[] = {BENCH_STAGE_PARSE, BENCH_STAGE_SERVICE,
		BENCH_STAGE_HASH, BENCH_STAGE_TABLE};

	/* The order is the pipeline's, but that encap takes the table's word for its backend.
	 */
	for (size_t i = 0; i < LB_N_ELEMENTS(before) && before[i] < stage; i++)
		bench_stage_run(s, before[i]);
}

static bool
is_right(const struct bench_stages *s, enum bench_stage stage, unsigned int i)
{
	switch (stage) {
	case BENCH_STAGE_PARSE:
	case BENCH_STAGE_ENCAP:
		return s->verdicts[i] == LB_FORWARD;
	case BENCH_STAGE_SERVICE:
		return s->services[i] != LB_SERVICE_NONE;
	case BENCH_STAGE_FLOW:
		return s->refs[i] != LB_FLOW_NONE;
	case BENCH_STAGE_TABLE:
		return dp_snapshot_live_backend(s->snapshot, s->backends[i]) != NULL;
	default:
		return true;
	}
}

bool
bench_stage_is_right(const struct bench_stages *s, enum bench_stage stage)
{
	for (unsigned int i = 0; i < BENCH_WINDOW_PACKETS; i++)
		if (!is_right(s, stage, i))
			return false;
	return true;
}
