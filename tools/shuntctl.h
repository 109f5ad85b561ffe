/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHUNTCTL_H
#define SHUNTCTL_H

/**
 * @file
 * The parts of shuntctl: its options, the calls, and each command. A command returns the exit
 * status; whoever returns another than SHUNTCTL_DONE has said why on stderr.
 */

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

enum { SHUNTCTL_DONE = 0, SHUNTCTL_FAILED = 1, SHUNTCTL_BAD_USAGE = 2 };

/** Options of single commands, each for a parameter of a call. */
enum shuntctl_value {
	SHUNTCTL_ADDRESS,
	SHUNTCTL_PROTOCOL,
	SHUNTCTL_PORT,
	SHUNTCTL_TABLE,
	SHUNTCTL_AFFINITY,
	SHUNTCTL_FORWARD,
	SHUNTCTL_TUNNEL_PORT,
	SHUNTCTL_VNI,
	SHUNTCTL_CARRY,
	SHUNTCTL_ECHO,
	SHUNTCTL_FRAGMENT,
	SHUNTCTL_MSS_CLAMP,
	SHUNTCTL_QUIC,
	SHUNTCTL_HEALTH,
	SHUNTCTL_SLOW_START,
	SHUNTCTL_MIN_HEALTHY,
	SHUNTCTL_WHEN_ALL_DOWN,
	SHUNTCTL_WEIGHT,
	SHUNTCTL_STATE,
	SHUNTCTL_MAC,
	SHUNTCTL_ZONE,
	SHUNTCTL_QUIC_ID,
	SHUNTCTL_REVISION,
	SHUNTCTL_SERVICE,
	SHUNTCTL_HOST,
	SHUNTCTL_NET,
	SHUNTCTL_COUNT,
	SHUNTCTL_SAMPLE,
	SHUNTCTL_SECONDS,
	SHUNTCTL_BACKEND,
	SHUNTCTL_CLIENT,
	SHUNTCTL_IDLE,
	SHUNTCTL_BY,
	/** The first of those without a value: "" where they are given. */
	SHUNTCTL_FIRST_FLAG,
	SHUNTCTL_DROPPED = SHUNTCTL_FIRST_FLAG,
	SHUNTCTL_CONFIRMED,
	SHUNTCTL_UNCONFIRMED,
	SHUNTCTL_ALL,
	SHUNTCTL_N_VALUES
};

struct shuntctl {
	const char *socket;
	unsigned int timeout_ms; /**< of --timeout; CTL_CLIENT_FOR_EVER: no end */
	bool has_timeout;        /**< false: what is usual for a command */
	bool is_json;
	bool is_watch;
	bool is_save;
	const char *values[SHUNTCTL_N_VALUES]; /**< NULL: not given */
	char *const *args;                     /**< behind the words of the command */
	int n_args;
	struct ctl_client *client; /**< NULL until the first call */
	int file;                  /**< that calls take along; -1: none */
};

/* shuntctl_call.c */

/**
 * Call a method of the daemon; connects before the first.
 *
 * @param params       Taken over; NULL: none.
 * @param[out] result  The caller's; untouched unless SHUNTCTL_DONE is returned.
 */
int shuntctl_call(struct shuntctl *ctl, const char *method, json_t *params, json_t **result);

/** The parameter that an option is for. */
struct shuntctl_key {
	enum shuntctl_value value;
	const char *key;
};

/** An object with those of n options that were given, as texts. NULL: one is no UTF-8. */
json_t *shuntctl_make_params(const struct shuntctl *ctl, const struct shuntctl_key keys[],
	size_t n);

/** Writes a result for people. Returns the exit status. */
typedef int (*shuntctl_print_fn)(const json_t *result);

/**
 * Call a method and write its result: as JSON where that is asked for, else by print.
 *
 * @param params  As of shuntctl_call().
 * @param print   NULL: it is done, and there is nothing to say.
 */
int shuntctl_ask(struct shuntctl *ctl, const char *method, json_t *params,
	shuntctl_print_fn print);

/** A member of an object that is a text; "-" where it is not there, or null. */
const char *shuntctl_text_of(const json_t *object, const char *key);

/** Tell of bad usage: "shuntctl: WHAT", and where help is. Returns SHUNTCTL_BAD_USAGE. */
int shuntctl_usage_error(const char *what, ...) __attribute__((format(printf, 1, 2)));

/** Tell that what was typed, from which no JSON could be made, is no UTF-8. As above. */
int shuntctl_no_utf8(void);

/** Tell that memory is short. Returns SHUNTCTL_FAILED. */
int shuntctl_no_memory(void);

/** Look whether all of stdout got out. Returns the exit status. */
int shuntctl_finish_output(void);

/** Write an object on stdout, indented; of a series, one a line. Returns the exit status. */
int shuntctl_write_json(const json_t *object, bool is_series);

/* shuntctl_show.c */
int shuntctl_status(struct shuntctl *ctl);
int shuntctl_service_list(struct shuntctl *ctl);
int shuntctl_service_show(struct shuntctl *ctl);
int shuntctl_backend_list(struct shuntctl *ctl);
int shuntctl_explain(struct shuntctl *ctl);
int shuntctl_config_show(struct shuntctl *ctl);

/* shuntctl_stats.c */
int shuntctl_stats(struct shuntctl *ctl);

/* shuntctl_top.c */
int shuntctl_top(struct shuntctl *ctl);

/* shuntctl_trace.c */
int shuntctl_trace(struct shuntctl *ctl);

/* shuntctl_flows.c */
int shuntctl_flows_list(struct shuntctl *ctl);
int shuntctl_flows_count(struct shuntctl *ctl);
int shuntctl_flows_find(struct shuntctl *ctl);
int shuntctl_flows_clear(struct shuntctl *ctl);

/* shuntctl_file.c */
int shuntctl_plan(struct shuntctl *ctl);
int shuntctl_reload(struct shuntctl *ctl);
int shuntctl_config_save(struct shuntctl *ctl);
int shuntctl_config_push(struct shuntctl *ctl);

/* shuntctl_edit.c */
int shuntctl_service_add(struct shuntctl *ctl);
int shuntctl_service_remove(struct shuntctl *ctl);
int shuntctl_backend_add(struct shuntctl *ctl);
int shuntctl_backend_remove(struct shuntctl *ctl);
int shuntctl_backend_drain(struct shuntctl *ctl);
int shuntctl_backend_up(struct shuntctl *ctl);
int shuntctl_backend_down(struct shuntctl *ctl);
int shuntctl_backend_weight(struct shuntctl *ctl);

#endif
