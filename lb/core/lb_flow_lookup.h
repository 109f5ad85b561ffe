/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LB_FLOW_LOOKUP_H
#define LB_FLOW_LOOKUP_H

/**
 * @file
 * The inside of a flow table, for what each packet does: locate its flow, find it, touch it.
 * lb_flow_table.h has what it all means, and what others may do.
 *
 * All of it is inline: a burst's packets then overlap, instead of each waiting for the one
 * before to come back from four calls.
 */

#include <assert.h>
#include <stdalign.h>
#ifdef __SSE2__
#	include <immintrin.h>
#endif

#include "lb_compiler.h"
#include "lb_flow_table.h"
#include "lb_limits.h"
#include "lb_mul.h"

#define LB_FLOW_WAYS 4u

/** The three bits of state. 0 is free, so that zeroed memory is an empty table. */
enum lb_flow_state {
	LB_FLOW_FREE,
	LB_FLOW_TCP_NEW,
	LB_FLOW_TCP,
	LB_FLOW_TCP_CLOSING,
	LB_FLOW_UDP_NEW,
	LB_FLOW_UDP,
	LB_FLOW_N_STATES
};

/*
 * An entry is two words. The tag word is nothing but identity, so that one plain comparison
 * tells a flow from 2^64 others; the rest word holds the remaining 16 bits of identity at
 * its top and all that changes below:
 *
 *	tag   63..16  place, its low 48 bits      15..0  print, bits 15..0
 *	rest  63..48  print, bits 31..16           46..24 last seen, in ticks
 *	      23..4   backend id                  3      made by a SYN       2..0 state
 *
 * Bit 47 of the first rest word is the bucket's own: flows of it have gone to their second
 * buckets.
 *
 * The words are arrays inside the line, not pairs: the four tags lie side by side, and two
 * vectors compare them.
 */
#define LB_FLOW_PRINT_SHIFT      48
#define LB_FLOW_SEEN_SHIFT       24
#define LB_FLOW_SEEN_MASK        UINT32_C(0x7fffff)
#define LB_FLOW_OVERFLOWED_SHIFT 47
#define LB_FLOW_OVERFLOWED       (UINT64_C(1) << LB_FLOW_OVERFLOWED_SHIFT)
#define LB_FLOW_BACKEND_SHIFT    4
#define LB_FLOW_BACKEND_MASK     (LB_BACKEND_IDS_MAX - 1)
#define LB_FLOW_BY_SYN           UINT64_C(8)
#define LB_FLOW_STATE_MASK       UINT64_C(7)

static_assert(1u << LB_FLOW_BACKEND_BITS == LB_BACKEND_IDS_MAX, "a backend id fits its field");
static_assert(LB_FLOW_BACKEND_SHIFT + LB_FLOW_BACKEND_BITS == LB_FLOW_SEEN_SHIFT,
	"fields must not overlap");
static_assert((uint64_t)LB_FLOW_SEEN_MASK << LB_FLOW_SEEN_SHIFT < LB_FLOW_OVERFLOWED,
	"fields must not overlap");
static_assert(LB_FLOW_N_STATES <= LB_FLOW_STATE_MASK + 1, "a state fits its field");

struct lb_flow_bucket {
	alignas(LB_CACHE_LINE) uint64_t tag[LB_FLOW_WAYS];
	uint64_t rest[LB_FLOW_WAYS];
};

static_assert(sizeof(struct lb_flow_bucket) == LB_CACHE_LINE, "a lookup must touch one line");

/* The first line is constant after init; the second is written by inserts and sweeps. */
struct lb_flow_table {
	alignas(LB_CACHE_LINE) struct lb_flow_bucket *buckets;
	uint32_t *syn_seq; /* one an entry; meaningful where BY_SYN is set */
	uint32_t timeout_ticks[LB_FLOW_N_STATES]; /* a free entry's is the shortest of all */
	uint8_t tick_shift;                       /* a tick is 2^tick_shift ns */
	uint8_t n_buckets_log2;                   /* 17..28 */
	uint8_t bucket_shift;                     /* 64 less that */
	uint8_t period_log2;  /* the whole table is swept in 2^period_log2 ticks */
	uint32_t bucket_mask; /* buckets - 1 */

	alignas(LB_CACHE_LINE) uint64_t last_tick; /* of the last expire; does not wrap */
	uint64_t sweep_rest;                       /* of a bucket, in 2^-period_log2 */
	uint32_t sweep_bucket;                     /* the next to sweep */
	uint32_t longest_ticks;
	uint32_t n_crowded;               /* live entries from which on it is not roomy */
	struct lb_flow_key *keys;         /* one an entry; NULL: they are not kept */
	struct lb_flow_table_stats stats; /* but inserted, which follows from the others */
};

