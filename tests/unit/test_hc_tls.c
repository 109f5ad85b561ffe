/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of TLS: which handshakes resume one, and for how long. Sockets block here. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "expect.h"
#include "hc_http.h"
#include "hc_probe.h"
#include "hc_tls.h"
#include "odd_server.h"

#define S  UINT64_C(1000000000)
#define OK "HTTP/1.1 200 OK\r\n\r\n"

struct fixture {
	struct odd_server server;
	struct hc_tls_context *context;
	struct hc_check check;
	struct hc_target target;
	struct hc_tls_session session;
};

static void
begin(struct fixture *fixture)
{
	char path[] = "/tmp/shunt-test-XXXXXX";
	const int fd = mkstemp(path);
	char words[HC_WORDS_BYTES];

	assert_true(fd >= 0);
	(void)close(fd);
	*fixture = (struct fixture){.server = {.manner = ODD_ANSWER, .text = OK}};
	fixture->server.tls = odd_tls_create("right.example.org", path);
	(void)setenv("SSL_CERT_FILE", path, 1);
	fixture->context = hc_tls_context_create(words);
	assert_non_null(fixture->context);
	odd_server_start(&fixture->server);
	fixture->check = (struct hc_check){.type = HC_HTTPS,
		.port = fixture->server.port,
		.host = "right.example.org",
		.is_verified = true,
		.path = "/"};
	fixture->target = (struct hc_target){.id = 1, .check = &fixture->check};
	assert_int_equal(lb_addr_parse("127.0.0.1", &fixture->target.address), 0);
	(void)unlink(path);
}

static void
end(struct fixture *fixture)
{
	hc_tls_session_drop(&fixture->session);
	hc_tls_context_destroy(fixture->context);
	odd_server_stop(&fixture->server);
	odd_tls_destroy(fixture->server.tls);
}

static int
open_socket(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* A whole check. @return what the handshake came to. */
static int
ask(struct fixture *fixture, uint64_t now_ns)
{
	char request[HC_HTTP_REQUEST_BYTES_MAX];
	const size_t n = hc_http_write(&fixture->target, request);
	const int fd = open_socket(fixture->server.port);
	char words[HC_WORDS_BYTES] = "";
	struct hc_tls *tls;
	char byte;
	int ret;

	tls = hc_tls_open(fixture->context, fd, &fixture->target, now_ns, &fixture->session);
	assert_non_null(tls);
	EXPECT(hc_tls_has_offered(tls) == (fixture->session.handle != NULL), "offered");
	ret = hc_tls_handshake(tls, words);
	if (ret == 0) {
		assert_int_equal(hc_tls_send(tls, request, n, words), n);
		assert_int_equal(hc_tls_receive(tls, &byte, 1, words), 1);
		hc_tls_keep(tls, now_ns, &fixture->session);
	}
	hc_tls_close(tls);
	(void)close(fd);
	return ret;
}

static void
test_each_next_check_resumes_until_its_time_is_over(void **state)
{
	struct fixture fixture;
	uint64_t until_ns;

	(void)state;
	begin(&fixture);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(ask(&fixture, (100 + i) * S), 0);
		EXPECT(fixture.server.n_resumed == i, "%u of %u", fixture.server.n_resumed, i);
	}
	/* Of the first of them, however many have resumed it. */
	until_ns = fixture.session.until_ns;
	EXPECT(until_ns >= 100 * S + HC_TLS_SESSION_NS / 2 &&
			until_ns < 100 * S + HC_TLS_SESSION_NS,
		"a minute at most");
	assert_int_equal(ask(&fixture, until_ns - 1), 0);
	assert_int_equal(fixture.server.n_resumed, 4);
	assert_int_equal(ask(&fixture, until_ns), 0);
	assert_int_equal(fixture.server.n_resumed, 4);
	assert_int_equal(ask(&fixture, until_ns), 0);
	assert_int_equal(fixture.server.n_resumed, 5);
	hc_tls_session_drop(&fixture.session);
	assert_int_equal(ask(&fixture, until_ns), 0);
	assert_int_equal(fixture.server.n_resumed, 5);
	end(&fixture);
}

static void
test_who_is_asked_at_once_shows_its_certificate_at_different_times(void **state)
{
	enum { N = 30 };
	uint64_t untils[N];
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	for (size_t i = 0; i < N; i++) {
		fixture.target.id = i;
		hc_tls_session_drop(&fixture.session);
		assert_int_equal(ask(&fixture, 0), 0);
		untils[i] = fixture.session.until_ns;
		for (size_t k = 0; k < i; k++) {
			const uint64_t gap_ns = untils[i] > untils[k] ? untils[i] - untils[k]
								      : untils[k] - untils[i];

			EXPECT(gap_ns > S / 4, "%zu and %zu: %g s", i, k, (double)gap_ns / 1e9);
		}
	}
	end(&fixture);
}

static void
test_a_certificate_that_was_not_right_is_never_resumed(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	fixture.check.host = "wrong.example.org";
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ask(&fixture, 0), -EPROTO);
	assert_null(fixture.session.handle);
	end(&fixture);
}

static void
test_no_server_chooses_how_dear_a_key_is(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	assert_int_equal(SSL_CTX_set1_groups_list(fixture.server.tls, "ffdhe8192"), 1);
	assert_int_equal(ask(&fixture, 0), -EPROTO);
	assert_int_equal(SSL_CTX_set1_groups_list(fixture.server.tls, "P-521:ffdhe8192"), 1);
	assert_int_equal(ask(&fixture, 0), 0);
	end(&fixture);
}

static void
test_a_failure_ends_a_session_and_a_want_of_something_here_does_not(void **state)
{
	struct fixture fixture;
	struct hc_probe probe;

	(void)state;
	begin(&fixture);
	assert_int_equal(ask(&fixture, 0), 0);
	hc_probe_init(&probe, &fixture.target);
	probe.session = fixture.session;
	fixture.session = (struct hc_tls_session){0};
	hc_probe_end(&probe, HC_NOT_ASKED);
	assert_non_null(probe.session.handle);
	hc_probe_end(&probe, HC_FAILED);
	assert_null(probe.session.handle);
	hc_probe_fini(&probe);
	end(&fixture);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_next_check_resumes_until_its_time_is_over),
		cmocka_unit_test(
			test_who_is_asked_at_once_shows_its_certificate_at_different_times),
		cmocka_unit_test(test_a_certificate_that_was_not_right_is_never_resumed),
		cmocka_unit_test(test_no_server_chooses_how_dear_a_key_is),
		cmocka_unit_test(
			test_a_failure_ends_a_session_and_a_want_of_something_here_does_not),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
