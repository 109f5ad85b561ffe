/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_rpc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "lb_compiler.h"

/*
 * Server and clients are one thread: the clients do not block, and the loop gets its turns
 * between.
 */

#define PATH_BYTES   64
#define WAIT_MS      60000
#define LATER_MAX    2000
#define ORDER_BYTES  4096
#define ANSWER_BYTES 4096
#define FIRST_PID    1000
#define PING         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"
#define PONG         "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"

static struct ctl_loop *loop;
static struct ctl_rpc *rpc;
static char folder[PATH_BYTES];
static char path[PATH_BYTES + 8];

/* What the server takes the time for: the clock's, and this. Frozen: this alone. */
static uint64_t shift_ms;
static bool is_frozen;

/* Calls that the method "later" keeps, and who called "mark", in order. */
static struct ctl_call *later[LATER_MAX];
static size_t n_later;
static char order[ORDER_BYTES];
static size_t n_order;

uint64_t __real_ctl_loop_now_ms(void);
uint64_t __wrap_ctl_loop_now_ms(void);

uint64_t
__wrap_ctl_loop_now_ms(void)
{
	return is_frozen ? shift_ms : __real_ctl_loop_now_ms() + shift_ms;
}

/* The user at the other end of each connection; -1: whoever it is. */
static uid_t peer_uid = (uid_t)-1;
/* And the process; 0: each its own, one after the other. */
static pid_t peer_pid;
static pid_t next_pid;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *n_bytes);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n_bytes);

int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n_bytes)
{
	const int ret = __real_getsockopt(fd, level, name, value, n_bytes);

	if (name == SO_PEERCRED && peer_uid != (uid_t)-1)
		((struct ucred *)value)->uid = peer_uid;
	if (name == SO_PEERCRED)
		((struct ucred *)value)->pid = peer_pid != 0 ? peer_pid : next_pid++;
	return ret;
}

/* Methods. */

static void
echo(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	ctl_call_result(call, params == NULL ? json_null() : json_deep_copy(params));
}

static void
refuse(void *context, const json_t *params, struct ctl_call *call)
{
	(void)params;
	ctl_call_error(call, CTL_RPC_REFUSED, "no %s", (const char *)context);
}

static void
refuse_in_bytes(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	(void)params;
	ctl_call_error(call, CTL_RPC_INVALID_PARAMS, "caf\xc3");
}

static void
give_nothing(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	(void)params;
	ctl_call_result(call, NULL);
}

static void
give_bytes(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	(void)params;
	ctl_call_result(call, json_string_nocheck("\xff"));
}

/* Its first parameter is the text of its result; none: there was no memory for it. */
static void
give_text(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	ctl_call_text(call, json_string_value(json_array_get(params, 0)));
}

static void
keep(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	(void)params;
	assert_true(n_later < LATER_MAX);
	later[n_later++] = call;
}

static void
mark(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	assert_true(n_order < ORDER_BYTES - 1);
	order[n_order++] = json_string_value(json_array_get(params, 0))[0];
	ctl_call_result(call, json_true());
}

/* Works for a millisecond or more. */
static void
work(void *context, const json_t *params, struct ctl_call *call)
{
	const uint64_t begun_ns = ctl_loop_now_ns();

	(void)params;
	while (ctl_loop_now_ns() - begun_ns < 1000000u)
		continue;
	mark(context, params, call);
}

/* Takes as many milliseconds of a frozen clock as asked for. */
static void
take_time(void *context, const json_t *params, struct ctl_call *call)
{
	(void)context;
	shift_ms += (uint64_t)json_integer_value(json_array_get(params, 0));
	ctl_call_result(call, json_null());
}

/* As many bytes as asked for. */
static void
give_much(void *context, const json_t *params, struct ctl_call *call)
{
	const size_t n = (size_t)json_integer_value(json_array_get(params, 0));
	char *text = malloc(n + 1);

	(void)context;
	assert_non_null(text);
	memset(text, 'x', n);
	ctl_call_result(call, json_stringn(text, n));
	free(text);
}

static const struct ctl_method methods[] = {
	{"echo", echo},
	{"fail", refuse},
	{"fail_in_bytes", refuse_in_bytes},
	{"give_nothing", give_nothing},
	{"give_bytes", give_bytes},
	{"give_text", give_text},
	{"give_much", give_much},
	{"later", keep},
	{"mark", mark},
	{"take_time", take_time},
	{"work", work},
};

/* The world. */

static char tea[] = "tea";

static int
open_rpc(struct ctl_rpc **out)
{
	return ctl_rpc_open(loop, path, methods, LB_N_ELEMENTS(methods), tea, out);
}

static int
make_folder(void **state)
{
	(void)state;
	n_later = 0;
	n_order = 0;
	shift_ms = 0;
	is_frozen = false;
	peer_uid = (uid_t)-1;
	peer_pid = 0;
	next_pid = FIRST_PID;
	memset(order, 0, sizeof(order));
	(void)snprintf(folder, sizeof(folder), "/tmp/shunt-rpc-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/sock", folder);
	rpc = NULL;
	return ctl_loop_create(&loop);
}

static int
remove_folder(void **state)
{
	(void)state;
	ctl_rpc_close(rpc);
	ctl_loop_destroy(loop);
	(void)unlink(path);
	return rmdir(folder);
}

static int
start(void **state)
{
	const int ret = make_folder(state);

	return ret == 0 ? open_rpc(&rpc) : ret;
}

static void
stop(void *context)
{
	(void)context;
	ctl_loop_stop(loop);
}

/* Whatever is ready has its turn, once. */
static void
run_for(uint64_t ms)
{
	assert_int_equal(ctl_loop_add_timer(loop, ms, 0, stop, NULL, NULL), 0);
	assert_int_equal(ctl_loop_run(loop), 0);
}

static void
run_turns(int n)
{
	for (int i = 0; i < n; i++)
		run_for(0);
}

static struct ctl_rpc_stats
stats(void)
{
	struct ctl_rpc_stats out;

	ctl_rpc_read_stats(rpc, &out);
	return out;
}

/* Until no more clients than n are left. */
static void
run_until_gone(uint64_t n)
{
	const uint64_t end_ms = __real_ctl_loop_now_ms() + WAIT_MS;

	while (stats().clients > n) {
		run_for(0);
		EXPECT(__real_ctl_loop_now_ms() < end_ms, "%" PRIu64 " clients stay",
			stats().clients);
	}
}

/* Clients. */

