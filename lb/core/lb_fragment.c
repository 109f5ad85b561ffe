/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_fragment.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "lb_hash.h"

#define WAYS     8u
#define N_RANGES LB_FRAGMENT_RANGES
#define NONE     0u /* the slot of nobody: lists end there, and that of all begins */
#define MIXED    1u /* in a range's begin, whose low 3 bits are free */

enum state { UNDECIDED, DECIDED, WHOLE, GIVEN_UP };

/* Bytes of a datagram that were seen: of one fragment, or where MIXED, of several. */
struct range {
	uint16_t begin;
	uint16_t end;
};

/* In the order of arrival; apart from the rest, which more is done with. */
struct ranges {
	struct range of[N_RANGES];
};

struct datagram {
	struct lb_addr src;
	struct lb_addr dst;
	uint32_t id;
	uint8_t proto;
	uint8_t state;   /* enum state */
	uint8_t verdict; /* enum lb_verdict, unless undecided */
	uint8_t n_ranges;
	struct lb_fragment_owner owner;
	uint64_t since_ns; /* of the last new bytes */

	uint16_t first; /* slots of what waits, in the order of arrival */
	uint16_t last;
	uint16_t n_waiting;
	uint16_t n_fragments;
	uint16_t seen_bytes;
	uint16_t total_bytes; /* 0: not yet known */
	bool is_again;        /* one of the same name was whole, and this one began after it */
};

static_assert(sizeof(struct datagram) + sizeof(struct ranges) + sizeof(uint32_t) == 332,
	"as lb_fragment.h says");
static_assert(sizeof(struct lb_fragment_key) == 40, "no implicit padding in a hashed key");
static_assert(LB_N_VERDICTS <= UINT8_MAX, "a verdict fits its field");

/*
 * A packet that waits, or where it could. All that wait are in one ring, by age, and NONE in it
 * before the oldest. So every index here is one of a slot, whatever the lists hold.
 */
struct slot {
	void *packet;
	uint64_t since_ns;
	uint32_t bytes;
	uint32_t datagram;
	uint16_t next;  /* of the same datagram */
	uint16_t older; /* of all */
	uint16_t newer; /* of all; or the next that is free, or to be handed back */
	uint8_t why;    /* enum lb_verdict, once it is to be handed back */
	bool is_repeated;
};

static_assert(sizeof(struct slot) == 32, "as lb_fragment.h says");

struct lb_fragment_table {
	alignas(LB_CACHE_LINE) uint64_t secret;
	uint64_t timeout_ns;
	uint32_t set_mask;
	uint32_t *tags;        /* WAYS a set; 0: free */
	struct ranges *ranges; /* by datagram */
	struct datagram *datagrams;
	struct slot *slots; /* n_waiting and NONE */
	uint64_t waiting_bytes_max;

	alignas(LB_CACHE_LINE) uint32_t sweep_set; /* the next to look through */
	uint16_t free;
	uint16_t returned; /* the first to be handed back */
	struct lb_fragment_stats stats;
};

/* Where a datagram is, or would be. */
struct place {
	uint32_t set;
	uint32_t tag;
};

static bool
is_conf_right(const struct lb_fragment_conf *conf)
{
	return conf->n_datagrams != 0 && conf->n_datagrams <= LB_FRAGMENT_DATAGRAMS_MAX &&
	       conf->n_waiting != 0 && conf->n_waiting <= LB_FRAGMENT_WAITING_MAX &&
	       conf->timeout_ns != 0;
}

static uint32_t
entries_for(uint32_t n_datagrams)
{
	uint32_t n = WAYS;

	while (n < n_datagrams)
		n *= 2;
	return n;
}

size_t
lb_fragment_table_bytes(const struct lb_fragment_conf *conf)
{
	size_t n;

	if (!is_conf_right(conf))
		return 0;
	n = sizeof(struct lb_fragment_table) +
	    entries_for(conf->n_datagrams) *
		    (sizeof(struct ranges) + sizeof(struct datagram) + sizeof(uint32_t)) +
	    (conf->n_waiting + (size_t)1) * sizeof(struct slot);
	return (n + LB_CACHE_LINE - 1) / LB_CACHE_LINE * LB_CACHE_LINE;
}

