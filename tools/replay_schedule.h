/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_SCHEDULE_H
#define REPLAY_SCHEDULE_H

/**
 * @file
 * When events are due. Costs two comparisons a packet, however many events there are.
 */

#include "replay_events.h"

/** Index of no event. */
#define REPLAY_NO_EVENT SIZE_MAX

struct replay_schedule {
	const struct replay_events *events;
	size_t *by_time;    /**< indices of events with a time, in that order */
	size_t *by_packets; /**< indices of those that count packets, in that order */
	size_t n_by_time;
	size_t n_by_packets;
	size_t next_by_time; /**< the first of by_time that was not yet due */
	size_t next_by_packets;
};

/**
 * @param events    Not copied: outlives the schedule.
 * @param[out] out  To be given to replay_schedule_fini(); untouched on error.
 * @retval -ENOMEM  No memory.
 */
int replay_schedule_init(const struct replay_events *events,
	struct replay_schedule *out) lb_must_check;

void replay_schedule_fini(struct replay_schedule *schedule);

/** Events that were not yet due. */
size_t replay_schedule_pending(const struct replay_schedule *schedule);

/**
 * The next event that is due before a packet; call it until there is none.
 *
 * Of those due, the one due first; one that counts packets was due when the last of them had
 * come; ties in file order.
 *
 * @param n_packets  Packets before this one.
 * @param last_ns    When the last of them came, since the first; 0 if there is none.
 * @param now_ns     When this one comes.
 * @return the event's index, or REPLAY_NO_EVENT. With UINT64_MAX packets and now_ns, all
 *         that are pending come.
 */
size_t replay_schedule_next(struct replay_schedule *schedule, uint64_t n_packets,
	uint64_t last_ns, uint64_t now_ns);

#endif
