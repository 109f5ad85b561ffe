/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_answer.h"

#include <errno.h>
#include <string.h>

#include "ctl_params.h"

struct sink {
	struct ctl_bytes *out;
	int ret;
};

/* For json_dump_callback(), which passes a few bytes at a time. */
static int
append(const char *data, size_t n, void *context)
{
	struct sink *sink = context;

	if (n > CTL_RPC_ANSWER_BYTES_MAX - ctl_bytes_length(sink->out))
		sink->ret = -EMSGSIZE;
	else
		sink->ret = ctl_bytes_append(sink->out, data, n);
	return sink->ret == 0 ? 0 : -1;
}

static void
take_back(struct ctl_bytes *out, size_t n_before)
{
	out->end = out->front + n_before;
	ctl_bytes_drop(out, 0);
}

json_t *
ctl_rpc_answer_make(json_t *id, const char *key, json_t *value)
{
	json_t *answer = json_object();

	if (value == NULL || answer == NULL ||
		json_object_set_new(answer, "jsonrpc", json_string("2.0")) != 0 ||
		json_object_set_new(answer, "id", id == NULL ? json_null() : json_incref(id)) !=
			0 ||
		json_object_set(answer, key, value) != 0) {
		json_decref(answer);
		answer = NULL;
	}
	json_decref(value);
	return answer;
}

/* A message is made of what was sent, too, and may end within a character. */
json_t *
ctl_rpc_answer_make_error(enum ctl_rpc_error code, const char *message)
{
	json_t *error = json_object();
	int failed = 0;

	failed |= json_object_set_new(error, "code", json_integer(code));
	failed |= json_object_set_new(error, "message", ctl_params_any_text(message));
	return ctl_params_finish(error, failed);
}

int
ctl_rpc_answer_append(struct ctl_bytes *out, const json_t *answer)
{
	const size_t n_before = ctl_bytes_length(out);
	struct sink sink = {.out = out};

	if (json_dump_callback(answer, append, &sink, JSON_COMPACT) == 0 &&
		append("\n", 1, &sink) == 0)
		return 0;
	take_back(out, n_before);
	return sink.ret != 0 ? sink.ret : -EINVAL;
}

int
ctl_rpc_answer_append_text(struct ctl_bytes *out, const json_t *id, const char *result)
{
	const char *const pieces[] = {",\"result\":", result, "}\n"};
	const size_t n_before = ctl_bytes_length(out);
	const char *head = "{\"jsonrpc\":\"2.0\",\"id\":";
	struct sink sink = {.out = out};
	int failed;

	if (result == NULL)
		return -ENOMEM;
	failed = append(head, strlen(head), &sink);
	if (failed == 0)
		failed = json_dump_callback(id, append, &sink, JSON_COMPACT | JSON_ENCODE_ANY);
	for (size_t i = 0; i < LB_N_ELEMENTS(pieces) && failed == 0; i++)
		failed = append(pieces[i], strlen(pieces[i]), &sink);
	if (failed == 0)
		return 0;
	take_back(out, n_before);
	return sink.ret != 0 ? sink.ret : -ENOMEM;
}