int
lb_fragment_table_init(void *mem, const struct lb_fragment_conf *conf,
	struct lb_fragment_table **out)
{
	struct lb_fragment_table *table = mem;
	uint32_t n;

	if (!is_conf_right(conf))
		return -EINVAL;
	n = entries_for(conf->n_datagrams);
	table->secret = conf->secret;
	table->timeout_ns = conf->timeout_ns;
	table->set_mask = n / WAYS - 1;
	table->waiting_bytes_max = conf->waiting_bytes;
	/* In the order of their alignment: what comes before each is a multiple of it. */
	table->ranges = (struct ranges *)(table + 1);
	table->datagrams = (struct datagram *)(table->ranges + n);
	table->slots = (struct slot *)(table->datagrams + n);
	table->tags = (uint32_t *)(table->slots + conf->n_waiting + 1);
	table->free = NONE + 1;
	for (uint32_t i = NONE + 1; i < conf->n_waiting; i++)
		table->slots[i].newer = (uint16_t)(i + 1);
	*out = table;
	return 0;
}

void
lb_fragment_describe(const struct lb_packet *packet, struct lb_fragment_key *key,
	struct lb_fragment_range *range)
{
	*key = (struct lb_fragment_key){
		.src = packet->key.src,
		.dst = packet->dst,
		.id = packet->frag_id,
		.proto = packet->is_v6 ? 0 : packet->key.proto,
	};
	*range = (struct lb_fragment_range){
		.offset = packet->frag_offset,
		.bytes = packet->frag_bytes,
		.has_more = (packet->flags & LB_PACKET_MORE) != 0,
	};
}

static bool
is_range_right(const struct lb_fragment_range *range)
{
	if (range->bytes == 0 || range->offset % 8 != 0)
		return false;
	if (range->has_more && range->bytes % 8 != 0)
		return false;
	return (uint32_t)range->offset + range->bytes <= UINT16_MAX;
}

/* --- what waits --- */

static bool
has_room(const struct lb_fragment_table *table, uint32_t bytes)
{
	const uint64_t used = table->stats.waiting_bytes;

	return table->free != NONE && used <= table->waiting_bytes_max &&
	       bytes <= table->waiting_bytes_max - used;
}

/* A packet of the datagram begins to wait; there is room. */
static void
enqueue(struct lb_fragment_table *table, struct datagram *d,
	const struct lb_fragment_packet *packet, bool is_repeated, uint64_t now_ns)
{
	const uint16_t at = table->free;
	struct slot *slot = &table->slots[at];

	table->free = slot->newer;
	*slot = (struct slot){
		.packet = packet->packet,
		.since_ns = now_ns,
		.bytes = packet->bytes,
		.datagram = (uint32_t)(d - table->datagrams),
		.next = NONE,
		.older = table->slots[NONE].older,
		.newer = NONE,
		.is_repeated = is_repeated,
	};
	table->slots[slot->older].newer = at;
	table->slots[NONE].older = at;
	if (d->n_waiting == 0)
		d->first = at;
	else
		table->slots[d->last].next = at;
	d->last = at;
	d->n_waiting++;
	table->stats.waiting++;
	table->stats.waiting_bytes += packet->bytes;
}

/* The datagram's first packet waits no more; it has one. Returns its slot, in no list. */
static uint16_t
dequeue(struct lb_fragment_table *table, struct datagram *d)
{
	const uint16_t at = d->first;
	const struct slot *slot = &table->slots[at];

	table->slots[slot->older].newer = slot->newer;
	table->slots[slot->newer].older = slot->older;
	d->first = slot->next;
	d->n_waiting--;
	return at;
}

/* The slot is in no list: free it, and give its packet away. */
static void *
release(struct lb_fragment_table *table, uint16_t at)
{
	struct slot *slot = &table->slots[at];

	table->stats.waiting--;
	table->stats.waiting_bytes -= slot->bytes;
	slot->newer = table->free;
	table->free = at;
	return slot->packet;
}

