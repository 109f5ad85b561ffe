/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_JSON_H
#define CTL_JSON_H

/**
 * @file
 * Long answers, written down as they are made: byte for byte what json_dumps() with
 * JSON_COMPACT writes of the same values, which for a list of many objects would take them all
 * as a tree of small pieces of memory first, and many times as long.
 *
 * Nothing fails at once: a text that could not be written whole is not given in the end. Nor is
 * it written on once it is longer than an answer may be.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "ctl_bytes.h"

/** All zero is an empty one. */
struct ctl_json {
	struct ctl_bytes bytes;
	bool has_failed;
};

/** To put: the key of an object's next member, and of its first. */
#define CTL_JSON_KEY(key)       "," CTL_JSON_FIRST_KEY(key)
#define CTL_JSON_FIRST_KEY(key) "\"" key "\":"

/** JSON as it is, or a piece of it. */
void ctl_json_put(struct ctl_json *json, const char *text);

/** What another has written; if that has failed, this has. */
void ctl_json_put_all(struct ctl_json *json, struct ctl_json *from);

/** A text in quotes; UTF-8. */
void ctl_json_put_text(struct ctl_json *json, const char *text);

/** A member that is a text, or null where that is NULL. @param key  CTL_JSON_KEY(), or the
 * like. */
void ctl_json_put_member(struct ctl_json *json, const char *key, const char *text);

void ctl_json_put_number(struct ctl_json *json, uint64_t value);

/** Any other value, which is taken over; NULL: there was no memory for it. */
void ctl_json_put_value(struct ctl_json *json, json_t *value);

/**
 * The members of an object, which is taken over and has some, without the brace at its end, so
 * that others can be put behind them; NULL: there was no memory for it.
 */
void ctl_json_put_open(struct ctl_json *json, json_t *object);

/** What was written, which stays the writer's. @return NULL: no memory, or it was no UTF-8. */
const char *ctl_json_text(struct ctl_json *json);

void ctl_json_fini(struct ctl_json *json);

#endif
