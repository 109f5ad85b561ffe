/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_SAVE_H
#define CTL_SAVE_H

/**
 * @file
 * A configuration into its file, whole or not at all.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cfg_model.h"

/** A file's content, as far as one need not read it: whoever writes to it gives it another. */
struct ctl_save_mark {
	bool is_there; /**< false: no file, and the rest is 0 */
	uint64_t device;
	uint64_t inode;
	int64_t size_bytes;
	int64_t written_s; /**< the time of the last writing, and */
	int64_t written_ns;
};

/**
 * The mark of a file as it is now. To be taken before it is read: of what is written meanwhile
 * it then knows nothing. On any thread.
 */
struct ctl_save_mark ctl_save_look(const char *path);

/** The same of a file that is open. */
struct ctl_save_mark ctl_save_look_at(int fd);

/** Whether two are marks of the same file, whatever was written to it in between. */
bool ctl_save_is_same_file(const struct ctl_save_mark *a, const struct ctl_save_mark *b);

/**
 * Write a model as a configuration file in the place of an old one, with its owner and mode:
 * a new file beside it, .NAME.tmp, on the disk before it takes the name. Whatever fails, the
 * old file stays as it was. A symbolic link stays, and what it points to is replaced. What a
 * process that was killed has left of its own is overwritten.
 *
 * @param[in,out] mark  Of the file as it was last read or saved; afterwards, of the one saved.
 * @retval -ESTALE Another has written to the file, or put one in its place. One that is gone
 *                 comes back.
 * @retval -EBUSY  Another process saves into that folder, or holds a lock of it (flock()).
 * @retval -errno  The kernel's reason: no room, no right, a file system that is read-only.
 */
int ctl_save(const struct cfg_model *model, const char *path,
	struct ctl_save_mark *mark) lb_must_check;

#endif
