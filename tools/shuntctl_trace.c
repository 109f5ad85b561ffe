/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ctl_proto.h"
#include "lb_compiler.h"
#include "shuntctl.h"

/* Between two readings, unless the daemon has more. */
#define PAUSE_MS 200

/* Of "2026-11-30T15:11:20.123456Z" the time of the day. */
#define TIME_AT    11
#define TIME_CHARS 15

static volatile sig_atomic_t is_interrupted;

static void
on_signal(int number)
{
	(void)number;
	is_interrupted = 1;
}

/* An end from the keyboard ends the trace, and then it is said what it came to. */
static void
take_signals(void)
{
	/* What is being written is written to its end. */
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

static void
print_ends(const json_t *packet)
{
	const char *kind = shuntctl_text_of(packet, CTL_KEY_KIND);

	if (!json_is_string(json_object_get(packet, CTL_KEY_CLIENT)))
		return;
	(void)printf("%s %s%s > %s ", shuntctl_text_of(packet, CTL_KEY_PROTOCOL),
		strcmp(kind, "icmp_error") == 0 ? "about " : "",
		shuntctl_text_of(packet, CTL_KEY_CLIENT),
		shuntctl_text_of(packet, CTL_KEY_DESTINATION));
	if (strcmp(kind, "fragment") == 0)
		(void)printf("(fragment) ");
}

static void
print_choice(const json_t *packet)
{
	const json_t *service = json_object_get(packet, CTL_KEY_SERVICE);
	const json_t *backend = json_object_get(packet, CTL_KEY_BACKEND);
	const json_t *slot = json_object_get(packet, CTL_KEY_SLOT);
	const char *flow = shuntctl_text_of(packet, CTL_KEY_FLOW);

	if (json_is_string(json_object_get(packet, CTL_KEY_REASON)))
		(void)printf(" %s", shuntctl_text_of(packet, CTL_KEY_REASON));
	if (json_is_string(service))
		(void)printf(" %s", json_string_value(service));
	if (json_is_string(backend))
		(void)printf("/%s", json_string_value(backend));
	if (strcmp(flow, CTL_FLOW_NONE) != 0)
		(void)printf(", %s", flow);
	if (json_is_integer(slot))
		(void)printf(", slot %" JSON_INTEGER_FORMAT, json_integer_value(slot));
}

static void
print_packet(const json_t *packet)
{
	const char *when = shuntctl_text_of(packet, CTL_KEY_TIME);

	(void)printf("%.*s %s/%" JSON_INTEGER_FORMAT " ", TIME_CHARS,
		strlen(when) > TIME_AT ? when + TIME_AT : when,
		shuntctl_text_of(packet, CTL_KEY_IN_PORT),
		json_integer_value(json_object_get(packet, CTL_KEY_WORKER)));
	print_ends(packet);
	(void)printf("%" JSON_INTEGER_FORMAT " bytes: %s",
		json_integer_value(json_object_get(packet, CTL_KEY_BYTES)),
		shuntctl_text_of(packet, CTL_KEY_VERDICT));
	print_choice(packet);
	(void)fputc('\n', stdout);
}

/* Each packet a line. Returns the exit status. */
static int
write_packets(const struct shuntctl *ctl, const json_t *result)
{
	const json_t *packets = json_object_get(result, CTL_KEY_PACKETS);

	for (size_t i = 0; i < json_array_size(packets); i++) {
		json_t *packet = json_array_get(packets, i);
		int status = SHUNTCTL_DONE;

		if (!ctl->is_json)
			print_packet(packet);
		else if (json_object_set_new(packet, CTL_KEY_SCHEMA,
				 json_integer(CTL_SCHEMA)) != 0)
			status = shuntctl_no_memory();
		else
			status = shuntctl_write_json(packet, true);
		if (status != SHUNTCTL_DONE)
			return status;
	}
	return shuntctl_finish_output();
}

/* What a trace came to. */
struct outcome {
	size_t n_packets;
	json_int_t missed;
	bool has_ended; /* by itself */
	bool was_time;  /* for its time was over */
};

static int
read_once(struct shuntctl *ctl, json_int_t number, struct outcome *outcome)
{
	/* No event is asked for: poll() tells of a pipe or terminal that is gone. */
	struct pollfd reader = {.fd = STDOUT_FILENO};
	json_t *result;
	size_t n;
	int status = shuntctl_call(ctl, CTL_METHOD_TRACE_READ,
		json_pack("{s:I}", CTL_KEY_TRACE, number), &result);

	if (status != SHUNTCTL_DONE)
		return status;
	n = json_array_size(json_object_get(result, CTL_KEY_PACKETS));
	outcome->n_packets += n;
	outcome->missed = json_integer_value(json_object_get(result, CTL_KEY_MISSED));
	outcome->has_ended = json_is_string(json_object_get(result, CTL_KEY_ENDED));
	outcome->was_time =
		strcmp(shuntctl_text_of(result, CTL_KEY_ENDED), CTL_ENDED_TIME) == 0;
	status = write_packets(ctl, result);
	json_decref(result);
	if (n == 0 && !outcome->has_ended && poll(&reader, 1, PAUSE_MS) > 0)
		is_interrupted = 1;
	return status;
}

static void
tell_outcome(const struct outcome *outcome, json_int_t seconds)
{
	(void)fprintf(stderr, "shuntctl: %zu packet%s\n", outcome->n_packets,
		outcome->n_packets == 1 ? "" : "s");
	if (outcome->missed > 0)
		(void)fprintf(stderr,
			"shuntctl: %lld packets more came while there was no room for them, "
			"and were not looked at; ask for less, or use --sample N\n",
			(long long)outcome->missed);
	if (outcome->was_time)
		(void)fprintf(stderr, "shuntctl: its time was over, %lld s; use --seconds N\n",
			(long long)seconds);
}

/* Until it ends, or is ended. */
static int
follow(struct shuntctl *ctl, json_int_t number, json_int_t seconds)
{
	struct outcome outcome = {.n_packets = 0};
	int status = SHUNTCTL_DONE;
	json_t *result = NULL;

	while (status == SHUNTCTL_DONE && !outcome.has_ended && is_interrupted == 0)
		status = read_once(ctl, number, &outcome);
	if (status == SHUNTCTL_DONE && !outcome.has_ended) /* what came up to now */
		status = read_once(ctl, number, &outcome);
	if (status == SHUNTCTL_DONE && !outcome.has_ended)
		status = shuntctl_call(ctl, CTL_METHOD_TRACE_END,
			json_pack("{s:I}", CTL_KEY_TRACE, number), &result);
	json_decref(result);
	if (status == SHUNTCTL_DONE)
		tell_outcome(&outcome, seconds);
	return status;
}

int
shuntctl_trace(struct shuntctl *ctl)
{
	static const struct shuntctl_key keys[] = {{SHUNTCTL_SERVICE, CTL_KEY_SERVICE},
		{SHUNTCTL_HOST, CTL_KEY_HOST}, {SHUNTCTL_NET, CTL_KEY_NET},
		{SHUNTCTL_PORT, CTL_KEY_PORT}, {SHUNTCTL_PROTOCOL, CTL_KEY_PROTOCOL},
		{SHUNTCTL_COUNT, CTL_KEY_COUNT}, {SHUNTCTL_SAMPLE, CTL_KEY_SAMPLE},
		{SHUNTCTL_SECONDS, CTL_KEY_SECONDS}};
	json_t *params = shuntctl_make_params(ctl, keys, LB_N_ELEMENTS(keys));
	json_t *result;
	json_int_t number;
	json_int_t seconds;
	int status;

	if (params == NULL)
		return shuntctl_no_utf8();
	if (ctl->values[SHUNTCTL_DROPPED] != NULL &&
		json_object_set_new(params, CTL_KEY_DROPPED, json_true()) != 0) {
		json_decref(params);
		return shuntctl_no_memory();
	}
	take_signals();
	status = shuntctl_call(ctl, CTL_METHOD_TRACE_BEGIN, params, &result);
	if (status != SHUNTCTL_DONE)
		return status;
	number = json_integer_value(json_object_get(result, CTL_KEY_TRACE));
	seconds = json_integer_value(json_object_get(result, CTL_KEY_SECONDS));
	json_decref(result);
	(void)fprintf(stderr, "shuntctl: tracing, for %lld s at most; Ctrl-C ends it\n",
		(long long)seconds);
	return follow(ctl, number, seconds);
}
