/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random fragments of a few datagrams in a table of one set, against a plain model: bytes as
 * bits, 8 bytes each, every packet that waits in one array, and nothing that is forgotten
 * lazily. Time goes on with every step, so that there are no ties for the model to guess.
 */

#include "lb_fragment.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "xrand.h"

#define N_ENTRIES   8u
#define N_KEYS      12u
#define N_SLOTS     40u
#define BYTES_MAX   3000u
#define N_UNITS     88u /* of the longest datagram, 8 bytes each */
#define N_PIECES    N_UNITS
#define LONG_UNITS  84u /* of datagrams of single ones: more than there are ranges */
#define SHORT_UNITS 24u /* and of those that become whole more often */
#define N_ROUNDS    200u
#define N_STEPS     2000u
#define TIMEOUT     UINT64_C(9000)
#define N_PACKETS   (N_ROUNDS * N_STEPS)
#define NO_DATAGRAM UINT32_MAX

/* A bit for each 8 bytes. */
__extension__ typedef unsigned __int128 unit_set;

static_assert(8 * sizeof(unit_set) >= N_UNITS, "a bit for each");

/* Bytes that came in one fragment; or the bytes of several whose bounds are lost. */
struct piece {
	unit_set units;
	bool is_mixed;
};

struct datagram {
	bool is_known, is_decided, is_given_up, is_whole, is_again;
	enum lb_verdict verdict;
	uint32_t owner;
	uint64_t since;
	struct piece pieces[N_PIECES];
	uint32_t n_pieces, n_fragments;
	uint32_t end; /* in bytes; 0: not known */
};

struct waiting {
	uint32_t packet; /* number, from 1 */
	uint32_t bytes;
	uint32_t key; /* NO_DATAGRAM: to be handed back */
	uint64_t since;
	enum lb_verdict why;
	bool is_repeated;
};

struct model {
	struct lb_fragment_table *table;
	struct datagram datagrams[N_KEYS];
	struct waiting waiting[N_SLOTS];
	uint32_t n_waiting;
	uint64_t now, seed;
	bool is_tame;
	uint32_t tame_units;
	uint64_t completed, evicted, refused, given_up;
};

/* Packets are known by their address. */
static uint8_t packets[N_PACKETS + 1];

/* How often each thing happened over all rounds: a test of what never comes is none. */
static struct {
	uint64_t whole_again, followed_whole, next_waited, forwarded, waited, overlapped,
		exceeded, inside, repeated, unmatched, completed, evicted_waiting,
		evicted_given_up, taken, shed;
} seen;

static struct lb_fragment_key
key_of(uint32_t i)
{
	struct lb_fragment_key key = {.id = 1000 + i / 2, .proto = (uint8_t)(i % 2)};

	key.src.bytes[0] = 0x20;
	key.dst.bytes[0] = 0x20;
	return key;
}

static uint32_t
count_waiting(const struct model *m, uint32_t key)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_waiting; i++)
		n += m->waiting[i].key == key;
	return n;
}

static uint32_t
waiting_bytes(const struct model *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_waiting; i++)
		n += m->waiting[i].bytes;
	return n;
}

static void
remove_waiting(struct model *m, uint32_t at)
{
	m->n_waiting--;
	memmove(&m->waiting[at], &m->waiting[at + 1],
		(m->n_waiting - at) * sizeof(m->waiting[0]));
}

static void
hand_back(struct model *m, uint32_t key, enum lb_verdict why)
{
	for (uint32_t i = 0; i < m->n_waiting; i++) {
		if (m->waiting[i].key != key)
			continue;
		m->waiting[i].key = NO_DATAGRAM;
		m->waiting[i].why = why;
	}
}

static enum lb_verdict
give_up(struct model *m, uint32_t key, enum lb_verdict why)
{
	m->datagrams[key].is_given_up = true;
	m->datagrams[key].verdict = why;
	hand_back(m, key, why);
	m->given_up++;
	return why;
}

/* Whose time is over is forgotten at once, not when somebody looks. */
static void
pass_time(struct model *m)
{
	m->now += 1 + xrand_below(&m->seed, 40);
	for (uint32_t i = 0; i < N_KEYS; i++) {
		struct datagram *d = &m->datagrams[i];

		if (m->now - d->since > TIMEOUT && count_waiting(m, i) == 0)
			d->is_known = false;
	}
}

