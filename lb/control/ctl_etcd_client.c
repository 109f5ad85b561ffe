/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_etcd_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/ssl.h>

#include "ctl_bytes.h"
#include "ctl_loop.h"

#define PATH_RANGE "/v3/kv/range"
#define PATH_PUT   "/v3/kv/txn"
#define PATH_WATCH "/v3/watch"
#define PATH_LOGIN "/v3/auth/authenticate"

#define HTTP_OK           200
#define HTTP_UNAUTHORIZED 401
#define HTTP_FORBIDDEN    403
/* What etcd answers where it wants to know who asks, and nobody said so. */
#define WHO_ASKS "etcdserver: user name is empty"

#define TURN_MS            1000
#define PASSWORD_BYTES_MAX 1024u
/* A peer that is gone without a word is noticed after 20 s. */
#define KEEPALIVE_IDLE_S     5
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT      3

struct ctl_etcd_client {
	const struct ctl_etcd_conf *conf;
	const atomic_bool *stop;
	CURLM *multi;
	CURL *easy;
	size_t endpoint; /* that is asked */
	char *token;     /* NULL: nobody has logged in */
	unsigned int call_ms;
	char error[CURL_ERROR_SIZE];
};

/* One request, and what comes back. */
struct exchange {
	struct ctl_etcd_client *client;
	const char *path;
	struct ctl_bytes body;
	uint64_t until_ms; /* 0: without end */
	long status;
	int ret; /* of whom the body is given to; it ends the exchange */

	const struct ctl_etcd_watcher *watcher; /* NULL: it is no watch */
	bool is_created;                        /* of a watch: it has begun */
};

/* Configuration. */

static const char *
read_environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* NULL: nothing. */
static const char *
find_fault(const struct ctl_etcd_conf *conf)
{
	const bool has_password = conf->password != NULL || conf->password_file != NULL;

	if ((conf->user != NULL) != has_password)
		return "SHUNT_ETCD_USER goes with SHUNT_ETCD_PASSWORD_FILE or "
		       "SHUNT_ETCD_PASSWORD, and one is missing";
	if (conf->password != NULL && conf->password_file != NULL)
		return "SHUNT_ETCD_PASSWORD and SHUNT_ETCD_PASSWORD_FILE are both set: which?";
	if ((conf->cert_file != NULL) != (conf->key_file != NULL))
		return "SHUNT_ETCD_CERT_FILE goes with SHUNT_ETCD_KEY_FILE, and one is "
		       "missing";
	if (!conf->url.is_tls && (conf->ca_file != NULL || conf->cert_file != NULL))
		return "SHUNT_ETCD_CA_FILE and SHUNT_ETCD_CERT_FILE are for TLS: etcds://";
	return NULL;
}

int
ctl_etcd_conf_read(const char *url, FILE *messages, struct ctl_etcd_conf *out)
{
	struct ctl_etcd_conf conf = {.user = read_environment("SHUNT_ETCD_USER"),
		.password = read_environment("SHUNT_ETCD_PASSWORD"),
		.password_file = read_environment("SHUNT_ETCD_PASSWORD_FILE"),
		.ca_file = read_environment("SHUNT_ETCD_CA_FILE"),
		.cert_file = read_environment("SHUNT_ETCD_CERT_FILE"),
		.key_file = read_environment("SHUNT_ETCD_KEY_FILE")};
	const char *why = "there is not enough memory";
	int ret = ctl_etcd_url_parse(url, &conf.url, &why);

	if (ret == 0) {
		why = find_fault(&conf);
		ret = why != NULL ? -EINVAL : 0;
	}
	/* Not the address itself: it may have what is not to be in a log. */
	if (ret != 0) {
		(void)fprintf(messages, "the address in etcd: %s\n", why);
		ctl_etcd_conf_fini(&conf);
		return ret;
	}
	*out = conf;
	return 0;
}

void
ctl_etcd_conf_fini(struct ctl_etcd_conf *conf)
{
	ctl_etcd_url_fini(&conf->url);
}

/* Clients. */

int
ctl_etcd_client_create(const struct ctl_etcd_conf *conf, const atomic_bool *stop,
	struct ctl_etcd_client **out)
{
	struct ctl_etcd_client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		return -ENOMEM;
	client->conf = conf;
	client->stop = stop;
	client->call_ms = CTL_ETCD_CALL_MS;
	client->multi = curl_multi_init();
	client->easy = curl_easy_init();
	if (client->multi == NULL || client->easy == NULL) {
		ctl_etcd_client_destroy(client);
		return -ENOMEM;
	}
	*out = client;
	return 0;
}

