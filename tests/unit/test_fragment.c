/* SPDX-License-Identifier: BSD-3-Clause */
#include "lb_fragment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "lb_compiler.h"
#include "lb_hash.h"

#define TIMEOUT   LB_FRAGMENT_TIMEOUT_NS
#define MS        UINT64_C(1000000)
#define N_STEPS   24u
#define N_PACKETS 128u
#define WAITS     LB_N_VERDICTS /* no verdict: the packet is kept */

/* A packet is known by its address; by its number to the rows. */
static uint8_t packets[N_PACKETS];

static const struct lb_fragment_conf usual = {
	.n_datagrams = 8,
	.n_waiting = 100,
	.waiting_bytes = 1000000,
	.timeout_ns = TIMEOUT,
	.secret = 42,
};

static const struct lb_fragment_decision served = {LB_FORWARD, {22, 44}};

static const struct lb_fragment_decision dropped_first = {.verdict = LB_DROP_NO_BACKEND};

static struct lb_fragment_table *
new_table(const struct lb_fragment_conf *conf)
{
	const size_t bytes = lb_fragment_table_bytes(conf);
	struct lb_fragment_table *table = NULL;
	void *mem = aligned_alloc(LB_CACHE_LINE, bytes);

	assert_non_null(mem);
	memset(mem, 0, bytes);
	assert_int_equal(lb_fragment_table_init(mem, conf, &table), 0);
	assert_ptr_equal(table, mem);
	return table;
}

static struct lb_fragment_key
key_of(unsigned int id, bool is_v6)
{
	static const uint8_t src[4] = {203, 0, 113, 7};
	static const uint8_t dst[4] = {198, 51, 100, 10};
	struct lb_fragment_key key = {.id = id};

	key.src = lb_addr_from_v4(src);
	key.dst = lb_addr_from_v4(dst);
	key.proto = 17;
	if (is_v6) {
		key.src.bytes[0] = key.dst.bytes[0] = 0x20;
		key.proto = 0;
	}
	return key;
}

/* A first fragment, and what is decided of it if it fits. */
static enum lb_verdict
decide(struct lb_fragment_table *table, const struct lb_fragment_key *key,
	const struct lb_fragment_range *range, const struct lb_fragment_decision *decision,
	uint64_t now_ns)
{
	const enum lb_verdict fits = lb_fragment_first(table, key, range, now_ns);

	if (fits == LB_FORWARD)
		lb_fragment_decide(table, key, decision);
	return fits;
}

/* The next packet that waited, untouched where there is none. */
static bool
take(struct lb_fragment_table *table, const struct lb_fragment_key *key, void **packet)
{
	struct lb_fragment_waited waited = {*packet, false};
	const bool got = lb_fragment_take(table, key, &waited);

	*packet = waited.packet;
	return got;
}

/* --- one datagram, step by step --- */

enum op { DONE, FIRST, DROP_FIRST, LATER, TAKE, EXPIRE, AT, DATAGRAM };

struct step {
	enum op op;
	unsigned int a; /* offset; a packet's number; ms; id */
	unsigned int bytes;
	bool has_more;
	int want; /* enum lb_verdict, or WAITS */
};

#define F(bytes, want)                                                                         \
	{                                                                                      \
		FIRST, 0, bytes, true, want                                                    \
	}
#define MORE(offset, bytes, want)                                                              \
	{                                                                                      \
		LATER, offset, bytes, true, want                                               \
	}
#define LAST(offset, bytes, want)                                                              \
	{                                                                                      \
		LATER, offset, bytes, false, want                                              \
	}
/* Packets are numbered by the steps that brought them, from 1; 0 is none. */
#define TOOK(n)                                                                                \
	{                                                                                      \
		TAKE, n, 0, false, 0                                                           \
	}
#define GAVE(n, why)                                                                           \
	{                                                                                      \
		EXPIRE, n, 0, false, why                                                       \
	}
#define GAVE_NONE                                                                              \
	{                                                                                      \
		EXPIRE, 0, 0, false, 0                                                         \
	}
#define AT_MS(ms)                                                                              \
	{                                                                                      \
		AT, ms, 0, false, 0                                                            \
	}
#define OF(id)                                                                                 \
	{                                                                                      \
		DATAGRAM, id, 0, false, 0                                                      \
	}
#define GOES      LB_FORWARD
#define OVERLAPS  LB_DROP_FRAGMENT_OVERLAP
#define EXCEEDS   LB_DROP_FRAGMENT_EXCESS
#define UNMATCHED LB_DROP_FRAGMENT_UNMATCHED
#define BAD       LB_DROP_FRAGMENT_BAD

