/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_RPC_PARSE_H
#define CTL_RPC_PARSE_H

/**
 * @file
 * One line of bytes that anybody may have sent -> a JSON-RPC request, or why it is none.
 */

#include <stddef.h>

#include <jansson.h>

#include "ctl_rpc.h"
#include "lb_compiler.h"

#define CTL_RPC_WHY_BYTES 256u

struct ctl_request {
	json_t *root;         /**< owned; holds all below */
	const char *method;   /**< NULL where it is no request */
	const json_t *params; /**< an object or array; NULL: none */
	json_t *id;           /**< a string, number or null; NULL: none that could be found */
};

/** Why a line is no request. */
struct ctl_request_flaw {
	enum ctl_rpc_error code;
	char why[CTL_RPC_WHY_BYTES]; /**< may be cut off within a character */
};

/**
 * Read a request.
 *
 * @param text       n_bytes; no zero byte at its end is needed.
 * @param[out] out   Always set; for ctl_request_fini(). Its id is set also where it is refused,
 *                   if it could be found.
 * @param[out] flaw  Set on error only.
 * @retval -EINVAL   It is none.
 */
int ctl_rpc_parse(const char *text, size_t n_bytes, struct ctl_request *out,
	struct ctl_request_flaw *flaw) lb_must_check;

void ctl_request_fini(struct ctl_request *request);

#endif
