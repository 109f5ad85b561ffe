/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cfg_print.h"
#include "cfg_yaml.h"
#include "ctl_daemon.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_plan.h"
#include "ctl_proto.h"
#include "ctl_save.h"

/* A pipe or a device would have the control thread wait for whoever feeds it. */
static bool
is_regular(const char *path, FILE *messages)
{
	struct stat file;

	if (stat(path, &file) != 0)
		(void)fprintf(messages, "%s: cannot be opened: %s\n", path, strerror(errno));
	else if (!S_ISREG(file.st_mode))
		(void)fprintf(messages, "%s: expected a regular file\n", path);
	else
		return true;
	return false;
}

/* False: messages say why. */
static bool
scan_model(const char *path, struct ctl_messages *messages, struct cfg_model *out)
{
	return is_regular(path, messages->errors.to) &&
	       cfg_read_file(path, messages->errors.to, out) == 0;
}

/* False: the call is answered. */
static bool
read_model(const char *path, struct ctl_call *call, struct cfg_model *out)
{
	struct ctl_messages messages;

	if (ctl_messages_open(&messages, path) != 0) {
		ctl_params_no_memory(call);
		return false;
	}
	if (scan_model(path, &messages, out)) {
		ctl_messages_close(&messages);
		return true;
	}
	ctl_messages_answer(&messages, CTL_RPC_INVALID_PARAMS, call);
	return false;
}

/* What keeps a model from being put in force without a restart, to be freed; NULL: nothing. */
static char *
find_obstacle(const struct ctl_daemon *daemon, const struct cfg_model *next)
{
	char *text = NULL;
	size_t n_text = 0;
	FILE *stream = open_memstream(&text, &n_text);
	bool can = false;

	if (stream != NULL) {
		can = ctl_daemon_can_change(daemon, next, stream);
		(void)fclose(stream);
	}
	if (can) {
		free(text);
		return NULL;
	}
	if (text != NULL && n_text > 0 && text[n_text - 1] == '\n')
		text[n_text - 1] = '\0';
	return text != NULL ? text : strdup("there is not enough memory");
}

void
ctl_method_reload(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PATH, NULL};
	struct ctl_daemon *daemon = context;
	const char *path = ctl_daemon_config_path(daemon);
	struct cfg_model next;
	char *obstacle;

	if (!ctl_params_check(params, keys, call))
		return;
	if (json_object_get(params, CTL_KEY_PATH) != NULL)
		path = ctl_params_text(params, CTL_KEY_PATH, call);
	if (path == NULL || !read_model(path, call, &next))
		return;
	obstacle = find_obstacle(daemon, &next);
	if (obstacle == NULL) {
		ctl_daemon_change(daemon, &next, call);
		return;
	}
	ctl_call_error(call, CTL_RPC_REFUSED, "%s", obstacle);
	free(obstacle);
	cfg_model_fini(&next);
}

/* Reading a large file and building its tables take time: that is done aside. */
struct plan_task {
	struct ctl_task task;
	const struct ctl_daemon *daemon; /* the control thread's */
	struct ctl_call *call;           /* the same */
	struct ctl_view *view;           /* held */
	char *path;
	uint32_t *counts; /* live flows by backend id; NULL: the workers do not say */
	struct ctl_messages messages;
	bool is_read;
	struct cfg_model next; /* where it is read */
	json_t *result;        /* the same; NULL: no memory */
};

static void
run_plan(struct ctl_task *task)
{
	struct plan_task *plan = (struct plan_task *)task;

	plan->is_read = scan_model(plan->path, &plan->messages, &plan->next);
	if (plan->is_read)
		plan->result = ctl_plan_make(plan->view, &plan->next, plan->counts);
}

static void
answer_plan(struct plan_task *plan)
{
	char *obstacle = find_obstacle(plan->daemon, &plan->next);
	const int failed = json_object_set_new(plan->result, CTL_KEY_PATH,
				   ctl_params_any_text(plan->path)) |
			   json_object_set_new(plan->result, CTL_KEY_OBSTACLE,
				   obstacle != NULL ? json_string(obstacle) : json_null());

	free(obstacle);
	if (failed != 0) {
		json_decref(plan->result);
		plan->result = NULL;
	}
	ctl_call_result(plan->call, plan->result);
}

static void
free_plan(struct plan_task *plan)
{
	ctl_view_release(plan->view);
	free(plan->path);
	free(plan->counts);
	free(plan);
}

static void
finish_plan(struct ctl_task *task, bool is_done)
{
	struct plan_task *plan = (struct plan_task *)task;

	if (is_done && !plan->is_read) {
		ctl_messages_answer(&plan->messages, CTL_RPC_INVALID_PARAMS, plan->call);
	} else {
		if (is_done)
			answer_plan(plan);
		else
			ctl_call_error(plan->call, CTL_RPC_REFUSED, "shuntd stops");
		ctl_messages_close(&plan->messages);
	}
	if (plan->is_read)
		cfg_model_fini(&plan->next);
	free_plan(plan);
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
	const struct ctl_daemon *daemon = context;
	struct plan_task *plan;
	const char *path;

	if (!ctl_params_check(params, keys, call))
		return;
	path = ctl_params_text(params, CTL_KEY_PATH, call);
	if (path == NULL)
		return;
	plan = calloc(1, sizeof(*plan));
	if (plan == NULL) {
		ctl_params_no_memory(call);
		return;
	}
	*plan = (struct plan_task){.task = {.run = run_plan, .finish = finish_plan},
		.daemon = daemon,
		.call = call,
		.view = ctl_daemon_hold_view(daemon),
		.path = strdup(path)};
	if (plan->path == NULL || ctl_messages_open(&plan->messages, plan->path) != 0) {
		ctl_params_no_memory(call);
		free_plan(plan);
		return;
	}
	plan->counts = count_flows(ctl_daemon_dp(daemon), plan->view);
	ctl_aside_submit(ctl_daemon_aside(daemon), &plan->task);
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

void
ctl_method_config_save(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {NULL};
	const struct ctl_daemon *daemon = context;
	/* What is in force, not what is wanted: that may turn out to be impossible, and the
	 * file is what the next start goes by. */
	const struct ctl_view *view = ctl_daemon_view(daemon);
	const char *path = ctl_daemon_config_path(daemon);
	int ret;

	if (!ctl_params_check(params, keys, call))
		return;
	ret = ctl_save(&view->model, path);
	if (ret != 0)
		ctl_call_error(call, CTL_RPC_REFUSED,
			"%s: cannot be saved: %s; the file is as it was", path, strerror(-ret));
	else
		ctl_call_result(call,
			json_pack("{s:i, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
				CTL_KEY_GENERATION, ctl_params_number(view->generation),
				CTL_KEY_PATH, ctl_params_any_text(path)));
}
