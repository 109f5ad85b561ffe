/* SPDX-License-Identifier: BSD-3-Clause */
/* The prober against servers that are well and others that are not, all on 127.0.0.1. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"
#include "hc_pinger.h"
#include "hc_probe.h"
#include "hc_prober.h"
#include "odd_server.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

/* Of one result to come, also under sanitizers on a busy machine. */
#define WAIT_MS 60000

#define HERE "127.0.0.1"

/* A check that has all the time it may need, and begins soon. */
static struct hc_check
make_check(enum hc_type type, uint16_t port)
{
	return (struct hc_check){
		.type = type,
		.port = port,
		.interval_ns = 30 * S,
		.timeout_ns = 30 * S,
		.expect = {{200, 399}},
		.n_expect = 1,
		.path = "/",
	};
}

static struct lb_addr
parse(const char *text)
{
	struct lb_addr address = {0};

	assert_int_equal(lb_addr_parse(text, &address), 0);
	return address;
}

static struct hc_prober *
make_prober(void)
{
	struct hc_prober *prober = NULL;

	assert_int_equal(hc_prober_create(&prober), 0);
	return prober;
}

static void
set(struct hc_prober *prober, const struct hc_target *targets, size_t n)
{
	assert_int_equal(hc_prober_set(prober, targets, n, n + 1), 0);
}

/* The results that come next, one at least. */
static size_t
take_some(struct hc_prober *prober, struct hc_result **out)
{
	struct pollfd fd = {.fd = hc_prober_fd(prober), .events = POLLIN};
	size_t n;

	do {
		EXPECT(poll(&fd, 1, WAIT_MS) == 1, "no result came");
		n = hc_prober_take(prober, out);
	} while (n == 0);
	return n;
}

/* The first result of one target. */
static struct hc_result
ask(const struct hc_check *check, const char *address)
{
	const struct hc_target target = {.id = 4711, .address = parse(address), .check = check};
	struct hc_prober *prober = make_prober();
	struct hc_result *results;
	struct hc_result first;

	set(prober, &target, 1);
	(void)take_some(prober, &results);
	first = results[0];
	free(results);
	hc_prober_destroy(prober);
	EXPECT(first.id == 4711, "whose it is");
	return first;
}

#define OK       "HTTP/1.1 200 OK\r\n\r\n"
#define BAD      "HTTP/1.1 503 Service Unavailable\r\n\r\n"
#define SOON_MS  300u
#define LATER_MS 500u

static const struct {
	const char *what;
	enum hc_type type;
	enum odd_manner manner;
	const char *text;
	unsigned int gap_ms;
	unsigned int timeout_ms; /* 0: long */
	const char *words;       /* NULL: it passes */
} rows[] = {
	{"tcp: taken, and silent", HC_TCP, ODD_HANG, NULL, 0, 0, NULL},
	{"tcp: taken, and closed", HC_TCP, ODD_CLOSE, NULL, 0, 0, NULL},
	{"http: 200", HC_HTTP, ODD_ANSWER, OK, 0, 0, NULL},
	{"http: 503", HC_HTTP, ODD_ANSWER, BAD, 0, 0, "status 503, expected 200-399"},
	{"http: byte by byte, in time", HC_HTTP, ODD_BYTE_BY_BYTE, OK, 2, 0, NULL},
	{"http: byte by byte, too slowly", HC_HTTP, ODD_BYTE_BY_BYTE, OK, LATER_MS, SOON_MS,
		"status: timed out after 0.3 s"},
	{"http: a body without an end", HC_HTTP, ODD_ENDLESS, OK, 0, 0, NULL},
	{"http: a line without an end", HC_HTTP, ODD_ENDLESS, "HTTP/1.1 200 ", 0, 0, NULL},
	{"http: zeros without an end", HC_HTTP, ODD_ENDLESS, "", 0, 0,
		"status: the answer is no HTTP"},
	{"http: another program", HC_HTTP, ODD_ANSWER, "SSH-2.0-OpenSSH_9.2\r\n", 0, 0,
		"status: the answer is no HTTP"},
	{"http: taken, and closed", HC_HTTP, ODD_CLOSE, NULL, 0, 0, "status: "},
	{"http: taken, and reset", HC_HTTP, ODD_RESET, NULL, 0, 0, "Connection reset by peer"},
	{"http: taken, and silent", HC_HTTP, ODD_HANG, NULL, 0, SOON_MS,
		"status: timed out after 0.3 s"},
	{"https: taken, and closed", HC_HTTPS, ODD_CLOSE, NULL, 0, 0, "TLS handshake: "},
	{"https: taken, and silent", HC_HTTPS, ODD_HANG, NULL, 0, SOON_MS,
		"TLS handshake: timed out after 0.3 s"},
};

