/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_schedule.h"

#include <errno.h>
#include <stdlib.h>

/* When an event is due, in its own measure. */
static uint64_t
due_of(const struct replay_event *event)
{
	return event->is_by_packets ? event->after_packets : event->at_ns;
}

static int
compare_due(const void *a, const void *b, void *context)
{
	const struct replay_events *events = ((const struct replay_schedule *)context)->events;
	const size_t i = *(const size_t *)a;
	const size_t k = *(const size_t *)b;
	const uint64_t due_i = due_of(&events->items[i]);
	const uint64_t due_k = due_of(&events->items[k]);

	if (due_i != due_k)
		return due_i < due_k ? -1 : 1;
	return i < k ? -1 : 1;
}

int
replay_schedule_init(const struct replay_events *events, struct replay_schedule *out)
{
	struct replay_schedule schedule = {.events = events};

	schedule.by_time = calloc(events->n_items + 1, sizeof(*schedule.by_time));
	schedule.by_packets = calloc(events->n_items + 1, sizeof(*schedule.by_packets));
	if (schedule.by_time == NULL || schedule.by_packets == NULL) {
		replay_schedule_fini(&schedule);
		return -ENOMEM;
	}
	for (size_t i = 0; i < events->n_items; i++) {
		if (events->items[i].is_by_packets)
			schedule.by_packets[schedule.n_by_packets++] = i;
		else
			schedule.by_time[schedule.n_by_time++] = i;
	}
	qsort_r(schedule.by_time, schedule.n_by_time, sizeof(size_t), compare_due, &schedule);
	qsort_r(schedule.by_packets, schedule.n_by_packets, sizeof(size_t), compare_due,
		&schedule);
	*out = schedule;
	return 0;
}

void
replay_schedule_fini(struct replay_schedule *schedule)
{
	free(schedule->by_time);
	free(schedule->by_packets);
	*schedule = (struct replay_schedule){0};
}

size_t
replay_schedule_pending(const struct replay_schedule *schedule)
{
	return schedule->n_by_time - schedule->next_by_time + schedule->n_by_packets -
	       schedule->next_by_packets;
}

size_t
replay_schedule_next(struct replay_schedule *schedule, uint64_t n_packets, uint64_t last_ns,
	uint64_t now_ns)
{
	const struct replay_event *items = schedule->events->items;
	size_t by_time = REPLAY_NO_EVENT;
	size_t by_packets = REPLAY_NO_EVENT;

	if (schedule->next_by_time < schedule->n_by_time)
		by_time = schedule->by_time[schedule->next_by_time];
	if (by_time != REPLAY_NO_EVENT && items[by_time].at_ns > now_ns)
		by_time = REPLAY_NO_EVENT;
	if (schedule->next_by_packets < schedule->n_by_packets)
		by_packets = schedule->by_packets[schedule->next_by_packets];
	if (by_packets != REPLAY_NO_EVENT && items[by_packets].after_packets > n_packets)
		by_packets = REPLAY_NO_EVENT;

	if (by_time != REPLAY_NO_EVENT &&
		(by_packets == REPLAY_NO_EVENT || items[by_time].at_ns < last_ns ||
			(items[by_time].at_ns == last_ns && by_time < by_packets))) {
		schedule->next_by_time++;
		return by_time;
	}
	if (by_packets != REPLAY_NO_EVENT)
		schedule->next_by_packets++;
	return by_packets;
}