static const struct {
	const char *name;
	struct step steps[N_STEPS];
	unsigned int n_live; /* datagrams in the table at the end */
} rows[] = {
	/* Orders */
	{"in order", {F(1480, GOES), TOOK(0), MORE(1480, 1480, GOES), LAST(2960, 100, GOES)},
		0},
	{"in order, not yet whole", {F(1480, GOES), MORE(1480, 1480, GOES)}, 1},
	{"in reverse order: what waited goes as it came",
		{LAST(2960, 100, WAITS), MORE(1480, 1480, WAITS), TOOK(0), F(1480, GOES),
			TOOK(1), TOOK(2), TOOK(0)},
		0},
	{"the first in the middle",
		{LAST(2960, 100, WAITS), F(1480, GOES), TOOK(1), TOOK(0),
			MORE(1480, 1480, GOES)},
		0},
	{"the end first, a hole last",
		{LAST(24, 1, WAITS), F(8, GOES), TOOK(1), MORE(16, 8, GOES), MORE(8, 8, GOES)},
		0},
	/* One that is whole, and the next of its number */
	{"what repeats a fragment of a whole datagram follows it",
		{F(8, GOES), MORE(8, 8, GOES), LAST(16, 8, GOES), LAST(16, 8, GOES),
			MORE(8, 8, GOES), MORE(8, 8, GOES)},
		0},
	{"and one that waited for its first",
		{LAST(16, 8, WAITS), MORE(8, 8, WAITS), F(8, GOES), TOOK(1), TOOK(2), TOOK(0),
			LAST(16, 8, GOES)},
		0},
	{"and the next datagram is not held against it",
		{F(8, GOES), LAST(8, 8, GOES), LAST(8, 8, GOES), F(16, GOES), MORE(16, 8, GOES),
			LAST(24, 8, GOES)},
		0},
	{"nor the next, where the first was repeated too",
		{F(8, GOES), LAST(8, 8, GOES), F(8, GOES), LAST(8, 8, GOES), F(16, GOES),
			LAST(16, 8, GOES)},
		0},
	{"nor where the first alone was",
		{F(8, GOES), LAST(8, 8, GOES), F(8, GOES), F(8, GOES), F(16, GOES), F(24, GOES),
			LAST(24, 8, GOES)},
		0},
	{"but of two with more than their firsts one is given up",
		{F(8, GOES), LAST(8, 8, GOES), F(8, GOES), MORE(8, 8, GOES), F(16, OVERLAPS)},
		1},
	{"the next one's last fragment, come before its first, is none of the one before",
		{F(8, GOES), LAST(8, 8, GOES), LAST(16, 8, WAITS), F(8, GOES), TOOK(3), TOOK(0),
			MORE(8, 8, GOES)},
		0},
	{"nor is one that ends there otherwise, or lies across two",
		{F(8, GOES), MORE(8, 8, GOES), LAST(16, 8, GOES), MORE(16, 8, WAITS),
			LAST(16, 8, OVERLAPS), GAVE(4, OVERLAPS), OF(2), F(8, GOES),
			MORE(8, 8, GOES), LAST(16, 8, GOES), LAST(8, 16, WAITS)},
		2},
	{"a whole datagram is forgotten after its time",
		{F(8, GOES), LAST(8, 8, GOES), AT_MS(1000), LAST(8, 8, GOES), AT_MS(1001),
			LAST(8, 8, WAITS)},
		1},
	{"what was dropped whole drops what repeats it, and nothing of the next",
		{OF(3), LAST(8, 8, WAITS), {DROP_FIRST, 0, 8, true, GOES}, TOOK(2), TOOK(0),
			LAST(8, 8, LB_DROP_NO_BACKEND), LAST(16, 8, WAITS), F(16, GOES),
			TOOK(7)},
		0},
	{"what waits for one first is not taken by another's",
		{OF(1), LAST(8, 8, WAITS), OF(2), F(8, GOES), TOOK(0), OF(1), F(8, GOES),
			TOOK(2), OF(2), LAST(8, 8, GOES)},
		0},
	{"a datagram is not whole while something waits for it",
		{LAST(8, 8, WAITS), LAST(8, 8, WAITS), F(8, GOES), TOOK(1), TOOK(2), TOOK(0)},
		0},

	{"a whole datagram may be given up still, before its packets are taken",
		{LAST(8, 8, WAITS), F(8, GOES), LAST(16, 8, OVERLAPS), TOOK(0),
			GAVE(1, OVERLAPS), F(8, OVERLAPS)},
		1},

	/* The same fragment again */
	{"a first again", {F(8, GOES), F(8, GOES), LAST(8, 8, GOES)}, 0},
	{"a later again goes too",
		{F(8, GOES), MORE(8, 8, GOES), MORE(8, 8, GOES), LAST(16, 8, GOES)}, 0},
	{"a last again goes too",
		{F(8, GOES), LAST(16, 8, GOES), LAST(16, 8, GOES), MORE(8, 8, GOES)}, 0},
	{"a later again waits too",
		{MORE(8, 8, WAITS), MORE(8, 8, WAITS), F(8, GOES), TOOK(1), TOOK(2), TOOK(0)},
		1},
	{"a first of another length is no repetition", {F(16, GOES), F(8, OVERLAPS)}, 1},
	{"a first of another length, longer", {F(16, GOES), F(24, OVERLAPS)}, 1},

	/* What does not fit */
	{"overlap of a byte range's end",
		{F(16, GOES), MORE(8, 16, OVERLAPS), LAST(32, 8, OVERLAPS), F(16, OVERLAPS)},
		1},
	{"overlap of a range's beginning",
		{F(8, GOES), MORE(16, 16, GOES), MORE(8, 16, OVERLAPS)}, 1},
	{"a range inside another", {F(8, GOES), MORE(8, 24, GOES), MORE(16, 8, OVERLAPS)}, 1},
	{"a range at another's beginning",
		{F(8, GOES), MORE(8, 24, GOES), MORE(8, 8, OVERLAPS)}, 1},
	{"a range at another's end", {F(8, GOES), MORE(8, 24, GOES), MORE(24, 8, OVERLAPS)}, 1},
	{"a range around another", {F(8, GOES), MORE(16, 8, GOES), MORE(8, 24, OVERLAPS)}, 1},
	{"a range that fills a hole and a byte of the next",
		{F(8, GOES), MORE(16, 8, GOES), LAST(8, 9, OVERLAPS)}, 1},
	{"overlap of the first with what waits",
		{MORE(8, 8, WAITS), LAST(16, 8, WAITS), F(16, OVERLAPS), TOOK(0),
			GAVE(2, OVERLAPS), GAVE(1, OVERLAPS), GAVE_NONE, LAST(16, 8, OVERLAPS)},
		1},
	{"overlap of two that would wait",
		{MORE(8, 16, WAITS), MORE(16, 16, OVERLAPS), GAVE(1, OVERLAPS), GAVE_NONE,
			F(8, OVERLAPS), TOOK(0)},
		1},
	{"a second end, beyond", {F(8, GOES), LAST(16, 8, GOES), LAST(24, 8, OVERLAPS)}, 1},
	{"a second end, before", {F(8, GOES), LAST(24, 8, GOES), LAST(8, 8, OVERLAPS)}, 1},
	{"an end before what was seen", {F(8, GOES), MORE(24, 8, GOES), LAST(8, 8, OVERLAPS)},
		1},
	{"an end where more was to come", {F(8, GOES), MORE(8, 8, GOES), LAST(8, 8, OVERLAPS)},
		1},
	{"more to come where the end was",
		{F(8, GOES), LAST(16, 8, GOES), MORE(16, 8, OVERLAPS)}, 1},
	{"bytes beyond the end", {F(8, GOES), LAST(16, 8, GOES), MORE(24, 8, OVERLAPS)}, 1},
	{"a first beyond the end", {LAST(8, 4, WAITS), F(16, OVERLAPS), GAVE(1, OVERLAPS)}, 1},

	/* What is no fragment of the kind */
	{"a first that is the last too is none", {{FIRST, 0, 8, false, BAD}}, 0},
	{"a later one at 0", {MORE(0, 8, BAD), LAST(0, 8, BAD)}, 0},
	{"no payload", {F(0, BAD), MORE(8, 0, BAD), LAST(8, 0, BAD)}, 0},
	{"no multiple of 8", {F(12, BAD), MORE(8, 9, BAD), LAST(9, 8, BAD)}, 0},
	{"as far as 65535, and one further",
		{F(8, GOES), LAST(65528, 8, BAD), LAST(65528, 7, GOES), MORE(65528, 8, BAD)},
		1},

	/* Time */
	{"at the limit a fragment waits still",
		{MORE(8, 8, WAITS), AT_MS(1000), GAVE_NONE, F(8, GOES), TOOK(1), TOOK(0)}, 1},
	{"beyond the limit it does not",
		{MORE(8, 8, WAITS), AT_MS(1001), GAVE(1, UNMATCHED), GAVE_NONE, F(8, GOES),
			TOOK(0)},
		1},
	{"each waits from its own arrival",
		{MORE(8, 8, WAITS), AT_MS(600), MORE(16, 8, WAITS), AT_MS(1100),
			GAVE(1, UNMATCHED), GAVE_NONE, AT_MS(1500), F(8, GOES), TOOK(3),
			TOOK(0)},
		1},
	{"those of several datagrams come back by age",
		{OF(1), MORE(8, 8, WAITS), OF(2), MORE(8, 8, WAITS), OF(1), MORE(16, 8, WAITS),
			AT_MS(1001), GAVE(2, UNMATCHED), GAVE(4, UNMATCHED), GAVE(6, UNMATCHED),
			GAVE_NONE, GAVE_NONE},
		0},
	{"taking from the middle of those that wait",
		{OF(1), MORE(8, 8, WAITS), OF(2), MORE(8, 8, WAITS), OF(3), MORE(8, 8, WAITS),
			OF(2), F(8, GOES), TOOK(4), AT_MS(1001), GAVE(2, UNMATCHED),
			GAVE(6, UNMATCHED), GAVE_NONE, OF(4), MORE(8, 8, WAITS), F(8, GOES),
			TOOK(15), TOOK(0)},
		1},
	{"at the limit a datagram is known still",
		{F(8, GOES), AT_MS(1000), GAVE_NONE, MORE(8, 8, GOES)}, 1},
	{"beyond the limit it is not, noticed by the sweep or not",
		{OF(1), F(8, GOES), OF(2), F(8, GOES), AT_MS(1001), OF(1), MORE(8, 8, WAITS),
			GAVE_NONE, OF(2), MORE(8, 8, WAITS)},
		2},
	{"new bytes let a datagram live on",
		{F(8, GOES), AT_MS(900), MORE(8, 8, GOES), AT_MS(1800), MORE(16, 8, GOES)}, 1},
	{"repetitions do not",
		{F(8, GOES), MORE(8, 8, GOES), AT_MS(900), MORE(8, 8, GOES), F(8, GOES),
			AT_MS(1001), MORE(16, 8, WAITS)},
		1},
	{"a datagram for which something waits is known beyond its time",
		{MORE(8, 8, WAITS), AT_MS(900), MORE(8, 8, WAITS), AT_MS(1800),
			GAVE(1, UNMATCHED), GAVE_NONE, F(8, GOES), TOOK(3), MORE(8, 8, GOES)},
		1},
	{"a datagram that was given up is forgotten too",
		{F(8, GOES), F(16, OVERLAPS), AT_MS(1001), F(16, GOES)}, 1},
};

