/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_file_task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_log.h"

bool
ctl_file_task_init(struct ctl_file_task *file, struct ctl_daemon *daemon, const char *path,
	struct ctl_call *call)
{
	char *copy = strdup(path);

	if (copy == NULL || ctl_messages_open(&file->messages, copy) != 0) {
		free(copy);
		ctl_params_no_memory(call);
		return false;
	}
	file->daemon = daemon;
	file->call = call;
	file->view = ctl_daemon_hold_view(daemon);
	file->reader = ctl_daemon_reader(daemon);
	file->stop = ctl_aside_stop(ctl_daemon_aside(daemon));
	file->path = copy;
	file->fd = ctl_call_take_file(call);
	return true;
}

bool
ctl_file_task_has_result(struct ctl_file_task *file, bool is_done)
{
	if (is_done && file->is_right)
		return true;
	if (is_done) {
		ctl_log_refused(file->what, file->path, ctl_messages_text(&file->messages));
		ctl_messages_answer(&file->messages, CTL_RPC_INVALID_PARAMS, file->call);
	} else {
		ctl_params_stops(file->call);
	}
	return false;
}

void
ctl_file_task_fini(struct ctl_file_task *file)
{
	ctl_messages_close(&file->messages);
	ctl_daemon_release_view(file->daemon, file->view);
	free(file->path);
	if (file->fd >= 0)
		(void)close(file->fd);
}
