/* SPDX-License-Identifier: BSD-3-Clause */
#include "dp_usual.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

#include "dp_mbuf.h"
#include "lb_bytes.h"
#include "lb_hash_flow.h"
#include "lb_martian.h"
#include "lb_usual.h"

#define AHEAD             8u /* packets that are asked for before they are read: measured */
#define TAG_BYTES         4u
#define TAG_PRIORITY_MASK 0xf0 /* and DEI, of a tag's third byte */
#define TCP_UNUSUAL       0x07 /* FIN, SYN, RST */

/* The IP header of a usual packet's frame. */
static inline const uint8_t *
ip_of(const struct dp_stages *s, unsigned int i)
{
	const uint8_t *frame = rte_pktmbuf_mtod(s->burst->pkts[i], const uint8_t *);

	return frame + LB_USUAL_IP_OFFSET + (unlikely(s->is_tagged[i]) ? TAG_BYTES : 0);
}

static inline struct lb_flow_place
place_of(const struct dp_stages *s, unsigned int i)
{
	return lb_flow_place_of(s->worker->flows, s->buckets[i], s->tags[i],
		s->burst->decisions[i].hash.pick);
}

/* What chooses the slot of a packet, if its service's affinity is the 5-tuple. */
static inline uint64_t
pick_of(const struct dp_stages *s, unsigned int i, bool is_v6)
{
	return is_v6 ? lb_hash_pick_v6(&s->snapshot->seeded, &s->keys[i])
		     : lb_hash_pick_v4(&s->snapshot->seeded, &s->v4[i]);
}

/* Of TCP, what is more than a segment. */
static enum lb_flow_event __attribute__((noinline))
tcp_event(struct dp_stages *s, unsigned int i, uint8_t tcp_flags)
{
	if ((tcp_flags & (LB_TCP_FIN | LB_TCP_RST)) != 0)
		return LB_FLOW_CLOSE;
	if ((tcp_flags & LB_TCP_ACK) != 0)
		return LB_FLOW_SEGMENT;
	s->syns[s->n_syns++] = (uint8_t)i;
	return LB_FLOW_SYN;
}

static inline void
take(struct dp_stages *s, unsigned int i, const struct lb_usual *usual)
{
	struct dp_decision *d = &s->burst->decisions[i];

	d->ip_bytes = usual->ip_bytes;
	d->event = usual->is_tcp ? LB_FLOW_SEGMENT : LB_FLOW_DATAGRAM;
	if (unlikely((usual->tcp_flags & TCP_UNUSUAL) != 0))
		d->event = (uint8_t)tcp_event(s, i, usual->tcp_flags);
}

static inline bool
take_v4(struct dp_stages *s, unsigned int i, const uint8_t *ip, uint32_t n_bytes)
{
	struct lb_usual usual;

	if (unlikely(!lb_usual_parse_v4(ip, n_bytes, &usual)))
		return false;
	s->v4[i] = usual.v4;
	take(s, i, &usual);
	return true;
}

static inline bool
take_v6(struct dp_stages *s, unsigned int i, const uint8_t *ip, uint32_t n_bytes)
{
	struct lb_usual usual;

	if (unlikely(n_bytes < LB_USUAL_V6_READ_BYTES - LB_USUAL_IP_OFFSET ||
		     !lb_usual_parse_v6(ip, n_bytes, &usual)))
		return false;
	s->is_v6[i] = true;
	s->n_v6++;
	s->keys[i] = usual.key;
	take(s, i, &usual);
	return true;
}

static inline uint16_t
type_before(const uint8_t *ip)
{
	uint16_t type_be;

	memcpy(&type_be, ip - sizeof(type_be), sizeof(type_be));
	return type_be;
}

/* The same behind a tag. */
static bool __attribute__((noinline))
take_tagged(struct dp_stages *s, unsigned int i, const uint8_t *ip, uint32_t n_bytes)
{
	if (type_before(ip) != htons(RTE_ETHER_TYPE_VLAN))
		return false;
	s->is_tagged[i] = true;
	s->has_tags = true;
	ip += TAG_BYTES;
	n_bytes -= TAG_BYTES;
	if (n_bytes < LB_USUAL_V4_READ_BYTES - LB_USUAL_IP_OFFSET)
		return false;
	if (type_before(ip) == htons(RTE_ETHER_TYPE_IPV4))
		return take_v4(s, i, ip, n_bytes);
	return type_before(ip) == htons(RTE_ETHER_TYPE_IPV6) && take_v6(s, i, ip, n_bytes);
}

