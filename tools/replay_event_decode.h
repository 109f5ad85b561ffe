/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_EVENT_DECODE_H
#define REPLAY_EVENT_DECODE_H

/**
 * @file
 * Between the modules of the events file alone: its tree of YAML -> events, each for itself.
 */

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

#endif