/* --- bytes --- */

static unit_set
units_of(const struct lb_fragment_range *r)
{
	const uint32_t n = (r->bytes + 7u) / 8;

	return (((unit_set)1 << n) - 1) << r->offset / 8;
}

static bool
adjoin(unit_set a, unit_set b)
{
	return ((a << 1) & b) != 0 || ((b << 1) & a) != 0;
}

/* The oldest two neighbours become one. */
static void
mix_two(struct datagram *d)
{
	for (uint32_t i = 0; i < d->n_pieces; i++) {
		for (uint32_t k = i + 1; k < d->n_pieces; k++) {
			if (!adjoin(d->pieces[i].units, d->pieces[k].units))
				continue;
			d->pieces[i].units |= d->pieces[k].units;
			d->pieces[i].is_mixed = true;
			d->n_pieces--;
			memmove(&d->pieces[k], &d->pieces[k + 1],
				(d->n_pieces - k) * sizeof(d->pieces[0]));
			return;
		}
	}
}

static bool
add_piece(struct datagram *d, unit_set units)
{
	if (d->n_pieces == LB_FRAGMENT_RANGES)
		mix_two(d);
	if (d->n_pieces < LB_FRAGMENT_RANGES) {
		d->pieces[d->n_pieces++] = (struct piece){units, false};
		return true;
	}
	for (uint32_t i = 0; i < d->n_pieces; i++) {
		if (adjoin(d->pieces[i].units, units)) {
			d->pieces[i].units |= units;
			d->pieces[i].is_mixed = true;
			return true;
		}
	}
	return false;
}

static unit_set
all_units(const struct datagram *d)
{
	unit_set units = 0;

	for (uint32_t i = 0; i < d->n_pieces; i++)
		units |= d->pieces[i].units;
	return units;
}

static bool
is_complete(const struct datagram *d)
{
	return d->end != 0 && all_units(d) == ((unit_set)1 << (d->end + 7) / 8) - 1;
}

/* Whether nothing that is known of where the datagram ends speaks against the fragment. */
static bool
fits_end(const struct datagram *d, const struct lb_fragment_range *r)
{
	const uint32_t end = (uint32_t)r->offset + r->bytes;

	if (d->end != 0)
		return r->has_more ? end < d->end : end == d->end;
	return r->has_more || all_units(d) >> r->offset / 8 == 0;
}

static enum lb_verdict
note(struct model *m, uint32_t key, const struct lb_fragment_range *r)
{
	struct datagram *d = &m->datagrams[key];
	const unit_set units = units_of(r);
	const bool is_new = (all_units(d) & units) == 0;
	bool is_repeated = false;

	if (!fits_end(d, r))
		return give_up(m, key, LB_DROP_FRAGMENT_OVERLAP);
	for (uint32_t i = 0; !is_new && i < d->n_pieces; i++) {
		const struct piece *piece = &d->pieces[i];

		if (piece->is_mixed && (units & ~piece->units) == 0) {
			seen.inside++;
			return LB_DROP_FRAGMENT_OVERLAP;
		}
		is_repeated = is_repeated || (!piece->is_mixed && piece->units == units);
	}
	if (!is_new && !is_repeated)
		return give_up(m, key, LB_DROP_FRAGMENT_OVERLAP);
	d->n_fragments++;
	seen.repeated += is_repeated;
	if (is_repeated)
		return LB_FORWARD;
	if (!add_piece(d, units))
		return give_up(m, key, LB_DROP_FRAGMENT_EXCESS);
	if (!r->has_more)
		d->end = (uint32_t)r->offset + r->bytes;
	d->since = m->now;
	return LB_FORWARD;
}

static void
note_whole(struct model *m, uint32_t key)
{
	struct datagram *d = &m->datagrams[key];

	if (!d->is_known || !d->is_decided || d->is_given_up || d->is_whole ||
		d->verdict > LB_TO_KERNEL)
		return;
	if (count_waiting(m, key) != 0 || !is_complete(d))
		return;
	d->is_whole = true;
	m->completed++;
	seen.completed++;
}

/* --- room --- */