/* All that wait for the datagram are to be handed back by lb_fragment_expire(). */
static void
return_waiting(struct lb_fragment_table *table, struct datagram *d, enum lb_verdict why)
{
	for (uint16_t n = d->n_waiting; n != 0; n--) {
		const uint16_t at = dequeue(table, d);

		table->slots[at].why = (uint8_t)why;
		table->slots[at].newer = table->returned;
		table->returned = at;
	}
}

/* --- datagrams --- */

static struct place
place_of(const struct lb_fragment_table *table, const struct lb_fragment_key *key)
{
	const uint64_t hash = lb_hash_bytes(key, sizeof(*key), table->secret);

	return (struct place){
		.set = (uint32_t)(hash >> 32) & table->set_mask,
		.tag = (uint32_t)hash | 1,
	};
}

static bool
is_of(const struct datagram *d, const struct lb_fragment_key *key)
{
	return d->id == key->id && d->proto == key->proto &&
	       lb_addr_equal(&d->src, &key->src) && lb_addr_equal(&d->dst, &key->dst);
}

/* NULL where it is not there. */
static struct datagram *
look_up(const struct lb_fragment_table *table, const struct lb_fragment_key *key,
	struct place place)
{
	for (uint32_t way = 0; way < WAYS; way++) {
		const uint32_t at = place.set * WAYS + way;

		if (table->tags[at] == place.tag && is_of(&table->datagrams[at], key))
			return &table->datagrams[at];
	}
	return NULL;
}

static void
forget(struct lb_fragment_table *table, const struct datagram *d)
{
	table->tags[d - table->datagrams] = 0;
	if (d->state == WHOLE)
		table->stats.whole--;
	else
		table->stats.live--;
}

static bool
is_over(const struct lb_fragment_table *table, const struct datagram *d, uint64_t now_ns)
{
	return d->n_waiting == 0 && now_ns - d->since_ns > table->timeout_ns;
}

/* What is whole has no more to come but repetitions, which are known by its ranges. */
static void
note_whole(struct lb_fragment_table *table, struct datagram *d)
{
	if (d->state != DECIDED || d->n_waiting != 0 || d->total_bytes == 0 ||
		d->seen_bytes != d->total_bytes)
		return;
	d->state = WHOLE;
	table->stats.completed++;
	table->stats.live--;
	table->stats.whole++;
}

static void
expire(struct lb_fragment_table *table, const struct datagram *d)
{
	table->stats.expired += d->state != WHOLE;
	forget(table, d);
}

/* The datagram, unless its time is over: then it is forgotten. */
static struct datagram *
find(struct lb_fragment_table *table, const struct lb_fragment_key *key, struct place place,
	uint64_t now_ns)
{
	struct datagram *d = look_up(table, key, place);

	if (d == NULL || !is_over(table, d, now_ns))
		return d;
	expire(table, d);
	return NULL;
}

/* What a datagram is worth: in a full set the least gives way. */
static uint32_t
rank(const struct lb_fragment_table *table, const struct datagram *d, uint64_t now_ns)
{
	if (d->n_waiting != 0)
		return 4;
	if (is_over(table, d, now_ns))
		return 0;
	if (d->state == WHOLE)
		return 1;
	return d->state == GIVEN_UP ? 2 : 3;
}

/* Where in a set a new datagram goes: what is free, otherwise what gives way first. */
static uint32_t
choose_entry(const struct lb_fragment_table *table, uint32_t set, uint64_t now_ns)
{
	uint32_t chosen = set * WAYS;

	for (uint32_t way = 0; way < WAYS; way++) {
		const uint32_t at = set * WAYS + way;
		const struct datagram *d = &table->datagrams[at];
		const struct datagram *c = &table->datagrams[chosen];
		const uint32_t own = rank(table, d, now_ns);
		const uint32_t least = rank(table, c, now_ns);

		if (table->tags[at] == 0)
			return at;
		if (own == least ? now_ns - d->since_ns > now_ns - c->since_ns : own < least)
			chosen = at;
	}
	return chosen;
}

