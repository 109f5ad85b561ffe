/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"

/* Whom others name goes by the whole path. NULL: errno says why. */
static char *
make_absolute(const char *path)
{
	char *folder;
	char *whole = NULL;

	if (path[0] == '/')
		return strdup(path);
	folder = getcwd(NULL, 0);
	if (folder != NULL && asprintf(&whole, "%s/%s", folder, path) < 0)
		whole = NULL;
	free(folder);
	return whole;
}

/* What is no regular file is refused by the daemon, and is not waited for here. */
static int
open_file(const char *path)
{
	struct stat file;
	int flags = O_RDONLY | O_NOCTTY | O_CLOEXEC;

	if (stat(path, &file) != 0)
		return -1;
	if (!S_ISREG(file.st_mode))
		flags |= O_NONBLOCK;
	return open(path, flags);
}

/*
 * The file is opened here, with the rights of who asks, and passed: the daemon may read more,
 * and the path may mean another file to it.
 */
static int
make_params(struct shuntctl *ctl, const char *path, json_t **out)
{
	char *whole = make_absolute(path);

	if (whole == NULL) {
		(void)fprintf(stderr, "shuntctl: where %s is cannot be found out: %s\n", path,
			strerror(errno));
		return SHUNTCTL_FAILED;
	}
	*out = json_pack("{s:s}", CTL_KEY_PATH, whole);
	if (*out == NULL) {
		free(whole);
		return shuntctl_no_utf8();
	}
	ctl->file = open_file(path);
	if (ctl->file < 0) {
		(void)fprintf(stderr, "%s: cannot be opened: %s\n", whole, strerror(errno));
		json_decref(*out);
	}
	free(whole);
	return ctl->file >= 0 ? SHUNTCTL_DONE : SHUNTCTL_BAD_USAGE;
}

static void
print_value(const json_t *value)
{
	char *text;

	if (json_is_string(value)) {
		(void)fputs(json_string_value(value), stdout);
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY);
	(void)fputs(text != NULL ? text : "?", stdout);
	free(text);
}

static void
print_changes(const json_t *changes, const char *indent)
{
	for (size_t i = 0; i < json_array_size(changes); i++) {
		const json_t *change = json_array_get(changes, i);

		(void)printf("%s%s: ", indent, shuntctl_text_of(change, CTL_KEY_KEY));
		print_value(json_object_get(change, CTL_KEY_FROM));
		(void)fputs(" -> ", stdout);
		print_value(json_object_get(change, CTL_KEY_TO));
		(void)fputc('\n', stdout);
	}
}

/* As diff has it: + for what comes, - for what goes, ~ for what changes. */
static char
sign_of(const json_t *object)
{
	const char *change = shuntctl_text_of(object, CTL_KEY_CHANGE);

	if (strcmp(change, CTL_CHANGE_ADD) == 0)
		return '+';
	return strcmp(change, CTL_CHANGE_REMOVE) == 0 ? '-' : '~';
}

/* To end the line with: how many live flows move. */
static void
print_flows(const json_t *object)
{
	const json_t *flows = json_object_get(object, CTL_KEY_FLOWS);

	if (json_is_integer(flows))
		(void)printf(", %" JSON_INTEGER_FORMAT " live flows\n",
			json_integer_value(flows));
	else
		(void)fputs(", live flows not known\n", stdout);
}

static void
print_service(const json_t *service)
{
	const json_t *backends = json_object_get(service, CTL_KEY_BACKENDS);
	const json_t *moved = json_object_get(service, CTL_KEY_SLOTS_MOVED);
	const json_int_t n_slots = json_integer_value(json_object_get(service, CTL_KEY_SLOTS));

	(void)printf("%c service %s: ", sign_of(service),
		shuntctl_text_of(service, CTL_KEY_NAME));
	if (json_is_integer(moved))
		(void)printf("%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
			     " slots move (%.2f %%)",
			json_integer_value(moved), n_slots,
			100.0 * (double)json_integer_value(moved) / (double)n_slots);
	else
		(void)fputs("all new flows are hashed anew", stdout);
	print_flows(service);
	print_changes(json_object_get(service, CTL_KEY_CHANGES), "    ");
	for (size_t i = 0; i < json_array_size(backends); i++) {
		const json_t *backend = json_array_get(backends, i);

		(void)printf("  %c backend %s\n", sign_of(backend),
			shuntctl_text_of(backend, CTL_KEY_NAME));
		print_changes(json_object_get(backend, CTL_KEY_CHANGES), "      ");
	}
}

