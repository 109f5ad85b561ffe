/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ASIDE_H
#define CTL_ASIDE_H

/**
 * @file
 * A thread beside control's for what takes too long there, and touches nothing of control's:
 * tasks are done one after another, as they come, and finished on the control thread.
 *
 * All functions are the control thread's.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "ctl_loop.h"
#include "lb_compiler.h"

struct ctl_aside; /* opaque */

/** Something to do; to be put into a structure with all that it needs. */
struct ctl_task {
	/** On the thread; what it reads and writes is the task's alone until it is finished. */
	void (*run)(struct ctl_task *task);
	/**
	 * On the control thread, once: it frees the task. is_done: it was run, and nobody
	 * wanted the thread to end by then.
	 */
	void (*finish)(struct ctl_task *task, bool is_done);
	struct ctl_task *next; /**< of those that wait, the thread's to use */
};

/**
 * Start the thread.
 *
 * @param loop      Finishes tasks.
 * @param[out] out  Untouched on error.
 * @retval -errno   The kernel's reason, or -ENOMEM.
 */
int ctl_aside_create(struct ctl_loop *loop, struct ctl_aside **out) lb_must_check;

/** Set what ctl_aside_stop() gives, end the thread, and finish all tasks. NULL is allowed. */
void ctl_aside_destroy(struct ctl_aside *aside);

/**
 * Set once the thread is to end: a task that takes more than a moment looks at it, and gives up
 * then. Good until destroy().
 */
const atomic_bool *ctl_aside_stop(const struct ctl_aside *aside);

/** Have a task done. */
void ctl_aside_submit(struct ctl_aside *aside, struct ctl_task *task);

#endif
