/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl_rpc_parse.h"

#define READ_BYTES  65536u
#define FLUSH_BYTES 262144u

void
ctl_rpc_client_flush(struct ctl_rpc_client *client)
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

bool
ctl_rpc_client_is_ready(const struct ctl_rpc_client *client)
{
	return client->n_line > 0 && client->n_calls < CTL_RPC_CALLS_MAX &&
	       ctl_bytes_length(&client->out) == 0;
}

static bool
is_done(const struct ctl_rpc_client *client)
{
	return client->has_ended && client->n_line == 0 && client->n_calls == 0 &&
	       ctl_bytes_length(&client->out) == 0;
}

/* Nothing more is read while a request is there that has not been carried out. */
static uint32_t
wanted_events(const struct ctl_rpc_client *client)
{
	const bool wants_in = !client->has_ended && client->n_line == 0;
	const bool wants_out = ctl_bytes_length(&client->out) > 0;

	return (wants_in ? (uint32_t)EPOLLIN : 0) | (wants_out ? (uint32_t)EPOLLOUT : 0);
}

void
ctl_rpc_client_destroy(struct ctl_rpc_client *client)
{
	struct ctl_rpc *rpc = client->rpc;

	for (struct ctl_call *call = client->calls; call != NULL; call = call->next)
		call->client = NULL;
	ctl_loop_remove_fd(rpc->loop, client->fd);
	(void)close(client->fd);
	if (client->file >= 0)
		(void)close(client->file);
	ctl_bytes_fini(&client->in);
	ctl_bytes_fini(&client->out);
	rpc->clients[client->place] = NULL;
	rpc->stats.clients--;
	free(client);
}

void
ctl_rpc_client_settle(struct ctl_rpc_client *client)
{
	ctl_rpc_client_flush(client);
	if (client->is_cut || is_done(client)) {
		ctl_rpc_client_destroy(client);
		return;
	}
	ctl_loop_change_fd(client->rpc->loop, client->fd, wanted_events(client));
	if (ctl_rpc_client_is_ready(client))
		ctl_rpc_ask_for_turn(client->rpc);
}

static void
cut_oversized(struct ctl_rpc_client *client)
{
	char why[CTL_RPC_WHY_BYTES];

	(void)snprintf(why, sizeof(why), "a request of more than %u bytes is not taken",
		CTL_RPC_REQUEST_BYTES_MAX);
	client->rpc->stats.oversized++;
	ctl_rpc_answer_error(client, NULL, CTL_RPC_INVALID_REQUEST, why);
	client->is_cut = true;
}

/* What is left when a client has ended is a line, too. */
static void
find_line(struct ctl_rpc_client *client)
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

/* One file, for a client that has no other on its way. */
static void
take_file(struct ctl_rpc_client *client, struct msghdr *message)
{
	const struct cmsghdr *part = CMSG_FIRSTHDR(message);
	int file;

	if (part == NULL || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&file, CMSG_DATA(part), sizeof(file));
	if (client->file < 0 && !client->has_file_call)
		client->file = file;
	else
		(void)close(file);
}

/* As recv(), with room for one file beside: more are not taken by the kernel. */
static ssize_t
receive(struct ctl_rpc_client *client, void *to, size_t n_bytes)
{
	union {
		struct cmsghdr header; /* for its alignment */
		char room[CMSG_SPACE(sizeof(int))];
	} beside;
	struct iovec bytes = {.iov_base = to, .iov_len = n_bytes};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &beside,
		.msg_controllen = CMSG_LEN(sizeof(int))};
	const ssize_t n = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n >= 0)
		take_file(client, &message);
	return n;
}

static void
read_some(struct ctl_rpc_client *client)
{
	ssize_t n;

	if (ctl_bytes_reserve(&client->in, READ_BYTES) != 0) {
		client->is_cut = true;
		return;
	}
	n = receive(client, client->in.data + client->in.end, READ_BYTES);
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
	struct ctl_rpc_client *client = context;
	const bool is_broken = (events & ((uint32_t)EPOLLHUP | (uint32_t)EPOLLERR)) != 0;
	const bool can_read = client->n_line == 0 && !client->has_ended;

	/* It hears nothing any more, and there is nothing to do until others answer its calls.
	 */
	if (is_broken && !can_read && !ctl_rpc_client_is_ready(client))
		client->is_cut = true;
	if (can_read && (events & ~(uint32_t)EPOLLOUT) != 0)
		read_some(client);
	ctl_rpc_client_settle(client);
}

void
ctl_rpc_client_next_line(struct ctl_rpc_client *client)
{
	ctl_bytes_drop(&client->in, client->n_line);
	client->n_searched = 0;
	find_line(client);
}

struct ctl_rpc_client *
ctl_rpc_client_create(struct ctl_rpc *rpc, int fd, size_t place)
{
	struct ctl_rpc_client *client = calloc(1, sizeof(*client));

	if (client == NULL ||
		ctl_loop_add_fd(rpc->loop, fd, (uint32_t)EPOLLIN, on_client, client) != 0) {
		free(client);
		(void)close(fd);
		return NULL;
	}
	client->rpc = rpc;
	client->fd = fd;
	client->file = -1;
	client->place = place;
	client->moved_ms = ctl_loop_now_ms();
	client->demand_ms = client->moved_ms;
	client->last_turn = rpc->n_turns;
	client->is_new = true;
	rpc->clients[place] = client;
	rpc->stats.clients++;
	return client;
}
