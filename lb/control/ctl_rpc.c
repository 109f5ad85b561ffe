/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cfg_nearest.h"
#include "ctl_bytes.h"
#include "ctl_log.h"
#include "ctl_rpc_parse.h"
#include "ctl_rpc_socket.h"

#define READ_BYTES         65536u
#define SLICE_NS           1000000u /* of requests, before files have their turn */
#define SLICE_REQUESTS     16
#define FLUSH_BYTES        262144u
#define ACCEPTS_A_TURN     64
#define LOG_PAUSE_MS       60000u
#define ACCEPT_PAUSE_MS    100u
#define REPEATED_BYTES_MAX 64

struct client {
	struct ctl_rpc *rpc;
	size_t place; /* among rpc's clients */
	int fd;
	struct ctl_bytes in;  /* what was sent and is not dealt with */
	struct ctl_bytes out; /* answers that wait to be read */
	size_t n_line;        /* bytes of the whole line at in's front; 0: none is whole */
	size_t n_searched;    /* bytes of in that have no end of a line */
	struct ctl_call *calls;
	size_t n_calls;
	uint64_t moved_ms;  /* when it came, was answered or read on, whichever was last */
	uint64_t last_turn; /* its number; while it is new, that of the turn before it came */
	bool is_new;        /* it has had no turn */
	bool has_ended;     /* it sends no more */
	bool is_cut;        /* it is to go at the end of its turn */
	bool is_in_turn;
};

struct ctl_call {
	struct client *client; /* NULL: gone */
	json_t *id;            /* NULL: a notification, which has no answer */
	struct ctl_call *next; /* of the client's, as is previous */
	struct ctl_call *previous;
};

struct ctl_rpc {
	struct ctl_loop *loop;
	struct ctl_rpc_socket socket;
	struct ctl_timer *pause; /* not NULL: nobody is accepted until then */
	int turn_fd;             /* an eventfd: some client has a request to be carried out */
	bool is_turn_due;
	uint64_t n_turns;
	uint64_t told_ms; /* when it was last told that a client was evicted; 0: never */
	const struct ctl_method *methods;
	size_t n_methods;
	void *context;
	struct client *clients[CTL_RPC_CLIENTS_MAX]; /* NULL: a free place */
	struct ctl_rpc_stats stats;
};

/* Clients: how they end, and what they are waited for. */

static void
drop_client(struct client *client)
{
	struct ctl_rpc *rpc = client->rpc;

	for (struct ctl_call *call = client->calls; call != NULL; call = call->next)
		call->client = NULL;
	ctl_loop_remove_fd(rpc->loop, client->fd);
	(void)close(client->fd);
	ctl_bytes_fini(&client->in);
	ctl_bytes_fini(&client->out);
	rpc->clients[client->place] = NULL;
	rpc->stats.clients--;
	free(client);
}

/* So much at a time that who reads as fast as we write does not hold up the others. */
static void
flush(struct client *client)
{
	size_t n_sent = 0;

	while (ctl_bytes_length(&client->out) > 0 && n_sent < FLUSH_BYTES) {
		const size_t n_left = ctl_bytes_length(&client->out);
		const ssize_t n = send(client->fd, ctl_bytes_front(&client->out),
			n_left < FLUSH_BYTES ? n_left : FLUSH_BYTES,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			client->is_cut = client->is_cut || errno != EAGAIN;
			return;
		}
		ctl_bytes_drop(&client->out, (size_t)n);
		n_sent += (size_t)n;
		client->moved_ms = ctl_loop_now_ms();
	}
}

/*
 * Has a request that can be carried out now. While answers wait to be read none is: it would be
 * work, and memory, for who does not want to know.
 */
static bool
is_ready(const struct client *client)
{
	return client->n_line > 0 && client->n_calls < CTL_RPC_CALLS_MAX &&
	       ctl_bytes_length(&client->out) == 0;
}

static bool
is_done(const struct client *client)
{
	return client->has_ended && client->n_line == 0 && client->n_calls == 0 &&
	       ctl_bytes_length(&client->out) == 0;
}

