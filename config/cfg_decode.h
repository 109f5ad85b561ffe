/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_DECODE_H
#define CFG_DECODE_H

/**
 * @file
 * Tree -> model, section by section; only cfg_yaml*.c and cfg_reader.c include this.
 *
 * Each function tells errors of all that is wrong under its node and decodes the rest, so
 * that one run shows every error. Parts that had one are marked CFG_BAD_*.
 */

#include "cfg_node.h"

/** Reads a range of numbers that also has a word, which stands for 0. */
bool cfg_read_u64_or_word(const struct cfg_node *node, const char *what, const char *word,
	uint64_t max, struct cfg_errors *errors, uint64_t *out);

/** The list under a key: 0 items where it is absent or empty, or no list (errors is told). */
size_t cfg_count_items(const struct cfg_node *node, const char *what,
	struct cfg_errors *errors);

/** Tells errors that an item has not a key it needs. Returns false. */
bool cfg_missing_key(const struct cfg_node *item, const char *what, const char *key,
	struct cfg_errors *errors);

/**
 * The name of an item, which every one needs; errors is told where it is missing or wrong, and
 * then neither is set.
 *
 * @param what       The kind of item, for messages.
 * @param[out] out   To be freed.
 * @param[out] pos   Where it stands.
 */
void cfg_decode_name(const struct cfg_node *item, const char *what, struct cfg_errors *errors,
	char **out, struct cfg_pos *pos);

void cfg_decode_dataplane(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_dataplane *out);

void cfg_decode_announce(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_announce *out);

void cfg_decode_services(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_model *out);

/** The list under `quic`, which may be NULL; false where not all of it is right. */
bool cfg_decode_quic(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_service *out);

/** The keys of a service that are about the health of its backends. */
void cfg_decode_health(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_service *out);

/** What is under `quic_id`, which may be NULL: a server id, or a list of them. */
void cfg_decode_quic_ids(const struct cfg_node *node, struct cfg_errors *errors,
	struct cfg_backend *out);

/** A whole file's tree. out is a model to be freed also where errors was told. */
void cfg_decode_model(const struct cfg_node *root, struct cfg_errors *errors,
	struct cfg_model *out);

/**
 * Check a decoded model as a whole, also after errors: what is wrong between the parts belongs
 * to the same run.
 *
 * @param needs_ports  Whether a model without ports is wrong.
 * @return 0, or -EINVAL or -ENOMEM where errors has been told anything by now; the model is
 *         freed then.
 */
int cfg_finish_model(struct cfg_model *model, bool needs_ports,
	struct cfg_errors *errors) lb_must_check;

#endif
