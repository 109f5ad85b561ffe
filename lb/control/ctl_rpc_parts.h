/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_RPC_PARTS_H
#define CTL_RPC_PARTS_H

/**
 * @file
 * What the parts of ctl_rpc.c share; only ctl_rpc*.c include this. Control thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "ctl_bytes.h"
#include "ctl_rpc.h"
#include "ctl_rpc_socket.h"

struct ctl_rpc_client {
	struct ctl_rpc *rpc;
	size_t place; /* among rpc's clients */
	int fd;
	uint64_t number;      /* no two have the same */
	struct ctl_bytes in;  /* what was sent and is not dealt with */
	struct ctl_bytes out; /* answers that wait to be read */
	size_t n_line;        /* bytes of the whole line at in's front; 0: none is whole */
	size_t n_searched;    /* bytes of in that have no end of a line */
	struct ctl_call *calls;
	size_t n_calls;
	uint64_t moved_ms;  /* when it came, was answered or read on, whichever was last */
	uint64_t last_turn; /* its number; while it is new, that of the turn before it came */
	uint64_t demand;    /* what it has asked of late, as CTL_RPC_BUSY counts */
	uint64_t demand_ms; /* up to when half of it was forgotten each second */
	int file;           /* that came, for the next call; -1: none */
	bool has_file_call; /* a call is to be answered that came with one */
	pid_t pid;          /* of who connected; 0: not known */
	bool is_owner;      /* of root, or the user who runs us */
	bool is_new;        /* it has had no turn */
	bool has_ended;     /* it sends no more */
	bool is_cut;        /* it is to go at the end of its turn */
	bool is_in_turn;
};

struct ctl_call {
	struct ctl_rpc_client *client; /* NULL: gone */
	json_t *id;                    /* NULL: a notification, which has no answer */
	int file;                      /* -1: none, or it was taken */
	bool has_brought_file;
	bool is_owners;
	struct ctl_call *next; /* of the client's, as is previous */
	struct ctl_call *previous;
};

struct ctl_rpc {
	struct ctl_loop *loop;
	struct ctl_rpc_socket socket;
	struct ctl_timer *pause; /* not NULL: nobody is accepted until then */
	int turn_fd;             /* an eventfd: some client has a request to be carried out */
	bool is_turn_due;
	uint64_t n_turns;
	uint64_t told_ms; /* when it was last told that a client was evicted; 0: never */
	const struct ctl_method *methods;
	size_t n_methods;
	void *context;
	struct ctl_rpc_client *clients[CTL_RPC_CLIENTS_MAX]; /* NULL: a free place */
	struct {
		pid_t pid;
		uint64_t until_ms;
	} displaced[CTL_RPC_CLIENTS_MAX]; /* those who gave way for asking the most, in turn */
	size_t n_displaced;
	struct ctl_rpc_stats stats;
};

/* ctl_rpc.c: turns. */

/** Have the requests carried out that are ready, in a later turn of the loop. */
void ctl_rpc_ask_for_turn(struct ctl_rpc *rpc);

/* ctl_rpc_client.c: what one sends and reads. */

/** A client at a place that is free. NULL: no memory, and the file is closed. */
struct ctl_rpc_client *ctl_rpc_client_create(struct ctl_rpc *rpc, int fd, size_t place);

/** Close and free it; its calls are to be answered still. */
void ctl_rpc_client_destroy(struct ctl_rpc_client *client);

/**
 * Has a request that can be carried out now. While answers wait to be read none is: it would be
 * work, and memory, for who does not want to know.
 */
bool ctl_rpc_client_is_ready(const struct ctl_rpc_client *client);

/** Send what it reads, at most so much that others have their turn; it may be cut then. */
void ctl_rpc_client_flush(struct ctl_rpc_client *client);

/** What was answered goes out, and what it is waited for; it may be gone afterwards. */
void ctl_rpc_client_settle(struct ctl_rpc_client *client);

/** The line at its front was carried out: drop it, and look for the next. */
void ctl_rpc_client_next_line(struct ctl_rpc_client *client);

/* ctl_rpc_call.c: calls, and how they are answered. */

/** A call of the client's. NULL: no memory. */
struct ctl_call *ctl_rpc_call_create(struct ctl_rpc_client *client, json_t *id);

/** Answer what is no call; where not even that can be told, the client is cut. */
void ctl_rpc_answer_error(struct ctl_rpc_client *client, json_t *id, enum ctl_rpc_error code,
	const char *message);

/* ctl_rpc_places.c: who has a place. */

/** A request of the client's took so long. */
void ctl_rpc_charge(struct ctl_rpc_client *client, uint64_t ms);

/** Take in who waits at the socket; for ctl_loop_add_fd(). */
void ctl_rpc_on_listener(void *rpc, uint32_t events);

#endif