void
ctl_etcd_client_destroy(struct ctl_etcd_client *client)
{
	if (client == NULL)
		return;
	curl_easy_cleanup(client->easy);
	if (client->multi != NULL)
		(void)curl_multi_cleanup(client->multi);
	free(client->token);
	free(client);
}

void
ctl_etcd_client_wake(struct ctl_etcd_client *client)
{
	(void)curl_multi_wakeup(client->multi);
}

static bool
is_stopped(const struct ctl_etcd_client *client)
{
	return client->stop != NULL && atomic_load_explicit(client->stop, memory_order_relaxed);
}

static const char *
endpoint_of(const struct ctl_etcd_client *client)
{
	return client->conf->url.endpoints[client->endpoint];
}

static int tell(const struct ctl_etcd_client *client, char why[CTL_ETCD_WHY_BYTES], int ret,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns ret. */
static int
tell(const struct ctl_etcd_client *client, char why[CTL_ETCD_WHY_BYTES], int ret,
	const char *format, ...)
{
	const int n = snprintf(why, CTL_ETCD_WHY_BYTES, "%s: ", endpoint_of(client));
	va_list arguments;

	va_start(arguments, format);
	if (n > 0 && (size_t)n < CTL_ETCD_WHY_BYTES)
		(void)vsnprintf(why + n, CTL_ETCD_WHY_BYTES - (size_t)n, format, arguments);
	va_end(arguments);
	return ret;
}

/* Exchanges. */

static int
take_line(struct exchange *exchange, const char *line, size_t n)
{
	struct ctl_etcd_answer answer;
	int ret = ctl_etcd_json_read_watch(line, n, exchange->client->conf->url.key, &answer);

	if (ret != 0)
		return ret;
	exchange->is_created |= answer.is_created;
	ret = exchange->is_created || answer.is_canceled
		      ? exchange->watcher->fn(exchange->watcher->context, &answer)
		      : -EPROTO;
	ctl_etcd_answer_fini(&answer);
	return ret;
}

/* from: how much of the body has been looked through. What is left is to be whole in time. */
static int
take_lines(struct exchange *exchange, size_t from)
{
	struct ctl_bytes *body = &exchange->body;
	size_t n_lines = 0;
	int ret = 0;

	while (ret == 0 && ctl_bytes_length(body) > from) {
		const char *line = ctl_bytes_front(body);
		const char *end = memchr(line + from, '\n', ctl_bytes_length(body) - from);

		if (end == NULL)
			break;
		ret = take_line(exchange, line, (size_t)(end - line));
		ctl_bytes_drop(body, (size_t)(end - line) + 1);
		from = 0;
		n_lines++;
	}
	if (ctl_bytes_length(body) == 0)
		exchange->until_ms = 0;
	else if (n_lines > 0 || exchange->until_ms == 0)
		exchange->until_ms = ctl_loop_now_ms() + CTL_ETCD_CALL_MS;
	return ret;
}

/* By curl's contract n is all that counts, and another value than it ends the transfer. */
static size_t
on_body(char *data, size_t size, size_t n, void *context)
{
	struct exchange *exchange = context;
	const size_t n_before = ctl_bytes_length(&exchange->body);

	(void)size;
	(void)curl_easy_getinfo(exchange->client->easy, CURLINFO_RESPONSE_CODE,
		&exchange->status);
	if (n_before + n > CTL_ETCD_ANSWER_BYTES_MAX)
		exchange->ret = -EMSGSIZE;
	else
		exchange->ret = ctl_bytes_append(&exchange->body, data, n);
	/* The body of an error is no line of a watch. */
	if (exchange->ret == 0 && exchange->watcher != NULL && exchange->status == HTTP_OK)
		exchange->ret = take_lines(exchange, n_before);
	return exchange->ret == 0 ? n : 0;
}

static int
on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
	static const int options[][3] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT}};

	(void)context;
	(void)purpose;
	/* Without them it works as well, until a peer is gone without a word. */
	for (size_t i = 0; i < LB_N_ELEMENTS(options); i++)
		(void)setsockopt(fd, options[i][0], options[i][1], &options[i][2],
			sizeof(options[i][2]));
	return CURL_SOCKOPT_OK;
}