/*
 * Start loading a packet's headers, and the line before them, which outer headers go to. It
 * may be no packet of the burst: nothing is read of it, nor is it looked for where it begins.
 */
static inline void
prefetch_packet(const struct rte_mbuf *m)
{
	const uintptr_t frame =
		(uintptr_t)m + sizeof(*m) + DP_BESIDE_BYTES + RTE_PKTMBUF_HEADROOM;

	__builtin_prefetch((const void *)frame);
	__builtin_prefetch((const void *)(frame - LB_CACHE_LINE), 1);
}

static inline bool
take_packet(struct dp_stages *s, unsigned int i)
{
	const struct rte_mbuf *m = s->burst->pkts[i];
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *ip = frame + LB_USUAL_IP_OFFSET;
	const uint32_t n_bytes = m->data_len - LB_USUAL_IP_OFFSET;

	/* Frames to a group of the link are no host's. */
	if (unlikely(m->data_len < LB_USUAL_V4_READ_BYTES || m->nb_segs != 1 ||
		     (frame[0] & 1) != 0))
		return false;
	if (likely(type_before(ip) == htons(RTE_ETHER_TYPE_IPV4)))
		return take_v4(s, i, ip, n_bytes);
	if (type_before(ip) == htons(RTE_ETHER_TYPE_IPV6))
		return take_v6(s, i, ip, n_bytes);
	return take_tagged(s, i, ip, n_bytes);
}

static unsigned int
take_all(struct dp_stages *s)
{
	const unsigned int n = s->burst->n;
	unsigned int n_odd = 0;

	/* What few are. */
	memset(s->is_usual, true, sizeof(s->is_usual));
	memset(s->is_v6, false, sizeof(s->is_v6));
	memset(s->is_tagged, false, sizeof(s->is_tagged));
	s->has_tags = false;
	s->has_begun = false;
	s->n_syns = 0;
	s->n_v6 = 0;
	s->first_odd = n;
	for (unsigned int i = 0; i < n; i++) {
		prefetch_packet(s->burst->pkts[(i + AHEAD) % DP_BURST_MAX]);
		if (likely(take_packet(s, i)))
			continue;
		s->is_usual[i] = false;
		if (n_odd++ == 0)
			s->first_odd = i;
	}
	return n - n_odd;
}

static inline void
locate(struct dp_stages *s, unsigned int i, const struct lb_flow_table *flows,
	const struct lb_flow_hash *hash)
{
	const struct lb_flow_place place = lb_flow_locate(flows, hash);

	lb_flow_prefetch(flows, &place);
	s->buckets[i] = place.bucket;
	s->tags[i] = place.tag;
	s->burst->decisions[i].hash = *hash;
}

/*
 * A hash is a long chain of multiplications. Alone in a loop, those of several packets overlap
 * as far as the processor looks ahead, and what they share stays in registers.
 */
static inline void
locate_v4(struct dp_stages *s, bool is_all)
{
	const struct lb_flow_table flows = *s->worker->flows;
	const struct lb_hash_keyed keyed = s->worker->keyed;
	const unsigned int n = s->burst->n;

	for (unsigned int i = 0; i < n; i++) {
		struct lb_flow_hash hash;

		if (!is_all && (!s->is_usual[i] || s->is_v6[i]))
			continue;
		hash = lb_hash_flow_v4(&keyed, &s->v4[i]);
		locate(s, i, &flows, &hash);
	}
}

static void
locate_v6(struct dp_stages *s)
{
	const struct lb_flow_table flows = *s->worker->flows;
	const struct lb_hash_keyed keyed = s->worker->keyed;
	const unsigned int n = s->burst->n;

	for (unsigned int i = 0; i < n; i++) {
		struct lb_flow_hash hash;

		if (unlikely(!s->is_v6[i]))
			continue;
		hash = lb_hash_flow_v6(&keyed, &s->keys[i]);
		locate(s, i, &flows, &hash);
	}
}

/*
 * Start loading what SYNs need of the table, which begin flows, but for few: of the next ones.
 * All at once are more lines than there are places for on their way. Not inline it would be
 * left out: for all that the compiler sees, it does nothing.
 */