static_assert(offsetof(struct lb_flow_table, last_tick) == LB_CACHE_LINE,
	"what lookups read must fit one line");

/** What a packet makes of its flow: by state and event. */
extern const uint8_t lb_flow_next_state[LB_FLOW_N_STATES][LB_FLOW_N_EVENTS];

/** Where a flow may be, and how its entry looks. */
struct lb_flow_place {
	uint32_t bucket; /**< the first choice */
	uint32_t second; /**< where it goes when that has no room */
	uint64_t tag;
	uint64_t rest; /**< the top 16 bits alone */
};

/**
 * From an entry's one bucket to its other, as its tag says; never 0. The lowest bits of a place
 * alone may be the same for many keys that differ little.
 */
static inline uint32_t
lb_flow_distance(const struct lb_flow_table *table, uint64_t tag)
{
	return ((uint32_t)(tag >> 16 ^ tag >> 36) & table->bucket_mask) | 1;
}

/** lb_flow_locate() of a flow that has been located: of its first bucket, tag and print. */
static inline struct lb_flow_place
lb_flow_place_of(const struct lb_flow_table *table, uint32_t bucket, uint64_t tag,
	uint64_t print)
{
	return (struct lb_flow_place){
		.bucket = bucket,
		.second = bucket ^ lb_flow_distance(table, tag),
		.tag = tag,
		.rest = (print >> 16 & 0xffff) << LB_FLOW_PRINT_SHIFT,
	};
}

/** Whether an entry's rest word has what of a print its tag word has not. */
static inline bool
lb_flow_has_print(uint64_t rest, uint64_t print)
{
	return (rest ^ print << (LB_FLOW_PRINT_SHIFT - 16)) >> LB_FLOW_PRINT_SHIFT == 0;
}

/**
 * Locate a flow by its hash, which nobody outside can aim. The bucket is the top bits of the
 * place, 17 at least, and the tag its low 48: together, all 64 of them. The second bucket is
 * the first and a distance that the tag says, which is never 0: whichever of the two an entry
 * lies in, that bucket and the tag tell the first.
 */
static inline struct lb_flow_place
lb_flow_locate(const struct lb_flow_table *table, const struct lb_flow_hash *hash)
{
	return lb_flow_place_of(table, (uint32_t)(hash->place >> table->bucket_shift),
		hash->place << 16 | (hash->print & 0xffff), hash->print);
}

/** Start loading what a lookup reads. */
static inline void
lb_flow_prefetch(const struct lb_flow_table *table, const struct lb_flow_place *place)
{
	__builtin_prefetch(&table->buckets[place->bucket]);
}

/**
 * Start loading what is read besides of a flow that is not in its first bucket. To the second
 * level of cache, as the first has too few places for lines on their way.
 */
static inline void
lb_flow_prefetch_second(const struct lb_flow_table *table, const struct lb_flow_place *place)
{
	__builtin_prefetch(&table->buckets[place->second], 0, 2);
}

/** The same to the first level, for one that is asked for among others, before it is read. */
static inline void
lb_flow_prefetch_second_near(const struct lb_flow_table *table,
	const struct lb_flow_place *place)
{
	__builtin_prefetch(&table->buckets[place->second]);
}

/** Start loading where the sequence number of a flow's SYN goes, in either of its buckets. */
static inline void
lb_flow_prefetch_both_syns(const struct lb_flow_table *table, const struct lb_flow_place *place)
{
	__builtin_prefetch(&table->syn_seq[(size_t)place->bucket * LB_FLOW_WAYS], 1, 2);
	__builtin_prefetch(&table->syn_seq[(size_t)place->second * LB_FLOW_WAYS], 1, 2);
}

/** Keep the key of a flow that has just been inserted. @param ref  LB_FLOW_NONE is allowed. */
static inline void
lb_flow_keep(struct lb_flow_table *table, uint32_t ref, const struct lb_flow_key *key)
{
	if (table->keys != NULL && ref != LB_FLOW_NONE)
		table->keys[ref] = *key;
}

/** Which of four tags are the one wanted, as bits: the plain twin of the one below. */
static inline uint32_t
lb_flow_match_plainly(const uint64_t tags[static LB_FLOW_WAYS], uint64_t wanted)
{
	uint32_t ways = 0;

	for (uint32_t way = 0; way < LB_FLOW_WAYS; way++)
		ways |= (uint32_t)(tags[way] == wanted) << way;
	return ways;
}