struct run {
	const char *name;
	struct lb_fragment_table *table;
	struct lb_fragment_key key;
	uint64_t start_ns, now_ns;
};

static unsigned int
number_of(const void *packet)
{
	return (unsigned int)((const uint8_t *)packet - packets);
}

static void
do_first(struct run *run, const struct step *step, unsigned int number,
	const struct lb_fragment_decision *decision)
{
	const struct lb_fragment_range range = {0, (uint16_t)step->bytes, step->has_more};
	const enum lb_verdict got =
		decide(run->table, &run->key, &range, decision, run->now_ns);

	EXPECT((int)got == step->want, "%s, step %u: %d, want %d", run->name, number, got,
		step->want);
}

static void
do_later(struct run *run, const struct step *step, unsigned int number)
{
	const struct lb_fragment_range range = {(uint16_t)step->a, (uint16_t)step->bytes,
		step->has_more};
	const struct lb_fragment_packet packet = {&packets[number], 100};
	struct lb_fragment_decision out = {.verdict = LB_REPLY};
	const bool waits =
		lb_fragment_later(run->table, &run->key, &range, &packet, run->now_ns, &out);

	EXPECT(waits == (step->want == (int)WAITS), "%s, step %u: %s", run->name, number,
		waits ? "waits" : "does not wait");
	EXPECT((int)out.verdict == (waits ? (int)LB_REPLY : step->want),
		"%s, step %u: %d, want %d", run->name, number, out.verdict, step->want);
	if (out.verdict == LB_FORWARD)
		assert_memory_equal(&out.owner, &served.owner, sizeof(out.owner));
}

static void
do_take_or_expire(struct run *run, const struct step *step, unsigned int number)
{
	void *packet = packets;
	enum lb_verdict why = LB_FORWARD;
	const bool got = step->op == TAKE
				 ? take(run->table, &run->key, &packet)
				 : lb_fragment_expire(run->table, run->now_ns, &packet, &why);

	EXPECT(got == (step->a != 0) && number_of(packet) == step->a,
		"%s, step %u: packet %u, want %u", run->name, number, number_of(packet),
		step->a);
	EXPECT((int)why == step->want, "%s, step %u: why %d, want %d", run->name, number, why,
		step->want);
}

static void
do_step(struct run *run, const struct step *step, unsigned int number, bool is_v6)
{
	switch (step->op) {
	case FIRST:
		do_first(run, step, number, &served);
		break;
	case DROP_FIRST:
		do_first(run, step, number, &dropped_first);
		break;
	case LATER:
		do_later(run, step, number);
		break;
	case TAKE:
	case EXPIRE:
		do_take_or_expire(run, step, number);
		break;
	case AT:
		run->now_ns = run->start_ns + step->a * MS;
		break;
	case DATAGRAM:
		run->key = key_of(step->a, is_v6);
		break;
	case DONE:
		break;
	}
}

static void
run_rows(bool is_v6, uint64_t start_ns)
{
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct run run = {rows[i].name, new_table(&usual), key_of(1, is_v6), start_ns,
			start_ns};
		struct lb_fragment_stats stats;

		for (unsigned int k = 0; k < N_STEPS; k++)
			do_step(&run, &rows[i].steps[k], k + 1, is_v6);
		lb_fragment_table_stats(run.table, &stats);
		EXPECT(stats.live == rows[i].n_live, "%s: %u datagrams at the end, want %u",
			rows[i].name, stats.live, rows[i].n_live);
		EXPECT(stats.waiting_bytes == 100 * (uint64_t)stats.waiting,
			"%s: %u packets and %llu bytes wait", rows[i].name, stats.waiting,
			(unsigned long long)stats.waiting_bytes);
		free(run.table);
	}
}

static void
test_each_row_goes_step_by_step(void **state)
{
	(void)state;
	run_rows(false, 5000 * MS);
	run_rows(true, 5000 * MS);
}

static void
test_time_may_wrap(void **state)
{
	(void)state;
	run_rows(false, UINT64_MAX - 500 * MS);
	run_rows(false, UINT64_MAX);
}

/* --- what tells datagrams apart --- */

static enum lb_verdict
first(struct lb_fragment_table *table, const struct lb_fragment_key *key, unsigned int bytes,
	uint64_t now_ns)
{
	const struct lb_fragment_range range = {0, (uint16_t)bytes, true};

	return decide(table, key, &range, &served, now_ns);
}