/* Not accepted yet. */
static int
open_client(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int
connect_client(void)
{
	const int fd = open_client();

	run_turns(2);
	return fd;
}

/* The number of bytes that could be sent before the other end was gone. */
static size_t
send_bytes(int fd, const void *data, size_t n)
{
	const uint64_t end_ms = __real_ctl_loop_now_ms() + WAIT_MS;
	size_t n_sent = 0;

	while (n_sent < n) {
		const ssize_t k =
			send(fd, (const char *)data + n_sent, n - n_sent, MSG_NOSIGNAL);

		if (k >= 0)
			n_sent += (size_t)k;
		else if (errno != EAGAIN)
			break;
		run_for(0);
		EXPECT(__real_ctl_loop_now_ms() < end_ms, "nobody takes %zu bytes", n - n_sent);
	}
	return n_sent;
}

static void
say(int fd, const char *text)
{
	assert_int_equal(send_bytes(fd, text, strlen(text)), strlen(text));
}

/* The next line with its end, or "" at the end of all; valid until the next call. */
static const char *
hear(int fd)
{
	static char line[ANSWER_BYTES];
	const uint64_t end_ms = __real_ctl_loop_now_ms() + WAIT_MS;
	size_t n = 0;

	while (n < sizeof(line) - 1 && (n == 0 || line[n - 1] != '\n')) {
		const ssize_t k = recv(fd, line + n, 1, 0);

		if (k > 0)
			n++;
		else if (k == 0 || errno != EAGAIN)
			break;
		else
			run_for(0);
		EXPECT(__real_ctl_loop_now_ms() < end_ms, "no answer after %zu bytes", n);
	}
	line[n] = '\0';
	return line;
}

static void
expect_line(int fd, const char *wanted)
{
	const char *line = hear(fd);

	EXPECT(strcmp(line, wanted) == 0, "heard: %s\nwanted: %s", line, wanted);
}

static void
expect_nothing(int fd)
{
	char byte;

	run_turns(8);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

/* The other clients notice nothing. */
static void
expect_service(void)
{
	const int fd = connect_client();

	say(fd, PING);
	expect_line(fd, PONG);
	assert_int_equal(close(fd), 0);
	run_turns(3);
}

/* The protocol. */

struct exchange {
	const char *what;
	const char *request;
	const char *answer; /* NULL: none */
};

#define ERROR_LINE(id, code, message)                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code                         \
	",\"message\":\"" message "\"}}\n"
#define REQUEST(id, rest) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":" rest "}\n"
#define RESULT(id, value) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" value "}\n"

static const struct exchange exchanges[] = {
	{"a call without parameters", REQUEST("1", "\"echo\""), RESULT("1", "null")},
	{"parameters by name", REQUEST("1", "\"echo\",\"params\":{\"a\":[1,2.5]}"),
		RESULT("1", "{\"a\":[1,2.5]}")},
	{"parameters by place", REQUEST("1", "\"echo\",\"params\":[true]"),
		RESULT("1", "[true]")},
	{"an id that is a text", REQUEST("\"\\u00e9\"", "\"echo\""),
		RESULT("\"\xc3\xa9\"", "null")},
	{"an id that is a fraction", REQUEST("1.5", "\"echo\""), RESULT("1.5", "null")},
	{"an id that is large", REQUEST("9223372036854775807", "\"echo\""),
		RESULT("9223372036854775807", "null")},
	{"an id that is null is an id", REQUEST("null", "\"echo\""), RESULT("null", "null")},
	{"a method's own error", REQUEST("7", "\"fail\""), ERROR_LINE("7", "1", "no tea")},
	{"an error that is no UTF-8", REQUEST("7", "\"fail_in_bytes\""),
		ERROR_LINE("7", "-32602", "caf?")},
	{"a result that there is no memory for", REQUEST("7", "\"give_nothing\""),
		ERROR_LINE("7", "-32603", "the answer cannot be written: out of memory")},
	{"a result that is no UTF-8", REQUEST("7", "\"give_bytes\""),
		ERROR_LINE("7", "-32603", "the answer cannot be written: it is not UTF-8")},
	{"a result that is text already",
		REQUEST("\"\\u00e9\"", "\"give_text\",\"params\":[\"{\\\"a\\\":[1]}\"]"),
		RESULT("\"\xc3\xa9\"", "{\"a\":[1]}")},
	{"a text that there is no memory for", REQUEST("7", "\"give_text\""),
		ERROR_LINE("7", "-32603", "the answer cannot be written: out of memory")},
	{"blanks around it, and the end of a line as on Windows",
		" \t{ \"id\":1, \"method\":\"echo\",\"jsonrpc\":\"2.0\" }\t\r\n", PONG},
	{"an empty line is passed over", "\n", NULL},
	{"blanks alone are passed over", " \t\r\n", NULL},

	{"a notification has no answer", "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}\n", NULL},
	{"nor one that fails", "{\"jsonrpc\":\"2.0\",\"method\":\"fail\"}\n", NULL},
	{"nor one of no method", "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n", NULL},

	{"an unknown method near a known one", REQUEST("1", "\"ehco\""),
		ERROR_LINE("1", "-32601", "no method is called 'ehco'; did you mean 'echo'?")},
	{"an unknown method near none", REQUEST("1", "\"snapshots\""),
		ERROR_LINE("1", "-32601", "no method is called 'snapshots'")},
	{"no JSON", "{\"jsonrpc\": \"2.0\", method\n",
		ERROR_LINE("null", "-32700",
			"not JSON: string or '}' expected near 'method', at byte 25")},
	{"a number as a request", "17\n",
		ERROR_LINE("null", "-32600", "a request is an object")},
	{"a batch",
		"["
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"
		"]\n",
		ERROR_LINE("null", "-32600",
			"batches are not taken: send each request on a line of its own")},
	{"an empty object", "{}\n",
		ERROR_LINE("null", "-32600", "'jsonrpc' is to be \\\"2.0\\\"")},
	{"another version", "{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"echo\"}\n",
		ERROR_LINE("3", "-32600", "'jsonrpc' is to be \\\"2.0\\\"")},
	{"a version that is a number", "{\"jsonrpc\":2.0,\"id\":3,\"method\":\"echo\"}\n",
		ERROR_LINE("3", "-32600", "'jsonrpc' is to be \\\"2.0\\\"")},
	{"no method", "{\"jsonrpc\":\"2.0\",\"id\":3}\n",
		ERROR_LINE("3", "-32600", "'method' is to be a string, the method's name")},
	{"a method that is a number", REQUEST("3", "1"),
		ERROR_LINE("3", "-32600", "'method' is to be a string, the method's name")},
	{"parameters that are a text", REQUEST("3", "\"echo\",\"params\":\"x\""),
		ERROR_LINE("3", "-32600", "'params' is to be an object or an array")},
	{"parameters that are null", REQUEST("3", "\"echo\",\"params\":null"),
		ERROR_LINE("3", "-32600", "'params' is to be an object or an array")},
	{"an id that is a list", REQUEST("[]", "\"echo\""),
		ERROR_LINE("null", "-32600", "'id' is to be a string, a number or null")},
	{"a misspelt member", REQUEST("3", "\"echo\",\"parmas\":[]"),
		ERROR_LINE("3", "-32600",
			"'parmas' is no member of a request, which are jsonrpc, method, "
			"params and id")},
	{"a member twice", REQUEST("3", "\"echo\",\"method\":\"fail\""),
		ERROR_LINE("null", "-32700",
			"not JSON: duplicate object key near '\\\"method\\\"', at byte 48")},
};

static void
test_each_request_has_its_answer(void **state)
{
	const int fd = connect_client();

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(exchanges); i++) {
		const struct exchange *row = &exchanges[i];
		const char *wanted = row->answer == NULL ? PONG : row->answer;
		const char *line;

		say(fd, row->request);
		if (row->answer == NULL)
			say(fd, PING);
		line = hear(fd);
		EXPECT(strcmp(line, wanted) == 0, "%s: heard: %swanted: %s", row->what, line,
			wanted);
	}
	expect_nothing(fd);
	assert_int_equal(close(fd), 0);
}

static void
test_rubbish_is_answered_and_does_no_harm(void **state)
{
	static const struct {
		const char *what;
		const char *bytes;
		size_t n;
	} rows[] = {
		{"binary", "\x00\x01\x02\xff\xfe\n", 6},
		{"zero bytes within", "{\"jsonrpc\":\"2.0\"\0,\"id\":1}\n", 27},
		{"an escaped zero byte", "{\"id\":\"\\u0000\"}\n", 16},
		{"no UTF-8", "{\"method\":\"\xc3\x28\"}\n", 16},
		{"half a character", "{\"method\":\"\xe2\x82\"}\n", 16},
		{"half a surrogate", "{\"method\":\"\\ud800\"}\n", 20},
		{"a number beyond all", "{\"id\":1e999}\n", 13},
		{"an integer beyond all", "{\"id\":99999999999999999999}\n", 28},
	};
	const int fd = connect_client();

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(rows); i++) {
		const char *line;

		assert_int_equal(send_bytes(fd, rows[i].bytes, rows[i].n), rows[i].n);
		line = hear(fd);
		EXPECT(strstr(line, "\"id\":null,\"error\":{\"code\":-32700,") != NULL,
			"%s: heard: %s", rows[i].what, line);
	}
	say(fd, PING);
	expect_line(fd, PONG);
	assert_int_equal(stats().errors, LB_N_ELEMENTS(rows));
	assert_int_equal(stats().requests, LB_N_ELEMENTS(rows) + 1);
	assert_int_equal(close(fd), 0);
}

