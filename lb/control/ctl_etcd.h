/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_ETCD_H
#define CTL_ETCD_H

/**
 * @file
 * A configuration that etcd has, for a fleet of balancers.
 *
 * A thread of its own loads it and watches it from the revision after that. What is new goes to
 * the control thread, of several that come at once the last alone; there it is put in force as
 * a reload's file is, or refused, and what runs goes on. What etcd does wrong is told in the
 * log once, not with each try, and shown in the status; tries come ever more rarely
 * (ctl_backoff.h). Answers older than what is known of the same cluster are refused, as of a
 * member that was left behind; a cluster that was restored is another one.
 *
 * What was put in force is kept on the disk (ctl_etcd_copy.h), and a start that finds no etcd,
 * or nothing good there, takes that.
 *
 * All functions but those that say so are the control thread's.
 */

#include <stdatomic.h>
#include <stdio.h>

#include "cfg_reader.h"
#include "ctl_aside.h"
#include "ctl_etcd_copy.h"
#include "ctl_etcd_json.h"

struct ctl_etcd; /* opaque */

enum ctl_etcd_link {
	CTL_ETCD_CONNECTING,  /**< at the start */
	CTL_ETCD_WATCHING,    /**< what changes is told at once */
	CTL_ETCD_UNREACHABLE, /**< or it does what etcd does not do: why says */
	CTL_ETCD_N_LINKS
};

/** As status has them. */
extern const char *const ctl_etcd_link_words[CTL_ETCD_N_LINKS];

/** Times are seconds of Unix time; 0: never. */
struct ctl_etcd_status {
	enum ctl_etcd_link link;
	int64_t link_since_s;
	char why[CTL_ETCD_WHY_BYTES]; /**< of what failed last; "": nothing has */
	uint64_t n_failures;          /**< loads and watches that failed */
	uint64_t known_revision;      /**< of the key, the last that was heard of; 0: none */

	uint64_t revision; /**< of what is in force; 0: nothing from there is */
	uint64_t hash;
	bool is_copy; /**< the start took the copy, and nothing newer has come */

	uint64_t
		refused_revision; /**< of what came last, where it was refused; 0: it was not */
	char refused_why[CTL_ETCD_WHY_BYTES];
	uint64_t n_applied; /**< documents that were put in force */
	uint64_t n_refused;

	int64_t copy_s;                    /**< of when the copy on the disk is */
	char copy_why[CTL_ETCD_WHY_BYTES]; /**< why it is not of what is in force; "": it is */
};

/** Given what is new, and takes it over. */
typedef void (*ctl_etcd_fn)(void *context, struct ctl_etcd_document *document);

/** Whether a configuration's name is an address in etcd. */
bool ctl_etcd_is(const char *config);

/**
 * @param url       For which ctl_etcd_is() holds. What the environment has to say is read, too
 *                  (ctl_etcd_client.h). Not owned.
 * @param messages  Told what is wrong.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  Something is wrong with them.
 * @retval -ENOMEM  No memory.
 */
int ctl_etcd_create(const char *url, FILE *messages, struct ctl_etcd **out) lb_must_check;

/** After ctl_etcd_stop(). NULL is allowed. */
void ctl_etcd_destroy(struct ctl_etcd *etcd);

/**
 * Read the first configuration, before there is a control thread: from etcd, or where that does
 * not answer or what it has is no good, the copy.
 *
 * @param may_copy  false: from etcd alone.
 * @param messages  Told what is wrong, also where the copy was taken.
 * @param[out] out  Untouched on error.
 * @retval -EINVAL  What etcd has is no good, and there is no copy.
 * @retval -errno   There is neither.
 */
int ctl_etcd_read_first(struct ctl_etcd *etcd, struct cfg_reader *reader, bool may_copy,
	FILE *messages, struct cfg_model *out) lb_must_check;

/**
 * Start the thread: what is first is in force. It is kept, and what comes is followed.
 *
 * @param aside     Writes copies.
 * @param fn        Called in loop.
 * @retval -errno   The kernel's reason, or -ENOMEM.
 */
int ctl_etcd_start(struct ctl_etcd *etcd, struct ctl_loop *loop, struct ctl_aside *aside,
	ctl_etcd_fn fn, void *context) lb_must_check;

/** End the thread; fn is called no more. NULL is allowed. */
void ctl_etcd_stop(struct ctl_etcd *etcd);

/** What was given is in force, and to be kept; taken over. */
void ctl_etcd_note_in_force(struct ctl_etcd *etcd, struct ctl_etcd_document *document);

/** What was given is not. @param errors  A line each; the first is told. */
void ctl_etcd_note_refused(struct ctl_etcd *etcd, const struct ctl_etcd_document *document,
	const char *errors);

/**
 * Whether the log may be told of a document, as whoever writes them may do so at any rate; it
 * is told of those that are left out.
 */
bool ctl_etcd_may_tell(struct ctl_etcd *etcd);

void ctl_etcd_read_status(struct ctl_etcd *etcd, struct ctl_etcd_status *out);

/**
 * Ask etcd now, and believe whatever it answers. On any thread.
 *
 * @param stop      As ctl_etcd_client_create() has it.
 * @param messages  Told what is wrong.
 * @param[out] out  To be given to ctl_etcd_document_fini(); untouched on error.
 * @retval -ENOENT  There is no such key.
 * @retval -errno   As of ctl_etcd_client_load().
 */
int ctl_etcd_fetch(struct ctl_etcd *etcd, const atomic_bool *stop, FILE *messages,
	struct ctl_etcd_document *out) lb_must_check;

/**
 * Whether something newer of the same cluster has been heard of, which therefore is in force,
 * was refused or is to come.
 */
bool ctl_etcd_is_overtaken(struct ctl_etcd *etcd, const struct ctl_etcd_document *document);

/** A configuration to be written there, and what comes of it. */
struct ctl_etcd_push {
	const char *text;
	size_t n_bytes;
	uint64_t revision; /**< that the key is to be at; 0: it is not there */
	uint64_t now;      /**< that it has by that; set on success, and with -ESTALE */
	char why[CTL_ETCD_WHY_BYTES]; /**< what failed, in words, otherwise */
};

/**
 * Write another configuration there, if the key is at a revision. On any thread.
 *
 * @param stop  As of ctl_etcd_fetch().
 * @retval -ESTALE  The key is at another revision, now.
 * @retval -errno   As of ctl_etcd_client_put().
 */
int ctl_etcd_push(struct ctl_etcd *etcd, const atomic_bool *stop,
	struct ctl_etcd_push *push) lb_must_check;

#endif