/* The verdict; WAITS where it waits, as packet number 1. */
static int
later(struct lb_fragment_table *table, const struct lb_fragment_key *key, unsigned int offset,
	unsigned int bytes, bool has_more, uint64_t now_ns)
{
	const struct lb_fragment_range range = {(uint16_t)offset, (uint16_t)bytes, has_more};
	const struct lb_fragment_packet packet = {&packets[1], bytes};
	struct lb_fragment_decision out;

	if (lb_fragment_later(table, key, &range, &packet, now_ns, &out))
		return WAITS;
	return (int)out.verdict;
}

/* Two senders behind one address, say, of which one lost its datagram's last fragment. */
static void
test_an_identification_used_again_for_another_flow(void **state)
{
	const struct lb_fragment_range range = {0, 104, true};
	struct lb_fragment_decision other = served, kernel = {.verdict = LB_TO_KERNEL};
	struct lb_fragment_decision dropped = {.verdict = LB_DROP_NO_BACKEND};
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_table *table = new_table(&usual);

	(void)state;
	other.owner.entropy++;
	assert_false(lb_fragment_contradicts(table, &key, &served));
	assert_int_equal(lb_fragment_first(table, &key, &range, 0), LB_FORWARD);
	assert_false(lb_fragment_contradicts(table, &key, &other));
	lb_fragment_decide(table, &key, &served);
	assert_false(lb_fragment_contradicts(table, &key, &served));
	assert_false(lb_fragment_contradicts(table, &key, &dropped));
	assert_int_equal(later(table, &key, 104, 104, true, 0), LB_FORWARD);
	assert_true(lb_fragment_contradicts(table, &key, &other));
	assert_int_equal(later(table, &key, 208, 104, true, 0), LB_DROP_FRAGMENT_OVERLAP);
	assert_int_equal(lb_fragment_first(table, &key, &range, 0), LB_DROP_FRAGMENT_OVERLAP);

	free(table);
	table = new_table(&usual);
	assert_int_equal(first(table, &key, 104, 0), LB_FORWARD);
	assert_true(lb_fragment_contradicts(table, &key, &kernel));
	free(table);

	table = new_table(&usual);
	assert_int_equal(decide(table, &key, &range, &kernel, 0), LB_FORWARD);
	assert_false(lb_fragment_contradicts(table, &key, &kernel));
	assert_true(lb_fragment_contradicts(table, &key, &served));
	free(table);
}

/* The first of a whole datagram once more, and then the next one's, of another flow. */
static void
test_a_repeated_first_is_not_held_against_the_next_flow(void **state)
{
	const struct lb_fragment_range range = {0, 104, true};
	const struct lb_fragment_range last = {104, 8, false};
	const struct lb_fragment_packet packet = {&packets[1], 100};
	struct lb_fragment_decision other = served, out;
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_table *table = new_table(&usual);

	(void)state;
	other.owner.entropy++;
	other.owner.backend++;
	assert_int_equal(decide(table, &key, &range, &served, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 104, 8, false, 0), LB_FORWARD);
	assert_int_equal(decide(table, &key, &range, &served, 0), LB_FORWARD);
	assert_int_equal(lb_fragment_first(table, &key, &range, 0), LB_FORWARD);
	assert_false(lb_fragment_contradicts(table, &key, &other));
	lb_fragment_decide(table, &key, &other);
	assert_false(lb_fragment_later(table, &key, &last, &packet, 0, &out));
	assert_int_equal(out.verdict, LB_FORWARD);
	assert_memory_equal(&out.owner, &other.owner, sizeof(out.owner));
	free(table);
}

static void
test_what_the_kernel_has_whole_is_forgotten(void **state)
{
	const struct lb_fragment_range range = {0, 104, true};
	const struct lb_fragment_decision kernel = {.verdict = LB_TO_KERNEL};
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_table *table = new_table(&usual);
	struct lb_fragment_stats stats;

	(void)state;
	assert_int_equal(decide(table, &key, &range, &kernel, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 104, 8, false, 0), LB_TO_KERNEL);
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.live, 0);
	free(table);
}

static void
test_a_repetition_is_not_answered_again(void **state)
{
	const struct lb_fragment_range range = {0, 104, true};
	const struct lb_fragment_decision reply = {.verdict = LB_REPLY};
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_table *table = new_table(&usual);

	(void)state;
	assert_int_equal(decide(table, &key, &range, &reply, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 104, 104, true, 0), LB_REPLY);
	assert_int_equal(later(table, &key, 104, 104, true, 0), LB_DROP_RATE_LIMITED);
	assert_int_equal(later(table, &key, 208, 8, false, 0), LB_REPLY);
	free(table);
}

static void
test_each_part_of_the_key_tells_datagrams_apart(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(7, false);
	struct lb_fragment_key others[5] = {key, key, key, key, key_of(7, true)};

	(void)state;
	others[0].src.bytes[15] ^= 1;
	others[1].dst.bytes[12] ^= 0x80;
	others[2].id ^= 1u << 31;
	others[3].proto = 6;
	assert_int_equal(first(table, &key, 8, 0), LB_FORWARD);
	for (size_t i = 0; i < LB_N_ELEMENTS(others); i++)
		EXPECT(later(table, &others[i], 8, 8, true, 0) == (int)WAITS, "other %zu", i);
	assert_int_equal(later(table, &key, 8, 8, true, 0), LB_FORWARD);
	free(table);
}

/* Under the usual secret, the hashes of these agree in all bits that the table keeps. */
static void
test_a_datagram_is_known_by_its_key_and_not_by_its_hash(void **state)
{
	struct lb_fragment_key pairs[4][2];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(pairs); i++)
		pairs[i][0] = pairs[i][1] = key_of(1, false);
	pairs[0][0].id = 0x692d;
	pairs[0][1].id = 0x261ab;
	memcpy(&pairs[1][0].src.bytes[13], "\x00\xde\x33", 3);
	memcpy(&pairs[1][1].src.bytes[13], "\x02\xbf\x41", 3);
	memcpy(&pairs[2][0].dst.bytes[13], "\x01\x67\x5e", 3);
	memcpy(&pairs[2][1].dst.bytes[13], "\x01\xa3\x55", 3);
	pairs[3][0].id = pairs[3][1].id = 0x5fe349ec;
	pairs[3][1].proto = 6;
	for (size_t i = 0; i < LB_N_ELEMENTS(pairs); i++) {
		struct lb_fragment_table *table = new_table(&usual);
		const uint64_t differs = lb_hash_bytes(&pairs[i][0], 40, usual.secret) ^
					 lb_hash_bytes(&pairs[i][1], 40, usual.secret);

		EXPECT((differs & 0xfffffffe) == 0, "pair %zu: other hashes", i);
		assert_int_equal(first(table, &pairs[i][0], 8, 0), LB_FORWARD);
		EXPECT(later(table, &pairs[i][1], 8, 8, true, 0) == (int)WAITS,
			"pair %zu: taken for one datagram", i);
		free(table);
	}
}