static void
test_json_that_is_deep_is_refused(void **state)
{
	static char deep[200001];
	const int fd = connect_client();

	(void)state;
	memset(deep, '[', sizeof(deep));
	deep[sizeof(deep) - 1] = '\n';
	assert_int_equal(send_bytes(fd, deep, sizeof(deep)), sizeof(deep));
	EXPECT(strstr(hear(fd), "-32700") != NULL, "deep JSON was taken");
	say(fd, PING);
	expect_line(fd, PONG);
	assert_int_equal(close(fd), 0);
}

static void
test_a_long_name_is_repeated_in_part_only(void **state)
{
	char request[1024];
	char name[401];
	const int fd = connect_client();

	(void)state;
	/* The 64th byte is the first of two. */
	memset(name, 'm', sizeof(name) - 1);
	memcpy(name + 63, "\xc3\xa9", 2);
	name[sizeof(name) - 1] = '\0';
	(void)snprintf(request, sizeof(request), REQUEST("1", "\"%s\""), name);
	say(fd, request);
	name[63] = '\0';
	(void)snprintf(request, sizeof(request),
		ERROR_LINE("1", "-32601", "no method is called '%s?'"), name);
	expect_line(fd, request);
	assert_int_equal(close(fd), 0);
}

/* Lines and ends. */

static void
test_a_request_may_come_byte_by_byte(void **state)
{
	const int fd = connect_client();

	(void)state;
	for (const char *byte = PING; *byte != '\0'; byte++) {
		assert_int_equal(send_bytes(fd, byte, 1), 1);
		run_turns(2);
	}
	expect_line(fd, PONG);
	assert_int_equal(close(fd), 0);
}

/* Requests that are not answered for more than this would not all fit the sockets' buffers. */
#define UNREAD_MAX 200

static void
test_requests_in_one_write_are_answered_in_order(void **state)
{
	const int fd = connect_client();

	(void)state;
	for (int i = 0; i < 2000; i += UNREAD_MAX) {
		char *text = NULL;
		size_t n = 0;
		FILE *to = open_memstream(&text, &n);

		assert_non_null(to);
		for (int k = i; k < i + UNREAD_MAX; k++)
			(void)fprintf(to, "%*s" REQUEST("%d", "\"echo\""), k % 5 * 40, "", k);
		assert_int_equal(fclose(to), 0);
		assert_int_equal(send_bytes(fd, text, n), n);
		free(text);
		for (int k = i; k < i + UNREAD_MAX; k++) {
			char wanted[128];

			(void)snprintf(wanted, sizeof(wanted), RESULT("%d", "null"), k);
			expect_line(fd, wanted);
		}
	}
	expect_nothing(fd);
	assert_int_equal(stats().requests, 2000);
	assert_int_equal(close(fd), 0);
}

static void
test_who_has_ended_is_answered_and_then_let_go(void **state)
{
	const int fd = connect_client();

	(void)state;
	say(fd, PING REQUEST("2", "\"later\"") REQUEST("3", "\"later\""));
	/* The last line has no end. */
	say(fd, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"echo\"}");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_line(fd, PONG);
	expect_line(fd, RESULT("4", "null"));
	expect_nothing(fd);
	ctl_call_result(later[1], json_true());
	expect_line(fd, RESULT("3", "true"));
	ctl_call_error(later[0], CTL_RPC_REFUSED, "%d", 5);
	expect_line(fd, ERROR_LINE("2", "1", "5"));
	expect_line(fd, "");
	assert_int_equal(stats().clients, 0);
	assert_int_equal(close(fd), 0);
}

static void
test_who_ends_within_a_request_is_told(void **state)
{
	const int fd = connect_client();

	(void)state;
	say(fd, "{\"jsonrpc\":\"2.0\",");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	EXPECT(strstr(hear(fd), "-32700") != NULL, "half a request was taken");
	expect_line(fd, "");
	assert_int_equal(close(fd), 0);
}

static void
test_what_was_sent_before_the_end_is_carried_out(void **state)
{
	const int fd = connect_client();

	(void)state;
	for (int i = 0; i < 40; i++)
		say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"mark\",\"params\":[\"n\"]}\n");
	assert_int_equal(close(fd), 0);
	run_until_gone(0);
	assert_int_equal(n_order, 40);
}

/* A call outlives its client, and the server. */

static void
test_a_call_may_be_answered_after_its_client_has_gone(void **state)
{
	const int fd = connect_client();

	(void)state;
	for (int i = 0; i < 3; i++)
		say(fd, REQUEST("1", "\"later\""));
	run_turns(2);
	assert_int_equal(n_later, 3);
	assert_int_equal(close(fd), 0);
	run_turns(3);
	assert_int_equal(stats().clients, 0);
	ctl_call_result(later[1], json_true());
	ctl_call_error(later[0], CTL_RPC_REFUSED, "too late");
	ctl_rpc_close(rpc);
	rpc = NULL;
	ctl_call_result(later[2], json_true());
}

