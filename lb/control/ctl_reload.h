/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_RELOAD_H
#define CTL_RELOAD_H

/**
 * @file
 * Changes in the order in which they are asked for, though a reload's file is read aside, and
 * the daemon's own written: what would change something, and comes meanwhile, waits for that
 * and then takes its turn, one in each turn of the loop. What only shows does not wait.
 *
 * All functions but those of a file are the control thread's.
 */

#include "cfg_reader.h"
#include "ctl_aside.h"
#include "ctl_bytes.h"
#include "ctl_etcd.h"
#include "ctl_params.h"
#include "ctl_rpc.h"

struct ctl_reload; /* opaque */
struct ctl_daemon;

/**
 * @param daemon    Whose configuration is changed; not owned.
 * @param[out] out  Untouched on error.
 * @retval -ENOMEM  No memory.
 */
int ctl_reload_create(struct ctl_daemon *daemon, struct ctl_loop *loop,
	struct ctl_reload **out) lb_must_check;

/** Change nothing any more: whoever waits is told that shuntd stops. NULL is allowed. */
void ctl_reload_stop(struct ctl_reload *reload);

/** After the thread aside has ended, and ctl_reload_stop(). NULL is allowed. */
void ctl_reload_destroy(struct ctl_reload *reload);

/**
 * Whether a call must wait for its turn; to be asked first by each method that changes
 * something. If so, fn is called again with the same, later, and the answer is no.
 */
bool ctl_reload_defer(struct ctl_reload *reload, ctl_method_fn fn, const json_t *params,
	struct ctl_call *call);

/**
 * Something is done aside that changes wait for, as for a reload's file: those that come from
 * here on until ctl_reload_end(). ctl_reload_defer() has been asked before.
 */
void ctl_reload_begin(struct ctl_reload *reload);

void ctl_reload_end(struct ctl_reload *reload);

/**
 * Read a file aside and put it in force; in its turn. By the name of the daemon's configuration
 * also what etcd has. The call's file is read, where it came with one.
 */
void ctl_reload_file(struct ctl_reload *reload, const char *path, struct ctl_call *call);

/**
 * Reload the daemon's own file, as SIGHUP asks for: what there is to say goes to the log, and
 * ctl_daemon_end_hangup() is told the outcome. One that waits is enough for many signals.
 */
void ctl_reload_hang_up(struct ctl_reload *reload);

/**
 * Put in force what has come from etcd, in its turn: what there is to say goes to the log, and
 * etcd is told the outcome. One that waits gives way to the next.
 *
 * @param document  Taken over.
 */
void ctl_reload_document(struct ctl_reload *reload, struct ctl_etcd_document *document);

/** A signal's reload has not been read. NULL is allowed. */
bool ctl_reload_is_hung_up(const struct ctl_reload *reload);

/* Of a file, on the thread aside. fd: of what path names, and stays the caller's; -1: path is
 * to be opened. */

/**
 * Read a configuration from a regular file. False: messages say why.
 *
 * @param stop  As cfg_reader_read_stream() has it.
 */
bool ctl_reload_scan(struct cfg_reader *reader, const char *path, int fd,
	const atomic_bool *stop, struct ctl_messages *messages, struct cfg_model *out);

/**
 * Read the text of a regular file. False: messages say why.
 *
 * @param n_max  Bytes; one with more is not read.
 * @param out    To its end; the caller's in any case.
 */
bool ctl_reload_read_text(const char *path, int fd, size_t n_max, const atomic_bool *stop,
	struct ctl_messages *messages, struct ctl_bytes *out);

#endif
