/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_check.h"
#include "cfg_nearest.h"
#include "cfg_yaml.h"
#include "ctl_daemon.h"
#include "ctl_methods_each.h"
#include "ctl_params.h"
#include "ctl_proto.h"

/* A change in the making: who asks for what, a copy of what is wanted, its flaws. */
struct edit {
	struct ctl_daemon *daemon;
	const char *method;
	const json_t *params;
	struct ctl_call *call;
	struct cfg_model next; /* once it is begun, as are messages */
	struct ctl_messages messages;
};

static struct edit
edit_of(void *context, const char *method, const json_t *params, struct ctl_call *call)
{
	return (struct edit){.daemon = context,
		.method = method,
		.params = params,
		.call = call};
}

/* Of a call that is about one backend. */
static const char *const named_keys[] = {CTL_KEY_SERVICE, CTL_KEY_NAME, NULL};

/* Whether a reload is being read, which was asked for before this: then fn waits for it. */
static bool
must_wait(const struct edit *edit, ctl_method_fn fn)
{
	return ctl_reload_defer(ctl_daemon_reload(edit->daemon), fn, edit->params, edit->call);
}

/* False: the call is answered. */
static bool
begin_edit(struct edit *edit)
{
	if (ctl_messages_open(&edit->messages, CTL_MESSAGES_CALL) == 0) {
		if (cfg_model_copy(ctl_daemon_wanted(edit->daemon), &edit->next) == 0)
			return true;
		ctl_messages_close(&edit->messages);
	}
	ctl_params_no_memory(edit->call);
	return false;
}

/* The call is answered: nothing is changed. */
static void
drop_edit(struct edit *edit)
{
	ctl_messages_close(&edit->messages);
	cfg_model_fini(&edit->next);
}

/* Answer with what was told to the edit's messages. */
static void
refuse_edit(struct edit *edit, enum ctl_rpc_error code)
{
	if (edit->messages.errors.no_memory)
		ctl_params_no_memory(edit->call);
	else
		ctl_messages_answer(&edit->messages, code, edit->call);
	drop_edit(edit);
}

/* For the log, once params are known to be right: the method, whom it is about, the weight. */
static char *
describe(const struct edit *edit)
{
	const char *service = json_string_value(json_object_get(edit->params, CTL_KEY_SERVICE));
	const char *name = json_string_value(json_object_get(edit->params, CTL_KEY_NAME));
	const json_t *weight = json_object_get(edit->params, CTL_KEY_WEIGHT);
	char number[sizeof(" -9223372036854775808")] = "";
	char *text;

	if (strcmp(edit->method, CTL_METHOD_BACKEND_WEIGHT) == 0)
		(void)snprintf(number, sizeof(number), " %" JSON_INTEGER_FORMAT,
			json_integer_value(weight));
	if (asprintf(&text, "%s %s%s%s%s", edit->method, service != NULL ? service : "",
		    service != NULL ? "/" : "", name != NULL ? name : "", number) < 0)
		return NULL;
	return text;
}

/* Check the changed model whole, and have it put in force. */
static void
commit_edit(struct edit *edit)
{
	struct ctl_origin origin = {0};

	if (!cfg_check_model(&edit->next, &edit->messages.errors)) {
		refuse_edit(edit, CTL_RPC_REFUSED);
		return;
	}
	ctl_messages_close(&edit->messages);
	origin.what = describe(edit);
	ctl_daemon_change(edit->daemon, &edit->next, edit->call, &origin);
}

static struct cfg_backend *
find_backend(const struct cfg_service *service, const char *name, struct ctl_call *call)
{
	struct cfg_backend *backend = cfg_find_backend(service, name);
	struct cfg_nearest nearest;

	if (backend != NULL)
		return backend;
	cfg_nearest_init(&nearest, name, strlen(name));
	for (size_t i = 0; i < service->n_backends; i++)
		cfg_nearest_offer(&nearest, service->backends[i].name);
	if (nearest.best == NULL)
		ctl_call_error(call, CTL_RPC_REFUSED,
			"service '%s' has no backend '%s', nor any other", service->name, name);
	else
		ctl_call_error(call, CTL_RPC_REFUSED,
			"service '%s' has no backend '%s'; the nearest is '%s'", service->name,
			name, nearest.best);
	return NULL;
}

/* The service and the backend that params name, in the edit's copy. NULL: answered. */
static struct cfg_backend *
find_named(const struct edit *edit, struct cfg_service **service)
{
	const char *service_name = ctl_params_text(edit->params, CTL_KEY_SERVICE, edit->call);
	const char *name;

	if (service_name == NULL)
		return NULL;
	name = ctl_params_text(edit->params, CTL_KEY_NAME, edit->call);
	if (name == NULL)
		return NULL;
	*service = ctl_method_find_service(&edit->next, service_name, edit->call);
	return *service == NULL ? NULL : find_backend(*service, name, edit->call);
}

