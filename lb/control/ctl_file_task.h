/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_FILE_TASK_H
#define CTL_FILE_TASK_H

/**
 * @file
 * A call about a configuration file, which is read aside: a plan of it, or a push. What it
 * needs is the first member of what such a call has more.
 *
 * The control thread's, but for what the thread aside may use while it runs.
 */

#include "ctl_daemon.h"
#include "ctl_params.h"

struct ctl_file_task {
	struct ctl_task task;
	const char *what; /**< for the log: "plan", "push" */
	struct ctl_daemon *daemon;
	struct ctl_call *call;
	struct ctl_view *view; /**< held; the thread's to read, as all below are its own */
	struct cfg_reader *reader;
	const atomic_bool *stop;
	char *path;
	int fd;                       /**< of it, as ctl_reload_scan() has it */
	struct ctl_messages messages; /**< what is wrong with the file */
	bool is_right;                /**< to be set once it is read, if so */
};

/**
 * @param file  With task and what.
 * @param path  Copied.
 * @return whether; otherwise the call is answered, and nothing is left to be freed.
 */
bool ctl_file_task_init(struct ctl_file_task *file, struct ctl_daemon *daemon, const char *path,
	struct ctl_call *call) lb_must_check;

/**
 * In task.finish: whether there is a result to answer the call with. Otherwise it is answered
 * with why not.
 */
bool ctl_file_task_has_result(struct ctl_file_task *file, bool is_done);

/** The call is answered. */
void ctl_file_task_fini(struct ctl_file_task *file);

#endif
