/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cfg_node.h"
#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"

/* What the change came to, and the file where that is wanted. Takes result. */
static int
finish_edit(struct shuntctl *ctl, json_t *result)
{
	int status = SHUNTCTL_DONE;
	json_t *saved;

	if (ctl->is_save) {
		status = shuntctl_call(ctl, CTL_METHOD_CONFIG_SAVE, NULL, &saved);
		if (status == SHUNTCTL_DONE)
			json_decref(saved);
		else
			(void)fputs("shuntctl: the change is in force, and not saved\n",
				stderr);
	}
	if (ctl->is_json && status == SHUNTCTL_DONE)
		status = shuntctl_write_json(result, false);
	json_decref(result);
	return status;
}

/* Takes params; NULL: what was typed is no UTF-8. */
static int
edit(struct shuntctl *ctl, const char *method, json_t *params)
{
	json_t *result;
	int status;

	if (params == NULL)
		return shuntctl_no_utf8();
	status = shuntctl_call(ctl, method, params, &result);
	return status == SHUNTCTL_DONE ? finish_edit(ctl, result) : status;
}

/* {service, name} of SERVICE/NAME. NULL: it is told what is wrong. */
static json_t *
split_name(const char *text)
{
	const char *slash = strchr(text, '/');
	json_t *params;

	if (slash == NULL || slash == text || slash[1] == '\0') {
		(void)shuntctl_usage_error("expected SERVICE/NAME, found '%s'", text);
		return NULL;
	}
	params = json_pack("{s:s%, s:s}", CTL_KEY_SERVICE, text, (size_t)(slash - text),
		CTL_KEY_NAME, slash + 1);
	if (params == NULL)
		(void)shuntctl_no_utf8();
	return params;
}

/* One call for each backend; the first that fails ends it. */
static int
edit_each(struct shuntctl *ctl, const char *method)
{
	json_t *result = NULL;

	for (int i = 0; i < ctl->n_args; i++) {
		json_t *params = split_name(ctl->args[i]);
		int status = SHUNTCTL_BAD_USAGE;

		json_decref(result);
		result = NULL;
		if (params != NULL)
			status = shuntctl_call(ctl, method, params, &result);
		if (status != SHUNTCTL_DONE) {
			if (i > 0)
				(void)fprintf(stderr, "shuntctl: those before '%s' are done\n",
					ctl->args[i]);
			return status;
		}
	}
	return finish_edit(ctl, result);
}

int
shuntctl_backend_remove(struct shuntctl *ctl)
{
	return edit_each(ctl, CTL_METHOD_BACKEND_REMOVE);
}

int
shuntctl_backend_drain(struct shuntctl *ctl)
{
	return edit_each(ctl, CTL_METHOD_BACKEND_DRAIN);
}

int
shuntctl_backend_up(struct shuntctl *ctl)
{
	return edit_each(ctl, CTL_METHOD_BACKEND_UP);
}

int
shuntctl_backend_down(struct shuntctl *ctl)
{
	return edit_each(ctl, CTL_METHOD_BACKEND_DOWN);
}

int
shuntctl_backend_weight(struct shuntctl *ctl)
{
	json_t *params = split_name(ctl->args[0]);
	uint64_t weight;

	if (params == NULL)
		return SHUNTCTL_BAD_USAGE;
	if (!cfg_scan_u64(ctl->args[1], 0, LB_WEIGHT_MAX, &weight)) {
		json_decref(params);
		return shuntctl_usage_error("a weight is a whole number from 0 to %u, not '%s'",
			LB_WEIGHT_MAX, ctl->args[1]);
	}
	if (json_object_set_new(params, CTL_KEY_WEIGHT, json_integer((json_int_t)weight)) !=
		0) {
		json_decref(params);
		return shuntctl_no_memory();
	}
	return edit(ctl, CTL_METHOD_BACKEND_WEIGHT, params);
}

/* Options into the keys they stand for. Takes params, which is NULL where one fails. */
static json_t *
add_values(json_t *params, const struct shuntctl *ctl, const enum shuntctl_value values[],
	const char *const keys[], size_t n)
{
	int failed = params == NULL;

	for (size_t i = 0; i < n; i++)
		if (ctl->values[values[i]] != NULL)
			failed |= json_object_set_new(params, keys[i],
				json_string(ctl->values[values[i]]));
	if (failed == 0)
		return params;
	json_decref(params);
	return NULL;
}

/* The items between commas, each made by make. */
static json_t *
make_list(const char *text, json_t *(*make)(const char *text, size_t n))
{
	json_t *list = json_array();
	int failed = 0;

	for (;;) {
		const size_t n = strcspn(text, ",");

		failed |= json_array_append_new(list, make(text, n));
		if (text[n] == '\0')
			break;
		text += n + 1;
	}
	if (failed == 0)
		return list;
	json_decref(list);
	return NULL;
}

