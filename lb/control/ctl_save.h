/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SAVE_H
#define CTL_SAVE_H

/**
 * @file
 * A configuration into its file, whole or not at all.
 */

#include "cfg_model.h"

/**
 * Write a model as a configuration file in the place of an old one, with its owner and mode:
 * a new file beside it, .NAME.tmp, on the disk before it takes the name. Whatever fails, the
 * old file stays as it was. A symbolic link stays, and what it points to is replaced. What a
 * process that was killed has left of its own is overwritten.
 *
 * @retval -EBUSY  Another process saves into that folder, or holds a lock of it (flock()).
 * @retval -errno  The kernel's reason: no room, no right, a file system that is read-only.
 */
int ctl_save(const struct cfg_model *model, const char *path) lb_must_check;

#endif
