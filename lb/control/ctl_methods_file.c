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

/* False: the call is answered. */
static bool
read_model(const char *path, struct ctl_call *call, struct cfg_model *out)
{
	struct ctl_messages messages;

	if (ctl_messages_open(&messages, path) != 0) {
		ctl_params_no_memory(call);
		return false;
	}
	if (is_regular(path, messages.errors.to) &&
		cfg_read_file(path, messages.errors.to, out) == 0) {
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

void
ctl_method_plan(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_PATH, NULL};
	const struct ctl_daemon *daemon = context;
	const struct ctl_view *view = ctl_daemon_view(daemon);
	struct cfg_model next;
	const char *path;
	char *obstacle;

	if (!ctl_params_check(params, keys, call))
		return;
	path = ctl_params_text(params, CTL_KEY_PATH, call);
	if (path == NULL || !read_model(path, call, &next))
		return;
	obstacle = find_obstacle(daemon, &next);
	ctl_call_result(call,
		json_pack("{s:i, s:o, s:o, s:s?, s:o, s:o}", CTL_KEY_SCHEMA, CTL_SCHEMA,
			CTL_KEY_GENERATION, ctl_params_number(view->generation), CTL_KEY_PATH,
			ctl_params_any_text(path), CTL_KEY_OBSTACLE, obstacle, CTL_KEY_SETTINGS,
			ctl_plan_settings(&view->model, &next), CTL_KEY_SERVICES,
			ctl_plan_services(&view->model, &next)));
	free(obstacle);
	cfg_model_fini(&next);
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
