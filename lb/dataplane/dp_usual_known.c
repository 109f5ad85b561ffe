/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "dp_usual.h"
#include "dp_usual_parts.h"
#include "lb_martian.h"

/* What a packet makes of a flow's entry, by the entry's state and the packet's event. */
struct known {
	uint32_t below; /* it follows unasked, so many ticks after the last */
	uint32_t next;  /* state */
};

/* What known flows of a burst have in common, at hand. */
struct following {
	struct known known[LB_FLOW_N_STATES][LB_FLOW_N_EVENTS];
	struct dp_backend_lines lines;
	struct dp_stages *stages;
	uint32_t tick;
};

static void
begin_following(struct dp_stages *s, struct following *f)
{
	const struct lb_flow_table *flows = s->worker->flows;
	uint32_t asked[LB_FLOW_N_EVENTS];

	f->stages = s;
	f->lines = dp_backend_lines(s);
	f->tick = lb_flow_tick(flows, s->burst->now_ns[0]);
	dp_usual_asked_ticks(s, asked);
	for (size_t event = 0; event < LB_FLOW_N_EVENTS; event++)
		f->known[LB_FLOW_FREE][event].below = 0;
	for (size_t state = LB_FLOW_FREE + 1; state < LB_FLOW_N_STATES; state++) {
		const uint32_t alive = flows->timeout_ticks[state] + 1;

		for (size_t event = 0; event < LB_FLOW_N_EVENTS; event++)
			f->known[state][event] = (struct known){
				.below = asked[event] < alive ? asked[event] : alive,
				.next = lb_flow_next_state[state][event],
			};
	}
}

/* Follow an entry that has a packet's tag. @return whether it is the packet's, and known. */
static inline bool
follow_entry(const struct following *f, struct dp_decision *d, uint64_t *entry, bool is_v6)
{
	const uint64_t rest = *entry;
	const struct known *known = &f->known[lb_flow_state_of(rest)][d->event];

	if (unlikely((rest ^ d->hash.pick << (LB_FLOW_PICK_SHIFT - 16)) >> LB_FLOW_PICK_SHIFT !=
			     0 ||
		     lb_flow_ticks_since_seen(rest, f->tick) >= known->below))
		return false;
	d->backend = lb_flow_backend_of(rest);
	dp_prefetch_backend(&f->lines, d->backend, is_v6);
	*entry = lb_flow_with_state(rest, known->next, f->tick);
	return true;
}

/* The same in one of some ways: of those with its tag some may be free, or its own once. */
static bool __attribute__((noinline))
follow_in(const struct following *f, size_t i, struct lb_flow_bucket *bucket, uint32_t ways)
{
	struct dp_decision *d = &f->stages->burst->decisions[i];
	const bool is_v6 = f->stages->is_v6[i];

	for (; ways != 0; ways &= ways - 1)
		if (follow_entry(f, d, &bucket->rest[(uint32_t)__builtin_ctz(ways)], is_v6))
			return true;
	return false;
}

/* Services that are asked for at once, where others would wait: so many a burst. */
#define SERVICES_ASKED_MAX 8u

/* Flows that begin one after the other, and what their services are. */
struct beginning {
	struct dp_wanted questions[SERVICES_ASKED_MAX];
	struct dp_heard answers[SERVICES_ASKED_MAX];
	size_t n_asked;
	size_t last; /* often a neighbour's */
	uint32_t tick;
};

/* What lies behind pointers, and stays the same. */
struct at_hand {
	struct lb_flow_table *flows;
	const struct dp_decision *decisions;
	uint64_t *backend_flows;
	struct dp_backend_lines lines;
	struct lb_martian_filter hosts;
	uint32_t tick;
};

/* Find what another packet than the last has asked, or ask. @return whether it is known now. */
static bool __attribute__((noinline))
ask_at_once(const struct dp_stages *s, struct beginning *b, size_t i)
{
	const struct lb_flow_words words = dp_usual_words(s, i, s->is_v6[i]);
	const struct lb_flow_key key = dp_usual_key(s, i);
	uint32_t found;

	for (size_t k = 0; k < b->n_asked; k++) {
		if (dp_wanted_is_same(&b->questions[k], &words, s->is_v6[i])) {
			b->last = k;
			return true;
		}
	}
	if (b->n_asked == SERVICES_ASKED_MAX)
		return false;
	found = lb_service_find(s->snapshot->match, &key.dst, key.proto, ntohs(key.dport_be));
	b->last = b->n_asked++;
	b->questions[b->last] = dp_wanted_of(&words, s->is_v6[i]);
	b->answers[b->last] = dp_heard_of(s, found, key.proto);
	return true;
}

static bool __attribute__((noinline)) is_martian_after_all(const struct dp_stages *s, size_t i)
{
	const struct lb_flow_key key = dp_usual_key(s, i);

	return dp_snapshot_is_martian(s->snapshot, &key.src, &key.dst);
}

void
dp_usual_keep_key(const struct dp_stages *s, size_t i, uint32_t ref)
{
	const struct lb_flow_key key = dp_usual_key(s, i);

	lb_flow_keep(s->worker->flows, ref, &key);
}

/*
 * Whether a SYN begins a flow where its service's table says, and nothing is done to it.
 *
 * @return what its service says; NULL: it does not.
 */
