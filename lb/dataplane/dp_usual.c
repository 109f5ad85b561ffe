/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_usual.h"

#include "dp_mbuf.h"
#include "dp_usual_parts.h"
#include "lb_martian.h"

/* Packets that ask for their services, in the order of the burst. */
struct asking {
	struct dp_wanted last; /* neighbours often ask the same */
	size_t n;
	uint8_t of[DP_BURST_MAX];
};

static_assert(DP_BURST_MAX <= UINT8_MAX, "a place in a burst is a byte");

static inline void
ask(struct dp_stages *s, struct asking *asking, size_t i)
{
	const struct lb_service_table *match = s->snapshot->match;
	const bool is_v6 = s->is_v6[i];
	struct lb_flow_words *words = &s->keys[i];

	lb_usual_read_key(dp_usual_ip(s, i), is_v6, words);

	asking->of[asking->n++] = (uint8_t)i;
	s->asks[i] = !dp_wanted_is_same(&asking->last, words, is_v6);
	if (likely(!s->asks[i]))
		return;
	asking->last = dp_wanted_of(words, is_v6);
	lb_service_begin_words(match, is_v6 ? &match->v6 : &match->v4, &words->word[2],
		dp_wanted_proto(words), dp_wanted_port(words), &s->searches[i]);
}

static uint32_t
find_plainly(const struct dp_stages *s, size_t i)
{
	struct lb_flow_key key;

	lb_usual_store_key(&s->keys[i], &key);
	return lb_service_find(s->snapshot->match, &key.dst, key.proto, ntohs(key.dport_be));
}

/* Whether a packet may come to its service at all. */
static inline bool
is_martian(const struct dp_snapshot *snapshot, const struct lb_flow_words *words)
{
	if (likely(!lb_martian_may_be(&snapshot->hosts, words->word, words->word + 2)))
		return false;
	return lb_martian_words(snapshot->match, snapshot->own, snapshot->n_own, words->word,
		words->word + 2);
}

/* The slot of a packet that begins a flow, if begin_flow() can; otherwise DP_NONE. */
static inline uint32_t
slot_of(const struct dp_stages *s, size_t i, const struct dp_heard *answer)
{
	const struct dp_decision *d = &s->burst->decisions[i];
	uint32_t slot;

	if (unlikely(answer->picker == NULL ||
		     (d->event == LB_FLOW_SYN && !answer->begins_by_syn) ||
		     is_martian(s->snapshot, &s->keys[i])))
		return DP_NONE;
	slot = lb_picker_slot(answer->picker, dp_usual_pick(s, i, s->is_v6[i]));
	lb_picker_prefetch(answer->picker, slot);
	return slot;
}

/* Hear of the services that are asked for. @return how many packets are left to the stages. */
static size_t
hear(struct dp_stages *s, const struct asking *asking)
{
	struct dp_heard answer = {.service = DP_NONE};
	size_t n_left = 0;

	for (size_t k = 0; k < asking->n; k++) {
		const size_t i = asking->of[k];
		struct dp_decision *d = &s->burst->decisions[i];

		if (s->asks[i]) {
			const struct lb_service_entry *entry =
				lb_service_end_first(s->snapshot->match, &s->searches[i]);

			answer = dp_heard_of(s,
				likely(entry != NULL) ? entry->service : find_plainly(s, i),
				dp_wanted_proto(&s->keys[i]));
		}
		d->service = answer.service;
		s->is_usual[i] = answer.service != DP_NONE;
		n_left += answer.service == DP_NONE;
		if (s->rests[i] == NULL)
			d->slot = slot_of(s, i, &answer);
	}
	return n_left;
}

/* What all have in common, unless they turn out not to be usual. */
static inline void
begin_decision(struct dp_decision *d)
{
	d->service = DP_NONE;
	/* Of a known flow, if it stays usual. */
	d->slot = DP_NONE;
	d->verdict = LB_FORWARD;
	d->flow = DP_FLOW_HIT;
	d->is_new_flow = false;
	d->has_more = false;
}

