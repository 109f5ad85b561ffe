/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_client.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl_rpc.h"
#include "expect.h"
#include "lb_compiler.h"

/* The client blocks, so its server is another process: the daemon's own, or one that says
 * what it is told to. */

#define PATH_BYTES 64
#define WAIT_MS    5000u

static char folder[PATH_BYTES];
static char path[PATH_BYTES + 8];
static pid_t server;

/* A server process. */

static struct ctl_loop *loop;

static void
echo(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	ctl_call_result(call, params == NULL ? json_null() : json_deep_copy(params));
}

static void
refuse(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	(void)params;
	ctl_call_error(call, CTL_RPC_REFUSED, "no");
}

static void
answer(void *context)
{
	ctl_call_result(context, json_string("late"));
}

static void
wait_a_moment(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	(void)params;
	(void)ctl_loop_add_timer(loop, 100, 0, answer, call, NULL);
}

static const struct ctl_method methods[] = {
	{"echo", echo},
	{"refuse", refuse},
	{"wait", wait_a_moment},
};

static void
on_signal(void *context, int number)
{
	(void)context;
	(void)number;
	ctl_loop_stop(loop);
}

static int
serve(int ready_fd)
{
	const int signals[] = {SIGTERM};
	struct ctl_rpc *rpc;
	int ret;

	if (ctl_loop_create(&loop) != 0 ||
		ctl_loop_take_signals(loop, signals, 1, on_signal, NULL) != 0 ||
		ctl_rpc_open(loop, path, methods, LB_N_ELEMENTS(methods), NULL, &rpc) != 0 ||
		write(ready_fd, "r", 1) != 1)
		return 1;
	ret = ctl_loop_run(loop);
	ctl_rpc_close(rpc);
	ctl_loop_destroy(loop);
	return ret == 0 ? 0 : 1;
}

/* What a server is to say that is not ours; NULL in its place: says nothing. */
static const char *script;

/* Takes one client and one request, says its text, and closes where that has a line's end. */
static int
recite(int ready_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char request[1000];
	int client;

	memcpy(address.sun_path, path, strlen(path));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(fd, 1) != 0 || write(ready_fd, "r", 1) != 1)
		return 1;
	client = accept(fd, NULL, NULL);
	if (client < 0 || recv(client, request, sizeof(request), 0) <= 0)
		return 1;
	if (script != NULL && send(client, script, strlen(script), MSG_NOSIGNAL) < 0)
		return 1;
	if (script == NULL)
		(void)pause();
	return 0;
}

static void
start(int (*run)(int ready_fd))
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0)
		_exit(run(ready[1]));
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(close(ready[0]), 0);
}

static int
make_folder(void **state)
{
	(void)state;
	server = 0;
	(void)snprintf(folder, sizeof(folder), "/tmp/shunt-client-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/sock", folder);
	return 0;
}

/* How the server ended: its exit status. */
static int
end_server(void)
{
	int status = 0;

	if (server > 0) {
		(void)kill(server, SIGTERM);
		(void)waitpid(server, &status, 0);
	}
	server = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
remove_folder(void **state)
{
	(void)state;
	(void)end_server();
	(void)unlink(path);
	return rmdir(folder);
}

static struct ctl_client *
open_client(void)
{
	struct ctl_client *client = NULL;

	assert_int_equal(ctl_client_open(path, WAIT_MS, &client), 0);
	return client;
}

/* Tests. */

static void
test_a_result_and_an_error_come_back(void **state)
{
	struct ctl_client_error error = {.code = 0};
	struct ctl_client *client;
	json_t *params = json_pack("{s:[i,s]}", "a", 1, "\xc3\xa9");
	json_t *result = NULL;

	(void)state;
	start(serve);
	client = open_client();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ctl_client_call(client, "echo", params, WAIT_MS, &result,
					 &error),
			0);
		assert_true(json_equal(params, result));
		json_decref(result);
		result = NULL;

		assert_int_equal(ctl_client_call(client, "refuse", NULL, WAIT_MS, &result,
					 &error),
			-EREMOTEIO);
		assert_int_equal(error.code, CTL_RPC_REFUSED);
		assert_string_equal(error.message, "no");
		assert_null(result);
		free(error.message);
	}
	assert_int_equal(params->refcount, 1);
	json_decref(params);
	assert_int_equal(ctl_client_call(client, "echo", NULL, WAIT_MS, &result, &error), 0);
	assert_true(json_is_null(result));
	json_decref(result);
	ctl_client_close(client);
	assert_int_equal(end_server(), 0);
}

