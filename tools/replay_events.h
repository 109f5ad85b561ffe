/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPLAY_EVENTS_H
#define REPLAY_EVENTS_H

/**
 * @file
 * The events file: what happens to the backend set during a replay.
 */

#include "cfg_node.h"

enum replay_event_kind {
	REPLAY_REMOVE,
	REPLAY_ADD,
	REPLAY_WEIGHT,
	REPLAY_UP,
	REPLAY_DRAIN,
	REPLAY_DOWN,
	REPLAY_RELOAD
};

struct replay_event {
	enum replay_event_kind kind;
	bool is_by_packets; /**< due after so many packets; otherwise at a time */
	uint64_t at_ns;     /**< since the first packet */
	uint64_t after_packets;
	struct cfg_pos pos;
	char *title;                /**< for people: "remove web/web-2" */
	char *service;              /**< NULL for reload */
	struct cfg_backend backend; /**< its name; for add all of it, for weight the weight */
	struct cfg_model *reload;   /**< the model to change to; NULL unless reload */
	char *reload_path;          /**< the file it was read from; NULL unless reload */
};

struct replay_events {
	struct replay_event *items; /**< in file order */
	size_t n_items;
	char *file;
	bool is_mixed; /**< some are due by time and some by packets */
};

/**
 * Read an events file and rehearse it on a copy of the configuration, so that a mistake is
 * told before anything is replayed.
 *
 * Rehearsed in the order the events are due, ties in file order. Where `at` and `after` are
 * mixed, only the capture can tell that order. Then names that exist at no time are told alone
 * (not at the start, nor by an add, nor after a reload), is_mixed is set, and the rest is up to
 * replay_events_rehearse().
 *
 * @param path      The file; paths of `reload` are relative to its folder.
 * @param model     The configuration at the start.
 * @param messages  Where errors go, FILE:LINE:COLUMN each.
 * @param[out] out  To be given to replay_events_free(); untouched on error.
 * @retval 0        Success.
 * @retval -EINVAL  Something is wrong with it; messages was told all of it.
 * @retval -errno   It could not be read or memory is short; messages was told.
 */
int replay_events_read(const char *path, const struct cfg_model *model, FILE *messages,
	struct replay_events *out) lb_must_check;

/**
 * As replay_events_read(), from memory; name stands in messages. No file is opened: `reload`
 * changes to the configuration at the start, whatever file it names.
 */
int replay_events_parse(const char *text, size_t n_bytes, const char *name,
	const struct cfg_model *model, FILE *messages, struct replay_events *out) lb_must_check;

/**
 * Rehearse events in an order that is known by now, on a copy of the configuration.
 *
 * @param order     n indices into events->items; what is never due may be left out.
 * @param model     The configuration at the start.
 * @param messages  Where errors go, FILE:LINE:COLUMN each; NULL for nowhere.
 * @retval 0        Success.
 * @retval -EINVAL  An event does not fit what is there when it is due; messages was told all.
 * @retval -ENOMEM  No memory; messages was told.
 */
int replay_events_rehearse(const struct replay_events *events, const size_t order[], size_t n,
	const struct cfg_model *model, FILE *messages) lb_must_check;

/**
 * Apply one event to a model.
 *
 * @param file      The events file's name, for messages.
 * @param messages  NULL for nowhere.
 * @retval 0        Success.
 * @retval -EINVAL  It does not fit the model (an unknown backend, an add of a name that is
 *                  there, a weight that its table has no room for); messages was told, the
 *                  model is as it was.
 * @retval -ENOMEM  No memory; messages was told, the model is as it was.
 */
int replay_event_apply(const struct replay_event *event, const char *file,
	struct cfg_model *model, FILE *messages) lb_must_check;

void replay_events_free(struct replay_events *events);

#endif