/* The longest without new bytes of those that are known and of a kind, or nobody. */
static uint32_t
oldest_of(const struct model *m, bool is_whole, bool is_given_up, bool waits)
{
	uint32_t oldest = NO_DATAGRAM;

	for (uint32_t i = 0; i < N_KEYS; i++) {
		const struct datagram *d = &m->datagrams[i];

		if (!d->is_known || d->is_whole != is_whole || d->is_given_up != is_given_up ||
			(count_waiting(m, i) != 0) != waits)
			continue;
		if (oldest == NO_DATAGRAM || d->since < m->datagrams[oldest].since)
			oldest = i;
	}
	return oldest;
}

/* The one that gives way to another; false where there is room without. */
static bool
find_victim(const struct model *m, uint32_t *victim)
{
	uint32_t n_known = 0;

	for (uint32_t i = 0; i < N_KEYS; i++)
		n_known += m->datagrams[i].is_known;
	*victim = oldest_of(m, true, false, false);
	if (*victim == NO_DATAGRAM)
		*victim = oldest_of(m, false, true, false);
	if (*victim == NO_DATAGRAM)
		*victim = oldest_of(m, false, false, false);
	if (*victim == NO_DATAGRAM)
		*victim = oldest_of(m, false, false, true);
	return n_known == N_ENTRIES;
}

static void
make(struct model *m, uint32_t key)
{
	uint32_t victim;

	if (find_victim(m, &victim)) {
		seen.evicted_waiting += count_waiting(m, victim) != 0;
		seen.evicted_given_up += m->datagrams[victim].is_given_up;
		hand_back(m, victim, LB_DROP_FRAGMENT_EXCESS);
		m->datagrams[victim].is_known = false;
		m->evicted += !m->datagrams[victim].is_whole;
	}
	m->datagrams[key] = (struct datagram){.is_known = true, .since = m->now};
}

static bool
has_room(const struct model *m, uint32_t bytes)
{
	return m->n_waiting < N_SLOTS && waiting_bytes(m) + bytes <= BYTES_MAX;
}

/* --- what is whole --- */

/* Whether a fragment is one that a datagram which is whole has had, or may be a part of. */
static bool
is_of_whole(const struct datagram *d, const struct lb_fragment_range *r, bool *is_repeated)
{
	const unit_set units = units_of(r);

	*is_repeated = false;
	if (r->has_more != ((uint32_t)r->offset + r->bytes != d->end) ||
		(uint32_t)r->offset + r->bytes > d->end)
		return false;
	for (uint32_t i = 0; i < d->n_pieces; i++) {
		const struct piece *piece = &d->pieces[i];

		if (piece->is_mixed && (units & ~piece->units) == 0)
			return true;
		if (!piece->is_mixed && piece->units == units) {
			*is_repeated = true;
			return true;
		}
	}
	return false;
}

/* Whether nothing of a datagram after one that was whole is known but its first fragment. */
static bool
is_only_first(const struct datagram *d)
{
	return d->is_again && d->is_decided && !d->is_given_up && d->n_pieces == 1 &&
	       (d->pieces[0].units & 1) != 0;
}

/* --- the model's answers --- */

static enum lb_verdict
model_first(struct model *m, uint32_t key, const struct lb_fragment_range *r,
	const struct lb_fragment_decision *decision)
{
	struct datagram *d = &m->datagrams[key];
	enum lb_verdict verdict;

	if (!d->is_known) {
		make(m, key);
	} else if (d->is_whole || (is_only_first(d) && d->pieces[0].units != units_of(r))) {
		seen.whole_again++;
		*d = (struct datagram){.is_known = true, .is_again = true, .since = m->now};
	}
	if (d->is_given_up)
		return d->verdict;
	if (d->is_decided && d->verdict > LB_TO_KERNEL)
		return d->verdict;
	verdict = note(m, key, r);
	if (verdict != LB_FORWARD || d->is_decided)
		return verdict;
	d->is_decided = true;
	d->verdict = decision->verdict;
	d->owner = decision->owner.backend;
	return LB_FORWARD;
}

