/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_RPC_H
#define CTL_RPC_H

/**
 * @file
 * JSON-RPC 2.0 on a Unix socket, one object a line, for many clients at once.
 *
 * Bounded: CTL_RPC_CLIENTS_MAX clients, CTL_RPC_REQUEST_BYTES_MAX bytes a request,
 * CTL_RPC_ANSWER_BYTES_MAX bytes that wait for one client to read them. A client that exceeds
 * these is told where that can be, counted, and cut off; the others notice nothing. A client's
 * next request waits while answers to it have not all gone out, and at CTL_RPC_CALLS_MAX calls
 * not answered yet; so one that sends many has to read, too. Clients take turns, a request a
 * turn, new ones before their time; so those with many requests, or long ones, do not hold up
 * the others. Nothing here blocks.
 *
 * Where all places are taken, a new client takes that of the one that has been idle longest, if
 * that is CTL_RPC_IDLE_MS or more; CTL_RPC_STALL_MS in the middle of sending a request or of
 * reading an answer. Where none has, the one gives way that has asked the most of late, if that
 * is CTL_RPC_BUSY or more: so those who ask without pause keep nobody out. Its process takes
 * nobody's place like that for CTL_RPC_BUSY_MS then. One whose request is being carried out
 * stays. CTL_RPC_KEPT places are for root and the user who runs the daemon
 * alone, so that all others together do not keep those out.
 *
 * Answers come in the order in which calls are answered. Batches are refused. A client that
 * shuts down its sending half is answered still; of one that is gone, what it sent before is
 * carried out until it is noticed that nobody reads the answers.
 *
 * A request may come with an open file (SCM_RIGHTS, with any of its bytes), where its client
 * has no other one on its way: so a method reads what the client may read, and not what this
 * process may.
 *
 * Not thread-safe: the control thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "ctl_loop.h"
#include "ctl_proto.h"

#define CTL_RPC_CLIENTS_MAX       64u
#define CTL_RPC_REQUEST_BYTES_MAX (1u << 20)
#define CTL_RPC_ANSWER_BYTES_MAX  (64u << 20)
#define CTL_RPC_CALLS_MAX         256u
#define CTL_RPC_IDLE_MS           2000u /**< longer than those idle who ask each second */
#define CTL_RPC_STALL_MS          10000u
#define CTL_RPC_KEPT              2u
/** A request counts 1, and 1 more for each millisecond it takes; half is forgotten in a second.
 */
#define CTL_RPC_BUSY    8u
#define CTL_RPC_BUSY_MS 1000u

/** Codes of JSON-RPC 2.0, section 5.1, and ours. */
enum ctl_rpc_error {
	CTL_RPC_PARSE_ERROR = -32700,
	CTL_RPC_INVALID_REQUEST = -32600,
	CTL_RPC_UNKNOWN_METHOD = -32601,
	CTL_RPC_INVALID_PARAMS = -32602,
	CTL_RPC_INTERNAL_ERROR = -32603,
	CTL_RPC_REFUSED = 1, /**< understood, and not possible: the message says why */
	CTL_RPC_FULL = CTL_ERROR_FULL,
	CTL_RPC_LATE = CTL_ERROR_LATE,
};

struct ctl_rpc;  /* opaque */
struct ctl_call; /* opaque: one request, to be answered once, now or later */

/**
 * Carry out a call, and answer it by one of ctl_call_…(), before returning
 * or at any later time; also where its client has gone meanwhile.
 *
 * @param params  The request's, an object or array; NULL where it has none. Not owned.
 */
typedef void (*ctl_method_fn)(void *context, const json_t *params, struct ctl_call *call);

struct ctl_method {
	const char *name;
	ctl_method_fn fn;
};

struct ctl_rpc_stats {
	uint64_t clients;  /**< connected now */
	uint64_t accepted; /**< so far, without those refused */
	uint64_t refused;  /**< for there were too many */
	uint64_t evicted;  /**< closed for another */
	uint64_t requests;
	uint64_t errors;    /**< answered with an error */
	uint64_t oversized; /**< cut off for a request too long */
	uint64_t stalled;   /**< cut off for not reading its answers */
};

/**
 * Listen on a path.
 *
 * The socket is 0660; its group is `shunt` where there is such a group. A stale one, at which
 * nobody listens, is replaced. Its folder is made, 0755, where that alone is missing; it stays.
 *
 * @param methods   n of them; not copied.
 * @param[out] out  Untouched on error.
 * @retval -EADDRINUSE  Somebody listens there.
 * @retval -EEXIST      Something that is no socket stands there.
 * @retval -errno       The kernel's reason.
 */
int ctl_rpc_open(struct ctl_loop *loop, const char *path, const struct ctl_method methods[],
	size_t n, void *context, struct ctl_rpc **out) lb_must_check;

/**
 * Cut all clients off and remove the socket; not from within a method. Calls not answered are
 * to be answered still. NULL is allowed.
 */
void ctl_rpc_close(struct ctl_rpc *rpc);

/** Answer with a result, which is taken over; NULL says that there was no memory for it. */
void ctl_call_result(struct ctl_call *call, json_t *result);

/** The same with JSON that is written down already, UTF-8, without line ends; not taken over.
 */
void ctl_call_text(struct ctl_call *call, const char *result);

/** Answer with an error; message in words a person understands, printf-like. */
void ctl_call_error(struct ctl_call *call, enum ctl_rpc_error code, const char *message, ...)
	__attribute__((format(printf, 3, 4)));

/** Whose call it is: a number that no other connection has or had. 0: its client has gone. */
uint64_t ctl_call_client(const struct ctl_call *call);

/** Whether it is of root, or of the user who runs us. */
bool ctl_call_is_owners(const struct ctl_call *call);

/** Whether a file came with it, and was not taken yet. */
bool ctl_call_has_file(const struct ctl_call *call);

/** That file, to be closed by who takes it; -1: none. */
int ctl_call_take_file(struct ctl_call *call);

/** Whether the client of that number is connected still. */
bool ctl_rpc_is_connected(const struct ctl_rpc *rpc, uint64_t client);

void ctl_rpc_read_stats(const struct ctl_rpc *rpc, struct ctl_rpc_stats *out);

#endif
