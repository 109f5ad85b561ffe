/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_TRACE_H
#define CTL_TRACE_H

/**
 * @file
 * The trace that runs, if one does: whose it is, and when it ends. By itself it ends
 * CTL_TRACE_LEASE_MS after it was last read; its packets and its time are bounded besides. It
 * gives way to another as soon as the connection is gone that began or last read it.
 * Control thread.
 */

#include "ctl_loop.h"
#include "dp.h"

/** Records that are read at a time, at most. */
#define CTL_TRACE_READ_MAX 1024u

/** All zero, but for loop and dp, is without a trace. */
struct ctl_trace {
	struct ctl_loop *loop;
	struct dp *dp;
	struct ctl_timer *timer; /**< looks whether it is still read */
	bool is_running;
	uint64_t number; /**< of the one that runs, or was the last to */
	uint64_t client; /**< who began or last read it, as ctl_call_client() has it */
	uint64_t begun_ms;
	uint64_t end_ms;
	uint64_t read_ms;
	uint64_t n_left; /**< records until it ends */
	struct dp_trace_record records[CTL_TRACE_READ_MAX];
};

/** Bounds of a trace. */
struct ctl_trace_bounds {
	uint64_t n_records; /**< 1 at least */
	uint64_t seconds;
};

/**
 * Begin one.
 *
 * @retval -EBUSY   There is one.
 * @retval -ENOMEM  No memory.
 */
int ctl_trace_begin(struct ctl_trace *trace, const struct dp_trace_conf *conf,
	const struct ctl_trace_bounds *bounds) lb_must_check;

/** Whether a trace of that number runs. */
bool ctl_trace_is(const struct ctl_trace *trace, uint64_t number);

/**
 * Read the trace that runs, into records, in the order of time; it may end thereby.
 *
 * @param[out] missed  So far.
 * @param[out] ended   CTL_ENDED_*, or NULL where it goes on.
 * @return how many records.
 */
size_t ctl_trace_read(struct ctl_trace *trace, uint64_t *missed, const char **ended);

/** End it, if one runs. */
void ctl_trace_end(struct ctl_trace *trace);

#endif