static void
test_a_call_may_be_answered_after_the_server_was_closed(void **state)
{
	const int fd = connect_client();

	(void)state;
	say(fd, REQUEST("1", "\"later\"") REQUEST("2", "\"later\""));
	run_turns(2);
	ctl_rpc_close(rpc);
	rpc = NULL;
	ctl_call_result(later[0], json_true());
	ctl_call_error(later[1], CTL_RPC_REFUSED, "too late");
	expect_line(fd, "");
	assert_int_equal(close(fd), 0);
}

static void
test_at_too_many_calls_not_answered_the_next_requests_wait(void **state)
{
	const int fd = connect_client();

	(void)state;
	for (unsigned int i = 0; i < CTL_RPC_CALLS_MAX + 20; i++)
		say(fd, REQUEST("1", "\"later\""));
	run_turns(50);
	assert_int_equal(n_later, CTL_RPC_CALLS_MAX);
	expect_service();
	for (size_t i = 0; i < n_later; i++) {
		ctl_call_result(later[i], json_null());
		expect_line(fd, PONG);
		run_turns(2);
	}
	assert_int_equal(n_later, CTL_RPC_CALLS_MAX + 20);
	assert_int_equal(close(fd), 0);
}

static double
cpu_s(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
test_who_goes_while_its_requests_wait_keeps_nobody_busy(void **state)
{
	const int fd = connect_client();
	double before;

	(void)state;
	for (unsigned int i = 0; i < CTL_RPC_CALLS_MAX + 20; i++)
		say(fd, REQUEST("1", "\"later\""));
	assert_int_equal(close(fd), 0);
	run_turns(50);
	assert_int_equal(stats().clients, 0);
	before = cpu_s();
	run_for(200);
	EXPECT(cpu_s() - before < 0.1, "busy for %f s", cpu_s() - before);
	for (size_t i = 0; i < n_later; i++)
		ctl_call_result(later[i], json_null());
}

static void
test_who_waits_having_ended_keeps_nobody_busy_when_it_goes(void **state)
{
	const int fd = connect_client();
	double before;

	(void)state;
	say(fd, REQUEST("1", "\"later\""));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	run_turns(3);
	assert_int_equal(stats().clients, 1);
	before = cpu_s();
	run_for(200);
	assert_int_equal(close(fd), 0);
	run_for(200);
	EXPECT(cpu_s() - before < 0.1, "busy for %f s", cpu_s() - before);
	assert_int_equal(stats().clients, 0);
	ctl_call_result(later[0], json_null());
}

/* Too much. */

#define TOO_LONG "a request of more than 1048576 bytes is not taken"

/* A request of so many bytes, its line's end not counted. */
static char *
make_request(size_t n)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}";
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, ' ', n);
	memcpy(text, head, sizeof(head) - 1);
	text[n] = '\n';
	return text;
}

static void
test_a_request_may_be_as_long_as_the_limit_and_no_byte_longer(void **state)
{
	char *text = make_request(CTL_RPC_REQUEST_BYTES_MAX);
	int fd = connect_client();

	(void)state;
	for (int i = 0; i < 2; i++) {
		(void)send_bytes(fd, text, CTL_RPC_REQUEST_BYTES_MAX + 1);
		expect_line(fd, PONG);
	}
	free(text);
	assert_int_equal(stats().oversized, 0);
	assert_int_equal(close(fd), 0);

	text = make_request(CTL_RPC_REQUEST_BYTES_MAX + 1);
	fd = connect_client();
	(void)send_bytes(fd, text, CTL_RPC_REQUEST_BYTES_MAX + 2);
	free(text);
	expect_line(fd, ERROR_LINE("null", "-32600", TOO_LONG));
	expect_line(fd, "");
	assert_int_equal(close(fd), 0);
	assert_int_equal(stats().oversized, 1);
	run_turns(3);
	assert_int_equal(stats().clients, 0);
	expect_service();
}

static void
test_who_sends_without_end_is_told_and_cut_off(void **state)
{
	static char rubbish[8u << 20];
	const int fd = connect_client();
	size_t n;

	(void)state;
	memset(rubbish, 'x', sizeof(rubbish));
	say(fd, PING);
	n = send_bytes(fd, rubbish, sizeof(rubbish));
	EXPECT(n < 2u << 20, "%zu bytes were taken", n);
	expect_line(fd, PONG);
	expect_line(fd, ERROR_LINE("null", "-32600", TOO_LONG));
	expect_line(fd, "");
	assert_int_equal(stats().oversized, 1);
	assert_int_equal(close(fd), 0);
	expect_service();
}

/* Read a line of which only the length matters. */
static size_t
hear_length(int fd)
{
	static char part[65536];
	size_t n = 0;

	for (;;) {
		const ssize_t k = recv(fd, part, sizeof(part), 0);

		if (k > 0)
			n += (size_t)k;
		else if (k == 0 || errno != EAGAIN)
			return n;
		if (k > 0 && part[k - 1] == '\n')
			return n;
		run_for(0);
	}
}

#define MUCH(id) REQUEST(id, "\"give_much\",\"params\":[1048576]")

/* Read so many bytes, of which the last is a line's end. */
static void
hear_bytes(int fd, size_t n)
{
	static char part[65536];
	const uint64_t end_ms = __real_ctl_loop_now_ms() + WAIT_MS;
	ssize_t k = 0;

	while (n > 0) {
		k = recv(fd, part, n < sizeof(part) ? n : sizeof(part), 0);
		if (k > 0)
			n -= (size_t)k;
		else
			run_for(0);
		EXPECT(__real_ctl_loop_now_ms() < end_ms, "%zu bytes do not come", n);
	}
	assert_int_equal(part[k - 1], '\n');
}

static void
test_who_does_not_read_is_not_worked_for_until_it_does(void **state)
{
	const int fd = connect_client();
	uint64_t n_requests;

	(void)state;
	for (int i = 0; i < 80; i++)
		say(fd, MUCH("1"));
	run_turns(200);
	assert_int_equal(stats().requests, 1);
	expect_service();
	for (uint64_t i = 1; i <= 80; i++) {
		hear_bytes(fd, (1 << 20) + sizeof(RESULT("1", "\"\"")) - 1);
		n_requests = stats().requests - 1; /* without that of expect_service() */
		EXPECT(n_requests <= i + 1, "%" PRIu64 " were carried out, %" PRIu64 " read",
			n_requests, i);
	}
	assert_int_equal(stats().stalled, 0);
	assert_int_equal(close(fd), 0);
}

static void
test_who_does_not_read_keeps_nobody_busy(void **state)
{
	const int fd = connect_client();
	double before;

	(void)state;
	for (int i = 0; i < 80; i++)
		say(fd, MUCH("1"));
	run_turns(20);
	before = cpu_s();
	run_for(200);
	EXPECT(cpu_s() - before < 0.1, "busy for %f s", cpu_s() - before);
	assert_int_equal(stats().requests, 1);
	assert_int_equal(close(fd), 0);
	run_until_gone(0);
}

