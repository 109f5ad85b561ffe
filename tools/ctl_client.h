/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

/**
 * @file
 * The other end of the daemon's control socket: one request, and its answer waited for.
 *
 * Blocks, never longer than it is told to, timeout_ms. Not thread-safe.
 */

#include <limits.h>

#include <jansson.h>

#include "lb_compiler.h"

/** For a timeout_ms: no end. */
#define CTL_CLIENT_FOR_EVER UINT_MAX

/** Longer answers are not read. */
#define CTL_CLIENT_ANSWER_BYTES_MAX (65u << 20)

struct ctl_client; /* opaque */

/** What the daemon answered instead of a result. */
struct ctl_client_error {
	int code;
	char *message; /**< owned: free() it */
};

/**
 * Connect to a daemon.
 *
 * @param[out] out        Untouched on error.
 * @retval -ECONNREFUSED  Nobody listens there.
 * @retval -ENOENT        Nothing is there.
 * @retval -ETIMEDOUT     It does not take the connection.
 * @retval -errno         The kernel's reason.
 */
int ctl_client_open(const char *path, unsigned int timeout_ms,
	struct ctl_client **out) lb_must_check;

/**
 * Have the next request take an open file along.
 *
 * @param file  Stays its owner's, who keeps it open until the request is out.
 */
void ctl_client_pass(struct ctl_client *client, int file);

/**
 * Call a method.
 *
 * After an error other than -EREMOTEIO and -ETIMEDOUT the connection is of no use any more.
 *
 * @param params       An object or array, which stays its owner's; NULL: none.
 * @param[out] result  Owned by the caller; untouched on error.
 * @param[out] error   Set for -EREMOTEIO only.
 * @retval -EREMOTEIO   The daemon answered with an error.
 * @retval -ETIMEDOUT   No answer in time; should it come later, it is passed over.
 * @retval -ECONNRESET  The daemon closed the connection without an answer.
 * @retval -EPROTO      It answers with what is no JSON-RPC.
 * @retval -EMSGSIZE    Its answer is too long.
 * @retval -errno       The kernel's reason.
 */
int ctl_client_call(struct ctl_client *client, const char *method, json_t *params,
	unsigned int timeout_ms, json_t **result, struct ctl_client_error *error) lb_must_check;

/**
 * The two halves of ctl_client_call(), for who waits for other things beside: the request goes
 * out, and its answer is taken when ctl_client_fd() can be read. One request at a time.
 *
 * @retval  As of ctl_client_call(). After -ETIMEDOUT of ctl_client_take() it may be tried
 * again: what came of the answer is kept.
 */
int ctl_client_ask(struct ctl_client *client, const char *method, json_t *params,
	unsigned int timeout_ms) lb_must_check;
int ctl_client_take(struct ctl_client *client, unsigned int timeout_ms, json_t **result,
	struct ctl_client_error *error) lb_must_check;

/** The client's socket, to be waited for alone. */
int ctl_client_fd(const struct ctl_client *client);

/** NULL is allowed. */
void ctl_client_close(struct ctl_client *client);

#endif