/*
 * OpenSSL is to come back after each message. Otherwise it would go on for as long as there are
 * some, and one who sends them without end would keep us in one call for ever.
 */
static CURLcode
let_go(CURL *easy, void *tls, void *context)
{
	(void)easy;
	(void)context;
	(void)SSL_CTX_clear_mode(tls, SSL_MODE_AUTO_RETRY);
	return CURLE_OK;
}

/* libcurl speaks TLS by one of several libraries. */
static bool
is_by_openssl(void)
{
	const char *name = curl_version_info(CURLVERSION_NOW)->ssl_version;

	return name != NULL && strncmp(name, "OpenSSL/", 8) == 0;
}

static CURLcode
set_security(CURL *easy, const struct ctl_etcd_conf *conf)
{
	CURLcode bad = CURLE_OK;

	if (is_by_openssl())
		bad |= curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, let_go);
	if (conf->ca_file != NULL)
		bad |= curl_easy_setopt(easy, CURLOPT_CAINFO, conf->ca_file);
	if (conf->cert_file != NULL)
		bad |= curl_easy_setopt(easy, CURLOPT_SSLCERT, conf->cert_file);
	if (conf->key_file != NULL)
		bad |= curl_easy_setopt(easy, CURLOPT_SSLKEY, conf->key_file);
	return bad;
}

/* The connection stays from one exchange to the next. */
static CURLcode
prepare(struct exchange *exchange, const char *url, const char *request,
	struct curl_slist *headers)
{
	struct ctl_etcd_client *client = exchange->client;
	CURL *easy = client->easy;
	CURLcode bad = CURLE_OK;

	curl_easy_reset(easy);
	client->error[0] = '\0';
	bad |= curl_easy_setopt(easy, CURLOPT_URL, url);
	bad |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request));
	bad |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request);
	bad |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	bad |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	bad |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	bad |= curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
	bad |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->error);
	bad |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	bad |= curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	bad |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	bad |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CTL_ETCD_CONNECT_MS);
	return bad | set_security(easy, client->conf);
}

/* As struct ctl_etcd_watcher has it. */
static int
take_turn(const struct exchange *exchange)
{
	if (exchange->watcher == NULL || !exchange->is_created)
		return 0;
	return exchange->watcher->turn(exchange->watcher->context);
}

/* Run what is prepared to its end. */
static int
transfer(struct exchange *exchange, char why[CTL_ETCD_WHY_BYTES])
{
	struct ctl_etcd_client *client = exchange->client;
	int n_running = 1;
	int ret;

	while (n_running > 0) {
		const uint64_t now_ms = ctl_loop_now_ms();
		int n_left;
		CURLMsg *message;

		if (is_stopped(client))
			return -ECANCELED;
		if (exchange->until_ms != 0 && now_ms >= exchange->until_ms)
			return tell(client, why, -EHOSTUNREACH, "no answer in time");
		ret = take_turn(exchange);
		if (ret != 0)
			return ret;
		if (curl_multi_perform(client->multi, &n_running) != CURLM_OK)
			return tell(client, why, -ENOMEM, "there is not enough memory");
		message = curl_multi_info_read(client->multi, &n_left);
		if (message != NULL && message->data.result != CURLE_OK && exchange->ret == 0)
			return tell(client, why, -EHOSTUNREACH, "%s",
				client->error[0] != '\0'
					? client->error
					: curl_easy_strerror(message->data.result));
		if (n_running > 0 &&
			curl_multi_poll(client->multi, NULL, 0, TURN_MS, NULL) != CURLM_OK)
			return tell(client, why, -ENOMEM, "there is not enough memory");
	}
	(void)curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &exchange->status);
	return 0;
}

/* Errors that the answer itself is, in words. */
static int
judge(struct exchange *exchange, char why[CTL_ETCD_WHY_BYTES])
{
	const struct ctl_etcd_client *client = exchange->client;
	char words[CTL_ETCD_WHY_BYTES];

	switch (exchange->ret) {
	case 0:
		break;
	case -EMSGSIZE:
		return tell(client, why, -EMSGSIZE, "the answer is too long");
	case -ENOMEM:
		return tell(client, why, -ENOMEM, "there is not enough memory");
	case -EPROTO:
		return tell(client, why, -EPROTO, "what it says is nothing that etcd says");
	default: /* whom the body is given to has told why */
		return exchange->ret;
	}
	if (exchange->status == HTTP_OK)
		return 0;
	ctl_etcd_json_read_error(ctl_bytes_front(&exchange->body),
		ctl_bytes_length(&exchange->body), words);
	if (words[0] == '\0')
		return tell(client, why, -EPROTO, "it answers with HTTP status %ld",
			exchange->status);
	if (strcmp(words, WHO_ASKS) == 0)
		return tell(client, why, -EACCES,
			"it wants to know who asks: SHUNT_ETCD_USER and "
			"SHUNT_ETCD_PASSWORD_FILE");
	return tell(client, why,
		exchange->status == HTTP_FORBIDDEN || exchange->status == HTTP_UNAUTHORIZED
			? -EACCES
			: -EREMOTEIO,
		"%s", words);
}