static void
test_late_answers_to_who_never_reads_cut_it_off(void **state)
{
	const int fd = connect_client();
	char *text = malloc(1 << 20);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 1 << 20);
	for (int i = 0; i < 80; i++)
		say(fd, REQUEST("1", "\"later\""));
	run_turns(20);
	assert_int_equal(n_later, 80);
	for (size_t i = 0; i < n_later; i++)
		ctl_call_result(later[i], json_stringn(text, 1 << 20));
	free(text);
	assert_int_equal(stats().stalled, 1);
	assert_int_equal(stats().clients, 0);
	assert_int_equal(close(fd), 0);
}

static void
test_an_answer_too_long_for_anybody_is_an_error(void **state)
{
	const int fd = connect_client();

	(void)state;
	say(fd, REQUEST("1", "\"give_much\",\"params\":[67108864]"));
	expect_line(fd,
		ERROR_LINE("1", "-32603", "the answer would be longer than 67108864 bytes"));
	assert_int_equal(stats().stalled, 0);
	say(fd, PING);
	expect_line(fd, PONG);
	assert_int_equal(close(fd), 0);
}

static void
test_a_long_answer_arrives_whole(void **state)
{
	const int fd = connect_client();
	const size_t n = 30u << 20;
	char request[128];

	(void)state;
	(void)snprintf(request, sizeof(request), REQUEST("1", "\"give_much\",\"params\":[%zu]"),
		n);
	say(fd, request);
	expect_service();
	assert_int_equal(hear_length(fd), n + sizeof(RESULT("1", "\"\"")) - 1);
	say(fd, PING);
	expect_line(fd, PONG);
	assert_int_equal(close(fd), 0);
}

static void
test_who_goes_in_mid_answer_harms_nobody(void **state)
{
	const int fd = connect_client();
	char part[1000];

	(void)state;
	say(fd, REQUEST("1", "\"give_much\",\"params\":[10000000]") PING);
	run_turns(3);
	assert_int_equal(recv(fd, part, sizeof(part), 0), sizeof(part));
	run_turns(3);
	assert_int_equal(stats().clients, 1);
	assert_int_equal(close(fd), 0);
	run_turns(3);
	assert_int_equal(stats().clients, 0);
	expect_service();
}

/* Many. */

/* All at once, as the backlog has room for them. */
static void
open_wave(int fds[], int n)
{
	for (int i = 0; i < n; i++)
		fds[i] = open_client();
	run_turns(4);
}

static void
check_refused(const int fds[], int n)
{
	for (int i = 0; i < n; i++) {
		expect_line(fds[i],
			ERROR_LINE("null", "2",
				"64 clients are connected already, and no more are taken"));
		expect_line(fds[i], "");
		assert_int_equal(close(fds[i]), 0);
	}
}

static void
test_of_a_thousand_clients_those_over_the_limit_are_told(void **state)
{
	const int limit = (int)CTL_RPC_CLIENTS_MAX;
	int taken[100];
	int refused[100];

	(void)state;
	/* None is idle for long. */
	is_frozen = true;
	open_wave(taken, 100);
	check_refused(taken + limit, 100 - limit);
	for (int i = 0; i < 9; i++) {
		open_wave(refused, 100);
		check_refused(refused, 100);
	}
	assert_int_equal(stats().clients, limit);
	assert_int_equal(stats().accepted, limit);
	assert_int_equal(stats().refused, 1000 - limit);
	/* All at once, too. */
	for (int i = 0; i < limit; i++)
		assert_int_equal(send(taken[i], PING, strlen(PING), 0), strlen(PING));
	for (int i = 0; i < limit; i++) {
		expect_line(taken[i], PONG);
		assert_int_equal(close(taken[i]), 0);
	}
	run_turns(4);
	assert_int_equal(stats().clients, 0);
	expect_service();
}

static void
test_a_flood_of_one_does_not_hold_up_another(void **state)
{
	static const char request[] = REQUEST("1", "\"mark\",\"params\":[\"f\"]");
	static char text[1000 * (sizeof(request) - 1)];
	const int flood = connect_client();
	const int other = connect_client();
	const char *place;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		memcpy(text + i * (sizeof(request) - 1), request, sizeof(request) - 1);
	/* In one piece: say() would give the loop its turns between. */
	assert_int_equal(send(flood, text, sizeof(text), 0), sizeof(text));
	run_turns(3);
	say(other, REQUEST("1", "\"mark\",\"params\":[\"o\"]"));
	while (n_order < 1001) {
		run_for(0);
		(void)recv(flood, text, sizeof(text), 0);
	}
	place = strchr(order, 'o');
	EXPECT(place != NULL && place - order < 200, "the other came at place %td",
		place == NULL ? -1 : place - order);
	assert_int_equal(close(flood), 0);
	assert_int_equal(close(other), 0);
}

static void
test_clients_take_turns(void **state)
{
	static const char *const texts[] = {REQUEST("1", "\"mark\",\"params\":[\"a\"]"),
		REQUEST("1", "\"mark\",\"params\":[\"b\"]")};
	int fds[] = {connect_client(), connect_client()};
	int lead = 0;

	(void)state;
	for (int i = 0; i < 40; i++)
		for (int k = 0; k < 2; k++)
			assert_true(send(fds[k], texts[k], strlen(texts[k]), 0) > 0);
	while (n_order < 80)
		run_for(0);
	for (size_t i = 0; i < n_order; i++) {
		lead += order[i] == 'a' ? 1 : -1;
		EXPECT(abs(lead) <= 2, "one had %d turns more: %s", abs(lead), order);
	}
	for (int k = 0; k < 2; k++)
		assert_int_equal(close(fds[k]), 0);
}

#define MARK REQUEST("1", "\"mark\",\"params\":[\"o\"]")
#define WORK REQUEST("1", "\"work\",\"params\":[\"w\"]")

static void
test_a_short_request_comes_before_long_ones_of_many_clients(void **state)
{
	int busy[50];

	(void)state;
	for (size_t i = 0; i < LB_N_ELEMENTS(busy); i++)
		busy[i] = connect_client();
	for (size_t i = 0; i < LB_N_ELEMENTS(busy); i++)
		for (int k = 0; k < 8; k++)
			assert_int_equal(send(busy[i], WORK, sizeof(WORK) - 1, 0),
				sizeof(WORK) - 1);
	/* Each of them has had a turn by then. */
	for (size_t n_done = 110; n_done < 380; n_done += 60) {
		const char *asked;
		const char *place;
		int other;

		while (n_order < n_done)
			run_for(0);
		other = connect_client();
		asked = order + n_order;
		say(other, MARK);
		expect_line(other, RESULT("1", "true"));
		place = strchr(asked, 'o');
		EXPECT(place != NULL && place - asked <= 3, "it came after %td others",
			place == NULL ? -1 : place - asked);
		assert_int_equal(close(other), 0);
	}
	for (size_t i = 0; i < LB_N_ELEMENTS(busy); i++)
		assert_int_equal(close(busy[i]), 0);
}