static inline void __attribute__((always_inline))
prefetch_syns(struct dp_stages *s, unsigned int n)
{
	for (; n > 0 && s->n_syns_asked < s->n_syns; n--) {
		const struct lb_flow_place place = place_of(s, s->syns[s->n_syns_asked++]);

		lb_flow_prefetch_syn(s->worker->flows, &place);
	}
}

unsigned int
dp_usual_take(struct dp_stages *s)
{
	const unsigned int n = take_all(s);

	if (likely(n == s->burst->n && s->n_v6 == 0))
		locate_v4(s, true);
	else if (n > s->n_v6)
		locate_v4(s, false);
	if (s->n_v6 > 0)
		locate_v6(s);
	s->n_syns_asked = 0;
	if (unlikely(s->n_syns > 0))
		prefetch_syns(s, AHEAD);
	return n;
}

/* What a packet asks of the table of services. */
struct question {
	uint64_t dst[2];
	uint64_t rest; /* protocol and port, as in a key; 0 is none */
	uint64_t v4;   /* of an IPv4 address all that in one word; 0 is none */
};

/* The second word of an IPv4 address has it in its upper half. */
static inline uint64_t
v4_word(const struct lb_flow_words *words)
{
	return (words->word[3] & ~(uint64_t)UINT32_MAX) | words->word[4] >> 16;
}

static inline bool
is_same(const struct question *question, const struct lb_flow_words *words, bool is_v6)
{
	if (!is_v6)
		return question->v4 == v4_word(words);
	return ((question->dst[0] ^ words->word[2]) | (question->dst[1] ^ words->word[3]) |
		       (question->rest ^ words->word[4] >> 16)) == 0;
}

static inline struct question
question_of(const struct lb_flow_words *words, bool is_v6)
{
	if (!is_v6)
		return (struct question){{0, 0}, 0, v4_word(words)};
	return (struct question){{words->word[2], words->word[3]}, words->word[4] >> 16, 0};
}

/* The protocol and the destination port, in host order, of a key. */
static inline uint8_t
proto_of(const struct lb_flow_words *words)
{
	return (uint8_t)(words->word[4] >> 32);
}

static inline uint16_t
port_of(const struct lb_flow_words *words)
{
	return lb_bytes_swap16((uint16_t)(words->word[4] >> 16));
}

/* Packets that ask for their services, in the order of the burst. */
struct asking {
	struct question last; /* neighbours often ask the same */
	unsigned int n;
	uint8_t of[DP_BURST_MAX];
};

static_assert(DP_BURST_MAX <= UINT8_MAX, "a place in a burst is a byte");

static inline void
ask(struct dp_stages *s, struct asking *asking, unsigned int i)
{
	const struct lb_service_table *match = s->snapshot->match;
	const bool is_v6 = s->is_v6[i];
	struct lb_flow_words *words = &s->keys[i];

	lb_usual_read_key(ip_of(s, i), is_v6, words);

	asking->of[asking->n++] = (uint8_t)i;
	s->asks[i] = !is_same(&asking->last, words, is_v6);
	if (likely(!s->asks[i]))
		return;
	asking->last = question_of(words, is_v6);
	lb_service_begin_words(match, is_v6 ? &match->v6 : &match->v4, &words->word[2],
		proto_of(words), port_of(words), &s->searches[i]);
}

/* Whether nothing but its flow's key and entry says where a packet of what was found goes. */
static inline bool
goes_by_flow(const struct dp_snapshot *snapshot, uint32_t found, uint8_t proto)
{
	const struct dp_service *service;

	if (unlikely(found == LB_SERVICE_NONE))
		return false;
	if (likely((found & DP_MATCH_MORE) == 0 || proto == IPPROTO_TCP))
		return true;
	service = &snapshot->services[found & DP_MATCH_PLACE];
	return service->quic == NULL && service->refused == 0;
}

static uint32_t
find_plainly(const struct dp_stages *s, unsigned int i)
{
	struct lb_flow_key key;

	lb_usual_store_key(&s->keys[i], &key);
	return lb_service_find(s->snapshot->match, &key.dst, key.proto, ntohs(key.dport_be));
}

/* What was heard last: of none, of a service that is no flow's, or of one that is. */
struct answer {
	uint32_t service; /* DP_NONE: of none of those */
	/* Its table, where new flows go as their hash says and nothing is done to their packets
	 * but to SYNs, maybe; NULL: they do not. */
	const struct lb_picker *picker;
	const uint32_t *ids; /* picker's result -> backend id */
	bool begins_by_syn;  /* nor is anything to these */
};