static void
test_a_late_answer_is_not_the_next_calls(void **state)
{
	struct ctl_client_error error = {.code = 0};
	struct ctl_client *client;
	json_t *result = NULL;

	(void)state;
	start(serve);
	client = open_client();
	assert_int_equal(ctl_client_call(client, "wait", NULL, 20, &result, &error),
		-ETIMEDOUT);
	assert_null(result);
	(void)usleep(150000);
	assert_int_equal(ctl_client_call(client, "echo", NULL, WAIT_MS, &result, &error), 0);
	assert_true(json_is_null(result));
	json_decref(result);
	assert_int_equal(ctl_client_call(client, "wait", NULL, WAIT_MS, &result, &error), 0);
	assert_string_equal(json_string_value(result), "late");
	json_decref(result);
	ctl_client_close(client);
}

static void
test_it_waits_for_ever_where_it_is_told_to(void **state)
{
	struct ctl_client_error error = {.code = 0};
	struct ctl_client *client = NULL;
	json_t *result = NULL;

	(void)state;
	start(serve);
	assert_int_equal(ctl_client_open(path, CTL_CLIENT_FOR_EVER, &client), 0);
	assert_int_equal(ctl_client_call(client, "wait", NULL, CTL_CLIENT_FOR_EVER, &result,
				 &error),
		0);
	assert_string_equal(json_string_value(result), "late");
	json_decref(result);
	ctl_client_close(client);
}

/* Parameters of so many bytes, their quotes and brackets counted. */
static json_t *
make_params(size_t n)
{
	char *text = malloc(n);
	json_t *params;

	assert_non_null(text);
	memset(text, 'x', n);
	params = json_pack("[s#]", text, n - 4);
	free(text);
	return params;
}

static void
test_long_requests_and_answers_pass_and_too_long_ones_are_told_so(void **state)
{
	struct ctl_client_error error = {.code = 0};
	struct ctl_client *client;
	json_t *params = make_params(1000000);
	json_t *result = NULL;

	(void)state;
	start(serve);
	client = open_client();
	assert_int_equal(ctl_client_call(client, "echo", params, WAIT_MS, &result, &error), 0);
	assert_true(json_equal(params, result));
	json_decref(result);
	json_decref(params);

	result = NULL;
	params = make_params(3000000);
	assert_int_equal(ctl_client_call(client, "echo", params, WAIT_MS, &result, &error),
		-EREMOTEIO);
	assert_int_equal(error.code, CTL_RPC_INVALID_REQUEST);
	assert_string_equal(error.message, "a request of more than 1048576 bytes is not taken");
	free(error.message);
	assert_int_equal(ctl_client_call(client, "echo", NULL, WAIT_MS, &result, &error),
		-EPIPE);
	assert_null(result);
	json_decref(params);
	ctl_client_close(client);
	assert_int_equal(end_server(), 0);
}

static void
test_one_client_too_many_is_told_so(void **state)
{
	struct ctl_client *clients[CTL_RPC_CLIENTS_MAX + 1];
	struct ctl_client_error error = {.code = 0};
	json_t *result = NULL;

	(void)state;
	start(serve);
	for (size_t i = 0; i <= CTL_RPC_CLIENTS_MAX; i++)
		clients[i] = open_client();
	assert_int_equal(ctl_client_call(clients[CTL_RPC_CLIENTS_MAX], "echo", NULL, WAIT_MS,
				 &result, &error),
		-EREMOTEIO);
	assert_string_equal(error.message,
		"64 clients are connected already, and no more are taken");
	free(error.message);
	for (size_t i = 0; i <= CTL_RPC_CLIENTS_MAX; i++)
		ctl_client_close(clients[i]);
}