/* However many new ones come. */
static void
test_who_is_here_has_its_turns_while_others_come(void **state)
{
	const int fd = connect_client();
	int fresh[CTL_RPC_CLIENTS_MAX - 1];
	const char *place;

	(void)state;
	say(fd, PING);
	expect_line(fd, PONG);
	for (size_t i = 0; i < LB_N_ELEMENTS(fresh); i++)
		fresh[i] = connect_client();
	for (size_t i = 0; i < LB_N_ELEMENTS(fresh); i++)
		assert_int_equal(send(fresh[i], WORK, sizeof(WORK) - 1, 0), sizeof(WORK) - 1);
	assert_int_equal(send(fd, MARK, sizeof(MARK) - 1, 0), sizeof(MARK) - 1);
	expect_line(fd, RESULT("1", "true"));
	place = strchr(order, 'o');
	EXPECT(place != NULL && place - order <= 3, "it came after %td others",
		place == NULL ? -1 : place - order);
	for (size_t i = 0; i < LB_N_ELEMENTS(fresh); i++)
		assert_int_equal(close(fresh[i]), 0);
	assert_int_equal(close(fd), 0);
}

/* Who is refused where all places are taken, and who is closed. */

/* All places but one; the first comes first, each a millisecond after the other. */
static void
fill_places(int fds[], size_t n)
{
	is_frozen = true;
	shift_ms = 1000000;
	for (size_t i = 0; i < n; i++) {
		fds[i] = connect_client();
		shift_ms++;
	}
}

#define CLOSED                                                                                 \
	"closed after 3 s without a request, for 64 clients were connected and another came"

static void
expect_closed(int fd)
{
	expect_line(fd, ERROR_LINE("null", "1", CLOSED));
	expect_line(fd, "");
	assert_int_equal(close(fd), 0);
}

static void
expect_pong(int fd)
{
	say(fd, PING);
	expect_line(fd, PONG);
}

static void
close_all(const int fds[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(close(fds[i]), 0);
	run_turns(4);
	assert_int_equal(stats().clients, 0);
}

static void
test_the_one_idle_longest_is_closed_for_a_new_one(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];
	int fresh;

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	/* The first two ask something, and are not the longest idle any more. */
	expect_pong(fds[0]);
	say(fds[1], "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}\n");
	/* Not idle for long enough, to the millisecond. */
	shift_ms = 1000002 + CTL_RPC_IDLE_MS - 1;
	fresh = open_client();
	run_turns(2);
	check_refused(&fresh, 1);
	assert_int_equal(stats().evicted, 0);

	shift_ms = 1000002 + 3000;
	fresh = connect_client();
	expect_pong(fresh);
	expect_closed(fds[2]);
	fds[2] = fresh;
	assert_int_equal(stats().evicted, 1);
	assert_int_equal(stats().clients, CTL_RPC_CLIENTS_MAX);
	fresh = connect_client();
	expect_pong(fresh);
	shift_ms++;
	expect_line(fds[3], ERROR_LINE("null", "1",
				    "closed after 2 s without a request, for 64 "
				    "clients were connected and another came"));
	assert_int_equal(close(fds[3]), 0);
	fds[3] = fresh;
	for (size_t i = 0; i < LB_N_ELEMENTS(fds); i++)
		expect_pong(fds[i]);
	close_all(fds, LB_N_ELEMENTS(fds));
}

/* All but one of them are at what a row says, which keeps their places for them. */
static void
test_who_is_in_the_middle_of_something_is_not_closed(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];
	const size_t n = LB_N_ELEMENTS(fds);
	int fresh[CTL_RPC_CLIENTS_MAX];

	(void)state;
	fill_places(fds, n);
	for (size_t i = 0; i < n; i++) {
		if (i % 3 == 0) /* its request is being carried out */
			say(fds[i], PING REQUEST("1", "\"later\""));
		else if (i % 3 == 1) /* half of a request has come */
			say(fds[i], "{");
		else /* its answer is being read */
			say(fds[i], MUCH("1"));
	}
	run_turns(20);
	shift_ms = 1000001 + CTL_RPC_STALL_MS - 1;
	fresh[0] = open_client();
	run_turns(2);
	check_refused(fresh, 1);
	assert_int_equal(stats().evicted, 0);
	/* Who neither sends the rest nor reads on is stuck, and goes; the others never do. */
	shift_ms += 3600000;
	for (size_t i = 0; i < n; i++) {
		if (i % 3 == 0)
			continue;
		fresh[i] = connect_client();
		expect_pong(fresh[i]);
	}
	assert_int_equal(stats().evicted, n - n_later);
	for (size_t i = 0; i < n; i++) {
		if (i % 3 == 0)
			continue;
		assert_int_equal(close(fds[i]), 0);
		fds[i] = fresh[i];
	}
	fresh[0] = open_client();
	run_turns(2);
	check_refused(fresh, 1);
	for (size_t i = 0; i < n_later; i++) {
		ctl_call_result(later[i], json_true());
		expect_line(fds[i * 3], PONG);
		expect_line(fds[i * 3], RESULT("1", "true"));
	}
	close_all(fds, n);
}

static void
test_who_reads_on_is_not_closed(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];
	static char part[300000];
	int fresh;

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	say(fds[0], MUCH("1"));
	for (size_t i = 1; i < LB_N_ELEMENTS(fds); i++)
		say(fds[i], REQUEST("1", "\"later\""));
	for (int i = 0; i < 2; i++) {
		shift_ms += CTL_RPC_STALL_MS - 1;
		fresh = open_client();
		run_turns(2);
		check_refused(&fresh, 1);
		assert_true(recv(fds[0], part, sizeof(part), 0) > 0);
		run_turns(2);
	}
	assert_int_equal(stats().evicted, 0);
	shift_ms += CTL_RPC_STALL_MS;
	fresh = connect_client();
	assert_int_equal(stats().evicted, 1);
	assert_int_equal(close(fresh), 0);
	for (size_t i = 0; i < n_later; i++)
		ctl_call_result(later[i], json_true());
	close_all(fds, LB_N_ELEMENTS(fds));
}

#define BUSY_CLOSED                                                                            \
	"closed as it asked the most, for 64 clients were connected and another came"

static void
ask_often(int fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		expect_pong(fd);
}

/* A new client finds no place. n: of how many it is told. */
static void
expect_no_place(const char *n)
{
	const int fd = open_client();
	char line[ANSWER_BYTES];

	run_turns(2);
	(void)snprintf(line, sizeof(line),
		ERROR_LINE("null", "2",
			"%s clients are connected "
			"already, and no more are "
			"taken"),
		n);
	expect_line(fd, line);
	expect_line(fd, "");
	assert_int_equal(close(fd), 0);
}

/* A new client takes the place of one, which is told so. */
static void
expect_place_of(int *fd)
{
	const int fresh = connect_client();

	expect_pong(fresh);
	expect_line(*fd, ERROR_LINE("null", "1", BUSY_CLOSED));
	expect_line(*fd, "");
	assert_int_equal(close(*fd), 0);
	*fd = fresh;
}