/* Nothing more is read while a request is there that has not been carried out. */
static uint32_t
wanted_events(const struct client *client)
{
	const bool wants_in = !client->has_ended && client->n_line == 0;
	const bool wants_out = ctl_bytes_length(&client->out) > 0;

	return (wants_in ? (uint32_t)EPOLLIN : 0) | (wants_out ? (uint32_t)EPOLLOUT : 0);
}

static void
ask_for_turn(struct ctl_rpc *rpc)
{
	const uint64_t one = 1;

	/* Its counter cannot become full, the only way in which this could fail. */
	if (!rpc->is_turn_due && write(rpc->turn_fd, &one, sizeof(one)) > 0)
		rpc->is_turn_due = true;
}

/* What was answered goes out; the client may be gone afterwards. */
static void
settle(struct client *client)
{
	flush(client);
	if (client->is_cut || is_done(client)) {
		drop_client(client);
		return;
	}
	ctl_loop_change_fd(client->rpc->loop, client->fd, wanted_events(client));
	if (is_ready(client))
		ask_for_turn(client->rpc);
}

/* Answers. */

struct sink {
	struct client *client;
	int ret;
};

/* For json_dump_callback(), which passes a few bytes at a time. */
static int
append_answer(const char *data, size_t n, void *context)
{
	struct sink *sink = context;
	struct ctl_bytes *out = &sink->client->out;

	if (n > CTL_RPC_ANSWER_BYTES_MAX - ctl_bytes_length(out))
		sink->ret = -EMSGSIZE;
	else
		sink->ret = ctl_bytes_append(out, data, n);
	return sink->ret == 0 ? 0 : -1;
}

/* All of it or nothing. -EMSGSIZE: too much waits; -EINVAL: what is no UTF-8 is in it. */
static int
append_object(struct client *client, const json_t *object)
{
	const size_t n_before = ctl_bytes_length(&client->out);
	struct sink sink = {.client = client};

	if (json_dump_callback(object, append_answer, &sink, JSON_COMPACT) == 0 &&
		append_answer("\n", 1, &sink) == 0)
		return 0;
	client->out.end = client->out.front + n_before;
	ctl_bytes_drop(&client->out, 0);
	return sink.ret != 0 ? sink.ret : -EINVAL;
}

/* The same of what is written down already, except that it is known to be JSON. */
static int
append_text(struct client *client, const json_t *id, const char *result)
{
	const char *const pieces[] = {",\"result\":", result, "}\n"};
	const size_t n_before = ctl_bytes_length(&client->out);
	struct sink sink = {.client = client};
	const char *head = "{\"jsonrpc\":\"2.0\",\"id\":";
	int failed = append_answer(head, strlen(head), &sink);

	if (failed == 0)
		failed = json_dump_callback(id, append_answer, &sink,
			JSON_COMPACT | JSON_ENCODE_ANY);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]) && failed == 0; i++)
		failed = append_answer(pieces[i], strlen(pieces[i]), &sink);
	if (failed == 0)
		return 0;
	client->out.end = client->out.front + n_before;
	ctl_bytes_drop(&client->out, 0);
	return sink.ret;
}

/* Takes value over; id stays its owner's. */
static json_t *
make_answer(json_t *id, const char *key, json_t *value)
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
static json_t *
make_text(const char *text)
{
	json_t *made = json_string(text);
	char *plain = made == NULL ? strdup(text) : NULL;

	if (plain != NULL) {
		for (char *c = plain; *c != '\0'; c++) {
			if ((unsigned char)*c >= 0x80)
				*c = '?';
		}
		made = json_string(plain);
		free(plain);
	}
	return made;
}

static json_t *
make_error(enum ctl_rpc_error code, const char *message)
{
	json_t *error = json_object();

	if (error == NULL || json_object_set_new(error, "code", json_integer(code)) != 0 ||
		json_object_set_new(error, "message", make_text(message)) != 0) {
		json_decref(error);
		return NULL;
	}
	return error;
}

static int
append_value(struct client *client, json_t *id, const char *key, json_t *value)
{
	json_t *answer = make_answer(id, key, value);
	int ret = -ENOMEM;

	if (answer == NULL)
		return ret;
	ret = append_object(client, answer);
	if (ret == -EMSGSIZE && ctl_bytes_length(&client->out) > 0) {
		flush(client);
		ret = append_object(client, answer);
	}
	json_decref(answer);
	return ret;
}