/* Of the services whose slots can be compared. */
static json_int_t
count_moved(const json_t *services)
{
	json_int_t n = 0;

	for (size_t i = 0; i < json_array_size(services); i++)
		n += json_integer_value(
			json_object_get(json_array_get(services, i), CTL_KEY_SLOTS_MOVED));
	return n;
}

/* The keys that only a start changes. */
static void
print_restart(const json_t *keys)
{
	for (size_t i = 0; i < json_array_size(keys); i++)
		(void)printf("! %s: takes a restart\n",
			json_string_value(json_array_get(keys, i)));
}

static int
print_plan(const json_t *result)
{
	const json_t *services = json_object_get(result, CTL_KEY_SERVICES);
	const json_t *settings = json_object_get(result, CTL_KEY_SETTINGS);

	if (json_array_size(services) == 0 && json_array_size(settings) == 0)
		(void)puts("nothing changes");
	print_changes(settings, "~ ");
	for (size_t i = 0; i < json_array_size(services); i++)
		print_service(json_array_get(services, i));
	if (json_array_size(services) > 0) {
		(void)printf("in all: %" JSON_INTEGER_FORMAT " slots move",
			count_moved(services));
		print_flows(result);
	}
	print_restart(json_object_get(result, CTL_KEY_RESTART));
	return shuntctl_finish_output();
}

/* Each begins with its place in the file. */
static void
tell_warnings(const json_t *result)
{
	const json_t *warnings = json_object_get(result, CTL_KEY_WARNINGS);

	for (size_t i = 0; i < json_array_size(warnings); i++)
		(void)fprintf(stderr, "%s\n", json_string_value(json_array_get(warnings, i)));
}

/* A plan that a reload would not carry out fails as that would. */
static int
tell_obstacle(const char *path, const json_t *result)
{
	const char *obstacle = json_string_value(json_object_get(result, CTL_KEY_OBSTACLE));

	if (obstacle == NULL)
		return SHUNTCTL_DONE;
	(void)fprintf(stderr, "shuntctl: a reload of %s would be refused: %s\n", path,
		obstacle);
	return SHUNTCTL_FAILED;
}

int
shuntctl_plan(struct shuntctl *ctl)
{
	json_t *params;
	json_t *result;
	int status = make_params(ctl, ctl->args[0], &params);

	if (status == SHUNTCTL_DONE)
		status = shuntctl_call(ctl, CTL_METHOD_PLAN, params, &result);
	if (status != SHUNTCTL_DONE)
		return status;
	status = ctl->is_json ? shuntctl_write_json(result, false) : print_plan(result);
	if (!ctl->is_json)
		tell_warnings(result);
	if (status == SHUNTCTL_DONE)
		status = tell_obstacle(ctl->args[0], result);
	json_decref(result);
	return status;
}

static int
print_reload(const json_t *result)
{
	tell_warnings(result);
	return SHUNTCTL_DONE;
}

int
shuntctl_reload(struct shuntctl *ctl)
{
	json_t *params = NULL;
	int status = SHUNTCTL_DONE;

	if (ctl->n_args > 0)
		status = make_params(ctl, ctl->args[0], &params);
	if (status != SHUNTCTL_DONE)
		return status;
	return shuntctl_ask(ctl, CTL_METHOD_RELOAD, params, print_reload);
}

int
shuntctl_config_save(struct shuntctl *ctl)
{
	return shuntctl_ask(ctl, CTL_METHOD_CONFIG_SAVE, NULL, NULL);
}

/* A revision of etcd's, which may be 0. */
static bool
read_revision(const char *text, json_int_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static int
print_push(const json_t *result)
{
	(void)printf("etcd has it at revision %" JSON_INTEGER_FORMAT ", hash %s\n",
		json_integer_value(json_object_get(result, CTL_KEY_REVISION)),
		shuntctl_text_of(result, CTL_KEY_HASH));
	return shuntctl_finish_output();
}

int
shuntctl_config_push(struct shuntctl *ctl)
{
	const char *text = ctl->values[SHUNTCTL_REVISION];
	json_int_t revision = 0;
	json_t *params;
	int status;

	if (text != NULL && !read_revision(text, &revision))
		return shuntctl_usage_error("--revision: expected one of etcd's, or 0 for a "
					    "key "
					    "that is not there, and found '%s'",
			text);
	status = make_params(ctl, ctl->args[0], &params);
	if (status != SHUNTCTL_DONE)
		return status;
	if (text != NULL &&
		json_object_set_new(params, CTL_KEY_REVISION, json_integer(revision)) != 0) {
		json_decref(params);
		return shuntctl_no_memory();
	}
	return shuntctl_ask(ctl, CTL_METHOD_CONFIG_PUSH, params, print_push);
}