/* Takes more headers on, if it can. */
static int
add_header(struct curl_slist **headers, const char *header)
{
	struct curl_slist *more = header != NULL ? curl_slist_append(*headers, header) : NULL;

	if (more == NULL)
		return -ENOMEM;
	*headers = more;
	return 0;
}

static int
make_headers(const struct ctl_etcd_client *client, struct curl_slist **headers)
{
	char *token = NULL;
	int ret = add_header(headers, "Content-Type: application/json");

	if (ret == 0)
		ret = add_header(headers, "Expect:");
	/* So a member that has lost the others says so, and does not just keep silent. */
	if (ret == 0)
		ret = add_header(headers, "Grpc-Metadata-hasleader: true");
	if (ret != 0 || client->token == NULL)
		return ret;
	if (asprintf(&token, "Authorization: %s", client->token) < 0)
		return -ENOMEM;
	ret = add_header(headers, token);
	free(token);
	return ret;
}

/* Ask, without a login. request: NULL: there was no memory for it. */
static int
post(struct exchange *exchange, const char *request, char why[CTL_ETCD_WHY_BYTES])
{
	struct ctl_etcd_client *client = exchange->client;
	struct curl_slist *headers = NULL;
	char *url = NULL;
	int ret = request == NULL || make_headers(client, &headers) != 0 ? -ENOMEM : 0;

	exchange->until_ms = ctl_loop_now_ms() + client->call_ms;
	if (ret == 0 && asprintf(&url, "%s%s", endpoint_of(client), exchange->path) < 0) {
		url = NULL;
		ret = -ENOMEM;
	}
	if (ret == 0 && prepare(exchange, url, request, headers) != CURLE_OK)
		ret = -ENOMEM;
	if (ret == 0 && curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
		ret = -ENOMEM;
	if (ret == 0) {
		ret = transfer(exchange, why);
		(void)curl_multi_remove_handle(client->multi, client->easy);
		if (ret == 0)
			ret = judge(exchange, why);
	} else {
		(void)tell(client, why, ret, "there is not enough memory");
	}
	curl_slist_free_all(headers);
	free(url);
	return ret;
}

/* The first line of the file. */
static int
read_password(const struct ctl_etcd_client *client, char *out, size_t n_bytes,
	char why[CTL_ETCD_WHY_BYTES])
{
	const char *path = client->conf->password_file;
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, out, n_bytes - 1);
	const int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0)
		return tell(client, why, -EACCES, "the password in %s: %s", path,
			strerror(error));
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return 0;
}

static int
log_in(struct ctl_etcd_client *client, char why[CTL_ETCD_WHY_BYTES])
{
	struct exchange exchange = {.client = client, .path = PATH_LOGIN};
	char password[PASSWORD_BYTES_MAX];
	char *request;
	int ret = 0;

	if (client->conf->password_file != NULL)
		ret = read_password(client, password, sizeof(password), why);
	if (ret != 0)
		return ret;
	request = ctl_etcd_json_login(client->conf->user,
		client->conf->password_file != NULL ? password : client->conf->password);
	ret = post(&exchange, request, why);
	if (ret == 0) {
		ret = ctl_etcd_json_read_login(ctl_bytes_front(&exchange.body),
			ctl_bytes_length(&exchange.body), &client->token);
		if (ret != 0)
			ret = tell(client, why, ret, "what it says is no token");
	} else if (ret == -EREMOTEIO) {
		ret = -EACCES;
	}
	explicit_bzero(password, sizeof(password));
	if (request != NULL)
		explicit_bzero(request, strlen(request));
	free(request);
	ctl_bytes_fini(&exchange.body);
	return ret;
}

static void
forget_login(struct ctl_etcd_client *client)
{
	free(client->token);
	client->token = NULL;
}

