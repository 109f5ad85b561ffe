/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_print.h"
#include "ctl_daemon.h"
#include "ctl_file_task.h"
#include "ctl_fixed.h"
#include "ctl_log.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_plan.h"
#include "ctl_proto.h"
#include "ctl_save.h"

void
ctl_method_reload(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PATH, NULL};
	struct ctl_daemon *daemon = context;
	const char *path = ctl_daemon_config_path(daemon);

	if (!ctl_params_check(params, keys, call))
		return;
	if (json_object_get(params, CTL_KEY_PATH) != NULL)
		path = ctl_params_file(params, call);
	if (path == NULL ||
		ctl_reload_defer(ctl_daemon_reload(daemon), ctl_method_reload, params, call))
		return;
	ctl_reload_file(ctl_daemon_reload(daemon), path, call);
}

/* Reading a large file, building its tables and writing it all down take time: done aside. */
struct plan_task {
	struct ctl_file_task file;
	uint32_t *counts; /* live flows by backend id; NULL: the workers do not say */
	char *answer;     /* where the file is right; NULL: no memory */
};

/* NULL: no memory. */
static char *
write_plan(struct plan_task *plan, const struct cfg_model *next)
{
	/* What a restart takes to change is in force as it is wanted. */
	char *obstacle = ctl_fixed_obstacle(&plan->file.view->model, next);
	json_t *result = ctl_plan_make(plan->file.view, next, plan->counts, plan->file.stop);
	char *text = NULL;
	int failed = 0;

	failed |=
		json_object_set_new(result, CTL_KEY_PATH, ctl_params_any_text(plan->file.path));
	failed |= json_object_set_new(result, CTL_KEY_RESTART,
		ctl_fixed_find(&plan->file.view->model, next));
	failed |= json_object_set_new(result, CTL_KEY_OBSTACLE,
		obstacle != NULL ? json_string(obstacle) : json_null());
	failed |= json_object_set_new(result, CTL_KEY_WARNINGS,
		ctl_messages_list(&plan->file.messages));
	if (failed == 0)
		text = json_dumps(result, JSON_COMPACT);
	json_decref(result);
	free(obstacle);
	return text;
}

static void
run_plan(struct ctl_task *task)
{
	struct plan_task *plan = (struct plan_task *)task;
	struct ctl_file_task *file = &plan->file;
	struct cfg_model next;

	file->is_right = ctl_reload_scan(file->reader, file->path, file->fd, file->stop,
		&file->messages, &next);
	if (!file->is_right)
		return;
	plan->answer = write_plan(plan, &next);
	cfg_model_fini(&next);
}

static void
finish_plan(struct ctl_task *task, bool is_done)
{
	struct plan_task *plan = (struct plan_task *)task;

	if (ctl_file_task_has_result(&plan->file, is_done))
		ctl_call_text(plan->file.call, plan->answer);
	ctl_file_task_fini(&plan->file);
	free(plan->counts);
	free(plan->answer);
	free(plan);
}

/* Live flows by backend id; NULL: the workers do not say. */
static uint32_t *
count_flows(struct dp *dp, const struct ctl_view *view)
{
	uint32_t *counts = calloc((size_t)view->n_ids + 1, sizeof(*counts));

	if (counts == NULL || dp_count_flows(dp, counts, view->n_ids) == 0)
		return counts;
	free(counts);
	return NULL;
}

void
ctl_method_plan(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PATH, NULL};
	struct ctl_daemon *daemon = context;
	struct plan_task *plan;
	const char *path;

	if (!ctl_params_check(params, keys, call))
		return;
	path = ctl_params_file(params, call);
	if (path == NULL)
		return;
	plan = calloc(1, sizeof(*plan));
	if (plan == NULL) {
		ctl_params_no_memory(call);
		return;
	}
	plan->file = (struct ctl_file_task){.task = {.run = run_plan, .finish = finish_plan},
		.what = "plan"};
	if (!ctl_file_task_init(&plan->file, daemon, path, call)) {
		free(plan);
		return;
	}
	plan->counts = count_flows(ctl_daemon_dp(daemon), plan->file.view);
	ctl_aside_submit(ctl_daemon_aside(daemon), &plan->file.task);
}