static void
expect_words(const char *what, const struct hc_result *result, const char *words)
{
	EXPECT(result->is_asked, "%s: not asked: %s", what, result->words);
	EXPECT(result->has_passed == (words == NULL), "%s: '%s'", what, result->words);
	if (words != NULL)
		EXPECT(strstr(result->words, words) != NULL, "%s: '%s'", what, result->words);
	else
		EXPECT(result->words[0] == '\0', "%s: words without need", what);
}

static void
test_servers_of_all_manners_get_their_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct odd_server server = {.manner = rows[i].manner,
			.text = rows[i].text,
			.gap_ms = rows[i].gap_ms};
		struct hc_check check;
		struct hc_result result;

		odd_server_start(&server);
		check = make_check(rows[i].type, server.port);
		if (rows[i].timeout_ms != 0)
			check.timeout_ns = rows[i].timeout_ms * MS;
		check.interval_ns = check.timeout_ns;
		result = ask(&check, HERE);
		/* A connection that is closed at once may still take the request, or reset it.
		 */
		if (rows[i].manner == ODD_CLOSE && rows[i].words != NULL)
			EXPECT(!result.has_passed && result.is_asked, "%s", rows[i].what);
		else
			expect_words(rows[i].what, &result, rows[i].words);
		odd_server_stop(&server);
	}
}

static void
test_who_is_not_there_is_told_from_who_is_silent(void **state)
{
	struct hc_check check = make_check(HC_TCP, odd_closed_port());
	struct hc_result result = ask(&check, HERE);

	(void)state;
	expect_words("tcp", &result, "connect: Connection refused");
	check.type = HC_HTTP;
	result = ask(&check, HERE);
	expect_words("http", &result, "connect: Connection refused");
	check.type = HC_UDP;
	result = ask(&check, HERE);
	expect_words("udp", &result, "reply: Connection refused");
	check.wants_reply = true;
	result = ask(&check, HERE);
	expect_words("udp that wants a reply", &result, "reply: Connection refused");
}

/* A socket for datagrams; of port 0, on one of its own. */
static int
bind_udp(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int
open_udp(uint16_t *port)
{
	const int fd = bind_udp(0);
	struct sockaddr_in address;
	socklen_t n_address = sizeof(address);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n_address), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static void *
reply_once(void *argument)
{
	const int fd = *(const int *)argument;
	struct sockaddr_in from;
	socklen_t n_from = sizeof(from);
	char byte;

	if (recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &n_from) == 0)
		(void)sendto(fd, "!", 1, 0, (const struct sockaddr *)&from, n_from);
	return NULL;
}

static void
test_silence_is_enough_of_udp_unless_a_reply_is_wanted(void **state)
{
	struct hc_check check = make_check(HC_UDP, 0);
	const int fd = open_udp(&check.port);
	struct hc_result result;
	pthread_t thread;

	(void)state;
	check.timeout_ns = SOON_MS * MS;
	result = ask(&check, HERE);
	expect_words("silence", &result, NULL);
	EXPECT(result.took_ns >= check.timeout_ns, "it is waited for");
	check.wants_reply = true;
	result = ask(&check, HERE);
	expect_words("silence where a reply is wanted", &result,
		"reply: timed out after 0.3 s");
	check.timeout_ns = check.interval_ns;
	(void)close(fd);

	int other = open_udp(&check.port);

	assert_int_equal(pthread_create(&thread, NULL, reply_once, &other), 0);
	result = ask(&check, HERE);
	expect_words("a reply", &result, NULL);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)close(other);
}

