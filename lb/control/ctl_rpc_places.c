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
#define HALF_MS         1000u

/* Who gives its place. */

/* An error that answers nothing; to who has its line's end, so that it is a line of its own. */
__attribute__((format(printf, 3, 4))) static void
say_farewell(int fd, enum ctl_rpc_error code, const char *message, ...)
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
		code, text);
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
forget(struct ctl_rpc_client *client, uint64_t now_ms)
{
	const uint64_t n_halves = (now_ms - client->demand_ms) / HALF_MS;

	client->demand = n_halves < 64 ? client->demand >> n_halves : 0;
	client->demand_ms += n_halves * HALF_MS;
}

void
ctl_rpc_charge(struct ctl_rpc_client *client, uint64_t ms)
{
	forget(client, ctl_loop_now_ms());
	client->demand += 1 + ms;
}

/* NULL: nobody has been idle for long enough. */
static struct ctl_rpc_client *
find_idle(const struct ctl_rpc *rpc, bool guests_only, uint64_t now_ms)
{
	struct ctl_rpc_client *longest = NULL;
	uint64_t quiet_ms = 0;

	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++) {
		struct ctl_rpc_client *client = rpc->clients[i];
		uint64_t ms;

		if (client == NULL || (guests_only && client->is_owner))
			continue;
		ms = overdue_ms(client, now_ms);
		if (ms > quiet_ms) {
			longest = client;
			quiet_ms = ms;
		}
	}
	return longest;
}

/* NULL: nobody asks so much, but for those whose request is being carried out. */
static struct ctl_rpc_client *
find_busy(const struct ctl_rpc *rpc, bool guests_only, uint64_t now_ms)
{
	struct ctl_rpc_client *busiest = NULL;
	uint64_t most = CTL_RPC_BUSY - 1;

	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++) {
		struct ctl_rpc_client *client = rpc->clients[i];

		if (client == NULL || (guests_only && client->is_owner) || client->n_calls > 0)
			continue;
		forget(client, now_ms);
		if (client->demand > most) {
			busiest = client;
			most = client->demand;
		}
	}
	return busiest;
}

/* what: it did. */
static void
tell_evicted(struct ctl_rpc *rpc, const char *what, uint64_t now_ms)
{
	if (rpc->told_ms != 0 && now_ms - rpc->told_ms < LOG_PAUSE_MS)
		return;
	rpc->told_ms = now_ms;
	ctl_log(CTL_LOG_WARNING,
		"%s: %u clients are connected, and one that %s was closed for a new one; "
		"%" PRIu64 " so far, which is told once a minute",
		rpc->socket.address.sun_path, CTL_RPC_CLIENTS_MAX, what, rpc->stats.evicted);
}

/* Close one for another. why: after what. */
static void
evict(struct ctl_rpc *rpc, struct ctl_rpc_client *client, const char *why)
{
	/* Not into the middle of an answer. */
	if (ctl_bytes_length(&client->out) == 0)
		say_farewell(client->fd, CTL_RPC_REFUSED,
			"closed %s, for %u clients were connected and another came", why,
			CTL_RPC_CLIENTS_MAX);
	ctl_rpc_client_destroy(client);
	rpc->stats.evicted++;
}

/*
 * Whoever gave way comes again at once. Were it to take another's place, and that one the next
 * one's, then soon all would be new, none of them busy, and whoever else comes refused.
 */
static void
note_displaced(struct ctl_rpc *rpc, pid_t pid, uint64_t now_ms)
{
	const size_t i = rpc->n_displaced++ % CTL_RPC_CLIENTS_MAX;

	rpc->displaced[i].pid = pid;
	rpc->displaced[i].until_ms = now_ms + CTL_RPC_BUSY_MS;
}

static bool
is_displaced(const struct ctl_rpc *rpc, pid_t pid, uint64_t now_ms)
{
	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++)
		if (rpc->displaced[i].pid == pid && now_ms < rpc->displaced[i].until_ms)
			return true;
	return false;
}

static bool
displace_idle(struct ctl_rpc *rpc, bool guests_only, uint64_t now_ms)
{
	struct ctl_rpc_client *client = find_idle(rpc, guests_only, now_ms);
	uint64_t quiet_s;
	char text[64];

	if (client == NULL)
		return false;
	quiet_s = (now_ms - client->moved_ms) / 1000;
	(void)snprintf(text, sizeof(text), "after %" PRIu64 " s without a request", quiet_s);
	evict(rpc, client, text);
	(void)snprintf(text, sizeof(text), "did nothing for %" PRIu64 " s", quiet_s);
	tell_evicted(rpc, text, now_ms);
	return true;
}

static bool
displace_busy(struct ctl_rpc *rpc, bool guests_only, pid_t pid, uint64_t now_ms)
{
	struct ctl_rpc_client *client = NULL;

	if (!is_displaced(rpc, pid, now_ms))
		client = find_busy(rpc, guests_only, now_ms);
	if (client == NULL)
		return false;
	note_displaced(rpc, client->pid, now_ms);
	evict(rpc, client, "as it asked the most");
	tell_evicted(rpc, "asked the most", now_ms);
	return true;
}

/* Clients of other users than those that places are kept for. */
static size_t
count_guests(const struct ctl_rpc *rpc)
{
	size_t n = 0;

	for (size_t i = 0; i < CTL_RPC_CLIENTS_MAX; i++)
		n += rpc->clients[i] != NULL && !rpc->clients[i]->is_owner;
	return n;
}

static void
refuse_client(struct ctl_rpc *rpc, int fd, unsigned int n)
{
	rpc->stats.refused++;
	say_farewell(fd, CTL_RPC_FULL,
		"%u clients are connected already, and no more are taken", n);
	(void)close(fd);
}

/* A place for who is at the other end, perhaps another's. False: there is none. */
static bool
make_place(struct ctl_rpc *rpc, int fd, const struct ucred *peer, bool is_owner)
{
	const unsigned int n_max = CTL_RPC_CLIENTS_MAX - CTL_RPC_KEPT;
	const bool guests_only = !is_owner && count_guests(rpc) >= n_max;
	const uint64_t now_ms = ctl_loop_now_ms();

	if ((!guests_only && rpc->stats.clients < CTL_RPC_CLIENTS_MAX) ||
		displace_idle(rpc, guests_only, now_ms) ||
		displace_busy(rpc, guests_only, peer->pid, now_ms))
		return true;
	refuse_client(rpc, fd, guests_only ? n_max : CTL_RPC_CLIENTS_MAX);
	return false;
}

static void
add_client(struct ctl_rpc *rpc, int fd)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t n_bytes = sizeof(peer);
	const bool is_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) == 0;
	const bool is_owner = is_known && (peer.uid == 0 || peer.uid == geteuid());
	struct ctl_rpc_client *client;
	size_t place = 0;

	if (!make_place(rpc, fd, &peer, is_owner))
		return;
	while (rpc->clients[place] != NULL)
		place++;
	client = ctl_rpc_client_create(rpc, fd, place);
	if (client == NULL)
		return;
	client->pid = peer.pid;
	client->is_owner = is_owner;
	client->number = ++rpc->stats.accepted;
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