static struct answer
answer_of(const struct dp_stages *s, uint32_t found, uint8_t proto)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	const struct dp_service *service;

	if (!goes_by_flow(snapshot, found, proto))
		return (struct answer){.service = DP_NONE};
	service = &snapshot->services[found & DP_MATCH_PLACE];
	if (service->affinity != LB_AFFINITY_5_TUPLE)
		return (struct answer){.service = found & DP_MATCH_PLACE};
	return (struct answer){
		.service = found & DP_MATCH_PLACE,
		.picker = service->picker,
		.ids = service->ids,
		.begins_by_syn = service->mss_clamp == 0,
	};
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
slot_of(const struct dp_stages *s, unsigned int i, const struct answer *answer)
{
	const struct dp_decision *d = &s->burst->decisions[i];
	uint32_t slot;

	if (unlikely(answer->picker == NULL ||
		     (d->event == LB_FLOW_SYN && !answer->begins_by_syn) ||
		     is_martian(s->snapshot, &s->keys[i])))
		return DP_NONE;
	slot = lb_picker_slot(answer->picker, pick_of(s, i, s->is_v6[i]));
	lb_picker_prefetch(answer->picker, slot);
	return slot;
}

/* Hear of the services that are asked for. @return how many packets are left to the stages. */
static unsigned int
hear(struct dp_stages *s, const struct asking *asking)
{
	struct answer answer = {.service = DP_NONE};
	unsigned int n_left = 0;

	for (unsigned int k = 0; k < asking->n; k++) {
		const unsigned int i = asking->of[k];
		struct dp_decision *d = &s->burst->decisions[i];

		if (s->asks[i]) {
			const struct lb_service_entry *entry =
				lb_service_end_first(s->snapshot->match, &s->searches[i]);

			answer = answer_of(s,
				likely(entry != NULL) ? entry->service : find_plainly(s, i),
				proto_of(&s->keys[i]));
		}
		d->service = answer.service;
		s->is_usual[i] = answer.service != DP_NONE;
		n_left += answer.service == DP_NONE;
		if (s->rests[i] == NULL)
			d->slot = slot_of(s, i, &answer);
	}
	return n_left;
}

/* Where a backend's lines lie. An id may be beyond those there are: nothing is read there. */
struct backend_lines {
	uintptr_t backends;
	uintptr_t counts;
};

static inline struct backend_lines
backend_lines(const struct dp_stages *s)
{
	return (struct backend_lines){(uintptr_t)s->snapshot->backends,
		(uintptr_t)s->worker->backends};
}

static inline void
prefetch_backend(struct backend_lines lines, uint32_t id, bool is_v6)
{
	const uintptr_t backend = lines.backends + id * sizeof(struct dp_backend);

	__builtin_prefetch((const void *)backend, 0, DP_TO_L2);
	/* An outer IPv6 header, of most that carry IPv6, reaches into the next line. */
	if (is_v6)
		__builtin_prefetch((const void *)(backend + LB_CACHE_LINE), 0, DP_TO_L2);
	/* It is counted when it has left. */
	__builtin_prefetch((const void *)(lines.counts + id * sizeof(struct dp_backend_counts)),
		1, DP_TO_L2);
}

/*
 * For how many ticks, up to now, packets of flows were asked about as they would be now, by
 * event. Not where a service of datagrams looks at more than their flow; nor does a SYN follow
 * its flow's entry.
 */
static void
count_asked_ticks(const struct dp_stages *s, uint32_t ticks[static LB_FLOW_N_EVENTS])
{
	const uint8_t shift = s->worker->flows->tick_shift;
	const uint64_t n =
		(s->burst->now_ns[0] >> shift) - (s->worker->match_since_ns >> shift);
	const uint32_t asked = n < LB_FLOW_SEEN_MASK ? (uint32_t)n : LB_FLOW_SEEN_MASK;

	ticks[LB_FLOW_DATAGRAM] = s->snapshot->has_odd_datagrams ? 0 : asked;
	ticks[LB_FLOW_SEGMENT] = asked;
	ticks[LB_FLOW_SYN] = 0;
	ticks[LB_FLOW_CLOSE] = asked;
}

/* What a packet makes of a flow's entry, by the entry's state and the packet's event. */
struct known {
	uint32_t below; /* it follows unasked, so many ticks after the last */
	uint32_t next;  /* state */
};

