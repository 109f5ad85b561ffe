/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PARAMS_H
#define CTL_PARAMS_H

/**
 * @file
 * The parameters of a call, read strictly; and what is wrong with them, in the words that the
 * configuration's readers have for it.
 *
 * What is told to a call answers it. Control thread.
 */

#include <stdio.h>

#include "cfg_node.h"
#include "ctl_rpc.h"

/**
 * Whether params are absent or an object of these keys (NULL-terminated) alone; the call is
 * answered otherwise.
 */
bool ctl_params_check(const json_t *params, const char *const keys[], struct ctl_call *call);

/** A text that has to be there; NULL where it is not, and the call is answered. */
const char *ctl_params_text(const json_t *params, const char *key, struct ctl_call *call);

/**
 * The path of a file that the call is about; NULL where it may not be read, and the call is
 * answered. Who is neither root nor runs us has to bring the file, open: what we may read is
 * not for them to see, and messages have parts of it.
 */
const char *ctl_params_file(const json_t *params, struct ctl_call *call);

/** Answer that memory is short. */
void ctl_params_no_memory(struct ctl_call *call);

/** Answer that it will not be done any more. */
void ctl_params_stops(struct ctl_call *call);

/** A JSON text of what may not be UTF-8: its other bytes then are '?'. */
json_t *ctl_params_any_text(const char *text);

/** A number that JSON's readers take: 2^63 - 1 stands for anything above. */
json_t *ctl_params_number(uint64_t value);

/** A value that was made in steps: itself, or NULL where one of them failed for memory. */
json_t *ctl_params_finish(json_t *value, int failed);

/** What a service's mss_clamp is: a number, "auto", or null. */
json_t *ctl_params_mss_clamp(const struct cfg_service *service);

/** How a service's backends are checked: an object with the keys of the file, or null. */
json_t *ctl_params_health(const struct cfg_service *service);

/** A duration as the file has it. */
json_t *ctl_params_duration(uint64_t ns);

/** The tunnels that a service carries, a list of words. */
json_t *ctl_params_carry(const struct cfg_service *service);

/**
 * A service's QUIC configurations, of their keys alone whether they are there; and where before
 * is not NULL, whether they differ from what that service has under the same config_id.
 */
json_t *ctl_params_quic(const struct cfg_service *service, const struct cfg_service *before);

/** A backend's server ids, a list of hex digits. */
json_t *ctl_params_quic_ids(const struct cfg_backend *backend);

/** Where errors are collected, to become the answer to a call. */
struct ctl_messages {
	char *text;
	size_t n_text;
	struct cfg_errors errors; /**< errors.to is what others write to */
};

/** The name under which text that came with a call is read: no place in it is told. */
#define CTL_MESSAGES_CALL "-"

/** @param file  The name in messages. @retval -ENOMEM  No memory. */
int ctl_messages_open(struct ctl_messages *messages, const char *file) lb_must_check;

/** What was collected so far, lines; "" where there was no memory. Good until the next. */
const char *ctl_messages_text(struct ctl_messages *messages);

/** The same, a JSON text for each line. NULL: no memory. */
json_t *ctl_messages_list(struct ctl_messages *messages);

/** Answer a call with all that was collected, and close. */
void ctl_messages_answer(struct ctl_messages *messages, enum ctl_rpc_error code,
	struct ctl_call *call);

void ctl_messages_close(struct ctl_messages *messages);

#endif
