/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_metrics.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "ctl_metrics_text.h"
#include "ctl_page.h"
#include "ctl_status.h"

#define BACKLOG   128
#define SAMPLE_MS 1000u
/* Request line and headers, with what the library needs beside them. */
#define CLIENT_BYTES 16384u
/* Those that are cut off are still there until the library's next turn. */
#define PLACES (2 * CTL_METRICS_CLIENTS_MAX)

struct client {
	int fd; /* -1: nobody */
	uint64_t since_ms;
	uint64_t number; /* the oldest has the lowest */
	bool is_cut;
	bool has_text;
};

/* What is made anew for who asks for it, unless it was just now. */
enum text_kind { METRICS, STATUS, N_TEXTS };

struct ctl_metrics {
	struct ctl_loop *loop;
	const struct ctl_daemon *daemon;
	struct MHD_Daemon *http;
	int epoll_fd;
	struct ctl_timer *sampling;
	struct ctl_timer *again; /* NULL: the library waits for files alone */
	struct ctl_metrics_busy busy;

	struct MHD_Response *page;           /* the same for everybody */
	struct MHD_Response *texts[N_TEXTS]; /* NULL: to be made */
	uint64_t until_ms[N_TEXTS];          /* when each is over */
	size_t held_bytes;                   /* of all texts that are not read yet */

	struct client clients[PLACES];
	size_t n_clients;
	uint64_t next_number;
};

/* A text, and whose it is. */
struct text {
	struct ctl_metrics *metrics;
	char *bytes;
	size_t n;
};

/* Clients. */

/* The library sees the end of the connection in its next turn, and closes it. */
static void
cut(struct client *client)
{
	client->is_cut = true;
	(void)shutdown(client->fd, SHUT_RDWR);
}

static void
cut_oldest(struct ctl_metrics *metrics)
{
	struct client *oldest = NULL;

	for (size_t i = 0; i < LB_N_ELEMENTS(metrics->clients); i++) {
		struct client *client = &metrics->clients[i];

		if (client->fd < 0 || client->is_cut)
			continue;
		if (oldest == NULL || client->number < oldest->number)
			oldest = client;
	}
	if (oldest != NULL)
		cut(oldest);
}

static void
cut_late(struct ctl_metrics *metrics)
{
	const uint64_t now_ms = ctl_loop_now_ms();

	for (size_t i = 0; i < LB_N_ELEMENTS(metrics->clients); i++) {
		struct client *client = &metrics->clients[i];

		if (client->fd >= 0 && !client->is_cut &&
			now_ms - client->since_ms >= CTL_METRICS_CLIENT_MS)
			cut(client);
	}
}

static void
cut_readers(struct ctl_metrics *metrics)
{
	for (size_t i = 0; i < LB_N_ELEMENTS(metrics->clients); i++) {
		struct client *client = &metrics->clients[i];

		if (client->fd >= 0 && !client->is_cut && client->has_text)
			cut(client);
	}
}

static struct client *
add_client(struct ctl_metrics *metrics, int fd)
{
	struct client *client = metrics->clients;

	/* There is a free place: the library accepts no more than there are. */
	while (client->fd >= 0)
		client++;
	*client = (struct client){.fd = fd,
		.since_ms = ctl_loop_now_ms(),
		.number = metrics->next_number++};
	metrics->n_clients++;
	return client;
}

static void
on_connection(void *context, struct MHD_Connection *connection, void **of_client,
	enum MHD_ConnectionNotificationCode what)
{
	struct ctl_metrics *metrics = context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

		if (metrics->n_clients >= CTL_METRICS_CLIENTS_MAX)
			cut_oldest(metrics);
		*of_client = add_client(metrics, info->connect_fd);
	} else {
		struct client *client = *of_client;

		client->fd = -1;
		metrics->n_clients--;
	}
}

/* Answers. */

