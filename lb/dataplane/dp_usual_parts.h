/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DP_USUAL_PARTS_H
#define DP_USUAL_PARTS_H

/**
 * @file
 * What the files of the short way (dp_usual.h) share: a usual packet's headers, its flow's
 * key and place, what it asks of the table of services and what it is answered, and the lines
 * that it will read.
 */

#include <netinet/in.h>

#include "dp_stages.h"
#include "lb_bytes.h"
#include "lb_hash_flow.h"
#include "lb_usual.h"

#define DP_TAG_BYTES 4u

/* The IP header of a usual packet's frame. */
static inline const uint8_t *
dp_usual_ip(const struct dp_stages *s, size_t i)
{
	const uint8_t *frame = rte_pktmbuf_mtod(s->burst->pkts[i], const uint8_t *);

	return frame + LB_USUAL_IP_OFFSET + (unlikely(s->is_tagged[i]) ? DP_TAG_BYTES : 0);
}

static inline struct lb_flow_place
dp_usual_place(const struct dp_stages *s, size_t i)
{
	return lb_flow_place_of(s->worker->flows, s->buckets[i], s->tags[i],
		s->burst->decisions[i].hash.print);
}

/* What chooses the slot of a packet, if its service's affinity is the 5-tuple. Over IPv6 its
 * key has been read. */
static inline uint64_t
dp_usual_pick(const struct dp_stages *s, size_t i, bool is_v6)
{
	return is_v6 ? lb_hash_pick_v6(&s->snapshot->seeded, &s->keys[i])
		     : lb_hash_pick_v4(&s->snapshot->seeded, &s->v4[i]);
}

/*
 * Start loading the second buckets of SYNs, which begin flows, but for few: of the next ones.
 * All at once are more lines than there are places for on their way. Not inline, what it calls
 * would be left out: for all that the compiler sees, a prefetch does nothing.
 */
static inline void __attribute__((always_inline))
dp_prefetch_syns(struct dp_stages *s, size_t n)
{
	for (; n > 0 && s->n_syns_asked < s->n_syns; n--) {
		const struct lb_flow_place place =
			dp_usual_place(s, s->syns[s->n_syns_asked++]);

		lb_flow_prefetch_second_near(s->worker->flows, &place);
	}
}

/* What a packet asks of the table of services. */
struct dp_wanted {
	uint64_t dst[2];
	uint64_t rest; /* protocol and port, as in a key; 0 is none */
	uint64_t v4;   /* of an IPv4 address all that in one word; 0 is none */
};

/* The second word of an IPv4 address has it in its upper half. */
static inline uint64_t
dp_wanted_v4_word(const struct lb_flow_words *words)
{
	return (words->word[3] & ~(uint64_t)UINT32_MAX) | words->word[4] >> 16;
}

static inline bool
dp_wanted_is_same(const struct dp_wanted *question, const struct lb_flow_words *words,
	bool is_v6)
{
	if (!is_v6)
		return question->v4 == dp_wanted_v4_word(words);
	return ((question->dst[0] ^ words->word[2]) | (question->dst[1] ^ words->word[3]) |
		       (question->rest ^ words->word[4] >> 16)) == 0;
}

static inline struct dp_wanted
dp_wanted_of(const struct lb_flow_words *words, bool is_v6)
{
	if (!is_v6)
		return (struct dp_wanted){{0, 0}, 0, dp_wanted_v4_word(words)};
	return (struct dp_wanted){{words->word[2], words->word[3]}, words->word[4] >> 16, 0};
}

static inline bool
dp_wanted_is(const struct dp_wanted *a, const struct dp_wanted *b)
{
	return a->dst[0] == b->dst[0] && a->dst[1] == b->dst[1] && a->rest == b->rest &&
	       a->v4 == b->v4;
}

/* The protocol and the destination port, in host order, of a key. */
static inline uint8_t
dp_wanted_proto(const struct lb_flow_words *words)
{
	return (uint8_t)(words->word[4] >> 32);
}

static inline uint16_t
dp_wanted_port(const struct lb_flow_words *words)
{
	return lb_bytes_swap16((uint16_t)(words->word[4] >> 16));
}