/**
 * Which of four tags are the one wanted, as bits. Without branches, for a flow is in any way
 * with the same probability and a jump would be mispredicted.
 *
 * @param tags  As a bucket has them: 32-byte aligned.
 */
static inline uint32_t
lb_flow_match(const uint64_t tags[static LB_FLOW_WAYS], uint64_t wanted)
{
#ifdef __AVX2__
	const __m256i four = _mm256_cmpeq_epi64(_mm256_load_si256((const __m256i *)tags),
		_mm256_set1_epi64x((int64_t)wanted));

	return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(four));
#elif defined(__SSE4_1__)
	const __m128i both = _mm_set1_epi64x((int64_t)wanted);
	const __m128i low = _mm_cmpeq_epi64(_mm_load_si128((const __m128i *)tags), both);
	const __m128i high = _mm_cmpeq_epi64(_mm_load_si128((const __m128i *)tags + 1), both);

	return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_packs_epi32(low, high)));
#elif defined(__SSE2__)
	const __m128i both = _mm_set1_epi64x((int64_t)wanted);
	const __m128 low =
		_mm_castsi128_ps(_mm_cmpeq_epi32(_mm_load_si128((const __m128i *)tags), both));
	const __m128 high = _mm_castsi128_ps(
		_mm_cmpeq_epi32(_mm_load_si128((const __m128i *)tags + 1), both));
	/* Halves of 32 bits were compared: the lower ones of all four, and the upper ones. */
	const __m128 lower = _mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0));
	const __m128 upper = _mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1));

	return (uint32_t)_mm_movemask_ps(_mm_and_ps(lower, upper));
#else
	return lb_flow_match_plainly(tags, wanted);
#endif
}

static inline enum lb_flow_state
lb_flow_state_of(uint64_t rest)
{
	return (enum lb_flow_state)(rest & LB_FLOW_STATE_MASK);
}

static inline uint32_t
lb_flow_tick(const struct lb_flow_table *table, uint64_t now_ns)
{
	return (uint32_t)(now_ns >> table->tick_shift) & LB_FLOW_SEEN_MASK;
}

static inline uint32_t
lb_flow_ticks_since_seen(uint64_t rest, uint32_t tick)
{
	return (tick - (uint32_t)(rest >> LB_FLOW_SEEN_SHIFT)) & LB_FLOW_SEEN_MASK;
}

static inline bool
lb_flow_is_timed_out(const struct lb_flow_table *table, uint64_t rest, uint32_t tick)
{
	return lb_flow_ticks_since_seen(rest, tick) >
	       table->timeout_ticks[lb_flow_state_of(rest)];
}

static inline uint64_t *
lb_flow_rest(const struct lb_flow_table *table, uint32_t ref)
{
	return &table->buckets[ref / LB_FLOW_WAYS].rest[ref % LB_FLOW_WAYS];
}

static inline uint64_t
lb_flow_with_seen(uint64_t rest, uint32_t tick)
{
	return (rest & ~((uint64_t)LB_FLOW_SEEN_MASK << LB_FLOW_SEEN_SHIFT)) |
	       (uint64_t)tick << LB_FLOW_SEEN_SHIFT;
}

/**
 * A live entry of the flow in one bucket, or LB_FLOW_NONE. Of entries with its tag, all but one
 * at most are free, timed out, or of another flow, once in 2^64.
 */
static inline uint32_t
lb_flow_find_in(const struct lb_flow_table *table, const struct lb_flow_place *place,
	uint32_t bucket_index, uint32_t tick)
{
	const struct lb_flow_bucket *bucket = &table->buckets[bucket_index];
	uint32_t ways = lb_flow_match(bucket->tag, place->tag);

	for (; ways != 0; ways &= ways - 1) {
		const uint32_t way = (uint32_t)__builtin_ctz(ways);
		const uint64_t rest = bucket->rest[way];

		if (likely((rest ^ place->rest) >> LB_FLOW_PRINT_SHIFT == 0 &&
			    lb_flow_state_of(rest) != LB_FLOW_FREE &&
			    !lb_flow_is_timed_out(table, rest, tick)))
			return bucket_index * LB_FLOW_WAYS + way;
	}
	return LB_FLOW_NONE;
}

/** An entry's rest word after a packet of its flow, which gave it this state. */
static inline uint64_t
lb_flow_with_state(uint64_t rest, uint32_t state, uint32_t tick)
{
	const uint64_t changes =
		(uint64_t)LB_FLOW_SEEN_MASK << LB_FLOW_SEEN_SHIFT | LB_FLOW_STATE_MASK;

	return (rest & ~changes) | (uint64_t)tick << LB_FLOW_SEEN_SHIFT | state;
}

