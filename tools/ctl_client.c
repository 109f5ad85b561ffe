/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FIRST_BYTES 65536u

struct ctl_client {
	int fd;
	json_int_t last_id;
	char *buffer;
	size_t n_buffer;   /* bytes in it */
	size_t n_searched; /* of these have no end of a line */
	size_t capacity;
	int file;       /* that the next request takes along; -1: none */
	bool is_broken; /* a request was sent in part: what follows would be no request */
};

static uint64_t
now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static int
connect_in_time(int fd, const struct sockaddr_un *address, unsigned int timeout_ms)
{
	/* All zero is for ever. */
	const unsigned int ms = timeout_ms == CTL_CLIENT_FOR_EVER ? 0
				: timeout_ms == 0                 ? 1
								  : timeout_ms;
	const struct timeval limit = {
		.tv_sec = ms / 1000,
		.tv_usec = (suseconds_t)(ms % 1000) * 1000,
	};

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 0;
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

int
ctl_client_open(const char *path, unsigned int timeout_ms, struct ctl_client **out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const size_t n = strlen(path);
	struct ctl_client *client;
	int ret;

	if (n == 0 || n >= sizeof(address.sun_path))
		return n == 0 ? -EINVAL : -ENAMETOOLONG;
	memcpy(address.sun_path, path, n);
	client = calloc(1, sizeof(*client));
	if (client == NULL)
		return -ENOMEM;
	client->file = -1;
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ret = client->fd < 0 ? -errno : connect_in_time(client->fd, &address, timeout_ms);
	if (ret != 0) {
		ctl_client_close(client);
		return ret;
	}
	*out = client;
	return 0;
}

void
ctl_client_close(struct ctl_client *client)
{
	if (client == NULL)
		return;
	if (client->fd >= 0)
		(void)close(client->fd);
	free(client->buffer);
	free(client);
}

static int
wait_for(const struct ctl_client *client, short events, uint64_t deadline_ms)
{
	struct pollfd file = {.fd = client->fd, .events = events};
	const uint64_t now = now_ms();
	const uint64_t left = now < deadline_ms ? deadline_ms - now : 0;
	const int n = poll(&file, 1, left > INT_MAX ? INT_MAX : (int)left);

	if (n < 0 && errno != EINTR)
		return -errno;
	if (n == 0 && left > INT_MAX)
		return 0;
	/* Also where there is something: a daemon that goes on and on must not hold us. */
	return n == 0 || left == 0 ? -ETIMEDOUT : 0;
}

void
ctl_client_pass(struct ctl_client *client, int file)
{
	client->file = file;
}

/* As send(); the first bytes take the file along. */
static ssize_t
send_some(struct ctl_client *client, const char *text, size_t n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(client->file))];
	} beside = {.header = {.cmsg_len = CMSG_LEN(sizeof(client->file)),
			    .cmsg_level = SOL_SOCKET,
			    .cmsg_type = SCM_RIGHTS}};
	/* sendmsg() does not write there. */
	union {
		const char *lent;
		void *base;
	} from = {.lent = text};
	struct iovec bytes = {.iov_base = from.base, .iov_len = n};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	ssize_t n_sent;

	if (client->file >= 0) {
		memcpy(CMSG_DATA(&beside.header), &client->file, sizeof(client->file));
		message.msg_control = &beside;
		message.msg_controllen = sizeof(beside);
	}
	n_sent = sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n_sent >= 0)
		client->file = -1;
	return n_sent;
}

/*
 * A daemon that cut the connection off may have said why before: that it takes no more is no
 * error yet.
 */
static int
send_text(struct ctl_client *client, const char *text, size_t n, uint64_t deadline_ms)
{
	size_t n_sent = 0;
	int ret = 0;

	while (ret == 0 && n_sent < n) {
		const ssize_t k = send_some(client, text + n_sent, n - n_sent);

		if (k >= 0)
			n_sent += (size_t)k;
		else if (errno == EPIPE || errno == ECONNRESET)
			break;
		else if (errno == EAGAIN)
			ret = wait_for(client, POLLOUT, deadline_ms);
		else if (errno != EINTR)
			ret = -errno;
	}
	client->is_broken = n_sent < n;
	return ret;
}

static int
send_request(struct ctl_client *client, const char *method, json_t *params,
	uint64_t deadline_ms)
{
	json_t *request = json_pack("{s:s, s:I, s:s, s:O*}", "jsonrpc", "2.0", "id",
		++client->last_id, "method", method, "params", params);
	char *text = request == NULL ? NULL : json_dumps(request, JSON_COMPACT);
	size_t n;
	int ret;

	json_decref(request);
	if (text == NULL)
		return -ENOMEM;
	/* The byte of the end of the text becomes that of the line. */
	n = strlen(text);
	text[n] = '\n';
	ret = send_text(client, text, n + 1, deadline_ms);
	free(text);
	return ret;
}