static void
test_a_packet_says_which_datagram_it_is_of(void **state)
{
	const struct lb_fragment_key v4 = key_of(0x1234, false);
	const struct lb_fragment_key v6 = key_of(0x12345678, true);
	struct lb_packet packet = {
		.key = {.src = v4.src,
			.dst = v4.dst,
			.sport_be = 1,
			.dport_be = 2,
			.proto = 17},
		.dst = v4.dst,
		.flags = LB_PACKET_FRAGMENT | LB_PACKET_MORE,
		.frag_id = v4.id,
		.frag_offset = 1480,
		.frag_bytes = 976,
	};
	struct lb_fragment_key key;
	struct lb_fragment_range range;

	(void)state;
	memset(&key, 0xaa, sizeof(key));
	lb_fragment_describe(&packet, &key, &range);
	assert_memory_equal(&key, &v4, sizeof(key));
	assert_int_equal(range.offset, 1480);
	assert_int_equal(range.bytes, 976);
	assert_true(range.has_more);

	/* The first's protocol may differ from what the others' fragment headers say. */
	packet.is_v6 = true;
	packet.key.src = v6.src;
	packet.key.dst = packet.dst = v6.dst;
	packet.frag_id = v6.id;
	packet.flags = LB_PACKET_FRAGMENT;
	lb_fragment_describe(&packet, &key, &range);
	assert_memory_equal(&key, &v6, sizeof(key));
	assert_false(range.has_more);
}

/* --- what was decided of the first --- */

static void
test_later_fragments_share_the_firsts_verdict(void **state)
{
	static const enum lb_verdict verdicts[] = {LB_FORWARD, LB_TO_KERNEL,
		LB_DROP_NO_BACKEND};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(verdicts); i++) {
		struct lb_fragment_table *table = new_table(&usual);
		const struct lb_fragment_key key = key_of(1, false);
		const struct lb_fragment_decision decision = {verdicts[i], {2, 4}};
		const struct lb_fragment_range at_0 = {0, 8, true};
		const struct lb_fragment_range at_8 = {8, 8, true};
		const struct lb_fragment_range at_16 = {16, 8, true};
		const struct lb_fragment_packet packet = {&packets[1], 100};
		struct lb_fragment_decision out;
		void *taken = NULL;

		assert_true(lb_fragment_later(table, &key, &at_8, &packet, 0, &out));
		assert_int_equal(decide(table, &key, &at_0, &decision, 0), LB_FORWARD);
		assert_true(take(table, &key, &taken));
		assert_ptr_equal(taken, &packets[1]);
		/* Its repetition decides nothing, and where the others are dropped so is it. */
		EXPECT(decide(table, &key, &at_0, &served, 0) ==
				(verdicts[i] == LB_DROP_NO_BACKEND ? verdicts[i] : LB_FORWARD),
			"row %zu: the repetition", i);
		assert_false(lb_fragment_later(table, &key, &at_16, &packet, 0, &out));
		assert_int_equal(out.verdict, verdicts[i]);
		assert_memory_equal(&out.owner, &decision.owner, sizeof(out.owner));
		free(table);
	}
}

/* --- large datagrams --- */

#define LARGEST 65528u /* and 7 bytes in the last fragment */

/* The ith fragment of n, in one order of several; n or more where there is none. */
static unsigned int
in_order(unsigned int order, unsigned int i, unsigned int n)
{
	if (order == 1)
		return n - 1 - i; /* backwards */
	if (order == 2)
		return i >= n || (i ^ 1) >= n ? i : i ^ 1; /* each pair turned round */
	if (order == 3)
		return i % 8 * ((n + 7) / 8) + i / 8; /* 8 streams in turn */
	return i;
}

/* After its first, all of a datagram of the largest size in pieces, in an order. */
static void
send_large(unsigned int piece, unsigned int order)
{
	const unsigned int n = (LARGEST + 7 + piece - 1) / piece;
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_stats stats;

	assert_int_equal(first(table, &key, piece, 0), LB_FORWARD);
	for (unsigned int i = 0; i < (n + 7) / 8 * 8; i++) {
		const unsigned int at = in_order(order, i, n);
		const unsigned int offset = at * piece;
		const bool has_more = at + 1 < n;
		int got;

		if (at == 0 || at >= n)
			continue;
		got = later(table, &key, offset, has_more ? piece : LARGEST + 7 - offset,
			has_more, i);
		EXPECT(got == (int)LB_FORWARD, "pieces of %u, order %u: the %uth: %d", piece,
			order, i, got);
	}
	lb_fragment_table_stats(table, &stats);
	EXPECT(stats.completed == 1 && stats.live == 0, "pieces of %u, order %u: not complete",
		piece, order);
	free(table);
}

static void
test_the_largest_datagram_passes_in_any_pieces(void **state)
{
	static const unsigned int pieces[] = {8, 16, 552, 1232, 1480, 8952, 65520};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(pieces); i++) {
		for (unsigned int order = 0; order < 4; order++)
			send_large(pieces[i], order);
	}
}

/* All of a datagram of the largest size in pieces, in an order, and its first at last. */
static void
wait_large(unsigned int piece, unsigned int order)
{
	const unsigned int n = (LARGEST + 7 + piece - 1) / piece;
	const struct lb_fragment_conf conf = {8, n - 1, 1000000, TIMEOUT, 1};
	struct lb_fragment_table *table = new_table(&conf);
	const struct lb_fragment_key key = key_of(1, true);
	unsigned int n_taken = 0;
	struct lb_fragment_stats stats;
	void *packet = NULL;

	for (unsigned int i = 0; i < (n + 7) / 8 * 8; i++) {
		const unsigned int at = in_order(order, i, n);
		const unsigned int offset = at * piece;
		const bool has_more = at + 1 < n;

		if (at == 0 || at >= n)
			continue;
		EXPECT(later(table, &key, offset, has_more ? piece : LARGEST + 7 - offset,
			       has_more, 0) == (int)WAITS,
			"pieces of %u, order %u: the %uth does not wait", piece, order, i);
	}
	EXPECT(first(table, &key, piece, 0) == LB_FORWARD, "pieces of %u, order %u: first",
		piece, order);
	while (take(table, &key, &packet))
		n_taken++;
	EXPECT(n_taken == n - 1, "pieces of %u, order %u: %u waited, of %u", piece, order,
		n_taken, n - 1);
	lb_fragment_table_stats(table, &stats);
	EXPECT(stats.completed == 1, "pieces of %u, order %u: not complete", piece, order);
	free(table);
}

static void
test_the_largest_datagram_may_wait_if_there_is_room(void **state)
{
	static const unsigned int pieces[] = {48, 552, 1232, 1480};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(pieces); i++) {
		for (unsigned int order = 0; order < 4; order++)
			wait_large(pieces[i], order);
	}
}