static void
test_who_asks_the_most_gives_way(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	for (size_t i = 0; i < LB_N_ELEMENTS(fds); i++)
		ask_often(fds[i], CTL_RPC_BUSY - 1);
	expect_no_place("64");
	assert_int_equal(stats().evicted, 0);
	ask_often(fds[7], 2);
	ask_often(fds[9], 1);
	expect_place_of(&fds[7]);
	expect_place_of(&fds[9]);
	/* All others have asked too little, and the new ones hardly at all. */
	expect_no_place("64");
	assert_int_equal(stats().evicted, 2);
	assert_int_equal(stats().clients, CTL_RPC_CLIENTS_MAX);
	close_all(fds, LB_N_ELEMENTS(fds));
}

/* Or else soon none would have been there for long enough to be busy. */
static void
test_who_gave_way_takes_nobodys_place_for_a_while(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	ask_often(fds[3], 5 * CTL_RPC_BUSY);
	ask_often(fds[4], 4 * CTL_RPC_BUSY);
	expect_place_of(&fds[3]);
	peer_pid = FIRST_PID + 3;
	expect_no_place("64");
	shift_ms += CTL_RPC_BUSY_MS - 1;
	expect_no_place("64");
	shift_ms++;
	expect_place_of(&fds[4]);
	close_all(fds, LB_N_ELEMENTS(fds));
}

static void
test_what_was_asked_is_forgotten(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	ask_often(fds[3], 2 * CTL_RPC_BUSY + 1);
	shift_ms += 999;
	expect_place_of(&fds[3]);
	ask_often(fds[4], 2 * CTL_RPC_BUSY - 1);
	/* Half of it, and nobody else is idle for long enough. */
	shift_ms += 1000;
	for (size_t i = 0; i < LB_N_ELEMENTS(fds); i++)
		if (i != 4)
			expect_pong(fds[i]);
	expect_no_place("64");
	expect_pong(fds[4]);
	expect_place_of(&fds[4]);
	close_all(fds, LB_N_ELEMENTS(fds));
}

static void
test_who_asks_what_takes_long_gives_way(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	say(fds[5], REQUEST("1", "\"take_time\",\"params\":[6]"));
	expect_line(fds[5], PONG);
	expect_no_place("64");
	say(fds[6], REQUEST("1", "\"take_time\",\"params\":[7]"));
	expect_line(fds[6], PONG);
	expect_place_of(&fds[6]);
	close_all(fds, LB_N_ELEMENTS(fds));
}

static void
test_who_waits_for_an_answer_does_not_give_way(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	ask_often(fds[1], 3 * CTL_RPC_BUSY);
	ask_often(fds[2], CTL_RPC_BUSY);
	say(fds[1], REQUEST("1", "\"later\""));
	expect_nothing(fds[1]);
	expect_place_of(&fds[2]);
	expect_no_place("64");
	ctl_call_result(later[0], json_null());
	expect_line(fds[1], PONG);
	expect_place_of(&fds[1]);
	close_all(fds, LB_N_ELEMENTS(fds));
}

/* Neither by number nor by what they are at can others keep root out. */
static void
test_places_are_kept_for_root_and_the_owner(void **state)
{
	const uid_t other = geteuid() == 0 ? 1000 : geteuid() + 1;
	int fds[CTL_RPC_CLIENTS_MAX];
	const size_t n = CTL_RPC_CLIENTS_MAX - CTL_RPC_KEPT;

	(void)state;
	peer_uid = other;
	fill_places(fds, n);
	for (size_t i = 0; i < n; i++)
		say(fds[i], REQUEST("1", "\"later\""));
	run_turns(8);
	expect_no_place("62");
	peer_uid = 0;
	fds[n] = connect_client();
	expect_pong(fds[n]);
	peer_uid = geteuid();
	fds[n + 1] = connect_client();
	ask_often(fds[n + 1], 2 * CTL_RPC_BUSY);
	/* Nor do others take these places, whatever is done in them. */
	peer_uid = other;
	expect_no_place("62");
	peer_uid = 0;
	expect_place_of(&fds[n + 1]);
	for (size_t i = 0; i < n; i++)
		ctl_call_result(later[i], json_null());
	close_all(fds, n + 2);
}

/* It is in the socket, and the server has not read it. */
static void
test_who_has_just_asked_is_not_closed(void **state)
{
	int fds[CTL_RPC_CLIENTS_MAX];
	int fresh;

	(void)state;
	fill_places(fds, LB_N_ELEMENTS(fds));
	shift_ms = 1000001 + 3000;
	fresh = open_client();
	assert_int_equal(send(fds[0], PING, strlen(PING), 0), strlen(PING));
	expect_line(fds[0], PONG);
	expect_pong(fresh);
	expect_closed(fds[1]);
	fds[1] = fresh;
	close_all(fds, LB_N_ELEMENTS(fds));
}

static void
test_where_files_run_out_nobody_spins_and_it_goes_on_later(void **state)
{
	const int fd = open_client();
	struct rlimit before;
	struct rlimit none;
	double cpu;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	cpu = cpu_s();
	run_for(350);
	cpu = cpu_s() - cpu;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	EXPECT(cpu < 0.1, "busy for %f s of 0.35", cpu);
	assert_int_equal(stats().accepted, 0);
	say(fd, PING);
	expect_line(fd, PONG);
	assert_int_equal(stats().accepted, 1);
	assert_int_equal(close(fd), 0);
}

static void
test_it_can_be_closed_while_nobody_is_accepted(void **state)
{
	struct rlimit before;
	struct rlimit none;
	const int fd = connect_client();

	(void)state;
	/* As in the test above, and then closed within the pause. */
	assert_int_equal(close(fd), 0);
	run_turns(3);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect_client(), fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	ctl_rpc_close(rpc);
	rpc = NULL;
	run_for(150);
	assert_int_equal(close(fd), 0);
}

/* Each file is closed for programs that are started, and does not block. */
static void
test_its_files_are_nobody_elses_and_do_not_block(void **state)
{
	const int fd = connect_client();
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int n_sockets = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		const int number = atoi(entry->d_name);
		struct stat st;

		if (entry->d_name[0] == '.' || number < 3 || fstat(number, &st) != 0)
			continue;
		if (number != dirfd(dir) && S_ISSOCK(st.st_mode)) {
			EXPECT((fcntl(number, F_GETFD) & FD_CLOEXEC) != 0, "fd %d", number);
			EXPECT((fcntl(number, F_GETFL) & O_NONBLOCK) != 0, "fd %d", number);
			n_sockets++;
		}
	}
	assert_int_equal(closedir(dir), 0);
	assert_int_equal(close(fd), 0);
	/* Who listens, the client and its other end. */
	EXPECT(n_sockets >= 3, "%d sockets", n_sockets);
}

/* The path. */

static void
test_the_socket_is_for_owner_and_group(void **state)
{
	const mode_t before = umask(0);
	const struct group *group = getgrnam("shunt");
	struct stat st;

	(void)state;
	for (int i = 0; i < 3; i++) {
		(void)umask(i == 0 ? 0 : i == 1 ? 0077 : 0777);
		assert_int_equal(open_rpc(&rpc), 0);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISSOCK(st.st_mode));
		assert_int_equal(st.st_mode & 07777, 0660);
		if (group != NULL && geteuid() == 0)
			assert_int_equal(st.st_gid, group->gr_gid);
		ctl_rpc_close(rpc);
		rpc = NULL;
		assert_int_equal(lstat(path, &st), -1);
	}
	(void)umask(before);
}