/* LB_N_VERDICTS where it waits. */
static enum lb_verdict
model_later(struct model *m, uint32_t key, const struct lb_fragment_range *r, uint32_t packet,
	uint32_t bytes)
{
	struct datagram *d = &m->datagrams[key];
	enum lb_verdict verdict;
	uint32_t victim;
	unit_set before;
	bool is_repeated;

	if (d->is_known && d->is_whole) {
		if (is_of_whole(d, r, &is_repeated)) {
			seen.followed_whole += is_repeated;
			if (d->verdict > LB_TO_KERNEL || is_repeated)
				return d->verdict;
			return LB_DROP_FRAGMENT_OVERLAP;
		}
		seen.next_waited++;
		d->is_known = false;
	}
	if (!d->is_known) {
		if (!has_room(m, bytes) ||
			(find_victim(m, &victim) && count_waiting(m, victim) != 0)) {
			m->refused++;
			return LB_DROP_FRAGMENT_EXCESS;
		}
		make(m, key);
	}
	if (d->is_given_up || (d->is_decided && d->verdict > LB_TO_KERNEL))
		return d->verdict;
	if (!d->is_decided && !has_room(m, bytes)) {
		m->refused++;
		return give_up(m, key, LB_DROP_FRAGMENT_EXCESS);
	}
	before = all_units(d);
	verdict = note(m, key, r);
	if (verdict != LB_FORWARD || d->is_decided) {
		if (verdict == LB_FORWARD)
			verdict = d->verdict;
		note_whole(m, key);
		return verdict;
	}
	m->waiting[m->n_waiting++] = (struct waiting){packet, bytes, key, m->now, LB_FORWARD,
		all_units(d) == before};
	return LB_N_VERDICTS;
}

/* --- both, and whether they agree --- */

/* Of any size, so that they overlap; or in tame rounds of one size, so that they become whole.
 */
static struct lb_fragment_range
random_range(struct model *m, bool is_first)
{
	struct lb_fragment_range r = {.bytes = 8, .has_more = true};

	if (!m->is_tame || xrand_below(&m->seed, 300) == 0)
		r.bytes = (uint16_t)(8 * (1 + xrand_below(&m->seed, 3)));
	if (is_first)
		return r;
	r.offset = (uint16_t)(r.bytes *
			      (1 + xrand_below(&m->seed, r.bytes == 8 ? m->tame_units : 8)));
	if (m->is_tame ? r.offset == m->tame_units * 8 : xrand_below(&m->seed, 6) == 0) {
		r.has_more = false;
		r.bytes = (uint16_t)(m->is_tame ? 5 : 1 + xrand_below(&m->seed, 16));
	}
	return r;
}

/* After a datagram that is whole, often one that it cannot have had. */
static struct lb_fragment_range
random_later(struct model *m, uint32_t k)
{
	struct lb_fragment_range r = random_range(m, false);

	if (m->datagrams[k].is_known && m->datagrams[k].is_whole &&
		xrand_below(&m->seed, 8) == 0) {
		r.bytes = 3;
		r.has_more = false;
	}
	return r;
}

static void
step_first(struct model *m, uint32_t k)
{
	const struct lb_fragment_key key = key_of(k);
	const struct lb_fragment_range r = random_range(m, true);
	static const enum lb_verdict verdicts[16] =
		{[0] = LB_DROP_NO_BACKEND, [1] = LB_TO_KERNEL};
	const struct lb_fragment_decision decision = {verdicts[xrand_below(&m->seed, 16)],
		{xrand_below(&m->seed, 1000), 3}};
	const enum lb_verdict want = model_first(m, k, &r, &decision);
	const enum lb_verdict got = lb_fragment_first(m->table, &key, &r, m->now);

	if (got == LB_FORWARD)
		lb_fragment_decide(m->table, &key, &decision);
	EXPECT(got == want, "first of %u, %u bytes: %d, want %d", k, r.bytes, got, want);
}