static void
free_text(void *context)
{
	struct text *text = context;

	text->metrics->held_bytes -= text->n;
	free(text->bytes);
	free(text);
}

/* Into text, whose bytes are to be freed in any case. */
static bool
write_metrics(struct ctl_metrics *metrics, struct text *text)
{
	FILE *stream = open_memstream(&text->bytes, &text->n);
	bool is_bad;

	if (stream == NULL)
		return false;
	ctl_metrics_write(metrics->daemon, &metrics->busy, stream);
	is_bad = ferror(stream) != 0;
	is_bad |= fclose(stream) != 0;
	return !is_bad;
}

/* Likewise. */
static bool
write_status(struct ctl_metrics *metrics, struct text *text)
{
	struct ctl_json json = {.has_failed = false};

	ctl_status_put(metrics->daemon, &metrics->busy, &json);
	text->n = ctl_bytes_length(&json.bytes);
	text->bytes = ctl_bytes_front(&json.bytes); /* nothing was taken from it: its memory */
	return !json.has_failed && text->n <= CTL_RPC_ANSWER_BYTES_MAX;
}

static const struct {
	bool (*write)(struct ctl_metrics *metrics, struct text *text);
	const char *type;
} text_kinds[N_TEXTS] = {
	[METRICS] = {write_metrics, "text/plain; version=0.0.4; charset=utf-8"},
	[STATUS] = {write_status, "application/json"},
};

static struct text *
write_text(struct ctl_metrics *metrics, enum text_kind kind)
{
	struct text *text = calloc(1, sizeof(*text));

	if (text == NULL)
		return NULL;
	if (!text_kinds[kind].write(metrics, text)) {
		free(text->bytes);
		free(text);
		return NULL;
	}
	text->metrics = metrics;
	metrics->held_bytes += text->n;
	return text;
}

/* Fails for want of memory alone; then the client goes without, for one header more or less. */
static void
add_header(struct MHD_Response *response, const char *name, const char *value)
{
	(void)MHD_add_response_header(response, name, value);
}

/* Of all answers: one request a connection, figures of now, and no guessing what they are. */
static void
add_headers(struct MHD_Response *response, const char *type)
{
	add_header(response, "Content-Type", type);
	add_header(response, "Connection", "close");
	add_header(response, "Cache-Control", "no-store");
	add_header(response, "X-Content-Type-Options", "nosniff");
}

static struct MHD_Response *
make_text(struct ctl_metrics *metrics, enum text_kind kind)
{
	struct MHD_Response *response;
	struct text *text;

	if (metrics->held_bytes > CTL_METRICS_HELD_BYTES_MAX)
		cut_readers(metrics);
	text = write_text(metrics, kind);
	if (text == NULL)
		return NULL;
	response = MHD_create_response_from_buffer_with_free_callback_cls(text->n, text->bytes,
		free_text, text);
	if (response == NULL) {
		free_text(text);
		return NULL;
	}
	add_headers(response, text_kinds[kind].type);
	return response;
}

/* What is there for good. */
static struct MHD_Response *
make_constant(const void *bytes, size_t n)
{
	const struct MHD_IoVec all = {.iov_base = bytes, .iov_len = n};

	return MHD_create_response_from_iovec(&all, 1, NULL, NULL);
}