/* Where not even an error can be told, the client must not wait for it for ever. */
static void
answer_error(struct client *client, json_t *id, enum ctl_rpc_error code, const char *message)
{
	const int ret = append_value(client, id, "error", make_error(code, message));

	client->rpc->stats.errors++;
	if (ret == 0)
		return;
	client->is_cut = true;
	if (ret == -EMSGSIZE)
		client->rpc->stats.stalled++;
}

/* The result was appended, or why not. */
static void
end_result(struct client *client, json_t *id, int ret)
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
	answer_error(client, id, CTL_RPC_INTERNAL_ERROR, why);
}

static void
answer_result(struct client *client, json_t *id, json_t *result)
{
	end_result(client, id, append_value(client, id, "result", result));
}

static void
answer_text(struct client *client, json_t *id, const char *result)
{
	int ret = result != NULL ? append_text(client, id, result) : -ENOMEM;

	if (ret == -EMSGSIZE && ctl_bytes_length(&client->out) > 0) {
		flush(client);
		ret = append_text(client, id, result);
	}
	end_result(client, id, ret);
}

/* Calls. */

static struct ctl_call *
create_call(struct client *client, json_t *id)
{
	struct ctl_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->client = client;
	call->id = json_incref(id);
	call->next = client->calls;
	if (call->next != NULL)
		call->next->previous = call;
	client->calls = call;
	client->n_calls++;
	return call;
}

/* Within the client's turn its answers go out together at the end of it. */
static void
finish_call(struct ctl_call *call)
{
	struct client *client = call->client;

	if (client != NULL) {
		if (call->next != NULL)
			call->next->previous = call->previous;
		if (call->previous != NULL)
			call->previous->next = call->next;
		else
			client->calls = call->next;
		client->n_calls--;
		client->moved_ms = ctl_loop_now_ms();
		if (!client->is_in_turn)
			settle(client);
	}
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
		answer_error(call->client, call->id, code, n < 0 ? "out of memory" : text);
	if (n >= 0)
		free(text);
	finish_call(call);
}

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

/* Requests. */

static void
carry_out(struct client *client, const struct ctl_request *request)
{
	const struct ctl_rpc *rpc = client->rpc;
	const struct ctl_method *method = find_method(rpc, request->method);
	struct ctl_call *call = create_call(client, request->id);

	if (call == NULL && request->id != NULL)
		answer_error(client, request->id, CTL_RPC_INTERNAL_ERROR, "out of memory");
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
handle_line(struct client *client, const char *text, size_t n)
{
	struct ctl_request request;
	struct ctl_request_flaw flaw;

	if (is_blank(text, n))
		return;
	client->rpc->stats.requests++;
	if (ctl_rpc_parse(text, n, &request, &flaw) == 0)
		carry_out(client, &request);
	else
		answer_error(client, request.id, flaw.code, flaw.why);
	ctl_request_fini(&request);
}

static void
cut_oversized(struct client *client)
{
	char why[CTL_RPC_WHY_BYTES];

	(void)snprintf(why, sizeof(why), "a request of more than %u bytes is not taken",
		CTL_RPC_REQUEST_BYTES_MAX);
	client->rpc->stats.oversized++;
	answer_error(client, NULL, CTL_RPC_INVALID_REQUEST, why);
	client->is_cut = true;
}

/* What is left when a client has ended is a line, too. */
static void
find_line(struct client *client)
{
	const size_t n = ctl_bytes_length(&client->in);
	const char *front = client->in.data == NULL ? NULL : ctl_bytes_front(&client->in);
	const char *end = NULL;

	client->n_line = 0;
	if (front != NULL && n > client->n_searched)
		end = memchr(front + client->n_searched, '\n', n - client->n_searched);
	if (end != NULL)
		client->n_line = (size_t)(end - front) + 1;
	else if (client->has_ended)
		client->n_line = n;
	client->n_searched = end != NULL ? client->n_line - 1 : n;
	/* Searched: the bytes before the line's end, or all there are. */
	if (client->n_searched > CTL_RPC_REQUEST_BYTES_MAX)
		cut_oversized(client);
}

static void
read_some(struct client *client)
{
	ssize_t n;

	if (ctl_bytes_reserve(&client->in, READ_BYTES) != 0) {
		client->is_cut = true;
		return;
	}
	n = recv(client->fd, client->in.data + client->in.end, READ_BYTES, MSG_DONTWAIT);
	if (n > 0)
		client->in.end += (size_t)n;
	else if (n == 0)
		client->has_ended = true;
	else
		client->is_cut = client->is_cut || (errno != EAGAIN && errno != EINTR);
	ctl_bytes_drop(&client->in, 0);
	find_line(client);
}

static void
on_client(void *context, uint32_t events)
{
	struct client *client = context;
	const bool is_broken = (events & ((uint32_t)EPOLLHUP | (uint32_t)EPOLLERR)) != 0;
	const bool can_read = client->n_line == 0 && !client->has_ended;

	/* It hears nothing any more, and there is nothing to do until others answer its calls.
	 */
	if (is_broken && !can_read && !is_ready(client))
		client->is_cut = true;
	if (can_read && (events & ~(uint32_t)EPOLLOUT) != 0)
		read_some(client);
	settle(client);
}

/* Turns. */

/* Of those who can have a turn and are new, or are not, who has waited longest; NULL: nobody.
 */
static struct client *
find_first(const struct ctl_rpc *rpc, bool is_new)
{
	struct client *first = NULL;

	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++) {
		struct client *client = rpc->clients[i];

		if (client != NULL && client->is_new == is_new && is_ready(client) &&
			(first == NULL || client->last_turn < first->last_turn))
			first = client;
	}
	return first;
}