void
ctl_method_config_show(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {NULL};
	const struct ctl_view *view = ctl_daemon_view(context);
	char *text = NULL;
	size_t n_text = 0;
	FILE *stream;
	json_t *result = NULL;

	if (!ctl_params_check(params, keys, call))
		return;
	stream = open_memstream(&text, &n_text);
	if (stream != NULL) {
		const int ret = cfg_print(&view->model, stream);

		if (fclose(stream) == 0 && ret == 0)
			result = json_pack("{s:i, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
				CTL_KEY_GENERATION, ctl_params_number(view->generation),
				CTL_KEY_TEXT, ctl_params_any_text(text));
	}
	free(text);
	ctl_call_result(call, result);
}

/* Writing takes as long as the disk does: done aside, and changes wait for it. */
struct save_task {
	struct ctl_task task;
	struct ctl_daemon *daemon; /* the control thread's */
	struct ctl_call *call;     /* the same */
	struct ctl_view *view;     /* held */
	const char *path;          /* the daemon's */
	struct ctl_save_mark mark;
	bool is_run;
	int ret; /* of that */
};

static void
run_save(struct ctl_task *task)
{
	struct save_task *save = (struct save_task *)task;

	save->ret = ctl_save(&save->view->model, save->path, &save->mark);
	save->is_run = true;
}

static void
refuse_save(const struct save_task *save)
{
	const char *why = strerror(-save->ret);

	if (save->ret == -ESTALE)
		why = "it was changed since shuntd read it; 'shuntctl reload' puts in force "
		      "what it says now, and other changes are then to be made again; or "
		      "remove it, and save";
	ctl_log(CTL_LOG_ERROR, "%s: cannot be saved: %s", save->path, why);
	ctl_call_error(save->call, CTL_RPC_REFUSED,
		"%s: cannot be saved: %s; the file is as it was", save->path, why);
}

static void
answer_save(const struct save_task *save)
{
	*ctl_daemon_mark(save->daemon) = save->mark;
	ctl_call_result(save->call,
		json_pack("{s:i, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA, CTL_KEY_GENERATION,
			ctl_params_number(save->view->generation), CTL_KEY_PATH,
			ctl_params_any_text(save->path)));
}

static void
finish_save(struct ctl_task *task, bool is_done)
{
	struct save_task *save = (struct save_task *)task;

	(void)is_done;
	if (!save->is_run)
		ctl_params_stops(save->call);
	else if (save->ret != 0)
		refuse_save(save);
	else
		answer_save(save);
	ctl_reload_end(ctl_daemon_reload(save->daemon));
	ctl_daemon_release_view(save->daemon, save->view);
	free(save);
}

/* What is in force, not what is wanted: that may turn out to be impossible, and the file is
 * what the next start goes by. */
static void
start_save(void *context, const json_t *params, struct ctl_call *call)
{
	struct ctl_daemon *daemon = context;
	struct save_task *save;

	/* Not while a reload may be reading the very file, or another save writes it. */
	if (ctl_reload_defer(ctl_daemon_reload(daemon), start_save, params, call))
		return;
	save = calloc(1, sizeof(*save));
	if (save == NULL) {
		ctl_params_no_memory(call);
		return;
	}
	*save = (struct save_task){.task = {.run = run_save, .finish = finish_save},
		.daemon = daemon,
		.call = call,
		.view = ctl_daemon_hold_view(daemon),
		.path = ctl_daemon_config_path(daemon),
		.mark = *ctl_daemon_mark(daemon)};
	ctl_reload_begin(ctl_daemon_reload(daemon));
	ctl_aside_submit(ctl_daemon_aside(daemon), &save->task);
}

void
ctl_method_config_save(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {NULL};
	struct ctl_daemon *daemon = context;

	if (!ctl_params_check(params, keys, call))
		return;
	if (ctl_daemon_etcd(daemon) != NULL) {
		ctl_call_error(call, CTL_RPC_REFUSED,
			"the configuration is etcd's; 'shuntctl config show' writes what runs, "
			"and 'shuntctl config push FILE' puts a file there");
		return;
	}
	if (ctl_daemon_local_path(daemon) != NULL) {
		ctl_call_error(call, CTL_RPC_REFUSED,
			"a part of what runs is this balancer's own, from %s, and is not for "
			"%s; 'shuntctl config show' writes it all",
			ctl_daemon_local_path(daemon), ctl_daemon_config_path(daemon));
		return;
	}
	/* In its turn; and not the state before a change that was asked for first. */
	if (ctl_reload_defer(ctl_daemon_reload(daemon), ctl_method_config_save, params, call) ||
		ctl_daemon_defer(daemon, start_save, call))
		return;
	start_save(daemon, NULL, call);
}
