/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl_client.h"
#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"

#define CONNECT_MS 5000u
#define SHOWN_MS   30000u
/* The build of the largest tables is waited for. */
#define BUILT_MS 120000u

/* Between two tries where all places are taken: twice as long each time, to a limit. */
#define PAUSE_MS     20u
#define PAUSE_MS_MAX 500u

#define REAL_DIGITS 9

/* JSON-RPC 2.0, section 5.1. */
#define INVALID_PARAMS (-32602)

int
shuntctl_usage_error(const char *what, ...)
{
	va_list args;

	(void)fputs("shuntctl: ", stderr);
	va_start(args, what);
	(void)vfprintf(stderr, what, args);
	va_end(args);
	(void)fputs("\nTry 'shuntctl --help'.\n", stderr);
	return SHUNTCTL_BAD_USAGE;
}

int
shuntctl_no_utf8(void)
{
	return shuntctl_usage_error("names and values are to be UTF-8");
}

int
shuntctl_no_memory(void)
{
	(void)fputs("shuntctl: there is not enough memory\n", stderr);
	return SHUNTCTL_FAILED;
}

int
shuntctl_finish_output(void)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return SHUNTCTL_DONE;
	(void)fprintf(stderr, "shuntctl: standard output cannot be written: %s\n",
		strerror(errno));
	return SHUNTCTL_FAILED;
}

int
shuntctl_write_json(const json_t *object, bool is_series)
{
	const size_t flags = is_series ? JSON_COMPACT : JSON_INDENT(2);

	errno = 0;
	if (json_dumpf(object, stdout, flags | JSON_REAL_PRECISION(REAL_DIGITS)) == 0)
		(void)fputc('\n', stdout);
	return shuntctl_finish_output();
}

/* Who listens is there, and does nothing. */
static void
tell_stuck(void)
{
	(void)fputs("shuntctl: shuntd is stopped, or busy: look at it with 'ps' and at its "
		    "log, start it anew, or wait longer with --timeout SECONDS (0: for ever)\n",
		stderr);
}

static void
tell_no_connection(const char *socket, int error)
{
	(void)fprintf(stderr, "shuntctl: no connection to %s: %s\n", socket, strerror(error));
	if (error == ENOENT || error == ECONNREFUSED)
		(void)fputs("shuntctl: is shuntd running? Start it with 'shuntd --config "
			    "FILE', or name the socket of another with --socket PATH or "
			    "SHUNT_SOCKET\n",
			stderr);
	else if (error == EACCES || error == EPERM)
		(void)fputs("shuntctl: it takes root, or the group 'shunt'\n", stderr);
	else if (error == ETIMEDOUT)
		tell_stuck();
}

static void
tell_no_answer(const char *socket, int error)
{
	const char *why = strerror(error);

	if (error == ECONNRESET)
		why = "it closed the connection";
	else if (error == ETIMEDOUT)
		why = "none came in time";
	else if (error == EPROTO)
		why = "what came is no answer; is it shuntd that listens there?";
	else if (error == EMSGSIZE)
		why = "it is too long";
	(void)fprintf(stderr, "shuntctl: no answer from %s: %s\n", socket, why);
	if (error == ETIMEDOUT)
		tell_stuck();
}

static unsigned int
usual_ms(const char *method)
{
	static const char *const shown[] = {CTL_METHOD_STATUS, CTL_METHOD_STATS,
		CTL_METHOD_SERVICE_LIST, CTL_METHOD_SERVICE_SHOW, CTL_METHOD_BACKEND_LIST,
		CTL_METHOD_EXPLAIN, CTL_METHOD_TRACE_BEGIN, CTL_METHOD_TRACE_READ,
		CTL_METHOD_TRACE_END, CTL_METHOD_FLOWS_LIST, CTL_METHOD_FLOWS_COUNT,
		CTL_METHOD_FLOWS_FIND, CTL_METHOD_CONFIG_SHOW};

	for (size_t i = 0; i < LB_N_ELEMENTS(shown); i++)
		if (strcmp(method, shown[i]) == 0)
			return SHOWN_MS;
	return BUILT_MS;
}