static inline uint64_t
lb_flow_touched(uint64_t rest, enum lb_flow_event event, uint32_t tick)
{
	return lb_flow_with_state(rest, lb_flow_next_state[lb_flow_state_of(rest)][event],
		tick);
}

/** The rest word of a live entry of the flow in its first bucket; otherwise NULL. */
static inline uint64_t *
lb_flow_find_rest(const struct lb_flow_table *table, uint32_t bucket_index, uint64_t tag,
	uint64_t print, uint32_t tick)
{
	struct lb_flow_bucket *bucket = &table->buckets[bucket_index];
	uint32_t ways = lb_flow_match(bucket->tag, tag);

	for (; ways != 0; ways &= ways - 1) {
		uint64_t *rest = &bucket->rest[(uint32_t)__builtin_ctz(ways)];

		if (likely(lb_flow_has_print(*rest, print) &&
			    lb_flow_state_of(*rest) != LB_FLOW_FREE &&
			    !lb_flow_is_timed_out(table, *rest, tick)))
			return rest;
	}
	return NULL;
}

/**
 * A live entry of the flow in its first bucket, which has most flows; otherwise LB_FLOW_NONE,
 * and it may be in its second.
 */
static inline uint32_t
lb_flow_find_first(const struct lb_flow_table *table, const struct lb_flow_place *place,
	uint64_t now_ns)
{
	return lb_flow_find_in(table, place, place->bucket, lb_flow_tick(table, now_ns));
}

/** A live entry of the flow in either of its buckets, or LB_FLOW_NONE. */
static inline uint32_t
lb_flow_find_in_both(const struct lb_flow_table *table, const struct lb_flow_place *place,
	uint32_t tick)
{
	const uint32_t ref = lb_flow_find_in(table, place, place->bucket, tick);

	if (likely(ref != LB_FLOW_NONE ||
		    (table->buckets[place->bucket].rest[0] & LB_FLOW_OVERFLOWED) == 0))
		return ref;
	return lb_flow_find_in(table, place, place->second, tick);
}

/** lb_flow_find() of a flow that has been located. */
static inline uint32_t
lb_flow_find_at(const struct lb_flow_table *table, const struct lb_flow_place *place,
	uint64_t now_ns)
{
	return lb_flow_find_in_both(table, place, lb_flow_tick(table, now_ns));
}

static inline uint32_t
lb_flow_backend_of(uint64_t rest)
{
	return (uint32_t)(rest >> LB_FLOW_BACKEND_SHIFT) & LB_FLOW_BACKEND_MASK;
}

/**
 * How readily an entry gives way to a new flow: not at all where it is confirmed; unconfirmed,
 * the more the older it is, by its age in ticks and one; most where its time is over, or where
 * there is none.
 */
#define LB_FLOW_NOT_AT_ALL UINT32_C(0)
#define LB_FLOW_DEAD       (UINT32_C(1) << 24)
#define LB_FLOW_UNUSED     (LB_FLOW_DEAD + 1)

static_assert(LB_FLOW_SEEN_MASK + 1 < LB_FLOW_DEAD && LB_FLOW_DEAD == 1u << (31 - 7),
	"no age is as good as dead");

/*
 * A way's rank: its readiness, and among equal ones the first's is the greatest. As a number
 * with a sign it is not negative, so that vectors compare it.
 */
#define LB_FLOW_RANK(readiness, way) ((readiness)*LB_FLOW_WAYS + (LB_FLOW_WAYS - 1 - (way)))

/** The greatest rank of a bucket's ways: the plain twin of the one below. */
static inline uint32_t
lb_flow_rank_plainly(const struct lb_flow_table *table,
	const uint64_t rests[static LB_FLOW_WAYS], uint32_t tick)
{
	uint32_t best = 0;

	for (uint32_t way = 0; way < LB_FLOW_WAYS; way++) {
		const enum lb_flow_state state = lb_flow_state_of(rests[way]);
		const uint32_t age = lb_flow_ticks_since_seen(rests[way], tick);
		const bool is_new = state == LB_FLOW_TCP_NEW || state == LB_FLOW_UDP_NEW;
		uint32_t readiness = is_new ? age + 1 : LB_FLOW_NOT_AT_ALL;

		if (age > table->timeout_ticks[state])
			readiness = LB_FLOW_DEAD;
		if (state == LB_FLOW_FREE)
			readiness = LB_FLOW_UNUSED;
		if (LB_FLOW_RANK(readiness, way) > best)
			best = LB_FLOW_RANK(readiness, way);
	}
	return best;
}

/*
 * The ways of a new flow's two buckets: its first one's are before its second one's, and what
 * is dead or unused there is before whatever is here.
 */