static enum MHD_Result
refuse(struct MHD_Connection *connection, unsigned int status, const char *words)
{
	struct MHD_Response *response = make_constant(words, strlen(words));
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	add_headers(response, "text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		add_header(response, "Allow", "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* Keep a text that took long for nine times as long. */
static void
make_kept_text(struct ctl_metrics *metrics, enum text_kind kind)
{
	const uint64_t begun_ms = ctl_loop_now_ms();
	uint64_t took_ms;

	metrics->texts[kind] = make_text(metrics, kind);
	took_ms = ctl_loop_now_ms() - begun_ms;
	metrics->until_ms[kind] = begun_ms;
	if (took_ms >= CTL_METRICS_DEAR_MS)
		metrics->until_ms[kind] += 10 * took_ms;
}

/* Those that are over, or all. */
static void
drop_texts(struct ctl_metrics *metrics, uint64_t now_ms)
{
	for (size_t i = 0; i < N_TEXTS; i++) {
		if (metrics->texts[i] == NULL || metrics->until_ms[i] > now_ms)
			continue;
		MHD_destroy_response(metrics->texts[i]);
		metrics->texts[i] = NULL;
	}
}

static enum MHD_Result
answer_text(struct ctl_metrics *metrics, struct client *client,
	struct MHD_Connection *connection, enum text_kind kind)
{
	if (metrics->texts[kind] == NULL)
		make_kept_text(metrics, kind);
	if (metrics->texts[kind] == NULL)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"It takes more memory than there is, or may be.\n");
	/* Not before: who asks for a new text is none of those who make room for it. */
	client->has_text = true;
	return MHD_queue_response(connection, MHD_HTTP_OK, metrics->texts[kind]);
}

/* The page has scripts and styles of its own, asks this daemon alone, and is in no frame. */
static struct MHD_Response *
make_page(void)
{
	struct MHD_Response *page = make_constant(ctl_page, ctl_page_bytes);

	if (page == NULL)
		return NULL;
	add_headers(page, "text/html; charset=utf-8");
	add_header(page, "Referrer-Policy", "no-referrer");
	/* Without this one there is no page, as names on it come from outside. */
	if (MHD_add_response_header(page, "Content-Security-Policy", ctl_page_policy) ==
		MHD_YES)
		return page;
	MHD_destroy_response(page);
	return NULL;
}

static enum MHD_Result
answer(struct ctl_metrics *metrics, struct client *client, struct MHD_Connection *connection,
	const char *url)
{
	if (strcmp(url, "/metrics") == 0)
		return answer_text(metrics, client, connection, METRICS);
	if (strcmp(url, "/status.json") == 0)
		return answer_text(metrics, client, connection, STATUS);
	return MHD_queue_response(connection, MHD_HTTP_OK, metrics->page);
}

static bool
is_there(const char *url)
{
	return strcmp(url, "/") == 0 || strcmp(url, "/metrics") == 0 ||
	       strcmp(url, "/status.json") == 0;
}

/* Called when the headers are there, then with each part of a body, and at its end. */
static enum MHD_Result /* NOLINTNEXTLINE(readability-function-size) */
on_request(void *context, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *body, size_t *n_body,
	void **of_request)
{
	struct ctl_metrics *metrics = context;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct client *client = info->socket_context;

	(void)version;
	(void)body;
	/* What is sent is read to its end, or closing would take the answer with it. */
	if (*of_request == NULL) {
		*of_request = metrics;
		return MHD_YES;
	}
	if (*n_body > 0) {
		*n_body = 0;
		return MHD_YES;
	}
	if (!is_there(url))
		return refuse(connection, MHD_HTTP_NOT_FOUND,
			"Only /, /status.json and /metrics are here.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"Only GET and HEAD are answered.\n");
	return answer(metrics, client, connection, url);
}

/* Turns. */

static void on_again(void *context);

static void
run(struct ctl_metrics *metrics)
{
	const size_t n_before = metrics->n_clients;
	MHD_UNSIGNED_LONG_LONG wait_ms;

	drop_texts(metrics, ctl_loop_now_ms());
	(void)MHD_run(metrics->http);
	drop_texts(metrics, ctl_loop_now_ms());
	if (metrics->again != NULL)
		return;
	/*
	 * Data that the library has seen and not handled, or a place that is free for the next
	 * client, makes no file ready. The loop's files come first: nobody is kept waiting.
	 * Where there is no memory for the timer, the next sample's turn does it.
	 */
	if (metrics->n_clients != n_before ||
		(MHD_get_timeout(metrics->http, &wait_ms) == MHD_YES && wait_ms == 0))
		(void)ctl_loop_add_timer(metrics->loop, 0, 0, on_again, metrics,
			&metrics->again);
}

static void
on_again(void *context)
{
	struct ctl_metrics *metrics = context;

	metrics->again = NULL; /* called once, and gone */
	run(metrics);
}

static void
on_ready(void *context, uint32_t events)
{
	(void)events;
	run(context);
}

static void
on_sample(void *context)
{
	struct ctl_metrics *metrics = context;

	ctl_metrics_sample(&metrics->busy, ctl_daemon_dp(metrics->daemon));
	cut_late(metrics);
	run(metrics);
}

/* Open and close. */

static int
listen_at(const struct addrinfo *info)
{
	const int yes = 1;
	const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	/* A restart need not wait for the connections of the daemon before it. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	ret = -errno;
	(void)close(fd);
	return ret;
}

static int
open_socket(const char *address)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(address, ':');
	const bool has_brackets = address[0] == '[';
	struct addrinfo *info;
	char *host;
	int ret;

	if (colon == NULL || (has_brackets && (colon - address < 2 || colon[-1] != ']')))
		return -EINVAL;
	host = has_brackets ? strndup(address + 1, (size_t)(colon - address) - 2)
			    : strndup(address, (size_t)(colon - address));
	if (host == NULL)
		return -ENOMEM;
	ret = getaddrinfo(host, colon + 1, &hints, &info) != 0 ? -EINVAL : 0;
	free(host);
	if (ret != 0)
		return ret;
	ret = listen_at(info);
	freeaddrinfo(info);
	return ret;
}

/* Takes listen_fd. */
static int
start_http(struct ctl_metrics *metrics, int listen_fd)
{
	const union MHD_DaemonInfo *info;

	errno = 0;
	metrics->http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, metrics,
		MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, PLACES,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, metrics, MHD_OPTION_END);
	if (metrics->http == NULL) {
		const int ret = errno != 0 ? -errno : -ENOMEM;

		(void)close(listen_fd);
		return ret;
	}
	info = MHD_get_daemon_info(metrics->http, MHD_DAEMON_INFO_EPOLL_FD);
	metrics->epoll_fd = info->epoll_fd;
	return ctl_loop_add_fd(metrics->loop, metrics->epoll_fd, EPOLLIN, on_ready, metrics);
}

int
ctl_metrics_open(struct ctl_loop *loop, const char *address, const struct ctl_daemon *daemon,
	struct ctl_metrics **out)
{
	struct ctl_metrics *metrics = calloc(1, sizeof(*metrics));
	int ret;

	if (metrics == NULL)
		return -ENOMEM;
	metrics->loop = loop;
	metrics->daemon = daemon;
	for (size_t i = 0; i < LB_N_ELEMENTS(metrics->clients); i++)
		metrics->clients[i].fd = -1;
	metrics->page = make_page();
	ret = metrics->page == NULL ? -ENOMEM : open_socket(address);
	if (ret >= 0)
		ret = start_http(metrics, ret);
	if (ret == 0)
		ret = ctl_loop_add_timer(loop, SAMPLE_MS, SAMPLE_MS, on_sample, metrics,
			&metrics->sampling);
	if (ret != 0) {
		ctl_metrics_close(metrics);
		return ret;
	}
	*out = metrics;
	return 0;
}

void
ctl_metrics_close(struct ctl_metrics *metrics)
{
	if (metrics == NULL)
		return;
	ctl_loop_remove_timer(metrics->loop, metrics->again);
	ctl_loop_remove_timer(metrics->loop, metrics->sampling);
	if (metrics->http != NULL) {
		ctl_loop_remove_fd(metrics->loop, metrics->epoll_fd);
		MHD_stop_daemon(metrics->http);
	}
	drop_texts(metrics, UINT64_MAX);
	if (metrics->page != NULL)
		MHD_destroy_response(metrics->page);
	free(metrics);
}
