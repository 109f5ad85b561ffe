/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cfg_character.h"
#include "ctl_base64.h"

void
ctl_etcd_answer_fini(struct ctl_etcd_answer *answer)
{
	free(answer->value);
	*answer = (struct ctl_etcd_answer){0};
}

/* What is asked. */

/* Takes object. */
static char *
dump(json_t *object)
{
	char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

static json_t *
make_bytes(const char *bytes, size_t n)
{
	char *text = ctl_base64_encode(bytes, n);
	json_t *made = text != NULL ? json_string(text) : NULL;

	free(text);
	return made;
}

static json_t *
make_key(const char *key)
{
	return make_bytes(key, strlen(key));
}

char *
ctl_etcd_json_range(const char *key, bool is_bare)
{
	return dump(json_pack("{s:o, s:b}", "key", make_key(key), "keys_only", (int)is_bare));
}

char *
ctl_etcd_json_put(const char *key, const char *value, size_t n_value, uint64_t revision)
{
	json_t *compare = json_pack("{s:o, s:s, s:s, s:I}", "key", make_key(key), "target",
		"MOD", "result", "EQUAL", "mod_revision", (json_int_t)revision);
	json_t *put = json_pack("{s:{s:o, s:o}}", "request_put", "key", make_key(key), "value",
		make_bytes(value, n_value));
	json_t *look = json_pack("{s:{s:o, s:b}}", "request_range", "key", make_key(key),
		"keys_only", true);

	return dump(json_pack("{s:[o], s:[o], s:[o]}", "compare", compare, "success", put,
		"failure", look));
}

char *
ctl_etcd_json_watch(const char *key, uint64_t revision)
{
	return dump(json_pack("{s:{s:o, s:I}}", "create_request", "key", make_key(key),
		"start_revision", (json_int_t)revision));
}

char *
ctl_etcd_json_login(const char *user, const char *password)
{
	return dump(json_pack("{s:s, s:s}", "name", user, "password", password));
}

/* What is answered. */

/* The byte behind a text's closing quote, or the end. */
static const char *
skip_text(const char *at, const char *end)
{
	while (at < end && *at != '"')
		at += *at == '\\' && end - at > 1 ? 2 : 1;
	return at < end ? at + 1 : end;
}

static bool
has_few_parts(const char *text, size_t n)
{
	const char *at = text;
	const char *const end = text + n;
	size_t n_parts = 0;

	while (at < end && n_parts <= CTL_ETCD_PARTS_MAX) {
		const char letter = *at++;

		if (letter == '"')
			at = skip_text(at, end);
		else
			n_parts += letter == '{' || letter == '[' || letter == ',';
	}
	return n_parts <= CTL_ETCD_PARTS_MAX;
}

static int
load(const char *text, size_t n, json_t **out)
{
	json_t *object;

	if (n == 0 || !has_few_parts(text, n))
		return -EPROTO;
	object = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(object)) {
		json_decref(object);
		return -EPROTO;
	}
	*out = object;
	return 0;
}

/* A number, as a text of digits or as it is; what is 0 is left out. */
static int
read_number(const json_t *object, const char *name, uint64_t *out)
{
	const json_t *value = json_object_get(object, name);
	const char *digits = json_string_value(value);
	char *end;

	if (value == NULL) {
		*out = 0;
		return 0;
	}
	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*out = (uint64_t)json_integer_value(value);
		return 0;
	}
	if (digits == NULL || digits[0] < '0' || digits[0] > '9')
		return -EPROTO;
	errno = 0;
	*out = strtoull(digits, &end, 10);
	return errno != 0 || *end != '\0' ? -EPROTO : 0;
}

static int
read_bool(const json_t *object, const char *name, bool *out)
{
	const json_t *value = json_object_get(object, name);

	*out = json_is_true(value);
	return value == NULL || json_is_boolean(value) ? 0 : -EPROTO;
}

static int
read_header(const json_t *object, struct ctl_etcd_answer *answer)
{
	const json_t *header = json_object_get(object, "header");
	int ret = json_is_object(header) ? 0 : -EPROTO;

	if (ret == 0)
		ret = read_number(header, "cluster_id", &answer->cluster);
	if (ret == 0)
		ret = read_number(header, "revision", &answer->revision);
	return ret != 0 || answer->revision > INT64_MAX ? -EPROTO : 0;
}