/* What lies there gives way. */
static void
evict(struct lb_fragment_table *table, uint32_t at, uint64_t now_ns)
{
	struct datagram *d = &table->datagrams[at];

	if (is_over(table, d, now_ns)) {
		expire(table, d);
		return;
	}
	table->stats.evicted += d->state != WHOLE;
	return_waiting(table, d, LB_DROP_FRAGMENT_EXCESS);
	forget(table, d);
}

/* An undecided datagram of which nothing was seen, at a chosen entry. */
static struct datagram *
make(struct lb_fragment_table *table, uint32_t at, const struct lb_fragment_key *key,
	uint32_t tag, uint64_t now_ns)
{
	if (table->tags[at] != 0)
		evict(table, at, now_ns);
	table->tags[at] = tag;
	table->stats.live++;
	table->datagrams[at] = (struct datagram){
		.src = key->src,
		.dst = key->dst,
		.id = key->id,
		.proto = key->proto,
		.state = UNDECIDED,
		.since_ns = now_ns,
		.first = NONE,
		.last = NONE,
	};
	return &table->datagrams[at];
}

static enum lb_verdict
give_up(struct lb_fragment_table *table, struct datagram *d, enum lb_verdict why)
{
	d->state = GIVEN_UP;
	d->verdict = (uint8_t)why;
	return_waiting(table, d, why);
	table->stats.given_up++;
	return why;
}

/* --- ranges --- */

/* What a fragment is to those that were seen. */
enum relation {
	NEW,
	REPEATED,
	INSIDE, /* of several that have become one range: repeated, or overlapping */
	CONTRADICTING,
};

/* Of bytes that share some with the range. */
static enum relation
relate_to(const struct datagram *d, const struct range *seen, const struct range *range,
	bool has_more)
{
	const uint32_t begin = seen->begin & ~MIXED;

	/* What ends where the datagram ends is its last fragment, and nothing else is. */
	if (has_more != (range->end != d->total_bytes))
		return CONTRADICTING;
	if (range->begin == begin && range->end == seen->end && (seen->begin & MIXED) == 0)
		return REPEATED;
	if (range->begin >= begin && range->end <= seen->end && (seen->begin & MIXED) != 0)
		return INSIDE;
	return CONTRADICTING;
}

static enum relation
relate(const struct datagram *d, const struct ranges *ranges, const struct range *range,
	bool has_more)
{
	for (uint32_t i = 0; i < N_RANGES && i < d->n_ranges; i++) {
		const struct range *seen = &ranges->of[i];

		if (range->begin < seen->end && range->end > (seen->begin & ~MIXED))
			return relate_to(d, seen, range, has_more);
		if (!has_more && seen->end > range->end)
			return CONTRADICTING;
	}
	return d->total_bytes != 0 && range->end > d->total_bytes ? CONTRADICTING : NEW;
}

static void
remove_range(struct ranges *ranges, uint32_t at)
{
	for (uint32_t i = at; i < N_RANGES - 1; i++) {
		const struct range next = ranges->of[i + 1];

		ranges->of[i] = next;
	}
}

/* Of a full array: let the range at i, the older, have another that follows or precedes it. */
static bool
merge_at(struct ranges *ranges, uint32_t i)
{
	struct range *range = &ranges->of[i];

	for (uint32_t k = i + 1; k < N_RANGES; k++) {
		const struct range other = ranges->of[k];

		if (other.end != (range->begin & ~MIXED) &&
			(other.begin & ~MIXED) != range->end)
			continue;
		if (other.end == (range->begin & ~MIXED))
			range->begin = other.begin;
		else
			range->end = other.end;
		range->begin |= MIXED;
		remove_range(ranges, k);
		return true;
	}
	return false;
}

/* Of a full array: let a range have what adjoins it. */
static bool
extend(struct ranges *ranges, const struct range *added)
{
	for (uint32_t i = 0; i < N_RANGES; i++) {
		struct range *range = &ranges->of[i];

		if (added->begin == range->end)
			range->end = added->end;
		else if (added->end == (range->begin & ~MIXED))
			range->begin = added->begin;
		else
			continue;
		range->begin |= MIXED;
		return true;
	}
	return false;
}

