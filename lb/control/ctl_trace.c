/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_trace.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl_proto.h"

#define LOOK_MS  500u
#define MS_PER_S 1000u

static void
on_look(void *context)
{
	struct ctl_trace *trace = context;

	if (ctl_loop_now_ms() - trace->read_ms > CTL_TRACE_LEASE_MS)
		ctl_trace_end(trace);
}

int
ctl_trace_begin(struct ctl_trace *trace, const struct dp_trace_conf *conf,
	const struct ctl_trace_bounds *bounds)
{
	int ret;

	if (trace->is_running)
		return -EBUSY;
	ret = ctl_loop_add_timer(trace->loop, LOOK_MS, LOOK_MS, on_look, trace, &trace->timer);
	if (ret != 0)
		return ret;
	ret = dp_trace_begin(trace->dp, conf);
	if (ret != 0) {
		ctl_loop_remove_timer(trace->loop, trace->timer);
		return ret;
	}
	trace->is_running = true;
	trace->number++;
	trace->begun_ms = ctl_loop_now_ms();
	trace->read_ms = trace->begun_ms;
	trace->end_ms = trace->begun_ms + bounds->seconds * MS_PER_S;
	trace->n_left = bounds->n_records;
	return 0;
}

bool
ctl_trace_is(const struct ctl_trace *trace, uint64_t number)
{
	return trace->is_running && trace->number == number;
}

static int
compare_times(const void *a, const void *b)
{
	const struct dp_trace_record *first = a;
	const struct dp_trace_record *second = b;

	return (first->now_ns > second->now_ns) - (first->now_ns < second->now_ns);
}

size_t
ctl_trace_read(struct ctl_trace *trace, uint64_t *missed, const char **ended)
{
	const size_t n_max =
		trace->n_left < CTL_TRACE_READ_MAX ? (size_t)trace->n_left : CTL_TRACE_READ_MAX;
	const size_t n = dp_trace_read(trace->dp, trace->records, n_max);

	qsort(trace->records, n, sizeof(trace->records[0]), compare_times);
	trace->n_left -= n;
	trace->read_ms = ctl_loop_now_ms();
	*missed = dp_trace_missed(trace->dp);
	*ended = NULL;
	if (trace->n_left == 0)
		*ended = CTL_ENDED_COUNT;
	else if (trace->read_ms >= trace->end_ms)
		*ended = CTL_ENDED_TIME;
	if (*ended != NULL)
		ctl_trace_end(trace);
	return n;
}

void
ctl_trace_end(struct ctl_trace *trace)
{
	if (!trace->is_running)
		return;
	ctl_loop_remove_timer(trace->loop, trace->timer);
	dp_trace_end(trace->dp);
	trace->is_running = false;
}