static bool
is_key(const json_t *kv, const char *key)
{
	const json_t *name = json_object_get(kv, "key");
	size_t n_bytes;
	char *bytes;
	bool is_same;

	if (!json_is_string(name) || ctl_base64_decode(json_string_value(name),
					     json_string_length(name), &bytes, &n_bytes) != 0)
		return false;
	is_same = n_bytes == strlen(key) && memcmp(bytes, key, n_bytes) == 0;
	free(bytes);
	return is_same;
}

/* An empty value is left out. */
static int
read_value(const json_t *kv, struct ctl_etcd_answer *answer)
{
	const json_t *value = json_object_get(kv, "value");
	int ret;

	free(answer->value);
	answer->value = NULL;
	if (value != NULL && !json_is_string(value))
		return -EPROTO;
	ret = ctl_base64_decode(value != NULL ? json_string_value(value) : "",
		value != NULL ? json_string_length(value) : 0, &answer->value,
		&answer->n_value);
	if (ret == 0 && answer->n_value > CTL_ETCD_VALUE_BYTES_MAX)
		return -EMSGSIZE;
	return ret == -EINVAL ? -EPROTO : ret;
}

static int
read_kv(const json_t *kv, const char *key, struct ctl_etcd_answer *answer)
{
	int ret = json_is_object(kv) && is_key(kv, key) ? 0 : -EPROTO;

	if (ret == 0)
		ret = read_number(kv, "mod_revision", &answer->key_revision);
	if (ret == 0 && (answer->key_revision == 0 || answer->key_revision > answer->revision))
		ret = -EPROTO;
	return ret;
}

/* The list of a range: one key or none. */
static int
read_kvs(const json_t *range, const char *key, struct ctl_etcd_answer *answer)
{
	const json_t *kvs = json_object_get(range, "kvs");

	if (kvs == NULL)
		return 0;
	if (!json_is_array(kvs) || json_array_size(kvs) > 1)
		return -EPROTO;
	answer->has_key = json_array_size(kvs) == 1;
	return answer->has_key ? read_kv(json_array_get(kvs, 0), key, answer) : 0;
}

/* Takes what a reader of an answer has made of it. */
static int
finish(json_t *object, int ret, struct ctl_etcd_answer *answer, struct ctl_etcd_answer *out)
{
	json_decref(object);
	if (ret != 0) {
		ctl_etcd_answer_fini(answer);
		return ret;
	}
	*out = *answer;
	return 0;
}

int
ctl_etcd_json_read_range(const char *text, size_t n, const char *key,
	struct ctl_etcd_answer *out)
{
	struct ctl_etcd_answer answer = {0};
	json_t *object;
	int ret = load(text, n, &object);

	if (ret != 0)
		return ret;
	ret = read_header(object, &answer);
	if (ret == 0 && answer.revision == 0)
		ret = -EPROTO;
	if (ret == 0)
		ret = read_kvs(object, key, &answer);
	if (ret == 0 && answer.has_key)
		ret = read_value(json_array_get(json_object_get(object, "kvs"), 0), &answer);
	return finish(object, ret, &answer, out);
}

int
ctl_etcd_json_read_put(const char *text, size_t n, const char *key, struct ctl_etcd_answer *out)
{
	struct ctl_etcd_answer answer = {0};
	const json_t *first;
	json_t *object;
	int ret = load(text, n, &object);

	if (ret != 0)
		return ret;
	first = json_array_get(json_object_get(object, "responses"), 0);
	ret = read_header(object, &answer);
	if (ret == 0 && answer.revision == 0)
		ret = -EPROTO;
	if (ret == 0)
		ret = read_bool(object, "succeeded", &answer.is_succeeded);
	if (ret == 0 && answer.is_succeeded)
		answer.key_revision = answer.revision;
	if (ret == 0 && !answer.is_succeeded && json_is_object(first))
		ret = read_kvs(json_object_get(first, "response_range"), key, &answer);
	return finish(object, ret, &answer, out);
}

