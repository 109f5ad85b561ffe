/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_BUILDER_H
#define CTL_BUILDER_H

/**
 * @file
 * The thread that builds snapshots and publishes them, so that control keeps answering
 * meanwhile. Tables, snapshots and the names' numbers are this thread's alone.
 *
 * Of jobs that wait only the last is built: a burst of changes is one build.
 *
 * Freeing a large configuration takes milliseconds: what control needs no more is freed here.
 *
 * All functions are the control thread's.
 */

#include "ctl_view.h"

struct ctl_builder; /* opaque */

/** What is to be put in force. */
struct ctl_job {
	struct cfg_model model;
	uint64_t generation;
	struct ctl_path *paths; /**< to each address that a backend has; malloc'd */
	size_t n_paths;
	uint8_t *shares;       /**< as ctl_apply_set_shares() has them; malloc'd, or NULL */
	uint32_t *n_unhealthy; /**< of each service, as ctl_ready_look() has it; likewise */
};

/** What came of a job that was built. */
struct ctl_built {
	uint64_t generation;   /**< of its job */
	struct ctl_view *view; /**< the caller's; NULL where it failed, and the old one stays */
	char *message;         /**< why it failed; malloc'd, the caller's */
};

/**
 * Start the thread.
 *
 * @param dp        Published to by this thread alone, from here on.
 * @retval -errno   The kernel's reason.
 */
int ctl_builder_create(struct dp *dp, struct ctl_builder **out) lb_must_check;

/** Wait for the build that runs, and end the thread. NULL is allowed. */
void ctl_builder_destroy(struct ctl_builder *builder);

/** Hand a job over, with all that it points to; it takes the place of one that waits. */
void ctl_builder_submit(struct ctl_builder *builder, struct ctl_job *job);

/** Free a model in the thread, and leave it empty. */
void ctl_builder_free_model(struct ctl_builder *builder, struct cfg_model *model);

/** Free a view in the thread: the last reference to it. */
void ctl_builder_free_view(struct ctl_builder *builder, struct ctl_view *view);

/** A file that is readable while there is something to take. */
int ctl_builder_fd(const struct ctl_builder *builder);

/** Whether there is a job that waits or is being built, or an outcome that was not taken. */
bool ctl_builder_is_busy(struct ctl_builder *builder);

/**
 * Take the first outcome that waits: of what is in force the last, and then of what failed on
 * top of it the last. To be asked again until there is none.
 *
 * @return whether there was one.
 */
bool ctl_builder_take(struct ctl_builder *builder, struct ctl_built *out);

#endif
