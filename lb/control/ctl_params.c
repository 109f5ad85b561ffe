/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_params.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cfg_nearest.h"
#include "ctl_proto.h"

/* Of a key that is repeated to whoever sent it. */
#define REPEATED_BYTES_MAX 64

static void
refuse_key(const char *key, const char *const keys[], struct ctl_call *call)
{
	struct cfg_nearest nearest;

	cfg_nearest_init(&nearest, key, strlen(key));
	for (size_t i = 0; keys[i] != NULL; i++)
		cfg_nearest_offer(&nearest, keys[i]);
	if (nearest.best == NULL)
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"unknown parameter '%.*s'; this method takes none", REPEATED_BYTES_MAX,
			key);
	else
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"unknown parameter '%.*s'; the nearest is '%s'", REPEATED_BYTES_MAX,
			key, nearest.best);
}

bool
ctl_params_check(const json_t *params, const char *const keys[], struct ctl_call *call)
{
	/* jansson's iterators want what they may change, and here change nothing. */
	json_t *copy;
	bool is_right = true;

	if (params == NULL)
		return true;
	if (!json_is_object(params)) {
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"parameters are an object, each under its name");
		return false;
	}
	copy = json_deep_copy(params);
	if (copy == NULL) {
		ctl_params_no_memory(call);
		return false;
	}
	for (void *at = json_object_iter(copy); at != NULL && is_right;
		at = json_object_iter_next(copy, at)) {
		const char *key = json_object_iter_key(at);

		is_right = keys[cfg_find_word(key, keys)] != NULL;
		if (!is_right)
			refuse_key(key, keys, call);
	}
	json_decref(copy);
	return is_right;
}

const char *
ctl_params_text(const json_t *params, const char *key, struct ctl_call *call)
{
	const json_t *value = json_object_get(params, key);

	if (json_is_string(value))
		return json_string_value(value);
	if (value == NULL)
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"the parameter '%s' is missing, a text", key);
	else
		ctl_call_error(call, CTL_RPC_INVALID_PARAMS,
			"the parameter '%s' is to be a text", key);
	return NULL;
}

const char *
ctl_params_file(const json_t *params, struct ctl_call *call)
{
	const char *path = ctl_params_text(params, CTL_KEY_PATH, call);

	if (path == NULL || ctl_call_has_file(call) || ctl_call_is_owners(call))
		return path;
	ctl_call_error(call, CTL_RPC_REFUSED,
		"shuntd opens files by their path for root alone; open it, and pass it with "
		"the request, as this version's shuntctl does");
	return NULL;
}

void
ctl_params_no_memory(struct ctl_call *call)
{
	ctl_call_error(call, CTL_RPC_INTERNAL_ERROR, "there is not enough memory");
}

void
ctl_params_stops(struct ctl_call *call)
{
	ctl_call_error(call, CTL_RPC_REFUSED, "shuntd stops");
}

json_t *
ctl_params_any_text(const char *text)
{
	json_t *made = json_string(text);
	char *plain = made == NULL ? strdup(text) : NULL;

	if (plain == NULL)
		return made;
	for (char *c = plain; *c != '\0'; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	made = json_string(plain);
	free(plain);
	return made;
}

json_t *
ctl_params_number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *
ctl_params_finish(json_t *value, int failed)
{
	if (failed == 0)
		return value;
	json_decref(value);
	return NULL;
}

json_t *
ctl_params_mss_clamp(const struct cfg_service *service)
{
	if (service->mss_clamp == CFG_MSS_AUTO)
		return json_string("auto");
	return service->mss_clamp != 0 ? json_integer(service->mss_clamp) : json_null();
}

json_t *
ctl_params_duration(uint64_t ns)
{
	char text[CFG_DURATION_TEXT_BYTES];

	return json_string(cfg_format_duration(ns, text));
}

/* What an answer has to be; NULL: nothing is said of it. */
static json_t *
make_expected(const struct cfg_health *health)
{
	json_t *list;
	int failed = 0;

	if (health->type == CFG_HEALTH_UDP)
		return json_string(health->wants_reply ? "reply" : "any");
	list = json_array();
	for (size_t i = 0; i < health->n_expect; i++)
		failed |= json_array_append_new(list,
			json_pack("[i, i]", (int)health->expect[i].first,
				(int)health->expect[i].last));
	if (health->n_expect == 0)
		failed |= json_array_append_new(list, json_pack("[i, i]", 200, 399));
	return ctl_params_finish(list, failed);
}

static int
add_http(json_t *object, const struct cfg_health *health)
{
	int failed = 0;

	failed |= json_object_set_new(object, "path",
		json_string(health->path != NULL ? health->path : "/"));
	failed |= json_object_set_new(object, "host",
		health->host != NULL ? json_string(health->host) : json_null());
	if (health->type == CFG_HEALTH_HTTPS)
		failed |= json_object_set_new(object, "verify",
			json_boolean(health->is_verified));
	return failed;
}

json_t *
ctl_params_health(const struct cfg_service *service)
{
	const struct cfg_health *health = &service->health;
	const enum cfg_health_type type = health->type;
	json_t *object;
	int failed = 0;

	if (type == CFG_HEALTH_NONE)
		return json_null();
	object = json_pack("{s:s}", "type", cfg_health_words[type]);
	if (type != CFG_HEALTH_ICMP)
		failed |= json_object_set_new(object, CTL_KEY_PORT,
			json_integer(health->port != 0 ? health->port : service->port));
	if (type == CFG_HEALTH_HTTP || type == CFG_HEALTH_HTTPS)
		failed |= add_http(object, health);
	if (type != CFG_HEALTH_ICMP && type != CFG_HEALTH_TCP)
		failed |= json_object_set_new(object, "expect", make_expected(health));
	failed |= json_object_set_new(object, "interval",
		ctl_params_duration(health->interval_ns));
	failed |=
		json_object_set_new(object, "timeout", ctl_params_duration(health->timeout_ns));
	failed |= json_object_set_new(object, "rise", json_integer(health->rise));
	failed |= json_object_set_new(object, "fall", json_integer(health->fall));
	failed |= json_object_set_new(object, "via",
		json_string(health->is_tunnelled ? "tunnel" : "direct"));
	failed |= json_object_set_new(object, "flap_half_life",
		health->half_life_ns != 0 ? ctl_params_duration(health->half_life_ns)
					  : json_string("off"));
	return ctl_params_finish(object, failed);
}

json_t *
ctl_params_carry(const struct cfg_service *service)
{
	json_t *list = json_array();
	int failed = 0;

	for (unsigned int i = 0; i < CFG_N_CARRIES; i++)
		if ((service->carry & 1u << i) != 0)
			failed |= json_array_append_new(list, json_string(cfg_carry_words[i]));
	return ctl_params_finish(list, failed);
}

static const struct cfg_quic *
find_quic(const struct cfg_service *service, uint8_t config_id)
{
	for (size_t i = 0; i < service->n_quic; i++) {
		if (service->quic[i].config_id == config_id)
			return &service->quic[i];
	}
	return NULL;
}

static json_t *
make_cid_key(const struct cfg_quic *quic, const struct cfg_service *before)
{
	const struct cfg_quic *old = before != NULL ? find_quic(before, quic->config_id) : NULL;

	if (!quic->has_key)
		return json_null();
	if (old != NULL && old->has_key && !cfg_quic_key_equal(old, quic))
		return json_string(CTL_CID_KEY_CHANGED);
	return json_string(CTL_CID_KEY_SET);
}

json_t *
ctl_params_quic(const struct cfg_service *service, const struct cfg_service *before)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < service->n_quic; i++) {
		const struct cfg_quic *quic = &service->quic[i];

		failed |= json_array_append_new(list,
			json_pack("{s:i, s:i, s:i, s:o, s:b}", CTL_KEY_CONFIG_ID,
				(int)quic->config_id, CTL_KEY_SERVER_ID_LENGTH,
				(int)quic->server_id_bytes, CTL_KEY_NONCE_LENGTH,
				(int)quic->nonce_bytes, CTL_KEY_CID_KEY,
				make_cid_key(quic, before), CTL_KEY_CID_HAS_LENGTH,
				(int)quic->has_length));
	}
	return ctl_params_finish(list, failed);
}