static void
test_its_folder_is_made_and_stays(void **state)
{
	static const mode_t masks[] = {0, 0077, 0777};
	const mode_t before = umask(0);
	char made[sizeof(folder) + 8];
	char inside[sizeof(made) + 8];
	struct stat st;

	(void)state;
	(void)snprintf(made, sizeof(made), "%s/made", folder);
	(void)snprintf(inside, sizeof(inside), "%s/sock", made);
	for (size_t i = 0; i < LB_N_ELEMENTS(masks); i++) {
		(void)umask(masks[i]);
		assert_int_equal(ctl_rpc_open(loop, inside, methods, 1, NULL, &rpc), 0);
		assert_int_equal(lstat(made, &st), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0755);
		assert_int_equal(st.st_uid, geteuid());
		ctl_rpc_close(rpc);
		rpc = NULL;
		assert_int_equal(lstat(inside, &st), -1);
		assert_int_equal(rmdir(made), 0);
	}
	(void)umask(before);
}

static void
test_a_folder_that_is_there_is_left_as_it_is(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(chmod(folder, 0711), 0);
	assert_int_equal(open_rpc(&rpc), 0);
	assert_int_equal(lstat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
}

static void
bind_and_leave(int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(close(fd), 0);
}

static void
test_a_stale_socket_is_replaced(void **state)
{
	(void)state;
	bind_and_leave(SOCK_STREAM);
	assert_int_equal(open_rpc(&rpc), 0);
	expect_service();
}

static void
test_a_socket_at_which_somebody_listens_is_left(void **state)
{
	struct ctl_rpc *second = NULL;

	(void)state;
	assert_int_equal(open_rpc(&rpc), 0);
	assert_int_equal(open_rpc(&second), -EADDRINUSE);
	assert_null(second);
	run_turns(3);
	expect_service();
}

static void
test_what_is_no_socket_is_left(void **state)
{
	struct stat st;
	FILE *file = fopen(path, "w");

	(void)state;
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(open_rpc(&rpc), -EEXIST);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(unlink(path), 0);

	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(open_rpc(&rpc), -EEXIST);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(path), 0);

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(open_rpc(&rpc), -EEXIST);
	assert_int_equal(rmdir(path), 0);
	assert_null(rpc);
}

static void
test_paths_that_cannot_be_are_refused(void **state)
{
	char name[200];
	struct ctl_rpc *out = NULL;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ctl_rpc_open(loop, name, methods, 1, NULL, &out), -ENAMETOOLONG);
	assert_int_equal(ctl_rpc_open(loop, "", methods, 1, NULL, &out), -EINVAL);
	assert_int_equal(ctl_rpc_open(loop, "/tmp/shunt-no-such/nor/sock", methods, 1, NULL,
				 &out),
		-ENOENT);
	assert_int_equal(ctl_rpc_open(loop, "/dev/null/sock", methods, 1, NULL, &out),
		-ENOTDIR);
	assert_null(out);
}

static void
test_anothers_socket_is_not_removed(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(open_rpc(&rpc), 0);
	assert_int_equal(unlink(path), 0);
	bind_and_leave(SOCK_STREAM);
	ctl_rpc_close(rpc);
	rpc = NULL;
	assert_int_equal(lstat(path, &st), 0);
	ctl_rpc_close(NULL);
}

#define SERVED(f) cmocka_unit_test_setup_teardown(f, start, remove_folder)
#define ALONE(f)  cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED(test_each_request_has_its_answer),
		SERVED(test_rubbish_is_answered_and_does_no_harm),
		SERVED(test_json_that_is_deep_is_refused),
		SERVED(test_a_long_name_is_repeated_in_part_only),
		SERVED(test_a_request_may_come_byte_by_byte),
		SERVED(test_requests_in_one_write_are_answered_in_order),
		SERVED(test_who_has_ended_is_answered_and_then_let_go),
		SERVED(test_who_ends_within_a_request_is_told),
		SERVED(test_what_was_sent_before_the_end_is_carried_out),
		SERVED(test_a_call_may_be_answered_after_its_client_has_gone),
		SERVED(test_a_call_may_be_answered_after_the_server_was_closed),
		SERVED(test_at_too_many_calls_not_answered_the_next_requests_wait),
		SERVED(test_who_goes_while_its_requests_wait_keeps_nobody_busy),
		SERVED(test_who_waits_having_ended_keeps_nobody_busy_when_it_goes),
		SERVED(test_a_request_may_be_as_long_as_the_limit_and_no_byte_longer),
		SERVED(test_who_sends_without_end_is_told_and_cut_off),
		SERVED(test_who_does_not_read_is_not_worked_for_until_it_does),
		SERVED(test_who_does_not_read_keeps_nobody_busy),
		SERVED(test_late_answers_to_who_never_reads_cut_it_off),
		SERVED(test_an_answer_too_long_for_anybody_is_an_error),
		SERVED(test_a_long_answer_arrives_whole),
		SERVED(test_who_goes_in_mid_answer_harms_nobody),
		SERVED(test_of_a_thousand_clients_those_over_the_limit_are_told),
		SERVED(test_a_flood_of_one_does_not_hold_up_another),
		SERVED(test_clients_take_turns),
		SERVED(test_a_short_request_comes_before_long_ones_of_many_clients),
		SERVED(test_who_is_here_has_its_turns_while_others_come),
		SERVED(test_the_one_idle_longest_is_closed_for_a_new_one),
		SERVED(test_who_asks_the_most_gives_way),
		SERVED(test_who_gave_way_takes_nobodys_place_for_a_while),
		SERVED(test_what_was_asked_is_forgotten),
		SERVED(test_who_asks_what_takes_long_gives_way),
		SERVED(test_who_waits_for_an_answer_does_not_give_way),
		SERVED(test_places_are_kept_for_root_and_the_owner),
		SERVED(test_who_is_in_the_middle_of_something_is_not_closed),
		SERVED(test_who_reads_on_is_not_closed),
		SERVED(test_who_has_just_asked_is_not_closed),
		SERVED(test_where_files_run_out_nobody_spins_and_it_goes_on_later),
		SERVED(test_it_can_be_closed_while_nobody_is_accepted),
		SERVED(test_its_files_are_nobody_elses_and_do_not_block),
		ALONE(test_the_socket_is_for_owner_and_group),
		ALONE(test_its_folder_is_made_and_stays),
		ALONE(test_a_folder_that_is_there_is_left_as_it_is),
		ALONE(test_a_stale_socket_is_replaced),
		ALONE(test_a_socket_at_which_somebody_listens_is_left),
		ALONE(test_what_is_no_socket_is_left),
		ALONE(test_paths_that_cannot_be_are_refused),
		ALONE(test_anothers_socket_is_not_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