void
dp_usual_say_begun(struct dp_stages *s, size_t i)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	struct dp_decision *d = &s->burst->decisions[i];

	d->service = snapshot->backends[d->backend].service;
	d->slot = lb_picker_slot(snapshot->services[d->service].picker,
		dp_usual_pick(s, i, s->is_v6[i]));
	d->flow = DP_FLOW_MISS;
	d->is_new_flow = true;
}

/* Whether nothing is left to decide of a packet. */
static inline bool
is_begun(const struct dp_stages *s, size_t i)
{
	return unlikely(s->has_begun) && s->is_begun[i];
}

size_t
dp_usual_find(struct dp_stages *s, size_t from)
{
	const struct lb_flow_table *flows = s->worker->flows;
	struct dp_decision *decisions = s->burst->decisions;
	const uint32_t tick = lb_flow_tick(flows, s->burst->now_ns[0]);
	const size_t n = s->burst->n;
	const struct dp_backend_lines lines = dp_backend_lines(s);
	struct asking asking;
	uint32_t asked_ticks[LB_FLOW_N_EVENTS];
	size_t n_usual = from;

	asking.last = (struct dp_wanted){{0, 0}, 0, 0};
	asking.n = 0;
	dp_usual_asked_ticks(s, asked_ticks);
	for (size_t i = from; i < n; i++) {
		struct dp_decision *d = &decisions[i];
		uint64_t *rest;

		if (unlikely(!s->is_usual[i]))
			continue;
		n_usual++;
		begin_decision(d);
		if (is_begun(s, i)) {
			dp_usual_say_begun(s, i);
			s->rests[i] = NULL;
			continue;
		}
		rest = lb_flow_find_rest(flows, s->buckets[i], s->tags[i], d->hash.print, tick);
		s->rests[i] = rest;
		if (likely(rest != NULL)) {
			dp_prefetch_backend(&lines, lb_flow_backend_of(*rest), s->is_v6[i]);
			/* Its last packet has been asked about. */
			if (likely(lb_flow_ticks_since_seen(*rest, tick) <
				    asked_ticks[d->event]))
				continue;
		} else {
			const struct lb_flow_place place = dp_usual_place(s, i);

			lb_flow_prefetch_second(flows, &place);
			if (d->event == LB_FLOW_SYN)
				lb_flow_prefetch_both_syns(flows, &place);
		}
		ask(s, &asking, i);
	}
	return n_usual - hear(s, &asking);
}

/* Follow an entry. A SYN is more than a packet of its flow. @return whether it is decided. */
static inline bool
follow(const struct dp_stages *s, struct dp_decision *d, uint64_t *rest, uint32_t tick)
{
	const uint32_t id = lb_flow_backend_of(*rest);

	if (unlikely(d->event == LB_FLOW_SYN ||
		     dp_snapshot_live_backend(s->snapshot, id) == NULL))
		return false;
	d->backend = id;
	*rest = lb_flow_touched(*rest, (enum lb_flow_event)d->event, tick);
	return true;
}

size_t
dp_usual_follow(struct dp_stages *s, size_t from)
{
	struct dp_decision *decisions = s->burst->decisions;
	const uint64_t *now_ns = s->burst->now_ns;
	const uint64_t first_ns = now_ns[0];
	const uint32_t tick = lb_flow_tick(s->worker->flows, first_ns);
	const size_t n = s->burst->n;
	size_t i;

	for (i = from; i < n && s->is_usual[i] && now_ns[i] == first_ns; i++)
		if (unlikely(!is_begun(s, i) &&
			     (s->rests[i] == NULL ||
				     !follow(s, &decisions[i], s->rests[i], tick))))
			break;
	return i;
}

static void
prefetch_backend(const struct dp_stages *s, size_t i, uint32_t id)
{
	const struct dp_backend_lines lines = dp_backend_lines(s);

	dp_prefetch_backend(&lines, id, s->is_v6[i]);
}

