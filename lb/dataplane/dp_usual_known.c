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

	if (unlikely(!lb_flow_has_print(rest, d->hash.print) ||
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
	/* The last one's, often a neighbour's; a SYN to it begins a flow as its table says. */
	struct dp_wanted question;
	const struct dp_heard *answer;
	struct dp_wanted questions[SERVICES_ASKED_MAX];
	struct dp_heard answers[SERVICES_ASKED_MAX];
	size_t n_asked;
	uint32_t tick;
	/* Of the burst's SYNs, as dp_stages has them: how many from the first on have slots,
	 * have begun flows, and have their numbers written; and of each its service's table,
	 * its slot and its flow's entry. */
	bool has_picked;
	bool is_crowded; /* the next one to begin has a slot, but no room at once */
	size_t n_picked;
	size_t n_begun;
	size_t n_written;
	const struct dp_heard *answers_of[DP_BURST_MAX];
	uint32_t slots[DP_BURST_MAX];
	uint32_t refs[DP_BURST_MAX];
};

/* Find what another packet than the last has asked, or ask. @return NULL: it is too many. */
static const struct dp_heard *
ask(const struct dp_stages *s, struct beginning *b, size_t i, const struct dp_wanted *question)
{
	const struct lb_flow_key key = dp_usual_key(s, i);
	uint32_t found;

	for (size_t k = 0; k < b->n_asked; k++)
		if (dp_wanted_is(&b->questions[k], question))
			return &b->answers[k];
	if (b->n_asked == SERVICES_ASKED_MAX)
		return NULL;
	found = lb_service_find(s->snapshot->match, &key.dst, key.proto, ntohs(key.dport_be));
	b->questions[b->n_asked] = *question;
	b->answers[b->n_asked] = dp_heard_of(s, found, key.proto);
	return &b->answers[b->n_asked++];
}

/*
 * Have a packet's service be the last one asked for. @return whether a SYN to it begins a flow
 * where its table says, and nothing is done to it.
 */
static bool __attribute__((noinline))
ask_at_once(const struct dp_stages *s, struct beginning *b, size_t i)
{
	const struct lb_flow_words words = dp_usual_words(s, i, s->is_v6[i]);
	const struct dp_wanted question = dp_wanted_of(&words, s->is_v6[i]);
	const struct dp_heard *answer = ask(s, b, i, &question);

	if (answer == NULL || answer->picker == NULL || !answer->begins_by_syn)
		return false;
	b->question = question;
	b->answer = answer;
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

/* Whether a SYN, unless it is a known flow's, begins one, and by b->answer alone. */
static inline bool
may_begin(const struct dp_stages *s, struct beginning *b, size_t i, bool is_v6,
	const struct lb_martian_filter *hosts)
{
	const struct lb_flow_words words = dp_usual_words(s, i, is_v6);

	if (unlikely(!dp_wanted_is_same(&b->question, &words, is_v6)) && !ask_at_once(s, b, i))
		return false;
	return likely(!lb_martian_may_be(hosts, words.word, words.word + 2)) ||
	       !is_martian_after_all(s, i);
}

/*
 * Find the slots of the burst's SYNs, as if each began a flow, and ask for those: up to the
 * first that begins none here. In a loop of its own, so that all of it stays in registers.
 */
static inline void __attribute__((always_inline))
pick_slots(struct dp_stages *s, struct beginning *b, bool is_all_v4)
{
	const struct lb_martian_filter hosts = s->snapshot->hosts;
	const size_t n = s->n_syns;
	size_t k;

	for (k = 0; k < n && s->syns[k] < s->first_odd; k++) {
		const size_t i = s->syns[k];
		const bool is_v6 = !is_all_v4 && s->is_v6[i];
		const struct lb_picker *picker;

		if (is_v6)
			lb_usual_read_key(dp_usual_ip(s, i), true, &s->keys[i]);
		if (unlikely(!may_begin(s, b, i, is_v6, &hosts)))
			break;
		picker = b->answer->picker;
		b->answers_of[k] = b->answer;
		b->slots[k] = lb_picker_slot(picker, dp_usual_pick(s, i, is_v6));
		lb_picker_prefetch(picker, b->slots[k]);
	}
	b->n_picked = k;
}

static void __attribute__((noinline)) begin_picking(struct dp_stages *s, struct beginning *b)
{
	b->has_picked = true;
	memset(s->is_begun, 0, sizeof(s->is_begun));
	s->has_begun = true;
	if (s->n_v6 == 0)
		pick_slots(s, b, true);
	else
		pick_slots(s, b, false);
}

/* What of flows that have begun is written apart, when its lines have come. */
static void __attribute__((noinline)) end_begun(struct dp_stages *s, struct beginning *b)
{
	struct lb_flow_table *flows = s->worker->flows;

	for (size_t k = b->n_written; k < b->n_begun; k++) {
		const size_t i = s->syns[k];

		s->is_begun[i] = true;
		lb_flow_set_syn(flows, b->refs[k],
			lb_usual_read_seq(dp_usual_ip(s, i), s->is_v6[i]));
		if (unlikely(flows->keys != NULL))
			dp_usual_keep_key(s, i, b->refs[k]);
	}
	b->n_written = b->n_begun;
}

/* What lies behind pointers, and stays the same. */
struct at_hand {
	struct lb_flow_table *flows;
	struct dp_decision *decisions;
	uint64_t *backend_flows;
	struct dp_backend_lines lines;
	uint32_t tick;
};

/*
 * Begin the flows of SYNs in a row that have slots, from one on, but for their numbers.
 *
 * @return the first packet that does not begin one at once; of that nothing is done.
 */
static inline size_t __attribute__((always_inline))
begin_picked(struct dp_stages *s, struct beginning *b, size_t i, bool is_all_v4)
{
	const struct at_hand at_hand = {
		.flows = s->worker->flows,
		.decisions = s->burst->decisions,
		.backend_flows = s->worker->backend_flows,
		.lines = dp_backend_lines(s),
		.tick = b->tick,
	};
	const size_t n = b->n_picked;
	size_t k;

	b->is_crowded = false;
	for (k = b->n_begun; k < n && s->syns[k] == i; k++, i++) {
		struct dp_decision *d = &at_hand.decisions[i];
		const struct dp_heard *answer = b->answers_of[k];
		const uint32_t id = answer->ids[lb_picker_backend(answer->picker, b->slots[k])];
		const struct lb_flow_place place = lb_flow_place_of(at_hand.flows,
			s->buckets[i], s->tags[i], d->hash.print);
		uint32_t way;

		dp_prefetch_syns(s, 1);
		if (unlikely(lb_flow_find_in_both(at_hand.flows, &place, at_hand.tick) !=
			     LB_FLOW_NONE))
			break;
		way = lb_flow_take_way(at_hand.flows, &place, at_hand.tick);
		if (unlikely(way == LB_FLOW_NO_WAY)) {
			b->is_crowded = true;
			break;
		}
		b->refs[k] =
			lb_flow_put(at_hand.flows, &place, way, id, LB_FLOW_SYN, at_hand.tick);
		lb_flow_prefetch_syn(at_hand.flows, b->refs[k]);
		d->backend = id;
		dp_prefetch_backend(&at_hand.lines, id, !is_all_v4 && s->is_v6[i]);
		dp_count(&at_hand.backend_flows[id], 1);
	}
	b->n_begun = k;
	return i;
}

/*
 * Begin the next SYN's flow where room for it is to be looked for: that moves entries, which
 * have all that is theirs by then.
 */
static void __attribute__((noinline))
begin_elsewhere(struct dp_stages *s, struct beginning *b, size_t i)
{
	struct lb_flow_table *flows = s->worker->flows;
	struct dp_decision *d = &s->burst->decisions[i];
	const struct lb_flow_place place = dp_usual_place(s, i);
	const size_t k = b->n_begun;
	const struct dp_heard *answer = b->answers_of[k];
	const struct dp_backend_lines lines = dp_backend_lines(s);
	uint32_t ref;

	end_begun(s, b);
	d->backend = answer->ids[lb_picker_backend(answer->picker, b->slots[k])];
	dp_prefetch_backend(&lines, d->backend, s->is_v6[i]);
	ref = lb_flow_insert_elsewhere(flows, &place, d->backend, LB_FLOW_SYN,
		lb_usual_read_seq(dp_usual_ip(s, i), s->is_v6[i]), b->tick);
	if (flows->keys != NULL)
		dp_usual_keep_key(s, i, ref);
	dp_count(&s->worker->backend_flows[d->backend], 1);
	s->is_begun[i] = true;
	b->n_begun++;
	b->n_written++;
}

/*
 * Begin flows, from one SYN on, the first that has not begun one, up to the first packet that
 * begins none here.
 *
 * @return that packet's index.
 */
static size_t __attribute__((noinline))
begin_flows(struct dp_stages *s, struct beginning *b, size_t i)
{
	if (!b->has_picked)
		begin_picking(s, b);
	for (;;) {
		i = s->n_v6 == 0 ? begin_picked(s, b, i, true) : begin_picked(s, b, i, false);
		if (likely(!b->is_crowded))
			return i;
		begin_elsewhere(s, b, i++);
	}
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
	b.question = (struct dp_wanted){{0, 0}, 0, 0};
	b.n_asked = 0;
	b.has_picked = false;
	b.n_begun = 0;
	b.n_written = 0;
	for (next = 0;;) {
		i = s->n_v6 == 0 ? follow_entries(&f, next, true)
				 : follow_entries(&f, next, false);
		if (likely(i == s->first_odd) || s->burst->decisions[i].event != LB_FLOW_SYN)
			break;
		next = begin_flows(s, &b, i);
		if (next == i)
			break;
	}
	if (unlikely(b.n_written < b.n_begun))
		end_begun(s, &b);
	return i;
}
