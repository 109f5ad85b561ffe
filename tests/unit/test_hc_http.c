/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "hc_http.h"

static const struct {
	const char *what;
	const char *answer;
	int want;
} answers[] = {
	{"a usual one", "HTTP/1.1 200 OK\r\n", 200},
	{"HTTP/1.0", "HTTP/1.0 404 Not Found\r\n", 404},
	{"no reason, and its blank", "HTTP/1.1 503 \r\n", 503},
	{"no reason, and no blank", "HTTP/1.1 503\r\n", 503},
	{"a line's end alone", "HTTP/1.1 204\n", 204},
	{"the least status", "HTTP/1.1 101 Switching Protocols\r\n", 101},
	{"an interim answer", "HTTP/1.1 100 Continue\r\n", 0},
	{"one, and what is meant",
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n", 200},
	{"two, the least there can be", "HTTP/1.1 100\n\nHTTP/1.1 102 \n\nHTTP/1.1 404 ", 404},
	{"one, and no HTTP", "HTTP/1.1 100 Continue\r\n\r\nhello", -EBADMSG},
	{"the greatest", "HTTP/1.1 599 \r\n", 599},
	{"a status too small", "HTTP/1.1 099 \r\n", -EBADMSG},
	{"a status too great", "HTTP/1.1 600 \r\n", -EBADMSG},
	{"a status of four digits", "HTTP/1.1 2000 OK\r\n", -EBADMSG},
	{"a status of two", "HTTP/1.1 20 OK\r\n", -EBADMSG},
	{"letters", "HTTP/1.1 2x0 OK\r\n", -EBADMSG},
	{"HTTP/2", "HTTP/2 200\r\n....", -EBADMSG},
	{"another program", "SSH-2.0-OpenSSH_9.2\r\n", -EBADMSG},
	{"HTTP/0.9", "<html>hello, world</html>", -EBADMSG},
	{"small letters", "http/1.1 200 OK\r\n", -EBADMSG},
	{"an empty line first", "\r\nHTTP/1.1 200 OK\r\n", -EBADMSG},
	{"a byte is missing", "HTTP/1.1 200", 0},
	{"nothing", "", 0},
};

static void
test_a_status_is_read_whole_or_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(answers); i++) {
		const size_t n = strlen(answers[i].answer);
		/* At exact length, so that a byte too many is seen. */
		char *text = malloc(n + (n == 0));
		struct hc_http whole = {0};
		struct hc_http parts = {0};
		int got;

		assert_non_null(text);
		memcpy(text, answers[i].answer, n);
		got = hc_http_read(&whole, text, n);
		EXPECT(got == answers[i].want, "%s: %d", answers[i].what, got);
		got = 0;
		for (size_t k = 0; k < n && got == 0; k++)
			got = hc_http_read(&parts, text + k, 1);
		EXPECT(got == answers[i].want, "%s, byte by byte: %d", answers[i].what, got);
		free(text);
	}
}

static void
test_interim_answers_without_end_are_none(void **state)
{
	static const char first[] = "HTTP/1.1 100 ";
	struct hc_http http = {0};
	size_t n = 0;
	int got;

	(void)state;
	assert_int_equal(hc_http_read(&http, first, sizeof(first) - 1), 0);
	do {
		got = hc_http_read(&http, n % 80 == 79 ? "\n" : "x", 1);
		n++;
	} while (got == 0);
	assert_int_equal(got, -EBADMSG);
	assert_int_equal(n, HC_HTTP_INTERIM_BYTES_MAX + 1);
}

static const struct {
	const char *what;
	enum hc_type type;
	uint16_t port;
	const char *address;
	const char *path;
	const char *host;
	const char *want; /* the first two lines */
} requests[] = {
	{"a name", HC_HTTP, 80, "10.0.0.1", "/", "www.example.org",
		"GET / HTTP/1.1\r\nHost: www.example.org\r\n"},
	{"a name and a port", HC_HTTP, 8080, "10.0.0.1", "/a?b=c", "www.example.org",
		"GET /a?b=c HTTP/1.1\r\nHost: www.example.org:8080\r\n"},
	{"no name", HC_HTTP, 80, "10.0.0.1", "/", NULL, "GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n"},
	{"no name, IPv6 and a port", HC_HTTP, 81, "2001:db8::1", "/", NULL,
		"GET / HTTP/1.1\r\nHost: [2001:db8::1]:81\r\n"},
	{"https' own port", HC_HTTPS, 443, "2001:db8::1", "/", NULL,
		"GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n"},
	{"http's port is not https'", HC_HTTPS, 80, "10.0.0.1", "/", "a",
		"GET / HTTP/1.1\r\nHost: a:80\r\n"},
};

static void
test_a_request_names_whom_it_is_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(requests); i++) {
		const struct hc_check check = {.type = requests[i].type,
			.port = requests[i].port,
			.path = requests[i].path,
			.host = requests[i].host};
		struct hc_target target = {.check = &check};
		char text[HC_HTTP_REQUEST_BYTES_MAX];
		size_t n;

		assert_int_equal(lb_addr_parse(requests[i].address, &target.address), 0);
		n = hc_http_write(&target, text);
		EXPECT(n == strlen(text), "%s: length", requests[i].what);
		EXPECT(strncmp(text, requests[i].want, strlen(requests[i].want)) == 0,
			"%s:\n%s", requests[i].what, text);
		EXPECT(n > 4 && strcmp(text + n - 4, "\r\n\r\n") == 0, "%s: its end",
			requests[i].what);
		EXPECT(strstr(text, "\r\nConnection: close\r\n") != NULL, "%s: it closes",
			requests[i].what);
	}
}

static void
test_the_longest_request_fits(void **state)
{
	static char path[HC_PATH_BYTES_MAX + 1];
	static char host[HC_HOST_BYTES_MAX + 1];
	const struct hc_check check = {.type = HC_HTTP,
		.port = 65535,
		.path = path,
		.host = host};
	const struct hc_target target = {.check = &check};
	char *text = malloc(HC_HTTP_REQUEST_BYTES_MAX);
	size_t n;

	(void)state;
	assert_non_null(text);
	memset(path, '/', HC_PATH_BYTES_MAX);
	memset(host, 'h', HC_HOST_BYTES_MAX);
	n = hc_http_write(&target, text);
	EXPECT(strcmp(text + n - 4, "\r\n\r\n") == 0, "it is cut off");
	EXPECT(strstr(text, "hhh:65535\r\n") != NULL, "the host is cut off");
	free(text);
}

static void
test_statuses_are_held_against_ranges(void **state)
{
	const struct hc_check check = {.expect = {{200, 299}, {404, 404}}, .n_expect = 2};

	(void)state;
	EXPECT(!hc_check_expects(&check, 199), "199");
	EXPECT(hc_check_expects(&check, 200), "200");
	EXPECT(hc_check_expects(&check, 299), "299");
	EXPECT(!hc_check_expects(&check, 300), "300");
	EXPECT(hc_check_expects(&check, 404), "404");
	EXPECT(!hc_check_expects(&check, 405), "405");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_status_is_read_whole_or_byte_by_byte),
		cmocka_unit_test(test_interim_answers_without_end_are_none),
		cmocka_unit_test(test_a_request_names_whom_it_is_for),
		cmocka_unit_test(test_the_longest_request_fits),
		cmocka_unit_test(test_statuses_are_held_against_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