/* Ask. A token that is not valid any more is asked for anew, once. */
static int
ask(struct exchange *exchange, const char *request, char why[CTL_ETCD_WHY_BYTES])
{
	struct ctl_etcd_client *client = exchange->client;
	int ret = 0;

	for (unsigned int n_tries = 0; n_tries < 2; n_tries++) {
		const bool is_new = client->conf->user != NULL && client->token == NULL;

		if (is_new)
			ret = log_in(client, why);
		if (ret != 0)
			return ret;
		ret = post(exchange, request, why);
		if (ret != -EACCES || client->conf->user == NULL)
			return ret;
		forget_login(client);
		if (is_new)
			return ret;
		ctl_bytes_fini(&exchange->body);
	}
	return ret;
}

/* Calls. */

void
ctl_etcd_client_turn(struct ctl_etcd_client *client)
{
	client->endpoint = (client->endpoint + 1) % client->conf->url.n_endpoints;
	/* A token of one member is good with all of its cluster; but is this one of it? */
	forget_login(client);
}

static int
load_once(struct ctl_etcd_client *client, const char *request, struct ctl_etcd_answer *out,
	char why[CTL_ETCD_WHY_BYTES])
{
	struct exchange exchange = {.client = client, .path = PATH_RANGE};
	int ret = ask(&exchange, request, why);

	if (ret == 0) {
		ret = ctl_etcd_json_read_range(ctl_bytes_front(&exchange.body),
			ctl_bytes_length(&exchange.body), client->conf->url.key, out);
		if (ret != 0)
			ret = tell(client, why, ret, "what it says is nothing that etcd says");
	}
	ctl_bytes_fini(&exchange.body);
	return ret;
}

int
ctl_etcd_client_look(struct ctl_etcd_client *client, const struct ctl_etcd_client *as,
	struct ctl_etcd_answer *out, char why[CTL_ETCD_WHY_BYTES])
{
	char *request = ctl_etcd_json_range(client->conf->url.key, true);
	int ret;

	if (client->endpoint != as->endpoint)
		forget_login(client);
	client->endpoint = as->endpoint;
	ret = load_once(client, request, out, why);
	free(request);
	return ret;
}

int
ctl_etcd_client_load(struct ctl_etcd_client *client, struct ctl_etcd_answer *out,
	char why[CTL_ETCD_WHY_BYTES])
{
	const size_t n_members = client->conf->url.n_endpoints;
	char *request = ctl_etcd_json_range(client->conf->url.key, false);
	int ret = -ENOMEM;

	client->call_ms = ctl_etcd_member_ms(n_members);
	for (size_t i = 0; i < n_members; i++) {
		ret = load_once(client, request, out, why);
		if (ret == 0 || ret == -ECANCELED || ret == -ENOMEM)
			break;
		ctl_etcd_client_turn(client);
	}
	client->call_ms = CTL_ETCD_CALL_MS;
	free(request);
	return ret;
}

int
ctl_etcd_client_put(struct ctl_etcd_client *client, const char *text, size_t n_bytes,
	uint64_t revision, struct ctl_etcd_answer *out, char why[CTL_ETCD_WHY_BYTES])
{
	struct exchange exchange = {.client = client, .path = PATH_PUT};
	const char *key = client->conf->url.key;
	char *request = ctl_etcd_json_put(key, text, n_bytes, revision);
	int ret = ask(&exchange, request, why);

	if (ret == 0) {
		ret = ctl_etcd_json_read_put(ctl_bytes_front(&exchange.body),
			ctl_bytes_length(&exchange.body), key, out);
		if (ret != 0)
			ret = tell(client, why, ret, "what it says is nothing that etcd says");
	}
	free(request);
	ctl_bytes_fini(&exchange.body);
	return ret;
}

int
ctl_etcd_client_watch(struct ctl_etcd_client *client, uint64_t revision,
	const struct ctl_etcd_watcher *watcher, char why[CTL_ETCD_WHY_BYTES])
{
	struct exchange exchange = {.client = client, .path = PATH_WATCH, .watcher = watcher};
	char *request = ctl_etcd_json_watch(client->conf->url.key, revision);
	int ret = ask(&exchange, request, why);

	if (ret == 0)
		ret = tell(client, why, -EHOSTUNREACH, "the watch has ended");
	free(request);
	ctl_bytes_fini(&exchange.body);
	return ret;
}