static inline const struct dp_heard *
may_begin(const struct dp_stages *s, struct beginning *b, size_t i, bool is_v6,
	const struct lb_martian_filter *hosts)
{
	const struct lb_flow_words words = dp_usual_words(s, i, is_v6);
	const struct dp_heard *answer;

	if (unlikely(!dp_wanted_is_same(&b->questions[b->last], &words, is_v6)) &&
		!ask_at_once(s, b, i))
		return NULL;
	answer = &b->answers[b->last];
	if (unlikely(answer->picker == NULL || !answer->begins_by_syn))
		return NULL;
	if (unlikely(lb_martian_may_be(hosts, words.word, words.word + 2)) &&
		is_martian_after_all(s, i))
		return NULL;
	return answer;
}

/*
 * Whether a SYN begins a flow; of one that does not nothing is done. Called twice, it would not
 * be inline by itself, and what is constant in IPv4 would not be.
 */
static inline bool __attribute__((always_inline)) begin_known(struct dp_stages *s,
	struct beginning *b, const struct at_hand *at_hand, size_t i, bool is_v6)
{
	struct lb_flow_table *flows = at_hand->flows;
	const struct lb_flow_hash *hash = &at_hand->decisions[i].hash;
	const struct lb_flow_place place =
		lb_flow_place_of(flows, s->buckets[i], s->tags[i], hash->pick);
	const struct dp_heard *answer;
	uint32_t slot;
	uint32_t ref;
	uint32_t id;

	if (unlikely(lb_flow_find_in_both(flows, &place, at_hand->tick) != LB_FLOW_NONE))
		return false;
	if (is_v6)
		lb_usual_read_key(dp_usual_ip(s, i), true, &s->keys[i]);
	answer = may_begin(s, b, i, is_v6, &at_hand->hosts);
	if (unlikely(answer == NULL))
		return false;
	slot = lb_picker_slot(answer->picker, dp_usual_pick(s, i, is_v6));
	id = answer->ids[lb_picker_backend(answer->picker, slot)];
	s->burst->decisions[i].backend = id;
	dp_prefetch_backend(&at_hand->lines, id, is_v6);
	ref = lb_flow_insert_at(flows, &place, id, LB_FLOW_SYN,
		lb_usual_read_seq(dp_usual_ip(s, i), is_v6), at_hand->tick);
	if (unlikely(flows->keys != NULL))
		dp_usual_keep_key(s, i, ref);
	dp_count(&at_hand->backend_flows[id], 1);
	s->is_begun[i] = true;
	return true;
}

/*
 * Begin flows, from one packet on, up to the first that begins none here.
 *
 * @return that packet's index.
 */
static size_t __attribute__((noinline))
begin_flows(struct dp_stages *s, struct beginning *b, size_t i)
{
	const struct at_hand at_hand = {
		.flows = s->worker->flows,
		.decisions = s->burst->decisions,
		.backend_flows = s->worker->backend_flows,
		.lines = dp_backend_lines(s),
		.hosts = s->snapshot->hosts,
		.tick = b->tick,
	};
	const size_t end = s->first_odd;

	if (!s->has_begun) {
		memset(s->is_begun, 0, sizeof(s->is_begun));
		s->has_begun = true;
	}
	for (; i < end && at_hand.decisions[i].event == LB_FLOW_SYN; i++) {
		dp_prefetch_syns(s, 1);
		if (unlikely(!(s->is_v6[i] ? begin_known(s, b, &at_hand, i, true)
					   : begin_known(s, b, &at_hand, i, false))))
			break;
	}
	return i;
}

/* @return the first from i on that follows no entry unasked. */
static inline size_t
follow_entries(const struct following *f, size_t i, bool is_all_v4)
{
	const struct dp_stages *s = f->stages;
	struct dp_decision *decisions = s->burst->decisions;
	struct lb_flow_bucket *buckets = s->worker->flows->buckets;
	const size_t end = s->first_odd;

	for (; i < end; i++) {
		struct lb_flow_bucket *bucket = &buckets[s->buckets[i]];
		const uint32_t ways = lb_flow_match(bucket->tag, s->tags[i]);

		if (unlikely(ways == 0))
			break;
		if (unlikely(!follow_entry(f, &decisions[i],
				     &bucket->rest[(uint32_t)__builtin_ctz(ways)],
				     !is_all_v4 && s->is_v6[i]) &&
			     !follow_in(f, i, bucket, ways & (ways - 1))))
			break;
	}
	return i;
}

size_t
dp_usual_follow_known(struct dp_stages *s)
{
	const size_t n = s->burst->n;
	struct following f;
	struct beginning b;
	size_t next;
	size_t i;

	/* Times never go back. */
	if (unlikely(s->burst->now_ns[n - 1] != s->burst->now_ns[0]))
		return 0;
	begin_following(s, &f);
	b.tick = f.tick;
	b.questions[0] = (struct dp_wanted){{0, 0}, 0, 0};
	b.n_asked = 0;
	b.last = 0;
	for (next = 0;;) {
		i = s->n_v6 == 0 ? follow_entries(&f, next, true)
				 : follow_entries(&f, next, false);
		if (likely(i == s->first_odd))
			return i;
		next = begin_flows(s, &b, i);
		if (next == i)
			return i;
	}
}