json_t *
ctl_params_quic_ids(const struct cfg_backend *backend)
{
	json_t *list = json_array();
	int failed = 0;

	for (size_t i = 0; i < backend->n_quic_ids; i++) {
		char text[CFG_QUIC_ID_TEXT_BYTES];

		failed |= json_array_append_new(list,
			json_string(cfg_quic_id_format(&backend->quic_ids[i], text)));
	}
	return ctl_params_finish(list, failed);
}

int
ctl_messages_open(struct ctl_messages *messages, const char *file)
{
	*messages = (struct ctl_messages){.errors = {.file = file}};
	messages->errors.to = open_memstream(&messages->text, &messages->n_text);
	return messages->errors.to == NULL ? -ENOMEM : 0;
}

void
ctl_messages_close(struct ctl_messages *messages)
{
	if (messages->errors.to != NULL)
		(void)fclose(messages->errors.to);
	messages->errors.to = NULL;
	free(messages->text);
	messages->text = NULL;
}

const char *
ctl_messages_text(struct ctl_messages *messages)
{
	return fflush(messages->errors.to) == 0 && messages->text != NULL ? messages->text : "";
}

json_t *
ctl_messages_list(struct ctl_messages *messages)
{
	const char *at = ctl_messages_text(messages);
	json_t *list = json_array();
	int failed = 0;

	while (*at != '\0') {
		const size_t n = strcspn(at, "\n");
		char *line = strndup(at, n);

		failed |= line == NULL ||
			  json_array_append_new(list, ctl_params_any_text(line)) != 0;
		free(line);
		at += n + (at[n] == '\n');
	}
	return ctl_params_finish(list, failed);
}

/*
 * Of each line that begins with the name of a call, the rest behind "-:LINE:COLUMN: ": it
 * would be a place in a text that nobody has seen.
 */
static void
strip_places(char *text)
{
	const size_t n_name = strlen(CTL_MESSAGES_CALL ":");
	char *to = text;

	while (*text != '\0') {
		const size_t n_line = strcspn(text, "\n") + (strchr(text, '\n') != NULL);
		size_t n_skipped = 0;

		if (strncmp(text, CTL_MESSAGES_CALL ":", n_name) == 0) {
			n_skipped = strcspn(text, " \n");
			n_skipped += text[n_skipped] == ' ';
		}
		memmove(to, text + n_skipped, n_line - n_skipped);
		to += n_line - n_skipped;
		text += n_line;
	}
	*to = '\0';
}

void
ctl_messages_answer(struct ctl_messages *messages, enum ctl_rpc_error code,
	struct ctl_call *call)
{
	int is_bad = fclose(messages->errors.to);

	messages->errors.to = NULL;
	if (is_bad != 0 || messages->text == NULL) {
		ctl_params_no_memory(call);
	} else {
		size_t n;

		strip_places(messages->text);
		n = strlen(messages->text);
		while (n > 0 && messages->text[n - 1] == '\n')
			messages->text[--n] = '\0';
		ctl_call_error(call, code, "%s", messages->text);
	}
	ctl_messages_close(messages);
}
