/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cfg_nearest.h"
#include "ctl_rpc_parse.h"

#define SLICE_NS           1000000u /* of requests, before files have their turn */
#define SLICE_REQUESTS     16
#define REPEATED_BYTES_MAX 64

/* Requests. */

static const struct ctl_method *
find_method(const struct ctl_rpc *rpc, const char *name)
{
	for (size_t i = 0; i < rpc->n_methods; i++) {
		if (strcmp(rpc->methods[i].name, name) == 0)
			return &rpc->methods[i];
	}
	return NULL;
}

/* A method that is meant, perhaps: a third of its letters may be other ones. NULL: none. */
static const char *
find_like(const struct ctl_rpc *rpc, const char *name)
{
	const size_t n = strlen(name);
	struct cfg_nearest nearest;
	size_t n_best;

	cfg_nearest_init(&nearest, name, n);
	for (size_t i = 0; i < rpc->n_methods; i++)
		cfg_nearest_offer(&nearest, rpc->methods[i].name);
	if (nearest.best == NULL)
		return NULL;
	n_best = strlen(nearest.best);
	return nearest.distance * 3 <= (n > n_best ? n : n_best) ? nearest.best : NULL;
}

static void
refuse_method(const struct ctl_rpc *rpc, const char *name, struct ctl_call *call)
{
	const char *like = find_like(rpc, name);

	if (like != NULL)
		ctl_call_error(call, CTL_RPC_UNKNOWN_METHOD,
			"no method is called '%.*s'; did you mean '%s'?", REPEATED_BYTES_MAX,
			name, like);
	else
		ctl_call_error(call, CTL_RPC_UNKNOWN_METHOD, "no method is called '%.*s'",
			REPEATED_BYTES_MAX, name);
}

static void
carry_out(struct ctl_rpc_client *client, const struct ctl_request *request)
{
	const struct ctl_rpc *rpc = client->rpc;
	const struct ctl_method *method = find_method(rpc, request->method);
	struct ctl_call *call = ctl_rpc_call_create(client, request->id);

	if (call == NULL && request->id != NULL)
		ctl_rpc_answer_error(client, request->id, CTL_RPC_INTERNAL_ERROR,
			"out of memory");
	if (call == NULL)
		return;
	if (method == NULL)
		refuse_method(rpc, request->method, call);
	else
		method->fn(rpc->context, request->params, call);
}

static bool
is_blank(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
			return false;
	}
	return true;
}

static void
handle_line(struct ctl_rpc_client *client, const char *text, size_t n)
{
	struct ctl_request request;
	struct ctl_request_flaw flaw;

	if (is_blank(text, n))
		return;
	client->rpc->stats.requests++;
	if (ctl_rpc_parse(text, n, &request, &flaw) == 0)
		carry_out(client, &request);
	else
		ctl_rpc_answer_error(client, request.id, flaw.code, flaw.why);
	ctl_request_fini(&request);
}

/* Turns. */

void
ctl_rpc_ask_for_turn(struct ctl_rpc *rpc)
{
	const uint64_t one = 1;

	/* Its counter cannot become full, the only way in which this could fail. */
	if (!rpc->is_turn_due && write(rpc->turn_fd, &one, sizeof(one)) > 0)
		rpc->is_turn_due = true;
}

/* Of those who can have a turn and are new, or are not, who has waited longest; NULL: nobody.
 */
static struct ctl_rpc_client *
find_first(const struct ctl_rpc *rpc, bool is_new)
{
	struct ctl_rpc_client *first = NULL;

	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++) {
		struct ctl_rpc_client *client = rpc->clients[i];

		if (client != NULL && client->is_new == is_new &&
			ctl_rpc_client_is_ready(client) &&
			(first == NULL || client->last_turn < first->last_turn))
			first = client;
	}
	return first;
}

/*
 * Whose turn it is, NULL: nobody's. Every other turn is for those who had none yet: one short
 * question of theirs does not wait until all others have had long ones answered.
 */