static void
test_what_is_no_answer_is_refused(void **state)
{
	static const struct {
		const char *what;
		const char *text; /* NULL: says nothing, and does not close */
		unsigned int timeout_ms;
		int ret;
	} rows[] = {
		{"nothing in time", NULL, 30, -ETIMEDOUT},
		{"an end at once", "", WAIT_MS, -ECONNRESET},
		{"an end within a line", "{\"jsonrpc\":\"2.0\",\"id\":1", WAIT_MS, -ECONNRESET},
		{"no JSON", "hello\n", WAIT_MS, -EPROTO},
		{"no object", "[1]\n", WAIT_MS, -EPROTO},
		{"a result for nobody", "{\"id\":null,\"result\":1}\n", WAIT_MS, -EPROTO},
		{"neither result nor error", "{\"id\":1}\n", WAIT_MS, -EPROTO},
		{"an error that is none", "{\"id\":1,\"error\":5}\n", WAIT_MS, -EPROTO},
		{"an error without words", "{\"id\":1,\"error\":{\"code\":5}}\n", WAIT_MS,
			-EPROTO},
		{"others' answers only", "{\"id\":7,\"result\":5}\n{\"id\":8,\"result\":5}\n",
			WAIT_MS, -ECONNRESET},
		{"others' answers before ours",
			"{\"id\":7,\"result\":5}\n{\"id\":1,\"result\":6}\n", WAIT_MS, 0},
	};

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		struct ctl_client_error error = {.code = 0};
		struct ctl_client *client;
		json_t *result = NULL;
		int ret;

		script = rows[i].text;
		start(recite);
		client = open_client();
		ret = ctl_client_call(client, "x", NULL, rows[i].timeout_ms, &result, &error);
		EXPECT(ret == rows[i].ret, "%s: %d", rows[i].what, ret);
		EXPECT(json_integer_value(result) == (ret == 0 ? 6 : 0), "%s", rows[i].what);
		json_decref(result);
		ctl_client_close(client);
		(void)end_server();
		assert_int_equal(unlink(path), 0);
	}
}

static void
test_where_nobody_listens_says_so(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ctl_client *client = NULL;
	char name[200];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ctl_client_open(name, WAIT_MS, &client), -ENAMETOOLONG);
	assert_int_equal(ctl_client_open("", WAIT_MS, &client), -EINVAL);
	assert_int_equal(ctl_client_open(path, WAIT_MS, &client), -ENOENT);
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(ctl_client_open(path, WAIT_MS, &client), -ECONNREFUSED);

	/* A backlog for one, and nobody who accepts. */
	assert_int_equal(listen(fd, 0), 0);
	for (int i = 0; i < 2; i++) {
		const int ret = ctl_client_open(path, 30, &client);

		assert_int_equal(ret, i == 0 ? 0 : -ETIMEDOUT);
		if (i == 0)
			ctl_client_close(client);
	}
	assert_int_equal(close(fd), 0);
	ctl_client_close(NULL);
}

#define CLIENT_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(test_a_result_and_an_error_come_back),
		CLIENT_TEST(test_a_late_answer_is_not_the_next_calls),
		CLIENT_TEST(test_it_waits_for_ever_where_it_is_told_to),
		CLIENT_TEST(test_long_requests_and_answers_pass_and_too_long_ones_are_told_so),
		CLIENT_TEST(test_one_client_too_many_is_told_so),
		CLIENT_TEST(test_what_is_no_answer_is_refused),
		CLIENT_TEST(test_where_nobody_listens_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
