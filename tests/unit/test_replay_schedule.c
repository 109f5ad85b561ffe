/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#include <stdlib.h>

#include "lb_compiler.h"
#include "replay_schedule.h"

#define AT(t)                                                                                  \
	{                                                                                      \
		.at_ns = (t)                                                                   \
	}
#define AFTER(n)                                                                               \
	{                                                                                      \
		.is_by_packets = true, .after_packets = (n)                                    \
	}

/* Packets come at 0, 10, 20, ... Each row says before which packet, from 0, each event is due.
 */
static const struct {
	const char *name;
	struct replay_event events[5];
	size_t n_events;
	size_t order[5];
	unsigned int before[5];
	size_t n_due;
} rows[] = {
	{"none", {AT(0)}, 0, {0}, {0}, 0},
	{"at 0 is before the first packet", {AT(0)}, 1, {0}, {0}, 1},
	{"after 0 too", {AFTER(0)}, 1, {0}, {0}, 1},
	{"a time between packets is before the next", {AT(11)}, 1, {0}, {2}, 1},
	{"a packet's own time is before it", {AT(10)}, 1, {0}, {1}, 1},
	{"after one packet is before the second", {AFTER(1)}, 1, {0}, {1}, 1},
	{"by time, whatever the order of the file", {AT(25), AT(5), AT(15)}, 3, {1, 2, 0},
		{1, 2, 3}, 3},
	{"ties in file order", {AT(5), AT(3), AT(5)}, 3, {1, 0, 2}, {1, 1, 1}, 3},
	{"ties of both kinds in file order", {AFTER(0), AT(0), AFTER(0)}, 3, {0, 1, 2},
		{0, 0, 0}, 3},
	{"a count was due when its last packet came, a time only later", {AT(15), AFTER(2)}, 2,
		{1, 0}, {2, 2}, 2},
	{"a time that the packet had is before its count", {AT(10), AFTER(2)}, 2, {0, 1},
		{1, 2}, 2},
	{"what is due after the last packet is not due", {AT(41), AFTER(5), AT(40)}, 3, {2},
		{4}, 1},
};

static void
test_events_fall_due_in_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct replay_event items[5];
		const struct replay_events events = {.items = items,
			.n_items = rows[i].n_events};
		struct replay_schedule schedule;
		size_t n_due = 0;

		for (size_t k = 0; k < LB_N_ELEMENTS(items); k++)
			items[k] = rows[i].events[k];
		assert_int_equal(replay_schedule_init(&events, &schedule), 0);
		for (unsigned int packet = 0; packet < 5; packet++) {
			const uint64_t last_ns = packet == 0 ? 0 : 10 * (packet - 1);
			size_t event;

			while ((event = replay_schedule_next(&schedule, packet, last_ns,
					10 * packet)) != REPLAY_NO_EVENT) {
				EXPECT(n_due < rows[i].n_due && event == rows[i].order[n_due] &&
						packet == rows[i].before[n_due],
					"%s: event %zu before packet %u", rows[i].name, event,
					packet);
				n_due++;
			}
		}
		EXPECT(n_due == rows[i].n_due, "%s: %zu events were due", rows[i].name, n_due);
		assert_int_equal(replay_schedule_pending(&schedule), rows[i].n_events - n_due);

		/* The rest comes when asked for all. */
		while (replay_schedule_next(&schedule, UINT64_MAX, 0, UINT64_MAX) !=
			REPLAY_NO_EVENT)
			n_due++;
		assert_int_equal(n_due, rows[i].n_events);
		replay_schedule_fini(&schedule);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_fall_due_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