/* Whether nothing but its flow's key and entry says where a packet of what was found goes. */
static inline bool
dp_heard_goes_by_flow(const struct dp_snapshot *snapshot, uint32_t found, uint8_t proto)
{
	const struct dp_service *service;

	if (unlikely(found == LB_SERVICE_NONE))
		return false;
	if (likely((found & DP_MATCH_MORE) == 0 || proto == IPPROTO_TCP))
		return true;
	service = &snapshot->services[found & DP_MATCH_PLACE];
	return service->quic == NULL && service->refused == 0;
}

/* What was heard last: of none, of a service that is no flow's, or of one that is. */
struct dp_heard {
	uint32_t service; /* DP_NONE: of none of those */
	/* Its table, where new flows go as their hash says and nothing is done to their packets
	 * but to SYNs, maybe; NULL: they do not. */
	const struct lb_picker *picker;
	const uint32_t *ids; /* picker's result -> backend id */
	bool begins_by_syn;  /* nor is anything to these */
};

static inline struct dp_heard
dp_heard_of(const struct dp_stages *s, uint32_t found, uint8_t proto)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	const struct dp_service *service;

	if (!dp_heard_goes_by_flow(snapshot, found, proto))
		return (struct dp_heard){.service = DP_NONE};
	service = &snapshot->services[found & DP_MATCH_PLACE];
	if (service->affinity != LB_AFFINITY_5_TUPLE)
		return (struct dp_heard){.service = found & DP_MATCH_PLACE};
	return (struct dp_heard){
		.service = found & DP_MATCH_PLACE,
		.picker = service->picker,
		.ids = service->ids,
		.begins_by_syn = service->mss_clamp == 0,
	};
}

/* Where backends' lines lie. */
struct dp_backend_lines {
	const struct dp_worker_backend *own;
	/* Of what comes over IPv4, and over IPv6; NULL: the worker's own say all of it. */
	const struct dp_backend *shared[2];
};

static inline struct dp_backend_lines
dp_backend_lines(const struct dp_stages *s)
{
	const struct dp_snapshot *snapshot = s->snapshot;
	const bool is_short = snapshot->is_plain && !s->worker->has_refreshed;

	return (struct dp_backend_lines){
		.own = s->worker->backends,
		.shared[false] =
			is_short && !snapshot->has_long[false] ? NULL : snapshot->backends,
		.shared[true] =
			is_short && !snapshot->has_long[true] ? NULL : snapshot->backends,
	};
}

/*
 * An id may be beyond the backends that there are: nothing is read there. For VXLAN over IPv6
 * the second line of what is shared comes when it is read.
 */
static inline void
dp_prefetch_backend(const struct dp_backend_lines *lines, uint32_t id, bool is_v6)
{
	__builtin_prefetch(&lines->own[id], 1, DP_TO_L2);
	if (lines->shared[is_v6] != NULL) {
		const uintptr_t shared =
			(uintptr_t)lines->shared[is_v6] + id * sizeof(struct dp_backend);

		/* NOLINTNEXTLINE(performance-no-int-to-ptr): no pointer into an array, maybe */
		__builtin_prefetch((const void *)shared, 0, DP_TO_L2);
	}
}

/*
 * For how many ticks, up to now, packets of flows were asked about as they would be now, by
 * event. Not where a service of datagrams looks at more than their flow; nor does a SYN follow
 * its flow's entry.
 */
static inline void
dp_usual_asked_ticks(const struct dp_stages *s, uint32_t ticks[static LB_FLOW_N_EVENTS])
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

/* The key of a packet's flow; over IPv6 it has been read. */
static inline struct lb_flow_words
dp_usual_words(const struct dp_stages *s, size_t i, bool is_v6)
{
	const struct lb_flow_v4 *v4 = &s->v4[i];

	if (is_v6)
		return s->keys[i];
	return (struct lb_flow_words){{0, lb_usual_mapped((uint32_t)v4->addresses), 0,
		lb_usual_mapped((uint32_t)(v4->addresses >> 32)), v4->rest}};
}

static inline struct lb_flow_key
dp_usual_key(const struct dp_stages *s, size_t i)
{
	const struct lb_flow_words words = dp_usual_words(s, i, s->is_v6[i]);
	struct lb_flow_key key;

	lb_usual_store_key(&words, &key);
	return key;
}

/* Keep a packet's key with its flow's entry. */
void dp_usual_keep_key(const struct dp_stages *s, size_t i, uint32_t ref);

#endif
