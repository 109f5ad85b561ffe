/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl_log.h"
#include "ctl_rpc_parse.h"

#define ACCEPTS_A_TURN  64
#define LOG_PAUSE_MS    60000u
#define ACCEPT_PAUSE_MS 100u

/* Who gives its place. */

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
overdue_ms(const struct ctl_rpc_client *client, uint64_t now_ms)
{
	const uint64_t quiet_ms = now_ms - client->moved_ms;
	const bool has_unread = ctl_bytes_length(&client->out) > 0;
	const bool is_midway = has_unread || ctl_bytes_length(&client->in) > 0;
	char byte;

	if (client->n_calls > 0 || ctl_rpc_client_is_ready(client) ||
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
	struct ctl_rpc_client *longest = NULL;
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
	ctl_rpc_client_destroy(longest);
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
	size_t place = 0;

	if (rpc->stats.clients == CTL_RPC_CLIENTS_MAX && !evict_client(rpc)) {
		refuse_client(rpc, fd);
		return;
	}
	while (rpc->clients[place] != NULL)
		place++;
	if (ctl_rpc_client_create(rpc, fd, place) != NULL)
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

void
ctl_rpc_on_listener(void *context, uint32_t events)
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