static void
step_later(struct model *m, uint32_t k, uint32_t packet)
{
	const struct lb_fragment_key key = key_of(k);
	const struct lb_fragment_range r = random_later(m, k);
	const struct lb_fragment_packet p = {&packets[packet], 50 + xrand_below(&m->seed, 100)};
	const uint32_t owner = m->datagrams[k].owner;
	const enum lb_verdict want = model_later(m, k, &r, packet, p.bytes);
	struct lb_fragment_decision out = {.verdict = LB_N_VERDICTS};
	const bool waits = lb_fragment_later(m->table, &key, &r, &p, m->now, &out);

	EXPECT(waits == (want == LB_N_VERDICTS) && out.verdict == want,
		"later of %u, at %u, %u bytes%s: %d, want %d", k, r.offset, r.bytes,
		r.has_more ? "" : ", the last", out.verdict, want);
	if (want == LB_FORWARD)
		assert_int_equal(out.owner.backend, owner);
	seen.waited += waits;
	seen.forwarded += want == LB_FORWARD;
	seen.overlapped += want == LB_DROP_FRAGMENT_OVERLAP;
	seen.exceeded += want == LB_DROP_FRAGMENT_EXCESS;
}

static void
step_take(struct model *m, uint32_t k)
{
	const struct lb_fragment_key key = key_of(k);
	const struct datagram *d = &m->datagrams[k];
	struct lb_fragment_waited waited = {NULL, false};
	bool got = true;

	while (got) {
		uint32_t i = 0;

		while (i < m->n_waiting && m->waiting[i].key != k)
			i++;
		got = lb_fragment_take(m->table, &key, &waited);
		EXPECT(got == (i < m->n_waiting && d->is_known && d->is_decided),
			"take of %u: %d", k, got);
		if (!got)
			break;
		assert_ptr_equal(waited.packet, &packets[m->waiting[i].packet]);
		assert_int_equal(waited.is_repeated, m->waiting[i].is_repeated);
		remove_waiting(m, i);
		seen.taken++;
		if (count_waiting(m, k) == 0 && is_complete(d)) {
			m->datagrams[k].is_whole = true;
			m->completed++;
		}
	}
}

/* The packet that was handed back is one that had to be, for this reason. */
static void
expect_returned(struct model *m, const void *packet, enum lb_verdict why)
{
	const uint32_t number = (uint32_t)((const uint8_t *)packet - packets);
	uint32_t i = 0;

	while (i < m->n_waiting && m->waiting[i].packet != number)
		i++;
	EXPECT(i < m->n_waiting, "packet %u came back, which did not wait", number);
	if (m->waiting[i].key == NO_DATAGRAM) {
		assert_int_equal(why, m->waiting[i].why);
	} else {
		assert_int_equal(why, LB_DROP_FRAGMENT_UNMATCHED);
		EXPECT(m->now - m->waiting[i].since > TIMEOUT, "packet %u came back early",
			number);
		seen.unmatched++;
	}
	remove_waiting(m, i);
}

static void
step_expire(struct model *m)
{
	enum lb_verdict why = LB_FORWARD;
	void *packet = NULL;

	while (lb_fragment_expire(m->table, m->now, &packet, &why))
		expect_returned(m, packet, why);
	for (uint32_t i = 0; i < m->n_waiting; i++)
		EXPECT(m->waiting[i].key != NO_DATAGRAM &&
				m->now - m->waiting[i].since <= TIMEOUT,
			"packet %u did not come back", m->waiting[i].packet);
	/* Nothing waits for some any more. */
	for (uint32_t i = 0; i < N_KEYS; i++) {
		if (m->now - m->datagrams[i].since > TIMEOUT && count_waiting(m, i) == 0)
			m->datagrams[i].is_known = false;
	}
}

/* The oldest that waits gives way with all of its datagram, until so much finds room. */
static void
step_shed(struct model *m, uint32_t bytes)
{
	enum lb_verdict why = LB_FORWARD;
	void *packet = NULL;

	while (lb_fragment_shed(m->table, bytes, &packet, &why)) {
		EXPECT(!has_room(m, bytes), "there was room for %u bytes", bytes);
		assert_true(m->n_waiting > 0);
		if (m->waiting[0].key != NO_DATAGRAM && count_waiting(m, NO_DATAGRAM) == 0)
			(void)give_up(m, m->waiting[0].key, LB_DROP_FRAGMENT_EXCESS);
		expect_returned(m, packet, why);
		seen.shed++;
	}
	EXPECT(has_room(m, bytes), "there is no room for %u bytes", bytes);
}