/* Of bytes that were not seen yet; false where there is no room for them. */
static bool
add_range(struct datagram *d, struct ranges *ranges, const struct range *range)
{
	uint32_t n = d->n_ranges;

	for (uint32_t i = 0; i < N_RANGES && n >= N_RANGES; i++)
		n -= merge_at(ranges, i);
	if (n >= N_RANGES)
		return extend(ranges, range);
	ranges->of[n] = *range;
	d->n_ranges = (uint8_t)(n + 1);
	return true;
}

static struct range
bytes_of(const struct lb_fragment_range *fragment)
{
	return (struct range){
		.begin = fragment->offset,
		.end = (uint16_t)(fragment->offset + fragment->bytes),
	};
}

/*
 * Note what bytes a fragment has. LB_FORWARD: it goes with its datagram; otherwise it is
 * dropped, and as a rule the datagram is given up.
 */
static enum lb_verdict
note_range(struct lb_fragment_table *table, struct datagram *d,
	const struct lb_fragment_range *fragment, uint64_t now_ns)
{
	const struct range range = bytes_of(fragment);
	struct ranges *ranges = &table->ranges[d - table->datagrams];
	const enum relation relation = relate(d, ranges, &range, fragment->has_more);

	if (relation == INSIDE)
		return LB_DROP_FRAGMENT_OVERLAP;
	if (relation == CONTRADICTING)
		return give_up(table, d, LB_DROP_FRAGMENT_OVERLAP);
	if (d->n_fragments == LB_FRAGMENT_SERIES_MAX)
		return give_up(table, d, LB_DROP_FRAGMENT_EXCESS);
	d->n_fragments++;
	if (relation == REPEATED)
		return LB_FORWARD;
	if (!add_range(d, ranges, &range))
		return give_up(table, d, LB_DROP_FRAGMENT_EXCESS);
	d->seen_bytes = (uint16_t)(d->seen_bytes + fragment->bytes);
	if (!fragment->has_more)
		d->total_bytes = range.end;
	d->since_ns = now_ns;
	return LB_FORWARD;
}

/* --- an identification that is used again --- */

/* Whether a datagram's first fragment is such a one. */
static bool
has_first(const struct lb_fragment_table *table, const struct datagram *d,
	const struct lb_fragment_range *first)
{
	return table->ranges[d - table->datagrams].of[0].end == first->bytes;
}

/*
 * Whether all there is of a datagram is a first fragment that may as well have repeated that of
 * one before it, which was whole. Then another has nothing to contradict.
 */
static bool
is_only_first(const struct lb_fragment_table *table, const struct datagram *d)
{
	return d->is_again && d->state == DECIDED && d->n_waiting == 0 && d->n_ranges == 1 &&
	       table->ranges[d - table->datagrams].of[0].begin == 0;
}

/* In the place of one that it cannot be told from by its key. */
static struct datagram *
make_again(struct lb_fragment_table *table, const struct datagram *d,
	const struct lb_fragment_key *key, uint32_t tag, uint64_t now_ns)
{
	struct datagram *made;

	forget(table, d);
	made = make(table, (uint32_t)(d - table->datagrams), key, tag, now_ns);
	made->is_again = true;
	return made;
}

/* Whether a later fragment is none of a datagram that was whole before it came. */
static bool
is_of_next(const struct lb_fragment_table *table, const struct datagram *d,
	const struct lb_fragment_range *fragment)
{
	const struct range range = bytes_of(fragment);

	return d->state == WHOLE && relate(d, &table->ranges[d - table->datagrams], &range,
					    fragment->has_more) == CONTRADICTING;
}

/* And of what it is, if it is one of it, what becomes of it. */
static enum lb_verdict
follow_whole(const struct lb_fragment_table *table, const struct datagram *d,
	const struct lb_fragment_range *fragment)
{
	const struct range range = bytes_of(fragment);

	if (d->verdict > LB_TO_KERNEL)
		return (enum lb_verdict)d->verdict;
	if (relate(d, &table->ranges[d - table->datagrams], &range, fragment->has_more) !=
		REPEATED)
		return LB_DROP_FRAGMENT_OVERLAP;
	return d->verdict == LB_REPLY ? LB_DROP_RATE_LIMITED : (enum lb_verdict)d->verdict;
}