/* Every second piece, from the end, and then the others: as many ranges as there can be. */
static void
test_the_largest_datagram_in_small_pieces_may_have_any_order(void **state)
{
	const unsigned int n = (LARGEST + 7 + 551) / 552;
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_stats stats;

	(void)state;
	assert_int_equal(n, 119);
	assert_int_equal(first(table, &key, 552, 0), LB_FORWARD);
	for (unsigned int parity = 0; parity < 2; parity++) {
		for (unsigned int at = n - 1 - parity; at > 0 && at < n; at -= 2)
			assert_int_equal(later(table, &key, at * 552,
						 at == n - 1 ? LARGEST + 7 - at * 552 : 552,
						 at != n - 1, 0),
				LB_FORWARD);
	}
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.completed, 1);
	free(table);
}

/* --- bounds of one datagram --- */

static void
test_a_datagram_of_too_many_holes_is_given_up(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(1, false);

	(void)state;
	assert_int_equal(first(table, &key, 8, 0), LB_FORWARD);
	for (unsigned int i = 1; i < LB_FRAGMENT_RANGES; i++)
		assert_int_equal(later(table, &key, i * 16, 8, true, 0), LB_FORWARD);
	/* What adjoins one of them finds room. */
	assert_int_equal(later(table, &key, 8, 8, true, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 8, 8, true, 0), LB_DROP_FRAGMENT_OVERLAP);
	assert_int_equal(later(table, &key, 1600, 8, true, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 3200, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(later(table, &key, 24, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	free(table);
}

static void
test_what_lies_in_merged_ranges_is_dropped_alone(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(1, false);

	(void)state;
	assert_int_equal(first(table, &key, 8, 0), LB_FORWARD);
	for (unsigned int i = 1; i <= LB_FRAGMENT_RANGES; i++)
		assert_int_equal(later(table, &key, i * 8, 8, true, 0), LB_FORWARD);
	/* The oldest two have become one; the others are told apart still. */
	assert_int_equal(first(table, &key, 8, 0), LB_DROP_FRAGMENT_OVERLAP);
	assert_int_equal(later(table, &key, 8, 8, true, 0), LB_DROP_FRAGMENT_OVERLAP);
	assert_int_equal(later(table, &key, 16, 8, true, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 8 * LB_FRAGMENT_RANGES, 8, true, 0), LB_FORWARD);
	/* Across a merged range's end is an overlap for sure. */
	assert_int_equal(later(table, &key, 8, 16, true, 0), LB_DROP_FRAGMENT_OVERLAP);
	assert_int_equal(later(table, &key, 16, 8, true, 0), LB_DROP_FRAGMENT_OVERLAP);
	free(table);
}

static void
test_an_endless_series_is_given_up(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(1, false);

	(void)state;
	assert_int_equal(first(table, &key, 8, 0), LB_FORWARD);
	for (unsigned int i = 1; i < LB_FRAGMENT_SERIES_MAX; i++)
		assert_int_equal(later(table, &key, 8, 8, true, 0), LB_FORWARD);
	assert_int_equal(later(table, &key, 8, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(later(table, &key, 16, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(first(table, &key, 8, 0), LB_DROP_FRAGMENT_EXCESS);
	free(table);
}

/* Packets handed back, all for the same reason; the rest stays. */
static unsigned int
count_returned(struct lb_fragment_table *table, uint64_t now_ns, enum lb_verdict reason)
{
	unsigned int n = 0;
	enum lb_verdict why = LB_FORWARD;
	void *packet = NULL;

	while (lb_fragment_expire(table, now_ns, &packet, &why)) {
		assert_int_equal(why, reason);
		assert_ptr_equal(packet, &packets[1]);
		n++;
	}
	return n;
}

static void
test_one_datagram_may_have_all_the_room_and_no_more(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key key = key_of(1, false);
	const struct lb_fragment_key other = key_of(2, false);

	(void)state;
	for (unsigned int i = 1; i <= usual.n_waiting; i++)
		assert_int_equal(later(table, &key, i * 8, 8, true, 0), WAITS);
	assert_int_equal(later(table, &other, 8, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(later(table, &key, 808, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(count_returned(table, 0, LB_DROP_FRAGMENT_EXCESS), usual.n_waiting);
	assert_int_equal(first(table, &key, 8, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(later(table, &other, 8, 8, true, 0), WAITS);
	free(table);
}

/* --- bounds of all --- */

static void
test_a_full_waiting_room_refuses_and_keeps(void **state)
{
	const struct lb_fragment_conf conf = {8, 3, 1000, TIMEOUT, 1};
	struct lb_fragment_table *table = new_table(&conf);
	struct lb_fragment_key keys[4];
	struct lb_fragment_stats stats;

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		keys[i] = key_of(i, false);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(later(table, &keys[i], 8, 8, true, 0), WAITS);
	assert_int_equal(later(table, &keys[3], 8, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.live, 3); /* what is refused leaves nothing behind */
	assert_int_equal(stats.refused, 1);
	/* Without one of its fragments a datagram is of no use: it leaves the room to others.
	 */
	assert_int_equal(later(table, &keys[1], 16, 8, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(count_returned(table, 0, LB_DROP_FRAGMENT_EXCESS), 1);
	assert_int_equal(later(table, &keys[3], 8, 8, true, 0), WAITS);
	/* What is decided needs no room. */
	assert_int_equal(first(table, &keys[0], 8, 0), LB_FORWARD);
	assert_int_equal(later(table, &keys[0], 16, 8, true, 0), LB_FORWARD);
	free(table);
}

/* Packets handed back to make room for so many bytes. */
static unsigned int
count_shed(struct lb_fragment_table *table, uint32_t bytes)
{
	unsigned int n = 0;
	enum lb_verdict why = LB_FORWARD;
	void *packet = NULL;

	while (lb_fragment_shed(table, bytes, &packet, &why)) {
		assert_int_equal(why, LB_DROP_FRAGMENT_EXCESS);
		n++;
	}
	return n;
}

static void
test_what_waits_the_longest_makes_room(void **state)
{
	const struct lb_fragment_conf conf = {8, 3, 1000, TIMEOUT, 1};
	struct lb_fragment_table *table = new_table(&conf);
	struct lb_fragment_key keys[4];
	void *packet = NULL;

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		keys[i] = key_of(i, false);
	assert_int_equal(later(table, &keys[0], 8, 8, true, 0), WAITS);
	assert_int_equal(count_shed(table, 8), 0);
	assert_int_equal(later(table, &keys[1], 8, 8, true, 0), WAITS);
	assert_int_equal(later(table, &keys[1], 16, 8, true, 0), WAITS);
	assert_int_equal(count_shed(table, 1001),
		0); /* what never finds any drives nobody out */
	assert_int_equal(count_shed(table, 8), 1);
	assert_int_equal(count_shed(table, 8), 0);
	assert_int_equal(later(table, &keys[2], 8, 8, true, 0), WAITS);
	/* It goes with all of its datagram, which could be put together no more. */
	assert_int_equal(count_shed(table, 8), 1);
	assert_int_equal(count_returned(table, 0, LB_DROP_FRAGMENT_EXCESS), 1);
	assert_int_equal(first(table, &keys[0], 8, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(first(table, &keys[1], 8, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(first(table, &keys[2], 8, 0), LB_FORWARD);
	assert_true(take(table, &keys[2], &packet));
	assert_int_equal(count_shed(table, 1000), 0);
	free(table);
}

static void
test_bytes_that_wait_are_bounded(void **state)
{
	const struct lb_fragment_conf conf = {8, 100, 1000, TIMEOUT, 1};
	struct lb_fragment_table *table = new_table(&conf);
	const struct lb_fragment_key a = key_of(1, false);
	const struct lb_fragment_key b = key_of(2, false);
	const struct lb_fragment_key c = key_of(3, false);
	void *packet = NULL;

	(void)state;
	assert_int_equal(later(table, &a, 8, 600, true, 0), WAITS);
	assert_int_equal(later(table, &b, 8, 408, true, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(later(table, &b, 8, 400, true, 0), WAITS);
	assert_int_equal(later(table, &c, 8, 1, false, 0), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(first(table, &a, 8, 0), LB_FORWARD);
	assert_true(take(table, &a, &packet));
	assert_int_equal(later(table, &c, 8, 600, true, 0), WAITS);
	free(table);
}

/* A table of one set: 8 datagrams, of which some wait. */
static void
test_in_a_full_set_the_longest_idle_gives_way(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	struct lb_fragment_key keys[10];
	struct lb_fragment_stats stats;

	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		keys[i] = key_of(i, false);
	assert_int_equal(later(table, &keys[0], 8, 8, true, 0), WAITS);
	for (unsigned int i = 1; i < 8; i++)
		assert_int_equal(first(table, &keys[i], 8, i), LB_FORWARD);
	/* New bytes count: the 1st is no more the longest idle. That the 0th is does not. */
	assert_int_equal(later(table, &keys[1], 8, 8, true, 8), LB_FORWARD);
	assert_int_equal(later(table, &keys[8], 8, 8, true, 9), WAITS);
	assert_int_equal(first(table, &keys[9], 8, 10), LB_FORWARD);
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.evicted, 2);
	assert_int_equal(count_returned(table, 10, LB_DROP_FRAGMENT_EXCESS), 0);
	assert_int_equal(first(table, &keys[0], 8, 11), LB_FORWARD);
	for (unsigned int i = 1; i < 10; i++) {
		if (i != 2 && i != 3 && i != 8)
			EXPECT(later(table, &keys[i], 16, 8, true, 11) == (int)LB_FORWARD,
				"datagram %u is gone", i);
	}
	free(table);
}

/* Of a datagram that was given up nothing passes: those of which something may stay. */
static void
test_in_a_full_set_what_was_given_up_gives_way_first(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	struct lb_fragment_key keys[11];

	(void)state;
	for (unsigned int i = 0; i < 11; i++)
		keys[i] = key_of(i, false);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(first(table, &keys[i], 8, i), LB_FORWARD);
	for (unsigned int i = 6; i < 8; i++) {
		assert_int_equal(first(table, &keys[i], 8, i), LB_FORWARD);
		assert_int_equal(first(table, &keys[i], 16, i), LB_DROP_FRAGMENT_OVERLAP);
	}
	assert_int_equal(first(table, &keys[8], 8, 8), LB_FORWARD);
	assert_int_equal(later(table, &keys[9], 8, 8, true, 9), WAITS);
	for (unsigned int i = 0; i < 6; i++)
		EXPECT(later(table, &keys[i], 8, 8, true, 10) == (int)LB_FORWARD,
			"datagram %u gave way to one after those given up", i);
	/* But one whose time is over is no more than free, and stays for nobody's sake. */
	assert_int_equal(first(table, &keys[5], 16, 10), LB_DROP_FRAGMENT_OVERLAP);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(later(table, &keys[i], 16, 8, true, TIMEOUT), LB_FORWARD);
	assert_int_equal(first(table, &keys[10], 8, TIMEOUT + 9), LB_FORWARD);
	assert_int_equal(first(table, &keys[5], 8, TIMEOUT + 9), LB_DROP_FRAGMENT_OVERLAP);
	free(table);
}

static void
test_where_all_wait_a_first_takes_the_oldests_place(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	struct lb_fragment_key keys[10];
	struct lb_fragment_stats stats;
	void *packet = NULL;

	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		keys[i] = key_of(i, false);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(later(table, &keys[i], 8, 8, true, i), WAITS);
	assert_int_equal(later(table, &keys[8], 8, 8, true, 8), LB_DROP_FRAGMENT_EXCESS);
	assert_int_equal(first(table, &keys[9], 8, 9), LB_FORWARD);
	assert_int_equal(count_returned(table, 9, LB_DROP_FRAGMENT_EXCESS), 1);
	assert_int_equal(first(table, &keys[0], 8, 10), LB_FORWARD);
	assert_false(take(table, &keys[0], &packet));
	for (unsigned int i = 1; i < 8; i++) {
		assert_int_equal(first(table, &keys[i], 8, 10), LB_FORWARD);
		assert_true(take(table, &keys[i], &packet));
	}
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.waiting, 0);
	assert_int_equal(stats.waiting_bytes, 0);
	free(table);
}

/* Everything that was let wait comes back, whatever became of its datagram. */
static void
test_at_the_end_all_packets_come_back(void **state)
{
	struct lb_fragment_table *table = new_table(&usual);
	const struct lb_fragment_key a = key_of(1, false);
	const struct lb_fragment_key b = key_of(2, false);
	enum lb_verdict why = LB_FORWARD;
	void *packet = NULL;

	(void)state;
	assert_int_equal(later(table, &a, 8, 8, true, 0), WAITS);
	assert_int_equal(later(table, &b, 8, 8, true, 0), WAITS);
	assert_int_equal(first(table, &b, 16, 0), LB_DROP_FRAGMENT_OVERLAP);
	assert_true(lb_fragment_abandon(table, &packet, &why));
	assert_int_equal(why, LB_DROP_FRAGMENT_OVERLAP);
	assert_true(lb_fragment_abandon(table, &packet, &why));
	assert_int_equal(why, LB_DROP_FRAGMENT_UNMATCHED);
	assert_false(lb_fragment_abandon(table, &packet, &why));
	/* The table can be used further. */
	assert_int_equal(later(table, &a, 16, 8, true, 0), WAITS);
	free(table);
}

static void
test_a_packet_comes_back_though_its_datagram_is_forgotten(void **state)
{
	const struct lb_fragment_conf conf = {8, 1, 1000, TIMEOUT, 1};
	struct lb_fragment_table *table = new_table(&conf);
	const struct lb_fragment_key key = key_of(1, false);
	struct lb_fragment_stats stats;

	(void)state;
	assert_int_equal(later(table, &key, 8, 8, true, 0), WAITS);
	assert_int_equal(first(table, &key, 16, 0), LB_DROP_FRAGMENT_OVERLAP);
	/* The room is taken until the packet has been handed back. */
	assert_int_equal(later(table, &key, 8, 8, true, TIMEOUT + 1), LB_DROP_FRAGMENT_EXCESS);
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.live, 0);
	assert_int_equal(stats.waiting, 1);
	assert_int_equal(count_returned(table, TIMEOUT + 1, LB_DROP_FRAGMENT_OVERLAP), 1);
	free(table);
}

/* A large table is swept set by set; every datagram is forgotten, whatever its set. */
static void
test_the_sweep_reaches_every_set(void **state)
{
	const struct lb_fragment_conf conf = {1000, 1, 1000, TIMEOUT, 9};
	struct lb_fragment_table *table = new_table(&conf);
	struct lb_fragment_stats stats;

	(void)state;
	for (unsigned int i = 0; i < 500; i++) {
		const struct lb_fragment_key key = key_of(i, i % 2 != 0);

		assert_int_equal(first(table, &key, 8, 0), LB_FORWARD);
	}
	for (unsigned int i = 0; i < 1024 / 8; i++)
		assert_int_equal(count_returned(table, TIMEOUT, LB_DROP_FRAGMENT_EXCESS), 0);
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.live + stats.evicted, 500);
	assert_true(stats.evicted < 10);
	for (unsigned int i = 0; i < 1024 / 8; i++)
		assert_int_equal(count_returned(table, TIMEOUT + 1, LB_DROP_FRAGMENT_EXCESS),
			0);
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(stats.live, 0);
	assert_int_equal(stats.expired + stats.evicted, 500);
	free(table);
}

static void
test_a_configuration_out_of_range_is_refused(void **state)
{
	static const struct lb_fragment_conf refused[] = {
		{0, 1, 1, 1, 0},
		{LB_FRAGMENT_DATAGRAMS_MAX + 1, 1, 1, 1, 0},
		{1, 0, 1, 1, 0},
		{1, LB_FRAGMENT_WAITING_MAX + 1, 1, 1, 0},
		{1, 1, 1, 0, 0},
	};
	static const struct lb_fragment_conf largest = {LB_FRAGMENT_DATAGRAMS_MAX,
		LB_FRAGMENT_WAITING_MAX, UINT64_MAX, UINT64_MAX, 0};
	struct lb_fragment_table *table = NULL;
	uint64_t mem[2] = {0};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(refused); i++) {
		EXPECT(lb_fragment_table_bytes(&refused[i]) == 0, "row %zu", i);
		EXPECT(lb_fragment_table_init(mem, &refused[i], &table) == -EINVAL, "row %zu",
			i);
		assert_null(table);
	}
	/* 332 bytes a datagram, 32 a packet. */
	assert_in_range(lb_fragment_table_bytes(&largest), (332u << 20) + 32 * 65535u,
		(332u << 20) + 32 * 65535u + 512);
}

static void
test_the_last_slot_of_the_largest_room_is_used(void **state)
{
	const struct lb_fragment_conf conf = {4096, LB_FRAGMENT_WAITING_MAX, UINT64_MAX,
		TIMEOUT, 3};
	struct lb_fragment_table *table = new_table(&conf);
	const unsigned int n_each = 64;
	struct lb_fragment_stats stats;
	unsigned int n = 0;

	(void)state;
	for (unsigned int id = 0; id < 1024; id++) {
		const struct lb_fragment_key key = key_of(id, false);

		for (unsigned int i = 1; i <= n_each; i++)
			n += later(table, &key, i * 8, 8, true, 0) == (int)WAITS;
	}
	lb_fragment_table_stats(table, &stats);
	assert_int_equal(n, LB_FRAGMENT_WAITING_MAX);
	/* The 65536th took its datagram along. */
	assert_int_equal(stats.waiting, LB_FRAGMENT_WAITING_MAX);
	assert_int_equal(count_returned(table, 0, LB_DROP_FRAGMENT_EXCESS), n_each - 1);
	assert_int_equal(count_returned(table, TIMEOUT + 1, LB_DROP_FRAGMENT_UNMATCHED),
		LB_FRAGMENT_WAITING_MAX - n_each + 1);
	free(table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_goes_step_by_step),
		cmocka_unit_test(test_an_identification_used_again_for_another_flow),
		cmocka_unit_test(test_a_repeated_first_is_not_held_against_the_next_flow),
		cmocka_unit_test(test_what_the_kernel_has_whole_is_forgotten),
		cmocka_unit_test(test_a_repetition_is_not_answered_again),
		cmocka_unit_test(test_time_may_wrap),
		cmocka_unit_test(test_each_part_of_the_key_tells_datagrams_apart),
		cmocka_unit_test(test_a_datagram_is_known_by_its_key_and_not_by_its_hash),
		cmocka_unit_test(test_a_packet_says_which_datagram_it_is_of),
		cmocka_unit_test(test_later_fragments_share_the_firsts_verdict),
		cmocka_unit_test(test_the_largest_datagram_passes_in_any_pieces),
		cmocka_unit_test(test_the_largest_datagram_may_wait_if_there_is_room),
		cmocka_unit_test(test_the_largest_datagram_in_small_pieces_may_have_any_order),
		cmocka_unit_test(test_a_datagram_of_too_many_holes_is_given_up),
		cmocka_unit_test(test_what_lies_in_merged_ranges_is_dropped_alone),
		cmocka_unit_test(test_an_endless_series_is_given_up),
		cmocka_unit_test(test_one_datagram_may_have_all_the_room_and_no_more),
		cmocka_unit_test(test_a_full_waiting_room_refuses_and_keeps),
		cmocka_unit_test(test_what_waits_the_longest_makes_room),
		cmocka_unit_test(test_bytes_that_wait_are_bounded),
		cmocka_unit_test(test_in_a_full_set_the_longest_idle_gives_way),
		cmocka_unit_test(test_in_a_full_set_what_was_given_up_gives_way_first),
		cmocka_unit_test(test_where_all_wait_a_first_takes_the_oldests_place),
		cmocka_unit_test(test_at_the_end_all_packets_come_back),
		cmocka_unit_test(test_a_packet_comes_back_though_its_datagram_is_forgotten),
		cmocka_unit_test(test_the_sweep_reaches_every_set),
		cmocka_unit_test(test_a_configuration_out_of_range_is_refused),
		cmocka_unit_test(test_the_last_slot_of_the_largest_room_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