/*
 * Whose turn it is, NULL: nobody's. Every other turn is for those who had none yet: one short
 * question of theirs does not wait until all others have had long ones answered.
 */
static struct client *
pick_client(const struct ctl_rpc *rpc)
{
	const bool prefers_new = rpc->n_turns % 2 == 0;
	struct client *client = find_first(rpc, prefers_new);

	return client != NULL ? client : find_first(rpc, !prefers_new);
}

/* One request; the client may be gone afterwards. */
static void
take_turn(struct client *client)
{
	client->last_turn = ++client->rpc->n_turns;
	client->is_new = false;
	client->is_in_turn = true;
	handle_line(client, ctl_bytes_front(&client->in), client->n_line);
	ctl_bytes_drop(&client->in, client->n_line);
	client->n_searched = 0;
	find_line(client);
	client->is_in_turn = false;
	settle(client);
}

static void
on_turn(void *context, uint32_t events)
{
	const uint64_t begun_ns = ctl_loop_now_ns();
	struct ctl_rpc *rpc = context;
	struct client *client;
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
	ask_for_turn(rpc);
}

/* Accepting. */

/* An error that answers nothing; to who has its line's end, so that it is a line of its own. */
__attribute__((format(printf, 2, 3))) static void
say_farewell(int fd, const char *message, ...)
{
	char text[CTL_RPC_WHY_BYTES];
	char line[2 * CTL_RPC_WHY_BYTES];
	va_list arguments;
	int n;

	va_start(arguments, message);
	(void)vsnprintf(text, sizeof(text), message, arguments);
	va_end(arguments);
	n = snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,\"message\":\"%s\"}}"
		"\n",
		CTL_RPC_REFUSED, text);
	/* An idle connection's buffer has room for it; if not, the client sees an end. */
	(void)send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * For how long a client has kept its place for nothing; 0: it may stay. One whose request is
 * being carried out may, however long that takes.
 */