/* --- the table's face --- */

enum lb_verdict
lb_fragment_first(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_range *range, uint64_t now_ns)
{
	const struct place place = place_of(table, key);
	struct datagram *d;

	if (range->offset != 0 || !range->has_more || !is_range_right(range))
		return LB_DROP_FRAGMENT_BAD;
	d = find(table, key, place, now_ns);
	if (d == NULL)
		d = make(table, choose_entry(table, place.set, now_ns), key, place.tag, now_ns);
	else if (d->state == WHOLE || (is_only_first(table, d) && !has_first(table, d, range)))
		d = make_again(table, d, key, place.tag, now_ns);
	if (d->state != UNDECIDED && d->verdict > LB_TO_KERNEL)
		return (enum lb_verdict)d->verdict;
	return note_range(table, d, range, now_ns);
}

bool
lb_fragment_contradicts(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_decision *decision)
{
	struct datagram *d = look_up(table, key, place_of(table, key));

	if (d == NULL || d->state != DECIDED || d->verdict > LB_TO_KERNEL)
		return false;
	if (decision->verdict > LB_TO_KERNEL) /* as after a change: it leaves no way */
		return false;
	if (decision->verdict == d->verdict &&
		(d->verdict != LB_FORWARD || decision->owner.entropy == d->owner.entropy))
		return false;
	if (is_only_first(table, d)) {
		d->state = UNDECIDED;
		return false;
	}
	(void)give_up(table, d, LB_DROP_FRAGMENT_OVERLAP);
	return true;
}

void
lb_fragment_decide(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_decision *decision)
{
	struct datagram *d = look_up(table, key, place_of(table, key));

	if (d == NULL || d->state != UNDECIDED)
		return;
	d->state = DECIDED;
	d->verdict = (uint8_t)decision->verdict;
	d->owner = decision->owner;
}

/* A later fragment of an undecided datagram. Whether it waits; if not, verdict is out. */
static bool
wait_for_first(struct lb_fragment_table *table, struct datagram *d,
	const struct lb_fragment_range *range, const struct lb_fragment_packet *packet,
	uint64_t now_ns, enum lb_verdict *verdict)
{
	uint16_t seen_bytes;

	if (!has_room(table, packet->bytes)) {
		*verdict = give_up(table, d, LB_DROP_FRAGMENT_EXCESS);
		table->stats.refused++;
		return false;
	}
	seen_bytes = d->seen_bytes;
	*verdict = note_range(table, d, range, now_ns);
	if (*verdict != LB_FORWARD)
		return false;
	enqueue(table, d, packet, d->seen_bytes == seen_bytes, now_ns);
	return true;
}

/* The datagram of a later fragment, made where it is new; NULL where it could not wait. */
static struct datagram *
find_or_make(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_range *range, uint32_t bytes, uint64_t now_ns)
{
	const struct place place = place_of(table, key);
	struct datagram *d = find(table, key, place, now_ns);
	uint32_t at;

	if (d != NULL && !is_of_next(table, d, range))
		return d;
	if (d != NULL)
		forget(table, d);
	at = choose_entry(table, place.set, now_ns);
	if (!has_room(table, bytes) ||
		(table->tags[at] != 0 && table->datagrams[at].n_waiting != 0)) {
		table->stats.refused++;
		return NULL;
	}
	return make(table, at, key, place.tag, now_ns);
}