#define LB_FLOW_CHOICES (2 * LB_FLOW_WAYS)
#define LB_FLOW_CHOICE(readiness, way)                                                         \
	((readiness)*LB_FLOW_CHOICES + (LB_FLOW_CHOICES - 1 - (way)))

/** The greatest choice of two buckets' ways: the plain twin of the one below. */
static inline uint32_t
lb_flow_choose_plainly(const struct lb_flow_table *table,
	const uint64_t first[static LB_FLOW_WAYS], const uint64_t second[static LB_FLOW_WAYS],
	uint32_t tick)
{
	const uint32_t a = lb_flow_rank_plainly(table, first, tick);
	const uint32_t b = lb_flow_rank_plainly(table, second, tick);
	const uint32_t is_second =
		a / LB_FLOW_WAYS < LB_FLOW_DEAD && b / LB_FLOW_WAYS > a / LB_FLOW_WAYS;
	const uint32_t rank = is_second ? b : a;
	const uint32_t way = LB_FLOW_WAYS * is_second + ~rank % LB_FLOW_WAYS;

	return LB_FLOW_CHOICE(rank / LB_FLOW_WAYS, way);
}

#ifdef __SSE2__
static inline __m128i
lb_flow_greater(__m128i a, __m128i b)
{
#	ifdef __SSE4_1__
	return _mm_max_epi32(a, b);
#	else
	const __m128i is_a = _mm_cmpgt_epi32(a, b);

	return _mm_or_si128(_mm_and_si128(is_a, a), _mm_andnot_si128(is_a, b));
#	endif
}

static inline uint32_t
lb_flow_greatest(__m128i four)
{
	four = lb_flow_greater(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
	four = lb_flow_greater(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
	return (uint32_t)_mm_cvtsi128_si32(four);
}

static_assert(LB_FLOW_TCP_NEW == 1 && LB_FLOW_UDP_NEW == 4 && LB_FLOW_UDP == 5 &&
		      LB_FLOW_N_STATES == 6,
	"timeouts 1 to 4 are all there are: both of UDP are one");

/* The timeouts of four states; of free ones anything. */
static inline __m128i
lb_flow_timeouts(const struct lb_flow_table *table, __m128i states)
{
#	ifdef __SSSE3__
	const __m128i all = _mm_loadu_si128((const __m128i *)&table->timeout_ticks[1]);
	const __m128i spread = _mm_shuffle_epi8(states,
		_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
	const __m128i which = _mm_min_epu8(spread, _mm_set1_epi8(LB_FLOW_UDP_NEW));

	/* Bytes 4 * state - 4 to 4 * state - 1: there is no timeout 0. */
	return _mm_shuffle_epi8(all,
		_mm_add_epi8(_mm_slli_epi32(which, 2), _mm_set1_epi32(-0x00010204)));
#	else
	const uint32_t *ticks = table->timeout_ticks;

	return _mm_setr_epi32((int)ticks[_mm_extract_epi16(states, 0)],
		(int)ticks[_mm_extract_epi16(states, 2)],
		(int)ticks[_mm_extract_epi16(states, 4)],
		(int)ticks[_mm_extract_epi16(states, 6)]);
#	endif
}

/* Of a bucket's entries. */
struct lb_flow_fields {
	__m128i state;
	__m128i age;
};

/** @param rests  16-byte aligned. */
static inline struct lb_flow_fields
lb_flow_read_fields(const uint64_t rests[static LB_FLOW_WAYS], uint32_t tick)
{
	const __m128i low = _mm_load_si128((const __m128i *)rests);
	const __m128i high = _mm_load_si128((const __m128i *)rests + 1);
	const __m128i state = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low),
		_mm_castsi128_ps(high), _MM_SHUFFLE(2, 0, 2, 0)));
	const __m128i seen = _mm_castps_si128(
		_mm_shuffle_ps(_mm_castsi128_ps(_mm_srli_epi64(low, LB_FLOW_SEEN_SHIFT)),
			_mm_castsi128_ps(_mm_srli_epi64(high, LB_FLOW_SEEN_SHIFT)),
			_MM_SHUFFLE(2, 0, 2, 0)));

	return (struct lb_flow_fields){
		.state = _mm_and_si128(state, _mm_set1_epi32((int)LB_FLOW_STATE_MASK)),
		.age = _mm_and_si128(_mm_sub_epi32(_mm_set1_epi32((int)tick), seen),
			_mm_set1_epi32((int)LB_FLOW_SEEN_MASK)),
	};
}

