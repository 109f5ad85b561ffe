/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * How many neighbouring records a flow may be in. With half of all in use, one flow in 10^10
 * finds none free among so many.
 */
#define WINDOW 128u

enum state { FREE, NEW_TCP, OPEN_TCP, CLOSING_TCP, DATAGRAMS };

struct record {
	struct lb_flow_hash hash;
	uint64_t last_ns;
	uint32_t first_backend;
	uint32_t last_backend;
	uint8_t state;
	bool is_moved;
};

struct replay_flows {
	struct record *records; /* REPLAY_FLOWS_MAX; one in use is never free again */
	uint64_t timeout_ns[LB_FLOW_N_TIMEOUTS];
	replay_is_live_fn is_live;
	const void *context;
	uint64_t moved;
	uint64_t broken;
	uint64_t forgotten;
};

int
replay_flows_create(const uint64_t timeout_ns[static LB_FLOW_N_TIMEOUTS],
	replay_is_live_fn is_live, const void *context, struct replay_flows **out)
{
	struct replay_flows *flows = calloc(1, sizeof(*flows));

	if (flows == NULL)
		return -ENOMEM;
	/* So large that the kernel zeroes a page when it is first used, not before. */
	flows->records = calloc(REPLAY_FLOWS_MAX, sizeof(*flows->records));
	if (flows->records == NULL) {
		free(flows);
		return -ENOMEM;
	}
	memcpy(flows->timeout_ns, timeout_ns, sizeof(flows->timeout_ns));
	flows->is_live = is_live;
	flows->context = context;
	*out = flows;
	return 0;
}

void
replay_flows_destroy(struct replay_flows *flows)
{
	if (flows == NULL)
		return;
	free(flows->records);
	free(flows);
}

static bool
is_over(const struct replay_flows *flows, const struct record *record, uint64_t now_ns)
{
	static const enum lb_flow_timeout timeouts[] = {
		[NEW_TCP] = LB_FLOW_TIMEOUT_TCP_SYN,
		[OPEN_TCP] = LB_FLOW_TIMEOUT_TCP,
		[CLOSING_TCP] = LB_FLOW_TIMEOUT_TCP_CLOSING,
		[DATAGRAMS] = LB_FLOW_TIMEOUT_UDP,
	};

	return now_ns - record->last_ns > flows->timeout_ns[timeouts[record->state]];
}

/*
 * The flow's record, or else the one to begin it in: where a flow is over, free, or of all
 * the silent for longest.
 */
static struct record *
find_record(const struct replay_flows *flows, const struct lb_flow_hash *hash, uint64_t now_ns,
	bool *is_found)
{
	const uint64_t home = hash->place >> 32;
	struct record *oldest = NULL;

	*is_found = false;
	for (unsigned int i = 0; i < WINDOW; i++) {
		struct record *record = &flows->records[(home + i) % REPLAY_FLOWS_MAX];

		if (record->state == FREE) {
			const bool has_place = oldest != NULL && is_over(flows, oldest, now_ns);

			return has_place ? oldest : record;
		}
		if (record->hash.print == hash->print && record->hash.place == hash->place) {
			*is_found = true;
			return record;
		}
		if (oldest == NULL || record->last_ns < oldest->last_ns)
			oldest = record;
	}
	return oldest;
}

static void
begin(struct replay_flows *flows, struct record *record, const struct dp_decision *d,
	uint64_t now_ns)
{
	const bool is_same =
		record->hash.print == d->hash.print && record->hash.place == d->hash.place;

	if (record->state != FREE && !is_same && !is_over(flows, record, now_ns))
		flows->forgotten++;
	*record = (struct record){
		.hash = d->hash,
		.last_ns = now_ns,
		.first_backend = d->backend,
		.last_backend = d->backend,
		.state = d->event == LB_FLOW_DATAGRAM ? DATAGRAMS : NEW_TCP,
	};
}

static void
note_backend(struct replay_flows *flows, struct record *record, uint32_t backend)
{
	if (backend == record->last_backend)
		return;
	record->last_backend = backend;
	if (record->is_moved)
		return;
	record->is_moved = true;
	flows->moved++;
	if (flows->is_live(flows->context, record->first_backend))
		flows->broken++;
}

void
replay_flows_see(struct replay_flows *flows, const struct dp_decision *d, uint64_t now_ns)
{
	bool is_found;
	struct record *record = find_record(flows, &d->hash, now_ns, &is_found);
	const bool is_alive = is_found && !is_over(flows, record, now_ns);
	const bool is_sent = d->verdict == LB_FORWARD;

	if (d->event == DP_NO_EVENT) { /* an ICMP error: of the flow, if there is one */
		if (is_alive && is_sent)
			note_backend(flows, record, d->backend);
		return;
	}
	if (!is_alive || (d->is_new_flow && d->event == LB_FLOW_SYN)) {
		begin(flows, record, d, now_ns);
		return;
	}

	if (is_sent)
		note_backend(flows, record, d->backend);
	record->last_ns = now_ns;
	if (d->event == LB_FLOW_CLOSE)
		record->state = CLOSING_TCP;
	else if (d->event == LB_FLOW_SEGMENT && record->state == NEW_TCP)
		record->state = OPEN_TCP;
}

uint64_t
replay_flows_moved(const struct replay_flows *flows)
{
	return flows->moved;
}

uint64_t
replay_flows_broken(const struct replay_flows *flows)
{
	return flows->broken;
}

uint64_t
replay_flows_forgotten(const struct replay_flows *flows)
{
	return flows->forgotten;
}
