/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Of a text that was sent, this much is repeated. */
#define REPEATED_BYTES_MAX 64

__attribute__((format(printf, 3, 4))) static int
refuse(struct ctl_request_flaw *flaw, enum ctl_rpc_error code, const char *why, ...)
{
	va_list arguments;

	flaw->code = code;
	va_start(arguments, why);
	(void)vsnprintf(flaw->why, sizeof(flaw->why), why, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int
load(const char *text, size_t n_bytes, json_t **out, struct ctl_request_flaw *flaw)
{
	json_error_t error;

	*out = json_loadb(text, n_bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	if (*out != NULL)
		return 0;
	if (json_error_code(&error) == json_error_out_of_memory)
		return refuse(flaw, CTL_RPC_INTERNAL_ERROR, "out of memory");
	return refuse(flaw, CTL_RPC_PARSE_ERROR, "not JSON: %s, at byte %d", error.text,
		error.position);
}

/* A misspelt "params" would otherwise be a call without any. */
static int
check_members(json_t *root, struct ctl_request_flaw *flaw)
{
	static const char *const members[] = {"jsonrpc", "method", "params", "id"};
	const char *key;
	json_t *value;

	json_object_foreach(root, key, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < LB_N_ELEMENTS(members); i++)
			is_known = is_known || strcmp(key, members[i]) == 0;
		if (!is_known)
			return refuse(flaw, CTL_RPC_INVALID_REQUEST,
				"'%.*s' is no member of a request, which are jsonrpc, method, "
				"params and id",
				REPEATED_BYTES_MAX, key);
	}
	return 0;
}

static int
read_request(struct ctl_request *request, struct ctl_request_flaw *flaw)
{
	json_t *root = request->root;
	json_t *id = json_object_get(root, "id");
	const char *version = json_string_value(json_object_get(root, "jsonrpc"));
	const char *method = json_string_value(json_object_get(root, "method"));
	const json_t *params = json_object_get(root, "params");

	if (json_is_array(root))
		return refuse(flaw, CTL_RPC_INVALID_REQUEST,
			"batches are not taken: send each request on a line of its own");
	if (!json_is_object(root))
		return refuse(flaw, CTL_RPC_INVALID_REQUEST, "a request is an object");
	if (id != NULL && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		return refuse(flaw, CTL_RPC_INVALID_REQUEST,
			"'id' is to be a string, a number or null");
	request->id = id;
	if (version == NULL || strcmp(version, "2.0") != 0)
		return refuse(flaw, CTL_RPC_INVALID_REQUEST, "'jsonrpc' is to be \"2.0\"");
	if (method == NULL)
		return refuse(flaw, CTL_RPC_INVALID_REQUEST,
			"'method' is to be a string, the method's name");
	if (params != NULL && !json_is_object(params) && !json_is_array(params))
		return refuse(flaw, CTL_RPC_INVALID_REQUEST,
			"'params' is to be an object or an array");
	if (check_members(root, flaw) != 0)
		return -EINVAL;
	request->params = params;
	request->method = method;
	return 0;
}

int
ctl_rpc_parse(const char *text, size_t n_bytes, struct ctl_request *out,
	struct ctl_request_flaw *flaw)
{
	int ret;

	*out = (struct ctl_request){0};
	ret = load(text, n_bytes, &out->root, flaw);
	if (ret != 0)
		return ret;
	return read_request(out, flaw);
}

void
ctl_request_fini(struct ctl_request *request)
{
	json_decref(request->root);
	*request = (struct ctl_request){0};
}