/* The readiness of those of them that live; times 2^shift. */
static inline __m128i
lb_flow_living(const struct lb_flow_fields *fields, int shift)
{
	const __m128i readiness = _mm_add_epi32(fields->age, _mm_set1_epi32(1));
#	ifdef __SSSE3__
	/* Above 0 at those that are unconfirmed: by those a number stays, by 0 it becomes 0. */
	const __m128i is_new =
		_mm_shuffle_epi8(_mm_setr_epi8(0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
			fields->state);

	return _mm_slli_epi32(_mm_sign_epi32(readiness, is_new), shift);
#	else
	const __m128i is_new =
		_mm_or_si128(_mm_cmpeq_epi32(fields->state, _mm_set1_epi32(LB_FLOW_TCP_NEW)),
			_mm_cmpeq_epi32(fields->state, _mm_set1_epi32(LB_FLOW_UDP_NEW)));

	return _mm_slli_epi32(_mm_and_si128(readiness, is_new), shift);
#	endif
}

/* Whether any is free, or so old that it may be dead. */
static inline bool
lb_flow_has_old(const struct lb_flow_fields *fields, __m128i shortest)
{
	const __m128i is_free = _mm_cmpeq_epi32(fields->state, _mm_setzero_si128());
	const __m128i is_old = _mm_cmpgt_epi32(fields->age, shortest);

	return _mm_movemask_ps(_mm_castsi128_ps(_mm_or_si128(is_free, is_old))) != 0;
}

/** The readiness of a bucket's ways. @param rests  16-byte aligned. */
static inline __m128i
lb_flow_readiness(const struct lb_flow_table *table, const uint64_t rests[static LB_FLOW_WAYS],
	uint32_t tick)
{
	const struct lb_flow_fields fields = lb_flow_read_fields(rests, tick);
	const __m128i is_dead =
		_mm_cmpgt_epi32(fields.age, lb_flow_timeouts(table, fields.state));
	const __m128i is_free = _mm_cmpeq_epi32(fields.state, _mm_setzero_si128());
	const __m128i dead = _mm_and_si128(is_dead, _mm_set1_epi32((int)LB_FLOW_DEAD));
	const __m128i none = _mm_and_si128(is_free, _mm_set1_epi32((int)LB_FLOW_UNUSED));

	/* What is dead or free or both: the bits of DEAD are UNUSED's, too. */
	return lb_flow_greater(_mm_or_si128(dead, none), lb_flow_living(&fields, 0));
}
#endif

/**
 * The greatest rank of a bucket's ways. Without branches, which in a flood would go either way
 * by chance.
 *
 * @param rests  16-byte aligned.
 */
static inline uint32_t
lb_flow_rank(const struct lb_flow_table *table, const uint64_t rests[static LB_FLOW_WAYS],
	uint32_t tick)
{
#ifdef __SSE2__
	const __m128i readiness = lb_flow_readiness(table, rests, tick);

	return lb_flow_greatest(
		_mm_or_si128(_mm_slli_epi32(readiness, 2), _mm_setr_epi32(3, 2, 1, 0)));
#else
	return lb_flow_rank_plainly(table, rests, tick);
#endif
}

/*
 * The greatest choice where some entry may be dead or unused. Who has room at all in its first
 * bucket does not wait for its second.
 */
static inline uint32_t
lb_flow_choose_any(const struct lb_flow_table *table, const uint64_t first[static LB_FLOW_WAYS],
	const uint64_t second[static LB_FLOW_WAYS], uint32_t tick)
{
#ifdef __SSE2__
	const __m128i a = lb_flow_readiness(table, first, tick);
	const __m128i in_first = _mm_or_si128(_mm_slli_epi32(a, 3), _mm_setr_epi32(7, 6, 5, 4));
	__m128i in_second;

	/* The bit of what is dead or unused, as the sign. */
	if (_mm_movemask_ps(_mm_castsi128_ps(_mm_slli_epi32(a, 7))) != 0)
		return lb_flow_greatest(in_first);
	in_second = _mm_or_si128(_mm_slli_epi32(lb_flow_readiness(table, second, tick), 3),
		_mm_setr_epi32(3, 2, 1, 0));
	return lb_flow_greatest(lb_flow_greater(in_first, in_second));
#else
	return lb_flow_choose_plainly(table, first, second, tick);
#endif
}

/**
 * The greatest choice of two buckets' ways. Which of the two it is, no branch asks: in a flood
 * it would go either way by chance.
 *
 * @param first  16-byte aligned, as second is.
 */
static inline uint32_t
lb_flow_choose(const struct lb_flow_table *table, const uint64_t first[static LB_FLOW_WAYS],
	const uint64_t second[static LB_FLOW_WAYS], uint32_t tick)
{
#ifdef __SSSE3__
	const __m128i shortest = _mm_set1_epi32((int)table->timeout_ticks[LB_FLOW_FREE]);
	const struct lb_flow_fields a = lb_flow_read_fields(first, tick);
	struct lb_flow_fields b;

	if (lb_flow_has_old(&a, shortest))
		return lb_flow_choose_any(table, first, second, tick);
	b = lb_flow_read_fields(second, tick);
	if (lb_flow_has_old(&b, shortest))
		return lb_flow_choose_any(table, first, second, tick);
	return lb_flow_greatest(
		lb_flow_greater(_mm_or_si128(lb_flow_living(&a, 3), _mm_setr_epi32(7, 6, 5, 4)),
			_mm_or_si128(lb_flow_living(&b, 3), _mm_setr_epi32(3, 2, 1, 0))));
#else
	return lb_flow_choose_any(table, first, second, tick);
#endif
}

/** The backend of a found entry. */
static inline uint32_t
lb_flow_backend(const struct lb_flow_table *table, uint32_t ref)
{
	return lb_flow_backend_of(*lb_flow_rest(table, ref));
}

/**
 * A packet of the flow has come: it lives on, and is confirmed unless the packet is the
 * repetition of its SYN, LB_FLOW_SYN here. LB_FLOW_CLOSE gives it the closing timeout, counted
 * from its last packet, for good.
 */
static inline void
lb_flow_touch(struct lb_flow_table *table, uint32_t ref, enum lb_flow_event event,
	uint64_t now_ns)
{
	uint64_t *rest = lb_flow_rest(table, ref);

	*rest = lb_flow_touched(*rest, event, lb_flow_tick(table, now_ns));
}

static inline uint64_t
lb_flow_with_backend(uint64_t rest, uint32_t backend)
{
	assert(backend <= LB_FLOW_BACKEND_MASK);
	return (rest & ~((uint64_t)LB_FLOW_BACKEND_MASK << LB_FLOW_BACKEND_SHIFT)) |
	       (uint64_t)(backend & LB_FLOW_BACKEND_MASK) << LB_FLOW_BACKEND_SHIFT;
}

/** Of an eighth of its entries free, most lie where a move finds them. */
static inline bool
lb_flow_is_roomy(const struct lb_flow_table *table)
{
	return table->stats.live < table->n_crowded;
}

/**
 * The place for a new flow: one that nobody needs, in its first bucket, in its second, or in
 * either after one of their entries has moved to its own other one; then the oldest unconfirmed
 * one of both; last, a place of a confirmed flow, which moves to where an unconfirmed one is.
 *
 * @return it, or LB_FLOW_NONE.
 */
uint32_t lb_flow_make_place(struct lb_flow_table *table, const struct lb_flow_place *place,
	uint32_t tick);

/** Make a place free, and account for who was there. */
static inline void
lb_flow_vacate(struct lb_flow_table *table, uint32_t ref, uint32_t tick)
{
	uint64_t *rest = lb_flow_rest(table, ref);

	if (lb_flow_state_of(*rest) == LB_FLOW_FREE)
		return;
	if (lb_flow_is_timed_out(table, *rest, tick))
		table->stats.expired++;
	else
		table->stats.evicted++;
	table->stats.live--;
	*rest &= LB_FLOW_OVERFLOWED;
}

/** Of no way. */
#define LB_FLOW_NO_WAY LB_FLOW_CHOICES

/** A place for what lb_flow_choose() has none for, or none at once. @return its way. */
static inline uint32_t
lb_flow_make_way(struct lb_flow_table *table, const struct lb_flow_place *place, uint32_t tick)
{
	/* A copy, so that others need not be in memory. */
	const struct lb_flow_place wanted = *place;
	const uint32_t ref = lb_flow_make_place(table, &wanted, tick);

	if (unlikely(ref == LB_FLOW_NONE)) {
		table->stats.refused++;
		return LB_FLOW_NO_WAY;
	}
	lb_flow_vacate(table, ref, tick);
	table->stats.live++;
	return (ref / LB_FLOW_WAYS == place->second ? LB_FLOW_WAYS : 0) + ref % LB_FLOW_WAYS;
}

/**
 * Take lb_flow_make_place()'s place where it needs no looking for, which most new flows find,
 * in an empty table and in a full one; and account for it and for who was there.
 *
 * @return its way of both buckets', or LB_FLOW_NO_WAY: nothing is done.
 */
static inline uint32_t __attribute__((always_inline))
lb_flow_take_way(struct lb_flow_table *table, const struct lb_flow_place *place, uint32_t tick)
{
	const uint32_t choice = lb_flow_choose(table, table->buckets[place->bucket].rest,
		table->buckets[place->second].rest, tick);
	const uint32_t readiness = choice / LB_FLOW_CHOICES;

	if (readiness >= LB_FLOW_DEAD) {
		if (readiness == LB_FLOW_DEAD)
			table->stats.expired++;
		else
			table->stats.live++;
	} else if (unlikely(lb_flow_is_roomy(table) || readiness == LB_FLOW_NOT_AT_ALL)) {
		return LB_FLOW_NO_WAY;
	} else {
		table->stats.evicted++;
	}
	return ~choice % LB_FLOW_CHOICES;
}

/** Put a new flow in a way that has been taken. @return its reference. */
static inline uint32_t __attribute__((always_inline))
lb_flow_put(struct lb_flow_table *table, const struct lb_flow_place *place, uint32_t way,
	uint32_t backend, enum lb_flow_event event, uint32_t tick)
{
	const uint32_t is_second = way / LB_FLOW_WAYS;
	const uint64_t state = event == LB_FLOW_DATAGRAM ? LB_FLOW_UDP_NEW : LB_FLOW_TCP_NEW;
	const uint64_t by_syn = event == LB_FLOW_SYN ? LB_FLOW_BY_SYN : 0;
	const uint64_t fresh =
		((uint64_t)tick << LB_FLOW_SEEN_SHIFT | by_syn | state) | place->rest |
		(uint64_t)(backend & LB_FLOW_BACKEND_MASK) << LB_FLOW_BACKEND_SHIFT;
	/* Without a branch, which in a flood would go either way. */
	const uint32_t index = place->bucket ^ ((place->bucket ^ place->second) & -is_second);
	struct lb_flow_bucket *bucket = &table->buckets[index];
	uint64_t *rest = &bucket->rest[way % LB_FLOW_WAYS];

	assert(backend <= LB_FLOW_BACKEND_MASK);
	table->buckets[place->bucket].rest[0] |= (uint64_t)is_second
						 << LB_FLOW_OVERFLOWED_SHIFT;
	bucket->tag[way % LB_FLOW_WAYS] = place->tag;
	*rest = (*rest & LB_FLOW_OVERFLOWED) | fresh;
	return index * LB_FLOW_WAYS + way % LB_FLOW_WAYS;
}

/** Start loading where the sequence number of an entry's SYN goes. */
static inline void
lb_flow_prefetch_syn(const struct lb_flow_table *table, uint32_t ref)
{
	__builtin_prefetch(&table->syn_seq[ref], 1);
}

/**
 * The sequence number of the SYN that an entry was made by. It may be set later than the entry
 * is made, as its line is on its way the longest: in the order of the entries, and before
 * anything else is done to the table but taking ways and putting flows there.
 */
static inline void
lb_flow_set_syn(struct lb_flow_table *table, uint32_t ref, uint32_t tcp_seq)
{
	table->syn_seq[ref] = tcp_seq;
}

/** lb_flow_insert_at() where lb_flow_take_way() has just said that there is no way at once. */
static inline uint32_t
lb_flow_insert_elsewhere(struct lb_flow_table *table, const struct lb_flow_place *place,
	uint32_t backend, enum lb_flow_event event, uint32_t tcp_seq, uint32_t tick)
{
	const uint32_t way = lb_flow_make_way(table, place, tick);
	uint32_t ref;

	if (unlikely(way == LB_FLOW_NO_WAY))
		return LB_FLOW_NONE;
	ref = lb_flow_put(table, place, way, backend, event, tick);
	if (event == LB_FLOW_SYN)
		lb_flow_set_syn(table, ref, tcp_seq);
	return ref;
}

/**
 * lb_flow_insert() of a flow that has been located. Inline wherever it is called: a call costs
 * a tenth of it and more, as all of its vectors' constants are loaded anew.
 *
 * @param tick  Now.
 */
static inline uint32_t __attribute__((always_inline))
lb_flow_insert_at(struct lb_flow_table *table, const struct lb_flow_place *place,
	uint32_t backend, enum lb_flow_event event, uint32_t tcp_seq, uint32_t tick)
{
	const uint32_t way = lb_flow_take_way(table, place, tick);
	uint32_t ref;

	if (unlikely(way == LB_FLOW_NO_WAY))
		return lb_flow_insert_elsewhere(table, place, backend, event, tcp_seq, tick);
	ref = lb_flow_put(table, place, way, backend, event, tick);
	if (event == LB_FLOW_SYN)
		lb_flow_set_syn(table, ref, tcp_seq);
	return ref;
}

#endif