/* What known flows of a burst have in common, at hand. */
struct following {
	struct known known[LB_FLOW_N_STATES][LB_FLOW_N_EVENTS];
	struct backend_lines lines;
	struct dp_stages *stages;
	uint32_t tick;
};

static void
begin_following(struct dp_stages *s, struct following *f)
{
	const struct lb_flow_table *flows = s->worker->flows;
	uint32_t asked[LB_FLOW_N_EVENTS];

	f->stages = s;
	f->lines = backend_lines(s);
	f->tick = lb_flow_tick(flows, s->burst->now_ns[0]);
	count_asked_ticks(s, asked);
	for (unsigned int event = 0; event < LB_FLOW_N_EVENTS; event++)
		f->known[LB_FLOW_FREE][event].below = 0;
	for (unsigned int state = LB_FLOW_FREE + 1; state < LB_FLOW_N_STATES; state++) {
		const uint32_t alive = flows->timeout_ticks[state] + 1;

		for (unsigned int event = 0; event < LB_FLOW_N_EVENTS; event++)
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
	prefetch_backend(f->lines, d->backend, is_v6);
	*entry = lb_flow_with_state(rest, known->next, f->tick);
	return true;
}

/* The same in one of some ways: of those with its tag some may be free, or its own once. */
static bool __attribute__((noinline)) follow_in(const struct following *f, unsigned int i,
	struct lb_flow_bucket *bucket, uint32_t ways)
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
	struct question questions[SERVICES_ASKED_MAX];
	struct answer answers[SERVICES_ASKED_MAX];
	unsigned int n_asked;
	unsigned int last; /* often a neighbour's */
	uint32_t tick;
};

/* The key of a packet's flow, as it was taken. */
static inline struct lb_flow_words
words_of(const struct dp_stages *s, unsigned int i, bool is_v6)
{
	const struct lb_flow_v4 *v4 = &s->v4[i];

	if (is_v6)
		return s->keys[i];
	return (struct lb_flow_words){{0, lb_usual_mapped((uint32_t)v4->addresses), 0,
		lb_usual_mapped((uint32_t)(v4->addresses >> 32)), v4->rest}};
}

static struct lb_flow_key
key_of(const struct dp_stages *s, unsigned int i)
{
	const struct lb_flow_words words = words_of(s, i, s->is_v6[i]);
	struct lb_flow_key key;

	lb_usual_store_key(&words, &key);
	return key;
}

/* What lies behind pointers, and stays the same. */
struct at_hand {
	struct lb_flow_table *flows;
	const struct dp_decision *decisions;
	struct dp_backend_counts *counts;
	struct backend_lines lines;
	struct lb_martian_filter hosts;
	uint32_t tick;
};

/* Find what another packet than the last has asked, or ask. @return whether it is known now. */
static bool __attribute__((noinline))
ask_at_once(const struct dp_stages *s, struct beginning *b, unsigned int i)
{
	const struct lb_flow_words words = words_of(s, i, s->is_v6[i]);
	const struct lb_flow_key key = key_of(s, i);
	uint32_t found;

	for (unsigned int k = 0; k < b->n_asked; k++) {
		if (is_same(&b->questions[k], &words, s->is_v6[i])) {
			b->last = k;
			return true;
		}
	}
	if (b->n_asked == SERVICES_ASKED_MAX)
		return false;
	found = lb_service_find(s->snapshot->match, &key.dst, key.proto, ntohs(key.dport_be));
	b->last = b->n_asked++;
	b->questions[b->last] = question_of(&words, s->is_v6[i]);
	b->answers[b->last] = answer_of(s, found, key.proto);
	return true;
}

static bool __attribute__((noinline))
is_martian_after_all(const struct dp_stages *s, unsigned int i)
{
	const struct lb_flow_key key = key_of(s, i);

	return dp_snapshot_is_martian(s->snapshot, &key.src, &key.dst);
}

static void __attribute__((noinline))
keep_key_of(const struct dp_stages *s, unsigned int i, uint32_t ref)
{
	const struct lb_flow_key key = key_of(s, i);

	lb_flow_keep(s->worker->flows, ref, &key);
}

/*
 * Whether a SYN begins a flow where its service's table says, and nothing is done to it.
 *
 * @return what its service says; NULL: it does not.
 */