static void
test_silence_after_a_refusal_is_doubted(void **state)
{
	struct hc_check check = make_check(HC_UDP, 0);
	struct hc_prober *prober = make_prober();
	const struct hc_target target = {.id = 1, .address = parse(HERE), .check = &check};
	unsigned int n_silent = 0;
	bool has_passed = false;
	int fd;

	(void)state;
	check.port = odd_closed_port();
	check.interval_ns = 20 * MS;
	check.timeout_ns = 10 * MS;
	set(prober, &target, 1);
	fd = -1;
	while (!has_passed) {
		struct hc_result *results;
		const size_t n = take_some(prober, &results);

		for (size_t i = 0; i < n && !has_passed; i++) {
			has_passed = results[i].has_passed;
			n_silent += strcmp(results[i].words,
					    "reply: none, and it was refused before") == 0;
		}
		free(results);
		/* Somebody listens from now on, and says nothing. */
		if (fd < 0)
			fd = bind_udp(check.port);
	}
	EXPECT(n_silent == HC_DOUBTS, "%u silences", n_silent);
	hc_prober_destroy(prober);
	(void)close(fd);
}

/* Whether this process may send echo requests at all. */
static bool
can_ping(void)
{
	const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	const int echo = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);

	if (raw >= 0)
		(void)close(raw);
	if (echo >= 0)
		(void)close(echo);
	return raw >= 0 || echo >= 0;
}

static void
test_echo_is_answered_or_not_asked(void **state)
{
	struct hc_check check = make_check(HC_ICMP, 1);
	struct hc_result result;

	(void)state;
	result = ask(&check, HERE);
	if (!can_ping()) {
		EXPECT(!result.has_passed && !result.is_asked, "%s", result.words);
		EXPECT(strncmp(result.words, "socket: ", 8) == 0, "%s", result.words);
		return;
	}
	expect_words("ICMP", &result, NULL);
	/* 240.0.0.0/4 is nobody's, and the kernel may say so at once. */
	check.timeout_ns = SOON_MS * MS;
	result = ask(&check, "240.0.0.1");
	EXPECT(!result.has_passed, "nobody answers");
}

#define N_STRANGERS 100u

/* Echo replies that answer nobody's request. False: this process may not send any. */
static bool
send_strangers(void)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	uint8_t reply[HC_ECHO_BYTES];

	if (fd < 0)
		return false;
	hc_echo_write(&(struct hc_echo){.secret = 1}, true, reply);
	/* A request's checksum, and what the type adds to it. */
	reply[0] = 0;
	reply[2] = (uint8_t)(reply[2] + 8);
	for (unsigned int i = 0; i < N_STRANGERS; i++)
		assert_int_equal(sendto(fd, reply, sizeof(reply), 0,
					 (const struct sockaddr *)&to, sizeof(to)),
			sizeof(reply));
	(void)close(fd);
	return true;
}

