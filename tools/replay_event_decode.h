/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_EVENT_DECODE_H
#define REPLAY_EVENT_DECODE_H

/**
 * @file
 * Between the modules of the events file alone: its tree of YAML -> events, each for itself.
 */

#include "cfg_nearest.h"
#include "replay_events.h"

/** An item of the file, as far as it could be read. */
struct replay_event_draft {
	struct replay_event event;
	bool has_time;
	bool is_whole; /**< what happens is known, and could be done to a model */
	bool is_blind; /**< no judging of what comes after: it may bring names that are not
			  known */
};

struct replay_event_reader {
	const struct cfg_model *model; /**< at the start */
	const char *path;
	bool is_reload_on; /**< whether files that `reload` names are opened */
	struct cfg_errors errors;
	struct replay_event_draft *drafts;
	size_t n_drafts;
	bool is_mixed; /**< some are due by time and some by packets; after the rehearsal */
};

/**
 * Read each item of the list into a draft; reader->errors is told of all that is wrong.
 *
 * @param root      The file's root; NULL for an empty file.
 * @retval 0        reader->drafts holds n_drafts; the events in them are the caller's.
 * @retval -ENOMEM  No memory; errors was told.
 */
int replay_event_decode(struct replay_event_reader *reader,
	const struct cfg_node *root) lb_must_check;

/**
 * Rehearse the drafts on a copy of the model, in the order they are due. Where that cannot be
 * told, see is_mixed, look whether the names in them exist at any time. reader->errors is told
 * of all that is wrong.
 */
void replay_event_rehearse_drafts(struct replay_event_reader *reader);

/**
 * Tell that the service of an event, or its backend, is not there: at "that" or "any" time.
 *
 * @param nearest  What was looked for, and what was found instead.
 */
void replay_event_tell_missing(const struct replay_event *event, bool is_backend,
	const char *when, const struct cfg_nearest *nearest, struct cfg_errors *errors);

#endif
