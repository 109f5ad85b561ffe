/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fragments: every packet and time, and a table with anything in it that keeps to its rule,
 * that an index is one of a slot or a datagram. A new table keeps to it; and so does any,
 * whatever is done to it: so it holds after every series of packets.
 *
 * Where ranges are noted the table has one set, in which EVA tells the datagrams apart.
 */

#include "lb_fragment.c"
#include "proof.h"

#define N_SETS      2u
#define N_DATAGRAMS (N_SETS * WAYS)
#define N_WAITING   3u

static alignas(LB_CACHE_LINE)
	uint8_t memory[sizeof(struct lb_fragment_table) +
		       N_DATAGRAMS * (sizeof(struct ranges) + sizeof(struct datagram) +
					     sizeof(uint32_t)) +
		       (N_WAITING + 1) * sizeof(struct slot)];
static struct lb_fragment_table table;
static uint32_t tags[N_DATAGRAMS];
static struct ranges ranges[N_DATAGRAMS];
static struct datagram datagrams[N_DATAGRAMS];
static struct slot slots[N_WAITING + 1];

static uint16_t
any_slot(void)
{
	return (uint16_t)any_u64(0, N_WAITING);
}

static void
make_any_table(uint32_t n_sets)
{
	make_any(tags, sizeof(tags));
	make_any(ranges, sizeof(ranges));
	make_any(datagrams, sizeof(datagrams));
	for (size_t i = 0; i < N_DATAGRAMS; i++) {
		datagrams[i].first = any_slot();
		datagrams[i].last = any_slot();
		datagrams[i].is_again = any_bool();
	}
	for (size_t i = 0; i <= N_WAITING; i++) {
		make_any(&slots[i], sizeof(slots[i]));
		slots[i].datagram = (uint32_t)any_u64(0, n_sets * WAYS - 1);
		slots[i].next = any_slot();
		slots[i].older = any_slot();
		slots[i].newer = any_slot();
		slots[i].is_repeated = any_bool();
	}
	make_any(&table, sizeof(table));
	table.set_mask = n_sets - 1;
	table.tags = tags;
	table.ranges = ranges;
	table.datagrams = datagrams;
	table.slots = slots;
	table.sweep_set = (uint32_t)any_u64(0, table.set_mask);
	table.free = any_slot();
	table.returned = any_slot();
}

static void
keeps_to_rule(const struct lb_fragment_table *t, uint32_t n_sets)
{
	const struct datagram *d = &t->datagrams[any_u64(0, N_DATAGRAMS - 1)];
	const struct slot *slot = &t->slots[any_slot()];

	//@ assert d->first <= N_WAITING && d->last <= N_WAITING;
	//@ assert slot->next <= N_WAITING && slot->older <= N_WAITING;
	//@ assert slot->newer <= N_WAITING && slot->datagram < n_sets * WAYS;
	//@ assert t->free <= N_WAITING && t->returned <= N_WAITING;
	//@ assert t->set_mask == n_sets - 1 && t->sweep_set < n_sets;
}

static void
start(void)
{
	struct lb_fragment_conf conf;
	struct lb_fragment_table *made;

	make_any(&conf, sizeof(conf));
	(void)lb_fragment_table_bytes(&conf);
	conf.n_datagrams = N_DATAGRAMS;
	conf.n_waiting = N_WAITING;
	if (lb_fragment_table_init(memory, &conf, &made) == 0)
		keeps_to_rule(made, N_SETS);
}

static void
put(const struct lb_fragment_key *key)
{
	struct lb_fragment_decision decision;
	struct lb_fragment_packet waiting;
	struct lb_fragment_range range;

	make_any(&decision, sizeof(decision));
	make_any(&waiting, sizeof(waiting));
	make_any(&range, sizeof(range));
	range.has_more = any_bool();
	make_any_table(1);
	(void)lb_fragment_first(&table, key, &range, any_u64(0, UINT64_MAX));
	keeps_to_rule(&table, 1);
	make_any_table(1);
	(void)lb_fragment_contradicts(&table, key, &decision);
	keeps_to_rule(&table, 1);
	make_any_table(1);
	lb_fragment_decide(&table, key, &decision);
	keeps_to_rule(&table, 1);
	make_any_table(1);
	(void)lb_fragment_later(&table, key, &range, &waiting, any_u64(0, UINT64_MAX),
		&decision);
	keeps_to_rule(&table, 1);
}

static void
take(const struct lb_fragment_key *key)
{
	struct lb_fragment_waited waited;
	struct lb_fragment_range range;
	enum lb_verdict why;
	void *packet;

	make_any(&range, sizeof(range));
	range.has_more = any_bool();
	make_any_table(N_SETS);
	(void)find_or_make(&table, key, &range, 0, any_u64(0, UINT64_MAX));
	keeps_to_rule(&table, N_SETS);
	make_any_table(N_SETS);
	(void)lb_fragment_take(&table, key, &waited);
	keeps_to_rule(&table, N_SETS);
	make_any_table(N_SETS);
	(void)lb_fragment_expire(&table, any_u64(0, UINT64_MAX), &packet, &why);
	keeps_to_rule(&table, N_SETS);
	make_any_table(N_SETS);
	(void)lb_fragment_shed(&table, (uint32_t)any_u64(0, UINT32_MAX), &packet, &why);
	keeps_to_rule(&table, N_SETS);
	make_any_table(N_SETS);
	(void)lb_fragment_abandon(&table, &packet, &why);
	keeps_to_rule(&table, N_SETS);
}

int
main(void)
{
	struct lb_fragment_stats stats;
	struct lb_fragment_range range;
	struct lb_fragment_key key;
	struct lb_packet packet;

	start();
	make_any(&packet, sizeof(packet));
	packet.is_v6 = any_bool();
	lb_fragment_describe(&packet, &key, &range);
	make_any(&key, sizeof(key));
	put(&key);
	take(&key);
	lb_fragment_table_stats(&table, &stats);
	return 0;
}