/* Begin a change of the backend that params name. NULL: answered, and nothing is begun. */
static struct cfg_backend *
begin_with_named(struct edit *edit, struct cfg_service **service)
{
	struct cfg_backend *backend;

	if (!begin_edit(edit))
		return NULL;
	backend = find_named(edit, service);
	if (backend == NULL)
		drop_edit(edit);
	return backend;
}

static void
set_state(struct edit *edit, ctl_method_fn fn, enum cfg_state state)
{
	struct cfg_service *service;
	struct cfg_backend *backend;

	if (must_wait(edit, fn) || !ctl_params_check(edit->params, named_keys, edit->call))
		return;
	backend = begin_with_named(edit, &service);
	if (backend == NULL)
		return;
	backend->state = state;
	commit_edit(edit);
}

void
ctl_method_backend_up(void *context, const json_t *params, struct ctl_call *call)
{
	struct edit edit = edit_of(context, CTL_METHOD_BACKEND_UP, params, call);

	set_state(&edit, ctl_method_backend_up, CFG_UP);
}

void
ctl_method_backend_drain(void *context, const json_t *params, struct ctl_call *call)
{
	struct edit edit = edit_of(context, CTL_METHOD_BACKEND_DRAIN, params, call);

	set_state(&edit, ctl_method_backend_drain, CFG_DRAIN);
}

void
ctl_method_backend_down(void *context, const json_t *params, struct ctl_call *call)
{
	struct edit edit = edit_of(context, CTL_METHOD_BACKEND_DOWN, params, call);

	set_state(&edit, ctl_method_backend_down, CFG_DOWN);
}

void
ctl_method_backend_remove(void *context, const json_t *params, struct ctl_call *call)
{
	struct edit edit = edit_of(context, CTL_METHOD_BACKEND_REMOVE, params, call);
	struct cfg_service *service;
	struct cfg_backend *backend;

	if (must_wait(&edit, ctl_method_backend_remove) ||
		!ctl_params_check(params, named_keys, call))
		return;
	backend = begin_with_named(&edit, &service);
	if (backend == NULL)
		return;
	cfg_remove_backend(service, backend);
	commit_edit(&edit);
}

void
ctl_method_backend_weight(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_SERVICE, CTL_KEY_NAME, CTL_KEY_WEIGHT, NULL};
	const json_t *weight = json_object_get(params, CTL_KEY_WEIGHT);
	struct edit edit = edit_of(context, CTL_METHOD_BACKEND_WEIGHT, params, call);
	struct cfg_service *service;
	struct cfg_backend *backend;

	if (must_wait(&edit, ctl_method_backend_weight) ||
		!ctl_params_check(params, keys, call))
		return;
	if (!json_is_integer(weight) || json_integer_value(weight) < 0 ||
		json_integer_value(weight) > LB_WEIGHT_MAX) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"weight: expected a whole number from 0 to %u", LB_WEIGHT_MAX);
		return;
	}
	backend = begin_with_named(&edit, &service);
	if (backend == NULL)
		return;
	backend->weight = (uint32_t)json_integer_value(weight);
	commit_edit(&edit);
}

/*
 * Decode a backend from params. JSON is YAML too, so the file's own reader reads it, with its
 * checks and its words.
 */
