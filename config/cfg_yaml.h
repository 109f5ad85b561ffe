/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CFG_YAML_H
#define CFG_YAML_H

/**
 * @file
 * Configuration file -> model, checked whole: every error of the file in one run, up to
 * CFG_MESSAGES_MAX.
 */

#include "cfg_node.h"

/**
 * Read, decode and check a configuration file.
 *
 * @param path      The file; also the name in messages.
 * @param messages  Where errors and warnings go, a line each; NULL for nowhere.
 * @param[out] out  The model, to be given to cfg_model_fini(); untouched on error.
 * @retval 0        Success; warnings may have been written.
 * @retval -EINVAL  Something is wrong with it; messages was told all of it, or the first
 *                  CFG_MESSAGES_MAX errors and that there are more.
 * @retval -errno   It could not be read or memory is short; messages was told.
 */
int cfg_read_file(const char *path, FILE *messages, struct cfg_model *out) lb_must_check;

/** As cfg_read_file(), from memory; name stands in messages. */
int cfg_read_text_model(const char *name, const char *text, size_t n_bytes, FILE *messages,
	struct cfg_model *out) lb_must_check;

/**
 * Decode one backend as it stands under `backends:` (also of an event's `add:`).
 *
 * @param node      A mapping.
 * @param extra     Keys that are allowed besides a backend's own, NULL-terminated, or NULL.
 * @param[out] out  The backend; to be given to cfg_backend_fini(). Untouched on error.
 * @return whether it is right; errors was told otherwise.
 */
bool cfg_decode_backend(const struct cfg_node *node, const char *const extra[],
	struct cfg_errors *errors, struct cfg_backend *out);

#endif