/* Texts between colons, as members of an object; the last has all that is left. */
static json_t *
split_text(const char *text, size_t n, const char *const keys[], size_t n_keys)
{
	json_t *object = json_object();
	const char *const end = text + n;
	int failed = 0;

	for (size_t i = 0; i < n_keys && text != NULL; i++) {
		const bool is_last = i + 1 == n_keys;
		const char *colon = is_last ? NULL : memchr(text, ':', (size_t)(end - text));
		const char *item_end = colon != NULL ? colon : end;

		failed |= json_object_set_new(object, keys[i],
			json_stringn(text, (size_t)(item_end - text)));
		text = colon != NULL ? colon + 1 : NULL;
	}
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

/* Of CONFIG_ID:SERVER_ID_LENGTH:NONCE_LENGTH; what is not there the daemon asks for. */
static json_t *
make_quic(const char *text, size_t n)
{
	static const char *const keys[] = {CTL_KEY_CONFIG_ID, CTL_KEY_SERVER_ID_LENGTH,
		CTL_KEY_NONCE_LENGTH};

	return split_text(text, n, keys, LB_N_ELEMENTS(keys));
}

int
shuntctl_backend_add(struct shuntctl *ctl)
{
	static const enum shuntctl_value values[] = {SHUNTCTL_WEIGHT, SHUNTCTL_STATE,
		SHUNTCTL_MAC, SHUNTCTL_ZONE};
	static const char *const keys[] = {CTL_KEY_WEIGHT, CTL_KEY_STATE, CTL_KEY_MAC,
		CTL_KEY_ZONE};
	json_t *params = split_name(ctl->args[0]);
	const char *quic_id = ctl->values[SHUNTCTL_QUIC_ID];
	int failed = 0;

	if (params == NULL)
		return SHUNTCTL_BAD_USAGE;
	failed |= json_object_set_new(params, CTL_KEY_ADDRESS, json_string(ctl->args[1]));
	if (quic_id != NULL)
		failed |= json_object_set_new(params, CTL_KEY_QUIC_ID,
			make_list(quic_id, json_stringn));
	if (failed != 0) {
		json_decref(params);
		params = NULL;
	}
	return edit(ctl, CTL_METHOD_BACKEND_ADD,
		add_values(params, ctl, values, keys, LB_N_ELEMENTS(values)));
}

/* Of ALGORITHM[:SIZE[:OVERLOAD]]. */
static json_t *
make_table(const char *text)
{
	static const char *const keys[] = {CTL_KEY_ALGORITHM, CTL_KEY_SIZE, CTL_KEY_OVERLOAD};

	return split_text(text, strlen(text), keys, LB_N_ELEMENTS(keys));
}

/* Of KEY=VALUE,...; a value has no comma. What has no '=' is a key without one. */
static json_t *
make_check(const char *text)
{
	json_t *object = json_object();
	int failed = object == NULL;

	while (failed == 0) {
		const size_t n = strcspn(text, ",");
		const char *equals = memchr(text, '=', n);
		const size_t n_key = equals != NULL ? (size_t)(equals - text) : n;
		json_t *value =
			equals != NULL ? json_stringn(equals + 1, n - n_key - 1) : json_null();

		failed |= json_object_setn_new(object, text, n_key, value);
		if (text[n] == '\0')
			return object;
		text += n + 1;
	}
	json_decref(object);
	return NULL;
}

int
shuntctl_service_add(struct shuntctl *ctl)
{
	static const enum shuntctl_value values[] = {SHUNTCTL_ADDRESS, SHUNTCTL_PROTOCOL,
		SHUNTCTL_PORT, SHUNTCTL_AFFINITY, SHUNTCTL_FORWARD, SHUNTCTL_TUNNEL_PORT,
		SHUNTCTL_VNI, SHUNTCTL_ECHO, SHUNTCTL_FRAGMENT, SHUNTCTL_MSS_CLAMP,
		SHUNTCTL_SLOW_START, SHUNTCTL_MIN_HEALTHY, SHUNTCTL_WHEN_ALL_DOWN};
	static const char *const keys[] = {CTL_KEY_ADDRESS, CTL_KEY_PROTOCOL, CTL_KEY_PORT,
		CTL_KEY_AFFINITY, CTL_KEY_FORWARD, CTL_KEY_TUNNEL_PORT, CTL_KEY_VNI,
		CTL_KEY_ECHO, CTL_KEY_FRAGMENT, CTL_KEY_MSS_CLAMP, CTL_KEY_SLOW_START,
		CTL_KEY_MIN_HEALTHY, CTL_KEY_WHEN_ALL_DOWN};
	const char *table = ctl->values[SHUNTCTL_TABLE];
	const char *carry = ctl->values[SHUNTCTL_CARRY];
	const char *quic = ctl->values[SHUNTCTL_QUIC];
	const char *health = ctl->values[SHUNTCTL_HEALTH];
	json_t *params = add_values(json_pack("{s:s}", CTL_KEY_NAME, ctl->args[0]), ctl, values,
		keys, LB_N_ELEMENTS(values));
	int failed = params == NULL;

	if (table != NULL)
		failed |= json_object_set_new(params, CTL_KEY_TABLE, make_table(table));
	if (carry != NULL)
		failed |= json_object_set_new(params, CTL_KEY_CARRY,
			make_list(carry, json_stringn));
	if (quic != NULL)
		failed |= json_object_set_new(params, CTL_KEY_QUIC, make_list(quic, make_quic));
	if (health != NULL)
		failed |= json_object_set_new(params, CTL_KEY_HEALTH, make_check(health));
	if (failed != 0) {
		json_decref(params);
		params = NULL;
	}
	return edit(ctl, CTL_METHOD_SERVICE_ADD, params);
}

int
shuntctl_service_remove(struct shuntctl *ctl)
{
	return edit(ctl, CTL_METHOD_SERVICE_REMOVE,
		json_pack("{s:s}", CTL_KEY_NAME, ctl->args[0]));
}