static void
test_strangers_replies_are_not_looked_at_without_end(void **state)
{
	struct hc_check check = make_check(HC_ICMP, 1);
	const struct hc_target target = {.id = 7, .address = parse(HERE), .check = &check};
	const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	char words[HC_WORDS_BYTES];
	struct hc_pinger pinger;
	struct hc_probe probe;
	struct lb_addr from;
	struct hc_echo echo;
	unsigned int left = N_STRANGERS / 2;

	(void)state;
	assert_int_equal(hc_pinger_init(&pinger), 0);
	hc_probe_init(&probe, &target);
	if (hc_pinger_ask(&pinger, &probe, epoll_fd, words) == HC_RUNNING) {
		/* Its reply is there, before theirs. */
		EXPECT(hc_pinger_take(&pinger, &left, &echo, &from), "its own");
		assert_int_equal(left, N_STRANGERS / 2 - 1);
		if (send_strangers()) {
			EXPECT(!hc_pinger_take(&pinger, &left, &echo, &from), "a stranger's");
			assert_int_equal(left, 0);
			assert_int_equal(hc_pinger_ask(&pinger, &probe, epoll_fd, words),
				HC_RUNNING);
			EXPECT(!hc_pinger_take(&pinger, &left, &echo, &from), "one too many");
			left = N_STRANGERS;
			EXPECT(hc_pinger_take(&pinger, &left, &echo, &from), "the last");
			assert_int_equal(echo.id, 7);
		}
	}
	hc_pinger_fini(&pinger);
	(void)close(epoll_fd);
}

/* The certificate of the prober's, which is read when it first needs one. */
static const struct {
	const char *what;
	const char *host;
	bool is_verified;
	bool is_trusted;
	const char *words;
} certificates[] = {
	{"trusted, and of this name", "right.example.org", true, true, NULL},
	{"of another name", "wrong.example.org", true, true,
		"certificate: it is for another name than wrong.example.org"},
	{"of no address", NULL, true, true,
		"certificate: it is for another name than 127.0.0.1"},
	{"not trusted", "right.example.org", true, false,
		"certificate: self-signed certificate"},
	{"neither, and not asked for", "wrong.example.org", false, false, NULL},
};

static void
test_a_certificate_is_held_against_the_host(void **state)
{
	char path[] = "/tmp/shunt-test-XXXXXX";
	const int fd = mkstemp(path);
	struct odd_server server = {.manner = ODD_ANSWER, .text = OK};

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	server.tls = odd_tls_create("right.example.org", path);
	odd_server_start(&server);
	for (size_t i = 0; i < LB_N_ELEMENTS(certificates); i++) {
		struct hc_check check = make_check(HC_HTTPS, server.port);
		struct hc_result result;

		check.host = certificates[i].host;
		check.is_verified = certificates[i].is_verified;
		(void)setenv("SSL_CERT_FILE", certificates[i].is_trusted ? path : "/dev/null",
			1);
		result = ask(&check, HERE);
		expect_words(certificates[i].what, &result, certificates[i].words);
	}
	odd_server_stop(&server);
	odd_tls_destroy(server.tls);

	server = (struct odd_server){.manner = ODD_ANSWER, .text = OK};
	odd_server_start(&server);
	struct hc_check check = make_check(HC_HTTPS, server.port);

	check.timeout_ns = 2 * S;
	const struct hc_result result = ask(&check, HERE);

	EXPECT(!result.has_passed && strncmp(result.words, "TLS handshake: ", 15) == 0,
		"no TLS at all: %s", result.words);
	odd_server_stop(&server);
	(void)unlink(path);
}

/* With TLS, and a certificate that nobody trusts. */
static void
start_tls(struct odd_server *server)
{
	char path[] = "/tmp/shunt-test-XXXXXX";
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)close(fd);
	server->tls = odd_tls_create("right.example.org", path);
	(void)unlink(path);
}

/* Results of one https target, one after the other, until it has n. @return how many failed. */
static unsigned int
count_failures(struct odd_server *server, unsigned int n)
{
	struct hc_prober *prober = make_prober();
	struct hc_check check;
	struct hc_target target = {.id = 1, .address = parse(HERE), .check = &check};
	unsigned int n_failed = 0;

	odd_server_start(server);
	check = make_check(HC_HTTPS, server->port);
	check.interval_ns = 5 * MS;
	set(prober, &target, 1);
	while (n > 0) {
		struct hc_result *results;
		const size_t n_more = take_some(prober, &results);

		for (size_t i = 0; i < n_more && n > 0; i++, n--)
			n_failed += !results[i].has_passed;
		free(results);
	}
	hc_prober_destroy(prober);
	odd_server_stop(server);
	return n_failed;
}

