/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_DAEMON_H
#define CTL_DAEMON_H

/**
 * @file
 * The control thread of shuntd: the configuration that is wanted, the one in force, and what
 * brings the one to the other: commands, signals, the kernel's routes and neighbours.
 *
 * A change is made to a copy of what is wanted and checked whole; then the builder puts it in
 * force. What cannot be put in force is undone, and whoever asked is told why.
 *
 * Not thread-safe: the control thread's.
 */

#include "cfg_model.h"
#include "cfg_reader.h"
#include "ctl_announce.h"
#include "ctl_aside.h"
#include "ctl_etcd.h"
#include "ctl_health.h"
#include "ctl_places.h"
#include "ctl_ports.h"
#include "ctl_reload.h"
#include "ctl_rpc.h"
#include "ctl_save.h"
#include "ctl_trace.h"
#include "ctl_view.h"

struct ctl_daemon; /* opaque */

struct ctl_daemon_conf {
	const char
		*config_path;  /**< what a reload reads, unless it is told another; not owned */
	struct ctl_etcd *etcd; /**< that config_path is in; not owned. NULL: a file */
	const char *local_path;    /**< what reader puts into it is from; NULL: nothing is */
	struct ctl_save_mark mark; /**< of config_path, before it was read */
	struct cfg_reader *reader; /**< has read config_path; the thread aside's, not owned */
	struct dp *dp;             /**< with its ports open, not running yet */
};

/**
 * Whether one could listen at a path: to be asked before ports are opened, which may be those
 * of the daemon that listens there.
 *
 * @retval -errno   Why not; stderr was told.
 */
int ctl_daemon_try_socket(const char *path) lb_must_check;

/**
 * Put the first configuration in force, set the twins up, and listen.
 *
 * @param model     Checked; what it holds is taken over, and it is left empty, once the daemon
 *                  is made.
 * @param[out] out  Untouched on error.
 * @retval -errno   Why not; stderr was told.
 */
int ctl_daemon_create(const struct ctl_daemon_conf *conf, struct cfg_model *model,
	struct ctl_daemon **out) lb_must_check;

/**
 * Announce what is ready, answer and follow; the workers run. SIGHUP reloads. SIGTERM or SIGINT
 * withdraws what is announced, and ends it: where something was, after withdraw_before_stop, or
 * at the next such signal.
 *
 * @retval -errno  The loop's.
 */
int ctl_daemon_run(struct ctl_daemon *daemon) lb_must_check;

/** The workers have stopped. NULL is allowed. */
void ctl_daemon_destroy(struct ctl_daemon *daemon);

/* For the methods of the control protocol. */

/** What is in force; good until the next turn of the loop. */
const struct ctl_view *ctl_daemon_view(const struct ctl_daemon *daemon);

/**
 * How long a backend of it has had its state, by its id.
 *
 * @return whether that is known: where memory was short it is not.
 */
bool ctl_daemon_read_state_ms(const struct ctl_daemon *daemon, uint32_t id, uint64_t *ms);

/** The same, with a reference, to be given back. */
struct ctl_view *ctl_daemon_hold_view(const struct ctl_daemon *daemon);

/** Give it back. */
void ctl_daemon_release_view(struct ctl_daemon *daemon, struct ctl_view *view);

/** What each method that changes something asks first. */
struct ctl_reload *ctl_daemon_reload(const struct ctl_daemon *daemon);

/** Where the configuration is from; NULL: a file. */
struct ctl_etcd *ctl_daemon_etcd(const struct ctl_daemon *daemon);

/** For what takes too long to be done here. */
struct ctl_aside *ctl_daemon_aside(const struct ctl_daemon *daemon);

/** What is wanted: what is in force, and the changes that are being built. */
const struct cfg_model *ctl_daemon_wanted(const struct ctl_daemon *daemon);

/** For the thread aside alone. */
struct cfg_reader *ctl_daemon_reader(const struct ctl_daemon *daemon);

/** What is known of the backends. */
const struct ctl_health *ctl_daemon_health(const struct ctl_daemon *daemon);

/** The places of what is in force; NULL: no memory. Takes time after a change alone. */
const struct ctl_places *ctl_daemon_find_places(struct ctl_daemon *daemon);

/** The trace that runs, if one does. */
struct ctl_trace *ctl_daemon_trace(struct ctl_daemon *daemon);

struct dp *ctl_daemon_dp(const struct ctl_daemon *daemon);

/** The ports' links. */
const struct ctl_ports *ctl_daemon_ports(const struct ctl_daemon *daemon);

/** NULL: nothing is announced. */
const struct ctl_announce *ctl_daemon_announce(const struct ctl_daemon *daemon);

const char *ctl_daemon_config_path(const struct ctl_daemon *daemon);

/** The file of what is this balancer's own; NULL: there is none. */
const char *ctl_daemon_local_path(const struct ctl_daemon *daemon);

/** For ctl_save(): of config_path as what is in force was read from it, or saved to it. */
struct ctl_save_mark *ctl_daemon_mark(struct ctl_daemon *daemon);

/** Milliseconds since the start. */
uint64_t ctl_daemon_uptime_ms(const struct ctl_daemon *daemon);

/** ctl_rpc_is_connected() of the socket's clients. */
bool ctl_daemon_has_client(const struct ctl_daemon *daemon, uint64_t client);

void ctl_daemon_read_rpc_stats(const struct ctl_daemon *daemon, struct ctl_rpc_stats *out);

/** Where a change comes from. */
struct ctl_origin {
	char *what; /**< for the log, in a few words, of malloc(); NULL: no memory for them */
	json_t *warnings; /**< of the file that was read, as the call is told them; NULL: none
			   */
	struct ctl_save_mark mark; /**< of config_path, where that was read; or of no file */
	struct ctl_etcd_document document; /**< text NULL: it is from elsewhere */
};

/**
 * Want another model. Once it is in force, the log has a line of it.
 *
 * @param next  Checked; taken over in any case.
 * @param call  Answered {"generation": N, "warnings": []} when it is in force, or with why it
 *              cannot be; NULL: nobody waits.
 * @param origin  What it holds is taken over in any case.
 */
void ctl_daemon_change(struct ctl_daemon *daemon, struct cfg_model *next, struct ctl_call *call,
	const struct ctl_origin *origin);

/**
 * Whether a call must wait for changes that are being built. If so, fn is called once they are
 * in force, without params; or the call is told why they cannot be.
 */
bool ctl_daemon_defer(struct ctl_daemon *daemon, ctl_method_fn fn, struct ctl_call *call);

/**
 * For ctl_reload_hang_up(): the file is read.
 *
 * @param next    As ctl_daemon_change() has it; NULL: nothing changes, and there is no origin.
 * @param origin  The same.
 */
void ctl_daemon_end_hangup(struct ctl_daemon *daemon, struct cfg_model *next,
	const struct ctl_origin *origin);

#endif