static struct ctl_rpc_client *
pick_client(const struct ctl_rpc *rpc)
{
	const bool prefers_new = rpc->n_turns % 2 == 0;
	struct ctl_rpc_client *client = find_first(rpc, prefers_new);

	return client != NULL ? client : find_first(rpc, !prefers_new);
}

/* One request; the client may be gone afterwards. */
static void
take_turn(struct ctl_rpc_client *client)
{
	const uint64_t begun_ms = ctl_loop_now_ms();

	client->last_turn = ++client->rpc->n_turns;
	client->is_new = false;
	client->is_in_turn = true;
	handle_line(client, ctl_bytes_front(&client->in), client->n_line);
	ctl_rpc_charge(client, ctl_loop_now_ms() - begun_ms);
	ctl_rpc_client_next_line(client);
	client->is_in_turn = false;
	ctl_rpc_client_settle(client);
}

static void
on_turn(void *context, uint32_t events)
{
	const uint64_t begun_ns = ctl_loop_now_ns();
	struct ctl_rpc *rpc = context;
	struct ctl_rpc_client *client;
	uint64_t n;

	(void)events;
	if (read(rpc->turn_fd, &n, sizeof(n)) < 0)
		return;
	rpc->is_turn_due = false;
	for (int i = 0; i < SLICE_REQUESTS && ctl_loop_now_ns() - begun_ns < SLICE_NS; i++) {
		client = pick_client(rpc);
		if (client == NULL)
			return;
		take_turn(client);
	}
	ctl_rpc_ask_for_turn(rpc);
}

/* Opening and closing. */

static int
watch_files(struct ctl_rpc *rpc)
{
	int ret;

	rpc->turn_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (rpc->turn_fd < 0)
		return -errno;
	ret = ctl_loop_add_fd(rpc->loop, rpc->turn_fd, (uint32_t)EPOLLIN, on_turn, rpc);
	if (ret != 0)
		goto close_turn;
	ret = ctl_loop_add_fd(rpc->loop, rpc->socket.fd, (uint32_t)EPOLLIN, ctl_rpc_on_listener,
		rpc);
	if (ret != 0)
		goto remove_turn;
	return 0;

remove_turn:
	ctl_loop_remove_fd(rpc->loop, rpc->turn_fd);
close_turn:
	(void)close(rpc->turn_fd);
	return ret;
}

int
ctl_rpc_open(struct ctl_loop *loop, const char *path, const struct ctl_method methods[],
	size_t n, void *context, struct ctl_rpc **out)
{
	struct ctl_rpc *rpc = calloc(1, sizeof(*rpc));
	int ret;

	if (rpc == NULL)
		return -ENOMEM;
	rpc->loop = loop;
	rpc->methods = methods;
	rpc->n_methods = n;
	rpc->context = context;
	ret = ctl_rpc_socket_open(path, &rpc->socket);
	if (ret != 0)
		goto free_rpc;
	ret = watch_files(rpc);
	if (ret != 0)
		goto close_socket;
	*out = rpc;
	return 0;

close_socket:
	ctl_rpc_socket_close(&rpc->socket);
free_rpc:
	free(rpc);
	return ret;
}

void
ctl_rpc_close(struct ctl_rpc *rpc)
{
	if (rpc == NULL)
		return;
	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++) {
		if (rpc->clients[i] != NULL)
			ctl_rpc_client_destroy(rpc->clients[i]);
	}
	ctl_loop_remove_timer(rpc->loop, rpc->pause);
	ctl_loop_remove_fd(rpc->loop, rpc->turn_fd);
	(void)close(rpc->turn_fd);
	ctl_loop_remove_fd(rpc->loop, rpc->socket.fd);
	ctl_rpc_socket_close(&rpc->socket);
	free(rpc);
}

bool
ctl_rpc_is_connected(const struct ctl_rpc *rpc, uint64_t client)
{
	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++)
		if (rpc->clients[i] != NULL && rpc->clients[i]->number == client)
			return true;
	return false;
}

void
ctl_rpc_read_stats(const struct ctl_rpc *rpc, struct ctl_rpc_stats *out)
{
	*out = rpc->stats;
}