static uint64_t
overdue_ms(const struct client *client, uint64_t now_ms)
{
	const uint64_t quiet_ms = now_ms - client->moved_ms;
	const bool has_unread = ctl_bytes_length(&client->out) > 0;
	const bool is_midway = has_unread || ctl_bytes_length(&client->in) > 0;
	char byte;

	if (client->n_calls > 0 || is_ready(client) ||
		quiet_ms < (is_midway ? CTL_RPC_STALL_MS : CTL_RPC_IDLE_MS))
		return 0;
	/* A request may be there that was not read yet. */
	if (!has_unread && recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return 0;
	return quiet_ms;
}

static void
tell_evicted(struct ctl_rpc *rpc, uint64_t quiet_ms, uint64_t now_ms)
{
	if (rpc->told_ms != 0 && now_ms - rpc->told_ms < LOG_PAUSE_MS)
		return;
	rpc->told_ms = now_ms;
	ctl_log(CTL_LOG_WARNING,
		"%s: %u clients are connected, and one that did nothing for %" PRIu64
		" s was closed for a new one; %" PRIu64 " so far, which is told once a minute",
		rpc->socket.address.sun_path, CTL_RPC_CLIENTS_MAX, quiet_ms / 1000,
		rpc->stats.evicted);
}

/* Make a place for a new client. False: all of them are at work. */
static bool
evict_client(struct ctl_rpc *rpc)
{
	const uint64_t now_ms = ctl_loop_now_ms();
	struct client *longest = NULL;
	uint64_t quiet_ms = 0;

	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++) {
		const uint64_t ms = overdue_ms(rpc->clients[i], now_ms);

		if (ms > quiet_ms) {
			longest = rpc->clients[i];
			quiet_ms = ms;
		}
	}
	if (longest == NULL)
		return false;
	if (ctl_bytes_length(&longest->out) == 0)
		say_farewell(longest->fd,
			"closed after %" PRIu64 " s without a request, for %u clients were "
			"connected and another came",
			quiet_ms / 1000, CTL_RPC_CLIENTS_MAX);
	drop_client(longest);
	rpc->stats.evicted++;
	tell_evicted(rpc, quiet_ms, now_ms);
	return true;
}

static void
refuse_client(struct ctl_rpc *rpc, int fd)
{
	rpc->stats.refused++;
	say_farewell(fd, "%u clients are connected already, and no more are taken",
		CTL_RPC_CLIENTS_MAX);
	(void)close(fd);
}

static void
add_client(struct ctl_rpc *rpc, int fd)
{
	struct client *client;
	size_t place = 0;

	if (rpc->stats.clients == CTL_RPC_CLIENTS_MAX && !evict_client(rpc)) {
		refuse_client(rpc, fd);
		return;
	}
	while (rpc->clients[place] != NULL)
		place++;
	client = calloc(1, sizeof(*client));
	if (client == NULL ||
		ctl_loop_add_fd(rpc->loop, fd, (uint32_t)EPOLLIN, on_client, client) != 0) {
		free(client);
		(void)close(fd);
		return;
	}
	client->rpc = rpc;
	client->fd = fd;
	client->place = place;
	client->moved_ms = ctl_loop_now_ms();
	client->last_turn = rpc->n_turns;
	client->is_new = true;
	rpc->clients[place] = client;
	rpc->stats.clients++;
	rpc->stats.accepted++;
}

static void
resume_accepting(void *context)
{
	struct ctl_rpc *rpc = context;

	rpc->pause = NULL; /* gone after this call */
	ctl_loop_change_fd(rpc->loop, rpc->socket.fd, (uint32_t)EPOLLIN);
}

/*
 * Who waits stays in the backlog, and would wake the loop at once again, for nothing: files or
 * memory have run out, and take a moment to be there again.
 */
static void
pause_accepting(struct ctl_rpc *rpc)
{
	if (ctl_loop_add_timer(rpc->loop, ACCEPT_PAUSE_MS, 0, resume_accepting, rpc,
		    &rpc->pause) == 0)
		ctl_loop_change_fd(rpc->loop, rpc->socket.fd, 0);
}

static void
on_listener(void *context, uint32_t events)
{
	struct ctl_rpc *rpc = context;

	(void)events;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		const int fd =
			accept4(rpc->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			add_client(rpc, fd);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			if (errno != EAGAIN)
				pause_accepting(rpc);
			return;
		}
	}
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
	ret = ctl_loop_add_fd(rpc->loop, rpc->socket.fd, (uint32_t)EPOLLIN, on_listener, rpc);
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
			drop_client(rpc->clients[i]);
	}
	ctl_loop_remove_timer(rpc->loop, rpc->pause);
	ctl_loop_remove_fd(rpc->loop, rpc->turn_fd);
	(void)close(rpc->turn_fd);
	ctl_loop_remove_fd(rpc->loop, rpc->socket.fd);
	ctl_rpc_socket_close(&rpc->socket);
	free(rpc);
}

void
ctl_rpc_read_stats(const struct ctl_rpc *rpc, struct ctl_rpc_stats *out)
{
	*out = rpc->stats;
}
