/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_daemon.h"
#include "ctl_etcd_client.h"
#include "ctl_file_task.h"
#include "ctl_fixed.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_proto.h"

/* A file is read, checked and sent aside: etcd may take its time. */
struct push_task {
	struct ctl_file_task file;
	struct ctl_etcd *etcd;
	struct ctl_bytes text;
	char *obstacle; /* why it would not be put in force here; NULL: nothing */
	struct ctl_etcd_push push;
	int ret; /* of that */
};

static bool
check(struct push_task *push)
{
	struct ctl_file_task *file = &push->file;
	struct cfg_model model;

	if (!ctl_reload_read_text(file->path, file->fd, CTL_ETCD_VALUE_BYTES_MAX, file->stop,
		    &file->messages, &push->text) ||
		cfg_reader_read_text(file->reader, file->path, ctl_bytes_front(&push->text),
			ctl_bytes_length(&push->text), file->messages.errors.to, &model) != 0)
		return false;
	push->push.text = ctl_bytes_front(&push->text);
	push->push.n_bytes = ctl_bytes_length(&push->text);
	push->obstacle = ctl_fixed_obstacle(&file->view->model, &model);
	cfg_model_fini(&model);
	return true;
}

static void
run_push(struct ctl_task *task)
{
	struct push_task *push = (struct push_task *)task;

	push->file.is_right = check(push);
	if (push->file.is_right && push->obstacle == NULL)
		push->ret = ctl_etcd_push(push->etcd, push->file.stop, &push->push);
}

static void
answer_stale(const struct push_task *push)
{
	char now[64] = "it is not there any more";

	if (push->push.now != 0)
		(void)snprintf(now, sizeof(now), "it is at revision %" PRIu64, push->push.now);
	ctl_call_error(push->file.call, CTL_RPC_REFUSED,
		"the key was changed: expected revision %" PRIu64 ", and %s; look at what is "
		"there now, and push again",
		push->push.revision, now);
}

static void
answer_push(struct push_task *push)
{
	if (push->obstacle != NULL)
		ctl_call_error(push->file.call, CTL_RPC_REFUSED, "%s", push->obstacle);
	else if (push->ret == -ESTALE)
		answer_stale(push);
	else if (push->ret != 0)
		ctl_call_error(push->file.call, CTL_RPC_REFUSED, "etcd: %s", push->push.why);
	else
		ctl_call_result(push->file.call,
			json_pack("{s:i, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
				CTL_KEY_REVISION, ctl_params_number(push->push.now),
				CTL_KEY_HASH,
				json_sprintf("%016" PRIx64,
					ctl_etcd_document_hash(push->push.text,
						push->push.n_bytes))));
}

static void
finish_push(struct ctl_task *task, bool is_done)
{
	struct push_task *push = (struct push_task *)task;

	if (ctl_file_task_has_result(&push->file, is_done))
		answer_push(push);
	ctl_file_task_fini(&push->file);
	ctl_bytes_fini(&push->text);
	free(push->obstacle);
	free(push);
}

/* The revision that was asked for, or else what this shuntd has last heard of. */
static bool
find_revision(struct ctl_etcd *etcd, const json_t *params, struct ctl_call *call, uint64_t *out)
{
	const json_t *value = json_object_get(params, CTL_KEY_REVISION);
	struct ctl_etcd_status status;

	if (value == NULL) {
		ctl_etcd_read_status(etcd, &status);
		*out = status.known_revision;
		return true;
	}
	if (!json_is_integer(value) || json_integer_value(value) < 0) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"%s: expected a revision of etcd's, or 0 for a key that is not there",
			CTL_KEY_REVISION);
		return false;
	}
	*out = (uint64_t)json_integer_value(value);
	return true;
}

static void
start_push(struct ctl_daemon *daemon, const char *path, uint64_t revision,
	struct ctl_call *call)
{
	struct push_task *push = calloc(1, sizeof(*push));

	if (push == NULL) {
		ctl_params_no_memory(call);
		return;
	}
	*push = (struct push_task){
		.file = {.task = {.run = run_push, .finish = finish_push}, .what = "push"},
		.etcd = ctl_daemon_etcd(daemon),
		.push = {.revision = revision},
	};
	if (ctl_file_task_init(&push->file, daemon, path, call))
		ctl_aside_submit(ctl_daemon_aside(daemon), &push->file.task);
	else
		free(push);
}

void
ctl_method_config_push(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PATH, CTL_KEY_REVISION, NULL};
	struct ctl_daemon *daemon = context;
	uint64_t revision;
	const char *path;

	if (!ctl_params_check(params, keys, call))
		return;
	path = ctl_params_file(params, call);
	if (path == NULL)
		return;
	if (ctl_daemon_etcd(daemon) == NULL) {
		ctl_call_error(call, CTL_RPC_REFUSED,
			"the configuration is a file, %s, and not etcd's; 'shuntctl reload "
			"FILE' puts one in force",
			ctl_daemon_config_path(daemon));
		return;
	}
	if (find_revision(ctl_daemon_etcd(daemon), params, call, &revision))
		start_push(daemon, path, revision, call);
}
