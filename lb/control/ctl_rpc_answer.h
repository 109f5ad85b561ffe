/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_RPC_ANSWER_H
#define CTL_RPC_ANSWER_H

/**
 * @file
 * Answers of JSON-RPC 2.0, section 5, one a line, as bytes. Pure; on any thread.
 */

#include <jansson.h>

#include "ctl_bytes.h"
#include "ctl_rpc.h"

/**
 * Make an answer.
 *
 * @param id     The request's, which stays its owner's; NULL: null.
 * @param key    "result" or "error".
 * @param value  Taken over; NULL says that there was no memory for it.
 * @return NULL: no memory.
 */
json_t *ctl_rpc_answer_make(json_t *id, const char *key, json_t *value);

/** Make the value of "error". A message's bytes that are not UTF-8 become '?'. NULL: no memory.
 */
json_t *ctl_rpc_answer_make_error(enum ctl_rpc_error code, const char *message);

/**
 * Append an answer and the end of its line: all of it or nothing.
 *
 * @retval -EMSGSIZE  More than CTL_RPC_ANSWER_BYTES_MAX would wait.
 * @retval -EINVAL    What is no UTF-8 is in it.
 * @retval -ENOMEM    No memory.
 */
int ctl_rpc_answer_append(struct ctl_bytes *out, const json_t *answer) lb_must_check;

/**
 * The same of a result that is written down already.
 *
 * @param result  JSON without ends of lines, which is not looked at; NULL: -ENOMEM.
 */
int ctl_rpc_answer_append_text(struct ctl_bytes *out, const json_t *id,
	const char *result) lb_must_check;

#endif
