/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl_rpc_answer.h"
#include "ctl_rpc_parse.h"

/* Answers. */

static int
append_value(struct ctl_rpc_client *client, json_t *id, const char *key, json_t *value)
{
	json_t *answer = ctl_rpc_answer_make(id, key, value);
	int ret = -ENOMEM;

	if (answer == NULL)
		return ret;
	ret = ctl_rpc_answer_append(&client->out, answer);
	if (ret == -EMSGSIZE && ctl_bytes_length(&client->out) > 0) {
		ctl_rpc_client_flush(client);
		ret = ctl_rpc_answer_append(&client->out, answer);
	}
	json_decref(answer);
	return ret;
}

void
ctl_rpc_answer_error(struct ctl_rpc_client *client, json_t *id, enum ctl_rpc_error code,
	const char *message)
{
	const int ret =
		append_value(client, id, "error", ctl_rpc_answer_make_error(code, message));

	client->rpc->stats.errors++;
	if (ret == 0)
		return;
	client->is_cut = true;
	if (ret == -EMSGSIZE)
		client->rpc->stats.stalled++;
}

/* The result was appended, or why not. */
static void
end_result(struct ctl_rpc_client *client, json_t *id, int ret)
{
	char why[CTL_RPC_WHY_BYTES];

	if (ret == 0)
		return;
	if (ret == -EMSGSIZE && ctl_bytes_length(&client->out) > 0) {
		client->is_cut = true;
		client->rpc->stats.stalled++;
		return;
	}
	if (ret == -EMSGSIZE)
		(void)snprintf(why, sizeof(why), "the answer would be longer than %u bytes",
			CTL_RPC_ANSWER_BYTES_MAX);
	else
		(void)snprintf(why, sizeof(why), "the answer cannot be written: %s",
			ret == -ENOMEM ? "out of memory" : "it is not UTF-8");
	ctl_rpc_answer_error(client, id, CTL_RPC_INTERNAL_ERROR, why);
}

static void
answer_result(struct ctl_rpc_client *client, json_t *id, json_t *result)
{
	end_result(client, id, append_value(client, id, "result", result));
}

static void
answer_text(struct ctl_rpc_client *client, json_t *id, const char *result)
{
	int ret = ctl_rpc_answer_append_text(&client->out, id, result);

	if (ret == -EMSGSIZE && ctl_bytes_length(&client->out) > 0) {
		ctl_rpc_client_flush(client);
		ret = ctl_rpc_answer_append_text(&client->out, id, result);
	}
	end_result(client, id, ret);
}

/* Calls. */

struct ctl_call *
ctl_rpc_call_create(struct ctl_rpc_client *client, json_t *id)
{
	struct ctl_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->client = client;
	call->id = json_incref(id);
	call->file = client->file;
	call->has_brought_file = client->file >= 0;
	client->file = -1;
	client->has_file_call |= call->has_brought_file;
	call->is_owners = client->is_owner;
	call->next = client->calls;
	if (call->next != NULL)
		call->next->previous = call;
	client->calls = call;
	client->n_calls++;
	return call;
}

uint64_t
ctl_call_client(const struct ctl_call *call)
{
	return call->client != NULL ? call->client->number : 0;
}

bool
ctl_call_is_owners(const struct ctl_call *call)
{
	return call->is_owners;
}

bool
ctl_call_has_file(const struct ctl_call *call)
{
	return call->file >= 0;
}

int
ctl_call_take_file(struct ctl_call *call)
{
	const int file = call->file;

	call->file = -1;
	return file;
}

/* Within the client's turn its answers go out together at the end of it. */
static void
finish_call(struct ctl_call *call)
{
	struct ctl_rpc_client *client = call->client;

	if (client != NULL) {
		if (call->next != NULL)
			call->next->previous = call->previous;
		if (call->previous != NULL)
			call->previous->next = call->next;
		else
			client->calls = call->next;
		client->n_calls--;
		client->has_file_call &= !call->has_brought_file;
		client->moved_ms = ctl_loop_now_ms();
		if (!client->is_in_turn)
			ctl_rpc_client_settle(client);
	}
	if (call->file >= 0)
		(void)close(call->file);
	json_decref(call->id);
	free(call);
}

static bool
has_listener(const struct ctl_call *call)
{
	return call->client != NULL && !call->client->is_cut && call->id != NULL;
}

void
ctl_call_result(struct ctl_call *call, json_t *result)
{
	if (has_listener(call))
		answer_result(call->client, call->id, result);
	else
		json_decref(result);
	finish_call(call);
}

void
ctl_call_text(struct ctl_call *call, const char *result)
{
	if (has_listener(call))
		answer_text(call->client, call->id, result);
	finish_call(call);
}

void
ctl_call_error(struct ctl_call *call, enum ctl_rpc_error code, const char *message, ...)
{
	char *text = NULL;
	va_list arguments;
	int n;

	va_start(arguments, message);
	n = vasprintf(&text, message, arguments);
	va_end(arguments);
	if (has_listener(call))
		ctl_rpc_answer_error(call->client, call->id, code,
			n < 0 ? "out of memory" : text);
	if (n >= 0)
		free(text);
	finish_call(call);
}