static void
test_no_end_of_tickets_is_not_waited_for(void **state)
{
	struct odd_server server = {.manner = ODD_TICKETS};
	struct hc_result result;
	struct hc_check check;

	(void)state;
	start_tls(&server);
	odd_server_start(&server);
	check = make_check(HC_HTTPS, server.port);
	result = ask(&check, HERE);
	odd_server_stop(&server);
	odd_tls_destroy(server.tls);
	expect_words("tickets", &result, "status: no end of TLS messages before it");
}

static void
test_sessions_are_resumed_while_the_server_is_well(void **state)
{
	struct odd_server server = {.manner = ODD_ANSWER, .text = OK};

	(void)state;
	start_tls(&server);
	assert_int_equal(count_failures(&server, 5), 0);
	EXPECT(server.n_resumed >= 4, "%u resumed", server.n_resumed);
	/* Whoever fails is asked for its certificate. */
	server.text = BAD;
	assert_int_equal(count_failures(&server, 5), 5);
	EXPECT(server.n_resumed == 0, "%u resumed", server.n_resumed);
	odd_tls_destroy(server.tls);
}

static void
test_a_server_that_cannot_resume_is_found_out_once(void **state)
{
	struct odd_server server = {.manner = ODD_ANSWER, .text = OK};

	(void)state;
	start_tls(&server);
	odd_tls_refuse_sessions(server.tls);
	assert_int_equal(count_failures(&server, 8), 1);
	odd_tls_destroy(server.tls);
}

static void
test_a_want_of_files_is_no_failure(void **state)
{
	struct hc_check check = make_check(HC_TCP, odd_closed_port());
	const struct hc_target target = {.id = 1, .address = parse(HERE), .check = &check};
	struct hc_prober *prober = make_prober();
	struct hc_result *results;
	struct rlimit before;
	struct rlimit none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	set(prober, &target, 1);
	(void)take_some(prober, &results);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	EXPECT(!results[0].is_asked && !results[0].has_passed, "asked");
	assert_string_equal(results[0].words, "socket: Too many open files");
	free(results);
	hc_prober_destroy(prober);
}

#define N_MANY 500

static void
test_each_of_many_is_asked_again_and_again(void **state)
{
	struct odd_server server = {.manner = ODD_CLOSE};
	struct hc_target *targets = calloc(N_MANY, sizeof(*targets));
	unsigned int *n_of = calloc(N_MANY, sizeof(*n_of));
	struct hc_prober *prober = make_prober();
	size_t n_left = N_MANY;
	struct hc_check check;

	(void)state;
	assert_true(targets != NULL && n_of != NULL);
	odd_server_start(&server);
	check = make_check(HC_TCP, server.port);
	check.interval_ns = 200 * MS;
	for (size_t i = 0; i < N_MANY; i++)
		targets[i] = (struct hc_target){.id = N_MANY - i, /* in no order */
			.address = parse(HERE),
			.check = &check};
	set(prober, targets, N_MANY);
	while (n_left > 0) {
		struct hc_result *results;
		const size_t n = take_some(prober, &results);

		for (size_t i = 0; i < n; i++) {
			EXPECT(results[i].id >= 1 && results[i].id <= N_MANY, "whose?");
			n_left -= ++n_of[results[i].id - 1] == 3;
		}
		free(results);
	}
	hc_prober_destroy(prober);
	odd_server_stop(&server);
	free(n_of);
	free(targets);
}

static void
test_who_is_late_keeps_its_place_in_the_interval(void **state)
{
	(void)state;
	assert_int_equal(hc_probe_next(100, 10, 100), 110);
	assert_int_equal(hc_probe_next(100, 10, 109), 110);
	assert_int_equal(hc_probe_next(100, 10, 110), 120);
	assert_int_equal(hc_probe_next(103, 10, 1000), 1003);
	assert_int_equal(hc_probe_next(107, 10, 1000), 1007);
}