/* Of a file's errors each line begins with its place, and stays as editors want it. */
static void
tell_refusal(const char *method, const char *message, int code)
{
	const bool is_file = strcmp(method, CTL_METHOD_RELOAD) == 0 ||
			     strcmp(method, CTL_METHOD_PLAN) == 0 ||
			     strcmp(method, CTL_METHOD_CONFIG_PUSH) == 0;

	if (code != INVALID_PARAMS || !is_file)
		(void)fputs("shuntctl: ", stderr);
	(void)fprintf(stderr, "%s\n", message);
	if (strcmp(method, CTL_METHOD_RELOAD) == 0)
		(void)fputs("shuntctl: nothing is loaded; what runs goes on\n", stderr);
}

static int
connect_once(struct shuntctl *ctl)
{
	if (ctl->client != NULL)
		return 0;
	return ctl_client_open(ctl->socket, ctl->has_timeout ? ctl->timeout_ms : CONNECT_MS,
		&ctl->client);
}

/*
 * For another try, where all places are taken, which become free by themselves, as the daemon
 * closes who does nothing, or where its workers are busy: it takes the error then.
 *
 * @param left_ms   For how long to try.
 * @param pause_ms  Before the next try.
 */
static bool
wait_for_turn(struct shuntctl *ctl, struct ctl_client_error *error, unsigned int *left_ms,
	unsigned int *pause_ms)
{
	const unsigned int ms = *pause_ms < *left_ms ? *pause_ms : *left_ms;
	const struct timespec pause = {.tv_nsec = (long)ms * 1000000};

	if ((error->code != CTL_ERROR_FULL && error->code != CTL_ERROR_LATE) || ms == 0)
		return false;
	free(error->message);
	if (error->code == CTL_ERROR_FULL) {
		ctl_client_close(ctl->client);
		ctl->client = NULL;
	}
	(void)nanosleep(&pause, NULL);
	if (*left_ms != CTL_CLIENT_FOR_EVER)
		*left_ms -= ms;
	*pause_ms = *pause_ms * 2 < PAUSE_MS_MAX ? *pause_ms * 2 : PAUSE_MS_MAX;
	return true;
}

int
shuntctl_call(struct shuntctl *ctl, const char *method, json_t *params, json_t **result)
{
	unsigned int left_ms = ctl->has_timeout ? ctl->timeout_ms : CONNECT_MS;
	unsigned int pause_ms = PAUSE_MS;
	struct ctl_client_error error;
	int status = SHUNTCTL_FAILED;
	int ret;

	do {
		ret = connect_once(ctl);
		if (ret != 0) {
			json_decref(params);
			tell_no_connection(ctl->socket, -ret);
			return SHUNTCTL_FAILED;
		}
		ctl_client_pass(ctl->client, ctl->file);
		ret = ctl_client_call(ctl->client, method, params,
			ctl->has_timeout ? ctl->timeout_ms : usual_ms(method), result, &error);
	} while (ret == -EREMOTEIO && wait_for_turn(ctl, &error, &left_ms, &pause_ms));
	json_decref(params);
	if (ret == 0)
		return SHUNTCTL_DONE;
	if (ret == -EREMOTEIO) {
		tell_refusal(method, error.message, error.code);
		if (error.code == INVALID_PARAMS)
			status = SHUNTCTL_BAD_USAGE;
		free(error.message);
	} else {
		tell_no_answer(ctl->socket, -ret);
	}
	return status;
}

int
shuntctl_ask(struct shuntctl *ctl, const char *method, json_t *params, shuntctl_print_fn print)
{
	json_t *result;
	int status = shuntctl_call(ctl, method, params, &result);

	if (status != SHUNTCTL_DONE)
		return status;
	if (ctl->is_json)
		status = shuntctl_write_json(result, false);
	else if (print != NULL)
		status = print(result);
	json_decref(result);
	return status;
}

json_t *
shuntctl_make_params(const struct shuntctl *ctl, const struct shuntctl_key keys[], size_t n)
{
	json_t *params = json_object();
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		const char *value = ctl->values[keys[i].value];

		if (value != NULL)
			failed |= json_object_set_new(params, keys[i].key, json_string(value));
	}
	if (failed == 0)
		return params;
	json_decref(params);
	return NULL;
}

const char *
shuntctl_text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "-";
}