bool
lb_fragment_later(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_range *range, const struct lb_fragment_packet *packet,
	uint64_t now_ns, struct lb_fragment_decision *out)
{
	struct lb_fragment_decision decision = {.verdict = LB_DROP_FRAGMENT_BAD};
	struct datagram *d;

	if (range->offset == 0 || !is_range_right(range)) {
		*out = decision;
		return false;
	}
	d = find_or_make(table, key, range, packet->bytes, now_ns);
	if (d == NULL) {
		decision.verdict = LB_DROP_FRAGMENT_EXCESS;
		*out = decision;
		return false;
	}
	if (d->state == UNDECIDED) {
		if (wait_for_first(table, d, range, packet, now_ns, &decision.verdict))
			return true;
		*out = decision;
		return false;
	}

	decision.verdict = (enum lb_verdict)d->verdict;
	decision.owner = d->owner;
	if (d->state == WHOLE) {
		decision.verdict = follow_whole(table, d, range);
	} else if (decision.verdict <= LB_TO_KERNEL) {
		const uint16_t seen_bytes = d->seen_bytes;
		const enum lb_verdict fits = note_range(table, d, range, now_ns);

		if (fits != LB_FORWARD)
			decision.verdict = fits;
		else if (decision.verdict == LB_REPLY && d->seen_bytes == seen_bytes)
			decision.verdict = LB_DROP_RATE_LIMITED; /* it has been answered */
		note_whole(table, d);
	}
	*out = decision;
	return false;
}

bool
lb_fragment_take(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	struct lb_fragment_waited *out)
{
	struct datagram *d = look_up(table, key, place_of(table, key));
	uint16_t at;

	if (d == NULL || d->state != DECIDED || d->n_waiting == 0)
		return false;
	at = dequeue(table, d);
	out->is_repeated = table->slots[at].is_repeated;
	out->packet = release(table, at);
	note_whole(table, d);
	return true;
}

static bool
take_returned(struct lb_fragment_table *table, void **packet, enum lb_verdict *why)
{
	const uint16_t at = table->returned;

	if (at == NONE)
		return false;
	table->returned = table->slots[at].newer;
	*why = (enum lb_verdict)table->slots[at].why;
	*packet = release(table, at);
	return true;
}

/* The packet that waits the longest; there is one. It is also its datagram's first. */
static void *
take_oldest(struct lb_fragment_table *table)
{
	const uint16_t oldest = table->slots[NONE].newer;
	struct datagram *d = &table->datagrams[table->slots[oldest].datagram];

	return release(table, dequeue(table, d));
}

bool
lb_fragment_shed(struct lb_fragment_table *table, uint32_t bytes, void **packet,
	enum lb_verdict *why)
{
	uint16_t oldest;

	if (likely(has_room(table, bytes)) || bytes > table->waiting_bytes_max)
		return false;
	oldest = table->slots[NONE].newer;
	if (table->returned == NONE && oldest != NONE)
		(void)give_up(table, &table->datagrams[table->slots[oldest].datagram],
			LB_DROP_FRAGMENT_EXCESS);
	return take_returned(table, packet, why);
}

/* Look through one set, and then through the next. */
static void
sweep(struct lb_fragment_table *table, uint64_t now_ns)
{
	const uint32_t begin = table->sweep_set * WAYS;

	for (uint32_t at = begin; at < begin + WAYS; at++) {
		if (table->tags[at] == 0 || !is_over(table, &table->datagrams[at], now_ns))
			continue;
		expire(table, &table->datagrams[at]);
	}
	table->sweep_set = (table->sweep_set + 1) & table->set_mask;
}

bool
lb_fragment_expire(struct lb_fragment_table *table, uint64_t now_ns, void **packet,
	enum lb_verdict *why)
{
	uint16_t oldest;

	if (likely(table->stats.live == 0 && table->stats.whole == 0 &&
		    table->stats.waiting == 0))
		return false;
	if (take_returned(table, packet, why))
		return true;
	oldest = table->slots[NONE].newer;
	if (oldest != NONE && now_ns - table->slots[oldest].since_ns > table->timeout_ns) {
		*packet = take_oldest(table);
		*why = LB_DROP_FRAGMENT_UNMATCHED;
		return true;
	}
	sweep(table, now_ns);
	return false;
}

bool
lb_fragment_abandon(struct lb_fragment_table *table, void **packet, enum lb_verdict *why)
{
	if (take_returned(table, packet, why))
		return true;
	if (table->slots[NONE].newer == NONE)
		return false;
	*packet = take_oldest(table);
	*why = LB_DROP_FRAGMENT_UNMATCHED;
	return true;
}

void
lb_fragment_table_stats(const struct lb_fragment_table *table, struct lb_fragment_stats *out)
{
	*out = table->stats;
}