static inline const struct answer *
may_begin(const struct dp_stages *s, struct beginning *b, unsigned int i, bool is_v6,
	const struct lb_martian_filter *hosts)
{
	const struct lb_flow_words words = words_of(s, i, is_v6);
	const struct answer *answer;

	if (unlikely(!is_same(&b->questions[b->last], &words, is_v6)) && !ask_at_once(s, b, i))
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
	struct beginning *b, const struct at_hand *at_hand, unsigned int i, bool is_v6)
{
	struct lb_flow_table *flows = at_hand->flows;
	const struct lb_flow_hash *hash = &at_hand->decisions[i].hash;
	const struct lb_flow_place place =
		lb_flow_place_of(flows, s->buckets[i], s->tags[i], hash->pick);
	const struct answer *answer;
	uint32_t slot;
	uint32_t ref;
	uint32_t id;

	if (unlikely(lb_flow_find_in_both(flows, &place, at_hand->tick) != LB_FLOW_NONE))
		return false;
	answer = may_begin(s, b, i, is_v6, &at_hand->hosts);
	if (unlikely(answer == NULL))
		return false;
	slot = lb_picker_slot(answer->picker, pick_of(s, i, is_v6));
	id = answer->ids[lb_picker_backend(answer->picker, slot)];
	s->burst->decisions[i].backend = id;
	prefetch_backend(at_hand->lines, id, is_v6);
	ref = lb_flow_insert_at(flows, &place, id, LB_FLOW_SYN,
		lb_usual_read_seq(ip_of(s, i), is_v6), at_hand->tick);
	if (unlikely(flows->keys != NULL))
		keep_key_of(s, i, ref);
	dp_count(&at_hand->counts[id].flows, 1);
	s->is_begun[i] = true;
	return true;
}

/*
 * Begin flows, from one packet on, up to the first that begins none here.
 *
 * @return that packet's index.
 */
static unsigned int __attribute__((noinline))
begin_flows(struct dp_stages *s, struct beginning *b, unsigned int i)
{
	const struct at_hand at_hand = {
		.flows = s->worker->flows,
		.decisions = s->burst->decisions,
		.counts = s->worker->backends,
		.lines = backend_lines(s),
		.hosts = s->snapshot->hosts,
		.tick = b->tick,
	};
	const unsigned int end = s->first_odd;

	if (!s->has_begun) {
		memset(s->is_begun, 0, sizeof(s->is_begun));
		s->has_begun = true;
		b->questions[0] = (struct question){{0, 0}, 0, 0};
		b->n_asked = 0;
		b->last = 0;
	}
	for (; i < end && at_hand.decisions[i].event == LB_FLOW_SYN; i++) {
		prefetch_syns(s, 1);
		if (unlikely(!(s->is_v6[i] ? begin_known(s, b, &at_hand, i, true)
					   : begin_known(s, b, &at_hand, i, false))))
			break;
	}
	return i;
}

