/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_json.h"

#include <stdlib.h>
#include <string.h>

#include "ctl_rpc.h"

/* Of what is put, nearly all has room. */
static inline void
put_bytes(struct ctl_json *json, const char *data, size_t n)
{
	struct ctl_bytes *bytes = &json->bytes;

	if (n == 0 || json->has_failed || ctl_bytes_length(bytes) > CTL_RPC_ANSWER_BYTES_MAX)
		return;
	json->has_failed = n > bytes->capacity - bytes->end && ctl_bytes_reserve(bytes, n) != 0;
	if (json->has_failed)
		return;
	memcpy(bytes->data + bytes->end, data, n);
	bytes->end += n;
}

void
ctl_json_put(struct ctl_json *json, const char *text)
{
	put_bytes(json, text, strlen(text));
}

void
ctl_json_put_all(struct ctl_json *json, struct ctl_json *from)
{
	json->has_failed = json->has_failed || from->has_failed;
	if (ctl_bytes_length(&from->bytes) > 0)
		put_bytes(json, ctl_bytes_front(&from->bytes), ctl_bytes_length(&from->bytes));
}

static bool
is_plain(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

void
ctl_json_put_text(struct ctl_json *json, const char *text)
{
	if (!is_plain(text)) {
		ctl_json_put_value(json, json_string(text));
		return;
	}
	put_bytes(json, "\"", 1);
	put_bytes(json, text, strlen(text));
	put_bytes(json, "\"", 1);
}

void
ctl_json_put_member(struct ctl_json *json, const char *key, const char *text)
{
	ctl_json_put(json, key);
	if (text == NULL)
		ctl_json_put(json, "null");
	else
		ctl_json_put_text(json, text);
}

void
ctl_json_put_number(struct ctl_json *json, uint64_t value)
{
	char digits[20];
	size_t first = sizeof(digits);

	if (value > INT64_MAX)
		value = INT64_MAX;
	do {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put_bytes(json, digits + first, sizeof(digits) - first);
}

/* Without so many bytes at its end. Takes value over. */
static void
put_most(struct ctl_json *json, json_t *value, size_t n_left_out)
{
	char *text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	if (text == NULL)
		json->has_failed = true;
	else
		put_bytes(json, text, strlen(text) - n_left_out);
	free(text);
	json_decref(value);
}

void
ctl_json_put_value(struct ctl_json *json, json_t *value)
{
	if (json_is_null(value))
		ctl_json_put(json, "null");
	else
		put_most(json, value, 0);
}

void
ctl_json_put_open(struct ctl_json *json, json_t *object)
{
	put_most(json, object, 1);
}

const char *
ctl_json_text(struct ctl_json *json)
{
	if (!json->has_failed)
		json->has_failed = ctl_bytes_append(&json->bytes, "", 1) != 0;
	return json->has_failed ? NULL : ctl_bytes_front(&json->bytes);
}

void
ctl_json_fini(struct ctl_json *json)
{
	ctl_bytes_fini(&json->bytes);
	json->has_failed = false;
}