/* So many, so often, that no machine can ask them all. */
#define N_TOO_MANY 2000

static void
test_too_many_are_asked_more_rarely_and_all_are_heard(void **state)
{
	struct hc_target *targets = calloc(N_TOO_MANY, sizeof(*targets));
	bool *is_asked = calloc(N_TOO_MANY, sizeof(*is_asked));
	struct odd_server server = {.manner = ODD_CLOSE};
	struct hc_prober *prober = make_prober();
	size_t n_left = N_TOO_MANY;
	size_t n_failed = 0;
	struct hc_check check;
	struct rlimit before;
	struct rlimit few;

	(void)state;
	assert_true(targets != NULL && is_asked != NULL);
	/* Nor have all of them a file at a time. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = N_TOO_MANY / 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	odd_server_start(&server);
	check = make_check(HC_TCP, server.port);
	check.interval_ns = check.timeout_ns = 20 * MS;
	for (size_t i = 0; i < N_TOO_MANY; i++)
		targets[i] =
			(struct hc_target){.id = i, .address = parse(HERE), .check = &check};
	set(prober, targets, N_TOO_MANY);
	while (n_left > 0) {
		struct hc_result *results;
		const size_t n = take_some(prober, &results);

		for (size_t i = 0; i < n; i++) {
			n_failed += !results[i].has_passed;
			n_left -= !is_asked[results[i].id];
			is_asked[results[i].id] = true;
		}
		free(results);
	}
	EXPECT(n_failed == 0, "%zu failed", n_failed);
	hc_prober_destroy(prober);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	odd_server_stop(&server);
	free(is_asked);
	free(targets);
}

/* Open files of this process. */
static size_t
count_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		n++;
	(void)closedir(folder);
	return n;
}

#define N_HANGING 60
#define N_AT_ONCE 10

static void
test_no_more_at_a_time_than_may_be(void **state)
{
	struct odd_server server = {.manner = ODD_HANG};
	struct hc_target targets[N_HANGING];
	unsigned int n_of[N_HANGING] = {0};
	struct hc_prober *prober = make_prober();
	size_t n_left = N_HANGING;
	struct hc_check check;
	size_t n_before;

	(void)state;
	odd_server_start(&server);
	check = make_check(HC_HTTP, server.port);
	check.interval_ns = check.timeout_ns = 20 * MS;
	for (size_t i = 0; i < N_HANGING; i++)
		targets[i] =
			(struct hc_target){.id = i, .address = parse(HERE), .check = &check};
	n_before = count_files();
	assert_int_equal(hc_prober_set(prober, targets, N_HANGING, N_AT_ONCE), 0);
	while (n_left > 0) {
		struct hc_result *results;
		const size_t n = take_some(prober, &results);
		const size_t n_files = count_files();

		/* And the one that the server has taken. */
		EXPECT(n_files <= n_before + N_AT_ONCE + 1, "%zu files", n_files - n_before);
		for (size_t i = 0; i < n; i++) {
			EXPECT(results[i].is_asked, "it waits: %s", results[i].words);
			n_left -= ++n_of[results[i].id] == 2;
		}
		free(results);
	}
	hc_prober_destroy(prober);
	odd_server_stop(&server);
}

/* Until a target has a result, and that says what it should. */
static void
wait_for(struct hc_prober *prober, uint64_t id, bool has_passed)
{
	for (;;) {
		struct hc_result *results;
		const size_t n = take_some(prober, &results);
		bool is_there = false;

		for (size_t i = 0; i < n; i++)
			is_there |= results[i].id == id && results[i].has_passed == has_passed;
		free(results);
		if (is_there)
			return;
	}
}