/* @return the first from i on that follows no entry unasked. */
static inline unsigned int
follow_entries(const struct following *f, unsigned int i, bool is_all_v4)
{
	const struct dp_stages *s = f->stages;
	struct dp_decision *decisions = s->burst->decisions;
	struct lb_flow_bucket *buckets = s->worker->flows->buckets;
	const unsigned int end = s->first_odd;

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

unsigned int
dp_usual_follow_known(struct dp_stages *s)
{
	const unsigned int n = s->burst->n;
	struct following f;
	struct beginning b;
	unsigned int next;
	unsigned int i;

	/* Times never go back. */
	if (unlikely(s->burst->now_ns[n - 1] != s->burst->now_ns[0]))
		return 0;
	begin_following(s, &f);
	b.tick = f.tick;
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
dp_usual_say_begun(struct dp_stages *s, unsigned int i)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	struct dp_decision *d = &s->burst->decisions[i];

	d->service = snapshot->backends[d->backend].service;
	d->slot = lb_picker_slot(snapshot->services[d->service].picker,
		pick_of(s, i, s->is_v6[i]));
	d->flow = DP_FLOW_MISS;
	d->is_new_flow = true;
}

/* Whether nothing is left to decide of a packet. */
static inline bool
is_begun(const struct dp_stages *s, unsigned int i)
{
	return unlikely(s->has_begun) && s->is_begun[i];
}

unsigned int
dp_usual_find(struct dp_stages *s, unsigned int from)
{
	const struct lb_flow_table *flows = s->worker->flows;
	struct dp_decision *decisions = s->burst->decisions;
	const uint32_t tick = lb_flow_tick(flows, s->burst->now_ns[0]);
	const unsigned int n = s->burst->n;
	const struct backend_lines lines = backend_lines(s);
	struct asking asking;
	uint32_t asked_ticks[LB_FLOW_N_EVENTS];
	unsigned int n_usual = from;

	asking.last = (struct question){{0, 0}, 0, 0};
	asking.n = 0;
	count_asked_ticks(s, asked_ticks);
	for (unsigned int i = from; i < n; i++) {
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
		rest = lb_flow_find_rest(flows, s->buckets[i], s->tags[i], d->hash.pick, tick);
		s->rests[i] = rest;
		if (likely(rest != NULL)) {
			prefetch_backend(lines, lb_flow_backend_of(*rest), s->is_v6[i]);
			/* Its last packet has been asked about. */
			if (likely(lb_flow_ticks_since_seen(*rest, tick) <
				    asked_ticks[d->event]))
				continue;
		} else if (d->event != LB_FLOW_SYN) {
			const struct lb_flow_place place = place_of(s, i);

			lb_flow_prefetch_second(flows, &place);
		} else {
			prefetch_syns(s, 1);
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

unsigned int
dp_usual_follow(struct dp_stages *s, unsigned int from)
{
	struct dp_decision *decisions = s->burst->decisions;
	const uint64_t *now_ns = s->burst->now_ns;
	const uint64_t first_ns = now_ns[0];
	const uint32_t tick = lb_flow_tick(s->worker->flows, first_ns);
	const unsigned int n = s->burst->n;
	unsigned int i;

	for (i = from; i < n && s->is_usual[i] && now_ns[i] == first_ns; i++)
		if (unlikely(!is_begun(s, i) &&
			     (s->rests[i] == NULL ||
				     !follow(s, &decisions[i], s->rests[i], tick))))
			break;
	return i;
}

/* Begin a flow that has a slot. @return whether it is decided. */
static inline bool
begin_flow(struct dp_stages *s, unsigned int i, const struct lb_flow_place *place,
	uint32_t tick)
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
	prefetch_backend(backend_lines(s), d->backend, s->is_v6[i]);
	ref = lb_flow_insert_at(worker->flows, place, d->backend, (enum lb_flow_event)d->event,
		is_syn ? lb_usual_read_seq(ip_of(s, i), s->is_v6[i]) : 0, tick);
	if (unlikely(worker->flows->keys != NULL))
		keep_key_of(s, i, ref);
	dp_count(&worker->backends[d->backend].flows, 1);
	return true;
}

/* One of the burst's later ones; rest is its entry's, NULL where it is to be looked for. */
static inline bool
decide(struct dp_stages *s, unsigned int i, uint64_t *rest, uint32_t tick)
{
	struct lb_flow_table *flows = s->worker->flows;
	struct dp_decision *d = &s->burst->decisions[i];

	if (is_begun(s, i))
		return true;
	if (rest == NULL) {
		const struct lb_flow_place place = place_of(s, i);
		const uint32_t ref = lb_flow_find_in_both(flows, &place, tick);

		if (likely(ref == LB_FLOW_NONE))
			return begin_flow(s, i, &place, tick);
		d->slot = DP_NONE;
		rest = lb_flow_rest(flows, ref);
		prefetch_backend(backend_lines(s), lb_flow_backend_of(*rest), s->is_v6[i]);
	}
	return follow(s, d, rest, tick);
}

unsigned int
dp_usual_decide(struct dp_stages *s, unsigned int from, bool *is_stale)
{
	const struct dp_decision *decisions = s->burst->decisions;
	const uint64_t *now_ns = s->burst->now_ns;
	const uint32_t tick = lb_flow_tick(s->worker->flows, now_ns[from]);
	const unsigned int n = s->burst->n;
	bool has_moved = *is_stale;
	unsigned int i;

	for (i = from; i < n && s->is_usual[i] && now_ns[i] == now_ns[from]; i++) {
		if (unlikely(!decide(s, i, has_moved ? NULL : s->rests[i], tick)))
			break;
		has_moved |= decisions[i].is_new_flow;
	}
	*is_stale = has_moved;
	return i;
}

void
dp_usual_leave(struct dp_stages *s, unsigned int i)
{
	struct dp_burst *burst = s->burst;
	struct dp_decision *d = &burst->decisions[i];

	if (d->service == DP_NONE) {
		uint32_t found;

		lb_usual_read_key(ip_of(s, i), s->is_v6[i], &s->keys[i]);
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
}