static void
expect_stats(const struct model *m)
{
	struct lb_fragment_stats stats;
	uint32_t n_known = 0;
	uint32_t n_whole = 0;

	lb_fragment_table_stats(m->table, &stats);
	for (uint32_t i = 0; i < N_KEYS; i++) {
		n_known += m->datagrams[i].is_known;
		n_whole += m->datagrams[i].is_known && m->datagrams[i].is_whole;
	}
	assert_int_equal(stats.waiting, m->n_waiting);
	assert_int_equal(stats.waiting_bytes, waiting_bytes(m));
	assert_int_equal(stats.completed, m->completed);
	assert_int_equal(stats.evicted, m->evicted);
	assert_int_equal(stats.refused, m->refused);
	assert_int_equal(stats.given_up, m->given_up);
	assert_in_range(stats.live, n_known - n_whole, N_ENTRIES);
	assert_in_range(stats.whole, n_whole, N_ENTRIES);
}

static void
run_round(struct model *m, uint32_t round)
{
	/* Few firsts fill the room, and many the table. Few datagrams may become whole. */
	const uint32_t n_keys = 2 + round % (N_KEYS - 1);
	const uint32_t first_pct = 5 + round % 7 * 8;

	m->is_tame = round % 4 != 0;
	m->tame_units = round % 4 == 1 ? LONG_UNITS : SHORT_UNITS;
	for (uint32_t i = 0; i < N_STEPS; i++) {
		const uint32_t k = xrand_below(&m->seed, n_keys);

		pass_time(m);
		step_expire(m);
		if (xrand_below(&m->seed, 100) < first_pct) {
			step_first(m, k);
			step_take(m, k);
		} else {
			if (round % 2 == 0)
				step_shed(m, 150);
			step_later(m, k, round * N_STEPS + i + 1);
			step_take(m, k);
		}
		expect_stats(m);
	}
}

static void
test_the_table_is_what_the_plain_model_is(void **state)
{
	const struct lb_fragment_conf conf = {N_ENTRIES, N_SLOTS, BYTES_MAX, TIMEOUT, 77};

	(void)state;
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		struct model m = {.seed = 20260 + round};
		enum lb_verdict why = LB_FORWARD;
		void *packet = NULL;
		void *mem = aligned_alloc(LB_CACHE_LINE, lb_fragment_table_bytes(&conf));

		assert_non_null(mem);
		memset(mem, 0, lb_fragment_table_bytes(&conf));
		assert_int_equal(lb_fragment_table_init(mem, &conf, &m.table), 0);
		m.now = xrand(&m.seed) >> 1;
		run_round(&m, round);
		/* Whatever waits still. */
		while (lb_fragment_abandon(m.table, &packet, &why)) {
			m.now += TIMEOUT + 1;
			expect_returned(&m, packet, why);
		}
		assert_int_equal(m.n_waiting, 0);
		free(mem);
	}
}

static void
test_all_that_can_happen_did(void **state)
{
	(void)state;
	print_message(
		"forwarded %lu, waited %lu, taken %lu, repeated %lu, inside %lu, overlapped "
		"%lu, exceeded %lu, unmatched %lu, completed %lu, evicted waiting %lu; of "
		"whole ones again %lu, followed %lu, next %lu\n",
		seen.forwarded, seen.waited, seen.taken, seen.repeated, seen.inside,
		seen.overlapped, seen.exceeded, seen.unmatched, seen.completed,
		seen.evicted_waiting, seen.whole_again, seen.followed_whole, seen.next_waited);
	assert_true(seen.forwarded > 1000);
	assert_true(seen.waited > 1000);
	assert_true(seen.taken > 1000);
	assert_true(seen.repeated > 1000);
	assert_true(seen.inside > 100);
	assert_true(seen.overlapped > 1000);
	assert_true(seen.exceeded > 100);
	assert_true(seen.unmatched > 100);
	assert_true(seen.completed > 100);
	assert_true(seen.evicted_waiting > 10);
	assert_true(seen.evicted_given_up > 100);
	assert_true(seen.shed > 100);
	assert_true(seen.whole_again > 100);
	assert_true(seen.followed_whole > 100);
	assert_true(seen.next_waited > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_is_what_the_plain_model_is),
		cmocka_unit_test(test_all_that_can_happen_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