static void
test_who_is_asked_changes(void **state)
{
	struct odd_server server = {.manner = ODD_HANG};
	struct hc_prober *prober = make_prober();
	struct hc_check silent;
	struct hc_check refused = make_check(HC_TCP, odd_closed_port());
	struct hc_target both[2];
	struct hc_result *results;

	(void)state;
	odd_server_start(&server);
	silent = make_check(HC_HTTP, server.port);
	silent.interval_ns = silent.timeout_ns = 3600 * S;
	refused.interval_ns = 20 * MS;
	both[0] = (struct hc_target){.id = 2, .address = parse(HERE), .check = &refused};
	both[1] = (struct hc_target){.id = 1, .address = parse(HERE), .check = &silent};

	/* One that is being asked goes on being asked. */
	set(prober, both, 2);
	while (server.n_taken == 0)
		(void)usleep(1000);
	for (unsigned int i = 0; i < 20; i++) {
		set(prober, both, 2);
		wait_for(prober, 2, false);
	}
	EXPECT(server.n_taken == 1, "%u connections", server.n_taken);

	/* One that is asked something else is asked that. */
	both[1].check = &refused;
	set(prober, both, 2);
	wait_for(prober, 1, false);

	/* Another with its questions is another. */
	set(prober, both, 1);
	wait_for(prober, 2, false);
	set(prober, &both[1], 1);
	wait_for(prober, 1, false);

	/* Nobody: what comes is from before, and then nothing does. */
	set(prober, both, 0);
	set(prober, &both[1], 1);
	for (unsigned int i = 0; i < 5; i++)
		wait_for(prober, 1, false);
	const size_t n = take_some(prober, &results);

	for (size_t i = 0; i < n; i++)
		EXPECT(results[i].id == 1, "one that is asked no more");
	free(results);
	hc_prober_destroy(prober);
	odd_server_stop(&server);
}

static void
test_it_ends_whoever_hangs(void **state)
{
	struct odd_server server = {.manner = ODD_HANG};
	struct hc_prober *prober = make_prober();
	struct hc_check check;
	struct hc_target target = {.id = 1, .address = parse(HERE)};

	(void)state;
	odd_server_start(&server);
	check = make_check(HC_HTTP, server.port);
	check.interval_ns = check.timeout_ns = 3600 * S;
	target.check = &check;
	set(prober, &target, 1);
	while (server.n_taken == 0)
		(void)usleep(1000);
	hc_prober_destroy(prober);
	odd_server_stop(&server);
	hc_prober_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_servers_of_all_manners_get_their_words),
		cmocka_unit_test(test_who_is_not_there_is_told_from_who_is_silent),
		cmocka_unit_test(test_silence_is_enough_of_udp_unless_a_reply_is_wanted),
		cmocka_unit_test(test_silence_after_a_refusal_is_doubted),
		cmocka_unit_test(test_echo_is_answered_or_not_asked),
		cmocka_unit_test(test_strangers_replies_are_not_looked_at_without_end),
		cmocka_unit_test(test_a_certificate_is_held_against_the_host),
		cmocka_unit_test(test_no_end_of_tickets_is_not_waited_for),
		cmocka_unit_test(test_sessions_are_resumed_while_the_server_is_well),
		cmocka_unit_test(test_a_server_that_cannot_resume_is_found_out_once),
		cmocka_unit_test(test_a_want_of_files_is_no_failure),
		cmocka_unit_test(test_each_of_many_is_asked_again_and_again),
		cmocka_unit_test(test_who_is_late_keeps_its_place_in_the_interval),
		cmocka_unit_test(test_too_many_are_asked_more_rarely_and_all_are_heard),
		cmocka_unit_test(test_no_more_at_a_time_than_may_be),
		cmocka_unit_test(test_who_is_asked_changes),
		cmocka_unit_test(test_it_ends_whoever_hangs),
	};

	/* OpenSSL writes without MSG_NOSIGNAL; the prober's thread takes no signal, the
	 * servers' do.
	 */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