static int
read_event(const json_t *event, const char *key, struct ctl_etcd_answer *answer)
{
	const json_t *type = json_object_get(event, "type");
	const json_t *kv = json_object_get(event, "kv");
	const char *word = type == NULL ? "PUT" : json_string_value(type);
	int ret = word == NULL ? -EPROTO : read_kv(kv, key, answer);

	if (ret != 0)
		return ret;
	answer->has_key = strcmp(word, "PUT") == 0;
	answer->is_deleted = strcmp(word, "DELETE") == 0;
	if (answer->has_key)
		return read_value(kv, answer);
	return answer->is_deleted ? 0 : -EPROTO;
}

static int
read_events(const json_t *result, const char *key, struct ctl_etcd_answer *answer)
{
	const json_t *events = json_object_get(result, "events");
	uint64_t before = 0;
	int ret = events == NULL || json_is_array(events) ? 0 : -EPROTO;

	for (size_t i = 0; ret == 0 && i < json_array_size(events); i++) {
		ret = read_event(json_array_get(events, i), key, answer);
		if (ret == 0 && answer->key_revision <= before)
			ret = -EPROTO;
		before = answer->key_revision;
	}
	return ret;
}

/* Whole characters, none of which does anything to a terminal or is not what it looks like. */
static void
copy_words(const char *words, char out[CTL_ETCD_WHY_BYTES])
{
	size_t n = 0;

	while (*words != '\0') {
		uint32_t c = 0;
		const size_t n_bytes = cfg_decode_character(words, strnlen(words, 4), &c);
		const bool is_plain = n_bytes > 0 && cfg_find_character_flaw(c) == NULL;
		const size_t n_out = is_plain ? n_bytes : 1;

		if (n + n_out >= CTL_ETCD_WHY_BYTES)
			break;
		memcpy(out + n, is_plain ? words : "?", n_out);
		n += n_out;
		words += n_bytes > 0 ? n_bytes : 1;
	}
	out[n] = '\0';
}

static int
read_end(const json_t *result, struct ctl_etcd_answer *answer)
{
	const json_t *reason = json_object_get(result, "cancel_reason");
	int ret = read_bool(result, "created", &answer->is_created);

	if (ret == 0)
		ret = read_bool(result, "canceled", &answer->is_canceled);
	if (ret == 0)
		ret = read_number(result, "compact_revision", &answer->compacted);
	if (json_is_string(reason))
		copy_words(json_string_value(reason), answer->reason);
	return ret;
}

int
ctl_etcd_json_read_watch(const char *text, size_t n, const char *key,
	struct ctl_etcd_answer *out)
{
	struct ctl_etcd_answer answer = {0};
	const json_t *result;
	json_t *object;
	int ret = load(text, n, &object);

	if (ret != 0)
		return ret;
	result = json_object_get(object, "result");
	if (json_is_object(result)) {
		ret = read_header(result, &answer);
		if (ret == 0)
			ret = read_end(result, &answer);
		if (ret == 0)
			ret = read_events(result, key, &answer);
	} else {
		/* The gateway's own word for a stream that has ended. */
		answer.is_canceled = json_object_get(object, "error") != NULL;
		ctl_etcd_json_read_error(text, n, answer.reason);
		ret = answer.is_canceled ? 0 : -EPROTO;
	}
	return finish(object, ret, &answer, out);
}

int
ctl_etcd_json_read_login(const char *text, size_t n, char **token)
{
	const char *word;
	json_t *object;
	int ret = load(text, n, &object);

	if (ret != 0)
		return ret;
	word = json_string_value(json_object_get(object, "token"));
	/* It becomes a header, and so must not end it. */
	if (word == NULL || word[0] == '\0' || strpbrk(word, "\r\n") != NULL)
		ret = -EPROTO;
	else
		*token = strdup(word);
	if (ret == 0 && *token == NULL)
		ret = -ENOMEM;
	json_decref(object);
	return ret;
}

/*
 * Of a call {"error": "words", "message": …}, of etcd 3.6 {"message": "words", "code": …}; in a
 * stream {"error": {"message": "words"}}.
 */
void
ctl_etcd_json_read_error(const char *text, size_t n, char words[CTL_ETCD_WHY_BYTES])
{
	const json_t *error;
	const char *found;
	json_t *object;

	words[0] = '\0';
	if (load(text, n, &object) != 0)
		return;
	error = json_object_get(object, "error");
	if (!json_is_string(error))
		error = json_object_get(error != NULL ? error : object, "message");
	found = json_string_value(error);
	if (found != NULL)
		copy_words(found, words);
	json_decref(object);
}