static int
read_more(struct ctl_client *client, uint64_t deadline_ms)
{
	ssize_t n;
	int ret;

	if (client->n_buffer == client->capacity) {
		const size_t capacity = client->capacity * 2 + FIRST_BYTES;
		char *buffer = realloc(client->buffer, capacity);

		if (buffer == NULL)
			return -ENOMEM;
		client->buffer = buffer;
		client->capacity = capacity;
	}
	ret = wait_for(client, POLLIN, deadline_ms);
	if (ret != 0)
		return ret;
	n = recv(client->fd, client->buffer + client->n_buffer,
		client->capacity - client->n_buffer, MSG_DONTWAIT);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	client->n_buffer += (size_t)n;
	return 0;
}

/* Bytes of the first line in the buffer; 0: it is not whole. */
static size_t
find_line(struct ctl_client *client)
{
	const size_t n_left = client->n_buffer - client->n_searched;
	const char *end = NULL;

	if (n_left > 0)
		end = memchr(client->buffer + client->n_searched, '\n', n_left);
	client->n_searched = client->n_buffer;
	return end == NULL ? 0 : (size_t)(end - client->buffer) + 1;
}

/* The next line as JSON, whoever it is for. */
static int
read_answer(struct ctl_client *client, uint64_t deadline_ms, json_t **out)
{
	size_t n_line;

	while ((n_line = find_line(client)) == 0) {
		int ret = -EMSGSIZE;

		if (client->n_buffer <= CTL_CLIENT_ANSWER_BYTES_MAX)
			ret = read_more(client, deadline_ms);
		if (ret != 0)
			return ret;
	}
	*out = json_loadb(client->buffer, n_line, 0, NULL);
	client->n_buffer -= n_line;
	client->n_searched = 0;
	memmove(client->buffer, client->buffer + n_line, client->n_buffer);
	return *out == NULL ? -EPROTO : 0;
}

static int
take_error(json_t *error, struct ctl_client_error *out)
{
	json_t *code = json_object_get(error, "code");
	const char *message = json_string_value(json_object_get(error, "message"));
	char *copy;

	if (!json_is_integer(code) || message == NULL)
		return -EPROTO;
	copy = strdup(message);
	if (copy == NULL)
		return -ENOMEM;
	out->code = (int)json_integer_value(code);
	out->message = copy;
	return -EREMOTEIO;
}

/* An error without id is for the only request there is; others' answers came too late. */
static bool
is_for(json_t *answer, json_int_t id)
{
	json_t *answered = json_object_get(answer, "id");

	if (!json_is_integer(answered))
		return true;
	return json_integer_value(answered) == id;
}

static int
take_answer(json_t *answer, json_t **result, struct ctl_client_error *error)
{
	json_t *value = json_object_get(answer, "result");
	json_t *refusal = json_object_get(answer, "error");

	if (refusal != NULL)
		return take_error(refusal, error);
	if (value == NULL || !json_is_integer(json_object_get(answer, "id")))
		return -EPROTO;
	*result = json_incref(value);
	return 0;
}

int
ctl_client_fd(const struct ctl_client *client)
{
	return client->fd;
}

static uint64_t
deadline_in(unsigned int timeout_ms)
{
	return timeout_ms == CTL_CLIENT_FOR_EVER ? UINT64_MAX : now_ms() + timeout_ms;
}

static int
ask(struct ctl_client *client, const char *method, json_t *params, uint64_t deadline_ms)
{
	if (client->is_broken)
		return -EPIPE;
	return send_request(client, method, params, deadline_ms);
}

static int
take(struct ctl_client *client, uint64_t deadline_ms, json_t **result,
	struct ctl_client_error *error)
{
	json_t *answer;
	int ret;

	while ((ret = read_answer(client, deadline_ms, &answer)) == 0) {
		const bool is_ours = is_for(answer, client->last_id);

		if (is_ours)
			ret = take_answer(answer, result, error);
		json_decref(answer);
		if (is_ours)
			break;
	}
	return ret;
}

int
ctl_client_ask(struct ctl_client *client, const char *method, json_t *params,
	unsigned int timeout_ms)
{
	return ask(client, method, params, deadline_in(timeout_ms));
}

int
ctl_client_take(struct ctl_client *client, unsigned int timeout_ms, json_t **result,
	struct ctl_client_error *error)
{
	return take(client, deadline_in(timeout_ms), result, error);
}

int
ctl_client_call(struct ctl_client *client, const char *method, json_t *params,
	unsigned int timeout_ms, json_t **result, struct ctl_client_error *error)
{
	const uint64_t deadline_ms = deadline_in(timeout_ms);
	const int ret = ask(client, method, params, deadline_ms);

	return ret != 0 ? ret : take(client, deadline_ms, result, error);
}