static bool
decode_backend(const json_t *params, struct cfg_errors *errors, struct cfg_backend *out)
{
	static const char *const extra[] = {CTL_KEY_SERVICE, NULL};
	struct cfg_node *root = NULL;
	char *text = json_dumps(params, 0);
	bool is_right;

	if (text == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	is_right = cfg_node_parse(text, strlen(text), errors, &root) == 0 && root != NULL &&
		   errors->n_errors == 0 && cfg_decode_backend(root, extra, errors, out);
	cfg_node_free(root);
	free(text);
	return is_right;
}

/* Takes what the backend owns. */
static void
add_backend(struct edit *edit, struct cfg_service *service, struct cfg_backend *backend)
{
	const int ret = cfg_add_backend(service, backend);
	struct cfg_errors *errors = &edit->messages.errors;

	if (ret == -EEXIST)
		cfg_error(errors, (struct cfg_pos){0},
			"service '%s' has a backend '%s' already; remove it first, or choose "
			"another name",
			service->name, backend->name);
	else if (ret == -E2BIG)
		cfg_error(errors, (struct cfg_pos){0},
			"service '%s' has %u backends, the most there may be", service->name,
			LB_SERVICE_BACKENDS_MAX);
	else if (ret != 0)
		cfg_error_memory(errors);
	cfg_backend_fini(backend);
	if (ret == 0)
		commit_edit(edit);
	else
		refuse_edit(edit, CTL_RPC_REFUSED);
}

void
ctl_method_backend_add(void *context, const json_t *params, struct ctl_call *call)
{
	struct edit edit = edit_of(context, CTL_METHOD_BACKEND_ADD, params, call);
	const char *name;
	struct cfg_service *service;
	struct cfg_backend backend;

	if (must_wait(&edit, ctl_method_backend_add))
		return;
	name = ctl_params_text(params, CTL_KEY_SERVICE, call);
	if (name == NULL || !begin_edit(&edit))
		return;
	service = ctl_method_find_service(&edit.next, name, call);
	if (service == NULL)
		drop_edit(&edit);
	else if (!decode_backend(params, &edit.messages.errors, &backend))
		refuse_edit(&edit, CTL_RPC_INVALID_PARAMS);
	else
		add_backend(&edit, service, &backend);
}

/* A model of the one service that params say, checked by itself. */
static bool
decode_service(const json_t *params, struct cfg_errors *errors, struct cfg_model *out)
{
	char *text = NULL;
	size_t n_text = 0;
	FILE *stream = open_memstream(&text, &n_text);
	int ret = -ENOMEM;

	if (stream != NULL) {
		(void)fputs("{\"services\": [", stream);
		ret = json_dumpf(params, stream, 0) == 0 ? 0 : -ENOMEM;
		(void)fputs("]}", stream);
		if (fclose(stream) != 0)
			ret = -ENOMEM;
	}
	if (ret == 0)
		ret = cfg_read_text_model(errors->file, text, n_text, errors->to, out);
	free(text);
	if (ret == -ENOMEM)
		errors->no_memory = true;
	return ret == 0;
}

static bool
is_same_place(const struct cfg_service *a, const struct cfg_service *b)
{
	return lb_prefix_equal(&a->address, &b->address) && a->protocol == b->protocol &&
	       a->port == b->port;
}

/* What a file's check would tell by lines, which a call has not. */
static bool
can_stand_beside(const struct cfg_service *service, const struct cfg_service *other,
	struct cfg_errors *errors)
{
	if (strcmp(service->name, other->name) == 0)
		cfg_error(errors, (struct cfg_pos){0},
			"there is a service '%s' already; remove it first, or choose another "
			"name",
			other->name);
	else if (is_same_place(service, other))
		cfg_error(errors, (struct cfg_pos){0},
			"address, protocol and port are those of service '%s'; one of the "
			"three has to differ",
			other->name);
	else
		return true;
	return false;
}

/* Move the one service of a model to the end of the edit's. */
static bool
move_service(struct edit *edit, struct cfg_model *from)
{
	struct cfg_errors *errors = &edit->messages.errors;
	struct cfg_model *to = &edit->next;
	struct cfg_service *services;

	for (size_t i = 0; i < to->n_services; i++)
		if (!can_stand_beside(&from->services[0], &to->services[i], errors))
			return false;
	services = realloc(to->services, (to->n_services + 1) * sizeof(*services));
	if (services == NULL) {
		cfg_error_memory(errors);
		return false;
	}
	services[to->n_services++] = from->services[0];
	to->services = services;
	from->n_services = 0;
	return true;
}

void
ctl_method_service_add(void *context, const json_t *params, struct ctl_call *call)
{
	struct edit edit = edit_of(context, CTL_METHOD_SERVICE_ADD, params, call);
	struct cfg_model one;
	bool is_moved;

	if (must_wait(&edit, ctl_method_service_add))
		return;
	if (!json_is_object(params)) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"parameters are an object with the keys that a service has in a file");
		return;
	}
	if (!begin_edit(&edit))
		return;
	if (!decode_service(params, &edit.messages.errors, &one)) {
		refuse_edit(&edit, CTL_RPC_INVALID_PARAMS);
		return;
	}
	is_moved = move_service(&edit, &one);
	cfg_model_fini(&one);
	if (is_moved)
		commit_edit(&edit);
	else
		refuse_edit(&edit, CTL_RPC_REFUSED);
}

/* Take a service out of a model into one of its own, which then frees it. */
static int
take_service(struct cfg_model *model, struct cfg_service *service, struct cfg_model *out)
{
	const size_t at = (size_t)(service - model->services);

	cfg_model_init(out);
	out->services = malloc(sizeof(*out->services));
	if (out->services == NULL)
		return -ENOMEM;
	out->services[0] = *service;
	out->n_services = 1;
	model->n_services--;
	memmove(service, service + 1, (model->n_services - at) * sizeof(*service));
	return 0;
}

void
ctl_method_service_remove(void *context, const json_t *params, struct ctl_call *call)
{
	static const char *const keys[] = {CTL_KEY_NAME, NULL};
	struct edit edit = edit_of(context, CTL_METHOD_SERVICE_REMOVE, params, call);
	struct cfg_service *service;
	struct cfg_model removed;
	const char *name;

	if (must_wait(&edit, ctl_method_service_remove) ||
		!ctl_params_check(params, keys, call))
		return;
	name = ctl_params_text(params, CTL_KEY_NAME, call);
	if (name == NULL || !begin_edit(&edit))
		return;
	service = ctl_method_find_service(&edit.next, name, call);
	if (service == NULL) {
		drop_edit(&edit);
	} else if (take_service(&edit.next, service, &removed) != 0) {
		edit.messages.errors.no_memory = true;
		refuse_edit(&edit, CTL_RPC_INTERNAL_ERROR);
	} else {
		cfg_model_fini(&removed);
		commit_edit(&edit);
	}
}