/* Begin a flow that has a slot. @return whether it is decided. */
static inline bool
begin_flow(struct dp_stages *s, size_t i, const struct lb_flow_place *place, uint32_t tick)
{
	struct dp_worker *worker = s->worker;
	struct dp_decision *d = &s->burst->decisions[i];
	const bool is_syn = d->event == LB_FLOW_SYN;
	const struct dp_service *service;
	uint32_t ref;

	/* It may have been known when the burst began, and given way since. */
	if (unlikely(d->slot == DP_NONE))
		return false;
	service = &s->snapshot->services[d->service];
	d->backend = service->ids[lb_picker_backend(service->picker, d->slot)];
	d->flow = DP_FLOW_MISS;
	d->is_new_flow = true;
	prefetch_backend(s, i, d->backend);
	ref = lb_flow_insert_at(worker->flows, place, d->backend, (enum lb_flow_event)d->event,
		is_syn ? lb_usual_read_seq(dp_usual_ip(s, i), s->is_v6[i]) : 0, tick);
	if (unlikely(worker->flows->keys != NULL))
		dp_usual_keep_key(s, i, ref);
	dp_count(&worker->backend_flows[d->backend], 1);
	return true;
}

/* One of the burst's later ones; rest is its entry's, NULL where it is to be looked for. */
static inline bool
decide(struct dp_stages *s, size_t i, uint64_t *rest, uint32_t tick)
{
	struct lb_flow_table *flows = s->worker->flows;
	struct dp_decision *d = &s->burst->decisions[i];

	if (is_begun(s, i))
		return true;
	if (rest == NULL) {
		const struct lb_flow_place place = dp_usual_place(s, i);
		const uint32_t ref = lb_flow_find_in_both(flows, &place, tick);

		if (likely(ref == LB_FLOW_NONE))
			return begin_flow(s, i, &place, tick);
		d->slot = DP_NONE;
		rest = lb_flow_rest(flows, ref);
		prefetch_backend(s, i, lb_flow_backend_of(*rest));
	}
	return follow(s, d, rest, tick);
}

size_t
dp_usual_decide(struct dp_stages *s, size_t from, bool *is_stale)
{
	const struct dp_decision *decisions = s->burst->decisions;
	const uint64_t *now_ns = s->burst->now_ns;
	const uint32_t tick = lb_flow_tick(s->worker->flows, now_ns[from]);
	const size_t n = s->burst->n;
	bool has_moved = *is_stale;
	size_t i;

	for (i = from; i < n && s->is_usual[i] && now_ns[i] == now_ns[from]; i++) {
		if (unlikely(!decide(s, i, has_moved ? NULL : s->rests[i], tick)))
			break;
		has_moved |= decisions[i].is_new_flow;
	}
	*is_stale = has_moved;
	return i;
}

void
dp_usual_leave(struct dp_stages *s, size_t i)
{
	struct dp_burst *burst = s->burst;
	struct dp_decision *d = &burst->decisions[i];

	if (d->service == DP_NONE) {
		uint32_t found;

		lb_usual_read_key(dp_usual_ip(s, i), s->is_v6[i], &s->keys[i]);
		found = find_plainly(s, i);

		if (found != LB_SERVICE_NONE)
			d->service = found & DP_MATCH_PLACE;
		else /* it is not: its last packet was for one */
			d->verdict = LB_TO_KERNEL;
	}
	d->backend = DP_NONE;
	d->slot = DP_NONE;
	d->flow = DP_FLOW_NONE;
	d->is_new_flow = false;
	d->has_more = false;
	s->is_usual[i] = false;
	if (dp_mbuf_parse(burst->pkts[i], burst->wire_bytes[i], &s->packets[i]) != LB_FORWARD)
		d->verdict = LB_DROP_TRUNCATED; /* it is not: it has been parsed */
	d->entropy = lb_hash_entropy(&s->packets[i].key);
}
